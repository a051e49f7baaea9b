"""Called queries within the SQL of shipped queries. Statements that are run together store those that they share once.

A called query stands in brackets, indented, after its name:

    SELECT name, energy_j FROM ( -- cube.part
        SELECT ...
    ) AS p
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.store.literal import fill

MARK: Final = "( -- "
"""Beginning of a called query, before its name."""

Parts = tuple["str | Parts", ...]
"""SQL cut into texts and called queries."""


def share(statements: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[dict[str, str], list[str]] | None:
    """Return (table name -> SQL, SQL of each statement), where the tables replace called queries that occur several
    times; None if the value of a parameter has no literal form on one line.

    `statements` has each statement with the values of its parameters. Tables must be created in the order returned.
    """
    filled = [_fill(cut(sql), values) for sql, values in statements]
    counts: Counter[Parts] = Counter()
    names: dict[Parts, str] = {}
    tables: dict[str, str] = {}

    def count(parts: Parts) -> None:
        for part in parts:
            if not isinstance(part, str):
                counts[part] += 1
                if counts[part] == 1:
                    count(part)

    def spell(parts: Parts) -> str:
        return "".join(part if isinstance(part, str) else name_part(part) for part in parts)

    def name_part(part: Parts) -> str:
        if counts[part] == 1:
            indented = spell(part).replace("\n", "\n    ")
            return f"(\n    {indented}\n)"
        if part not in names:
            body = spell(part)
            names[part] = f"shared_{len(names)}"
            tables[names[part]] = body
        return names[part]

    known = [parts for parts in filled if parts is not None]
    if len(known) < len(filled):
        return None
    for parts in known:
        count(parts)
    written = [spell(parts) for parts in known]
    return tables, written


def cut(sql: str) -> Parts:
    """Return SQL cut at the called queries in it, whose indentation and names are removed."""
    parts: list[str | Parts] = []
    done = 0
    while (start := sql.find(MARK, done)) >= 0:
        body = sql.index("\n", start)
        end = sql.index("\n)", body)
        parts += [sql[done:start], cut(sql[body:end].replace("\n    ", "\n")[1:])]
        done = end + 2
    return (*parts, sql[done:])


def _fill(parts: Parts, values: Mapping[str, Any]) -> Parts | None:
    """Return parts with literals in place of parameters; None if a value has no literal form."""
    filled: list[str | Parts] = []
    for part in parts:
        one = _fill_text(part, values) if isinstance(part, str) else _fill(part, values)
        if one is None:
            return None
        filled.append(one)
    return tuple(filled)


def _fill_text(text: str, values: Mapping[str, Any]) -> str | None:
    filled = fill(text, values)
    return filled if filled is not None and filled.count("\n") == text.count("\n") else None
