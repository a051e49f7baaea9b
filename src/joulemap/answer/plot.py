"""Which question draws which figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.metric import PART_METRICS, VARIED_METRICS
from joulemap.domain.settings import check_name
from joulemap.errors import UnsupportedError, UsageError
from joulemap.figure.spec import FIGURES, FigureName
from joulemap.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Figure


@frozen
class Asked:
    """A question that draws a figure."""

    method: str
    """Of a workspace; what it is not given here is as it is by itself."""
    hardware_count: int | None = None
    """How many hardware it is asked about; None for any number, or those that it takes by itself."""
    is_choice: bool = False
    """Whether it chooses from configurations, so that several precisions are taken where none is named."""
    metrics: tuple[str, ...] = ()
    """That it can be asked in; the first is its own."""
    given: Mapping[str, Any] = {}
    """What it is asked for besides."""


QUESTIONS: Final[Mapping[FigureName, Asked]] = {
    "comparison": Asked("compare"),
    "breakdown": Asked("compare_runs"),
    "tree": Asked("analyze", 1),
    "pareto": Asked("pareto", is_choice=True),
    "roofline": Asked("analyze", 1),
    "heatmap": Asked("compare_parts", metrics=PART_METRICS),
    "edp": Asked("edp", 1),
    "sweep": Asked("sweep"),
    "waterfall": Asked("explain", 2, metrics=PART_METRICS),
    "tornado": Asked("sensitivity", 1, metrics=VARIED_METRICS),
    "flip": Asked("flip", 2, metrics=VARIED_METRICS),
    "cost": Asked("cost", is_choice=True),
    "utilization": Asked("utilization", given={"has_advice": False}),
}
"""Figure -> the question that draws it."""

BY_SETTINGS: Final = ("sensitivity",)
"""Methods about so many hardware that take them with their settings."""


def find_question(figure: FigureName) -> Asked:
    """Return the question that draws a figure; UnknownNameError for a name that is none."""
    check_name("figure", figure, FIGURES)
    return QUESTIONS[figure]


def plot(workspace: object, model: str, figure: FigureName, settings: Settings, metric: str) -> Figure:
    """Return a figure of a model, as `Workspace.plot` documents it."""
    from joulemap.answer.name import list_hardware

    asked = find_question(figure)
    named = settings.hardware
    hardware = tuple(one for text in named for one in (list_hardware((text,)) if isinstance(text, str) else (text,)))
    if asked.hardware_count is not None and len(hardware) != asked.hardware_count:
        wanted = "two hardware after the model, A and B" if asked.hardware_count == 2 else "one hardware"
        raise UsageError(f"{figure} is about {wanted}: found {len(hardware)}")
    if metric and not asked.metrics:
        raise UsageError(f"{figure} has no metric to choose: leave out {metric}")
    if metric:
        check_name("metric", metric, asked.metrics)
    is_told = asked.hardware_count is not None and asked.method not in BY_SETTINGS
    told, rest = (hardware, ()) if is_told else ((), hardware)
    given = {**asked.given, **({"metric": metric} if metric else {})}
    ask = getattr(workspace, asked.method)
    answer: Answer = ask(model, *told, attrs.evolve(settings, hardware=rest), **given)
    found = [one for one in answer.figures() if one.name == figure]
    if not found:
        raise UnsupportedError(f"there is nothing to draw: {figure} has no row for {model}")
    if len(found) > 1:
        raise UsageError(f"{figure} is of one hardware: name one of the {len(found)}")
    return found[0]
