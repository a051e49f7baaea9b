"""Run queries, and check that they keep what their headers say. A typed row is built from the contract's columns."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs
import duckdb

from joulemap.domain.settings import Bounds
from joulemap.domain.table import HARDWARE_COLUMNS, Column, Record, Table
from joulemap.errors import SqlError, UnknownNameError, UsageError
from joulemap.store.bound import bounding, fetch_rows
from joulemap.store.connection import begin_beside
from joulemap.store.contract import Parameter, Query
from joulemap.store.library import find_query
from joulemap.store.run import find_projected_hardware
from joulemap.store.type import ABSENT, CLIPPED, has_endless, replace_types

Row = TypeVar("Row", bound=Record)
Made = TypeVar("Made")

ENGINE_ERRORS: Final = (duckdb.OperationalError, duckdb.InternalError, duckdb.FatalException)
"""What no statement is to blame for: a matter of the database, left to whoever opened it."""


def blames_statement(error: duckdb.Error) -> bool:
    """Return whether an error is one of the statement; the engine gives a damaged block no class of its own."""
    return type(error) is not duckdb.Error and not isinstance(error, ENGINE_ERRORS)


Rows = Table[tuple[Any, ...]]
"""Rows without a row type."""


def find_projected(connection: duckdb.DuckDBPyConnection, answer: Table[Made]) -> Table[Made]:
    """Return the answer with the hardware that tables must mark; unchanged where no column names hardware."""
    if not HARDWARE_COLUMNS & set(answer.names):
        return answer
    return attrs.evolve(answer, projected=find_projected_hardware(connection))


def parse_parameter(parameter: Parameter, text: str) -> Any:
    """Return a typed value of what a person wrote; UsageError says what was expected."""
    kind = parameter.type.upper()
    try:
        if kind.endswith("[]"):
            inner = attrs.evolve(parameter, type=kind[:-2])
            return [parse_parameter(inner, item.strip()) for item in text.strip("[] ").split(",") if item.strip()]
        if kind in ("INTEGER", "BIGINT"):
            return int(text)
        if kind == "DOUBLE":
            return float(text)
        if kind == "BOOLEAN":
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError) as error:
        raise UsageError(f"parameter {parameter.name} is {text!r}, expected {parameter.type}") from error
    return text


def bind(query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every declared parameter with its value; UsageError names the missing or undeclared ones."""
    declared = {parameter.name: parameter for parameter in query.parameters}
    surplus = set(given) - set(declared)
    if surplus:
        known = ", ".join(declared) or "none"
        raise UsageError(f"{query.title} takes no parameter {', '.join(sorted(surplus))}; it takes: {known}")
    missing = [name for name, parameter in declared.items() if name not in given and parameter.is_required]
    if missing:
        first = declared[missing[0]]
        raise UsageError(f"{query.title} needs -p {first.name}={first.type} ({first.meaning})")
    return {name: given.get(name, parameter.default) for name, parameter in declared.items()}


def run_query(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, Any], bounds: Bounds | None = None
) -> Rows:
    """Run a query and return its rows.

    Raises SqlError if its columns are not those of its header, or it takes more than its bounds.
    """
    if bounds is None:
        return _run(connection, query, given, tuple)
    with bounding(connection, bounds):
        return _run(connection, query, given, tuple, bounds)


