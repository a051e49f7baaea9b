"""Tables of measured language models: rows of users and built-in ones, as the core reads and stores them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog.measurement import FIGURES, check_columns, check_range, check_text, name_or_keep
from joulemap.domain.scope import SCOPES
from joulemap.physics import BOUNDARY_NAMES, MEASURED_AT
from joulemap.wing.llm.row import COLUMNS, IDLE, QUANTITIES, ServingRow, read_serving_row

if TYPE_CHECKING:
    from joulemap.domain import HardwareEntry
    from joulemap.store import Connection

NUMBER: Final = "serving_measurement_id"
"""Column of exported rows that is an id of one database, not data."""

SERVED_LENGTHS: Final = ("prompt_tokens", "output_tokens")
SERVED_SCOPES: Final = tuple(one.name for one in SCOPES if not one.is_pass)
"""Scopes of whole requests, which have a prompt and an answer."""

SERVED: Final = frozenset({"prompt_tokens", "output_tokens", *QUANTITIES}) - set(FIGURES)
"""Columns that identify a table of served language models."""


def check_measured(row: Mapping[str, Any], entries: Mapping[str, HardwareEntry]) -> ServingRow:
    """Parse cells into the measurement of a served model; ValueError, TypeError or UsageError if invalid."""
    return _check(row, lambda name: name_or_keep(name, entries))


def _check(row: Mapping[str, Any], name_hardware: Callable[[str], str]) -> ServingRow:
    check_columns(row, COLUMNS, NUMBER)
    cells = {
        name: "" if value is None else value if isinstance(value, str) else repr(value) for name, value in row.items()
    }
    for name, cell in cells.items():
        check_text(name, cell)
    serving_row = read_serving_row(cells)
    if not serving_row.measured():
        raise ValueError(f"none of {', '.join(QUANTITIES)} is given")
    _check_drawn(serving_row)
    for name in COLUMNS:
        value = getattr(serving_row, name)
        is_needed = name in SERVED_LENGTHS and serving_row.scope in SERVED_SCOPES
        if isinstance(value, int | float) and not isinstance(value, bool) and (value or is_needed):
            check_range(name, float(value))
    return attrs.evolve(serving_row, hardware=name_hardware(serving_row.hardware))


def _check_drawn(row: ServingRow) -> None:
    """Raise ValueError for energies of a served model without a boundary, and for an idle power without energies."""
    drawn = [name for name in row.measured() if name.endswith(("_j", "_w"))]
    if drawn and row.power_boundary not in MEASURED_AT:
        fault = (
            f"power_boundary is {row.power_boundary!r}" if row.power_boundary else f"{drawn[0]} has no power_boundary"
        )
        raise ValueError(f"{fault}, expected {', '.join(BOUNDARY_NAMES)}")
    if row.idle_power_w is not None and not any(name.endswith("_j") for name in drawn):
        raise ValueError(f"{IDLE} is given without an energy from which it was subtracted")


class ServingKind:
    """Measurements of served language models for the core."""

    record = ServingRow
    columns = COLUMNS

    def is_table(self, columns: Collection[str]) -> bool:
        """Return True for columns that only tables of served language models have."""
        return not SERVED.isdisjoint(columns)

    def check(self, row: Mapping[str, Any], name_hardware: Callable[[str], str]) -> ServingRow:
        """Return a row of a user's table; ValueError, TypeError or UsageError if it is invalid."""
        return _check(row, name_hardware)

    def read(self, cells: Mapping[str, str], seen: Mapping[str, str], conditions: Mapping[str, str]) -> ServingRow:
        """Return a row of a built-in table, with the coefficients fitted with it and further conditions."""
        row = read_serving_row(cells)
        notes = "; ".join(filter(None, (row.notes, conditions.get(row.source, ""))))
        return attrs.evolve(row, seen=seen.get(row.source, ""), notes=notes)

    def write(self, connection: Connection, rows: Sequence[ServingRow]) -> int:
        """Store rows that are not stored yet; return their number. The caller holds the transaction."""
        from joulemap.wing.llm.stored import write_serving_rows

        return write_serving_rows(connection, rows)


KIND: Final = ServingKind()
