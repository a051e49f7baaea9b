"""Train a model: time, energy and memory of a step on each chip and number of devices, and total cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

import attrs

from joulemap.ask import (
    UNKNOWN,
    Choice,
    Entry,
    Facts,
    Finding,
    Quantity,
    Refusal,
    RunAnswer,
    Scope,
    Share,
    Subject,
    choose,
    drop_idle_hours,
    find_caveats,
    list_sold,
    read_usage,
)
from joulemap.domain import Settings, Table, first_of_each, make_table
from joulemap.domain.default import LEARNED
from joulemap.generated.compare import PairChance
from joulemap.generated.cost import AssumedNumber
from joulemap.physics import BOARD, probability_better
from joulemap.plan import Source, ensure_all, find_targets, is_choice, opening_runs, select_hardware
from joulemap.store import fetch
from joulemap.system import UnsupportedError, frozen
from joulemap.wing.place import open_boxes
from joulemap.wing.train.demand import list_steps
from joulemap.wing.train.generated.row import TrainingRow
from joulemap.wing.train.row import OK, REFUSED, TOO_LARGE
from joulemap.wing.train.setting import Training
from joulemap.wing.train.table import describe_refused, fetch_other_runs, fetch_steps, form_rows

TRAINING: Final = Training()
"""Default training: one device, AdamW."""

HARDWARE: Final = ("h100_sxm5", "a100_sxm4_80gb", "mi300x")
"""Default hardware of a training question."""

SPEED: Final = "training_speed"
SAMPLE: Final = "energy_per_sample"

ERRORS: Final = {SPEED: "latency", SAMPLE: "energy_per_inference", "cost": ""}
"""Metric that decides, most important first -> metric of runs with its errors; empty without one."""

VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    SAMPLE: ("sample_j", "J", "energy_half_width"),
    "step": ("step_s", "s", "latency_half_width"),
    "samples_per_s": ("samples_per_s", "1/s", "latency_half_width"),
    "tokens_per_s": ("tokens_per_s", "1/s", "latency_half_width"),
    "cost": ("usd_per_million", "USD", "usd_half_width"),
    "mfu": ("utilization_fraction", "", ""),
    "peak": ("peak_ops_per_s", "ops/s", ""),
    "memory": ("memory_fraction", "", ""),
    "memory_bound": ("memory_bound_fraction", "", ""),
    "bandwidth": ("memory_bandwidth_bytes_per_s", "B/s", ""),
    "total": ("total_s", "s", ""),
    "total_energy": ("total_kwh", "kWh", ""),
    "total_cost": ("total_usd", "USD", ""),
}
"""Metric -> field of a row, unit, and field with the half-width."""

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s", "bubble_s")
"""Fields with the parts of a step's time."""

LEAST_SHARE: Final = 0.0005
"""Smallest share of a step's time that is a fact; it rounds to 0.1 %."""


@frozen(kw_only=True)
class TrainAnswer(RunAnswer):
    """Answer with the training step of a model on several chips, device counts, precisions and batches."""

    is_billed: ClassVar[bool] = True

    about = ("model", "training", "pay")

    model: str
    name: str
    """Name of the model without its arguments."""
    training: Training
    rows: Table[TrainingRow]
    """Configurations in the requested order, refused ones included."""
    assumptions: Table[AssumedNumber]
    """Assumptions behind cost and carbon."""
    pay: str
    """Way of paying for the chips, such as `rented`."""
    facts: Facts
    """Decision, parts of a step, rows and caveats, from which all sentences are made."""
    step_names: Mapping[int, str]
    """Run id -> name of the training step as a workload."""

    @property
    def trained(self) -> tuple[TrainingRow, ...]:
        """Rows that fit into memory, by descending samples per second."""
        return rank(self.rows.rows)

    @property
    def ordered(self) -> Table[TrainingRow]:
        """Rows that fit into memory, by descending samples per second, then the others."""
        return self.rows.with_rows((*self.trained, *(row for row in self.rows if row.status != OK)))


