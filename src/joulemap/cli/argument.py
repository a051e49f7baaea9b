"""Parse the words of a command line: encoding, files that they name, and what stands for older words."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import Final

from joulemap.system.config import habit
from joulemap.system.errors import UsageError

VARIABLES: Final = "JOULEMAP_"
"""Prefix of environment variables that replace options or name files."""

COMPLETE: Final = "_JOULEMAP_COMPLETE"
"""Environment variable that a shell sets when it asks for completions; typer prescribes the name."""

TYPED: Final = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")
"""Environment variables with the typed words: one of zsh, fish and PowerShell, and one of bash."""

_line: ContextVar[tuple[str, ...]] = ContextVar("_line", default=())
_words: ContextVar[tuple[str, ...]] = ContextVar("_words", default=())
_whole: ContextVar[bool] = ContextVar("_whole", default=False)
_database: ContextVar[str] = ContextVar("_database", default="")


def read_words(words: Sequence[str], variables: Mapping[str, str]) -> None:
    """Store the words of a command line and joulemap's variables; UsageError for words that are not UTF-8."""
    named = {name: value for name, value in variables.items() if name.startswith(VARIABLES) and value != os.devnull}
    for position, text in [*((f"argument {index}", word) for index, word in enumerate(words, 1)), *named.items()]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{position} is not UTF-8 text: {text[max(0, error.start - 30) : error.end + 30]!r}; rename that file"
            ) from None
    _line.set(tuple(words))
    _words.set((*words, *named.values()))


def read_typed(variables: Mapping[str, str]) -> list[str]:
    """Return the words after the command's name that a shell wants completed."""
    return next((variables[name] for name in TYPED if variables.get(name)), "").split()[1:]


def spell_line() -> str:
    """Return the command line, quoted for a shell."""
    return shlex.join(["joulemap", *_line.get()])


def named_files(output: Path) -> Iterator[Path]:
    """Yield every file and folder that the command line names.

    `output` is included only if it is named twice, so that it is an input too.
    """
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


HELP: Final = ("--help", "-h")
ALL: Final = "all"
"""Word after `--help` that asks for all of it."""

PROGRAM: Final[Mapping[str, str]] = {
    "-q": "--quiet", "--quiet": "--quiet", "-v": "--verbose", "--verbose": "--verbose", "--db": "--db",
}  # fmt: skip
"""Option of the program, which may stand anywhere in a line -> its name."""


def lift(words: Sequence[str]) -> list[str]:
    """Return a command line with the options of the program in front, and note whether it asks for all of the help.

    UsageError for `--db` without a path.
    """
    front: list[str] = []
    rest: list[str] = []
    _whole.set(False)
    _database.set("")
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if word == "--":
            return [*front, *rest, word, *given]
        if name == "--db":
            path = value if equals else next(given, "")
            if not path:
                raise UsageError("--db is empty: give it a value, or leave it out")
            _database.set(path)
        elif name in PROGRAM:
            front.append(PROGRAM[name])
        elif word == ALL and rest and rest[-1] in HELP:
            _whole.set(True)
        else:
            rest.append(word)
    return [*front, *rest]


def asks_all() -> bool:
    """Return whether the command line asks for all of the help."""
    return _whole.get()


def find_database() -> Path:
    """Return the path of the database that the command line, the environment or a settings file names."""
    return Path(_database.get() or habit("db"))


CLASSES: Final = ("cpu", "gpu", "tpu", "kpu", "npu")
"""Classes of hardware that other tools have options and scripts for; each stands for its default chip."""

