"""Files that people name: read up to a limit, and written without replacing what is not joulemap's.

A file that exists is replaced where nothing is lost with it: it is empty, or a calibration or Parquet file that says
itself who wrote it, or holds exactly what joulemap has written before. For the last, digests of what was written are
remembered in the cache folder; a file that was changed since is a person's own. Everything else asks for `force`. What
the command reads, and databases, are replaced in no case.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path
from typing import Final

from joulemap.system.cache import cache_folder
from joulemap.system.draft import drafting
from joulemap.system.errors import UsageError

MOST_BYTES: Final = 100_000_000
"""What is longer was not written by hand."""

COMPANIONS: Final = (".wal", ".journal")
"""What the name of a database ends with where a file belongs to it."""

MEMORY: Final = "written"
"""File in the cache folder: a line with a digest for each file written."""

MOST_MEMORY_BYTES: Final = 1_000_000

SOURCES: Final = frozenset({".toml", ".sql", ".py", ".csv", ".json", ".pt2"})
"""What is read from a folder that a command names."""

_CALIBRATION: Final = re.compile(rb"# Coefficients of \S+ fitted to measurements: `joulemap calibrate ")
_PARQUET: Final = b"PAR1"
_PARQUET_KEY: Final = b"\x18\x08joulemap"
"""A key of Parquet's metadata, as Thrift's compact protocol writes it."""


class FileError(Exception):
    """What is wrong with a file; who asked for it says which file it is."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what a file or an open pipe holds, to its end.

    Raises FileError where it cannot be read, is longer than `most`, or would never end: a device, or a pipe with a
    name, whose other end may never open.
    """
    try:
        with path.open("rb") if is_open_stream(path) else open_regular(path) as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise FileError(_reason(error)) from error
    if len(content) > most:
        raise FileError(f"too large: longer than {most:,} bytes")
    return content


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; FileError for a folder, a pipe or a device, which would never end, OSError.

    What was opened is looked at, not the name, which another process may give to something else meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise FileError("it is a folder" if stat.S_ISDIR(kind) else "it is no regular file")
    return os.fdopen(descriptor, "rb")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of a file; raises as `read_bytes`."""
    return decode(read_bytes(path, most))


def read_input(most: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of stdin, to its end; FileError where it is closed, longer than `most` or no text."""
    if sys.stdin is None:
        raise FileError("stdin is closed")
    content = sys.stdin.buffer.read(most + 1)
    if len(content) > most:
        raise FileError(f"too large: longer than {most:,} bytes")
    return decode(content)


def decode(content: bytes) -> str:
    """Return bytes as text with the line ends of this program; FileError where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise FileError("it is not UTF-8 text") from error


def is_open_stream(path: Path) -> bool:
    """Return whether a name means what this process has open: /dev/stdout, /dev/fd/63 or what stands for them."""
    place = Path(os.path.abspath(path))
    for _ in range(8):
        if re.fullmatch(r"/dev/fd|/proc/\d+(/task/\d+)?/fd", os.path.realpath(place.parent)):
            return True
        if not place.is_symlink():
            return False
        place = Path(os.path.abspath(place.parent / place.readlink()))
    return False


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.stat().st_mode)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def is_database(path: Path) -> bool:
    """Return whether a file is one of DuckDB or SQLite; False where there is none."""
    with contextlib.suppress(OSError, ValueError):
        if _is_file(path):
            with path.open("rb") as stream:
                head = stream.read(16)
            return head[8:12] == b"DUCK" or head == b"SQLite format 3\0"
    return False


def check_output(output: Path, inputs: Iterable[Path] = (), *, force: bool = False) -> None:
    """Raise UsageError where `write_file` would refuse, before anything is worked out.

    `inputs` are the files and folders that the command reads or writes beside it, whether or not they exist.
    """
    try:
        if is_open_stream(output):
            return
        place = Path(os.path.realpath(output))
        _check_inputs(output, place, inputs)
        try:
            mode = place.stat().st_mode
        except FileNotFoundError:
            if not place.parent.is_dir():
                raise UsageError(f"cannot write {output}: there is no folder {place.parent}") from None
            return
        if stat.S_ISDIR(mode):
            raise UsageError(f"cannot write {output}: it is a folder")
        if stat.S_ISREG(mode) and not force and not _is_ours(place):
            raise UsageError(
                f"{output} is there already and is not as joulemap wrote it: choose another file, or replace it with "
                "--force"
            )
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error


