"""Draw sketches as text: bars, heat maps and charts."""

from __future__ import annotations

import textwrap
from typing import Final

from plotille import Canvas

from joulemap.show.present.draw.chart import draw_chart
from joulemap.show.present.draw.ink import (
    LETTERS,
    PATTERNS,
    Ink,
    begin_canvas,
    lay_out_items,
    read_lines,
    shorten,
    write_on,
)
from joulemap.show.present.draw.scale import Scale, draw_ticks, find_scale, show_tick
from joulemap.show.present.format import Page
from joulemap.show.present.sketch import Bar, Bars, Chart, Heat, Sketch

SHADES: Final = ((1.0 + 1e-9, "█"), (1.25, "▓"), (2.0, "▒"), (5.0, "░"))
"""Shades of a heat map, each with the maximum ratio to the best value."""

FAR: Final = "·"

BEST: Final = ("better",)
"""Colour of the best cell of a row."""

LEGEND: Final = "*█ best of its row, ▓ up to 1.25x, ▒ up to 2x, ░ up to 5x, · more, - none"


LEAST_LABEL: Final = 8

GAP: Final = 2
"""Spaces between columns; one if two do not fit."""

WIDEST: Final = "*█ 1.25x"
"""Example of the widest possible cell of a heat map that states its ratio."""


def draw_heat(sketch: Heat, width: int, ink: Ink) -> str:
    """Draw a heat map in lines of at most `width` characters; ratios, then columns, are omitted if they do not fit."""
    note_width = max((len(row.note) for row in sketch.rows), default=0)
    label_width = min(max(len(row.label) for row in sketch.rows), max(int(width * MOST_LABEL), LEAST_LABEL))
    room = width - label_width
    count = len(sketch.columns)
    wide = [max(len(name), len(WIDEST)) for name in sketch.columns]
    has_names = _fits(wide, room, GAP)
    sizes = wide if has_names else [len(WIDEST)] * count
    has_ratios = has_names or _fits(sizes, room, GAP)
    if not has_ratios:
        sizes = [len(FAR * 2)] * count
    gap = GAP if has_ratios or _fits(sizes, room, GAP) else 1
    shown = count
    while shown > 1 and not _fits(sizes[:shown], room, gap):
        shown -= 1
    has_note = note_width and _fits([*sizes[:shown], note_width], room, gap)
    heads = sketch.columns if has_names else LETTERS[:count]
    between = " " * gap
    first = [" " * label_width, *(head.ljust(size) for head, size in zip(heads[:shown], sizes, strict=False))]
    lines = [between.join(first)]
    for row in sketch.rows:
        cells = [
            _cell(ratio, has_ratios=has_ratios, size=size, ink=ink)
            for ratio, size in zip(row.ratios[:shown], sizes, strict=False)
        ]
        label = shorten(row.label, label_width).ljust(label_width)
        lines.append(between.join([label, *cells, *((row.note,) if has_note else ())]))
    hidden = len(sizes) - shown
    key = [] if has_names else list(zip(LETTERS, sketch.columns[:shown], strict=False))
    legend = (LEGEND, *((f"{hidden} more columns do not fit; json has all",) if hidden else ()), *sketch.notes)
    return "\n".join(
        [
            *textwrap.wrap(sketch.title, width),
            *(line.rstrip() for line in lines),
            *lay_out_items(key, Ink(has_colour=False), width),
            *(line for note in legend for line in textwrap.wrap(note, width)),
        ]
    )


def _fits(sizes: list[int], room: int, gap: int) -> bool:
    return sum(sizes) + gap * len(sizes) <= room


def _cell(ratio: float | None, *, has_ratios: bool, size: int, ink: Ink) -> str:
    if ratio is None:
        return "-".ljust(size)
    level, shade = next(((level, shade) for level, (most, shade) in enumerate(SHADES) if ratio <= most), (4, FAR))
    star = "*" if level == 0 else shade
    text = f"{star}{shade}"
    shown = f"{text} {_show_ratio(ratio)}" if has_ratios else text
    padding = " " * (size - len(shown))
    return Ink(has_colour=ink.has_colour, colours=BEST).paint(shown, 0) + padding if level == 0 else shown + padding


