"""The words of a command line: whether they are text, and which files they name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from joulemap.system.errors import UsageError

VARIABLES: Final = "JOULEMAP_"
"""How the names of variables begin that stand for options or name files."""

_words: ContextVar[tuple[str, ...]] = ContextVar("_words", default=())


def read_words(words: Sequence[str], variables: Mapping[str, str]) -> None:
    """Take note of the words of a command line and of joulemap's variables; UsageError for what is no text."""
    named = {name: value for name, value in variables.items() if name.startswith(VARIABLES)}
    for place, text in [*((f"argument {index}", word) for index, word in enumerate(words, 1)), *named.items()]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{place} is not UTF-8 text: {text[max(0, error.start - 30) : error.end + 30]!r}; rename what it names"
            ) from None
    _words.set((*words, *named.values()))


def named_files(output: Path) -> Iterator[Path]:
    """Yield every file and folder that the command line names beside an output; it may name the output again."""
    is_passed = False
    for word in _words.get():
        value = _strip(word)
        if Path(value) == output:
            if is_passed:
                yield output
            is_passed = True
            continue
        for part in (piece for text in value.split(",") for piece in text.split(os.pathsep)):
            for name in (part, part.partition("@")[0], part.rpartition(":")[0], part.partition("=")[2]):
                if os.path.lexists(name) and ("." in name or os.sep in name or os.path.isdir(name)):
                    yield Path(name)


def _strip(word: str) -> str:
    """Return the value of `--option=value` or `-ovalue`, else the word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return value if equals else name
    return word[2:] if word.startswith("-") and len(word) > 2 else word
