"""Measurements of one's own machine as the one file that a project would merge.

    stored rows or a tool's file ─► day, machine, software and power stated ─► limits checked ─► CSV ─► read back

The table has the columns of `measurements import`, is read back as an import would, and is sent nowhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.catalog import load_measurements, load_models, load_public_tables, read_measurements
from joulemap.catalog.measurement import KNOWN
from joulemap.domain import Measurement, check_day, find_date
from joulemap.plan import Source, known_hardware, reading_if_there
from joulemap.store.measurement import read_measurements as read_stored
from joulemap.system import NoMeasurementError, UsageError, frozen
from joulemap.wing.llm.serve import COLUMNS, ServingRow, read_serving_rows
from joulemap.wing.record.result import Row
from joulemap.wing.record.row import write_lines
from joulemap.wing.verify import describe_condition, find_impossible, read_file

NO_POWER: Final = "none"
"""Statement that neither energy nor power was measured."""

LEFT_OUT: Final = ("seen",)
"""Columns that a project fills in, not the person who measured."""


@frozen(kw_only=True)
class Statement:
    """Statements of the person who measured, about all rows."""

    power: str
    """Instrument or counter that power was read with, and what it covers; `none` if no power was measured."""
    machine: str
    """Machine: host, cooling, power limits; empty if the rows state it."""
    software: str
    """Versions of driver, framework and engine; empty if the rows state them."""
    date: str
    """Day of rows that have none."""
    person: str
    """Source of the rows: a name, or an address of the log; empty to keep that of the rows."""


def share_measurements(
    source: Source,
    files: Sequence[Path],
    facts: Mapping[str, Any],
    statement: Statement,
    *,
    served: bool = False,
    note: Callable[[str], None] | None = None,
) -> str:
    """Return the table of the measurements in files of other tools, or of those stored in a database, as CSV.

    Stored rows are those of `measure` and of `verify --keep`; `served` chooses those of language models. `note` gets a
    sentence on runs of a file that are left out because they lack a number. Raises UsageError for a statement that is
    missing, for a date that no calendar has or that has not come, for numbers that the hardware cannot reach, and for
    rows of two kinds; NoMeasurementError if the database has no own rows.
    """
    if not statement.power.strip():
        raise UsageError("state how power was read: --power 'NVML energy counter, board', or --power none without any")
    if statement.date:
        check_day("--date", statement.date, is_whole=True)
    rows = _read(files, facts, note) if files else _list_own(source, served=served)
    if len({type(row) for row in rows}) > 1:
        raise UsageError("the files have single runs and served models, which are tables of their own: share one kind")
    stated = [_state(row, statement) for row in rows]
    for row in stated:
        for name, reason in find_impossible(source, row).items():
            raise UsageError(f"{row.model} on {row.hardware}: {name} is impossible: {reason.text}")
    text = _write(stated)
    _read_back(text)
    return text


def _read(files: Sequence[Path], facts: Mapping[str, Any], note: Callable[[str], None] | None) -> list[Row]:
    readings = [one for path in files for one in read_file(path, facts)]
    for finding in (finding for one in readings for finding in one.findings):
        if note is not None and finding.kind == "left_out":
            note(describe_condition(finding.kind, finding.values))
    if assumed := sorted({name for one in readings for name in one.assumed}):
        raise UsageError(f"the file does not state {', '.join(assumed)}: state it with the options of `verify`")
    return [one.row for one in readings]


def _list_own(source: Source, *, served: bool) -> list[Row]:
    """Return the rows of a database that do not ship with joulemap."""
    with reading_if_there(source) as connection:
        if connection is None:
            raise NoMeasurementError(f"{source.path} does not exist: measure first, e.g. `joulemap measure resnet50`")
        stored: list[Row] = [*(read_serving_rows(connection).values() if served else read_stored(connection))]
    shipped: set[object] = set(load_measurements())
    for table in load_public_tables().values():
        if not table.is_single or not served:
            shipped |= set(table.read_rows())
    own = [row for row in stored if row not in shipped]
    if not own:
        hint = "`joulemap verify FILE --keep`" if served else "`joulemap measure resnet50`, or add --served"
        raise NoMeasurementError(f"{source.path} has no measurements of your own: {hint}")
    return own


def _state(row: Row, statement: Statement) -> Row:
    """Return a row with what was stated; UsageError if the day, the machine, the software or the power is missing."""
    name = f"{row.model} on {row.hardware}"
    told = row.notes if isinstance(row, ServingRow) else row.conditions
    own = find_date(row)
    date = own or statement.date
    if own:
        check_day(f"{name}: date", own)
    is_measured_here = row.source.startswith("joulemap measure on")
    for missing, option, example in (
        (not date, "--date", "2026-05-17"),
        (not statement.machine and not is_measured_here, "--machine", "'RTX 4090 at 450 W, Ryzen 9 7950X'"),
        (not statement.software and not is_measured_here, "--software", "'driver 580, CUDA 13, vLLM 0.20'"),
        (not statement.person and not is_measured_here, "--person", "'J. Doe, https://example.org/log'"),
    ):
        if missing:
            raise UsageError(f"{name}: add {option}, e.g. {option} {example}")
    has_power = any(getattr(row, one, None) is not None for one in _list_drawn(row))
    if has_power and statement.power == NO_POWER:
        raise UsageError(f"{name} has power or energy: --power must say how it was read")
    parts = [
        "" if isinstance(row, ServingRow) or own else f"measured on {date}",
        statement.machine,
        statement.software,
        f"power: {statement.power}" if has_power else "",
        told if told != "not given" else "",
    ]
    conditions = "; ".join(filter(None, parts))
    origin = statement.person or row.source
    if isinstance(row, ServingRow):
        return attrs.evolve(row, source=origin, date=date, notes=conditions)
    return attrs.evolve(row, source=origin, conditions=conditions)


def _list_drawn(row: Row) -> Sequence[str]:
    return [name for name in attrs.fields_dict(type(row)) if name.endswith(("_j", "_w")) and name != "idle_power_w"]


def _write(rows: Sequence[Row]) -> str:
    """Return rows as CSV, with the columns that any of them has."""
    known = COLUMNS if isinstance(rows[0], ServingRow) else KNOWN
    cells = [{name: getattr(row, name) for name in known if name not in LEFT_OUT} for row in rows]
    used = [name for name in known if any(one.get(name) not in (None, "") for one in cells)]
    return write_lines([used, *([_show(one[name]) for name in used] for one in cells)])


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _read_back(text: str) -> None:
    """Read a table as an import does; CatalogueError if it would be refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shared.csv")
        path.write_text(text, encoding="utf-8")
        rows = read_measurements(path, known_hardware, load_models())
    assert all(isinstance(row, Measurement | ServingRow) for row in rows)
