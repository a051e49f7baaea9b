"""Keep freed memory in the heap of this process, so that repeated allocations of arrays reuse it."""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache
from typing import Final

TRIM_THRESHOLD: Final = -1
TOP_PAD: Final = -2
MMAP_THRESHOLD: Final = -3
"""Number of the parameter of mallopt(3) that sets the size from which memory is mapped separately."""

KEPT_BYTES: Final = 1 << 29
"""Maximum bytes of freed memory that are kept at the end of the heap."""

PAD_BYTES: Final = 1 << 26
"""Number of bytes by which the heap grows at once."""

LARGEST_BYTES: Final = 1 << 25
"""Size up to which arrays are allocated in the heap; the maximum that mallopt(3) accepts."""


@cache
def keep_freed() -> None:
    """Make glibc keep the memory of freed large arrays from now on; other C libraries are unaffected.

    By default glibc returns that memory at once, and the kernel clears each page that is mapped again. Clearing takes a
    third of the time of tiled GEMMs over many points.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries have none, and other numbers for the same
        for parameter, value in ((MMAP_THRESHOLD, LARGEST_BYTES), (TRIM_THRESHOLD, KEPT_BYTES), (TOP_PAD, PAD_BYTES)):
            library.mallopt(parameter, value)


def find_memory_limit() -> int | None:
    """Return the bytes of memory that the shell lets this process have (`ulimit -v`); None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
