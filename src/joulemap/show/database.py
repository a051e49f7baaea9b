"""Pages of a results database: its views and tables, and the faults that a check finds."""

from __future__ import annotations

from typing import Any, Final

from joulemap.ask.database import AuditAnswer, DatabaseAnswer
from joulemap.show.page import lay_rows
from joulemap.show.present.document import Block, Text
from joulemap.show.present.template import Template
from joulemap.show.shape import Part
from joulemap.show.sheet import Sheet

SOUND: Final = "ok: all rows are as they were written, and all parts add up"
ADVICE: Final = (
    "restore a copy of the database, or copy the intact runs into a new one (`joulemap db recover NEW`) and evaluate "
    "the others there"
)


def lay_findings(answer: AuditAnswer, _: Any) -> tuple[Block, ...]:
    """Return the broken rules with advice, or a line that there is none."""
    columns = "rule | run_id run_id | workload workload_id | location | expected | found"
    return lay_rows(answer, answer.findings, columns), Text(ADVICE if answer.findings else SOUND)


PAGES: Final = {
    DatabaseAnswer: Sheet(
        title=Template("{path}: schema {schema_version}, {size_bytes:B}"),
        parts=(
            Part(
                title="Views for `joulemap sql`",
                table="views",
                columns="view_name | column_count | *meaning",
            ),
            Part(
                title="Internal tables, which may change",
                table="content",
                columns="table_name | *row_count | column_count | *meaning",
            ),
        ),
        steps=("sql 'DESCRIBE runs'",),
        csv="content",
    ),
    AuditAnswer: Sheet(
        parts=(Part(table="tables", make=lay_findings),),
        csv="findings",
    ),
}
