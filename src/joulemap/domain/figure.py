"""Names of figures and text drawings."""

from __future__ import annotations

from typing import Final, Literal, get_args

FigureName = Literal[
    "comparison",
    "breakdown",
    "tree",
    "pareto",
    "roofline",
    "rooflines",
    "heatmap",
    "edp",
    "sweep",
    "cap",
    "waterfall",
    "tornado",
    "flip",
    "cost",
    "utilization",
    "frontier",
    "training",
]

AnswerFigureName = Literal["fleet", "queue", "day", "placement", "timeline"]
"""Name of a figure that needs more than a model and hardware, so that `joulemap plot` cannot draw it."""

ShownName = FigureName | AnswerFigureName
"""Name of a figure of the core or of a wing."""

DrawingName = ShownName | Literal["models", "division", "execution", "events", "parts"]
"""Name of a figure, or of a text drawing without an image."""

FIGURES: Final[tuple[FigureName, ...]] = get_args(FigureName)
