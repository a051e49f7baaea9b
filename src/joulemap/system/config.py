"""Values that a place states once: in a settings file, in the environment, or after an option.

The file is `joulemap.toml`, or `[tool.joulemap]` of a `pyproject.toml`, in the working folder or the nearest above.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from joulemap.system.errors import JoulemapError, UnknownNameError, UsageError
from joulemap.system.number import parse_quantity, read_real, read_whole
from joulemap.system.record import frozen

NAME: Final = "joulemap.toml"
PROJECT: Final = "pyproject.toml"
TOOL: Final = "tool.joulemap"
"""Prefix of joulemap's tables in a project file; a file without it is passed over."""

PREFIX: Final = "JOULEMAP_"
"""Prefix of environment variables."""

FILE: Final = f"{PREFIX}SITE_FILE"
"""Environment variable that names the file instead of the search; `/dev/null` is a file without values."""

OPTION: Final = "--site"
DEFAULT_DATABASE: Final = "joulemap.duckdb"
"""Default results database, in the working directory."""

WAIT_S: Final = 30.0
"""Default wait for other processes that hold a database."""

SITE: Final = "site"
HABITS: Final = "habits"
TABLES: Final = (SITE, HABITS)


@frozen(kw_only=True)
class Known:
    """Value that a place may state."""

    read: Callable[[str], Any]
    """Function that reads the value; raises ValueError or UsageError."""
    meaning: str
    usual: Any = None
    """Default, or words for it; None for none."""
    example: str = ""
    unit: str = ""
    field: str = ""
    """Field of the record that gets the value."""
    uses: str = "all costs"
    """Questions that use the value."""
    is_table: bool = False
    """True for a value per chip."""
    in_file: bool = True
    """False for a value that no file may state, because it is consent to one call."""


@frozen
class Stated:
    """Value as written, and where."""

    text: str
    origin: str
    """Place in answers: file, variable or option."""
    where: str
    """Place in errors: file and line, variable or option, with the name of the value."""
    folder: str = ""
    """Folder that a relative path starts from; empty for the working one."""


Values = Mapping[tuple[str, str], Stated]
"""Name of a value, and its chip if it has one -> value as written."""


@frozen
class Config:
    """Settings file."""

    path: str = ""
    """Path as people see it, relative to the working folder if it is there or above; empty for no file."""
    text: str = ""
    tables: Mapping[str, Mapping[str, Any]] = {}

    def locate(self, *names: str) -> str:
        """Return `FILE, line N` of a table or key; the file alone if it cannot be told, as in an inline table."""
        header: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), 1):
            key, equals, _ = line.partition("=")
            is_header = line.lstrip().startswith("[")
            parts = tuple(re.split(r"\s*\.\s*", re.sub(rf"[\[\]\"']|\b{TOOL}\b\.?|\].*", "", key).strip()))
            header = parts if is_header else header
            here = header if is_header else (*header, *parts)
            if (is_header or equals) and here[: len(names)] == names:
                return f"{self.path}, line {number}"
        return self.path


@contextlib.contextmanager
def placing(where: str) -> Iterator[None]:
    """Put the place of a value in front of the message about it; a ValueError becomes a UsageError."""
    try:
        yield
    except JoulemapError as error:
        error.args = (f"{where}: {error}",)
        raise
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def find_config(variables: Mapping[str, str] = os.environ) -> Config:
    """Return the settings file of the nearest folder that has one, or the one that `JOULEMAP_SITE_FILE` names.

    Raises UsageError for a file that cannot be read and for unknown tables.
    """
    if named := variables.get(FILE, ""):
        return read_config(named)
    start = Path.cwd()
    for depth, folder in enumerate((start, *start.parents)):
        for name in (NAME, PROJECT):
            path = folder / name
            if path.is_file() and (name == NAME or _is_ours(path)):
                return read_config(path, "/".join((*[".."] * depth, name)) if depth < 3 else str(path))
    return Config()


def _is_ours(path: Path) -> bool:
    """Return whether a project file has tables of joulemap; one that cannot be read has none."""
    try:
        return f"[{TOOL}".encode() in path.read_bytes()
    except OSError:
        return False


