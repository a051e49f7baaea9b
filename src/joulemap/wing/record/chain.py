"""Chain of records: the index names each record's file with its digest, and the digest of the line before.

    line n = date, file, SHA-256 of the file, SHA-256 of line n - 1, versions, rows

A record that was changed no longer has the digest of its line. A line that was changed, removed or added no longer has
the digest that the next line states. Nobody can slip in a prediction after the result that it predicts, unless
everybody who has a copy of the last line looks away.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain import read_day
from joulemap.system import CatalogueError, FileError, drafting, frozen, read_bytes, read_text, read_whole
from joulemap.wing.record.row import count_rows, write_lines

INDEX: Final = "index.csv"


@frozen
class Entry:
    """Line of the index: one record."""

    date: str
    """Date on which the record was made, in UTC."""
    file: str
    """Name of the file beside the index."""
    sha256: str
    """SHA-256 of the file."""
    previous: str
    """SHA-256 of the line before, without its line end; empty for the first record."""
    version: str
    """Version of joulemap that made the record."""
    formulas: str
    """Digest of all formulas, chips and error scales (`bundle/version.py`)."""
    servers: str
    """Digest of what turns passes of language models into served requests."""
    points: str
    """Digest of the fixed list of chips and settings."""
    row_count: int


COLUMNS: Final = tuple(field.name for field in attrs.fields(Entry))


@frozen
class Chain:
    """Records of a folder in the order of the index."""

    folder: Path
    entries: tuple[Entry, ...]
    faults: Mapping[str, str]
    """File of a record that may not be used -> sentence with the reason."""

    @property
    def usable(self) -> tuple[Entry, ...]:
        """Records whose file and place in the chain are as they were made."""
        return tuple(one for one in self.entries if one.file not in self.faults)

    def check_faults(self, before: str = "") -> None:
        """Raise CatalogueError with all faults if there are any, after the text `before`."""
        if self.faults:
            raise CatalogueError(f"{before}{'; '.join(self.faults.values())}")

    def find_before(self, date: str) -> Entry | None:
        """Return the newest usable record that is older than a date; None without one."""
        return max((one for one in self.usable if one.date < date), key=lambda one: one.date, default=None)


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def name_file(date: str) -> str:
    """Return the name of the file of a record."""
    return f"{date}.csv.gz"


def find_previous(entries: Sequence[Entry]) -> str:
    """Return what the next line states as `previous`."""
    return digest(write_lines([attrs.astuple(entries[-1])]).removesuffix("\n").encode()) if entries else ""


def read_chain(folder: Path) -> Chain:
    """Return the records of a folder, with the faults of those that may not be used; no records without an index.

    A file of a record without a line in the index is a fault too. Raises CatalogueError for an index that cannot be
    read.
    """
    path = folder / INDEX
    try:
        entries = [_read_line(line) for line in read_lines(path, COLUMNS)] if path.exists() else []
    except ValueError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    faults: dict[str, str] = {}
    for number, one in enumerate(entries):
        for file, fault in _find_faults(folder, entries[:number], one).items():
            faults.setdefault(file, f"{folder / file}: {fault}: this record is not used")
    for file in sorted({one.name for one in folder.glob(name_file("20*"))} - {one.file for one in entries}):
        faults[file] = f"{folder / file}: {INDEX} has no line for it: restore the line, or remove the file"
    return Chain(folder, tuple(entries), faults)


def read_lines(path: Path, columns: Sequence[str]) -> list[list[str]]:
    """Return the cells of each line of a table with these columns; CatalogueError for any other file."""
    try:
        header, *lines = list(csv.reader(io.StringIO(read_text(path), newline=""))) or [[]]
    except (FileError, csv.Error) as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    if tuple(header) != tuple(columns):
        raise CatalogueError(f"{path}: expected the columns {', '.join(columns)}")
    for number, line in enumerate(lines, start=2):
        if len(line) != len(columns):
            raise CatalogueError(f"{path}, line {number}: {len(line)} cells, expected {len(columns)}")
    return lines


def _read_line(cells: Sequence[str]) -> Entry:
    """Return the record of a line; ValueError if its number of rows is none."""
    date, file, sha256, previous, version, formulas, servers, points, count = cells
    return Entry(date, file, sha256, previous, version, formulas, servers, points, read_whole(count))


def _find_faults(folder: Path, before: Sequence[Entry], one: Entry) -> dict[str, str]:
    """Return file -> fault of a record after those before it; a broken link discredits both records that it joins."""
    if read_day(one.date) != one.date or one.file != name_file(one.date):
        return {one.file: f"its date {one.date!r} is no day, or not that of its name"}
    if one in before:
        return {one.file: f"{INDEX} has its line twice"}
    if before and one.date <= before[-1].date:
        return {one.file: f"its date {one.date} is not after that of the record before it, {before[-1].date}"}
    if one.previous != find_previous(before):
        other = before[-1].file if before else "another one"
        fault = f"the chain is broken between {other} and {one.file}"
        return {one.file: fault, **({before[-1].file: fault} if before else {})}
    try:
        content = read_bytes(folder / one.file)
    except FileError as error:
        return {one.file: f"cannot be read: {error}"}
    if digest(content) != one.sha256:
        return {one.file: "the file was changed after it was hashed"}
    count = count_rows(content)
    return {} if count == one.row_count else {one.file: f"it has {count:,} rows, and {INDEX} says {one.row_count:,}"}


def append_entry(chain: Chain, entry: Entry, content: bytes) -> None:
    """Write the file of a new record and its line in the index."""
    chain.folder.mkdir(parents=True, exist_ok=True)
    index = write_lines([COLUMNS, *map(attrs.astuple, (*chain.entries, entry))])
    for name, data in ((entry.file, content), (INDEX, index.encode())):
        replace_file(chain.folder / name, data)


def replace_file(path: Path, content: bytes) -> None:
    """Give a file another content at once."""
    with drafting(path.parent) as draft:
        (draft / path.name).write_bytes(content)
        (draft / path.name).replace(path)
