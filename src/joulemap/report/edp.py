"""A run's energy-delay product: who takes how much of it, how few take most, and what could be gained at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain.answer.edp import EdpComparison, EdpOperatorShare, EdpShare, EdpTotal
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, mark_projected, show, show_quantity
from joulemap.present.format import Format
from joulemap.present.render import draw_table, write_csv, write_json
from joulemap.query.edp import EdpAnswer
from joulemap.report.edp_insight import PARTS, insights
from joulemap.report.level import EdpLevel
from joulemap.report.note import describe_caveats, repeat_place, repeat_settings, write_steps

LISTS: Final[Mapping[EdpLevel, str]] = {EdpLevel.SUBGRAPH: "subgraphs", EdpLevel.OPERATOR: "operators"}
"""What the rows of a level are called, also as fields of the answer."""

RECORDS: Final[Mapping[EdpLevel, type]] = {EdpLevel.SUBGRAPH: EdpShare, EdpLevel.OPERATOR: EdpOperatorShare}

REMEDIES: Final[Mapping[str, str]] = {
    "roofline": "every subgraph at its roofline",
    "no_memory_wait": "arithmetic never waits for memory",
    "full_units": "no padding, no partly filled wave",
    "no_launch": "no fixed cost of kernels",
    "no_static": "no static power",
    "no_control": "no control energy",
}

COLUMNS: Final = (
    "energy",
    "latency",
    "own EDP",
    "EDP share",
    "of the run",
    "added up",
    *PARTS,
    "halving it saves",
    "bound by",
)


def render_edp(answer: EdpAnswer, form: Format, level: EdpLevel, limit: int, options: Sequence[str] = ()) -> str:
    """Return the whole answer with the table of one level; json holds both levels, csv that table alone.

    `limit` is how many rows of it people see; `options` are what a follow-up command must repeat.
    """
    if form is Format.JSON:
        return write_json(
            {
                "total": attrs.asdict(answer.total),
                "subgraphs": [attrs.asdict(row) for row in answer.subgraphs],
                "operators": [attrs.asdict(row) for row in answer.operators],
                "cuts": [attrs.asdict(row) for row in answer.cuts],
                "patterns": [attrs.asdict(row) for row in answer.patterns],
                "bounds": [attrs.asdict(row) for row in answer.bounds],
                "comparison": [attrs.asdict(row) for row in answer.comparison],
                "caveats": [attrs.asdict(row) for row in answer.caveats],
                "insights": insights(answer),
                "notes": notes(answer),
                "next_steps": next_steps(answer, level, options),
            }
        )
    rows: Sequence[EdpShare | EdpOperatorShare] = getattr(answer, LISTS[level])
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RECORDS[level])]
        return write_csv(names, [[getattr(row, name) for name in names] for row in rows])
    is_markdown = form is Format.MARKDOWN
    total = answer.total
    hardware = mark_projected(total.hardware, answer.answers[0].projected)
    title = (
        f"{total.model} on {hardware} ({total.architecture}), batch {total.batch}, {total.precision}, {total.runtime}"
    )
    steps = next_steps(answer, level, options)
    sections = [
        ("Energy x delay", draw_table(("quantity", "value", "in detail"), _facts(total), is_markdown=is_markdown)),
        (f"By {level}, largest share first", _shares(answer, level, rows, limit, is_markdown)),
        (f"How few {LISTS[level]} make up most of it", _cuts(answer, level, is_markdown)),
        ("By fusion pattern", _patterns(answer, is_markdown)),
        ("The most that could be gained", _bounds(answer, is_markdown)),
        ("The same subgraph on other hardware", _comparison(answer, limit, is_markdown)),
        ("Insights", "\n".join(f"- {line}" for line in insights(answer))),
        ("Notes", "\n".join(f"- {line}" for line in notes(answer))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _product(value: float) -> str:
    return show_quantity(value, "Js")


def _facts(total: EdpTotal) -> list[tuple[str, str, str]]:
    """Return (quantity, value, in detail) of the run as a whole."""
    parts = ", ".join(f"{part} {_share(getattr(total, f'{part}_share_fraction'))}" for part in PARTS)
    energy, latency = show_quantity(total.energy_j, "J"), show_quantity(total.latency_s, "s")
    own = f"energy x latency of each, added up: {_share(total.own_edp_fraction)} of it"
    return [
        ("energy x delay", _product(total.edp_js), f"{energy} x {latency}"),
        ("by part", "", parts),
        ("subgraphs' own", _product(total.own_edp_js), own),
        ("kernels", str(total.subgraph_count), f"subgraphs, {total.operator_count} operators"),
    ]


def _shares(
    answer: EdpAnswer, level: EdpLevel, rows: Sequence[EdpShare | EdpOperatorShare], limit: int, is_markdown: bool
) -> str:
    first = ("", "subgraph", "pattern") if level is EdpLevel.SUBGRAPH else ("", "operator", "kind", "pattern", "fused")
    cells = [(*_head(row), *_tail(row)) for row in rows[:limit]]
    text = draw_table((*first, *COLUMNS), cells, is_markdown=is_markdown)
    rest = rows[limit:]
    if rest:
        share = _share(sum(row.share_fraction for row in rest))
        text += f"\n{len(rest)} more {LISTS[level]} take {share}; --limit {len(rows)} shows all"
    energy, latency = sum(row.energy_fj for row in rows), sum(row.latency_fs for row in rows)
    is_exact = (energy, latency) == (answer.total.energy_fj, answer.total.latency_fs)
    return (
        f"{text}\n\n{LISTS[level]} sum to {energy:,} fJ and {latency:,} fs, so their shares to E x T "
        f"({'exact' if is_exact else 'NOT EXACT'})"
    )


def _head(row: EdpShare | EdpOperatorShare) -> tuple[str, ...]:
    if isinstance(row, EdpShare):
        return str(row.rank), row.name, row.fusion_pattern
    return str(row.rank), row.name, row.kind, row.fusion_pattern, show(row.is_fused, "is_fused")


def _tail(row: EdpShare | EdpOperatorShare) -> tuple[str, ...]:
    return (
        show_quantity(row.energy_j, "J"),
        show_quantity(row.latency_s, "s"),
        _product(row.edp_js),
        _product(row.edp_share_js),
        _share(row.share_fraction),
        _share(row.cumulative_fraction),
        *(_share(getattr(row, f"{part}_share_fraction")) for part in PARTS),
        _share(row.halving_fraction),
        row.bottleneck,
    )


def _cuts(answer: EdpAnswer, level: EdpLevel, is_markdown: bool) -> str:
    rows = [
        (
            f"{row.cut_fraction * 100:g} %",
            f"top {row.top_count} of {row.total_count}",
            _share(row.reached_fraction),
            row.last,
        )
        for row in answer.cuts
        if row.level == level
    ]
    return draw_table(("of E x T", LISTS[level], "reached", "the smallest of them"), rows, is_markdown=is_markdown)


def _patterns(answer: EdpAnswer, is_markdown: bool) -> str:
    headings = ("pattern", "subgraphs", "operators", "energy", "latency", "of E x T", "added up", "of MACs", "bound by")
    rows = [
        (
            row.fusion_pattern,
            str(row.subgraph_count),
            str(row.operator_count),
            show_quantity(row.energy_j, "J"),
            show_quantity(row.latency_s, "s"),
            _share(row.share_fraction),
            _share(row.cumulative_fraction),
            _share(row.mac_fraction),
            f"{row.bottleneck} ({row.bottleneck_fraction * 100:.0f} % of its time)",
        )
        for row in answer.patterns
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)


def _bounds(answer: EdpAnswer, is_markdown: bool) -> str:
    headings = ("what if", "E x T saved", "left", "latency saved", "energy saved", "subgraphs touched")
    rows = [
        (
            REMEDIES[row.remedy],
            _share(row.saving_fraction),
            _product(row.edp_js),
            _share(row.latency_saving_fraction),
            _share(row.energy_saving_fraction),
            f"{row.subgraph_count}/{row.total_count}",
        )
        for row in answer.bounds
    ]
    return draw_table(headings, rows, is_markdown=is_markdown)


def _comparison(answer: EdpAnswer, limit: int, is_markdown: bool) -> str:
    """Return a row per subgraph and a column per hardware: EDP share, and its part of that run."""
    if not answer.comparison:
        return ""
    names: dict[int, str] = {}
    subgraphs: dict[int, dict[int, EdpComparison]] = {}
    for row in answer.comparison:
        names[row.run_id] = row.hardware
        subgraphs.setdefault(row.subgraph_index, {})[row.run_id] = row
    projected = answer.answers[0].projected
    marked = {run_id: mark_projected(name, projected) for run_id, name in names.items()}
    rows = []
    for by_run in list(subgraphs.values())[:limit]:
        first = next(iter(by_run.values()))
        best = next(row for row in by_run.values() if row.is_best)
        cells = [
            f"{_product(by_run[run_id].edp_share_js)} ({_share(by_run[run_id].share_fraction)})"
            if run_id in by_run
            else ""
            for run_id in marked
        ]
        rows.append((first.name, first.fusion_pattern, *cells, marked[best.run_id]))
    text = draw_table(("subgraph", "pattern", *marked.values(), "least"), rows, is_markdown=is_markdown)
    if len(subgraphs) > limit:
        text += f"\n{len(subgraphs) - limit} more subgraphs; --limit {len(subgraphs)} shows all"
    return f"{text}\n\nEDP share in Js, and its part of that run's E x T"


def notes(answer: EdpAnswer) -> list[str]:
    """Return what a reader must know of these numbers."""
    total = answer.total
    lines = [f"unsupported: {reason}" for reason in answer.refusals]
    if total.clock_fraction < 1.0:
        lines.append(
            f"the power cap lowers the clock to {_share(total.clock_fraction)} of nominal; gains are counted at this "
            "clock, but for the roofline"
        )
    names = {row.hardware for row in answer.comparison} | {total.hardware}
    if any(mark_projected(name, answer.answers[0].projected).startswith(PROJECTED) for name in names):
        lines.append(PROJECTION_NOTE)
    return lines + describe_caveats(answer.caveats)


def next_steps(answer: EdpAnswer, level: EdpLevel, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    total = answer.total
    plain, at, mode = total.hardware.partition("@")
    hardware = answer.spelling.get(total.hardware) or f"{answer.spelling.get(plain, plain)}{at}{mode}"
    settings = [*repeat_settings(total.precision, total.runtime), *options]
    other = EdpLevel.OPERATOR if level is EdpLevel.SUBGRAPH else EdpLevel.SUBGRAPH
    return write_steps(
        [
            ["edp", total.model, hardware, "--level", other.value, *settings],
            ["analyze", total.model, hardware, "--level", other.value, *settings],
            ["query", "run", "edp.bound", "-p", f"run_id={total.run_id}", *repeat_place(options)],
        ]
    )
