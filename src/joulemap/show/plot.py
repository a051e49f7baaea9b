"""Draw a figure of its own, without the answer that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from joulemap.ask.plot import ask_for
from joulemap.domain.figure import FigureName
from joulemap.domain.metric import MetricName
from joulemap.domain.settings import Settings, SettingsKeywords
from joulemap.show.view import draw_figures
from joulemap.system.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from joulemap.show.figure.figure import Figure


def plot(
    source: Any,
    model: str,
    figure: FigureName,
    settings: Settings | None = None,
    *,
    metric: MetricName | None = None,
    **keywords: Unpack[SettingsKeywords],
) -> Figure:
    """Return a figure of a model on its hardware: `sweep`, `pareto`, `waterfall` and the others of `FigureName`.

    Asks the question that draws the figure, with the question's defaults if no settings are given. `waterfall` and
    `flip` take two chips, `tornado` and `edp` one chip, `roofline` one or several. `metric` applies to a waterfall, a
    tornado, a flip or a heatmap. `draw_svg` and `draw_png` render the figure. Raises like the question; UsageError for
    a wrong number of chips, UnsupportedError if there is nothing to draw.
    """
    name, answer = ask_for(source, model, figure, settings, metric=metric, **keywords)
    drawn = [one for one in draw_figures(answer) if one.name == name]
    if not drawn:
        raise UnsupportedError(f"there is nothing to draw: {name} has no row for {model}")
    if len(drawn) > 1:
        raise UsageError(f"{name} shows one chip: name one of the {len(drawn)}")
    return drawn[0]
