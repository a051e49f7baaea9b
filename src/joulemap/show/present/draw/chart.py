"""Draw charts: points, intervals and lines between two axes, with a letter for each name in the key."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from plotille import Canvas

from joulemap.show.present.draw.ink import LETTERS, Ink, begin_canvas, lay_out_items, read_lines, write_on
from joulemap.show.present.draw.scale import Scale, draw_side, draw_ticks, find_scale
from joulemap.show.present.sketch import PICK, POINT, Axis, Chart, Curve, Point

LEAST_CANVAS: Final = 24
"""Minimum width of a chart's canvas in cells, even if the page is narrower."""

EMPTY: Final = f" {POINT}"
"""Characters that a label may cover."""

TOLD: Final = f"{PICK}○"
"""Marks of points that a label beside them would name."""

BRAILLE: Final = "\u2800"
"""First of the characters that lines are made of."""

ESCAPE: Final = re.compile("\x1b[^m]*m")
"""Escape sequence of a colour."""

LABELLED: Final = ((-1, -1), (-1, 0), (1, 0), (1, 1), (-1, 1), (1, -1))
"""Sides (across, up) of a point that are tried for its label; a front bends towards the lower left, which is empty."""

BESIDE: Final = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
"""Offsets (columns, rows) tried for a letter. If all cells are taken, the key states which letter hides this one."""


def draw_chart(sketch: Chart, width: int, rows: int, ink: Ink) -> str:
    """Draw a chart of `rows` lines plus axes and key; lines have at most `width` characters.

    A canvas is at least `LEAST_CANVAS` wide, even if lines become longer.
    """
    points = [point for curve in sketch.curves for point in curve.places]
    x = find_scale((point.x for point in points), sketch.x)
    y = find_scale((point.y for point in points), sketch.y)
    side = draw_side(y, sketch.y, rows)
    indent = len(side[0])
    cells = max(width - indent, LEAST_CANVAS)
    canvas = begin_canvas(cells, rows)
    named = [curve for curve in sketch.curves if curve.name or curve.labels]
    lettered = dict(zip((id(curve) for curve in named if not curve.labels), LETTERS, strict=False))
    order = {id(curve): index for index, curve in enumerate(named)}
    colours = {own: ink.code(index) for own, index in order.items()}
    for curve in sketch.curves:
        _draw_lines(canvas, curve, x, y, colours.get(id(curve)))
    for curve in sketch.curves:
        if id(curve) not in lettered and curve.has_points:
            for column, row in _cells(curve, x, y, canvas):
                write_on(canvas, column, row, curve.mark, colours.get(id(curve)))
    _draw_labels(canvas, sketch, x, y, colours)
    hidden = _draw_letters(canvas, sketch, lettered, x, y, ink, order)
    key = [
        (letter, curve.name + (f" (under {hidden[letter]})" if letter in hidden else ""))
        for curve in named
        if (letter := lettered.get(id(curve)))
    ]
    heads, below = [sketch.title, _label_axis(sketch.y, y)], _label_axis(sketch.x, x)
    if not sketch.title:
        heads, below = [f"{sketch.y.label} over {below}"], ""
    rest = sum(not curve.labels for curve in named) - len(key)
    return "\n".join(
        [
            *(line for text in heads for line in textwrap.wrap(text, width)),
            *(f"{left}{line}".rstrip() for left, line in zip(side, read_lines(canvas), strict=True)),
            *draw_ticks(x, sketch.x, cells, indent),
            *(line.rjust(indent + cells) for line in textwrap.wrap(below, width)),
            *lay_out_items(key, ink, width),
            *((f"{rest:,} more are {POINT}",) if rest > 0 else ()),
            *(line for note in sketch.notes for line in textwrap.wrap(note, width)),
        ]
    )


def _label_axis(axis: Axis, scale: Scale) -> str:
    return f"{axis.label}, log axis" if scale.is_log else axis.label  # ticks have the unit, with a prefix


