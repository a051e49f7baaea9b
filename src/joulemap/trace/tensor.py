"""Names of dtypes, and the bytes of memory that reading a tensor touches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import torch

from joulemap.system.errors import ModelError

DTYPES: Final = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
"""joulemap's name -> torch's dtype."""

_NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """Return joulemap's name of a torch dtype."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors in an operator's arguments or results, in order, also those in lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in tensors_in(item)]


def storage_of(tensor: torch.Tensor) -> int:
    """Return the identifier of a tensor's memory; ModelError for a tensor that is not dense."""
    if tensor.layout != torch.strided:
        shape, layout = "x".join(map(str, tensor.shape)), str(tensor.layout).removeprefix("torch.")
        raise ModelError(f"a tensor of {shape} is {layout}: only dense tensors are counted, as x.to_dense() makes them")
    storage: int = tensor.untyped_storage()._cdata
    return storage


SPARSE: Final = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
"""Sparse layout -> names of its component tensors."""


def is_sparse(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a sparse layout."""
    return tensor.layout in SPARSE


def sparse_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the indices of a sparse tensor, followed by its values."""
    return [getattr(tensor, part)() for part in SPARSE[tensor.layout]]


def dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the dense tensors inside a sparse, jagged or other wrapped tensor; a dense tensor as a list of itself."""
    if is_sparse(tensor):
        return sparse_parts(tensor)
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return [tensor]
    return [part for name in flatten()[0] for part in dense_parts(getattr(tensor, name))]


def touched_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes read to access all of `tensor`; an expanded dimension is read once."""
    dense = math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
    return min(dense * tensor.element_size(), tensor.untyped_storage().nbytes())


def distinct_bytes(tensors: Sequence[torch.Tensor], limits: Mapping[int, int] | None = None) -> list[tuple[int, int]]:
    """Return (position, bytes read) of the tensors that one operator reads; memory that tensors share is counted once.

    Views of one storage that start and end at the same element count once, such as a matrix and its transpose. Other
    views add up to at most the whole storage. `limits` maps a position to the maximum bytes read.
    """
    left: dict[int, int] = {}
    regions: set[tuple[int, int, int]] = set()
    distinct: list[tuple[int, int]] = []
    for position, tensor in enumerate(tensors):
        storage = tensor.untyped_storage()
        extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        region = (storage._cdata, int(tensor.storage_offset()), int(extent))
        if region in regions:
            continue
        regions.add(region)
        byte_count = touched_bytes(tensor)
        if limits is not None and position in limits:
            byte_count = min(byte_count, limits[position])
        byte_count = min(byte_count, left.get(storage._cdata, storage.nbytes()))
        left[storage._cdata] = left.get(storage._cdata, storage.nbytes()) - byte_count
        distinct.append((position, byte_count))
    return distinct


def float_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of an element that a precision scales; 0 for integers and fp8, whose width is fixed."""
    return tensor.element_size() if tensor.is_floating_point() and tensor.element_size() > 1 else 0
