"""Sweep batch sizes: the best batch of each chip, and the batches at which the best hardware changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.fact import Entry, Facts
from joulemap.ask.scope import Scope
from joulemap.ask.sweep import find_facts, find_series
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import HardwareRef, name_configured
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, Settings, SweepDivision
from joulemap.domain.table import Column, Table
from joulemap.generated.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.physics.record.weight import spell_precision
from joulemap.plan.run import RunTally, plan_runs
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.plan.workload import choose_batches
from joulemap.show.layout import Cell
from joulemap.show.page import Figures
from joulemap.show.present.cell import (
    Remark,
    is_tied,
    show,
    show_chance,
    show_ends,
    show_quantity,
    show_share,
    show_span,
)
from joulemap.show.present.document import Document, FieldCell, Grid, Section, choose_rows, show_under
from joulemap.show.present.picture import Marks, Picture
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import show_limit
from joulemap.show.sweep import describe_answer, list_decided, list_other_turns, list_reasons, list_turns
from joulemap.show.title import Title
from joulemap.store.query import start
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

TITLE: Final = Template("{models:list}, {batches}, {hardware:n chip}, {precisions:list}, {runtimes:list}")
MANY_MODELS: Final = Template("{count} models")
SPAN: Final = Template("batch {first}[ to {last}]")
SERIES: Final = Template("{model} on {name}")
ENERGY_HEADING: Final = "energy per inference"
THROUGHPUT_HEADING: Final = "throughput"
RATIO_HEADING: Final = "ratio"
HEADINGS: Final[Mapping[SweepDivision, str]] = {
    "hardware": "Best batch of each chip",
    "batch": "Every batch",
    "winner": "Best hardware at each batch",
    "crossing": "Pairs whose order reverses",
}
COLUMNS: Final[Mapping[SweepDivision, Template]] = {
    "hardware": Template(
        f"{{varying}}*hardware | *{ENERGY_HEADING} energy_per_inference_j | *{THROUGHPUT_HEADING} throughput_per_s | "
        f"*{RATIO_HEADING} ratio | "
        "[*throughput within {budget} budget_throughput_per_s | ]energy range energy_range | "
        "lowest latency least_latency_s | latency at highest throughput throughput_latency_s | "
        "throughput limit throughput_limit? | "
        "efficient batches zone_low_batch | power at efficient batches zone_low_power_w | "
        "largest batch run largest_batch | share of linear scaling largest_batch_scaling_ratio"
    ),
    "batch": Template(
        "{varying}*hardware | *batch | *latency latency_s | *throughput throughput_per_s | "
        "throughput limit throughput_limit? | speedup over batch 1 speedup_ratio | "
        "share of linear scaling batch_scaling_ratio | *energy per inference energy_per_inference_j | "
        "*power average_power_w | inferences per joule ~inferences_per_j | efficient is_in_zone | "
        "utilization compute_utilization_fraction | "
        "bandwidth utilization bandwidth_utilization_fraction | memory peak_memory_bytes"
    ),
    "winner": Template(
        "{varying}*metric | *batch | *best winner | *value | advantage advantage_ratio | "
        "*confidence probability_ahead | candidates candidate_count | *new best is_change"
    ),
    "crossing": Template(
        "{varying}*metric | *from batch batch | *overtaker | *overtaken | values overtaker_value | "
        "values before previous_overtaker_value"
    ),
}
LATENCY: Final = Template("[{least_latency_s:s} at {least_latency_batch}]")
THROUGHPUT: Final = Template("[{throughput_per_s:1/s} at {throughput_batch}]")
ENERGY: Final = Template("[{energy_per_inference_j:J} at {energy_batch}]")
IN_BUDGET: Final = Template("[{budget_throughput_per_s:1/s} at {budget_batch}]")
PAIR: Final = Template("{one} against {other}")
PAIR_BEFORE: Final = Template("{one} against {other} at batch {batch}")
ADVANTAGE: Final = Template("[{advantage_ratio:x} better than {runner_up}]")
TIED: Final = Template("tied with {runner_up}")
BOUNDS: Final[Mapping[str, str]] = {
    "compute": "compute",
    "operands": "operand supply",
    "memory": "memory",
    "launch": "kernel launches",
    "communication": "communication",
}
"""Bottleneck of the latency -> displayed name as a throughput limit of batches that run one after another."""

STEP_DEEPER: Final = Template("sweep {models} --level {level} {again} {repeated}")
STEPS: Final = (
    Template("utilization {model} {hardware} --batch {batch} {precision} [--runtime {runtime}] {repeated}"),
    Template("edp {model} {hardware} --batch {batch} {precision} [--runtime {runtime}] {repeated}"),
)

SHOWN: Final = 4
"""Default number of rows per table."""

SHOWN_TURNS: Final = 12
"""Maximum sentences of a figure."""

LABELLED: Final = (Column(name="label", type="VARCHAR", meaning="hardware, with the settings that vary"),)
"""Columns that a figure's rows have in addition to the query's columns."""

CAPPED: Final = (
    *LABELLED,
    Column(name="chip", type="VARCHAR", meaning="hardware without its power mode"),
    Column(name="cap_w", type="DOUBLE", meaning="power cap of its mode"),
)
"""Columns that the rows of a figure over power caps have in addition."""

FEWEST_CAPS: Final = 3
"""Minimum caps of one chip for a figure over power caps."""

SHOWN_MODELS: Final = 4

MARKED: Final = ("energy_per_inference", "throughput")
"""Metrics whose best cells are marked, in the order of their columns."""

FACTOR: Final = Template("{ratio:x}")
CAP_SERIES: Final = Template("{chip}, batch {batch}")


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
        best = {
            (row.model, row.hardware, row.precision, row.runtime, batch)
            for row in self.series
            for batch in (row.energy_batch, row.throughput_batch)
        }
        return [row for row in self.points if (row.model, row.hardware, row.precision, row.runtime, row.batch) in best]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the number of evaluated runs and the latency budget."""
        return {
            **super().data(),
            "tally": attrs.asdict(self.tally),
            "max_latency_s": self.max_latency_s or None,
        }

    def figures(self) -> Figures:
        """Return a figure of energy, latency and throughput over the batch size, and one over the power cap if a chip
        has several.
        """
        names = ["hardware", *(name for name in self._varying if name != "model")]
        series = " ".join(f"{{{name}}}" for name in names)
        texts = {"series": series, "of": " of {model}" if len(self.scope.models) > 1 else ""}
        named = self.points.with_columns(LABELLED, ((self._label(row),) for row in self.points))
        drawn = self._draw_figure("sweep", named, None, join_clauses(self.list_turns()[:SHOWN_TURNS]), texts)
        return (drawn, *self._draw_caps(texts))

    def _draw_caps(self, texts: Mapping[str, str]) -> Figures:
        """Return the figure over power caps, as the only element; empty if no chip has several caps."""
        refs = {row.hardware: HardwareRef.read(row.hardware) for row in self.points}
        caps = {name: self.caps_w[name] for name in refs}
        chips = Counter(refs[name].label for name in caps)
        rows = [row for row in self.points if chips[refs[row.hardware].label] >= FEWEST_CAPS]
        if not rows:
            return ()
        cells = (
            (CAP_SERIES(row, chip=refs[row.hardware].label), refs[row.hardware].label, caps[row.hardware])
            for row in rows
        )
        return (self._draw_figure("cap", self.points.with_rows(rows).with_columns(CAPPED, cells), None, "", texts),)

    def _label(self, row: SweepPoint) -> str:
        """Return the name of a point's series in figures: the model if it varies, and the name of the series."""
        name = self._name(row)
        return SERIES(model=row.model, name=name) if "model" in self._varying else name

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
        title = "" if by == "hardware" else HEADINGS[by]
        left_out = self._describe_left_out() if self.scope.settings.hardware else ()
        return self._compose_facts(
            self.facts,
            (show_under(title, self._draw(by, tables[by], limit), *left_out),),
            self.series if by == "hardware" else tables[by],
            title=self._title(),
            answer=self.describe_best(),
            reasons=list_reasons(self.facts),
            details=[
                Section(HEADINGS[name], self._draw(name, self._list_informative(name, one)))
                for name, one in tables.items()
                if name != by
            ],
            notes=list_other_turns(self.facts),
            steps=self._steps(by, again, repeated),
        )

    def _list_informative(self, by: SweepDivision, rows: Table[Any]) -> Table[Any]:
        """Return the rows of a table without refused runs, and without winners that had no rival."""
        if by == "batch":
            return rows.with_rows(row for row in rows if row.status == "ok")
        return rows.with_rows(row for row in rows if by != "winner" or row.candidate_count > 1)

    def describe_best(self) -> str:
        """Return the decision in one sentence."""
        return describe_answer(self.facts)

    def list_turns(self) -> list[str]:
        """Return a sentence per metric: the best hardware at the smallest batch, and its changes at larger batches."""
        return list_turns(self.facts)

    def _name(self, row: SweepSeries | SweepPoint) -> str:
        """Return the name of a series: its hardware and the settings that vary."""
        varying = (name for name in self._varying if name != "model")
        return " ".join((self._mark(row.hardware), *(getattr(row, name) for name in varying)))

    def _title(self) -> Title:
        scope = self.scope
        models, batches = scope.models, scope.batches
        values = {
            "models": models if len(models) <= SHOWN_MODELS else [MANY_MODELS(count=len(models))],
            "batches": SPAN(first=batches[0], last=batches[-1] if len(batches) > 1 else ""),
            "hardware": len({row.hardware for row in self.series}),
            "precisions": scope.labels,
            "runtimes": scope.runtimes,
        }
        return Title(form=TITLE, values=values)

    @property
    def _varying(self) -> tuple[str, ...]:
        """Settings that differ between rows (model, precision or runtime), so that tables must show them."""
        values = {"model": self.scope.models, "precision": self.scope.precisions, "runtime": self.scope.runtimes}
        return tuple(name for name, several in values.items() if len(several) > 1)

    def _draw(self, by: SweepDivision, rows: Table[Any], limit: int | None = None) -> Grid:
        """Return the grid of one division: by hardware, batch, winner or crossing."""
        budget = show_quantity(self.max_latency_s, "s") if self.max_latency_s else ""
        columns = COLUMNS[by](varying="".join(f"*{name} | " for name in self._varying), budget=budget)
        if by == "hardware":
            return self._draw_best(rows, columns, limit)
        return self._lay(rows, columns, limit=limit, noun="rows", **self._cells[by])

    def _draw_best(self, rows: Table[SweepSeries], columns: str, limit: int | None) -> Grid:
        """Return the grid of the best batches, lowest energy first, with the best of each model marked."""
        models = {name: row_index for row_index, name in enumerate(dict.fromkeys(row.model for row in rows))}
        ranked = sorted(rows, key=lambda row: (models[row.model], row.energy_per_inference_j or 0.0))
        runs = {find_series(row): dict(self._find_best(row)) for row in ranked}
        choices = list_decided(self.facts)
        leaders = {(one.metric, one.runs[0]) for one in choices}
        rivals = {(one.metric, run_id) for one in choices for run_id in (*one.tied, *one.equal)} - leaders
        least = {one.model or row.model: one.value.value for one in choices if one.metric == MARKED[0] for row in rows}

        widths = {one.runs[0]: one.values[MARKED[0]].half_width for one in self.facts.of(Entry)}

        def show_range(row: SweepSeries) -> str:
            return show_ends(row.energy_per_inference_j, "J", widths[runs[find_series(row)][MARKED[0]]])

        def stays(row: SweepSeries) -> bool:
            return bool(leaders & runs[find_series(row)].items())

        drawn = self._lay(
            rows.with_rows(ranked),
            columns,
            ranked=f"{ENERGY_HEADING} | {THROUGHPUT_HEADING}",
            limit=limit,
            noun="rows",
            stays=stays,
            ratio=lambda row: FACTOR(ratio=(row.energy_per_inference_j or 0.0) / least[row.model]),
            energy_range=show_range,
            **self._cells["hardware"],
        )
        places = [drawn.headings.index(name) for name in (ENERGY_HEADING, THROUGHPUT_HEADING)]
        cells = {
            (at, column): (metric, runs[find_series(row)][metric])
            for at, row in enumerate(choose_rows(ranked, limit, stays))
            for metric, column in zip(MARKED, places, strict=True)
        }
        is_alone = len(ranked) < 2
        best = frozenset(position for position, one in cells.items() if one in leaders and not is_alone)
        tied = frozenset(position for position, one in cells.items() if one in rivals)
        trend = Picture(
            kind="trend",
            after=RATIO_HEADING,
            of=ENERGY_HEADING,
            heading="by batch",
            rows=tuple(map(self._follow, choose_rows(ranked, limit, stays))),
        )
        return attrs.evolve(drawn, best=best, tied=tied, pictures=(trend,))

    def _follow(self, row: SweepSeries) -> Marks:
        """Return the energy per inference of a series at each batch size that its chip can run."""
        own = sorted((one for one in self.points if find_series(one) == find_series(row)), key=lambda one: one.batch)
        values = tuple(one.energy_per_inference_j for one in own if one.energy_per_inference_j)
        return values if len(values) > 1 else ()

    def _find_best(self, row: SweepSeries) -> Iterator[tuple[str, int]]:
        """Yield each marked metric and the id of the best run of a series in it."""
        for metric, batch in zip(MARKED, (row.energy_batch, row.throughput_batch), strict=True):
            point = self._find_point(row, batch)
            if point is not None:
                yield metric, point.run_id

    @property
    def _cells(self) -> Mapping[SweepDivision, Mapping[str, Cell]]:
        """Division -> field -> function that formats its cells."""

        def find_run(row: SweepSeries) -> int | None:
            return dict(self._find_best(row)).get(MARKED[0])

        def name_metric(row: SweepWinner | SweepCrossing) -> str:
            return METRIC[row.metric].label

        return {
            "hardware": {
                "least_latency_s": LATENCY,
                "budget_throughput_per_s": lambda row: IN_BUDGET(row) or "none",
                "throughput_per_s": THROUGHPUT,
                "throughput_limit": lambda row: show_limit(row) or _name_bound(self._find_point(row)),
                "energy_per_inference_j": FieldCell("energy_per_inference_j", ENERGY, find_run),
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
                "advantage_ratio": ADVANTAGE,
                "probability_ahead": lambda row: (
                    Remark(self._fill(TIED, row)) if _is_tied(row) else show_chance(row.probability_ahead)
                ),
            },
            "crossing": {
                "metric": name_metric,
                "overtaker_value": lambda row: _show_pair(row.unit, row.overtaker_value, row.overtaken_value),
                "previous_overtaker_value": lambda row: PAIR_BEFORE(
                    one=show_quantity(row.previous_overtaker_value, row.unit),
                    other=show_quantity(row.previous_overtaken_value, row.unit),
                    batch=row.previous_batch,
                ),
            },
        }

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

    def _steps(self, by: SweepDivision, again: Sequence[str], repeated: Sequence[str]) -> list[list[str]]:
        every = list(HEADINGS)
        deeper = every[(every.index(by) + 1) % len(every)]
        steps = [STEP_DEEPER.words(models=self.scope.models, level=deeper, again=again, repeated=repeated)]
        best = next((row for row in self.series if row.throughput_batch is not None), None)
        if best is None:
            return steps
        values = {
            "model": best.model,
            "hardware": self.scope.spell(best.hardware),
            "batch": best.throughput_batch,
            "precision": spell_precision(best.precision) if best.precision != "fp32" else [],
            "runtime": best.runtime if best.runtime != USUAL_RUNTIME else "",
            "repeated": repeated,
        }
        return [*steps, *(one.words(**values) for one in STEPS)]


