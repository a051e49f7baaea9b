"""Sketches: what a picture in characters shows, before it is known how wide the page is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.present.text import make_all_visible, make_visible
from joulemap.system.record import frozen

INTERVAL: Final = "├─●─┤ holds what is measured four times in five"
"""What stands beside a sketch with 80 % intervals."""


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@frozen(kw_only=True)
class Axis:
    """What is told along one side of a sketch."""

    label: str = attrs.field(converter=make_visible)
    unit: str = ""
    """SI unit, USD, `%` of a fraction, `x` of a ratio; empty for a count."""
    is_log: bool | None = None
    """None where the span of the values decides."""

    @property
    def text(self) -> str:
        """The label with the unit."""
        return self.label if self.unit in ("", "1", "x") else f"{self.label} ({self.unit})"


@frozen(kw_only=True)
class Bar:
    """One value with its interval, or its parts."""

    label: str = attrs.field(converter=make_visible)
    value: float | None = attrs.field(converter=_finite)
    low: float | None = attrs.field(default=None, converter=_finite)
    high: float | None = attrs.field(default=None, converter=_finite)
    parts: tuple[float, ...] = ()
    """Of the value, in the order of the names of the sketch; empty where it is drawn whole."""
    text: str = attrs.field(default="", converter=make_visible)
    """What stands before it in place of its value, or of one that is not there."""


@frozen(kw_only=True)
class Bars:
    """Values below each other: from zero, or as dots where the axis has none."""

    title: str = attrs.field(converter=make_visible)
    axis: Axis
    bars: tuple[Bar, ...]
    parts: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Names of the parts of each value."""
    has_zero: bool = True
    """Whether lengths tell, so that the axis begins at zero where it is linear."""
    mark: float | None = None
    """Where a line stands that all are told against."""
    interval: str = INTERVAL
    """What the intervals are."""
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything to read, where there is anything."""
        return (self.title, *self.parts, *(bar.label for bar in self.bars), *self.notes) if self.bars else ()


@frozen(kw_only=True)
class Point:
    """A place in a chart, with intervals where there are any."""

    x: float
    y: float
    x_low: float | None = attrs.field(default=None, converter=_finite)
    x_high: float | None = attrs.field(default=None, converter=_finite)
    y_low: float | None = attrs.field(default=None, converter=_finite)
    y_high: float | None = attrs.field(default=None, converter=_finite)


@frozen(kw_only=True)
class Curve:
    """Points that belong together. Those with a name get a letter, which the key explains."""

    name: str = attrs.field(default="", converter=make_visible)
    points: tuple[Point, ...]
    is_line: bool = False
    has_points: bool = True
    """Whether each point is marked."""
    roof: tuple[Point, ...] = ()
    """Ends of a line above them."""

    @property
    def places(self) -> tuple[Point, ...]:
        """All that is drawn of it."""
        return (*self.points, *self.roof)


@frozen(kw_only=True)
class Chart:
    """Two quantities against each other."""

    title: str = attrs.field(converter=make_visible)
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything to read, where there is anything."""
        if not any(curve.points for curve in self.curves):
            return ()
        return (self.title, *(curve.name for curve in self.curves if curve.name), *self.notes)


@frozen(kw_only=True)
class HeatRow:
    """A row of a heat map."""

    label: str = attrs.field(converter=make_visible)
    ratios: tuple[float | None, ...]
    """Over the best of the row, 1 for the best; None where there is no value."""
    note: str = attrs.field(default="", converter=make_visible)
    """What stands at its end."""


@frozen(kw_only=True)
class Heat:
    """Rows against columns: how near each is to the best of its row."""

    title: str = attrs.field(converter=make_visible)
    columns: tuple[str, ...] = attrs.field(converter=make_all_visible)
    rows: tuple[HeatRow, ...]
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything to read, where there is anything."""
        return (self.title, *self.columns, *(row.label for row in self.rows), *self.notes) if self.rows else ()


Sketch = Bars | Chart | Heat


def cut_bars(bars: Iterable[Bar], most: int, noun: str) -> tuple[tuple[Bar, ...], tuple[str, ...]]:
    """Return the first bars, and what says how many there are more."""
    listed = tuple(bars)
    rest = len(listed) - most
    return listed[:most], (f"{rest:,} more {noun}",) if rest > 0 else ()
