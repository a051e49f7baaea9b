"""Execution of queries: a check of their columns against the header, and typed rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, TypeVar

import attrs
import duckdb

from joulemap.domain.settings import Bounds
from joulemap.domain.table import HARDWARE_COLUMNS, Row as AnyRow, Table
from joulemap.physics.record.configuration import BOARD
from joulemap.physics.record.product import DEFAULT
from joulemap.store import literal
from joulemap.store.block import MARK, share
from joulemap.store.bound import BATCH, bounding
from joulemap.store.connection import REFUSED, begin_beside
from joulemap.store.contract import Parameter, Query
from joulemap.store.library import find_query, ships
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.run import find_projected_hardware
from joulemap.store.statement import (
    Statement,
    blames_statement,
    blaming,
    execute,
    first_line,
    name_kind,
    parse_statement,
    prepare,
)
from joulemap.store.surface import begin_cursor
from joulemap.system.errors import SqlError, UnknownNameError, UsageError
from joulemap.system.number import read_real, read_whole

Row = TypeVar("Row", bound="AnyRow")
Made = TypeVar("Made")

ENDLESS: Final = ("nan", "inf", "-inf")
"""Texts of infinite numbers that a DOUBLE parameter accepts, for a bound without effect."""

Rows = Table[tuple[Any, ...]]
"""Table whose rows are plain tuples."""

COMPUTED: Final = "numpy."
"""Prefix of calls in SQL that `joulemap.store.computed` computes."""

Answered = TypeVar("Answered", bound="Table[Any] | Statement")


def find_projected(connection: duckdb.DuckDBPyConnection, answer: Answered) -> Answered:
    """Return an answer with the projected hardware that tables must mark; unchanged if no column names hardware."""
    if HARDWARE_COLUMNS.isdisjoint(column.name for column in answer.columns):
        return answer
    return attrs.evolve(answer, projected=find_projected_hardware(connection))


def parse_parameter(parameter: Parameter, text: str) -> Any:
    """Return a parameter's value from text. Raise UsageError, with the expected type, if it cannot be parsed."""
    kind = parameter.type.upper()
    try:
        if kind.endswith("[]"):
            inner = attrs.evolve(parameter, type=kind[:-2])
            return [parse_parameter(inner, item.strip()) for item in text.strip("[] ").split(",") if item.strip()]
        if kind in ("INTEGER", "BIGINT"):
            return read_whole(text)
        if kind == "DOUBLE":
            return float(text) if text in ENDLESS else read_real(text)
        if kind == "BOOLEAN":
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError) as error:
        raise UsageError(f"parameter {parameter.name} is {text!r}, expected {parameter.type}") from error
    return text


def bind(query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> value of every declared parameter. Raise UsageError for missing or undeclared parameters."""
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


def _compute(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]) -> Sequence[str]:
    """Return the SQL of the results that numpy computes for a query; empty if it has no such calls."""
    if COMPUTED not in sql:
        return ()
    from joulemap.store.computed import compute

    return compute(connection, sql, parameters)


def _insert_rows(sql: str, computed: Sequence[str] | None) -> str:
    """Return a query's SQL with calls replaced by computed rows, or by empty tables if `computed` is None."""
    if COMPUTED not in sql:
        return sql
    from joulemap.store.computed import insert_no_rows, insert_rows

    return insert_no_rows(sql) if computed is None else insert_rows(sql, computed)


def prepare_query(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, Any], bounds: Bounds
) -> Statement:
    """Return a query as a statement that was planned but not run. Raise SqlError if its columns are not as declared."""
    bound = bind(query, given)
    with bounding(connection, bounds), blaming():
        sql = _insert_rows(query.sql, _compute(connection, query.sql, bound))
    statement = prepare(connection, query.title, sql, bound, bounds)
    _check_names(query, [column.name for column in statement.columns])
    return attrs.evolve(statement, columns=query.columns)