def fetch(connection: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Table[Row]:
    """Run the query that a row type names and return its rows as records; raises as `run_query`."""
    query = find_query(record.query)
    names = [column.name for column in query.columns]
    order = [names.index(field.name) for field in attrs.fields(record)]
    return _run(connection, query, given, lambda cells: record(*[cells[index] for index in order]))


def _run(
    connection: duckdb.DuckDBPyConnection,
    query: Query,
    given: Mapping[str, Any],
    make: Callable[[tuple[Any, ...]], Made],
    bounds: Bounds | None = None,
) -> Table[Made]:
    parameters = bind(query, given)
    cursor = _execute(connection, query.sql, parameters)
    names = [entry[0] for entry in cursor.description or ()]
    promised = [column.name for column in query.columns]
    if names != promised:
        raise SqlError(f"{query.title} returned the columns {', '.join(names)}, its header says {', '.join(promised)}")
    if bounds is None:
        rows = tuple(map(make, _fetch(cursor, None)))
    else:
        rows = tuple(map(make, _fetch_as_written(connection, cursor, query.sql, parameters, bounds)))
    return Table(title=query.title, columns=query.columns, rows=rows, sql=query.sql, parameters=parameters)


def start(connection: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Callable[[], Table[Row]]:
    """Begin a `fetch` beside what the connection does next; return a function that waits for it."""
    return begin_beside(connection, lambda cursor: fetch(cursor, record, **given))


RUN_PARAMETERS: Final = ("run_id", "run_ids", "run_a", "run_b")
"""Parameters that name runs, in every query."""


def check_runs(connection: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for the first run that is asked about and not stored."""
    named: list[int] = []
    for name in RUN_PARAMETERS:
        value = given.get(name, [])
        named += value if isinstance(value, list | tuple) else [value]
    missing = (
        "SELECT a.run_id FROM unnest($named::BIGINT[]) AS a (run_id) ANTI JOIN run USING (run_id) ORDER BY 1 LIMIT 1"
    )
    for (run_id,) in connection.execute(missing, {"named": named}).fetchall() if named else ():
        raise UnknownNameError("run", str(run_id), (), "see `joulemap query run run.list`")


def read_value(text: str) -> Any:
    """Return a parameter of a statement that declares no types: what JSON makes of it, else the text itself."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def run_sql(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    bounds: Bounds | None = None,
) -> Rows:
    """Run one statement that a person typed, on a confined read-only connection.

    Raises SqlError if it is not a single statement, does not parse, was refused, or takes more than its bounds;
    UsageError if the parameters given are not those in it. A failure to read the file is left to whoever opened it.
    Values that Python lacks (times with a zone, intervals, infinite dates) are texts, as the engine writes them.
    """
    with bounding(connection, bounds or Bounds()):
        return _run_sql(connection, sql, parameters, bounds or Bounds())


def _run_sql(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any] | None, bounds: Bounds
) -> Rows:
    statement = parse_statement(connection, sql)
    kind = _kind(statement)
    is_pivot = kind == "MULTI" and _PIVOT.match(sql) is not None
    if not is_pivot and kind not in ("SELECT", "EXPLAIN"):
        raise SqlError(f"expected a SELECT, found {kind}; the database is read only here")
    given = dict(parameters or {})
    missing, surplus = set(statement.named_parameters) - set(given), set(given) - set(statement.named_parameters)
    if missing:
        raise UsageError(f"the statement needs {', '.join(f'-p {name}=VALUE' for name in sorted(missing))}")
    if surplus:
        raise UsageError(f"the statement has no ${', $'.join(sorted(surplus))}")
    cursor = _execute(connection, sql, given)
    description = cursor.description or ()
    rows = _fetch_as_written(connection, cursor, sql, given, bounds)
    names = _distinct([str(entry[0]) for entry in description])
    return Rows(
        title="sql",
        columns=tuple(
            Column(name=name, type=str(entry[1]), meaning="") for name, entry in zip(names, description, strict=True)
        ),
        rows=tuple(rows),
        sql=sql,
        parameters=given,
    )


_PIVOT: Final = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:PIVOT|SELECT|FROM|WITH|EXPLAIN)\b", re.IGNORECASE | re.DOTALL
)
"""How a statement with a PIVOT begins that only reads: the engine makes several of one whose values are in the data."""


