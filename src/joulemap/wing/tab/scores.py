"""Page with the scores of records, without scripts: losses first."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from joulemap.system import UsageError
from joulemap.wing.record import LOSSES, NUMBERS, SCORE_HEADINGS, SEEN, describe, list_cells, read_scores

FILE: Final = "record.html"

SOURCE: Final = Path(__file__).parent / "page" / FILE


def write_scores(path: Path) -> str:
    """Return the page of a table of scores.

    Raises CatalogueError for a file of another format, UsageError for one that does not exist.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist: `joulemap record score` writes record.csv")
    rows = read_scores(path)
    heads = "".join(f'<th scope="col"{_align(name)}>{escape(name)}</th>' for name in SCORE_HEADINGS)
    lines = (
        "".join(f"<td{_align(name)}>{escape(cell)}</td>" for name, cell in zip(SCORE_HEADINGS, row, strict=True))
        for row in list_cells(rows)
    )
    table = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n" + "\n".join(f"<tr>{one}</tr>" for one in lines) + "\n</tbody>"
    places = {"answer": f"{describe(rows)}.", "losses": _sentence(LOSSES), "seen": _sentence(SEEN)}
    page = SOURCE.read_text(encoding="utf-8").replace("{table}", table)
    for name, text in places.items():
        page = page.replace(f"{{{name}}}", escape(text.replace("`", "")))
    return page


def _align(name: str) -> str:
    return ' class="number"' if name in NUMBERS else ""


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."
