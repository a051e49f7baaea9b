"""Messages of a command on stderr, apart from errors: progress, timings, hints."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from joulemap.show.present.text import END, make_visible, wrap
from joulemap.system.errors import UsageError
from joulemap.system.handle import IS_POSIX

if TYPE_CHECKING:
    from joulemap.show.present.progress import Bar

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors to stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print timings and the names of queries to stderr.")]


@contextlib.contextmanager
def writing_answer() -> Iterator[None]:
    """Convert the failure of a write to stdout into UsageError. A closed pipe ends the command without an error."""
    if sys.stdout is None:
        raise UsageError("stdout is closed, so nothing can be printed")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:
        raise UsageError(f"cannot write the answer: {error.strerror}") from error


def print_text(text: str) -> None:
    """Print a text that is no table, such as help, to stdout; UsageError if it cannot be written."""
    with writing_answer():
        print(text)


class Voice:
    """Messages of the running command."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start a command: clear the flags and restart the clock."""
        end_progress()
        self.is_quiet = self.is_verbose = False
        self.command = ""
        self._began_s = time.monotonic()

    def set(self, *, quiet: bool = False, verbose: bool = False) -> None:
        """Turn on flags; a flag that is already on stays on."""
        self.is_quiet |= quiet
        self.is_verbose |= verbose

    def inform(self, text: str) -> None:
        """Print a message to stderr, unless --quiet is given."""
        if not self.is_quiet:
            write_message(text)

    def talk(self, text: str) -> None:
        """Show progress on a terminal, or print it with its time if --verbose is given."""
        if self.is_verbose and not self.is_quiet:
            write_message(f"{time.monotonic() - self._began_s:.2f} s: {text}")
        for bar in _bars:
            bar.say(text)

    def begin_progress(self) -> None:
        """Show on a terminal what the command does, until its answer is written; not with --quiet or --verbose."""
        if sys.stderr is not None and sys.stderr.isatty() and not self.is_quiet and not self.is_verbose:
            from joulemap.show.present.progress import Bar

            end_progress()
            _bars.append(Bar())
            _bars[0].open(BEGINNING)

    def detail(self, text: str) -> None:
        """Print a message only if --verbose is given."""
        if self.is_verbose:
            self.talk(text)


BEGINNING: Final = "reading the catalogue"
"""First activity of a command."""

_bars: Final[list[Bar]] = []
"""Progress of the running command; empty where none is shown."""


def move_progress(done: int, total: int) -> None:
    """Show how much of the running command is done."""
    for bar in _bars:
        bar.move(done, total)


def end_progress() -> None:
    """Remove the progress of the running command."""
    while _bars:
        _bars.pop().close()


voice: Final = Voice()
"""Messages of this process, which runs one command at a time."""


LOOK_ALIKES: Final[Mapping[int, int]] = str.maketrans(
    "─│┊└┐┘├┤┬┴█▓▒░●◐·○★▲→√…µ▏▎▍▌▋▊▉▁▂▃▄▅▆▇\N{EN DASH}", "-||+++++++#%=:@o.o*^>v.u  :+###_.-=+*%-"
) | dict.fromkeys(range(0x2801, 0x2900), ord("'"))  # lines of braille dots
"""Drawing character -> similar ASCII character, for encodings that lack it."""


def set_encodings() -> None:
    """Replace characters that the encoding of stdout or stderr lacks by similar ones.

    A stream that Windows pipes or redirects gets UTF-8. An encoding that the user sets by PYTHONIOENCODING stays.
    """
    codecs.register_error("joulemap", _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_own = not IS_POSIX and "PYTHONIOENCODING" not in os.environ and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if is_own else None, errors="joulemap")


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(LOOK_ALIKES)
    return "".join(one if one.isascii() else "?" for one in lacking), error.end


INDENT: Final = "  "
"""Begin of the second and further lines of a message."""


ADVICE: Final = r"(?:; |: )(?=(?:did you mean|see|run `|write|give|known:|name one)\b)| \((?=see `)"
"""Pattern of the place in an error message at which its advice begins; compiled for an error alone."""

NAMED: Final = r"'[^'\n]+'|`[^`\n]+`|(?<!\S)--?[a-z][\w-]*"
"""Pattern of a name, a command or an option in an error message."""

RED, GREEN, YELLOW = "\x1b[1;31m", "\x1b[32m", "\x1b[33m"


def takes_colours(stream: TextIO | None) -> bool:
    """Return whether output has colours: on a terminal that supports them, or anywhere with `FORCE_COLOR`, unless
    `NO_COLOR` is set.
    """
    is_terminal = stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return (is_terminal or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")


def write_error(text: str) -> None:
    """Print an error to stderr: one line that begins with the name of the program or, on a terminal, the error and its
    advice, with colours if the terminal takes them.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        write_message(f"joulemap: {text}")
        return
    end_progress()
    place = re.search(ADVICE, text)
    head, advice = (text[: place.start()], text[place.end() :]) if place else (text, "")
    width = shutil.get_terminal_size().columns
    lines = [wrap(make_visible(f"error: {head}", ""), width, INDENT)]
    lines += [wrap(make_visible(f"{INDENT}tip: {advice}", ""), width, INDENT)] if advice else []
    shown = "\n".join(lines)
    if takes_colours(sys.stderr):
        shown = re.sub(NAMED, lambda found: f"{GREEN if found[0][0] == '`' else YELLOW}{found[0]}{END}", shown)
        shown = re.sub("^error:", f"{RED}error:{END}", shown)
        shown = re.sub(rf"^{INDENT}tip:", f"{INDENT}{GREEN}tip:{END}", shown, flags=re.MULTILINE)
    with contextlib.suppress(OSError, ValueError):
        print(shown, file=sys.stderr)


def write_message(text: str, *, keep: str = "", end: str = "\n") -> None:
    """Print to stderr; control characters are shown as text, except those in `keep`.

    A message wraps on a terminal, and at the width in the variable `COLUMNS`; in a file or a pipe, it is one line.
    """
    end_progress()
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            is_wrapped = sys.stderr.isatty() or os.environ.get("COLUMNS")
            width = shutil.get_terminal_size().columns if is_wrapped else None
            print(wrap(make_visible(text, keep), width, INDENT), end=end, file=sys.stderr)