def train(
    source: Source,
    model: str,
    settings: Settings = LEARNED,
    *,
    training: Training = TRAINING,
) -> TrainAnswer:
    """Return time, energy, memory and sample cost of a model's training step on each chip.

    The batch of the settings counts samples of all devices. Runs are of one device, with full ledgers; energies of the
    answer are of all devices. A configuration that does not fit is a row with options that would fit. A box stands for
    all of its devices, unless `training` states their number. Raises UnknownNameError for an unknown model or hardware,
    UsageError for invalid settings, ModelError for a model that cannot be trained as traced, UnsupportedError if no
    hardware trains it.
    """
    settings = attrs.evolve(settings, hardware=settings.hardware if is_choice(settings) else HARDWARE)
    select_hardware(attrs.evolve(settings, boundary=BOARD)).check_alike("train")
    settings, alike = open_boxes(settings)
    if alike and training.devices == TRAINING.devices:
        training = attrs.evolve(training, devices=tuple(dict.fromkeys(alike.values())))
    selection = select_hardware(settings)
    steps = list(list_steps(model, training, settings, selection))
    ensure_all(source, [plan for step in steps for plan in step.plans.values()])
    used, pay = read_usage(drop_idle_hours(settings))  # training uses the devices all the time
    rows: list[TrainingRow] = []
    names: dict[int, str] = {}
    given = {**used, **pay}
    for step in steps:
        beside, inner = fetch_other_runs(source, step, given)
        plan = step.plans["last"]
        targets = find_targets(source, plan)  # before `opening_runs`, because it may write hardware
        with opening_runs(source, plan, needs_catalogue=True) as runs:
            fetched = fetch_steps(runs, given)
            names |= {one.run_id: one.model for one in fetched.values()}
            rows += form_rows(runs, step, targets, {"last": fetched, **beside}, inner)
            if step is steps[-1]:
                assumptions = fetch(runs.connection, AssumedNumber, **used)
                ids = [row.run_id for row in rows if row.run_id is not None]
                if not ids:
                    raise UnsupportedError(describe_refused(rows), code="no_training", model=model)
                scope = Scope.of_plan(plan, runs.connection, ids)
                facts = find_facts(scope, rows, training)
                scope.read()
                chosen = next((one.pay for one in fetched.values()), "")
    return TrainAnswer(
        scope=scope,
        model=steps[0].model,
        name=steps[0].name,
        training=training,
        rows=make_table("train", TrainingRow, rows),
        assumptions=assumptions,
        pay=chosen,
        facts=facts,
        step_names=names,
    )


def rank(rows: Sequence[TrainingRow]) -> tuple[TrainingRow, ...]:
    """Return the rows that fit into memory, by descending samples per second."""
    return tuple(sorted((row for row in rows if row.status == OK), key=lambda row: -(row.samples_per_s or 0.0)))


def find_facts(scope: Scope, rows: Sequence[TrainingRow], training: Training) -> Facts:
    """Return the facts of training; a run of the facts is a row."""
    known = dict(enumerate(rows, 1))
    keys = {id(row): key for key, row in known.items()}
    runs = _name_runs(scope, known)

    def is_sold(row: TrainingRow) -> bool:
        return scope.settings.takes_all or runs[keys[id(row)]].is_available

    ranked = sorted(rank(rows), key=lambda row: not is_sold(row))
    best = list_sold(first_of_each(ranked, lambda row: row.label).values(), is_sold)
    choices = list(_choose(scope, {keys[id(row)]: row for row in best}))
    stored: dict[int, list[int]] = {}
    for key, row in known.items():
        if row.run_id is not None:
            stored.setdefault(row.run_id, []).append(key)
    weighed = "latency" if choices else "energy"
    caveats = find_caveats(scope, choices, metric=weighed, more=_find_own(known), stands_for=stored)
    first = keys[id(ranked[0])]
    asked = {"samples": Quantity(float(training.samples or 0.0)), "epochs": Quantity(float(training.epochs))}
    found = (Entry.read(keys[id(row)], row, VALUES) for row in ranked)
    entries = [attrs.evolve(one, values={**one.values, **(asked if training.samples else {})}) for one in found]
    return Facts(
        asked=(SAMPLE, "step"),
        runs=runs,
        facts=(*choices, *_list_phases(first, known[first], training), *entries, *caveats),
    )


