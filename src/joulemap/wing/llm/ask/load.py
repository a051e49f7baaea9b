"""Facts of a request load: a row per deployment, the lowest p99 TTFT, the least energy, and what cannot keep up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity, Share
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.assumed import LEAST_ASSUMED, MOSTLY_STATIC
from joulemap.domain.metric import TIE_RATIO
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.physics.interval.probability import probability_better
from joulemap.wing.llm.ask.served import (
    BELOW,
    COST,
    ENERGY,
    FIRST,
    HITS,
    IDLE,
    MEASURED,
    OTHER_INTERVALS,
    RATE,
    REQUEST,
    SERVED_RATE,
    TAIL,
    TIME,
    UNCACHED,
    USE,
    Deployed,
    find_served,
    name_runs,
    represent,
)
from joulemap.wing.llm.capacity.load import LoadRow
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.phase import ANSWER

if TYPE_CHECKING:
    from joulemap.wing.llm.capacity.pool import PoolRow
    from joulemap.wing.llm.capacity.row import ServedRow
    from joulemap.wing.llm.generated.row import ServedPhase

ASSUMED: Final = "assumed"
"""Rule of the core on single passes; the energy of a load has prompts, idle time and larger batches too."""

LEAST_IDLE: Final = 0.01
"""Minimum idle share of the energy that is a fact."""

VALUES: Final[Mapping[str, tuple[str, str]]] = {
    TAIL: ("first_token_p99_s", "s"),
    FIRST: ("first_token_s", "s"),
    TIME: ("between_s", "s"),
    ENERGY: ("output_token_j", "J"),
    RATE: ("output_tokens_per_s", "1/s"),
    SERVED_RATE: ("served_per_s", "1/s"),
    COST: ("output_usd_per_million", "USD"),
    HITS: ("prefix_hit_fraction", ""),
    BELOW: ("tier_hit_fraction", ""),
    REQUEST: ("request_j", "J"),
    UNCACHED: ("uncached_request_j", "J"),
}
"""Metric -> field of a row, and unit."""

WIDTHS: Final = {TAIL: "first_token_half_width", ENERGY: "output_token_half_width"}
"""Metric that chooses -> field with the half-width of a batch."""


def find_facts(
    scope: Scope,
    loads: Sequence[LoadRow],
    pools: Sequence[PoolRow],
    served: Sequence[ServedRow],
    phases: Sequence[ServedPhase],
    *,
    hosts: Mapping[str, SlowHost],
    engine: str,
    most_context: int,
) -> Facts:
    """Return the facts of deployments under a load; a run of the facts is a row of `loads`.

    The half-widths are those of the smallest batch of each deployment. Errors of two deployments count as independent.
    """
    smallest = {_key(row): row for row in reversed(served)}
    steps = {row.hardware: row for row in phases if row.phase == ANSWER.name}

    def find_width(row: LoadRow, field: str) -> float:
        smallest_row = smallest.get(_key(row))
        return (getattr(smallest_row, field) if smallest_row is not None else None) or 0.0

    deployed = [
        _deploy(key, row, smallest.get(_key(row)), steps.get(row.hardware), hosts.get(row.hardware))
        for key, row in enumerate(loads, 1)
    ]
    rows = dict(enumerate(loads, 1))
    kept = {key: row for key, row in rows.items() if not row.is_growing}
    choices = [_choose(kept, metric, find_width) for metric in WIDTHS] if len(kept) > 1 and not pools else []
    own = (
        *find_served(deployed, engine, most_context=most_context), *_find_excluded(rows), *_find_assumed(rows)
    )  # fmt: skip
    # Runs of other batches stand for no row: the rules would name them by their stored ids, which are other rows' keys.
    stored = represent(deployed)
    caveats = find_caveats(
        scope.part(stored), choices, metric="latency", more=own, stands_for=stored, but=(*OTHER_INTERVALS, ASSUMED)
    )
    entries = [_enter(key, row, find_width) for key, row in rows.items()]
    limits, shares = _list_limits(rows), _list_shares(rows, pools)
    facts = (*choices, *limits, *shares, *entries, *caveats)
    return Facts(asked=(TAIL, ENERGY), runs=name_runs(scope, deployed), facts=facts)


def _find_assumed(rows: Mapping[int, LoadRow]) -> Iterator[Finding]:
    """Yield the assumed shares of the energy of loads, those of the table."""
    for key, row in rows.items():
        if (assumed := row.assumed) is not None and assumed.fraction >= LEAST_ASSUMED:
            mostly = "static" if assumed.static_fraction >= MOSTLY_STATIC * assumed.fraction else ""
            yield Finding(kind=ASSUMED, run_id=key, values={"share_fraction": assumed.fraction, "mostly": mostly})


def _key(row: LoadRow | ServedRow) -> tuple[str, str, int]:
    return row.hardware, row.precision, row.device_count


def _deploy(
    key: int, row: LoadRow, batch: ServedRow | None, step: ServedPhase | None, host: SlowHost | None
) -> Deployed:
    return Deployed(
        key=key,
        hardware=row.hardware,
        device_count=row.device_count,
        precision=row.precision,
        run_id=batch.decode_run_id if batch is not None else None,
        evidence=step.evidence if step is not None else MEASURED,
        vendor=step.vendor if step is not None else "",
        half_width=batch.first_token_half_width if batch is not None else None,
        weight_bytes=batch.model_bytes if batch is not None else 0.0,
        slow_s=host.added_s if host is not None else 0.0,
        slow_share=host.share if host is not None else 0.0,
        slow_half_width=host.find_half_width(row.between_s) if host is not None and row.between_s else 0.0,
    )


def _choose(rows: Mapping[int, LoadRow], metric: str, find_width: Callable[[LoadRow, str], float]) -> Choice:
    """Return the best deployment by a metric, and those that are statistically tied with it."""
    field, unit = VALUES[metric]
    first, *others = sorted(rows, key=lambda key: (getattr(rows[key], field), key))
    own, value = find_width(rows[first], WIDTHS[metric]), float(getattr(rows[first], field))
    ratios = {key: float(getattr(rows[key], field)) / value for key in others}
    widths = {key: math.hypot(own, find_width(rows[key], WIDTHS[metric])) for key in others}
    tied = [key for key in others if widths[key] and probability_better(ratios[key], widths[key]) < TOLD_APART]
    return Choice(
        runs=(first, *others),
        metric=metric,
        value=Quantity(value, unit, own or None),
        ratio=ratios[others[0]],
        tied=tuple(tied) if ratios[others[0]] >= TIE_RATIO or tied else (),
    )


def _enter(key: int, row: LoadRow, find_width: Callable[[LoadRow, str], float]) -> Entry:
    values = {
        metric: Quantity(float(value), unit, find_width(row, WIDTHS[metric]) or None if metric in WIDTHS else None)
        for metric, (field, unit) in VALUES.items()
        if (value := getattr(row, field)) is not None
    }
    return Entry(runs=(key,), values=values)


def _list_limits(rows: Mapping[int, LoadRow]) -> Iterator[Limit]:
    """Yield the arrival rate that a deployment cannot keep up with, the deployment that serves most first."""
    for key, row in sorted(rows.items(), key=lambda one: -one[1].served_per_s):
        if row.is_growing and row.arrivals_per_s is not None:
            miss = math.log(max(1.0, row.arrivals_per_s / row.served_per_s))
            bound, value = Quantity(row.arrivals_per_s, "1/s"), Quantity(row.served_per_s, "1/s")
            yield Limit(runs=(key,), metric=SERVED_RATE, bound=bound, value=value, miss=miss)


def _list_shares(rows: Mapping[int, LoadRow], pools: Sequence[PoolRow]) -> Iterator[Share]:
    """Yield the idle share of each deployment's energy, and the utilization of each pool."""
    for key, row in rows.items():
        if row.idle_fraction >= LEAST_IDLE:
            yield Share(runs=(key,), metric=ENERGY, name=IDLE, share=row.idle_fraction)
    for pool in pools:
        if pool.use_fraction is not None:
            yield Share(runs=(1,), metric=USE, name=pool.pool, share=pool.use_fraction)


def _find_excluded(rows: Mapping[int, LoadRow]) -> Iterator[Finding]:
    """Yield the requests that percentiles leave out; their effect is unknown."""
    for key, row in rows.items():
        if row.refused_count:
            yield Finding(kind="excluded", run_id=key, values={"count": row.refused_count}, doubt=UNKNOWN)
