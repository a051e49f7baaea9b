"""Where what data decides comes from: the calls that make a mask or a count of something else.

    scores > 0.5 ──► mask ──► cat((mask, ~mask)) ──► x[…]            its origin is the comparison
    exp(x).long() ──► counts ──► masked_fill ──► repeat_interleave   its origin is the conversion

A stand-in answers for one operator alone. Where a pass fails because others computed with the same mask or count, its
origin gets a value that holds for all of them: every element selected, each repeated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from joulemap.trace.record import RecordedCall, RecordedTensor
    from joulemap.trace.value import Values


def decided_by(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of an operator whose values decide how many rows it gives."""
    if name in ("nonzero", "repeat_interleave"):
        return (args[0],)
    if name == "masked_select":
        return (args[1],)
    return tuple(args[1]) if name == "index" else ()


def find_origins(
    tensor: Any, index: int, tensors: Sequence[RecordedTensor], calls: Sequence[RecordedCall], values: Values
) -> set[int]:
    """Return the calls that make a mask, or a count, of what is none and is not known."""
    origins: set[int] = set()
    seen: set[int] = set()
    waiting = [index] if _is_decision(tensor) else []
    while waiting:
        producer = tensors[waiting.pop()].producer
        if producer is None or producer in seen:
            continue
        seen.add(producer)
        before = [
            read
            for read in calls[producer].reads
            if _is_same_kind(tensors[read].tensor, tensor) and values.find(tensors[read].tensor) is None
        ]
        waiting += before
        if not before:
            origins.add(producer)
    return origins


def _is_decision(tensor: Any) -> bool:
    """Whether a tensor is a mask or a count, and without values."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_meta:
        return False
    return not (tensor.is_floating_point() or tensor.is_complex())


def _is_same_kind(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return _is_decision(tensor) and (tensor.dtype == torch.bool) == (other.dtype == torch.bool)
