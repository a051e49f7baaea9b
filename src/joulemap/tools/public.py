"""Write the stub of what the package makes public: `python -m joulemap.tools.public`, or `make rows`.

Public are `Workspace`, the functions of `joulemap.shortcut`, a few names beside them, and every type of ours that these
hand out or take: of fields, results and parameters, followed from module to module in the source.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import joulemap

PACKAGE: Final = Path(joulemap.__file__).parent
STUB: Final = PACKAGE / "__init__.pyi"

BESIDE: Final = {
    "joulemap.workspace": ("Workspace",),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.domain.configuration": ("Configuration",),
    "joulemap.domain.measurement": ("Measurement",),
    "joulemap.domain.metric": ("METRICS", "Metric"),
    "joulemap.errors": ("ExitCode", "JoulemapError"),
    "joulemap.question": ("Asked", "Question"),
    "joulemap.row": ("Row",),
    "joulemap.store.connection": ("Patience",),
    "joulemap.answer.hardware_file": ("FileChecks",),
    "joulemap.trace.formula.own": ("OperatorCall", "OperatorCost", "formula"),
}
"""Module -> names that are public whoever hands them out."""

HIDDEN: Final = {"Batch", "Call", "Chapter", "Connection", "Report", "Shape", "default_workspace"}
"""Names of no concern to whoever holds what has them."""

WIDTH: Final = 120


@cache
def _read(module: str) -> ast.Module:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return ast.parse((place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text("utf-8"))


@cache
def _find_homes(module: str) -> dict[str, tuple[str, str]]:
    """Return name in a module of ours -> (the module that has it, its name there)."""
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(_read(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "joulemap"
        for alias in node.names
    }
    return {**homes, **{name: (module, name) for name in _find_definitions(module)}}


@cache
def _find_definitions(module: str) -> dict[str, ast.stmt]:
    """Return name -> definition of the classes, functions and aliases of a module, type variables apart."""
    found: dict[str, ast.stmt] = {}
    for node in _read(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec")
            found |= {} if is_variable else {node.targets[0].id: node}
    return found


def _find_names(node: ast.expr | None) -> Iterator[str]:
    """Yield the names in an annotation, in those that are written as texts too."""
    for one in ast.walk(node) if node else ():
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            with contextlib.suppress(SyntaxError):
                yield from _find_names(ast.parse(one.value, mode="eval").body)


def _find_told(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a definition hands out, or takes where it is the workspace."""
    if isinstance(node, ast.Assign) or (
        isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    ):
        yield from _find_names(node.value)
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        yield from _find_names(base)
    for one in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_"):
            yield from _find_names(one.annotation)
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield from _find_names(one.returns)
            taken = [*one.args.args, *one.args.kwonlyargs, *([one.args.kwarg] if one.args.kwarg else [])]
            for argument in taken if isinstance(node, ast.ClassDef) and node.name == "Workspace" else ():
                yield from _find_names(argument.annotation)


def find_public() -> dict[str, str]:
    """Return every public name -> the module that has it."""
    shortcuts = [("joulemap.shortcut", name) for name in _find_definitions("joulemap.shortcut")]
    waiting = [*shortcuts, *((module, name) for module, names in BESIDE.items() for name in names)]
    found: dict[str, str] = {}
    while waiting:
        module, name = waiting.pop()
        node = _find_definitions(module).get(name)
        if node is None or name in found or name in HIDDEN or name.startswith("_"):
            continue
        found[name] = module
        homes = _find_homes(module)
        waiting += [homes[told] for told in _find_told(node) if told in homes]
    return found


def spell_stub() -> str:
    """Return the code of the stub."""
    modules: dict[str, list[str]] = {}
    for name, module in sorted(find_public().items()):
        modules.setdefault(module, []).append(f"{name} as {name}")
    lines = ['"""What is public, made by `make rows`: every name is imported as itself from its home."""', ""]
    for module, names in sorted(modules.items()):
        line = f"from {module} import {', '.join(names)}"
        lines += [line] if len(line) <= WIDTH else [f"from {module} import (", *(f"    {name}," for name in names), ")"]
    return "\n".join([*lines, "", "__all__: list[str]"]) + "\n"


def main() -> None:
    """Write the stub."""
    STUB.write_text(spell_stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
