"""Queries that read from other queries: what a call of one in SQL becomes, and a header that only names columns.

Where the SQL of a query file calls another by its name, as if it were a table function,

    SELECT name, energy_j FROM cube.place(run_ids := [$run_id], division := 'subgraph') AS p

the SQL of that file stands in its place when the file is loaded, with what is given for its parameters, or their
defaults. A view is a file of a header alone: `from` is such a call, `columns` are those that it
has of the other query's, "OLD AS NEW" under another name, and `order` orders by columns of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs

from joulemap.errors import SqlError
from joulemap.store.contract import Parameter, Query
from joulemap.store.literal import write

_CALL = re.compile(r"(?<![\w.\"'])([a-z_]+\.[a-z_]+)\(")
_ORDER = re.compile(r"\nORDER BY\b(?!.*\nORDER BY\b)", re.DOTALL)
_CELLS = re.compile(r"(?:\A|\n)SELECT(?: DISTINCT)?(\n(?:(?!\nFROM|\nSELECT).)*)\nFROM(?!.*\nSELECT)", re.DOTALL)
_STAR = re.compile(r"(?:SELECT|,|\.)\s*\*|COLUMNS\s*\(")
_WORD = re.compile(r"\w+")
_QUOTES = {"'": "'", '"': '"'}
_CLOSING = {"(": ")", "[": "]", "{": "}"}

Find = Callable[[str], Query]
"""What a name is called by -> the query; raises UnknownNameError."""


def include(sql: str, is_known: Callable[[str], bool], find: Find) -> str:
    """Return SQL without calls of queries; SqlError for one that is called wrongly."""
    start, parts = 0, []
    named = None if _STAR.search(sql) else set(_WORD.findall(sql))
    for found in _CALL.finditer(sql):
        if found.start() < start or not is_known(found[1]):
            continue
        end, given = _read_arguments(sql, found.end())
        parts += [sql[start : found.start()], _spell(find(found[1]), given, named)]
        start = end
    return "".join([*parts, sql[start:]])


def _spell(query: Query, given: dict[str, str], named: set[str] | None) -> str:
    """Return the SQL of a called query, as a subquery, without columns that are nowhere named."""
    surplus = given.keys() - {parameter.name for parameter in query.parameters}
    missing = {parameter.name for parameter in query.parameters if parameter.is_required} - given.keys()
    if surplus or missing:
        wrong = ", ".join(sorted(surplus or missing))
        raise SqlError(f"{query.name} {'takes no' if surplus else 'needs the'} parameter {wrong}")
    values = {parameter.name: given.get(parameter.name) or _default(parameter) for parameter in query.parameters}
    sql = _ORDER.split(query.sql)[0]
    inner = re.sub(r"\$(\w+)", lambda found: values.get(found[1], found[0]), _pick(sql, named) if named else sql)
    return "(\n" + "\n".join(f"    {line}".rstrip() for line in inner.splitlines()) + "\n)"


def _default(parameter: Parameter) -> str:
    text = write(parameter.default)
    assert text is not None
    return f"CAST({text} AS {parameter.type})" if parameter.default == [] else text


def _read_arguments(sql: str, start: int) -> tuple[int, dict[str, str]]:
    """Return where the call ends whose arguments begin, and name -> SQL of each."""
    given: dict[str, str] = {}
    end = start
    for end, text in _split(sql, start):  # noqa: B007
        name, assigned, value = text.partition(":=")
        if not (assigned and name.strip().isidentifier() and value.strip()):
            raise SqlError(f"a query is called with NAME := VALUE, not {text.strip()!r}")
        given[name.strip()] = value.strip()
    return end, given


def _split(sql: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the texts between the commas of a call, each with where the next begins, the last with where it ends."""
    waiting, begun, index = [")"], start, start
    while index < len(sql):
        sign = sql[index]
        if sign in _QUOTES:
            index = sql.find(_QUOTES[sign], index + 1)
            if index < 0:
                break
        elif sign in _CLOSING:
            waiting.append(_CLOSING[sign])
        elif sign == waiting[-1]:
            waiting.pop()
        if not waiting or (sign == "," and len(waiting) == 1):
            yield index + 1, sql[begun:index]
            begun = index + 1
        if not waiting:
            return
        index += 1
    raise SqlError(f"a call of a query does not end: {sql[start : start + 40]!r}")


def view(query: Query, called: Query) -> Query:
    """Return a view with its columns, each as the called query has it; SqlError for one that it has not."""
    given = _read_arguments(query.called, query.called.index("(") + 1)[1]
    division = given.get("division", next((_default(one) for one in called.parameters if one.name == "division"), ""))
    had = {column.name: column for column in called.columns}
    columns, cells = [], []
    for text in query.picked:
        name, _, alias = text.partition(" AS ")
        if name not in had:
            raise SqlError(f"{query.path.name}: {called.name} has no column {name}")
        if had[name].of and division.startswith("'") and division.strip("'") not in had[name].of.split(", "):
            raise SqlError(f"{query.path.name}: {called.name} has the column {name} of each {had[name].of} alone")
        columns.append(attrs.evolve(had[name], name=alias or name, of=""))
        cells.append(f'    v."{name}" AS {alias}' if alias else f'    v."{name}"')
    order = ", ".join(re.sub(r"^(\w+)( descending)?$", _spell_order, text) for text in query.order)
    sql = "SELECT\n" + ",\n".join(cells) + f"\nFROM {query.called} AS v\nORDER BY {order}"
    return attrs.evolve(query, columns=tuple(columns), sql=sql)


def _pick(sql: str, names: set[str]) -> str:
    """Return SQL whose last SELECT has only columns of these names: planning what nobody reads takes time."""
    found = _CELLS.search(sql)
    if not found or _STAR.search(found[1]):
        return sql
    cells = [text for _, text in _split(f"{found[1]})", 0)]
    kept = [cell for cell in cells if _WORD.findall(cell)[-1] in names]
    return sql[: found.start(1)] + ",".join(kept or cells) + sql[found.end(1) :]


def _spell_order(found: re.Match[str]) -> str:
    return f'v."{found[1]}"' + " DESC" * bool(found[2])
