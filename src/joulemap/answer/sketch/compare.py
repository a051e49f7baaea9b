"""Comparisons as sketches: bars with intervals, heat maps of who is best."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from joulemap.answer.compare.breakdown import BreakdownAnswer
from joulemap.answer.compare.contest import ContestAnswer
from joulemap.answer.compare.model import ModelsAnswer
from joulemap.answer.compare.ranking import RankingAnswer
from joulemap.answer.compare.summary import CompareAnswer
from joulemap.answer.run import ENERGY_PARTS
from joulemap.answer.sketch.choice import Choice
from joulemap.domain.metric import METRIC, RankMetricName
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, Heat, HeatRow, cut_bars
from joulemap.row.compare import Comparison

UNSUPPORTED: Final = "unsupported"

MOST_BARS: Final = 40

RANKED: Final[dict[RankMetricName, tuple[str, str, str]]] = {
    "latency": ("latency_s", "latency of a batch", "s"),
    "throughput": ("throughput_per_s", "throughput", "1/s"),
    "power": ("average_power_w", "power", "W"),
    "efficiency": ("inferences_per_j", "inferences per joule", ""),
    "energy": ("energy_per_inference_j", "energy per inference", "J"),
}
"""Metric of a ranking -> its column, what it is, its unit."""


Compared = BreakdownAnswer | CompareAnswer | ContestAnswer | ModelsAnswer | RankingAnswer


def sketch(answer: Compared, choice: Choice) -> Section:
    """Return what a comparison of any kind is drawn as."""
    match answer:
        case BreakdownAnswer():
            return sketch_runs(answer)
        case CompareAnswer():
            return sketch_comparison(answer)
        case ContestAnswer():
            return sketch_contest(answer, choice.limit)
        case ModelsAnswer():
            return sketch_models(answer)
        case RankingAnswer():
            return sketch_ranking(answer)


def sketch_comparison(answer: CompareAnswer) -> Section:
    """Return energy and latency of each run as bars with their intervals."""
    each = "batch" in answer.varying
    energies, rest = cut_bars((_energy_bar(answer, row, each=each) for row in answer.rows), MOST_BARS, "runs")
    latencies, _ = cut_bars(
        (
            Bar(
                label=_name(answer, row),
                value=row.latency_s,
                low=row.latency_low_s,
                high=row.latency_high_s,
                text=UNSUPPORTED if row.latency_s is None else "",
            )
            for row in answer.rows
        ),
        MOST_BARS,
        "runs",
    )
    label = "energy per inference" if each else "energy of a batch"
    return Section(
        "Sketch",
        (
            Bars(title=label.capitalize(), axis=Axis(label=label, unit="J"), bars=energies, notes=rest),
            Bars(
                title="Latency of a batch", axis=Axis(label="latency of a batch", unit="s"), bars=latencies, notes=rest
            ),
        ),
    )


def _energy_bar(answer: CompareAnswer, row: Comparison, *, each: bool) -> Bar:
    count = row.batch if each else 1
    value, low, high = (
        None if one is None else one / count for one in (row.energy_j, row.energy_low_j, row.energy_high_j)
    )
    text = UNSUPPORTED if value is None else ""
    return Bar(label=_name(answer, row), value=value, low=low, high=high, text=text)


def _name(answer: CompareAnswer, row: Comparison) -> str:
    words = {"precision": row.precision, "batch": f"batch {row.batch}", "runtime": row.runtime}
    return " ".join((answer.scope.mark(row.hardware), *(words[name] for name in answer.varying)))


def sketch_ranking(answer: RankingAnswer) -> Section:
    """Return the metric that hardware is ranked by as bars."""
    column, label, unit = RANKED[answer.sort]
    bars, rest = cut_bars(
        (
            Bar(
                label=answer.scope.mark(row.hardware),
                value=getattr(row, column),
                text=UNSUPPORTED if getattr(row, column) is None else "",
            )
            for row in answer.rows
        ),
        MOST_BARS,
        "hardware",
    )
    title = f"{label.capitalize()}, the best first"
    return Section("Sketch", Bars(title=title, axis=Axis(label=label, unit=unit), bars=bars, notes=rest))


def sketch_models(answer: ModelsAnswer) -> Section:
    """Return how near each hardware is to the best for each model, as a heat map."""
    hardware = list(dict.fromkeys(row.hardware for row in sorted(answer.rows, key=lambda row: row.run_id)))
    rows = []
    for _, group in groupby(answer.rows, lambda row: row.workload_id):
        found = {row.hardware: row for row in group}
        first = next(iter(found.values()))
        best = f"{first.tied_count} alike" if first.tied_count > 1 else answer.scope.mark(first.hardware)
        rows.append(
            HeatRow(
                label=first.model,
                ratios=tuple(found[name].hardware_ratio if name in found else None for name in hardware),
                note="" if first.value is None else best,
            )
        )
    title = f"{METRIC[answer.metric].label.capitalize()} of each model on each hardware, over the least"
    return Section("Sketch", Heat(title=title, columns=tuple(map(answer.scope.mark, hardware)), rows=tuple(rows)))


def sketch_runs(answer: BreakdownAnswer) -> Section:
    """Return the energy of each run by part, as stacked bars."""
    several = len(answer.scope.models) > 1
    bars, rest = cut_bars(
        (
            Bar(
                label=(f"{row.model} on " if several else "") + answer.scope.mark(row.hardware),
                value=row.energy_j,
                parts=tuple(getattr(row, f"{part}_energy_j") or 0.0 for part in ENERGY_PARTS),
                text=UNSUPPORTED if row.energy_j is None else "",
            )
            for row in answer.rows
        ),
        MOST_BARS,
        "runs",
    )
    axis = Axis(label="energy of a batch", unit="J")
    drawn = Bars(title="Energy of a batch by part", axis=axis, bars=bars, parts=ENERGY_PARTS, notes=rest)
    return Section("Sketch", drawn)


def sketch_contest(answer: ContestAnswer, limit: int) -> Section:
    """Return how near each hardware is to the best of each part, as a heat map of `limit` parts for each model."""
    mark, maps = answer.scope.mark, []
    several = len({row.workload_id for row in answer.rows}) > 1
    for _, group in groupby(answer.rows, lambda row: row.workload_id):
        rows = list(group)
        hardware = list(dict.fromkeys(row.hardware for row in sorted(rows, key=lambda row: row.run_id)))
        contests = [list(contest) for _, contest in groupby(rows, lambda row: row.part_index)]
        heat = []
        for contest in contests[:limit]:
            first, ratios = contest[0], {row.hardware: row.ratio for row in contest}
            best = f"{first.tied_count} alike" if first.tied_count > 1 else mark(first.hardware)
            heat.append(HeatRow(label=first.name, ratios=tuple(ratios.get(name) for name in hardware), note=best))
        left = len(contests) - limit
        of = f" of {rows[0].model}" if several else ""
        maps.append(
            Heat(
                title=f"{METRIC[answer.metric].label.capitalize()} of each {answer.by}{of}, over the least",
                columns=tuple(map(mark, hardware)),
                rows=tuple(heat),
                notes=(f"{left:,} more {answer.by}s",) if left > 0 else (),
            )
        )
    return Section("Sketch", maps)
