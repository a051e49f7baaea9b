"""One run taken apart: what it does and takes, what bounds it, and where its energy goes at one level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.answer.analysis import ActionShare, CategoryShare, OperatorShare, RunTotal, SubgraphShare
from joulemap.present.cell import PROJECTION_NOTE, mark_projected, show, show_quantity
from joulemap.present.format import Format
from joulemap.present.render import draw_table, write_csv, write_json
from joulemap.query.answer import AnalyzeAnswer
from joulemap.report.level import Level
from joulemap.report.note import (
    describe_calibrations,
    describe_caveats,
    describe_recalled,
    repeat_place,
    repeat_settings,
    write_steps,
)

RECORDS: Final[Mapping[Level, type]] = {
    Level.CATEGORY: CategoryShare,
    Level.ACTION: ActionShare,
    Level.SUBGRAPH: SubgraphShare,
    Level.OPERATOR: OperatorShare,
}

LISTS: Final[Mapping[Level, str]] = {
    Level.CATEGORY: "categories",
    Level.ACTION: "actions",
    Level.SUBGRAPH: "subgraphs",
    Level.OPERATOR: "operators",
}
"""What the rows of a level are called, also as fields of the answer."""

TREE = ("energy", "count", "per", "energy of one", "basis", "energy", "share")
CATEGORIES = ("category", "common", "part", "actions", "energy", "share", "largest action", "of the category")
PARTS = ("compute", "memory", "control", "static")
SUBGRAPHS = (
    "", "subgraph", "pattern", "energy", *PARTS, "share", "latency", "share", "bound by", "units", "tiles", "waves",
    "filled", "padding", "compute", "bandwidth",
)  # fmt: skip
OPERATORS = (
    "", "operator", "kind", "subgraph", "energy", *PARTS, "share", "latency", "share", "EDP share", "fused",
    "alone: energy", "latency", "fusing saves: energy", "latency",
)  # fmt: skip


def render_analysis(answer: AnalyzeAnswer, form: Format, level: Level, options: Sequence[str] = ()) -> str:
    """Return the whole analysis with the table of one level; json holds every level, csv that table alone.

    `options` are what a follow-up command must repeat.
    """
    if form is Format.JSON:
        return write_json(
            {
                "total": attrs.asdict(answer.total),
                **{LISTS[one]: [attrs.asdict(row) for row in _rows(answer, one)] for one in Level},
                "bottlenecks": [attrs.asdict(row) for row in answer.bottlenecks],
                "caveats": [attrs.asdict(row) for row in answer.caveats],
                "calibrations": [attrs.asdict(row) for row in answer.calibrations],
                "notes": describe(answer),
                "next_steps": next_steps(answer, level, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RECORDS[level])]
        return write_csv(names, [[getattr(row, name) for name in names] for row in _rows(answer, level)])
    is_markdown = form is Format.MARKDOWN
    total = answer.total
    hardware = mark_projected(total.hardware, answer.answers[0].projected)
    title = (
        f"{total.model} on {hardware} ({total.architecture}), batch {total.batch}, {total.precision}, {total.runtime}"
    )
    steps = next_steps(answer, level, options)
    sections = [
        ("Performance", draw_table(("quantity", "value", "in detail"), _facts(total), is_markdown=is_markdown)),
        ("Bottlenecks", _bottlenecks(answer, is_markdown)),
        (f"Energy by {level}", f"{_table(answer, level, is_markdown)}\n\n{_proof(answer, level)}"),
        ("Notes", "\n".join(f"- {line}" for line in describe(answer))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _rows(answer: AnalyzeAnswer, level: Level) -> Sequence[Any]:
    rows: Sequence[Any] = getattr(answer, LISTS[level])
    return rows


def _joules(value: float | None) -> str:
    return "" if value is None else show_quantity(value, "J")


def _seconds(value: float | None) -> str:
    return "" if value is None else show_quantity(value, "s")


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _bytes(value: float) -> str:
    return show_quantity(value, "B")


def _count(value: float) -> str:
    return show(int(value), "tile_count")


def _facts(total: RunTotal) -> list[tuple[str, str, str]]:
    """Return (quantity, value, in detail) of the run as a whole."""
    parts = ", ".join(f"{part} {_joules(getattr(total, f'{part}_energy_j'))}" for part in PARTS)
    each = f"{_joules(total.energy_per_inference_j)} an inference; " if total.batch > 1 else ""
    rate, peak = show_quantity(total.attained_ops_per_s, "ops/s"), show_quantity(total.peak_ops_per_s, "ops/s")
    bandwidth = show_quantity(total.memory_bandwidth_bytes_per_s, "B/s")
    watts = f"{show_quantity(total.static_power_w, 'W')} static, cap {show_quantity(total.tdp_w, 'W')}"
    kernels = f"{total.subgraph_count} subgraphs, {total.operator_count} operators, {total.kernel_count} kernels"
    memory = f"weights {_bytes(total.weight_bytes)}, activations {_bytes(total.activation_bytes)}"
    capacity = f"fits: {_share(total.memory_fraction)} of {_bytes(total.memory_capacity_bytes)}"
    used = f"{_count(total.tile_count)} tiles in {_count(total.wave_count)} waves"
    if total.wave_fill_fraction is not None:
        used += f", filled to {_share(total.wave_fill_fraction)}"
    if total.padding_fraction is not None:
        used += f"; padding {_share(total.padding_fraction)} of the MAC slots"
    return [
        ("energy", _joules(total.energy_j), each + parts),
        ("latency", _seconds(total.latency_s), kernels),
        ("throughput", show_quantity(total.throughput_per_s, "1/s"), ""),
        ("energy x delay", show_quantity(total.edp_js, "Js"), ""),
        ("average power", show_quantity(total.average_power_w, "W"), watts),
        ("clock", _share(total.clock_fraction), "of nominal"),
        ("compute", _share(total.compute_utilization_fraction), f"{rate} of {peak}"),
        ("bandwidth", _share(total.bandwidth_utilization_fraction), f"{_bytes(total.dram_bytes)} moved at {bandwidth}"),
        ("units", f"{total.units_used_count}/{total.units_total_count} {total.unit_name}s", used),
        ("memory", _bytes(total.peak_memory_bytes), f"{memory}; {capacity}"),
    ]


def _bottlenecks(answer: AnalyzeAnswer, is_markdown: bool) -> str:
    rows = [
        (
            row.bottleneck,
            str(row.subgraph_count),
            _seconds(row.latency_s),
            _share(row.latency_fraction),
            _joules(row.energy_j),
            _share(row.energy_fraction),
            _seconds(row.busy_s),
        )
        for row in answer.bottlenecks
    ]
    headings = ("bound by", "subgraphs", "time", "share", "energy", "share", "own time in all")
    return draw_table(headings, rows, is_markdown=is_markdown)


def _table(answer: AnalyzeAnswer, level: Level, is_markdown: bool) -> str:
    total = answer.total
    parts = tuple(_joules(getattr(total, f"{part}_energy_j")) for part in PARTS)
    energy = _joules(total.energy_j)
    rows: list[tuple[str, ...]]
    if level is Level.ACTION:
        step = "&nbsp;&nbsp;" if is_markdown else "  "
        rows = [("run", "", "", "", "", energy, _share(1.0)), *_tree(answer, step)]
        return draw_table(TREE, rows, is_markdown=is_markdown, keeps_indent=True)
    if level is Level.CATEGORY:
        rows = [
            ("run", "", "", str(len(answer.actions)), energy, _share(1.0), "", ""),
            *map(_category, answer.categories),
        ]
        return draw_table(CATEGORIES, rows, is_markdown=is_markdown)
    if level is Level.SUBGRAPH:
        whole = (
            "", "run", "", energy, *parts, _share(1.0), _seconds(total.latency_s), _share(1.0), "",
            f"{total.units_used_count}/{total.units_total_count}", _count(total.tile_count), _count(total.wave_count),
            _share(total.wave_fill_fraction), _share(total.padding_fraction),
            _share(total.compute_utilization_fraction), _share(total.bandwidth_utilization_fraction),
        )  # fmt: skip
        return draw_table(SUBGRAPHS, [whole, *map(_subgraph, answer.subgraphs)], is_markdown=is_markdown)
    whole = (
        "", "run", "", "", energy, *parts, _share(1.0), _seconds(total.latency_s), _share(1.0), _share(1.0),
        *[""] * 5,
    )  # fmt: skip
    return draw_table(OPERATORS, [whole, *map(_operator, answer.operators)], is_markdown=is_markdown)


def _tree(answer: AnalyzeAnswer, step: str) -> Iterable[tuple[str, ...]]:
    """Yield a row for each category and below it, further in, one for each of its actions."""
    for category in answer.categories:
        yield step + category.category, "", "", "", "", _joules(category.energy_j), _share(category.share_fraction)
        for row in answer.actions:
            if row.category == category.category:
                in_time = row.per == "s"
                yield (
                    f"{step}{step}{row.component}.{row.action}",
                    show_quantity(row.action_count, "s" if in_time else ""),
                    "" if in_time else row.per,
                    show_quantity(row.energy_per_action_j, "W" if in_time else "J"),
                    row.basis,
                    _joules(row.energy_j),
                    _share(row.share_fraction),
                )


def _category(row: CategoryShare) -> tuple[str, ...]:
    return (
        row.category,
        row.common_categories,
        row.parts,
        str(row.kind_count),
        _joules(row.energy_j),
        _share(row.share_fraction),
        row.largest_action,
        _share(row.largest_action_fraction),
    )


def _subgraph(row: SubgraphShare) -> tuple[str, ...]:
    return (
        str(row.subgraph_index),
        row.name,
        row.fusion_pattern,
        _joules(row.energy_j),
        *(_joules(getattr(row, f"{part}_energy_j")) for part in PARTS),
        _share(row.share_fraction),
        _seconds(row.latency_s),
        _share(row.latency_fraction),
        row.bottleneck,
        f"{row.units_used_count}/{row.units_total_count}",
        _count(row.tile_count),
        _count(row.wave_count),
        _share(row.wave_fill_fraction),
        _share(row.padding_fraction),
        _share(row.compute_utilization_fraction),
        _share(row.bandwidth_utilization_fraction),
    )


def _operator(row: OperatorShare) -> tuple[str, ...]:
    return (
        str(row.operator_index),
        row.name,
        row.kind,
        str(row.subgraph_index),
        _joules(row.energy_j),
        *(_joules(getattr(row, f"{part}_energy_j")) for part in PARTS),
        _share(row.share_fraction),
        _seconds(row.latency_s),
        _share(row.latency_fraction),
        _share(row.edp_share_fraction),
        show(row.is_fused, "is_fused"),
        _joules(row.separate_energy_j),
        _seconds(row.separate_latency_s),
        _joules(row.saved_energy_j),
        _seconds(row.saved_latency_s),
    )


def _proof(answer: AnalyzeAnswer, level: Level) -> str:
    """Return the sentence that compares what the rows add up to with the run."""
    rows, total = _rows(answer, level), answer.total
    sums = [(sum(row.energy_fj for row in rows), total.energy_fj, "fJ")]
    if level in (Level.SUBGRAPH, Level.OPERATOR):
        sums.append((sum(row.latency_fs for row in rows), total.latency_fs, "fs"))
    is_exact = all(added == whole for added, whole, _ in sums)
    added = " and ".join(f"{value:,} {unit}" for value, _, unit in sums)
    whole = " and ".join(f"{value:,} {unit}" for _, value, unit in sums)
    return f"{LISTS[level]} sum to {added}; the run is {whole} ({'exact' if is_exact else 'NOT EXACT'})"


def describe(answer: AnalyzeAnswer) -> list[str]:
    """Return sentences about what a reader must know of this run."""
    total = answer.total
    lines = []
    if total.clock_fraction < 1.0:
        lines.append(
            f"the power cap of {show_quantity(total.tdp_w, 'W')} lowers the clock to {_share(total.clock_fraction)} of "
            f"nominal: at the full clock the run would draw {show_quantity(total.nominal_power_w, 'W')}, "
            f"{show_quantity(total.static_power_w, 'W')} of it static"
        )
    if total.is_projection:
        lines.append(PROJECTION_NOTE)
    if total.assumed_energy_fraction:
        lines.append(
            f"{_share(total.assumed_energy_fraction)} of the energy is priced by assumptions: each action has its basis"
        )
    lines += describe_recalled(total.recalled_energy_fraction, total.hardware)
    return lines + describe_calibrations(answer.calibrations) + describe_caveats(answer.caveats)


def next_steps(answer: AnalyzeAnswer, level: Level, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from this analysis, ready to paste into a shell."""
    total = answer.total
    plain, at, mode = total.hardware.partition("@")
    hardware = answer.spelling.get(total.hardware) or f"{answer.spelling.get(plain, plain)}{at}{mode}"
    settings = [*repeat_settings(total.precision, total.runtime), *options]
    levels = list(Level)
    deeper = levels[(levels.index(level) + 1) % len(levels)]
    return write_steps(
        [
            ["analyze", total.model, hardware, "--level", deeper.value, *settings],
            ["compare", total.model, *settings],
            ["query", "run", "edp.distribution", "-p", f"run_id={total.run_id}", *repeat_place(options)],
        ]
    )
