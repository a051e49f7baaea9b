"""Files under construction: written in a place of their own beside where they will stand, then renamed.

    results/.joulemap-drafts/          removed with the last draft in it
        drafts-of-joulemap             the marker: a folder without it is somebody else's
        3f0c….lock                     held by the process that works on this draft, for as long as it lives
        3f0c…/                         the draft

What a killed process leaves is removed by the next command that looks here, and nothing else ever is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PLACE: Final = ".joulemap-drafts"
MARKER: Final = "drafts-of-joulemap"
_LOCK: Final = re.compile(r"([0-9a-f]{32})\.lock")

TRIES: Final = 100
"""Times that a place is made anew; another process that removes it as empty each time would have to be very busy."""

_own: dict[Path, int] = {}
"""Drafts of this process -> the descriptor of their lock."""


@contextlib.contextmanager
def drafting(folder: Path) -> Iterator[Path]:
    """Give out a new empty folder on the file system of `folder`, for this process alone, and remove it afterwards.

    Raises OSError where it cannot be made.
    """
    sweep(folder)
    draft = _make(folder / PLACE)
    try:
        yield draft
    finally:
        _remove(draft)


def publish(draft: Path, place: Path) -> bool:
    """Give a finished file its name; return False where the name is taken. File systems without links rename."""
    try:
        os.link(draft, place)
    except FileExistsError:
        return False
    except OSError:
        if os.path.lexists(place):
            return False
        draft.rename(place)
    return True


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder whose process is gone."""
    place = folder / PLACE
    if not place.is_dir() or place.is_symlink():
        return
    with contextlib.suppress(OSError):
        entries = os.listdir(place)
        if not entries:  # left between the marker's end and its own
            place.rmdir()
        if MARKER not in entries:
            return
        for entry in entries:
            found = _LOCK.fullmatch(entry)
            if found is not None and place / found[1] not in _own:
                _remove_left(place / found[1], place / entry)
        _leave(place)


def discard() -> None:
    """Remove the drafts of this process, which is about to end."""
    for draft in list(_own):
        with contextlib.suppress(OSError):
            _remove(draft)


def _make(place: Path) -> Path:
    """Make a draft, and the place with its marker; another process may remove the place meanwhile, as empty.

    Raises OSError where the folder is gone, or takes no files though it is there, as one of `/proc` does.
    """
    for _ in range(TRIES):
        draft = place / os.urandom(16).hex()
        try:
            place.mkdir(exist_ok=True)
            (place / MARKER).touch()
            lock = os.open(draft.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            if not place.parent.is_dir() or not place.parent.stat().st_nlink:
                raise
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            (place / MARKER).touch()
            if os.path.samestat(os.fstat(lock), draft.with_suffix(".lock").stat()):
                draft.mkdir()
                _own[draft] = lock
                return draft
        os.close(lock)
    raise FileNotFoundError(errno.ENOENT, "no file can be made there", str(place))


def _remove(draft: Path) -> None:
    lock = _own.pop(draft, None)
    if lock is None:
        return
    _empty(draft)
    with contextlib.suppress(OSError):
        draft.with_suffix(".lock").unlink()
    os.close(lock)
    _leave(draft.parent)


def _remove_left(draft: Path, lock_file: Path) -> None:
    lock = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _empty(draft)
        lock_file.unlink()
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def _empty(draft: Path) -> None:
    import shutil

    shutil.rmtree(draft, ignore_errors=True)


def _leave(place: Path) -> None:
    """Remove the place if nothing but the marker is in it."""
    with contextlib.suppress(OSError):
        if os.listdir(place) == [MARKER]:
            (place / MARKER).unlink()
            place.rmdir()
