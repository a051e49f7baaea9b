"""Facts of fleets: the best of one kind and of several kinds, targets with their headroom, and what could move them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity, Refusal, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.rule import represent, weigh_findings
from joulemap.ask.scope import Scope
from joulemap.domain.metric import TIE_RATIO
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.wing.fleet.capacity.mixture import SAVED
from joulemap.wing.fleet.capacity.rank import OBJECTIVES
from joulemap.wing.fleet.capacity.row import OK, FleetRow, first_of_each
from joulemap.wing.fleet.generated.row import FleetWinner, MixedRow

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand
    from joulemap.wing.fleet.generated.row import PairRow

LEAST_ENERGY: Final = "least_energy"
"""Metric of the choice of the fleet with the least energy, if the objective chooses another one."""

PUBLISHED: Final = "published"
"""Metric of the choice among fleets that run the checkpoint as published."""

TARGETS: Final = {"p99_s": "p99_latency_s", "first_token_s": "first_token_p99_s", "between_s": "between_p99_s"}
"""Field of a demand with a target -> field of a fleet with the p99 that must not exceed it."""

VALUES: Final[Mapping[str, tuple[str, str]]] = {
    "cost": ("cost_per_month", "USD"),
    "energy": ("kwh_per_month", "kWh"),
    "carbon": ("gco2_per_month", "g"),
    "power": ("power_w", "W"),
    "devices": ("device_count", ""),
    "devices_per_server": ("server_device_count", ""),
    "likely_devices": ("likely_device_count", ""),
    "enough": ("enough_fraction", ""),
    "capacity": ("carried_ratio", ""),
    "utilization": ("utilization_fraction", ""),
}
"""Metric of a fleet -> field of a row, and unit."""


def find_facts(
    scope: Scope,
    findings: Sequence[Finding | Refusal],
    rows: Sequence[FleetRow],
    winners: Sequence[FleetWinner],
    together: Sequence[MixedRow | PairRow],
    demand: Demand,
) -> Facts:
    """Return the facts of fleets; a run of the facts is a row of one kind, then of `together`.

    `findings` are about the stored runs of the rows.
    """
    known = dict(enumerate(rows, 1))
    joined = dict(enumerate(together, len(rows) + 1))
    kept = {key: row for key, row in known.items() if row.status == OK}
    choices = [*_choose(kept, joined, winners, demand)]
    named = {id(row) for row in first_of_each(kept.values())} | {id(known[1])}
    chosen = {key for one in choices for key in one.runs}
    shown = {key: row for key, row in known.items() if id(row) in named or key in chosen}
    stored: dict[int, list[int]] = {}
    for key, row in shown.items():
        stored.setdefault(row.run_id, []).append(key)
    mine = [one for one in findings if isinstance(one, Refusal) or one.run_id is None or one.run_id in stored]
    caveats = weigh_findings([*represent(mine, stored), *_find_own(shown, demand)], choices)
    best = next((key for key in kept), None)
    limits = [] if best is None else [*_list_limits(best, known[best], demand)]
    missed = [] if kept else [Refusal(runs=(key,), reason=row.reason) for key, row in known.items() if row.reason][:1]
    entries = [_enter(key, row) for key, row in (*shown.items(), *joined.items())]
    runs = {
        key: Subject(hardware=row.label, is_available=scope.outlines[row.run_id].hardware not in scope.unavailable)
        for key, row in known.items()
    }
    return Facts(
        asked=(demand.objective,),
        runs={**runs, **{key: Subject(hardware=row.label) for key, row in joined.items()}},
        facts=(*choices, *limits, *missed, *entries, *caveats),
    )


def _find_together(joined: Mapping[int, MixedRow | PairRow]) -> tuple[int, float] | None:
    """Return the fleet of two kinds that saves most, and the fraction that it saves; None if none saves enough."""
    saved = {
        key: row.saved_fraction if isinstance(row, MixedRow) else 1.0 - (row.regret_ratio or 0.0)
        for key, row in joined.items()
    }
    best = max(saved, key=lambda key: saved[key], default=None)
    return None if best is None or saved[best] <= 1.0 - SAVED else (best, saved[best])


def _choose(
    kept: Mapping[int, FleetRow],
    joined: Mapping[int, MixedRow | PairRow],
    winners: Sequence[FleetWinner],
    demand: Demand,
) -> Iterator[Choice]:
    """Yield the best fleet, with a fleet of two kinds first if it is surely better, then further choices."""
    column, unit = OBJECTIVES[demand.objective]
    winner = next((row for row in winners if row.objective == demand.objective), None)
    alone = None if winner is None else _choose_alone(kept, winner, unit)
    pair = _find_together(joined)
    if pair is not None:
        key, saved = pair
        row = joined[key]
        chance = row.probability_best
        is_tied = chance is not None and chance < TOLD_APART and alone is not None
        both = Choice(
            runs=(key, *(alone.runs[:1] if alone is not None else ())),
            metric=demand.objective,
            value=Quantity(getattr(row, column) or 0.0, unit),
            ratio=1.0 / (1.0 - saved) if alone is not None else None,
            probability=chance,
            tied=alone.runs[:1] if is_tied and alone is not None else (),
        )
        ordered = [alone, both] if is_tied else [both, alone]
        yield from (one for one in ordered if one is not None)
    elif alone is not None:
        yield alone
    if kept:
        yield from _choose_others(kept, winners, column, unit)


def _choose_alone(kept: Mapping[int, FleetRow], winner: FleetWinner, unit: str) -> Choice:
    """Return the best fleet of one kind, and the next hardware."""
    keys = {row.label: key for key, row in reversed([*kept.items()])}
    ratio, chance = winner.regret_ratio, winner.probability_best
    rival = keys.get(winner.runner_up)
    is_tied = rival is not None and (ratio or 1.0) > TIE_RATIO and chance is not None and chance < TOLD_APART
    return Choice(
        runs=(keys[winner.label], *([rival] if rival is not None else [])),
        metric=winner.objective,
        value=Quantity(winner.value, unit),
        ratio=ratio if rival is not None else None,
        probability=chance,
        tied=(rival,) if is_tied and rival is not None else (),
    )


def _choose_others(
    kept: Mapping[int, FleetRow], winners: Sequence[FleetWinner], column: str, unit: str
) -> Iterator[Choice]:
    """Yield the fleet with the least energy and the best one in the checkpoint's precision, if they are others."""
    first, best = next(iter(kept.items()))
    keys = {row.label: key for key, row in reversed([*kept.items()])}
    energy = next((row for row in winners if row.objective == "energy"), None)
    if energy is not None and energy.label in keys and (best.kwh_per_month or math.inf) >= TIE_RATIO * energy.value:
        ratio = (best.kwh_per_month or 0.0) / energy.value
        runs = (keys[energy.label], first)
        yield Choice(runs=runs, metric=LEAST_ENERGY, value=Quantity(energy.value, "kWh"), ratio=ratio)
    own = next(((key, row) for key, row in kept.items() if row.quality is None), None)
    if best.quality is not None and own is not None and (value := getattr(own[1], column)) is not None:
        yield Choice(runs=(own[0], first), metric=PUBLISHED, value=Quantity(value, unit))