def _check_inputs(output: Path, place: Path, inputs: Iterable[Path]) -> None:
    owners = [place, *(place.with_name(place.name.removesuffix(end)) for end in COMPANIONS if place.suffix == end)]
    if any(map(is_database, owners)):
        raise UsageError(f"{output} is a database, or belongs to one: choose another file for the output")
    if any(_is_part(place, one) for one in inputs):
        raise UsageError(f"{output} is read or written by this command itself: choose another file for the output")


def _is_part(place: Path, one: Path) -> bool:
    """Return whether a file is another by any name, or data in a folder."""
    real = Path(os.path.realpath(one))
    if place == real:
        return True
    if not place.exists() or not os.path.exists(real):
        return False
    if real.is_dir():
        return place.is_relative_to(real) and place.suffix in SOURCES
    return os.path.samefile(place, real)


def _is_ours(place: Path) -> bool:
    """Return whether nothing is lost with a file; raises OSError."""
    size = place.stat().st_size
    if size == 0:
        return True
    with place.open("rb") as stream:
        head = stream.read(256)
        if _CALIBRATION.match(head):
            return True
        if head.startswith(_PARQUET) and size > 12:
            stream.seek(-8, os.SEEK_END)
            length, end = int.from_bytes(stream.read(4), "little"), stream.read(4)
            if end == _PARQUET and length + 12 <= size:
                stream.seek(-8 - length, os.SEEK_END)
                return _PARQUET_KEY in stream.read(length)
    return _digest(place) in _remembered()


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing; UsageError where they cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot make the folder {folder}: {_reason(error)}") from error


def write_text(output: Path, text: str, inputs: Iterable[Path] = (), *, force: bool = False) -> bool:
    """Write a text as `write_pieces` does."""
    return write_pieces(output, (text,), inputs, force=force)


def write_pieces(
    output: Path, pieces: Iterable[str | bytes], inputs: Iterable[Path] = (), *, force: bool = False
) -> bool:
    """Write a text or bytes piece by piece to a file, whole or not at all, or to the end of a pipe or device.

    Returns whether it is a file. Raises UsageError where the file may not be replaced, see `check_output`, or cannot be
    written, and what a piece raises.
    """
    if not is_stream(output):
        write_file(output, lambda draft: _write(draft, os.O_CREAT, pieces), inputs, force=force)
        return True
    try:
        _write(output, os.O_APPEND, pieces)
    except BrokenPipeError:
        return False
    except OSError as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error
    return False


MODE: Final = 0o666
"""What a new file may be used for, before the person's mask: never to run it."""


def _write(place: Path, flag: int, pieces: Iterable[str | bytes]) -> None:
    with open(os.open(place, os.O_WRONLY | flag, MODE), "wb") as stream:
        for piece in pieces:
            stream.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", errors="replace"))


def is_stream(output: Path) -> bool:
    """Return whether a rename would put a file in the place of a device, a pipe or what it stands for."""
    try:
        return is_open_stream(output) or not (_is_file(output) or output.is_dir())
    except (OSError, ValueError):
        return False


def write_file(
    output: Path, write: Callable[[Path], object], inputs: Iterable[Path] = (), *, force: bool = False
) -> None:
    """Let `write` write a file under another name, then give it its name, so that a half-written one is never seen.

    Where the name is a link, what it leads to is written. Raises as `write_text`.
    """
    if is_stream(output):
        raise UsageError(f"cannot write {output}: it is no file")
    inputs = tuple(inputs)
    check_output(output, inputs, force=force)
    place = Path(os.path.realpath(output)) if output.is_symlink() else output
    try:
        with drafting(place.parent) as folder:
            draft = folder / "output"
            write(draft)
            if place.exists():
                draft.chmod(stat.S_IMODE(place.stat().st_mode))
            _remember(_digest(draft))
            check_output(output, inputs, force=force)
            draft.replace(place)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remembered() -> frozenset[str]:
    """Return the digests of what was written; none where they cannot be read."""
    with contextlib.suppress(OSError, RuntimeError):
        return frozenset((cache_folder() / MEMORY).read_text(encoding="ascii", errors="replace").split())
    return frozenset()


def _remember(digest: str) -> None:
    """Note a digest; where that cannot be, replacing the file will ask for `force`."""
    with contextlib.suppress(OSError, RuntimeError):
        memory = cache_folder() / MEMORY
        memory.parent.mkdir(parents=True, exist_ok=True)
        if memory.exists() and memory.stat().st_size > MOST_MEMORY_BYTES:
            lines = memory.read_bytes().splitlines(keepends=True)
            draft = memory.with_name(f"{MEMORY}.{os.getpid()}")
            draft.write_bytes(b"".join(lines[len(lines) // 2 :]))
            draft.replace(memory)
        with memory.open("ab", buffering=0) as stream:
            stream.write(f"{digest}\n".encode())
