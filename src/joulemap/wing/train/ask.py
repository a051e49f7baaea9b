"""Facts of training: a row per configuration, the fastest and the least energy per sample, and parts of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Refusal, Share, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.metric import TIE_RATIO
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.wing.train.answer.row import OK, REFUSED, TOO_LARGE

if TYPE_CHECKING:
    from joulemap.wing.train.answer.row import TrainingRow
    from joulemap.wing.train.setting import Training

SPEED: Final = "training_speed"
SAMPLE: Final = "energy_per_sample"

VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    SAMPLE: ("sample_j", "J", "energy_half_width"),
    "step": ("step_s", "s", "latency_half_width"),
    "samples_per_s": ("samples_per_s", "1/s", "latency_half_width"),
    "tokens_per_s": ("tokens_per_s", "1/s", "latency_half_width"),
    "total": ("total_s", "s", ""),
    "total_energy": ("total_kwh", "kWh", ""),
    "total_cost": ("total_usd", "USD", ""),
}
"""Metric -> field of a row, unit, and field with the half-width."""

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s", "bubble_s")
"""Fields with the parts of a step's time."""

LEAST_SHARE: Final = 0.0005
"""Smallest share of a step's time that is a fact; it rounds to 0.1 %."""


def rank(rows: Sequence[TrainingRow]) -> tuple[TrainingRow, ...]:
    """Return the rows that fit into memory, by descending samples per second."""
    return tuple(sorted((row for row in rows if row.status == OK), key=lambda row: -(row.samples_per_s or 0.0)))


def find_rival(ranked: Sequence[TrainingRow]) -> TrainingRow | None:
    """Return the best configuration of other hardware than the first; None for one hardware."""
    first, *others = ranked
    return next((row for row in others if row.label != first.label), None)


def find_pairs(rows: Sequence[TrainingRow]) -> dict[str, tuple[TrainingRow, TrainingRow]]:
    """Return metric -> (best row, rival); empty for a single row that fits into memory."""
    ranked = rank(rows)
    least = sorted((row for row in ranked if row.sample_j is not None), key=lambda row: row.sample_j or 0.0)
    pairs = {SPEED: ranked, SAMPLE: tuple(least)}
    return {metric: (some[0], rival) for metric, some in pairs.items() if some and (rival := find_rival(some))}


def find_facts(
    scope: Scope, rows: Sequence[TrainingRow], training: Training, chances: Mapping[str, float | None]
) -> Facts:
    """Return the facts of training; a run of the facts is a row.

    `chances` maps a metric to the probability that its best row is better than its rival.
    """
    known = dict(enumerate(rows, 1))
    keys = {id(row): key for key, row in known.items()}
    ranked = rank(rows)
    choices = list(_choose(rows, keys, chances))
    stored: dict[int, list[int]] = {}
    for key, row in known.items():
        if row.run_id is not None:
            stored.setdefault(row.run_id, []).append(key)
    weighed = "latency" if choices else "energy"
    caveats = find_caveats(scope, choices, metric=weighed, more=_find_own(known), stands_for=stored)
    first = keys[id(ranked[0])]
    entries = [_enter(keys[id(row)], row, training) for row in ranked]
    return Facts(
        asked=(SAMPLE, "step"),
        runs=_name_runs(scope, known),
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


def _choose(
    rows: Sequence[TrainingRow], keys: Mapping[int, int], chances: Mapping[str, float | None]
) -> Iterator[Choice]:
    """Yield the fastest configuration, then the one with the least energy per sample."""
    ranked = rank(rows)
    for metric, (best, rival) in find_pairs(rows).items():
        values = (rival.sample_j, best.sample_j) if metric == SAMPLE else (best.samples_per_s, rival.samples_per_s)
        ratio = (values[0] or 0.0) / (values[1] or 1.0)
        chance = chances.get(metric)
        is_tied = chance is not None and chance < TOLD_APART and ratio > TIE_RATIO
        field, unit, width = VALUES["samples_per_s" if metric == SPEED else SAMPLE]
        rest = [row for row in ranked if row is not best and row is not rival]
        if metric == SAMPLE:
            rest = sorted(rest, key=lambda row: row.sample_j or 0.0)
        yield Choice(
            runs=tuple(keys[id(row)] for row in (best, rival, *rest)),
            metric=metric,
            value=Quantity(getattr(best, field) or 0.0, unit, getattr(best, width)),
            ratio=ratio,
            probability=chance,
            tied=(keys[id(rival)],) if is_tied else (),
        )


def _enter(key: int, row: TrainingRow, training: Training) -> Entry:
    values = {
        metric: Quantity(value, unit, getattr(row, width) if width else None)
        for metric, (field, unit, width) in VALUES.items()
        if (value := getattr(row, field)) is not None
    }
    if training.samples:
        values |= {"samples": Quantity(float(training.samples)), "epochs": Quantity(float(training.epochs))}
    return Entry(runs=(key,), values=values)


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
