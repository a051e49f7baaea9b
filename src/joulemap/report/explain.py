"""An explanation: totals, then terms, biggest first."""

from __future__ import annotations

import attrs

from joulemap.domain.answer.explanation import EnergyTerm
from joulemap.query.answer import ExplainAnswer
from joulemap.report.cell import PROJECTED, PROJECTION_NOTE, mark_projected, show, show_quantity
from joulemap.report.format import Format
from joulemap.report.note import describe_calibrations
from joulemap.report.render import draw_table, write_csv, write_json

HEADINGS = (
    "term", "where", "action", "difference", "share", "count A", "count B", "price A", "price B", "per", "basis",
)  # fmt: skip


def render_explanation(answer: ExplainAnswer, form: Format, limit: int) -> str:
    """Return the decomposition; people see the `limit` biggest terms and a line for the rest, programs all."""
    total = answer.total
    if form is Format.JSON:
        return write_json(
            {
                "total": attrs.asdict(total),
                "terms": [attrs.asdict(term) for term in answer.terms],
                "calibrations": [attrs.asdict(row) for row in answer.calibrations],
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(EnergyTerm)]
        return write_csv(names, [[getattr(term, name) for name in names] for term in answer.terms])
    is_markdown = form is Format.MARKDOWN
    shown, hidden = answer.terms[:limit], answer.terms[limit:]
    rows = [_cells(term) for term in shown]
    if hidden:
        rest = sum(term.difference_fj for term in hidden)
        rows.append(["", "", f"{len(hidden)} smaller terms", _signed(rest / 1e15), *[""] * 7])
    summed = sum(term.difference_fj for term in answer.terms)
    rows.append(["", "", "sum of all terms", _signed(summed / 1e15), *[""] * 7])
    projected = answer.answers[0].projected
    name_a, name_b = (mark_projected(name, projected) for name in (total.hardware_a, total.hardware_b))
    head = (
        f"{total.model}: energy of B {name_b} minus A {name_a}\n"
        f"A {show_quantity(total.energy_a_j, 'J')}, B {show_quantity(total.energy_b_j, 'J')}, "
        f"difference {_signed(total.difference_j)} ({total.ratio:.3g}x)"
    )
    foot = (
        f"terms sum to {summed:,} fJ; the difference of the runs is {total.difference_fj:,} fJ"
        f" ({'exact' if summed == total.difference_fj else 'NOT EXACT'})"
    )
    foot += "".join(f"\n{line}" for line in describe_calibrations(answer.calibrations))
    if PROJECTED in (name_a[:1], name_b[:1]):
        foot += f"\n{PROJECTION_NOTE}"
    return "\n\n".join([head, draw_table(HEADINGS, rows, is_markdown=is_markdown), foot])


def _signed(value_j: float) -> str:
    return f"{'+' if value_j > 0 else ''}{show_quantity(value_j, 'J')}"


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
