"""Whole runs: figures in columns, and the tree of each run's energy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import attrs

from joulemap.domain.answer.level import EnergyBranch, RunDetail
from joulemap.present.cell import show, show_quantity
from joulemap.query.level import DetailAnswer
from joulemap.report.asked import assemble, describe, list_steps, mark, notes, repeat, spell, title, write_lines
from joulemap.report.format import Format
from joulemap.report.note import write_steps
from joulemap.report.render import draw_table, write_csv, write_json

PARTS = ("compute", "memory", "control", "static")


def render_details(answer: DetailAnswer, form: Format, options: Sequence[str] = ()) -> str:
    """Return whole runs; csv holds their figures, json the tree too."""
    steps = next_steps(answer, options)
    if form is Format.JSON:
        return write_json(
            {
                **describe(answer.asked),
                "rows": [attrs.asdict(row) for row in answer.rows],
                "tree": [attrs.asdict(row) for row in answer.tree],
                "next_steps": steps,
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RunDetail)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    answered = [row for row in answer.rows if row.status == "ok"]
    several = len(answer.asked.models) > 1
    headings = ["per batch", *(f"{row.model} on {_name(row)}" if several else _name(row) for row in answered)]
    figures = draw_table(headings, _figures(answered), is_markdown=is_markdown)
    trees = [
        (
            f"Energy of {row.model} on {_name(row)}",
            _tree([branch for branch in answer.tree if branch.run_id == row.run_id], row, is_markdown),
        )
        for row in answered
    ]
    sections = [("Figures", figures), *trees]
    sections += [
        ("Notes", write_lines(notes(answer.asked, [figures]))),
        ("Next steps", list_steps(steps, is_markdown)),
    ]
    return assemble(title(answer.asked), sections, is_markdown)


def _name(row: RunDetail) -> str:
    return mark(row.hardware, row.is_projection)


def _figures(rows: Sequence[RunDetail]) -> list[list[str]]:
    """Return a row of text per figure, with a column per run."""
    plain = [
        ("energy", "energy_j", "J"),
        ("energy per inference", "energy_per_inference_j", "J"),
        *((f"- {part}", f"{part}_energy_j", "J") for part in PARTS),
        ("latency", "latency_s", "s"),
        ("throughput", "throughput_per_s", "1/s"),
        ("average power", "average_power_w", "W"),
        ("energy x delay", "edp_js", "Js"),
        ("compute utilization", "compute_utilization_fraction", ""),
        ("bandwidth utilization", "bandwidth_utilization_fraction", ""),
        ("peak memory", "peak_memory_bytes", "B"),
        ("- activations", "activation_bytes", "B"),
        ("- weights", "weight_bytes", "B"),
        ("memory of the hardware", "memory_capacity_bytes", "B"),
    ]
    table = [[label, *(show(getattr(row, name), name, unit) for row in rows)] for label, name, unit in plain]
    units = ["units", *(f"{row.units_used_count}/{row.units_total_count} {row.unit_name}s" for row in rows)]
    table.insert([label for label, _, _ in plain].index("peak memory"), units)
    for bound in ("compute", "memory", "launch"):
        cells = [f"bound by {bound}"]
        for row in rows:
            share = show(getattr(row, f"{bound}_time_fraction"), "share_fraction")
            cells.append(f"{getattr(row, f'{bound}_bound_count')} subgraphs, {share} of the time")
        table.append(cells)
    return table


def _tree(branches: Sequence[EnergyBranch], row: RunDetail, is_markdown: bool) -> str:
    """Return categories with their actions below them, and that they add up."""
    indent = "&emsp;" if is_markdown else "  "
    cells = []
    for category, group in groupby(branches, lambda branch: branch.category):
        actions = list(group)
        one = actions[0]
        cells.append(
            [category, show_quantity(one.category_energy_j, "J"), show(one.category_fraction, "share_fraction"), ""]
        )
        cells += [
            [
                f"{indent}{branch.component}.{branch.action}",
                show_quantity(branch.energy_j, "J"),
                show(branch.share_fraction, "share_fraction"),
                branch.part,
            ]
            for branch in actions
        ]
    summed = sum(branch.energy_fj for branch in branches)
    word = "exact" if summed == row.energy_fj else "NOT EXACT"
    table = draw_table(("where", "energy", "share", "part"), cells, is_markdown=is_markdown, keeps_indent=True)
    return f"{table}\n\nactions sum to {summed:,} fJ ({word})"


def next_steps(answer: DetailAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    asked = answer.asked
    answered = [row for row in answer.rows if row.status == "ok" and row.model == answer.rows[0].model]
    settings = repeat(asked, options)
    first = [spell(asked, row.hardware) for row in answered]
    steps = [["analyze", asked.models[0], first[0], *settings]] if first else []
    if len(first) > 1:
        steps.append(["explain", asked.models[0], *first[:2], *settings])
    return write_steps(steps)
