"""Worst cases for what a trace without data cannot know: how many boxes survive, which elements a mask selects.

Each is the largest answer the operator can give, except a single number read from data, which has no largest value.
Whatever is used is told as a note of the workload.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

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


def _some_number(value: torch.Tensor) -> float | int | bool:
    if value.dtype == torch.bool:
        return False
    return 1.0 if value.is_floating_point() else 0


STAND_INS: Final[dict[str, tuple[StandIn, str]]] = {
    "nonzero": (_every_element, "every element is taken to be nonzero"),
    "masked_select": (_every_selected, "every element is taken to be selected"),
    "nms": (_every_box, "every box is taken to survive suppression"),
    "_unique2": (_all_different, "all elements are taken to be different"),
    "unique_dim": (_all_different, "all elements are taken to be different"),
    "_local_scalar_dense": (_some_number, "a number read from data is taken to be 0, 1.0 or False"),
}
"""operator -> (what it returns on the meta device, what that assumes)."""

INDEX_NOTE: Final = "every element of a mask is taken to be selected"


@contextlib.contextmanager
def one_suppression_for_all_classes() -> Iterator[None]:
    """Keep torchvision from suppressing boxes class by class, a loop as long as the data has classes.

    Boxes of different classes are moved apart and suppressed together, as it does itself for up to 20,000 boxes on a
    GPU: one `nms` over all of them, which is the same work at its worst.
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


def expand_masks(indices: list[Any]) -> tuple[list[Any], bool]:
    """Return the indices with each mask as the positions of all its elements, and whether there was one."""
    expanded: list[Any] = []
    found = False
    for index in indices:
        if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) and index.is_meta:
            expanded.extend(_on_meta(index.numel()) for _ in range(index.dim()))
            found = True
        else:
            expanded.append(index)
    return expanded, found
