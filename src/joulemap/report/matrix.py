"""Several models on several hardware."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import attrs

from joulemap.domain.answer.level import ModelFigure
from joulemap.present.cell import show, show_quantity
from joulemap.query.level import MatrixAnswer
from joulemap.report.asked import (
    METRICS,
    assemble,
    describe,
    list_steps,
    mark,
    notes,
    repeat,
    spell,
    title,
    write_lines,
)
from joulemap.report.format import Format
from joulemap.report.note import write_steps
from joulemap.report.render import draw_table, write_csv, write_json

FIGURES = (
    ("energy", "energy_j", "J"),
    ("latency", "latency_s", "s"),
    ("throughput", "throughput_per_s", "1/s"),
    ("power", "average_power_w", "W"),
    ("energy x delay", "edp_js", "Js"),
    ("memory", "peak_memory_bytes", "B"),
    ("utilization", "compute_utilization_fraction", ""),
    ("efficiency", "ops_per_j", "ops/J"),
)


def render_matrix(answer: MatrixAnswer, form: Format, options: Sequence[str] = ()) -> str:
    """Return models against hardware by the metric, then every figure; csv holds the rows."""
    steps = next_steps(answer, options)
    if form is Format.JSON:
        return write_json(
            {
                **describe(answer.asked),
                "metric": answer.metric,
                "rows": [attrs.asdict(row) for row in answer.rows],
                "insights": insights(answer),
                "next_steps": steps,
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(ModelFigure)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    sections = [
        (f"{METRICS[answer.metric].capitalize()} of each model on each hardware", _cross(answer, is_markdown)),
        ("Figures (per batch)", _figures(answer, is_markdown)),
        ("Key insights", write_lines(insights(answer))),
    ]
    lines = notes(answer.asked, [text for _, text in sections])
    sections += [("Notes", write_lines(lines)), ("Next steps", list_steps(steps, is_markdown))]
    return assemble(title(answer.asked), sections, is_markdown)


def _cross(answer: MatrixAnswer, is_markdown: bool) -> str:
    """Return a row per model and a column per hardware, with the best one."""
    hardware = {row.hardware: row for row in sorted(answer.rows, key=lambda row: row.run_id)}
    cells = []
    for _, group in groupby(answer.rows, lambda row: row.workload_id):
        rows = {row.hardware: row for row in group}
        values = [_value(rows[name]) if name in rows else "" for name in hardware]
        first = next(iter(rows.values()))
        best = "" if first.value is None else mark(first.hardware, first.is_projection)
        if first.tied_count > 1:
            best = f"{first.tied_count} alike"
        cells.append([first.model, *values, best])
    headings = ["model", *(mark(name, row.is_projection) for name, row in hardware.items()), "best"]
    if len(hardware) == 1:
        headings, cells = headings[:-1], [row[:-1] for row in cells]
    return draw_table(headings, cells, is_markdown=is_markdown)


def _value(row: ModelFigure) -> str:
    return "unsupported" if row.value is None else show_quantity(row.value, row.unit)


def _figures(answer: MatrixAnswer, is_markdown: bool) -> str:
    cells = [
        [
            row.model,
            mark(row.hardware, row.is_projection),
            *(
                ["unsupported", *[""] * (len(FIGURES) - 1)]
                if row.status != "ok"
                else [show(getattr(row, name), name, unit) for _, name, unit in FIGURES]
            ),
        ]
        for row in answer.rows
    ]
    return draw_table(("model", "hardware", *(label for label, _, _ in FIGURES)), cells, is_markdown=is_markdown)


def insights(answer: MatrixAnswer) -> list[str]:
    """Return who is best of how many models, and what separates the models on each hardware."""
    metric = METRICS[answer.metric]
    lines = []
    answered = [row for row in answer.rows if row.value is not None]
    hardware = {row.hardware: row for row in answered}
    if len(hardware) > 1:
        ranked = sorted(hardware.values(), key=lambda row: (-row.hardware_won_count, row.hardware))
        lines += [
            f"{mark(row.hardware, row.is_projection)} has the least {metric} for "
            f"{row.hardware_won_count} of {row.model_count} models"
            for row in ranked
            if row.hardware_won_count and all(one.tied_count == 1 for one in answered if one.hardware_rank == 1)
        ]
    if len({row.workload_id for row in answered}) > 1:
        for name, one in hardware.items():
            rows = sorted(
                (row for row in answered if row.hardware == name), key=lambda row: (row.model_rank or 0, row.model)
            )
            if len(rows) > 1 and rows[-1].model_ratio is not None and rows[-1].model_ratio > 1.0:
                lines.append(
                    f"on {mark(name, one.is_projection)}, {rows[0].model} has the least {metric}, "
                    f"{rows[-1].model} {rows[-1].model_ratio:.3g}x as much"
                )
    return lines


def next_steps(answer: MatrixAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    asked = answer.asked
    first = answer.rows[0]
    hardware = list(dict.fromkeys(spell(asked, row.hardware) for row in answer.rows if row.status == "ok"))
    settings = repeat(asked, options)
    again = ["--hardware", ",".join(hardware[:4]), "--metric", answer.metric, *settings]
    return write_steps(
        [
            ["compare", first.model, "--level", "subgraph", *again],
            ["compare", *asked.models, "--level", "detailed", "--hardware", hardware[0], *settings],
        ]
    )
