"""Slots of templates can be filled."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

import joulemap
from joulemap.ask.rule import list_sql_rules
from joulemap.show.present.template import Template
from joulemap.show.word import Words
from joulemap.store.library import find_query

SHOW = Path(joulemap.__file__).parent / "show"


def import_file(path: Path) -> Any:
    return importlib.import_module(".".join(path.relative_to(SHOW.parents[1]).with_suffix("").parts))


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
    elif isinstance(value, Words):
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
