"""Shapes of answers: the columns of their parts are fields of the rows."""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import joulemap
from joulemap.show.present.template import Template
from joulemap.show.shape import Part, Shape

SHOW = Path(joulemap.__file__).parent / "show"
LEVELS = ("subgraph", "operator")


def list_pages() -> Iterator[tuple[type[Any], Shape]]:
    for path in sorted(SHOW.glob("*.py")):
        module = importlib.import_module(f"joulemap.show.{path.stem}")
        yield from getattr(module, "PAGES", {}).items()


PAGES = list(list_pages())


def find_record(answer: type[Any], table: str) -> Any:
    """The type of the rows of a field or property of an answer."""
    fields = {field.name: str(field.type) for field in attrs.fields(answer)}
    table = table if hasattr(answer, table) or table in fields else "rows"  # a choice of these rows
    told = fields.get(table) or str(inspect.signature(getattr(answer, table).fget).return_annotation)
    name = told.removeprefix("Table[").partition("]")[0]
    modules = (inspect.getmodule(one) for one in answer.__mro__)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


PARTS = [(answer, part) for answer, shape in PAGES for part in shape.parts if part.columns]


def list_made(part: Part) -> set[str]:
    """The names of the cells that a function of the answer returns."""
    constants = part.cells.__code__.co_consts
    return {name for one in constants for name in (one if isinstance(one, tuple) else (one,)) if isinstance(name, str)}


@pytest.mark.parametrize(("answer", "part"), PARTS, ids=lambda one: getattr(one, "title", ""))
def test_columns_are_fields_of_the_rows(answer: type[Any], part: Part) -> None:
    for by in LEVELS:
        record = find_record(answer, part.table.format(by=by))
        columns = attrs.fields_dict(record) if attrs.has(record) else record.__annotations__
        known = {*columns, *part.lay, *list_made(part)}
        named: set[str] = set()
        if isinstance(part.columns, str):
            text = part.columns.format_map(defaultdict(str, by=by))
            words = [column.split()[-1] for column in text.split("|") if column.strip()]
            named = {one for word in words for one in word.strip("*?!=@±#~+-").split(":") if one}
        else:
            named = {name for line in part.columns for name, _ in Template(line).slots}
        known |= {one for one in named if f'"{one}"' in inspect.getsource(part.cells)}
        assert named <= known, named - known
