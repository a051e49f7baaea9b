"""Write tables that fit a terminal: columns fold or rows become blocks, and no cell breaks inside a word."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.table import Table
from joulemap.show.present.arrange import GAP, LEAST_TEXT, MOST_BLOCKS, MOST_TEXT, arrange, find_kept
from joulemap.show.present.cell import PROJECTION_MARK, PROJECTION_NOTE
from joulemap.show.present.document import BEST, STAR, Block, Document, Grid, Lines, Steps, Text, draw_columns
from joulemap.show.present.format import Page
from joulemap.show.present.text import END, count_cells, longest_line, longest_word, wrap, wrap_command
from joulemap.system.name import PROJECTED

if TYPE_CHECKING:
    from joulemap.show.present.draw.picture import Drawn
    from joulemap.show.present.picture import Picture

LABEL: Final = 7
"""Characters of a label at the left of a line, spaces included."""

MOST_TITLE: Final = 3
"""Maximum columns that identify a row if the table does not state its distinguishing columns."""

DIM, BOLD = "\x1b[2m", "\x1b[1m"
"""Escape sequences before the subject and the decision of an answer on a colour terminal."""

RANGE: Final = "├─●─┤ 80 % range"
"""Explanation of the intervals that a table draws."""

NO_DRAWN: Final[Mapping[int, Drawn]] = {}
NO_COLOURS: Final[Mapping[tuple[int, int], str]] = {}


def write(document: Document, page: Page) -> str:
    """Return the sections of a document in lines no wider than the page."""
    width = page.width
    sections = document.shown
    parts = [wrap(document.title, width)] if document.title else []
    if document.is_screen and document.answer:  # the decision comes first, then what it is about
        marks = (BOLD, DIM) if page.has_colour else ("", "")
        parts = ["\n".join(map(_paint, (wrap(document.answer, width), *parts), marks))]
        sections = sections[1:]
    explained = not document.is_screen  # the first table with marked hardware says what the mark means
    for section in sections:
        between = "\n" if section.is_tight else "\n\n"
        texts = []
        for block in section.blocks:
            explains = not explained and isinstance(block, Grid) and block.is_marked
            texts.append(_block(block, page, mark=PROJECTION_MARK if explains else ""))
            explained = explained or explains
        text = between.join(filter(None, texts))
        parts.append(f"{wrap(section.title, width)}\n{text}" if section.title else text)
    return "\n\n".join(parts)


def _block(block: Block, page: Page, *, mark: str = "") -> str:
    width = page.width
    if isinstance(block, Grid):
        return _fit(block, page, mark=mark) if block.texts else ""
    if isinstance(block, Lines) and block.label:
        return "\n".join(
            wrap(f"{block.label if not index else '':{LABEL}}{line}", width, " " * LABEL)
            for index, line in enumerate(block.texts)
        )
    if isinstance(block, Lines):
        marks = [f"{index}." if block.is_numbered else "-" for index in range(1, len(block.texts) + 1)]
        return "\n".join(
            wrap(f"{mark} {line}", width, " " * (len(mark) + 1)) for mark, line in zip(marks, block.texts, strict=True)
        )
    if isinstance(block, Steps):
        margin = " " * (LABEL if block.label else 2)
        first = f"{block.label:{len(margin)}}"
        # other shells than those of POSIX do not join lines at a backslash
        room = width - len(margin) if width is not None and os.name == "posix" else None
        commands = [wrap_command(one, room).replace("\n", f"\n{margin}") for one in block.texts]
        return "\n".join(f"{margin if index else first}{one}" for index, one in enumerate(commands))
    if isinstance(block, Text):
        return wrap(block.text, width)
    from joulemap.show.present.draw.sketch import draw_sketch

    return draw_sketch(block, page)


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
        first, arranged = block, arrange(block, width)
        if arranged is None:
            yield _blocks(block, width or 0)
            continue
        kept, widths = list(arranged[0]), arranged[1]
        text = _draw(block, kept, widths)
        height = max(wrap(block.headings[index], size).count("\n") for index, size in zip(kept, widths, strict=True))
        sizes = [len(rule) for rule in text.splitlines()[height + 1].split()]
        yield text
    if first is None:
        yield _fit(draw_columns(head), page)
    elif kept:
        yield _describe_folded(first, kept, width)
    yield f"\n\n{wrap(PROJECTION_NOTE, width)}" if is_marked else ""


def _draw_more(
    block: Grid, kept: Sequence[int], sizes: Sequence[int], numbers: frozenset[int], room: int
) -> Iterator[str]:
    """Yield the lines of further rows for a table that is already begun, with its column widths `sizes`.

    A cell wraps if it is longer than both its column and `room`.
    """
    for cells in block.rows:
        wrapped = [_wrap_cell(cells[index], max(size, room)) for index, size in zip(kept, sizes, strict=True)]
        yield from _pad(wrapped, kept, sizes, numbers)


def _fit(grid: Grid, page: Page, *, mark: str = "") -> str:
    """Fit a table into the page: whole, with wrapped text, with fewer columns and pictures, or as blocks. `mark`
    explains marked hardware below it.
    """
    width, block = page.width, grid.marked(STAR if page.has_colour else BEST)
    below = f"\n{wrap(f'({block.cut_text})', width, ' ')}" if block.cut else ""
    widened, pictures = _insert_pictures(block)
    arranged = arrange(widened, width, pictures)
    if arranged is None:
        return _blocks(block, width or 0) + (f"\n{wrap(f'({mark})', width, ' ')}" if mark else "") + below
    kept, widths = arranged
    drawn = _draw_pictures(grid, pictures, dict(zip(kept, widths, strict=True)), page) if pictures else {}
    if any(pictures[column].kind == "interval" for column in drawn):
        mark = f"{RANGE}; {mark}" if mark else RANGE
    colours = _find_colours(grid, pictures) if page.has_colour else NO_COLOURS
    return (
        _draw(widened, kept, widths, drawn, colours)
        + _describe_folded(widened, {*kept, *pictures}, width, mark)
        + below
    )


def _find_colours(grid: Grid, pictures: Collection[int]) -> dict[tuple[int, int], str]:
    """Return the colours of cells, by row and column of the widened table: green for the best and what ties with it,
    dim for rows of hardware that cannot be had.
    """
    from joulemap.show.present.palette import begin_colour

    count = len(grid.headings) + len(pictures)
    columns = [index for index in range(count) if index not in pictures]
    away = [row for row, cells in enumerate(grid.rows) if cells[0].startswith(PROJECTED)]
    dim = {(row, column): DIM for row in away for column in columns}
    return dim | {(row, columns[index]): begin_colour("better") for row, index in (*grid.best, *grid.tied)}


def _insert_pictures(block: Grid) -> tuple[Grid, dict[int, Picture]]:
    """Return the table with an empty column for each of its pictures, and the pictures by column."""
    pictures: dict[int, Picture] = {}
    wanted = [one for one in block.pictures if one.is_drawn and one.after in block.headings]
    headings, rows = list(block.headings), [list(cells) for cells in block.rows]
    for picture in wanted:
        index = headings.index(picture.after) + 1
        pictures = {column + (column >= index): one for column, one in pictures.items()} | {index: picture}
        headings.insert(index, f"{picture.after}: {picture.kind}")
        for cells in rows:
            cells.insert(index, "")
    if not pictures:
        return block, {}
    return attrs.evolve(block, headings=headings, rows=rows, pictures=(), best=frozenset(), tied=frozenset()), pictures


def _draw_pictures(
    grid: Grid, pictures: Mapping[int, Picture], widths: Mapping[int, int], page: Page
) -> dict[int, Drawn]:
    """Return the drawings of the pictures that have room, by column of the widened table."""
    from joulemap.show.present.draw.picture import draw_picture

    drawn = {}
    for column, picture in pictures.items():
        if column in widths:
            best = grid.find_best(picture)
            drawn[column] = draw_picture(picture, widths[column], best=best, has_colour=page.has_colour)
    return drawn


def _describe_folded(block: Grid, kept: Collection[int], width: int | None, mark: str = "") -> str:
    folded = [block.headings[index] or "#" for index in range(len(block.headings)) if index not in kept]
    if not folded:
        return f"\n({mark})" if mark else ""
    count = f"{len(folded)} column{'' if len(folded) == 1 else 's'}"
    between = "; " if any("," in name for name in folded) else ", "
    end = f"--show wide shows all{f'; {mark}' if mark else ''}"
    note = f"({count} folded: {between.join(folded)}; {end})"
    while width is not None and len(note) > width and len(folded) > 1:
        folded.pop()
        note = f"({count} folded: {between.join(folded)}{between}…; {end})"
    return "\n" + wrap(note, width, " ")


def _draw(
    block: Grid,
    kept: Sequence[int],
    widths: Sequence[int],
    drawn: Mapping[int, Drawn] = NO_DRAWN,
    colours: Mapping[tuple[int, int], str] = NO_COLOURS,
) -> str:
    columns = list(zip(kept, widths, strict=True))
    headings = [
        drawn[index].heading if index in drawn else wrap(block.headings[index], width) for index, width in columns
    ]
    height = max((heading.count("\n") for heading in headings), default=0)
    rows = [
        ["\n" * (height - heading.count("\n")) + heading for heading in headings],
        *(
            [
                drawn[index].rows[row]
                if index in drawn
                else _paint(_wrap_cell(cells[index], width), colours.get((row, index), ""))
                for index, width in columns
            ]
            for row, cells in enumerate(block.rows)
        ),
    ]
    longest = [
        max(count_cells(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)
    ]
    sizes = [len(drawn[index].rule) if index in drawn else size for index, size in zip(kept, longest, strict=True)]
    heads, *others = [_pad(cells, kept, sizes, block.numbers) for cells in rows]
    rule = (" " * GAP).join(
        drawn[index].rule if index in drawn else "-" * size for index, size in zip(kept, sizes, strict=True)
    )
    return "\n".join([*heads, rule, *(line for lines in others for line in lines)])


def _pad(cells: Sequence[str], kept: Sequence[int], sizes: Sequence[int], numbers: frozenset[int]) -> list[str]:
    """Pad the lines of a row to these column sizes; numbers are right-aligned."""

    def fill(text: str, index: int, size: int) -> str:
        blank = " " * (size - count_cells(text))
        return f"{blank}{text}" if index in numbers else f"{text}{blank}"

    return [
        (" " * GAP).join(map(fill, line, kept, sizes)).rstrip()
        for line in zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
    ]


def _paint(cell: str, colour: str) -> str:
    """Return a cell with each of its lines in a colour."""
    return "\n".join(f"{colour}{line}{END}" for line in cell.split("\n")) if colour and cell else cell


def _wrap_cell(cell: str, width: int) -> str:
    if longest_line([cell]) <= width:
        return cell
    lead = " " * (len(cell) - len(cell.lstrip(" ")))
    return wrap(cell, width, lead)


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
        lines = [wrap(", ".join(_name_cell(block, index, cells) for index in title if cells[index].strip()), width)]
        for index in rest:
            value = cells[index].strip()
            if value:
                longest = longest_word([value])
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
    return wrap(name, width) + (f"\n  {wrap(values, width - GAP, ' ' * GAP)}" if values else "")


def _hang(value: str, width: int, indent: int, heading: str = "") -> str:
    return heading.ljust(indent) + wrap(value, width - indent).replace("\n", "\n" + " " * indent)


def _find_title(block: Grid) -> list[int]:
    """Return the columns that identify a row: the stated ones, else the first columns that make rows distinct."""
    if block.distinguishing:
        return [index for index, name in enumerate(block.headings) if not index or name in block.distinguishing]
    title: list[int] = []
    for index in dict.fromkeys((0, *find_kept(block), *range(len(block.headings)))):
        title.append(index)
        is_distinct = len({tuple(cells[one] for one in title) for cells in block.rows}) == len(block.rows)
        if (is_distinct and not all(one in block.numbers for one in title)) or len(title) == MOST_TITLE:
            break
    return title


def _name_cell(block: Grid, index: int, cells: Sequence[str]) -> str:
    cell = cells[index].strip()
    return f"{block.headings[index]} {cell}".strip() if index in block.numbers else cell
