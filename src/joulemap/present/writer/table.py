"""Write tables that fit a terminal: columns fold or rows become blocks, and no cell breaks inside a word."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final
from unicodedata import combining, east_asian_width

import attrs

from joulemap.domain.table import Table
from joulemap.present.cell import PROJECTION_NOTE
from joulemap.present.document import BEST, SHORT_TEXT, STAR, Block, Document, Grid, Lines, Steps, Text, draw_columns
from joulemap.present.format import Page

GAP: Final = 2
"""Spaces between columns."""

LABEL: Final = 7
"""Characters of a label at the left of a line, spaces included."""

MOST_TEXT: Final = 64
"""Maximum characters per line of a text column; longer texts wrap even if the terminal is wider."""

LEAST_TEXT: Final = 20
"""Minimum characters of a wrapped text column."""

MOST_BLOCKS: Final = 4
"""Maximum rows shown as blocks with one line per column; more rows become one paragraph each."""

MOST_TITLE: Final = 3
"""Maximum columns that identify a row if the table does not state its distinguishing columns."""

LEAST_KEPT: Final = 2
"""Number of preferred columns that must fit; otherwise a table with few rows is shown as blocks."""

UNIT: Final = re.compile(
    r"(?<=\d) (?=(?:%|[yzafpnµmkMGTPE]?(?:J|Js|s|W|B|b|bit|Hz|g|kg|m|V|A|USD|ops|Tops)(?:/\S+)?)(?!\w))"
)
"""Pattern of the space between a number and its unit, which a table makes non-breaking."""

HARD_SPACE: Final = "\N{NO-BREAK SPACE}"


def write(document: Document, page: Page) -> str:
    """Return the sections of a document in lines no wider than the page."""
    width = page.width
    sections = document.shown
    parts = [_wrap(document.title, width)] if document.title else []
    if document.is_screen and document.answer:  # the decision comes first, then what it is about
        parts = ["\n".join((_wrap(document.answer, width), *parts))]
        sections = sections[1:]
    for section in sections:
        between = "\n" if section.is_tight else "\n\n"
        text = between.join(filter(None, (_block(block, page) for block in section.blocks)))
        parts.append(f"{_wrap(section.title, width)}\n{text}" if section.title else text)
    return "\n\n".join(parts)


def _block(block: Block, page: Page) -> str:
    width = page.width
    if isinstance(block, Grid):
        return _fit(block.marked(STAR if page.has_colour else BEST), width) if block.texts else ""
    if isinstance(block, Lines) and block.label:
        return "\n".join(
            _wrap(f"{block.label if not index else '':{LABEL}}{line}", width, " " * LABEL)
            for index, line in enumerate(block.texts)
        )
    if isinstance(block, Lines):
        marks = [f"{index}." if block.is_numbered else "-" for index in range(1, len(block.texts) + 1)]
        return "\n".join(
            _wrap(f"{mark} {line}", width, " " * (len(mark) + 1)) for mark, line in zip(marks, block.texts, strict=True)
        )
    if isinstance(block, Steps):
        room = LABEL if block.label else 2
        return "\n".join(f"{block.label if not index else '':{room}}{one}" for index, one in enumerate(block.texts))
    if isinstance(block, Text):
        return _wrap(block.text, width)
    from joulemap.present.draw.sketch import draw_sketch

    return draw_sketch(block, page)


def _wrap(text: str, width: int | None, indent: str = "") -> str:
    """Wrap a text to lines of at most `width`, except for longer words; a number stays with its unit."""
    if width is None:
        return text
    return "\n".join(
        textwrap.fill(
            UNIT.sub(HARD_SPACE, line),
            max(width, 1),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace(HARD_SPACE, " ")
        for line in text.splitlines()
    )


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in re.split(r"[ \t\n]+", UNIT.sub(HARD_SPACE, text))), default=0)


def _longest_line(texts: Iterable[str]) -> int:
    return max((len(line) for text in texts for line in text.splitlines()), default=0)


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:
    """Yield one table in pieces; column widths are those of the first batch, and longer cells of later batches stick
    out.
    """
    width, kept, sizes = page.width, list[int](), list[int]()
    first: Grid | None = None
    is_marked = False
    for batch in filter(None, batches):
        block = draw_columns(attrs.evolve(head, rows=tuple(batch)))
        is_marked = is_marked or block.is_marked
        if first is not None:
            yield "".join(
                f"\n{line}" for line in _draw_more(block, kept, sizes, first.numbers, MOST_TEXT if width is None else 0)
            )
            continue
        first, arranged = block, _arrange(block, width)
        if arranged is None:
            yield _blocks(block, width or 0)
            continue
        kept, widths = list(arranged[0]), arranged[1]
        text = _draw(block, kept, widths)
        height = max(_wrap(block.headings[index], size).count("\n") for index, size in zip(kept, widths, strict=True))
        sizes = [len(rule) for rule in text.splitlines()[height + 1].split()]
        yield text
    if first is None:
        yield _fit(draw_columns(head), width)
    elif kept:
        yield _describe_folded(first, kept, width)
    yield f"\n\n{_wrap(PROJECTION_NOTE, width)}" if is_marked else ""


def _draw_more(
    block: Grid, kept: Sequence[int], sizes: Sequence[int], numbers: frozenset[int], room: int
) -> Iterator[str]:
    """Yield the lines of further rows for a table that is already begun, with its column widths `sizes`.

    A cell wraps if it is longer than both its column and `room`.
    """
    for cells in block.rows:
        wrapped = [_wrap_cell(cells[index], max(size, room)) for index, size in zip(kept, sizes, strict=True)]
        yield from _pad(wrapped, kept, sizes, numbers)


def _fit(block: Grid, width: int | None) -> str:
    """Fit a table into `width`: whole, with wrapped text, with fewer columns, or as blocks."""
    arranged = _arrange(block, width)
    below = f"\n{_wrap(f'({block.cut_text})', width, ' ')}" if block.cut else ""
    if arranged is None:
        return _blocks(block, width or 0) + below
    kept, widths = arranged
    return _draw(block, kept, widths) + _describe_folded(block, kept, width) + below


def _describe_folded(block: Grid, kept: Sequence[int], width: int | None) -> str:
    folded = [block.headings[index] or "#" for index in range(len(block.headings)) if index not in kept]
    if not folded:
        return ""
    count = f"{len(folded)} column{'' if len(folded) == 1 else 's'}"
    between = "; " if any("," in name for name in folded) else ", "
    note = f"({count} folded: {between.join(folded)}; --wide shows all)"
    while width is not None and len(note) > width and len(folded) > 1:
        folded.pop()
        note = f"({count} folded: {between.join(folded)}{between}…; --wide shows all)"
    return "\n" + _wrap(note, width, " ")


def _arrange(block: Grid, width: int | None) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the columns to draw and their widths; None if the table is easier to read as blocks."""
    columns = range(len(block.headings))
    least = [_least(block, index, width) for index in columns]
    needed = [
        max(_longest_line([block.headings[index]]), least[index], min(_longest_line(block.column(index)), MOST_TEXT))
        for index in columns
    ]
    if width is None or _width(needed) <= width:
        return columns, needed
    kept = _fold(block, least, width)
    if len(kept) < len(columns) and (not set(block.fixed) <= set(kept) or _reads_as_blocks(block, kept)):
        return None
    return kept, _share_out(kept, needed, least, width)


