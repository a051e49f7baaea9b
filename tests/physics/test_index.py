"""Indices fit the platform: on one of 32 bits, such as a browser, numpy refuses 64-bit indices in some functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import joulemap

PHYSICS = Path(joulemap.__file__).parent / "physics"

REFUSING = {"bincount": 0, "choose": 0, "reduceat": 1, "repeat": 1, "take": 1}
"""Function of numpy that takes no wider indices than the platform's -> position of their argument."""

NATIVE = {"arange", "argsort", "flatnonzero", "lexsort", "searchsorted"}
"""Functions of numpy that return indices of the platform's width."""


def is_numpy(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith("np.")


def is_native(node: ast.expr, bound: dict[str, list[ast.expr]]) -> bool:
    """Whether an expression has the width of the platform's indices: cast, counted by numpy, or a list.

    `bound` has the expressions that are assigned to each name.
    """
    match node:
        case ast.List() | ast.ListComp():
            return True
        case ast.Subscript(value=value):
            return is_native(value, bound)
        case ast.Name(id=name):
            return bool(bound.get(name)) and all(is_native(one, bound) for one in bound[name])
        case ast.Call(func=ast.Attribute(attr="astype"), args=[kind]):
            return ast.unparse(kind) == "np.intp"
        case ast.Call(func=ast.Attribute(attr="diff"), args=[value, *_]) if is_numpy(node):
            return is_native(value, bound)
        case ast.Call(func=ast.Attribute(attr=name)) if is_numpy(node):
            return name in NATIVE
    return False


def find_wide(text: str) -> list[str]:
    """Return the calls whose indices may be wider than the platform's."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        bound: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                bound.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_numpy(node):
                place = REFUSING.get(node.func.attr)
                if place is not None and not is_native(node.args[place], bound):
                    found.append(ast.unparse(node))
    return found


def test_indices_are_as_wide_as_the_platform_takes_them() -> None:
    wrong = {path.name: find_wide(path.read_text(encoding="utf-8")) for path in PHYSICS.rglob("*.py")}
    assert {name: calls for name, calls in wrong.items() if calls} == {}


@pytest.mark.parametrize(
    ("line", "is_wide"),
    [
        ("np.bincount(group)", True),
        ("np.bincount(group.astype(np.int64))", True),
        ("np.bincount(group.astype(np.intp), minlength=3)", False),
        ("np.repeat(values, counts)", True),
        ("np.repeat(values, [len(one) for one in group])", False),
        ("np.add.reduceat(values, starts)", True),
        ("np.add.reduceat(values, np.searchsorted(group, every))", False),
        ("np.repeat(values, np.diff(first[1:]))", False),
        ("np.repeat(values, np.diff(mixed))", True),
    ],
)
def test_a_wide_index_is_found(line: str, is_wide: bool) -> None:
    text = f"def f(group):\n    first = np.arange(3)\n    mixed = np.arange(3)\n    mixed = group\n    return {line}"
    assert bool(find_wide(text)) == is_wide
