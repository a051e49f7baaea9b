"""Build tables for display from lines of templates, each with the cells of a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask.fact import Entry, Facts
from joulemap.show.present.cell import (
    show_share,
)
from joulemap.show.present.document import (
    Grid,
)
from joulemap.show.present.template import Template

if TYPE_CHECKING:
    from joulemap.domain.assumed import AssumedEnergy
    from joulemap.show.present.picture import Picture

LEAST_STATED: Final = 1.0 / 3.0
"""Assumed share of an energy above which answers show it."""

MORE: Final = Template("{count} more[ {noun}]")


def shorten(names: Sequence[str], most: int, noun: str = "") -> list[str]:
    """Return at most the first `most` names and a count of the others; a single further name is listed, too."""
    rest = len(names) - most
    return [*names[:most], MORE(count=rest, noun=noun)] if rest > 1 else list(names)


def draw_ranges(facts: Facts, metric: str, ids: Iterable[int | None], after: str, **more: Any) -> Picture:
    """Return a picture of the intervals of a metric of runs; `after` is the heading before it, `more` sets fields."""
    from joulemap.show.present.picture import Picture, make_intervals

    values = {one.run: one.values[metric] for one in facts.of(Entry)}
    ends = [values.get(run_id or 0) for run_id in ids]
    marks = make_intervals([(one.value, one.half_width) if one is not None else (None, None) for one in ends])
    return Picture(kind="interval", after=after, rows=marks, **more)


def fill_cells(line: str, row: object = None, /, **values: Any) -> tuple[str, ...]:
    """Fill a line of templates separated by `|`; return its cells. Leading spaces of the first cell are kept."""
    first, *others = line.split("|")
    return tuple(Template(cell)(row, **values) for cell in (first.rstrip(), *map(str.strip, others)))


def lay_lines(
    headings: str, lines: Iterable[Sequence[str]], *, keep: str = "", is_tree: bool = False, **more: Any
) -> Grid:
    """Return lines of cells as a grid; short lines get empty cells. `more` sets further fields of the grid."""
    names = _split(headings)
    rows = tuple((*cells, *[""] * (len(names) - len(cells))) for cells in lines)
    return Grid(headings=tuple(names), rows=rows, keep=tuple(_split(keep)), is_tree=is_tree, **more)


def lay_facts(headings: str, lines: Iterable[str], row: Any, /, **values: Any) -> Grid:
    """Return a grid with one fact of a run per line."""
    return lay_lines(headings, (fill_cells(line, row, **values) for line in lines))


def _split(headings: str) -> list[str]:
    return [heading.strip() for heading in headings.split("|")] if headings else []


def show_assumed(one: AssumedEnergy | None) -> str:
    """Return an assumed share for a table cell; empty for a share up to a third."""
    return "" if one is None or one.fraction <= LEAST_STATED else show_share(one.fraction)


def is_whole(one: AssumedEnergy, energy_j: float | None) -> bool:
    """Return whether `energy_j` is the energy of the whole run rather than of a part."""
    return energy_j is not None and math.isclose(energy_j * 1e15, one.energy_fj, rel_tol=1e-9)
