"""The heap of this process: arrays that are made and freed again and again take the same memory each time."""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache
from typing import Final

TRIM_THRESHOLD: Final = -1
TOP_PAD: Final = -2
MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt(3)."""

KEPT_BYTES: Final = 1 << 29
"""Of freed memory at the end of the heap, at most."""

PAD_BYTES: Final = 1 << 26
"""By which the heap grows."""

LARGEST_BYTES: Final = 1 << 25
"""Of an array that is in the heap: the most that mallopt(3) takes."""


@cache
def keep_freed() -> None:
    """Have the C library of GNU keep memory that large arrays free, from now on; another one does as it did.

    It gives memory of large arrays back at once, and each page that is taken anew is cleared by the system: a third of
    the time of products that are tiled for many points.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries have none, and other numbers for the same
        for parameter, value in ((MMAP_THRESHOLD, LARGEST_BYTES), (TRIM_THRESHOLD, KEPT_BYTES), (TOP_PAD, PAD_BYTES)):
            library.mallopt(parameter, value)
