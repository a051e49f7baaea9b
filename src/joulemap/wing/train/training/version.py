"""Version of the code that derives a training step's workload from a forward pass."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code
from joulemap.trace.version import CLOSED_FORMS

CODE: Final = ("wing/train/training", "fuse")


@cache
def training_version() -> str:
    """Return sixteen hexadecimal digits that are part of every training step's key, with the key of the model."""
    return digest_code(*CLOSED_FORMS, *CODE)
