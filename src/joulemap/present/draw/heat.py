"""Heat maps: the nearer to the best of its row, the denser a cell; the best has a star."""

from __future__ import annotations

import textwrap
from typing import Final

from joulemap.present.draw.ink import LETTERS, Ink, lay_out_items, shorten
from joulemap.present.sketch import Heat

SHADES: Final = ((1.0 + 1e-9, "█"), (1.25, "▓"), (2.0, "▒"), (5.0, "░"))
"""Ratio to the best up to which a cell has this shade."""

FAR: Final = "·"

LEGEND: Final = "*█ best of its row, ▓ up to 1.25x, ▒ up to 2x, ░ up to 5x, · more, - none"

MOST_LABEL: Final = 0.4
"""Of the width."""

LEAST_LABEL: Final = 8

GAP: Final = 2
"""Spaces between columns; one where no more fit."""

WIDEST: Final = "*█ 1.25x"
"""A cell with its ratio."""


def draw_heat(sketch: Heat, width: int, ink: Ink) -> str:
    """Return a heat map in lines of at most `width`: with ratios where they fit, with fewer columns where they must."""
    note_width = max((len(row.note) for row in sketch.rows), default=0)
    label_width = min(max(len(row.label) for row in sketch.rows), max(int(width * MOST_LABEL), LEAST_LABEL))
    room = width - label_width
    count = len(sketch.columns)
    wide = [max(len(name), len(WIDEST)) for name in sketch.columns]
    has_names = _fits(wide, room, GAP)
    sizes = wide if has_names else [len(WIDEST)] * count
    has_ratios = has_names or _fits(sizes, room, GAP)
    if not has_ratios:
        sizes = [len(FAR * 2)] * count
    gap = GAP if has_ratios or _fits(sizes, room, GAP) else 1
    shown = count
    while shown > 1 and not _fits(sizes[:shown], room, gap):
        shown -= 1
    has_note = note_width and _fits([*sizes[:shown], note_width], room, gap)
    heads = sketch.columns if has_names else LETTERS[:count]
    between = " " * gap
    first = [" " * label_width, *(head.ljust(size) for head, size in zip(heads[:shown], sizes, strict=False))]
    lines = [between.join(first)]
    for row in sketch.rows:
        cells = [
            _cell(ratio, has_ratios=has_ratios, size=size, ink=ink)
            for ratio, size in zip(row.ratios[:shown], sizes, strict=False)
        ]
        label = shorten(row.label, label_width).ljust(label_width)
        lines.append(between.join([label, *cells, *((row.note,) if has_note else ())]))
    hidden = len(sizes) - shown
    key = [] if has_names else list(zip(LETTERS, sketch.columns[:shown], strict=False))
    told = (LEGEND, *((f"{hidden} more columns do not fit; json has all",) if hidden else ()), *sketch.notes)
    return "\n".join(
        [
            *textwrap.wrap(sketch.title, width),
            *(line.rstrip() for line in lines),
            *lay_out_items(key, Ink(has_colour=False), width),
            *(line for note in told for line in textwrap.wrap(note, width)),
        ]
    )


def _fits(sizes: list[int], room: int, gap: int) -> bool:
    return sum(sizes) + gap * len(sizes) <= room


def _cell(ratio: float | None, *, has_ratios: bool, size: int, ink: Ink) -> str:
    if ratio is None:
        return "-".ljust(size)
    level, shade = next(((level, shade) for level, (most, shade) in enumerate(SHADES) if ratio <= most), (4, FAR))
    star = "*" if level == 0 else shade
    text = f"{star}{shade}"
    told = f"{text} {_show_ratio(ratio)}" if has_ratios else text
    padding = " " * (size - len(told))
    return ink.paint(told, 0) + padding if level == 0 else told + padding


def _show_ratio(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 1000.0 else f"{ratio:.0e}x".replace("e+0", "e")
