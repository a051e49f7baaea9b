"""Which hardware should this neural network run on, and why.

    import joulemap

    answer = joulemap.Workspace("results.duckdb").compare("resnet18")
    for row in answer.rows:
        print(row.hardware, row.energy_j, row.latency_s)

Importing the package loads neither torch nor duckdb; a question loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joulemap.domain.answer import (
        Comparison,
        EdpShare,
        EnergyTerm,
        EnergyTotal,
        Finding,
        Insight,
        Recommendation,
    )
    from joulemap.domain.configuration import Configuration
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.quantity import Quantity
    from joulemap.domain.workload import Workload
    from joulemap.errors import ExitCode, JoulemapError
    from joulemap.query.answer import CompareAnswer, ExplainAnswer
    from joulemap.workspace.workspace import Workspace

__all__ = [
    "CompareAnswer",
    "Comparison",
    "Configuration",
    "EdpShare",
    "EnergyTerm",
    "EnergyTotal",
    "ExitCode",
    "ExplainAnswer",
    "Finding",
    "Hardware",
    "Insight",
    "JoulemapError",
    "Quantity",
    "Recommendation",
    "Workload",
    "Workspace",
]

_HOMES = {
    "joulemap.domain.answer": (
        "Comparison",
        "EdpShare",
        "EnergyTerm",
        "EnergyTotal",
        "Finding",
        "Insight",
        "Recommendation",
    ),
    "joulemap.domain.configuration": ("Configuration",),
    "joulemap.domain.hardware": ("Hardware",),
    "joulemap.domain.quantity": ("Quantity",),
    "joulemap.domain.workload": ("Workload",),
    "joulemap.errors": ("ExitCode", "JoulemapError"),
    "joulemap.query.answer": ("CompareAnswer", "ExplainAnswer"),
    "joulemap.workspace.workspace": ("Workspace",),
}


if not TYPE_CHECKING:  # a type checker sees the imports above, and so every misspelt name

    def __getattr__(name: str) -> object:
        for module, names in _HOMES.items():
            if name in names:
                import importlib

                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module 'joulemap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
