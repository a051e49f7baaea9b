"""Version of the formulas of an architecture class: a digest of the folder `physics` without the other classes.

Nothing outside that folder but the units can change a result, so options, metrics, prices and words change without
touching a stored run. If a wing adds a kind of hardware, its formulas are those of all classes and of the places that
the kind names. Comments, docstrings, layout and the wording of errors are not formulas and do not count
(`system/code.py`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.resource import digest_code, list_code
from joulemap.system.wing import find_parts

LAWS: Final = ("physics", "system/units.py")
"""Folder and file with the formulas of all classes."""

CLASSES: Final = "physics/architecture"
"""Folder with one file or folder per class."""

SHARED: Final = "__init__"
"""File of that folder which all classes share."""


@cache
def formula_version(architecture: str) -> str:
    """Return a hash of the code that computes a run of a class, as sixteen hexadecimal digits."""
    places, without = find_formulas(architecture)
    return digest_code(*places, without=without)


def find_formulas(architecture: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the places of the code that computes a run of a class, and the files in them that do not."""
    classes = {name: _find_class(name) for name in list_code(CLASSES)}
    if architecture in classes.values():
        return LAWS, frozenset(name for name, one in classes.items() if one not in (architecture, SHARED))
    (kind,) = (one for one in find_parts("hardware") if one.architecture == architecture)
    return (*LAWS, *kind.formulas), frozenset()


def _find_class(name: str) -> str:
    """Return the class of a file below `CLASSES`."""
    return Path(name).relative_to(CLASSES).parts[0].removesuffix(".py")
