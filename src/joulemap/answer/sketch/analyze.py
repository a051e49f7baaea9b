"""One run as sketches: bars of its energy or events, and its subgraphs under its roofline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from joulemap.answer.analyze.answer import AnalyzeAnswer
from joulemap.answer.run import ENERGY_PARTS
from joulemap.answer.sketch.choice import Choice
from joulemap.domain.settings import RunDivision
from joulemap.domain.table import Table
from joulemap.present.cell import show_share
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, Chart, Curve, Point, cut_bars
from joulemap.row.analyze import ActionShare, CategoryShare, RunTotal, SubgraphShare

MOST_BARS: Final = 30

MOST_ACTIONS: Final = 15

NAMED: Final = 12
"""Places in the roofline that have a letter: those whose subgraphs take longest."""

BEYOND: Final = 2.0
"""Factor by which the roof reaches beyond what stands under it."""


def sketch(answer: AnalyzeAnswer, choice: Choice) -> Section:
    """Return the table that is shown as bars, and the roofline unless it is about events."""
    bars = _draw_bars(answer, choice.by)
    return Section("Sketch", (bars,) if choice.by == "event" else (bars, _draw_roofline(answer)))


def _draw_bars(answer: AnalyzeAnswer, by: RunDivision) -> Bars:
    axis = Axis(label="energy of a batch", unit="J")
    if by == "event":
        counted = [row for row in answer.events if row.event_count > 0.0]
        events, rest = cut_bars(
            (Bar(label=f"{row.component} {row.event}", value=row.event_count) for row in counted), MOST_BARS, "events"
        )
        title = f"Events of {answer.subgraph}" if answer.subgraph else "Events"
        return Bars(title=title, axis=Axis(label="count", is_log=True), bars=events, notes=rest)
    if by in ("category", "action"):
        whole: list[tuple[str, CategoryShare | ActionShare]] = (
            [(row.category, row) for row in answer.categories]
            if by == "category"
            else [(f"{row.component}.{row.action}", row) for row in _rank(answer.actions)]
        )
        left = show_share(sum(row.share_fraction or 0.0 for _, row in whole[MOST_ACTIONS:]))
        shares = (Bar(label=label, value=row.energy_j) for label, row in whole)
        bars, rest = cut_bars(shares, MOST_ACTIONS, f"take {left}")
        return Bars(title=f"Energy by {by}", axis=attrs.evolve(axis, is_log=False), bars=bars, notes=rest)
    rows: Table[Any] = answer.rows(by)
    bars, rest = cut_bars(
        (
            Bar(
                label=row.name,
                value=row.energy_j,
                parts=tuple(getattr(row, f"{part}_energy_j") for part in ENERGY_PARTS),
            )
            for row in rows
        ),
        MOST_BARS,
        f"{by}s",
    )
    return Bars(
        title=f"Energy of each {by} by part, in order of execution",
        axis=attrs.evolve(axis, is_log=False),
        bars=bars,
        parts=ENERGY_PARTS,
        notes=rest,
    )


def _rank(actions: Iterable[ActionShare]) -> list[ActionShare]:
    """Return actions, those with most energy first."""
    return sorted(actions, key=lambda row: (-row.energy_fj, row.component, row.action))


def _draw_roofline(answer: AnalyzeAnswer) -> Chart:
    """Return the subgraphs under the roof of peak and published bandwidth."""
    total = answer.total
    placed = [
        (row, point)
        for row in answer.subgraphs
        if (point := _place(total, row.compute_utilization_fraction, row.bandwidth_utilization_fraction)) is not None
    ]
    groups = _group(placed)
    named = [_name(rows, point) for rows, point in groups[:NAMED]]
    others = Curve(points=tuple(point for _, point in groups[NAMED:]))
    missing = len(answer.subgraphs) - len(placed)
    notes = [f"{missing} subgraphs have no MACs or move nothing off chip"] if missing else []
    if others.points:
        notes.append(f"· {sum(len(rows) for rows, _ in groups[NAMED:])} other subgraphs")
    return Chart(
        title="Roofline: operations per second against operations per byte moved off chip",
        x=Axis(label="intensity", unit="ops/B", is_log=True),
        y=Axis(label="attained", unit="ops/s", is_log=True),
        curves=(_draw_roof(total, [point for _, point in placed]), others, *named) if placed else (),
        notes=tuple(notes),
    )


def _group(placed: Iterable[tuple[SubgraphShare, Point]]) -> list[tuple[list[SubgraphShare], Point]]:
    """Return the subgraphs at each place, those that take longest first."""
    found: dict[tuple[str, str], tuple[list[SubgraphShare], Point]] = {}
    for row, point in placed:
        found.setdefault((f"{point.x:.2g}", f"{point.y:.2g}"), ([], point))[0].append(row)
    return sorted(found.values(), key=lambda group: -sum(row.latency_fs for row in group[0]))


def _name(rows: list[SubgraphShare], point: Point) -> Curve:
    more = f" and {len(rows) - 1} alike" if len(rows) > 1 else ""
    share = show_share(sum(row.latency_fraction or 0.0 for row in rows))
    return Curve(name=f"{rows[0].name}{more}, {share} of the time", points=(point,))


def _place(total: RunTotal, compute: float | None, bandwidth: float | None) -> Point | None:
    """Return where shares of peak and bandwidth stand; None where there are no operations or bytes."""
    if not compute or not bandwidth:
        return None
    rate = compute * total.peak_ops_per_s
    return Point(x=rate / (bandwidth * total.memory_bandwidth_bytes_per_s), y=rate)


def _draw_roof(total: RunTotal, points: list[Point]) -> Curve:
    peak, bandwidth = total.peak_ops_per_s, total.memory_bandwidth_bytes_per_s
    ridge = peak / bandwidth
    least = min([ridge, *(point.x for point in points)]) / BEYOND
    most = max([ridge, *(point.x for point in points)]) * BEYOND
    roof = (Point(x=least, y=least * bandwidth), Point(x=ridge, y=peak), Point(x=most, y=peak))
    return Curve(points=roof, is_line=True, has_points=False)
