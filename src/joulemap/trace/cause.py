"""What the error of a forward pass tells the trace itself: which code it passed, what it wants, which sizes it met."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from types import CodeType
from typing import Final

import torch

MOST_TOLD: Final = 4
"""Tensors of an operator whose sizes an error tells."""

SIZES: Final = " in "
"""Start of the note that tells them."""

GRADIENTS: Final = ("does not require grad", "Inference tensors cannot", "Cannot set version_counter for inference")
"""Of texts with which torch refuses a gradient in inference mode."""


def functions_of(error: BaseException) -> set[CodeType]:
    """Return the functions that an error passed through."""
    return {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}


def wants_gradients(error: BaseException) -> bool:
    """Whether a forward pass failed for want of gradients, as where it differentiates by its input."""
    return any(text in text_of(error) for text in GRADIENTS)


def tell_sizes(error: BaseException, name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Have an error of an operator that names no size be told with those of the tensors that it was given."""
    if not re.search(r"\d", text_of(error)):
        sizes = (f"[{', '.join(map(str, tensor.shape))}]" for tensor in tensors[:MOST_TOLD])
        error.add_note(f"{SIZES}{name} of {' and '.join(sizes)}")


def text_of(error: BaseException) -> str:
    """Return the text of an error; empty where a person's own error class fails to tell it."""
    try:
        return str(error)
    except Exception:
        return ""
