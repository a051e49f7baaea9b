"""Preparation of a design question: base chips, their workloads, and the uncertainty between designs.

Limits and targets are parsed here; a question with `solve` becomes one about the designs that meet its targets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.catalog import load_doubt
from joulemap.domain import Limits, Settings, check_name, name_configured
from joulemap.physics import UNCALIBRATED, Configuration, Evaluator, PointErrors, label_precision
from joulemap.plan import (
    Plan,
    PlannedRun,
    Source,
    find_targets,
    find_workload_id,
    opening_runs,
    plan_selected,
    select_hardware,
    stored_key,
)
from joulemap.store import fetch, read_columns
from joulemap.store.interval import load_record
from joulemap.store.run import find_runs
from joulemap.store.workload import read_work, read_workload
from joulemap.system import UnsupportedError, UsageError, frozen, parse_si, read_real
from joulemap.wing.explore.design.outcome import OBJECTIVES, Bound, ModelShare, Objective
from joulemap.wing.explore.design.solve import Target, solve_values
from joulemap.wing.explore.design.space import MOST_DRAWN, MOST_NUMBERED, MOST_POINTS, Space, vary_usual
from joulemap.wing.explore.design.survey import Difference, Watch
from joulemap.wing.explore.design.task import Group
from joulemap.wing.explore.generated.row import DesignDoubt

MOST_DOUBTED: Final = 200
"""Maximum number of base-chip runs for which the uncertainty of every pair is computed."""

MOST_UNKNOWN: Final = 2

NO_SHARES: Final[Mapping[str, float]] = {}

BOUNDED: Final[Mapping[str, tuple[str, str]]] = {
    "max_latency_s": ("--max-latency", "latency"),
    "max_energy_per_inference_j": ("--max-energy-per-inference", "energy"),
    "max_memory_bytes": ("--max-memory", "memory"),
    "max_power_w": ("--max-power", "power"),
    "min_throughput_per_s": ("--min-throughput", "throughput"),
}
"""Limit -> its option and the objective that it bounds."""


@frozen(kw_only=True, eq=False)
class DesignQuestion:
    """Design question: groups of designs to compare, and the uncertainty of their differences."""

    groups: tuple[Group, ...]
    models: Mapping[str, float]
    """Model -> share of the inferences."""
    spelling: Mapping[str, str]
    """Id of a chip that a file describes -> path of that file."""
    doubt: Mapping[tuple[int, int], Difference]
    """(group, group) -> uncertainty of the difference between two designs, one from each group."""

    @property
    def size(self) -> int:
        """Number of designs in the spaces of all groups, sampled or not."""
        return sum(one.space.size for one in self.groups)

    def keep(self, groups: Mapping[int, Group]) -> DesignQuestion:
        """Return the question with only the groups in `groups`, keyed by their index in this question."""
        number_of = {own: number for number, own in enumerate(groups)}
        return attrs.evolve(
            self,
            groups=tuple(groups.values()),
            doubt={
                (number_of[one], number_of[other]): squares
                for (one, other), squares in self.doubt.items()
                if one in number_of and other in number_of
            },
        )


def read_shares(models: Sequence[str], share: Mapping[str, float]) -> dict[str, float]:
    """Return each model's share of the inferences, the rest divided evenly; UsageError for an invalid share."""
    for name, value in share.items():
        if name not in models:
            raise UsageError(f"--share {name}: it is not one of the models ({', '.join(models)})")
        if not 0.0 < value <= 1.0:
            raise UsageError(f"--share {name}={value:g}: a share is above 0 and at most 1")
    left, others = 1.0 - math.fsum(share.values()), [name for name in models if name not in share]
    if left < -1e-9 or (others and left <= 1e-9) or (not others and abs(left) > 1e-6):
        raise UsageError(
            f"--share: shares must sum to 1, but sum to {1.0 - left:g}, and {len(others)} models have no share"
        )
    return {name: share.get(name, left / max(len(others), 1)) for name in models}


