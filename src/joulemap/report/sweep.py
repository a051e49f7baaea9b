"""A sweep over batches: the best batch of each hardware, and where the best hardware changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.query.sweep import SweepAnswer
from joulemap.report.cell import PROJECTED, PROJECTION_NOTE, show, show_quantity
from joulemap.report.format import Format
from joulemap.report.level import SweepLevel
from joulemap.report.note import repeat_settings, write_steps
from joulemap.report.render import draw_table, write_csv, write_json

LISTS: Final[Mapping[SweepLevel, str]] = {
    SweepLevel.HARDWARE: "series",
    SweepLevel.BATCH: "points",
    SweepLevel.WINNER: "winners",
    SweepLevel.CROSSING: "crossings",
}
"""What the rows of a level are called in the answer and in json."""

RECORDS: Final[Mapping[SweepLevel, type]] = {
    SweepLevel.HARDWARE: SweepSeries,
    SweepLevel.BATCH: SweepPoint,
    SweepLevel.WINNER: SweepWinner,
    SweepLevel.CROSSING: SweepCrossing,
}

METRICS: Final = {
    "energy": "energy per inference",
    "latency": "latency and throughput",
    "edp": "energy x delay",
}

SHOWN_SENTENCES: Final = 12
"""Pairs that overtake each other, and refusals, that people see; programs get all."""


def render_sweep(
    answer: SweepAnswer, form: Format, level: SweepLevel, asked: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Return the whole answer with the table of one level; json holds every level, csv that table alone.

    `asked` is what the same sweep must repeat besides `options`, which every follow-up command must.
    """
    if form is Format.JSON:
        return write_json(
            {
                "tally": attrs.asdict(answer.tally),
                "run_ids": answer.run_ids,
                "max_latency_s": answer.max_latency_s or None,
                **{LISTS[one]: [attrs.asdict(row) for row in _rows(answer, one)] for one in SweepLevel},
                "changes": changes(answer),
                "overtakings": overtakings(answer),
                "notes": notes(answer),
                "next_steps": next_steps(answer, level, asked, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RECORDS[level])]
        return write_csv(names, [[getattr(row, name) for name in names] for row in _rows(answer, level)])
    is_markdown = form is Format.MARKDOWN
    steps = next_steps(answer, level, asked, options)
    table = {
        SweepLevel.HARDWARE: _series,
        SweepLevel.BATCH: _points,
        SweepLevel.WINNER: _winners,
        SweepLevel.CROSSING: _crossings,
    }[level]
    heading = {
        SweepLevel.HARDWARE: "Best batch of each hardware",
        SweepLevel.BATCH: "Every batch",
        SweepLevel.WINNER: "Best hardware at each batch",
        SweepLevel.CROSSING: "Whose order turns round",
    }[level]
    sections = [
        (heading, table(answer, is_markdown)),
        ("Where the best hardware changes", "\n".join(f"- {line}" for line in changes(answer))),
        ("Who overtakes whom besides", "\n".join(f"- {line}" for line in _cut(overtakings(answer)))),
        ("Notes", "\n".join(f"- {line}" for line in notes(answer))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    title = _title(answer)
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _rows(answer: SweepAnswer, level: SweepLevel) -> Sequence[Any]:
    rows: Sequence[Any] = getattr(answer, LISTS[level])
    return rows


def _title(answer: SweepAnswer) -> str:
    batches = sorted({row.batch for row in answer.points})
    span = f"batch {batches[0]}" if len(batches) == 1 else f"{len(batches)} batches from {batches[0]} to {batches[-1]}"
    hardware = len({row.hardware for row in answer.points})
    models = _distinct(answer, "model")
    settings = f"{', '.join(_distinct(answer, 'precision'))}, {', '.join(_distinct(answer, 'runtime'))}"
    named = ", ".join(models) if len(models) <= 4 else f"{len(models)} models"
    tally = answer.tally
    done = f"{tally.evaluated_count + tally.refused_count} evaluated now, {tally.stored_count} stored before"
    return f"{named}, {span}, {hardware} hardware, {settings}: {tally.run_count} runs, {done}"


def _distinct(answer: SweepAnswer, name: str) -> list[str]:
    return list(dict.fromkeys(getattr(row, name) for row in answer.points))


def _mark(hardware: str, is_projection: bool) -> str:
    return f"{PROJECTED}{hardware}" if is_projection else hardware


def _projected(answer: SweepAnswer) -> frozenset[str]:
    return frozenset(row.hardware for row in answer.series if row.is_projection)


def _settings(answer: SweepAnswer) -> tuple[str, ...]:
    """Return which of model, precision and runtime differ between rows, so that tables must show them."""
    return tuple(name for name in ("model", "precision", "runtime") if len(_distinct(answer, name)) > 1)


def _in(unit: str, value: float | None) -> str:
    return "" if value is None else show_quantity(value, unit)


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _series(answer: SweepAnswer, is_markdown: bool) -> str:
    settings = _settings(answer)
    within = (f"within {show_quantity(answer.max_latency_s, 's')}: batch", "throughput") if answer.max_latency_s else ()
    headings = (
        *settings, "hardware", "least latency: batch", "latency", *within, "highest throughput: batch", "throughput",
        "latency", "least energy: batch", "per inference", "efficient zone", "at", "largest", "batch efficiency",
    )  # fmt: skip
    rows = []
    for row in answer.series:
        first = [*(getattr(row, name) for name in settings), _mark(row.hardware, row.is_projection)]
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


def _points(answer: SweepAnswer, is_markdown: bool) -> str:
    settings = _settings(answer)
    headings = (
        *settings, "hardware", "batch", "latency", "throughput", "over batch 1", "batch efficiency",
        "energy per inference", "power", "inferences per joule", "efficient zone", "of peak", "bandwidth", "memory",
    )  # fmt: skip
    rows = []
    for row in answer.points:
        first = [*(getattr(row, name) for name in settings), _mark(row.hardware, row.is_projection), str(row.batch)]
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


def _winners(answer: SweepAnswer, is_markdown: bool) -> str:
    settings, projected = _settings(answer), _projected(answer)
    headings = (*settings, "least", "batch", "hardware", "value", "against the next", "of", "new")
    rows = [
        [
            *(getattr(row, name) for name in settings),
            row.metric,
            str(row.batch),
            _mark(row.winner, row.winner in projected),
            show_quantity(row.value, row.unit),
            ""
            if row.runner_up is None
            else f"{row.advantage_ratio:.3g}x better than {_mark(row.runner_up, row.runner_up in projected)}",
            str(row.candidate_count),
            show(row.is_change, "is_change"),
        ]
        for row in answer.winners
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)


def _crossings(answer: SweepAnswer, is_markdown: bool) -> str:
    settings, projected = _settings(answer), _projected(answer)
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
            _mark(row.overtaker, row.overtaker in projected),
            show_quantity(row.overtaker_value, row.unit),
            _mark(row.overtaken, row.overtaken in projected),
            show_quantity(row.overtaken_value, row.unit),
            str(row.previous_batch),
            show_quantity(row.previous_overtaker_value, row.unit),
            show_quantity(row.previous_overtaken_value, row.unit),
        ]
        for row in answer.crossings
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)


def _group(row: SweepSeries | SweepWinner | SweepCrossing, answer: SweepAnswer) -> str:
    """Return what a sentence begins with where there are several models, precisions or runtimes."""
    text = ", ".join(getattr(row, name) for name in _settings(answer))
    return f"{text}: " if text else ""


def changes(answer: SweepAnswer) -> list[str]:
    """Return for each metric who is best at the smallest batch, and who takes over from which batch on."""
    projected = _projected(answer)
    groups: dict[tuple[str, str, str, str], list[SweepWinner]] = {}
    for row in answer.winners:
        groups.setdefault((row.model, row.precision, row.runtime, row.metric), []).append(row)
    lines = []
    for rows in groups.values():
        first, *later = rows
        if all(row.candidate_count == 1 for row in rows):
            continue
        text = f"{_group(first, answer)}{METRICS[first.metric]}: {_mark(first.winner, first.winner in projected)}"
        moves = [row for row in later if row.is_change]
        text += f" is best from batch {first.batch}" if moves else " is best at every batch" if later else " is best"
        for row in moves:
            name = _mark(row.winner, row.winner in projected)
            text += f"; {name} overtakes it from batch {row.batch}" if row.is_overtaking else (
                f"; it cannot run batch {row.batch}, from which {name} is best")  # fmt: skip
        lines.append(text)
    return lines


def overtakings(answer: SweepAnswer) -> list[str]:
    """Return who overtakes whom from which batch on, but for the changes of the best."""
    known = {
        (row.model, row.precision, row.runtime, row.metric, row.batch, row.winner, row.previous_winner)
        for row in answer.winners
        if row.is_overtaking
    }
    projected = _projected(answer)
    return [
        f"{_group(row, answer)}{METRICS[row.metric]}: {_mark(row.overtaker, row.overtaker in projected)} overtakes "
        f"{_mark(row.overtaken, row.overtaken in projected)} from batch {row.batch} "
        f"({show_quantity(row.overtaker_value, row.unit)} against {show_quantity(row.overtaken_value, row.unit)})"
        for row in answer.crossings
        if (row.model, row.precision, row.runtime, row.metric, row.batch, row.overtaker, row.overtaken) not in known
    ]


def _cut(lines: list[str]) -> list[str]:
    rest = len(lines) - SHOWN_SENTENCES
    return [*lines[:SHOWN_SENTENCES], *([f"{rest} more; --format json has all"] if rest > 0 else [])]


def notes(answer: SweepAnswer) -> list[str]:
    """Return what a reader must know of these rows."""
    lines = list(dict.fromkeys(row.reason for row in answer.series if row.reason))
    projected = _projected(answer)
    lines = _cut([f"unsupported: {_mark(reason, reason.split()[0] in projected)}" for reason in lines])
    if answer.max_latency_s:
        budget = show_quantity(answer.max_latency_s, "s")
        lines += [
            f"{_group(row, answer)}{_mark(row.hardware, row.is_projection)} keeps {budget} at no batch: its least "
            f"latency is {show_quantity(row.least_latency_s, 's')}, at batch {row.least_latency_batch}"
            for row in answer.series
            if row.budget_batch is None and row.least_latency_s is not None
        ]
    if any(row.largest_batch_efficiency_ratio is None and row.batch_count for row in answer.series):
        lines.append("batch efficiency needs a run at batch 1")
    if projected:
        lines.append(PROJECTION_NOTE)
    return lines


def next_steps(
    answer: SweepAnswer, level: SweepLevel, asked: Sequence[str] = (), options: Sequence[str] = ()
) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    levels = list(SweepLevel)
    deeper = levels[(levels.index(level) + 1) % len(levels)]
    steps = [["sweep", *_distinct(answer, "model"), "--level", deeper.value, *asked, *options]]
    answered = [row for row in answer.series if row.throughput_batch is not None]
    if answered:
        best = answered[0]
        plain, at, mode = best.hardware.partition("@")
        hardware = answer.spelling.get(best.hardware) or f"{answer.spelling.get(plain, plain)}{at}{mode}"
        settings = ["--batch", str(best.throughput_batch), *repeat_settings(best.precision, best.runtime), *options]
        steps += [[command, best.model, hardware, *settings] for command in ("utilization", "edp")]
    return write_steps(steps)
