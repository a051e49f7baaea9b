"""Reader of configurations in the format of the Transformers library."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.system import ModelError, UnknownFamilyError
from joulemap.wing.decoder.network.checkpoint import apply_quantization, find_quantization
from joulemap.wing.decoder.network.config import (
    Attention,
    Compressed,
    Decoder,
    Experts,
    Indexer,
    Latent,
    Network,
    Recurrence,
)
from joulemap.wing.decoder.network.expression import Configuration
from joulemap.wing.decoder.network.family import ASSUMED, Builder, find_family, list_types, load_family, read_family
from joulemap.wing.hub import check_sizes

LARGEST: Final = 10**14
"""Maximum weights of a model: ten times the largest announced model."""

FREE: Final = frozenset(
    (
        "window",
        "rotary",
        "score_operations",
        "sinks",
        "query_rank",
        "kernel",
        "rank",
        "hidden",
        "norms",
        "plain",
        "selected",
        "state",
        "ratio",
        "value_dim",
    )
)
"""Names of the sizes of parts that may be 0."""


def check_decoder(decoder: Decoder) -> Decoder:
    """Return a decoder; raise ModelError, naming the size, if a size is out of range.

    The result of every family is checked here, once: a zero or a product beyond 2^60 would pass through the formulas
    unnoticed until the audit of the database.
    """

    def refuse(name: str, value: Any, expected: str) -> None:
        raise ModelError(f"{decoder.name}: {name} is {value:,}, expected {expected}")

    for name, value in (("hidden_size", decoder.hidden), ("vocab_size", decoder.vocabulary)):
        if value < 1:
            refuse(name, value, "at least 1")
    if not decoder.layers:
        refuse("num_hidden_layers", 0, "at least 1")
    total = float(decoder.hidden * decoder.vocabulary)
    for layer in decoder.layers:
        for part in (*layer.mixers, layer.network):
            for owner, field, value in _list_sizes(part):
                if value < 0 or (value == 0 and field not in FREE):
                    refuse(f"{field} of {owner}", value, "at least 1")
            total += _count_weights(part, decoder.hidden)
        network = layer.network
        for mixer in layer.mixers:
            if isinstance(mixer, Attention) and mixer.heads % mixer.kv_heads:
                fault = f"{mixer.heads} heads cannot share {mixer.kv_heads} heads of keys evenly"
                raise ModelError(f"{decoder.name}: {fault}")
            if isinstance(mixer, Attention) and mixer.rotary > mixer.head_dim:
                refuse("the rotary part of a head", mixer.rotary, f"at most its {mixer.head_dim:,} elements")
            if isinstance(mixer, Recurrence) and mixer.kind != "conv" and not mixer.state:
                refuse("state of a recurrence", 0, "at least 1")
        if isinstance(network, Experts) and network.taken > network.count:
            refuse("experts per token", network.taken, f"at most the {network.count:,} that there are")
    if total > LARGEST:
        refuse("the number of weights", round(total), f"at most {LARGEST:,}")
    return decoder


def _list_sizes(part: Any) -> Iterator[tuple[str, str, int]]:
    """Yield (part, size name, value) for a part of a layer and the parts within it."""
    if part is None:
        return
    owner = dict.fromkeys((Attention, Latent, Compressed, Indexer), "attention")
    owner |= {Recurrence: "a recurrence", Experts: "experts"}
    for field in attrs.fields(type(part)):
        value = getattr(part, field.name)
        if isinstance(value, Network | Indexer):
            yield from _list_sizes(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield owner.get(type(part), "the network"), field.name, value


def _count_weights(part: Any, hidden: int) -> float:
    """Return the approximate number of weights of a part."""
    if isinstance(part, Network):
        return (2.0 + part.is_gated) * hidden * part.inner
    if isinstance(part, Experts):
        shared = sum(_count_weights(one, hidden) for one in (part.shared, part.beside))
        return (2.0 + part.is_gated) * (part.hidden or hidden) * part.inner * part.count + shared
    if isinstance(part, Attention):
        return 2.0 * hidden * part.head_dim * (part.heads + part.kv_heads)
    if isinstance(part, Latent):
        return float(part.heads * (part.plain + part.rotary + part.value_dim) * (hidden + part.rank))
    if isinstance(part, Compressed):
        return float(part.query_rank * part.heads * part.head_dim + hidden * part.output_groups * part.output_rank)
    if isinstance(part, Recurrence):
        return 3.0 * hidden * (part.inner + part.groups * part.state)
    return 0.0


OWN: Final = "family.toml"
"""File next to a configuration that describes its blocks."""

NAMED: Final = 3
"""Maximum keys named in an error."""

NAMES: Final = {
    Latent: "latent attention",
    Compressed: "compressed attention",
    Network: "networks",
    Experts: "experts",
}
"""Record of a block -> its name in notes; other blocks are named by their kind."""

BROKEN: Final = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors that the expressions of a family raise for values of an unexpected type."""

