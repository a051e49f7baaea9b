"""HTML page of a report: one file that opens from disk, can be read without JavaScript, and requests nothing from a
network.

    decision → its picture → reasons and trust → contents → chapters (figures drawn as SVG, tables, sources) → the data

With JavaScript, Vega draws the figures again from the data of the page. The page allows only its two scripts. Vega
interprets its expressions, so that no text is evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.show.figure.convert import INSTALL, bundle_script, configure, is_installed, to_svg
from joulemap.show.figure.figure import Figure, draw_svg
from joulemap.show.figure.sketch import draw_text
from joulemap.show.present.document import Grid, Lines, Steps, Text
from joulemap.show.present.hypertext import frame, write_block, write_fold, write_labelled
from joulemap.show.present.palette import THEMES
from joulemap.show.present.sketch import Bars, Chart, Heat
from joulemap.show.webpage.report import (
    Block,
    Branch,
    Chapter,
    Exhibit,
    Fold,
    Labels,
    Leaf,
    Report,
    Source,
    Trees,
    compress,
    list_content,
    name_figure,
)
from joulemap.system.background import begin
from joulemap.system.frame import escape

STATIC_CHOICES: Final = 5
"""Maximum number of figures in an exhibit that are all drawn as SVG. If there are more, only the first is; scripts draw
the others.
"""

IN_CHARACTERS: Final = f"Figures are drawn as text: {INSTALL} draws images."
"""Line at the top of a page without images."""

_IDS: Final = re.compile(r'(\bid="|url\(#)')
_NEEDLESS: Final = re.compile(r' (?:role|aria-[a-z]+|class|version|xmlns(?::\w+)?|font-family|pointer-events)="[^"]*"')
_DIGITS: Final = re.compile(r"\d+\.\d{2,}")
_EMPTY: Final = re.compile(r"<path(?: display=\"none\")?(?: d=\"[^\"]*\")?(?: pointer-events=\"none\")?/>")


def start_drawing() -> None:
    """Load the drawing packages in another thread while the caller continues."""
    begin(_warm_up)


def _warm_up() -> None:
    bundle_script()
    to_svg({"mark": "point"}, THEMES[0])


def write_page(report: Report) -> str:
    """Return a report as HTML. Without vl-convert-python, its figures are drawn in characters and it has no scripts."""
    has_images = is_installed()
    vega = bundle_script() if has_images else ""
    script = _read_script()
    drawn = _Page(report, has_images=has_images)
    content = compress(list_content(report, {theme: configure(theme) for theme in THEMES}))
    data = (
        '<section id="data"><h2>The data</h2><p>All rows behind the figures and tables of this page, with their '
        "queries, columns and units, and the specification of each figure: "
        f'<a id="content" download="joulemap-report.json.gz" href="data:application/gzip;base64,{content}">'
        "joulemap-report.json.gz</a>.</p></section>"
    )
    body = "\n".join((drawn.write_body(), data, drawn.write_foot()))
    scripts = f'<script type="text/plain" id="vega">{compress(vega)}</script>\n<script>{script}</script>\n' * has_images
    return frame(report.title, body, scripts=(script, vega) if has_images else (), after=scripts)


@cache
def _read_script() -> str:
    return (Path(__file__).parent / "script.js").read_text(encoding="utf-8")


class _Page:
    """Writer of the HTML page of one report."""

    def __init__(self, report: Report, *, has_images: bool) -> None:
        self._report = report
        self._has_images = has_images

    def write_body(self) -> str:
        """Return the page's header, table of contents and chapters as HTML."""
        report = self._report
        parts = [
            '<a class="skip" href="#content-of-page">Skip to the report</a>',
            f'<header><h1 class="decision">{escape(report.decision or report.title)}</h1>',
            f'<p class="kicker">{escape(report.subject)}</p>',
            self._blocks(report.lead),
            write_labelled(report.reasons),
            "" if self._has_images else f'<p class="kicker">{escape(IN_CHARACTERS)}</p>',
            "</header>",
        ]
        links = "".join(f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in report.chapters)
        parts.append(f'<nav aria-label="Contents"><ol>{links}<li><a href="#data">The data</a></li></ol></nav>')
        return "\n".join([*parts, '<main id="content-of-page">', *map(self._chapter, report.chapters), "</main>"])

    def write_foot(self) -> str:
        """Return the footer: version and sources, and the command that makes the report again."""
        again = (
            f"<p>To make this report again: <code>{escape(self._report.command)}</code></p>"
            if self._report.command
            else ""
        )
        return f"<footer><p>{escape(self._report.made)}</p>{again}</footer>"

    def _chapter(self, chapter: Chapter) -> str:
        name = escape(chapter.name)
        return f'<section id="{name}"><h2>{escape(chapter.title)}</h2>\n{self._blocks(chapter.blocks)}\n</section>'

    def _blocks(self, blocks: Iterable[Block]) -> str:
        return "\n".join(filter(None, map(self._block, blocks)))

    def _block(self, block: Block) -> str:
        if isinstance(block, Grid | Lines | Steps | Text):
            return write_block(block)
        if isinstance(block, Labels):
            return write_labelled(block.lines)
        if isinstance(block, Bars | Chart | Heat | Source):
            return ""  # a page shows figures instead of sketches, and its data have the rows
        if isinstance(block, Fold):
            return write_fold(block.title, self._blocks(block.blocks))
        if isinstance(block, Trees):
            return _trees(block)
        return self._exhibit(block)

    def _exhibit(self, exhibit: Exhibit) -> str:
        figures = []
        for index, choice in enumerate(exhibit.choices):
            label = choice.label if exhibit.chooses else ""
            is_static = index == 0 or len(exhibit.choices) <= STATIC_CHOICES or not self._has_images
            draw = _draw if self._has_images else _draw_text
            drawn = draw(choice.figure, name_figure(exhibit, index)) if is_static else ""
            finding = choice.figure.finding if exhibit.has_finding else ""
            figures.append(_figure(name_figure(exhibit, index), choice.figure, label, finding, drawn))
        chooses = f' data-chooses="{escape(exhibit.chooses)}"' if exhibit.chooses else ""
        chooses += f' data-opens="{escape(exhibit.opens)}"' if exhibit.opens else ""
        return f'<div class="exhibit" id="{escape(exhibit.name)}-figures"{chooses}>\n' + "\n".join(figures) + "\n</div>"


