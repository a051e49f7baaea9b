"""Rows of a record, and its file: compressed CSV that is the same byte for byte for the same rows.

Columns that many rows share come first, and rows are sorted, because equal beginnings take next to no space.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from joulemap.system import CatalogueError, FileError, read_bytes

DIGITS: Final = 3
"""Significant digits of a number in the file, as answers show them."""

MOST_BYTES: Final = 2_000_000
"""Maximum size of a record, which stays in the history of the project."""

MOST_TEXT: Final = 200_000_000

BATCH: Final = "batch"
"""Scope of a whole model's row: one batch. Scopes of language models are those of measurements."""

LOCAL: Final = "localscore"
"""Scope of a row with means over LocalScore's tests."""


class Predicted(NamedTuple):
    """Prediction of one configuration. A number that is not predicted is None, a word that does not apply empty."""

    scope: str
    hardware: str
    runtime: str
    engine: str
    precision: str
    """Precision of activations and GEMMs."""
    weight_precision: str
    """Storage format of weights; empty for that of the activations."""
    devices: int
    batch: int
    """Samples per batch, or requests in flight."""
    prompt_tokens: int | None
    output_tokens: int | None
    latency_factor: float | None
    """Factor from a value to either end of its 80 % interval."""
    ttft_factor: float | None
    tpot_factor: float | None
    energy_factor: float | None
    model: str
    latency_s: float | None
    interval_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    inference_j: float | None
    token_j: float | None


INTEGERS: Final = ("devices", "batch", "prompt_tokens", "output_tokens")
TEXTS: Final = ("scope", "hardware", "runtime", "engine", "precision", "weight_precision", "model")


def write_lines(rows: Iterable[Iterable[object]]) -> str:
    """Return rows of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def encode_rows(rows: Iterable[Predicted]) -> bytes:
    """Return the bytes of a record's file."""
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=9, mtime=0) as file:
        file.write(write_lines([Predicted._fields, *sorted(map(_write, rows))]).encode())
    return stream.getvalue()


def _write(row: Predicted) -> list[str]:
    return ["" if one is None else f"{one:.{DIGITS}g}" if isinstance(one, float) else str(one) for one in row]


def decode_rows(content: bytes, path: Path) -> Iterator[Predicted]:
    """Yield the rows in the bytes of a record's file; CatalogueError if it is damaged or has other columns."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            text = stream.read(MOST_TEXT).decode()
        reader = csv.reader(io.StringIO(text, newline=""))
        header = next(reader, [])
        if tuple(header) != Predicted._fields:
            raise CatalogueError(f"{path}: its columns are not those of a record: {', '.join(header[:5])} …")
        for cells in reader:
            if len(cells) != len(header):
                raise CatalogueError(f"{path}: the record is damaged: a row has {len(cells)} cells")
            yield Predicted(*map(_read, header, cells))
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
        raise CatalogueError(f"{path}: the record is damaged: {error}") from error


def count_rows(content: bytes) -> int:
    """Return the number of rows in the bytes of a record's file; 0 for bytes that are no record."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return max(stream.read(MOST_TEXT).count(b"\n") - 1, 0)
    except (OSError, EOFError, zlib.error):
        return 0


def _read(name: str, cell: str) -> Any:
    if name in TEXTS:
        return cell
    if not cell:
        return None
    return int(cell) if name in INTEGERS else float(cell)


def read_rows(path: Path) -> list[Predicted]:
    """Return the rows of a record's file; CatalogueError if it cannot be read."""
    try:
        content = read_bytes(path)
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    return list(decode_rows(content, path))


def find_factor(half_width: float | None) -> float | None:
    """Return the factor of an interval from the half-width of its logarithm; None without one."""
    return None if half_width is None or not math.isfinite(half_width) else math.exp(half_width)
