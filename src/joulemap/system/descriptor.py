"""The process's standard output below Python's streams, where a library in C may write what nobody asked for."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import Final

STDOUT: Final = 1


@contextlib.contextmanager
def silencing() -> Iterator[None]:
    """Discard what is written to the descriptor of stdout inside, by libraries too.

    Other threads write to the same descriptor, so keep what is inside short.
    """
    _flush()
    try:
        kept = os.dup(STDOUT)
    except OSError:  # it is closed: nothing can be written to it
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _flush() -> None:
    """Write out what Python's stdout and the streams of C hold."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
