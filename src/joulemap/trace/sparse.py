"""Sparse tensors: the stored elements are known, and a multiplication by a dense tensor is counted.

    adj @ x  torch.sparse.mm  linear(x, adj)       multiply each stored number by a row of x
    torch.sparse_coo_tensor(edges, values, size)   another name for the tensors that it is made of
    adj.t()  adj.indices()  adj.values()           the same memory
    adj.coalesce()  adj.to_sparse_csr()            a sort or a scan of its numbers
    adj.half()  2 * adj                            the same operation on its values
    adj.to_dense()                                 zeros, into which its numbers are put
    anything else                                  refused, with the name of the buffer

A sparse input or weight keeps its storage, because torch forgets how many numbers one without storage has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from joulemap.system.errors import ModelError
from joulemap.trace.tape import Tape
from joulemap.trace.tensor import is_sparse, sparse_parts, tensors_in

_PRODUCTS: Final = {
    "mm": (0, 1, None), "matmul": (0, 1, None), "mv": (0, 1, None), "bmm": (0, 1, None), "_sparse_mm": (0, 1, None),
    "addmm": (1, 2, 0), "addmv": (1, 2, 0), "_sparse_addmm": (1, 2, 0),
}  # fmt: skip
"""Sparse multiplication -> positions of (left operand, right operand, added term); None without an added term."""

_MAKERS: Final = frozenset(
    {
        "sparse_coo_tensor", "_sparse_coo_tensor_unsafe", "_sparse_coo_tensor_with_dims_and_tensors",
        "sparse_csr_tensor", "_sparse_csr_tensor_unsafe", "sparse_compressed_tensor",
        "_sparse_compressed_tensor_unsafe",
    }
)  # fmt: skip
_SAME: Final = frozenset({"t", "transpose", "detach", "alias", "requires_grad_", "contiguous"})
_PARTS: Final = frozenset(
    {
        "indices", "_indices", "values", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices",
    }
)  # fmt: skip
_MADE_ANEW: Final = frozenset({"coalesce", "to_sparse", "to_sparse_csr", "to_sparse_csc"})
_ON_VALUES: Final = frozenset({"to", "_to_copy", "type_as", "clone", "neg", "abs", "sqrt", "relu", "mul", "div"})


def is_about_sparse(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Return whether an operator reads or makes a sparse tensor."""
    return name in _MAKERS or name.startswith("to_sparse") or _holds_sparse(args) or _holds_sparse(kwargs.values())


def _holds_sparse(values: Iterable[Any]) -> bool:
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided and is_sparse(value):
                return True
        elif isinstance(value, list | tuple) and _holds_sparse(value):
            return True
    return False


