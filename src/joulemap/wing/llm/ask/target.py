"""Facts of a latency target for users: deployments that meet a latency target, by cost, and their alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask import (
    Choice,
    Facts,
    Finding,
    Limit,
    Quantity,
    Refusal,
    Scope,
    represent as represent_rows,
    weigh_findings,
)
from joulemap.wing.llm.ask.served import (
    COST,
    FIRST,
    REUSE,
    TIME,
    ExaminedDeployment,
    enter,
    find_served,
    name_runs,
    represent,
)

if TYPE_CHECKING:
    from joulemap.wing.llm.capacity.slow import SlowHost
    from joulemap.wing.llm.capacity.users import LatencyTarget
    from joulemap.wing.llm.generated.row import ServedPhase, UserRow

LIKELY: Final = 0.8
"""Probability of meeting the target from which a deployment is a safe choice."""

DEAR: Final = 3.0
"""Cost, as a multiple of the lowest cost, above which the answer does not suggest a safer deployment."""

ENERGY: Final = "energy_per_million"
CHEAPER: Final = "cheaper"
"""Metric of the choice of a deployment that costs less, and that may miss the target."""
SIMPLER: Final = "simpler"
"""Metric of the choice among deployments without separate pools."""
PUBLISHED: Final = "published"
"""Metric of the choice among deployments in the checkpoint's own precision."""

VALUES: Final[Mapping[str, tuple[str, str]]] = {
    COST: ("usd_per_million", "USD"),
    ENERGY: ("million_j", "J"),
    FIRST: ("first_token_s", "s"),
    TIME: ("between_s", "s"),
    "met_probability": ("met_probability", ""),
    "servers": ("server_count", ""),
    "prefill_servers": ("prefill_server_count", ""),
    **REUSE,
}
"""Metric -> field of a row, and unit."""

WIDTHS: Final = {FIRST: "first_token_half_width", TIME: "between_half_width"}


def find_facts(
    scope: Scope,
    rows: Sequence[UserRow],
    target: LatencyTarget,
    steps: Mapping[str, ServedPhase],
    findings: Sequence[Finding | Refusal],
    *,
    hosts: Mapping[str, SlowHost],
    engine: str,
) -> Facts:
    """Return the facts of deployments for users; a run of the facts is a row.

    `steps` maps hardware to the stored decode steps that represent it, and `findings` are about these.
    """
    by_key = dict(enumerate(rows, 1))
    deployed = [
        ExaminedDeployment.of(
            key,
            row,
            (step := steps.get(row.hardware)),
            hosts,
            expert_device_count=row.expert_device_count,
            run_id=None if step is None else step.run_id,
            half_width=row.between_half_width,
            slow_step_s=row.between_s,
        )
        for key, row in by_key.items()
    ]
    choices = [*_choose(by_key)]
    own = (*find_served(deployed, engine), *_find_losses(by_key))
    caveats = weigh_findings([*represent_rows(findings, represent(deployed)), *own], choices)
    entries = [enter(key, row, VALUES, WIDTHS) for key, row in by_key.items()]
    limits = [limit for key, row in by_key.items() for limit in _list_limits(key, row, target)]
    metric = COST if choices[0].metric == COST else ENERGY
    return Facts(
        asked=(metric, FIRST, TIME),
        runs=name_runs(scope, deployed),
        facts=(*choices, *limits, *entries, *caveats),
    )


def _choose(by_key: Mapping[int, UserRow]) -> Iterator[Choice]:
    """Yield the chosen deployment, then cheaper ones that are less likely to do, simpler and published ones."""
    rows = list(by_key.values())
    keys = {id(row): key for key, row in by_key.items()}
    best = choose_row(rows)
    following = find_next(rows, best)
    metric, value = _value(best)
    yield Choice(
        runs=(keys[id(best)], *([keys[id(following)]] if following is not None else [])),
        metric=metric,
        value=value,
        ratio=None if following is None else compare_costs(following, best),
        probability=best.met_probability,
    )
    simpler = find_simpler(rows, best)
    published = [row for row in rows if row.is_published]
    own = choose_row(published) if published and not best.is_published and best.is_met else None
    for name, row in ((CHEAPER, rows[0] if best is not rows[0] else None), (SIMPLER, simpler), (PUBLISHED, own)):
        if row is not None:
            runs = (keys[id(row)], keys[id(best)])
            ratio = compare_costs(best, row)
            yield Choice(runs=runs, metric=name, value=_value(row)[1], ratio=ratio, probability=row.met_probability)


def _value(row: UserRow) -> tuple[str, Quantity]:
    if row.usd_per_million is None:
        return ENERGY, Quantity(row.million_j, "J")
    return COST, Quantity(row.usd_per_million, "USD")


def _list_limits(key: int, row: UserRow, target: LatencyTarget) -> Iterator[Limit]:
    """Yield the targets of a deployment's mean times, and by how much it misses them."""
    for metric, value, most in (
        (FIRST, row.first_token_s, target.first_token_s),
        (TIME, row.between_s, target.between_s),
    ):
        if most is not None:
            miss = math.log(max(1.0, value / most))
            yield Limit(runs=(key,), metric=metric, bound=Quantity(most, "s"), value=Quantity(value, "s"), miss=miss)


def _find_losses(by_key: Mapping[int, UserRow]) -> Iterator[Finding]:
    """Yield the published loss of quality of each precision that the checkpoint is not stored in."""
    for key, row in by_key.items():
        if row.quality and not row.is_published:
            yield Finding(kind="quality", run_id=key, values={"precision": row.precision, "quality": row.quality})


def choose_row(rows: Sequence[UserRow]) -> UserRow:
    """Return the cheapest of some deployments that meets the target with at least `LIKELY` probability.

    `rows` are sorted, best first. Return the first if none is as likely, or if that one costs more than `DEAR` times
    the first.
    """
    first = rows[0]
    surer = next((row for row in rows if row.is_met and (row.met_probability or 0.0) >= LIKELY), None)
    times = compare_costs(surer, first) if surer else None
    return surer if surer is not None and (times is None or times <= DEAR) else first


def compare_costs(row: UserRow, other: UserRow) -> float | None:
    """Return the cost of `row` divided by the cost of `other`; None if either is unknown."""
    return row.usd_per_million / other.usd_per_million if row.usd_per_million and other.usd_per_million else None


def find_simpler(rows: Sequence[UserRow], best: UserRow) -> UserRow | None:
    """Return the cheapest deployment without separate pools that meets the target; None if `best` has no pools.

    Its probability of meeting the target is at least that of `best` or `LIKELY`, whichever is lower.
    """
    least = min(best.met_probability or 0.0, LIKELY)
    others = (row for row in rows if row.is_met and not row.prefill_server_count)
    simpler = next((row for row in others if (row.met_probability or 0.0) >= least), None)
    return simpler if best.is_met and best.prefill_server_count else None


def find_next(rows: Sequence[UserRow], best: UserRow) -> UserRow | None:
    """Return the cheapest deployment of another chip that meets the target; None if `best` misses it.

    If `best` meets the target with `LIKELY` probability, so must the returned deployment.
    """
    least = LIKELY if (best.met_probability or 0.0) >= LIKELY else 0.0
    named = (best.hardware, rows[0].hardware)
    others = (row for row in rows if row.is_met and row.hardware not in named)
    return next((row for row in others if (row.met_probability or 0.0) >= least), None) if best.is_met else None
