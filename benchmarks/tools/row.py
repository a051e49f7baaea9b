"""Types of rows, from the headers of the queries.

Each folder of `queries` becomes a module of the folder `generated`, or the module `row` in that folder of the wing that
runs its queries. Each query whose header names a record becomes a class. So does each table of `table.toml` in such a
folder, whose rows are computed instead.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from joulemap.domain.table import Column, Row
from joulemap.store.contract import Query
from joulemap.store.header import SHOWN
from joulemap.store.library import list_queries
from joulemap.system.resource import folder
from joulemap.system.wing import BUILT_IN, list_wings
from tools import GENERATED, PACKAGE

TYPES: Final = {
    "INTEGER": "int", "BIGINT": "int", "HUGEINT": "int", "DOUBLE": "float", "VARCHAR": "str", "BOOLEAN": "bool",
}  # fmt: skip
"""Type of the database -> Python type."""

HOMES: Final = {"MetricName": "joulemap.domain.metric", "Standing": "joulemap.physics.interval.error_scale"}
"""Type of an enumerated text -> the module that defines it."""

WIDTH: Final = 112


def spell_type(column: Column) -> str:
    """Return the type of a column's cells."""
    inner = column.values or TYPES[column.type.removesuffix("[]")]
    return f"{f'list[{inner}]' if column.type.endswith('[]') else inner}{' | None' if column.null else ''}"


def _spell_text(text: str) -> list[str]:
    first = text.split()[0]
    text = text.rstrip(". ")
    text = f"{text if first.endswith(':') or not first.isalpha() else text[0].upper() + text[1:]}."
    text = text.replace("\\", "\\\\")
    lines = wrap(f'"""{text}', WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = [f'{lines[0]}"""'] if len(lines) == 1 else [*lines, '"""']
    return [f"    {line}" for line in lines]


def spell_class(query: Query) -> str:
    """Return the code of the class of a query's rows."""
    head = [f'class {query.record}(Row, query="{query.name}"):', *_spell_text(f"{query.summary}; {query.grain}"), ""]
    if query.table:
        head.append(f"    table: ClassVar[tuple[Col[{query.record}], ...]]")
    return "\n".join([*head, *(f"    {column.name}: Cell[{spell_type(column)}]" for column in query.columns)])


def spell_table(record: str, table: Sequence[str]) -> str:
    """Return the code of the columns that tables of a type of rows show."""
    return f"{record}.table = ({''.join(f'{record}.{one}, ' for one in table)})"


def spell_computed(name: str, table: Mapping[str, Any]) -> str:
    """Return the code of the record of a computed table, from its part of `table.toml`."""
    lines = [f"class {name}(Row):", *_spell_text(table["summary"]), ""]
    if "table" in table:
        lines.append(f"    table: ClassVar[tuple[Col[{name}], ...]]")
    for column, told in table["columns"].items():
        kind = f"{TYPES[told['type']]}{' | None' if told.get('null') else ''}"
        texts = [told["meaning"], *([told["unit"]] if "unit" in told else [])]
        given = [*(json.dumps(one, ensure_ascii=False) for one in texts)]
        given += ["is_wide=True"] if told["type"] == "HUGEINT" else []
        given += [f"{key}={json.dumps(told[key], ensure_ascii=False)}" for key in SHOWN if key in told]
        lines.append(f"    {column}: Cell[{kind}] = described({', '.join(given)})")
    return "\n".join(lines)


def read_tables() -> dict[str, dict[str, Any]]:
    """Return topic -> name of a record -> its summary and columns, for all computed tables."""
    paths = sorted(folder("queries").glob("*/table.toml"))
    return {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in paths}


def spell_module(topic: str, queries: list[Query], tables: Mapping[str, Any]) -> str:
    """Return the code of the rows of one folder of queries, and of its computed tables."""
    shown = {query.record: query.table for query in queries if query.table}
    shown |= {name: table["table"] for name, table in tables.items() if "table" in table}
    words = sorted({column.values for query in queries for column in query.columns} - {""})
    imports = [f"    from joulemap.domain.column import Cell{', Col' if shown else ''}"]
    imports += [f"    from {HOMES[word]} import {word}" for word in words]
    head = [
        f"# {GENERATED}",
        f'"""Rows of the queries of `queries/{topic}`, from their headers."""',
        "",
        "from __future__ import annotations",
        "",
        f"from typing import TYPE_CHECKING{', ClassVar' if shown else ''}",
        "",
        f"from joulemap.domain.table import Row{', described' if tables else ''}",
        "",
        "if TYPE_CHECKING:",
        *imports,
    ]
    records = [spell_computed(name, table) for name, table in tables.items()]
    records += [spell_table(name, table) for name, table in shown.items()]
    return "\n\n\n".join(["\n".join(head), *map(spell_class, queries), *records]) + "\n"


def spell_modules() -> dict[Path, str]:
    """Return path -> code of every module of rows."""
    homes = {
        topic: PACKAGE / "wing" / wing.name / "generated" / "row.py"
        for wing in list_wings()
        if wing.name in BUILT_IN
        for topic in (wing.name, *wing.queries)
    }
    tables = read_tables()
    topics: dict[str, list[Query]] = {topic: [] for topic in tables}
    for query in list_queries():
        if taken := {column.name for column in query.columns} & {"table", *dir(Row), *Row.__annotations__}:
            raise ValueError(f"{query.path}: a row has no column {', '.join(sorted(taken))}")
        if query.record:
            topics.setdefault(query.name.partition(".")[0], []).append(query)
    places = {topic: homes.get(topic, PACKAGE / "generated" / f"{topic}.py") for topic in topics}
    return {places[topic]: spell_module(topic, mine, tables.get(topic, {})) for topic, mine in topics.items()}
