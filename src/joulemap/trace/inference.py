"""Inference as a device runs it, where the meta device takes another path or cannot know a result.

Attention and GEMMs: on real tensors, `torch.nn.MultiheadAttention` has a fast path with one projection for query,
key and value, whose parts the attention kernel reads in place. Fused attention kernels write their output with the
heads of a token side by side. A batched GEMM copies an operand whose batch dimensions are not contiguous. On meta
tensors the first two differ, and the third is hidden.

Data decides how many boxes survive and which elements a mask selects. The stand-in is the largest possible result,
except for a single number read from data, which has no largest value. Non-maximum suppression is the only operator that
is counted for fewer elements than its stand-in has. Each assumption is a note of the workload.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch.nn import functional
from torch.utils._pytree import tree_map

from joulemap.trace.formula.pooling import BOXES_PER_SURVIVOR
from joulemap.trace.tensor import tensors_in

Attention = torch.nn.MultiheadAttention


@contextlib.contextmanager
def attention_as_in_inference() -> Iterator[None]:
    """Allow the fast path of self-attention without masks on meta tensors, as on real ones.

    Source: `torch.nn.MultiheadAttention.forward` (conditions) and aten/src/ATen/native/transformers/cuda/attention.cu,
    `native_multi_head_attention_cuda` (operators).
    """
    usual = Attention.forward

    def forward(module: Attention, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if args or not _is_plain(module, query, key, value, kwargs):
            return usual(module, query, key, value, *args, **kwargs)
        return _self_attention(module, query), None

    Attention.forward = forward  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Attention.forward = usual  # type: ignore[method-assign]


def _is_plain(module: Attention, query: Any, key: Any, value: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether the fast path accepts this call: self-attention without masks or returned attention weights."""
    masks = (kwargs.get(name) for name in ("key_padding_mask", "attn_mask"))
    return (
        kwargs.get("need_weights", True) is False
        and all(mask is None for mask in masks)
        and query is key
        and key is value
        and query.dim() == 3
        and module.batch_first
        and module.in_proj_weight is not None
        and module.in_proj_bias is not None
        and module.num_heads % 2 == 0
        and module.bias_k is None
        and module.bias_v is None
        and not module.add_zero_attn
        and not module.training
    )


