"""Options that several commands share, and what every command does with its answer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from joulemap.report.format import Format, TableFormat

if TYPE_CHECKING:
    from joulemap.store.query import Answer
    from joulemap.workspace.workspace import Workspace

DEFAULT_DATABASE: Final = "joulemap.duckdb"


class Device(StrEnum):
    """A part of this machine that runs models."""

    CPU = "cpu"
    CUDA = "cuda"


Database = Annotated[
    Path,
    typer.Option("--db", envvar="JOULEMAP_DB", help="Results database.", show_default=DEFAULT_DATABASE),
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to write the answer.")]
TableFormatOption = Annotated[
    TableFormat, typer.Option("--format", "-f", help="How to write the answer; parquet needs --output.")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the answer to this file, not to stdout.")]
ShowSql = Annotated[bool, typer.Option("--show-sql", help="Also print the queries behind the answer, on stderr.")]
Batch = Annotated[
    int | None, typer.Option("--batch", "-b", help="Samples in one input.", show_default="1, or the model's own")
]
Precision = Annotated[str, typer.Option("--precision", help="fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4.")]
PowerMode = Annotated[
    str,
    typer.Option(
        "--power-mode", help="Operating point of hardware named without one, e.g. 15W.", show_default="the chip's own"
    ),
]
Runtime = Annotated[
    str,
    typer.Option(
        "--runtime", help="eager: a kernel per operator, launched by the host; graph: without host cost; "
        "fused: a kernel per subgraph.",
    ),
]  # fmt: skip
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="An input, batch first: 1,3,224,224 or ids=1,128:int64; repeat for several.",
        show_default="the model's own",
    ),
]
ONE_HARDWARE: Final = "An id, alias or file, with @MODE or without; see `joulemap hardware list`."
Retrace = Annotated[
    bool, typer.Option("--retrace", help="Trace with the installed torch, not the workload that ships with joulemap.")
]
Calibration = Annotated[
    str,
    typer.Option(
        "--calibration",
        help="auto: what was fitted to measurements of a hardware, yours before what ships; none: class defaults; or a "
        "name or file of one, used for its hardware.",
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option("--model-arg", help="name=value for a factory or building block; repeat for several."),
]


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in `a,b`; UsageError where there is a comma and no name."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if text and not names:
        from joulemap.errors import UsageError

        raise UsageError(f"cannot read the names in {text!r}: write a,b")
    return names


def read_quantity(option: str, text: str, unit: str) -> float:
    """Return what a person wrote as `30W` or `16GB` in `unit`, 0 for nothing; UsageError names the option."""
    if not text:
        return 0.0
    from joulemap.errors import UsageError
    from joulemap.units import parse_si

    try:
        value = parse_si(text, unit)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if not value > 0.0:
        raise UsageError(f"{option}: {text!r} is not above 0")
    return value


def read_arguments(written: Sequence[str] | None) -> dict[str, object]:
    """Return a factory's arguments as written with `--model-arg`."""
    from joulemap.trace.source import parse_argument

    return dict(parse_argument(text) for text in written or ())


def repeat_options(**options: object) -> tuple[str, ...]:
    """Return the options of a command that was asked, as a follow-up command must repeat them; none for defaults."""
    parts: list[str] = []
    for name, value in options.items():
        if name == "db" and str(value) == DEFAULT_DATABASE:
            continue
        values = value if isinstance(value, list) else [] if value is None else [value]
        for item in values:
            parts += [f"--{name.replace('_', '-')}", str(item)]
    return tuple(parts)


def unless_auto(calibration: str) -> str | None:
    """Return which calibration a follow-up command must repeat; None for the default."""
    return None if calibration == "auto" else calibration


def open_workspace(path: Path, form: Format | TableFormat = Format.JSON) -> Workspace:
    """Return the workspace of a database; what takes time is said on stderr, to people only.

    Where the answer will be drawn for people, what draws it is imported while the engine works.
    """
    from joulemap.workspace.workspace import Workspace

    if form.value in (Format.TABLE.value, Format.MARKDOWN.value):
        from joulemap.background import begin

        begin(_import_drawing)

    def talk(message: str) -> None:
        if sys.stderr.isatty():
            print(message, file=sys.stderr)

    return Workspace(path, talk=talk)


def _import_drawing() -> None:
    import joulemap.report.render  # noqa: F401
    from joulemap.units import format_si

    format_si(1.0, "")


def emit(text: str, output: Path | None) -> None:
    """Write an answer to stdout, or whole to a file; a reader that has left is no error."""
    from joulemap.errors import UsageError

    if output is None:
        if sys.stdout is None:
            raise UsageError("stdout is closed: name a file with --output")
        try:
            print(text, flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except OSError as error:
            raise UsageError(f"cannot write the answer: {error.strerror}") from error
        return
    if output.exists() and not output.is_file():  # a device or a pipe, which a rename would replace by a file
        try:
            output.write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror}") from error
        return
    _write_whole(output, lambda draft: draft.write_text(f"{text}\n", encoding="utf-8"))


def _write_whole(output: Path, write: Callable[[Path], object]) -> None:
    """Let `write` write a file under another name, then give it its name, so that a half-written one is never seen."""
    draft = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        write(draft)
        draft.replace(output)
    except OSError as error:
        from joulemap.errors import UsageError

        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    print(f"wrote {output}", file=sys.stderr)


def emit_sql(answers: Iterable[Answer], queries: Path | None = None) -> None:
    """Print the statements behind an answer on stderr, with their parameters."""
    from joulemap.store.library import find_query
    from joulemap.store.query import show_sql

    for answer in answers:
        print(show_sql(find_query(answer.title, queries), answer.parameters), end="\n\n", file=sys.stderr)


def emit_answer(answer: Answer, form: Format, output: Path | None, columns: Sequence[str] = ()) -> None:
    """Write one query's answer; `columns` limits what people see."""
    from joulemap.report.render import render_answer

    emit(render_answer(answer, form, columns), output)


def check_output(form: TableFormat, output: Path | None) -> None:
    """Raise UsageError, before anything is asked, for Parquet without a file."""
    if form is TableFormat.PARQUET and (output is None or (output.exists() and not output.is_file())):
        from joulemap.errors import UsageError

        raise UsageError("--format parquet needs a file: name one with --output")


def emit_table(answer: Answer, form: TableFormat, output: Path | None, columns: Sequence[str] = ()) -> None:
    """Write one query's answer, also as Parquet; `columns` limits what people see."""
    if form is not TableFormat.PARQUET:
        emit_answer(answer, Format(form.value), output, columns)
        return
    check_output(form, output)
    assert output is not None
    from joulemap.workspace.save import save_parquet

    _write_whole(output, lambda draft: save_parquet(answer, draft))


def split_assignments(written: Sequence[str] | None) -> dict[str, str]:
    """Return key -> value of `key=value`s; UsageError for one that is not of this form, or given twice."""
    from joulemap.errors import UsageError

    pairs: dict[str, str] = {}
    for item in written or ():
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise UsageError(f"parameter {item!r} is not of the form key=value")
        if key in pairs:
            raise UsageError(f"parameter {key} is given twice")
        pairs[key] = value
    return pairs
