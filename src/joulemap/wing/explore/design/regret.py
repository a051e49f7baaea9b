"""Best chip for each of many models, and the regret of each chip over all of them.

value(model, chip)  = best of the chip's modes, precisions, batches and runtimes within the limits
regret(model, chip) = value(model, chip) / best value over all chips, at least 1
mean                = geometric mean by the shares of the models
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from joulemap.domain import HardwareRef, Settings, name_configured
from joulemap.generated.compare import PairChance
from joulemap.physics import TOLD_APART, Configuration, Evaluator
from joulemap.physics.outcome import Asked
from joulemap.physics.total import evaluate_totals
from joulemap.plan import (
    Plan,
    Source,
    find_targets,
    opening_runs,
    opening_workload,
    plan_selected,
    reading,
    select_hardware,
)
from joulemap.store import fetch, read_columns
from joulemap.wing.explore.design.outcome import Bound, Objective, Outcomes, find_excess
from joulemap.wing.explore.generated.row import ChipRegret, WinnerColumns

Best = dict[str, dict[str, tuple[float, dict[str, Any]]]]
"""Model -> chip -> (cost, configuration) of its best configuration."""

MOST_RIVALS: Final = 8
"""Maximum chips that are statistically compared with the best chip of a model; the next best come first."""

TOGETHER: Final = 25_000
"""Maximum operators, summed over configurations, per evaluation; a ledger takes memory for twenty lines per operator.
"""

METRICS: Final = {
    "energy": "energy_per_inference", "efficiency": "energy_per_inference", "latency": "latency",
    "edp": "edp_per_inference", "throughput": "throughput", "power": "power",
}  # fmt: skip
"""Objective -> metric by which two chips are compared statistically.

