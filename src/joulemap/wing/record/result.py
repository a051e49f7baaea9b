"""Results that were published: configurations measured on a known day, from files of other tools or own tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joulemap.catalog import load_measurements, load_models, load_public_tables, read_measurements
from joulemap.domain import Measurement, find_date, is_operator, read_day
from joulemap.plan import known_hardware
from joulemap.system import CatalogueError, JoulemapError, UsageError, frozen
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify import Content, open_content, read_file, recognize

HARDWARE: Final = re.compile(r"\bhardware\b")
"""Pattern of the column that every table of measurements has."""

HEADER: Final = 1_000
"""Characters at the start of a table in which its columns are named."""

Row = Measurement | ServingRow


@frozen
class Result:
    """Measured configuration with its day; an unknown day is empty."""

    row: Row
    date: str
    """First day on which it may have been measured: a month or a year counts from its first day. What is no date
    stands here as written.
    """


def read_results(path: Path, stated: Mapping[str, Any], date: str, skip: Callable[[str], None]) -> list[Result]:
    """Return the results in a file of another tool, or in a table that `measurements import` takes.

    `stated` has what the file lacks, as for `verify`, and `date` the day of rows without one. `skip` gets a sentence on
    each run that cannot be used. Raises CatalogueError for a file of another format, UsageError or UnknownNameError if
    no run of it states what is needed, and UsageError for `stated` values with a table, whose columns have them.
    """
    content = open_content(path)
    try:
        recognize(content)
    except CatalogueError:
        rows = _read_table(content)
        if surplus := [f"--{name}" for name, value in stated.items() if value]:
            raise UsageError(
                f"{path}: the columns of a table state everything: leave out {', '.join(surplus)}"
            ) from None
        return [_make_result(row, date) for row in rows]
    return [_make_result(one.row, date) for one in read_file(path, stated, skip=skip)]


def _read_table(content: Content) -> list[Row]:
    """Return the measurements of an own table; CatalogueError for an invalid one, and for a file that is none."""
    try:
        rows: Sequence[Any] = read_measurements(content.path, known_hardware, load_models())
    except CatalogueError:
        if HARDWARE.search(content.text[:HEADER]):
            raise
        expected = "expected a file of a known tool, or a table with columns such as hardware and model"
        raise CatalogueError(f"{content.path}: {content.describe()}, {expected}") from None
    return [row for row in rows if isinstance(row, Measurement | ServingRow)]


def list_shipped() -> list[Result]:
    """Return the built-in measurements of whole models and of served ones, those of doubtful tables left out."""
    return [Result(row, read_day(find_date(row))) for row in _list_shipped()]


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
    stated = find_date(row) or date
    return Result(row, read_day(stated) or stated)
