"""Put the commands together, and turn every failure into one line and an exit code."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any, Final, NoReturn

import typer

from joulemap.cli.argument import OLDER, join_values, modernize, read_words
from joulemap.cli.complete import VARIABLE, read_typed
from joulemap.cli.interrupt import end, is_asked
from joulemap.cli.voice import Quiet, Verbose, voice
from joulemap.system.errors import ExitCode, JoulemapError, UsageError
from joulemap.system.wing import list_wings

EPILOG = (
    "Exit codes: 0 answered; 1 error inside joulemap or its database engine; 2 option or argument that cannot be read; "
    "3 unknown name; 4 no chosen hardware can run it or keeps its limits; 5 database missing, locked, damaged, too new "
    "or not writable; 6 an audit found broken rows; 7 model that cannot be built or traced; 8 SQL refused; 9 bad "
    "hardware, measurement, calibration or archive file; 10 a change beyond --fail-above; 11 a measurement outside the "
    "predicted interval; 12 no measured number could be scored; 130 interrupted."
)

PARTS: Final = frozenset(
    {
        "app",
        "argument",
        "command",
        "complete",
        "interrupt",
        "manual",
        "output",
        "stream",
        "tool",
        "value",
        "voice",
    }
)
"""Modules of this room that are no command."""

MOST_MESSAGE: Final = 2_000
"""Characters of an error; one that quotes what it is given can be far longer."""

FIRST: Final = ("compare", "analyze", "explain", "pareto", "recommend", "cost", "edp", "utilization", "sweep")
"""Commands that help lists first."""


def list_commands() -> list[str]:
    """Return the name of every command or group of them: modules of this room, and those of wings."""
    return [*FIRST, *sorted(find_commands().keys() - set(FIRST))]


@cache
def find_commands() -> dict[str, str]:
    """Return command or group -> the module that has it."""
    found = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")} - PARTS
    others = {name: module for wing in list_wings() for name, module in wing.commands.items()}
    return others | {name: f"{__package__}.{name}" for name in found}


def build(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the command that `arguments` name, or with the outlines of all where they name none.

    What is not asked for is not imported, an outline neither.
    """
    app = typer.Typer(
        name="joulemap",
        epilog=EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": 100,
            "token_normalize_func": str.lower,
        },
    )
    app.callback(invoke_without_command=True)(root)
    known = list_commands()
    named = next((text.lower() for text in arguments if not text.startswith("-")), "")
    if named not in known:
        for name in known:
            app.command(name)(_outline(name))
        return app
    module = import_module(find_commands()[named])
    if hasattr(module, "app"):
        app.add_typer(module.app, name=named)
    else:
        app.command(named)(getattr(module, named))
    return app


def _outline(name: str) -> Callable[[], None]:
    """Return a command as the list of all shows it, without its options: of its module only the docstring is read.

    That of a command is its function's, that of a group of them its module's.
    """

    def outline() -> None: ...

    module = find_commands()[name]
    spec = find_spec(module)
    assert spec is not None
    loader: Any = spec.loader  # of a file; importlib.abc, which has its type, takes 8 ms to import
    code = loader.get_code(module)
    functions = [part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == name]
    outline.__doc__ = str([*functions, code][0].co_consts[0])
    return outline


