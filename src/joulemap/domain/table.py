"""Tables: rows with their columns and the SQL statement behind them.

`make rows` writes a type of rows for each query from its header, into the folder `generated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, cast, dataclass_transform

import attrs

from joulemap.domain.column import Col
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
    heading: str = ""
    """Heading in the tables of answers; empty for the name in words, without its unit."""
    shown: str = ""
    """Format of its cells there: one of templates, or a text with slots for columns; empty for value and unit."""


def described(meaning: str, unit: str = "", *, is_wide: bool = False, heading: str = "", shown: str = "") -> Any:
    """Return the description of a column whose cells are computed; `is_wide` marks integers of more than 64 bits."""
    return Column(name="", type="HUGEINT" if is_wide else "", unit=unit, meaning=meaning, heading=heading, shown=shown)


@dataclass_transform(kw_only_default=True, field_specifiers=(described,))  # frozen would hide the columns of a base
class Row(tuple[Any, ...]):
    """A row of a table: its cells in the order of the columns, each also an attribute by the name of its column. The
    same attribute of the type is the column (`Col`).

    The meaning of a column is defined once, in the header of its query (`joulemap query show`) or, if its cells are
    computed, where the type `described` it, and is available in `columns` of a table.
    """

    query: ClassVar[str]
    """Name of the query, as `topic.name`; empty for rows that are computed."""
    columns: ClassVar[tuple[str, ...]] = ()
    descriptions: ClassVar[Mapping[str, Column]] = {}
    """Column -> its description without name and type, for columns that are computed."""

    def __init_subclass__(cls, query: str = "") -> None:
        cls.query = query
        own = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
        cls.columns = (*cls.columns, *(name for name in own if name not in cls.columns))
        cls.descriptions = {**cls.descriptions, **{name: vars(cls)[name] for name in own if name in vars(cls)}}
        for name in own:
            setattr(cls, name, Col(name, cls.columns.index(name)))

    def __new__(cls, **cells: Any) -> Self:
        """Return a row of cells given by name, every one; TypeError for one that is missing or no column."""
        if wrong := cells.keys() ^ set(cls.columns):
            raise TypeError(f"{cls.__name__} lacks, or does not know: {', '.join(sorted(wrong))}")
        return tuple.__new__(cls, [cells[name] for name in cls.columns])

    @classmethod
    def of(cls, cells: Iterable[Any]) -> Self:
        """Return a row of cells in the order of the columns; ValueError for more or fewer."""
        return cls(**dict(zip(cls.columns, cells, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (tuple(self),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={cell!r}' for name, cell in self.record().items())})"

    def record(self) -> dict[str, Any]:
        """Return column -> cell."""
        return dict(zip(self.columns, self, strict=True))

    def replace(self, **cells: Any) -> Self:
        """Return the row with other cells in some columns."""
        return type(self)(**{**self.record(), **cells})


AnyRow = TypeVar("AnyRow")


@frozen(kw_only=True, repr=False)
class Table(Generic[AnyRow]):
    """Rows of one query: records of its row type, or tuples without one."""

    title: str
    """Query title: `topic.name@version`, or `sql`."""
    columns: tuple[Column, ...]
    rows: tuple[AnyRow, ...]
    sql: str = ""
    parameters: Mapping[str, Any] = {}
    projected: frozenset[str] = frozenset()
    """Hardware in the rows that can be neither bought nor rented; tables mark it with `~`."""
    notes: tuple[str, ...] = ()
    """Notes on omitted rows, with the reasons."""

    def with_rows(self, rows: Iterable[AnyRow]) -> Table[AnyRow]:
        """Return the table with these rows in place of its own."""
        return attrs.evolve(self, rows=tuple(rows))

    def with_columns(self, columns: Sequence[Column], values: Iterable[Sequence[Any]]) -> Table[tuple[Any, ...]]:
        """Return the table with additional columns; `values` has their cells for each row."""
        table: Table[Any] = self
        rows = tuple((*cells, *added) for cells, added in zip(self.cells, values, strict=True))
        return attrs.evolve(table, columns=(*self.columns, *columns), rows=rows)

    def __iter__(self) -> Iterator[AnyRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> AnyRow:
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
        first = next(iter(self.rows), ())
        if isinstance(first, tuple) and getattr(first, "columns", self.names) == self.names:
            return cast("tuple[tuple[Any, ...], ...]", self.rows)
        if len(self.columns) == 1:
            return tuple((getattr(row, self.columns[0].name),) for row in self)
        return tuple(map(attrgetter(*self.names), self.rows))

    def records(self) -> list[dict[str, Any]]:
        """Return each row as a mapping from column name to value."""
        names = self.names
        return [dict(zip(names, cells, strict=True)) for cells in self.cells]


One = TypeVar("One")
Key = TypeVar("Key")


def group(rows: Iterable[One], key: Callable[[One], Key]) -> dict[Key, list[One]]:
    """Return key -> rows that have it."""
    by_key: dict[Key, list[One]] = {}
    for row in rows:
        by_key.setdefault(key(row), []).append(row)
    return by_key


def first_of_each(rows: Iterable[One], key: Callable[[One], Key]) -> dict[Key, One]:
    """Return key -> first row that has it."""
    return {name: own[0] for name, own in group(rows, key).items()}
