"""Build tables from rows computed in memory rather than by a query; the fields of a record are the columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import attrs

from joulemap.domain.table import Column, Table

Row = TypeVar("Row")

_TYPES: Final = {"str": "VARCHAR", "float": "DOUBLE", "int": "INTEGER", "bool": "BOOLEAN"}


def described(meaning: str, unit: str = "", *, is_wide: bool = False, heading: str = "", shown: str = "") -> Any:
    """Return an attrs field whose metadata describes its column.

    `is_wide` marks integers that may exceed 64 bits.
    """
    column = {"unit": unit, "meaning": meaning, "heading": heading, "shown": shown}
    return attrs.field(metadata={"column": column, "is_wide": is_wide})


def find_unknown(record: type[Any]) -> dict[str, Any]:
    """Return the optional fields of a record type as name -> None."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    return {one.name: None for one in fields if str(one.type).endswith("None")}


def take(record: type[Any], *sources: object) -> dict[str, Any]:
    """Return field -> value for a record, from the first of `sources` that has an attribute with the field's name.

    A name must mean the same in a source and in the record; pass other values as separate arguments.
    """
    names = [field.name for field in attrs.fields(record)]
    return {name: getattr(one, name) for one in reversed(sources) for name in names if hasattr(one, name)}


def make_table(title: str, record: type[Row], rows: Iterable[Row]) -> Table[Row]:
    """Return rows as a table; each field of the record is `described`."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)  # type: ignore[arg-type]
    return Table(
        title=title,
        columns=tuple(
            Column(
                name=one.name,
                type="HUGEINT" if one.metadata["is_wide"] else _TYPES[str(one.type).partition(" ")[0]],
                **one.metadata["column"],
            )
            for one in fields
        ),
        rows=tuple(rows),
    )
