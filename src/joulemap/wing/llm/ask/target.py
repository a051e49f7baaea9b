"""Facts of a latency target for users: deployments that meet a latency target, by cost, and their alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask import (
    Choice,
    Entry,
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

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    COST: ("usd_per_million", "USD"),
    ENERGY: ("million_j", "J"),
    FIRST: ("first_token_s", "s", "first_token_half_width"),
    TIME: ("between_s", "s", "between_half_width"),
    "met_probability": ("met_probability", ""),
    "servers": ("server_count", ""),
    "prefill_servers": ("prefill_server_count", ""),
    **REUSE,
}
"""Metric -> field of a row, unit, and field with the half-width."""


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
    choices = [*list_choices(by_key)]
    own = (*find_served(deployed, engine), *_find_losses(by_key))
    caveats = weigh_findings([*represent_rows(findings, represent(deployed)), *own], choices)
    entries = [Entry.read(key, row, VALUES) for key, row in by_key.items()]
    limits = [limit for key, row in by_key.items() for limit in _list_limits(key, row, target)]
    return Facts(
        asked=(choices[0].metric, FIRST, TIME),
        runs=name_runs(scope, deployed),
        facts=(*choices, *limits, *entries, *caveats),
    )


def list_choices(by_key: Mapping[int, UserRow]) -> Iterator[Choice]:
    """Yield the chosen deployment, then cheaper ones that are less likely to do, simpler and published ones."""
    rows = list(by_key.values())
    keys = {id(row): key for key, row in by_key.items()}
    best = choose_row(rows)
    named, chance = (best.hardware, rows[0].hardware), best.met_probability or 0.0
    least = LIKELY if chance >= LIKELY else 0.0
    published = [row for row in rows if row.is_published]
    others = {
        "": _find_met((row for row in rows if row.hardware not in named), least) if best.is_met else None,
        CHEAPER: rows[0] if best is not rows[0] else None,
        SIMPLER: _find_met((row for row in rows if not row.prefill_server_count), min(chance, LIKELY))
        if best.is_met and best.prefill_server_count
        else None,
        PUBLISHED: choose_row(published) if published and not best.is_published and best.is_met else None,
    }
    for name, other in others.items():
        row, rival = (other, best) if name else (best, other)
        if row is not None:
            metric, unit = (ENERGY, "J") if row.usd_per_million is None else (COST, "USD")
            yield Choice(
                runs=tuple(keys[id(one)] for one in (row, rival) if one is not None),
                metric=name or metric,
                value=Quantity(getattr(row, VALUES[metric][0]), unit),
                ratio=None if rival is None else compare_costs(rival, row),
                probability=row.met_probability,
            )


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
    surer = _find_met(rows, LIKELY)
    return rows[0] if surer is None or (compare_costs(surer, rows[0]) or 0.0) > DEAR else surer


def _find_met(rows: Iterable[UserRow], least: float) -> UserRow | None:
    """Return the first deployment that meets the target with a probability of at least `least`; None without any."""
    return next((row for row in rows if row.is_met and (row.met_probability or 0.0) >= least), None)


def compare_costs(row: UserRow, other: UserRow) -> float | None:
    """Return the cost of `row` divided by the cost of `other`; None if either is unknown."""
    return row.usd_per_million / other.usd_per_million if row.usd_per_million and other.usd_per_million else None
