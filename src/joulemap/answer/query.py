"""Versioned queries and ad-hoc statements, read-only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joulemap.domain.settings import Bounds
from joulemap.domain.table import Column
from joulemap.errors import SqlError
from joulemap.plan.source import Source, reading
from joulemap.store.connection import limit
from joulemap.store.library import find_query, list_queries
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.query import Rows, check_query, check_runs, find_projected, prepare_query, run_query
from joulemap.store.statement import Statement, prepare

LISTED = (
    Column(name="query", type="VARCHAR", meaning="name@version"),
    Column(name="parameters", type="VARCHAR", meaning="what it takes"),
    Column(name="summary", type="VARCHAR", meaning="what it answers"),
)


@contextlib.contextmanager
def opening_named(
    source: Source, name: str, parameters: Mapping[str, Any], own: Path | None, bounds: Bounds, output: Path | None
) -> Iterator[Statement]:
    """Give out a query, as `Workspace.stream_query` documents it; `own` is a person's folder of queries."""
    query = find_query(name, own)
    is_own = own is not None and query.path.is_relative_to(own)
    kind = limit(bounds.max_memory_bytes, is_confined=is_own, output=output)
    with reading(source, kind) as connection:
        if is_own:
            check_query(connection, query, SCHEMA_VERSION)
        check_runs(connection, parameters)
        with contextlib.closing(
            find_projected(connection, prepare_query(connection, query, parameters, bounds))
        ) as statement:
            yield statement


def run_named(source: Source, name: str, parameters: Mapping[str, Any], own: Path | None, bounds: Bounds) -> Rows:
    """Run a query, as `Workspace.query` documents it."""
    with opening_named(source, name, parameters, own, bounds, None) as statement:
        return statement.table()


def run_described(source: Source, name: str, parameters: Mapping[str, Any]) -> Rows:
    """Run a query about the catalogue, as `Workspace.describe` documents it."""
    from joulemap.plan.catalogue import opening_catalogue

    query = find_query(name)
    with opening_catalogue(source) as connection:
        return find_projected(connection, run_query(connection, query, parameters))


@contextlib.contextmanager
def opening_statement(
    source: Source, statement: str, parameters: Mapping[str, Any] | None, bounds: Bounds, output: Path | None
) -> Iterator[Statement]:
    """Give out one ad-hoc SELECT, as `Workspace.stream` documents it."""
    with reading(source, limit(bounds.max_memory_bytes, is_confined=True, output=output)) as connection:
        prepared = prepare(connection, "sql", statement, parameters or {}, bounds)
        with contextlib.closing(find_projected(connection, prepared)) as ready:
            yield ready


def run_statement(source: Source, statement: str, parameters: Mapping[str, Any] | None, bounds: Bounds) -> Rows:
    """Run one ad-hoc SELECT, as `Workspace.sql` documents it."""
    with opening_statement(source, statement, parameters, bounds, None) as prepared:
        return prepared.table()


def list_named(source: Source, own: Path | None) -> Rows:
    """Return the queries that ship and a person's own, checked, as `Workspace.list_queries` documents it."""
    found = list_queries(own)
    if own is not None:
        _check_own(source, own)
    rows = tuple(
        (
            query.title,
            " ".join(one.name if one.is_required else f"[{one.name}]" for one in query.parameters),
            query.summary,
        )
        for query in found
    )
    return Rows(title="query list", columns=LISTED, rows=rows)


def _check_own(source: Source, own: Path) -> None:
    from joulemap.plan.catalogue import opening_catalogue

    refused = []
    with opening_catalogue(source, limit(Bounds().max_memory_bytes, is_confined=True)) as connection:
        for query in list_queries(own):
            if query.path.is_relative_to(own):
                try:
                    check_query(connection, query, SCHEMA_VERSION)
                except SqlError as error:
                    refused.append(str(error))
    if refused:
        raise SqlError("; ".join(refused))
