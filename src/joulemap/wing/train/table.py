"""Rows of a training answer from the stored runs of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.catalog import find_usable
from joulemap.domain import name_configured
from joulemap.physics import Hardware, WorkloadColumns, carried_precision, find_path, find_send
from joulemap.plan import Model, Plan, PlannedRun, Source, find_workload_id, opening_runs, stored_key
from joulemap.plan.stored_runs import StoredRuns
from joulemap.store import fetch, read_columns
from joulemap.system import UnsupportedError
from joulemap.wing.decoder import find_overhead
from joulemap.wing.train.demand import TOKENS, TRAINED, TrainingStep, suggest
from joulemap.wing.train.generated.row import TrainedStep, TrainingRow
from joulemap.wing.train.row import OK, REFUSED, TOO_LARGE, WholeStep, add_up_step, find_fullest_memory, form_row
from joulemap.wing.train.show.refusal import EACH, NEEDS, NOTHING, REFUSED_RUN, UNLINKED, UNSUPPORTED
from joulemap.wing.train.training.memory import Memory, measure

DEQUANTIZED_BY: Final = "gpu"
"""Class whose formulas time the kernels that dequantize a base; on others, a step takes longer."""

Steps = Mapping[object, TrainedStep]
"""Key of a run in its plan -> results of the run."""

Memories = Mapping[tuple[int, str], Memory]
"""(samples per device, runtime) -> memory of the device."""


def fetch_other_runs(source: Source, step: TrainingStep, given: Mapping[str, Any]) -> tuple[dict[str, Steps], Memories]:
    """Return name -> results of all plans of a step but `last`, and the memory of a pipeline stage before the last."""
    memories: Memories = {}
    by_name = {}
    for name, plan in step.plans.items():
        if name != "last":
            with opening_runs(source, plan) as runs:
                by_name[name] = fetch_steps(runs, given)
                memories = _measure(runs, step.precision) if name == "inner" else memories
    return by_name, memories


def fetch_steps(runs: StoredRuns, given: Mapping[str, Any]) -> Steps:
    """Return the results of a plan's runs, by their key in the plan."""
    rows = {row.run_id: row for row in fetch(runs.connection, TrainedStep, run_ids=list(runs.ids), **given)}
    keys = [_key(batch, run) for batch, _ in _pair(runs.plan) for run in runs.plan.runs("")]
    return {key: rows[run_id] for key, run_id in zip(keys, runs.ids, strict=True) if run_id in rows}


def _pair(plan: Plan) -> tuple[tuple[int, Model], ...]:
    """Return the (batch, model) pairs of a plan; a module's name does not state its batch."""
    return tuple(zip(plan.settings.batch or (), plan.models, strict=True))


def _key(batch: int, run: PlannedRun) -> object:
    return batch, run.target, tuple(run.point.values())


def _list_work(runs: StoredRuns) -> Iterator[tuple[int, WorkloadColumns]]:
    """Yield the samples per device and the workload of each model of a plan."""
    for batch, model in _pair(runs.plan):
        key = stored_key(runs.connection, model)
        assert key is not None
        yield batch, read_columns(runs.connection, find_workload_id(runs.connection, key))


def _measure(runs: StoredRuns, precision: str) -> Memories:
    """Return the memory of a device for each workload of a plan."""
    runtimes = {run.point["runtime"] for run in runs.plan.runs("")}
    return {(batch, one): measure(work, precision, one) for batch, work in _list_work(runs) for one in runtimes}


def _find_uncounted(runs: StoredRuns, precision: str) -> set[int]:
    """Return the samples per device whose convolutions have narrow operands, which nothing quantizes."""
    works = _list_work(runs) if carried_precision(precision) != precision else ()
    return {batch for batch, work in works if work.of_kind("conv", "depthwise_conv", "grouped_conv").any()}