def _show_version(value: bool) -> None:
    if value:
        import joulemap

        print(f"joulemap {joulemap.__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    _version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say which hardware a neural network should run on, and why.

    \b
    joulemap compare resnet18
    joulemap analyze resnet18 h100_sxm5
    joulemap explain resnet18 h100_sxm5 tpu_v4 --metric energy
    joulemap sql "SELECT hardware, energy_j FROM runs"
    """
    voice.set(quiet=quiet, verbose=verbose)
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Run the command line as the process, which leaves with an exit code of `ExitCode`.

    A command is short: collecting garbage and tearing the interpreter down would cost a tenth of its time, and more
    once torch is loaded, so neither is done. Connections are closed and streams flushed before it leaves.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    code = run(sys.argv[1:])
    if is_asked() and code != ExitCode.OK:
        end()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(int(code))


def run(arguments: Sequence[str]) -> int:
    """Return the exit code of a command; every error is one line on stderr."""
    try:
        voice.reset()
        read_words(arguments, os.environ)
        _check_filled(arguments)
        typed = _read_typed() if VARIABLE in os.environ else arguments
        result = build(typed)(join_values(arguments), prog_name="joulemap", standalone_mode=False)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(ExitCode.OK)
    except JoulemapError as error:
        return _tell(str(error), error.exit_code)
    except Exception as error:
        describe = getattr(error, "format_message", None)
        if getattr(error, "option_name", "") in OLDER and (read := modernize(arguments)) != list(arguments):
            voice.set(quiet=not {"--quiet", "-q"}.isdisjoint(arguments))
            voice.inform(f"joulemap: read as {shlex.join(('joulemap', *read))}")
            return run(read)
        if describe is not None:
            path = getattr(getattr(error, "ctx", None), "command_path", "joulemap")
            return _tell(f"{describe().rstrip('.')} (see `{path} --help`)", ExitCode.USAGE)
        if os.environ.get("JOULEMAP_DEBUG"):
            raise
        if isinstance(error, OSError) and (told := _explain_place(error)):
            return _tell(*told)
        damage = "" if isinstance(error, ELSEWHERE) else _find_damage()
        if damage:
            return _tell(f"{damage}; `joulemap db check` tells more", ExitCode.DATABASE)
        message = f"internal error: {type(error).__name__}: {error}; JOULEMAP_DEBUG=1 shows where"
        return _tell(message, ExitCode.INTERNAL)
    return result if isinstance(result, int) else int(ExitCode.OK)


def _read_typed() -> list[str]:
    """Return the words that a shell asks about, and make ready for it to be answered."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # makes typer's shells known, as its own options for completion do
    return read_typed(os.environ)


def _check_filled(arguments: Sequence[str]) -> None:
    """Raise UsageError for an option with an empty value, as of a shell's variable that is not set."""
    for before, word in itertools.pairwise(("", *arguments)):
        name, equals, value = word.partition("=")
        if name.startswith("--") and equals and not value:
            raise UsageError(f"{name} is empty: give it a value, or leave it out")
        if not word and before.startswith("-") and "=" not in before:
            raise UsageError(f"{before} is empty: give it a value, or leave it out")


ELSEWHERE: Final = (OSError, UnicodeError, RecursionError, MemoryError, OverflowError)
"""Errors of files that people give and of the machine, which say nothing about the database."""

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NAMELESS: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
"""Error numbers of a path that cannot name a file."""


def _explain_place(error: OSError) -> tuple[str, ExitCode] | None:
    """Return what a system's refusal of a file says to a person, and the exit code; None for any other failure."""
    named = f"{str(error.filename)[:60]}: " if error.filename else ""
    if error.errno in FULL:
        return f"{named}{error.strerror}; nothing in the database is half written", ExitCode.DATABASE
    if error.errno in NAMELESS:
        return f"{named}{error.strerror}", ExitCode.USAGE
    with contextlib.suppress(OSError):
        os.getcwd()
        return None
    return "the working folder is gone: change to another", ExitCode.USAGE


def _find_damage() -> str:
    """Return what is wrong with the database of a command that failed for no reason of its own; empty for nothing."""
    from joulemap.cli.output import opened
    from joulemap.system.errors import DatabaseError

    for path in opened[-1:]:
        if path.is_file():
            from joulemap.store.connection import PATIENT
            from joulemap.store.guard import check_apart

            try:
                faults = check_apart(path, PATIENT)
            except DatabaseError as error:
                return str(error)
            if faults:
                return f"{path} is damaged: it is not so that {faults[0][0]}"
    return ""


def _tell(message: str, code: ExitCode) -> int:
    from joulemap.present.text import one_line

    if sys.stderr is not None and not is_asked():
        with contextlib.suppress(OSError, ValueError):
            print(f"joulemap: {one_line(message, MOST_MESSAGE)}", file=sys.stderr)
    return int(code)
