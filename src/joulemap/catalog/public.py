"""Public tables of measurements: what others measured and published, of single operators and of served models.

They are many rows that few people need, so no database holds them until `measurements import public:NAME` is asked for.
Each is a CSV file with the columns in which its rows differ, and a TOML beside it with what they share: source,
licence, conditions, what was left out and why, and which coefficients were chosen with them in view.
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
from joulemap.catalog.measurement import make_measurement
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import Measurement
from joulemap.domain.serving import ServingRow, read_serving_row
from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen

FOLDER: Final = DATA / "measurement" / "public"

PREFIX: Final = "public:"
"""What a public table's name begins with where a file is expected."""


@frozen(kw_only=True)
class PublicTable:
    """A table of measurements that ships, without its rows."""

    name: str
    title: str
    source: str
    licence: str
    runtime: str = ""
    """Empty for a table of served models, whose rows tell their own engines and scopes."""
    scope: str = ""
    conditions: str
    """What all of its rows depend on."""
    condition: Mapping[str, str] = attrs.field(factory=dict, converter=MappingProxyType)
    """Key in the column `condition`, or `source` of served models -> what else a row depends on."""
    left_out: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """What of the source is not in it, and why."""
    doubt: str = ""
    """Why its rows score no prediction; empty for those that do."""
    seen: Mapping[str, str] = attrs.field(factory=dict, converter=MappingProxyType)
    """Hardware, or source of served models -> the coefficients that were chosen with its rows in view."""

    @property
    def address(self) -> str:
        """What to write where a file is expected."""
        return PREFIX + self.name

    @property
    def is_served(self) -> bool:
        """Whether it is of language models as they are served."""
        return not self.runtime

    def read(self) -> tuple[Measurement, ...]:
        """Return the rows of a table of single runs."""
        return tuple(map(self._measurement, self._read_cells()))

    def read_served(self) -> tuple[ServingRow, ...]:
        """Return the rows of a table of served models."""
        rows = map(read_serving_row, self._read_cells())
        return tuple(
            attrs.evolve(
                row,
                seen=self.seen.get(row.source, ""),
                notes="; ".join(filter(None, (row.notes, self.condition.get(row.source, "")))),
            )
            for row in rows
        )

    def _read_cells(self) -> list[dict[str, str]]:
        with (FOLDER / f"{self.name}.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _measurement(self, row: Mapping[str, str]) -> Measurement:
        key = row.get("condition", "")
        told = f"{self.conditions}; {self.condition[key]}" if key else self.conditions
        shared = {"runtime": self.runtime, "scope": self.scope, "source": self.source, "conditions": told}
        seen = self.seen.get(HardwareRef.read(row["hardware"]).label, "")
        return make_measurement({"batch": "1", **row, **shared}, seen)


@cache
def load_public_tables() -> Mapping[str, PublicTable]:
    """Return name -> table, of all that ship."""
    return MappingProxyType({path.stem: _read_table(path) for path in sorted(FOLDER.glob("*.toml"))})


def _read_table(path: Path) -> PublicTable:
    return PublicTable(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))


def find_public_table(address: str) -> PublicTable | None:
    """Return the table of an address like `public:aic_gemm`, None for what is none.

    Raises UnknownNameError for one that does not exist.
    """
    if not address.startswith(PREFIX):
        return None
    tables, name = load_public_tables(), address.removeprefix(PREFIX)
    if name not in tables:
        raise UnknownNameError("public table", name, tables, f"public tables: {', '.join(tables)}")
    return tables[name]
