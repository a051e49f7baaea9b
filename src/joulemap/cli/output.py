"""The options of every command: the database, and how an answer is written; and all that is said on stderr."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from joulemap.cli.argument import named_files
from joulemap.cli.command import option
from joulemap.cli.complete import begin
from joulemap.cli.interrupt import heed
from joulemap.cli.voice import tell, voice
from joulemap.domain.name import fold_into
from joulemap.domain.settings import DEFAULT_DATABASE, WAIT_S
from joulemap.present.format import TABLE, list_formats
from joulemap.present.text import make_visible
from joulemap.system.errors import UsageError
from joulemap.system.file import COMPANIONS, check_output, is_stream, write_file, write_pieces
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.cli.option.run import ModelOptions
    from joulemap.domain.table import Table
    from joulemap.present.document import Document
    from joulemap.workspace import Workspace

PARQUET: Final = "parquet"
"""A format that only a file can hold: the table that csv writes."""

DRAWN: Final = (TABLE, "markdown", "html")
"""Formats for people, which need not show every row."""

FORMATS: Final = (*list_formats(), PARQUET)

SUFFIXES: Final = {
    ".txt": TABLE,
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".parquet": PARQUET,
}
"""End of an output's name -> the format that it says."""

COLOUR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
"""What sets a colour, or ends it."""

opened: Final[list[Path]] = []
"""Databases that this process was asked about."""


@frozen(kw_only=True)
class DatabaseOptions:
    """Where results are kept, and how long to wait for others who hold them."""

    db: Path = option(Path(DEFAULT_DATABASE), "Results database.", envvar="JOULEMAP_DB", shown=DEFAULT_DATABASE)
    wait: float = option(
        WAIT_S, "How long to wait for others who hold the database.", envvar="JOULEMAP_WAIT", min=0.0, metavar="SECONDS"
    )

    def guarded(self, output: Path | None) -> tuple[Path, ...]:
        """Return what an output must not replace: the database with what belongs to it, and what the words name."""
        database = (self.db, *(Path(f"{self.db}{end}") for end in COMPANIONS))
        return () if output is None else (*database, *named_files(output))

    def open(
        self, talk: Callable[[str], None] | None = None, progress: Callable[[int, int], None] | None = None
    ) -> Workspace:
        """Return the workspace of the database, which ends at Ctrl-C where that loses nothing.

        What takes time is said on stderr, to people only unless it is that others hold the database.
        """
        from joulemap.store.connection import Patience
        from joulemap.workspace import Workspace

        opened.append(self.db)
        patience = Patience(limit_s=self.wait, tell=_inform)
        return Workspace(self.db, talk=talk or voice.talk, progress=progress or _heed, patience=patience)


Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that joulemap did not write, or that was changed since.")
]


def _check_format(name: str) -> str:
    found = fold_into(name, FORMATS)
    if name and found not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, FORMATS))}")
    return found


def choose_format(asked: str, output: Path | None) -> str:
    """Return the format of an output: what was asked for, else what the suffix of its file says, else a table.

    Raises UsageError for a suffix that is of no format where none was asked for, and for one that is of another.
    """
    suffix = "" if output is None or is_stream(output) else output.suffix.lower()
    said = SUFFIXES.get(suffix, "")
    if asked and said and asked != said:
        own = next(one for one, form in SUFFIXES.items() if form == asked)
        raise UsageError(
            f"{output} would hold {asked}: name it {Path(output or '').with_suffix(own)}, or leave out --format {asked}"
        )
    if suffix and not said and not asked:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"{output}: {suffix} says no format; known: {known}; or say which with --format")
    return asked or said or TABLE


COMPRESSED: Final = (".gz", ".pb", ".pprof")
"""Ends of the names of profiles."""


def check_suffix(output: Path | None, suffix: str, what: str) -> None:
    """Raise UsageError for an output whose name says that it holds something else than it will."""
    fitting = COMPRESSED if suffix.endswith(COMPRESSED) else (suffix,)
    if output is not None and output.suffix.lower() in {*SUFFIXES, *COMPRESSED, ".toml", ".sql"}.difference(fitting):
        raise UsageError(f"{output} would hold {what}: name it {output.with_suffix(suffix)}")


