"""Figures in characters: bars, charts and heat maps of rows, as the `sketch` of a specification declares them.

A declaration has a kind and the keyword arguments of the function below that makes it. Its texts are names of columns,
except in labels and titles: there `{column}` is the row's value formatted as in a table, and `{column:unit}` the same
value formatted as on an axis.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from joulemap.domain.table import HARDWARE_COLUMNS, Column, group
from joulemap.show.figure.figure import NO_TEXTS, Drawing, Figure
from joulemap.show.present.cell import mark_projected, show_in, show_share
from joulemap.show.present.draw.scale import show_tick
from joulemap.show.present.palette import PAGE, THEMES
from joulemap.show.present.sketch import (
    INTERVAL,
    PICK,
    POINT,
    Axis,
    Bar,
    Bars,
    Chart,
    Curve,
    Heat,
    HeatRow,
    Point,
    Sketch,
    cut_bars,
)
from joulemap.system.errors import UnknownNameError
from joulemap.system.name import PROJECTED
from joulemap.system.record import frozen

MOST_EACH: Final = 4
"""Maximum number of sketches from a declaration with `each`, which makes one for every value of a column."""

MOST_PARTS: Final = 9
"""Maximum number of parts in stacked bars if the rows determine the parts; the smallest parts are merged."""

BEYOND: Final = 2.0
"""Factor by which a roofline extends beyond the points under it, and a chart of a front beyond the front."""

MOST_LABELS: Final = 4
"""Maximum curves with labels at their points; more have letters and a key."""

STANDINGS: Final = {"front": "○", "projection": PROJECTED}
"""Status of a configuration -> mark of its point; others have the mark of points that are not named."""


@frozen
class Cell:
    """Value of one column in a row; formats itself for labels and titles."""

    column: Column
    value: Any
    projected: frozenset[str]

    def __format__(self, unit: str) -> str:
        if unit and self.value is not None:
            return show_tick(self.value, unit)
        if self.value and (self.column.name in HARDWARE_COLUMNS or self.column.name == "label"):
            return mark_projected(self.value, self.projected)
        return show_in(self.column, self.value)


Row = Mapping[str, Cell]
Rows = Sequence[Row]
Stacked = tuple[Row, float | None, tuple[float, ...]]
"""(row, total value, values of its parts) for a stacked bar."""
Placed = tuple[Row, Any, Any]
"""(row, x, y) for a point of a chart."""


def make_sketches(drawing: Drawing, most: int, projected: frozenset[str]) -> Iterator[Sketch]:
    """Yield the sketches of a drawing. `most` limits the rows of each; hardware in `projected` is marked with `~`."""
    table = drawing.table
    rows = [
        {column.name: Cell(column, value, projected) for column, value in zip(table.columns, cells, strict=True)}
        for cells in table.cells
    ]
    for declared in drawing.sketch:
        keywords = {"each": "", "where": (), **declared}
        make, each, where = KINDS[keywords.pop("kind")], keywords.pop("each"), keywords.pop("where")
        chosen = [row for row in rows if all(row[name].value for name in where)]
        groups = _split(chosen, each) if each else [chosen]
        for part in groups[:MOST_EACH]:
            if part:
                title = keywords["title"].format_map(part[0])
                filled = {**keywords, "title": title[:1].upper() + title[1:]}
                if "noun" in filled:  # only sketches with a noun can be cut
                    filled["most"] = min(most, filled.get("most", most))
                yield make(part, **filled)


TEXT_WIDTH: Final = 100
"""Characters per line of a figure that replaces an image."""

TEXT_ROWS: Final = 40
"""Maximum rows of a figure that replaces an image."""


def draw_text(drawing: Drawing) -> str:
    """Return a drawing in characters; empty if it has no sketch. It replaces images if vl-convert is not installed."""
    from joulemap.show.present.draw.sketch import draw_sketch
    from joulemap.show.present.format import Page

    page = Page(TEXT_WIDTH)
    drawn = (draw_sketch(sketch, page) for sketch in make_sketches(drawing, TEXT_ROWS, drawing.projected))
    return "\n\n".join(filter(None, drawn))


LINE_HEIGHT: Final = 16
"""Pixels per line of a figure in characters."""

CHARACTER_WIDTH: Final = 7.3
"""Pixels per character of the monospaced font at `FONT_SIZE`."""

FONT_SIZE: Final = 12
"""Size of the monospaced font in pixels."""


def draw_text_svg(figure: Figure, theme: str = "light") -> str:
    """Draw a figure in characters as SVG, without vl-convert; UnknownNameError for an unknown theme."""
    if theme not in THEMES:
        raise UnknownNameError("theme", theme, THEMES)
    lines = [figure.title, "", *draw_text(figure).splitlines()]
    width, height = (max(map(len, lines)) + 2) * CHARACTER_WIDTH, (len(lines) + 1) * LINE_HEIGHT
    ink, page = (PAGE[theme][name] for name in ("ink", "page"))
    rows = "".join(
        f'<text x="{CHARACTER_WIDTH:g}" y="{(index + 1) * LINE_HEIGHT}">{html.escape(line)}</text>'
        for index, line in enumerate(lines)
        if line
    )
    label = html.escape(f"{figure.title}. {figure.description}")
    size = f'width="{width:.0f}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
        f'<title>{html.escape(figure.title)}</title><rect width="100%" height="100%" fill="{page}"/>'
        f'<g fill="{ink}" font-family="monospace" font-size="{FONT_SIZE}" xml:space="preserve">{rows}</g></svg>'
    )


def make_bars(
    rows: Rows,
    *,
    title: str,
    most: int,
    noun: str,
    label: str,
    value: str,
    axis: Mapping[str, Any],
    per: str = "",
    half_width: str = "",
    ends: Sequence[str] = (),
    interval: str = INTERVAL,
    parts: Mapping[str, str] = NO_TEXTS,
    part: str = "",
    group: str = "",
    order: Literal["", "value"] = "",
    text: str = "",
    has_share: bool = False,
    has_zero: bool = True,
    mark: str | float | None = None,
) -> Bars:
    """Return a bar for each row, the largest first if `order` is `value`. A bar of an unsupported configuration is
    empty.

    The value is that of the column `value`, divided by the column `per`. Its interval comes from the column
    `half_width` (of the logarithm) or from the columns `ends`. `parts` maps columns that add up to the value to names.
    Without `parts`, rows with an equal `group` may form one bar, with a part for each `part`. `text` replaces the
    number, and `mark` is a reference value. `has_share` adds the share of omitted bars to the note.
    """
    names: tuple[str, ...] = tuple(parts.values())
    stacks: list[Stacked] = [
        (row, _read(row, value, per), tuple(row[name].value or 0.0 for name in parts)) for row in rows
    ]
    if part:
        names, stacks = _stack(rows, part, group, value)
    bars = []
    for row, amount, amounts in stacks:
        low, high = _find_ends(row, amount, half_width, *ends)
        is_refused = amount is None and "status" in row and row["status"].value != "ok"
        caption = "unsupported" if is_refused else text.format_map(row)
        name = label.format_map(row).strip()
        bars.append(Bar(label=name, value=amount, low=low, high=high, parts=amounts, text=caption))
    if order:
        bars.sort(key=lambda bar: -(bar.value or 0.0))
    left, whole = (math.fsum(bar.value or 0.0 for bar in some) for some in (bars[most:], bars))
    shown, rest = cut_bars(bars, most, f"{noun}, {show_share(left / whole)} of all" if has_share and whole else noun)
    names, shown = _drop_empty(names, shown)
    return Bars(
        title=title,
        axis=Axis(**axis),
        bars=shown,
        parts=names,
        has_zero=has_zero,
        mark=_find(rows, mark),
        interval=interval,
        notes=rest,
    )


def make_steps(
    rows: Rows,
    *,
    title: str,
    most: int,
    noun: str,
    label: str,
    begin: str,
    end: str,
    text: str,
    is_whole: Mapping[str, Any],
    parts: Mapping[str, str],
    axis: Mapping[str, Any],
) -> Bars:
    """Return the bars of a waterfall, each from the column `begin` to the column `end`.

    `parts` maps the names of whole amounts, which are the rows with the values of `is_whole`, then of rises and falls,
    to their colours.
    """
    bars = []
    for row in rows:
        first, last = (float(row[name].value) for name in (begin, end))
        kind = 0 if all(row[name].value == value for name, value in is_whole.items()) else 1 if last > first else 2
        low, high = min(first, last), max(first, last)
        sizes = tuple(high - low if index == kind else 0.0 for index in range(len(parts)))
        bars.append(Bar(label=label.format_map(row), value=high, begin=low, parts=sizes, text=text.format_map(row)))
    shown, rest = cut_bars(bars, most, noun)
    names, shown = _drop_empty(tuple(parts), shown)
    colours = tuple(parts[name] for name in names)
    return Bars(title=title, axis=Axis(**axis), bars=shown, parts=names, colours=colours, notes=rest)


def _drop_empty(names: tuple[str, ...], bars: Sequence[Bar]) -> tuple[tuple[str, ...], tuple[Bar, ...]]:
    """Return names and bars without the parts that no bar has, so that a key lists only what is drawn."""
    kept = [index for index in range(len(names)) if any(bar.parts[index] for bar in bars if bar.parts)]
    shown = (attrs.evolve(bar, parts=tuple(bar.parts[index] for index in kept if bar.parts)) for bar in bars)
    return tuple(names[index] for index in kept), tuple(shown)


def make_chart(
    rows: Rows,
    *,
    title: str,
    name: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    x_value: str,
    y_value: str,
    y_per: str = "",
    others: str = "others",
    alike: str = "",
    is_line: bool = False,
    is_sum: bool = False,
    named: int | None = None,
    roof: Sequence[str | float] = (),
    has_own_roofs: bool = False,
    notes: Sequence[str] = (),
) -> Chart:
    """Return a chart with a point for each row. Points with the same name form a curve; at most `named` curves have a
    name.

    Rows at one position are merged by adding up the column
    `alike`, the largest sums first. `is_sum` draws all rows as one line from the origin. `roof` has ridge and peak of a
    roofline; rows without x are placed at its end. The roofline is that of the first row, or one for each row with
    `has_own_roofs`.
    """
    ridges = [_find((row,), one) or 1.0 for row in rows for one in roof[:1]]
    known = [*ridges, *(row[x_value].value for row in rows if row[x_value].value)] or [1.0]
    left, right = min(known) / BEYOND, max(known) * BEYOND

    def draw_roof(row: Row) -> tuple[Point, ...]:
        ridge, peak = (_find((row,), one) or 1.0 for one in roof)
        return Point(x=left, y=left * peak / ridge), Point(x=ridge, y=peak), Point(x=right, y=peak)

    placed: list[Placed] = [(row, row[x_value].value, _read(row, y_value, y_per)) for row in rows]
    placed = [(row, right if roof and abscissa is None else abscissa, height) for row, abscissa, height in placed]
    placed = [one for one in placed if one[1] is not None and one[2] is not None]
    curves: dict[str, list[Point]] = {}
    above: dict[str, tuple[Point, ...]] = {}
    tops: dict[Point, str] = {}
    dots: list[Point] = []
    for row, abscissa, height in _join(placed, alike) if alike else placed:
        label, point = name.format_map(row), Point(x=abscissa, y=height)
        if label not in curves and len(curves) == named:
            dots.append(point)
            continue
        curves.setdefault(label, []).append(point)
        if has_own_roofs:
            above[label] = draw_roof(row)
            tops.setdefault(above[label][-1], format(row["hardware"]))
    lines: list[tuple[Point, ...]] = []
    if roof and placed and not has_own_roofs:
        lines.append(draw_roof(rows[0]))
    if is_sum:
        lines.append((Point(x=0.0, y=0.0), *(Point(x=abscissa, y=height) for _, abscissa, height in placed)))
    beside = [] if is_sum else dots
    is_labelled = bool(tops) and len(curves) <= MOST_LABELS
    return Chart(
        title=title,
        x=Axis(**x),
        y=Axis(**y),
        curves=(
            *(Curve(points=one, is_line=True, has_points=False) for one in lines),
            Curve(points=tuple(beside)),
            *(
                Curve(
                    name=label,
                    labels=(label, label.partition(",")[0]) if is_labelled else (),
                    mark=PICK,
                    points=tuple(points),
                    is_line=is_line,
                    roof=above.get(label, ()),
                )
                for label, points in curves.items()
            ),
            *(Curve(points=(top,), labels=(chip,), has_points=False) for top, chip in tops.items() if is_labelled),
        ),
        notes=(*notes, *((f"{POINT} {len(beside):,} {others}",) if beside else ())),
    )


def make_front(
    rows: Rows,
    *,
    title: str,
    name: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    others: str,
) -> Chart:
    """Return a chart of a Pareto front: a line through its rows, labels at those with a `pick`, and marks of the other
    rows, which `others` names, if they are no farther from the front than the factor `BEYOND`.
    """
    places = ((row, float(row["x_value"].value), float(row["y_value"].value)) for row in rows)
    placed = sorted(places, key=lambda one: one[1])
    front = [one for one in placed if one[0]["status"].value == "front"]
    ends = [(min(values) / BEYOND, max(values) * BEYOND) for values in zip(*(one[1:] for one in front), strict=True)]
    near = [one for one in placed if all(low <= at <= high for at, (low, high) in zip(one[1:], ends, strict=True))]
    marked = {mark: [one for one in near if one[0]["status"].value == status] for status, mark in STANDINGS.items()}
    beaten = [one for one in near if one[0]["status"].value not in STANDINGS]
    away, picks = len(placed) - len(near), [one for one in placed if one[0]["pick"].value]
    outside = f", {away:,} more beyond the axes" if away else ""
    notes = [f"{POINT} {len(beaten):,} {others}{outside}"] if beaten else []
    notes += [f"{PROJECTED} {len(marked[PROJECTED]):,} that cannot be bought"] if marked[PROJECTED] else []

    def draw(placed: Iterable[Placed], **more: Any) -> Curve:
        return Curve(points=tuple(Point(x=across, y=up) for _, across, up in placed), **more)

    return Chart(
        title=title,
        x=Axis(**x),
        y=Axis(**y),
        curves=(
            draw(beaten),
            *(draw(some, mark=mark, is_line=mark == STANDINGS["front"]) for mark, some in marked.items()),
            *(draw([one], mark=PICK, labels=(name.format_map(one[0]), one[0]["pick"].value)) for one in picks),
        ),
        notes=("; ".join(notes),) if notes else (),
    )


def make_heat(rows: Rows, *, title: str, most: int, noun: str, row: str, label: str, column: str, ratio: str) -> Heat:
    """Return a heat map: for each value of `row`, the column `ratio` for each value of `column`.

    The first row of a group must be the best. A note names its `column`, or the number of tied ones.
    """
    heads = {one[column].value: format(one[column]) for one in rows}
    groups = _split(rows, row)
    made = []
    for part in groups[:most]:
        ratios = {one[column].value: one[ratio].value for one in part}
        first, count = part[0], part[0]["tied_count"].value
        best = f"{count} alike" if count > 1 else format(first[column])
        made.append(
            HeatRow(
                label=label.format_map(first),
                ratios=tuple(map(ratios.get, heads)),
                note="" if first["value"].value is None else best,
            )
        )
    rest = len(groups) - len(made)
    notes = (f"{rest:,} more {noun}",) if rest else ()
    return Heat(title=title, columns=tuple(heads.values()), rows=tuple(made), notes=notes)


KINDS: Final[Mapping[str, Callable[..., Sketch]]] = {
    "bars": make_bars,
    "steps": make_steps,
    "chart": make_chart,
    "front": make_front,
    "heat": make_heat,
}


def _find(rows: Rows, value: str | float | None) -> float | None:
    """Return a number unchanged; for the name of a column, return the value of the first row."""
    return rows[0][value].value if isinstance(value, str) else value


def _read(row: Row, name: str, per: str = "") -> float | None:
    value: float | None = row[name].value
    return value / float(row[per].value) if per and value is not None else value


def _find_ends(row: Row, value: float | None, half_width: str, *names: str) -> tuple[float | None, float | None]:
    """Return (low, high) of an interval from its half-width or from the columns `names`. The value replaces an unknown
    end.
    """
    ends: list[float | None] = [value if row[name].value is None else row[name].value for name in names]
    if half_width and value is not None and (width := row[half_width].value) is not None:
        ends = [value * math.exp(-width), value * math.exp(width)]
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if known else (None, None)


def _split(rows: Rows, name: str) -> list[Rows]:
    """Group rows by the value of a column, in order of first appearance."""
    return list(group(rows, lambda row: row[name].value).values())


def _stack(rows: Rows, part: str, group: str, value: str) -> tuple[tuple[str, ...], list[Stacked]]:
    """Return the names of the parts, largest first, and (first row, total, sum of each part) for each group of rows."""
    groups = _split(rows, group)
    sums = [_sum((part.format_map(row), row[value].value) for row in members) for members in groups]
    whole = _sum(item for amounts in sums for item in amounts.items())
    names = sorted(whole, key=lambda name: (-whole[name], name))
    kept = names if len(names) <= MOST_PARTS else names[: MOST_PARTS - 1]
    small = names[len(kept) :]
    stacks: list[Stacked] = []
    for members, amounts in zip(groups, sums, strict=True):
        rest = (math.fsum(amounts.get(name, 0.0) for name in small),) if small else ()
        stack = (*(amounts.get(name, 0.0) for name in kept), *rest)
        stacks.append((members[0], math.fsum(stack), stack))
    return (*kept, *((f"{len(small)} smaller",) if small else ())), stacks


def _sum(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for name, amount in amounts:
        totals[name] = totals.get(name, 0.0) + amount
    return totals


def _join(placed: Sequence[Placed], size: str) -> list[Placed]:
    """Merge points at nearly the same position, the largest first. The column `size` is added up, and merged rows are
    counted.
    """
    joined = []
    for alike in group(placed, lambda one: (f"{one[1]:.2g}", f"{one[2]:.2g}")).values():
        row, abscissa, height = alike[0]
        amount = attrs.evolve(row[size], value=sum(one[size].value or 0.0 for one, _, _ in alike))
        more = attrs.evolve(row["name"], value=f" and {len(alike) - 1} alike" if len(alike) > 1 else "")
        joined.append(({**row, size: amount, "alike": more}, abscissa, height))
    return sorted(joined, key=lambda one: -one[0][size].value)
