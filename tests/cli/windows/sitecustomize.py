"""Process without what Windows lacks; its kernel's locks are emulated by open file description locks of Linux.

Python imports this module first if its folder is on PYTHONPATH, also in processes of `multiprocessing`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import multiprocessing
import os
import signal
import struct
import subprocess  # noqa: F401 - takes msvcrt for a sign of Windows
import sys
from types import ModuleType, SimpleNamespace

LACKING = {
    os: ("pread", "pwrite", "killpg", "sysconf", "getloadavg", "set_blocking", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"),
    signal: ("pthread_sigmask", "getitimer", "setitimer"),
}

_errors = [0]


def _apply(handle: int, kind: int, low: int, high: int, place: object) -> int:
    start = place._obj.offset | place._obj.offset_high << 32  # type: ignore[attr-defined]
    count = min(low | high << 32, sys.maxsize - start)
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, start, count, 0))
    except OSError as error:
        _errors[0] = 33 if error.errno in (errno.EAGAIN, errno.EACCES) else error.errno or 1
        return 0
    return 1


def _lock(handle: int, flags: int, _reserved: int, low: int, high: int, place: object) -> int:
    return _apply(handle, fcntl.F_WRLCK if flags & 2 else fcntl.F_RDLCK, low, high, place)


def _unlock(handle: int, _reserved: int, low: int, high: int, place: object) -> int:
    return _apply(handle, fcntl.F_UNLCK, low, high, place)


kernel = SimpleNamespace(LockFileEx=_lock, UnlockFileEx=_unlock)
ctypes.WinDLL = lambda _name, use_last_error: kernel  # type: ignore[attr-defined]
ctypes.get_last_error = lambda: _errors[0]  # type: ignore[attr-defined]
msvcrt = ModuleType("msvcrt")
msvcrt.get_osfhandle = lambda descriptor: descriptor  # type: ignore[attr-defined]
multiprocessing.set_start_method("spawn")
os.supports_dir_fd = set()  # by which `shutil` chooses how it removes a tree
sys.modules |= {"msvcrt": msvcrt, **dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios"))}  # type: ignore[dict-item]
for module, names in LACKING.items():
    for name in names:
        delattr(module, name)
