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
    from joulemap.catalog.load import load_catalogue
    from joulemap.domain.answer.analysis import (
        ActionShare,
        BottleneckShare,
        CategoryShare,
        EdpShare,
        OperatorShare,
        RunTotal,
        SubgraphShare,
    )
    from joulemap.domain.answer.comparison import Comparison, Insight, Recommendation
    from joulemap.domain.answer.explanation import EnergyTerm, EnergyTotal
    from joulemap.domain.answer.score import Score
    from joulemap.domain.answer.store import Finding, RunTally
    from joulemap.domain.calibration import Calibration, CalibrationError
    from joulemap.domain.configuration import Configuration
    from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
    from joulemap.domain.quantity import Quantity
    from joulemap.domain.reference import EnergyAction, EnergyReference
    from joulemap.domain.timing import Timing
    from joulemap.domain.workload import Workload
    from joulemap.errors import ExitCode, JoulemapError
    from joulemap.query.answer import (
        AnalyzeAnswer,
        CalibrateAnswer,
        CompareAnswer,
        DifferenceAnswer,
        ExplainAnswer,
        HardwareAnswer,
        MeasureAnswer,
    )
    from joulemap.workspace.workspace import Workspace

__all__ = [
    "ActionShare",
    "AnalyzeAnswer",
    "BottleneckShare",
    "CalibrateAnswer",
    "Calibration",
    "CalibrationError",
    "CategoryShare",
    "CompareAnswer",
    "Comparison",
    "Configuration",
    "DifferenceAnswer",
    "EdpShare",
    "EnergyAction",
    "EnergyReference",
    "EnergyTerm",
    "EnergyTotal",
    "ExitCode",
    "ExplainAnswer",
    "Finding",
    "Hardware",
    "HardwareAnswer",
    "Insight",
    "JoulemapError",
    "MeasureAnswer",
    "MemoryLevel",
    "OperatorShare",
    "Peak",
    "PowerMode",
    "Quantity",
    "Recommendation",
    "RunTally",
    "RunTotal",
    "Score",
    "SubgraphShare",
    "Timing",
    "Workload",
    "Workspace",
    "load_catalogue",
]

_HOMES = {
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.domain.answer.analysis": (
        "ActionShare",
        "BottleneckShare",
        "CategoryShare",
        "EdpShare",
        "OperatorShare",
        "RunTotal",
        "SubgraphShare",
    ),
    "joulemap.domain.answer.comparison": (
        "Comparison",
        "Insight",
        "Recommendation",
    ),
    "joulemap.domain.answer.explanation": (
        "EnergyTerm",
        "EnergyTotal",
    ),
    "joulemap.domain.answer.score": ("Score",),
    "joulemap.domain.answer.store": (
        "Finding",
        "RunTally",
    ),
    "joulemap.domain.calibration": ("Calibration", "CalibrationError"),
    "joulemap.domain.configuration": ("Configuration",),
    "joulemap.domain.hardware": ("Hardware", "MemoryLevel", "Peak", "PowerMode"),
    "joulemap.domain.quantity": ("Quantity",),
    "joulemap.domain.reference": ("EnergyAction", "EnergyReference"),
    "joulemap.domain.timing": ("Timing",),
    "joulemap.domain.workload": ("Workload",),
    "joulemap.errors": ("ExitCode", "JoulemapError"),
    "joulemap.query.answer": (
        "AnalyzeAnswer",
        "CalibrateAnswer",
        "CompareAnswer",
        "DifferenceAnswer",
        "ExplainAnswer",
        "HardwareAnswer",
        "MeasureAnswer",
    ),
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