def _self_attention(module: Attention, query: torch.Tensor) -> torch.Tensor:
    batch, tokens, width = query.shape
    projected = functional.linear(query, module.in_proj_weight, module.in_proj_bias)
    parts = projected.chunk(3, dim=-1)
    heads = module.num_heads
    queries, keys, values = (part.view(batch, tokens, heads, width // heads).transpose(1, 2) for part in parts)
    attended = functional.scaled_dot_product_attention(queries, keys, values)
    return functional.linear(
        attended.transpose(1, 2).reshape(batch, tokens, width), module.out_proj.weight, module.out_proj.bias
    )


def attended_on_meta(query: torch.Tensor, _key: torch.Tensor, value: torch.Tensor, *_rest: Any, **_named: Any) -> Any:
    """Return an empty output of a fused attention kernel, of shape (..., heads, tokens, width) with tokens first in
    memory.

    Source: the flash, memory-efficient and cuDNN kernels of PyTorch all allocate (batch, tokens, heads, width) and
    return its transpose.
    """
    *outer, heads, tokens, _ = query.shape
    return query.new_empty((*outer, tokens, heads, value.shape[-1])).transpose(-3, -2)


def grouped_on_meta(
    left: torch.Tensor,
    right: torch.Tensor,
    offs: torch.Tensor | None = None,
    _bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return an empty output of a grouped GEMM, whose rows start at multiples of 16 bytes.

    PyTorch before 2.15 has a shape rule that refuses float32, and float16 without a GPU, though its kernels accept
    both.

    Source: aten/src/ATen/native/GroupedMMUtils.h, `_grouped_mm_validate_inputs`,
    `compute_grouped_gemm_output_size_stride`.
    """
    if not {left.dim(), right.dim()} <= {2, 3} or (left.dim() == right.dim() == 3) != (offs is None):
        raise RuntimeError("a grouped product takes matrices of 2 or 3 dimensions, and offsets unless both have 3")
    if not {left.dtype, right.dtype} <= _GROUPED_TYPES or out_dtype not in (None, left.dtype):
        raise RuntimeError(f"a grouped product takes float32, float16 or bfloat16, not {left.dtype} by {right.dtype}")
    cuts_inner = left.dim() == right.dim() == 2
    if left.shape[-1] != right.shape[-2] and not cuts_inner:
        raise RuntimeError(f"a grouped product cannot multiply {list(left.shape)} by {list(right.shape)}")
    if offs is not None and (offs.dim(), offs.dtype) != (1, torch.int32):
        raise RuntimeError(f"offsets of a grouped product are one row of int32, not {offs.dim()}D of {offs.dtype}")
    for matrix in (left, right):
        rows, columns = matrix.stride()[-2:]
        if 1 not in (rows, columns) or (rows if columns == 1 else columns) * matrix.element_size() % 16:
            raise RuntimeError(f"strides of a grouped product must be multiples of 16 bytes, not {matrix.stride()}")
    groups = {matrix.shape[0] for matrix in (left, right) if matrix.dim() == 3}
    groups |= set() if offs is None else {offs.shape[0]}
    if len(groups) > 1:
        raise RuntimeError(f"a grouped product has one number of groups, not {sorted(groups)}")
    batch, rows, columns = groups if left.dim() == right.dim() else (), left.shape[-2], right.shape[-1]
    aligned = 16 // left.element_size()
    padded = -(-columns // aligned) * aligned
    strides = (rows * padded, padded, 1)[0 if batch else 1 :]
    return torch.empty_strided((*batch, rows, columns), strides, dtype=left.dtype, device="meta")


_GROUPED_TYPES: Final = frozenset({torch.float32, torch.float16, torch.bfloat16})


def copied_operands(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the operands of a batched GEMM as its kernel gets them: copied if it cannot read them in place.

    A batch dimension of size 1 is treated like a larger one with the same layout, so that costs grow linearly with the
    batch. At batch 1 this may count a copy that PyTorch does not make.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, `_matmul_impl`: both operands are expanded to the common batch and
    reshaped to three dimensions, which copies an operand without such a view.
    """
    if min(left.dim(), right.dim()) < 3:
        return left, right
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return _as_one_batch(left, batch), _as_one_batch(right, batch)


def _as_one_batch(operand: torch.Tensor, batch: torch.Size) -> torch.Tensor:
    expanded = operand if operand.shape[:-2] == batch else operand.expand(*batch, *operand.shape[-2:])
    strides, sizes = expanded.stride(), expanded.shape
    for outer in range(len(batch) - 1):
        spans = [stride * size for stride, size in zip(strides[outer + 1 :], sizes[outer + 1 :], strict=True)]
        step = strides[outer] if sizes[outer] > 1 else max(spans)
        if step != spans[0]:
            return expanded.contiguous()
    return operand


def find_filled_mask(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the mask of an `index_put_` call that ATen runs as `masked_fill_`, such as `x[mask] = 0`; None for other
    calls.

    The returned mask broadcasts to the tensor that is filled.

    Source: aten/src/ATen/native/IndexingUtils.h, `canDispatchToMaskedFill`.
    """
    target, indices, value, *rest = args
    masks = [(place, index) for place, index in enumerate(indices) if index is not None]
    is_number = not value.is_meta and value.numel() == 1
    if (rest[0] if rest else kwargs.get("accumulate", False)) or not is_number or len(masks) != 1:
        return None
    (before, mask), *_ = masks
    after = target.dim() - before - mask.dim()
    if not selects(mask) or after < 0:
        return None
    for _ in range(after):
        mask = mask.unsqueeze(-1)
    return mask


StandIn = Callable[..., Any]


def _on_meta(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _every_element(mask: torch.Tensor) -> torch.Tensor:
    return _on_meta(mask.numel(), mask.dim())


def _every_selected(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    count = math.prod(torch.broadcast_shapes(values.shape, mask.shape))
    return _on_meta(count, dtype=values.dtype)


def _every_box(boxes: torch.Tensor, _scores: torch.Tensor, _threshold: float) -> torch.Tensor:
    return _on_meta(boxes.shape[0])


def _all_different(values: torch.Tensor, *_options: Any, **_named: Any) -> tuple[torch.Tensor, ...]:
    count = values.numel()
    return _on_meta(count, dtype=values.dtype), _on_meta(*values.shape), _on_meta(count)


def _same(_left: torch.Tensor, _right: torch.Tensor, *_options: Any, **_named: Any) -> bool:
    return False


def _no_order(_values: torch.Tensor, _mask: torch.Tensor) -> bool:
    return False


def _one_loss_each(log_probabilities: torch.Tensor, targets: torch.Tensor, *_rest: Any, **_named: Any) -> Any:
    steps, rows = log_probabilities.shape[0], log_probabilities.shape[1] if log_probabilities.dim() > 2 else 1
    states = 2 * targets.shape[-1] + 1
    return log_probabilities.new_empty(rows), log_probabilities.new_empty(rows, steps, states)


def _once_each(repeats: torch.Tensor, *_options: Any, output_size: int | None = None) -> torch.Tensor:
    return _on_meta(repeats.numel() if output_size is None else output_size)


def some_number(value: torch.Tensor) -> float | int | bool:
    """Return the stand-in for a number read from data."""
    if value.dtype == torch.bool:
        return False
    return 1.0 if value.is_floating_point() else 0


STAND_INS: Final[dict[str, tuple[StandIn, str]]] = {
    "nonzero": (_every_element, "every element is assumed to be nonzero"),
    "masked_select": (_every_selected, "every element is assumed to be selected"),
    "nms": (_every_box, f"one of {BOXES_PER_SURVIVOR} boxes is assumed to survive suppression"),
    "_unique2": (_all_different, "all elements are assumed to be different"),
    "unique_consecutive": (_all_different, "all elements are assumed to be different"),
    "repeat_interleave": (_once_each, "each element is assumed to be repeated once"),
    "unique_dim": (_all_different, "all elements are assumed to be different"),
    "equal": (_same, "data is assumed to be different"),
    "allclose": (_same, "data is assumed to be different"),
    "_nested_tensor_from_mask_left_aligned": (_no_order, "padding is assumed to be computed too"),
    "_ctc_loss": (_one_loss_each, "every target is assumed to be as long as the longest"),
    "_local_scalar_dense": (some_number, "a number read from data is assumed to be 0, 1.0 or False"),
}
"""Operator -> (rule for its result on the meta device, assumption of the rule)."""

INDEX_NOTE: Final = "every element of a mask is assumed to be selected"


MOST_ZEROS: Final = 2**24
"""Maximum input elements for which `run_on_zeros` runs an operator."""


def run_on_zeros(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator without a shape rule on zeros, and return its result without storage.

    Returns NotImplemented if the inputs have more than `MOST_ZEROS` elements, or a tensor is not dense.
    """
    tensors = tensors_in((args, kwargs))
    if sum(tensor.numel() for tensor in tensors) > MOST_ZEROS or not _are_dense(tensors):
        return NotImplemented
    real = {id(one): torch.zeros(one.shape, dtype=one.dtype, device="cpu") if one.is_meta else one for one in tensors}

    def swap(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return real[id(value)] if isinstance(value, torch.Tensor) else value

    def strip(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        mine = next((one for one in tensors if real[id(one)] is value), None)
        return value.to("meta") if mine is None else mine

    given = func(*tree_map(swap, args), **tree_map(swap, kwargs))
    made = tensors_in(given)
    return tree_map(strip, given) if _are_dense(made) else NotImplemented


def _are_dense(tensors: Sequence[torch.Tensor]) -> bool:
    return all(tensor.layout == torch.strided and not tensor.is_nested for tensor in tensors)


@contextlib.contextmanager
def one_suppression_for_all_classes() -> Iterator[None]:
    """Prevent torchvision from suppressing boxes class by class, in a loop whose length depends on data.

    Boxes of different classes get disjoint coordinates and one `nms` call, as torchvision does for up to 25,000 boxes
    on a GPU and 1,000 on a CPU.
    """
    try:
        from torchvision.ops import boxes
    except ImportError:
        yield
        return
    per_class = boxes._batched_nms_vanilla
    boxes._batched_nms_vanilla = boxes._batched_nms_coordinate_trick
    try:
        yield
    finally:
        boxes._batched_nms_vanilla = per_class


def selects(index: torch.Tensor) -> bool:
    """Return whether an index is a mask, which selects the elements where it is true."""
    return index.dtype in (torch.bool, torch.uint8)


def is_mask(index: Any) -> bool:
    """Return whether an index is a mask (bool or uint8) on the meta device."""
    return isinstance(index, torch.Tensor) and selects(index) and index.is_meta


def expand_masks(indices: list[Any]) -> tuple[list[Any], bool]:
    """Return (indices, whether there was a mask). Each mask is replaced by the positions of all its elements."""
    expanded: list[Any] = []
    found = False
    for index in indices:
        if is_mask(index):
            expanded.extend(_on_meta(index.numel()) for _ in range(index.dim()))
            found = True
        else:
            expanded.append(index)
    return expanded, found
