"""Pack the large tables of measurements for a wheel; a build needs nothing but the standard library for it."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Final

SUFFIX: Final = ".xz"
"""Suffix that `store/template.py` and `catalog/public.py` expect."""

TABLES: Final = Path("src", "joulemap", "catalog", "data", "measurement", "public")
"""Folder of large tables, which a wheel has compressed."""

LZMA: Final = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0}]
"""Compression of the database and the tables. Their texts have no alignment (`pb`)."""


def pack(path: Path) -> Path:
    """Write a file compressed, beside it; return the path of the new file."""
    packed = Path(f"{path}{SUFFIX}")
    packed.write_bytes(lzma.compress(path.read_bytes(), filters=LZMA))
    return packed


def pack_tables(root: Path) -> tuple[Path, ...]:
    """Write each large table of a checkout a second time, compressed; return the new files."""
    return tuple(pack(path) for path in sorted((root / TABLES).glob("*.csv")))
