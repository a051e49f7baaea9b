"""Valid sizes of a decoder: the result of every family is checked here, once.

A zero or a product beyond 2^60 would pass through the formulas unnoticed until the audit of the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from joulemap.system.errors import ModelError
from joulemap.wing.llm.decoder.config import (
    Attention,
    Compressed,
    Decoder,
    Experts,
    Indexer,
    Latent,
    Network,
    Recurrence,
)

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
        "ratio",
        "value_dim",
    )
)
"""Sizes of parts that may be 0."""


def check_decoder(decoder: Decoder) -> Decoder:
    """Return a decoder; raise ModelError, naming the size, if a size is out of range."""

    def refuse(name: str, value: Any, expected: str) -> None:
        raise ModelError(f"{decoder.name}: {name} is {value:,}, expected {expected}")

    for name, value in (("hidden_size", decoder.hidden), ("vocab_size", decoder.vocabulary)):
        if value < 1:
            refuse(name, value, "at least 1")
    if not decoder.layers:
        refuse("num_hidden_layers", 0, "at least 1")
    total = float(decoder.hidden * decoder.vocabulary)
    for layer in decoder.layers:
        for part in (layer.mixer, layer.network):
            for owner, field, value in _list_sizes(part):
                if value < 0 or (value == 0 and field not in FREE):
                    refuse(f"{field} of {owner}", value, "at least 1")
            total += _count_weights(part, decoder.hidden)
        mixer, network = layer.mixer, layer.network
        if isinstance(mixer, Attention) and mixer.heads % mixer.kv_heads:
            raise ModelError(f"{decoder.name}: {mixer.heads} heads cannot share {mixer.kv_heads} heads of keys evenly")
        if isinstance(mixer, Attention) and mixer.rotary > mixer.head_dim:
            refuse("the rotary part of a head", mixer.rotary, f"at most its {mixer.head_dim:,} elements")
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
