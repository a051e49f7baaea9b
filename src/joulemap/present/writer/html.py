"""Write HTML: every section with all columns, as part of a page; all texts are escaped and no scripts run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from joulemap.domain.table import Table
from joulemap.present.cell import PROJECTION_NOTE
from joulemap.present.document import Block, Document, Grid, Lines, Steps, Text, draw_columns
from joulemap.present.format import Page
from joulemap.system.frame import escape, make_cells, make_table


def write(document: Document, page: Page) -> str:  # noqa: ARG001
    """Return the sections of a document as HTML."""
    parts = [f"<h3>{escape(document.title)}</h3>"] if document.title else []
    for section in document.shown:
        parts += [f"<h4>{escape(section.title)}</h4>"] if section.title else []
        parts += filter(None, map(_block, section.blocks))
    return "\n".join(["<div>", *parts, "</div>"])


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:  # noqa: ARG001
    """Yield the text of one HTML table in pieces."""
    first: Grid | None = None
    end = "</tbody></table>"
    is_marked = False
    for batch in filter(None, batches):
        block = draw_columns(head.with_rows(batch))
        is_marked = is_marked or block.is_marked
        if first is None:
            first = block
            yield f"<div>\n{_block(block)}".removesuffix(end)
        else:
            yield "".join(f"<tr>{make_cells(row, first.numbers)}</tr>\n" for row in block.rows)
    yield end if first else f"<div>\n{_block(draw_columns(head))}"
    yield (f"\n<p>{escape(PROJECTION_NOTE)}</p>" if is_marked else "") + "\n</div>"


def _block(block: Block) -> str:
    if isinstance(block, Grid):
        below = f"<p>{escape(block.cut_text)}</p>" if block.cut else ""
        return make_table(block.headings, block.marked().rows, block.numbers) + below if block.texts else ""
    if isinstance(block, Lines):
        kind = "ol" if block.is_numbered else "ul"
        items = "".join(f"<li>{escape(line)}</li>" for line in block.texts)
        return f"<{kind}>{items}</{kind}>" if items else ""
    if isinstance(block, Steps):
        return f"<pre>{escape(chr(10).join(block.texts))}</pre>" if block.texts else ""
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>" if block.text else ""
    from joulemap.present.draw.sketch import draw_sketch

    drawn = draw_sketch(block, Page())
    return f"<pre>{escape(drawn)}</pre>" if drawn else ""
