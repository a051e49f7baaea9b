"""Sweep batch sizes: the best batch of each hardware, and the batches at which the best hardware changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer, fetch_tables
from joulemap.answer.run import limit_columns
from joulemap.answer.scope import describe_chance, find_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, Settings, SweepDivision
from joulemap.domain.table import Table
from joulemap.domain.weight import label_precision, spell_precision
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import RunTally, plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_quantity, show_share, show_span
from joulemap.present.document import Document, Grid, Made, Section, Shown, grid, show_under
from joulemap.row.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.store.query import start
from joulemap.system.record import frozen

HEADINGS: Final[dict[SweepDivision, str]] = {
    "hardware": "Best batch of each hardware",
    "batch": "Every batch",
    "winner": "Best hardware at each batch",
    "crossing": "Pairs whose order reverses",
}

SHOWN: Final = 12
"""Default number of rows per table, and maximum sentences of a figure."""

SHOWN_MODELS: Final = 4


@frozen(kw_only=True)
class SweepAnswer(RunAnswer):
    """Best batch size of each hardware, and the batch sizes at which the best hardware changes."""

    tally: RunTally
    max_latency_s: float
    """Latency budget; 0 for none."""
    series: Table[SweepSeries]
    """One row per model, hardware, precision and runtime."""
    points: Table[SweepPoint]
    """One row per run."""
    winners: Table[SweepWinner]
    """One row per model, precision, runtime, metric and batch."""
    crossings: Table[SweepCrossing]
    """Pairs of hardware whose order reverses with the batch size."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences."""
        return {
            **super().data(),
            "tally": attrs.asdict(self.tally),
            "max_latency_s": self.max_latency_s or None,
            "changes": self.changes(),
            "overtakings": self.overtakings(),
        }

    def figures(self) -> Figures:
        """Return energy, latency and throughput over the batch size."""
        varied = (("precision", self.scope.precisions), ("runtime", self.scope.settings.runtime))
        series = ["{hardware}", *(f"{{{name}}}" for name, values in varied if len(values) > 1)]
        texts = {"series": " ".join(series), "of": " of {model}" if len(self.scope.models) > 1 else ""}
        return (self._draw_figure("sweep", self.points, "", "; ".join(self.changes()[:SHOWN]), texts),)

    def document(
        self,
        *,
        by: SweepDivision = "hardware",
        limit: int = SHOWN,
        again: Sequence[str] = (),
        repeated: Sequence[str] = (),
    ) -> Document:
        """Return the document with `limit` rows of one table; machine formats hold all, csv that one.

        `again` holds options that only a repeat of this sweep needs, `repeated` those of every follow-up command.
        """
        tables: dict[SweepDivision, tuple[Callable[[int | None], Grid], Table[Any]]] = {
            "hardware": (self._series, self.series),
            "batch": (self._points, self.points),
            "winner": (self._winners, self.winners),
            "crossing": (self._crossings, self.crossings),
        }
        draw, table = tables[by]
        return self._compose(
            self._title(),
            (show_under(HEADINGS[by], draw(limit), *self.scope.say_left_out()),),
            table,
            answer=self.say_best(),
            insights=[*self.changes(), *self.overtakings()],
            details=[Section(HEADINGS[name], one(None)) for name, (one, _) in tables.items() if name != by],
            notes=self._notes(),
            steps=self._steps(by, again, repeated),
        )

    def say_best(self) -> str:
        """Return the headline: least energy per inference and highest throughput, available hardware first."""
        found, had = self._find_answered()
        if not found:
            return ""
        frugal, swift = _find_frugal(had), _find_swift(had)
        among = "" if len(had) == len(found) else " of the available hardware"
        text = f"Least energy per inference{among}: {self._say_energy(frugal)}. "
        text += f"Highest throughput: {self._say_rate(swift)}."
        beyond = [
            *([self._say_energy(row)] if (row := _find_frugal(found)) not in had else []),
            *([self._say_rate(row)] if (row := _find_swift(found)) not in had else []),
        ]
        return f"{text} If available: {'; '.join(beyond)}." if beyond else text

    def _find_answered(self) -> tuple[list[SweepSeries], list[SweepSeries]]:
        """Return the series with answers, and the available ones among them; all if none is available."""
        found = [row for row in self.series if row.energy_batch is not None and row.throughput_batch is not None]
        return found, [row for row in found if row.is_available or self.scope.settings.takes_all] or found

    def _is_named(self, row: SweepSeries) -> bool:
        """Return whether the first sentence names a series."""
        return any(row in (_find_frugal(rows), _find_swift(rows)) for rows in self._find_answered() if rows)

    def _say_energy(self, row: SweepSeries) -> str:
        return f"{self._call(row)} at batch {row.energy_batch}, {show_quantity(row.energy_per_inference_j, 'J')}"

    def _say_rate(self, row: SweepSeries) -> str:
        return f"{self._call(row)} at batch {row.throughput_batch}, {show_quantity(row.throughput_per_s, '1/s')}"

    def _call(self, row: SweepSeries) -> str:
        """Return the name of a series: its hardware and the settings that vary."""
        return " ".join((self.scope.mark(row.hardware), *(getattr(row, name) for name in self._varying)))

    def _title(self) -> str:
        scope, tally = self.scope, self.tally
        batches = scope.batches
        span = f"batch {batches[0]}"
        if len(batches) > 1:
            span = f"{len(batches)} batches from {batches[0]} to {batches[-1]}"
        models = ", ".join(scope.models) if len(scope.models) <= SHOWN_MODELS else f"{len(scope.models)} models"
        hardware = len({row.hardware for row in self.series})
        precisions = [label_precision(*pair) for pair in scope.precisions]
        settings = f"{', '.join(precisions)}, {', '.join(scope.settings.runtime)}"
        return f"{models}, {span}, {hardware} hardware, {settings}: {tally.run_count} runs"

    @property
    def _varying(self) -> tuple[str, ...]:
        """Names among model, precision and runtime that differ between rows, so that tables must show them."""
        settings = self.scope.settings
        values = {"model": self.scope.models, "precision": self.scope.precisions, "runtime": settings.runtime}
        return tuple(name for name, found in values.items() if len(found) > 1)

    def _draw(
        self,
        rows: Table[Any],
        columns: Iterable[Shown[Any]],
        keep: Sequence[str],
        limit: int | None,
        *,
        ranked: Sequence[str] = (),
        stays: Callable[[Any], bool] | None = None,
    ) -> Grid:
        varying = tuple((name, name) for name in self._varying)
        return grid(
            rows,
            (*varying, *columns),
            keep=("hardware", *self._varying, *keep),
            ranked=ranked,
            projected=self.scope.projected,
            limit=limit,
            stays=stays,
        )

    def _series(self, limit: int | None) -> Grid:
        budget = f"within {show_quantity(self.max_latency_s, 's')}" if self.max_latency_s else ""
        within: Shown[SweepSeries] = (
            budget,
            lambda row: (
                _at(row.budget_throughput_per_s, "1/s", row.budget_batch) or ("none" if row.batch_count else "")
            ),
        )
        runs = {(row.model, row.hardware, row.precision, row.runtime, row.batch): row.run_id for row in self.points}
        columns: tuple[Shown[SweepSeries], ...] = (
            ("hardware", "hardware"),
            (
                "least latency",
                lambda row: _at(row.least_latency_s, "s", row.least_latency_batch),
            ),
            *((within,) if budget else ()),
            ("highest throughput", lambda row: _at(row.throughput_per_s, "1/s", row.throughput_batch)),
            ("latency there", "throughput_latency_s"),
            *limit_columns(self.series),
            ("least energy per inference", Made(
                "energy_per_inference_j",
                lambda row: _at(row.energy_per_inference_j, "J", row.energy_batch),
                lambda row: runs.get((row.model, row.hardware, row.precision, row.runtime, row.energy_batch)),
            )),
            ("efficient zone", lambda row: show_span(str(row.zone_low_batch), str(row.zone_high_batch))
             if row.zone_low_batch else ""),
            ("power there", lambda row: show_span(
                show_quantity(row.zone_low_power_w, "W"), show_quantity(row.zone_high_power_w, "W"))),
            ("largest", "largest_batch"),
            ("batch scaling", lambda row: show_share(row.largest_batch_scaling_ratio)),
        )  # fmt: skip
        keep = (*((budget,) if budget else ()), "highest throughput", "least energy per inference", "least latency")
        answered = tuple(row for row in self.series if row.batch_count)
        ranked = ("highest throughput", "least energy per inference")
        rows = attrs.evolve(self.series, rows=answered)
        return self._draw(rows, columns, keep, limit, ranked=ranked, stays=self._is_named)

    def _points(self, limit: int | None) -> Grid:
        columns: tuple[Shown[SweepPoint], ...] = (
            ("hardware", "hardware"),
            ("batch", "batch"),
            ("latency", lambda row: show_quantity(row.latency_s, "s") or row.status),
            ("throughput", "throughput_per_s"),
            *limit_columns(self.points),
            ("over batch 1", "speedup_ratio"),
            ("batch scaling", lambda row: show_share(row.batch_scaling_ratio)),
            ("energy per inference", "energy_per_inference_j"),
            ("power", "average_power_w"),
            ("inferences per joule", lambda row: show_quantity(row.inferences_per_j, "")),
            ("efficient zone", lambda row: show(row.is_in_zone, "") if row.status == "ok" else ""),
            ("of peak", "compute_utilization_fraction"),
            ("bandwidth", "bandwidth_utilization_fraction"),
            ("memory", "peak_memory_bytes"),
        )
        keep = ("batch", "latency", "throughput", "energy per inference", "power")
        return self._draw(self.points, columns, keep, limit)

    def _winners(self, limit: int | None) -> Grid:
        columns: tuple[Shown[SweepWinner], ...] = (
            ("least", lambda row: METRIC[row.metric].label),
            ("batch", "batch"),
            ("hardware", "winner"),
            ("value", lambda row: show_quantity(row.value, row.unit)),
            (
                "against the next",
                lambda row: (
                    f"{row.advantage_ratio:.3g}x better than {self.scope.mark(row.runner_up)}"
                    if row.runner_up is not None
                    else ""
                ),
            ),
            ("how sure", self._sure),
            ("of", "candidate_count"),
            ("new", "is_change"),
        )
        return self._draw(self.winners, columns, ("least", "batch", "value", "how sure", "new"), limit)

    def _sure(self, row: SweepWinner) -> str:
        if row.probability_ahead is None or row.runner_up is None:
            return ""
        rivals = [self.scope.mark(row.runner_up)] if self._is_close(row) else []
        return describe_chance(row.probability_ahead, rivals)

    def _crossings(self, limit: int | None) -> Grid:
        columns: tuple[Shown[SweepCrossing], ...] = (
            ("least", lambda row: METRIC[row.metric].label),
            ("from batch", "batch"),
            ("overtaker", "overtaker"),
            ("overtaken", "overtaken"),
            ("there", lambda row: _pair(row.unit, row.overtaker_value, row.overtaken_value)),
            (
                "before",
                lambda row: (
                    f"{_pair(row.unit, row.previous_overtaker_value, row.previous_overtaken_value)} "
                    f"at batch {row.previous_batch}"
                ),
            ),
        )
        return self._draw(self.crossings, columns, ("least", "from batch", "overtaker", "overtaken"), limit)

    def _group(self, row: SweepSeries | SweepWinner | SweepCrossing) -> str:
        """Return the start of a sentence that names model, precision and runtime if they vary."""
        text = ", ".join(getattr(row, name) for name in self._varying)
        return f"{text}: " if text else ""

    def changes(self) -> list[str]:
        """Return for each metric the best hardware at the smallest batch, and each change of it at larger ones."""
        mark = self.scope.mark
        groups: dict[tuple[str, ...], list[SweepWinner]] = {}
        for row in self.winners:
            groups.setdefault((row.model, row.precision, row.runtime, row.metric), []).append(row)
        lines = []
        for first, *later in groups.values():
            if all(row.candidate_count == 1 for row in (first, *later)):
                continue
            text = f"{self._group(first)}{METRIC[first.metric].label}: {mark(first.winner)}"
            moves = [row for row in later if row.is_change]
            text += (
                f" is best from batch {first.batch}" if moves else " is best at every batch" if later else " is best"
            )
            for row in moves:
                text += (
                    f"; {mark(row.winner)} overtakes it from batch {row.batch}"
                    if row.is_overtaking
                    else f"; it cannot run batch {row.batch}, from which {mark(row.winner)} is best"
                )
            close = [row for row in (first, *moves) if self._is_close(row)]
            text += "".join(
                f"; at batch {row.batch} it is tied with {mark(row.runner_up)}"
                for row in close
                if row.runner_up is not None
            )
            lines.append(text)
        return lines

    @staticmethod
    def _is_close(row: SweepWinner) -> bool:
        return row.probability_ahead is not None and row.probability_ahead < TOLD_APART

    def overtakings(self) -> list[str]:
        """Return the crossings of pairs of hardware, except changes of the best."""
        known = {
            (row.model, row.precision, row.runtime, row.metric, row.batch, row.winner, row.previous_winner)
            for row in self.winners
            if row.is_overtaking
        }
        return [
            f"{self._group(row)}{METRIC[row.metric].label}: {self.scope.mark(row.overtaker)} overtakes "
            f"{self.scope.mark(row.overtaken)} from batch {row.batch} "
            f"({_pair(row.unit, row.overtaker_value, row.overtaken_value)})"
            for row in self.crossings
            if (row.model, row.precision, row.runtime, row.metric, row.batch, row.overtaker, row.overtaken) not in known
        ]

    def _notes(self) -> list[str]:
        """Return notes on these rows."""
        tally = self.tally
        reasons = dict.fromkeys(row.reason for row in self.series if row.reason)
        lines = [f"{tally.evaluated_count + tally.refused_count} evaluated now, {tally.stored_count} stored before"]
        lines += [f"unsupported: {self.scope.mark(reason)}" for reason in reasons]
        if self.max_latency_s:
            budget = show_quantity(self.max_latency_s, "s")
            lines += [
                f"{self._group(row)}{self.scope.mark(row.hardware)} exceeds {budget} at every batch: its lowest "
                f"latency is {show_quantity(row.least_latency_s, 's')}, at batch {row.least_latency_batch}"
                for row in self.series
                if row.budget_batch is None and row.least_latency_s is not None
            ]
        if any(row.largest_batch_scaling_ratio is None and row.batch_count for row in self.series):
            lines.append("batch scaling needs a run at batch 1")
        return lines + self.scope.describe()

    def _steps(self, by: SweepDivision, again: Sequence[str], repeated: Sequence[str]) -> list[list[str]]:
        every = list(HEADINGS)
        deeper = every[(every.index(by) + 1) % len(every)]
        steps = [["sweep", *self.scope.models, "--level", deeper, *again, *repeated]]
        best = next((row for row in self.series if row.throughput_batch is not None), None)
        if best is not None:
            run = ["--batch", str(best.throughput_batch)]
            run += spell_precision(best.precision) if best.precision != "fp32" else []
            run += ["--runtime", best.runtime] if best.runtime != "fused" else []
            hardware = self.scope.spell(best.hardware)
            steps += [[command, best.model, hardware, *run, *repeated] for command in ("utilization", "edp")]
        return steps


