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
    from joulemap.answer.compare.breakdown import BreakdownAnswer, EnergyBranch, RunFigure
    from joulemap.answer.compare.contest import Contender, ContestAnswer, Victory
    from joulemap.answer.compare.model import ModelFigure, ModelsAnswer
    from joulemap.answer.compare.ranking import HardwareNumber, RankedHardware, RankingAnswer, UtilizationSpread
    from joulemap.answer.compare.summary import CompareAnswer, Comparison, Insight, Recommendation
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
    from joulemap.answer.utilization import Pairing, Utilization, UtilizationAnswer, UtilizationFlag
    from joulemap.catalog.load import load_catalogue
    from joulemap.domain.answer.analysis import (
        ActionShare,
        BottleneckShare,
        CategoryShare,
        OperatorShare,
        RunTotal,
        SubgraphShare,
    )
    from joulemap.domain.answer.choice import (
        AssumedNumber,
        BreakEven,
        CostOption,
        GridFootprint,
        ParetoPoint,
        RankedConfiguration,
        Violation,
    )
    from joulemap.domain.answer.explanation import (
        CategoryDifference,
        Effect,
        EnergyTerm,
        MetricTerm,
        RunPair,
        SubgraphDifference,
    )
    from joulemap.domain.answer.score import Score
    from joulemap.domain.answer.store import Finding, RunTally
    from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
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
        AnalyzeAnswer,
        CalibrateAnswer,
        CostAnswer,
        DifferenceAnswer,
        ExplainAnswer,
        HardwareAnswer,
        MeasureAnswer,
        ParetoAnswer,
        RecommendAnswer,
    )
    from joulemap.query.sweep import SweepAnswer
    from joulemap.workspace.workspace import Workspace

__all__ = [
    "ActionShare",
    "AnalyzeAnswer",
    "AssumedNumber",
    "BottleneckShare",
    "BreakEven",
    "BreakdownAnswer",
    "CalibrateAnswer",
    "Calibration",
    "CalibrationError",
    "Candidates",
    "CategoryDifference",
    "CategoryShare",
    "CompareAnswer",
    "Comparison",
    "Configuration",
    "Contender",
    "ContestAnswer",
    "CostAnswer",
    "CostOption",
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
    "MeasureAnswer",
    "MemoryLevel",
    "MetricTerm",
    "ModelFigure",
    "ModelsAnswer",
    "OperatorShare",
    "Pairing",
    "ParetoAnswer",
    "ParetoPoint",
    "Peak",
    "PowerMode",
    "Quantity",
    "RankedConfiguration",
    "RankedHardware",
    "RankingAnswer",
    "RecommendAnswer",
    "Recommendation",
    "RunFigure",
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
    "joulemap.answer.compare.breakdown": ("BreakdownAnswer", "EnergyBranch", "RunFigure"),
    "joulemap.answer.compare.contest": ("Contender", "ContestAnswer", "Victory"),
    "joulemap.answer.compare.model": ("ModelFigure", "ModelsAnswer"),
    "joulemap.answer.compare.ranking": ("HardwareNumber", "RankedHardware", "RankingAnswer", "UtilizationSpread"),
    "joulemap.answer.compare.summary": ("CompareAnswer", "Comparison", "Insight", "Recommendation"),
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
    "joulemap.answer.utilization": ("Pairing", "Utilization", "UtilizationAnswer", "UtilizationFlag"),
    "joulemap.catalog.load": ("load_catalogue",),
    "joulemap.domain.answer.analysis": (
        "ActionShare",
        "BottleneckShare",
        "CategoryShare",
        "OperatorShare",
        "RunTotal",
        "SubgraphShare",
    ),
    "joulemap.domain.answer.choice": (
        "AssumedNumber",
        "BreakEven",
        "CostOption",
        "GridFootprint",
        "ParetoPoint",
        "RankedConfiguration",
        "Violation",
    ),
    "joulemap.domain.answer.explanation": (
        "CategoryDifference",
        "Effect",
        "EnergyTerm",
        "MetricTerm",
        "RunPair",
        "SubgraphDifference",
    ),
    "joulemap.domain.answer.score": ("Score",),
    "joulemap.domain.answer.store": (
        "Finding",
        "RunTally",
    ),
    "joulemap.domain.choice": ("Candidates", "Limits", "Usage"),
    "joulemap.domain.answer.sweep": ("SweepCrossing", "SweepPoint", "SweepSeries", "SweepWinner"),
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
        "CostAnswer",
        "DifferenceAnswer",
        "ExplainAnswer",
        "HardwareAnswer",
        "MeasureAnswer",
        "ParetoAnswer",
        "RecommendAnswer",
    ),
    "joulemap.query.sweep": ("SweepAnswer",),
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
