"""Render the queries of `queries` as plain SQL.

    queries/TOPIC/NAME.vN.sql ──► macros, metrics and calls of other queries filled in ──► generated/sql/TOPIC.sql
                              └─► header, with the columns of called queries ──► generated/sql/header.jsonl

A query that is pasted into `duckdb` needs values for its parameters, and the views of a joulemap database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain.assumed import LEAST_ASSUMED, MOSTLY_STATIC
from joulemap.domain.metric import METRICS
from joulemap.domain.table import Column
from joulemap.domain.use import FORMULAS, split_formula
from joulemap.store.contract import Parameter, Query
from joulemap.store.header import parse_query, read_entries
from joulemap.store.library import HEADERS, SHIPPED, START
from joulemap.store.surface import fill_choices
from joulemap.system.errors import SqlError
from joulemap.system.file import parse_toml, read_text
from joulemap.system.resource import folder
from tools import GENERATED
from tools.include import include, inherit, list_cells

TOGETHER: Final = (
    ("analyze.action", "analyze.bottleneck", "analyze.category", "analyze.roofline", "analyze.subgraph"),
    ("architectures.action", "architectures.category"),
    ("edp.bound", "edp.cut", "edp.distribution", "edp.operator", "edp.pattern", "edp.total"),
    (
        "explain.category", "explain.delay", "explain.edp", "explain.effect", "explain.energy", "explain.latency",
        "explain.purpose", "explain.role", "explain.subgraph", "explain.total",
    ),
    ("fusion.subgraph", "fusion.total"),
    ("llm.phase", "llm.winner"),
    ("recommend.configuration", "recommend.violation"),
    ("sweep.crossing", "sweep.series", "sweep.winner"),
)  # fmt: skip
"""Queries that answers run together and that call the same queries."""

Words = tuple[Mapping[str, Parameter], Mapping[str, Column]]
"""(parameter name -> parameter, column name -> column)."""


@cache
def _files() -> dict[str, dict[int, Path]]:
    """Return query name -> version -> file."""
    versions: dict[str, dict[int, Path]] = {}
    for path in sorted(folder("queries").glob("*/*.v*.sql")):
        stem, _, version = path.stem.rpartition(".v")
        versions.setdefault(f"{path.parent.name}.{stem}", {})[int(version)] = path
    return versions


def find_source(name: str) -> Query:
    """Return the newest version of `topic.name`, or the version in `topic.name@version`, with calls of other queries in
    its SQL.
    """
    stem, _, version = name.partition("@")
    versions = _files()[stem]
    return read_source(versions[int(version) if version else max(versions)])


@cache
def read_source(path: Path) -> Query:
    """Return the query in a file, with the columns that called queries declare, and with calls of them in its SQL."""
    query = parse_query(path)
    try:
        query = _fill_metrics(attrs.evolve(query, sql=fill_shares(query.sql.replace("p.{costs}", spell_costs()))))
        return inherit(query, _files().__contains__, find_source, _words())
    except SqlError as error:
        raise SqlError(f"{path.name}: {error}") from error


def spell_costs() -> str:
    """Return the formulas as columns in SQL; their inputs are columns of a relation p."""
    columns = []
    for name, text in FORMULAS.items():
        words = [f"p.{word}" if word.isidentifier() and word not in FORMULAS else word for word in split_formula(text)]
        columns.append(f"{' '.join(words)} AS {name}")
    return ",\n        ".join(columns)


def fill_shares(sql: str) -> str:
    """Return the SQL of a query with these shares in place of `{least_assumed}` and `{mostly_static}`."""
    return sql.replace("{least_assumed}", f"{LEAST_ASSUMED!r}e0").replace("{mostly_static}", f"{MOSTLY_STATIC!r}e0")


@cache
def _words() -> Words:
    """Return the parameters and columns of `words.toml`, which mean the same in every query."""
    tables = parse_toml(fill_choices(read_text(folder("queries") / "words.toml")))
    parameters, columns = read_entries(Parameter, tables["parameters"]), read_entries(Column, tables["columns"])
    return {one.name: one for one in parameters}, {one.name: one for one in columns}


def _fill_metrics(query: Query) -> Query:
    """Return a query in which `, r.{metric}` is replaced by a column for each run metric that it lacks."""
    if "{metric}" not in query.sql:
        return query
    own = {*list_cells(query.sql), *(column.name for column in query.columns)}
    new = [one for one in METRICS if one.is_of_runs and one.column not in own]
    sql = re.sub(r", (\w)\.{metric}", lambda row: "".join(f", {row[1]}.{one.column}" for one in new), query.sql)
    columns = [Column(name=one.column, type="DOUBLE", null=True, unit=one.unit, meaning=one.label) for one in new]
    return attrs.evolve(query, sql=sql, columns=(*query.columns, *columns))


def render(query: Query) -> Query:
    """Return a query with the SQL of other queries in place of calls."""
    names = next((names for names in TOGETHER if query.name in names), ())
    try:
        others = [find_source(name).sql for name in names]
        return attrs.evolve(query, sql=include(query.sql, _files().__contains__, find_source, others))
    except SqlError as error:
        raise SqlError(f"{query.path.name}: {error}") from error


def render_all() -> tuple[Query, ...]:
    """Return every version of every query, sorted by name and version."""
    return tuple(
        render(read_source(path)) for _, files in sorted(_files().items()) for _, path in sorted(files.items())
    )


def _spell_header(query: Query) -> str:
    """Return the header of a query as a line of JSON."""

    def spell(one: Parameter | Column) -> Mapping[str, object]:
        return attrs.asdict(one, filter=lambda field, value: value != field.default)

    fields = {name: getattr(query, name) for name in ("record", "schema", "summary", "grain", "order", "table")}
    entries = {name: [spell(one) for one in getattr(query, name)] for name in ("parameters", "columns")}
    text = json.dumps({"title": query.title, **fields, **entries}, ensure_ascii=False, separators=(",", ":"))
    assert text.startswith(START)
    return text


def _spell_topic(topic: str, queries: list[Query]) -> Iterator[str]:
    """Yield the parts of the file of one topic."""
    yield f"-- {GENERATED}\n-- Queries of `queries/{topic}`; values take the places of `$name`.\n"
    for query in queries:
        assert ";\n" not in query.sql, f"{query.title}: a line that ends in a semicolon"
        yield f"\n-- {query.title}\n{query.sql};\n"


def spell_sql() -> dict[Path, str]:
    """Return path -> text of every file."""
    topics: dict[str, list[Query]] = {}
    queries = render_all()
    for query in queries:
        topics.setdefault(query.name.partition(".")[0], []).append(query)
    texts = {SHIPPED / f"{topic}.sql": "".join(_spell_topic(topic, mine)) for topic, mine in topics.items()}
    return {**texts, HEADERS: "".join(f"{_spell_header(query)}\n" for query in queries)}
