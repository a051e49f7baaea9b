"""Pages of a results database: its views and tables, and the faults that a check finds."""

from __future__ import annotations

from typing import Final

from joulemap.ask.database import AuditAnswer, DatabaseAnswer
from joulemap.generated.audit import Finding
from joulemap.generated.database import StoredTable, StoredView
from joulemap.show.column import lay_columns, show_table
from joulemap.show.page import Asked, Page, compose
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.template import Template

SOUND: Final = "ok: all rows are as they were written, and all parts add up"
ADVICE: Final = (
    "restore a copy of the database, or copy the intact runs into a new one (`joulemap db recover NEW`) and evaluate "
    "the others there"
)


VIEWS: Final = "Views for `joulemap sql`"
INTERNAL: Final = "Internal tables, which may change"
SIZE: Final = Template("{path}: schema {schema_version}, {size_bytes:B}")


def draw_database(answer: DatabaseAnswer, _asked: Asked) -> Document:
    """Return the document of a database: its views and tables."""
    return compose(
        answer,
        show_table(answer, VIEWS, answer.views, StoredView.table),
        answer.content,
        title=SIZE(answer),
        details=show_table(answer, INTERNAL, answer.content, StoredTable.table),
        steps=[["sql", "DESCRIBE runs"]],
    )


def draw_audit(answer: AuditAnswer, _asked: Asked) -> Document:
    """Return the document of broken rules with advice, or of a line that there is none."""
    broken = lay_columns(answer, answer.findings, Finding.table)
    return compose(answer, [Section("", (broken, Text(ADVICE if answer.findings else SOUND)))], answer.findings)


PAGES: Final = {
    DatabaseAnswer: Page[DatabaseAnswer](draw=draw_database),
    AuditAnswer: Page[AuditAnswer](draw=draw_audit),
}