def form_rows(
    runs: StoredRuns,
    step: TrainingStep,
    targets: Mapping[str, Hardware],
    by_name: Mapping[str, Steps],
    inner: Memories,
) -> list[TrainingRow]:
    """Return the rows of a step, batch by batch; `inner` is the memory of a pipeline stage before the last."""
    made = []
    memories = _measure(runs, step.precision)
    uncounted = _find_uncounted(runs, step.precision)
    for batch, _ in _pair(runs.plan):
        for run in runs.plan.runs(""):
            target = targets[run.target.digest]
            key, capacity = (batch, run.point["runtime"]), find_usable(target)
            memory = memories[key]
            if step.training.pipeline_devices > 1:
                memory = find_fullest_memory(inner[key], memory, step.training.pipeline_devices)
            reserve = find_overhead(target, exchanges=step.devices > 1)
            memory = attrs.evolve(memory, reserved=reserve)
            own = _key(batch, run)
            fits = memory.total <= capacity or step.precision not in target.peaks
            whole = _add_up(step, own, by_name, target) if fits else None
            described = _describe(run, step, batch, OK if whole else REFUSED if fits else TOO_LARGE)
            described["is_lower_bound"] = batch in uncounted or (
                bool(step.recipe.quantize) and target.architecture != DEQUANTIZED_BY
            )
            if not fits:
                described["fits_with"] = suggest(step, batch, run.point["runtime"], target)
                described["reason"] = NEEDS(needed=memory.total, capacity=capacity)
            elif whole is None:
                described["reason"] = _describe_refusal(step, target, described["hardware"])
            made.append(
                form_row(
                    described, memory, capacity, whole, by_name.get("alone", {}).get(own),
                    tokens=(step.training.tokens or TOKENS) if step.is_language else 0,
                    samples=(step.training.samples or 0.0) * step.training.epochs,
                )
            )  # fmt: skip
    return made


def _describe_refusal(step: TrainingStep, target: Hardware, hardware: str) -> str:
    """Return why a step does not run on a chip: no link between its devices, or no support for the precision."""
    training = step.training
    try:
        if training.tensor_devices > 1:
            find_path(target, training.tensor_devices)
        if training.pipeline_devices > 1:
            find_send(target, training.tensor_devices * training.pipeline_devices)
    except UnsupportedError as error:
        return UNLINKED(error=error)
    others = [one for one in TRAINED if one in target.peaks and step.precision not in target.peaks]
    return UNSUPPORTED(
        step, hardware=hardware, devices=step.devices if step.devices > 1 else None, precisions=others or None
    )


def _add_up(step: TrainingStep, own: object, by_name: Mapping[str, Steps], target: Hardware) -> WholeStep | None:
    """Return the time and energy of a whole step, from the runs with the key `own`; None if one of them was refused."""
    parts = {name: steps[own] for name, steps in by_name.items() if own in steps and name != "alone"}
    if len(parts) < len(step.plans.keys() - {"alone"}):
        return None
    return add_up_step(
        parts, accumulate=step.training.accumulate, stages=step.training.pipeline_devices, static_w=target.waiting_w
    )


def _describe(run: PlannedRun, step: TrainingStep, batch: int, status: str) -> dict[str, Any]:
    hardware = name_configured(run.hardware, run.power_mode)
    return {
        "label": hardware if step.devices == 1 else f"{hardware} x{step.devices}",
        "hardware": hardware,
        "device_count": step.devices,
        "precision": step.precision,
        "batch": step.batches[batch],
        "micro_batch": batch,
        "status": status,
        "reason": "",
        "fits_with": "",
    }


def describe_refused(rows: Sequence[TrainingRow]) -> str:
    """Return the reasons why chips do not train the model, and options with which they would."""
    first: dict[str, TrainingRow] = {}
    for row in rows:
        first.setdefault(row.label, row)
    alike: dict[tuple[str, str], list[TrainingRow]] = {}
    for row in first.values():
        if row.status != REFUSED:
            alike.setdefault((row.reason or row.status, row.fits_with or ""), []).append(row)
    large = [
        (EACH if some[1:] else NOTHING)(some[0], runs=map(REFUSED_RUN, some), why=why)
        for (why, _), some in alike.items()
    ]
    return "; ".join([*large, *dict.fromkeys(row.reason for row in first.values() if row.status == REFUSED)])