def run_sparse(tape: Tape, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operator on sparse tensors, and record the operators that represent it."""
    if name in _MAKERS:
        return _make(tape, func, args, kwargs)
    if name in _PRODUCTS:
        return _multiply(tape, func, name, args)
    first = args[0] if args and isinstance(args[0], torch.Tensor) else None
    if name == "linear" and not is_sparse(args[0]):
        return _linear(tape, *args, **kwargs)
    if first is not None and not any(map(is_sparse, tensors_in((args[1:], kwargs)))):
        if name in _PARTS:
            return func(first)
        if name in _SAME:
            return _same(tape, first, _outside(func, first, *args[1:], **kwargs))
        if name in _MADE_ANEW:
            return _make_anew(tape, func, name, args, kwargs)
        if name in ("to_dense", "_to_dense"):
            return _to_dense(tape, first)
        if name in _ON_VALUES:
            return _on_values(tape, func, name, (*args, *kwargs.values()))
    raise ModelError(_refusal(tape, name, args, kwargs))


def _outside(func: Any, source: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Call a function of a tensor in the inference mode that the tensor was made in, because views cannot cross it."""
    with torch.inference_mode(source.is_inference()), torch.no_grad():
        return func(source, *args, **kwargs)


def _multiply(tape: Tape, func: Any, name: str, args: Sequence[Any]) -> Any:
    left, right, more = _PRODUCTS[name]
    operands = (args[left], args[right])
    if len(args) > right + 1 or all(map(is_sparse, operands)) or (more is not None and is_sparse(args[more])):
        raise ModelError(_refusal(tape, name, args, {}))
    shape = torch.matmul(*(torch.empty(one.shape, device="meta") for one in operands)).shape
    dense = next(one for one in operands if not is_sparse(one))
    reads = [part for one in operands for part in (sparse_parts(one) if is_sparse(one) else [one])]
    result = torch.empty(shape, dtype=dense.dtype, device="meta")
    added = [] if more is None else [args[more]]
    columns = dense.numel() // dense.shape[0 if dense.dim() < 2 else -2 if dense is operands[1] else -1]
    stored = next(sparse_parts(one)[-1] for one in operands if is_sparse(one))
    columns //= max(math.prod(dense.shape[:-2]), 1)
    tape.add_call(func, "sparse_mm", (stored, columns, bool(added)), [*reads, *added], (result,))
    return result


def _linear(tape: Tape, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
    rows = x.reshape(-1, x.shape[-1])
    with tape:
        made = torch.mm(weight, rows.t()).t().reshape(*x.shape[:-1], weight.shape[0])
        return made if bias is None else made + bias


def _make(tape: Tape, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return a new sparse tensor; it has no storage if one of its parts has none."""
    given = tensors_in((args, kwargs))
    if any(one.is_meta for one in given):
        moved = {id(one): tape.move(one) for one in given}
        args = [moved.get(id(one), one) for one in args]
        kwargs = {**kwargs, "device": torch.device("meta")} if "device" in kwargs else kwargs
    return _same(tape, given, func(*args, **kwargs))


def _same(tape: Tape, source: torch.Tensor | Sequence[torch.Tensor], made: torch.Tensor) -> torch.Tensor:
    """Record that the parts of `made` share memory with the parts of `source`, and return `made`."""
    parts = sparse_parts(source) if isinstance(source, torch.Tensor) else source
    for part, before in zip(sparse_parts(made), parts, strict=False):
        tape.stand_for(part, before)
    return made


def _make_anew(tape: Tape, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    source = args[0]
    if name == "coalesce" and source.is_coalesced():
        return source
    if source.is_meta and name == "coalesce":
        tape.note(name, "its indices are assumed to be all different")
        parts = [torch.empty_like(part) for part in sparse_parts(source)]
        made = _build(source, parts, is_coalesced=True)
    elif source.is_meta:
        raise ModelError(_refusal(tape, name, args, kwargs))
    else:
        made = _outside(func, source, *args[1:], **kwargs)
    reads = sparse_parts(source) if is_sparse(source) else [source]
    label = "coalesce" if name == "coalesce" else "to_sparse"
    tape.add_call(func, label, (reads[-1],), reads, tuple(sparse_parts(made)))
    return made


def _to_dense(tape: Tape, source: torch.Tensor) -> Any:
    if source.layout != torch.sparse_coo and source.is_meta:
        raise ModelError(_refusal(tape, "to_dense", [source], {}))
    indices, values = sparse_parts(
        source if source.layout == torch.sparse_coo else _outside(torch.Tensor.to_sparse_coo, source)
    )
    with tape:
        made = torch.zeros(source.shape, dtype=source.dtype, device=values.device)
        return made.index_put_(tuple(indices.unbind()), values, accumulate=source.dtype != torch.bool)


def _on_values(tape: Tape, func: Any, name: str, args: Sequence[Any]) -> Any:
    source, *parts, values = args[0], *sparse_parts(args[0])
    with tape:
        if name in ("to", "_to_copy", "type_as"):
            dtypes = [one.dtype if isinstance(one, torch.Tensor) else one for one in args[1:]]
            changed = values.to(next((one for one in dtypes if isinstance(one, torch.dtype)), values.dtype))
        else:
            changed = func(values, *args[1:])
    if changed is values or changed.shape != values.shape:
        return source
    if changed.is_meta:
        parts = [tape.move(one) for one in parts]
    parts = [*parts, changed]
    made = _build(source, parts, is_coalesced=source.layout == torch.sparse_coo and source.is_coalesced())
    return _same(tape, parts, made)


def _build(like: torch.Tensor, parts: Sequence[torch.Tensor], *, is_coalesced: bool) -> torch.Tensor:
    """Return a sparse tensor from parts (indices, then values), with the shape and layout of `like`."""
    if like.layout == torch.sparse_coo:
        indices, values = parts
        return torch.sparse_coo_tensor(indices, values, like.shape, is_coalesced=is_coalesced)
    compressed, plain, values = parts
    return torch.sparse_compressed_tensor(compressed, plain, values, like.shape, layout=like.layout)


def _refusal(tape: Tape, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return the error message for an operator that cannot be counted; it names the sparse tensor that the operator
    reads.
    """
    sparse = next(filter(is_sparse, tensors_in((args, kwargs))), None)
    if sparse is None:
        return (
            "it converts a dense tensor to a sparse one, and the number of nonzero elements depends on data: only "
            "dense tensors and sparse tensors with given indices are counted"
        )
    shape, layout = "x".join(map(str, sparse.shape)), str(sparse.layout).removeprefix("torch.")
    what = tape.name_of(sparse_parts(sparse)[0]).rpartition(".")[0] or f"a tensor of {shape}"
    return (
        f"{name.strip('_')} reads {what}, which is {layout}: sparse tensors are counted only in products with dense "
        "tensors; convert other inputs with x.to_dense()"
    )
