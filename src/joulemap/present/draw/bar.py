"""Bars: a row per value, from zero where the axis is linear, a dot with its interval where it is logarithmic."""

from __future__ import annotations

import textwrap
from typing import Final

from plotille import Canvas

from joulemap.present.draw.ink import PATTERNS, Ink, begin_canvas, lay_out_items, read_lines, shorten, write_on
from joulemap.present.draw.scale import Scale, draw_ticks, find_scale, show_tick
from joulemap.present.sketch import Bar, Bars

LEAST_CANVAS: Final = 16
"""Cells that are drawn in, however narrow the page is."""

MOST_LABEL: Final = 0.4
"""Of the width."""

BELOW: Final = "log axis: equal distances are equal factors"


def draw_bars(sketch: Bars, width: int, ink: Ink) -> str:
    """Return bars in lines of at most `width`."""
    bars, axis = sketch.bars, sketch.axis
    values = [bar.text or ("" if bar.value is None else show_tick(bar.value, axis.unit)) for bar in bars]
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high)]
    scale = find_scale([*ends, sketch.mark], axis, has_zero=sketch.has_zero)
    value_width = max(map(len, values), default=0)
    most = max(min(int(width * MOST_LABEL), width - value_width - LEAST_CANVAS - 3), 4)
    labels = [shorten(bar.label, most) for bar in bars]
    label_width = max(map(len, labels), default=0)
    indent = label_width + value_width + 4
    cells = max(width - indent, LEAST_CANVAS)
    canvas = begin_canvas(cells, len(bars))
    for index, bar in enumerate(bars):
        _draw(canvas, len(bars) - 1 - index, bar, sketch, scale, ink)
    lines = [
        f"{label:<{label_width}}  {value:>{value_width}} │{line}".rstrip()
        for label, value, line in zip(labels, values, read_lines(canvas), strict=True)
    ]
    has_interval = any(bar.value is not None and bar.low is not None and bar.low != bar.high for bar in bars)
    parts = () if scale.is_log else sketch.parts
    notes = (*((BELOW,) if scale.is_log else ()), *((sketch.interval,) if has_interval else ()), *sketch.notes)
    return "\n".join(
        [
            *textwrap.wrap(sketch.title, width),
            *lines,
            *draw_ticks(scale, axis, cells, indent),
            *lay_out_items(list(zip(PATTERNS, parts, strict=False)), ink, width),
            *(line for note in notes for line in textwrap.wrap(note, width)),
        ]
    )


def _draw(canvas: Canvas, row: int, bar: Bar, sketch: Bars, scale: Scale, ink: Ink) -> None:
    cells = canvas.width
    if sketch.mark is not None and scale.holds(sketch.mark):
        write_on(canvas, scale.cell(sketch.mark, cells), row, "┊", None)
    if bar.value is None or not scale.holds(bar.value):
        return
    place = scale.cell(bar.value, cells)
    ends = [scale.cell(end, cells) for end in (bar.low, bar.high) if end is not None and scale.holds(end)]
    low, high = ends if len(ends) == 2 else (place, place)
    if bar.parts and not scale.is_log:
        _draw_parts(canvas, row, bar, scale, ink)
    elif sketch.has_zero and not scale.is_log:
        begin = scale.cell(0.0, cells)
        end = low if low < high >= place else round(scale.place(bar.value) * cells)
        write_on(canvas, begin, row, "█" * max(end - begin, 0), ink.code(0))
    if high > low:
        write_on(canvas, low, row, f"├{'─' * (high - low - 1)}┤", None)
    if ends or scale.is_log or not sketch.has_zero:
        write_on(canvas, place, row, "●", None)


def _draw_parts(canvas: Canvas, row: int, bar: Bar, scale: Scale, ink: Ink) -> None:
    added, begin = 0.0, scale.cell(0.0, canvas.width)
    for index, part in enumerate(bar.parts):
        added += part
        end = min(round(scale.place(added) * canvas.width), canvas.width)
        if end > begin:
            write_on(canvas, begin, row, PATTERNS[index % len(PATTERNS)] * (end - begin), ink.code(index))
            begin = end
