"""Normal form of single definitions: a function, class or constant with everything that it refers to.

    name ─► statements that define it ─► names that they mention ─► … ─► normal form of all

References are followed through the modules of one package, including names that a package re-exports. Other definitions
of the same files do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.code import normalize_node

PACKAGE: Final = Path(__file__).parents[1]

Name = tuple[str, str]
"""Module, such as `joulemap.trace.formula.gemm`, and a name that it defines or imports."""


def write_definitions(names: Iterable[Name], package: str, dropped: str = "") -> str:
    """Return the normal form of definitions in a package, such as `joulemap.trace.formula`, with their references.

    Decorators that call the function `dropped`, such as one that registers names, do not count. KeyError for a name
    that its module lacks.
    """
    definitions: dict[Name, str] = {}
    seen: set[Name] = set()
    waiting = list(names)
    while waiting:
        module, name = waiting.pop()
        if (module, name) in seen:
            continue
        seen.add((module, name))
        defined, imported = _read(module, dropped)
        inner = f"{module}.{name}"
        if name in defined:
            definitions[module, name] = defined[name][0]
            waiting += [(module, one) for one in defined[name][1] if one in defined or one in imported]
        elif _find_file(inner).is_file():
            waiting += [(inner, one) for one in _read(inner, dropped)[0]]
        elif name not in imported:
            raise KeyError(f"{module} does not define {name}")
        elif imported[name][0] == package or imported[name][0].startswith(f"{package}."):
            waiting.append(imported[name])
    return "\n".join(f"{module}.{name} {code}" for (module, name), code in sorted(definitions.items()))


def find_mentions(tree: ast.Module, package: str) -> list[Name]:
    """Return the names that a file imports from a package."""
    return [
        (node.module, one.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for one in node.names
        if node.module == package or node.module.startswith(f"{package}.")
    ]


@cache
def _read(module: str, dropped: str) -> tuple[dict[str, tuple[str, tuple[str, ...]]], dict[str, Name]]:
    """Return name -> (normal form, mentioned names) of a module's definitions, and name -> origin of its imports."""
    statements: dict[str, list[ast.stmt]] = {}
    imported: dict[str, Name] = {}
    for node in ast.parse(_find_file(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            imported |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        for name in _bound(node):
            statements.setdefault(name, []).append(node)
    defined = {}
    for name, nodes in statements.items():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.decorator_list = [one for one in node.decorator_list if not _calls(one, dropped)]
        mentioned = {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
        defined[name] = " ".join(map(normalize_node, nodes)), tuple(sorted(mentioned - {name}))
    return defined, imported


def _find_file(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines or changes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _roots(target)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        yield from _roots(node.value.func)
    elif isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _bound(inner)


def _roots(target: ast.AST) -> Iterator[str]:
    """Yield the names whose values an assignment to a target sets or changes."""
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _roots(one)
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id


def _calls(decorator: ast.expr, name: str) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == name
