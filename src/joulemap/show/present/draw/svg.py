"""Draw the pictures of a table as SVG, one small image per row, for pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import accumulate, pairwise
from typing import Final

from joulemap.show.present.draw.picture import PARTS, place_ticks
from joulemap.show.present.draw.scale import Scale, find_scale, show_tick
from joulemap.show.present.picture import KEY_GAP, Marks, Picture
from joulemap.show.present.sketch import Axis
from joulemap.system.frame import escape
from joulemap.system.record import frozen

WIDTH: Final = 168
"""Width of an image in pixels."""

HEIGHT: Final = 16
"""Height of an image in pixels."""

MARGIN: Final = 5.0
"""Pixels at each end of an axis, so that a dot at an end is whole."""

CELLS: Final = 24
"""Characters of a line of tick labels, which decide how many labels fit above an image."""


LETTER: Final = 7.0
"""Width of a character of a tick label in pixels, at most."""

FAINTER: Final = 0.6
"""Opacity of each part of a stack relative to the part before it."""


@frozen(kw_only=True)
class Images:
    """Images of a picture: the heading, which is an axis or a text, and one image per row, empty without numbers."""

    heading: str
    rows: tuple[str, ...]


def draw_images(picture: Picture, *, best: Collection[int] = ()) -> Images:
    """Draw a picture as SVG; `best` are the rows that have the best value, or tie with it.

    Colours are classes: `best`, `more`, `less` and `faint`, so that a page decides them for light and dark themes.
    """
    rows = (DRAW[picture.kind](picture, index in best, row) if row else "" for index, row in enumerate(picture.rows))
    return Images(heading=_draw_heading(picture), rows=tuple(_frame(one) if one else "" for one in rows))


def _frame(inside: str) -> str:
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true" '
        f'fill="currentColor">{inside}</svg>'
    )


def _draw_heading(picture: Picture) -> str:
    if picture.kind == "difference":
        is_left = picture.left and -picture.bounds[0] > picture.bounds[1]
        return escape(picture.left if is_left else picture.heading)
    if picture.kind == "stack":
        return escape(KEY_GAP.join(f"{fill} {name}" for (fill, _), name in zip(PARTS, picture.parts, strict=False)))
    if picture.kind != "interval":
        return escape(picture.heading)
    axis = Axis(label="", unit=picture.unit, is_log=True)
    scale = find_scale(picture.bounds, axis)
    shown = place_ticks(scale, axis, CELLS)[1]
    ticks = [one for one in scale.ticks(CELLS // 4) if scale.cell(one, CELLS) in shown] or scale.ticks(2)[:1]
    return _frame(
        "".join(
            f'<text x="{_inside(_across(scale, tick), text):.1f}" y="12" font-size="11" text-anchor="middle">'
            f"{escape(text)}</text>"
            for tick in ticks
            for text in [show_tick(tick, picture.unit)]
        )
    )


def _across(scale: Scale, value: float) -> float:
    return MARGIN + scale.locate(value) * (WIDTH - 2.0 * MARGIN)


def _inside(across: float, text: str) -> float:
    """Return the middle of a tick label, moved so that the label is whole."""
    half = len(text) * LETTER / 2.0
    return min(max(across, half), WIDTH - half)


def _draw_interval(picture: Picture, is_best: bool, row: Marks) -> str:
    """Draw the ends of an interval with a dot at the value, on a logarithmic axis."""
    scale = find_scale(picture.bounds, Axis(label="", unit=picture.unit, is_log=True))
    low, middle, high = (_across(scale, one) for one in row)
    kind = ' class="best"' if is_best else ""
    return (
        f'<path class="faint" stroke="currentColor" stroke-width="1.5" fill="none" '
        f'd="M{low:.1f} 4v8M{low:.1f} 8H{high:.1f}M{high:.1f} 4v8"/><circle{kind} cx="{middle:.1f}" cy="8" r="4"/>'
    )


def _draw_difference(picture: Picture, _is_best: bool, row: Marks) -> str:
    """Draw a bar left or right of zero."""
    low, high = min(picture.bounds[0], 0.0), max(picture.bounds[1], 0.0)
    zero = -low / ((high - low) or 1.0) * WIDTH
    length = abs(row[0]) / ((high - low) or 1.0) * WIDTH
    is_more = (row[0] > 0.0) == (high >= -low)
    begin = zero if row[0] > 0.0 else zero - length
    return (
        f'<rect class="{"more" if is_more else "less"}" x="{begin:.1f}" y="3" width="{length:.1f}" height="10"/>'
        f'<path stroke="currentColor" d="M{min(max(zero, 0.5), WIDTH - 0.5):.1f} 0v{HEIGHT}"/>'
    )


def _draw_share(picture: Picture, is_best: bool, row: Marks) -> str:
    """Draw a bar from zero; the largest, or the mark, fills the width."""
    most = max(picture.bounds[1], picture.mark or 0.0) or 1.0
    length, mark = max(row[0], 0.0) / most * WIDTH, (picture.mark or 0.0) / most * WIDTH
    line = f'<path stroke="currentColor" stroke-dasharray="2" d="M{mark:.1f} 0v{HEIGHT}"/>' if mark else ""
    return f'<rect class="{"best" if is_best else "bar"}" y="3" width="{length:.1f}" height="10"/>{line}'


def _draw_cumulative(_picture: Picture, _is_best: bool, row: Marks) -> str:
    """Draw a bar from zero to one: what came before in a faint colour, then what the row adds."""
    begin, end = (min(max(one, 0.0), 1.0) * WIDTH for one in row)
    return (
        f'<rect class="faint" y="3" width="{begin:.1f}" height="10" opacity="0.3"/>'
        f'<rect class="bar" x="{begin:.1f}" y="3" width="{end - begin:.1f}" height="10"/>'
    )


def _draw_trend(picture: Picture, is_best: bool, row: Marks) -> str:
    """Draw a column per number; all rows share the logarithmic heights."""
    low, high = map(math.log, picture.bounds)
    count = max(map(len, picture.rows))
    step = min(WIDTH / count, 14.0)
    heights = (2.0 + 13.0 * ((math.log(one) - low) / (high - low) if high > low else 0.0) for one in row)
    kind = "best" if is_best else "bar"
    return "".join(
        f'<rect class="{kind}" x="{index * step:.1f}" y="{HEIGHT - height:.1f}" width="{step - 2.0:.1f}" '
        f'height="{height:.1f}"/>'
        for index, height in enumerate(heights)
    )


def _draw_stack(picture: Picture, _is_best: bool, row: Marks) -> str:
    """Draw the parts of a bar one after another, each fainter than the one before; the longest row fills the width."""
    most = max(map(sum, picture.rows))
    ends = pairwise(end / most * WIDTH for end in accumulate(row, initial=0.0))
    return "".join(
        f'<rect class="bar" x="{begin:.1f}" y="3" width="{end - begin:.1f}" height="10" '
        f'opacity="{FAINTER**index:.2f}"/>'
        for index, (begin, end) in enumerate(ends)
    )


DRAW: Final[dict[str, Callable[[Picture, bool, Marks], str]]] = {
    "interval": _draw_interval,
    "difference": _draw_difference,
    "share": _draw_share,
    "cumulative": _draw_cumulative,
    "trend": _draw_trend,
    "stack": _draw_stack,
}