def parse_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the only statement of a text; SqlError if it does not parse, or holds none or several."""
    try:
        sql.encode()
        statements = connection.extract_statements(sql)
    except UnicodeEncodeError as error:
        raise SqlError(f"the statement is no text at character {error.start}: it has half a Unicode pair") from error
    except (duckdb.Error, ValueError) as error:
        raise SqlError(first_line(error)) from error
    if len(statements) != 1:
        raise SqlError(f"expected one statement, found {len(statements)}")
    return statements[0]


def _kind(statement: duckdb.Statement) -> str:
    """Return what a statement is; the binding lacks names for the newest of them."""
    try:
        return str(statement.type.name)
    except ValueError:
        return "another statement"


def _fetch_as_written(
    connection: duckdb.DuckDBPyConnection,
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Mapping[str, Any],
    bounds: Bounds,
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that was run; columns that Python cannot hold are texts."""
    kinds = [str(entry[1]) for entry in cursor.description or ()]
    casts = [replace_types(kind, ABSENT) for kind in kinds]
    rows = _fetch(_cast(connection, sql, parameters, casts) or cursor, bounds) if kinds else []
    if not has_endless(rows):
        return rows
    casts = [replace_types(kind, ABSENT | CLIPPED) for kind in kinds]
    return _fetch(_cast(connection, sql, parameters, casts) or cursor, bounds)


def _cast(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], casts: Sequence[str]
) -> duckdb.DuckDBPyConnection | None:
    """Run a statement again with columns cast to these types, "" for those that stay; None where all do."""
    if not any(casts):
        return None
    chosen = ", ".join(f"CAST(#{index} AS {kind})" if kind else f"#{index}" for index, kind in enumerate(casts, 1))
    return _execute(connection, f"SELECT {chosen} FROM (\n{_strip(sql)}\n)", parameters)


def _strip(sql: str) -> str:
    """Return a statement without the semicolons and comments that end it."""
    written = sql.encode()
    tokens = duckdb.tokenize(sql)
    end = len(written)
    while tokens and (tokens[-1][1] is duckdb.token_type.comment or written[tokens[-1][0] :].lstrip()[:1] == b";"):
        end = tokens.pop()[0]
    return written[:end].decode()


def _distinct(names: list[str]) -> list[str]:
    """Return the names with a number after each that stood before, so that a record keeps every column."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _execute(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]
) -> duckdb.DuckDBPyConnection:
    with _blaming():
        return connection.execute(sql, dict(parameters)) if parameters else connection.execute(sql)


def _fetch(cursor: duckdb.DuckDBPyConnection, bounds: Bounds | None) -> list[tuple[Any, ...]]:
    with _blaming():
        return fetch_rows(cursor, bounds)


@contextlib.contextmanager
def _blaming() -> Iterator[None]:
    """Turn what a statement is to blame for into SqlError."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.InterruptException) or not blames_statement(error):
            raise
        raise SqlError(first_line(error)) from error


def first_line(error: Exception) -> str:
    """Return an engine's error as one line, with what it offers instead."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    hints = [line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))]
    return " ".join([lines[0], *hints[:1]]) if lines else type(error).__name__


def show_sql(query: Query, parameters: Mapping[str, Any]) -> str:
    """Return the statement after its parameters as session variables, ready to paste into `duckdb`."""
    lines = [f"-- {query.title}: {query.summary}"]
    lines += [f"SET VARIABLE {name} = {_literal(value)};" for name, value in parameters.items()]
    return "\n".join([*lines, f"{query.sql};"])


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


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
    if _kind(statement) != "SELECT":
        raise SqlError(f"expected a SELECT, found {_kind(statement)}; a query only reads")
    values = {parameter.name: sample(parameter.type) for parameter in query.parameters}
    if statement.named_parameters != set(values):
        used, declared = (", ".join(sorted(names)) or "none" for names in (statement.named_parameters, values))
        raise SqlError(f"its statement takes the parameters {used}, its header says {declared}")
    if query.order and "ORDER BY" not in query.sql.upper():
        raise SqlError("its header has an order, its statement has no ORDER BY")
    try:
        rows = connection.execute(f"DESCRIBE {statement.query}", values or None).fetchall()
    except duckdb.Error as error:
        if not blames_statement(error):
            raise
        raise SqlError(first_line(error)) from error
    found = [(str(name), str(kind)) for name, kind, *_ in rows]
    promised = [(column.name, column.type) for column in query.columns]
    if found != promised:
        both = (", ".join(" ".join(column) for column in columns) for columns in (found, promised))
        raise SqlError("its columns are {}; its header says {}".format(*both))
