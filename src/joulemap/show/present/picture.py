"""Pictures: a column of small drawings in a table of a terminal, one per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import attrs

from joulemap.show.present.text import make_visible
from joulemap.system.record import frozen

PictureKind = Literal["interval", "difference", "share", "cumulative", "trend"]

MARKS: Final[dict[PictureKind, int]] = {"interval": 3, "difference": 1, "share": 1, "cumulative": 2}
"""Kind -> numbers per row: low end, value and high end; difference; value; begin and end. A trend has any number."""

LEAST: Final = 12
"""Minimum cells of a picture; a trend has one cell per number."""

NOMINAL: Final = 20
"""Cells of a picture on a page without a width."""

MOST: Final = 32
"""Maximum cells of a picture."""

Marks = tuple[float, ...]
"""Numbers that one row draws; empty for a row without a drawing."""


def _check_rows(picture: Picture, _attribute: object, rows: tuple[Marks, ...]) -> None:
    count = MARKS.get(picture.kind)
    for row in rows:
        if row and (count not in (None, len(row)) or not all(map(math.isfinite, row))):
            raise ValueError(f"a row of the picture {picture.kind!r} needs {count or 'finite'} numbers, not {row}")
        if picture.kind in ("interval", "trend") and row and min(row) <= 0.0:
            raise ValueError(f"the logarithmic axis of a picture needs positive numbers, not {row}")


@frozen(kw_only=True)
class Picture:
    """Drawings of the numbers of a table's rows, which a terminal shows as a column if there is room.

    An interval stands on a common logarithmic axis, whose ticks are the heading. A difference is a bar left or right of
    zero, a share a bar from zero, and a cumulative share a bar whose dark part is what the row adds. A trend has a
    column of a logarithmic height per number.
    """

    kind: PictureKind
    after: str = attrs.field(converter=make_visible)
    """Heading of the column after which the picture stands."""
    of: str = attrs.field(default="", converter=make_visible)
    """Heading of the column whose best cells the picture colours; `after` by default."""
    rows: tuple[Marks, ...] = attrs.field(validator=_check_rows)
    """Numbers of each row, in the order of `MARKS`."""
    unit: str = ""
    """Unit of the ticks of intervals."""
    heading: str = attrs.field(default="", converter=make_visible)
    """Heading of a picture without an axis; of differences, such as `more on l4`, at the right of zero."""
    left: str = attrs.field(default="", converter=make_visible)
    """Heading at the left of zero, which replaces the other one if negative differences are larger."""
    is_gain: bool = False
    """True if positive differences are better, such as savings."""
    yields: bool = False
    """True if a narrow terminal shows the columns that the table keeps rather than this picture."""

    @property
    def is_drawn(self) -> bool:
        """True if at least two rows have numbers that are not all zero, so that the picture compares them."""
        return sum(map(bool, self.rows)) > 1 and any(map(any, self.rows))

    @property
    def cells(self) -> tuple[int, int, int]:
        """Minimum, nominal and maximum width."""
        if self.kind == "trend":
            return (max(map(len, self.rows)),) * 3
        return LEAST, NOMINAL, MOST

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest number."""
        numbers = [one for row in self.rows for one in row]
        return min(numbers), max(numbers)


def make_intervals(rows: Sequence[tuple[float | None, float | None]]) -> tuple[Marks, ...]:
    """Return the marks of intervals from values and half-widths (natural logarithms)."""
    return tuple(
        (value * math.exp(-(width or 0.0)), value, value * math.exp(width or 0.0)) if value is not None else ()
        for value, width in rows
    )
