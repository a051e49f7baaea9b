"""Facts of a request load: a row per deployment, the lowest p99 TTFT, the least energy, and what cannot keep up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Final

from joulemap.ask import UNKNOWN, Entry, Facts, Finding, Limit, Quantity, Scope, Share, choose, find_caveats
from joulemap.domain import LEAST_ASSUMED, MOSTLY_STATIC
from joulemap.wing.decoder import ANSWER
from joulemap.wing.llm.ask.served import (
    COST,
    ENERGY,
    FIRST,
    IDLE,
    OTHER_INTERVALS,
    RATE,
    REUSE,
    SERVED_RATE,
    TAIL,
    TIME,
    USE,
    ExaminedDeployment,
    find_served,
    name_runs,
    represent,
)
from joulemap.wing.llm.capacity.load import find_assumed
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import LoadRow, PoolRow, ServedPhase, ServedRow

ASSUMED: Final = "assumed"
"""Rule of the core on single passes; the energy of a load has prompts, idle time and larger batches too."""

LEAST_IDLE: Final = 0.01
"""Minimum idle share of the energy that is a fact."""

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    TAIL: ("first_token_p99_s", "s", "first_token_half_width"),
    FIRST: ("first_token_s", "s"),
    TIME: ("between_s", "s"),
    ENERGY: ("output_token_j", "J", "output_token_half_width"),
    RATE: ("output_tokens_per_s", "1/s"),
    SERVED_RATE: ("served_per_s", "1/s"),
    COST: ("output_usd_per_million", "USD"),
    **REUSE,
}
"""Metric -> field of a row, unit, and field of a batch with the half-width."""


def find_facts(
    scope: Scope,
    question: Question,
    loads: Sequence[LoadRow],
    pools: Sequence[PoolRow],
    served: Sequence[ServedRow],
    phases: Sequence[ServedPhase],
    *,
    hosts: Mapping[str, SlowHost],
) -> Facts:
    """Return the facts of deployments under a load; a run of the facts is a row of `loads`.

    The half-widths are those of the smallest batch of each deployment. Errors of two deployments count as independent.
    """
    smallest = {_key(row): row for row in reversed(served)}
    steps = {row.hardware: row for row in phases if row.phase == ANSWER.name}
    rows = dict(enumerate(loads, 1))
    batches = {key: smallest.get(_key(row)) for key, row in rows.items()}
    deployed = []
    for key, row in rows.items():
        batch = batches[key]
        known = {"run_id": None} if batch is None else {
            "run_id": batch.decode_run_id, "half_width": batch.first_token_half_width, "weight_bytes": batch.model_bytes
        }  # fmt: skip
        deployed.append(
            ExaminedDeployment.of(key, row, steps.get(row.hardware), hosts, slow_step_s=row.between_s, **known)
        )
    kept = {key: row for key, row in rows.items() if not row.is_growing}
    entries = {key: Entry.read(key, _join(row, batches[key]), VALUES) for key, row in rows.items()}
    values = {key: entries[key].values for key in kept} if len(kept) > 1 and not pools else {}
    shared = [metric for metric in (TAIL, ENERGY, COST) if values and all(metric in one for one in values.values())]
    choices = [choose(metric, {key: one[metric] for key, one in values.items()}) for metric in shared]
    most_context = question.decoder.context_length
    own = (
        *find_served(deployed, question.stack.label, most_context=most_context),
        *_find_excluded(rows),
        *_find_assumed(rows),
    )
    # Runs of other batches stand for no row: the rules would name them by their stored ids, which are other rows' keys.
    stored = represent(deployed)
    caveats = find_caveats(
        scope.part(stored), choices, metric="latency", more=own, stands_for=stored, but=(*OTHER_INTERVALS, ASSUMED)
    )
    limits, shares = _list_limits(rows), _list_shares(rows, pools)
    facts = (*choices, *limits, *shares, *entries.values(), *caveats)
    return Facts(asked=(TAIL, ENERGY), runs=name_runs(scope, deployed), facts=facts)


def _find_assumed(rows: Mapping[int, LoadRow]) -> Iterator[Finding]:
    """Yield the assumed shares of the energy of loads, those of the table."""
    for key, row in rows.items():
        if (assumed := find_assumed(row)) is not None and assumed.fraction >= LEAST_ASSUMED:
            mostly = "static" if assumed.static_fraction >= MOSTLY_STATIC * assumed.fraction else ""
            yield Finding(kind=ASSUMED, run_id=key, values={"energy_fraction": assumed.fraction, "mostly": mostly})


def _join(row: LoadRow, batch: ServedRow | None) -> SimpleNamespace:
    """Return the fields of a row, and those that only its smallest batch has."""
    fields = dict.fromkeys(ServedRow.columns) if batch is None else batch.record()
    return SimpleNamespace(**fields | row.record())


def _key(row: LoadRow | ServedRow) -> tuple[str, str, int]:
    return row.hardware, row.precision, row.device_count


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
