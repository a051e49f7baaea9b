"""Stubs of public names.

Public names are the questions, `Workspace`, a few others, and every type of ours that these return or take: types of
fields, results and parameters, followed from module to module in the source. Each is in one public module.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system import errors
from joulemap.system.wing import BUILT_IN, list_apart, list_wings
from tools import GENERATED, PACKAGE
from tools.stub import (
    CLASS,
    FUNCTIONS,
    METHODS,
    find_names,
    find_stub,
    list_asked,
    list_definitions,
    list_imports,
    read,
    spell_functions,
    spell_imports,
    spell_methods,
)

ERRORS: Final = tuple(
    name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.JoulemapError)
)
"""Names of all public exception classes."""

BESIDE: Final = {
    "joulemap.ask.site": ("read_site",),
    "joulemap.workspace": ("Workspace",),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.physics.record.configuration": ("Configuration",),
    "joulemap.domain.measurement": ("Measurement",),
    "joulemap.domain.metric": ("METRICS", "Metric"),
    "joulemap.system.errors": ("ExitCode", *ERRORS),
    "joulemap.domain.table": ("Row",),
    "joulemap.store.connection": ("Patience",),
    "joulemap.ask.hardware_file": ("FileChecks",),
    "joulemap.ask.record": ("Run",),  # rather than the run of a fact
    "joulemap.generated.audit": ("Finding",),  # rather than the finding of a graph
    "joulemap.trace.formula.own": ("OperatorCall", "OperatorCost", "formula"),
    "joulemap.show.figure.figure": ("draw_svg",),
    "joulemap.show.present.document": ("Document",),
    "joulemap.prediction": ("Prediction", "predict"),
}
"""Module -> names that are always public."""

HIDDEN: Final = {
    "Batch", "Call", "Chapter", "Connection", "ModelShare", "Questions", "Report", "RunReading", "Selection", "Shape",
    "default_workspace",
}  # fmt: skip
"""Names that public objects use, but that callers do not need, so that they are not public."""

EXTEND: Final = {
    "joulemap.show.package_check": ("check_package",),
    "joulemap.ask.report": ("ReportPart",),
    "joulemap.ask.rule": ("Rules",),
    "joulemap.cli.command": ("command", "option"),
    "joulemap.cli.option.run": ("Model",),
    "joulemap.cli.output": ("OutputOptions",),
    "joulemap.cli.value": ("read_as", "read_quantity"),
    "joulemap.construct.builder": ("MadeModule", "ModelBuilder"),
    "joulemap.construct.source": ("ModelRequest",),
    "joulemap.domain.dimension": ("Dimension",),
    "joulemap.physics.interval.error_scale": ("ErrorGroup", "ErrorScale"),
    "joulemap.domain.field": ("ABOVE_0",),
    "joulemap.plan.kind": ("HardwareKind",),
    "joulemap.plan.model_name": ("ModelNames",),
    "joulemap.plan.source": ("Source",),
    "joulemap.show.word": ("Words",),
    "joulemap.system.record": ("frozen",),
    "joulemap.system.wing": ("Ask", "Command", "Wing"),
    "joulemap.workspace": ("find_question",),
}
"""Module -> names of `joulemap.extend`. The types that they take and return are not public for that."""

TOP: Final = {
    "Workspace", "Patience",
    "Settings", "SettingsKeywords", "RunKeywords", "ModelKeywords", "Limits", "Site", "Price", "Bounds",
    "Precision", "RuntimeName", "BoundaryName", "Deployment", "MetricName", "Metric", "METRICS",
    "Hardware", "Workload", "Subgraph", "Operator", "Configuration", "Measurement", "Run",
    "Answer", "Facts", "Table", "Column", "Row", "Rows", "Statement",
    "OperatorCall", "OperatorCost", "formula",
    "Prediction", "predict", "read_site",
}  # fmt: skip
"""Names of the package itself, beside the questions as functions and the errors."""

CATALOGUE: Final = {
    "joulemap.domain.catalogue", "joulemap.domain.offer", "joulemap.physics.area",
    *(f"joulemap.physics.record.{name}" for name in (
        "address", "calibration", "compiler", "constant", "hardware", "product", "quantity", "reference",
    )),
}  # fmt: skip
"""Modules of `physics` and `domain` whose records describe chips and their numbers."""

ROOMS: Final = {"catalog": "catalog", "show": "show"}
"""Room -> public module of what it defines."""


@cache
def read_door() -> dict[str, dict[str, str]]:
    """Return room of the core -> the names that wings may use, each with the module that defines it."""
    rooms = tomllib.loads((PACKAGE / "door.toml").read_text(encoding="utf-8"))
    return {
        f"joulemap.{room}": {name: f"joulemap.{room}.{module}" for module, names in modules.items() for name in names}
        for room, modules in rooms.items()
    }


@cache
def _read_public(module: str) -> ast.Module:
    """Return the syntax tree of a module as callers see it."""
    return ast.parse(spell_methods()) if module == METHODS else read(module)


@cache
def _find_definitions(module: str) -> dict[str, ast.stmt]:
    return list_definitions(_read_public(module))


@cache
def _find_homes(module: str) -> dict[str, tuple[str, str]]:
    """Return name in a module of this package -> (module that defines it, its name there)."""
    homes = list_imports(_read_public(module)) | {name: (module, name) for name in _find_definitions(module)}
    doors = read_door()
    return {
        name: (doors.get(home, {}).get(own, home), own)
        for name, (home, own) in homes.items()
        if home.startswith("joulemap.")
    }


def _find_types(node: ast.stmt, *, is_taken: bool = False) -> Iterator[str]:
    """Yield the names of types that a definition returns, and with `is_taken` those of its parameters."""
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
            for argument in taken if is_taken else ():
                yield from find_names(argument.annotation)


def find_public() -> dict[str, str]:
    """Return every public name -> the module that defines it."""
    functions = {"use": "joulemap.shortcut"} | {
        name: "joulemap.shortcut" for name, one in list_asked().items() if one.is_shared
    }
    homes = _find_homes(METHODS)
    asked = _find_types(_find_definitions(METHODS)[CLASS], is_taken=True)
    waiting = [homes[name] for name in asked if name in homes]
    waiting += [(module, name) for module, names in BESIDE.items() for name in names]
    waiting += [(module, name) for module, _, name in (one.partition(":") for one in _list_exports())]
    public = dict(functions)
    while waiting:
        module, name = waiting.pop()
        node = _find_definitions(module).get(name)
        if node is None or name in public or name in HIDDEN or name.startswith("_"):
            continue
        public[name] = module
        homes = _find_homes(module)
        waiting += [homes[kind] for kind in _find_types(node) if kind in homes]
    return public


def _list_exports() -> dict[str, str]:
    """Return object that a built-in wing exports by name -> the public module."""
    wings = (*list_apart(), *(wing for wing in list_wings() if wing.name in BUILT_IN))
    own = {name: f"joulemap.wing.{wing.name}" for wing in wings for name in wing.public}
    return own | {name: "joulemap" for wing in wings for name in wing.top}


def place_names() -> dict[str, dict[str, str]]:
    """Return public module -> its names, each with the module that defines it."""
    exports = _list_exports()
    modules: dict[str, dict[str, str]] = {}
    for name, home in sorted(find_public().items()):
        module = exports.get(f"{home}:{name}") or _find_module(name, home)
        modules.setdefault(module, {})[name] = home
    modules["joulemap.extend"] = {name: home for home, names in EXTEND.items() for name in names}
    return dict(sorted(modules.items()))


def _find_module(name: str, home: str) -> str:
    """Return the public module of a name by the module that defines it."""
    _, room, *inner = home.split(".")
    if name in TOP or home in ("joulemap.shortcut", "joulemap.system.errors"):
        return "joulemap"
    if room == "wing":
        return f"joulemap.wing.{inner[0]}"
    return f"joulemap.{'catalog' if home in CATALOGUE else ROOMS.get(room, 'records')}"


def name_stub(module: str) -> str:
    """Return the stub of a public module: a wing's own has its names."""
    _, *rooms = module.split(".")
    if rooms[:1] == ["wing"]:
        return f"{module}.generated.public"
    return f"joulemap.generated.{'.'.join(rooms) or 'package'}"


def spell_stub(names: Mapping[str, str]) -> str:
    """Return the code of the stub of a public module with these names."""
    modules: dict[str, list[str]] = {}
    for name, module in sorted(names.items()):
        modules.setdefault(module, []).append(f"{name} as {name}")
    head = [f"# {GENERATED}", '"""Public names, each imported from the module that defines it."""', ""]
    return "\n".join([*head, *spell_imports(modules)]) + "\n"


def spell_doors() -> dict[Path, str]:
    """Return the path of the stub of each room -> its code; wings import them when they register, before all else.

    A room that has other public names keeps its stub.
    """
    doors = {find_stub(name_stub(room)): (room, names) for room, names in read_door().items()}
    return {
        path: spell_stub(names)
        for path, (room, names) in doors.items()
        if not (path.exists() and room.rpartition(".")[2] in ROOMS)
    }


def spell_stubs() -> dict[Path, str]:
    """Return the path of every stub -> its code."""
    public = place_names()
    public |= {room: {**public.get(room, {}), **names} for room, names in read_door().items()}
    stubs = {find_stub(name_stub(module)): spell_stub(names) for module, names in public.items()}
    return {find_stub(METHODS): spell_methods(), find_stub(FUNCTIONS): spell_functions(), **stubs}
