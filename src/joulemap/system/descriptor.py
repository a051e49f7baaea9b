"""Silence the process's standard output below Python's streams, where C libraries print unwanted text."""

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
    """Discard everything written to the descriptor of stdout inside the block, by C libraries too.

    Other threads share the descriptor, so the block should be short.
    """
    _flush()
    try:
        kept = os.dup(STDOUT)
    except OSError:  # a closed descriptor writes nothing, so it needs no redirection
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
    """Flush Python's stdout and the streams of C."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
