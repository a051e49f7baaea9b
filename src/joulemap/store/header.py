"""Parsing of the header of a query file: its parameters, columns and order.

A query file, `TOPIC/NAME.vN.sql`, is one SELECT under a block comment that contains TOML:

    /*
    record = "Comparison"
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

Name and version are those of the file. `schema` defaults to 1, and `order` to the last ORDER BY. A shipped query has
the columns of its last SELECT. Columns that its header does not declare are declared by a query that it calls, or by
`words.toml` for all queries. `heading` and `shown` of a column say how the tables of answers head and format it; a
shipped query may state these alone, as in `rank = { heading = "#" }`, where another declares the column.

`table` names the columns that tables of answers show unless a page says others, each with how a `Col` says it is shown:
`["rank", "name.kept"]`.

The contract is name, version, parameters, columns, grain, order and the meaning of every number. Once it is released, a
change of any of these becomes a new version next to the old file; an additional column does not. `record` is the Python
type of the rows, if there is one: `make rows` generates it from the columns. `values` is the type of a text with a
fixed set of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from joulemap.domain.table import Column
from joulemap.store.contract import Parameter, Query
from joulemap.system.errors import SqlError
from joulemap.system.file import FileError, parse_toml, read_text
from joulemap.system.key import describe_unknown

Entry = TypeVar("Entry")

MOST_BYTES: Final = 1_000_000

_HEADER: Final = re.compile(r"\A/\*\n(?P<header>.*?)\n\*/(?P<sql>\n.*)\Z", re.DOTALL)
_TERM: Final = re.compile(r"(?:\w+\.)?(\w+)( DESC)?")
_KINDS: Final = {
    "name": str,
    "record": str,
    "version": int,
    "schema": int,
    "summary": str,
    "grain": str,
    "order": list,
    "table": list,
    "parameters": dict,
    "columns": dict,
}
_NEEDED: Final = {"summary", "grain"}
_KIND_NAMES: Final = {str: "text", int: "a whole number", list: "a list of texts", dict: "a table of tables"}
SHOWN: Final = ("heading", "shown")
"""Fields of a column that say how tables of answers show it, and that a query may state alone of a column that another
declares.
"""

_FIELDS: Final = {"parameters": ("type", "meaning"), "columns": ("type", "meaning", "unit", "values", "of", *SHOWN)}
"""Section of a header -> fields of its entries that must be text."""


def parse_query(path: Path) -> Query:
    """Return the query in a file. Raise SqlError, with the file and the reason, if its header is invalid."""
    try:
        match = _HEADER.match(read_text(path, MOST_BYTES))
    except FileError as error:
        raise SqlError(f"{path.name}: cannot be read: {error}") from error
    if match is None:
        raise SqlError(f"{path.name}: a query file starts with a /* header */")
    try:
        header = parse_toml(match["header"])
    except ValueError as error:
        raise SqlError(f"{path.name}: the header is not valid TOML: {error}") from error
    surplus, missing = set(header) - set(_KINDS), _NEEDED - set(header)
    if surplus or missing:
        raise SqlError(
            f"{path.name}: header keys "
            + "; ".join(
                f"{word} {', '.join(sorted(keys))}"
                for word, keys in (("unknown", surplus), ("missing", missing))
                if keys
            )
        )
    _check_kinds(path, header)
    stem, _, number = path.stem.rpartition(".v")
    name, version = f"{path.parent.name}.{stem}", int(number) if number.isdigit() else 0
    stated = header.get("name", name), header.get("version", version)
    if stated != (name, version):
        raise SqlError(
            f"{path.name}: the header says {stated[0]} version {stated[1]}, the file name says {name} version {version}"
        )
    return Query(
        name=name,
        record=header.get("record", ""),
        version=version,
        schema=header.get("schema", 1),
        summary=header["summary"],
        grain=header["grain"],
        order=tuple(header["order"] if "order" in header else _read_order(path, match["sql"])),
        parameters=read_entries(Parameter, header.get("parameters", {})),
        columns=read_entries(Column, header.get("columns", {})),
        table=tuple(header.get("table", ())),
        sql=match["sql"].strip(),
        path=path,
    )


def read_entries(kind: Callable[..., Entry], entries: Mapping[str, Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Return the parameters or columns (`kind`) declared in a header, whose keys were checked."""
    return tuple(kind(**{"name": name, "type": "", "meaning": "", **entry}) for name, entry in entries.items())


def _read_order(path: Path, sql: str) -> list[str]:
    """Return the columns of the last ORDER BY. Raise SqlError if it sorts by expressions."""
    terms = sql.rpartition("\nORDER BY ")[2].split(",")
    matches = [_TERM.fullmatch(term.strip()) for term in terms]
    if not all(matches):
        raise SqlError(
            f"{path.name}: header keys missing order: ORDER BY has more than plain columns, so the header must state "
            "the order"
        )
    return [one[1] + " descending" * bool(one[2]) for one in matches if one]


def _check_kinds(path: Path, header: Mapping[str, object]) -> None:
    """Raise SqlError if a header key has a value of the wrong type, or an entry of its section an unknown key."""
    for section, record in (("parameters", Parameter), ("columns", Column)):
        known = [field.name for field in attrs.fields(record) if field.name != "name"]
        entries = header.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            for key in entry if isinstance(entry, dict) else ():
                if key not in known:
                    raise SqlError(f"{path.name}: {section}.{name}: {describe_unknown(key, known)}")
    for key, value in header.items():
        kind = _KINDS[key]
        is_right = type(value) is kind
        if is_right and isinstance(value, list):
            is_right = all(isinstance(entry, str) for entry in value)
        elif is_right and isinstance(value, dict):
            is_right = all(
                isinstance(entry, dict)
                and ({"type", "meaning"} <= set(entry) or {*SHOWN} >= set(entry))
                and all(isinstance(entry.get(field, ""), str) for field in _FIELDS[key])
                and isinstance(entry.get("null", False), bool | str)
                for entry in value.values()
            )
        if not is_right:
            wanted = _KIND_NAMES[kind] + (" with type and meaning" if kind is dict else "")
            raise SqlError(f"{path.name}: the header's {key} is not {wanted}")
