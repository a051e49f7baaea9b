"""Making of a record: the fixed list is predicted, written and chained to the records before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from joulemap.bundle import bundle_version
from joulemap.system import UsageError, package_version
from joulemap.wing.llm.serve import serving_version
from joulemap.wing.record.chain import Entry, append_entry, digest, find_previous, name_file, read_chain
from joulemap.wing.record.evaluate import Task, evaluate, list_tasks
from joulemap.wing.record.point import list_version
from joulemap.wing.record.row import MOST_BYTES, encode_rows


def make_record(
    folder: Path, today: str, *, jobs: int = 2, report: Callable[[int, int], None], tasks: Sequence[Task] | None = None
) -> Entry | None:
    """Write the record of a day, and return its entry; None if the newest record has the same formulas and list.

    An older record with the same predictions is worth more than a new one. `tasks` limits the record to some of the
    list, for tests. Raises CatalogueError for a folder whose records were changed, UsageError for a day that is not
    after the newest record, or for a record that is too large to keep.
    """
    chain = read_chain(folder)
    chain.check_faults("no record is added to a damaged chain: ")
    versions = bundle_version(), serving_version(), list_version()
    last = chain.entries[-1] if chain.entries else None
    if last is not None and (last.formulas, last.servers, last.points) == versions:
        return None
    if last is not None and today <= last.date:
        raise UsageError(f"{folder / last.file} was made on {last.date}: the next record can be made after that day")
    rows = evaluate(list_tasks() if tasks is None else tasks, jobs, report)
    content = encode_rows(rows)
    if len(content) > MOST_BYTES:
        raise UsageError(f"the record has {len(content):,} bytes, more than {MOST_BYTES:,}: shorten its list")
    previous, version = find_previous(chain.entries), package_version("joulemap")
    entry = Entry(today, name_file(today), digest(content), previous, version, *versions, len(rows))
    append_entry(chain, entry, content)
    return entry
