"""Tables that fit a terminal: columns fold away, or rows become blocks; no cell breaks inside a word."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

import tabulate

from joulemap.present.document import Block, Document, Grid, Lines, Steps

tabulate.MIN_PADDING = 0  # a heading is no wider than it is

GAP: Final = 2
"""Spaces between columns."""

MOST_TEXT: Final = 64
"""Characters beyond which a column of text is wrapped, however wide the terminal is."""

LEAST_TEXT: Final = 24
"""Characters that a column of text keeps when it is wrapped."""

MOST_BLOCKS: Final = 12
"""Rows that may become blocks; more of them would not be read."""


def write(document: Document, width: int | None) -> str:
    """Return the sections of a document in lines of at most `width`, as wide as they are where it is None."""
    parts = [document.title] if document.title else []
    for section in document.shown:
        text = ""
        for block in section.blocks:
            drawn = _block(block, width)
            if drawn:
                text += ("\n\n" if text else "") + drawn
        parts.append(f"{section.title}\n{text}" if section.title else text)
    return "\n\n".join(parts)


def _block(block: Block, width: int | None) -> str:
    if isinstance(block, Grid):
        return _fit(block, width) if block.texts else ""
    if isinstance(block, Lines):
        return "\n".join(_wrap(f"- {line}", width, "  ") for line in block.texts)
    if isinstance(block, Steps):
        return "\n".join(f"  {command}" for command in block.texts)
    return _wrap(block.text, width, "") if block.text else ""


def _wrap(text: str, width: int | None, indent: str) -> str:
    if width is None:
        return text
    if "\n" in text:
        return "\n".join(_wrap(line, width, indent) for line in text.split("\n"))
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _fit(block: Grid, width: int | None) -> str:
    """Return a table that is no wider than `width`: whole, with wrapped text, with fewer columns, or as blocks."""
    needed = [max(len(cells[index]) for cells in (block.headings, *block.rows)) for index in range(len(block.headings))]
    least = [_least(block, index, needed[index]) for index in range(len(needed))]
    needed = [max(fewest, min(most, MOST_TEXT)) for fewest, most in zip(least, needed, strict=True)]
    if width is None or _width(needed) <= width:
        return _draw(block, range(len(needed)), needed)
    kept = _fold(block, least, width)
    if len(kept) * 2 < len(needed) and len(block.rows) <= MOST_BLOCKS:
        return _blocks(block, width)
    folded = [heading or "#" for index, heading in enumerate(block.headings) if index not in kept]
    text = _draw(block, kept, _share_out(kept, needed, least, width))
    if folded:
        columns = f"{len(folded)} column{'' if len(folded) == 1 else 's'}"
        text += "\n" + _wrap(f"({columns} folded: {', '.join(folded)}; --wide shows all)", width, " ")
    return text


def _width(columns: Sequence[int]) -> int:
    return sum(columns) + GAP * (len(columns) - 1)


def _least(block: Grid, index: int, needed: int) -> int:
    """Return the fewest characters that a column can be wrapped to: its longest word, and not less than reads well."""
    words = (word for cells in (block.headings, *block.rows) for word in cells[index].split())
    longest = max(map(len, words), default=0)
    is_text = any(" " in cells[index].strip() and len(cells[index]) > LEAST_TEXT for cells in block.rows)
    return min(needed, max(longest, LEAST_TEXT)) if is_text and not block.is_tree else needed


def _fold(block: Grid, least: Sequence[int], width: int) -> list[int]:
    """Return the columns that fit: the first, then those to keep in their order, then from the left."""
    order = [0, *(block.headings.index(name) for name in block.keep if name in block.headings)]
    order += range(len(least))
    kept: list[int] = []
    for index in dict.fromkeys(order):
        if not kept or _width([*(least[one] for one in kept), least[index]]) <= width:
            kept.append(index)
    return sorted(kept)


def _share_out(kept: Sequence[int], needed: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the width of each column: the least, and for those that are wrapped what is left over."""
    widths = {index: least[index] for index in kept}
    left = width - _width([least[index] for index in kept])
    for index in kept:
        more = min(max(left, 0), needed[index] - least[index])
        widths[index] += more
        left -= more
    return [widths[index] for index in kept]


def _draw(block: Grid, kept: Sequence[int], widths: Sequence[int] | None) -> str:
    most = [None] * len(kept) if widths is None else widths
    return tabulate.tabulate(
        [[_wrap_cell(cells[index], one) for index, one in zip(kept, most, strict=True)] for cells in block.rows],
        headers=[block.headings[index] for index in kept],
        tablefmt="simple",
        disable_numparse=True,
        preserve_whitespace=block.is_tree,
    )


def _wrap_cell(cell: str, width: int | None) -> str:
    return cell if width is None or len(cell) <= width else _wrap(cell, width, "")


def _blocks(block: Grid, width: int) -> str:
    """Return each row as lines of heading and value."""
    name = max(map(len, block.headings[1:]), default=0)
    drawn = []
    for cells in block.rows:
        lines = [cells[0].strip() or block.headings[0]]
        lines += [
            _wrap(f"  {heading.ljust(name)}  {cell.strip()}", width, " " * (name + 4))
            for heading, cell in zip(block.headings[1:], cells[1:], strict=True)
            if cell.strip()
        ]
        drawn.append("\n".join(lines))
    return "\n\n".join(drawn)