def _enter(key: int, row: FleetRow | MixedRow | PairRow) -> Entry:
    values = {
        metric: Quantity(float(value), unit)
        for metric, (field, unit) in VALUES.items()
        if (value := getattr(row, field, None)) is not None
    }
    return Entry(runs=(key,), values=values)


def _list_limits(key: int, row: FleetRow, demand: Demand) -> Iterator[Limit]:
    """Yield the targets of the best fleet, the nearest first."""
    known = [
        (value / target, name, value, target)
        for name, field in TARGETS.items()
        if (value := getattr(row, field)) is not None and (target := getattr(demand, name))
    ]
    for ratio, name, value, target in sorted(known, reverse=True):
        miss = math.log(max(1.0, ratio))
        yield Limit(runs=(key,), metric=name, bound=Quantity(target, "s"), value=Quantity(value, "s"), miss=miss)


def _find_own(shown: Mapping[int, FleetRow], demand: Demand) -> Iterator[Finding]:
    """Yield prices with their interval, numbers of devices at both ends of theirs, losses of quality, and the limit
    that breaks first.
    """
    for key, row in shown.items():
        if row.price_text:
            width = row.bought_half_width if row.price_text == row.purchase_text else row.rented_half_width
            doubt = width if demand.objective == "cost" else 0.0
            yield Finding(
                kind="device_price", run_id=key, values={"way": row.way, "price": row.price_text}, doubt=doubt
            )
        low, high = row.device_low_count, row.device_high_count
        if low and high and low < high:
            doubt = 0.5 * math.log(high / low)
            yield Finding(kind="device_count", run_id=key, values={"low": low, "high": high}, doubt=doubt)
        if row.quality is not None:
            yield Finding(kind="quality", run_id=key, values={"precision": row.precision, "quality": row.quality})
        if row.fails_first:
            yield Finding(kind="breaks", run_id=key, values={"limits": row.fails_first})
