"""The energy of parts as sketches: stacked bars by category or action."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from joulemap.answer.part import PartAnswer, name_part
from joulemap.answer.sketch.choice import Choice
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, cut_bars

MOST_PARTS: Final = 7
"""Categories or actions that are drawn by themselves; the others are one."""


def sketch(answer: PartAnswer, choice: Choice) -> Section:
    """Return a stacked bar per run, or per part of the only run, those with most energy."""
    rows: list[Any] = list(answer.rows)
    sums: dict[str, float] = {}
    for row in rows:
        sums[name_part(row)] = sums.get(name_part(row), 0.0) + row.energy_j
    ordered = sorted(sums, key=lambda label: (-sums[label], label))
    kept = ordered[:MOST_PARTS]
    names = (*kept, *((f"{len(ordered) - len(kept)} smaller",) if len(ordered) > len(kept) else ()))
    is_single = len({row.run_id for row in rows}) == 1
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.part_index if is_single else row.run_id, []).append(row)
    several = len({row.model for row in rows}) > 1
    bars = []
    for found in groups.values():
        first = found[0]
        on = f"{first.model} on " if several else ""
        name = first.name if is_single else f"{on}{answer.scope.mark(first.hardware)}"
        bars.append(_stack(name, found, kept, has_rest=len(names) > len(kept)))
    if is_single:
        bars.sort(key=lambda bar: -(bar.value or 0.0))
    shown, rest = cut_bars(bars, choice.limit, f"{answer.level}s" if is_single else "runs")
    what = answer.subgraph or (f"each {answer.level}" if is_single else "each run")
    title = f"Energy of {what} by {answer.by}"
    axis = Axis(label="energy of a batch", unit="J")
    return Section("Sketch", Bars(title=title, axis=axis, bars=shown, parts=names, notes=rest))


def _stack(label: str, rows: Iterable[Any], kept: Iterable[str], *, has_rest: bool) -> Bar:
    found: dict[str, float] = {}
    for row in rows:
        found[name_part(row)] = found.get(name_part(row), 0.0) + row.energy_j
    parts = _take(found, kept)
    rest = (sum(found.values()) - sum(parts),) if has_rest else ()
    return Bar(label=label, value=sum(found.values()), parts=(*parts, *rest))


def _take(found: Mapping[str, float], kept: Iterable[str]) -> tuple[float, ...]:
    return tuple(found.get(label, 0.0) for label in kept)
