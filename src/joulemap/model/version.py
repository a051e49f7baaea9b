"""Version of the formulas of an architecture class: a digest of the code that computes its runs.

    pipeline, anchor, change and the class's module ─► all modules of joulemap that they import ─► code ─► SHA-256

Imports inside functions count. Imports for type checkers (`if TYPE_CHECKING`) never run and do not count, so options,
metrics, prices and intervals can change without touching a stored run. If a wing adds a kind of hardware, its formulas
are those of all classes and of the modules that the kind names.

Comments, docstrings, layout and the wording of errors are not formulas and do not count (`system/code.py`). No class
imports another, so a changed formula of one class leaves the runs of all others valid.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.resource import remember
from joulemap.system.wing import find_parts

PACKAGE: Final = Path(__file__).parents[1]

PIPELINE: Final = "model.pipeline"

ANCHOR: Final = "model.anchor"

CHANGE: Final = "model.change"

WORDS: Final = frozenset({"system.errors", "system.record", "system.wing"})
"""Modules that formulas import but that do not affect results."""

_OURS: Final = "joulemap."


@cache
def formula_version(architecture: str) -> str:
    """Return a hash of the code that computes a run of a class, as sixteen hexadecimal digits."""
    return remember("code", f"formulas of {architecture}", lambda: _digest(architecture))


def _digest(architecture: str) -> str:
    code = "".join(f"{module}\n{_code(module)}" for module in formula_modules(architecture))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def formula_modules(architecture: str) -> tuple[str, ...]:
    """Return the names, below `joulemap`, of the modules that compute a run of a class, sorted."""
    found: set[str] = set()
    classes = [architecture]
    kind = next((one for one in find_parts("hardware") if one.architecture == architecture), None)
    if kind is not None:
        from joulemap.domain.architecture import CLASS_HARDWARE

        classes = list(CLASS_HARDWARE)
    waiting = [PIPELINE, ANCHOR, CHANGE, *(f"model.architecture.{one}" for one in classes)]
    waiting += [] if kind is None else [name.removeprefix("joulemap.") for name in kind.formulas]
    while waiting:
        module = waiting.pop()
        if module not in found and module not in WORDS:
            found.add(module)
            waiting += _imported(module)
    return tuple(sorted(found))


@cache
def _imported(module: str) -> tuple[str, ...]:
    """Return the modules that a module's running code imports, and the packages that contain it."""
    parts = module.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts)))
    names = (name.removeprefix(_OURS) for name in _parse(_source(module))[1] if name.startswith(_OURS))
    return (*packages, *(name for name in names if _find_file(name) is not None))


def _code(module: str) -> str:
    return _parse(_source(module))[0]


@cache
def _parse(source: str) -> tuple[str, tuple[str, ...]]:
    """Return the normal form of a file's code, and the names that it imports."""
    from joulemap.system.code import find_imports, normalize_node

    tree = ast.parse(source)
    return normalize_node(tree), find_imports(tree)


@cache
def _source(module: str) -> str:
    path = _find_file(module)
    if path is None:
        raise FileNotFoundError(f"the module joulemap.{module} is missing from this installation")
    return path.read_text(encoding="utf-8")


@cache
def _find_file(module: str) -> Path | None:
    """Return the file of a module below `joulemap`; None for a name that is no module."""
    return next((path for path in _places(PACKAGE.joinpath(*module.split("."))) if path.is_file()), None)


def _places(place: Path) -> Iterator[Path]:
    yield place.with_suffix(".py")
    yield place / "__init__.py"
