"""HTML of pages: one file that opens from disk and requests nothing from a network.

The content security policy allows only the page's style, and the scripts of a report, by their digests. All texts are
escaped.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.show.present.arrange import arrange
from joulemap.show.present.cell import show_count
from joulemap.show.present.document import NEXT, SHORT_TEXT, Block, Grid, Lines, Steps, Text
from joulemap.show.present.draw.sketch import draw_sketch
from joulemap.show.present.draw.svg import Images, draw_images
from joulemap.show.present.format import Page
from joulemap.show.present.palette import write_variables
from joulemap.show.present.text import longest_line
from joulemap.system.frame import escape
from joulemap.system.name import PROJECTED

MOST_CARDS: Final = 12
"""Maximum rows of a table without pictures whose rows are cards on a phone."""

WIDTH: Final = 92
"""Width of a table on a page, in characters."""

PICTURE_WIDTH: Final = 15
"""Characters by which a picture widens its column."""

CODE: Final = re.compile("`([^`]+)`")
"""Pattern of a quotation of code in a sentence."""

NO_BLOCKS: Final = ""
"""HTML of a block without content."""


def frame(title: str, body: str, *, scripts: Sequence[str] = (), after: str = "") -> str:
    """Return a page with this title and body; `scripts` are the only scripts it may run, and `after` ends its body."""
    style = _read_style()
    allowed = (f"script-src {' '.join(map(_digest, scripts))}",) if scripts else ()
    policy = "; ".join(
        (
            "default-src 'none'",
            *allowed,
            f"style-src {_digest(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n{after}</body>\n</html>\n"
    )


@cache
def _read_style() -> str:
    return write_variables() + (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def write_block(block: Block) -> str:
    """Return a block of a document as HTML; empty without content."""
    if isinstance(block, Grid):
        return write_table(block)
    if isinstance(block, Lines):
        return write_list(block.texts, is_numbered=block.is_numbered)
    if isinstance(block, Steps):
        return write_steps(block.texts)
    if isinstance(block, Text):
        return f"<p>{write_text(block.text)}</p>" if block.text else NO_BLOCKS
    drawn = draw_sketch(block, Page())
    return f"<pre>{escape(drawn)}</pre>" if drawn else NO_BLOCKS


def write_table(block: Grid) -> str:
    """Return a table with its pictures as HTML; columns for which a page has no room are in a fold below it.

    A long table scrolls inside itself. The rows of any other are cards on a phone, where no column is out of sight.

    Optional end tags are left out, because they would be a fifth of a large page.
    """
    if not block.texts:
        return NO_BLOCKS
    pictures = _draw_pictures(block)
    columns = range(len(block.headings))
    arranged = arrange(block, WIDTH - PICTURE_WIDTH * len(pictures))
    kept = sorted({*arranged[0], *map(block.headings.index, pictures)}) if arranged is not None else columns
    rest = [index for index in columns if index not in kept]
    below = f"<p>{escape(block.cut_text)}</p>" if block.cut else ""
    title = show_count(len(rest), "more column")
    folded = write_fold(title, _write_columns(block, (0, *rest), pictures)) if rest else NO_BLOCKS
    return _write_columns(block, kept, pictures) + below + folded


def _write_columns(block: Grid, columns: Sequence[int], pictures: Mapping[str, Images]) -> str:
    names = _name_columns(block, pictures)
    is_cards = bool(pictures) or len(block.rows) <= MOST_CARDS
    labels = [f' data-label="{escape(one)}"' if is_cards else "" for one in block.headings]
    empty = Images(heading="", rows=("",) * len(block.rows))
    drawn = [pictures.get(one, empty) for one in block.headings]
    heads = "".join(
        f"<th{_write_class(names[index])}>{escape(block.headings[index])}{drawn[index].heading}" for index in columns
    )
    best, rows = block.best | block.tied, []
    for row, cells in enumerate(block.marked().rows):
        texts = "".join(
            f"<td{_write_class(names[index], is_best=(row, index) in best)}{labels[index] if cells[index] else ''}>"
            f"{_write_cell(cells[index])}{drawn[index].rows[row]}"
            for index in columns
        )
        rows.append(f"<tr{_name_row(cells)}>{texts}")
    kind = ' class="cards"' if is_cards else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table"><table{kind}>'
        f"<thead><tr>{heads}\n<tbody>{chr(10).join(rows)}</table></div>"
    )


def _draw_pictures(block: Grid) -> dict[str, Images]:
    """Return the picture of each column that has one, by its heading; an interval stands with its value."""
    pictures: dict[str, Images] = {}
    for picture in block.pictures:
        heading = picture.of if picture.of in block.headings else picture.after
        if picture.is_drawn and heading in block.headings:
            pictures[heading] = draw_images(picture, best=block.find_best(picture))
    return pictures


def _name_columns(block: Grid, pictures: Container[str]) -> list[str]:
    """Return the classes of each column: of numbers, of texts that need more than one line, and with a picture."""
    names = []
    for index, heading in enumerate(block.headings):
        is_number = index in block.numbers
        is_long = not is_number and longest_line(block.column(index)) > SHORT_TEXT
        kinds = {"n": is_number, "long": is_long, "pic": heading in pictures}
        names.append(" ".join(name for name, is_one in kinds.items() if is_one))
    return names


def _write_class(names: str, *, is_best: bool = False) -> str:
    joined = f"{names} better".strip() if is_best else names
    return f' class="{joined}"' if joined else ""


def _name_row(cells: Sequence[str]) -> str:
    return ' class="away"' if cells and cells[0].lstrip().startswith(PROJECTED) else ""


def _write_cell(text: str) -> str:
    """Return a cell; leading spaces, which show nesting, are kept."""
    rest = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(rest)) + escape(rest).replace("\n", "<br>")


def write_text(text: str) -> str:
    """Return a sentence; what it quotes in backticks is code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def write_list(texts: Sequence[str], *, is_numbered: bool = False) -> str:
    """Return sentences as a list; empty without any."""
    kind = "ol" if is_numbered else "ul"
    return f"<{kind}>{''.join(f'<li>{write_text(one)}</li>' for one in texts)}</{kind}>" if texts else NO_BLOCKS


def write_steps(texts: Sequence[str]) -> str:
    """Return commands as preformatted text; empty without any."""
    return f"<pre>{escape(chr(10).join(texts))}</pre>" if texts else NO_BLOCKS


def write_labelled(parts: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return labels with their sentences, such as the reasons of a decision; labels without any are left out.

    Commands are under the label `NEXT`.
    """
    made = "".join(
        f"<dt>{escape(label)}</dt>"
        + "".join(f"<dd>{f'<code>{escape(one)}</code>' if label == NEXT else write_text(one)}</dd>" for one in texts)
        for label, texts in parts
        if texts
    )
    return f'<dl class="because">{made}</dl>' if made else NO_BLOCKS


def write_fold(title: str, inside: str) -> str:
    """Return blocks that are hidden until a reader opens them."""
    return f"<details><summary>{escape(title)}</summary>\n{inside}</details>"
