"""Letters and patterns; every meaning of a colour is also shown by a letter, pattern or word."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Final

from plotille import Canvas, color

from joulemap.show.present.palette import COLOURS, HUES
from joulemap.show.present.text import END

LETTERS: Final = string.ascii_letters + string.digits

PATTERNS: Final = "█▓▒░#=+:%"
"""Fill patterns for the parts of a bar."""

BLANK: Final = "\N{BRAILLE PATTERN BLANK}"

RUN: Final = re.compile(r"(\x1b\[38;5;\d+m)[^\x1b]\x1b\[0m(?:\1[^\x1b]\x1b\[0m)+")
"""Pattern of adjacent cells of one colour."""


class Ink:
    """Colours of the items in a drawing, or no colours."""

    def __init__(self, *, has_colour: bool, colours: Sequence[str] = ()) -> None:
        self.has_colour = has_colour
        self.colours = colours or tuple(HUES)

    def code(self, index: int) -> int | None:
        """Return the colour of the index-th item; None without colours."""
        return COLOURS[self.colours[index % len(self.colours)]].terminal if self.has_colour else None

    def paint(self, text: str, index: int) -> str:
        """Return a text in the colour of the index-th item."""
        painted: str = color(text, fg=self.code(index), mode="byte")
        return painted


def begin_canvas(width: int, height: int) -> Canvas:
    """Create a canvas whose coordinates are its cells, from the lower left."""
    return Canvas(width, height, xmin=0, ymin=0, xmax=width, ymax=height, mode="byte")


def write_on(canvas: Canvas, cell: int, row: int, text: str, colour: int | None) -> None:
    """Write a text on a canvas, starting at a cell; rows count from the bottom."""
    canvas.text(cell, row + 0.5, text, color=colour)


def read_lines(canvas: Canvas) -> list[str]:
    """Return the rows of a canvas from the top; adjacent cells of one colour share one escape sequence."""
    return [RUN.sub(_join, line.replace(BLANK, " ")).rstrip() for line in canvas.plot("\n").split("\n")]


def _join(run: re.Match[str]) -> str:
    return f"{run[1]}{run[0].replace(run[1], '').replace(END, '')}{END}"


def shorten(text: str, most: int) -> str:
    """Shorten a text to `most` characters by cutting its middle."""
    if len(text) <= most:
        return text
    end = max(most - 1, 0) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def lay_out_items(items: Sequence[tuple[str, str]], ink: Ink, width: int) -> list[str]:
    """Return lines of a key, with pairs of mark and meaning in as many columns as fit."""
    if not items:
        return []
    most = max(width - 4, 8)
    texts = [shorten(text, most) for _, text in items]
    widest = max(map(len, texts)) + 4
    columns = max(1, min(len(items), (width + 2) // widest))
    rows = -(-len(items) // columns)
    lines = []
    for row in range(rows):
        cells = []
        for index in range(row, len(items), rows):
            mark = ink.paint(items[index][0], index)
            cells.append(f"{mark} {texts[index].ljust(widest - 4)}")
        lines.append("  ".join(cells).rstrip())
    return lines
