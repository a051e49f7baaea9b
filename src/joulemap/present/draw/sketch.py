"""A sketch as text."""

from __future__ import annotations

from typing import Final

from joulemap.present.draw.bar import draw_bars
from joulemap.present.draw.chart import draw_chart
from joulemap.present.draw.heat import draw_heat
from joulemap.present.draw.ink import Ink
from joulemap.present.format import Page
from joulemap.present.sketch import Bars, Chart, Sketch

WIDTH: Final = 80
"""Of a sketch where no terminal says its own."""

LEAST_WIDTH: Final = 40

ROWS: Final = 16
"""Of a chart's canvas where no terminal says its height."""

LEAST_ROWS: Final = 8
MOST_ROWS: Final = 30

AROUND: Final = 10
"""Lines of a terminal that title, axes and key of a chart take."""


def draw_sketch(sketch: Sketch, page: Page) -> str:
    """Return a sketch as wide as a page, its charts as high as leaves room for what stands around them.

    Empty where there is nothing to draw.
    """
    if not sketch.texts:
        return ""
    ink = Ink(has_colour=page.has_colour)
    width = WIDTH if page.width is None else max(page.width, LEAST_WIDTH)
    if isinstance(sketch, Bars):
        return draw_bars(sketch, width, ink)
    if isinstance(sketch, Chart):
        rows = ROWS if page.height is None else min(max(page.height - AROUND, LEAST_ROWS), MOST_ROWS)
        return draw_chart(sketch, width, rows, ink)
    return draw_heat(sketch, width, ink)
