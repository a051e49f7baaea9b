"""Pages of records and their scores, losses first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.show import Part, Sheet, show_count, show_plain, show_share
from joulemap.wing.record.ask import RecordsAnswer, ScoresAnswer
from joulemap.wing.record.generated.row import ScoreRow
from joulemap.wing.record.score import ALL, LATER, rank_losses

NOTHING_YET: Final = "No result that came after a record has been scored, so nothing is won yet"
SEEN: Final = "results `in view` are older than their record: they show how the model fits, and are never a win"
LOSSES: Final = "groups whose intervals contain the fewest of their results come first; 80 % should be inside"

SCORE_HEADINGS: Final = (
    "vendor", "class", "of", "median error", "inside", "right pairs", "predicted", "results", "standing", "record",
    "source",
)  # fmt: skip
"""Headings of the table of scores in the documentation and on the page."""

NUMBERS: Final = frozenset({"results", "predicted", "median error", "inside", "right pairs"})
"""Headings of columns of numbers."""


def list_cells(rows: Sequence[ScoreRow]) -> Iterator[tuple[str, ...]]:
    """Yield the cells below `SCORE_HEADINGS` of each score that has a prediction, losses first."""
    for row in rank_losses(rows):
        if row.predicted_count:
            shown = {name: write(row) for name, write in CELLS.items()}
            yield (
                row.vendor, row.architecture, row.quantity, shown["median_error_fraction"], shown["inside_count"],
                shown["right_pair_count"], f"{row.predicted_count:,}", f"{row.result_count:,}", row.standing,
                row.record, row.source,
            )  # fmt: skip


def describe(rows: Sequence[ScoreRow]) -> str:
    """Return the sentence on the results that came after a record, or that there is none."""
    later = [row for row in rows if row.standing == LATER and row.vendor == ALL]
    judged = sum(row.judged_count for row in later)
    if not judged:
        count = sum(row.result_count for row in later)
        if not count:
            return NOTHING_YET
        missing = "; ".join(dict.fromkeys(row.unpredicted for row in later))
        return f"{NOTHING_YET}: none of {show_count(count, 'later number')} was predicted (not recorded: {missing})"
    inside = sum(row.inside_count for row in later)
    pairs, right = (sum(getattr(row, name) for row in later) for name in ("pair_count", "right_pair_count"))
    order = f", and {right:,} of {show_count(pairs, 'pair')} have the recorded order" if pairs else ""
    return (
        f"{inside:,} of {show_count(judged, 'number')} that came after their record are inside its 80 % interval{order}"
    )


def _show_part(count: int, total: int) -> str:
    return f"{show_share(count / total)} of {show_plain(total)}" if total else ""


CELLS: Final[Mapping[str, Any]] = {
    "median_error_fraction": lambda row: (
        "" if row.median_error_fraction is None else show_share(row.median_error_fraction)
    ),
    "inside_count": lambda row: _show_part(row.inside_count, row.judged_count),
    "right_pair_count": lambda row: _show_part(row.right_pair_count, row.pair_count),
}


SCORES: Final[Mapping[str, Any]] = {
    "columns": "*standing | *vendor | *architecture | *quantity | *predicted_count | *median_error_fraction | "
    "*inside_count | right_pair_count | result_count | record | source | unpredicted",
    "lay": CELLS,
    "is_long": True,
}
"""Table of scores."""


def list_data(answer: ScoresAnswer | RecordsAnswer, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what programs get: the first line and the tables."""
    return {"answer": told["answer"], **answer.data()}


PAGES: Final = {
    ScoresAnswer: Sheet(
        title=lambda answer: f"scores of {answer.folder}",
        first=lambda answer: describe(answer.rows.rows),
        notes=lambda answer: (LOSSES, SEEN) if answer.rows else (),
        data=list_data,
        csv="rows",
        parts=(Part(table="rows", **SCORES),),
    ),
    RecordsAnswer: Sheet(
        title=lambda answer: f"records in {answer.folder}",
        first=lambda answer: (
            describe(answer.scores.rows)
            if answer.records
            else f"{answer.folder} has no record: `joulemap record make` writes the first"
        ),
        notes=lambda answer: (LOSSES, SEEN) if answer.scores else (),
        data=list_data,
        csv="scores",
        shown_count=2,
        parts=(
            Part(table="scores", **SCORES),
            Part(
                title="Records",
                table="records",
                columns="*date | *row_count | *state | version | formulas | sha256 | file",
                lay={"sha256": lambda row: row.sha256[:12]},
            ),
        ),
    ),
}