TEXT: Final = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys of the decoder's configuration in a multimodal model."""


def read_config(mapping: Mapping[str, Any], name: str, *, own: Path | None = None) -> Decoder:
    """Return the decoder of a configuration; the family file at `own`, if given, describes its blocks.

    Raise UnknownFamilyError for an unknown model_type with unknown keys, ModelError for invalid sizes.
    """
    outer = find_text(mapping)
    kind = str(outer.get("model_type", "")).lower()
    classes = Configuration(name, outer).listed("architectures")
    family = read_family(own, f"{name}: {own.name}") if own is not None else find_family(kind, classes)
    check_sizes(outer, name)
    builder = Builder(family or load_family(ASSUMED), name, outer)
    try:
        decoder = check_decoder(builder.build())
    except BROKEN as error:
        raise ModelError(f"{name}: its sizes make no {kind} model: {str(error)[:120]}") from error
    except ModelError as error:
        if family is None:
            raise UnknownFamilyError(_describe_unknown(kind, name, str(error).removeprefix(f"{name}: "))) from error
        raise
    if family is None:
        decoder = _assume(decoder, builder, kind)
    elif unread := [key for key in _list_unread(builder) if key not in family.words]:
        decoder.notes = (f"not read: {_name(unread)}; a block that these keys describe is not counted",)
    quantization = find_quantization(mapping, name)
    return decoder if quantization is None else apply_quantization(decoder, quantization)


def _describe_unknown(kind: str, name: str, reason: str) -> str:
    """Return the refusal of a model_type that cannot be read by its keys, with possible remedies."""
    near = difflib.get_close_matches(kind, list_types(), 1)
    nearest = f"; the nearest that is known is {near[0]}" if near else ""
    return (
        f"{name}: {reason}, and the model_type {kind!r} is not known{nearest}. A {OWN} beside the configuration can "
        "describe its blocks (docs/llm.md); tracing it needs torch and transformers: pip install torch transformers"
    )


def _assume(decoder: Decoder, builder: Builder, kind: str) -> Decoder:
    """Return the decoder of an unknown model_type, with the assumptions; UnknownFamilyError for unread keys."""
    unread = _list_unread(builder)
    if unread:
        raise UnknownFamilyError(_describe_unknown(kind, decoder.name, f"no known block has {_name(unread)}"))
    blocks = ", ".join(dict.fromkeys(_list_blocks(decoder)))
    assumed = builder.family.tables["assumes"]
    decoder.notes = (f"model_type {kind!r} is not known, read by its keys as {blocks}; {assumed}",)
    return decoder


def _list_unread(builder: Builder) -> list[str]:
    """Return the keys that may describe blocks, but that the family neither read nor ignores."""
    read, family = builder.configuration.read, builder.family
    return [
        key
        for key, value in builder.configuration.values.items()
        if key not in read and not family.is_ignored(key) and _is_size(value)
    ]


def _name(keys: list[str]) -> str:
    """Return a text with the first `NAMED` keys, and the number of the others."""
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    return ", ".join(keys[:NAMED]) + more


def _is_size(value: Any) -> bool:
    """Return True if a value may describe a block: a whole number, a list or an object."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number or (isinstance(value, list | Mapping) and bool(value))


def _list_blocks(decoder: Decoder) -> Iterator[str]:
    """Yield the kinds of blocks of a decoder."""
    for layer in dict.fromkeys(decoder.layers):
        for part in (*layer.mixers, layer.network):
            if part is not None:
                yield NAMES.get(type(part), getattr(part, "kind", ""))


def read_context(mapping: Mapping[str, Any], name: str) -> int:
    """Return the maximum context in tokens that a configuration states; 0 if none."""
    names = "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"
    return int(Configuration(name, find_text(mapping)).first(*names, default=0))


def find_text(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a configuration that describes its decoder, with the sizes that a nested part may omit."""
    outer = dict(mapping)
    for key in TEXT:
        inner = outer.get(key)
        if isinstance(inner, Mapping):
            kind = outer.get("model_type")
            shared = {one: outer[one] for one in ("tie_word_embeddings",) if one in outer}
            merged = {**shared, **inner}
            merged.setdefault("model_type", kind)
            family = find_family(str(merged["model_type"]).lower())
            outer = {**family.find_defaults(str(merged["model_type"]).lower()), **merged} if family else merged
            if any(isinstance(outer.get(other), Mapping) for other in TEXT):
                return find_text(outer)
            break
    return outer
