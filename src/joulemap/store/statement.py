"""Execution of a prepared statement: as batches of rows, as Arrow, or into a Parquet file.

Values that Python lacks (times with a zone, intervals, infinite dates) are returned as the engine's text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import attrs
import duckdb

from joulemap.domain.settings import Bounds
from joulemap.domain.table import Column, Table
from joulemap.store import literal
from joulemap.store.bound import BATCH, Count, bounding, check_rows
from joulemap.store.connection import Connection
from joulemap.store.literal import quote_name
from joulemap.store.parquet import (
    ABSENT,
    CLIPPED,
    WIDE_TYPES,
    WIDEST,
    copy_to_parquet,
    describe_table,
    has_endless,
    replace_types,
    save_table,
)
from joulemap.store.surface import begin_cursor
from joulemap.system.errors import SqlError, UsageError
from joulemap.system.record import define, frozen
from joulemap.system.resource import need_package

ENGINE_ERRORS: Final = (duckdb.OperationalError, duckdb.InternalError, duckdb.FatalException)
"""Errors that concern the database rather than a statement; the caller that opened the database handles them."""

EFFECTS: Final = (
    "checkpoint", "create_external_resource", "deregister_external_resource", "destroy_external_resource",
    "disable_logging", "disable_profiling", "enable_logging", "enable_profiling", "force_checkpoint", "nextval",
    "register_external_resource", "register_external_resource_type", "setval", "truncate_duckdb_logs", "write_log",
)  # fmt: skip
"""Engine functions with side effects, which statements that only read may not call."""

_CALLED: Final = re.compile(rf'"function_name":"({"|".join(EFFECTS)})"', re.IGNORECASE)

TELL_S: Final = 0.2
"""Seconds between progress reports."""

ARROW_ROWS: Final = 20_000
"""Rows per Arrow batch."""

_PIVOT: Final = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:PIVOT|SELECT|FROM|WITH|EXPLAIN)\b", re.IGNORECASE | re.DOTALL
)
"""Pattern of a read-only PIVOT statement; the engine splits it in two if its columns come from data."""

MULTIPLE: Final = "MULTI"
"""Kind that DuckDB 2.0 gives to a PIVOT whose columns come from data; 1.5 splits it into CREATE and SELECT."""

Batch = list[tuple[Any, ...]]


@define
class _Stream:
    """Arrow batches that the engine keeps until they are read or the statement is closed."""

    cursor: Connection
    reader: Any
    """Arrow reader; None after `close`."""

    def close(self) -> None:
        """Release the batches."""
        self.reader = None
        self.cursor.close()


@frozen(kw_only=True)
class Statement:
    """Planned SELECT on an open database; each method that returns rows runs it once."""

    connection: Connection
    title: str
    """Title for display: `topic.name@version`, or `sql`."""
    columns: tuple[Column, ...]
    """Columns of the result, with distinct names."""
    sql: str
    parameters: Mapping[str, Any]
    bounds: Bounds
    projected: frozenset[str] = frozenset()
    """Ids of projected hardware to mark for display; it can be neither bought nor rented."""
    can_nest: bool = True
    """True if the statement may be a subquery; EXPLAIN may not."""
    _streams: list[_Stream] = attrs.field(factory=list, init=False, eq=False, repr=False)

    def close(self) -> None:
        """Release rows that were not read, so that they do not keep the database open."""
        for stream in self._streams:
            stream.close()

    def head(self, rows: Sequence[tuple[Any, ...]] = ()) -> Table[tuple[Any, ...]]:
        """Return a table with the statement's columns and these rows."""
        return Table(
            title=self.title,
            columns=self.columns,
            rows=tuple(rows),
            sql=self.sql,
            parameters=self.parameters,
            projected=self.projected,
        )

    def describe_most(self, row_count: int) -> tuple[str, ...]:
        """Return the note that parameter `most` cut the result off; empty if it has fewer rows than `most`."""
        most = self.parameters.get("most")
        return (f"{most:,} rows at most: -p most=0 for all",) if most and most == row_count else ()

    def table(self) -> Table[tuple[Any, ...]]:
        """Return a table of all rows. Raise SqlError if they exceed the limits of time, rows or memory."""
        rows: Batch = []
        with self._cursor() as cursor, bounding(cursor, self.bounds), blaming():
            fetch = self._begin(cursor)
            count = Count(self.bounds, [column.type for column in self.columns])
            while batch := fetch():
                rows += batch
                count.add(batch)
        return attrs.evolve(self.head(rows), notes=self.describe_most(len(rows)))

    def batches(self) -> Iterator[Batch]:
        """Yield batches of rows as the engine returns them; the consumer's own time does not count.

        Raises SqlError if no batch arrives within the time limit, or if the rows exceed the limits of number or memory.
        """
        with self._cursor() as cursor:
            with bounding(cursor, self.bounds), blaming():
                fetch = self._begin(cursor)
            count = Count(self.bounds, [column.type for column in self.columns])
            while True:
                with bounding(cursor, self.bounds), blaming():
                    batch = fetch()
                if not batch:
                    return
                count.add(batch)
                count.let_go()
                yield batch

    def arrow(self) -> Any:
        """Return a `pyarrow.RecordBatchReader` of the rows, which stay in the engine's memory without Python objects.

        Integers of more than 64 bits are decimals without fractional digits. Reading raises SqlError if a limit is
        exceeded or the statement was closed. Raises MissingPackageError if pyarrow is not installed.
        """
        need_package("pyarrow", "arrow")
        import pyarrow as pa

        names = [column.name for column in self.columns]
        cursor = begin_cursor(self.connection)
        with bounding(cursor, self.bounds), blaming():
            reader = literal.relate(cursor, self.sql, self.parameters).to_arrow_reader(ARROW_ROWS)
        schema = pa.schema(list(zip(names, reader.schema.types, strict=True)))
        stream = _Stream(cursor=cursor, reader=reader)
        self._streams.append(stream)
        return pa.RecordBatchReader.from_batches(schema, self._read(stream, names))

    def _read(self, stream: _Stream, names: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        count = 0
        while True:
            if stream.reader is None:
                raise SqlError("the statement is closed: read its rows earlier")
            try:
                with bounding(stream.cursor, self.bounds), blaming():
                    batch = stream.reader.read_next_batch()
            except StopIteration:
                return
            count += batch.num_rows
            check_rows(count, self.bounds)
            yield pa.RecordBatch.from_arrays(batch.columns, names=names)

    def save(self, path: Path, report: Callable[[int], None] | None = None) -> int:
        """Write the rows to a Parquet file, the one for which the database was opened; return their number.

        `report` is called regularly with the bytes written so far. Raises SqlError if nothing is written within the
        time limit, the rows exceed the limits, or a type is not available in Parquet. Raises OSError if the file cannot
        be written.
        """
        if not self.can_nest:
            table = self.table()
            save_table(path, table)
            return len(table)
        wide = [
            f"CAST(#{index} AS {WIDEST})" if column.type in WIDE_TYPES else f"#{index}"
            for index, column in enumerate(self.columns, 1)
        ]
        named = [f"{value} AS {quote_name(column.name)}" for value, column in zip(wide, self.columns, strict=True)]
        most = "" if self.bounds.max_rows is None else f" LIMIT {self.bounds.max_rows + 1}"
        statement = f"SELECT {', '.join(named)} FROM (\n{strip(self.sql)}\n){most}"
        with (
            self._cursor() as cursor,
            bounding(cursor, self.bounds, lambda: _size(path)),
            blaming(),
            _reporting_size(path, report),
        ):
            count = copy_to_parquet(cursor, statement, self.parameters, path, describe_table(self.head()))
        check_rows(count, self.bounds)
        return count

    def count(self, most_s: float) -> int | None:
        """Return the number of rows, counted on a second connection; None if that takes more than `most_s` seconds."""
        if not self.can_nest:
            return None
        quick = attrs.evolve(self.bounds, timeout_s=most_s)
        with self._cursor() as cursor, contextlib.suppress(SqlError):
            with bounding(cursor, quick), blaming():
                rows = execute(cursor, f"SELECT count(*) FROM (\n{strip(self.sql)}\n)", self.parameters).fetchall()
            return int(rows[0][0])
        return None

    def _cursor(self) -> AbstractContextManager[Connection]:
        """Return a context with a separate connection, because a connection has only one result at a time."""
        return contextlib.closing(begin_cursor(self.connection))

    def _begin(self, connection: Connection) -> Callable[[], Batch]:
        """Run the statement. Return a function that returns the next batch of rows, which is empty after the last."""
        kinds = [column.type for column in self.columns]
        plain = [replace_types(kind, ABSENT) for kind in kinds]
        shown = [f"CAST(#{index} AS {kind})" if kind else f"#{index}" for index, kind in enumerate(plain, 1)]
        ends = {
            index: replace_types(kind, ABSENT | CLIPPED)
            for index, kind in enumerate(kinds)
            if replace_types(kind, CLIPPED)
        }
        if not self.can_nest or not (any(plain) or ends):
            cursor = execute(connection, self.sql, self.parameters)
            return lambda: cursor.fetchmany(BATCH)
        shown += [f"CAST(#{index + 1} AS {kind})" for index, kind in ends.items()]
        nested = f"SELECT {', '.join(shown)} FROM (\n{strip(self.sql)}\n)"
        cursor = execute(connection, nested, self.parameters)
        return lambda: _put_ends(cursor.fetchmany(BATCH), list(ends), len(kinds))


def prepare(connection: Connection, title: str, sql: str, parameters: Mapping[str, Any], bounds: Bounds) -> Statement:
    """Return a statement that was planned but not run.

    Raises SqlError if the SQL does not parse, is not one SELECT, or is refused by the engine. Raises UsageError if the
    given parameters differ from those in the SQL.
    """
    statement = parse_statement(connection, sql)
    kind = name_kind(statement)
    if kind not in ("SELECT", "EXPLAIN"):
        raise SqlError(f"expected a SELECT, found {kind}; the database is read only here")
    needed = set(statement.named_parameters)
    missing, surplus = needed - set(parameters), set(parameters) - needed
    if missing:
        raise UsageError(f"the statement needs {', '.join(f'-p {name}=VALUE' for name in sorted(missing))}")
    if surplus:
        raise UsageError(f"the statement has no ${', $'.join(sorted(surplus))}")
    with bounding(connection, bounds), blaming():
        bound = literal.relate(connection, sql, parameters)
        names, kinds = _distinct(bound.columns), list(map(str, bound.types))
    return Statement(
        connection=connection,
        title=title,
        columns=tuple(Column(name=name, type=one, meaning="") for name, one in zip(names, kinds, strict=True)),
        sql=sql,
        parameters=parameters,
        bounds=bounds,
        can_nest=kind != "EXPLAIN",
    )


def _refuse_effects(connection: Connection, sql: str) -> None:
    """Raise SqlError for a SELECT that calls a function with side effects. Calls inside `query('...')` fail at run
    time.
    """
    if any(name in sql.casefold() for name in EFFECTS):
        ((tree,),) = literal.execute(connection, "SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
        called = _CALLED.search(tree)
        if called is not None:
            raise SqlError(
                f"expected a SELECT that only reads; {called[1]} does more, and the database is read only here"
            )


def parse_statement(connection: Connection, sql: str) -> duckdb.Statement:
    """Return the only statement in a text. Raise SqlError if it does not parse, is not one statement, or has side
    effects.
    """
    if "\0" in sql:
        raise SqlError(f"the statement has a NUL at character {sql.index(chr(0))}, where the engine would end it")
    try:
        sql.encode()
        statements = connection.extract_statements(sql)
    except UnicodeEncodeError as error:
        raise SqlError(
            f"the statement is not text at character {error.start}: it has half of a surrogate pair"
        ) from error
    except (duckdb.Error, ValueError) as error:
        raise SqlError(first_line(error)) from error
    if [name_kind(one) for one in statements] == ["CREATE", "SELECT"] and _PIVOT.match(sql):
        statements = statements[1:]
    if len(statements) != 1:
        raise SqlError(f"expected one statement, found {len(statements)}")
    _refuse_effects(connection, sql)
    return statements[0]


def name_kind(statement: duckdb.Statement) -> str:
    """Return the kind of a statement, such as SELECT; duckdb's Python package has no names for the newest kinds.

    A PIVOT, which DuckDB 2.0 calls a multiple statement, is a SELECT.
    """
    try:
        kind = str(statement.type.name)
        return "SELECT" if kind == MULTIPLE and _PIVOT.match(statement.query) else kind
    except ValueError:
        return "another statement"


def execute(connection: Connection, sql: str, parameters: Mapping[str, Any]) -> Connection:
    """Run a statement and return the connection from which its rows are fetched. Raise SqlError if the statement is
    wrong.
    """
    with blaming():
        return literal.execute(connection, sql, parameters)


def blames_statement(error: duckdb.Error) -> bool:
    """Return whether an error was caused by the statement rather than by the database.

    A plain duckdb.Error means a damaged block, because the engine has no class for it.
    """
    if isinstance(error, duckdb.TransactionException):  # only the statement itself could begin or end one
        return True
    return type(error) is not duckdb.Error and not isinstance(error, ENGINE_ERRORS)


@contextlib.contextmanager
def blaming() -> Iterator[None]:
    """Convert errors that the statement caused into SqlError; other errors pass through."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.InterruptException) or not blames_statement(error):
            raise
        raise SqlError(first_line(error)) from error


def first_line(error: Exception) -> str:
    """Return an engine's error as one line: the main message, with a suggestion if there is one."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    lines = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")] or lines
    hints = [line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))]
    return " ".join([lines[0], *hints[:1]]) if lines else type(error).__name__


