"""Rows with their columns, and the statement that gave them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, cast

import attrs

from joulemap.system.frame import SHOWN, draw_html, draw_text, to_arrow, to_pandas, to_polars
from joulemap.system.record import frozen

HARDWARE_COLUMNS: Final = frozenset({
    "hardware", "winner", "runner_up", "previous_winner", "overtaker", "overtaken", "dominated_by", "hardware_a",
    "hardware_b", "best_hardware", "other_hardware",
})  # fmt: skip
"""Columns whose text begins with a hardware, in every query."""


@frozen(kw_only=True)
class Column:
    """One column of a query's answer."""

    name: str
    type: str
    """DuckDB type."""
    null: bool | str = False
    """Whether a cell may be empty; of a cube, the rows among which some are where that is said."""
    of: str = ""
    """The divisions of a cube that have it: of any other, its cells are empty."""
    values: str = ""
    """The type that lists what its texts may be."""
    unit: str = ""
    meaning: str


Row = TypeVar("Row")


@frozen(kw_only=True, repr=False)
class Table(Generic[Row]):
    """Rows of one query: records of its row type, or tuples where no row type is known."""

    title: str
    """`topic.name@version`, or `sql`."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sql: str = ""
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    projected: frozenset[str] = frozenset()
    """Hardware in these rows that can be neither bought nor rented, for people to see."""
    notes: tuple[str, ...] = ()
    """What is not in these rows, and why."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __repr__(self) -> str:
        return draw_text(self.title, self.names, self._first, len(self))

    def _repr_html_(self) -> str:
        """Return the first rows as a notebook shows them."""
        return draw_html(self.title, self.names, self._first, len(self))

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`; integers of more than 64 bits are decimals without places."""
        return to_arrow(self._heads, self.cells)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`, in which integers stay exact; MissingPackageError without pandas."""
        return to_pandas(self._heads, self.cells)

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame`; MissingPackageError without polars."""
        return to_polars(self._heads, self.cells)

    @property
    def _heads(self) -> list[tuple[str, str]]:
        return [(column.name, column.type) for column in self.columns]

    @property
    def _first(self) -> tuple[tuple[Any, ...], ...]:
        return attrs.evolve(self, rows=self.rows[:SHOWN]).cells

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(column.name for column in self.columns)

    @property
    def cells(self) -> tuple[tuple[Any, ...], ...]:
        """The values of each row, in the order of the columns."""
        if not self.rows or isinstance(self.rows[0], tuple):
            return cast("tuple[tuple[Any, ...], ...]", self.rows)
        if len(self.columns) == 1:
            return tuple((getattr(row, self.columns[0].name),) for row in self)
        return tuple(map(attrgetter(*self.names), self.rows))

    def records(self) -> list[dict[str, Any]]:
        """Return each row as a mapping from column name to value."""
        names = self.names
        return [dict(zip(names, cells, strict=True)) for cells in self.cells]
