"""Indices fit the platform: on one of 32 bits, such as a browser, numpy refuses 64-bit indices in some functions.

Methods of arrays are not checked, because `take` is also a method of records.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import joulemap

PACKAGE = Path(joulemap.__file__).parent

FOLDERS = ("physics", "wing/decoder", "wing/fleet", "wing/llm", "wing/place")
"""Folders whose code runs in a browser."""

REFUSING = {"bincount": 0, "choose": 0, "reduceat": 1, "repeat": 1, "take": 1}
"""Function of numpy that takes no wider indices than the platform's -> position of their argument."""

NATIVE = {"arange", "argsort", "flatnonzero", "lexsort", "searchsorted"}
"""Functions of numpy that return indices of the platform's width."""

NATIVE_METHODS = {"argmax", "argmin", "argsort", "searchsorted"}
"""Methods of arrays that return such indices."""

SCALARS = {"self.seeds"}
"""Python integers among the arguments, which are as wide as the platform's indices."""

INDICES = ast.parse("np.argsort(values)", mode="eval").body
"""Expression of the platform's width, for the indices that `np.unique` returns after the values."""


def is_numpy(call: ast.Call) -> bool:
    return re.fullmatch(r"np(\.\w+)+", ast.unparse(call.func)) is not None


def is_native(node: ast.expr, bound: dict[str, list[ast.expr]]) -> bool:
    """Return whether an expression is as wide as the platform's indices: cast, counted by numpy, a list, an integer.

    `bound` has the expressions that are assigned to each name.
    """
    match node:
        case ast.List() | ast.ListComp() | ast.Constant() | ast.Call(func=ast.Name(id="len" | "max")):
            return True
        case ast.BinOp(left=left, right=right):
            return is_native(left, bound) and is_native(right, bound)
        case ast.Attribute():
            return ast.unparse(node) in SCALARS
        case ast.Subscript(value=value):
            return is_native(value, bound)
        case ast.Name(id=name):
            return bool(bound.get(name)) and all(is_native(one, bound) for one in bound[name])
        case ast.Call(func=ast.Attribute(attr="astype"), args=[kind]):
            return ast.unparse(kind) == "np.intp"
        case ast.Call(func=ast.Attribute(attr="diff"), args=[value, *_]) if is_numpy(node):
            return is_native(value, bound)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in (NATIVE if is_numpy(node) else NATIVE_METHODS)
    return False


def find_wide(text: str) -> list[str]:
    """Return the calls whose indices may be wider than the platform's."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        bound: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    bound.setdefault(name, []).append(value)
                case ast.Assign(targets=[ast.Tuple(elts=[_, *names])], value=ast.Call(func=called)) if (
                    ast.unparse(called) == "np.unique"
                ):
                    for one in names:
                        bound.setdefault(ast.unparse(one), []).append(INDICES)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_method = node.func.attr == "take" and any(one.arg == "axis" for one in node.keywords)
                place = REFUSING.get(node.func.attr) if is_numpy(node) else 0 if is_method else None
                if place is not None and not is_native(node.args[place], bound):
                    found.append(ast.unparse(node))
    return found


@pytest.mark.slow
def test_indices_are_as_wide_as_the_platform_takes_them() -> None:
    files = [path for name in FOLDERS for path in (PACKAGE / name).rglob("*.py")]
    wrong = {str(path): find_wide(path.read_text(encoding="utf-8")) for path in files}
    assert {name: calls for name, calls in wrong.items() if calls} == {}


@pytest.mark.parametrize(
    ("line", "is_wide"),
    [
        ("np.bincount(group)", True),
        ("np.abs(values).take(group, axis=-1)", True),
        ("values.take(group.astype(np.intp, copy=False), axis=-1)", False),
        ("np.bincount(group.astype(np.int64))", True),
        ("np.bincount(group.astype(np.intp), minlength=3)", False),
        ("np.repeat(values, counts)", True),
        ("np.repeat(values, [len(one) for one in group])", False),
        ("np.add.reduceat(values, starts)", True),
        ("np.add.reduceat(values, np.searchsorted(group, every))", False),
        ("np.repeat(values, np.diff(first[1:]))", False),
        ("np.repeat(values, np.diff(mixed))", True),
        ("np.repeat(values, len(group) // 2)", False),
        ("np.repeat(values, len(group) * group)", True),
        ("np.repeat(values, group.counts)", True),
        ("np.bincount(distinct)", True),
        ("np.bincount(index)", False),
        ("np.bincount(group.argmin(axis=1))", False),
        ("np.bincount(group.ravel())", True),
    ],
)
def test_a_wide_index_is_found(line: str, is_wide: bool) -> None:
    text = (
        "def f(group):\n    first = np.arange(3)\n    mixed = np.arange(3)\n    mixed = group\n"
        f"    distinct, index = np.unique(group, return_inverse=True)\n    return {line}"
    )
    assert bool(find_wide(text)) == is_wide
