"""Run the command line in the process of the tests or in its own process."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

from joulemap.cli.app import run

Done = subprocess.CompletedProcess[str]

CACHING = ("joulemap.plan.catalogue", "joulemap.store.library")
"""Modules with functions that cache folders and environment variables of a command."""

WIDE = "10000"
"""Columns on which no table folds a column."""


def run_here(arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Done:
    """Run a command in this process as if in a new one, with its own folder, variables, streams and caches."""
    _forget()
    stdout, stderr = _stream(), _stream()
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, _environment(variables), clear=True),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        _warning_on(stderr),
    ):
        code = run(arguments)
    _forget()
    return subprocess.CompletedProcess(["joulemap", *arguments], code, _text(stdout), _text(stderr))


def list_steps(text: str) -> list[list[str]]:
    """Return the words of each command after `Next` in an answer."""
    return [shlex.split(line) for line in re.findall(r"^(?:Next {3}| {7})joulemap (.*)$", text, re.MULTILINE)]


def run_alone(arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Done:
    """Run a command in its own process, for tests of signals, of the interpreter's streams or of imports."""
    return subprocess.run(
        [sys.executable, "-m", "joulemap", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(variables),
        timeout=120,
        check=False,
    )


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process for a command, which by default writes to a wide page."""
    kept = {name: value for name, value in os.environ.items() if name != "JOULEMAP_DB"}
    return kept | {"COLUMNS": WIDE} | dict(variables)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return io.TextIOWrapper(stream.detach(), encoding="utf-8").read()


def _forget() -> None:
    for remembering in _find_caches(len(sys.modules)):
        remembering.cache_clear()


@functools.cache
def _find_caches(_: int) -> list[functools._lru_cache_wrapper[object]]:
    """Return the caches of the loaded `CACHING` modules; searched again when more modules are loaded."""
    return [
        value
        for name, module in list(sys.modules.items())
        if name in CACHING
        for value in vars(module).values()
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == name
    ]


@contextlib.contextmanager
def _warning_on(stream: TextIO) -> Iterator[None]:
    """Show warnings on a command's stderr, as an interpreter without options does."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        stream.write(warnings.formatwarning(message, category, filename, lineno, line))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for hidden in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", hidden)
        warnings.showwarning = show
        yield
