"""Sweep of batch sizes: the best chip by energy and by throughput, each at its best batch, and the batches from which
another chip is best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.decision import choose, list_sold
from joulemap.ask.fact import Change, Choice, Entry, Facts, Limit, Quantity, Turn, Value
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope, vary
from joulemap.ask.standing import choose_best
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.settings import BATCHES, Settings
from joulemap.domain.table import Table, group
from joulemap.generated.compare import Recommendation
from joulemap.generated.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.plan.run import RunTally, plan_runs
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.plan.workload import choose_batches
from joulemap.store.query import fetch, start
from joulemap.store.run import Outline
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

Series: TypeAlias = tuple[str, str, str, str]
"""Model, hardware, precision and runtime."""

ASKED: Final[tuple[MetricName, ...]] = ("energy_per_inference", "throughput")
"""Metrics of the decision."""

TURNING: Final[tuple[MetricName, ...]] = ("energy_per_inference", "latency", "edp")
"""Metrics whose best chip may change with the batch."""

WEIGHED: Final = 12
"""Number of chips with the lowest energy whose caveats are found; the named ones are added."""

LEAST_FALL: Final = 0.95
"""Share of the highest throughput below which the throughput at the largest batch is a fall."""

LEAST_SPILL: Final = 1.2
"""Minimum increase of off-chip bytes per inference, as a ratio, that explains a fall of throughput."""


@frozen(kw_only=True)
class SweepAnswer(RunAnswer):
    """Best batch size of each chip, and the batch sizes at which the best hardware changes."""

    tally: RunTally
    max_latency_s: float
    """Latency budget; 0 for none."""
    series: Table[SweepSeries]
    """Best batch sizes of each model, hardware, precision and runtime."""
    points: Table[SweepPoint]
    """Figures of each run."""
    winners: Table[SweepWinner]
    """Best hardware at each batch size, for each model, precision, runtime and metric."""
    crossings: Table[SweepCrossing]
    """Pairs of hardware whose order reverses with the batch size."""
    facts: Facts
    """Decision, turns, falls, rows and caveats, from which all sentences are made."""
    caps_w: Mapping[str, float]
    """Hardware at its power mode -> power cap in watts."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs of each chip at its batches with the least energy and with the highest throughput."""
        best = {(find_series(row), batch) for row in self.series for batch in (row.energy_batch, row.throughput_batch)}
        return [row for row in self.points if (find_series(row), row.batch) in best]

    @property
    def varying(self) -> tuple[str, ...]:
        """Settings that differ between rows (model, precision or runtime), so that tables must show them."""
        values = {"model": self.scope.models, "precision": self.scope.precisions, "runtime": self.scope.runtimes}
        return tuple(name for name, several in values.items() if len(several) > 1)

    def find_point(self, row: SweepSeries, batch: int | None) -> SweepPoint | None:
        """Return the run of a series at a batch size; None if there is no such run."""
        wanted = find_series(row), batch
        return next((one for one in self.points if (find_series(one), one.batch) == wanted), None)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the number of evaluated runs and the latency budget."""
        return {**super().data(), "tally": attrs.asdict(self.tally), "max_latency_s": self.max_latency_s or None}


def sweep(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, max_latency_s: float = 0.0
) -> SweepAnswer:
    """Sweep batch sizes of the models on each chip. Runs that are not stored are evaluated, as by `evaluate`.

    Batch sizes default to 1, 2, 4, ..., 128; `max_latency_s` is the latency budget of a batch, 0 for none. Raises like
    `evaluate`; UnsupportedError if no hardware can run any of the configurations.
    """
    asked = attrs.evolve(settings, batch=choose_batches(models, settings, BATCHES))
    with opening_runs(source, plan_runs(models, asked), has_ledger=False) as runs:
        scope, connection, ids = Scope.of(runs), runs.connection, list(runs.ids)
        points = start(connection, SweepPoint, run_ids=ids)
        scope.read()
        scope.check_evaluated()
        given: dict[str, Any] = {"run_ids": ids, "max_latency_s": max_latency_s, "takes_all": settings.takes_all}
        tables: dict[str, Any] = fetch_tables(connection, SweepAnswer, ("points",), **given)
        tables["points"] = points()
        least = min((row.least_latency_s for row in tables["series"] if row.least_latency_s), default=0.0)
        if max_latency_s and least > max_latency_s:
            limit, nearest = (format_si(one, "s") for one in (max_latency_s, least))
            raise UnsupportedError(f"no batch meets the limit of {limit}; the nearest takes {nearest}")
        return SweepAnswer(
            scope=scope,
            tally=runs.tally,
            max_latency_s=max_latency_s,
            **tables,
            facts=find_facts(
                scope,
                tables["series"],
                tables["points"],
                tables["winners"],
                max_latency_s=max_latency_s,
                takes_all=settings.takes_all,
            ),
            caps_w={name_configured(entry.id, mode): entry.cap_w(mode) for entry, mode in runs.plan.selection.pairs},
        )


def find_facts(
    scope: Scope,
    series: Iterable[SweepSeries],
    points: Iterable[SweepPoint],
    winners: Iterable[SweepWinner],
    *,
    max_latency_s: float = 0.0,
    takes_all: bool = False,
) -> Facts:
    """Return the facts of a sweep: choices among available hardware, then those of unavailable hardware that would win,
    limits, turns, falls of throughput, a row per chip, and caveats.
    """
    listed = [row for row in points if row.status == "ok"]
    curves = {key: list(rows) for key, rows in groupby(listed, find_series)}
    best = [
        Best(row, curves[find_series(row)]) for row in series if row.energy_batch is not None and row.throughput_batch
    ]
    within = [one for one in best if not max_latency_s or one.row.budget_batch is not None]
    chosen: list[Choice] = []
    beyond: list[Choice] = []
    models = list(dict.fromkeys(one.row.model for one in within))
    for model in models:
        every = [one for one in within if one.row.model == model]
        had = list_sold(every, lambda one: one.row.is_available or takes_all)
        told = model if len(models) > 1 else ""
        own = list(_choose(scope, had, told))  # without a chip within the limit, there is no choice
        chosen += own
        if len(had) < len(every):
            beyond += [choice for column, one in enumerate(own) for choice in _prefer(every, one, column)]
    named = {one for choice in (*chosen, *beyond) for one in choice.runs[:1]}
    leading = [one for one in best if named & set(one.ids)]
    shown = [*leading, *sorted(best, key=lambda one: one.best[0])[:WEIGHED]]
    ids = {
        *named,
        *(one for choice in chosen for one in (*choice.runs[:2], *choice.tied)),
        *(one.ids[0] for one in shown),
    }
    weighed = scope.narrow(ids)
    return Facts(
        asked=ASKED,
        runs=scope.subjects(vary(listed, ("precision", "runtime"))),
        facts=(
            *chosen,
            *beyond,
            *_find_limit(best, max_latency_s),
            *find_turns(winners, listed),
            *(fall for one in leading for fall in one.find_falls()),
            *(one.enter(scope.outlines) for one in best),
            *find_caveats(weighed, chosen, metric="energy"),
        ),
    )


def find_series(row: SweepPoint | SweepSeries) -> Series:
    """Return what the batches of a series share."""
    return row.model, row.hardware, row.precision, row.runtime


class Best:
    """Series of batches on one chip, with its runs of lowest energy per inference and of highest throughput."""

    def __init__(self, row: SweepSeries, points: Sequence[SweepPoint]) -> None:
        at = {one.batch: one for one in points}
        self.row, self.last = row, at[max(at)]
        self.leanest, self.busiest = at[row.energy_batch or 0], at[row.throughput_batch or 0]
        self.fastest = at[row.least_latency_batch or 0]

    @property
    def ids(self) -> tuple[int, int]:
        """Runs of lowest energy per inference and of highest throughput."""
        return self.leanest.run_id, self.busiest.run_id

    @property
    def best(self) -> tuple[float, float]:
        """Lowest energy per inference in joules, and highest throughput per second."""
        return self.leanest.energy_per_inference_j or 0.0, self.busiest.throughput_per_s or 0.0

    def enter(self, outlines: Mapping[int, Outline]) -> Entry:
        """Return the row of the chip: lowest energy and highest throughput, each with its batch size."""
        lean, busy = (outlines[one] for one in self.ids)
        values = {
            "energy_per_inference": Quantity(self.best[0], "J", lean.energy_half_width),
            "energy_batch": Quantity(float(self.leanest.batch)),
            "efficient_batch": Quantity(float(self.row.zone_low_batch or self.leanest.batch)),
            "throughput": Quantity(self.best[1], "1/s", busy.latency_half_width),
            "throughput_batch": Quantity(float(self.busiest.batch)),
        }
        return Entry(runs=self.ids, values=values)

    def find_falls(self) -> Iterator[Change]:
        """Yield the fall of throughput from its highest value to the largest batch, with its cause."""
        most, last = self.busiest, self.last
        before, after = most.throughput_per_s or 0.0, last.throughput_per_s or 0.0
        if not after or after >= LEAST_FALL * before:
            return
        values: dict[str, Value] = {"batch": most.batch, "last_batch": last.batch}
        moved = [one.dram_bytes_per_inference or 0.0 for one in (most, last)]
        cause = ""
        if moved[1] > LEAST_SPILL * moved[0]:
            cause = "spill"
            values |= {"traffic_before": Quantity(moved[0], "B"), "traffic_after": Quantity(moved[1], "B")}
        elif (last.clock_fraction or 1.0) < (most.clock_fraction or 1.0):
            cause = "clock"
            values |= {"clock_fraction": last.clock_fraction}
        yield Change(
            runs=(most.run_id, last.run_id),
            metric="throughput",
            before=Quantity(before, "1/s"),
            after=Quantity(after, "1/s"),
            cause=cause,
            values=values,
        )


def _choose(scope: Scope, rows: Sequence[Best], model: str) -> Iterator[Choice]:
    """Yield the best chip by each asked metric, each chip at its best batch."""
    for column, name in enumerate(ASKED):
        ids = {one.ids[column]: one for one in rows}
        unit, width = METRIC[name].unit, METRIC[name].half_width_column
        values = {
            run_id: Quantity(one.best[column], unit, getattr(scope.outlines[run_id], width))
            for run_id, one in ids.items()
        }
        if len(ids) < 2:
            yield choose(name, values, model=model)
            continue
        goals = {row.goal: row for row in fetch(scope.connection, Recommendation, run_ids=list(ids))}
        # runs of one batch are compared by the energy of the batch, which has the same order
        row = goals.get(name) or goals["energy"]
        chips = {run_id: one.row.hardware for run_id, one in ids.items()}
        yield choose_best(row, name, values, chips, model)


def _prefer(rows: Sequence[Best], own: Choice, column: int) -> Iterator[Choice]:
    """Yield the choice of an unavailable chip over the best available one, by the metric at this place of `ASKED`."""
    values = {one.ids[column]: Quantity(one.best[column], own.value.unit) for one in rows}
    best = choose(own.metric, values, lambda *_: None).run
    if best != own.run:
        pair = {one: values[one] for one in (best, own.run)}
        yield choose(own.metric, pair, lambda *_: None, model=own.model)


def _find_limit(rows: Sequence[Best], max_latency_s: float) -> Iterator[Limit]:
    """Yield the chips that exceed the latency limit at every batch."""
    beyond = sorted(
        (one for one in rows if max_latency_s and one.row.budget_batch is None),
        key=lambda one: one.row.least_latency_s or 0.0,
    )
    if beyond:
        yield Limit(
            runs=tuple(one.fastest.run_id for one in beyond),
            metric="latency",
            bound=Quantity(max_latency_s, "s"),
            value=Quantity(beyond[0].row.least_latency_s or 0.0, "s"),
        )


def find_turns(winners: Iterable[SweepWinner], points: Sequence[SweepPoint]) -> Iterator[Turn]:
    """Yield the best chip at the smallest batch, and each batch from which another one is best, by metric."""
    names = [name for name in ("model", "precision", "runtime") if len({getattr(row, name) for row in points}) > 1]
    ids = {(*find_series(row), row.batch): row.run_id for row in points}
    courses = group(winners, lambda row: (row.model, row.precision, row.runtime, row.metric))
    for rows in (rows for metric in TURNING for rows in courses.values() if rows[0].metric == metric):
        if len(rows) < 2 or max(row.candidate_count for row in rows) < 2:
            continue
        for row in (one for one in rows if one.is_change or one is rows[0]):
            sides = (
                (row.model, name, row.precision, row.runtime, row.batch) for name in (row.winner, row.previous_winner)
            )
            yield Turn(
                runs=tuple(ids[side] for side in sides if side in ids),
                metric=row.metric,
                axis="batch",
                after=row.batch,
                settings=tuple(getattr(row, name) for name in names),
                is_tied=row.is_change and (row.probability_ahead or 0.0) < TOLD_APART,
                is_forced=row.is_change and not row.is_overtaking,
            )
