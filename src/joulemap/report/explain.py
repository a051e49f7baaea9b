"""An explanation: sentences, terms, biggest first, effects, categories, subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from joulemap.domain.answer.explanation import CategoryDifference, EnergyTerm, MetricTerm, SubgraphDifference
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, mark_projected, show, show_quantity
from joulemap.present.format import Format
from joulemap.present.render import draw_table, write_csv, write_json
from joulemap.query.answer import ExplainAnswer
from joulemap.report.asked import METRICS, UNITS, list_steps, write_lines
from joulemap.report.level import ExplainLevel
from joulemap.report.note import describe_calibrations, repeat_settings, write_steps
from joulemap.report.reason import reasons

HEADINGS = (
    "term", "where", "action", "difference", "share", "count A", "count B", "price A", "price B", "per", "basis",
)  # fmt: skip

METRIC_HEADINGS = ("term", "where", "difference", "share", "parts", "count A", "count B", "price A", "price B", "per")

EXACT_UNITS = {"latency": "fs", "memory": "B", "edp": "fJ fs, twice"}

BATCHES = "1,2,4,8,16,32,64,128"


def render_explanation(
    answer: ExplainAnswer,
    form: Format,
    limit: int,
    level: ExplainLevel = ExplainLevel.TERM,
    options: Sequence[str] = (),
) -> str:
    """Return the decomposition; people see the `limit` biggest terms and a line for the rest, programs all.

    csv holds the table of one level; `options` are what a follow-up command must repeat.
    """
    steps = next_steps(answer, options)
    terms: Sequence[EnergyTerm | MetricTerm] = answer.terms if answer.metric == "energy" else answer.metric_terms
    if form is Format.JSON:
        return write_json(
            {
                "metric": answer.metric,
                "total": attrs.asdict(answer.total),
                "terms": [attrs.asdict(term) for term in terms],
                "effects": [attrs.asdict(row) for row in answer.effects],
                "categories": [attrs.asdict(row) for row in answer.categories],
                "subgraphs": [attrs.asdict(row) for row in answer.subgraphs],
                "traffic": [attrs.asdict(row) for row in answer.traffic],
                "sentences": reasons(answer),
                "architecture_notes": [attrs.asdict(row) for row in answer.notes],
                "calibrations": [attrs.asdict(row) for row in answer.calibrations],
                "next_steps": steps,
            }
        )
    if form is Format.CSV:
        record: type = EnergyTerm if answer.metric == "energy" else MetricTerm
        rows: Sequence[Any] = terms
        if level is ExplainLevel.CATEGORY:
            record, rows = CategoryDifference, answer.categories
        if level is ExplainLevel.SUBGRAPH:
            record, rows = SubgraphDifference, answer.subgraphs
        names = [field.name for field in attrs.fields(record)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in rows])
    is_markdown = form is Format.MARKDOWN
    sections = [("Why", write_lines(reasons(answer)))]
    if level is ExplainLevel.TERM:
        sections.append(("Terms", draw_terms(answer, limit, is_markdown)))
        if answer.metric == "energy":
            sections.append(("Effects", draw_effects(answer, is_markdown)))
        if answer.metric == "memory":
            sections.append(("Bytes that each memory carries", _traffic(answer, limit, is_markdown)))
    elif level is ExplainLevel.CATEGORY:
        sections.append(("Energy by category", _categories(answer, is_markdown)))
    else:
        sections.append((_heading(answer), _subgraphs(answer, limit, is_markdown)))
    notes = describe_calibrations(answer.calibrations)
    if any(name.startswith(PROJECTED) for name in _names(answer)):
        notes.append(PROJECTION_NOTE)
    sections += [
        ("Notes", write_lines(notes)),
        (
            "What is known of these classes (notes, not results)",
            write_lines([f"{row.architecture}, {row.topic}: {row.text} [{row.source}]" for row in answer.notes]),
        ),
        ("Next steps", list_steps(steps, is_markdown)),
    ]
    if is_markdown:
        sections = [(f"## {name}\n", text) for name, text in sections]
    return "\n\n".join([draw_head(answer), *(f"{name}\n{text}" for name, text in sections if text)])


def draw_head(answer: ExplainAnswer) -> str:
    """Return what is compared, both values, and the difference."""
    total, unit = answer.total, UNITS[answer.metric]
    name_a, name_b = _names(answer)
    value_a, value_b = values(answer)
    ratio = f" ({value_b / value_a:.3g}x)" if value_a else ""
    return (
        f"{total.model}: {METRICS[answer.metric]} of B {name_b} minus A {name_a}\n"
        f"A {show_quantity(value_a, unit)}, B {show_quantity(value_b, unit)}, "
        f"difference {_signed(value_b - value_a, unit)}{ratio}"
    )


def values(answer: ExplainAnswer) -> tuple[float, float]:
    """Return the metric of A and that of B, in its SI unit."""
    total = answer.total
    return {
        "energy": (total.energy_a_j, total.energy_b_j),
        "latency": (total.latency_a_s, total.latency_b_s),
        "edp": (total.edp_a_js, total.edp_b_js),
        "memory": (float(total.memory_a_bytes), float(total.memory_b_bytes)),
    }[answer.metric]


def _names(answer: ExplainAnswer) -> tuple[str, str]:
    projected = answer.answers[0].projected
    name_a, name_b = (mark_projected(name, projected) for name in (answer.total.hardware_a, answer.total.hardware_b))
    return name_a, name_b


def draw_terms(answer: ExplainAnswer, limit: int, is_markdown: bool) -> str:
    """Return the terms of the metric, and that they sum to the difference."""
    if answer.metric != "energy":
        return draw_metric_terms(answer.metric, answer.metric_terms, _exact(answer), limit, is_markdown)
    shown, hidden = answer.terms[:limit], answer.terms[limit:]
    rows = [_cells(term) for term in shown]
    if hidden:
        rest = sum(term.difference_fj for term in hidden)
        rows.append(["", "", f"{len(hidden)} smaller terms", _signed(rest / 1e15), *[""] * 7])
    summed = sum(term.difference_fj for term in answer.terms)
    rows.append(["", "", "sum of all terms", _signed(summed / 1e15), *[""] * 7])
    return (
        f"{draw_table(HEADINGS, rows, is_markdown=is_markdown)}\n\n{_proof(summed, answer.total.difference_fj, 'fJ')}"
    )


def draw_metric_terms(metric: str, terms: Sequence[MetricTerm], exact: int, limit: int, is_markdown: bool) -> str:
    """Return the terms of a latency, memory or edp, and that they sum to the difference `exact`."""
    rows = [_metric_cells(term) for term in terms[:limit]]
    if terms[limit:]:
        rest = sum(term.difference for term in terms[limit:])
        rows.append(["", f"{len(terms) - limit} smaller terms", _signed(rest, terms[0].unit), *[""] * 7])
    summed = sum(term.difference_exact for term in terms)
    table = draw_table(METRIC_HEADINGS, rows, is_markdown=is_markdown) if rows else "no term is different"
    return f"{table}\n\n{_proof(summed, exact, EXACT_UNITS[metric])}"


def _exact(answer: ExplainAnswer) -> int:
    """Return the metric's difference of the runs, exact."""
    total = answer.total
    return {
        "latency": total.latency_difference_fs,
        "edp": total.edp_difference_exact,
        "memory": total.memory_difference_bytes,
    }[answer.metric]