def prepare_question(
    source: Source,
    models: Sequence[str],
    settings: Settings,
    vary: Mapping[str, Any] | None,
    share: Mapping[str, float],
    count: int | None,
    seed: int,
    *,
    is_kept: bool = False,
) -> DesignQuestion:
    """Return a prepared question; raises like `compare`, and UsageError for a constant that cannot be varied.

    Each group samples its part of `count` designs by `seed`; without `count`, every design is included. With `is_kept`,
    the workloads are loaded, so that designs can be stored. Without `vary` the default constants are varied.
    """
    names = tuple(dict.fromkeys(models))
    shares = read_shares(names, share)
    plan = plan_selected(names, settings, select_hardware(settings))
    if any(entry.variant is not None for entry, _ in plan.selection.pairs) or settings.changes:
        raise UsageError("--set does not apply to designs: write --vary tdp=60W instead")
    targets = find_targets(source, plan)
    planned = [plan.runs("", model) for model in plan.models]
    chips: dict[str, Space] = {}
    for run in (one for each in planned for one in each):
        if run.target.digest not in chips:
            chip = targets[run.target.digest]
            chips[run.target.digest] = Space.of(chip, vary_usual(chip) if vary is None else vary)
    batches = len(settings.batch or (None,))
    total = sum(chips[run.target.digest].size for each in planned[:batches] for run in each)
    _check_total(count, total)
    with opening_runs(source, plan) as runs:
        connection = runs.connection
        works = [_find_work(connection, plan, index) for index in range(len(plan.models))]
        workloads = [read_workload(connection, workload_id) if is_kept else None for _, workload_id in works]
        evaluators = [Evaluator(read_columns(connection, workload_id)) for _, workload_id in works]
        error_classes = [read_work(connection, workload_id) for _, workload_id in works]
        errors = PointErrors(load_doubt(), load_record(connection).held_out)
        asked = [plan.runs(key, model) for (key, _), model in zip(works, plan.models, strict=True)]
        ids = find_runs(connection, [run.run_key for each in asked for run in each])
        prepared: list[tuple[Group, list[int]]] = []
        for index in range(batches):
            mine = range(index, len(plan.models), batches)
            for number, run in enumerate(asked[mine[0]]):
                if any(asked[one][number].target.digest != run.target.digest for one in mine):
                    raise UsageError("these models run under different engines: explore one of them at a time")
                space = chips[run.target.digest]
                model_shares = tuple(
                    ModelShare(
                        evaluator=evaluators[one],
                        configuration=_configure(run, evaluators[one].work.batch),
                        share=shares[names[one // batches]],
                        workload=workloads[one],
                        calibration=(run.calibration.label, run.calibration.digest)
                        if run.calibration
                        else (UNCALIBRATED, ""),
                        errors=errors,
                        work=error_classes[one],
                    )
                    for one in mine
                )
                part = space.size if count is None else max(1, round(count * space.size / total))
                group = Group(
                    hardware=name_configured(run.hardware, run.power_mode),
                    dimensions=_list_dimensions(run),
                    batch=model_shares[0].configuration.batch,
                    space=space,
                    models=model_shares,
                    numbers=space.draw(part, seed + len(prepared)),
                )
                prepared.append((group, [ids[asked[one][number].run_key] for one in mine]))
        doubt = _find_doubt(connection, prepared)
    return DesignQuestion(
        groups=tuple(group for group, _ in prepared),
        models={model.request.model: shares[names[index // batches]] for index, model in enumerate(plan.models)},
        spelling={one.id: str(Path(path).absolute()) for path, one in plan.selection.own.items() if path != one.id},
        doubt=doubt,
    )


def _check_total(count: int | None, total: int) -> None:
    """Raise UsageError if there are more designs than can be evaluated, sampled or numbered."""
    if count is None and total > MOST_POINTS:
        raise UsageError(
            f"there are {total:,} designs, more than {MOST_POINTS:,}: draw some of them, as --random 100000 --seed 1, "
            "or look for the best: --search optuna --points 5000"
        )
    if count is not None and min(count, total) > MOST_DRAWN:
        raise UsageError(f"{min(count, total):,} designs are asked for, expected at most {MOST_DRAWN:,}")
    if total >= MOST_NUMBERED:
        raise UsageError(f"there are {total:.3g} designs, more than can be numbered: give constants fewer values")


def _find_work(connection: Any, plan: Plan, index: int) -> tuple[str, int]:

    key = stored_key(connection, plan.models[index])
    assert key is not None  # its runs are stored
    return key, find_workload_id(connection, key)


def _configure(run: PlannedRun, batch: int) -> Configuration:
    return Configuration(hardware=run.hardware, power_mode=run.power_mode, batch=batch, **run.point)


def _list_dimensions(run: PlannedRun) -> dict[str, str]:
    """Return the precision and the runtime of a run, by which groups of designs differ."""
    precision, weights = run.point["precision"], run.point["weight_precision"]
    return {"precision": label_precision(precision, weights), "runtime": run.point["runtime"]}


def _find_doubt(connection: Any, prepared: Sequence[tuple[Group, list[int]]]) -> dict[tuple[int, int], Difference]:
    """Return (group, group) -> uncertainty of the difference of their designs; empty above `MOST_DOUBTED` runs."""
    ids = sorted({one for _, mine in prepared for one in mine})
    if len(ids) > MOST_DOUBTED:
        return {}
    rows = {(row.run_id, row.other_run_id): row for row in fetch(connection, DesignDoubt, run_ids=ids).rows}
    weights = [[model.share for model in group.models] for group, _ in prepared]

    def mean(parts: Sequence[float], group_index: int) -> float:
        return math.fsum(part * weight for part, weight in zip(parts, weights[group_index], strict=True))

    doubt: dict[tuple[int, int], Difference] = {}
    for index, (_, mine) in enumerate(prepared):
        for other, (_, theirs) in enumerate(prepared):
            pairs = [rows.get(pair) for pair in zip(mine, theirs, strict=True)]
            if all(pairs):
                squares = [[getattr(row, field.name) for row in pairs] for field in attrs.fields(Difference)]
                latency, energy = (mean([math.sqrt(max(one, 0.0)) for one in each], index) for each in squares)
                doubt[index, other] = Difference(latency_square=latency**2, energy_square=energy**2)
    return doubt


def read_bounds(limits: Limits, max_area_mm2: float | None, max_die_cost_usd: float | None) -> tuple[Bound, ...]:
    """Return the limits of designs; UsageError for a limit that does not apply to designs."""
    given = {name: value for name, value in attrs.asdict(limits).items() if value is not None}
    odd = [name for name in given if name not in BOUNDED]
    if odd:
        raise UsageError(f"{odd[0]} is not a limit of a design; limits are {', '.join(BOUNDED)}, max_area_mm2")
    bounds = [Bound.of(*BOUNDED[name], value) for name, value in given.items()]
    for option, name, value in (("--max-area", "area", max_area_mm2), ("--max-die-cost", "cost", max_die_cost_usd)):
        if value is not None:
            if not value > 0.0:
                raise UsageError(f"{option} is {value:g}, expected above 0")
            bounds.append(Bound.of(option, name, value))
    return tuple(bounds)


def solve_question(question: DesignQuestion, names: Sequence[str], asked: Sequence[Target]) -> DesignQuestion:
    """Return the question with the one design of each group that meets the targets.

    Groups without such a design are dropped. Raises UsageError for an invalid question, UnsupportedError with the first
    group's reason if no group is left.
    """
    if len(names) != len(asked) or not 1 <= len(asked) <= MOST_UNKNOWN:
        raise UsageError(
            "--solve takes one or two constants and as many targets "
            f"(constants: {len(names)}, targets: {len(asked)}); "
            'write, for example, --solve dram.bandwidth --for "latency = 10ms"'
        )
    solved: dict[int, Group] = {}
    reasons: list[str] = []
    for index, group in enumerate(question.groups):
        own = {one.name: list(one.values) for one in group.space.parameters}
        if group.space.size > 1:
            raise UsageError("--solve finds one design: vary other constants to one value each")
        unknown = Space.of(group.space.hardware, dict.fromkeys(names, "x1"), label="--solve {}")
        values = solve_values(group, [one.name for one in unknown.parameters], asked)
        if isinstance(values, str):
            reasons.append(f"{group.hardware}: {values}")
            continue
        space = Space.of(group.space.hardware, {**own, **{name: [value] for name, value in values.items()}})
        solved[index] = attrs.evolve(group, space=space)
    if not solved:
        raise UnsupportedError(
            reasons[0], code="unsolved", hardware=question.groups[0].hardware, constants=tuple(names)
        )
    return question.keep(solved)


def read_target(text: str) -> Target:
    """Return the target of a text such as `latency = 10ms`; UsageError for a text that cannot be read."""
    text = " ".join(text.split())
    name, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not written:
        raise UsageError(f'--for {text}: write OBJECTIVE=VALUE, as "latency = 10ms"')
    check_name("objective", name, OBJECTIVES)
    objective = OBJECTIVES[name]
    try:
        if objective.unit in ("mm2", "USD", "1/J"):
            value = read_real(written.removesuffix(objective.unit))
        else:
            value = parse_si(written, objective.unit)
    except ValueError as error:
        raise UsageError(f"--for {text}: {error}") from error
    if not value > 0.0:
        raise UsageError(f"--for {text}: it is not above 0")
    return Target(objective=objective, value=value)


def search_question(
    question: DesignQuestion,
    search: str,
    wanted: Sequence[Objective],
    bounds: tuple[Bound, ...],
    count: int | None,
    seed: int,
    watch: Watch,
) -> DesignQuestion:
    """Return the question restricted to the designs that a search evaluated; UsageError for an invalid search."""
    from joulemap.wing.explore.design.search import SEARCHES, search_group

    check_name("search", search, SEARCHES)
    if count is None:
        raise UsageError("state the number of designs to evaluate: --search optuna --points 2000")
    groups = enumerate(question.groups)
    return question.keep(
        {index: search_group(one, wanted, bounds, seed + index, watch.report) for index, one in groups}
    )
