"""Packed parameter in place of a 16-bit one; modules that use it are unchanged.

    F.linear(x, w)  x @ w  bmm  grouped_mm  ──► one call that reads the stored weights (`call`)
    w[expert]  w.t()  w.to(dtype)           ──► the same weight, or a part of it, still packed
    anything else                           ──► dequantized first

A packed parameter has no storage. It reports the shape and dtype of the original weight to code that asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from joulemap.trace.packed.call import CALLS
from joulemap.trace.packed.format import PackedFormat
from joulemap.trace.tensor import SPARSE, is_sparse, sparse_parts

Given = tuple[Any, ...]
Named = Mapping[str, Any]


class PackedWeight(nn.Parameter):
    """Weight matrix, or one matrix per expert, with the tensors that a checkpoint stores for it."""

    parts: tuple[Tensor, ...]
    stored: PackedFormat

    @classmethod
    def of(
        cls, shape: Sequence[int], dtype: torch.dtype, parts: Iterable[Tensor], stored: PackedFormat
    ) -> PackedWeight:
        """Return a weight with stored tensors `parts` and format `stored`; `shape` and `dtype` are those reported to
        models.
        """
        with _disable_current_modes(), torch._C.DisableTorchFunctionSubclass():
            wide = torch.empty(tuple(shape), dtype=dtype, device="meta")
            made: PackedWeight = torch.Tensor._make_subclass(cls, wide, False)
        made.parts, made.stored = tuple(parts), stored
        return made

    @classmethod
    def store(cls, wide: Tensor, stored: PackedFormat, *, is_transposed: bool = False) -> PackedWeight:
        """Return a wide weight in a stored format. With `is_transposed`, the last dimension is its outputs."""
        *experts, rows, columns = wide.shape
        layout = stored.lay_out(*((columns, rows) if is_transposed else (rows, columns)))
        with _disable_current_modes():
            sizes = [((*experts, *one.shape), getattr(torch, one.dtype)) for one in layout]
            parts = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in sizes]
        return cls.of(wide.shape, wide.dtype, parts, stored)

    def reshaped(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> PackedWeight:
        """Return the same stored tensors as a weight that reports another shape or dtype."""
        return PackedWeight.of(shape, dtype or self.dtype, self.parts, self.stored)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Given = (), kwargs: Named | None = None) -> Any:
        """Return the result of a function of packed weights, which are dequantized unless the function works on packed
        ones.
        """
        kwargs = kwargs or {}
        name = func.__name__ if hasattr(func, "__name__") else ""
        name = f"get {func.__self__.__name__}" if name == "__get__" else name
        made = _FUNCTIONS[name](*args, **kwargs) if name in _FUNCTIONS else NotImplemented
        if made is not NotImplemented:
            return made
        is_fact = name in _FACTS or (name.startswith("get ") and name not in _FUNCTIONS)
        with torch._C.DisableTorchFunctionSubclass():
            given, named = (args, kwargs) if is_fact else tree_map(_widen, (args, dict(kwargs)))
            return func(*given, **named)


def name_parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, tensor) for each stored tensor of a packed or sparse parameter or buffer, or once for any other."""
    if isinstance(tensor, PackedWeight):
        layout = tensor.stored.lay_out(1, 1)
        yield from ((f"{name}{part.suffix}", held) for part, held in zip(layout, tensor.parts, strict=True))
    elif is_sparse(tensor):
        parts = zip(SPARSE[tensor.layout], sparse_parts(tensor), strict=True)
        yield from ((f"{name}.{part.strip('_')}", held) for part, held in parts)
    else:
        yield name, tensor


def _widen(value: Any) -> Any:
    if not isinstance(value, PackedWeight):
        return value
    return CALLS["unpack_weight"](list(value.parts), [*value.shape], value.dtype, value.stored.weight_operations)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(weight, PackedWeight) or weight.dim() != 2 or isinstance(x, PackedWeight):
        return NotImplemented
    return _multiply("linear", x, weight, weight.shape[0], bias)


def _matmul(x: Any, weight: Any, *rest: Any, **named: Any) -> Any:
    if not isinstance(weight, PackedWeight) or isinstance(x, PackedWeight) or rest or named or x.dim() < 2:
        return NotImplemented
    if weight.dim() == 2:
        return _multiply("linear", x, weight, weight.shape[1], None)
    if weight.dim() == 3 and x.dim() == 3 and x.shape[0] == weight.shape[0]:
        return _multiply("bmm", x, weight, weight.shape[2])
    return NotImplemented


