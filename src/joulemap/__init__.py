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
    from joulemap.answer.candidate import AssumedNumber
    from joulemap.answer.cost import BreakEven, CostAnswer, CostOption, GridFootprint
    from joulemap.answer.edp import (
        EdpAnswer,
        EdpBound,
        EdpComparison,
        EdpCut,
        EdpOperatorShare,
        EdpPattern,
        EdpShare,
        EdpTotal,
    )
    from joulemap.answer.pareto import ParetoAnswer, ParetoPoint
    from joulemap.answer.recommend import RankedConfiguration, RecommendAnswer, Violation
    from joulemap.answer.sweep import SweepAnswer, SweepCrossing, SweepPoint, SweepSeries, SweepWinner
    from joulemap.catalog.load import load_catalogue
    from joulemap.domain.answer.analysis import (
        ActionShare,
        BottleneckShare,
        CategoryShare,
        OperatorShare,
        RunTotal,
        SubgraphShare,
    )
    from joulemap.domain.answer.comparison import Comparison, Insight, Recommendation
    from joulemap.domain.answer.explanation import (
        CategoryDifference,
        Effect,
        EnergyTerm,
        MetricTerm,
        RunPair,
        SubgraphDifference,
    )
    from joulemap.domain.answer.level import (
        EnergyBranch,
        HardwareNumber,
        ModelFigure,
        PartFigure,
        RankedHardware,
        RunDetail,
        UtilizationSpread,
        Victory,
    )
    from joulemap.domain.answer.score import Score
    from joulemap.domain.answer.store import Finding
    from joulemap.domain.answer.utilization import Pairing, Utilization, UtilizationFlag
    from joulemap.domain.calibration import Calibration, CalibrationError
    from joulemap.domain.configuration import Configuration
    from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
    from joulemap.domain.quantity import Quantity
    from joulemap.domain.reference import EnergyAction, EnergyReference
    from joulemap.domain.settings import Limits, Settings, Usage
    from joulemap.domain.timing import Timing
    from joulemap.domain.workload import Workload
    from joulemap.errors import ExitCode, JoulemapError
    from joulemap.plan.run import RunTally
    from joulemap.query.answer import (
        AnalyzeAnswer,
        CalibrateAnswer,
        CompareAnswer,
        DifferenceAnswer,
        ExplainAnswer,
        HardwareAnswer,
        MeasureAnswer,
    )
    from joulemap.query.level import DetailAnswer, MatrixAnswer, PartAnswer, RankingAnswer
    from joulemap.query.utilization import UtilizationAnswer
    from joulemap.workspace.workspace import Workspace

__all__ = [
    "ActionShare",
    "AnalyzeAnswer",
    "AssumedNumber",
    "BottleneckShare",
    "BreakEven",
    "CalibrateAnswer",
    "Calibration",
    "CalibrationError",
    "CategoryDifference",
    "CategoryShare",
    "CompareAnswer",
    "Comparison",
    "Configuration",
    "CostAnswer",
    "CostOption",
    "DetailAnswer",
    "DifferenceAnswer",
    "EdpAnswer",
    "EdpBound",
    "EdpComparison",
    "EdpCut",
    "EdpOperatorShare",
    "EdpPattern",
    "EdpShare",
    "EdpTotal",
    "Effect",
    "EnergyAction",
    "EnergyBranch",
    "EnergyReference",
    "EnergyTerm",
    "ExitCode",
    "ExplainAnswer",
    "Finding",
    "GridFootprint",
    "Hardware",
    "HardwareAnswer",
    "HardwareNumber",
    "Insight",
    "JoulemapError",
    "Limits",
    "MatrixAnswer",
    "MeasureAnswer",
    "MemoryLevel",
    "MetricTerm",
    "ModelFigure",
    "OperatorShare",
    "Pairing",
    "ParetoAnswer",
    "ParetoPoint",
    "PartAnswer",
    "PartFigure",
    "Peak",
    "PowerMode",
    "Quantity",
    "RankedConfiguration",
    "RankedHardware",
    "RankingAnswer",
    "RecommendAnswer",
    "Recommendation",
    "RunDetail",
    "RunPair",
    "RunTally",
    "RunTotal",
    "Score",
    "Settings",
    "SubgraphDifference",
    "SubgraphShare",
    "SweepAnswer",
    "SweepCrossing",
    "SweepPoint",
    "SweepSeries",
    "SweepWinner",
    "Timing",
    "Usage",
    "Utilization",
    "UtilizationAnswer",
    "UtilizationFlag",
    "UtilizationSpread",
    "Victory",
    "Violation",
    "Workload",
    "Workspace",
    "load_catalogue",
]

_HOMES = {
    "joulemap.answer.candidate": ("AssumedNumber",),
    "joulemap.answer.cost": ("BreakEven", "CostAnswer", "CostOption", "GridFootprint"),
    "joulemap.answer.pareto": ("ParetoAnswer", "ParetoPoint"),
    "joulemap.answer.recommend": ("RankedConfiguration", "RecommendAnswer", "Violation"),
    "joulemap.answer.sweep": ("SweepAnswer", "SweepCrossing", "SweepPoint", "SweepSeries", "SweepWinner"),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.domain.answer.analysis": (
        "ActionShare",
        "BottleneckShare",
        "CategoryShare",
        "OperatorShare",
        "RunTotal",
        "SubgraphShare",
    ),
    "joulemap.domain.answer.comparison": (
        "Comparison",
        "Insight",
        "Recommendation",
    ),
    "joulemap.answer.edp": (
        "EdpAnswer",
        "EdpBound",
        "EdpComparison",
        "EdpCut",
        "EdpOperatorShare",
        "EdpPattern",
        "EdpShare",
        "EdpTotal",
    ),
    "joulemap.domain.answer.explanation": (
        "CategoryDifference",
        "Effect",
        "EnergyTerm",
        "MetricTerm",
        "RunPair",
        "SubgraphDifference",
    ),
    "joulemap.domain.answer.level": (
        "EnergyBranch",
        "HardwareNumber",
        "ModelFigure",
        "PartFigure",
        "RankedHardware",
        "RunDetail",
        "UtilizationSpread",
        "Victory",
    ),
    "joulemap.domain.answer.score": ("Score",),
    "joulemap.domain.answer.store": ("Finding",),
    "joulemap.domain.answer.utilization": ("Pairing", "Utilization", "UtilizationFlag"),
    "joulemap.domain.calibration": ("Calibration", "CalibrationError"),
    "joulemap.domain.configuration": ("Configuration",),
    "joulemap.domain.hardware": ("Hardware", "MemoryLevel", "Peak", "PowerMode"),
    "joulemap.domain.quantity": ("Quantity",),
    "joulemap.domain.reference": ("EnergyAction", "EnergyReference"),
    "joulemap.domain.settings": ("Limits", "Settings", "Usage"),
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
    "joulemap.query.level": ("DetailAnswer", "MatrixAnswer", "PartAnswer", "RankingAnswer"),
    "joulemap.plan.run": ("RunTally",),
    "joulemap.query.utilization": ("UtilizationAnswer",),
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