@frozen(kw_only=True)
class OutputOptions(DatabaseOptions):
    """Where results are kept, and how an answer is written."""

    form: str = option(
        "",
        "How to write the answer; parquet needs a file (-o).",
        "--format",
        "-f",
        metavar=f"[{'|'.join(FORMATS)}]",
        callback=_check_format,
        complete=lambda incomplete: begin(incomplete, FORMATS),
        shown="table, or what the name of the output ends with",
    )
    output: Path | None = option(
        None,
        "Write the answer to this file, not to stdout: .txt, .json, .csv, .md, .html or .parquet.",
        "--output",
        "-o",
    )
    force: Force = False
    raw: bool = option(False, "csv: leave texts that a spreadsheet would run (=1+1) as they are.")
    envelope: bool = option(
        False, "json: an object for a table alone too: schema_version, command, program, and its rows under `rows`."
    )
    wide: bool = option(False, "Show every column, however narrow the terminal is.")
    notes: bool = option(False, "Also what the words mean, what is assumed and what is left out.")
    details: bool = option(False, "Also every other table of the answer.")
    show_sql: bool = option(False, "Also print the queries behind the answer, on stderr.")

    @property
    def written_form(self) -> str:
        """The format of the answer; raises as `choose_format`."""
        return choose_format(self.form, self.output)

    def check_place(self) -> None:
        """Raise UsageError for an output that cannot be written."""
        if self.output is not None:
            check_output(self.output, self.guarded(self.output), force=self.force)
        if self.written_form == PARQUET and (self.output is None or is_stream(self.output)):
            raise UsageError("--format parquet needs a file: name one with -o")

    def workspace(self) -> Workspace:
        """Return the workspace of the database; what takes time is said on stderr, to people only.

        Raises UsageError, before anything is asked, for an output that cannot be written. Where the answer will be
        drawn for people, what draws it is imported while the engine works.
        """
        self.check_place()
        if self.written_form in (TABLE, "markdown"):
            from joulemap.system.background import begin

            begin(_import_drawing)
        return self.open()

    @contextlib.contextmanager
    def watched_workspace(self, noun: str = "runs") -> Iterator[Workspace]:
        """Give out the workspace with a progress bar on stderr, for people only, unless more or less is to be said."""
        from joulemap.present.progress import watching

        workspace = self.workspace()
        with watching(noun) as (say, move):
            if move is None or voice.is_quiet or voice.is_verbose:
                yield workspace
                return

            def tell(done: int, total: int) -> None:
                heed()
                move(done, total)

            yield self.open(say, tell)

    def repeat(self, options: ModelOptions) -> tuple[str, ...]:
        """Return the options that a follow-up command must repeat: those of the runs, and the database."""
        return (*options.repeat(), *self.repeat_database())

    def repeat_database(self) -> tuple[str, ...]:
        """Return the option of the database; none for the default."""
        return () if str(self.db) == DEFAULT_DATABASE else ("--db", str(self.db))

    def write(self, document: Document) -> None:
        """Write a document, and if asked the statements behind it."""
        if self.written_form == PARQUET:
            from joulemap.store.parquet import save_table

            assert self.output is not None
            write_file(
                self.output,
                lambda draft: save_table(draft, document.table),
                self.guarded(self.output),
                force=self.force,
            )
            voice.inform(f"wrote {self.output}")
        else:
            from joulemap.present.format import write

            form = self.written_form
            if form == "json":
                document = _put_head(document, is_wrapped=self.envelope)
            text = write(
                document.on_screen(notes=self.notes, details=self.details) if form == TABLE else document,
                form,
                self.width,
                is_raw=self.raw,
                height=self.height,
                has_colour=self.has_colour,
            )
            emit(text, self.output, self.guarded(self.output), force=self.force, is_coloured=self.has_colour)
        tables = document.tables or (document.table,)
        for table in tables:
            voice.detail(f"query {table.title}: {len(table):,} {'row' if len(table) == 1 else 'rows'}")
        self._tell_sql(tables)

    def write_table(
        self,
        table: Table[Any],
        columns: Sequence[str] = (),
        *,
        keep: Sequence[str] = (),
        most: int | None = None,
        most_of: str = "",
        answer: str = "",
    ) -> None:
        """Write a table: every column for programs, `columns` for people, `keep` those of them that stay longest.

        People see `most` rows of it, or of each value of a column, and how many more there are, below `answer`.
        """
        from joulemap.present.document import table_document

        shown, rest = self._fold(table, most, most_of)
        self.write(table_document(shown, columns, keep=keep, rest=rest, answer=answer))
        for note in table.notes if self.written_form in (PARQUET, "csv", "json") else ():
            _inform(note)

    def _fold(self, table: Table[Any], most: int | None, most_of: str) -> tuple[Table[Any], str]:
        """Return what people see of a table, and what is said of the rest."""
        if most is None or len(table) <= most or self.written_form not in DRAWN or (most_of and self.details):
            return table, ""
        import attrs

        from joulemap.present.cell import show_count

        met: Counter[object] = Counter()
        kept = []
        for row, record in zip(table.rows, table.records(), strict=True):
            value = record[most_of] if most_of else None
            met[value] += 1
            kept += [row] if met[value] <= most else []
        option = "--details" if most_of else f"--limit {len(table)}"
        rest = f"{show_count(len(table) - len(kept), 'more row')}; {option} shows all, json and csv have all"
        return attrs.evolve(table, rows=tuple(kept)), rest if len(kept) < len(table) else ""

    def _tell_sql(self, tables: Iterable[Table[Any]], queries: Path | None = None) -> None:
        """Tell the statements behind an answer, if they were asked for."""
        for table in tables if self.show_sql else ():
            if "@" in table.title:
                from joulemap.store.library import find_query
                from joulemap.store.query import show_sql

                tell(show_sql(find_query(table.title, queries), table), keep="\n\t", end="\n\n")

    @property
    def width(self) -> int | None:
        """The columns of the terminal, or those that `COLUMNS` says; None for as wide as it is."""
        if self.wide or self.output is not None:
            return None
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        return shutil.get_terminal_size().columns if is_terminal or os.environ.get("COLUMNS") else None

    @property
    def height(self) -> int | None:
        """The lines of the terminal, or those that `LINES` says; None where there is none."""
        is_terminal = self.output is None and sys.stdout is not None and sys.stdout.isatty()
        return shutil.get_terminal_size().lines if is_terminal or os.environ.get("LINES") else None

    @property
    def has_colour(self) -> bool:
        """Whether what is drawn may have colours: on a terminal that takes them, unless `NO_COLOR` is set."""
        is_terminal = self.output is None and sys.stdout is not None and sys.stdout.isatty()
        is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
        return is_terminal and is_wanted and self.written_form == TABLE


