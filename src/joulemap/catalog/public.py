"""Public tables: published measurements of single operators, and of kinds that wings read.

They have many rows that few users need, so a database holds none of them before `measurements import public:NAME`. Each
table is a CSV file of the columns in which its rows differ. A TOML file next to it holds what the rows share: source,
licence, conditions, omissions with reasons, and the coefficients fitted with them.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.catalog.measurement import MeasuredRow, list_kinds, make_measurement
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import Measurement
from joulemap.system.errors import UnknownNameError, UnsupportedError
from joulemap.system.record import frozen

FOLDER: Final = DATA / "measurement" / "public"

PREFIX: Final = "public:"
"""Prefix of a public table's name where a file is expected."""


@frozen(kw_only=True)
class PublicTable:
    """Built-in table of measurements, without its rows."""

    name: str
    title: str
    source: str
    licence: str
    runtime: str = ""
    """Runtime; empty for a table of a wing's kind, whose rows state their own conditions."""
    scope: str = ""
    boundary: str = ""
    """Boundary of energies and powers; empty if the scope is the name of a boundary."""
    matmul_precision: str = ""
    """Setting of the library for products at fp32; empty for the default, or if rows state their own."""
    conditions: str
    """Measurement conditions that all rows share."""
    condition: Mapping[str, str] = attrs.field(factory=dict, converter=MappingProxyType)
    """Key in the column `condition`, or `source` in a wing's kind -> further conditions of a row."""
    left_out: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Parts of the source that were omitted, with reasons."""
    holds_energy: bool = False
    """True if rows have energies or powers."""
    doubt: str = ""
    """Reason why the rows are not used to score predictions; empty if they are."""
    seen: Mapping[str, str] = attrs.field(factory=dict, converter=MappingProxyType)
    """Hardware, or source in a wing's kind -> coefficients fitted with its rows."""

    @property
    def address(self) -> str:
        """Argument that selects the table in place of a file: `public:NAME`."""
        return PREFIX + self.name

    @property
    def has_energy(self) -> bool:
        """True if the table has measured energies that score predictions."""
        return self.holds_energy and not self.doubt

    def keys(self) -> set[tuple[str, str, str, float]]:
        """Return the source, hardware, model and batch of each row."""
        return {
            (row.get("source") or self.source, row["hardware"], row["model"], float(row.get("batch") or 1.0))
            for row in self._read_cells()
        }

    @property
    def is_single(self) -> bool:
        """True for a table of single runs, which the core reads."""
        return bool(self.runtime)

    def count_rows(self) -> int:
        """Return the number of rows without building them."""
        return len(self._read_cells())

    def read(self) -> tuple[Measurement, ...]:
        """Read the rows of a table of single runs."""
        return tuple(map(self._measurement, self._read_cells()))

    def read_rows(self) -> tuple[MeasuredRow, ...]:
        """Read the rows of a table of any kind; UnsupportedError if the wing that reads it is not installed."""
        if self.is_single:
            return self.read()
        cells = self._read_cells()
        kind = next((one for one in list_kinds() if one.is_table(cells[0])), None)
        if kind is None:
            raise UnsupportedError(f"the wing that reads {self.address} is not installed")
        return tuple(kind.read(row, self.seen, self.condition) for row in cells)

    def _read_cells(self) -> list[dict[str, str]]:
        path = FOLDER / f"{self.name}.csv"
        if path.exists():
            return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        import lzma

        packed = lzma.decompress(path.with_suffix(".csv.xz").read_bytes())  # columns, as `make wheel` packs them
        names, *rows = zip(*csv.reader(packed.decode().splitlines()), strict=True)
        return [dict(zip(names, cells, strict=True)) for cells in rows]

    def _measurement(self, row: Mapping[str, str]) -> Measurement:
        key = row.get("condition", "")
        conditions = f"{self.conditions}; {self.condition[key]}" if key else self.conditions
        shared = {
            **({"matmul_precision": self.matmul_precision} if self.matmul_precision else {}),
            "runtime": self.runtime,
            "scope": self.scope,
            "boundary": self.boundary,
            "source": self.source,
            "conditions": conditions,
        }
        seen = self.seen.get(HardwareRef.read(row["hardware"]).label, "")
        return make_measurement({"batch": "1", **row, **shared}, seen)


@cache
def load_public_tables() -> Mapping[str, PublicTable]:
    """Return name -> table for all public tables."""
    return MappingProxyType({path.stem: _read_table(path) for path in sorted(FOLDER.glob("*.toml"))})


def _read_table(path: Path) -> PublicTable:
    return PublicTable(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))


def find_public_table(address: str) -> PublicTable | None:
    """Return the table of an address like `public:aic_gemm`; None for any other text.

    Raises UnknownNameError for a table that does not exist.
    """
    if not address.startswith(PREFIX):
        return None
    tables, name = load_public_tables(), address.removeprefix(PREFIX)
    if name not in tables:
        raise UnknownNameError("public table", name, tables, f"public tables: {', '.join(tables)}")
    return tables[name]
