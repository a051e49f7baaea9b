"""Layouts name columns of their rows: a renamed column is found without running the answer that shows it.

A layout is the text that `lay` divides into columns. The type of the rows follows from annotations, and the text from
constants of the module, so that nothing is evaluated.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest

import joulemap
from joulemap.show.present.template import Template
from scope import (
    Scope,
    find_class,
    find_constant,
    find_type,
    find_value,
    list_attributes,
    list_rows,
    read_scopes,
    read_tree,
    spell,
)

PACKAGE: Final = Path(joulemap.__file__).parent

LAYING: Final = {
    "lay": (0, 1),
    "_lay": (0, 1),
    "_draw_best": (0, 1),
    "_lay_constants": (0, 1),
    "_lay_details": (0, 1),
    "_lay_largest": (0, 1),
    "_lay_metrics": (0, 1),
    "_lay_rows": (0, 1),
    "draw_modules": (0, 3),
    "lay_rows": (1, 2),
}
"""Function that lays a table out -> positions of the table and of the text, which all but `lay` pass on."""

FILLING: Final = {"fill_cells": (0, 1), "lay_facts": (1, 2)}
"""Function that fills lines of templates -> positions of the lines and of the row."""

COMPUTED: Final = {
    ("joulemap.show.shape", "_draw"),
}
"""Functions whose columns are those of the asked parameters and objectives, in an order that depends on the metric, or
of a shape, so that no text names them.
"""


def list_fields(text: str) -> Iterator[str]:
    """Yield the fields that a layout names, except those that are not known."""
    for column in text.split("|"):
        name = column.strip().strip("*").rpartition(" ")[2]
        if "{" not in name and "}" not in name:
            yield from filter(None, name.strip("?!=-").split(":"))


def list_calls(scope: Scope, *names: str) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(scope.function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield name, node


def list_cells(scope: Scope, call: ast.Call) -> Iterator[str]:
    """Yield patterns of the columns that a call defines itself."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        elif isinstance(keyword.value, ast.Name):
            for node in ast.walk(scope.function):
                match node:
                    case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)]) if (
                        name == keyword.value.id
                    ):
                        yield from (text.replace("{}", ".*") for text in spell(key, scope))


