"""Time, memory and row limits of queries: stop a query that exceeds one, and name the limit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from typing import Any, Final

import duckdb

from joulemap.domain.settings import Bounds
from joulemap.system.errors import SqlError
from joulemap.system.record import define

REPEAT_S: Final = 0.05
"""Seconds between interrupts of a query; the engine ignores an interrupt between two steps."""

BATCH: Final = 2048
"""Rows fetched at a time: one vector of the engine."""

FIXED: Final = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIMESTAMP",
        "UUID",
    ]
)
"""Column types whose Python values all take about the same memory."""

FIXED_BYTES: Final = 64
"""Assumed bytes of a Python object with a value of a type in `FIXED`."""


@contextlib.contextmanager
def bounding(
    connection: duckdb.DuckDBPyConnection, bounds: Bounds, sign: Callable[[], object] | None = None
) -> Iterator[None]:
    """Interrupt the query in this context when its time limit is exceeded. Raise SqlError that names the exceeded
    limit.

    If `sign` returns a changed measure of progress when the time is over, the time restarts. The engine does not react
    to an interrupt within one call of a SQL function.
    """
    over, struck = Event(), Event()

    def watch() -> None:
        wait, seen = bounds.timeout_s, sign and sign()
        while not over.wait(wait):
            last, seen = seen, sign and sign()
            if seen != last:
                continue
            struck.set()
            connection.interrupt()
            wait = REPEAT_S

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except duckdb.InterruptException as error:
        if not struck.is_set():
            raise
        raise SqlError(describe_time_limit(bounds)) from error
    except duckdb.OutOfMemoryException as error:
        raise SqlError(describe_memory_limit(bounds)) from error
    finally:
        over.set()
        watcher.join()


@define
class Count:
    """Number of rows received from a query, and their approximate memory in bytes."""

    bounds: Bounds
    kinds: Sequence[str]
    """SQL types of the columns."""
    rows: int = 0
    size: int = 0

    def add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Count a batch of rows. Raise SqlError if the rows or their memory exceed the limits."""
        self.rows += len(batch)
        check_rows(self.rows, self.bounds)
        self.size += FIXED_BYTES * len(self.kinds) * len(batch)
        for index, kind in enumerate(self.kinds):
            if kind == "VARCHAR":
                self.size += sum([len(row[index]) for row in batch if row[index] is not None])
            elif kind not in FIXED:
                self.size += sum(_size(row[index]) for row in batch)
        if self.size > self.bounds.max_memory_bytes:
            raise SqlError(describe_memory_limit(self.bounds))

    def let_go(self) -> None:
        """Reset the memory count after the rows received so far were released."""
        self.size = 0


def check_rows(count: int, bounds: Bounds) -> None:
    """Raise SqlError for more rows than the limits allow."""
    if bounds.max_rows is not None and count > bounds.max_rows:
        raise SqlError(
            f"more than {bounds.max_rows:,} rows: ask for fewer, for example with LIMIT, or allow more with --max-rows"
        )


def describe_time_limit(bounds: Bounds) -> str:
    """Return the error message for a query that exceeded its time limit."""
    return f"stopped after {bounds.timeout_s:g} s: ask for less, or allow more with --timeout SECONDS"


def describe_memory_limit(bounds: Bounds) -> str:
    """Return the error message for a query that exceeded its memory limit."""
    limit = f"{bounds.max_memory_bytes / 1e6:,.0f} MB"
    return f"stopped, because it needs more than {limit} of memory: ask for less, or allow more, e.g. --max-memory 8GB"


def _size(value: Any) -> int:
    """Return the approximate bytes of a value beyond `FIXED_BYTES`."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(FIXED_BYTES + _size(item) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return sum(FIXED_BYTES + _size(item) for item in value)
    return 0