def run_query(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, Any], bounds: Bounds | None = None
) -> Rows:
    """Run a query and return its rows.

    Raises SqlError if its columns differ from its header, or if it exceeds its bounds.
    """
    if bounds is None:
        return _run(connection, query, given, tuple)
    return prepare_query(connection, query, given, bounds).table()


def fetch(connection: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Table[Row]:
    """Run the query to which a row type belongs and return its rows; raises the errors of `run_query`."""
    return _run(connection, _find_query_of(record), given, partial(tuple.__new__, record))


@contextlib.contextmanager
def _answering(*queries: Query) -> Iterator[None]:
    """Convert errors caused by a query into SqlError.

    An error about data that the engine refuses inside a shipped query is a fault of joulemap, and is not converted.
    """
    try:
        with blaming():
            yield
    except SqlError as error:
        if isinstance(error.__cause__, REFUSED) and all(map(ships, queries)):
            raise error.__cause__ from None
        raise


def _find_query_of(record: type[Row]) -> Query:
    query = find_query(record.query)
    if [column.name for column in query.columns] != list(record.columns):
        raise SqlError(f"{record.__name__} is not what the header of {query.title} says: renew it with `make rows`")
    return query


def fetch_all(
    connection: duckdb.DuckDBPyConnection, records: Mapping[str, type[AnyRow]], **given: Any
) -> dict[str, Table[Any]]:
    """Return name -> rows, for the query of each row type. Each query gets those given parameters that it declares.

    Queries share intermediate tables, because planning them takes longer than reading. Raises the errors of
    `run_query`.
    """
    queries = {name: _find_query_of(record) for name, record in records.items()}
    if surplus := given.keys() - {one.name for query in queries.values() for one in query.parameters}:
        raise UsageError(f"none of these queries takes {', '.join(sorted(surplus))}")
    bound = {
        name: bind(query, {one.name: given[one.name] for one in query.parameters if one.name in given})
        for name, query in queries.items()
    }
    shared = share([(query.sql, bound[name]) for name, query in queries.items()])
    if shared is None:  # values that only the engine can bind
        return {name: fetch(connection, record, **bound[name]) for name, record in records.items()}
    tables, written = shared
    with _storing(connection, tables, queries.values()):
        return {
            name: _run(connection, query, bound[name], partial(tuple.__new__, records[name]), sql)
            for (name, query), sql in zip(queries.items(), written, strict=True)
        }


@contextlib.contextmanager
def _storing(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, str], queries: Iterable[Query]
) -> Iterator[None]:
    """Create the tables (name -> SQL) that queries share, and drop them afterwards."""
    with _answering(*queries):
        for table, sql in tables.items():
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {literal.list_numbers(sql)}")
        yield
        for table in tables:
            connection.execute(f"DROP TABLE {table}")


