"""Sketches: the content of character drawings, independent of the page width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.show.present.text import make_all_visible, make_visible
from joulemap.system.record import frozen

INTERVAL: Final = "├─●─┤ 80 % interval"
"""Legend of a sketch with 80 % intervals."""

POINT, PICK = "·", "●"
"""Marks of a point that is not named, and of one that is."""


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@frozen(kw_only=True)
class Axis:
    """Quantity along one side of a sketch."""

    label: str = attrs.field(converter=make_visible)
    unit: str = ""
    """Unit: SI, USD, `%` for a fraction or `x` for a ratio; empty for a count."""
    is_log: bool | None = None
    """True for a logarithmic axis; None to decide by the span of the values."""


@frozen(kw_only=True)
class Bar:
    """One value with its interval or its parts."""

    label: str = attrs.field(converter=make_visible)
    value: float | None = attrs.field(converter=_finite)
    low: float | None = attrs.field(default=None, converter=_finite)
    high: float | None = attrs.field(default=None, converter=_finite)
    begin: float = 0.0
    """Begin of the bar, if it is not zero; the parts follow each other from there to the value."""
    parts: tuple[float, ...] = ()
    """Parts of the value, in the order of the sketch's part names; empty for a bar without parts."""
    text: str = attrs.field(default="", converter=make_visible)
    """Text to the left of the bar; it replaces the formatted value."""


@frozen(kw_only=True)
class Bars:
    """Values as bars from zero, or as dots on an axis without zero."""

    title: str = attrs.field(converter=make_visible)
    axis: Axis
    bars: tuple[Bar, ...]
    parts: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Names of the parts of each value."""
    colours: tuple[str, ...] = ()
    """Names of the parts' colours; hues in their order by default."""
    has_zero: bool = True
    """True if bar lengths represent values, so that a linear axis includes zero."""
    mark: float | None = None
    """Position of a reference line."""
    interval: str = INTERVAL
    """Legend of the intervals."""
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the sketch; empty if nothing is drawn."""
        return (self.title, *self.parts, *(bar.label for bar in self.bars), *self.notes) if self.bars else ()


@frozen(kw_only=True)
class Point:
    """Point in a chart."""

    x: float
    y: float


@frozen(kw_only=True)
class Curve:
    """Group of points in a chart. A named group gets a letter, which the key explains, unless it has labels."""

    name: str = attrs.field(default="", converter=make_visible)
    labels: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Texts beside the first point, of which the first that fits is drawn; the last one is beside the other points."""
    mark: str = POINT
    """Mark of a point without a letter."""
    points: tuple[Point, ...]
    is_line: bool = False
    has_points: bool = True
    """True if each point has a mark."""
    roof: tuple[Point, ...] = ()
    """End points of a line above the points."""

    @property
    def places(self) -> tuple[Point, ...]:
        """All points to draw, including the ends of the roof."""
        return (*self.points, *self.roof)


@frozen(kw_only=True)
class Chart:
    """Chart of two quantities."""

    title: str = attrs.field(converter=make_visible)
    """Title; without one, a line above the chart names both quantities."""
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    rows: int | None = None
    """Lines of the canvas; None for as many as the terminal has room for."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the sketch; empty if nothing is drawn."""
        if not any(curve.points for curve in self.curves):
            return ()
        named = (text for curve in self.curves for text in (curve.name, *curve.labels) if text)
        return (self.title, *named, *self.notes)


@frozen(kw_only=True)
class HeatRow:
    """Row of a heat map."""

    label: str = attrs.field(converter=make_visible)
    ratios: tuple[float | None, ...]
    """Ratio of each cell to the best cell of the row, 1 for the best; None for a cell without a value."""
    note: str = attrs.field(default="", converter=make_visible)
    """Text at the end of the row."""


@frozen(kw_only=True)
class Heat:
    """Heat map: ratio of each cell to the best of its row."""

    title: str = attrs.field(converter=make_visible)
    columns: tuple[str, ...] = attrs.field(converter=make_all_visible)
    rows: tuple[HeatRow, ...]
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the sketch; empty if nothing is drawn."""
        return (self.title, *self.columns, *(row.label for row in self.rows), *self.notes) if self.rows else ()


Sketch = Bars | Chart | Heat


def cut_bars(bars: Iterable[Bar], most: int, noun: str) -> tuple[tuple[Bar, ...], tuple[str, ...]]:
    """Return the first `most` bars, and a note that counts the rest as `noun`."""
    listed = tuple(bars)
    rest = len(listed) - most
    return listed[:most], (f"{rest:,} more {noun}",) if rest > 0 else ()
