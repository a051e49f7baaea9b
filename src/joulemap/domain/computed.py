"""Build tables from rows computed in memory rather than by a query; the fields of a record are the columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import attrs

from joulemap.domain.table import Column, Table

Row = TypeVar("Row")

_TYPES: Final = {"str": "VARCHAR", "float": "DOUBLE", "int": "INTEGER", "bool": "BOOLEAN"}


def described(meaning: str, unit: str = "", *, is_wide: bool = False) -> Any:
    """Return an attrs field whose metadata holds the meaning and unit of its column.

    `is_wide` marks integers that may exceed 64 bits.
    """
    return attrs.field(metadata={"meaning": meaning, "unit": unit, "is_wide": is_wide})


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
                unit=one.metadata["unit"],
                meaning=one.metadata["meaning"],
            )
            for one in fields
        ),
        rows=tuple(rows),
    )
