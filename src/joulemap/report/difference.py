"""What differs between two runs: settings, constants, energy terms."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.answer.explanation import Constant
from joulemap.present.cell import show, show_quantity
from joulemap.query.answer import DifferenceAnswer
from joulemap.report.explain import draw_effects, draw_head, draw_metric_terms, draw_terms
from joulemap.report.format import Format
from joulemap.report.render import draw_table, write_csv, write_json


def render_difference(answer: DifferenceAnswer, form: Format, limit: int) -> str:
    """Return the whole difference; csv holds the constants, people see `limit` rows of each part."""
    explanation = answer.explanation
    if form is Format.JSON:
        return write_json(
            {
                "settings": [attrs.asdict(row) for row in answer.settings],
                "constants": [attrs.asdict(row) for row in answer.constants],
                "total": attrs.asdict(explanation.total) if explanation else None,
                "effects": [attrs.asdict(row) for row in explanation.effects] if explanation else [],
                "terms": [attrs.asdict(row) for row in explanation.terms] if explanation else [],
                "delays": [attrs.asdict(row) for row in answer.delays],
                "subgraphs": [attrs.asdict(row) for row in explanation.subgraphs] if explanation else [],
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(Constant)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.constants])
    is_markdown = form is Format.MARKDOWN
    settings = draw_table(
        ("setting", "A", "B"),
        [(row.setting, row.value_a, row.value_b) for row in answer.settings],
        is_markdown=is_markdown,
    )
    parts = [f"Settings that differ\n{settings}" if answer.settings else "No setting differs"]
    parts.append(_constants(answer.constants, limit, is_markdown) if answer.constants else "No constant differs")
    if explanation is None:
        parts.append("A run was refused: there is no energy to compare")
        return "\n\n".join(parts)
    parts += [
        draw_head(explanation),
        f"What moved the energy\n{draw_effects(explanation, is_markdown)}",
        f"Terms of the energy\n{draw_terms(explanation, limit, is_markdown)}",
        "What moved the latency\n"
        + draw_metric_terms("latency", answer.delays, explanation.total.latency_difference_fs, limit, is_markdown),
    ]
    return "\n\n".join(parts)


def _constants(constants: Sequence[Constant], limit: int, is_markdown: bool) -> str:
    rows = [
        (
            row.constant,
            show(row.value_a, "value"),
            show(row.value_b, "value"),
            row.unit,
            show(row.ratio, "ratio"),
            "" if row.moved_j is None else show_quantity(row.moved_j, "J"),
            row.basis_b or "",
            row.source_b or "",
        )
        for row in constants[:limit]
    ]
    table = draw_table(
        ("constant", "A", "B", "unit", "ratio", "moved", "basis B", "source B"), rows, is_markdown=is_markdown
    )
    rest = len(constants) - limit
    more = f"\nand {rest} more; --format json has all" if rest > 0 else ""
    moved = sum(row.moved_fj for row in constants if row.moved_fj is not None)
    return (
        f"Constants that differ\n{table}{more}\n\n"
        f"prices moved {moved:,} fJ in all, the effects price and static power; "
        "what other constants moved is in the counts and the time"
    )
