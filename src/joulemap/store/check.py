"""Whether a query file keeps what its header says, as the engine sees it, without running it."""

from __future__ import annotations

from typing import Any, Final

import duckdb

from joulemap.errors import SqlError
from joulemap.store.contract import Query
from joulemap.store.query import ENGINE_ERRORS, first_line, parse_statement

SAMPLES: Final[dict[str, Any]] = {
    "INTEGER": 1,
    "BIGINT": 1,
    "DOUBLE": 0.0,
    "BOOLEAN": False,
    "VARCHAR": "",
}
"""A value of each type that a parameter may have, for planning a statement."""


def sample(kind: str) -> Any:
    """Return a value of a parameter's type, of a list one element; SqlError for a type that parameters do not have."""
    inner = kind.upper().removesuffix("[]")
    if inner not in SAMPLES:
        raise SqlError(f"parameters have no type {kind}, only {', '.join(SAMPLES)} and lists of them")
    return [SAMPLES[inner]] if kind.endswith("[]") else SAMPLES[inner]


def check_query(connection: duckdb.DuckDBPyConnection, query: Query, schema_version: int) -> None:
    """Raise SqlError, naming file and reason, unless a query is one SELECT with the header's parameters and columns.

    The connection holds the views of `schema_version`, and is confined where the file is a person's own.
    """
    try:
        _check(connection, query, schema_version)
    except SqlError as error:
        raise SqlError(f"{query.path}: {error}") from error


def _check(connection: duckdb.DuckDBPyConnection, query: Query, schema_version: int) -> None:
    if query.schema > schema_version:
        raise SqlError(f"it is written for schema {query.schema}, this joulemap has {schema_version}")
    statement = parse_statement(connection, query.sql)
    if statement.type is not duckdb.StatementType.SELECT:
        raise SqlError(f"expected a SELECT, found {statement.type.name}; a query only reads")
    values = {parameter.name: sample(parameter.type) for parameter in query.parameters}
    if statement.named_parameters != set(values):
        used, declared = (", ".join(sorted(names)) or "none" for names in (statement.named_parameters, values))
        raise SqlError(f"its statement takes the parameters {used}, its header says {declared}")
    if query.order and "ORDER BY" not in query.sql.upper():
        raise SqlError("its header has an order, its statement has no ORDER BY")
    try:
        rows = connection.execute(f"DESCRIBE {statement.query}", values or None).fetchall()
    except ENGINE_ERRORS:
        raise
    except duckdb.Error as error:
        raise SqlError(first_line(error)) from error
    found = [(str(name), str(kind)) for name, kind, *_ in rows]
    promised = [(column.name, column.type) for column in query.columns]
    if found != promised:
        both = (", ".join(" ".join(column) for column in columns) for columns in (found, promised))
        raise SqlError("its columns are {}; its header says {}".format(*both))
