"""HTML of pages: one file that opens from disk and requests nothing from a network.

The content security policy allows only the page's style, and the scripts of a report, by their digests. All texts are
escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Container, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.show.present.document import NEXT, SHORT_TEXT, Block, Grid, Lines, Steps, Text
from joulemap.show.present.draw.sketch import draw_sketch
from joulemap.show.present.format import Page
from joulemap.show.present.picture import Picture
from joulemap.show.present.text import longest_line
from joulemap.system.frame import escape
from joulemap.system.name import PROJECTED

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
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


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
        return f"<p>{escape(block.text)}</p>" if block.text else NO_BLOCKS
    drawn = draw_sketch(block, Page())
    return f"<pre>{escape(drawn)}</pre>" if drawn else NO_BLOCKS


def write_table(block: Grid) -> str:
    """Return a table with its pictures as HTML that scrolls inside itself.

    Optional end tags are left out, because they would be a fifth of a large page.
    """
    if not block.texts:
        return NO_BLOCKS
    pictures = _draw_pictures(block)
    long = _find_long(block)
    heads = "".join(
        f"<th{_name_class(block, long, index)}>{escape(one)}"
        + "".join(f"<th>{images[0]}" for images in pictures.get(one, ()))
        for index, one in enumerate(block.headings)
    )
    rows = []
    for row, cells in enumerate(block.marked().rows):
        texts = "".join(
            f"<td{_name_class(block, long, index, row)}>{_write_cell(cell)}"
            + "".join(f"<td>{images[1][row]}" for images in pictures.get(block.headings[index], ()))
            for index, cell in enumerate(cells)
        )
        rows.append(f"<tr{_name_row(cells)}>{texts}")
    below = f"<p>{escape(block.cut_text)}</p>" if block.cut else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
        f"<thead><tr>{heads}\n<tbody>{chr(10).join(rows)}</table></div>{below}"
    )


def _draw_pictures(block: Grid) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the pictures of a table by the heading of the column that they follow: heading and image of each row.

    An interval follows the value that it is of, so that a narrow screen shows it.
    """
    from joulemap.show.present.draw.svg import draw_images

    pictures: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for picture in block.pictures:
        if picture.is_drawn and picture.after in block.headings:
            images = draw_images(picture, best=_find_best(block, picture))
            heading = picture.of if picture.of in block.headings else picture.after
            pictures.setdefault(heading, []).append((images.heading, images.rows))
    return pictures


def _find_best(block: Grid, picture: Picture) -> frozenset[int]:
    own = picture.of or picture.after
    column = block.headings.index(own) if own in block.headings else -1
    return frozenset(row for row, index in (*block.best, *block.tied) if index == column)


def _find_long(block: Grid) -> frozenset[int]:
    """Return the columns of texts that need more than one line."""
    texts = (index for index in range(len(block.headings)) if index not in block.numbers)
    return frozenset(index for index in texts if longest_line(block.column(index)) > SHORT_TEXT)


def _name_class(block: Grid, long: Container[int], index: int, row: int | None = None) -> str:
    is_first = row is not None and ((row, index) in block.best or (row, index) in block.tied)
    kinds = {"n": index in block.numbers, "long": index in long, "best": is_first}
    names = [name for name, is_one in kinds.items() if is_one]
    return f' class="{" ".join(names)}"' if names else ""


def _name_row(cells: Sequence[str]) -> str:
    return ' class="away"' if cells and cells[0].lstrip().startswith(PROJECTED) else ""


def _write_cell(text: str) -> str:
    """Return a cell; leading spaces, which show nesting, are kept."""
    rest = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(rest)) + escape(rest).replace("\n", "<br>")


def write_list(texts: Sequence[str], *, is_numbered: bool = False) -> str:
    """Return sentences as a list; empty without any."""
    kind = "ol" if is_numbered else "ul"
    return f"<{kind}>{''.join(f'<li>{escape(one)}' for one in texts)}</{kind}>" if texts else NO_BLOCKS


def write_steps(texts: Sequence[str]) -> str:
    """Return commands as preformatted text; empty without any."""
    return f"<pre>{escape(chr(10).join(texts))}</pre>" if texts else NO_BLOCKS


def write_labelled(parts: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return labels with their sentences, such as the reasons of a decision; labels without any are left out.

    Commands are under the label `NEXT`.
    """
    made = "".join(
        f"<dt>{escape(label)}</dt>"
        + "".join(f"<dd>{f'<code>{escape(one)}</code>' if label == NEXT else escape(one)}</dd>" for one in texts)
        for label, texts in parts
        if texts
    )
    return f'<dl class="because">{made}</dl>' if made else NO_BLOCKS


def write_fold(title: str, inside: str) -> str:
    """Return blocks that are hidden until a reader opens them."""
    return f"<details><summary>{escape(title)}</summary>\n{inside}</details>"
