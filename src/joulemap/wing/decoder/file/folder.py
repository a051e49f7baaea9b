"""Decoder of a folder with a configuration and safetensors files: sizes come from the configuration, weight formats
from the files.

    config.json ─► decoder ───────────────┐
    headers of the files ─► its weights ──┴► the same decoder, each weight in the format in which it is stored

The weights of the decoder are counted against those of the files, so that a wrong configuration or a lost tensor cannot
pass unnoticed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Final

import attrs

from joulemap.physics import read_weight_format
from joulemap.system import ModelError, Reading, UnknownFamilyError, format_si, frozen
from joulemap.wing.decoder.file.header import RawTensor, StoredTensor
from joulemap.wing.decoder.file.model import LARGEST_GAP, describe_gap
from joulemap.wing.decoder.file.pack import UNKNOWN, WEIGHT, Packing, join_parts
from joulemap.wing.decoder.file.safetensors import list_dtypes, list_parts, read_tensors
from joulemap.wing.decoder.network.checkpoint import (
    count_formats,
    count_weights,
    find_quantization,
    list_weights,
    name_parts,
    store_formats,
)
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.read import OWN, read_config
from joulemap.wing.hub import read_checkpoint_files

CONFIGURATION: Final = "config.json"

METHOD: Final = "safetensors"
"""Quantization method of weights that only the files describe, without a configuration."""

SAME: Final = 0.01
"""Maximum relative difference in bytes at which two descriptions of a weight's format count as the same."""

INTEGERS: Final = ("int", "uint", "gptq")
"""Beginnings of the names of formats whose codes are integers in words."""

PACKED: Final = (".weight_packed", ".qweight")
"""Name endings of codes packed in words."""

PACKED_BITS: Final = (4, 8, 2, 3)
"""Bits of integer codes that libraries pack in words, the most common first. Source: compressed-tensors, 4 and 8;
GPTQModel, 2, 3, 4 and 8.
"""

NAMED: Final = 3
"""Maximum groups of tensors that a note lists."""

_STACK: Final = re.compile(
    r"(?P<before>(?:[^.]+\.)*?)(?P<word>layers|layer|blocks|block|h)\.(?P<index>\d+)\.(?P<rest>.+)"
)
"""Name of a tensor in one of several layers."""

_OTHER: Final = re.compile(
    r"visual|vision|image|audio|speech|talker|code2wav|projector|connector|resampler|aligner|mtp|merger|embed_vision"
)
"""Part of a name that marks a second model in addition to the language model."""

_HEADS: Final = ("lm_head", "output", "embed_out", "output_layer")
"""Names of the output embedding, which may lie outside the module of the layers."""

_BUFFERS: Final = re.compile(r"(inv_freq|masked_bias|e_score_correction_bias|expert_bias|position_ids)$")
"""Tensors that are not weights of a GEMM, norm or table: rotary frequencies, masks, and router biases."""

_EXPERT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "up": ("gate_up_proj", "0.gate_up_proj", "0.up_proj", "0.gate_proj", "0.w1", "0.w3"),
    "down": ("down_proj", "0.down_proj", "0.w2"),
}
"""Weight of experts in this package -> its names in files, as one tensor for all experts or as that of the first
expert.
"""


@frozen(kw_only=True)
class Contents:
    """Weights of a model's files, by their place in the language model."""

    layers: Mapping[int, Mapping[str, StoredTensor]]
    """Layer -> path in the layer -> weight."""
    outside: Mapping[str, StoredTensor]
    others: Counter[str]
    """Prefix of tensor names -> number of elements, for weights outside the language model."""

    @property
    def element_count(self) -> int:
        """Number of weights of the language model."""
        inside = (one for layer in self.layers.values() for one in layer.values())
        return sum(one.element_count for one in (*inside, *self.outside.values()))

    @property
    def has_unknown(self) -> bool:
        """True if a weight is stored in codes with an unknown layout."""
        inside = (one for layer in self.layers.values() for one in layer.values())
        return any(one.stored == UNKNOWN for one in (*inside, *self.outside.values()))