def _name_runs(scope: Scope, known: Mapping[int, TrainingRow]) -> dict[int, Subject]:
    precisions, batches = (len({getattr(row, name) for row in known.values()}) > 1 for name in ("precision", "batch"))
    return {
        key: Subject(
            hardware=row.hardware,
            settings=(
                *([f"x{row.device_count}"] if row.device_count > 1 else []),
                *([row.precision] if precisions else []),
                *([f"batch {row.batch}"] if batches else []),
            ),
            is_available=row.run_id is None or scope.outlines[row.run_id].hardware not in scope.unavailable,
            is_named=scope.is_named,
        )
        for key, row in known.items()
    }


def _choose(scope: Scope, rows: Mapping[int, TrainingRow]) -> Iterator[Choice]:
    """Yield the rankings of the fastest configuration of each hardware by speed, energy and cost; none for one."""
    if len(rows) < 2:
        return
    ids = sorted({row.run_id for row in rows.values() if row.run_id is not None})
    for metric, error in ERRORS.items():
        field, unit, width = VALUES["samples_per_s" if metric == SPEED else metric]
        known = {key: (getattr(row, field), getattr(row, width)) for key, row in rows.items()}
        values = {key: Quantity(value, unit, half) for key, (value, half) in known.items() if value is not None}
        if len(values) < len(rows):
            continue
        chances = fetch(scope.connection, PairChance, run_ids=ids, metric=error) if error else ()
        widths: dict[tuple[int | None, int | None], float] = {
            (row.run_id, row.other_run_id): row.half_width for row in chances
        }
        shared = {(one, other): widths.get((rows[one].run_id, rows[other].run_id)) for one in rows for other in rows}
        beats = partial(_beat, values, shared)
        yield choose(metric, values, beats, is_higher_better=metric == SPEED, per="sample")


def _beat(
    values: Mapping[int, Quantity], widths: Mapping[tuple[int, int], float | None], one: int, other: int
) -> float | None:
    """Return the probability that a configuration is better, given the errors that both share; None for runs of
    different steps, whose errors are not compared.
    """
    width, ends = widths[one, other], sorted((values[one].value, values[other].value))
    return probability_better(ends[1] / ends[0], width) if width and ends[0] > 0.0 else None


def _list_phases(key: int, row: TrainingRow, training: Training) -> Iterator[Share]:
    """Yield the parts of a step's time, largest first."""
    parts = {name: (getattr(row, name) or 0.0) / (row.step_s or 1.0) for name in PHASES}
    for name in sorted(parts, key=lambda name: -parts[name]):
        if parts[name] >= LEAST_SHARE:
            kind = "attention_again_s" if name == "again_s" and not training.recompute else name
            yield Share(runs=(key,), metric="step", name=kind, share=parts[name])


def _find_own(known: Mapping[int, TrainingRow]) -> Iterator[Finding | Refusal]:
    """Yield times that are lower bounds, the first batch of each hardware that does not fit, and refusals."""
    labels: set[str] = set()
    for key, row in known.items():
        if row.status == OK and row.is_lower_bound:
            yield Finding(kind="lower_bound", run_id=key, doubt=UNKNOWN)
        if row.status not in (TOO_LARGE, REFUSED) or row.label in labels:
            continue
        labels.add(row.label)
        if row.status == TOO_LARGE:
            values = {"batch": row.batch, "fits_with": row.fits_with or None}
            yield Finding(kind="too_large", run_id=key, values=values)
        else:
            yield Refusal(runs=(key,), reason=row.reason)