def _width(columns: Sequence[int]) -> int:
    return sum(columns) + GAP * (len(columns) - 1)


def _least(block: Grid, index: int, width: int | None) -> int:
    """Return the minimum width of a column: its longest cell, or for text that can wrap its longest word.

    Such text gets at least `LEAST_TEXT` characters if a cell is that long.
    """
    cells = block.column(index)
    whole = _longest_line(cells)
    is_text = any(" " in cell.strip() and len(cell) > SHORT_TEXT for cell in cells)
    if is_text and not (block.is_tree and index == 0 and (width is None or whole <= width)):
        whole = min(whole, max(_longest_word(cells), LEAST_TEXT))
    return max(whole, _longest_word([block.headings[index]]))


def _fold(block: Grid, least: Sequence[int], width: int) -> list[int]:
    """Return the columns that fit into `width`: fixed columns first, then columns to keep, then the others from the
    left.
    """
    kept = [0]
    rest = sorted(range(len(least)), key=lambda index: not any(block.column(index)))  # empty columns come last
    for index in dict.fromkeys((*block.fixed, *_keep(block), *rest)):
        if index and _width([*(least[one] for one in kept), least[index]]) <= width:
            kept.append(index)
    return sorted(kept)


def _keep(block: Grid) -> list[int]:
    return [block.headings.index(name) for name in block.keep if name in block.headings]


def _reads_as_blocks(block: Grid, kept: Sequence[int]) -> bool:
    """Return whether a table that lost columns is easier to read as blocks: it has few rows and lost main columns."""
    ranked = [block.headings.index(name) for name in block.ranked if name in block.headings]
    matters = (ranked or _keep(block))[:LEAST_KEPT]
    says_enough = all(index in kept for index in matters) if matters else len(kept) * 2 >= len(block.headings)
    return (len(block.rows) == 1 and not matters) or (len(block.rows) <= MOST_BLOCKS and not says_enough)


