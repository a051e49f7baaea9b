"""Queries with their contract: parameters, columns and order."""

from __future__ import annotations

from pathlib import Path

import attrs

from joulemap.domain.table import Column
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Parameter:
    """Declared parameter of a query."""

    name: str
    type: str
    """DuckDB type of the parameter's values."""
    meaning: str
    default: str | int | float | list[str] | None = None
    """Default value; None for a required parameter."""

    @property
    def is_required(self) -> bool:
        """True if the parameter has no default."""
        return self.default is None


@frozen(kw_only=True)
class Query:
    """Query with its contract."""

    name: str
    """Name of the form `topic.name`."""
    record: str
    """Name of the rows' type in `joulemap.generated`; empty if there is none."""
    version: int
    schema: int
    """Schema version for whose views the query is written."""
    summary: str
    grain: str
    """Description of what one row stands for."""
    order: tuple[str, ...]
    """Columns by which rows are sorted."""
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    table: tuple[str, ...] = ()
    """Columns that tables of answers show, each with how: `energy_j.kept`."""
    sql: str
    path: Path
    """File with the SQL."""

    @property
    def title(self) -> str:
        """Name with version, `topic.name@version`."""
        return f"{self.name}@{self.version}"


def write_query(query: Query) -> str:
    """Return a query as the text of a query file (`joulemap.store.header`)."""
    import json

    def table(entry: Parameter | Column) -> str:
        fields = attrs.asdict(entry, filter=lambda field, value: field.name != "name" and value != field.default)
        return f"{{ {', '.join(map(spell, fields.items()))} }}"

    def spell(item: tuple[str, object]) -> str:
        return f"{item[0]} = {json.dumps(item[1], ensure_ascii=False)}"

    head = {"record": query.record, "summary": query.summary, "grain": query.grain, "order": query.order}
    lines = [spell(item) for item in head.items() if item[1]]
    for name, entries in (("parameters", query.parameters), ("columns", query.columns)):
        lines += [f"[{name}]", *(f"{entry.name} = {table(entry)}" for entry in entries)] if entries else []
    return "\n".join(("/*", *lines, "*/", query.sql))
