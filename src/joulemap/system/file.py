"""Read the user's files up to a size limit, and write files without replacing other programs' files.

An existing file is replaced if nothing of value is lost. Such a file is empty, is a calibration or Parquet file marked
as joulemap's, or has exactly the content that joulemap wrote. Digests in the cache folder record written content, so
that a file that the user changed counts as the user's. Any other file, databases and inputs of the command are never
replaced.
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
from typing import Any, Final

from joulemap.system.cache import cache_folder
from joulemap.system.draft import drafting
from joulemap.system.errors import UsageError
from joulemap.system.handle import BINARY, UNBLOCKED, open_descriptor

MOST_BYTES: Final = 100_000_000
"""Maximum bytes of a file that a user may have written."""

COMPANIONS: Final = (".wal", ".journal")
"""Suffixes of files that belong to a database."""

MEMORY: Final = "written"
"""Name of the file in the cache folder that has a digest line for each written file."""

MOST_MEMORY_BYTES: Final = 1_000_000

SOURCES: Final = frozenset({".toml", ".sql", ".py", ".csv", ".json", ".pt2"})
"""Suffixes of files that a command reads from a folder."""

_CALIBRATION: Final = re.compile(rb"# Coefficients of \S+ fitted to measurements: `joulemap calibrate ")
_PARQUET: Final = b"PAR1"
_PARQUET_KEY: Final = b"\x18\x08joulemap"
"""Key in Parquet metadata, as encoded by Thrift's compact protocol."""


class FileError(Exception):
    """Fault of a file; the caller adds the file's name to the text."""


