"""Weights of a checkpoint, each joined from the tensors that store it: codes, scales, zero points.

    q_proj.qweight, .qzeros, .scales, .g_idx         ─► q_proj: 4096 x 4096 weights as gptq, bytes of all four
    up_proj.weight (F8_E4M3), .weight_scale_inv      ─► up_proj: 14336 x 4096 weights as fp8_block

Names, types and shapes of tensors decide. Source: the linear layers of GPTQModel, AutoAWQ, bitsandbytes,
compressed-tensors, Model Optimizer and transformers (fp8, mxfp4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.physics import read_weight_format
from joulemap.physics.record.weight import WHOLE_ROW
from joulemap.system import UsageError
from joulemap.wing.decoder.file.header import RawTensor, StoredTensor

UNKNOWN: Final = "?"
"""Format of codes with an unknown layout."""

WEIGHT: Final = ".weight"

WORD_BITS: Final = 32
"""Bits of the words in which codes of GPTQ, AWQ and compressed-tensors are packed."""

BLOCK: Final = 128
"""Minimum extent of a block that covers all rows or columns, because a matrix may be smaller than its block."""

FLOATS: Final = frozenset({"F64", "F32", "F16", "BF16"})

FLOAT8: Final = frozenset({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})

EXPONENTS: Final = frozenset({"U8", "F8_E8M0"})
"""Element types of scales that are powers of two."""

INDICES: Final = frozenset({"I64", "U64", "I32", "U32", "I16", "U16", "BOOL", "C64"})
"""Element types that hold positions and masks rather than learned numbers."""

SCALES: Final = (".weight_scale_inv", ".weight_scale", ".scale", "_scale_inv", "_scale")
"""Name endings of the scales of a weight; the first ending that exists is used."""

BESIDE: Final = (
    ".qzeros", ".scales", ".g_idx", ".weight_scale_2", ".weight_shape", ".weight_zero_point", ".weight_g_idx",
    ".weight_global_scale", ".weight.absmax", ".weight.quant_map", ".weight.nested_absmax", ".weight.nested_quant_map",
    ".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4", ".SCB", ".weight_format",
    "_scales", *SCALES,
)  # fmt: skip
"""Name endings of tensors that belong to the codes of a weight."""

ACTIVATIONS: Final = (".input_global_scale", ".input_scale", ".output_scale", ".activation_scale", "_input_scale",
                      ".k_scale", ".v_scale", ".q_scale")  # fmt: skip
"""Name endings of scales of activations, which are not weights."""

ENDINGS: Final = tuple(
    sorted((".qweight", ".weight_packed", "_blocks", *BESIDE, *ACTIVATIONS, WEIGHT), key=len, reverse=True)
)
"""Endings of the names of tensors, the longest first."""

Parts = Mapping[str, RawTensor]
"""Ending of the name -> tensor, for all tensors of one weight."""


Packing = tuple[int, int]
"""(bits of an integer code, size of a group that shares a scale), for codes packed in words; 0 for a whole row."""


def join_parts(tensors: Sequence[RawTensor], packings: Sequence[Packing]) -> tuple[StoredTensor, ...]:
    """Return the weights that tensors store, each with its format and the bytes of all of its tensors.

    If no tensor shows the bits of a weight's codes, they are those of the first packing with its number of groups, or
    of the first packing.
    """
    stems: dict[str, dict[str, RawTensor]] = {}
    for tensor in tensors:
        ending = next((one for one in ENDINGS if tensor.name.endswith(one)), "")
        stems.setdefault(tensor.name.removesuffix(ending), {})[ending] = tensor
    stored_tensors: list[StoredTensor] = []
    for stem, parts in stems.items():
        codes = next((one for one in (".qweight", ".weight_packed", "_blocks", WEIGHT, "") if one in parts), None)
        if codes is None or (codes in (WEIGHT, "") and parts[codes].dtype in FLOATS):
            stored_tensors += [_keep(one) for ending, one in parts.items() if ending not in ACTIVATIONS]
        else:
            shape, stored = _find_format(codes, parts, packings)
            name = stem if codes in ("_blocks", "") else f"{stem}{WEIGHT}"
            byte_count = sum(one.byte_count for one in parts.values())
            stored_tensors.append(StoredTensor(name=name, shape=shape, stored=stored, byte_count=byte_count))
    return tuple(stored_tensors)


def _keep(tensor: RawTensor) -> StoredTensor:
    """Return a tensor as a weight of its own; positions and masks have no elements."""
    shape = (0,) if tensor.dtype in INDICES else tensor.shape
    return StoredTensor(name=tensor.name, shape=shape, stored="", byte_count=tensor.byte_count)


def _find_format(codes: str, parts: Parts, packings: Sequence[Packing]) -> tuple[tuple[int, ...], str]:
    """Return the shape of a weight and its format: empty for 16 bits and more, UNKNOWN for an unknown layout."""
    tensor = parts[codes]
    try:
        if codes == ".qweight":
            return _read_words(tensor, parts, packings)
        if codes == ".weight_packed":
            return _read_packed(tensor, parts, packings)
        if codes == "_blocks":
            count, rows, groups, size = tensor.shape
            return (count, rows, 2 * groups * size), "mxfp4"
        if tensor.dtype in INDICES:
            return (0,), ""
        if ".weight.absmax" in parts:
            return (2 * math.prod(tensor.shape),), "nf4_double" if ".weight.nested_absmax" in parts else "nf4"
        if ".SCB" in parts:
            return tensor.shape, _name("int8", 0)
        scale = next((parts[one] for one in SCALES if one in parts), None)
        if tensor.dtype in FLOAT8:
            return tensor.shape, _name_float8(tensor.shape, scale)
        if scale is not None:
            return _read_codes(tensor, scale)
    except (UsageError, ValueError, ZeroDivisionError, IndexError, KeyError):
        pass  # tensors of these names in other shapes than the libraries store
    return tensor.shape, UNKNOWN if len(tensor.shape) > 1 else ""


def _name(kind: str, group: int) -> str:
    return read_weight_format(f"{kind}:{group or WHOLE_ROW}").name


def _divide(total: int, count: int) -> int:
    """Return the size of each of `count` groups that cover `total` elements; 0 for a single group.

    If the groups do not divide the total, the size is the next power of two.
    """
    if count == 1:
        return 0
    if total % count == 0:
        return total // count
    return int(2 ** (total // count).bit_length())


def _read_words(tensor: RawTensor, parts: Parts, packings: Sequence[Packing]) -> tuple[tuple[int, ...], str]:
    """Return shape and format of weights in words: GPTQ packs them along the inputs, AWQ along the outputs."""
    scales, zeros = parts[".scales"], parts.get(".qzeros")
    groups, rows = scales.shape
    is_gptq = tensor.shape[1] == rows
    width = zeros.shape[1] if zeros is not None and is_gptq else tensor.shape[1]
    is_shown = zeros is not None or not is_gptq
    bits = WORD_BITS * width // rows if is_shown else _choose_bits(tensor.shape[0], groups, packings)
    columns = tensor.shape[0] * WORD_BITS // bits if is_gptq else tensor.shape[0]
    kind = "gptq" if is_gptq else "awq" if zeros is not None else "int"
    return (rows, columns), _name(f"{kind}{bits}", _divide(columns, groups))


def _read_packed(tensor: RawTensor, parts: Parts, packings: Sequence[Packing]) -> tuple[tuple[int, ...], str]:
    """Return shape and format of compressed-tensors: words of integers, or pairs of FP4 codes."""
    *outer, words = tensor.shape
    scale, zeros = parts[".weight_scale"], parts.get(".weight_zero_point")
    if tensor.dtype == "U8":
        return (*outer, 2 * words), _name_float4(2 * words, scale)
    if zeros is not None:
        bits = WORD_BITS * zeros.shape[0] // outer[-1]
    else:
        bits = _choose_bits(words, scale.shape[-1], packings)
    columns = words * WORD_BITS // bits
    kind = "uint" if zeros is not None else "int"
    return (*outer, columns), _name(f"{kind}{bits}", _divide(columns, scale.shape[-1]))


def _choose_bits(words: int, groups: int, packings: Sequence[Packing]) -> int:
    """Return the bits of the codes in a row of words that has this number of groups."""
    alike = (bits for bits, size in packings if _divide(words * WORD_BITS // bits, groups) == size)
    return next(alike, packings[0][0])


def _read_codes(tensor: RawTensor, scale: RawTensor) -> tuple[tuple[int, ...], str]:
    """Return shape and format of codes in bytes: integers, or pairs of FP4 codes by the type of their scales."""
    *outer, columns = tensor.shape
    if scale.dtype in FLOATS and tensor.dtype == "I8":
        groups = scale.shape[-1] if len(scale.shape) > 1 else 1
        return tensor.shape, _name("int8", _divide(columns, groups))
    if scale.dtype in FLOATS:
        return tensor.shape, UNKNOWN
    wide = columns if tensor.dtype == "F4" else 2 * columns
    return (*outer, wide), _name_float4(wide, scale)


def _name_float4(columns: int, scale: RawTensor) -> str:
    group = columns // scale.shape[-1]
    if group == 16 and scale.dtype not in EXPONENTS:
        return "nvfp4"
    return "mxfp4" if group == 32 and scale.dtype in EXPONENTS else read_weight_format(f"fp4:{group}").name


def _name_float8(shape: Sequence[int], scale: RawTensor | None) -> str:
    """Return the name of the FP8 format by the extent of a scale: a matrix, a row, a group of a row, or a block."""
    if len(shape) < 2 or scale is None or math.prod(scale.shape) <= math.prod(shape[:-2]):
        return "fp8_tensor"
    rows, columns = shape[-2:]
    down, along = scale.shape[-2:] if len(scale.shape) > 1 else (scale.shape[0], 1)
    if (down, along) in ((rows, 1), (1, columns)):
        return "fp8"
    high, wide = _divide(rows, down) or max(rows, BLOCK), _divide(columns, along) or max(columns, BLOCK)
    if down == rows:
        return "mxfp8" if wide == 32 and scale.dtype in EXPONENTS else read_weight_format(f"fp8:{wide}").name
    return read_weight_format(f"fp8:{high}x{wide}").name
