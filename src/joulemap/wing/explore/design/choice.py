"""Best configuration of each chip for a model, within limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from joulemap.model.total import evaluate_totals
from joulemap.wing.explore.design.limit import find_excess
from joulemap.wing.explore.design.outcome import Outcomes

if TYPE_CHECKING:
    from joulemap.model.outcome import Asked
    from joulemap.model.pipeline import Evaluator
    from joulemap.wing.explore.design.limit import Bound
    from joulemap.wing.explore.design.outcome import Objective


TOGETHER: Final = 25_000
"""Operators of configurations evaluated together; their ledgers, some twenty lines per operator, are in memory."""


def find_choices(
    evaluator: Evaluator, asked: Sequence[Asked], chips: Sequence[str], wanted: Objective, bounds: tuple[Bound, ...]
) -> Iterator[tuple[int, float]]:
    """Yield for each chip the index of its best configuration within limits, and its cost as a logarithm."""
    most = max(1, TOGETHER // max(1, evaluator.work.operator_count))
    outcomes = Outcomes.join([_judge(evaluator, asked[at : at + most]) for at in range(0, len(asked), most)])
    keeps, _ = find_excess(outcomes, bounds)
    cost = np.where(keeps, wanted.sign * np.log(outcomes.value(wanted)), np.inf)
    for chip in dict.fromkeys(chips):
        mine = np.flatnonzero(np.array(chips) == chip)
        place = int(mine[np.argmin(cost[mine])])
        if np.isfinite(cost[place]):
            yield place, float(cost[place])


def _judge(evaluator: Evaluator, asked: Sequence[Asked]) -> Outcomes:
    """Return the outcomes of configurations, without area and uncertainty."""
    totals = evaluate_totals(evaluator, asked)
    batch = evaluator.work.batch
    nothing = np.where((totals.refusal == "") & (totals.latency_fs > 0), 1.0, np.nan)
    area = np.zeros(len(asked))
    energy, rate = totals.energy_per_inference_j(batch), totals.throughput_per_s(batch)
    return Outcomes(
        latency_s=nothing * totals.latency_s,
        slowest_s=nothing * totals.latency_s,
        energy_per_inference_j=nothing * energy,
        throughput_per_s=nothing * rate,
        peak_memory_bytes=nothing * totals.peak_memory_bytes,
        area_mm2=area,
        die_cost_usd=area,
        latency_fs=totals.latency_fs,
        energy_fj=totals.energy_fj,
        clock_fraction=totals.clock_fraction,
        limit=totals.throughput_limit,
        refusal=np.where(np.isnan(nothing), "it does not run", ""),
        latency_half_width=nothing * np.nan,
        energy_half_width=nothing * np.nan,
    )