def _proof(summed: int, exact: int, unit: str) -> str:
    word = "exact" if summed == exact else "NOT EXACT"
    return f"terms sum to {summed:,} {unit}; the difference of the runs is {exact:,} {unit} ({word})"


def draw_effects(answer: ExplainAnswer, is_markdown: bool) -> str:
    """Return what each kind of cause moved the energy, and that they sum to the difference."""
    rows = [
        (
            row.effect,
            _signed(row.difference_j),
            show(row.share_fraction, "share_fraction"),
            str(row.action_count),
            row.largest_action or "",
            "" if row.largest_difference_j is None else _signed(row.largest_difference_j),
        )
        for row in answer.effects
    ]
    table = draw_table(("effect", "difference", "share", "actions", "mostly", "of it"), rows, is_markdown=is_markdown)
    return f"{table}\n\n{_proof(sum(row.difference_fj for row in answer.effects), answer.total.difference_fj, 'fJ')}"


def _categories(answer: ExplainAnswer, is_markdown: bool) -> str:
    rows = [
        (
            row.category,
            row.categories_a,
            row.categories_b,
            show_quantity(row.energy_a_j, "J"),
            show_quantity(row.energy_b_j, "J"),
            _signed(row.difference_j),
            show(row.share_fraction, "share_fraction"),
        )
        for row in answer.categories
    ]
    table = draw_table(("category", "of A", "of B", "A", "B", "difference", "share"), rows, is_markdown=is_markdown)
    summed = sum(row.difference_fj for row in answer.categories)
    return f"{table}\n\n{_proof(summed, answer.total.difference_fj, 'fJ')}"


