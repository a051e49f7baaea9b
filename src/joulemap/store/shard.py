"""Shard: rows in one immutable Parquet file whose name states its content. Archives and lakes consist of shards.

    FOLDER/SUBJECT-CONTENT.parquet           what the rows are, and the digest of every byte of the file
    FOLDER/.SUBJECT.HOST-PID-RANDOM.part     being written, or left by a killed process

A file is written in the same folder, synced to disk, and renamed. Two processes that write the same rows write the same
bytes under the same name. The subject of an archive's shard is its table; that of a lake's is the digest of a block of
points.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import time
from pathlib import Path
from typing import Any, Final

from joulemap.system.file import FileError, open_regular
from joulemap.system.handle import sync_folder, try_lock_file
from joulemap.system.record import frozen

_NAME: Final = re.compile(r"([0-9a-z_]+)-([0-9a-f]{16})\.parquet")


@frozen
class Shard:
    """Shard as its name describes it."""

    path: Path
    subject: str
    """Table or digest of the block that its rows belong to."""
    content: str
    """Digest of the bytes of the file."""
    size_bytes: int

    @property
    def folder(self) -> str:
        """Name of the shard's folder."""
        return self.path.parent.name


def read_name(path: Path) -> Shard | None:
    """Return the shard that a file's name and size describe; None if it is missing or its name is not a shard's."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    try:
        return Shard(path, match[1], match[2], path.stat().st_size)
    except FileNotFoundError:
        return None if not path.is_symlink() else Shard(path, match[1], match[2], 0)
    except OSError:  # a link to itself, a folder that may not be entered
        return Shard(path, match[1], match[2], 0)


def list_shards(folder: Path, subject: str) -> list[Shard]:
    """Return the shards of a subject in a folder, sorted by file name; empty if the folder is missing."""
    paths = sorted(folder.glob(f"{subject}-*.parquet")) if folder.is_dir() else []
    return [shard for path in paths if (shard := read_name(path)) is not None]


def find_damage(shard: Shard) -> str:
    """Return how a file differs from what its name states; empty if it is whole."""
    try:
        is_whole = _digest_file(shard.path) == shard.content
    except FileError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return "" if is_whole else "it was cut short or altered (its content has another digest than its name)"


def write_shard(folder: Path, subject: str, content: Any) -> Shard:
    """Write bytes atomically as a shard and return it; a whole one is returned unchanged. Raise OSError on failure."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    shard = Shard(folder / _spell_name(subject, digest), subject, digest, len(content))
    if not find_damage(shard):
        return shard
    draft = folder / f".{subject}.{make_token()}.part"
    try:
        folder.mkdir(exist_ok=True)
        _write_locked(draft, content)
        draft.rename(shard.path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    with contextlib.suppress(OSError):
        sync_folder(folder)  # so that the names of its files survive a power failure
    return shard


def name_shard(file: Path, subject: str) -> Path:
    """Give a finished file the name of a shard and return it."""
    return file.rename(file.with_name(_spell_name(subject, _digest_file(file))))


def _spell_name(subject: str, digest: str) -> str:
    return f"{subject}-{digest}.parquet"


def _digest_file(path: Path) -> str:
    """Return the digest of a file's bytes. Raise FileError if it is not a regular file, OSError if it cannot be
    read.
    """
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


def _write_locked(draft: Path, content: Any) -> None:
    """Write a file durably under a lock, which shows other processes that its writer is alive."""
    with draft.open("xb") as stream:
        with contextlib.suppress(OSError):  # a file system without locks
            try_lock_file(stream.fileno())
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def is_abandoned(part: Path, patience_s: float) -> bool:
    """Return whether nobody writes an unfinished file any more.

    A process on this machine locks the file that it writes. A process on another machine gets `patience_s` seconds
    after its last byte, because locks may not work across a shared file system.
    """
    try:
        with open_regular(part) as stream:
            if not try_lock_file(stream.fileno()):
                return False
    except (OSError, FileError):
        pass
    is_own = part.name.split(".")[2].startswith(f"{_host()}-")
    return is_own or time.time() - part.lstat().st_mtime >= patience_s


def make_token() -> str:
    """Return a text that no other writer of files has."""
    return f"{_host()}-{os.getpid()}-{os.urandom(4).hex()}"


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())[:20]
