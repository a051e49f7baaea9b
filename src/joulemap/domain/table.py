"""Tables: rows with their columns and the SQL statement behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, cast

import attrs

from joulemap.system.frame import SHOWN, draw_html, draw_text, to_arrow, to_pandas, to_polars
from joulemap.system.record import frozen

HARDWARE_COLUMNS: Final = frozenset({
    "hardware", "winner", "runner_up", "previous_winner", "overtaker", "overtaken", "dominated_by", "hardware_a",
    "hardware_b", "best_hardware", "other_hardware",
})  # fmt: skip
"""Names of columns, in all queries, whose text begins with the id of a chip."""


@frozen(kw_only=True)
class Column:
    """Column of a query's result."""

    name: str
    type: str
    """DuckDB type."""
    null: bool | str = False
    """True if cells may be empty. If a text names a division of the query, they may be empty only in its rows."""
    of: str = ""
    """Divisions of the query, separated by commas, in whose rows the column is filled; empty for all."""
    values: str = ""
    """Name of the Python type with the valid texts; empty if any text is valid."""
    unit: str = ""
    meaning: str


Row = TypeVar("Row")


@frozen(kw_only=True, repr=False)
class Table(Generic[Row]):
    """Rows of one query: records of its row type, or tuples without one."""

    title: str
    """Query title: `topic.name@version`, or `sql`."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sql: str = ""
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    projected: frozenset[str] = frozenset()
    """Hardware in the rows that can be neither bought nor rented; tables mark it with `~`."""
    notes: tuple[str, ...] = ()
    """Notes on omitted rows, with the reasons."""

    def with_rows(self, rows: Iterable[Row]) -> Table[Row]:
        """Return the table with these rows in place of its own."""
        return attrs.evolve(self, rows=tuple(rows))

    def with_columns(self, columns: Sequence[Column], values: Iterable[Sequence[Any]]) -> Table[tuple[Any, ...]]:
        """Return the table with additional columns; `values` has their cells for each row."""
        return Table(
            title=self.title,
            columns=(*self.columns, *columns),
            rows=tuple((*cells, *added) for cells, added in zip(self.cells, values, strict=True)),
            sql=self.sql,
            parameters=self.parameters,
            projected=self.projected,
            notes=self.notes,
        )

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __repr__(self) -> str:
        return draw_text(self.title, self.names, self._first, len(self))

    def _repr_html_(self) -> str:
        """Render the first rows for a notebook."""
        return draw_html(self.title, self.names, self._first, len(self))

    def to_arrow(self) -> Any:
        """Convert to a `pyarrow.Table`; integers of more than 64 bits become decimals without places."""
        return to_arrow(self._heads, self.cells)

    def to_pandas(self) -> Any:
        """Convert to a `pandas.DataFrame` with exact integers; MissingPackageError without pandas."""
        return to_pandas(self._heads, self.cells)

    def to_polars(self) -> Any:
        """Convert to a `polars.DataFrame`; MissingPackageError without polars."""
        return to_polars(self._heads, self.cells)

    @property
    def _heads(self) -> list[tuple[str, str]]:
        return [(column.name, column.type) for column in self.columns]

    @property
    def _first(self) -> tuple[tuple[Any, ...], ...]:
        return self.with_rows(self.rows[:SHOWN]).cells

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(column.name for column in self.columns)

    @property
    def cells(self) -> tuple[tuple[Any, ...], ...]:
        """Values of each row, in column order."""
        if not self.rows or isinstance(self.rows[0], tuple):
            return cast("tuple[tuple[Any, ...], ...]", self.rows)
        if len(self.columns) == 1:
            return tuple((getattr(row, self.columns[0].name),) for row in self)
        return tuple(map(attrgetter(*self.names), self.rows))

    def records(self) -> list[dict[str, Any]]:
        """Return each row as a mapping from column name to value."""
        names = self.names
        return [dict(zip(names, cells, strict=True)) for cells in self.cells]
