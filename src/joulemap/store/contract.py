"""The header of a query file: what it takes, what it returns, and in which order.

A query file is one SELECT under a block comment that holds TOML:

    /*
    name = "compare.summary"
    record = "Comparison"
    version = 1
    schema = 2
    summary = "One line for people"
    grain = "one row per …"
    order = ["energy_j", "hardware"]
    [parameters]
    run_ids = { type = "INTEGER[]", meaning = "…" }
    [columns]
    energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "…" }
    */
    SELECT …

Where a query calls others, `listed` names every column in its place, and what `columns` does not declare is as in a
query that is called. The contract is name, version, parameters, columns, grain, order and the meaning of every number:
once a release has promised it, changing any of these is a new version beside the old file; a column more is none.
`record` is the type of its rows in Python, where it has one: `make rows` makes it of the columns, with `values` as the
type of a text that is one of few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from joulemap.domain.table import Column
from joulemap.system.errors import SqlError
from joulemap.system.file import FileError, read_text
from joulemap.system.record import frozen

MOST_BYTES: Final = 1_000_000

_HEADER: Final = re.compile(r"\A/\*\n(?P<header>.*?)\n\*/(?P<sql>\n.*)\Z", re.DOTALL)
_KINDS: Final = {
    "name": str,
    "record": str,
    "version": int,
    "schema": int,
    "summary": str,
    "grain": str,
    "from": str,
    "order": list,
    "listed": list,
    "parameters": dict,
    "columns": dict,
}
_KIND_NAMES: Final = {str: "text", int: "a whole number", list: "a list of texts", dict: "a table of tables"}
_FIELDS: Final = {"parameters": ("type", "meaning"), "columns": ("type", "meaning", "unit", "values", "of")}
"""Of each parameter and column, those that are text."""


@frozen(kw_only=True)
class Parameter:
    """One named parameter of a query."""

    name: str
    type: str
    """DuckDB type."""
    meaning: str
    default: str | int | float | list[str] | None = None
    """None for a parameter that must be given."""

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is None


@frozen(kw_only=True)
class Query:
    """A query file with its checked header."""

    name: str
    """`topic.name`."""
    record: str
    """The type of its rows, in `joulemap.row`; empty where there is none."""
    version: int
    schema: int
    """The migration whose views it is written for."""
    summary: str
    grain: str
    """What one row is."""
    order: tuple[str, ...]
    """Columns that order the rows."""
    listed: tuple[str, ...]
    """Every column in its place, where some are declared by a query that it calls; else empty."""
    called: str
    """The call of another query that a view is of; empty where the file has SQL of its own."""
    picked: tuple[str, ...]
    """Columns that a view has of it."""
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    sql: str
    written: str
    """The SQL with the calls of other queries that stand in it."""
    path: Path

    @property
    def title(self) -> str:
        """`topic.name@version`."""
        return f"{self.name}@{self.version}"


def parse_query(path: Path) -> Query:
    """Return the query in a file; SqlError names file and reason if its header breaks the rules."""
    try:
        found = _HEADER.match(read_text(path, MOST_BYTES))
    except FileError as error:
        raise SqlError(f"{path.name}: cannot be read: {error}") from error
    if found is None:
        raise SqlError(f"{path.name}: a query file starts with a /* header */")
    try:
        header = _read(found["header"])
    except (ValueError, RecursionError) as error:
        raise SqlError(f"{path.name}: the header is not valid TOML: {error}") from error
    surplus, missing = set(header) - set(_KINDS), set(_KINDS) - {"parameters", "record", "from", "listed"} - set(header)
    if surplus or missing:
        raise SqlError(
            f"{path.name}: header keys "
            + "; ".join(
                f"{word} {', '.join(sorted(keys))}"
                for word, keys in (("unknown", surplus), ("missing", missing))
                if keys
            )
        )
    is_view = "from" in header
    if is_view and not re.fullmatch(r"[a-z_.]+(@\d+)?\([^()]*\)", str(header["from"])):
        raise SqlError(f"{path.name}: the header's from is not a call, as cube.place(run_ids := $run_ids)")
    if is_view and found["sql"].strip():
        raise SqlError(f"{path.name}: a header with `from` has no SQL after it")
    _check_kinds(path, header)
    expected = f"{header['name'].rpartition('.')[2]}.v{header['version']}.sql"
    if path.name != expected or path.parent.name != header["name"].partition(".")[0]:
        raise SqlError(f"{path.name}: the header says {header['name']} version {header['version']}")
    try:
        parameters = tuple(Parameter(name=name, **entry) for name, entry in header.get("parameters", {}).items())
        listed = header["columns"]
        columns = () if is_view else tuple(Column(name=name, **entry) for name, entry in listed.items())
    except TypeError as error:
        raise SqlError(f"{path.name}: {error}") from error
    return Query(
        name=header["name"],
        record=header.get("record", ""),
        version=header["version"],
        schema=header["schema"],
        summary=header["summary"],
        grain=header["grain"],
        order=tuple(header["order"]),
        parameters=parameters,
        columns=columns,
        listed=tuple(header.get("listed", ())),
        called=header.get("from", ""),
        picked=tuple(listed) if is_view else (),
        sql=found["sql"].strip(),
        written=found["sql"].strip(),
        path=path,
    )


def _read(header: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(header)


def _check_kinds(path: Path, header: Mapping[str, object]) -> None:
    """Raise SqlError for a header key that is not of its kind."""
    for key, value in header.items():
        kind = list if key == "columns" and "from" in header else _KINDS[key]
        is_right = type(value) is kind
        if is_right and isinstance(value, list):
            is_right = all(isinstance(entry, str) for entry in value)
        elif is_right and isinstance(value, dict):
            is_right = all(
                isinstance(entry, dict)
                and {"type", "meaning"} <= set(entry)
                and all(isinstance(entry.get(field, ""), str) for field in _FIELDS[key])
                and isinstance(entry.get("null", False), bool | str)
                for entry in value.values()
            )
        if not is_right:
            wanted = _KIND_NAMES[kind] + (" with type and meaning" if kind is dict else "")
            raise SqlError(f"{path.name}: the header's {key} is not {wanted}")
    if not header["columns"]:
        raise SqlError(f"{path.name}: the header has no columns")
