"""Predictions of latency, energy and memory of neural networks on chips, with their causes.

    import joulemap

    answer = joulemap.Workspace("results.duckdb").compare("resnet18")
    for row in answer.rows:
        print(row.hardware, row.energy_j, row.latency_s)

Importing the package loads neither torch nor duckdb; a question loads what it needs. The stub next to this file lists
the public names, for type checkers and for lookup at run time.
"""

from __future__ import annotations

from functools import cache


@cache
def _homes() -> dict[str, str]:
    """Return public name -> the module that defines it."""
    import re
    from pathlib import Path

    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    blocks = re.findall(r"^from ([\w.]+) import (\([^)]*\)|.*)$", stub, re.MULTILINE)
    return {name: module for module, names in blocks for name in re.findall(r"(\w+) as \1", names)}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_homes())
    if name == "__version__":
        from importlib.metadata import version

        return version("joulemap")
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'joulemap' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return sorted(_homes())
