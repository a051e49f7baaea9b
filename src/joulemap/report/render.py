"""Answers in the four formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from joulemap.domain.table import HARDWARE_COLUMNS
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, heading, mark_projected, plain, show_in, show_quantity
from joulemap.report.format import Format
from joulemap.store.query import Answer


def draw_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    is_markdown: bool = False,
    widths: Sequence[int | None] | None = None,
    keeps_indent: bool = False,
) -> str:
    """Return rows of text under their headings.

    `widths` says where columns wrap, but for markdown; with `keeps_indent` a cell may begin with spaces.
    """
    from tabulate import tabulate

    return tabulate(
        list(rows),
        headers=list(headings),
        tablefmt="github" if is_markdown else "simple",
        disable_numparse=True,
        maxcolwidths=None if is_markdown or widths is None else list(widths),
        preserve_whitespace=keeps_indent,
    )


def write_json(document: Any) -> str:
    """Return a document as JSON; non-finite numbers become null."""
    import json

    return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)


def write_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV with the numbers that JSON would show; null is an empty cell, a list is JSON."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_csv_cell(plain(value)) for value in row])
    return buffer.getvalue().rstrip("\n")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, float) else value


def render_answer(answer: Answer, form: Format, columns: Sequence[str] = ()) -> str:
    """Return an answer in a format; `columns` limits what people see, programs get all."""
    if form is Format.JSON:
        return write_json(answer.records())
    if form is Format.CSV:
        return write_csv(answer.names, answer.rows)
    names = answer.names
    amount, amount_unit = (names.index("value"), names.index("unit")) if {"value", "unit"} <= set(names) else (-1, -1)
    chosen = [
        index
        for index, column in enumerate(answer.columns)
        if (not columns or column.name in columns) and index != amount_unit
    ]
    headings = [heading(answer.columns[index]) for index in chosen]
    marked = {index for index in chosen if answer.columns[index].name in HARDWARE_COLUMNS}
    rows = [
        [
            mark_projected(row[index], answer.projected)
            if index in marked and row[index]
            else show_quantity(row[index], row[amount_unit])
            if index == amount and isinstance(row[index], float)
            else show_in(answer.columns[index], row[index])
            for index in chosen
        ]
        for row in answer.rows
    ]
    table = draw_table(headings, rows, is_markdown=form is Format.MARKDOWN)
    is_marked = any(
        cell.startswith(PROJECTED) for row in rows for cell, index in zip(row, chosen, strict=True) if index in marked
    )
    return f"{table}\n\n{PROJECTION_NOTE}" if is_marked else table