GONE: Final[Mapping[str, str]] = {
    "--help-all": "write --help all",
    **{f"--{name}": f"write --show {name}" for name in ("wide", "notes", "details", "check", "plot")},
    "--show-sql": "write --show sql",
    "--all": "write --where all",
    **{
        f"--{name}": f"write --where {name}={{value}}"
        for name in ("architecture", "deployment", "kind", "scenario", "power-budget")
    },
    **{f"--{name}": "run `joulemap {command} {model} {chip}`" for name in CLASSES},
    "--hardware": "run `joulemap compare {model} {chip}`",
    "--requests": "write --rate {value}/s",
    "--years": "write --site lifetime={value}",
    "--architectures": "run `joulemap {command} {model} {chip}`",
    "--model": "the model is the first argument: run `joulemap {command} {model} {chip}`",
    "--models": "models are the first arguments: run `joulemap {command} {model} {chip}`",
    "--explain-difference": "run `joulemap explain {model} l4 t4`",
    "--batch-size": "write --batch",
    "--batch-sizes": "write --batch",
    "--input-shape": "write --input",
    "--dtype": "write --precision",
    "--power-mode": "write HARDWARE@MODE, or --where power-mode=MODE",
    "--device-only": "write --site host=none",
    "--force": "remove the file first, or name another one",
    "--sort": "write --metric",
    "--max-latency": "run `joulemap recommend {model} --max-latency 10ms`",
    "--list-models": "run `joulemap model list`",
    **{f"--list-{name}s": f"run `joulemap hardware list --architecture {name}`" for name in CLASSES},
    "--list-": "run `joulemap hardware list`",
    "list_": "run `joulemap hardware list`",
    "discover_hardware_": "run `joulemap hardware list`",
    "discover_": "run `joulemap model list`",
    "compare_": "run `joulemap compare {model} {chip}`",
    "analyze_batch_": "run `joulemap sweep {model} {chip}`",
    "analyze_": "run `joulemap analyze {model} {chip}`",
    "profile_graph_": "run `joulemap model show {model}`",
    "profile_": "run `joulemap analyze {model} {chip}`",
    "estimate_": "run `joulemap analyze {model} {chip}`",
    "partition_": "run `joulemap fusion {model} {chip}`",
    "graph_": "run `joulemap fusion {model} {chip}`",
}
"""Former option, or option or script of another tool -> what to do instead; a name is the start of one if it ends
with a dash. The slots are filled from the command line.
"""


def find_advice(word: str, words: Sequence[str], command: str) -> str:
    """Return what to do instead of an option or script that other tools, or former versions, have; else empty.

    The model and the chip, or its class, are those of the command line `words`; `command` is the one that it names.
    """
    name = next((one for one in words if one.startswith("--list-")), word).lower()
    if not name.startswith("-"):
        name = f"{os.path.basename(name).removesuffix('.py').replace('-', '_')}_"
    given = (
        advice for start, advice in GONE.items() if name == start or (start[-1] in "-_" and name.startswith(start))
    )
    values = dict(pairwise(part for one in words for part in (*one.split("=", 1), "")[:2] if part))
    kinds = [one for one in CLASSES if one in re.split(r"[^a-z]+", " ".join(words).lower())]
    chips = (values.get(option, "") for option in (*(f"--{one}" for one in kinds), "--architectures", "--hardware"))
    chip = next((one for one in chips if one and not one.startswith("-")), next(iter(kinds), "l4"))
    plain = [one for before, one in pairwise(("", *words)) if not one.startswith("-") and not before.startswith("-")]
    named = (values.get("--model"), values.get("--models"), *plain[1:2])
    model = next(filter(None, named), "resnet18")
    value = values.get(word, "")
    value = value if value and not value.startswith("-") else "VALUE"
    return next(given, "").format(command=command, model=model, chip=chip, value=value)


def part_statement(words: Sequence[str]) -> list[str]:
    """Return a command line of `sql` with a statement that begins with a comment behind `--`; others unchanged."""
    if "--" in words or "sql" not in words:
        return list(words)
    statements = [word for word in words if word.startswith("--") and len(word.partition("=")[0].split()) > 1]
    return [*(word for word in words if word not in statements), *(["--", *statements] if statements else [])]


def join_values(words: Sequence[str]) -> list[str]:
    """Return a command line with commas between several values of an option, e.g. for `--batch 1 8`."""
    joined: list[str] = []
    is_value: Callable[[str], bool] | None = None
    for index, word in enumerate(words):
        if word == "--":
            return [*joined, *words[index:]]
        is_option = word.startswith("-")  # an option may be spelled like a value
        if is_value is not None and not is_option and is_value(word) and is_value(joined[-1].rpartition(",")[2]):
            joined[-1] += f",{word}"
            continue
        is_value = SEVERAL.get(words[index - 1]) if index else None
        joined.append(word)
    return joined


def _is_number(word: str) -> bool:
    return word.isdecimal()


def _is_class(word: str) -> bool:
    from joulemap.domain.architecture import find_class

    return bool(find_class(word))


def _is_precision(word: str) -> bool:
    from joulemap.physics.record.configuration import PRECISION_BYTES, name_precision

    return name_precision(word) in PRECISION_BYTES


def _is_share(word: str) -> bool:
    name, equals, value = word.partition("=")
    return bool(name and equals) and value.endswith("%")


SEVERAL: Final[Mapping[str, Callable[[str], bool]]] = {
    "--batch": _is_number,
    "-b": _is_number,
    "--input": _is_number,
    "--architecture": _is_class,
    "--precision": _is_precision,
    "--fail-above": _is_share,
}
"""Option that takes a list -> test of whether the next word is another item of it, not an argument."""


def _strip(word: str) -> str:
    """Return VALUE of a word such as `--option=VALUE` or `-oVALUE`; any other word is returned unchanged."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return value if equals else name
    return word[2:] if word.startswith("-") and len(word) > 2 else word
