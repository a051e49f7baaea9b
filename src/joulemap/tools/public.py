"""Write the stubs of public names: `python -m joulemap.tools.public`, or `make rows`.

Public names are `Workspace`, the functions of `joulemap.shortcut`, a few others, and every type of ours that these
return or take: types of fields, results and parameters, followed from module to module in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system import errors
from joulemap.tools import GENERATED
from joulemap.tools.stub import (
    ASKED,
    PACKAGE,
    find_names,
    list_definitions,
    list_imports,
    read,
    spell_asked,
    spell_imports,
)

ERRORS: Final = tuple(
    name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.JoulemapError)
)
"""Names of all public exception classes."""

BESIDE: Final = {
    "joulemap.workspace": ("Workspace",),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.physics.record.configuration": ("Configuration",),
    "joulemap.domain.measurement": ("Measurement",),
    "joulemap.domain.metric": ("METRICS", "Metric"),
    "joulemap.system.errors": ("ExitCode", *ERRORS),
    "joulemap.row": ("Row",),
    "joulemap.store.connection": ("Patience",),
    "joulemap.answer.hardware_file": ("FileChecks",),
    "joulemap.answer.record": ("Run",),  # rather than the run of a fact
    "joulemap.row.audit": ("Finding",),  # rather than the finding of a graph
    "joulemap.trace.formula.own": ("OperatorCall", "OperatorCost", "formula"),
}
"""Module -> names that are always public."""

HIDDEN: Final = {
    "Batch", "Call", "Chapter", "Connection", "Report", "RunReading", "Selection", "Shape", "default_workspace",
}  # fmt: skip
"""Names that public objects use, but that callers do not need, so that they are not public."""


@cache
def _read_public(module: str) -> ast.Module:
    """Return the syntax tree of a module as callers see it; for a module of questions, that of its stub."""
    return ast.parse(spell_asked(module)) if module in ASKED else read(module)


@cache
def _find_definitions(module: str) -> dict[str, ast.stmt]:
    return list_definitions(_read_public(module))


@cache
def _find_homes(module: str) -> dict[str, tuple[str, str]]:
    """Return name in a module of this package -> (module that defines it, its name there)."""
    homes = list_imports(_read_public(module)) | {name: (module, name) for name in _find_definitions(module)}
    return {name: home for name, home in homes.items() if home[0].startswith("joulemap.")}


def _find_types(node: ast.stmt) -> Iterator[str]:
    """Yield the names of types that a definition returns, and that the workspace takes."""
    if isinstance(node, ast.Assign) or (
        isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    ):
        yield from find_names(node.value)
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        yield from find_names(base)
    for one in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_"):
            yield from find_names(one.annotation)
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield from find_names(one.returns)
            taken = [*one.args.args, *one.args.kwonlyargs, *([one.args.kwarg] if one.args.kwarg else [])]
            for argument in taken if isinstance(node, ast.ClassDef) and node.name == "Workspace" else ():
                yield from find_names(argument.annotation)


def find_public() -> dict[str, str]:
    """Return every public name -> the module that defines it."""
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
        waiting += [homes[kind] for kind in _find_types(node) if kind in homes]
    return found


def spell_stub() -> str:
    """Return the code of the package's stub."""
    modules: dict[str, list[str]] = {}
    for name, module in sorted(find_public().items()):
        modules.setdefault(module, []).append(f"{name} as {name}")
    head = [f"# {GENERATED}", '"""Public names, each imported from the module that defines it."""', ""]
    return "\n".join([*head, *spell_imports(modules), "", "__all__: list[str]", "__version__: str"]) + "\n"


def spell_stubs() -> dict[Path, str]:
    """Return the path of every stub -> its code."""
    asked = {PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".pyi"): spell_asked(module) for module in ASKED}
    return {PACKAGE / "__init__.pyi": spell_stub(), **asked}


def main() -> None:
    """Write the stubs."""
    for place, text in spell_stubs().items():
        place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