def _show_ratio(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 1000.0 else f"{ratio:.0e}x".replace("e+0", "e")


LEAST_CANVAS: Final = 16
"""Minimum width of the bars' canvas in cells, even if the page is narrower."""

MOST_LABEL: Final = 0.4
"""Maximum share of the page width for row labels."""

BELOW: Final = "log axis: equal distances are equal factors"


def draw_bars(sketch: Bars, width: int, ink: Ink) -> str:
    """Draw bars in lines of at most `width` characters."""
    bars, axis = sketch.bars, sketch.axis
    ink = Ink(has_colour=ink.has_colour, colours=sketch.colours)
    values = [bar.text or ("" if bar.value is None else show_tick(bar.value, axis.unit)) for bar in bars]
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high, bar.begin or bar.value)]
    scale = find_scale([*ends, sketch.mark], axis, has_zero=sketch.has_zero)
    value_width = max(map(len, values), default=0)
    most = max(min(int(width * MOST_LABEL), width - value_width - LEAST_CANVAS - 4), 4)
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
    column = scale.cell(bar.value, cells)
    ends = [scale.cell(end, cells) for end in (bar.low, bar.high) if end is not None and scale.holds(end)]
    low, high = ends if len(ends) == 2 else (column, column)
    is_filled = sketch.has_zero and not scale.is_log
    if is_filled and bar.parts:
        _draw_parts(canvas, row, bar, scale, ink)
    elif is_filled:
        begin = scale.cell(0.0, cells)
        write_on(canvas, begin, row, "█" * max(round(scale.locate(bar.value) * cells) - begin, 0), ink.code(0))
    if high > low:
        write_on(canvas, low, row, "├", None)
        begin = max(column if is_filled else low, low) + 1  # a bar stays visible up to its value
        write_on(canvas, begin, row, f"{'─' * (high - begin)}┤", None)
    if ends or scale.is_log or not sketch.has_zero:
        write_on(canvas, column, row, "●", None)


def _draw_parts(canvas: Canvas, row: int, bar: Bar, scale: Scale, ink: Ink) -> None:
    """Draw the parts of a bar one after another; those of a bar that does not begin at zero fill at least a cell."""
    added, begin = bar.begin, scale.cell(bar.begin, canvas.width)
    for index, part in enumerate(bar.parts):
        if not part:
            continue
        added += part
        end = min(round(scale.locate(added) * canvas.width), canvas.width)
        end = max(end, begin + 1) if bar.begin else end
        if end > begin:
            write_on(canvas, begin, row, PATTERNS[index % len(PATTERNS)] * (end - begin), ink.code(index))
            begin = end


WIDTH: Final = 80
"""Width of a sketch, in characters, if there is no terminal."""

LEAST_WIDTH: Final = 40

ROWS: Final = 16
"""Height of a chart's canvas, in lines, if the terminal's height is unknown."""

LEAST_ROWS: Final = 8
MOST_ROWS: Final = 30

AROUND: Final = 10
"""Terminal lines reserved for a chart's title, axes and key."""


def draw_sketch(sketch: Sketch, page: Page) -> str:
    """Draw a sketch as wide as a page; a chart is as high as the lines around it allow.

    Returns an empty text if there is nothing to draw.
    """
    if not sketch.texts:
        return ""
    ink = Ink(has_colour=page.has_colour)
    width = WIDTH if page.width is None else max(page.width, LEAST_WIDTH)
    if isinstance(sketch, Bars):
        return draw_bars(sketch, width, ink)
    if isinstance(sketch, Chart):
        rows = ROWS if page.height is None else min(max(page.height - AROUND, LEAST_ROWS), MOST_ROWS)
        return draw_chart(sketch, width, sketch.rows or rows, ink)
    return draw_heat(sketch, width, ink)
