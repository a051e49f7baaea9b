"""A comparison: recommendations, table, insights, next steps."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.answer.comparison import Comparison, Insight, Recommendation
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, show, show_quantity
from joulemap.present.format import Format
from joulemap.present.render import draw_table, write_csv, write_json
from joulemap.query.answer import CompareAnswer
from joulemap.report.note import (
    describe_calibrations,
    describe_caveats,
    describe_recalled,
    repeat_place,
    repeat_settings,
    write_steps,
)

GOALS = {
    "energy": "lowest energy",
    "latency": "lowest latency",
    "throughput": "highest throughput",
    "memory": "least memory",
    "edp": "best balance (energy x delay)",
}

HEADINGS = ("hardware", "energy", "latency", "throughput", "memory", "utilization", "units", "power", "assumed")

SHOWN_INSIGHTS = 6
"""Pairs that people see; programs get all."""

TIE_RATIO = 1.0005
"""Runs closer than this look alike at the digits shown."""


def render_comparison(answer: CompareAnswer, form: Format, options: Sequence[str] = (), metric: str = "energy") -> str:
    """Return the whole comparison, or for csv its table; `options` are what a follow-up command must repeat.

    `metric` is what those commands go into.
    """
    if form is Format.JSON:
        return write_json(
            {
                "model": answer.model,
                "batch": answer.batch,
                "precision": answer.precision,
                "runtime": answer.runtime,
                "run_ids": answer.run_ids,
                "recommendations": [attrs.asdict(row) for row in answer.recommendations],
                "rows": [attrs.asdict(row) for row in answer.rows],
                "insights": [attrs.asdict(row) for row in answer.insights],
                "caveats": [attrs.asdict(row) for row in answer.caveats],
                "calibrations": [attrs.asdict(row) for row in answer.calibrations],
                "next_steps": next_steps(answer, options, metric),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(Comparison)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    title = f"{answer.model}, batch {answer.batch}, {answer.precision}, {answer.runtime}"
    answered = sum(row.status == "ok" for row in answer.rows)
    steps = next_steps(answer, options, metric)
    sections = [
        ("Recommendations", _recommendations(answer, answered, is_markdown)),
        ("Comparison (per batch)", _table(answer, is_markdown)),
        ("Key insights", "\n".join(f"- {line}" for line in insights(answer))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]  # fmt: skip
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _mark(hardware: str, is_projection: bool) -> str:
    return f"{PROJECTED}{hardware}" if is_projection else hardware


def _recommendations(answer: CompareAnswer, answered: int, is_markdown: bool) -> str:
    headings = ["goal", "hardware", "value", "against the next"]
    projected = _projected(answer)
    rows = [list(_recommendation(row, answered, projected)) for row in answer.recommendations]
    if any(row.is_projection and row.published_hardware for row in answer.recommendations):
        headings.append("best published")
        for cells, row in zip(rows, answer.recommendations, strict=True):
            cells.append(_published(row))
    return draw_table(headings, rows, is_markdown=is_markdown)


def _published(row: Recommendation) -> str:
    """Return the best run that is no projection, where the winner is one."""
    if row.published_hardware is None or row.published_value is None:
        return ""
    if not row.is_projection or row.tied_count > 1:
        return ""
    return f"{row.published_hardware} {show_quantity(row.published_value, row.unit)}"


def _projected(answer: CompareAnswer) -> frozenset[str]:
    return frozenset(row.hardware for row in answer.rows if row.is_projection)


def _recommendation(row: Recommendation, count: int, projected: frozenset[str]) -> tuple[str, str, str, str]:
    against = ""
    hardware = _mark(row.hardware, row.is_projection)
    if row.advantage_ratio is not None and row.runner_up is not None:
        if row.tied_count > 1:
            hardware = (
                f"all {row.tied_count} alike"
                if row.tied_count == count
                else f"{hardware} and {row.tied_count - 1} more"
            )
        elif row.advantage_ratio < TIE_RATIO:
            against = f"same as {_mark(row.runner_up, row.runner_up in projected)} to three digits"
        else:
            runner_up = _mark(row.runner_up, row.runner_up in projected)
            against = f"{row.advantage_ratio:.3g}x better than {runner_up}"
    return GOALS[row.goal], hardware, show_quantity(row.value, row.unit), against


def _table(answer: CompareAnswer, is_markdown: bool) -> str:
    baseline = next((row.baseline_hardware for row in answer.rows if row.baseline_hardware), "")
    baseline = _mark(baseline, baseline in _projected(answer))
    headings = (*HEADINGS, f"energy / {baseline}", f"latency / {baseline}")
    return draw_table(headings, [_cells(row) for row in answer.rows], is_markdown=is_markdown)


def _cells(row: Comparison) -> list[str]:
    hardware = _mark(row.hardware, row.is_projection)
    if row.status != "ok":
        return [hardware, "unsupported", *[""] * 9]
    return [
        hardware,
        show(row.energy_j, "energy_j", "J"),
        show(row.latency_s, "latency_s", "s"),
        show(row.throughput_per_s, "throughput_per_s", "1/s"),
        show(row.peak_memory_bytes, "peak_memory_bytes", "B"),
        show(row.compute_utilization_fraction, "compute_utilization_fraction"),
        f"{row.units_used_count}/{row.units_total_count} {row.unit_name}s",
        show(row.average_power_w, "average_power_w", "W"),
        show(row.assumed_energy_fraction, "assumed_energy_fraction"),
        show(row.energy_ratio, "energy_ratio"),
        show(row.latency_ratio, "latency_ratio"),
    ]


def insights(answer: CompareAnswer) -> list[str]:
    """Return sentences computed from the insight rows, and what a reader must know about the table."""
    projected = {row.hardware: row.is_projection for row in answer.rows}
    apart = [row for row in answer.insights if row.energy_ratio >= TIE_RATIO]
    lines = [_sentence(row, projected) for row in apart[:SHOWN_INSIGHTS]]
    if len(apart) > SHOWN_INSIGHTS:
        lines.append(f"{len(apart) - SHOWN_INSIGHTS} more pairs with smaller gaps; --format json has all")
    lines += [f"unsupported: {_mark(row.reason, row.is_projection)}" for row in answer.rows if row.status != "ok"]
    lines += [
        f"{_mark(row.hardware, row.is_projection)} runs at {row.clock_fraction * 100:.0f} % of its clock to stay "
        "within its power cap"
        for row in answer.rows
        if row.clock_fraction is not None and row.clock_fraction < 1.0
    ]
    if any(row.is_projection and row.status == "ok" for row in answer.rows):
        lines.append(PROJECTION_NOTE)
    if any(row.assumed_energy_fraction for row in answer.rows):
        lines.append("assumed: the part of the energy whose price per action is an assumption")
    lines += [
        line
        for row in answer.rows
        for line in describe_recalled(row.recalled_energy_fraction, _mark(row.hardware, row.is_projection))
    ]
    return lines + describe_calibrations(answer.calibrations) + describe_caveats(answer.caveats)


def _sentence(row: Insight, projected: dict[str, bool]) -> str:
    best = _mark(row.best_hardware, projected[row.best_hardware])
    other = _mark(row.other_hardware, projected[row.other_hardware])
    share = row.part_share_fraction
    text = f"{best} uses {row.energy_ratio:.3g}x less energy than {other}"
    if share is not None:
        if share > 1.0:
            more = show_quantity(row.part_difference_j, "J")
            text += f"; {row.part} energy alone differs by {more}, other parts offset it"
        elif share > 0.5:
            text += f"; most of the difference ({share * 100:.0f} %) is {row.part} energy"
        else:
            text += f"; the largest part of the difference ({share * 100:.0f} %) is {row.part} energy"
    if row.latency_ratio >= TIE_RATIO:
        text += f", and it is {row.latency_ratio:.3g}x faster"
    elif row.latency_ratio <= 1.0 / TIE_RATIO:
        text += f", though {other} is {1.0 / row.latency_ratio:.3g}x faster"
    return f"{text} ({show_quantity(row.best_power_w, 'W')} against {show_quantity(row.other_power_w, 'W')})"


def next_steps(answer: CompareAnswer, options: Sequence[str] = (), metric: str = "energy") -> list[str]:
    """Return commands that go deeper into this comparison, ready to paste into a shell."""
    answered = [row for row in answer.rows if row.status == "ok"]
    settings = repeat_settings(answer.precision, answer.runtime)
    given = list(options)
    place = repeat_place(given)
    steps: list[list[str]] = []
    if len(answered) > 1:
        pair = [answer.spelling.get(row.hardware, row.hardware) for row in (answered[-1], answered[0])]
        steps.append(["explain", answer.model, *pair, *settings, *given, "--metric", metric])
    steps.append(["query", "run", "edp.distribution", "-p", f"run_id={answered[0].run_id}", *place])
    if len(answered) > 1:
        ids = ",".join(str(row.run_id) for row in answered)
        which = ["-p", f"run_ids={ids}", "-p", f"metric={metric}"]
        name = "compare.part" if metric == "memory" else "compare.winner"
        steps.append(["query", "run", name, *which, *place])
    return write_steps(steps)
