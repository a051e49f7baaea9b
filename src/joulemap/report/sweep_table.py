"""The tables of a sweep, one for each level."""

from __future__ import annotations

from joulemap.present.cell import PROJECTED, show, show_quantity
from joulemap.query.sweep import SweepAnswer
from joulemap.report.render import draw_table


def list_distinct(answer: SweepAnswer, name: str) -> list[str]:
    """Return the different values of a field of the runs, in their order."""
    return list(dict.fromkeys(getattr(row, name) for row in answer.points))


def mark(hardware: str, is_projection: bool) -> str:
    """Return a hardware's name, marked if its key numbers are projections or estimates."""
    return f"{PROJECTED}{hardware}" if is_projection else hardware


def list_projected(answer: SweepAnswer) -> frozenset[str]:
    """Return the hardware of a sweep whose key numbers are projections or estimates."""
    return frozenset(row.hardware for row in answer.series if row.is_projection)


def list_settings(answer: SweepAnswer) -> tuple[str, ...]:
    """Return which of model, precision and runtime differ between rows, so that tables must show them."""
    return tuple(name for name in ("model", "precision", "runtime") if len(list_distinct(answer, name)) > 1)


def _in(unit: str, value: float | None) -> str:
    return "" if value is None else show_quantity(value, unit)


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def draw_series(answer: SweepAnswer, is_markdown: bool) -> str:
    """Return a row per hardware: its best batches."""
    settings = list_settings(answer)
    within = (f"within {show_quantity(answer.max_latency_s, 's')}: batch", "throughput") if answer.max_latency_s else ()
    headings = (
        *settings, "hardware", "least latency: batch", "latency", *within, "highest throughput: batch", "throughput",
        "latency", "least energy: batch", "per inference", "efficient zone", "at", "largest", "batch efficiency",
    )  # fmt: skip
    rows = []
    for row in answer.series:
        first = [*(getattr(row, name) for name in settings), mark(row.hardware, row.is_projection)]
        if not row.batch_count:
            rows.append([*first, "unsupported", *[""] * (len(headings) - len(first) - 1)])
            continue
        budget = (show(row.budget_batch, "batch") or "none", _in("1/s", row.budget_throughput_per_s)) if within else ()
        zone = (row.zone_low_batch, row.zone_high_batch)
        rows.append(
            [
                *first,
                show(row.least_latency_batch, "batch"),
                _in("s", row.least_latency_s),
                *budget,
                show(row.throughput_batch, "batch"),
                _in("1/s", row.throughput_per_s),
                _in("s", row.throughput_latency_s),
                show(row.energy_batch, "batch"),
                _in("J", row.energy_per_inference_j),
                _span(*(show(batch, "batch") for batch in zone)),
                _span(_in("W", row.zone_low_power_w), _in("W", row.zone_high_power_w)),
                show(row.largest_batch, "batch"),
                _share(row.largest_batch_efficiency_ratio),
            ]
        )
    return draw_table(headings, rows, is_markdown=is_markdown)


def draw_points(answer: SweepAnswer, is_markdown: bool) -> str:
    """Return a row per run."""
    settings = list_settings(answer)
    headings = (
        *settings, "hardware", "batch", "latency", "throughput", "over batch 1", "batch efficiency",
        "energy per inference", "power", "inferences per joule", "efficient zone", "of peak", "bandwidth", "memory",
    )  # fmt: skip
    rows = []
    for row in answer.points:
        first = [*(getattr(row, name) for name in settings), mark(row.hardware, row.is_projection), str(row.batch)]
        if row.status != "ok":
            rows.append([*first, "unsupported", *[""] * (len(headings) - len(first) - 1)])
            continue
        rows.append(
            [
                *first,
                _in("s", row.latency_s),
                _in("1/s", row.throughput_per_s),
                show(row.speedup_ratio, "speedup_ratio"),
                _share(row.batch_efficiency_ratio),
                _in("J", row.energy_per_inference_j),
                _in("W", row.average_power_w),
                _in("", row.inferences_per_j),
                show(row.is_in_zone, "is_in_zone"),
                _share(row.compute_utilization_fraction),
                _share(row.bandwidth_utilization_fraction),
                _in("B", row.peak_memory_bytes),
            ]
        )
    return draw_table(headings, rows, is_markdown=is_markdown)


def draw_winners(answer: SweepAnswer, is_markdown: bool) -> str:
    """Return a row per metric and batch: the best hardware."""
    settings, projected = list_settings(answer), list_projected(answer)
    headings = (*settings, "least", "batch", "hardware", "value", "against the next", "of", "new")
    rows = [
        [
            *(getattr(row, name) for name in settings),
            row.metric,
            str(row.batch),
            mark(row.winner, row.winner in projected),
            show_quantity(row.value, row.unit),
            ""
            if row.runner_up is None
            else f"{row.advantage_ratio:.3g}x better than {mark(row.runner_up, row.runner_up in projected)}",
            str(row.candidate_count),
            show(row.is_change, "is_change"),
        ]
        for row in answer.winners
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)


def draw_crossings(answer: SweepAnswer, is_markdown: bool) -> str:
    """Return a row per pair whose order turns round, and batch."""
    settings, projected = list_settings(answer), list_projected(answer)
    headings = (
        *settings,
        "least",
        "from batch",
        "overtaker",
        "value",
        "overtaken",
        "value",
        "before, at batch",
        "",
        "",
    )
    rows = [
        [
            *(getattr(row, name) for name in settings),
            row.metric,
            str(row.batch),
            mark(row.overtaker, row.overtaker in projected),
            show_quantity(row.overtaker_value, row.unit),
            mark(row.overtaken, row.overtaken in projected),
            show_quantity(row.overtaken_value, row.unit),
            str(row.previous_batch),
            show_quantity(row.previous_overtaker_value, row.unit),
            show_quantity(row.previous_overtaken_value, row.unit),
        ]
        for row in answer.crossings
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)