The errors of other objectives are not known.
"""


def evaluate_all(
    source: Source, plan: Plan, names: Sequence[str], wanted: Objective, bounds: tuple[Bound, ...]
) -> tuple[Best, int]:
    """Return the best configuration of each model on each chip, and the number of configurations evaluated."""
    targets = find_targets(source, plan)
    ranked = {
        entry.id for entry, _ in plan.selection.pairs if plan.settings.takes_all or not entry.unavailable
    } or plan.selection.ids
    best: Best = {}
    count = 0
    for number, model in enumerate(plan.models):
        with opening_workload(source, model) as (workload_id, connection):
            evaluator = Evaluator(read_columns(connection, workload_id))
        batch = evaluator.work.batch
        runs = [run for run in plan.runs("", model) if run.hardware in ranked]
        asked = [
            (
                targets[run.target.digest],
                Configuration(hardware=run.hardware, power_mode=run.power_mode, batch=batch, **run.point),
            )
            for run in runs
        ]
        count += len(asked)
        for index, cost in _find_choices(evaluator, asked, [run.hardware for run in runs], wanted, bounds):
            run = runs[index]
            mine = best.setdefault(names[number * len(names) // len(plan.models)], {})
            if run.hardware not in mine or cost < mine[run.hardware][0]:
                configuration = {"hardware": name_configured(run.hardware, run.power_mode), "batch": batch}
                point = {"precision": run.point["precision"], "weights": run.point["weight_precision"]}
                mine[run.hardware] = cost, {**configuration, **point, "runtime": run.point["runtime"]}
        if source.progress is not None:
            source.progress(number + 1, len(plan.models))
    return best, count


def _find_choices(
    evaluator: Evaluator, asked: Sequence[Asked], chips: Sequence[str], wanted: Objective, bounds: tuple[Bound, ...]
) -> Iterator[tuple[int, float]]:
    """Yield the index of each chip's best configuration, and the logarithm of its cost.

    Chips without a configuration within the limits are skipped.
    """
    most = max(1, TOGETHER // max(1, evaluator.work.operator_count))
    outcomes = Outcomes.join([_evaluate_block(evaluator, asked[at : at + most]) for at in range(0, len(asked), most)])
    is_within, _ = find_excess(outcomes, bounds)
    cost = np.where(is_within, wanted.sign * np.log(outcomes.value(wanted)), np.inf)
    for chip in dict.fromkeys(chips):
        mine = np.flatnonzero(np.array(chips) == chip)
        index = int(mine[np.argmin(cost[mine])])
        if np.isfinite(cost[index]):
            yield index, float(cost[index])


def _evaluate_block(evaluator: Evaluator, asked: Sequence[Asked]) -> Outcomes:
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
        refusal=np.where(np.isnan(nothing), "unsupported", ""),
        latency_half_width=nothing * np.nan,
        energy_half_width=nothing * np.nan,
    )


def find_rivals(
    source: Source, settings: Settings, whole: Plan, best: Best, names: Sequence[str], wanted: Objective
) -> dict[str, dict[str, float]]:
    """Return model -> rival chip -> probability that the best chip beats it.

    The runs of the best chip and its rivals are stored first, because shared errors are known only for stored runs.
    """
    spelling = {one.id: str(path) for path, one in whole.selection.own.items()}
    rivals: dict[str, dict[str, float]] = {}
    metric = METRICS.get(wanted.name, "")
    for name in names if metric else ():
        order = _order(best, name)[: MOST_RIVALS + 1]
        alike: dict[tuple[Any, ...], list[str]] = {}
        for _, chip, configuration in order:
            mode = HardwareRef.read(configuration["hardware"]).mode
            key = tuple(configuration[one] for one in ("precision", "weights", "batch", "runtime"))
            alike.setdefault(key, []).append(str(HardwareRef.at(spelling.get(chip, chip), mode)))
        ids: dict[int, str] = {}
        for (precision, weights, batch, runtime), chips in alike.items():
            given = {"precision": precision, "weight_precision": weights, "runtime": runtime}
            given |= {"batch": batch} if settings.batch else {}
            one = attrs.evolve(settings, **given, hardware=chips, architecture=(), deployment=(), power_mode="")
            plan = plan_selected((name,), one, select_hardware(one))
            with opening_runs(source, plan) as runs:
                ids |= dict(zip(runs.ids, (entry.id for entry, _ in plan.selection.pairs), strict=True))
        with reading(source) as connection:
            chances = fetch(connection, PairChance, run_ids=list(ids), metric=metric).rows
        rivals[name] = {
            ids[row.other_run_id]: row.probability_better for row in chances if order and ids[row.run_id] == order[0][1]
        }
    return rivals


def list_tied(winner: WinnerColumns) -> list[str]:
    """Return the chips that are statistically tied with the best one of a model."""
    return winner.alike.split(", ") if winner.alike else []


def list_winners(
    best: Best, names: Sequence[str], wanted: Objective, rivals: Mapping[str, Mapping[str, float]]
) -> list[WinnerColumns]:
    """Return the best chip of each model; `rivals` is the result of `find_rivals`."""
    winners = []
    for name in names:
        order = _order(best, name)
        if order:
            (cost, _, configuration), *rest = order
            chances = rivals.get(name, {})
            alike = [chip for _, chip, _ in rest if chances.get(chip, 1.0) < TOLD_APART]
            winners.append(
                WinnerColumns(
                    model=name,
                    **{one: value for one, value in configuration.items() if one != "weights"},
                    value=math.exp(wanted.sign * cost),
                    unit=wanted.unit,
                    runner_up=rest[0][1] if rest else "",
                    runner_up_ratio=math.exp(rest[0][0] - cost) if rest else None,
                    probability=chances.get(rest[0][1]) if rest else None,
                    alike=", ".join(alike),
                    alike_count=len(alike),
                )
            )
    return winners


def _order(best: Best, name: str) -> list[tuple[float, str, dict[str, Any]]]:
    """Return the chips of a model, best first, each with its best configuration."""
    chips = [(cost, chip, configuration) for chip, (cost, configuration) in best.get(name, {}).items()]
    return sorted(chips, key=lambda one: one[:2])


def list_regrets(best: Best, shares: Mapping[str, float]) -> list[ChipRegret]:
    """Return the regret of each chip, least first; `shares` is model -> share of the inferences."""
    least = {name: min(cost for cost, _ in some.values()) for name, some in best.items()}
    regrets = []
    for chip in dict.fromkeys(chip for some in best.values() for chip in some):
        logs = {name: best[name][chip][0] - least[name] for name in shares if chip in best.get(name, {})}
        weight = math.fsum(shares[name] for name in logs)
        worst = max(logs, key=lambda name: logs[name])
        regrets.append(
            ChipRegret(
                hardware=chip,
                regret_ratio=math.exp(math.fsum(shares[name] * one for name, one in logs.items()) / weight),
                worst_ratio=math.exp(logs[worst]),
                worst_model=worst,
                model_count=len(logs),
                missing=", ".join(name for name in shares if name not in logs),
            )
        )
    return sorted(regrets, key=lambda row: (-row.model_count, row.regret_ratio or math.inf, row.hardware))
