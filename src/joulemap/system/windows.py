"""Locks of bytes of a file on Windows, by LockFileEx and UnlockFileEx of its kernel.

Source: Microsoft, Win32 API reference, fileapi.h, LockFileEx.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any, Final

FAIL_IMMEDIATELY: Final = 1
EXCLUSIVE: Final = 2
REFUSALS: Final = (33, 997)
"""ERROR_LOCK_VIOLATION and ERROR_IO_PENDING: another process has locked one of the bytes."""

END: Final = 2**63
"""Offset after the last byte that can be locked."""


class Overlapped(ctypes.Structure):
    """Structure OVERLAPPED of the Windows API, which states the offset of the first byte."""

    _fields_ = (
        ("internal", ctypes.c_void_p),
        ("internal_high", ctypes.c_void_p),
        ("offset", ctypes.c_uint32),
        ("offset_high", ctypes.c_uint32),
        ("event", ctypes.c_void_p),
    )


@cache
def _load() -> tuple[Any, Any]:
    """Return the library of the Windows kernel, and the function that returns the handle of a descriptor.

    Raise OSError in a browser, whose Python has no locks at all, so that what can do without them goes on.
    """
    load = getattr(ctypes, "WinDLL", None)
    if load is None:
        raise OSError("a browser has no locks of files")
    kernel = load("kernel32", use_last_error=True)
    word, handle, overlapped = ctypes.c_uint32, ctypes.c_void_p, ctypes.POINTER(Overlapped)
    kernel.LockFileEx.argtypes = [handle, word, word, word, word, overlapped]
    kernel.UnlockFileEx.argtypes = [handle, word, word, word, overlapped]
    return kernel, import_module("msvcrt").get_osfhandle


def lock(descriptor: int, start: int, length: int, *, is_shared: bool = False, is_waiting: bool = False) -> bool:
    """Lock a range of bytes, up to the last byte for a length of 0.

    Return False if one of the bytes is locked. Raise OSError for any other failure.
    """
    kernel, find_handle = _load()
    flags = (0 if is_shared else EXCLUSIVE) | (0 if is_waiting else FAIL_IMMEDIATELY)
    low, high = _divide(length or END - start)
    if kernel.LockFileEx(find_handle(descriptor), flags, 0, low, high, ctypes.byref(_make_overlapped(start))):
        return True
    fault = _last_error()
    if fault in REFUSALS:
        return False
    raise OSError(fault, f"LockFileEx failed with error {fault}")


def unlock(descriptor: int, start: int, length: int) -> None:
    """Release bytes that were locked as one range."""
    kernel, find_handle = _load()
    low, high = _divide(length or END - start)
    if not kernel.UnlockFileEx(find_handle(descriptor), 0, low, high, ctypes.byref(_make_overlapped(start))):
        fault = _last_error()
        raise OSError(fault, f"UnlockFileEx failed with error {fault}")


def _make_overlapped(start: int) -> Overlapped:
    low, high = _divide(start)
    return Overlapped(offset=low, offset_high=high)


def _divide(number: int) -> tuple[int, int]:
    """Return the lower and the upper 32 bits of a number."""
    return number & 0xFFFF_FFFF, number >> 32


def _last_error() -> int:
    return int(getattr(ctypes, "get_last_error")())  # noqa: B009 - absent elsewhere