def strip(sql: str) -> str:
    """Return a statement without trailing semicolons and comments."""
    written = sql.encode()
    tokens = duckdb.tokenize(sql)
    end = len(written)
    while tokens and (tokens[-1][1] is duckdb.token_type.comment or written[tokens[-1][0] :].lstrip()[:1] == b";"):
        end = tokens.pop()[0]
    return written[:end].decode()


def _put_ends(batch: Batch, columns: Sequence[int], width: int) -> Batch:
    """Return the first `width` columns of rows, with dates that Python cannot represent replaced by their text.

    The texts are in further columns, one for each index in `columns`.
    """
    rows = [row[:width] for row in batch]
    for total, index in enumerate(columns, width):
        if has_endless(row[index] for row in batch):
            for number, (row, whole) in enumerate(zip(rows, batch, strict=True)):
                if has_endless((row[index],)):
                    rows[number] = (*row[:index], whole[total], *row[index + 1 :])
    return rows


def _distinct(names: list[str]) -> list[str]:
    """Return column names made distinct by number suffixes, so that a record keeps every column."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


@contextlib.contextmanager
def _reporting_size(path: Path, report: Callable[[int], None] | None) -> Iterator[None]:
    """Call `report` regularly with the size of a file in bytes while it is written in this context."""
    if report is None:
        yield
        return
    over = Event()

    def watch() -> None:
        while not over.wait(TELL_S):
            report(_size(path))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
