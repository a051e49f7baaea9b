"""Which question draws which figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Unpack

import attrs

from joulemap.domain.default import CANDIDATES, SETTINGS
from joulemap.domain.metric import PART_METRICS, VARIED_METRICS, VariedMetricName
from joulemap.domain.settings import check_name
from joulemap.errors import UnsupportedError, UsageError
from joulemap.figure.spec import FIGURES, FigureName
from joulemap.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.metric import MetricName, PartMetricName
    from joulemap.domain.settings import Settings, SettingsKeywords
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source

    Ask = Callable[[Source, str, Settings, str], Answer]


@frozen
class Asked:
    """A question that draws a figure."""

    ask: Ask
    hardware_count: int | None = None
    """How many hardware it is asked about; None for any number, or those that it takes by itself."""
    is_choice: bool = False
    """Whether it chooses from configurations, so that several precisions are taken where none is named."""
    metrics: tuple[str, ...] = ()
    """That it can be asked in; the first is its own."""


def _compare(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.compare.summary import compare

    return compare(source, model, settings)


def _break_down(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.compare.breakdown import compare_runs

    return compare_runs(source, (model,), settings)


def _analyze(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.analyze.answer import analyze

    return analyze(source, model, settings.hardware[0], attrs.evolve(settings, hardware=()))


def _contest(source: Source, model: str, settings: Settings, metric: str) -> Answer:
    from joulemap.answer.compare.contest import compare_parts

    return compare_parts(source, (model,), settings, metric=_part(metric))


def _judge(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.utilization.answer import utilization

    return utilization(source, model, settings, has_advice=False)


def _front(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.pareto import pareto

    return pareto(source, model, settings)


def _sweep(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.sweep.answer import sweep

    return sweep(source, (model,), settings)


def _price(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.cost import cost

    return cost(source, model, settings)


def _edp(source: Source, model: str, settings: Settings, _metric: str) -> Answer:
    from joulemap.answer.edp.answer import edp

    return edp(source, model, settings.hardware[0], attrs.evolve(settings, hardware=()))


def _explain(source: Source, model: str, settings: Settings, metric: str) -> Answer:
    from joulemap.answer.explain.answer import explain

    return explain(source, model, *_pair(settings), attrs.evolve(settings, hardware=()), metric=_part(metric))


def _sensitivity(source: Source, model: str, settings: Settings, metric: str) -> Answer:
    from joulemap.answer.sensitivity import sensitivity

    return sensitivity(source, model, settings, metric=_varied(metric))


def _flip(source: Source, model: str, settings: Settings, metric: str) -> Answer:
    from joulemap.answer.flip import flip

    return flip(source, model, *_pair(settings), attrs.evolve(settings, hardware=()), metric=_varied(metric))


def _list_hardware(named: Sequence[str | Hardware]) -> tuple[str | Hardware, ...]:
    """Return hardware of which each text names one."""
    from joulemap.answer.name import list_hardware

    return tuple(one for text in named for one in (list_hardware((text,)) if isinstance(text, str) else (text,)))


def _pair(settings: Settings) -> tuple[str | Hardware, str | Hardware]:
    first, second = settings.hardware
    return first, second


def _part(metric: str) -> PartMetricName:
    return next(one for one in PART_METRICS if one == metric)


def _varied(metric: str) -> VariedMetricName:
    return next(one for one in VARIED_METRICS if one == metric)


QUESTIONS: Final[Mapping[FigureName, Asked]] = {
    "comparison": Asked(_compare),
    "breakdown": Asked(_break_down),
    "tree": Asked(_analyze, 1),
    "pareto": Asked(_front, is_choice=True),
    "roofline": Asked(_analyze, 1),
    "heatmap": Asked(_contest, metrics=PART_METRICS),
    "edp": Asked(_edp, 1),
    "sweep": Asked(_sweep),
    "waterfall": Asked(_explain, 2, metrics=PART_METRICS),
    "tornado": Asked(_sensitivity, 1, metrics=VARIED_METRICS),
    "flip": Asked(_flip, 2, metrics=VARIED_METRICS),
    "cost": Asked(_price, is_choice=True),
    "utilization": Asked(_judge),
}
"""Figure -> the question that draws it."""


def plot(
    source: Source,
    model: str,
    figure: FigureName,
    settings: Settings | None = None,
    *,
    metric: MetricName | None = None,
    **keywords: Unpack[SettingsKeywords],
) -> Figure:
    """Return a figure of a model on its hardware: `sweep`, `pareto`, `waterfall` and the others of `FigureName`.

    It asks the question that draws it, with what that takes by itself where no settings are given: a waterfall and
    a flip are of two hardware, a tornado and an edp of one. `metric` is that of a waterfall, a tornado, a flip or a
    heatmap. `draw_svg` and `draw_png` make a file of it. Raises as the question; UsageError for another number of
    hardware, UnsupportedError where there is nothing to draw.
    """
    check_name("figure", figure, FIGURES)
    asked = QUESTIONS[figure]
    settings = (settings or (CANDIDATES if asked.is_choice else SETTINGS)).with_keywords(keywords)
    hardware = _list_hardware(settings.hardware)
    settings = attrs.evolve(settings, hardware=hardware)
    if asked.hardware_count is not None and len(hardware) != asked.hardware_count:
        wanted = "two hardware after the model, A and B" if asked.hardware_count == 2 else "one hardware"
        raise UsageError(f"{figure} is about {wanted}: found {len(hardware)}")
    if metric and not asked.metrics:
        raise UsageError(f"{figure} has no metric to choose: leave out {metric}")
    if metric:
        check_name("metric", metric, asked.metrics)
    answer = asked.ask(source, model, settings, metric or (asked.metrics or ("",))[0])
    found = [one for one in answer.figures() if one.name == figure]
    if not found:
        raise UnsupportedError(f"there is nothing to draw: {figure} has no row for {model}")
    if len(found) > 1:
        raise UsageError(f"{figure} is of one hardware: name one of the {len(found)}")
    return found[0]
