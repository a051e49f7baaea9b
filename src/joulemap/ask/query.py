"""Run versioned queries and ad-hoc statements, read-only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from joulemap.domain.settings import Bounds
from joulemap.domain.table import Column
from joulemap.plan.reader import reading as reading_database
from joulemap.plan.source import Source
from joulemap.store.connection import READING, Connection, limit
from joulemap.store.library import find_query, list_queries as find_queries
from joulemap.store.query import Rows, check_ledgers, check_query, check_runs, find_projected, prepare_query, run_query
from joulemap.store.sharing import Kind
from joulemap.store.statement import Statement, prepare
from joulemap.system.errors import SqlError
from joulemap.system.wing import find_parts


@contextlib.contextmanager
def reading(source: Source, kind: Kind = READING) -> Iterator[Connection]:
    """Yield a read-only connection to an existing database, or to a lake (a folder of stored designs).

    Stale or damaged parts of a lake are omitted and reported.
    """
    with contextlib.ExitStack() as stack:
        folder = _find_folder(source)
        opened = reading_database(source, kind) if folder is None else folder.reading(source, kind)
        yield stack.enter_context(opened)


def _find_folder(source: Source) -> Any:
    """Return the module that reads a lake; None if the source is a file, or if no installed extension reads folders."""
    return next(find_parts("folders"), None) if source.path.is_dir() else None


BOUNDS: Final = Bounds()
STREAMED: Final = Bounds(max_rows=None)

LISTED = (
    Column(name="query", type="VARCHAR", meaning="name@version"),
    Column(name="parameters", type="VARCHAR", meaning="names; optional ones in brackets"),
    Column(name="summary", type="VARCHAR", meaning="question that it answers"),
)


@contextlib.contextmanager
def stream_query(
    source: Source,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    queries: str | Path | None = None,
    bounds: Bounds = STREAMED,
    output: str | Path | None = None,
) -> Iterator[Statement]:
    """Run a query like `query`, but yield an open statement that streams any number of rows, as `stream` does."""
    own = _as_path(queries)
    definition = find_query(name, own)
    is_own = own is not None and definition.path.is_relative_to(own)
    kind = limit(bounds.max_memory_bytes, output=_as_path(output))
    given = parameters or {}
    with reading(source, kind) as connection:
        if is_own:
            check_query(connection, definition)
        check_runs(connection, given)
        if _find_folder(source) is None:  # a lake reports missing ledgers itself
            check_ledgers(connection, definition, given)
        _report_absent(source, connection, definition.sql)
        with contextlib.closing(
            find_projected(connection, prepare_query(connection, definition, given, bounds))
        ) as statement:
            yield statement


def query(
    source: Source,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    queries: str | Path | None = None,
    bounds: Bounds = BOUNDS,
) -> Rows:
    """Run a shipped query, or one of the user's folder `queries`, read-only. Files of the folder are checked first.

    Raises UnknownNameError, UsageError, DatabaseError, or SqlError, also for a query that exceeds `bounds`.
    """
    with stream_query(source, name, parameters, queries=queries, bounds=bounds) as statement:
        return statement.table()


def describe(source: Source, name: str, parameters: Mapping[str, Any] | None = None) -> Rows:
    """Run a query about the catalogue, with or without a database.

    Reads the database if it holds the current catalogue, else a temporary catalogue.
    """
    from joulemap.plan.catalogue import opening_catalogue

    definition = find_query(name)
    with opening_catalogue(source) as connection:
        return find_projected(connection, run_query(connection, definition, parameters or {}))


@contextlib.contextmanager
def stream(
    source: Source,
    statement: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    bounds: Bounds = STREAMED,
    output: str | Path | None = None,
) -> Iterator[Statement]:
    """Yield an open statement that streams any number of rows; arguments are those of `sql`.

    Rows come in batches, as Arrow without a copy, or as Parquet in the file `output`; the statement can write no other
    file. The time limit applies to the wait for each row. Raises like `sql`.
    """
    with reading(source, limit(bounds.max_memory_bytes, output=_as_path(output))) as connection:
        prepared = prepare(connection, "sql", statement, parameters or {}, bounds)
        _report_absent(source, connection, statement)
        with contextlib.closing(find_projected(connection, prepared)) as ready:
            yield ready


def sql(
    source: Source, statement: str, parameters: Mapping[str, Any] | None = None, *, bounds: Bounds = BOUNDS
) -> Rows:
    """Run one SELECT statement read-only, without access to files or settings; `parameters` fill its `$name` places.

    Values that Python lacks (times with a zone, intervals, nanoseconds, infinite dates) are texts as DuckDB writes
    them. Raises SqlError, also for a statement that exceeds the time, rows or memory of `bounds`; UsageError if the
    parameters do not match the statement; or DatabaseError.
    """
    with stream(source, statement, parameters, bounds=bounds) as prepared:
        return prepared.table()


def list_queries(source: Source, queries: str | Path | None = None) -> Rows:
    """Return the shipped queries, and the queries of a user's own folder after a check of every file.

    No database is needed. SqlError names each file that breaks a rule, with the reason; UsageError for a folder that
    does not exist.
    """
    own = _as_path(queries)
    definitions = find_queries(own)
    if own is not None:
        _check_own(source, own)
    rows = tuple(
        (
            query.title,
            " ".join(one.name if one.is_required else f"[{one.name}]" for one in query.parameters),
            query.summary,
        )
        for query in definitions
    )
    return Rows(title="query list", columns=LISTED, rows=rows)


def _report_absent(source: Source, connection: Connection, sql: str) -> None:
    """Report the tables in a statement that appear empty because the lake does not store them."""
    folder = _find_folder(source)
    if folder is not None and (text := folder.describe_absent(connection, sql)):
        source.patience.tell(text)


def _as_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _check_own(source: Source, own: Path) -> None:
    from joulemap.plan.catalogue import opening_catalogue

    refused = []
    with opening_catalogue(source, limit(Bounds().max_memory_bytes)) as connection:
        for query in find_queries(own):
            if query.path.is_relative_to(own):
                try:
                    check_query(connection, query)
                except SqlError as error:
                    refused.append(str(error))
    if refused:
        raise SqlError("; ".join(refused))
