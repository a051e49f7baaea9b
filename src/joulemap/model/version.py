"""Version of the formulas of an architecture class: a digest of the code that computes its runs.

    pipeline, anchor, change and the class's module ─► all modules of joulemap that they import ─► code ─► SHA-256

If a wing adds a kind of hardware, its formulas are those of all classes and of the modules that the kind names.

Comments, docstrings, layout and the wording of errors are not formulas and do not count (`system/code.py`). No class
imports another, so a changed formula of one class leaves the runs of all others valid.
"""

from __future__ import annotations

import hashlib
import re
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

_IMPORT: Final = r"(?m)^[ \t]*from joulemap\.([\w.]+) import "


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
    """Return the modules that a module imports, and the packages that contain it."""
    parts = module.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts)))
    return (*packages, *re.findall(_IMPORT, _source(module)))


@cache
def _code(module: str) -> str:
    from joulemap.system.code import normalize_code

    return normalize_code(_source(module))


@cache
def _source(module: str) -> str:
    place = PACKAGE.joinpath(*module.split("."))
    return next(path.read_text(encoding="utf-8") for path in _places(place) if path.is_file())


def _places(place: Path) -> Iterator[Path]:
    yield place.with_suffix(".py")
    yield place / "__init__.py"
