"""Messages of a command on stderr, apart from errors: progress, timings, hints."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Annotated, Final

import typer

from joulemap.present.text import make_visible

TALK_HELP: Final = "Print timings and the names of queries to stderr."

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors to stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=TALK_HELP)]
Talking = Annotated[bool, typer.Option("-v", help=TALK_HELP)]


class Voice:
    """Messages of the running command."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start a command: clear the flags and restart the clock."""
        self.is_quiet = self.is_verbose = False
        self.command = ""
        self._began_s = time.monotonic()

    def set(self, *, quiet: bool = False, verbose: bool = False) -> None:
        """Turn on a flag; a flag before the command stays on."""
        self.is_quiet |= quiet
        self.is_verbose |= verbose

    def inform(self, text: str) -> None:
        """Print a message to stderr, unless --quiet is given."""
        if not self.is_quiet:
            write_message(text)

    def talk(self, text: str) -> None:
        """Print progress to a terminal, or with its time if --verbose is given."""
        if self.is_verbose and not self.is_quiet:
            write_message(f"{time.monotonic() - self._began_s:.2f} s: {text}")
        elif sys.stderr is not None and sys.stderr.isatty():
            self.inform(text)

    def detail(self, text: str) -> None:
        """Print a message only if --verbose is given."""
        if self.is_verbose:
            self.talk(text)


voice: Final = Voice()
"""Messages of this process, which runs one command at a time."""


def write_message(text: str, *, keep: str = "", end: str = "\n") -> None:
    """Print to stderr; control characters are shown as text, except those in `keep`."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(make_visible(text, keep), end=end, file=sys.stderr)