def _share_out(kept: Sequence[int], needed: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the width of each kept column. Columns that lack least get the remaining width first."""
    widths = {index: least[index] for index in kept}
    left = width - _width([least[index] for index in kept])
    for index in sorted(kept, key=lambda index: needed[index] - least[index]):
        more = min(max(left, 0), needed[index] - least[index])
        widths[index] += more
        left -= more
    return [widths[index] for index in kept]


def _draw(block: Grid, kept: Sequence[int], widths: Sequence[int]) -> str:
    columns = list(zip(kept, widths, strict=True))
    headings = [_wrap(block.headings[index], width) for index, width in columns]
    height = max((heading.count("\n") for heading in headings), default=0)
    rows = [
        ["\n" * (height - heading.count("\n")) + heading for heading in headings],
        *([_wrap_cell(cells[index], width) for index, width in columns] for cells in block.rows),
    ]
    sizes = [max(_width_of(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]
    heads, *others = [_pad(cells, kept, sizes, block.numbers) for cells in rows]
    rule = (" " * GAP).join("-" * size for size in sizes)
    return "\n".join([*heads, rule, *(line for lines in others for line in lines)])


def _pad(cells: Sequence[str], kept: Sequence[int], sizes: Sequence[int], numbers: frozenset[int]) -> list[str]:
    """Pad the lines of a row to these column sizes; numbers are right-aligned."""
    return [
        (" " * GAP)
        .join(
            f"{' ' * (size - _width_of(text))}{text}" if index in numbers else f"{text}{' ' * (size - _width_of(text))}"
            for text, index, size in zip(line, kept, sizes, strict=True)
        )
        .rstrip()
        for line in zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
    ]


def _width_of(text: str) -> int:
    """Return the number of terminal columns of a line: two for a wide character, none for a combining character."""
    if text.isascii():
        return len(text)
    return sum((east_asian_width(one) in "WF") + 1 for one in text if not combining(one))


def _wrap_cell(cell: str, width: int) -> str:
    if _longest_line([cell]) <= width:
        return cell
    lead = " " * (len(cell) - len(cell.lstrip(" ")))
    return _wrap(cell, width, lead)


def _blocks(block: Grid, width: int) -> str:
    """Format each row as a block: its name, then a line of heading and value per column.

    If there are many rows, each becomes a paragraph instead.
    """
    title = _find_title(block)
    rest = [index for index in range(len(block.headings)) if index not in title]
    if len(block.rows) > MOST_BLOCKS:
        return "\n".join(_write_paragraph(block, title, rest, cells, width) for cells in block.rows)
    name = max((len(block.headings[index]) for index in rest), default=0)
    room = width - name - 2 * GAP
    drawn = []
    for cells in block.rows:
        lines = [_wrap(", ".join(_name_cell(block, index, cells) for index in title if cells[index].strip()), width)]
        for index in rest:
            value = cells[index].strip()
            if value:
                longest = _longest_word([value])
                if len(value) <= room or (room >= LEAST_TEXT and longest <= room):
                    lines.append(_hang(value, width, name + 2 * GAP, f"  {block.headings[index]}"))
                else:
                    lines.append(_hang(block.headings[index], width, GAP))
                    lines.append(_hang(value, width, max(0, min(2 * GAP, width - longest))))
        drawn.append("\n".join(lines))
    return "\n\n".join(drawn)


def _write_paragraph(block: Grid, title: Sequence[int], rest: Sequence[int], cells: Sequence[str], width: int) -> str:
    """Format a row as its name, followed by all other values with their headings."""
    name = ", ".join(_name_cell(block, index, cells) for index in title if cells[index].strip())
    values = "; ".join(f"{block.headings[index]} {cells[index].strip()}" for index in rest if cells[index].strip())
    return _wrap(name, width) + (f"\n  {_wrap(values, width - GAP, ' ' * GAP)}" if values else "")


def _hang(value: str, width: int, indent: int, heading: str = "") -> str:
    return heading.ljust(indent) + _wrap(value, width - indent).replace("\n", "\n" + " " * indent)


def _find_title(block: Grid) -> list[int]:
    """Return the columns that identify a row: the stated ones, else the first columns that make rows distinct."""
    if block.distinguishing:
        return [index for index, name in enumerate(block.headings) if not index or name in block.distinguishing]
    title: list[int] = []
    for index in dict.fromkeys((0, *_keep(block), *range(len(block.headings)))):
        title.append(index)
        is_distinct = len({tuple(cells[one] for one in title) for cells in block.rows}) == len(block.rows)
        if (is_distinct and not all(one in block.numbers for one in title)) or len(title) == MOST_TITLE:
            break
    return title


def _name_cell(block: Grid, index: int, cells: Sequence[str]) -> str:
    cell = cells[index].strip()
    return f"{block.headings[index]} {cell}".strip() if index in block.numbers else cell