def _addmm(bias: Any, x: Any, weight: Any, **named: Any) -> Any:
    if not isinstance(weight, PackedWeight) or isinstance(bias, PackedWeight) or named or bias.dim() != 1:
        return NotImplemented
    return _multiply("linear", x, weight, weight.shape[1], bias)


def _grouped(x: Any, weight: Any, offs: Any = None, bias: Any = None, **_named: Any) -> Any:
    if not isinstance(weight, PackedWeight) or offs is None or bias is not None or weight.dim() != 3 or x.dim() != 2:
        return NotImplemented
    return _multiply("grouped_mm", x, weight, weight.shape[2], offs)


def _multiply(kind: str, x: Tensor, weight: PackedWeight, columns: int, *more: Any) -> Any:
    """Return x times a packed weight with `columns` outputs, recorded as one call."""
    stored = weight.stored
    per_weight, way = (stored.weight_operations, "packed") if stored.is_widened else (0, "scaled")
    counts = [per_weight, stored.input_operations, stored.output_operations(x.shape[-1])]
    return CALLS[f"{way}_{kind}"](x, list(weight.parts), columns, counts, *more)


def _swap(weight: PackedWeight, first: int = 0, second: int = 1) -> Any:
    axes = {first % weight.dim(), second % weight.dim()}
    if axes != {weight.dim() - 2, weight.dim() - 1}:
        return NotImplemented
    return weight.reshaped((*weight.shape[:-2], weight.shape[-1], weight.shape[-2]))


def _swap_last(weight: PackedWeight) -> Any:
    return _swap(weight, -2, -1)


def _take(weight: Any, index: Any) -> Any:
    """Return the packed weight of the selected expert or experts; NotImplemented for any other index."""
    if not isinstance(weight, PackedWeight) or weight.dim() != 3 or not isinstance(index, int | Tensor):
        return NotImplemented
    shape = [*weight.shape[1:]]
    if isinstance(index, Tensor) and index.dim() > 0:
        if index.dim() > 1 or index.dtype == torch.bool:
            return NotImplemented
        shape.insert(0, index.shape[0])
    return PackedWeight.of(shape, weight.dtype, [part[index] for part in weight.parts], weight.stored)


def _convert(weight: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the packed weight with another reported dtype."""
    if not isinstance(weight, PackedWeight):
        return NotImplemented
    given = [*args, *kwargs.values()]
    like = next((value.dtype for value in given if isinstance(value, Tensor)), None)
    dtype = next((value for value in given if isinstance(value, torch.dtype)), like)
    return weight if dtype in (None, weight.dtype) else weight.reshaped(weight.shape, dtype)


def _as_dtype(dtype: torch.dtype) -> Callable[..., Any]:
    return lambda weight, *_args, **_kwargs: _convert(weight, dtype)


def _same(weight: Any, *_args: Any, **_kwargs: Any) -> Any:
    return weight


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "linear": _linear,
    **dict.fromkeys(("matmul", "__matmul__", "mm", "bmm"), _matmul),
    "addmm": _addmm,
    **dict.fromkeys(("grouped_mm", "_grouped_mm"), _grouped),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _swap),
    "t": _swap,
    **dict.fromkeys(("get T", "get mT"), _swap_last),
    "__getitem__": _take,
    **dict.fromkeys(("to", "type", "type_as"), _convert),
    **{name: _as_dtype(getattr(torch, kind)) for name, kind in
       {"float": "float32", "half": "float16", "bfloat16": "bfloat16"}.items()},
    **dict.fromkeys(("contiguous", "clone", "detach", "get data", "cuda", "cpu", "requires_grad_"), _same),
}  # fmt: skip
"""Function or attribute name -> implementation for packed weights. NotImplemented means that weights are dequantized
first.
"""

_FACTS: Final = frozenset(
    {
        "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size", "__len__",
        "is_floating_point", "is_complex", "is_contiguous", "is_signed", "untyped_storage", "data_ptr", "get_device",
        "__repr__", "__hash__", "__set__", "is_shared", "is_inference", "__deepcopy__", "is_tensor",
    }
)  # fmt: skip
"""Functions whose result follows from a weight's shape and dtype."""