@cache
def list_known(module: ModuleType) -> frozenset[str]:
    """Return the fields of all types that a module names, and the names of all cells that it defines."""
    names = {node.id for node in ast.walk(read_tree(module)) if isinstance(node, ast.Name)}
    kinds = [value for name in names if isinstance(value := find_value(name, module), type)]
    cells = {node.arg for node in ast.walk(read_tree(module)) if isinstance(node, ast.keyword) and node.arg}
    keys = (key for node in ast.walk(read_tree(module)) if isinstance(node, ast.Dict) for key in node.keys)
    texts = {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return frozenset({name for kind in kinds for name in list_attributes(kind)} | cells | texts)


class Layout(NamedTuple):
    """Text of columns, with the names that it may have."""

    place: str
    texts: tuple[str, ...]
    rows: tuple[Any, ...]
    cells: tuple[str, ...]
    module: ModuleType

    def list_unknown(self) -> set[str]:
        """Return the fields that neither the rows nor the call define.

        Where the type of the rows is not annotated, the fields of all types that the module names are known.
        """
        known = {name for kind in self.rows if kind is not Any for name in list_attributes(kind)}
        if not self.rows or Any in self.rows:
            known |= list_known(self.module)
        named = {field for text in self.texts for field in list_fields(text)} - known
        return {field for field in named if not any(re.fullmatch(cell, field) for cell in self.cells)}


def list_layouts(module: ModuleType) -> Iterator[Layout]:
    scopes = list(read_scopes(module))
    passed = {
        scope.function.name: [cell for _, call in list_calls(scope, "lay", "_lay") for cell in list_cells(scope, call)]
        for scope in scopes
        if scope.function.name in LAYING
    }
    for scope in scopes:
        for name, call in list_calls(scope, *LAYING):
            table, columns = LAYING[name]
            is_known = len(call.args) > columns and (module.__name__, scope.function.name) not in COMPUTED
            if is_known and not (scope.function.name in LAYING and not spell(call.args[columns], scope)):
                yield Layout(
                    place=f"{module.__name__}:{call.lineno}",
                    texts=tuple(spell(call.args[columns], scope)),
                    rows=tuple(list_rows(find_type(call.args[table], scope))),
                    cells=(*list_cells(scope, call), *passed.get(name, ())),
                    module=module,
                )


class Filled(NamedTuple):
    """Template that a call fills, with what the call knows."""

    place: str
    template: Template
    row: type[Any] | None
    values: frozenset[str]

    def list_unknown(self) -> set[str]:
        """Return the slots that neither the row nor the values of the call fill."""
        known = self.values if self.row is None else self.values | list_attributes(self.row)
        return {re.split(r"[.\[]", name)[0] for name, _ in self.template.slots} - known


def list_filled(module: ModuleType) -> Iterator[Filled]:
    """Yield the templates that are filled without a row, or from a row whose type is annotated."""
    for scope in read_scopes(module):
        calls = [node for node in ast.walk(scope.function) if isinstance(node, ast.Call)]
        found = [
            (call, [template], call.args)
            for call in calls
            if isinstance(template := find_constant(call.func, scope), Template)
        ]
        for name, call in list_calls(scope, *FILLING):
            lines, row = FILLING[name]
            found.append((call, [Template(text) for text in spell(call.args[lines], scope)], call.args[row:]))
        for call, templates, rows in found:
            typed = find_type(rows[0], scope) if rows else None
            kind = find_class(typed) if typed is not None else None
            values = [one.arg for one in call.keywords]
            if None not in values and (kind is not None or not rows):
                place = f"{module.__name__}:{call.lineno}"
                yield from (Filled(place, one, kind, frozenset(filter(None, values))) for one in templates)


@cache
def list_modules() -> tuple[ModuleType, ...]:
    """Return the modules that lay tables out or fill templates; the others are not imported."""
    files = (path for name in ("show", "wing") for path in sorted((PACKAGE / name).rglob("*.py")))
    used = (
        path for path in files if re.search(r"Template|lay\(|draw_modules|\bshow\b", path.read_text(encoding="utf-8"))
    )
    names = (".".join(("joulemap", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in used)
    return tuple(importlib.import_module(name.removesuffix(".__init__")) for name in names)


@pytest.fixture(scope="module")
def layouts() -> list[Layout]:
    return [layout for module in list_modules() for layout in list_layouts(module)]


def test_layouts_name_columns_of_their_rows(layouts: list[Layout]) -> None:
    assert [layout.place for layout in layouts if not layout.texts] == []
    unknown = {layout.place: layout.list_unknown() for layout in layouts}
    assert {place: names for place, names in unknown.items() if names} == {}


@pytest.mark.wings
def test_a_column_that_no_row_has_is_found(layouts: list[Layout]) -> None:
    """In nine of ten layouts the type of the rows is annotated, so that a column of another type is found too."""
    for layout in layouts:
        for column in ("gone", "*the other gone?", "range -gone:gone"):
            changed = layout._replace(texts=(*layout.texts, f"first | {column}"), cells=(*layout.cells, "first"))
            assert changed.list_unknown() == {"gone"}, layout.place
    typed = [layout for layout in layouts if layout.rows and Any not in layout.rows]
    assert len(typed) > 0.85 * len(layouts) > 8


def test_templates_have_a_value_for_each_slot() -> None:
    filled = [one for module in list_modules() for one in list_filled(module)]
    assert {one.place: unknown for one in filled if (unknown := one.list_unknown())} == {}
    assert len(filled) > 100
    for one in filled:
        assert one._replace(template=Template(f"{one.template.text} {{gone}}")).list_unknown() == {"gone"}
