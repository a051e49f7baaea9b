"""Origins of data-dependent decisions: the calls that compute a mask or a count from other values.

    operators                                       origin
    scores > 0.5, cat((mask, ~mask)), x[...]        the comparison
    exp(x).long(), masked_fill, repeat_interleave   the conversion
    ceil(exp(x)), sum, clamp, long(), item()        the rounding

A stand-in replaces the result of one operator only. If a pass fails because other operators use the same mask or count,
its origin gets a value that holds for all of them: every element selected, each repeated once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from joulemap.trace.tape import SeenTensor, Step
    from joulemap.trace.value import Values


ROUNDINGS: Final = frozenset({"ceil", "floor", "round", "trunc"})
"""Operators that round to integers."""

MOST_BACK: Final = 24
"""Maximum calls searched backwards from an integer for the rounding that made it."""


def decided_by(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments whose values determine an operator's number of rows, or a number read on the host."""
    if name in ("nonzero", "repeat_interleave", "_local_scalar_dense"):
        return (args[0],)
    if name == "masked_select":
        return (args[1],)
    return tuple(args[1]) if name == "index" else ()


def find_origins(
    index: int,
    tensors: Sequence[SeenTensor],
    calls: Sequence[Step],
    values: Values,
    *,
    is_number: bool = False,
) -> set[int]:
    """Return the calls that make a mask from values other than masks, or a count from values other than integers.

    A count that was rounded has its rounding as origin. With `is_number`, for a single number read by the host, only a
    rounding counts.
    """

    def unknown(producer: int) -> list[int]:
        return [read for read in calls[producer].reads if values.find(tensors[read].tensor) is None]

    tensor = tensors[index].tensor
    origins: set[int] = set()
    seen: set[int] = set()
    waiting = [index] if _is_decision(tensor) else []
    while waiting:
        producer = tensors[waiting.pop()].producer
        if producer is None or producer in seen:
            continue
        seen.add(producer)
        before = [read for read in unknown(producer) if _is_same_kind(tensors[read].tensor, tensor)]
        waiting += before
        if not before:
            origins.add(producer)
    if tensor.dtype == torch.bool:
        return set() if is_number else origins
    rounded = {origin: _find_rounding(origin, tensors, calls, unknown) for origin in origins}
    return {
        origin if rounding is None else rounding
        for origin, rounding in rounded.items()
        if rounding is not None or not is_number
    }


def _find_rounding(
    origin: int,
    tensors: Sequence[SeenTensor],
    calls: Sequence[Step],
    unknown: Callable[[int], list[int]],
) -> int | None:
    """Return the last rounding before a call; None if there is none near it."""
    waiting: deque[int] = deque([origin])
    seen: set[int] = set()
    while waiting and len(seen) < MOST_BACK:
        call = waiting.popleft()
        if calls[call].name.removesuffix("_") in ROUNDINGS:
            return call
        seen.add(call)
        waiting += [
            producer
            for read in unknown(call)
            if (producer := tensors[read].producer) is not None and producer not in seen
        ]
    return None


def _is_decision(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a mask or a count whose values are unknown."""
    return tensor.is_meta and not (tensor.is_floating_point() or tensor.is_complex())


def _is_same_kind(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return _is_decision(tensor) and (tensor.dtype == torch.bool) == (other.dtype == torch.bool)