def read_config(path: str | Path, shown: str = "") -> Config:
    """Return a settings file; UsageError names the file, the line and the reason."""
    changed = Path(path).stat().st_mtime_ns if Path(path).is_file() else 0
    return _read(Path(path), shown or str(path), changed)


@cache
def _read(path: Path, shown: str, _changed: int) -> Config:
    from joulemap.system.file import FileError, parse_toml, read_text

    try:
        text = "" if str(path) == os.devnull else read_text(path)
        tables = parse_toml(text) if text else {}
    except FileError as error:
        raise UsageError(f"{shown}: cannot be read: {error}") from error
    except ValueError as error:
        raise UsageError(f"{shown}: not valid TOML: {error}") from error
    if path.name == PROJECT:
        tables = tables.get("tool", {}).get("joulemap", {})
    config = Config(shown, text, tables)
    for name, table in tables.items():
        with placing(config.locate(name)):
            if not isinstance(table, Mapping):
                raise UsageError(
                    f"{name} stands outside of a table: write it below {' or '.join(f'[{one}]' for one in TABLES)}"
                )
            if name not in TABLES:
                raise UnknownNameError("table", name, TABLES)
    return config


def read_values(
    table: str, known: Mapping[str, Known], config: Config, variables: Mapping[str, str], given: Iterable[str] = ()
) -> Values:
    """Return the stated values of a table: an option replaces the environment, the environment the file.

    Raises UnknownNameError and UsageError that begin with the place of an unknown name or a malformed value.
    """
    return {
        **dict(_of_file(table, known, config)),
        **dict(_of_environment(known, variables)),
        **read_options(known, given, OPTION),
    }


def _find(known: Mapping[str, Known], name: str, where: str) -> Known:
    if name not in known:
        folded = name.replace("_", "-").lower()
        with placing(where):
            raise UnknownNameError("value", name, known, near=[folded] if folded in known else ())
    return known[name]


def _of_file(table: str, known: Mapping[str, Known], config: Config) -> Iterator[tuple[tuple[str, str], Stated]]:
    folder = str(Path(config.path).parent)
    for name, value in config.tables.get(table, {}).items():
        one = _find(known, name, config.locate(table, name))
        if not one.in_file:
            raise UsageError(
                f"{config.locate(table, name)}: {name} is for one call: {name_variable(name)}={one.example}"
            )
        is_table = isinstance(value, Mapping)
        for chip, text in value.items() if is_table else [("", value)]:
            where = f"{config.locate(table, name, *filter(None, [chip]))}: {name}"
            if one.is_table != is_table or isinstance(text, list | Mapping):
                form = f"write [{table}.{name}] and below it l4 =" if one.is_table else f"write {name} ="
                raise UsageError(f'{where}: {form} "{one.example}"')
            written = str(text).lower() if isinstance(text, bool) else str(text)
            yield (name, chip), Stated(written, config.path, where, folder)


def name_variable(name: str) -> str:
    """Return the environment variable of a value."""
    return f"{PREFIX}{name.upper().replace('-', '_')}"


def _of_environment(
    known: Mapping[str, Known], variables: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str], Stated]]:
    for name, one in known.items():
        variable = name_variable(name)
        if text := variables.get(variable):
            yield from _split(name, one, text, variable, variable)


def read_options(known: Mapping[str, Known], given: Iterable[str], option: str) -> Values:
    """Return the values of texts `NAME=VALUE` after an option; raises as `read_values` does."""
    met: dict[tuple[str, str], Stated] = {}
    for written in given:
        name, _, text = written.partition("=")
        name, dot, chip = name.strip().partition(".")
        one = _find(known, name, option)
        for key, value in _split(name, one, f"{chip}={text}" if dot else text, f"{option} {name}", option):
            if key in met:
                raise UsageError(f"{option} {written}: {' of '.join(filter(None, key))} is given twice")
            met[key] = value
    return met


