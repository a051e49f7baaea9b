"""Open files by descriptor, and lock them, alike on POSIX systems and on Windows.

    lock_file, try_lock_file     whole file; belongs to the descriptor, so that another of this process is refused too
    try_lock_bytes               range of bytes, shared or exclusive; on POSIX systems it belongs to the process

Locks end with their descriptor or process. On Windows, no other process can read locked bytes. There, the lock of a
whole file is therefore the lock of one byte beyond the end of any file. `try_lock_bytes` conflicts even with another
lock of the same descriptor.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:
    from joulemap.system import windows

    IS_POSIX = False
else:
    IS_POSIX = True

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
UNFOLLOWED: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Flag that refuses a link; 0 on Windows, where links need a privilege."""

UNBLOCKED: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags that open a pipe or a terminal without waiting for its other end."""

BEYOND: Final = 2**62
"""Offset of the byte that stands for a whole file on Windows."""


def open_descriptor(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file without translation of line ends; OSError if it cannot be opened."""
    return os.open(path, flags | BINARY, 0o600)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes of a file from an offset."""
    if IS_POSIX:
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of the content. Raise OSError if the disk is full, even if the first call wrote a part."""
    while content:
        if IS_POSIX:
            written = os.pwrite(descriptor, content, offset)
        else:
            os.lseek(descriptor, offset, os.SEEK_SET)
            written = os.write(descriptor, content)
        content, offset = content[written:], offset + written


def lock_file(descriptor: int) -> None:
    """Lock a whole file; wait while another descriptor has it locked."""
    if IS_POSIX:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    else:
        windows.lock(descriptor, BEYOND, 1, is_waiting=True)


def try_lock_file(descriptor: int) -> bool:
    """Lock a whole file; return False if another lock prevents it. Raises OSError on a file system without locks."""
    if not IS_POSIX:
        return windows.lock(descriptor, BEYOND, 1)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_lock_bytes(descriptor: int, start: int = 0, length: int = 0, *, is_shared: bool = False) -> bool:
    """Lock a range of bytes, up to any end of the file for a length of 0.

    Return False if another process has locked one of the bytes. Raises OSError on a file system without locks.
    """
    if not IS_POSIX:
        return windows.lock(descriptor, start, length, is_shared=is_shared)
    try:
        fcntl.lockf(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, length, start)
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock_bytes(descriptor: int, start: int = 0, length: int = 0) -> None:
    """Release a range that `try_lock_bytes` locked."""
    if IS_POSIX:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, length, start)
    else:
        windows.unlock(descriptor, start, length)


def close_and_remove(descriptor: int, file: Path) -> None:
    """Close a locked file and remove it, so that no process can lock it under this name in between.

    Windows refuses to remove an open file; the process that has it open then removes it.
    """
    if not IS_POSIX:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        file.unlink()
    if IS_POSIX:
        os.close(descriptor)


def is_in_use(path: Path) -> bool:
    """Return whether Windows refuses a writable file because a process has it open alone, as the engine does."""
    if IS_POSIX or not os.access(path, os.W_OK):
        return False
    try:
        os.close(open_descriptor(path, os.O_RDWR))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def identify_file(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of the file at a path, which differ after another replaced it; None without a
    file.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are stored; Windows stores them with their files."""
    if not IS_POSIX:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
