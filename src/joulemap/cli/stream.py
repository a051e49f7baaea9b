"""Writer of a statement's rows as they arrive, in any number.

This module also stops a query that the engine does not stop. If stopping takes too long, the process ends, which does
not damage the database. The operating system limits memory, because the engine exceeds its own limit within one call of
a function.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from joulemap.cli.command import option
from joulemap.cli.interrupt import raise_if_interrupted
from joulemap.cli.output import DRAWN, PARQUET, OutputOptions, emit, emit_pieces, make_head
from joulemap.cli.voice import voice, write_message
from joulemap.show.present.format import write, write_rows
from joulemap.system.config import habit
from joulemap.system.draft import discard
from joulemap.system.errors import ExitCode, SqlError
from joulemap.system.file import write_file
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds
    from joulemap.store.statement import Batch, Statement
    from joulemap.workspace import Workspace

GRACE_S: Final = 1.0
"""Seconds that the engine may overrun the limit before the process ends."""
SLACK_BYTES: Final = 512e6
"""Memory in bytes that a command needs besides the query, such as for modules and buffers."""

SLACK_BYTES_PER_CORE: Final = 16e6
"""Memory in bytes that each thread of the engine needs besides the query."""

One = TypeVar("One")


@contextlib.contextmanager
def capping(bounds: Bounds) -> Iterator[None]:
    """Limit the memory of the process in the block to twice the bounds: once for the engine, once for the rows.

    Raises SqlError if an allocation fails. Systems without such a limit rely on the engine.
    """
    used = _read_data_bytes()
    try:
        import resource
    except ImportError:  # Windows
        used = None
    if used is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    slack = SLACK_BYTES + SLACK_BYTES_PER_CORE * (os.cpu_count() or 1)
    most = min((one for one in (soft, hard) if one >= 0), default=2**62)
    resource.setrlimit(resource.RLIMIT_DATA, (min(most, int(used + 2.0 * bounds.max_memory_bytes + slack)), hard))
    try:
        yield
    except MemoryError as error:
        from joulemap.store.bound import describe_memory_limit

        raise SqlError(describe_memory_limit(bounds)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _read_data_bytes() -> int | None:
    """Return the data memory of this process as Linux counts it against the limit; None on other systems."""
    with contextlib.suppress(OSError):
        match = re.search(r"^VmData:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        return 1024 * int(match[1]) if match else None
    return None


@contextlib.contextmanager
def ending_late(bounds: Bounds, sign: Callable[[], object] | None = None) -> Iterator[None]:
    """End the process with a message if the block exceeds the time limit.

    `sign` returns a measure of progress. If it has changed when the time is over, the time starts again.
    """
    over = Event()

    def watch() -> None:
        seen = sign and sign()
        while not over.wait(bounds.timeout_s + GRACE_S):
            last, seen = seen, sign and sign()
            if seen == last:
                _end(bounds)

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def each_in_time(items: Iterator[One], bounds: Bounds) -> Iterator[One]:
    """Yield the items; the time limit applies to the computation of each item, not to its use by the caller."""
    while True:
        with ending_late(bounds):
            item = next(items, None)
        if item is None:
            return
        yield item


def _end(bounds: Bounds) -> NoReturn:
    from joulemap.store.bound import describe_time_limit

    discard()
    write_message(f"joulemap: {describe_time_limit(bounds)}")
    os._exit(ExitCode.SQL)


SHOWN: Final = 200
"""Default maximum rows on a terminal."""

COUNT_S: Final = 2.0
"""Maximum seconds for counting the rows that are not shown."""

Open = Callable[["Workspace", Path | None], AbstractContextManager["Statement"]]
"""Function that opens a statement, for an output file that the engine writes or for None."""


@frozen(kw_only=True)
class StreamOptions(OutputOptions):
    """Options for the database and for the rows of a statement."""

    limit: int | None = option(
        None,
        "Maximum rows to show; json, csv and parquet have all.",
        min=1,
        shown=f"{SHOWN} on a terminal, else all",
    )

    def write_rows(self, open_: Open, bounds: Bounds, queries: Path | None = None) -> None:
        """Write the rows of a statement; `queries` is the folder of the user's own queries. Raises like `run`."""
        workspace = self.workspace()
        if self.written_form == PARQUET:
            with capping(bounds):
                self._save(workspace, open_, bounds, queries)
            return
        with capping(bounds), open_(workspace, None) as statement:
            done = [0]
            batches = _adding(each_in_time(statement.batches(), bounds), done)
            most = self._most()
            if most is None:
                with _counting(batches, is_reported=self._fills_file()) as counted:
                    head, form = statement.head(), self.written_form
                    pieces = write_rows(head, counted, form, self.row_width, is_raw=habit("raw"), is_whole=True)
                    if habit("envelope") and self.written_form == "json":
                        pieces = _wrap(pieces)
                    emit_pieces(chain(pieces, "\n"), self.output, self.guarded(self.output))
            else:
                emit(self._draw_first(statement, batches, most), self.output, self.guarded(self.output))
            for note in statement.describe_most(done[0]):
                voice.inform(note)
            self._print_sql((statement.head(),), queries)

    def _save(self, workspace: Workspace, open_: Open, bounds: Bounds, queries: Path | None) -> None:
        from joulemap.show.present.cell import show_quantity
        from joulemap.show.present.progress import watching

        output = self.output
        assert output is not None

        def save(draft: Path) -> None:
            with (
                watching() as say,
                open_(workspace, draft) as statement,
                ending_late(bounds, lambda: draft.exists() and draft.stat().st_size),
            ):
                statement.save(draft, lambda size: say(f"{show_quantity(float(size), 'B')} written"))
                heads.append(statement.head())

        heads: list[Any] = []
        write_file(output, save, self.guarded(self.output))
        voice.inform(f"wrote {output}")
        self._print_sql(heads, queries)

    def _most(self) -> int | None:
        """Return the maximum number of rows to show; None for all."""
        if self.written_form not in DRAWN:
            return None
        is_terminal = self.output is None and sys.stdout is not None and sys.stdout.isatty()
        return self.limit or (SHOWN if is_terminal else None)

    def _draw_first(self, statement: Statement, batches: Iterator[Batch], most: int) -> str:
        from joulemap.show.present.cell import show_count
        from joulemap.show.present.document import table_document

        rows: Batch = []
        while len(rows) <= most and (batch := next(batches, None)):
            rows += batch
        rest = ""
        if len(rows) > most:
            total = statement.count(COUNT_S)
            rest = "more rows" if total is None else show_count(total - most, "more row")
            shows = "--limit N shows N of them" if total is None else f"--limit {total} shows all"
            rest += f"; {shows}, `-o FILE` or a pipe gets all"
        document = table_document(statement.head(rows[:most]), rest=rest)
        return write(document, self.written_form, self.row_width, is_whole=True)

    def _fills_file(self) -> bool:
        """Return True if the rows go to a file, so that the terminal may show progress."""
        if self.output is not None:
            return True
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
        return False


def _adding(batches: Iterator[Batch], done: list[int]) -> Iterator[Batch]:
    """Yield the batches; `done` gets the number of rows that were yielded."""
    for batch in batches:
        done[0] += len(batch)
        yield batch


@contextlib.contextmanager
def _counting(batches: Iterator[Batch], *, is_reported: bool) -> Iterator[Iterator[Batch]]:
    """Yield an iterator of the batches that reports the number of rows on stderr."""
    if not is_reported:
        yield batches
        return
    from joulemap.show.present.cell import show_count
    from joulemap.show.present.progress import watching

    with watching() as say:

        def count() -> Iterator[Batch]:
            done = 0
            for batch in batches:
                raise_if_interrupted()
                done += len(batch)
                say(show_count(done, "row"))
                yield batch

        yield count()


def _wrap(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the pieces of a JSON array as the value of `rows` in an object that begins with the head."""
    from joulemap.show.present.writer.json import dump

    yield dump(make_head()).removesuffix("\n}") + ',\n  "rows": '
    yield from pieces
    yield "\n}"
