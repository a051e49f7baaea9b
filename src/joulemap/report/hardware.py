"""Hardware: the list, one with all its numbers, and the check of a file."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.answer.hardware import FileCheck
from joulemap.present.cell import PROJECTED, show, show_quantity
from joulemap.present.format import Format
from joulemap.present.render import draw_table, render_answer, write_csv, write_json
from joulemap.query.answer import HardwareAnswer
from joulemap.report.note import describe_calibrations
from joulemap.store.query import Answer

PREFIXED = ("Hz", "B/s", "ops/s", "W", "s", "T/s")
"""Units that people read with a prefix; bytes too, from a thousand on."""

KILO = 1000.0

WIDTHS = (None, None, None, 64, 48)
"""Where the columns of the numbers wrap."""

FACTS = ("quantity", "value", "basis", "source", "note")
RIDGE = ("precision", "peak_ops_per_s", "units_count", "operations_per_clock", "clock_hz", "ridge_ops_per_byte",
         "peak_ops_per_j", "basis", "explanation")  # fmt: skip


def render_hardware(answer: HardwareAnswer, form: Format) -> str:
    """Return everything of one hardware; csv holds its numbers."""
    if form is Format.CSV:
        return render_answer(answer.fact, form)
    (summary,) = answer.summary.records()
    if form is Format.JSON:
        return write_json(
            {
                **summary,
                "ridge": answer.ridge.records(),
                "facts": answer.fact.records(),
                "calibrations": [attrs.asdict(row) for row in answer.calibrations],
            }
        )
    mark = PROJECTED if summary["projection"] else ""
    lines = [
        f"{mark}{summary['hardware']}: {summary['name']} ({summary['vendor']}, {summary['microarchitecture']})",
        f"architecture {summary['architecture']}, {summary['units_total_count']} {summary['unit_name']}"
        f"{'' if summary['units_total_count'] == 1 else 's'}, "
        f"{summary['memory_type']}; for {', '.join(summary['deployment']) or 'no deployment in particular'}",
    ]
    if summary["aliases"]:
        lines.append(f"also called {', '.join(summary['aliases'])}")
    if summary["power_modes"]:
        modes = ", ".join(f"{summary['hardware']}@{mode}" for mode in summary["power_modes"])
        lines.append(f"power modes: {modes}")
    if summary["projection"]:
        lines.append(f"{PROJECTED} key numbers are projections or estimates: {summary['projection']}")
    lines += [
        f"{basis}: {summary[f'{basis}_fact_count']} of {summary['fact_count']} numbers, "
        f"{summary[f'{basis}_action_count']} of {summary['action_count']} energies per action"
        for basis in ("recalled", "assumed")
    ]
    lines += describe_calibrations(answer.calibrations) or ["not calibrated: coefficients are those of the class"]
    parts = [
        "\n".join(lines),
        "Roofline\n" + render_answer(answer.ridge, form, RIDGE),
        "Numbers\n" + _facts(answer.fact, form is Format.MARKDOWN),
    ]
    if summary["doubts"]:
        parts.append("Doubts\n" + "\n".join(f"- {doubt}" for doubt in summary["doubts"]))
    return "\n\n".join(parts)


def _facts(answer: Answer, is_markdown: bool) -> str:
    rows = [
        [row["quantity"], _amount(row["value"], row["unit"]), row["basis"], row["source"], row["note"]]
        for row in answer.records()
    ]
    return draw_table(FACTS, rows, is_markdown=is_markdown, widths=WIDTHS)


def _amount(value: float, unit: str) -> str:
    """Return a number of the catalogue for people."""
    if unit in PREFIXED or (unit == "B" and value >= KILO):
        return show_quantity(value, unit)
    return f"{value:.6g}" if unit in ("1", "year") else f"{value:.6g} {unit}"


def render_checks(checks: Sequence[FileCheck], form: Format) -> str:
    """Return what the check of hardware files found; csv holds the trials."""
    if form is Format.JSON:
        return write_json([attrs.asdict(check) for check in checks])
    if form is Format.CSV:
        names = ("hardware", "power_mode", "precision", "model", "runtime", "latency_s", "energy_j", "clock_fraction",
                 "reason")  # fmt: skip
        rows = [[check.hardware, *attrs.astuple(trial)] for check in checks for trial in check.trials]
        return write_csv(names, rows)
    return "\n\n".join(_check(check, form is Format.MARKDOWN) for check in checks)


def _check(check: FileCheck, is_markdown: bool) -> str:
    parts = [f"ok: {check.file} describes {check.hardware} ({check.architecture})"]
    if check.defaults:
        rules = [(one.quantity, show(one.value, "value"), one.unit, one.source) for one in check.defaults]
        parts.append(draw_table(("left out, so assumed", "value", "unit", "rule"), rules, is_markdown=is_markdown))
    shown = [trial for trial in check.trials if trial.runtime == "fused"]
    cells = [
        (
            trial.power_mode,
            trial.precision,
            trial.model,
            "" if trial.latency_s is None else show_quantity(trial.latency_s, "s"),
            "" if trial.energy_j is None else show_quantity(trial.energy_j, "J"),
            "" if trial.clock_fraction is None else f"{trial.clock_fraction * 100:.0f} %",
            trial.reason,
        )
        for trial in shown
    ]
    headings = ("power mode", "precision", "model", "latency", "energy", "clock", "unsupported")
    parts.append(draw_table(headings, cells, is_markdown=is_markdown))
    return "\n\n".join(parts)


SANITY = ("hardware", "model", "precision", "status", "average_power_w", "tdp_w", "power_ratio", "uncapped_ratio",
          "compute_utilization_fraction", "bandwidth_utilization_fraction", "measured_power_w", "measured_ratio",
          "reason")  # fmt: skip


def render_sanity(answer: Answer, form: Format) -> str:
    """Return the probes; people also see how many are as they should be."""
    text = render_answer(answer, form, SANITY)
    if form in (Format.JSON, Format.CSV):
        return text
    status = [row["status"] for row in answer.records()]
    counts = ", ".join(f"{status.count(name)} {name}" for name in ("ok", "low", "high", "unsupported"))
    return f"{text}\n\n{len(status)} probes: {counts}"