def _is_tied(row: SweepWinner) -> bool:
    return bool(row.runner_up) and is_tied(row.probability_ahead)


def _show_range(low: float | None, high: float | None, unit: str = "") -> str:
    return show_span(*(show_quantity(one, unit) if unit else str(one) for one in (low, high))) if low else ""


def _name_bound(row: SweepPoint | None) -> str:
    """Return what limits the latency of one batch, as a limit of throughput; empty if unknown."""
    return "" if row is None else BOUNDS.get(row.bound or "", "")


def _show_pair(unit: str, one: float, other: float) -> str:
    return PAIR(one=show_quantity(one, unit), other=show_quantity(other, unit))


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
        tables: dict[str, Any] = fetch_tables(
            connection, SweepAnswer, ("points",), run_ids=ids, max_latency_s=max_latency_s
        )
        read = points()
        facts = find_facts(scope, tables["series"], read, max_latency_s=max_latency_s, takes_all=settings.takes_all)
        caps_w = {name_configured(entry.id, mode): entry.cap_w(mode) for entry, mode in runs.plan.selection.pairs}
        return SweepAnswer(
            caps_w=caps_w,
            scope=scope,
            tally=runs.tally,
            max_latency_s=max_latency_s,
            points=read,
            facts=facts,
            **tables,
        )
