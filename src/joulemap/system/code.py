"""Normalize Python code for digests: keep everything that can change a result, and drop text for readers.

Files that differ only in comments, docstrings, layout or the wording of errors have one normal form. The code is
parsed, so a changed number, operator, default or name always shows. The form is the same in every supported Python
version.
"""

from __future__ import annotations

import ast
from typing import Final

_IGNORED: Final = frozenset({"ctx", "kind", "type_comment"})
"""Fields of syntax nodes that are redundant or have no meaning at run time."""


def normalize_code(source: str) -> str:
    """Return the normal form of a Python file; SyntaxError for invalid code.

    Docstrings are dropped. In calls of names that end in `Error`, texts are dropped and all other arguments are kept.
    """
    parts: list[str] = []
    _write(ast.parse(source), parts, is_error=False)
    return " ".join(parts)


def _write(node: ast.AST, parts: list[str], *, is_error: bool) -> None:
    kind = type(node)
    if isinstance(node, ast.Call):
        is_error = is_error or _called(node.func).endswith("Error")
    elif is_error and _is_text(node):
        parts.append("text")
        return
    parts.append(f"{kind.__name__}(")
    for field in kind._fields:
        value = getattr(node, field, None)
        if field in _IGNORED or value is None or value == []:
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
        elif not _is_docstring(value):
            _write(value, parts, is_error=is_error)
    parts.append("]")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
