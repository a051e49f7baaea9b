"""How much of each hardware a model uses: the table, what is unhealthy and why, who suits models of this size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.domain.answer.utilization import Pairing, Utilization, UtilizationFlag
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, show, show_quantity
from joulemap.query.utilization import UtilizationAnswer
from joulemap.report.format import Format
from joulemap.report.note import describe_caveats, repeat_settings, write_steps
from joulemap.report.render import draw_table, write_csv, write_json

HEADINGS: Final = (
    "hardware", "compute", "attained", "peak", "bandwidth", "of sustained", "intensity", "ridge", "roof",
    "of the roof", "units", "idle", "power", "TOPS/W", "time bound by compute", "memory", "launch", "flags",
)  # fmt: skip

PAIRINGS: Final = (
    "batch", "goal", "hardware", "wins", "of contests", "models", "hardware tried", "median", "against the next",
    "utilization", "second",
)  # fmt: skip

GOALS: Final = {"energy": "least energy", "latency": "least latency", "utilization": "most of its peak"}

SHOWN_FLAGS: Final = 12
"""Flags that people see; programs get all."""


def render_utilization(answer: UtilizationAnswer, form: Format, options: Sequence[str] = ()) -> str:
    """Return the whole answer, or for csv its table; `options` are what a follow-up command must repeat."""
    if form is Format.JSON:
        return write_json(
            {
                "model": answer.model,
                "batch": answer.batch,
                "precision": answer.precision,
                "runtime": answer.runtime,
                "rows": [attrs.asdict(row) for row in answer.rows],
                "flags": [attrs.asdict(row) for row in answer.flags],
                "pairings": [attrs.asdict(row) for row in answer.pairings],
                "caveats": [attrs.asdict(row) for row in answer.caveats],
                "reasons": [describe_flag(row, answer) for row in answer.flags],
                "notes": notes(answer),
                "next_steps": next_steps(answer, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(Utilization)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    title = f"{answer.model}, batch {answer.batch}, {answer.precision}, {answer.runtime}"
    steps = next_steps(answer, options)
    sections = [
        ("Utilization", draw_table(HEADINGS, [_cells(row) for row in answer.rows], is_markdown=is_markdown)),
        ("Flags", "\n".join(f"- {line}" for line in _flags(answer))),
        ("Which hardware suits models of this size", _pairings(answer, is_markdown)),
        ("Notes", "\n".join(f"- {line}" for line in notes(answer))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _mark(hardware: str, is_projection: bool) -> str:
    return f"{PROJECTED}{hardware}" if is_projection else hardware


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _in(unit: str, value: float | None) -> str:
    return "" if value is None else show_quantity(value, unit)


def _cells(row: Utilization) -> list[str]:
    hardware = _mark(row.hardware, row.is_projection)
    if row.status != "ok":
        return [hardware, "unsupported", *[""] * (len(HEADINGS) - 2)]
    return [
        hardware,
        _share(row.compute_utilization_fraction),
        _in("OPS", row.attained_ops_per_s),
        _in("OPS", row.peak_ops_per_s),
        _share(row.bandwidth_utilization_fraction),
        _share(row.sustained_bandwidth_fraction),
        _in("ops/B", row.dram_intensity_ops_per_byte),
        _in("ops/B", row.ridge_ops_per_byte),
        row.roof or "",
        _share(row.roofline_fraction),
        f"{row.units_used_count}/{row.units_total_count} {row.unit_name}s",
        _share(row.idle_units_fraction),
        _in("W", row.average_power_w),
        "" if row.ops_per_j is None else f"{row.ops_per_j / 1e12:.3g}",
        _share(row.compute_time_fraction),
        _share(row.memory_time_fraction),
        _share(row.launch_time_fraction),
        " ".join(row.flags),
    ]


def _flags(answer: UtilizationAnswer) -> list[str]:
    lines = [describe_flag(row, answer) for row in answer.flags[:SHOWN_FLAGS]]
    if len(answer.flags) > SHOWN_FLAGS:
        lines.append(f"{len(answer.flags) - SHOWN_FLAGS} more; --format json has all")
    return lines


def describe_flag(row: UtilizationFlag, answer: UtilizationAnswer) -> str:
    """Return the sentence of one flag: what is high or low, and where most of it comes from."""
    projected = {one.hardware for one in answer.rows if one.is_projection}
    value, limit = _share(row.value_fraction), _share(row.limit_fraction)
    what = {
        "low_compute": f"{value} of its peak, below {limit}",
        "high_bandwidth": f"{value} of the off-chip bandwidth that it sustains, above {limit}",
        "idle_units": f"{value} of its {row.unit_name}s idle, above {limit}",
    }[row.flag]
    most = f"{_share(row.bottleneck_fraction)} of the {row.cost} falls on {row.subgraph_count} of {row.total_count}"
    tiles = f"{show(int(row.tile_count), 'tile_count')} tiles on " if row.tile_count else ""
    used = f"{tiles}{row.units_used_count} of {row.units_total_count} {row.unit_name}s"
    return (
        f"{_mark(row.hardware, row.hardware in projected)}: {what}; {most} subgraphs, bound by {row.bottleneck}; the "
        f"largest part, {_share(row.subgraph_fraction)}, in {row.subgraph} ({used})"
    )


def _pairings(answer: UtilizationAnswer, is_markdown: bool) -> str:
    if not answer.pairings:
        return ""
    text = draw_table(PAIRINGS, [_pairing(row) for row in answer.pairings], is_markdown=is_markdown)
    least = answer.pairings[0].least_parameter_count
    size = f"{show_quantity(least, '')} to {show_quantity(10 * least, '')} parameters" if least else "no parameters"
    return (
        f"{text}\n\nover the stored runs of models with {size} at {answer.precision}, {answer.runtime}; a contest is "
        "one model at one batch on two or more hardware"
    )


def _pairing(row: Pairing) -> tuple[str, ...]:
    median = _share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)
    return (
        str(row.batch),
        GOALS[row.goal],
        _mark(row.hardware, row.is_projection),
        str(row.won_count),
        str(row.contest_count),
        str(row.model_count),
        str(row.hardware_count),
        median,
        "" if row.median_advantage_ratio is None else f"{row.median_advantage_ratio:.3g}x better",
        _share(row.median_utilization_fraction),
        "" if row.runner_up is None else f"{row.runner_up} ({row.runner_up_won_count})",
    )


def notes(answer: UtilizationAnswer) -> list[str]:
    """Return what a reader must know of these rows."""
    lines = [f"unsupported: {_mark(row.reason, row.is_projection)}" for row in answer.rows if row.status != "ok"]
    lines += [
        f"{_mark(row.hardware, row.is_projection)} runs at {_share(row.clock_fraction)} of its clock to stay within "
        "its power cap; the peak is that of the full clock"
        for row in answer.rows
        if row.clock_fraction is not None and row.clock_fraction < 1.0
    ]
    if any(row.is_projection for row in answer.rows) or any(row.is_projection for row in answer.pairings):
        lines.append(PROJECTION_NOTE)
    return lines + describe_caveats(answer.caveats)


def next_steps(answer: UtilizationAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    settings = [*repeat_settings(answer.precision, answer.runtime), *options]
    answered = [row for row in answer.rows if row.status == "ok"]
    worst = answered[-1].hardware
    plain, at, mode = worst.partition("@")
    hardware = answer.spelling.get(worst) or f"{answer.spelling.get(plain, plain)}{at}{mode}"
    steps = [["analyze", answer.model, hardware, "--level", "subgraph", *settings]]
    if not answer.pairings:
        steps.append(["utilization", answer.model, hardware, "--pairing", *settings])
    if "--batch" not in options:
        steps.append(["sweep", answer.model, "--hardware", hardware, *settings])
    return write_steps(steps)