def fetch_none(_: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Table[Row]:
    """Return an empty result with the columns of a row type's query, without running the query."""
    query = find_query(record.query)
    sql = _insert_rows(query.sql, None)
    return Table(title=query.title, columns=query.columns, rows=(), sql=sql, parameters=bind(query, given))


def stream(connection: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Iterator[Row]:
    """Yield the rows of a row type's query, with one batch in memory at a time; raises the errors of `run_query`."""
    query = _find_query_of(record)
    with contextlib.closing(begin_cursor(connection)) as own, _answering(query):
        bound = bind(query, given)
        cursor = execute(own, _insert_rows(query.sql, _compute(own, query.sql, bound)), bound)
        _check_names(query, [entry[0] for entry in cursor.description or ()])
        while batch := cursor.fetchmany(BATCH):
            yield from map(partial(tuple.__new__, record), batch)


def _run(
    connection: duckdb.DuckDBPyConnection,
    query: Query,
    given: Mapping[str, Any],
    make: Callable[[tuple[Any, ...]], Made],
    filled: str | None = None,
) -> Table[Made]:
    parameters = bind(query, given)
    if filled is None and COMPUTED in query.sql and MARK in query.sql:
        shared = share([(query.sql, parameters)])
        if shared is not None and shared[0]:
            with _storing(connection, shared[0], (query,)):
                return _run(connection, query, given, make, *shared[1])
    filled = filled or literal.fill(query.sql, parameters)
    with _answering(query), _keeping(connection, filled) as kept:
        computed = _compute(connection, kept or query.sql, parameters)
        sql = _insert_rows(query.sql, computed)
        cursor = (
            execute(connection, sql, parameters) if kept is None else connection.execute(_insert_rows(kept, computed))
        )
        _check_names(query, [entry[0] for entry in cursor.description or ()])
        rows = tuple(map(make, cursor.fetchall()))
    return Table(title=query.title, columns=query.columns, rows=rows, sql=sql, parameters=parameters)


@contextlib.contextmanager
def _keeping(connection: duckdb.DuckDBPyConnection, filled: str | None) -> Iterator[str | None]:
    """Yield a filled statement; one with calls that numpy computes reads what its two steps share from tables, which
    are dropped afterwards.
    """
    sql = filled and literal.list_numbers(filled)
    if sql is None or COMPUTED not in sql:
        yield sql
        return
    from joulemap.store.computed import keep

    with keep(connection, sql) as kept:
        yield kept


def _check_names(query: Query, names: Sequence[str]) -> None:
    promised = [column.name for column in query.columns]
    if names != promised:
        raise SqlError(f"{query.title} returned the columns {', '.join(names)}, its header says {', '.join(promised)}")


def start(connection: duckdb.DuckDBPyConnection, record: type[Row], **given: Any) -> Callable[[], Table[Row]]:
    """Start `fetch` in the background. Return a function that waits for its result."""
    return begin_beside(connection, lambda cursor: fetch(cursor, record, **given))


RUN_PARAMETERS: Final = ("run_id", "run_ids", "run_a", "run_b")
"""Names that parameters with run ids have in every query."""


def check_runs(connection: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for the first requested run id that is not stored."""
    named = _list_runs(given)
    missing = (
        "SELECT a.run_id FROM unnest($named::BIGINT[]) AS a (run_id) ANTI "
        "JOIN internal.run USING (run_id) ORDER BY 1 LIMIT 1"
    )
    for (run_id,) in literal.execute(connection, missing, {"named": named}).fetchall() if named else ():
        raise UnknownNameError("run", str(run_id), (), "see `joulemap query run run.list`")


PARTS: Final = re.compile(
    r"\b(run_subgraph|run_operator|ledger_line|subgraph_results|operator_results|energy_ledger|energy_parts"
    r"|event_counts|run_overheads|part_amounts)\b"
)
"""Pattern of tables and views with parts of runs. They have no rows for runs stored as totals."""

TOTALS_SUFFICE: Final = ("cost", "fleet", "llm", "pareto", "recommend", "sweep")
"""Topics of queries that need totals only, although the cubes that they read also have columns of parts."""


SUMS: Final = "point_total"
"""Table that has sums instead of parts for runs stored as totals."""


def reads_parts(query: Query) -> bool:
    """Return whether a query reads subgraphs, operators or ledger lines of runs, directly or through a cube."""
    has_totals = query.title.partition(".")[0] in TOTALS_SUFFICE or SUMS in query.sql
    return not has_totals and PARTS.search(query.sql) is not None


def check_ledgers(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, Any]) -> None:
    """Raise UsageError for the first requested run without a ledger, if the query needs it; the error has the command
    that stores it.
    """
    named = _list_runs(given)
    if not named or not reads_parts(query):
        return
    statement = (
        "SELECT r.run_id, r.model, r.configured_hardware, r.precision_label, r.batch, r.runtime, r.boundary, r.host, "
        "r.matmul_precision "
        "FROM run_configurations AS r WHERE list_contains($named, r.run_id) AND NOT r.has_ledger AND r.refusal IS NULL "
        "ORDER BY r.run_id LIMIT 1"
    )
    for run_id, model, hardware, precision, batch, runtime, boundary, host, setting in literal.execute(
        connection, statement, {"named": named}
    ).fetchall():
        command = f"joulemap analyze '{model}' {hardware} --precision {precision} --batch {batch} --runtime {runtime}"
        command += f" --boundary {boundary}" if boundary != BOARD else ""
        command += f" --site host={host}" if host else ""
        command += f" --matmul-precision {setting}" if setting != DEFAULT else ""
        raise UsageError(f"run {run_id} was evaluated to totals only: `{command}` evaluates its ledger")


def _list_runs(given: Mapping[str, Any]) -> list[int]:
    """Return the run ids in the values of parameters."""
    values = (given.get(name, []) for name in RUN_PARAMETERS)
    return [run for value in values for run in (value if isinstance(value, list | tuple) else [value])]


def read_value(text: str) -> Any:
    """Return the value of an untyped parameter: parsed as JSON if possible, else the text itself."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def show_sql(query: Query, table: Table[Any]) -> str:
    """Return the SQL of a table with literal parameter values, ready to paste into `duckdb`."""
    given = [f"-- {name} = {literal.write(value, long=inf)}" for name, value in table.parameters.items()]
    sql = literal.fill(table.sql, table.parameters, long=inf) or table.sql
    return "\n".join([f"-- {query.title}: {query.summary}", *given, f"{sql};"])


SAMPLES: Final[dict[str, Any]] = {"INTEGER": 1, "BIGINT": 1, "DOUBLE": 0.0, "BOOLEAN": False, "VARCHAR": ""}
"""Parameter type -> a value of that type, with which a statement is planned."""


def sample(kind: str) -> Any:
    """Return a value of a parameter's type, for planning; a list has one element. Raise SqlError for another type."""
    inner = kind.upper().removesuffix("[]")
    if inner not in SAMPLES:
        raise SqlError(f"parameters have no type {kind}, only {', '.join(SAMPLES)} and lists of them")
    return [SAMPLES[inner]] if kind.endswith("[]") else SAMPLES[inner]


def check_query(connection: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Raise SqlError, with file and reason, unless a query is one SELECT with the parameters and columns of its header.

    The connection has the views of this version, and is confined if the file is the user's own.
    """
    try:
        _check(connection, query)
    except SqlError as error:
        raise SqlError(f"{query.path}: {error}") from error


def _check(connection: duckdb.DuckDBPyConnection, query: Query) -> None:
    if query.schema > SCHEMA_VERSION:
        raise SqlError(f"it is written for schema {query.schema}, this joulemap has {SCHEMA_VERSION}")
    statement = parse_statement(connection, query.sql)
    if name_kind(statement) != "SELECT":
        raise SqlError(f"expected a SELECT, found {name_kind(statement)}; a query only reads")
    values = {parameter.name: sample(parameter.type) for parameter in query.parameters}
    if statement.named_parameters != set(values):
        used, declared = (", ".join(sorted(names)) or "none" for names in (statement.named_parameters, values))
        raise SqlError(f"its statement takes the parameters {used}, its header says {declared}")
    if query.order and "ORDER BY" not in query.sql.upper():
        raise SqlError("its header has an order, its statement has no ORDER BY")
    try:
        rows = literal.execute(connection, f"DESCRIBE {_insert_rows(statement.query, None)}", values).fetchall()
    except duckdb.Error as error:
        if not blames_statement(error):
            raise
        raise SqlError(first_line(error)) from error
    described = [(str(name), str(kind)) for name, kind, *_ in rows]
    promised = [(column.name, column.type) for column in query.columns]
    if described != promised:
        both = (", ".join(" ".join(column) for column in columns) for columns in (described, promised))
        raise SqlError("its columns are {}; its header says {}".format(*both))