def _split(name: str, known: Known, text: str, where: str, origin: str) -> Iterator[tuple[tuple[str, str], Stated]]:
    """Yield a value, or each value of a table such as `l4=0.40USD/h,t4=0.35USD/h`."""
    for part in text.split(",") if known.is_table else [f"={text}"]:
        chip, _, value = (word.strip() for word in part.partition("="))
        if not value or known.is_table != bool(chip):
            example = f"l4={known.example}" if known.is_table else known.example
            raise UsageError(f"{where}: cannot read {text!r}: write {name}={example.replace(' ', '')}")
        yield (name, chip), Stated(value, origin, where)


FLAGS: Final = {
    **dict.fromkeys(("0", "false", "no", "off"), False),
    **dict.fromkeys(("1", "true", "yes", "on"), True),
}
"""Text of a flag -> its value."""


def read_flag(text: str) -> bool:
    """Read a flag; UsageError for a text that is none."""
    if text.lower() not in FLAGS:
        raise UsageError(f"{text!r} is neither true nor false")
    return FLAGS[text.lower()]


def _read_seconds(text: str) -> float:
    if (number := read_real(text)) < 0.0:
        raise UsageError(f"{number:g} s, expected at least 0")
    return number


def _read_rows(text: str) -> int:
    if (number := read_whole(text)) < 1:
        raise UsageError(f"{number} rows, expected at least 1")
    return number


HABIT: Final[Mapping[str, Known]] = {
    "db": Known(
        read=str, meaning="results database", usual=DEFAULT_DATABASE, example="results.duckdb", uses="every command",
    ),
    "limit": Known(
        read=_read_rows, meaning="maximum rows shown per table", example="20", uses="every command", field="limit"
    ),
    "show": Known(
        read=lambda text: [text], meaning="further parts to show, as --show names them", example="notes,plot",
        uses="every command", field="show",
    ),
    "wait": Known(
        read=_read_seconds, meaning="wait while another process writes to the database", usual=WAIT_S, unit="s",
        example="60", uses="every command",
    ),
    "raw": Known(
        read=read_flag, meaning="write csv without escaping spreadsheet formulas such as =1+1", usual=False,
        example="true", uses="every command",
    ),
    "envelope": Known(
        read=read_flag, meaning="write json of only one table as an object with schema_version and rows", usual=False,
        example="true", uses="every command",
    ),
    "ledger": Known(
        read=read_flag, meaning="store the ledger of each of many configurations, not only its totals", usual=False,
        example="true", uses="every prediction",
    ),
    "retrace": Known(
        read=read_flag, meaning="trace models with the installed torch, even if they are built in", usual=False,
        example="true", uses="every prediction",
    ),
    "trust": Known(
        read=read_flag, meaning="run code of .pt2 files, and of model files that measurements name", usual=False,
        example="1", uses="every prediction", in_file=False,
    ),
    "build-memory": Known(
        read=lambda text: parse_quantity(text, "B"), unit="B",
        meaning="maximum memory to build a model together with its weights",
        example="4GB", uses="every prediction",
    ),
}  # fmt: skip
"""Name in `[habits]` of `joulemap.toml`, and in capitals after `JOULEMAP_` -> what it is.

Those with a field are defaults of the options of that name.
"""


def _read_habits() -> Mapping[str, tuple[Any, str, str]]:
    """Return name -> value, text and place of every habit that is stated."""
    habits = {}
    for (name, _), one in read_values(HABITS, HABIT, find_config(), os.environ).items():
        with placing(one.where):
            habits[name] = HABIT[name].read(one.text), one.text, one.origin
    return habits


def habit(name: str) -> Any:
    """Return the value of a habit; raises UnknownNameError and UsageError as `read_site` does."""
    return _read_habits().get(name, (HABIT[name].usual,))[0]


def list_habits() -> dict[str, dict[str, str]]:
    """Return the habits that a file or the environment states: text and place."""
    return {name: {"value": text, "from": place} for name, (_, text, place) in _read_habits().items()}


def list_defaults() -> dict[str, Any]:
    """Return option -> default of the options whose habit is stated."""
    return {HABIT[name].field: value for name, (value, *_) in _read_habits().items() if HABIT[name].field}
