"""Build the command line, and turn every failure into one line and an exit code."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from importlib import import_module
from importlib.util import find_spec
from types import CodeType
from typing import Any, Final, NoReturn

import typer

from joulemap.cli.argument import (
    COMPLETE,
    find_advice,
    join_values,
    lift,
    part_statement,
    read_typed,
    read_words,
)
from joulemap.cli.interrupt import end, is_asked
from joulemap.cli.overview import drop_head, find_commands, list_commands
from joulemap.cli.usage import Help, find_width, print_help
from joulemap.cli.voice import Quiet, Verbose, end_progress, print_text, set_encodings, voice, write_error
from joulemap.system.config import HABIT, list_defaults, name_variable
from joulemap.system.errors import (
    DatabaseError,
    ExitCode,
    JoulemapError,
    LockedDatabaseError,
    OlderDatabaseError,
    UsageError,
)

EXIT_CODES: Final = (
    "0 success",
    "1 internal error",
    "2 bad option or argument",
    "3 unknown name",
    "4 no hardware runs the model within the limits",
    "5 database missing, locked, damaged, too new or read-only",
    "6 broken rows found",
    "7 model cannot be built or traced",
    "8 SQL refused",
    "9 bad hardware, measurement, calibration or archive file",
    "10 change above --fail-above",
    "11 measurement outside the predicted interval",
    "12 no measurement could be scored",
    "130 interrupted",
)
"""Exit codes with their meanings."""

MOST_MESSAGE: Final = 2_000
"""Maximum characters of an error message; a quoted input can be far longer."""


def build(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the command that `arguments` name, or with an outline of every command.

    Imports the named command only. An outline needs no import.
    """
    app = typer.Typer(
        name="joulemap",
        epilog=f"Exit codes: {'; '.join(EXIT_CODES)}.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={
            "help_option_names": [],  # every command declares its own
            "terminal_width": find_width(),
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
    module = import_module(find_commands()[named].home)
    if hasattr(module, "app"):
        app.add_typer(module.app, name=named)
    else:
        app.command(named)(getattr(module, named))
    return app


def _outline(name: str) -> Callable[[], None]:
    """Return a command without options for the list of commands; only its docstring is read.

    The docstring of a command is that of its function; the docstring of a group is that of its module.
    """

    def outline() -> None: ...

    module = find_commands()[name].home
    spec = find_spec(module)
    assert spec is not None
    loader: Any = spec.loader  # a loader of files; importing its type from importlib.abc takes 8 ms
    code = loader.get_code(module)
    functions = [part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == name]
    outline.__doc__ = str([*functions, code][0].co_consts[0])
    return outline


def _show_version(value: bool) -> None:
    if value:
        import joulemap

        print_text(f"joulemap {joulemap.__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    _version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
    quiet: Quiet = False,
    verbose: Verbose = False,
    _db: str = typer.Option("", "--db", help="Results database.", metavar="FILE", show_default="joulemap.duckdb"),
    _help: Help = False,
) -> None:
    """Predict latency and energy of neural networks, choose their hardware, see why."""
    voice.set(quiet=quiet, verbose=verbose)
    if context.invoked_subcommand is None:
        print_help(context)


def main() -> NoReturn:
    """Run the command line and end the process with a code of `ExitCode`.

    A command is short. Garbage collection and interpreter shutdown would cost a tenth of its time, and more once torch
    is loaded, so both are skipped. Connections are closed and streams are flushed first.
    """
    set_encodings()
    code = run(sys.argv[1:])
    end_progress()
    if is_asked() and code != ExitCode.OK:
        end()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(int(code))


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every error is one line on stderr."""
    try:
        voice.reset()
        read_words(arguments, os.environ)
        _check_filled(arguments)
        arguments = drop_head(lift(part_statement(arguments)))
        typed = _read_typed() if COMPLETE in os.environ else arguments
        result = build(typed)(
            join_values(arguments), prog_name="joulemap", standalone_mode=False, default_map=_find_defaults(typed)
        )
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(ExitCode.OK)
    except JoulemapError as error:
        damage = _find_damage() if _blames_rows(error, arguments) else ""
        return _report(damage or str(error), ExitCode.DATABASE if damage else error.exit_code)
    except Exception as error:
        describe = getattr(error, "format_message", None)
        if describe is not None:
            path = getattr(getattr(error, "ctx", None), "command_path", "joulemap")
            unknown = getattr(error, "option_name", "") or _find_command(arguments)
            if unknown.lower() not in list_commands() and (advice := _find_advice(unknown, arguments)):
                return _report(f"no {unknown} here: {advice}", ExitCode.USAGE)
            text = _describe_unknown(error) or describe().rstrip(".")
            return _report(f"{text} (see `{path} --help`)", ExitCode.USAGE)
        from joulemap.system.debug import is_debugging

        if is_debugging():
            raise
        if isinstance(error, OSError) and (refused := _explain_path(error)):
            return _report(*refused)
        if lack := _explain_memory(error):
            return _report(lack, ExitCode.INTERNAL)
        damage = "" if isinstance(error, ELSEWHERE) else _find_damage()
        if damage:
            return _report(f"{damage}; run `joulemap db check` for details", ExitCode.DATABASE)
        message = f"internal error: {type(error).__name__}: {error}; set JOULEMAP_DEBUG=1 for the traceback"
        return _report(message, ExitCode.INTERNAL)
    return result if isinstance(result, int) else int(ExitCode.OK)


LIKE: Final = 0.8
"""Least likeness of an option to a mistyped one that it is suggested for."""


def _describe_unknown(error: Any) -> str:
    """Return the message on an option that does not exist, with those that are spelled alike; empty for others."""
    if not hasattr(error, "possibilities"):
        return ""
    name = error.option_name
    near = [one for one in error.possibilities or () if SequenceMatcher(None, name, one).ratio() >= LIKE]
    return f"No such option: {name}" + f"; did you mean {' or '.join(near)}?" * bool(near)


def _find_advice(unknown: str, arguments: Sequence[str]) -> str:
    """Return what to write instead of a word of other tools or former versions, or for an option that is a value of
    the site; empty for another word.
    """
    from joulemap.ask.site import KNOWN

    name = unknown.removeprefix("--")
    one = {**KNOWN, **HABIT}.get(name)
    if one is None or unknown == name:
        command = _find_command(arguments)
        return find_advice(unknown, arguments, command if command in list_commands() else "analyze")
    following = iter([*arguments, ""])
    given = next((word for word in following if word.partition("=")[0] == unknown), "")
    value = given.partition("=")[2] or (one.example if one.usual is False else next(following))
    if name in HABIT:
        return f"set {name_variable(name)}={value}, or {name} below [habits] in joulemap.toml"
    table = f"[site.{name}]" if one.is_table else f"{name} below [site]"
    return f"write --site {name}={value}, or {table} in joulemap.toml"


def _find_defaults(words: Sequence[str]) -> dict[str, Any]:
    """Return the defaults that habits state, for the command that a line names and the commands of a group."""
    defaults = list_defaults()
    name = _find_command(words)
    subcommand = _find_command(list(words)[list(words).index(name) + 1 :]) if name else ""
    return {name.lower(): {**defaults, subcommand.lower(): defaults}} if defaults else {}


def _find_command(words: Sequence[str]) -> str:
    """Return the command that a line begins with; empty if it has options alone."""
    return next((word for word in words if not word.startswith("-")), "")


def _read_typed() -> list[str]:
    """Return the words that a shell wants completed, and register Typer's completion classes."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # registers typer's shells, as its own completion options would
    return read_typed(os.environ)


def _check_filled(arguments: Sequence[str]) -> None:
    """Raise UsageError for an option with an empty value, for example from an unset shell variable."""
    for before, word in itertools.pairwise(("", *arguments)):
        name, equals, value = word.partition("=")
        if name.startswith("--") and equals and not value:
            raise UsageError(f"{name} is empty: give it a value, or leave it out")
        if not word and before.startswith("-") and "=" not in before:
            raise UsageError(f"{before} is empty: give it a value, or leave it out")


ELSEWHERE: Final = (OSError, UnicodeError, RecursionError, MemoryError, OverflowError)
"""Errors of input files and of the machine; none suggests a damaged database."""

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NAMELESS: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
"""Error numbers of a path that cannot be a file name."""


def _explain_path(error: OSError) -> tuple[str, ExitCode] | None:
    """Return the message and exit code for a file that the system refuses; None for any other failure."""
    named = f"{str(error.filename)[:60]}: " if error.filename else ""
    if error.errno in FULL:
        return f"{named}{error.strerror}; the database is intact", ExitCode.DATABASE
    if error.errno in NAMELESS:
        return f"{named}{error.strerror}", ExitCode.USAGE
    with contextlib.suppress(OSError):
        os.getcwd()
        return None
    return "the working directory no longer exists: change to another one", ExitCode.USAGE


def _explain_memory(error: Exception) -> str:
    """Return the message for an error that a lack of memory causes; empty for any other.

    A library that does not fit into the memory that the process may have is an ImportError.
    """
    from joulemap.system.heap import find_memory_limit

    limit = find_memory_limit()
    if not isinstance(error, MemoryError) and not (limit and isinstance(error, ImportError)):
        return ""
    within = f" within the limit of {limit / 1e6:,.0f} MB (ulimit -v)" if limit else ""
    what = f": {error}" if isinstance(error, ImportError) else ""
    return f"out of memory{within}{what}; allow more, or ask about fewer models, hardware or batches at a time"


def _blames_rows(error: JoulemapError, arguments: Sequence[str]) -> bool:
    """Return True if a statement that converts nothing failed on the values of rows, which damage can cause."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is None or not isinstance(error.__cause__, duckdb.DataError):
        return False
    return not any("::" in one or "cast" in one.lower() for one in arguments)


def _find_damage() -> str:
    """Return a text on the database's damage after a command failed for no known reason; empty without damage.

    Rows that break a rule but are as they were written are no damage, and a check that cannot run finds none.
    """
    from joulemap.cli.output import opened

    for path in opened[-1:]:
        if path.is_file():
            from joulemap.store.check import is_change
            from joulemap.store.connection import PATIENT
            from joulemap.store.guard import check_apart

            try:
                changes = [fault for fault in check_apart(path, PATIENT) if is_change(fault)]
            except (LockedDatabaseError, OlderDatabaseError, RuntimeError):
                return ""
            except DatabaseError as error:
                return str(error)
            if changes:
                return f"{path} is damaged: this rule does not hold: {changes[0][0]}"
    return ""


def _report(message: str, code: ExitCode) -> int:
    from joulemap.show.present.text import one_line

    if not is_asked():
        write_error(one_line(message, MOST_MESSAGE))
    return int(code)
