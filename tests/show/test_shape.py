"""Shapes of answers: the columns of their parts are fields of the rows."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import attrs
import pytest

import joulemap
from joulemap.ask import fact
from joulemap.show.present.template import Template
from joulemap.show.shape import RESERVED, Line, Page, Part, Shape

SHOW = Path(joulemap.__file__).parent / "show"
LEVELS = ("subgraph", "operator")
CHOSEN = "<chosen>"
"""Mark of a field that the choices of an answer name."""


def list_pages() -> Iterator[tuple[type[Any], Shape]]:
    own = [path for name in ("*/show.py", "*/show/*.py") for path in (SHOW.parent / "wing").glob(name)]
    for path in sorted((*SHOW.glob("*.py"), *own)):
        name = ".".join(path.relative_to(SHOW.parents[1]).with_suffix("").parts)
        yield from getattr(importlib.import_module(name), "PAGES", {}).items()


PAGES = list(list_pages())
FACTS = {name.lower(): one for name, one in vars(fact).items() if isinstance(one, type) and attrs.has(one)}


def find_record(answer: type[Any], table: str) -> Any:
    """The type of the rows of a field or property of an answer."""
    fields = {field.name: str(field.type) for field in attrs.fields(answer)}
    if table not in fields and not hasattr(answer, table):  # a part that divides the rows
        table = "rows"
    held = inspect.getattr_static(answer, table, None)
    told = fields.get(table) or str(inspect.signature(getattr(held, "func", None) or held.fget).return_annotation)
    found = re.search(r"Table\[(\w+)\]", told)
    if found is None:
        pytest.skip(f"the rows are a record: {told}")
    modules = (inspect.getmodule(one) for one in answer.__mro__)
    return next(getattr(module, found[1]) for module in modules if hasattr(module, found[1]))


PARTS = [(answer, part) for answer, shape in PAGES for part in shape.parts if part.columns]


@pytest.mark.parametrize(("answer", "part"), PARTS, ids=lambda one: getattr(one, "title", ""))
def test_columns_are_fields_of_the_rows(answer: type[Any], part: Part) -> None:
    for by in LEVELS:
        record = find_record(answer, part.rows or part.table.format(by=by))
        columns = attrs.fields_dict(record) if attrs.has(record) else record.__annotations__
        known = {*columns, *part.lay}
        with contextlib.suppress(KeyError, TypeError):  # cells of a metric or number that a mock has not
            known |= {*part.cells(MagicMock())}
        named: set[str] = set()
        if isinstance(part.columns, str):
            text = part.columns.format_map(defaultdict(lambda: CHOSEN, by=by))
            words = [column.split()[-1] for column in text.split("|") if column.strip()]
            words = [word for word in words if CHOSEN not in word]
            named = {one for word in words for one in word.strip("*?!=-").split(":") if one}
        else:
            named = {name for line in part.columns for name, _ in Template(line).slots}
        known |= {one for one in named if f'"{one}"' in inspect.getsource(part.cells)}
        assert named <= known, named - known


ROWS = "".join(path.read_text() for path in sorted(SHOW.parent.rglob("generated/*.py")))
"""Records of rows, with all columns that a slot of a page may name."""

SHOWN = "".join(path.read_text() for path in sorted(SHOW.parent.rglob("*.py")) if {"show", "show.py"} & {*path.parts})
"""Code that writes what people read."""


@pytest.mark.parametrize(("answer", "page"), PAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_columns_that_stay_or_rank_are_columns_of_the_page(answer: type[Any], page: Page) -> None:
    """A table would pass over a misspelled one."""
    known = {*re.findall(r"\w+", " ".join(f"{part.columns} {[*part.lay]}" for part in page.parts))}
    options = [str(part.lay.get(name, "")) for part in page.parts for name in ("keep", "ranked", "pictures")]
    named = {one for one in " ".join(options).split() if "{" not in one} - known
    assert {one for one in named if f"    {one}: " not in ROWS and f'"{one}": ' not in SHOWN} == set()


@pytest.mark.parametrize(("answer", "page"), PAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_choices_are_read_by_the_page_or_fill_its_slots(answer: type[Any], page: Page) -> None:
    """A page would pass over a misspelled one."""
    source = inspect.getsource(page.choices)
    named = re.findall(r'"(\w+)":', source) if source.startswith("def ") else []
    rest = SHOWN.replace(source, "")
    unread = {name for name in named if name not in RESERVED and not re.search(rf"\b{name}\b", rest)}
    assert unread <= {*attrs.fields_dict(answer), *dir(answer)}, unread


SOURCES = "".join(
    path.read_text()
    for folder in ("ask", "wing", "domain", "plan")
    for path in sorted((SHOW.parent / folder).rglob("*.py"))
    if folder != "wing" or {"ask", "llm"} & {*path.parts}
)
"""Code that makes facts: what it names in quotes may be a tag or a value of a fact."""

GIVEN = {"run", "rival", "of", "own", "per", "each", "saving", "more", "unit", "noun"}
"""Slots that `read` and `Line` fill for every fact."""


def list_lines() -> Iterator[tuple[str, Line]]:
    """The lines of all pages, and those that a module of a page has by name."""
    for answer, shape in PAGES:
        own = [getattr(shape, "first", None), *(why if isinstance(why := getattr(shape, "why", ()), tuple) else ())]
        module = importlib.import_module(answer.__module__.replace(".ask.", ".show."))
        yield from ((answer.__name__, one) for one in [*own, *vars(module).values()] if isinstance(one, Line))


CHOSEN_SLOTS = {
    answer.__name__: set(re.findall(r'"(\w+)":', inspect.getsource(shape.choices))) for answer, shape in PAGES
}
"""Answer -> slots that its page fills by a choice."""

LINES = list({id(line): (name, line) for name, line in list_lines()}.values())


@pytest.mark.parametrize(("name", "line"), LINES, ids=lambda one: one if isinstance(one, str) else "")
def test_selectors_and_slots_of_lines_are_facts_and_their_values(name: str, line: Line) -> None:
    """A wrong one drops its text without an error."""
    known = {*GIVEN, *re.findall(r"\w+", inspect.getsource(line.more)), *CHOSEN_SLOTS[name]}
    for selector in line.selectors:
        wanted, _, prefix = selector.partition(" as ")
        kind, *tags = wanted.split()
        fields = attrs.fields_dict(FACTS[kind])
        assert all(f'"{tag}"' in SOURCES for tag in tags), selector
        known |= {f"{prefix}_{one}" if prefix else one for one in fields}
    texts = [*line.text.values(), *([line.each] if line.each else [])]
    named = {slot.partition(".")[0] for text in texts for slot, _ in text.slots}
    lacking = {one for one in named - known if not re.search(rf'"{one}"|\b{one}=', SOURCES)}
    assert not lacking, (name, lacking)
