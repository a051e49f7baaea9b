"""Normalize Python code for digests: keep everything that can change a result, and drop text for readers.

Files that differ only in comments, docstrings, layout, the wording of errors, or imports for type checkers have one
normal form. The code is parsed, so a changed number, operator, default or name always shows. The form is the same in
every supported Python version.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

_IGNORED: Final = frozenset({"ctx", "kind", "type_comment"})
"""Fields of syntax nodes that are redundant or have no meaning at run time."""

_WORDING: Final = _IGNORED | {"keywords"}
"""Dropped fields of a call of `UnsupportedError`."""


@lru_cache(maxsize=512)  # the version of each class covers files that all classes share
def normalize_code(source: str) -> str:
    """Return the normal form of a Python file; SyntaxError for invalid code.

    Docstrings are dropped, and so is code below `if TYPE_CHECKING`, which never runs. In calls of names that end in
    `Error`, texts are dropped and all other arguments are kept. The keywords of an `UnsupportedError` are the code and
    values of its reason, and are dropped too.
    """
    return normalize_node(ast.parse(source))


def normalize_node(node: ast.AST) -> str:
    """Return the normal form of parsed code."""
    parts: list[str] = []
    _write(node, parts, is_error=False)
    return " ".join(parts)


def _running(nodes: Iterable[object]) -> Iterator[ast.AST]:
    """Yield the nodes that run: of a statement `if TYPE_CHECKING`, those of its other branch."""
    for node in nodes:
        if isinstance(node, ast.If) and _called(node.test) == "TYPE_CHECKING":
            yield from _running(node.orelse)
        elif isinstance(node, ast.AST):
            yield node


def _write(node: ast.AST, parts: list[str], *, is_error: bool) -> None:
    kind = type(node)
    dropped = _IGNORED
    if isinstance(node, ast.Call):
        name = _called(node.func)
        is_error = is_error or name.endswith("Error")
        dropped = _WORDING if name == "UnsupportedError" else _IGNORED
    elif is_error and _is_text(node):
        parts.append("text")
        return
    parts.append(f"{kind.__name__}(")
    for field in kind._fields:
        value = getattr(node, field, None)
        if field in dropped or value is None or value == []:
            continue
        parts.append(field)
        if isinstance(value, ast.AST):
            _write(value, parts, is_error=is_error)
        elif isinstance(value, list):
            _write_all(value, parts, is_error=is_error)
        else:
            parts.append(repr(value))
    parts.append(")")


def _write_all(values: list[object], parts: list[str], *, is_error: bool) -> None:
    parts.append("[")
    for value in values:
        if not isinstance(value, ast.AST):
            parts.append(repr(value))
        for node in _running([value]):
            if not _is_docstring(node):
                _write(node, parts, is_error=is_error)
    parts.append("]")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
