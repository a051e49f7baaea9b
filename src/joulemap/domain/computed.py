"""Build tables from rows computed in memory rather than by a query."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import get_annotations
from typing import Any, Final, TypeVar

import attrs

from joulemap.domain.table import Row, Table

AnyRow = TypeVar("AnyRow", bound=Row)

_TYPES: Final = {"str": "VARCHAR", "float": "DOUBLE", "int": "INTEGER", "bool": "BOOLEAN"}


def read_types(record: type[Row]) -> dict[str, str]:
    """Return column -> the Python type of its cells, as written."""
    declared = {name: kind for one in reversed(record.__mro__) for name, kind in get_annotations(one).items()}
    return {name: str(declared[name]).removeprefix("Cell[").removesuffix("]") for name in record.columns}


def find_unknown(record: type[Row]) -> dict[str, Any]:
    """Return the optional columns of a type of rows as name -> None."""
    return {name: None for name, kind in read_types(record).items() if kind.endswith("None")}


def take(record: type[Row], *sources: object) -> dict[str, Any]:
    """Return column -> cell for a type of rows, from the first of `sources` that has an attribute with its name.

    A name must mean the same in a source and in the row; pass other values as separate arguments.
    """
    return {name: getattr(one, name) for one in reversed(sources) for name in record.columns if hasattr(one, name)}


def make_table(title: str, record: type[AnyRow], rows: Iterable[AnyRow]) -> Table[AnyRow]:
    """Return rows as a table; each column of the type is `described`."""
    types = read_types(record)
    columns = (
        attrs.evolve(told, name=name, type=told.type or _TYPES[types[name].partition(" ")[0]])
        for name, told in record.descriptions.items()
    )
    return Table(title=title, columns=tuple(columns), rows=tuple(rows))
