"""Records of a folder, and their scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from joulemap.ask import Answer
from joulemap.domain import Table, make_table, take
from joulemap.system import frozen
from joulemap.wing.record.chain import Chain
from joulemap.wing.record.generated.row import ListedRecord, ScoreRow
from joulemap.wing.record.score import FILE, rank_losses, read_scores


@frozen(kw_only=True)
class ScoresAnswer(Answer):
    """Scores of records, losses first."""

    folder: Path
    rows: Table[ScoreRow]


@frozen(kw_only=True)
class RecordsAnswer(Answer):
    """Records of a folder, oldest first, and their scores, losses first."""

    folder: Path
    records: Table[ListedRecord]
    scores: Table[ScoreRow]


def list_scores(folder: Path, rows: Iterable[ScoreRow]) -> ScoresAnswer:
    """Return these scores of the records of a folder."""
    return ScoresAnswer(folder=folder, rows=make_table("record scores", ScoreRow, rank_losses(rows)))


def list_records(chain: Chain) -> RecordsAnswer:
    """Return the records of a folder and all their scores; CatalogueError for a table that cannot be read."""
    records = [
        ListedRecord(**{**take(ListedRecord, one), "state": chain.faults.get(one.file, "whole")})
        for one in chain.entries
    ]
    scores = list_scores(chain.folder, read_scores(chain.folder.parent / FILE)).rows
    return RecordsAnswer(folder=chain.folder, records=make_table("records", ListedRecord, records), scores=scores)
