"""Macros and views of a database for queries (the surface); each version of the program has its own.

They contain no rows, so a database with views of another version is accepted. A writer replaces them. A reader creates
temporary ones, which last as long as its connection. Each version of the engine parses and prints the same text in its
own way, so the version that stored them is recorded, and a writer with another one stores them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.dimension import fill_views, list_dimensions
from joulemap.domain.metric import METRICS, Metric
from joulemap.domain.scope import SCOPE_NAMES, SCOPES
from joulemap.physics.record.runtime import RUNTIME_NAMES, RUNTIMES
from joulemap.physics.record.spread import BASIS_SPREAD
from joulemap.store.literal import execute, quote_name, quote_text
from joulemap.system.name import join_choices
from joulemap.system.record import frozen
from joulemap.system.resource import folder

if TYPE_CHECKING:
    import duckdb

FILES: Final = ("macros.sql", "views.sql")
"""SQL files of the surface, in the order in which they are executed."""

COMMENT: Final = re.compile(r"^COMMENT ON .*;$", re.MULTILINE)

_CREATE: Final = re.compile(r"^CREATE (?=(?:MACRO|VIEW) (\w+))", re.MULTILINE)

_RECORD_TABLE: Final = """
CREATE OR REPLACE TABLE internal.schema_surface (
    digest VARCHAR NOT NULL, names VARCHAR[] NOT NULL, engine_version VARCHAR NOT NULL
);
COMMENT ON TABLE internal.schema_surface IS 'Which macros and views joulemap made in this database';
COMMENT ON COLUMN internal.schema_surface.digest IS 'SHA-256 of their text';
COMMENT ON COLUMN internal.schema_surface.names IS 'What they are called: others stay when these are replaced';
COMMENT ON COLUMN internal.schema_surface.engine_version IS 'Version of DuckDB that stored them';
"""


@frozen
class Surface:
    """SQL of all macros and views of this version, with comments for view columns."""

    sql: str
    columns: str = ""
    """TOML text: column name -> default comment of view columns."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of both texts, in hexadecimal digits."""
        import hashlib

        return hashlib.sha256((self.sql + self.columns).encode()).hexdigest()


def define_metrics(metrics: Sequence[Metric]) -> str:
    """Return SQL for macros that return, by the name of a metric, its properties, its value in a row of `runs`, and the
    half-width of its interval in a row of `internal.run_total`.

    The engine folds the macros' constants; reading a table would cost a join at every use.
    """
    names = {one.name: f"'{one.name}'" for one in metrics}
    known = ", ".join(names)
    unknown = f"error('unknown metric ' || metric_name || ', expected one of {known}')"
    needed = ": it needs prices and a utilization, as in `joulemap cost`"
    priced = f"error('these rows have no metric ' || metric_name || '{needed}')"
    properties = [
        f"{names[one.name]} THEN {{column_name: '{one.column}', unit: '{one.unit}', missing: '{one.missing}', "
        f"is_higher_better: {one.is_higher_better}, energy_power: {one.energy_power}, "
        f"half_width_column: '{one.half_width_column}'}}"
        for one in metrics
    ]
    values = [
        f"{names[one.name]} THEN {f'CAST(one.{one.column} AS DOUBLE)' if one.is_of_runs else priced}" for one in metrics
    ]
    widths = [f"{names[one.name]} THEN total.{one.half_width_column}" for one in metrics if one.half_width_column]
    return "\n".join(
        f"CREATE MACRO {macro} AS CASE metric_name {' '.join(f'WHEN {one}' for one in cases)} ELSE {otherwise} END;"
        for macro, cases, otherwise in (
            ("find_metric(metric_name)", properties, unknown),
            ("run_metric(metric_name, one)", values, unknown),
            ("metric_half_width(metric_name, total)", widths, "0e0"),
        )
    )


CHOICES: Final[Mapping[str, str]] = {
    "{any runtime}": join_choices(RUNTIME_NAMES),
    "{any class}": join_choices(CLASS_HARDWARE),
    "{any scope}": join_choices(SCOPE_NAMES),
    "{each scope}": join_choices(f"{one.name} ({one.meaning})" for one in SCOPES),
    "{merging runtime}": ", ".join(quote_text(one.name) for one in RUNTIMES if one.merges),
    "{prompt scope}": ", ".join(quote_text(one.name) for one in SCOPES if one.is_prompt),
    "{loaded scope}": ", ".join(quote_text(one.name) for one in SCOPES if one.is_loaded),
}
"""Slot in SQL, or in the meaning of a column -> members of a closed set, as SQL or in words."""