def read_folder(path: Path, name: str) -> Decoder:
    """Return the decoder of the configuration next to a safetensors file or its index, in the formats of the files'
    weights.

    Raise ModelError for an unreadable file, a missing part, and sizes that do not match the weights; UnknownFamilyError
    for an architecture that can be traced.
    """
    config = path.with_name(CONFIGURATION)
    if not path.is_file():
        reason = "it is not a regular file" if path.exists() else "no such file"
        raise ModelError(f"{quote(name)} cannot be read: {reason}")
    if not config.is_file():
        raise ModelError(f"{quote(name)} holds weights alone: the {CONFIGURATION} of its model is missing beside it")
    files = (config, path.with_name(OWN), path, *list_parts(path))
    return _read_once(path, name, tuple(_find_state(one) for one in files))


def _find_state(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=16)
def _read_once(path: Path, name: str, state: tuple[tuple[int, int], ...]) -> Decoder:
    """Return the decoder of the current files, cached because a command requests it several times."""
    del state
    with Reading(name):
        return _read(path, name)


def _read(path: Path, name: str) -> Decoder:
    config, own = path.with_name(CONFIGURATION), path.with_name(OWN)
    values = read_checkpoint_files(config, name)
    try:
        decoder = read_config(values, name, own=own if own.is_file() else None)
    except UnknownFamilyError as error:
        if Path(name).is_dir():
            raise
        raise ModelError(str(error)) from error  # a file alone cannot be traced, its folder can
    tensors = read_tensors(path)
    contents = _place(join_parts(tensors, _list_packings(decoder, tensors)), decoder.layer_count)
    decoder = _check_weights(decoder, contents)
    if not (find_quantization(values, name) or {}).get("dequantize"):  # an engine widens these as it loads them
        decoder = _apply_formats(decoder, contents)
    return attrs.evolve(decoder, file_notes=(_describe_bytes(tensors), *decoder.file_notes))


def _list_packings(decoder: Decoder, tensors: Sequence[RawTensor]) -> list[Packing]:
    """Return the bits and the group size of integer codes that are packed in words, from the configuration.

    If it states none, the bits are those with which the files hold the number of weights nearest to the decoder's.
    """
    published = decoder.published
    names = (published.weights, *published.others) if published else ()
    formats = [read_weight_format(one) for one in names if one.startswith(INTEGERS)]
    if formats or not any(one.name.endswith(PACKED) for one in tensors):
        return [(int(one.bits), one.group_size) for one in formats] or [(PACKED_BITS[0], 0)]
    count = count_weights(decoder)

    def find_gap(bits: int) -> int:
        return abs(_place(join_parts(tensors, [(bits, 0)]), decoder.layer_count).element_count - count)

    return [(min(PACKED_BITS, key=find_gap), 0)]


def _place(weights: Iterable[StoredTensor], layer_count: int) -> Contents:
    """Return the weights by layer; the module with the most weights in layers is the language model."""
    placed = [(_STACK.fullmatch(one.name), one) for one in weights]
    stacks = Counter[str]()
    for match, one in placed:
        if match is not None and not _OTHER.search(match["before"]):
            stacks[match["before"]] += one.element_count
    before = max(stacks, key=lambda one: stacks[one], default="")
    layers: dict[int, dict[str, StoredTensor]] = defaultdict(dict)
    outside: dict[str, StoredTensor] = {}
    others = Counter[str]()
    for match, one in placed:
        if _BUFFERS.search(one.name) or (one.name.endswith(".attn.bias") and len(one.shape) > 2):
            continue
        is_own = match is not None and match["before"] == before
        if match is not None and is_own and int(match["index"]) < layer_count:
            layers[int(match["index"])][match["rest"]] = one
        elif match is None and _is_outside(one.name, before):
            outside[one.name.removeprefix(before)] = one
        else:
            others[_name_group(one.name, before, is_own=is_own)] += one.element_count
    return Contents(layers=layers, outside=outside, others=others)


def _is_outside(name: str, before: str) -> bool:
    """Return True for a weight of the language model outside its layers: a table, norm or head."""
    if _OTHER.search(name):
        return False
    return name.startswith(before) or any(part in _HEADS for part in name.split("."))


def _name_group(name: str, before: str, *, is_own: bool) -> str:
    """Return the prefix of a tensor name that a note shows, for a layer beyond the last or for another model."""
    if is_own:
        return before + ".".join(name.removeprefix(before).split(".")[:2])
    parts, shared = name.split("."), before.split(".")
    differing = next((index for index, (one, other) in enumerate(zip(parts, shared, strict=False)) if one != other), 0)
    return ".".join(parts[: differing + 1])