def _find_frugal(rows: Iterable[SweepSeries]) -> SweepSeries:
    return min(rows, key=lambda row: (row.energy_per_inference_j or 0.0, row.hardware))


def _find_swift(rows: Iterable[SweepSeries]) -> SweepSeries:
    return min(rows, key=lambda row: (-(row.throughput_per_s or 0.0), row.hardware))


def _at(value: float | None, unit: str, batch: int | None) -> str:
    at = "" if batch is None else f" at {batch}"
    return "" if value is None else f"{show_quantity(value, unit)}{at}"


def _pair(unit: str, one: float, other: float) -> str:
    return f"{show_quantity(one, unit)} against {show_quantity(other, unit)}"


def sweep(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, max_latency_s: float = 0.0
) -> SweepAnswer:
    """Evaluate missing runs as `evaluate` does, and return the best batch sizes of each hardware.

    Batch sizes default to 1, 2, 4, ..., 128; `max_latency_s` is the latency budget of a batch, 0 for none. Raises as
    `evaluate`; UnsupportedError if no hardware can run any of it.
    """
    asked = attrs.evolve(settings, batch=settings.batch or BATCHES)
    with holding_runs(source, plan_runs(models, asked), has_ledger=False) as runs:
        connection, ids = runs.connection, list(runs.ids)
        points = start(connection, SweepPoint, run_ids=ids)
        scope = find_scope(runs)
        answer = SweepAnswer(
            scope=scope,
            tally=runs.tally,
            max_latency_s=max_latency_s,
            **fetch_tables(connection, SweepAnswer, ("points",), run_ids=ids, max_latency_s=max_latency_s),
            points=points(),
        )
    scope.check_evaluated()
    return answer
