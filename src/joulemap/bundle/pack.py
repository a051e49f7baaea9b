"""Packed files: named sections of columns, each compressed by itself, so that a reader decodes only what it needs.

    magic ─ length of the index ─ index: name, place and length of each section ─ sections

A section is one stream of xz: a description of its columns, then their texts, then their numbers. A column of integers
has the narrowest type that holds all its values. Codes of texts are written byte by byte in planes, because their high
bytes are mostly 0; other numbers repeat as wholes. Both habits save about a tenth. A section may also be a stream of
zlib, for Python in a browser, which has no xz.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.system.errors import CatalogueError
from joulemap.system.record import frozen

MAGIC: Final = b"joulemap pack 1\n"
"""First bytes of a packed file, with the version of its format."""

SEPARATOR: Final = "\x1f"
"""Character between the texts of a column, which no text contains."""

XZ: Final = b"\xfd7zXZ\x00"
"""First bytes of a stream of xz."""


ABSENT: Final = -1
"""Code of a missing text."""


@frozen(kw_only=True)
class Texts:
    """Column of texts: the index of each row's text, and the distinct texts."""

    codes: NDArray[Any]
    """Index in `texts` of each row, in any type of integers; `ABSENT` for a missing text."""
    texts: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def take(self, rows: slice) -> Texts:
        """Return some rows; the distinct texts stay."""
        return Texts(codes=self.codes[rows], texts=self.texts)

    def list(self) -> list[str | None]:
        """Return the text of each row."""
        texts = (*self.texts, None)  # where ABSENT points
        return [texts[code] for code in self.codes.tolist()]


Column = NDArray[Any] | Texts
"""Column of a section: numbers, where a masked array has missing ones, or texts."""

Section = Mapping[str, Column]


def as_texts(column: Column) -> Texts:
    """Return a column that must have texts."""
    assert isinstance(column, Texts)
    return column


def as_numbers(column: Column) -> NDArray[Any]:
    """Return a column that must have numbers."""
    assert not isinstance(column, Texts)
    return column


def join_texts(columns: Sequence[Texts]) -> Texts:
    """Return columns of texts one after another, without texts that none of their rows has."""
    texts: list[str] = []
    codes = []
    for column in columns:
        used, each = np.unique(column.codes, return_inverse=True)
        missing = int(len(used) > 0 and used[0] == ABSENT)  # the lowest code
        codes.append(np.where(each < missing, ABSENT, each - missing + len(texts)))
        texts += [column.texts[code] for code in used[missing:].tolist()]
    return Texts(codes=np.concatenate(codes), texts=tuple(texts))


def pack_for_browser(path: Path, keeps: Callable[[str], bool]) -> bytes:
    """Return the content of a file with the sections that `keeps` names, as streams of zlib; raises like `Pack`."""
    pack = Pack(path)
    return join_sections({name: zlib.compress(pack.expand(name), 9) for name in pack.names if keeps(name)})


def join_sections(packed: Mapping[str, bytes]) -> bytes:
    """Return the content of a file with compressed sections."""
    lengths = [(name, len(content)) for name, content in packed.items()]
    index = json.dumps(lengths, separators=(",", ":")).encode()
    return MAGIC + len(index).to_bytes(4, "little") + index + b"".join(packed.values())


class Pack:
    """Packed file that is open for reading."""

    def __init__(self, path: Path) -> None:
        """Read the index of a file. Raises CatalogueError for a file that is missing, damaged or of another format."""
        self.path = path
        try:
            with path.open("rb") as file:
                if (magic := file.read(len(MAGIC))) != MAGIC:
                    what = "of another format" if magic.startswith(MAGIC[:13]) else "not a packed file"
                    raise CatalogueError(f"{path.name} is {what}: install joulemap again")
                length = int.from_bytes(file.read(4), "little")
                index = json.loads(file.read(length))
        except (OSError, ValueError) as error:
            raise CatalogueError(f"{path.name} cannot be read ({error}): install joulemap again") from error
        self._places: dict[str, tuple[int, int]] = {}
        start = len(MAGIC) + 4 + length
        for name, size in index:
            self._places[name] = start, size
            start += size

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sections."""
        return tuple(self._places)

    def read(self, name: str) -> dict[str, Column]:
        """Return the columns of a section; KeyError for an unknown name, CatalogueError if it is damaged."""
        raw = self.expand(name)
        try:
            return _unpack(raw)
        except ValueError as error:
            raise self._refuse(error) from error

    def expand(self, name: str) -> bytes:
        """Return the bytes of a section; raises like `read`."""
        start, size = self._places[name]
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return _expand(file.read(size))
        except (OSError, ValueError) as error:
            raise self._refuse(error) from error

    def _refuse(self, error: Exception) -> CatalogueError:
        return CatalogueError(f"{self.path.name} is damaged ({error}): install joulemap again")


def _expand(stream: bytes) -> bytes:
    """Return the bytes of a stream of xz or zlib; ValueError if it is damaged."""
    if stream.startswith(XZ):
        import lzma

        try:
            return lzma.decompress(stream)
        except lzma.LZMAError as error:
            raise ValueError(str(error)) from error
    try:
        return zlib.decompress(stream)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _unpack(raw: bytes) -> dict[str, Column]:
    length = int.from_bytes(raw[:4], "little")
    head: Sequence[tuple[str, str, str, int, int]] = json.loads(raw[4 : 4 + length])
    start = 4 + length
    texts: dict[str, tuple[str, ...]] = {}
    for name, kind, _, _, size in head:
        if kind == "text":
            texts[name] = tuple(raw[start : start + size].decode().split(SEPARATOR)) if size else ("",)
            start += size
    columns: dict[str, Column] = {}
    for name, kind, form, count, _ in head:
        width = np.dtype(form).itemsize
        data = np.frombuffer(raw, np.uint8, count * width, start)
        start += count * width
        planes = data.reshape(width, count).T if kind == "text" else data
        array = np.ascontiguousarray(planes).view(form).reshape(count)
        columns[name] = array
        if kind == "text":
            columns[name] = Texts(codes=array, texts=texts[name])
        elif kind == "truth":
            columns[name] = array.astype(bool)
        elif kind == "masked":
            size = -(-count // 8)
            mask = np.unpackbits(np.frombuffer(raw, np.uint8, size, start), count=count).astype(bool)
            columns[name] = np.ma.MaskedArray(array, mask=mask)
            start += size
    return columns
