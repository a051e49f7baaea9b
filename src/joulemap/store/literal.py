"""Values as SQL literals in the place of a statement's parameters.

The engine's own parameters make it import pandas and pyarrow where they are installed, which takes longer than most
queries. Values without a literal form are bound as parameters nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import duckdb


def quote_name(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


Values = Mapping[str, Any] | Sequence[Any]

LONG: Final = 32
"""Maximum length of an integer list that is written element by element. The engine binds each element as an expression,
so longer lists are faster as one text.
"""

MOST: Final = 2**31 - 1
"""Maximum of the engine's INTEGER type."""

_FEW: Final = re.compile(r"IN \(SELECT unnest\(\[(\d+(?:, \d+){0,31})\]\)\)")
"""Pattern of a short list of numbers in `IN (SELECT unnest(...))`."""


def execute(connection: duckdb.DuckDBPyConnection, sql: str, values: Values = ()) -> duckdb.DuckDBPyConnection:
    """Run a statement with values for its `$name` parameters or, from a sequence, its `?`. Raise duckdb.Error if it
    fails.
    """
    filled = fill(sql, values)
    return connection.execute(sql, values) if filled is None else connection.execute(filled)


def relate(connection: duckdb.DuckDBPyConnection, sql: str, values: Values = ()) -> duckdb.DuckDBPyRelation:
    """Return a statement as a relation that was planned but not run. Raise duckdb.Error if planning fails."""
    filled = fill(sql, values)
    return connection.sql(sql, params=values) if filled is None else connection.sql(filled)


def fill(sql: str, values: Values, *, long: float = LONG) -> str | None:
    """Return a statement with literals in place of its parameters; None if a value has no literal form.

    Lists of more than `long` integers are written as one text, which the engine reads faster.
    """
    if not values:
        return sql
    given = values if isinstance(values, Mapping) else dict(enumerate(values))
    pieces, rest = _cut(sql)
    filled = []
    for text, name in pieces:
        literal = write(given[name], long=long) if name in given else None  # type: ignore[index]
        if literal is None:
            return None
        filled += [text, literal]
    return "".join((*filled, rest))


@lru_cache(maxsize=256)
def _cut(sql: str) -> tuple[list[tuple[str, str | int]], str]:
    """Return ((text before a parameter, its name or number) for each parameter, text after the last one)."""
    import duckdb

    written, tokens = sql.encode(), duckdb.tokenize(sql)
    ends = [start for start, _ in tokens[1:]] + [len(written)]
    pieces: list[tuple[str, str | int]] = []
    done = asked = 0
    for number, (start, kind) in enumerate(tokens):
        if kind != duckdb.token_type.operator or written[start : start + 1] not in b"$?":
            continue
        name: str | int
        if written[start : start + 1] == b"?":
            name, end, asked = asked, start + 1, asked + 1
        else:
            end = ends[number] if ends[number] > start + 1 else ends[number + 1]
            word = written[start + 1 : end].decode()
            name = word[: next((at for at, sign in enumerate(word) if not (sign.isalnum() or sign == "_")), len(word))]
            end = start + 1 + len(str(name).encode())
        pieces.append((written[done:start].decode(), name))
        done = end
    return pieces, written[done:].decode()


def list_numbers(sql: str) -> str:
    """Return a statement in which short integer lists are written as `IN (1, 2)`, which the engine plans faster."""
    return _FEW.sub(r"IN (\1)", sql)


def write(value: object, *, long: float = LONG) -> str | None:
    """Return a value as an SQL literal of the type that a bound parameter would have; None for other kinds."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"({value})" if value < 0 else str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str() if "\0" not in value and _is_whole(value):
            return quote_text(value)
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP {quote_text(value.isoformat(sep=' '))}"
        case list() | tuple() if len(value) > long and all(type(one) is int and abs(one) <= MOST for one in value):
            return f"CAST('[{', '.join(map(str, value))}]' AS INTEGER[])"
        case list() | tuple():
            parts = [write(one, long=long) for one in value]
            return None if None in parts else f"[{', '.join(part for part in parts if part is not None)}]"
        case Mapping() if all(isinstance(text, str) for pair in value.items() for text in pair):
            pairs = [(write(key), write(text)) for key, text in value.items()]
            return None if any(None in pair for pair in pairs) else f"MAP {{{', '.join(map(': '.join, pairs))}}}"  # type: ignore[arg-type]
        case _:
            return None


def _is_whole(text: str) -> bool:
    """Return whether a text can be encoded: it has no lone surrogate (half of a UTF-16 pair)."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
