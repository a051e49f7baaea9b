"""How much a command says on stderr beside its errors."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Annotated, Final

import typer

from joulemap.present.text import make_visible

TALK_HELP: Final = "Say on stderr what takes time, and which queries are behind the answer."

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=TALK_HELP)]
Talking = Annotated[bool, typer.Option("-v", help=TALK_HELP)]


class Voice:
    """What is said of the command that runs."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a command."""
        self.is_quiet = self.is_verbose = False
        self.command = ""
        self._began_s = time.monotonic()

    def set(self, *, quiet: bool = False, verbose: bool = False) -> None:
        """Take what was asked for, before the command or with it."""
        self.is_quiet |= quiet
        self.is_verbose |= verbose

    def inform(self, text: str) -> None:
        """Say something on stderr that is no error."""
        if not self.is_quiet:
            tell(text)

    def talk(self, text: str) -> None:
        """Say what takes time, to people only unless it was asked for."""
        if self.is_verbose and not self.is_quiet:
            tell(f"{time.monotonic() - self._began_s:.2f} s: {text}")
        elif sys.stderr is not None and sys.stderr.isatty():
            self.inform(text)

    def detail(self, text: str) -> None:
        """Say something that only those hear who asked for it."""
        if self.is_verbose:
            self.talk(text)


voice: Final = Voice()
"""Of this process, which runs one command at a time."""


def tell(text: str, *, keep: str = "", end: str = "\n") -> None:
    """Say something on stderr; what steers a terminal is shown, but for the characters to keep."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(make_visible(text, keep), end=end, file=sys.stderr)
