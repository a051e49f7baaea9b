"""FlexAttention without storage: its device checks are bypassed, and its block masks described."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch


def describe_blocks(block_mask: Sequence[Any]) -> str:
    """Return a note on the blocks that a block mask omits, as far as its values are known."""
    tensors = [part for part in block_mask if isinstance(part, torch.Tensor)]
    if len(tensors) < 2:
        return ""
    shape = tensors[1].shape
    if math.prod(shape[-2:]) <= 1:  # no mask was given
        return ""
    partial, full = _REAL.get(id(block_mask[2]), block_mask[2]), block_mask[4]
    full = _REAL.get(id(full), full)
    if partial.is_meta or (full is not None and full.is_meta):
        return "every block of scores is counted, also those that its mask leaves out"
    kept = int(partial.sum()) + (int(full.sum()) if full is not None else 0)
    return f"its mask keeps {kept:,} of {shape.numel():,} blocks of scores, all are counted"


_REAL: Final[dict[int, torch.Tensor]] = {}
"""id of a tensor without storage -> block counts that it represents, while a module is traced."""


@contextlib.contextmanager
def flex_attention_on_meta() -> Iterator[None]:
    """Let FlexAttention take tensors without storage, and block masks that were made on any device.

    Its function refuses other devices before its operator is reached, by `_validate_device` and by the device of the
    mask.
    """
    from torch.nn.attention import flex_attention as flex

    usual, twins = flex._validate_device, dict[int, torch.Tensor]()

    def give(mask: Any) -> torch.Tensor:
        real: torch.Tensor = mask.__dict__["kv_num_blocks"]
        if real.is_meta:
            return real
        twin = twins.setdefault(id(real), torch.empty_like(real, device="meta"))
        _REAL[id(twin)] = real
        return twin

    flex._validate_device = lambda *_tensors: None
    numbers = property(give, lambda mask, held: mask.__dict__.update(kv_num_blocks=held))
    flex.BlockMask.kv_num_blocks = numbers  # type: ignore[assignment]
    try:
        yield
    finally:
        flex._validate_device = usual
        del flex.BlockMask.kv_num_blocks
        _REAL.clear()