def _figure(name: str, figure: Figure, label: str, finding: str, drawn: str) -> str:
    title = f'<h3 class="choice">{escape(label)}</h3>' if label else ""
    empty = "" if drawn else ' data-empty="yes"'
    return (
        f'<figure id="{escape(name)}" data-label="{escape(label)}"{empty}>{title}'
        f'<div class="drawn">{drawn}</div><div class="live" aria-describedby="{escape(name)}-told"></div>'
        f'<figcaption id="{escape(name)}-told"><b>{escape(finding)}</b> {escape(figure.reading)}'
        "</figcaption></figure>"
    )


def _draw(figure: Figure, name: str) -> str:
    """Return a figure as SVG for a page with several figures: ids begin with `name`, and needless attributes are
    removed.
    """
    head, _, rest = draw_svg(figure).partition(">")
    rest = rest.partition("</desc>")[2]
    kept = _EMPTY.sub("", _DIGITS.sub(_round, _NEEDLESS.sub("", rest)))
    return f"{head}>{_IDS.sub(lambda match: f'{match[0]}{name}-', kept)}"


def _draw_text(figure: Figure, _name: str) -> str:
    """Return a figure in characters as HTML; empty if the figure has no text drawing."""
    drawn = draw_text(figure)
    return f'<pre aria-label="{escape(figure.title)}">{escape(drawn)}</pre>' if drawn else ""


def _round(match: re.Match[str]) -> str:
    """Return a matched coordinate rounded to a tenth of a pixel."""
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _trees(block: Trees) -> str:
    made = "\n".join(map(_branch, block.trees))
    return f'<div class="tree" id="{escape(block.name)}"><h3>{escape(block.caption)}</h3>\n{made}</div>'


def _branch(node: Branch | Leaf) -> str:
    share = f"<i>{escape(node.share)}</i>" if node.share else ""
    head = f"<b>{escape(node.label)}</b><i>{escape(node.amount)}</i>{share}"
    if isinstance(node, Leaf):
        return f"<p>{head}</p>"
    if all(isinstance(one, Leaf) for one in node.parts):
        parts = "; ".join(f"{one.label} {one.amount}, {one.share}" for one in node.parts)
        return f"<details><summary>{head}</summary><p>{escape(parts)}</p></details>"
    width = max(0.0, min(1.0, node.fraction))
    bar = f'<meter min="0" max="1" value="{width:.3f}" aria-hidden="true"></meter>'
    inside = "".join(map(_branch, node.parts))
    return f'<details data-key="{escape(node.key)}"><summary>{head}{bar}</summary>{inside}</details>'
