"""Any answer as a sketch."""

from __future__ import annotations

from joulemap.answer.analyze.answer import AnalyzeAnswer
from joulemap.answer.answer import Answer
from joulemap.answer.compare.breakdown import BreakdownAnswer
from joulemap.answer.compare.contest import ContestAnswer
from joulemap.answer.compare.model import ModelsAnswer
from joulemap.answer.compare.ranking import RankingAnswer
from joulemap.answer.compare.summary import CompareAnswer
from joulemap.answer.cost import CostAnswer
from joulemap.answer.edp.answer import EdpAnswer
from joulemap.answer.flip import FlipAnswer
from joulemap.answer.pareto import ParetoAnswer
from joulemap.answer.part import PartAnswer
from joulemap.answer.sensitivity import SensitivityAnswer
from joulemap.answer.sketch.analyze import sketch_run
from joulemap.answer.sketch.compare import (
    sketch_comparison,
    sketch_contest,
    sketch_models,
    sketch_ranking,
    sketch_runs,
)
from joulemap.answer.sketch.cost import sketch_costs
from joulemap.answer.sketch.doubt import sketch_flips, sketch_spans
from joulemap.answer.sketch.edp import sketch_shares
from joulemap.answer.sketch.pareto import sketch_front
from joulemap.answer.sketch.part import sketch_parts
from joulemap.answer.sketch.sweep import sketch_batches
from joulemap.answer.sketch.utilization import sketch_use
from joulemap.answer.sweep.answer import SweepAnswer
from joulemap.answer.utilization.answer import UtilizationAnswer
from joulemap.domain.settings import ModelDivision, RunDivision
from joulemap.present.document import Section, Text


def sketch_answer(
    answer: Answer, *, by: RunDivision | ModelDivision = "action", limit: int = 40
) -> tuple[Section, ...]:
    """Return an answer as a sketch, or what says that there is nothing to draw.

    `by` is the table that is shown, of answers that have several; `limit` how many rows are drawn at most.
    """
    section = _sketch(answer, by, limit)
    return (section if section.texts else Section(section.title, Text("nothing to draw: no row has a value")),)


def _sketch(answer: Answer, by: RunDivision | ModelDivision, limit: int) -> Section:
    match answer:
        case CompareAnswer():
            return sketch_comparison(answer)
        case RankingAnswer():
            return sketch_ranking(answer)
        case ModelsAnswer():
            return sketch_models(answer)
        case BreakdownAnswer():
            return sketch_runs(answer)
        case ContestAnswer():
            return sketch_contest(answer, limit)
        case PartAnswer():
            return sketch_parts(answer, limit)
        case AnalyzeAnswer():
            return sketch_run(answer, by)
        case EdpAnswer():
            return sketch_shares(answer, "operator" if by == "operator" else "subgraph")
        case SweepAnswer():
            return sketch_batches(answer)
        case ParetoAnswer():
            return sketch_front(answer)
        case UtilizationAnswer():
            return sketch_use(answer)
        case CostAnswer():
            return sketch_costs(answer, limit)
        case SensitivityAnswer():
            return sketch_spans(answer, limit)
        case FlipAnswer():
            return sketch_flips(answer, limit)
    return Section("Sketch", ())
