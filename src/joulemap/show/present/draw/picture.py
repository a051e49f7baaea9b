"""Draw the pictures of a table: intervals, differences, shares and trends, as wide as their column."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, pairwise
from typing import Final

from joulemap.show.present.draw.scale import Scale, find_scale, show_tick
from joulemap.show.present.palette import HUES, begin_colour
from joulemap.show.present.picture import KEY_GAP, Marks, Picture
from joulemap.show.present.sketch import Axis
from joulemap.show.present.text import END, HARD_SPACE, wrap
from joulemap.system.record import frozen

EIGHTHS: Final = " ▏▎▍▌▋▊▉"
"""Ends of a bar, in eighths of a cell."""

BESIDE: Final = "unknown"
"""Colour beside a value: the ends of its interval, and what came before it."""

STEPS: Final = "▁▂▃▄▅▆▇█"
"""Heights of a trend."""

MARK: Final = "┊"
"""Mark in bars at a value."""

FILLS: Final = "█▓▒░#="
"""Fill of each part of a stack, which also tells parts apart without colours."""

PARTS: Final = tuple(zip(FILLS, HUES, strict=False))
"""Fill and colour of each part of a stack."""


@frozen(kw_only=True)
class Drawn:
    """Lines of a picture: heading, rule and one line per row; spaces at the ends are omitted."""

    heading: str
    rule: str
    rows: tuple[str, ...]


Paint = Callable[[str, str], str]
"""Function that paints a text, given the name of a colour."""


def draw_picture(picture: Picture, width: int, *, best: Collection[int] = (), has_colour: bool = False) -> Drawn:
    """Draw a picture; `best` are the rows that have the best value, or tie with it."""

    def paint(text: str, colour: str) -> str:
        return f"{begin_colour(colour)}{text}{END}" if has_colour and text.strip() else text

    return DRAW[picture.kind](picture, width, frozenset(best), paint)


def _draw_intervals(picture: Picture, width: int, best: frozenset[int], paint: Paint) -> Drawn:
    """Draw `├─●─┤` per row on a logarithmic axis."""
    axis = Axis(label="", unit=picture.unit, is_log=True)
    scale = find_scale(picture.bounds, axis)
    heading, ticks = place_ticks(scale, axis, width)

    def draw(index: int, row: Marks) -> str:
        if not row:
            return ""
        first, middle, last = (scale.cell(one, width) for one in row)
        before = f"├{'─' * (middle - first - 1)}" if first < middle else ""
        after = f"{'─' * (last - middle - 1)}┤" if middle < last else ""
        dot = paint("●", "better") if index in best else "●"
        return f"{' ' * first}{paint(before, BESIDE)}{dot}{paint(after, BESIDE)}"

    rule = "".join("+" if cell in ticks else "-" for cell in range(width))
    return Drawn(heading=heading, rule=rule, rows=tuple(draw(*one) for one in enumerate(picture.rows)))


def place_ticks(scale: Scale, axis: Axis, cells: int) -> tuple[str, frozenset[int]]:
    """Return a line with as many tick labels as fit without touching, and the cells of their ticks."""
    for most in range(max(2, cells // 4), 1, -1):
        labels = _place_labels(scale, axis, cells, scale.ticks(most), 0)
        if labels:
            return labels
    middle = (scale.low * scale.high) ** 0.5 if scale.is_log else (scale.low + scale.high) / 2.0
    nearest = sorted(scale.ticks(2), key=lambda one: abs(scale.locate(one) - scale.locate(middle)))
    drawn = (_place_labels(scale, axis, cells, [one], cells) for one in nearest)
    return next((one for one in drawn if one is not None), ("", frozenset()))


def _place_labels(
    scale: Scale, axis: Axis, cells: int, ticks: Sequence[float], most_shift: int
) -> tuple[str, frozenset[int]] | None:
    """Return the labels over their ticks; None if two touch, or one moves more than `most_shift` to stay inside."""
    line, places = "", []
    for tick in ticks:
        text, cell = show_tick(tick, axis.unit), scale.cell(tick, cells)
        wanted = cell - len(text) // 2
        begin = max(0, min(wanted, cells - len(text)))
        if begin < len(line) + bool(line) or abs(begin - wanted) > max(most_shift, len(text) // 2):
            return None
        line += " " * (begin - len(line)) + text
        places.append(cell)
    return (line, frozenset(places)) if ticks and len(line) <= cells else None


def _draw_differences(picture: Picture, width: int, _best: frozenset[int], paint: Paint) -> Drawn:
    """Draw a bar left or right of zero per row."""
    low, high = (min(picture.bounds[0], 0.0), max(picture.bounds[1], 0.0))
    span = high - low or 1.0
    left = min(max(round(-low / span * (width - 1)), low < 0.0), width - 1 - (high > 0.0))
    right = width - 1 - left
    kinds = name_kinds(picture)

    def draw(row: Marks) -> str:
        if not row:
            return f"{' ' * left}│"
        (value,) = row
        if value < 0.0:
            bar = "█" * round(value / low * left)
            return f"{' ' * (left - len(bar))}{paint(bar, kinds[0])}│"
        return f"{' ' * left}│{paint(_draw_bar(value, high, right), kinds[1])}".rstrip()

    is_left = -low > high
    heading = _fit_heading(picture.left if is_left and picture.left else picture.heading, width)
    begin = max(0, left - len(heading)) if is_left and picture.left else min(left + 1, width - len(heading))
    rule = "".join("+" if cell == left else "-" for cell in range(width))
    return Drawn(heading=" " * begin + heading, rule=rule, rows=tuple(map(draw, picture.rows)))


def name_kinds(picture: Picture) -> tuple[str, str]:
    """Return the names of the colours of negative and positive differences."""
    return ("worse", "better") if picture.is_gain else ("better", "worse")


def _fit_heading(heading: str, width: int) -> str:
    return heading if len(heading) <= width else f"{heading[: width - 1]}…"


def _draw_shares(picture: Picture, width: int, best: frozenset[int], paint: Paint) -> Drawn:
    """Draw a bar from zero per row; the largest, or the mark, fills the width."""
    most = max(picture.bounds[1], picture.mark or 0.0)
    cell = None if picture.mark is None else min(int(picture.mark / most * width), width - 1)

    def draw(index: int, row: Marks) -> str:
        bar = _draw_bar(row[0], most, width) if row else ""
        pieces = (bar,) if cell is None else (bar[:cell].ljust(cell), bar[cell + 1 :])
        return MARK.join(paint(one, "better") if index in best else one for one in pieces)

    rows = tuple(draw(*one) for one in enumerate(picture.rows))
    return Drawn(heading=_fit_heading(picture.heading, width), rule="-" * width, rows=rows)


def _draw_cumulative(picture: Picture, width: int, _best: frozenset[int], paint: Paint) -> Drawn:
    """Draw a bar from zero to one per row: what came before in light, what the row adds in dark."""

    def draw(row: Marks) -> str:
        if not row:
            return ""
        begin, end = (min(max(round(one * width), 0), width) for one in row)
        return f"{paint('░' * begin, BESIDE)}{'█' * (end - begin)}"

    heading = _fit_heading(picture.heading, width)
    return Drawn(heading=heading, rule="-" * width, rows=tuple(map(draw, picture.rows)))


def _draw_trends(picture: Picture, width: int, _best: frozenset[int], _paint: Paint) -> Drawn:
    """Draw a column per number; all rows share the logarithmic heights, from the least to the largest number."""
    low, high = map(math.log, picture.bounds)

    def draw(row: Marks) -> str:
        shares = [(math.log(one) - low) / (high - low) if high > low else 0.0 for one in row]
        return "".join(STEPS[round(share * (len(STEPS) - 1))] for share in shares)

    return Drawn(heading=_fit_heading(picture.heading, width), rule="-" * width, rows=tuple(map(draw, picture.rows)))


def _draw_stacks(picture: Picture, width: int, _best: frozenset[int], paint: Paint) -> Drawn:
    """Draw the parts of each row one after another; the longest row fills the width, and the heading is the key."""
    most = max(map(sum, picture.rows))

    def draw(row: Marks) -> str:
        ends = pairwise([0, *(round(end / most * width) for end in accumulate(row))])
        parts = zip(PARTS, ends, strict=False)
        return "".join(paint(fill * (end - begin), colour) for (fill, colour), (begin, end) in parts)

    key = list(zip(PARTS, picture.parts, strict=False))
    heading = wrap(KEY_GAP.join(f"{fill} {name}".replace(" ", HARD_SPACE) for (fill, _), name in key), width)
    for (fill, colour), _ in key:
        heading = heading.replace(fill, paint(fill, colour))
    return Drawn(heading=heading, rule="-" * width, rows=tuple(map(draw, picture.rows)))


def _draw_bar(value: float, most: float, width: int) -> str:
    """Return a bar from zero in eighths of a cell; the value `most` fills the width."""
    whole, rest = divmod(round(max(value, 0.0) / most * width * 8) if most > 0.0 else 0, 8)
    return ("█" * whole + EIGHTHS[rest].strip())[:width]


DRAW: Final[dict[str, Callable[[Picture, int, frozenset[int], Paint], Drawn]]] = {
    "interval": _draw_intervals,
    "difference": _draw_differences,
    "share": _draw_shares,
    "cumulative": _draw_cumulative,
    "trend": _draw_trends,
    "stack": _draw_stacks,
}
