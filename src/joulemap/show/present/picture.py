"""Pictures: a column of small drawings in a table of a terminal, one per row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs

from joulemap.show.present.text import make_visible
from joulemap.system.record import frozen

PictureKind = Literal["interval", "difference", "share", "cumulative", "trend", "stack"]

MARKS: Final[dict[PictureKind, int]] = {"interval": 3, "difference": 1, "share": 1, "cumulative": 2}
"""Kind -> numbers per row: low end, value and high end; difference; value; begin and end. A trend or a stack has any
number.
"""

LEAST: Final = 12
"""Minimum cells of a picture; a trend has one cell per number."""

NOMINAL: Final = 20
"""Cells of a picture on a page without a width."""

MOST: Final = 32
"""Maximum cells of a picture."""

KEY_GAP: Final = "  "
"""Space between the items of a key, as long as the mark of an item."""

LEAST_PART: Final = 0.01
"""Minimum share of the longest bar that a part needs in one row to be named."""

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
    column of a logarithmic height per number, a stack a bar from zero whose parts follow each other.
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
    mark: float | None = None
    """Value at which bars from zero have a mark."""
    parts: tuple[str, ...] = ()
    """Names of the parts of a stack, for the key in its heading."""
    yields: bool = False
    """True if a narrow terminal shows the columns that the table keeps rather than this picture."""

    @property
    def is_drawn(self) -> bool:
        """True if numbers are not all zero, and at least two rows have them or one row has several parts."""
        compared = len(self.parts) + sum(map(bool, self.rows)) > (2 if self.parts else 1)
        return compared and any(map(any, self.rows))

    @property
    def cells(self) -> tuple[int, int, int]:
        """Minimum, nominal and maximum width."""
        if self.kind == "trend":
            return (max(map(len, self.rows)),) * 3
        least = max((len(one) for one in self.parts), default=0) + len(KEY_GAP)
        return max(LEAST, least), max(NOMINAL, least), max(MOST, least)

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


def make_stack(parts: Mapping[str, Sequence[float | None]], after: str) -> Picture:
    """Return a picture of parts by name, each with a number per row; None in all parts leaves a row empty.

    Parts that are too short to see in every row are left out.
    """
    rows = [() if set(row) == {None} else tuple(one or 0.0 for one in row) for row in zip(*parts.values(), strict=True)]
    least = LEAST_PART * max(map(sum, rows), default=0.0)
    seen = [index for index in range(len(parts)) if any(row[index] > least for row in rows if row)]
    marks = tuple(tuple(row[index] for index in seen) if row else () for row in rows)
    return Picture(kind="stack", after=after, rows=marks, parts=tuple([*parts][index] for index in seen))
