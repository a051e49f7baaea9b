"""List the entry points of other distributions without reading all of their metadata at every start."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from joulemap.system.cache import cache_folder

GROUPS: Final = ("joulemap.hardware", "joulemap.wings")
"""Entry-point groups that joulemap reads."""

KEPT: Final = "entry_points.txt"
"""File in the cache folder with the entry points of the current search path."""

BETWEEN: Final = "\t"
"""Separator of the fields of an entry point in that file."""


class EntryPoint(NamedTuple):
    """Entry point of a distribution."""

    group: str
    name: str
    address: str
    """Module, or `package.module:object`."""
    distribution: str
    version: str


def list_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group in the order of their names.

    They are cached in a file, because reading all distributions doubles the start time.
    """
    key = _find_key()
    kept = cache_folder() / KEPT
    try:
        first, *lines = kept.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        first, lines = "", []
    if first != key:
        lines = _read_entry_points()
        _keep(kept, [key, *lines])
    found = (EntryPoint(*fields) for line in lines if len(fields := line.split(BETWEEN)) == len(EntryPoint._fields))
    return tuple(one for one in found if one.group == group)


def _find_key() -> str:
    """Return the folders of the search path with their modification times, which change on an install.

    The working folder is omitted: results are written there often, and packages are not installed there.
    """
    parts = []
    for folder in (one for one in sys.path if one not in ("", os.getcwd())):
        try:
            parts.append(f"{folder}={Path(folder).stat().st_mtime_ns}")
        except (OSError, ValueError):
            parts.append(folder)
    return os.pathsep.join(parts).replace("\n", " ").encode(errors="replace").decode()


def _read_entry_points() -> list[str]:
    from importlib.metadata import entry_points

    found = {
        BETWEEN.join((group, one.name, one.value, *((one.dist.name, one.dist.version) if one.dist else ("", ""))))
        for group in GROUPS
        for one in entry_points(group=group)
        if " " not in one.value
    }
    return sorted(found)


def _keep(kept: Path, lines: list[str]) -> None:
    from joulemap.system.draft import drafting

    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with drafting(kept.parent) as draft:
            (draft / kept.name).write_text("\n".join(lines), encoding="utf-8")
            (draft / kept.name).replace(kept)
