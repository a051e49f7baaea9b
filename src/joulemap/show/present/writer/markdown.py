"""Write Markdown: every section with all columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import tabulate

from joulemap.domain.table import Table
from joulemap.show.present.cell import PROJECTION_NOTE
from joulemap.show.present.document import Block, Document, Grid, Lines, Steps, Text, draw_columns
from joulemap.show.present.format import Page
from joulemap.show.present.text import HARD_SPACE

tabulate.MIN_PADDING = 0  # headings keep their own width

_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
"""Start of an HTML tag."""


def write(document: Document, page: Page) -> str:  # noqa: ARG001
    """Return a document as Markdown: the decision as its title, what it is about, then all sections."""
    titles = list(filter(None, (document.answer, document.title)))
    parts = [f"{'# ' if not index else ''}{_plain(one)}" for index, one in enumerate(titles)]
    for section in document.supporting:
        text = "\n\n".join(filter(None, map(_block, section.blocks)))
        parts.append(f"## {_plain(section.title)}\n\n{text}" if section.title else text)
    return "\n\n".join(parts)


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:  # noqa: ARG001
    """Yield one Markdown table in pieces; column widths are those of the first batch."""
    sides: list[tuple[int, bool]] = []
    is_marked = False
    for batch in filter(None, batches):
        block = draw_columns(head.with_rows(batch))
        is_marked = is_marked or block.is_marked
        if sides:
            yield "".join(
                f"\n| {' | '.join(_pad(cell, *side) for cell, side in zip(row, sides, strict=True))} |"
                for row in _cells(block)
            )
        else:
            text = _block(block)
            rule = text.splitlines()[1].strip("|").split("|")
            sides = [(len(part) - 2, index in block.numbers) for index, part in enumerate(rule)]
            yield text
    if not sides:
        yield _block(draw_columns(head))
    yield f"\n\n{PROJECTION_NOTE}" if is_marked else ""


def _pad(cell: str, width: int, is_number: bool) -> str:
    return cell.rjust(width) if is_number else cell.ljust(width)


def _block(block: Block) -> str:
    if isinstance(block, Grid):
        if not block.texts:
            return ""
        columns = list(_list_columns(block))
        table = tabulate.tabulate(
            list(zip(*(cells for _, _, cells in columns), strict=True)),
            headers=[heading for heading, _, _ in columns],
            tablefmt="pipe",
            disable_numparse=True,
            colalign=[side for _, side, _ in columns],
        )
        return table + (f"\n\n{_plain(block.cut_text)}" if block.cut else "")
    if isinstance(block, Lines):
        return "\n".join(
            f"{f'{index}.' if block.is_numbered else '-'} {_plain(line)}" for index, line in enumerate(block.texts, 1)
        )
    if isinstance(block, Steps):
        return "\n".join(f"- {_code(command)}" for command in block.texts)
    if isinstance(block, Text):
        return _plain(block.text)
    from joulemap.show.present.draw.sketch import draw_sketch

    drawn = draw_sketch(block, Page())
    if not drawn:
        return ""
    fence = _fence(drawn, 3)
    return f"{fence}text\n{drawn}\n{fence}"


def _plain(text: str) -> str:
    """Escape a text so that rendered Markdown contains no HTML, links or images from it."""
    return _TAG.sub("&lt;", text).replace("](", "]\\(")


def _code(text: str) -> str:
    """Return a text as inline code, whatever characters it contains."""
    fence, gap = _fence(text, 1), " " if "`" in text else ""
    return f"{fence}{gap}{text}{gap}{fence}"


def _fence(text: str, least: int) -> str:
    """Return at least `least` backticks, and more than any run of backticks in the text."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _list_columns(block: Grid) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield heading, alignment and cells of each column, with the pictures of a column after it."""
    from joulemap.show.present.draw.picture import draw_picture

    cells = _cells(block.marked())
    for index, heading in enumerate(block.headings):
        yield _cell(heading), "right" if index in block.numbers else "left", [row[index] for row in cells]
        for picture in block.pictures:
            if picture.is_drawn and picture.after == heading:
                drawn = draw_picture(picture, picture.cells[1])
                yield _draw(drawn.heading), "left", list(map(_draw, drawn.rows))


def _draw(line: str) -> str:
    """Return a line of a picture as inline code, in which leading spaces stay."""
    drawn = re.sub("[ \n]", HARD_SPACE, line)
    return f"`{drawn}`" if line.strip() else ""


def _cells(block: Grid) -> list[list[str]]:
    return [[_cell(cell, is_tree=block.is_tree) for cell in row] for row in block.rows]


def _cell(cell: str, *, is_tree: bool = False) -> str:
    """Escape a cell so that it stays in its row; in a tree, leading spaces are kept visible."""
    rest = cell.lstrip(" ") if is_tree else cell
    return "&nbsp;" * (len(cell) - len(rest)) + _plain(rest).replace("|", "\\|").replace("\n", "<br>")
