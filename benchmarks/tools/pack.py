"""Pack the large tables of measurements for a wheel; a build needs nothing but the standard library for it."""

from __future__ import annotations

import csv
import io
import lzma
from pathlib import Path
from typing import Final

SUFFIX: Final = ".xz"
"""Suffix that `store/template.py` and `catalog/public.py` expect."""

TABLES: Final = Path("src", "joulemap", "catalog", "data", "measurement", "public")
"""Folder of large tables, which a wheel has compressed."""

LZMA: Final = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0}]
"""Compression of the database and the tables. Their texts have no alignment (`pb`)."""


def pack(path: Path, content: bytes | None = None) -> Path:
    """Write a file, or other content in its place, compressed, beside it; return the path of the new file."""
    packed = Path(f"{path}{SUFFIX}")
    packed.write_bytes(lzma.compress(path.read_bytes() if content is None else content, filters=LZMA))
    return packed


def pack_tables(root: Path) -> tuple[Path, ...]:
    """Write each large table of a checkout a second time, compressed; return the new files.

    Its columns are lines there: equal cells that follow each other make a file a sixth smaller.
    """
    return tuple(pack(path, _turn(path)) for path in sorted((root / TABLES).glob("*.csv")))


def _turn(path: Path) -> bytes:
    """Return the columns of a table as lines."""
    turned = io.StringIO()
    rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    csv.writer(turned, lineterminator="\n").writerows(zip(*rows, strict=True))
    return turned.getvalue().encode()
