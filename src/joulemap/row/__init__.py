"""Rows of queries: tuples whose cells have the names of their columns.

The modules, one for each folder of `queries`, are made from the headers of the queries by `make rows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Row(tuple[Any, ...]):
    """A row of one query: its cells in the order of the columns, each also an attribute by the name of its column.

    The meaning of a column is defined once, in the header of its query (`joulemap query show`), and is available in
    `columns` of a table.
    """

    query: ClassVar[str]
    """Name of the query, as `topic.name`."""
    columns: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, query: str) -> None:
        cls.query = query
        cls.columns = tuple(cls.__annotations__)
        for index, name in enumerate(cls.columns):
            setattr(cls, name, property(itemgetter(index)))

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