def make_head() -> dict[str, Any]:
    """Return what a JSON document begins with: its schema, its command and the program."""
    from joulemap.present.format import SCHEMA_VERSION
    from joulemap.system.resource import package_version

    program = f"joulemap {package_version('joulemap')}"
    return {"schema_version": SCHEMA_VERSION, "command": voice.command, "program": program}


def _put_head(document: Document, *, is_wrapped: bool) -> Document:
    """Return a document whose data begins with its head; rows of a table stay alone unless they are wrapped."""
    import attrs

    if isinstance(document.data, Mapping):
        return attrs.evolve(document, data={**make_head(), **document.data})
    return attrs.evolve(document, data={**make_head(), "rows": document.data}) if is_wrapped else document


def _inform(message: str) -> None:
    voice.inform(f"joulemap: {message}")


def _heed(_done: int, _total: int) -> None:
    heed()


def _import_drawing() -> None:
    import joulemap.present.writer.table  # noqa: F401


def emit(
    text: str,
    output: Path | None = None,
    inputs: Iterable[Path] | None = None,
    *,
    force: bool = False,
    is_coloured: bool = False,
) -> None:
    """Write a text to stdout, or whole to a file; a reader that has left is no error.

    `inputs` are what the output must not replace, by default the files that the command line names; `is_coloured` is
    whether a terminal obeys what sets colours in it.
    """
    emit_pieces((f"{text}\n",), output, inputs, force=force, is_coloured=is_coloured)


def emit_pieces(
    pieces: Iterable[str],
    output: Path | None = None,
    inputs: Iterable[Path] | None = None,
    *,
    force: bool = False,
    is_coloured: bool = False,
) -> None:
    """Write a text as `emit` does, each piece when it comes."""
    if output is not None:
        if write_pieces(output, pieces, named_files(output) if inputs is None else inputs, force=force):
            voice.inform(f"wrote {output}")
        return
    if sys.stdout is None:
        raise UsageError("stdout is closed: name a file with --output")
    is_terminal = sys.stdout.isatty()
    for piece in pieces:
        try:
            print(_show(piece, is_coloured=is_coloured) if is_terminal else piece, end="", flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except OSError as error:
            raise UsageError(f"cannot write the answer: {error.strerror}") from error


def _show(text: str, *, is_coloured: bool) -> str:
    """Return a text that a terminal does not obey, but for colours where they are wanted."""
    parts = COLOUR.split(text) if is_coloured else [text]
    return "".join(part if index % 2 else make_visible(part, keep="\n\t") for index, part in enumerate(parts))


def emit_line(text: str) -> None:
    """Write a sentence for people to stdout."""
    emit(make_visible(text))