def _draw_lines(canvas: Canvas, curve: Curve, x: Scale, y: Scale, colour: int | None) -> None:
    """Draw the lines of a curve."""
    for line in (curve.points if curve.is_line else (), curve.roof):
        places = [_locate(point.x, point.y, x, y, canvas) for point in line if _holds(point, x, y)]
        for one, other in pairwise(places):
            canvas.line(*one, *other, color=colour)


def _draw_labels(canvas: Canvas, sketch: Chart, x: Scale, y: Scale, colours: dict[int, int | None]) -> None:
    """Draw each label at the side of its point where it covers least of what is drawn."""
    for curve in (one for one in sketch.curves if one.labels):
        for place, (column, row) in enumerate(_cells(curve, x, y, canvas)):
            drawn = [ESCAPE.sub("", line).ljust(canvas.width) for line in reversed(read_lines(canvas))]
            sides = [
                (text, column + 2 if across > 0 else column - 1 - len(text), row + up)
                for text in (curve.labels if place == 0 else curve.labels[-1:])
                for across, up in LABELLED
            ]
            covered = {
                (text, begin, line): sum(
                    _weigh(cell)
                    for place, cell in enumerate(drawn[line])
                    if begin - 2 <= place < begin + len(text) + 2 and (place, line) != (column, row)
                )
                for text, begin, line in sides
                if 0 <= begin <= canvas.width - len(text) and 0 <= line < canvas.height
            }
            for text, begin, line in sorted(covered, key=covered.__getitem__)[:1]:
                write_on(canvas, begin, line, text, colours[id(curve)])


def _weigh(cell: str) -> int:
    """Return how bad it is to draw a label over a cell or beside it: letters, and points of others, which would seem to
    have the label, are worse than lines.
    """
    return len(LABELLED) * (cell.isalnum() or cell in TOLD) + (cell not in EMPTY) + (cell > BRAILLE)


def _draw_letters(
    canvas: Canvas, sketch: Chart, lettered: dict[int, str], x: Scale, y: Scale, ink: Ink, order: dict[int, int]
) -> dict[str, str]:
    """Draw the letter of each named point; return hidden letter -> letter that hides it."""
    taken: dict[tuple[int, int], str] = {}
    hidden: dict[str, str] = {}
    for curve in sketch.curves:
        letter = lettered.get(id(curve))
        if letter is None or not curve.has_points:
            continue
        is_seen = False
        first = ""
        for column, row in _cells(curve, x, y, canvas):
            first = first or taken.get((column, row), "")
            steps = BESIDE if len(curve.points) == 1 else BESIDE[:1]
            free = next(
                (
                    (column + across, row + up)
                    for across, up in steps
                    if (column + across, row + up) not in taken
                    and 0 <= column + across < canvas.width
                    and 0 <= row + up < canvas.height
                ),
                None,
            )
            if free is not None:
                taken[free] = letter
                write_on(canvas, *free, letter, ink.code(order[id(curve)]))
                is_seen = True
        if not is_seen and first:
            hidden[letter] = first
    return hidden


def _holds(point: Point, x: Scale, y: Scale) -> bool:
    return x.holds(point.x) and y.holds(point.y)


def _locate(x: float, y: float, x_scale: Scale, y_scale: Scale, canvas: Canvas) -> tuple[float, float]:
    """Return the cell coordinates of a point, clipped to the canvas."""
    return (
        min(max(x_scale.locate(x), 0.0), 0.999) * canvas.width,
        min(max(y_scale.locate(y), 0.0), 0.999) * canvas.height,
    )


def _cells(curve: Curve, x: Scale, y: Scale, canvas: Canvas) -> Iterator[tuple[int, int]]:
    for point in curve.points:
        if _holds(point, x, y):
            yield x.cell(point.x, canvas.width), y.cell(point.y, canvas.height)
