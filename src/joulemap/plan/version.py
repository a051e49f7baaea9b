"""Versions of formulas: of the runs of an architecture class, and of intervals.

The version of a class is a digest of the folder `physics` without the other classes and without `interval`. Nothing
outside that folder but the units can change a run, so options, metrics, prices and words change without touching a
stored one. If a wing adds a kind of hardware, its formulas are those of all classes and of the places that the kind
names.

Intervals follow from stored runs, so they have a version of their own: a change of their formulas or error scales
renews the intervals of stored runs and evaluates none. Comments, docstrings, layout and the wording of errors are not
formulas and do not count (`system/code.py`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.errors import UnknownNameError
from joulemap.system.package import find_class_package
from joulemap.system.resource import digest_code, list_code
from joulemap.system.wing import BUILT_IN, describe_foreign, find_parts, list_wings

LAWS: Final = ("physics", "system/units.py")
"""Folder and file with the formulas of all classes."""

CLASSES: Final = "physics/architecture"
"""Folder with one file or folder per class."""

SHARED: Final = "__init__"
"""File of that folder which all classes share."""

UNKNOWN: Final = "absent"
"""Version of a class whose package or wing is not installed."""

INTERVALS: Final = "physics/interval"
"""Folder with the formulas of intervals, which no run depends on."""

INTERVAL_INPUTS: Final = (
    "physics/record/spread.py", "store/interval.py", "store/total.py",
    *(f"catalog/data/doubt/{name}.csv" for name in ("left_out", "power", "scale", "share", "spread")),
)  # fmt: skip
"""Other files that the stored intervals of runs depend on: what reads their inputs, and the error scales."""

ERROR_GROUPS: Final = "error_groups"
"""Port at which wings register errors of their runs."""


@cache
def interval_version() -> str:
    """Return a hash of the code and data that compute intervals of runs, as sixteen hexadecimal digits; for a wing of
    another distribution, followed by what it registers.
    """
    return digest_code(*list_interval_code()) + describe_foreign(ERROR_GROUPS)


def list_interval_code() -> tuple[str, ...]:
    """Return the folders and files of the package that compute intervals of runs, those of its wings included."""
    places = (wing.parts.get(ERROR_GROUPS) for wing in list_wings() if wing.name in BUILT_IN)
    modules = (address.partition(":")[0] for address in places if address)
    return INTERVALS, *INTERVAL_INPUTS, *(f"{one.partition('.')[2].replace('.', '/')}.py" for one in modules)


def formula_version(architecture: str) -> str:
    """Return a hash of the code that computes a run of a class, as sixteen hexadecimal digits.

    For a class of a package, a digest of the package's code follows that of the shared formulas. A class that nothing
    computes has the version `UNKNOWN`, which no run has.
    """
    own = _digest_formulas(architecture)
    if own == UNKNOWN and (package := find_class_package(architecture)) is not None:
        return f"{_digest_formulas('')}-{package.digest_code()}"
    return own


@cache
def _digest_formulas(architecture: str) -> str:
    try:
        places, without = find_formulas(architecture)
    except UnknownNameError:
        return UNKNOWN
    return digest_code(*places, without=without)


def find_formulas(architecture: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the places of the code that computes a run of a class, and the files in them that do not.

    Without a name, they are those that all classes share. UnknownNameError for a class of neither the core nor a wing.
    """
    classes = {name: _find_class(name) for name in list_code(CLASSES)}
    intervals = frozenset(list_code(INTERVALS))
    if architecture in ("", *classes.values()):
        return LAWS, intervals | {name for name, one in classes.items() if one not in (architecture, SHARED)}
    for kind in find_parts("hardware"):
        if kind.architecture == architecture:
            return (*LAWS, *kind.formulas), intervals
    raise UnknownNameError("architecture", architecture, ())


def _find_class(name: str) -> str:
    """Return the class of a file below `CLASSES`."""
    return Path(name).relative_to(CLASSES).parts[0].removesuffix(".py")