def fill_choices(text: str) -> str:
    """Return text with closed sets filled in."""
    for slot, members in CHOICES.items():
        text = text.replace(slot, members)
    return text


def define_prices() -> str:
    """Return SQL for the macro that returns the half-width of a price's natural logarithm by its basis."""
    rows = " ".join(f"WHEN '{basis}' THEN ln({factor!r}e0)" for basis, factor in BASIS_SPREAD.items())
    return f"CREATE MACRO find_price_half_width(basis) AS CASE basis {rows} END;"


@cache
def load_surface() -> Surface:
    """Return the macros and views of this version."""
    surface = folder("schemas") / "surface"
    texts = [fill_choices((surface / name).read_text(encoding="utf-8")) for name in (*FILES, "columns.toml")]
    sql = fill_views("\n".join([define_metrics(METRICS), define_prices(), *texts[:-1]]))
    meanings = {one.view_column: one.meaning for one in list_dimensions()}
    meanings |= {one.column: one.column_meaning for one in METRICS}
    lines = (f"{column} = {json.dumps(meaning)}\n" for column, meaning in meanings.items() if meaning)
    return Surface(sql, "".join((texts[-1], *lines)))


def holds_surface(connection: duckdb.DuckDBPyConnection, *, by_this_engine: bool = False) -> bool:
    """Return whether a database has exactly the macros and views of this version, and if asked, stored by the engine
    that runs.
    """
    import duckdb

    engine = duckdb.__version__ if by_this_engine else "%"
    try:
        rows = execute(
            connection, "SELECT digest FROM internal.schema_surface WHERE engine_version LIKE ?", [engine]
        ).fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        return False
    return rows == [(load_surface().digest,)]


def write_surface(connection: duckdb.DuckDBPyConnection, *, has_comments: bool = True) -> None:
    """Replace joulemap's macros and views by those of this version. The caller holds the transaction."""
    import duckdb

    for kind, name in _find_made(connection):
        connection.execute(f"DROP {kind} {quote_name(name)}")
    surface = load_surface()
    text = surface.sql if has_comments else COMMENT.sub("", surface.sql)
    connection.execute(_CREATE.sub("CREATE OR REPLACE ", text))
    if has_comments:
        _comment_columns(connection, surface.columns)
    connection.execute(_RECORD_TABLE)
    execute(
        connection,
        "INSERT INTO internal.schema_surface VALUES (?, ?, ?)",
        [surface.digest, _CREATE.findall(surface.sql), duckdb.__version__],
    )


def _find_made(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return (kind, name) of each macro and view in the database that joulemap created.

    The caller holds a transaction, which a failing statement would end. So this reads the list of tables first.
    """
    recorded = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'internal' AND table_name = 'schema_surface'"
    ).fetchall()
    if not recorded:  # a new database
        return []
    return connection.execute(
        "WITH made AS (SELECT unnest(names) AS name FROM internal.schema_surface) "
        "SELECT 'VIEW' AS kind, view_name AS name FROM duckdb_views() WHERE NOT internal "
        "AND view_name IN (FROM made) UNION "
        "SELECT CASE function_type WHEN 'macro' THEN 'MACRO' ELSE 'MACRO TABLE' END, function_name "
        "FROM duckdb_functions() WHERE NOT internal AND function_name IN (FROM made) ORDER BY ALL"
    ).fetchall()


def bring_surface(connection: duckdb.DuckDBPyConnection) -> None:
    """Create this version's macros and views temporarily, if a database has those of another version."""
    if not holds_surface(connection):
        connection.execute(_CREATE.sub("CREATE OR REPLACE TEMP ", COMMENT.sub("", load_surface().sql)))


def begin_cursor(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a second connection to the same database, with this version's macros and views."""
    cursor = connection.cursor()
    bring_surface(cursor)
    return cursor


def _comment_columns(connection: duckdb.DuckDBPyConnection, columns: str) -> None:
    """Add default comments to view columns that have none."""
    import tomllib

    meanings = tomllib.loads(columns)
    silent = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL "
        "AND table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal)"
    ).fetchall()
    comments = [
        f"COMMENT ON COLUMN {quote_name(view)}.{quote_name(column)} IS {quote_text(meanings[column])}"
        for view, column in silent
        if column in meanings
    ]
    connection.execute(";".join(comments) or "SELECT 1")
