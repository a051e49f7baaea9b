"""Options of every command for the database and the output, and the functions that write answers."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

import attrs
import typer

from joulemap.cli.argument import find_database, named_files
from joulemap.cli.command import ABSENT, DETAILS, option
from joulemap.cli.complete import begin
from joulemap.cli.interrupt import raise_if_interrupted
from joulemap.cli.panel import OUTPUT
from joulemap.cli.voice import end_progress, move_progress, takes_colours, voice, write_message, writing_answer
from joulemap.show.present.format import SCHEMA_VERSION, TABLE, list_formats, write
from joulemap.show.present.text import make_visible
from joulemap.system.config import habit
from joulemap.system.errors import UsageError
from joulemap.system.file import COMPANIONS, check_output, is_stream, write_file, write_pieces
from joulemap.system.name import fold_into, split_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.cli.option.run import ModelOptions
    from joulemap.domain.settings import Division
    from joulemap.domain.table import Table
    from joulemap.show.present.document import Document, Section
    from joulemap.show.view import Options
    from joulemap.workspace import Workspace

PARQUET: Final = "parquet"
"""Format with the same table as csv; it is only written to files."""

DRAWN: Final = (TABLE, "markdown", "html")
"""Output formats for people, which may omit rows."""

MOST_DRAWN: Final = 40
"""Maximum rows of a text chart."""

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
"""File suffix -> output format."""

COLOUR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
"""Pattern of an escape sequence that starts or ends a colour."""

opened: Final[list[Path]] = []
"""Paths of the databases that this process has opened."""


@frozen(kw_only=True)
class DatabaseOptions:
    """Options for the results database."""

    panel: ClassVar[str] = OUTPUT
    db: Path = attrs.field(factory=find_database, metadata={ABSENT: True})

    def guarded(self, output: Path | None) -> tuple[Path, ...]:
        """Return the files that an output must not replace: the database, its companion files, and all inputs."""
        database = (self.db, *(Path(f"{self.db}{end}") for end in COMPANIONS))
        return () if output is None else (*database, *named_files(output))

    def open(self) -> Workspace:
        """Return the workspace of the database. Ctrl-C ends its work at points where nothing is lost.

        Waiting for another process is always reported.
        """
        from joulemap.store.connection import Patience
        from joulemap.workspace import Workspace

        opened.append(self.db)
        patience = Patience(limit_s=habit("wait"), tell=_inform)
        return Workspace(self.db, talk=voice.talk, progress=_move, patience=patience)


def _check_format(name: str) -> str:
    folded = fold_into(name, FORMATS)
    if name and folded not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, FORMATS))}")
    return folded


def choose_format(given: str, output: Path | None) -> str:
    """Return the format of an output: the given one, else by the file's suffix, else a table.

    Raises UsageError for an unknown suffix without a given format, and for the suffix of another format.
    """
    suffix = "" if output is None or is_stream(output) else output.suffix.lower()
    implied = SUFFIXES.get(suffix, "")
    if given and implied and given != implied:
        own = next(one for one, form in SUFFIXES.items() if form == given)
        raise UsageError(
            f"{output} would hold {given}: name it {Path(output or '').with_suffix(own)}, or leave out --format {given}"
        )
    if suffix and not implied and not given:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"{output}: unknown suffix {suffix}; known: {known}; or name the format with --format")
    return given or implied or TABLE


SHOWN: Final = (DETAILS, "notes", "wide", "plot", "check", "sql")
"""Parts that `--show` adds: every table with all rows; definitions, assumptions and omissions; every column; a text
chart above the tables; a benchmark command for each run; the queries, on stderr.
"""


def _check_shown(texts: list[str] | None) -> list[str] | None:
    for name in split_names(",".join(texts or ())):
        if name not in SHOWN:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, SHOWN))}")
    return texts


COMPRESSED: Final = (".gz", ".pb", ".pprof")
"""File suffixes of profiles."""


FURTHER: Final = (".pdf", ".svg", ".png", ".docx", ".pptx", ".xlsx", ".toml", ".sql")
"""Suffixes of other known formats; an output that has one but is not of that format is refused."""


def check_suffix(output: Path | None, suffix: str, what: str) -> None:
    """Raise UsageError for an output with the suffix of another format; `what` names the real content."""
    fitting = COMPRESSED if suffix.endswith(COMPRESSED) else (suffix,)
    if output is not None and output.suffix.lower() in {*SUFFIXES, *COMPRESSED, *FURTHER}.difference(fitting):
        raise UsageError(f"{output} would hold {what}: name it {output.with_suffix(suffix)}")


OUTPUT_HELP: Final = "File: .txt, .json, .csv, .md, .html or .parquet."


@frozen(kw_only=True)
class OutputOptions(DatabaseOptions):
    """Options for the database and for how an answer is written."""

    form: str = option(
        "",
        f"Format: {', '.join(FORMATS[:-1])} or {FORMATS[-1]} (files only).",
        "--format",
        "-f",
        metavar="FORMAT",
        callback=_check_format,
        complete=lambda incomplete: begin(incomplete, FORMATS),
        shown="by suffix",
    )
    output: Path | None = option(None, OUTPUT_HELP, "--output", "-o")
    show: list[str] | None = option(
        None,
        f"Also show {', '.join(SHOWN[:-1])} or {SHOWN[-1]}.",
        metavar="NAME,...",
        callback=_check_shown,
        complete=lambda incomplete: begin(incomplete, SHOWN),
    )

    def shows(self, name: str) -> bool:
        """Return whether `--show` names a part of the output."""
        return name in split_names(",".join(self.show or ()))

    @property
    def written_form(self) -> str:
        """Format of the output; raises the errors of `choose_format`."""
        return choose_format(self.form, self.output)

    def check_file(self) -> None:
        """Raise UsageError for an output that cannot be written."""
        if self.output is not None:
            check_output(self.output, self.guarded(self.output))
        if self.written_form == PARQUET and (self.output is None or is_stream(self.output)):
            raise UsageError("--format parquet needs a file: name one with -o")

    def workspace(self) -> Workspace:
        """Return the workspace of the database.

        Raises UsageError, before any work, for an output that cannot be written. For an answer that people read, the
        modules that lay it out are imported while the engine works. On a terminal, progress goes to stderr until the
        answer is written.
        """
        self.check_file()
        voice.begin_progress()
        if self.written_form in (TABLE, "markdown"):
            from joulemap.system.background import begin

            begin(_import_drawing)
        return self.open()

    def repeat(self, options: ModelOptions) -> tuple[str, ...]:
        """Return the options that a follow-up command repeats: run options and the database."""
        return (*options.repeat(), *self.repeat_database())

    def repeat_database(self) -> tuple[str, ...]:
        """Return the words for the option `--db`; none for the database that a command without them opens."""
        return () if self.db == Path(habit("db")) else ("--db", str(self.db))

    def present(
        self, answer: Answer, run: ModelOptions | None = None, *, most: int = MOST_DRAWN, **options: Unpack[Options]
    ) -> None:
        """Write an answer as `write` does; `options` select what people see of it."""
        self.write(self.draw(answer, run, **options), answer, by=options.get("by"), most=most)

    def write(
        self, document: Document, answer: Answer | None = None, *, by: Division | None = None, most: int = MOST_DRAWN
    ) -> None:
        """Write a document, and with `--show sql` the statements behind it.

        With `--show plot`, the text chart of `answer` is first: of the table `by` if it has several, with at most
        `most` rows. With `--show check`, the commands that measure its runs are last; UsageError for an answer without
        runs to measure.
        """
        if self.shows("plot") and answer is not None:
            document = document.after([_draw_chart(answer, by or "action", most)])
        if self.shows("check"):
            checks = answer.find_checks() if answer is not None else None
            if not checks:
                raise UsageError("--show check: this answer has no runs to measure")

            from joulemap.show.check import add_checks

            document = add_checks(document, checks)
        if self.written_form == PARQUET:
            from joulemap.store.parquet import save_table

            assert self.output is not None
            write_file(
                self.output,
                lambda draft: save_table(draft, document.table),
                self.guarded(self.output),
            )
            voice.inform(f"wrote {self.output}")
        else:
            form = self.written_form
            if form == "json":
                document = _put_head(document, is_wrapped=habit("envelope"))
            text = write(
                document.on_screen(notes=self.shows("notes"), details=self.shows(DETAILS))
                if form == TABLE
                else document,
                form,
                self.width,
                is_raw=habit("raw"),
                height=self.height,
                has_colour=self.has_colour,
                is_whole=True,
            )
            emit(text, self.output, self.guarded(self.output), is_coloured=self.has_colour)
        tables = document.tables or (document.table,)
        for table in tables:
            voice.detail(f"query {table.title}: {len(table):,} {'row' if len(table) == 1 else 'rows'}")
        self._print_sql(tables)

    def draw(self, answer: Answer, run: ModelOptions | None = None, **options: Unpack[Options]) -> Document:
        """Return the document of an answer, whose commands repeat the options of its run."""
        from joulemap.show.view import draw

        return draw(answer, **({"repeated": self.repeat(run)} if run else {}), **options)

    def write_table(
        self,
        table: Table[Any],
        columns: str = "",
        *,
        keep: str = "",
        most: int | None = None,
        most_of: str = "",
        answer: str = "",
    ) -> None:
        """Write a table: all columns for programs, `columns` for people, as in `draw_columns`.

        On a narrow terminal, the columns in `keep` are folded last. People see `most` rows, or `most` rows of each
        value in the column `most_of`, and the number of further rows. The sentence `answer` comes first.
        """
        from joulemap.show.present.document import table_document

        shown, rest = self.fold(table, most, most_of)
        self.write(table_document(shown, columns, keep=keep, rest=rest, answer=answer))
        for note in table.notes if self.written_form in (PARQUET, "csv", "json") else ():
            _inform(note)

    def fold(self, table: Table[Any], most: int | None, most_of: str) -> tuple[Table[Any], str]:
        """Return the part of a table that people see, and a sentence on the other rows."""
        if most is None or len(table) <= most or self.written_form not in DRAWN or (most_of and self.shows(DETAILS)):
            return table, ""

        from joulemap.show.present.cell import show_count

        met: Counter[object] = Counter()
        kept = []
        for row, record in zip(table.rows, table.records(), strict=True):
            value = record[most_of] if most_of else None
            met[value] += 1
            kept += [row] if met[value] <= most else []
        option = f"--show {DETAILS}" if most_of else f"--limit {len(table)}"
        rest = f"{show_count(len(table) - len(kept), 'more row')}; {option} shows all, json and csv have all"
        return table.with_rows(kept), rest if len(kept) < len(table) else ""

    def _print_sql(self, tables: Iterable[Table[Any]], queries: Path | None = None) -> None:
        """Print the statements behind an answer to stderr, with `--show sql`."""
        for table in tables if self.shows("sql") else ():
            if "@" in table.title:
                from joulemap.store.library import find_query
                from joulemap.store.query import show_sql

                write_message(show_sql(find_query(table.title, queries), table), keep="\n\t", end="\n\n")

    @property
    def width(self) -> int | None:
        """Width of an answer in characters: that of the terminal, or 80 in a pipe; the variable `COLUMNS` overrides it.

        None for no limit.
        """
        return None if self.shows("wide") or self.output is not None else shutil.get_terminal_size().columns

    @property
    def row_width(self) -> int | None:
        """Width of rows of a statement, which a pipe gets whole; otherwise as `width`."""
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        return self.width if is_terminal or os.environ.get("COLUMNS") else None

    @property
    def height(self) -> int | None:
        """Height of the terminal in lines; the variable `LINES` overrides it. None without a terminal."""
        is_terminal = self.output is None and sys.stdout is not None and sys.stdout.isatty()
        return shutil.get_terminal_size().lines if is_terminal or os.environ.get("LINES") else None

    @property
    def has_colour(self) -> bool:
        """True if answers have colours: tables on a stdout that takes them."""
        return takes_colours(sys.stdout) and self.output is None and self.written_form == TABLE


def make_head() -> dict[str, Any]:
    """Return the first keys of a JSON document: schema version, command and program."""
    from joulemap.system.resource import package_version

    program = f"joulemap {package_version('joulemap')}"
    return {"schema_version": SCHEMA_VERSION, "command": voice.command, "program": program}


def _put_head(document: Document, *, is_wrapped: bool) -> Document:
    """Return a document with the head before its data; a single table has no head unless `is_wrapped`."""
    if isinstance(document.data, Mapping):
        return attrs.evolve(document, data={**make_head(), **document.data})
    return attrs.evolve(document, data={**make_head(), "rows": document.data}) if is_wrapped else document


def _draw_chart(answer: Answer, by: Division, most: int) -> Section:
    """Return the text chart of an answer."""
    from joulemap.show.figure.sketch import make_sketches
    from joulemap.show.present.document import Section, Text
    from joulemap.show.view import find_page

    drawings = find_page(answer).sketched(answer, by)
    section = Section("Sketch", [one for drawing in drawings for one in make_sketches(drawing, most, answer.projected)])
    nothing = "nothing to draw: no row has a value" if drawings else "this answer has no chart"
    return section if section.texts else Section("Sketch", Text(nothing))


def _inform(message: str) -> None:
    voice.inform(f"joulemap: {message}")


def _move(done: int, total: int) -> None:
    raise_if_interrupted()
    move_progress(done, total)


def _import_drawing() -> None:
    import joulemap.show.present.writer.table  # noqa: F401


def emit(
    text: str,
    output: Path | None = None,
    inputs: Iterable[Path] | None = None,
    *,
    is_coloured: bool = False,
) -> None:
    """Write a text to stdout, or completely to a file. A closed pipe is not an error.

    The output never replaces one of `inputs`, by default the files that the command line names. Colours reach a
    terminal if `is_coloured`.
    """
    emit_pieces((f"{text}\n",), output, inputs, is_coloured=is_coloured)


def emit_pieces(
    pieces: Iterable[str],
    output: Path | None = None,
    inputs: Iterable[Path] | None = None,
    *,
    is_coloured: bool = False,
) -> None:
    """Write the pieces of a text one by one, as `emit` writes a whole text."""
    end_progress()
    if output is not None:
        if write_pieces(output, pieces, named_files(output) if inputs is None else inputs):
            voice.inform(f"wrote {output}")
        return
    if sys.stdout is None:
        raise UsageError("stdout is closed: name a file with --output")
    is_terminal = sys.stdout.isatty()
    for piece in pieces:
        with writing_answer():
            print(_show(piece, is_coloured=is_coloured) if is_terminal else piece, end="")


def _show(text: str, *, is_coloured: bool) -> str:
    """Return a text without control sequences that a terminal would obey; colours stay if `is_coloured`."""
    parts = COLOUR.split(text) if is_coloured else [text]
    return "".join(part if index % 2 else make_visible(part, keep="\n\t") for index, part in enumerate(parts))


def emit_line(text: str) -> None:
    """Write a sentence to stdout."""
    emit(make_visible(text))
