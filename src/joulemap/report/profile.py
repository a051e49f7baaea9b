"""A model's profile: totals, operation mix, fusion patterns."""

from __future__ import annotations

import attrs

from joulemap.domain.answer.model import OperationShare
from joulemap.present.cell import heading, show_in
from joulemap.query.answer import ProfileAnswer
from joulemap.report.format import Format
from joulemap.report.render import draw_table, render_answer, write_csv, write_json

SHOWN = 12
"""Operations and patterns that people see; programs get all."""


def render_profile(answer: ProfileAnswer, form: Format) -> str:
    """Return the profile; csv holds the operation mix."""
    if form is Format.JSON:
        return write_json(
            {
                **attrs.asdict(answer.profile),
                "mix": [attrs.asdict(row) for row in answer.mix],
                "patterns": [attrs.asdict(row) for row in answer.patterns],
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(OperationShare)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.mix])
    total, mix, patterns = answer.answers
    is_markdown = form is Format.MARKDOWN
    facts = [
        (heading(column), show_in(column, value)) for column, value in zip(total.columns, total.rows[0], strict=True)
    ]
    sections = [draw_table(("quantity", "value"), facts, is_markdown=is_markdown)]
    for shown in (mix, patterns):
        text = render_answer(attrs.evolve(shown, rows=shown.rows[:SHOWN]), form)
        rest = len(shown.rows) - SHOWN
        sections.append(f"{text}\n{f'and {rest} more; --format json has all' if rest > 0 else ''}".rstrip())
    return "\n\n".join(sections)
