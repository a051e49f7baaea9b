"""Select the question that draws a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Final, Unpack, cast

import attrs

from joulemap.domain.default import SETTINGS
from joulemap.domain.figure import FIGURES, FigureName
from joulemap.domain.metric import PART_METRICS, VARIED_METRICS, MetricName
from joulemap.domain.settings import Settings, SettingsKeywords, check_name
from joulemap.plan.model_name import find_answer
from joulemap.plan.source import Source
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.wing import list_wings, load

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer

    Ask = Callable[..., Answer]


@frozen
class Asked:
    """Question that can draw a figure, with the arguments that the figure needs."""

    home: str
    """Name of the module that defines the question."""
    name: str
    hardware_count: int | None = None
    """Required number of chips; None for any number, or the question's default."""
    metrics: tuple[str, ...] = ()
    """Metrics that the question accepts."""
    keywords: Mapping[str, object] = {}
    """Keyword arguments that the question gets in addition, for this figure only."""


QUESTIONS: Final[Mapping[FigureName, Asked]] = {
    "comparison": Asked("joulemap.ask.compare", "compare"),
    "breakdown": Asked("joulemap.ask.analyze", "compare_breakdowns", keywords={"level": "run", "by": "action"}),
    "tree": Asked("joulemap.ask.analyze", "analyze", 1),
    "pareto": Asked("joulemap.ask.pareto", "pareto"),
    "roofline": Asked("joulemap.ask.analyze", "analyze", 1),
    "rooflines": Asked("joulemap.ask.utilization", "utilization", keywords={"has_advice": False}),
    "heatmap": Asked("joulemap.ask.contest", "compare_parts", metrics=PART_METRICS),
    "edp": Asked("joulemap.ask.edp", "edp", 1),
    "sweep": Asked("joulemap.ask.sweep", "sweep"),
    "cap": Asked("joulemap.ask.sweep", "sweep"),
    "waterfall": Asked("joulemap.ask.explain", "explain", 2, metrics=PART_METRICS),
    "tornado": Asked("joulemap.ask.constant", "sensitivity", 1, metrics=VARIED_METRICS),
    "flip": Asked("joulemap.ask.flip", "flip", 2, metrics=VARIED_METRICS),
    "cost": Asked("joulemap.ask.cost", "cost"),
    "utilization": Asked("joulemap.ask.utilization", "utilization", keywords={"has_advice": False}),
}
"""Figure -> question that draws it; optional extensions add further figures."""


def _find_question(figure: FigureName) -> Asked:
    """Return the question that draws a figure; UnsupportedError if it needs an extension that is not installed."""
    if question := QUESTIONS.get(figure):
        return question
    for wing in list_wings():
        if figure in wing.figures:
            return Asked(*wing.figures[figure])
    raise UnsupportedError(f"the wing that draws {figure} is not installed")


def ask_for(
    source: Source,
    model: str,
    figure: FigureName,
    settings: Settings | None = None,
    *,
    metric: MetricName | None = None,
    **keywords: Unpack[SettingsKeywords],
) -> tuple[FigureName, Answer]:
    """Return the name of a figure and the answer that has it, of the question that draws the figure.

    The question has its defaults if no settings are given. Raises like the question; UsageError for a wrong number of
    chips.
    """
    from joulemap.ask.subject import list_hardware

    check_name("figure", figure, FIGURES)
    named = (settings or SETTINGS).with_keywords(keywords).hardware
    hardware = tuple(one for text in named for one in (list_hardware((text,)) if isinstance(text, str) else (text,)))
    if figure == "roofline" and len(hardware) != 1:
        figure = "rooflines"
    asked = _find_question(figure)
    ask: Ask = find_answer(load(f"{asked.home}:{asked.name}"), model)
    taken = signature(ask).parameters
    settings = (settings or cast("Settings", taken["settings"].default)).with_keywords(keywords)
    settings = attrs.evolve(settings, hardware=hardware)
    if asked.hardware_count is not None and len(hardware) != asked.hardware_count:
        if asked.hardware_count == 2:
            raise UsageError(f"{figure} needs two chips after the model, A and B, found {len(hardware)}")
        raise UsageError(f"{figure} needs one chip, found {len(hardware)}")
    if metric and not asked.metrics:
        raise UsageError(f"{figure} takes no metric: leave out {metric}")
    if metric:
        check_name("metric", metric, asked.metrics)
    given = {**asked.keywords, **({"metric": metric} if metric else {})}
    apart = hardware if taken.keys() & {"hardware", "hardware_a"} else ()
    asked_of = attrs.evolve(settings, hardware=()) if apart else settings
    return figure, ask(source, (model,) if "models" in taken else model, *apart, asked_of, **given)
