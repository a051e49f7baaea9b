"""Write predictions before results exist, and score them when results come.

A record is a dated, hashed file of predictions. Records are chained: each states the digest of the one before.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli import LIMIT_HELP, OUTPUT, OutputOptions, emit_line, group
from joulemap.cli.command import command, option
from joulemap.cli.voice import end_progress, move_progress, voice
from joulemap.wing.llm.option import ServedOutputOptions
from joulemap.wing.verify import FactOptions

app = group(__doc__)

FOLDER: Final = Path("docs/record")
FOLDER_HELP: Final = "Folder of the records."


def find_today() -> str:
    """Return the date in UTC."""
    return datetime.now(UTC).date().isoformat()


@app.command("make")
@command
def make(
    *,
    folder: Path = option(FOLDER, FOLDER_HELP, metavar="FOLDER"),
    jobs: int = option(2, "Processes.", min=1, metavar="N"),
) -> None:
    """Write the record of today.

    Predicts every built-in model on the chips of a fixed list, with every runtime or engine that runs there. This takes
    about five minutes on two cores. Nothing is written if formulas, chips and list are those of the newest record: an
    older record with the same predictions is worth more.

    \b
    joulemap record make
    """
    from joulemap.wing.record.make import make_record

    voice.begin_progress()
    entry = make_record(folder, find_today(), jobs=jobs, report=move_progress)
    end_progress()
    if entry is None:
        emit_line(f"Nothing has changed since the newest record in {folder}, which stands")
        return
    size = (folder / entry.file).stat().st_size
    emit_line(f"{folder / entry.file}: {entry.row_count:,} predictions, {size:,} bytes, SHA-256 {entry.sha256}")


@app.command("score")
@command
def score(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Files of results, of other tools or own tables.")
    ] = None,
    *,
    facts: FactOptions,
    date: str = option("", "Date of results without one, as 2026-05-17.", metavar="DATE", shown="from the file"),
    shipped: bool = option(False, "Score the built-in measurements too."),
    folder: Path = option(FOLDER, FOLDER_HELP, metavar="FOLDER"),
    limit: int = option(20, LIMIT_HELP, min=1, panel=OUTPUT),
    output: ServedOutputOptions,
) -> None:
    """Score results that came after a record.

    Compares each result with the newest record that is older, and appends the scores to record.csv in the folder above.
    Reads every format of `joulemap verify` and the tables of `measurements import`. Nothing is predicted again: only
    recorded numbers count. Left out with a line each are changed records, files of another format, and results without
    a date or older than every record.

    Built-in measurements that are older than every record are scored as `in view`: the model may have seen them.

    \b
    joulemap record score inferencex.json
    joulemap record score llama_bench.json --hardware rtx_4090
    joulemap record score --shipped
    """
    from joulemap.domain import check_day
    from joulemap.system import UnscoredError, UsageError
    from joulemap.wing.record.ask import list_scores
    from joulemap.wing.record.score import score_results

    if not files and not shipped:
        raise UsageError("nothing to score: name a file, or add --shipped")
    if date:
        check_day("--date", date, is_whole=True)
    output.check_file()
    rows = score_results(
        folder,
        files or [],
        facts.keywords(),
        date=date,
        shipped=shipped,
        say=lambda line: voice.inform(f"joulemap: {line}"),
    )
    if not rows:
        raise UnscoredError("no result could be scored: the lines above give the reasons")
    output.write(list_scores(folder, rows).document(limit=limit))


@app.command("list")
@command
def list_(
    *,
    folder: Path = option(FOLDER, FOLDER_HELP, metavar="FOLDER"),
    limit: int = option(20, LIMIT_HELP, min=1, panel=OUTPUT),
    output: OutputOptions,
) -> None:
    """List the records and their scores, losses first.

    Exits with 9 if a record may not be used, because it was changed or the chain is broken.

    \b
    joulemap record list
    joulemap record list --format csv
    """
    from joulemap.wing.record.ask import list_records
    from joulemap.wing.record.chain import read_chain

    output.check_file()
    chain = read_chain(folder)
    output.write(list_records(chain).document(limit=limit))
    chain.check_faults()
