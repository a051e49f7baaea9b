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
    from joulemap.answer.analyze.answer import AnalyzeAnswer
    from joulemap.answer.analyze.row import (
        ActionShare,
        BottleneckShare,
        CategoryShare,
        OperatorShare,
        RunTotal,
        SubgraphShare,
    )
    from joulemap.answer.difference import DifferenceAnswer
    from joulemap.answer.edp.answer import EdpAnswer
    from joulemap.answer.edp.row import (
        EdpBound,
        EdpComparison,
        EdpCut,
        EdpOperatorShare,
        EdpPattern,
        EdpShare,
        EdpTotal,
    )
    from joulemap.answer.explain.answer import ExplainAnswer
    from joulemap.answer.explain.row import (
        CategoryDifference,
        Effect,
        EnergyTerm,
        MetricTerm,
        RunPair,
        SubgraphDifference,
    )
    from joulemap.answer.model import ProfileAnswer
    from joulemap.catalog.load import load_catalogue
    from joulemap.domain.answer.choice import (
        AssumedNumber,
        BreakEven,
        CostOption,
        GridFootprint,
        ParetoPoint,
        RankedConfiguration,
        Violation,
    )
    from joulemap.domain.answer.comparison import Comparison, Insight, Recommendation
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
    from joulemap.domain.answer.store import Finding, RunTally
    from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
    from joulemap.domain.answer.utilization import Pairing, Utilization, UtilizationFlag
    from joulemap.domain.calibration import Calibration, CalibrationError
    from joulemap.domain.choice import Candidates, Limits, Usage
    from joulemap.domain.configuration import Configuration
    from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
    from joulemap.domain.quantity import Quantity
    from joulemap.domain.reference import EnergyAction, EnergyReference
    from joulemap.domain.timing import Timing
    from joulemap.domain.workload import Workload
    from joulemap.errors import ExitCode, JoulemapError
    from joulemap.query.answer import (
        CalibrateAnswer,
        CompareAnswer,
        CostAnswer,
        HardwareAnswer,
        MeasureAnswer,
        ParetoAnswer,
        RecommendAnswer,
    )
    from joulemap.query.level import DetailAnswer, MatrixAnswer, PartAnswer, RankingAnswer
    from joulemap.query.sweep import SweepAnswer
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
    "Candidates",
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
    "ProfileAnswer",
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
    "joulemap.answer.analyze.answer": ("AnalyzeAnswer",),
    "joulemap.answer.analyze.row": (
        "ActionShare",
        "BottleneckShare",
        "CategoryShare",
        "OperatorShare",
        "RunTotal",
        "SubgraphShare",
    ),
    "joulemap.answer.difference": ("DifferenceAnswer",),
    "joulemap.answer.edp.answer": ("EdpAnswer",),
    "joulemap.answer.edp.row": (
        "EdpBound",
        "EdpComparison",
        "EdpCut",
        "EdpOperatorShare",
        "EdpPattern",
        "EdpShare",
        "EdpTotal",
    ),
    "joulemap.answer.explain.answer": ("ExplainAnswer",),
    "joulemap.answer.explain.row": (
        "CategoryDifference",
        "Effect",
        "EnergyTerm",
        "MetricTerm",
        "RunPair",
        "SubgraphDifference",
    ),
    "joulemap.answer.model": ("ProfileAnswer",),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.domain.answer.choice": (
        "AssumedNumber",
        "BreakEven",
        "CostOption",
        "GridFootprint",
        "ParetoPoint",
        "RankedConfiguration",
        "Violation",
    ),
    "joulemap.domain.answer.comparison": (
        "Comparison",
        "Insight",
        "Recommendation",
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
    "joulemap.domain.answer.store": (
        "Finding",
        "RunTally",
    ),
    "joulemap.domain.choice": ("Candidates", "Limits", "Usage"),
    "joulemap.domain.answer.sweep": ("SweepCrossing", "SweepPoint", "SweepSeries", "SweepWinner"),
    "joulemap.domain.answer.utilization": ("Pairing", "Utilization", "UtilizationFlag"),
    "joulemap.domain.calibration": ("Calibration", "CalibrationError"),
    "joulemap.domain.configuration": ("Configuration",),
    "joulemap.domain.hardware": ("Hardware", "MemoryLevel", "Peak", "PowerMode"),
    "joulemap.domain.quantity": ("Quantity",),
    "joulemap.domain.reference": ("EnergyAction", "EnergyReference"),
    "joulemap.domain.timing": ("Timing",),
    "joulemap.domain.workload": ("Workload",),
    "joulemap.errors": ("ExitCode", "JoulemapError"),
    "joulemap.query.answer": (
        "CalibrateAnswer",
        "CompareAnswer",
        "CostAnswer",
        "HardwareAnswer",
        "MeasureAnswer",
        "ParetoAnswer",
        "RecommendAnswer",
    ),
    "joulemap.query.level": ("DetailAnswer", "MatrixAnswer", "PartAnswer", "RankingAnswer"),
    "joulemap.query.sweep": ("SweepAnswer",),
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
