"""Draft files: written in a separate folder next to their destination, then renamed.

    results/.joulemap-drafts/          removed with the last draft in it
        drafts-of-joulemap             marker: a folder without it belongs to another program
        3f0c….lock                     locked by the process that works on this draft, until it ends
        3f0c…/                         the draft

The next command that uses the folder removes the drafts of killed processes, and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from joulemap.system.handle import close_and_remove, lock_file, open_descriptor, try_lock_file

DRAFTS: Final = ".joulemap-drafts"
MARKER: Final = "drafts-of-joulemap"
_LOCK: Final = re.compile(r"([0-9a-f]{32})\.lock")

TRIES: Final = 100
"""Maximum attempts to create the drafts folder; only a very busy process could remove it as empty each time."""

_own: dict[Path, int] = {}
"""Draft of this process -> descriptor of its lock."""


@contextlib.contextmanager
def drafting(folder: Path) -> Iterator[Path]:
    """Provide a new empty folder for this process on the file system of `folder`, and remove it afterwards.

    Raises OSError if it cannot be created.
    """
    sweep(folder)
    draft = _make(folder / DRAFTS)
    try:
        yield draft
    finally:
        _remove(draft)


def publish(draft: Path, path: Path) -> bool:
    """Give a finished file its name; return False if the name is taken. File systems without links rename instead."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:
        if os.path.lexists(path):
            return False
        draft.rename(path)
    return True


def sweep(folder: Path) -> None:
    """Remove drafts whose process has ended."""
    drafts = folder / DRAFTS
    if not drafts.is_dir() or drafts.is_symlink():
        return
    with contextlib.suppress(OSError):
        entries = os.listdir(drafts)
        if not entries:  # its process ended between removing the marker and the folder
            drafts.rmdir()
        if MARKER not in entries:
            return
        for entry in entries:
            match = _LOCK.fullmatch(entry)
            if match is not None and drafts / match[1] not in _own:
                _remove_left(drafts / match[1], drafts / entry)
        _leave(drafts)


def discard() -> None:
    """Remove the drafts of this process before it exits."""
    for draft in list(_own):
        with contextlib.suppress(OSError):
            _remove(draft)


def _make(folder: Path) -> Path:
    """Create a draft, and the drafts folder with its marker; retry if another process removes that folder as empty.

    Raises OSError if the parent folder is gone or cannot hold files, as in `/proc`.
    """
    for _ in range(TRIES):
        draft = folder / os.urandom(16).hex()
        try:
            folder.mkdir(exist_ok=True)
            (folder / MARKER).touch()
            lock = open_descriptor(draft.with_suffix(".lock"), os.O_CREAT | os.O_RDWR)
        except FileNotFoundError:
            if not folder.parent.is_dir() or not folder.parent.stat().st_nlink:
                raise
            continue
        lock_file(lock)
        with contextlib.suppress(FileNotFoundError):
            (folder / MARKER).touch()
            if os.path.samestat(os.fstat(lock), draft.with_suffix(".lock").stat()):
                draft.mkdir()
                _own[draft] = lock
                return draft
        os.close(lock)
    raise FileNotFoundError(errno.ENOENT, "no file can be made there", str(folder))


def _remove(draft: Path) -> None:
    lock = _own.pop(draft, None)
    if lock is None:
        return
    _empty(draft)
    close_and_remove(lock, draft.with_suffix(".lock"))
    _leave(draft.parent)


def _remove_left(draft: Path, file: Path) -> None:
    lock = open_descriptor(file, os.O_RDWR)
    is_left = False
    with contextlib.suppress(OSError):  # a file system without locks
        is_left = try_lock_file(lock)
    if is_left:
        _empty(draft)
        close_and_remove(lock, file)
    else:
        os.close(lock)


def _empty(draft: Path) -> None:
    import shutil

    shutil.rmtree(draft, ignore_errors=True)


def _leave(folder: Path) -> None:
    """Remove the drafts folder if only the marker is left in it."""
    with contextlib.suppress(OSError):
        if os.listdir(folder) == [MARKER]:
            (folder / MARKER).unlink()
            folder.rmdir()
