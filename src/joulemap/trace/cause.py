"""Facts that a trace reads from the error of a forward pass: code location, required gradients, sizes."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from types import CodeType
from typing import Final

import torch

MOST_LISTED: Final = 4
"""Maximum tensors of an operator whose sizes an error states."""

SIZES: Final = " in "
"""Beginning of the note that `add_sizes` appends to an error."""

GRADIENTS: Final = ("does not require grad", "Inference tensors cannot", "Cannot set version_counter for inference")
"""Fragments of torch's error messages about gradients in inference mode."""


def functions_of(error: BaseException) -> set[CodeType]:
    """Return the code objects of the functions in an error's traceback."""
    return {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}


def wants_gradients(error: BaseException) -> bool:
    """Return whether a forward pass failed because it needs gradients, for example of its input."""
    return any(text in text_of(error) for text in GRADIENTS)


def add_sizes(error: BaseException, name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Append a note with the sizes of an operator's tensors to its error, if the error text contains no digit."""
    if not re.search(r"\d", text_of(error)):
        sizes = (f"[{', '.join(map(str, tensor.shape))}]" for tensor in tensors[:MOST_LISTED])
        error.add_note(f"{SIZES}{name} of {' and '.join(sizes)}")


def text_of(error: BaseException) -> str:
    """Return the text of an error; empty if a user's own error class fails to return it."""
    try:
        return str(error)
    except Exception:
        return ""
