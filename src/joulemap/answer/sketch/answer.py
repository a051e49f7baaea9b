"""Any answer as a sketch: by a module of this package, imported when it is asked for, as answers are."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from joulemap.answer.answer import Answer
from joulemap.answer.sketch.choice import Choice
from joulemap.present.document import Section, Text

MODULES: Final = {
    "AnalyzeAnswer": "analyze",
    "BreakdownAnswer": "compare",
    "CompareAnswer": "compare",
    "ContestAnswer": "compare",
    "CostAnswer": "cost",
    "EdpAnswer": "edp",
    "FlipAnswer": "doubt",
    "ModelsAnswer": "compare",
    "ParetoAnswer": "pareto",
    "PartAnswer": "part",
    "RankingAnswer": "compare",
    "SensitivityAnswer": "doubt",
    "SweepAnswer": "sweep",
    "UtilizationAnswer": "utilization",
}
"""Type of an answer -> the module whose `sketch(answer, choice)` draws it."""

NOTHING: Final = Section("Sketch", Text("nothing to draw: no row has a value"))


def sketch_answer(answer: Answer, choice: Choice) -> tuple[Section, ...]:
    """Return an answer as a sketch, or what says that there is nothing to draw; KeyError for one that has none."""
    section: Section = import_module(f"joulemap.answer.sketch.{MODULES[type(answer).__name__]}").sketch(answer, choice)
    return (section if section.texts else NOTHING,)
