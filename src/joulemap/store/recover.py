"""Recovery of all readable data of a damaged database into a new database.

A sound database is copied as it is. Recovery from a damaged one works on a copy of the file and its log. The copy is
opened as far as possible: blocks damaged by a killed checkpoint are restored, and a damaged log is cut where its damage
begins. Workloads, hardware, calibrations and runs are then read in groups, and a group that cannot be read is split in
two until each unreadable record is alone; rows that differ from their digests are omitted.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import duckdb

from joulemap.store.check import accept_blocks, find_damaged_blocks, find_row_faults
from joulemap.store.connection import Connection, make_empty
from joulemap.store.engine import connect
from joulemap.store.journal import journal_of, locking, log_of, put_back
from joulemap.store.literal import execute
from joulemap.store.manifest import KEYS
from joulemap.store.total import add_up
from joulemap.system.errors import DatabaseError
from joulemap.system.record import define

MOST_CUTS: Final = 1000
"""Maximum times that recovery shortens a damaged log."""

GROUP: Final = 500
"""Records that are read in one statement unless one of them is damaged; more need more memory and are hardly faster."""

_POSITION: Final = re.compile(r"byte position (\d+)")


@define
class Recovery:
    """Result of a recovery: number of recovered runs, and losses."""

    run_count: int = 0
    lost: list[str] = attrs.field(factory=list)
    """Descriptions of lost data with reasons, one line each."""
    is_copy: bool = False
    """True for a sound database, which was copied as it is."""


def copy_sound(path: Path, new: Path) -> Recovery:
    """Copy a database without faults, with what its log and journal hold; `new` lies in a folder for drafts."""
    recovery = Recovery(is_copy=True)
    _copy(path, new, recovery)
    with contextlib.closing(connect(new)) as connection:
        connection.execute("CHECKPOINT")
        ((recovery.run_count,),) = connection.execute("SELECT count(*) FROM internal.run").fetchall()
    return recovery


def save_readable(path: Path, sound: Path, *, is_bold: bool) -> Recovery:
    """Create a database at `sound` with all readable data of another one. A copy of the other one is made next to it.

    With `is_bold`, damaged blocks are read too, as far as the engine can interpret them, which may crash it; rows that
    their digests show as changed are omitted. Raises DatabaseError if nothing can be read, LockedDatabaseError while
    the database is in use.
    """
    recovery = Recovery()
    copy = sound.with_name("copy.duckdb")
    _copy(path, copy, recovery)
    if is_bold:
        with copy.open("r+b") as stream:
            accept_blocks(stream, find_damaged_blocks(stream))
    _cut_log(path, copy, recovery)
    make_empty(sound)
    with contextlib.closing(connect(sound)) as connection:
        connection.execute(f"ATTACH '{_quote(copy)}' AS damaged")
        try:
            runs = connection.execute(
                "SELECT run_id, workload_id, hardware_digest, calibration_digest "
                "FROM damaged.internal.run ORDER BY run_id"
            ).fetchall()
        except duckdb.Error as error:
            raise DatabaseError(f"{path}: the table run cannot be read: {_reason(error)}") from error
        _save(connection, runs, recovery)
        _drop_changed(connection, recovery)
        ((recovery.run_count,),) = connection.execute("SELECT count(*) FROM internal.run").fetchall()
        connection.execute("CHECKPOINT")
    return recovery


def _copy(path: Path, copy: Path, recovery: Recovery) -> None:
    """Copy a database and its log; in the copy, restore blocks damaged by a killed checkpoint."""
    with locking(path):
        shutil.copyfile(path, copy)
        if log_of(path).is_file():
            shutil.copyfile(log_of(path), log_of(copy))
        with copy.open("r+b") as stream, contextlib.suppress(FileNotFoundError):
            try:
                put_back(journal_of(path), copy, stream.fileno())
            except DatabaseError as error:
                recovery.lost.append(f"what is in the place of the journal: {error}")


def _cut_log(path: Path, copy: Path, recovery: Recovery) -> None:
    """Shorten the log of a copy until the engine opens it. Raise DatabaseError if it does not open without a log
    either.
    """
    log = log_of(copy)
    for _ in range(MOST_CUTS):
        try:
            with contextlib.closing(connect(copy)) as connection:
                connection.execute("SELECT count(*) FROM duckdb_tables()")
            return
        except duckdb.Error as error:
            if not log.exists():
                raise DatabaseError(f"{path}: nothing can be read of it: {_reason(error)}") from error
            size, match = log.stat().st_size, _POSITION.search(str(error))
            end = int(match[1]) if match is not None else 0
            if 0 < end < size:
                os.truncate(log, end)
            else:
                log.unlink()
            recovery.lost.append(f"the last commits, in {log_of(path).name}: {_reason(error)}")


def _save(connection: Connection, runs: Sequence[tuple[int, int, str, str]], recovery: Recovery) -> None:
    """Copy all readable data of these runs, and all readable measurements."""
    for table in ("action", "measurement", "serving_measurement"):
        if reason := _copy_rows(connection, [table], "TRUE"):
            recovery.lost.append(f"the table {table}: {reason}")
    based = dict(
        _rows(connection, "SELECT calibration_digest, hardware_digest FROM damaged.internal.calibration", recovery)
    )
    wanted: dict[str, set[Any]] = {
        "workload_id": {workload for _, workload, _, _ in runs},
        "hardware_digest": {hardware for _, _, hardware, _ in runs} | set(based.values()),
        "calibration_digest": {calibration for _, _, _, calibration in runs if calibration},
    }
    saved = {key: _copy_records(connection, key, sorted(keys), recovery) for key, keys in wanted.items()}
    saved["calibration_digest"].add("")  # of a run without a calibration
    sound = [
        run_id
        for run_id, workload, hardware, calibration in runs
        if workload in saved["workload_id"]
        and hardware in saved["hardware_digest"]
        and (calibration or "") in saved["calibration_digest"]
    ]
    lacking = sorted({run_id for run_id, *_ in runs}.difference(sound))
    recovery.lost += [f"run {run_id}: its workload, hardware or calibration cannot be read" for run_id in lacking]
    _copy_records(connection, "run_id", sound, recovery)
    _add_up(connection, recovery)


def _add_up(connection: Connection, recovery: Recovery) -> None:
    """Compute and store the totals of all runs; remove runs whose parts cannot be summed."""
    try:
        add_up(connection)
    except duckdb.Error:
        for (run_id,) in connection.execute("SELECT run_id FROM internal.run ORDER BY run_id").fetchall():
            try:
                add_up(connection, run_id, run_id)
            except duckdb.Error as error:
                recovery.lost.append(f"run {run_id}: its parts do not add up: {_reason(error)}")
                _drop_runs(connection, [run_id])


def _tables(key: str) -> list[str]:
    return [table for table, own in KEYS.items() if own == key]


def _copy_records(connection: Connection, key: str, keys: Sequence[Any], recovery: Recovery) -> set[Any]:
    """Copy the records with these sorted keys, each whole or not at all; return the keys of the copied ones."""
    groups = [keys[start : start + GROUP] for start in range(0, len(keys), GROUP)]
    copied: set[Any] = set()
    while groups:
        group = groups.pop()
        values = [str(one) if isinstance(one, int) else f"'{_quote(one)}'" for one in group]
        # the range lets the engine skip rows, which may be damaged, outside of it
        which = f"{key} BETWEEN {values[0]} AND {values[-1]} AND {key} IN ({', '.join(values)})"
        reason = _copy_rows(connection, _tables(key), which)
        if not reason:
            copied.update(group)
        elif len(group) > 1:
            groups += [group[: len(group) // 2], group[len(group) // 2 :]]
        else:
            recovery.lost.append(f"{f'run {group[0]}' if key == 'run_id' else f'{key} = {values[0]}'}: {reason}")
    return copied


def _copy_rows(connection: Connection, tables: Sequence[str], which: str) -> str:
    """Copy the rows that match the condition `which` in all tables, or none of them; return why not, or nothing."""
    connection.execute("BEGIN TRANSACTION")
    try:
        for table in tables:
            connection.execute(
                f"INSERT INTO internal.{table} BY NAME SELECT * "
                f"FROM damaged.internal.{table} WHERE {which} ORDER BY rowid"
            )
    except duckdb.Error as error:
        with contextlib.suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        return _reason(error)
    connection.execute("COMMIT")
    return ""


def _drop_changed(connection: Connection, recovery: Recovery) -> None:
    """Remove runs whose rows, workload, hardware or calibration do not match their digest."""
    reasons: dict[tuple[str, int | None], str] = {}
    for rule, run_id, workload_id, location, _, _ in find_row_faults(connection):
        kind = next((kind for kind in ("hardware", "calibration") if f" {kind}" in rule), "")
        whose = ("run", run_id) if run_id else ("workload", workload_id) if workload_id else (kind, None)
        reasons.setdefault(whose, f"{location} is not as it was written: {rule}")
    changed = {
        int(run_id): reason
        for run_id, workload in connection.execute(
            "SELECT run_id, workload_id FROM internal.run ORDER BY run_id"
        ).fetchall()
        for key in (("run", run_id), ("workload", workload), ("hardware", None), ("calibration", None))
        if (reason := reasons.get(key)) is not None
    }
    recovery.lost += [f"run {run_id}: {reason}" for run_id, reason in changed.items()]
    _drop_runs(connection, list(changed))


def _drop_runs(connection: Connection, run_ids: Sequence[int]) -> None:
    for table in (*_tables("run_id"), "run_action", "run_total"):
        execute(connection, f"DELETE FROM internal.{table} WHERE list_contains($runs, run_id)", {"runs": run_ids})


def _rows(connection: Connection, statement: str, recovery: Recovery) -> Iterator[tuple[str, str]]:
    try:
        yield from connection.execute(statement).fetchall()
    except duckdb.Error as error:
        recovery.lost.append(f"calibrations: {_reason(error)}")


def _quote(value: object) -> str:
    return str(value).replace("'", "''")


def _reason(error: duckdb.Error) -> str:
    return str(error).splitlines()[0]
