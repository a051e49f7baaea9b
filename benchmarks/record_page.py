"""Write the table of scores in docs/record.md from docs/record.csv, losses first (the end of `make record`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from joulemap.wing.record.score import read_scores
from joulemap.wing.record.show import SCORE_HEADINGS, list_cells

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "record.md"

PART: Final = re.compile(r"(<!-- scores: make record -->\n).*?(<!-- end of scores -->)", re.DOTALL)


def write_page(text: str, scores: Path) -> str:
    """Return the page with the scores of a table; ValueError if it has no place for them."""
    head, *rows = (f"| {' | '.join(row)} |\n" for row in (SCORE_HEADINGS, *list_cells(read_scores(scores))))
    table = "".join((head, f"|{'---|' * len(SCORE_HEADINGS)}\n", *rows))
    written, count = PART.subn(lambda it: f"{it[1]}{table}{it[2]}", text)
    if count != 1:
        raise ValueError("the page has no place for scores")
    return written


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8"), DOCS / "record.csv"), encoding="utf-8")
