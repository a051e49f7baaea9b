"""A front: what no other configuration beats in two metrics, and who beats the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.domain.answer.choice import ParetoPoint
from joulemap.present.cell import PROJECTED, show
from joulemap.query.answer import ParetoAnswer
from joulemap.report.choice import (
    BASES_OF_USE,
    MEANING,
    count_configurations,
    count_more,
    describe_refused,
    describe_rows,
    draw_assumptions,
    join_sections,
    list_lines,
    mark,
    records,
    show_figure,
    write_analyze,
)
from joulemap.report.format import Format
from joulemap.report.render import draw_table, write_csv, write_json

FIGURES: Final = {
    "latency": ("latency_s", "s"),
    "energy_per_inference": ("energy_per_inference_j", "J"),
    "throughput": ("throughput_per_s", "1/s"),
    "power": ("average_power_w", "W"),
    "memory": ("peak_memory_bytes", "B"),
}
"""What is shown beside the two metrics, unless it is one of them."""


def render_front(answer: ParetoAnswer, form: Format, limit: int, options: Sequence[str] = ()) -> str:
    """Return the front and what it beats; csv has every configuration, people see `limit` rows of each table."""
    if form is Format.JSON:
        return write_json(
            {
                "model": answer.model,
                "x": answer.x,
                "x_meaning": MEANING[answer.x],
                "y": answer.y,
                "y_meaning": MEANING[answer.y],
                "rows": records(answer.points),
                "assumptions": records(answer.assumptions),
                "caveats": records(answer.caveats),
                "next_steps": next_steps(answer, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(ParetoPoint)]
        return write_csv(names, [[getattr(point, name) for name in names] for point in answer.points])
    is_markdown = form is Format.MARKDOWN
    by_status = {
        status: [point for point in answer.points if point.status == status]
        for status in ("front", "dominated", "unplaced")
    }
    front, dominated, unplaced = by_status.values()
    title = (
        f"{answer.model}: {MEANING[answer.x]} against {MEANING[answer.y]}, {count_configurations(len(answer.points))}"
    )
    bases = answer.assumptions if {answer.x, answer.y} & set(BASES_OF_USE) else ()
    steps = next_steps(answer, options)
    sections = [
        (f"Front ({len(front)})", _front(answer, front, limit, is_markdown)),
        (f"Dominated ({len(dominated):,})", _dominated(answer, dominated, limit, is_markdown)),
        ("Assumptions", draw_assumptions(bases, is_markdown) if bases else ""),
        ("Notes", list_lines(_notes(answer, unplaced))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    return join_sections(title, sections, is_markdown)


def _front(answer: ParetoAnswer, front: Sequence[ParetoPoint], limit: int, is_markdown: bool) -> str:
    if not front:
        return "empty: no configuration has both figures"
    beside = {name: figure for name, figure in FIGURES.items() if name not in (answer.x, answer.y)}
    rows = [
        [
            mark(point),
            point.precision,
            str(point.batch),
            show_figure(point.x_value, point.x_unit),
            show_figure(point.y_value, point.y_unit),
            *(show(getattr(point, field), field, unit) for field, unit in beside.values()),
        ]
        for point in front[:limit]
    ]
    headings = ("hardware", "precision", "batch", answer.x, answer.y, *beside)
    return draw_table(headings, rows, is_markdown=is_markdown) + count_more(len(front), limit)


def _dominated(answer: ParetoAnswer, dominated: Sequence[ParetoPoint], limit: int, is_markdown: bool) -> str:
    if not dominated:
        return ""
    projected = {point.run_id for point in answer.points if point.is_projection}
    rows = [
        [
            mark(point),
            point.precision,
            str(point.batch),
            show_figure(point.x_value, point.x_unit),
            show_figure(point.y_value, point.y_unit),
            f"{PROJECTED if point.dominated_by_run_id in projected else ''}{point.dominated_by}",
            show(point.x_ratio, "x_ratio"),
            show(point.y_ratio, "y_ratio"),
            str(point.dominator_count),
        ]
        for point in dominated[:limit]
    ]
    headings = (
        "hardware", "precision", "batch", answer.x, answer.y, "dominated by", f"better {answer.x}",
        f"better {answer.y}", "of the front",
    )  # fmt: skip
    return draw_table(headings, rows, is_markdown=is_markdown) + count_more(len(dominated), limit)


def _notes(answer: ParetoAnswer, unplaced: Sequence[ParetoPoint]) -> list[str]:
    lines = ["dominated: another configuration is at least as good in both and better in one"]
    lines += describe_rows(answer.points, answer.caveats)
    if unplaced:
        names = dict.fromkeys(mark(point).partition("@")[0] for point in unplaced)
        lines.append(f"{count_configurations(len(unplaced))} without a place, {unplaced[0].reason}: {', '.join(names)}")
    return lines + describe_refused((point.status, point.reason) for point in answer.points)


def next_steps(answer: ParetoAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return the commands that take both ends of the front apart."""
    front = [point for point in answer.points if point.status == "front"]
    ends = dict.fromkeys([*front[:1], *front[-1:]])
    return [write_analyze(answer.model, point, answer.spelling, options) for point in ends]
