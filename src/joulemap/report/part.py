"""Subgraphs or operators side by side: who wins each, and what each hardware is good at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import attrs

from joulemap.domain.answer.level import PartFigure, Victory
from joulemap.present.cell import mark_projected, show_quantity
from joulemap.query.level import PartAnswer
from joulemap.report.asked import METRICS, assemble, describe, list_steps, notes, repeat, spell, title, write_lines
from joulemap.report.format import Format
from joulemap.report.note import write_steps
from joulemap.report.render import draw_table, write_csv, write_json


def render_parts(answer: PartAnswer, form: Format, limit: int, options: Sequence[str] = ()) -> str:
    """Return the comparison part by part; people see `limit` parts of each model, programs all."""
    steps = next_steps(answer, options)
    if form is Format.JSON:
        return write_json(
            {
                **describe(answer.asked),
                "level": answer.level,
                "metric": answer.metric,
                "rows": [attrs.asdict(row) for row in answer.rows],
                "victories": [attrs.asdict(row) for row in answer.victories],
                "summary": insights(answer),
                "next_steps": steps,
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(PartFigure)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    heading = f"{title(answer.asked)}: {METRICS[answer.metric]} of each {answer.level}"
    workloads = [list(rows) for _, rows in groupby(answer.rows, lambda row: row.workload_id)]
    tables = [
        (
            rows[0].model if len(workloads) > 1 else f"Each {answer.level} on each hardware",
            draw_parts(rows, answer.answers[0].projected, answer.level, limit, is_markdown),
        )
        for rows in workloads
    ]
    summary = write_lines(insights(answer))
    sections = [*tables, ("Summary", summary)]
    lines = notes(answer.asked, [text for _, text in sections])
    sections += [("Notes", write_lines(lines)), ("Next steps", list_steps(steps, is_markdown))]
    return assemble(heading, sections, is_markdown)


def draw_parts(rows: Sequence[PartFigure], projected: frozenset[str], level: str, limit: int, is_markdown: bool) -> str:
    """Return a row per part of one workload with a column per hardware, and who wins by how much."""
    hardware = list(dict.fromkeys(row.hardware for row in sorted(rows, key=lambda row: row.run_id)))
    parts = [{row.hardware: row for row in part} for _, part in groupby(rows, lambda row: row.part_index)]
    cells = []
    for part in parts[:limit]:
        one = next(iter(part.values()))
        values = [show_quantity(part[name].value, part[name].unit) if name in part else "" for name in hardware]
        cells.append([one.name, one.fusion_pattern if level == "subgraph" else one.kind, *values, *_verdict(part)])
    headings = [
        level,
        "pattern" if level == "subgraph" else "kind",
        *(mark_projected(name, projected) for name in hardware),
        "winner",
        "next",
    ]
    for row in cells:
        row[-2] = mark_projected(row[-2], projected)
    text = draw_table(headings, cells, is_markdown=is_markdown)
    rest = len(parts) - limit
    return f"{text}\n\n{rest} more; --limit {len(parts)} shows all" if rest > 0 else text


def _verdict(part: dict[str, PartFigure]) -> tuple[str, str]:
    """Return who wins a part, and how far the next one is behind."""
    ranked = sorted(part.values(), key=lambda row: row.rank)
    first = ranked[0]
    if first.tied_count > 1:
        return f"{first.tied_count} alike", ""
    ratio = ranked[1].ratio if len(ranked) > 1 else None
    return first.hardware, "" if ratio is None else f"{ratio:.3g}x"


def insights(answer: PartAnswer) -> list[str]:
    """Return a sentence for each hardware that wins a part, made of the kinds that it wins."""
    several = len({row.workload_id for row in answer.victories}) > 1
    lines = []
    for (_, hardware), group in groupby(answer.victories, lambda row: (row.workload_id, row.hardware)):
        kinds = list(group)
        one = kinds[0]
        name = mark_projected(hardware, answer.answers[1].projected)
        text = f"{one.model}: {name}" if several else name
        text += f": {one.hardware_won_count} of {one.all_part_count} {answer.level}s"
        text += "".join(f", {phrase}" for phrase in _phrases(kinds))
        if one.hardware_tied_count:
            text += f"; shares the least of {one.hardware_tied_count}"
        lines.append(text)
    return lines


def _phrases(kinds: Iterable[Victory]) -> list[str]:
    kinds = list(kinds)
    words = (("all", "wins every"), ("most", "dominates"), ("some", "wins some"))
    phrases = []
    for verdict, word in words:
        won = [f"{row.kind} ({row.won_count} of {row.part_count})" for row in kinds if row.verdict == verdict]
        if won:
            phrases.append(f"{word} {', '.join(won)}")
    return phrases


def next_steps(answer: PartAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    asked = answer.asked
    settings = repeat(asked, options)
    best, *others = list(dict.fromkeys(row.hardware for row in answer.victories))
    steps = []
    if others:
        pair = [spell(asked, others[-1]), spell(asked, best)]
        steps.append(["explain", asked.models[0], *pair, "--metric", answer.metric, *settings])
    if answer.level == "subgraph":
        steps.append(["analyze", asked.models[0], spell(asked, best), "--level", "subgraph", *settings])
    return write_steps(steps)