def _heading(answer: ExplainAnswer) -> str:
    what = "bytes moved off chip" if answer.metric == "memory" else METRICS[answer.metric]
    return f"{what.capitalize()} by subgraph"


def _subgraphs(answer: ExplainAnswer, limit: int, is_markdown: bool) -> str:
    rows = [
        (
            row.name,
            row.fusion_pattern,
            _signed(row.difference, row.unit),
            show(row.share_fraction, "share_fraction"),
            show_quantity(row.energy_a_fj / 1e15, "J"),
            show_quantity(row.energy_b_fj / 1e15, "J"),
            show_quantity(row.latency_a_fs / 1e15, "s"),
            show_quantity(row.latency_b_fs / 1e15, "s"),
            row.bottleneck_a or "",
            row.bottleneck_b or "",
        )
        for row in answer.subgraphs[:limit]
    ]
    headings = (
        "subgraph", "pattern", "difference", "share", "energy A", "energy B", "latency A", "latency B", "bound A",
        "bound B",
    )  # fmt: skip
    text = draw_table(headings, rows, is_markdown=is_markdown)
    rest = len(answer.subgraphs) - limit
    return f"{text}\n\n{rest} more; --limit {len(answer.subgraphs)} shows all" if rest > 0 else text


def _traffic(answer: ExplainAnswer, limit: int, is_markdown: bool) -> str:
    rows = [
        (
            f"{row.component}.{row.action}",
            "" if row.bytes_a is None else show_quantity(row.bytes_a, "B"),
            "" if row.bytes_b is None else show_quantity(row.bytes_b, "B"),
            _signed(row.difference_bytes, "B"),
            show_quantity(row.energy_a_j, "J"),
            show_quantity(row.energy_b_j, "J"),
        )
        for row in answer.traffic[:limit]
    ]
    headings = ("memory", "A", "B", "difference", "energy A", "energy B")
    return draw_table(headings, rows, is_markdown=is_markdown)


def _metric_cells(term: MetricTerm) -> list[str]:
    def price(value: float | None) -> str:
        return "" if value is None else show_quantity(value, term.price_unit)

    def count(value: float) -> str:
        return show_quantity(value, "s" if term.per == "s" else "") if value else ""

    return [
        term.term,
        term.place,
        _signed(term.difference, term.unit),
        show(term.share_fraction, "share_fraction"),
        str(term.part_count),
        count(term.count_a),
        count(term.count_b),
        price(term.price_a),
        price(term.price_b),
        term.per,
    ]


def next_steps(answer: ExplainAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    total = answer.total
    pair = [answer.spelling.get(name, name) for name in (total.hardware_a, total.hardware_b)]
    settings = [*repeat_settings(total.precision, total.runtime), *options]
    steps = [["explain", total.model, *pair, "--metric", answer.metric, "--level", "subgraph", *settings]]
    if not {"--batch", "--input", "--calibration"} & set(options) and pair[0] != pair[1]:
        names = ",".join(pair)
        steps.append(["sweep", total.model, "--hardware", names, "--batch", BATCHES, "--level", "crossing", *settings])
    return write_steps(steps)


def _signed(value: float, unit: str = "J") -> str:
    return f"{'+' if value > 0 else ''}{show_quantity(value, unit)}"


def _cells(term: EnergyTerm) -> list[str]:
    categories = dict.fromkeys(name for name in (term.category_a, term.category_b) if name)
    return [
        term.term,
        " / ".join(categories),
        f"{term.component}.{term.action}",
        _signed(term.difference_j),
        show(term.share_fraction, "share_fraction"),
        _count(term.count_a, term),
        _count(term.count_b, term),
        _price(term.energy_per_action_a_j, term),
        _price(term.energy_per_action_b_j, term),
        term.per,
        " / ".join(dict.fromkeys(basis for basis in (term.basis_a, term.basis_b) if basis)),
    ]


def _count(value: float, term: EnergyTerm) -> str:
    if not value:
        return ""
    return show_quantity(value, "s") if term.per == "s" else show_quantity(value, "")


def _price(value_j: float | None, term: EnergyTerm) -> str:
    if value_j is None:
        return ""
    return show_quantity(value_j, "W") if term.per == "s" else show_quantity(value_j, "J")
