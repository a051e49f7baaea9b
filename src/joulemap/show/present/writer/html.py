"""Write HTML: the decision, then every section with all columns; all texts are escaped and no scripts run.

A file of its own has the style of a report; a notebook gets the same content as part of its page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from joulemap.domain.table import Table
from joulemap.show.present.cell import PROJECTION_MARK, PROJECTION_NOTE, show_count
from joulemap.show.present.document import NEXT, TRUST, Block, Document, Grid, Text, draw_columns
from joulemap.show.present.format import Page
from joulemap.system.frame import escape, make_cells, make_table

MORE: Final = "More"
"""Text that opens a section without a title."""


def write(document: Document, page: Page) -> str:
    """Return a document as HTML: a page if it is a file of its own, otherwise its sections for another page."""
    if page.is_whole:
        return _write_page(document)
    parts = [f"<h3>{escape(document.answer)}</h3>"] if document.answer else []
    parts += [f"<p>{escape(document.title)}</p>"] if document.title else []
    for section in document.supporting:
        parts += [f"<h4>{escape(section.title)}</h4>"] if section.title else []
        parts += filter(None, map(_block, section.blocks))
    return "\n".join(["<div>", *parts, "</div>"])


def _write_page(document: Document) -> str:
    """Return a page: the decision, its subject, the tables, reasons, trust and next commands; the rest is folded."""
    from joulemap.show.present.hypertext import frame, write_block, write_fold, write_labelled, write_list

    parts = [f'<h1 class="decision">{escape(document.answer)}</h1>'] if document.answer else []
    tag = 'p class="kicker"' if document.answer else "h1"
    parts += [f"<{tag}>{escape(document.title)}</{tag.split()[0]}>"] if document.title else []
    for section in document.sections:
        parts += [f"<h2>{escape(section.title)}</h2>"] if section.title and section.texts else []
        parts += filter(None, map(write_block, section.blocks))
    if any(isinstance(block, Grid) and block.is_marked for section in document.sections for block in section.blocks):
        parts.append(f"<p>{escape(PROJECTION_MARK)}</p>")
    label = document.reason_label
    parts.append("" if label else write_list(document.insights))
    reasons = (label, document.insights if label else ())
    parts.append(
        write_labelled((reasons, (TRUST, (document.sure,) if document.sure else ()), (NEXT, document.steps[:1])))
    )
    parts += [
        write_fold(section.title or MORE, "\n".join(filter(None, map(write_block, section.blocks))))
        for section in document.details
        if section.texts
    ]
    if document.notes:
        notes = show_count(len(document.notes), "note")
        parts.append(write_fold(notes, write_list(document.notes, is_numbered=True)))
    return frame(
        document.answer or document.title or "joulemap", "\n".join(["<main>", *filter(None, parts), "</main>"])
    ).rstrip("\n")


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:
    """Yield the text of one HTML table in pieces: a page if it is a file of its own, otherwise a part of another."""
    begin, close = "<div>\n", "\n</div>"
    if page.is_whole:
        from joulemap.show.present.hypertext import frame

        begin, close = frame(head.title or "joulemap", "<main>\n\0\n</main>").rstrip("\n").split("\0")
    first: Grid | None = None
    end = "</tbody></table>"
    is_marked = False
    for batch in filter(None, batches):
        block = draw_columns(head.with_rows(batch))
        is_marked = is_marked or block.is_marked
        if first is None:
            first = block
            yield f"{begin}{_block(block)}".removesuffix(end)
        else:
            yield "".join(f"<tr>{make_cells(row, first.numbers)}</tr>\n" for row in block.rows)
    yield end if first else f"{begin}{_block(draw_columns(head))}"
    yield (f"\n{_block(Text(PROJECTION_NOTE))}" if is_marked else "") + close


def _block(block: Block) -> str:
    if isinstance(block, Grid):
        below = f"<p>{escape(block.cut_text)}</p>" if block.cut else ""
        return make_table(block.headings, block.marked().rows, block.numbers) + below if block.texts else ""
    from joulemap.show.present.hypertext import write_block

    return write_block(block)
