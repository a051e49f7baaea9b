"""Base utilities: files, errors, records, numbers, units, and conversion of rows for other libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

printers: list[Callable[[], object]] = []
"""Function that returns the module which shows answers; `joulemap` adds it, whatever is imported first."""


def make_lookup(module: str, stub: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a public module, whose stub is the module `stub`."""

    @functools.cache
    def find_homes() -> dict[str, str]:
        return read_homes(stub)

    def find(name: str) -> object:
        if name == "__all__":
            return sorted(find_homes())
        if name.startswith("_") or name not in find_homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(find_homes()[name]), name)

    return find, lambda: sorted(find_homes())


def read_homes(stub: str) -> dict[str, str]:
    """Return public name -> the module that defines it, as the module `stub` lists them."""
    import re
    from pathlib import Path

    path = Path(__file__).parents[2].joinpath(*stub.split(".")).with_suffix(".pyi")
    if not path.exists():  # before the first build
        return {}
    blocks = re.findall(r"^from ([\w.]+) import (\([^)]*\)|.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: module for module, names in blocks for name in re.findall(r"(\w+) as \1", names)}


if TYPE_CHECKING:
    from joulemap.generated.system import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.system")