def _check_weights(decoder: Decoder, contents: Contents) -> Decoder:
    """Return a decoder with notes on weights that it does not count; ModelError above `LARGEST_GAP`."""
    notes = []
    if contents.others:
        total = sum(contents.others.values())
        names = [name for name, _ in contents.others.most_common()]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = f"{', '.join(names[:NAMED])}{more}"
        notes.append(f"{total:,} weights outside the language model are not counted: {shown}")
    if contents.has_unknown:
        notes.append(f"weights are stored in codes of an unknown layout: sizes are those of {CONFIGURATION} alone")
        return attrs.evolve(decoder, file_notes=tuple(notes))
    stated, counted = contents.element_count, count_weights(decoder)
    if not decoder.is_tied and stated != counted and stated == count_weights(attrs.evolve(decoder, is_tied=True)):
        decoder, counted = attrs.evolve(decoder, is_tied=True), stated
        notes.append("no file holds an output embedding: it is tied to the table of tokens")
    gap = stated - counted
    if abs(gap) > LARGEST_GAP * counted:
        raise ModelError(
            f"{decoder.name}: its files hold {stated:,} weights, but {CONFIGURATION} describes {counted:,}: does it "
            f"belong to another model? To ignore the files, name {CONFIGURATION} alone"
        )
    if gap:
        notes.append(describe_gap("the files hold", stated, gap))
    return attrs.evolve(decoder, file_notes=tuple(notes))


def _apply_formats(decoder: Decoder, contents: Contents) -> Decoder:
    """Return a decoder whose weights have the formats of its files, where these differ from the configuration."""
    layers, head = list_weights(decoder)
    sizes = [*layers, head]
    published = decoder.published
    main = published.weights if published else ""
    declared = [
        {weight: dict(layer.stored).get(weight, main) for weight in own}
        for layer, own in zip(decoder.layers, layers, strict=True)
    ]
    beside = dict(published.stored) if published else {}
    declared.append({weight: beside.get(weight, "") for weight in head})
    held = [contents.layers.get(index, {}) for index in range(len(layers))] + [contents.outside]
    formats = [
        {weight: _choose_format(one, _find_stored(weight, kept)) for weight, one in own.items()}
        for own, kept in zip(declared, held, strict=True)
    ]
    if formats == declared:
        return decoder
    made = store_formats(decoder, published.method if published else METHOD, count_formats(sizes, formats), formats)
    if published is None or made.published is None:
        return made
    if made.published.weights == main:
        kept_own = attrs.evolve(made.published, precision=published.precision, doubt=published.doubt)
        made = attrs.evolve(made, published=kept_own)
    changed = sum(one[key] != two[key] for one, two in zip(formats, declared, strict=True) for key in one)
    note = f"{changed:,} matrices are stored as their files say, not as the quantization_config of {CONFIGURATION} does"
    return attrs.evolve(made, file_notes=(*made.file_notes, note))


def _choose_format(stated: str, held: StoredTensor | None) -> str:
    """Return the format derived from a file, or the configuration's if both take the same bytes."""
    if held is None or held.stored in (stated, UNKNOWN):
        return stated
    if not stated or not held.stored:
        return held.stored
    one, other = read_weight_format(stated), read_weight_format(held.stored)
    rows, columns = held.element_count // held.shape[-1], held.shape[-1]
    is_same = one.bits == other.bits and abs(one.row_bytes(columns) * rows / held.byte_count - 1.0) <= SAME
    return stated if is_same else held.stored


def _find_stored(weight: str, held: Mapping[str, StoredTensor]) -> StoredTensor | None:
    """Return the tensor of a weight under any of the names that files give it; None if there is none."""
    path, _, leaf = weight.rpartition(".")
    inner = _EXPERT_NAMES.get(leaf, ()) if path.endswith("experts") else ()
    names = [f"{one}.{product}" for one in name_parts(path) for product in inner] or name_parts(path)
    candidates = (held.get(f"{one}{ending}") for one in names for ending in (WEIGHT, ""))
    return next((one for one in candidates if one is not None), None)


def _describe_bytes(tensors: Sequence[RawTensor]) -> str:
    """Return a note on the bytes that the files hold, by the types of their elements."""
    total = sum(one.byte_count for one in tensors)
    types = ", ".join(f"{dtype} {format_si(size, 'B')}" for dtype, size in list_dtypes(tensors).items())
    return f"the files hold {total:,} bytes in {len(tensors):,} tensors: {types}"
