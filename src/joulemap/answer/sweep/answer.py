"""Sweep batch sizes: the best batch of each chip, and the batches at which the best hardware changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from joulemap.answer.answer import Figures, RunAnswer, fetch_tables
from joulemap.answer.layout import Cell, shorten
from joulemap.answer.run import find_ties, show_limit
from joulemap.answer.scope import find_scope
from joulemap.answer.sweep import text
from joulemap.domain.default import SETTINGS
from joulemap.domain.doubt import TIE_RATIO
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, Settings, SweepDivision
from joulemap.domain.table import Column, Table
from joulemap.domain.weight import label_precision, spell_precision
from joulemap.plan.hold import holding_runs
from joulemap.plan.name import choose_batches
from joulemap.plan.run import RunTally, plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import is_tied, show, show_chance, show_quantity, show_share, show_span
from joulemap.present.document import Document, FieldCell, Grid, Section, show_under
from joulemap.present.template import join_clauses, join_texts
from joulemap.row.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.store.query import start
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow

SHOWN: Final = 12
"""Default number of rows per table, and maximum sentences of a figure."""

LABELLED: Final = (Column(name="label", type="VARCHAR", meaning="hardware, with the settings that vary"),)
"""Columns that a figure's rows have in addition to the query's columns."""

SHOWN_MODELS: Final = 4

SHOWN_BEYOND: Final = 3
"""Maximum chips named in the sentence on chips that exceed the latency limit."""

SHOWN_BEST: Final = 3
"""Maximum models that the headline covers."""

Search: TypeAlias = Callable[[Iterable[SweepSeries]], SweepSeries]
"""Function that returns the best series in one metric."""


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
    ties: frozenset[tuple[str, int, int]] = frozenset()
    """Statistically tied comparisons of the headline, each as (metric, best run id, second run id)."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs of each chip at its batches with the least energy and with the highest throughput."""
        best = {
            (row.model, row.hardware, row.precision, row.runtime, batch)
            for row in self.series
            for batch in (row.energy_batch, row.throughput_batch)
        }
        return [row for row in self.points if (row.model, row.hardware, row.precision, row.runtime, row.batch) in best]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the sentences that people see."""
        return {
            **super().data(),
            "tally": attrs.asdict(self.tally),
            "max_latency_s": self.max_latency_s or None,
            "changes": self.changes(),
            "falls": self.falls(),
            "overtakings": self.overtakings(),
        }

    def figures(self) -> Figures:
        """Return a figure of energy, latency and throughput over the batch size."""
        names = ["hardware", *(name for name in self._varying if name != "model")]
        series = " ".join(f"{{{name}}}" for name in names)
        texts = {"series": series, "of": " of {model}" if len(self.scope.models) > 1 else ""}
        named = self.points.with_columns(LABELLED, ((self._label(row),) for row in self.points))
        return (self._draw_figure("sweep", named, "", join_clauses(self.changes()[:SHOWN]), texts),)

    def _label(self, row: SweepPoint) -> str:
        """Return the name of a point's series in figures: the model if it varies, and the name of the series."""
        name = self._name(row)
        return text.SERIES(model=row.model, name=name) if "model" in self._varying else name

    def document(
        self,
        *,
        by: SweepDivision = "hardware",
        limit: int = SHOWN,
        again: Sequence[str] = (),
        repeated: Sequence[str] = (),
    ) -> Document:
        """Return the document with `limit` rows of one table. Machine formats contain all tables, csv only the shown
        one.

        `again` holds options that only a repeat of this sweep needs, `repeated` those of every follow-up command.
        """
        tables: dict[SweepDivision, Table[Any]] = {
            "hardware": self.series.with_rows(row for row in self.series if row.batch_count),
            "batch": self.points,
            "winner": self.winners,
            "crossing": self.crossings,
        }
        drawn = self._draw(by, tables[by], limit)
        return self._compose(
            self._title(),
            (show_under(text.HEADINGS[by], drawn, *self.scope.describe_left_out()),),
            self.series if by == "hardware" else tables[by],
            answer=self.describe_best(),
            insights=[*self._describe_beyond_budget(), *self.changes(), *self.falls()],
            details=[
                Section(text.HEADINGS[name], self._draw(name, self._list_informative(name, one)))
                for name, one in tables.items()
                if name != by
            ],
            sure=self.scope.describe_spread(among=[row.hardware for row in tables["hardware"].rows[:limit]]),
            notes=self._notes(),
            steps=self._steps(by, again, repeated),
        )

    def _list_informative(self, by: SweepDivision, rows: Table[Any]) -> Table[Any]:
        """Return the rows of a table without refused runs, and without winners that had no rival."""
        if by == "batch":
            return rows.with_rows(row for row in rows if row.status == "ok")
        return rows.with_rows(row for row in rows if by != "winner" or row.candidate_count > 1)

    def describe_best(self) -> str:
        """Return the headline: lowest energy per inference and highest throughput of each model.

        Available hardware comes first.
        """
        models = self._list_answered()
        sentences = [self._describe_model(*self._find_answered(model)) for model in models[:SHOWN_BEST]]
        if len(models) > 1:
            sentences = [text.OF_MODEL(model=model, best=one) for model, one in zip(models, sentences, strict=False)]
        more = len(models) - SHOWN_BEST
        return join_texts(" ", [*sentences, *([text.MORE_MODELS(count=more)] if more > 0 else [])])

    def _describe_model(self, found: list[SweepSeries], available: list[SweepSeries]) -> str:
        """Return a sentence on the hardware with the lowest energy and with the highest throughput for one model."""
        if len(found) == 1:
            return text.ALONE(found[0], name=self._name(found[0]))
        lowest, fastest = _find_lowest_energy(available), _find_highest_throughput(available)
        among, also = "" if len(available) == len(found) else text.AMONG, "also " if fastest is lowest else ""
        clauses = [
            text.FRUGAL(
                lowest,
                name=self._name(lowest),
                among=among,
                tied=self._is_tied(available, _find_lowest_energy),
                **self._compare(lowest, available, _find_lowest_energy),
            ),
            text.SWIFT(
                fastest,
                name=self._name(fastest),
                also=also,
                tied=self._is_tied(available, _find_highest_throughput),
                **self._compare(fastest, available, _find_highest_throughput),
            ),
        ]
        beyond = (
            (text.BEYOND_ENERGY, _find_lowest_energy, lowest),
            (text.BEYOND_THROUGHPUT, _find_highest_throughput, fastest),
        )
        for template, find, own in beyond:
            row = find(found)
            if row not in available:
                ratio = _compare_rows(row, own, find)
                clauses.append(template(row, name=self._name(row), ratio=ratio if ratio >= TIE_RATIO else None))
        return join_texts(" ", clauses)

    def _is_tied(self, rows: Sequence[SweepSeries], find: Search) -> str:
        """Return a clause if the best and the second-best series are statistically tied; otherwise an empty text."""
        pair = self._find_pair(rows, find)
        return text.STATISTICALLY_TIED if pair is not None and (METRIC_OF[find], *pair) in self.ties else ""

    def _find_pair(self, rows: Sequence[SweepSeries], find: Search) -> tuple[int, int] | None:
        """Return the run ids of the best and the second-best series; None if there are fewer than two."""
        if len(rows) < 2:
            return None
        best = find(rows)
        pair = [
            self._find_point(row, row.energy_batch if find is _find_lowest_energy else row.throughput_batch)
            for row in (best, find(row for row in rows if row is not best))
        ]
        ids = [one.run_id for one in pair if one is not None and one.run_id is not None]
        return (ids[0], ids[1]) if len(ids) == 2 else None

    def find_pairs(self) -> list[tuple[str, int, int]]:
        """Return each comparison of the headline as (metric, best run id, second run id)."""
        listed = [self._find_answered(model)[1] for model in self._list_answered()[:SHOWN_BEST]]
        pairs = [(name, self._find_pair(available, find)) for available in listed for find, name in METRIC_OF.items()]
        return [(name, *pair) for name, pair in pairs if pair is not None]

    def _compare(self, best: SweepSeries, rows: Sequence[SweepSeries], find: Search) -> dict[str, Any]:
        """Return template values for the ratio of the best series to the second; a ratio near 1 counts as equal."""
        others = [row for row in rows if row is not best]
        if not others:
            return {"ratio": None, "other": None, "equal": None}
        other = find(others)
        ratio, name = _compare_rows(best, other, find), self._name(other)
        is_equal = ratio < TIE_RATIO
        return {"ratio": None if is_equal else ratio, "other": name, "equal": name if is_equal else None}

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return the assumed share of the energies in a headline, each at the batch size with the least energy."""
        points = [self._find_point(row, row.energy_batch) for row in self.series if self._is_named(row)]
        own = [one.run_id for one in points if one is not None and one.run_id is not None]
        return super()._describe_assumed(headline, [*(chosen or ()), *own])

    def _list_answered(self) -> list[str]:
        """Return the models that any hardware can run."""
        return [model for model in dict.fromkeys(row.model for row in self.series) if self._find_answered(model)[0]]

    def _find_answered(self, model: str) -> tuple[list[SweepSeries], list[SweepSeries]]:
        """Return two lists of a model's series: all that were not refused, and those on available hardware.

        If none is available, both lists are equal.
        """
        rows = [row for row in self.series if row.model == model]
        found = [row for row in rows if row.energy_batch is not None and row.throughput_batch is not None]
        return found, [row for row in found if row.is_available or self.scope.settings.takes_all] or found

    def _is_named(self, row: SweepSeries) -> bool:
        """Return whether the headline names a series."""
        if row.model not in self._list_answered()[:SHOWN_BEST]:
            return False
        return any(
            row in (_find_lowest_energy(rows), _find_highest_throughput(rows))
            for rows in self._find_answered(row.model)
            if rows
        )

    def _name(self, row: SweepSeries | SweepPoint) -> str:
        """Return the name of a series: its hardware and the settings that vary."""
        varying = (name for name in self._varying if name != "model")
        return join_texts(" ", (self.scope.mark(row.hardware), *(getattr(row, name) for name in varying)))

    def _title(self) -> str:
        scope = self.scope
        models, batches = scope.models, scope.batches
        span = text.BATCHES if len(batches) > 1 else text.BATCH
        return text.TITLE(
            models=", ".join(models) if len(models) <= SHOWN_MODELS else text.MANY_MODELS(count=len(models)),
            batches=span(count=len(batches), first=batches[0], last=batches[-1]),
            hardware=len({row.hardware for row in self.series}),
            precisions=[label_precision(*pair) for pair in scope.precisions],
            runtimes=scope.settings.runtime,
            runs=self.tally.run_count,
        )

    @property
    def _varying(self) -> tuple[str, ...]:
        """Settings that differ between rows (model, precision or runtime), so that tables must show them."""
        settings = self.scope.settings
        values = {"model": self.scope.models, "precision": self.scope.precisions, "runtime": settings.runtime}
        return tuple(name for name, found in values.items() if len(found) > 1)

    def _draw(self, by: SweepDivision, rows: Table[Any], limit: int | None = None) -> Grid:
        """Return the grid of one division: by hardware, batch, winner or crossing."""
        budget = show_quantity(self.max_latency_s, "s") if self.max_latency_s else ""
        columns = text.COLUMNS[by](varying="".join(f"*{name} | " for name in self._varying), budget=budget)
        is_ranked = by == "hardware"
        return self._lay(
            rows,
            columns,
            keep="",
            ranked="highest throughput | lowest energy per inference" if is_ranked else "",
            limit=limit,
            noun="rows",
            stays=self._is_named if is_ranked else None,
            **self._cells[by],
        )

    @property
    def _cells(self) -> Mapping[SweepDivision, Mapping[str, Cell]]:
        """Division -> field -> function that formats its cells."""
        runs = {(row.model, row.hardware, row.precision, row.runtime, row.batch): row.run_id for row in self.points}

        def find_run(row: SweepSeries) -> int | None:
            return runs.get((row.model, row.hardware, row.precision, row.runtime, row.energy_batch or 0))

        def name_metric(row: SweepWinner | SweepCrossing) -> str:
            return METRIC[row.metric].label

        return {
            "hardware": {
                "least_latency_s": text.LATENCY,
                "budget_throughput_per_s": lambda row: text.IN_BUDGET(row) or text.NOT_REACHED,
                "throughput_per_s": text.THROUGHPUT,
                "throughput_limit": lambda row: show_limit(row) or _name_bound(self._find_point(row)),
                "energy_per_inference_j": FieldCell("energy_per_inference_j", text.ENERGY, find_run),
                "zone_low_batch": lambda row: _show_range(row.zone_low_batch, row.zone_high_batch),
                "zone_low_power_w": lambda row: _show_range(row.zone_low_power_w, row.zone_high_power_w, "W"),
                "largest_batch_scaling_ratio": lambda row: show_share(row.largest_batch_scaling_ratio),
            },
            "batch": {
                "latency_s": lambda row: show_quantity(row.latency_s, "s") or row.status,
                "throughput_limit": lambda row: show_limit(row) or _name_bound(row),
                "batch_scaling_ratio": lambda row: show_share(row.batch_scaling_ratio),
                "is_in_zone": lambda row: show(row.is_in_zone, "") if row.status == "ok" else "",
            },
            "winner": {
                "metric": name_metric,
                "value": lambda row: show_quantity(row.value, row.unit),
                "advantage_ratio": text.ADVANTAGE,
                "probability_ahead": lambda row: (
                    self._fill(text.TIED, row) if _is_tied(row) else show_chance(row.probability_ahead)
                ),
            },
            "crossing": {
                "metric": name_metric,
                "overtaker_value": lambda row: _show_pair(row.unit, row.overtaker_value, row.overtaken_value),
                "previous_overtaker_value": lambda row: text.PAIR_BEFORE(
                    one=show_quantity(row.previous_overtaker_value, row.unit),
                    other=show_quantity(row.previous_overtaken_value, row.unit),
                    batch=row.previous_batch,
                ),
            },
        }

    def _group(self, row: SweepSeries | SweepWinner | SweepCrossing) -> str:
        """Return the start of a sentence; it names model, precision and runtime if they vary."""
        settings = [getattr(row, name) for name in self._varying]
        return text.GROUP(settings=settings) if settings else ""

    def changes(self) -> list[str]:
        """Return a sentence per metric: the best hardware at the smallest batch, and its changes at larger batches."""
        groups: dict[tuple[str, ...], list[SweepWinner]] = {}
        for row in self.winners:
            groups.setdefault((row.model, row.precision, row.runtime, row.metric), []).append(row)
        lines = []
        for first, *later in groups.values():
            if all(row.candidate_count == 1 for row in (first, *later)):
                continue
            starts = [first, *(row for row in later if row.is_change)]
            batches = [row.batch for row in (first, *later)]
            ends = (*(row.batch for row in starts[1:]), math.inf)
            spans = [
                _describe_span([one for one in batches if row.batch <= one < end])
                for row, end in zip(starts, ends, strict=True)
            ]
            ties = [
                self._list_ties([one for one in (first, *later) if row.batch <= one.batch < end])
                for row, end in zip(starts, ends, strict=True)
            ]
            spans[-1] = text.FROM_BATCH(batch=starts[-1].batch) if len(starts) > 1 else text.AT_EVERY_BATCH
            moves = [
                self._fill(text.MOVES, row, where=where, ties=tied)
                + ("" if row.is_overtaking else self._fill(text.REPLACES, row))
                for row, where, tied in zip(starts[1:], spans[1:], ties[1:], strict=True)
            ]
            lines.append(
                self._fill(
                    text.CHANGING,
                    first,
                    group=self._group(first),
                    metric=METRIC[first.metric].label,
                    where=spans[0] if later else text.AT_BATCH(batch=first.batch),
                    moves="".join(moves),
                    ties=ties[0],
                )
            )
        return lines

    def _list_ties(self, rows: Sequence[SweepWinner]) -> list[str]:
        """Return one text per chip that is tied with the best at these batch sizes; it names the sizes unless all
        apply.
        """
        every, found = [row.batch for row in rows], dict[str, list[SweepWinner]]()
        for row in rows:
            if _is_tied(row):
                found.setdefault(row.runner_up or "", []).append(row)
        lines = []
        for some in found.values():
            batches = [row.batch for row in some]
            first = every.index(batches[0])
            is_run = len(batches) > 2 and batches == every[first : first + len(batches)]
            where = _describe_span(batches) if is_run else text.AT_BATCHES(batches=[*map(str, batches)])
            where = "" if batches == every else where
            lines.append(self._fill(text.TIE, some[0], where=where))
        return lines

    def falls(self) -> list[str]:
        """Return a sentence per chip of the headline on why its throughput falls at large batches.

        Empty if no throughput falls.
        """
        lines = []
        for row in self.series:
            most, last = self._find_point(row), self._find_point(row, row.largest_batch)
            if not (self._is_named(row) and most and last and most.throughput_per_s and last.throughput_per_s):
                continue
            if last.throughput_per_s >= text.LEAST_FALL * most.throughput_per_s:
                continue
            before, after = most.dram_bytes_per_inference or 0.0, last.dram_bytes_per_inference or 0.0
            is_slow = (last.clock_fraction or 1.0) < (most.clock_fraction or 1.0)
            lines.append(
                text.FALL(
                    name=self._name(row),
                    most=most.throughput_per_s,
                    batch=most.batch,
                    last=last.throughput_per_s,
                    largest=last.batch,
                    reason=text.SPILLS(before=before, after=after)
                    if after > text.LEAST_SPILL * before
                    else text.CLOCKED(last)
                    if is_slow
                    else "",
                )
            )
        return lines

    def _find_point(self, row: SweepSeries, batch: int | None = None) -> SweepPoint | None:
        """Return the run of a series at a batch size, by default at the highest throughput; None if there is no such
        run.
        """
        batch = batch or row.throughput_batch
        key = (row.model, row.hardware, row.precision, row.runtime, batch)
        return next(
            (one for one in self.points if (one.model, one.hardware, one.precision, one.runtime, one.batch) == key),
            None,
        )

    def overtakings(self) -> list[str]:
        """Return a sentence per pair of hardware whose order reverses with the batch size.

        Reversals that change the best hardware are omitted, because `changes` states them.
        """
        known = {
            (row.model, row.precision, row.runtime, row.metric, row.batch, row.winner, row.previous_winner)
            for row in self.winners
            if row.is_overtaking
        }
        return [
            self._fill(
                text.OVERTAKING,
                row,
                group=self._group(row),
                metric=METRIC[row.metric].label,
                values=_show_pair(row.unit, row.overtaker_value, row.overtaken_value),
            )
            for row in self.crossings
            if (row.model, row.precision, row.runtime, row.metric, row.batch, row.overtaker, row.overtaken) not in known
        ]

    def _describe_beyond_budget(self) -> list[str]:
        """Return a sentence on chips that exceed the latency limit at every batch; empty without a limit."""
        beyond = [row for row in self.series if row.budget_batch is None and row.least_latency_s is not None]
        if not self.max_latency_s or not beyond:
            return []
        nearest = min(beyond, key=lambda row: row.least_latency_s or 0.0)
        names = shorten([self._name(row) for row in beyond], SHOWN_BEYOND)
        template = text.ALL_BEYOND_BUDGET if len(beyond) > 1 else text.BEYOND_BUDGET
        return [template(nearest, names=names, budget=self.max_latency_s, nearest=self._name(nearest))]

    def _notes(self) -> list[str]:
        """Return notes on evaluated runs, refusals, the terms of the tables, and the scope."""
        tally = self.tally
        lacks_scaling = any(row.largest_batch_scaling_ratio is None and row.batch_count for row in self.series)
        return [
            text.EVALUATED(new=tally.evaluated_count + tally.refused_count, stored=tally.stored_count),
            *self.scope.describe_refusals(),
            text.EFFICIENT,
            text.SCALING,
            *([text.NO_SCALING] if lacks_scaling else []),
            *self.scope.describe(),
        ]

    def _steps(self, by: SweepDivision, again: Sequence[str], repeated: Sequence[str]) -> list[list[str]]:
        every = list(text.HEADINGS)
        deeper = every[(every.index(by) + 1) % len(every)]
        steps = [text.STEP_DEEPER.words(models=self.scope.models, level=deeper, again=again, repeated=repeated)]
        best = next((row for row in self.series if row.throughput_batch is not None), None)
        if best is None:
            return steps
        values = {
            "model": best.model,
            "hardware": self.scope.spell(best.hardware),
            "batch": best.throughput_batch,
            "precision": spell_precision(best.precision) if best.precision != "fp32" else [],
            "runtime": best.runtime if best.runtime != "fused" else "",
            "repeated": repeated,
        }
        return [*steps, *(one.words(**values) for one in text.STEPS)]


def _find_lowest_energy(rows: Iterable[SweepSeries]) -> SweepSeries:
    return min(rows, key=lambda row: (row.energy_per_inference_j or 0.0, row.hardware))


def _find_highest_throughput(rows: Iterable[SweepSeries]) -> SweepSeries:
    return min(rows, key=lambda row: (-(row.throughput_per_s or 0.0), row.hardware))


METRIC_OF: Final[Mapping[Search, str]] = {
    _find_lowest_energy: "energy_per_inference",
    _find_highest_throughput: "throughput",
}
"""Function that finds the best series -> metric that it optimizes."""


def _compare_rows(best: SweepSeries, other: SweepSeries, find: Search) -> float:
    """Return how many times better `best` is than `other`, in the metric that `find` optimizes."""
    if find is _find_highest_throughput:
        return (best.throughput_per_s or 0.0) / (other.throughput_per_s or 1.0)
    return (other.energy_per_inference_j or 0.0) / (best.energy_per_inference_j or 1.0)


def _describe_span(batches: Sequence[int]) -> str:
    """Return a range of batch sizes as text."""
    first, last = batches[0], batches[-1]
    return text.AT_BATCH(batch=first) if first == last else text.UP_TO_BATCH(batch=first, last=last)


def _is_tied(row: SweepWinner) -> bool:
    return bool(row.runner_up) and is_tied(row.probability_ahead)


def _show_range(low: float | None, high: float | None, unit: str = "") -> str:
    return show_span(*(show_quantity(one, unit) if unit else str(one) for one in (low, high))) if low else ""


def _name_bound(row: SweepPoint | None) -> str:
    """Return what limits the latency of one batch, as a limit of throughput; empty if unknown."""
    return "" if row is None else text.BOUNDS.get(row.bound or "", "")


def _show_pair(unit: str, one: float, other: float) -> str:
    return text.PAIR(one=show_quantity(one, unit), other=show_quantity(other, unit))


def sweep(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, max_latency_s: float = 0.0
) -> SweepAnswer:
    """Sweep batch sizes of the models on each chip. Runs that are not stored are evaluated, as by `evaluate`.

    Batch sizes default to 1, 2, 4, ..., 128; `max_latency_s` is the latency budget of a batch, 0 for none. Raises like
    `evaluate`; UnsupportedError if no hardware can run any of the configurations.
    """
    asked = attrs.evolve(settings, batch=choose_batches(models, settings, BATCHES))
    with holding_runs(source, plan_runs(models, asked), has_ledger=False) as runs:
        connection, ids = runs.connection, list(runs.ids)
        points = start(connection, SweepPoint, run_ids=ids)
        scope = find_scope(runs)
        found: dict[str, Any] = fetch_tables(
            connection, SweepAnswer, ("points",), run_ids=ids, max_latency_s=max_latency_s
        )
        answer = SweepAnswer(
            scope=scope,
            tally=runs.tally,
            max_latency_s=max_latency_s,
            points=points(),
            **found,
        )
        answer = attrs.evolve(answer, ties=find_ties(connection, answer.find_pairs()))
    scope.check_evaluated()
    return answer
