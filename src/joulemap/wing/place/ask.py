"""Facts of a placement: the best one for a goal, its rival, and what could move the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Refusal, Subject, Value
from joulemap.ask.finding import Finding
from joulemap.ask.rule import weigh_findings
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.wing.place.record import BUDGET

if TYPE_CHECKING:
    from joulemap.system.errors import Reason
    from joulemap.wing.place.answer.row import PlacementRow
    from joulemap.wing.place.record import Goal

ALONE: Final = "alone"
"""Form of a placement on one device."""

VALUES: Final[Mapping[Goal, tuple[str, str, str]]] = {
    "latency": ("latency_s", "s", "latency_half_width"),
    "throughput": ("throughput_per_s", "1/s", "throughput_half_width"),
    "energy": ("energy_j", "J", "energy_half_width"),
}
"""Goal -> field of a row, unit, and field with the half-width."""

COPIES: Final[Mapping[str, tuple[str, str]]] = {
    "copy": ("copy_s", "s"),
    "copied": ("copied_bytes", "B"),
    "copies": ("copy_count", ""),
}

LEAST_ASSUMED: Final = 0.1
"""Minimum assumed share of an energy that is a caveat."""

MOSTLY: Final = 0.8
"""Share of the assumed energy from which it is mostly static power."""


def find_facts(
    rows: Sequence[PlacementRow], reasons: Sequence[Reason | None], goal: Goal, gap: tuple[str, float] | None
) -> Facts:
    """Return the facts of placements, best first; a run of the facts is a row.

    `reasons` has the reason of each row that is refused. `gap` holds the form of a placement that was not examined, and
    the share that it could save.
    """
    known = dict(enumerate(rows, 1))
    kept = {key: row for key, row in known.items() if not row.refusal}
    choices = [_choose(kept, goal)] if len(kept) > 1 else []
    caveats = weigh_findings([*_find_own(kept, goal, gap)], choices)
    refusals = [Refusal.of(reason, (key,)) for key, reason in enumerate(reasons, 1) if reason is not None]
    return Facts(
        asked=(goal,),
        runs={key: Subject(hardware=row.placement, settings=(row.form,)) for key, row in known.items()},
        facts=(*choices, *refusals, *(_enter(key, row) for key, row in kept.items()), *caveats),
    )


def find_rival(rows: Mapping[int, PlacementRow]) -> int | None:
    """Return the best mixture if one device alone is best, else the best device alone; else the next placement."""
    first, *others = rows
    is_alone = rows[first].form == ALONE
    return next((key for key in others if (rows[key].form == ALONE) != is_alone), next(iter(others), None))


def _choose(kept: Mapping[int, PlacementRow], goal: Goal) -> Choice:
    """Return the best placement, and its rival of the other kind."""
    first, *others = kept
    rival = find_rival(kept)
    assert rival is not None
    field, unit, width = VALUES[goal]
    own, other = (float(getattr(kept[key], field) or 0.0) for key in (first, rival))
    ratio = own / other if goal == "throughput" else other / own
    close = [key for key in others if (kept[key].worse_probability or 1.0) < TOLD_APART]
    chances = [chance for key in close or [rival] if (chance := kept[key].worse_probability) is not None]
    return Choice(
        runs=(first, rival, *(key for key in others if key != rival)),
        metric=goal,
        value=Quantity(own, unit, getattr(kept[first], width)),
        ratio=ratio,
        probability=min(chances, default=None),  # it is the best at most as surely as it beats each tied placement
        ahead=kept[rival].worse_probability,
        tied=tuple(sorted(close, key=lambda key: key != rival)),
    )


def _enter(key: int, row: PlacementRow) -> Entry:
    values: dict[str, Quantity] = {
        goal: Quantity(value, unit, getattr(row, width))
        for goal, (field, unit, width) in VALUES.items()
        if (value := getattr(row, field)) is not None
    }
    copied = {
        name: Quantity(float(value), unit)
        for name, (field, unit) in COPIES.items()
        if row.form != ALONE and (value := getattr(row, field)) is not None
    }
    return Entry(runs=(key,), values={**values, **copied})


def _find_own(kept: Mapping[int, PlacementRow], goal: Goal, gap: tuple[str, float] | None) -> Iterator[Finding]:
    """Yield assumed shares of the energy, an unfinished search, and the power budget."""
    for key, row in kept.items():
        assumed = row.assumed
        if assumed is not None and assumed.fraction >= LEAST_ASSUMED:
            mostly = "static" if assumed.static_fraction >= MOSTLY * assumed.fraction else ""
            doubt = row.energy_half_width or 0.0 if goal == "energy" else 0.0
            values: dict[str, Value] = {"share_fraction": assumed.fraction, "mostly": mostly}
            yield Finding(kind="assumed", run_id=key, values=values, doubt=doubt)
    first = next(iter(kept))
    if kept[first].limit == BUDGET:
        yield Finding(kind="budget", run_id=first)
    elif gap is not None:
        yield Finding(kind="unexamined", run_id=first, values={"form": gap[0], "share": gap[1]}, doubt=gap[1])
