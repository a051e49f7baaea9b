"""Templates name fields of their rows: a renamed one is found without running the answer that shows it.

The type of a row follows from annotations, and a template from constants of the module, so that nothing is evaluated.
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

import joulemap
from joulemap.show.present.template import Template
from scope import (
    Scope,
    find_class,
    find_constant,
    find_type,
    list_attributes,
    read_scopes,
    spell,
)

PACKAGE: Final = Path(joulemap.__file__).parent

FILLING: Final = {"fill_cells": (0, 1), "lay_facts": (1, 2)}
"""Function that fills lines of templates -> positions of the lines and of the row."""


def list_calls(scope: Scope, *names: str) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(scope.function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield name, node


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
    """Return the modules that fill templates; the others are not imported."""
    files = (path for name in ("show", "wing") for path in sorted((PACKAGE / name).rglob("*.py")))
    used = (path for path in files if re.search(r"Template|\bshow\b", path.read_text(encoding="utf-8")))
    names = (".".join(("joulemap", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in used)
    return tuple(importlib.import_module(name.removesuffix(".__init__")) for name in names)


def test_templates_have_a_value_for_each_slot() -> None:
    filled = [one for module in list_modules() for one in list_filled(module)]
    assert {one.place: unknown for one in filled if (unknown := one.list_unknown())} == {}
    assert len(filled) > 100
    for one in filled:
        assert one._replace(template=Template(f"{one.template.text} {{gone}}")).list_unknown() == {"gone"}
