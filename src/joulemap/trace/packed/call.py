"""Calls that multiply by packed weights, as operators that a trace records.

    packed_linear(x, parts)   a kernel that dequantizes the weights before it multiplies
    scaled_linear(x, parts)   a kernel that quantizes x, multiplies by the stored weights, and scales the sums
    unpack_weight(parts)      a kernel that writes the dequantized weights for another operator

The first two also exist as `bmm` and `grouped_mm`, for matrices of several experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

NAMESPACE: Final = "joulemap"

UNPACK: Final = "unpack_weight"

_library: Final = torch.library.Library(NAMESPACE, "DEF")


def _linear(x: Tensor, _parts: Sequence[Tensor], columns: int, _counts: Any, _bias: Tensor | None) -> Tensor:
    return x.new_empty((*x.shape[:-1], columns))


def _bmm(x: Tensor, _parts: Sequence[Tensor], columns: int, _counts: Any) -> Tensor:
    return x.new_empty((*x.shape[:-1], columns))


def _grouped_mm(x: Tensor, _parts: Sequence[Tensor], columns: int, _counts: Any, _offs: Tensor) -> Tensor:
    return x.new_empty((x.shape[0], columns))


def _unpack_weight(parts: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype, _count: int) -> Tensor:
    return parts[0].new_empty(tuple(shape), dtype=dtype)


def _define(name: str, schema: str, on_meta: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Define an operator that has only a shape rule, and return it."""
    _library.define(f"{name}{schema}")
    _library.impl(name, on_meta, "Meta")
    made: Callable[..., Tensor] = getattr(torch.ops.joulemap, name)
    return made


_PRODUCTS: Final[dict[str, tuple[str, Callable[..., Tensor]]]] = {
    "linear": ("(Tensor x, Tensor[] parts, int columns, int[] counts, Tensor? bias) -> Tensor", _linear),
    "bmm": ("(Tensor x, Tensor[] parts, int columns, int[] counts) -> Tensor", _bmm),
    "grouped_mm": ("(Tensor x, Tensor[] parts, int columns, int[] counts, Tensor offs) -> Tensor", _grouped_mm),
}
"""GEMM -> (schema, shape rule). `columns` are the results per row, and `counts` the elementwise operations per weight,
input and result.
"""

CALLS: Final[dict[str, Callable[..., Tensor]]] = {
    **{
        f"{way}_{kind}": _define(f"{way}_{kind}", schema, on_meta)
        for way in ("packed", "scaled")
        for kind, (schema, on_meta) in _PRODUCTS.items()
    },
    UNPACK: _define(UNPACK, "(Tensor[] parts, int[] shape, ScalarType dtype, int count) -> Tensor", _unpack_weight),
}
"""Name -> operator."""
