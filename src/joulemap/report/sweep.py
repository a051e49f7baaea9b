"""A sweep over batches: the best batch of each hardware, and where the best hardware changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.present.cell import PROJECTION_NOTE, show_quantity
from joulemap.query.sweep import SweepAnswer
from joulemap.report.format import Format
from joulemap.report.level import SweepLevel
from joulemap.report.note import repeat_settings, write_steps
from joulemap.report.render import write_csv, write_json
from joulemap.report.sweep_table import (
    draw_crossings,
    draw_points,
    draw_series,
    draw_winners,
    list_distinct,
    list_projected,
    list_settings,
    mark,
)

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
    "energy_per_inference": "energy per inference",
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
        SweepLevel.HARDWARE: draw_series,
        SweepLevel.BATCH: draw_points,
        SweepLevel.WINNER: draw_winners,
        SweepLevel.CROSSING: draw_crossings,
    }[level]
    heading = {
        SweepLevel.HARDWARE: "Best batch of each hardware",
        SweepLevel.BATCH: "Every batch",
        SweepLevel.WINNER: "Best hardware at each batch",
        SweepLevel.CROSSING: "Whose order turns round",
    }[level]
    sections = [
        (heading, table(answer, is_markdown)),
        ("Where the best hardware changes", "\n".join(f"- {line}" for line in _cut(changes(answer)))),
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
    models = list_distinct(answer, "model")
    settings = f"{', '.join(list_distinct(answer, 'precision'))}, {', '.join(list_distinct(answer, 'runtime'))}"
    named = ", ".join(models) if len(models) <= 4 else f"{len(models)} models"
    tally = answer.tally
    done = f"{tally.evaluated_count + tally.refused_count} evaluated now, {tally.stored_count} stored before"
    return f"{named}, {span}, {hardware} hardware, {settings}: {tally.run_count} runs, {done}"


def _group(row: SweepSeries | SweepWinner | SweepCrossing, settings: Sequence[str]) -> str:
    """Return what a sentence begins with where there are several models, precisions or runtimes."""
    text = ", ".join(getattr(row, name) for name in settings)
    return f"{text}: " if text else ""


def changes(answer: SweepAnswer) -> list[str]:
    """Return for each metric who is best at the smallest batch, and who takes over from which batch on."""
    projected, settings = list_projected(answer), list_settings(answer)
    groups: dict[tuple[str, str, str, str], list[SweepWinner]] = {}
    for row in answer.winners:
        groups.setdefault((row.model, row.precision, row.runtime, row.metric), []).append(row)
    lines = []
    for rows in groups.values():
        first, *later = rows
        if all(row.candidate_count == 1 for row in rows):
            continue
        text = f"{_group(first, settings)}{METRICS[first.metric]}: {mark(first.winner, first.winner in projected)}"
        moves = [row for row in later if row.is_change]
        text += f" is best from batch {first.batch}" if moves else " is best at every batch" if later else " is best"
        for row in moves:
            name = mark(row.winner, row.winner in projected)
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
    projected, settings = list_projected(answer), list_settings(answer)
    return [
        f"{_group(row, settings)}{METRICS[row.metric]}: {mark(row.overtaker, row.overtaker in projected)} overtakes "
        f"{mark(row.overtaken, row.overtaken in projected)} from batch {row.batch} "
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
    projected, settings = list_projected(answer), list_settings(answer)
    lines = _cut([f"unsupported: {mark(reason, reason.split()[0] in projected)}" for reason in lines])
    if answer.max_latency_s:
        budget = show_quantity(answer.max_latency_s, "s")
        lines += [
            f"{_group(row, settings)}{mark(row.hardware, row.is_projection)} keeps {budget} at no batch: its least "
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
    steps = [["sweep", *list_distinct(answer, "model"), "--level", deeper.value, *asked, *options]]
    answered = [row for row in answer.series if row.throughput_batch is not None]
    if answered:
        best = answered[0]
        plain, at, mode = best.hardware.partition("@")
        hardware = answer.spelling.get(best.hardware) or f"{answer.spelling.get(plain, plain)}{at}{mode}"
        settings = ["--batch", str(best.throughput_batch), *repeat_settings(best.precision, best.runtime), *options]
        steps += [[command, best.model, hardware, *settings] for command in ("utilization", "edp")]
    return write_steps(steps)