def is_there(path: str | Path) -> bool:
    """Return True if a file exists; False for a text that cannot be a path."""
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file or an open pipe.

    Raises FileError for a file that cannot be read, is longer than `most`, or would never end. Devices and named pipes
    would never end, because the other end of a pipe may never open.
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
    """Open a regular file for reading; FileError for a folder, a pipe or a device, else OSError.

    The check uses the open file, because another process may give its name to something else meanwhile.
    """
    descriptor = open_descriptor(path, UNBLOCKED)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise FileError("it is a folder" if stat.S_ISDIR(kind) else "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of a file; raises like `read_bytes`."""
    return decode(read_bytes(path, most))


def read_input(most: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of stdin; FileError if stdin is closed, longer than `most` or not text."""
    if sys.stdin is None:
        raise FileError("stdin is closed")
    content = sys.stdin.buffer.read(most + 1)
    if len(content) > most:
        raise FileError(f"too large: longer than {most:,} bytes")
    return decode(content)


def decode(content: bytes) -> str:
    """Decode bytes as text with newline line ends; FileError if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise FileError("it is not UTF-8 text") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML that a person wrote. Raise ValueError if it is invalid or nested too deeply."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_open_stream(path: Path) -> bool:
    """Return True if a name is an open stream of this process: /dev/stdout, /dev/fd/63 or a link to one."""
    location = Path(os.path.abspath(path))
    for _ in range(8):
        if re.fullmatch(r"/dev/fd|/proc/\d+(/task/\d+)?/fd", os.path.realpath(location.parent)):
            return True
        if not location.is_symlink():
            return False
        location = Path(os.path.abspath(location.parent / location.readlink()))
    return False


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.stat().st_mode)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def is_database(path: Path) -> bool:
    """Return True if a file is a database of DuckDB or SQLite; False if it does not exist."""
    with contextlib.suppress(OSError, ValueError):
        if _is_file(path):
            with path.open("rb") as stream:
                head = stream.read(16)
            return head[8:12] == b"DUCK" or head == b"SQLite format 3\0"
    return False


def check_output(output: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise the UsageError that `write_file` would raise, before any work is done.

    `inputs` are the files and folders that the command reads or writes besides the output; they need not exist.
    """
    try:
        if is_open_stream(output):
            return
        path = Path(os.path.realpath(output))
        _check_inputs(output, path, inputs)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise UsageError(f"cannot write {output}: there is no folder {path.parent}") from None
            return
        if stat.S_ISDIR(mode):
            raise UsageError(f"cannot write {output}: it is a folder")
        if stat.S_ISREG(mode) and not _is_ours(path):
            raise UsageError(
                f"{output} exists, and joulemap did not write it as it is now: choose another file, or remove it first"
            )
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error


def _check_inputs(output: Path, path: Path, inputs: Iterable[Path]) -> None:
    owners = [path, *(path.with_name(path.name.removesuffix(end)) for end in COMPANIONS if path.suffix == end)]
    if any(map(is_database, owners)):
        raise UsageError(f"{output} is a database, or belongs to one: choose another file for the output")
    if any(_is_part(path, one) for one in inputs):
        raise UsageError(f"{output} is read or written by this command itself: choose another file for the output")


def _is_part(path: Path, one: Path) -> bool:
    """Return True if `one` is the same file as `place`, or a folder that has `place` as a data file."""
    real = Path(os.path.realpath(one))
    if path == real:
        return True
    if not path.exists() or not os.path.exists(real):
        return False
    if real.is_dir():
        return path.is_relative_to(real) and path.suffix in SOURCES
    return os.path.samefile(path, real)


def _is_ours(path: Path) -> bool:
    """Return True if a file may be replaced without loss; raises OSError."""
    size = path.stat().st_size
    if size == 0:
        return True
    with path.open("rb") as stream:
        head = stream.read(256)
        if _CALIBRATION.match(head):
            return True
        if head.startswith(_PARQUET) and size > 12:
            stream.seek(-8, os.SEEK_END)
            length, end = int.from_bytes(stream.read(4), "little"), stream.read(4)
            if end == _PARQUET and length + 12 <= size:
                stream.seek(-8 - length, os.SEEK_END)
                return _PARQUET_KEY in stream.read(length)
    return _digest(path) in _remembered()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; UsageError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot make the folder {folder}: {_reason(error)}") from error


def write_text(output: Path, text: str, inputs: Iterable[Path] = ()) -> bool:
    """Write a text as `write_pieces` does."""
    return write_pieces(output, (text,), inputs)


def write_pieces(output: Path, pieces: Iterable[str | bytes], inputs: Iterable[Path] = ()) -> bool:
    """Write text or bytes piece by piece, atomically to a file, or appended to a pipe or device.

    Returns True for a file. Raises UsageError if the file cannot be written or may not be replaced (see
    `check_output`), and any error of the pieces.
    """
    if not is_stream(output):
        write_file(output, lambda draft: _write(draft, os.O_CREAT, pieces), inputs)
        return True
    try:
        _write(output, os.O_APPEND, pieces)
    except BrokenPipeError:
        return False
    except OSError as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error
    return False


MODE: Final = 0o666
"""Permissions of a new file before the user's mask; never executable."""


def _write(path: Path, flag: int, pieces: Iterable[str | bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | flag | BINARY, MODE), "wb") as stream:
        for piece in pieces:
            stream.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", errors="replace"))


def is_stream(output: Path) -> bool:
    """Return True if the output is a device, a pipe or an open stream, which a rename would replace."""
    try:
        return is_open_stream(output) or not (_is_file(output) or output.is_dir())
    except (OSError, ValueError):
        return False


def write_file(output: Path, write: Callable[[Path], object], inputs: Iterable[Path] = ()) -> None:
    """Call `write` with a temporary name, then rename the file, so that no partial file is ever visible.

    A link is followed to its target. Raises like `write_text`.
    """
    if is_stream(output):
        raise UsageError(f"cannot write {output}: it is not a file")
    inputs = tuple(inputs)
    check_output(output, inputs)
    path = Path(os.path.realpath(output)) if output.is_symlink() else output
    try:
        with drafting(path.parent) as folder:
            draft = folder / "output"
            write(draft)
            if path.exists():
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
            _remember(_digest(draft))
            check_output(output, inputs)
            draft.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {_reason(error)}") from error


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remembered() -> frozenset[str]:
    """Return the digests of written files; none if they cannot be read."""
    with contextlib.suppress(OSError, RuntimeError):
        return frozenset((cache_folder() / MEMORY).read_text(encoding="ascii", errors="replace").split())
    return frozenset()


def _remember(digest: str) -> None:
    """Record a digest; if that fails, the file counts as the user's."""
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
