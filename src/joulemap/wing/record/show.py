"""Documents of records and their scores, losses first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.domain.computed import described, make_table
from joulemap.show.layout import lay
from joulemap.show.present.cell import show_count, show_plain, show_share
from joulemap.show.present.document import Document, Section
from joulemap.system.record import frozen
from joulemap.wing.record.chain import Chain
from joulemap.wing.record.generated.row import ScoreRow
from joulemap.wing.record.score import ALL, IN_VIEW, LATER

COLUMNS: Final = (
    "*standing | *vendor | *class architecture | *of quantity | *scored predicted_count | "
    "*error median_error_fraction | *inside inside_count | right pairs right_pair_count | "
    "results result_count | record | source | never predicted unpredicted"
)
RECORD_COLUMNS: Final = "*date | *predictions row_count | *state | version | formulas | sha256 | file"

NOTHING_YET: Final = "No result that came after a record has been scored, so nothing is won yet"
SEEN: Final = "results `in view` are older than their record: they show how the model fits, and are never a win"
LOSSES: Final = "groups whose intervals contain the fewest of their results come first; 80 % should be inside"


@frozen(kw_only=True)
class ListedRecord:
    """Record of a folder."""

    date: str = described("date on which it was made, in UTC")
    row_count: int = described("predictions")
    state: str = described("`whole`, or the reason why the record is not used")
    version: str = described("version of joulemap that made it")
    formulas: str = described("digest of formulas, chips and error scales")
    sha256: str = described("SHA-256 of the file")
    file: str = described("file in the folder of records")


def show_scores(rows: Sequence[ScoreRow], title: str, limit: int) -> Document:
    """Return the document of scores, those with the lowest coverage first, results after a record before all others."""
    table = make_table("record scores", ScoreRow, sorted(rows, key=_find_loss))
    grid = lay(table, COLUMNS, limit=limit, **CELLS)
    return Document(
        title=title,
        answer=describe(rows),
        sections=(Section("", grid),) if rows else (),
        notes=(LOSSES, SEEN) if rows else (),
        data={"answer": describe(rows), "rows": table.records()},
        table=table,
    )


def show_records(chain: Chain, rows: Sequence[ScoreRow], limit: int) -> Document:
    """Return the document of the records of a folder and of their scores."""
    scores = show_scores(rows, f"records in {chain.folder}", limit)
    answer = (
        scores.answer if chain.entries else f"{chain.folder} has no record: `joulemap record make` writes the first"
    )
    records = make_table(
        "records",
        ListedRecord,
        [
            ListedRecord(
                date=one.date,
                row_count=one.row_count,
                state=chain.faults.get(one.file, "whole"),
                version=one.version,
                formulas=one.formulas,
                sha256=one.sha256,
                file=one.file,
            )
            for one in chain.entries
        ],
    )
    shown = lay(records, RECORD_COLUMNS, sha256=lambda row: row.sha256[:12], row_count=lambda row: f"{row.row_count:,}")
    return Document(
        title=scores.title,
        answer=answer,
        sections=(*scores.sections, *([Section("Records", shown)] if chain.entries else [])),
        notes=scores.notes,
        data={"answer": answer, "records": records.records(), "scores": scores.table.records()},
        table=scores.table,
    )


SCORE_HEADINGS: Final = (
    "vendor", "class", "of", "median error", "inside", "right pairs", "predicted", "results", "standing", "record",
    "source",
)  # fmt: skip
"""Headings of the table of scores in the documentation and on the page."""

NUMBERS: Final = frozenset({"results", "predicted", "median error", "inside", "right pairs"})
"""Headings of columns of numbers."""


def list_cells(rows: Sequence[ScoreRow]) -> Iterator[tuple[str, ...]]:
    """Yield the cells below `SCORE_HEADINGS` of each score that has a prediction, losses first."""
    for row in sorted(rows, key=_find_loss):
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


def _find_loss(row: ScoreRow) -> tuple[object, ...]:
    share = row.inside_count / row.judged_count if row.judged_count else 2.0
    error = -(row.median_error_fraction or 0.0)
    return row.standing == IN_VIEW, share, error, row.record, row.source, row.vendor, row.architecture, row.quantity


def _show_part(count: int, total: int) -> str:
    return f"{show_share(count / total)} of {show_plain(total)}" if total else ""


CELLS: Final[Mapping[str, Any]] = {
    "median_error_fraction": lambda row: (
        "" if row.median_error_fraction is None else show_share(row.median_error_fraction)
    ),
    "inside_count": lambda row: _show_part(row.inside_count, row.judged_count),
    "right_pair_count": lambda row: _show_part(row.right_pair_count, row.pair_count),
}
