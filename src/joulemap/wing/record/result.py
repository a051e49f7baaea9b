"""Results that were published: configurations measured on a known day, from files of other tools or own tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joulemap.catalog.measurement import load_measurements, read_measurements
from joulemap.catalog.public import load_public_tables
from joulemap.catalog.sheet import load_models
from joulemap.domain.measurement import Measurement
from joulemap.domain.operator.name import is_operator
from joulemap.plan.catalogue import known_hardware
from joulemap.system.errors import CatalogueError, JoulemapError
from joulemap.system.record import frozen
from joulemap.wing.llm.row import ServingRow
from joulemap.wing.verify.answer.file import read_file
from joulemap.wing.verify.measured import open_content, recognize

MEASURED_ON: Final = re.compile(r"\bmeasured on (20\d\d-[01]\d-[0-3]\d)\b")
"""Pattern of the day in the conditions of a single run, which has no column for it; `share` writes it."""

DAY: Final = re.compile(r"(20\d\d)(?:-([01]\d))?(?:-([0-3]\d))?")

Row = Measurement | ServingRow


@frozen
class Result:
    """Measured configuration with its day; an unknown day is empty."""

    row: Row
    date: str
    """First day on which it may have been measured: a month or a year counts from its first day."""


def read_results(path: Path, stated: Mapping[str, Any], date: str, skip: Callable[[str], None]) -> list[Result]:
    """Return the results in a file of another tool, or in a table that `measurements import` takes.

    `stated` has what the file lacks, as for `verify`, and `date` the day of rows without one. `skip` gets a sentence on
    each run that cannot be used. Raises CatalogueError for a file of another format, UsageError or UnknownNameError if
    no run of it states what is needed.
    """
    try:
        recognize(open_content(path))
    except CatalogueError:
        try:
            rows: Sequence[Any] = read_measurements(path, known_hardware, load_models())
        except CatalogueError as error:
            raise CatalogueError(
                f"{path}: neither a file of a known tool nor a table of measurements: {error}"
            ) from error
        return [_make_result(row, date) for row in rows if isinstance(row, Measurement | ServingRow)]
    return [_make_result(one.row, date) for one in read_file(path, stated, skip=skip)]


def list_shipped() -> list[Result]:
    """Return the built-in measurements of whole models and of served ones, those of doubtful tables left out."""
    return [_make_result(row, "") for row in _list_shipped()]


def _list_shipped() -> Iterator[Row]:
    yield from (row for row in load_measurements() if not is_operator(row.model))
    for table in load_public_tables().values():
        if table.doubt:
            continue
        try:
            rows = table.read_rows()
        except JoulemapError:  # of a wing that is not installed
            continue
        for row in rows:
            if isinstance(row, ServingRow) or (isinstance(row, Measurement) and not is_operator(row.model)):
                yield row


def _make_result(row: Row, date: str) -> Result:
    if isinstance(row, ServingRow):
        return Result(row, read_day(row.date) or date)
    stated = MEASURED_ON.search(row.conditions)
    return Result(row, stated[1] if stated else date)


def read_day(text: str) -> str:
    """Return the first day that a date, a month or a year may mean; empty for any other text."""
    match = DAY.fullmatch(text.strip())
    if match is None:
        return ""
    year, month, day = match.groups()
    return f"{year}-{month or '01'}-{day or '01'}"
