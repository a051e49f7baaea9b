"""Queries that call other queries: replacement of each call by SQL.

Where the SQL of a query that ships calls another by its name, as if it were a table function,

    SELECT name, energy_j FROM cube.part(run_ids := [$run_id], division := 'subgraph') AS p

the call is replaced by the SQL of that file when the queries are rendered, with the given parameters or their defaults.
Columns that the caller never names are dropped, with the joins that only they need. Arguments may be parameters of the
caller, literals and lists of them, so the called SQL means the same as on its own.

Dropping columns and joins saves time, because planning takes longer than reading. With all columns and joins,
`compare.summary` took 1.6 to 2.1 times as long and `sweep.winner` 2.9 to 6 times. With all joins alone, the factors
were 1.5 and 1.7 to 2.1 (processor time, 3,132 runs).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from joulemap.domain.table import Column
from joulemap.store.block import MARK
from joulemap.store.contract import Parameter, Query
from joulemap.store.header import SHOWN
from joulemap.store.literal import write
from joulemap.system.errors import SqlError
from joulemap.system.record import define

_ITEM = r"(?:\$\w+|'[^'()]*'|-?\d[\d.e]*|TRUE|FALSE)"
_LISTS = r"list_concat\(\$\w+,\s*\$\w+\)"
_ARGUMENT = rf"(\w+)\s*:=\s*({_ITEM}|{_LISTS}|\[\s*(?:{_ITEM}(?:\s*,\s*{_ITEM})*)?\s*\])\s*"
CALL = re.compile(rf"(?<![\w.\"'])([a-z_]+\.[a-z_]+(?:@\d+)?)\(((?:[^()]|{_LISTS})*)\)")
"""Pattern of a call: its name, optionally with a version, and its arguments."""

_ARGUMENTS = re.compile(rf"\s*(?:{_ARGUMENT}(?:,\s*{_ARGUMENT})*)?")
_ORDER = re.compile(r"\nORDER BY\b(?!.*\n(?:ORDER BY|SELECT|FROM|LIMIT|OFFSET)\b).*", re.DOTALL)
_CELLS = re.compile(r"(?:\A|\n)SELECT(\s(?:(?!\nFROM\b|\nSELECT\b).)*)\nFROM\b(?!.*\nSELECT\b)", re.DOTALL)
_ANY = re.compile(r"(?:\bSELECT(?:\s+DISTINCT)?|,|\.)\s*\*|\b(?:COLUMNS|metric_value)\s*\(", re.IGNORECASE)
"""Pattern of SQL that reads columns without naming them, such as `*`."""
_JOIN = re.compile(r"^LEFT JOIN [\w.]+ AS (\w+) ON .*\n", re.MULTILINE)
_USED = re.compile(r"\b(\w+)\.")
_FIXED = re.compile(r"^(?:GROUP BY|HAVING|QUALIFY|UNION|LIMIT|OFFSET)\b", re.MULTILINE)
_WORD = re.compile(r"\w+")
_PARAMETER = re.compile(r"\$(\w+)")
_FILLED = re.compile(rf"{CALL.pattern}|{_PARAMETER.pattern}")

_Call = tuple[str, tuple[tuple[str, str], ...]]
"""Call of a query: (its name, (parameter, SQL of its value) pairs)."""

Find = Callable[[str], Query]
"""Function that returns the query with a name, or raises UnknownNameError."""


def include(sql: str, is_known: Callable[[str], bool], find: Find, others: Sequence[str] = ()) -> str:
    """Return SQL in which each call of a query is replaced by the query's SQL. Raise SqlError for an invalid call.

    `others` are texts that are run together with this one. Where one of them contains the same call, both replacements
    are alike, with the columns that either names, so that what they read is stored once.
    """
    text = _Text(is_known=is_known, find=find)
    for one in others:
        text.look(one, {})
    return text.spell(sql, {})


def read_arguments(text: str) -> dict[str, str]:
    """Return parameter -> SQL of its argument. Raise SqlError for an argument that calls do not accept."""
    if not _ARGUMENTS.fullmatch(text):
        raise SqlError(f"a query is called with NAME := VALUE, a parameter, a literal or a list of them: {text!r}")
    arguments = re.findall(_ARGUMENT, text)
    given = dict(arguments)
    if len(given) < len(arguments):
        raise SqlError(f"a parameter is given twice: {text!r}")
    return given


@define(kw_only=True)
class _Text:
    """Replacement of calls in SQL by the called queries."""

    is_known: Callable[[str], bool]
    find: Find
    readers: dict[_Call, list[str]] = attrs.field(factory=dict)
    """Call -> SQL texts in which it occurs."""

    def look(self, sql: str, values: Mapping[str, str]) -> None:
        """Record the calls in SQL, and the calls in the called queries, with the texts that contain them."""
        for match in CALL.finditer(sql):
            if self.is_known(match[1].partition("@")[0]):
                call = self._read(match, values)
                self.readers.setdefault(call, []).append(sql)
                if len(self.readers[call]) == 1:
                    self.look(self.find(call[0]).sql, dict(call[1]))

    def spell(self, sql: str, values: Mapping[str, str]) -> str:
        """Return SQL with calls replaced, and with these values in place of its parameters."""

        def replace(match: re.Match[str]) -> str:
            if match[1] is None:
                return values.get(match[3], match[0])
            if not self.is_known(match[1].partition("@")[0]):
                return match[0]
            call = self._read(match, values)
            lines = self._spell_called(call, self.readers.get(call, [sql])).splitlines()
            return "\n".join((f"{MARK}{call[0]}", *(f"    {line}".rstrip() for line in lines), ")"))

        return _FILLED.sub(replace, sql)

    def _spell_called(self, call: _Call, readers: Sequence[str]) -> str:
        """Return the SQL of a called query, without the columns that no reader names."""
        sql = _ORDER.sub("", self.find(call[0]).sql)
        if not any(map(_ANY.search, readers)):
            sql = _pick(sql, {word for reader in readers for word in _WORD.findall(reader)})
        return self.spell(sql, dict(call[1]))

    def _read(self, match: re.Match[str], values: Mapping[str, str]) -> _Call:
        """Return the call that a match of `CALL` describes, with a value for every parameter. Raise SqlError if one is
        wrong.
        """
        query, given = self.find(match[1]), read_arguments(match[2])
        surplus = given.keys() - {parameter.name for parameter in query.parameters}
        missing = {parameter.name for parameter in query.parameters if parameter.is_required} - given.keys()
        if surplus or missing:
            wrong = ", ".join(sorted(surplus or missing))
            raise SqlError(f"{query.name} {'takes no' if surplus else 'needs the'} parameter {wrong}")
        spelled = {
            parameter.name: given.get(parameter.name) or spell_default(parameter) for parameter in query.parameters
        }
        return match[1], tuple(
            (name, _PARAMETER.sub(lambda one: values.get(one[1], one[0]), text)) for name, text in spelled.items()
        )


def spell_default(parameter: Parameter) -> str:
    """Return the default of a parameter as SQL."""
    text = write(parameter.default)
    assert text is not None
    return f"CAST({text} AS {parameter.type})" if parameter.default == [] else text


def _pick(sql: str, names: set[str]) -> str:
    """Return SQL whose last SELECT has only these columns, and the joins that they need.

    A SELECT that groups, or whose row count depends on its joins, keeps all columns and joins. A LEFT JOIN on its own
    line must match at most one row.
    """
    match = _CELLS.search(sql)
    if not match or _ANY.search(match[1]) or _FIXED.search(sql[match.end() :]):
        return sql
    cells = _split(match[1])
    kept = [cell for cell in cells if _WORD.findall(cell)[-1] in names]
    head, rest = sql[: match.start(1)] + ",".join(kept or cells), sql[match.end(1) :]

    def keep(join: re.Match[str]) -> str:
        used = _USED.findall(",".join(kept) + rest.replace(join[0], ""))
        return join[0] if join[1] in used else ""

    return head + _JOIN.sub(keep, rest)


def _split(text: str) -> list[str]:
    """Return the parts of a SELECT list between commas that are outside brackets."""
    cells, depth = [""], 0
    for sign in re.sub(r"'[^']*'", lambda match: re.sub(r"[(),\[\]{}]", "\0", match[0]), text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            cells.append("")
        else:
            cells[-1] += sign
    start, parts = 0, []
    for cell in cells:
        parts.append(text[start : start + len(cell)])
        start += len(cell) + 1
    return parts


def inherit(
    query: Query,
    is_known: Callable[[str], bool],
    find: Find,
    words: tuple[Mapping[str, Parameter], Mapping[str, Column]],
) -> Query:
    """Return a query whose undeclared columns are declared as in the queries that it calls, or else in `words.toml`.

    The parameters are those named in the query's SQL. The columns are those of its last SELECT. The declared columns
    replace them if the last SELECT lacks one, as in a UNION, where the first SELECT names the columns.
    """
    had: dict[str, Column] = {}
    parameters = {parameter.name: parameter for parameter in query.parameters}
    handed: dict[str, Parameter] = {}
    for match in CALL.finditer(query.sql):
        if is_known(match[1].partition("@")[0]):
            had = declare(match[0], find) | had
            given = read_arguments(match[2])
            handed |= {one.name: one for one in find(match[1]).parameters if given.get(one.name) == f"${one.name}"}
    for name in _PARAMETER.findall(query.sql):
        if name in words[0] and name not in parameters:
            handed.setdefault(name, words[0][name])
    own = {column.name: _complete(query, had, words[1], column) for column in query.columns}
    cells = list_cells(query.sql)
    had = {**words[1], **had, **own}
    names = cells if own.keys() <= set(cells) else tuple(own)
    columns = (own.get(name) or attrs.evolve(_take(query, had, name), of="") for name in names)
    return attrs.evolve(query, columns=tuple(columns), parameters=tuple((handed | parameters).values()))


def list_cells(sql: str) -> tuple[str, ...]:
    """Return the column names of the last SELECT; empty if it reads from no table."""
    match = _CELLS.search(sql)
    return tuple(_WORD.findall(cell)[-1] for cell in _split(match[1])) if match else ()


def declare(call: str, find: Find) -> dict[str, Column]:
    """Return name -> declaration of the columns that a call returns. Columns of other divisions than the call's are
    omitted.
    """
    name, _, rest = call.partition("(")
    called, given = find(name), read_arguments(rest.removesuffix(")"))
    chosen = [parameter for parameter in called.parameters if parameter.type == "VARCHAR"]
    divisions = {(given.get(parameter.name) or spell_default(parameter)).strip("'") for parameter in chosen}
    is_open = any("$" in one for one in divisions)
    return {
        one.name: attrs.evolve(one, null=one.null if isinstance(one.null, bool) else one.null in divisions)
        for one in called.columns
        if not one.of or is_open or not divisions.isdisjoint(one.of.split(", "))
    }


def _complete(query: Query, had: Mapping[str, Column], words: Mapping[str, Column], column: Column) -> Column:
    """Return a column with the declaration of a called query or of all queries, if its own only says how to show it."""
    if column.type:
        return column
    told = {name: text for name in SHOWN if (text := getattr(column, name))}
    return attrs.evolve(_take(query, {**words, **had}, column.name), of="", **told)


def _take(query: Query, had: Mapping[str, Column], name: str) -> Column:
    if name not in had:
        raise SqlError(f"{query.path.name}: no query that it calls has a column {name}")
    return had[name]
