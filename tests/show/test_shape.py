"""Shapes of answers: the columns of their parts are fields of the rows."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import attrs
import pytest

import joulemap
from joulemap.ask.rule import list_sql_rules
from joulemap.show.layout import lay
from joulemap.show.present.template import Template
from joulemap.show.shape import RESERVED, Page, Part
from joulemap.show.word import Words
from joulemap.store.library import find_query

SHOW = Path(joulemap.__file__).parent / "show"
LEVELS = ("subgraph", "operator")
CHOSEN = "<chosen>"
"""Mark of a field that the choices of an answer name."""


def import_file(path: Path) -> Any:
    return importlib.import_module(".".join(path.relative_to(SHOW.parents[1]).with_suffix("").parts))


def list_pages() -> Iterator[tuple[type[Any], Page]]:
    own = [path for name in ("*/show.py", "*/show/*.py") for path in (SHOW.parent / "wing").glob(name)]
    for path in sorted((*SHOW.glob("*.py"), *own)):
        pages = getattr(import_file(path), "PAGES", {})
        yield from ((answer, page) for answer, page in pages.items() if isinstance(page, Page))


PAGES = list(list_pages())


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


PARTS = [(answer, part) for answer, page in PAGES for part in page.parts if part.columns]


@pytest.mark.parametrize(("answer", "part"), PARTS, ids=lambda one: getattr(one, "title", ""))
def test_columns_are_fields_of_the_rows(answer: type[Any], part: Part) -> None:
    for by in LEVELS:
        record = find_record(answer, part.rows or part.table.format(by=by))
        if not hasattr(record, "columns"):
            pytest.skip(f"the rows are {record}")
        known = {*record.columns, *part.lay}
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


@pytest.mark.parametrize(("answer", "part"), PARTS, ids=lambda one: getattr(one, "title", ""))
def test_options_of_a_part_are_those_of_tables_or_its_columns(answer: type[Any], part: Part) -> None:
    """A table would take a misspelled one for the cells of a column that it does not show."""
    named = set(re.findall(r"\w+", part.columns if isinstance(part.columns, str) else " ".join(part.columns)))
    unknown = set(part.lay) - set(signature(lay).parameters) - named
    assert not unknown or "{" in part.columns, (answer, unknown)


@pytest.mark.parametrize(("answer", "page"), PAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_choices_are_read_by_the_page_or_fill_its_slots(answer: type[Any], page: Page) -> None:
    """A page would pass over a misspelled one."""
    source = inspect.getsource(page.choices)
    named = re.findall(r'"(\w+)":', source) if source.startswith("def ") else []
    rest = SHOWN.replace(source, "")
    unread = {name for name in named if name not in RESERVED and not re.search(rf"\b{name}\b", rest)}
    assert unread <= {*attrs.fields_dict(answer), *dir(answer)}, unread


def list_names() -> Iterator[str]:
    """Yield what may fill a slot: keywords, parameters, fields, keys of records, functions, and columns of rules."""
    for path in SHOW.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword | ast.arg):
                yield node.arg or ""
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
            elif isinstance(node, ast.FunctionDef):
                yield node.name
            elif isinstance(node, ast.Dict):
                yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
    for one in list_sql_rules():
        yield from (column.name for column in find_query(one.query, one.folder).columns)


def list_templates(value: object) -> Iterator[Template]:
    """Yield the templates in a value, in what it holds, and in the fields of a record."""
    if isinstance(value, Template):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        yield from (
            one for held in (value.values() if isinstance(value, Mapping) else value) for one in list_templates(held)
        )
    elif isinstance(value, Page | Words):
        yield from list_templates([getattr(value, field.name) for field in attrs.fields(type(value))])


def find_slots(texts: Iterable[str]) -> set[str]:
    """Return the names in the slots of texts, without the fields that follow them."""
    return {re.split(r"[.\[]", slot)[0] for text in texts for slot, _ in Template(text).slots}


def list_unknown(slots: set[str], names: set[str]) -> set[str]:
    """Return the slots that nothing can fill; a fact beside another has slots such as `time_share`."""
    return {one for one in slots if one not in names and not {*one.partition("_")[::2]} <= names}


def test_slots_of_texts_can_be_filled() -> None:
    """A misspelled one would stop the first answer that has it, whatever tests ask."""
    names = set(list_names())
    paths = [path for path in SHOW.parent.rglob("*.py") if {"show", "show.py"} & {*path.parts}]
    texts = {one.text for path in paths for one in list_templates([*vars(import_file(path)).values()])}
    assert len(texts) > 700
    assert list_unknown(find_slots(texts), names) == set()
    assert list_unknown(find_slots(["{share:%} of {name}", "{shaer:%} of [{time_shaer} or ]{nmae.unit}"]), names) == {
        "shaer", "time_shaer", "nmae",
    }  # fmt: skip
