"""Arrange the columns of a table on a page: which fit, how wide they are, and whether rows are better as blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.show.present.document import SHORT_TEXT, Grid
from joulemap.show.present.text import longest_line, longest_word

if TYPE_CHECKING:
    from joulemap.show.present.picture import Picture

GAP: Final = 2
"""Spaces between columns."""

MOST_TEXT: Final = 64
"""Maximum characters per line of a text column; longer texts wrap even if the terminal is wider."""

LEAST_TEXT: Final = 20
"""Minimum characters of a wrapped text column."""

MOST_BLOCKS: Final = 4
"""Maximum rows shown as blocks with one line per column; more rows become one paragraph each."""

LEAST_KEPT: Final = 2
"""Number of preferred columns that must fit; otherwise a table with few rows is shown as blocks."""

NO_PICTURES: Final[Mapping[int, Picture]] = {}


def arrange(
    block: Grid, width: int | None, pictures: Mapping[int, Picture] = NO_PICTURES
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the columns to draw and their widths; None if the table is easier to read as blocks."""
    columns = range(len(block.headings))
    least = [pictures[index].cells[0] if index in pictures else _least(block, index, width) for index in columns]
    needed = [
        pictures[index].cells[1 if width is None else 2]
        if index in pictures
        else max(longest_line([block.headings[index]]), least[index], min(longest_line(block.column(index)), MOST_TEXT))
        for index in columns
    ]
    if width is None or _width(needed) <= width:
        return columns, needed
    kept = _fold(block, least, width, pictures)
    texts = [index for index in kept if index not in pictures]
    if len(kept) < len(columns) and (not set(block.fixed) <= set(kept) or _reads_as_blocks(block, texts, pictures)):
        return None
    return kept, _level(kept, _share_out(kept, needed, least, width), pictures)


def _level(kept: Sequence[int], widths: Sequence[int], pictures: Mapping[int, Picture]) -> list[int]:
    """Return the widths with those of all pictures made equal; a picture of fixed width keeps it."""
    can_grow = {index for index, picture in pictures.items() if picture.cells[0] < picture.cells[-1]}
    places = [position for position, index in enumerate(kept) if index in can_grow]
    even = sum(widths[position] for position in places) // len(places) if places else 0
    return [even if position in places else one for position, one in enumerate(widths)]


def _width(columns: Sequence[int]) -> int:
    return sum(columns) + GAP * (len(columns) - 1)


def _least(block: Grid, index: int, width: int | None) -> int:
    """Return the minimum width of a column: its longest cell, or for text that can wrap its longest word.

    Such text gets at least `LEAST_TEXT` characters if a cell is that long.
    """
    cells = block.column(index)
    whole = longest_line(cells)
    is_text = any(" " in cell.strip() and len(cell) > SHORT_TEXT for cell in cells)
    if is_text and not (block.is_tree and index == 0 and (width is None or whole <= width)):
        whole = min(whole, max(longest_word(cells), LEAST_TEXT))
    return max(whole, longest_word([block.headings[index]]))


def _fold(block: Grid, least: Sequence[int], width: int, pictures: Mapping[int, Picture] = NO_PICTURES) -> list[int]:
    """Return the columns that fit into `width`: fixed columns and those that matter first, then pictures, then columns
    to keep, then pictures that yield to these, then the others from the left.
    """
    kept = [0]
    rest = sorted(
        (index for index in range(len(least)) if index not in pictures), key=lambda index: not any(block.column(index))
    )  # empty columns come last
    first, last = ([index for index, one in pictures.items() if one.yields == yields] for yields in (False, True))
    for index in dict.fromkeys((*block.fixed, *_find_matters(block), *first, *find_kept(block), *last, *rest)):
        if index and _width([*(least[one] for one in kept), least[index]]) <= width:
            kept.append(index)
    return sorted(kept)


def find_kept(block: Grid) -> list[int]:
    """Return the columns that a narrow terminal hides last, most important first."""
    return [block.headings.index(name) for name in block.keep if name in block.headings]


def _find_matters(block: Grid) -> list[int]:
    """Return the columns without which a table says too little: the first that rank its rows, or are kept longest."""
    ranked = [block.headings.index(name) for name in block.ranked if name in block.headings]
    return (ranked or find_kept(block))[:LEAST_KEPT]


def _reads_as_blocks(block: Grid, kept: Sequence[int], pictures: Collection[int]) -> bool:
    """Return whether a table that lost columns is easier to read as blocks: it has few rows and lost main columns."""
    matters = _find_matters(block)
    count = len(block.headings) - len(pictures)
    says_enough = all(index in kept for index in matters) if matters else len(kept) * 2 >= count
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
