"""Check of a database: every guarantee of its format is verified.

file -> every block in use is intact -> every table, view and macro is as created -> every digest matches its rows ->
every sum matches its parts

The engine compares the checksum of a block when it reads the block. No query reads every block: indexes are read only
for a row lookup or an insert. `engine` describes the layout of a file. A metadata block has 64 parts. Each part starts
with the place of the next: the block in the low 56 bits, the part in the others. The free list consists of such parts:
the number of free blocks, then their numbers. The content of a free block does not matter; after a crash it may be
incomplete.

Source: `src/storage/metadata/metadata_manager.cpp` of DuckDB 1.5.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import duckdb

from joulemap.store.connection import PATIENT, Connection, Patience, check_path, missing, reading
from joulemap.store.digest import (
    CALIBRATION,
    EMPTY,
    ESTIMATE,
    HARDWARE,
    MEASUREMENT,
    NO_RECORDS,
    PLACEMENT,
    REPLACED_TABLES,
    RUN,
    SEALS,
    SERVING_MEASUREMENT,
    SERVING_PREDICTION,
    WORKLOAD,
    Digester,
    Seal,
)
from joulemap.store.engine import FACTOR, HEAD, MAGIC, PAGE, SEED
from joulemap.store.library import find_query
from joulemap.store.literal import execute, quote_name
from joulemap.store.query import run_query
from joulemap.store.schema import find_changes
from joulemap.system.errors import DatabaseError, EngineError, SqlError
from joulemap.system.record import frozen

VERSIONS: Final = frozenset({67, 68})
"""Storage versions of DuckDB 1.4 and 1.5 to 2.0, whose blocks are laid out alike."""

WORD_BYTES: Final = 8
METADATA_PARTS: Final = 64
PLACE_BITS: Final = 56
NOWHERE: Final = 2**64 - 1


def find_damaged_blocks(stream: BinaryIO) -> list[int]:
    """Return the numbers of blocks in use whose checksum is wrong, or that lie beyond the end of the file.

    Returns an empty list for other storage versions, which the engine checks itself.
    """
    free_list, block_count, block_bytes = _read_newest(stream)
    damaged = {number for number in range(block_count) if not _is_whole(stream.read(block_bytes), block_bytes)}
    return sorted(damaged - _read_free(stream, free_list, block_bytes, damaged)) if damaged else []


def accept_blocks(stream: BinaryIO, numbers: Iterable[int]) -> None:
    """Replace the checksums of damaged blocks by those of their content, so that the engine reads them."""
    block_bytes = _read_newest(stream)[-1]
    for number in numbers:
        stream.seek(HEAD + number * block_bytes)
        block = stream.read(block_bytes)
        if len(block) == block_bytes:
            stream.seek(HEAD + number * block_bytes)
            stream.write(_checksum(block).to_bytes(WORD_BYTES, "little"))


def _read_newest(stream: BinaryIO) -> tuple[int, int, int]:
    """Return (place of the free list, number of blocks, bytes per block) of the newest checkpoint.

    All are 0 for another storage version.
    """
    stream.seek(0)
    header = stream.read(HEAD)
    if len(header) < HEAD or header[8:12] != MAGIC or struct.unpack_from("<Q", header, 12)[0] not in VERSIONS:
        return 0, 0, 0
    _, _, *places = max(struct.unpack_from("<5Q", header, page * PAGE + WORD_BYTES) for page in (1, 2))
    return places[0], places[1], places[2]


def _is_whole(block: bytes, block_bytes: int) -> bool:
    return len(block) == block_bytes and _checksum(block) == int.from_bytes(block[:WORD_BYTES], "little")


def _checksum(block: bytes) -> int:
    import numpy as np

    words = np.frombuffer(block, dtype="<u8")
    return int(np.bitwise_xor.reduce(words[1:] * np.uint64(FACTOR))) ^ SEED


def _read_free(stream: BinaryIO, pointer: int, block_bytes: int, damaged: set[int]) -> set[int]:
    """Return the numbers of the free blocks, up to the first damaged part of the free list."""
    part_bytes = (block_bytes - WORD_BYTES) // METADATA_PARTS // WORD_BYTES * WORD_BYTES
    words: list[int] = []
    while pointer != NOWHERE and not (words and len(words) > words[0]):
        block, part = pointer & (1 << PLACE_BITS) - 1, pointer >> PLACE_BITS
        if block in damaged:
            break
        stream.seek(HEAD + block * block_bytes + WORD_BYTES + part * part_bytes)
        pointer, *more = struct.unpack(f"<{part_bytes // WORD_BYTES}Q", stream.read(part_bytes))
        words += more
    return set(words[1 : words[0] + 1]) if words else set()


AUDIT: Final = "audit.conservation"
"""Name of the query that checks rows; faults found elsewhere have the same columns as its result."""

SCHEMA_RULE: Final = "tables, views and macros are those that joulemap makes"
SET_RULE: Final = "everything that was written is there, and nothing else"
TABLE_RULE: Final = "the rows of the catalogue are those that were written"
RECORD_RULE: Final = "the rows of a {noun} are those that were written"

ADVICE: Final = "`joulemap db recover` recovers what can be read"

LOOKUPS: Final = 1000
"""Index keys looked up in one statement; above 2,048 the engine scans the whole table instead."""

Fault = tuple[str, int | None, int | None, str, str, str]
"""(rule, run_id, workload_id, location, expected, found), the columns of `AUDIT`."""


@frozen(kw_only=True)
class Sealed:
    """Kind of records that a digest protects, with the wording for faults in them."""

    seal: Seal
    noun: str
    name: str
    """SQL expression for the name of a record `t`."""


SEALED: Final = (
    Sealed(
        seal=RUN,
        noun="run",
        name="(SELECT concat_ws(' ', w.model, 'on', v.hardware, t.precision, 'batch', t.batch, t.runtime) "
        "FROM internal.workload AS w, internal.hardware_version AS v "
        "WHERE w.workload_id = t.workload_id AND v.hardware_digest = t.hardware_digest)",
    ),
    Sealed(seal=WORKLOAD, noun="workload", name="concat_ws(' ', t.model, 'batch', t.batch)"),
    Sealed(seal=HARDWARE, noun="hardware version", name="t.hardware"),
    Sealed(seal=CALIBRATION, noun="calibration", name="t.name"),
    Sealed(seal=MEASUREMENT, noun="measurement", name="concat_ws(' ', t.model, 'on', t.hardware)"),
    Sealed(
        seal=SERVING_MEASUREMENT,
        noun="measurement of serving",
        name="concat_ws(' ', t.model, 'on', t.hardware)",
    ),
    Sealed(
        seal=SERVING_PREDICTION,
        noun="prediction of serving",
        name="(SELECT concat_ws(' ', m.model, 'on', m.hardware) FROM internal.serving_measurement AS m "
        "WHERE m.serving_measurement_id = t.serving_measurement_id)",
    ),
    Sealed(
        seal=ESTIMATE,
        noun="bulk estimate",
        name="(SELECT concat_ws(' ', t.model, 'on', v.hardware, t.precision, 'batch', t.batch, t.runtime) "
        "FROM internal.hardware_version AS v WHERE v.hardware_digest = t.hardware_digest)",
    ),
    Sealed(seal=PLACEMENT, noun="placement", name="concat_ws(' ', t.model, 'on', t.devices, 'of', t.box)"),
)


def check_database(path: Path, patience: Patience = PATIENT) -> list[Fault]:
    """Return every fault of a database, sorted by rule, run, workload and location.

    Raises DatabaseError for a file that cannot be opened or has a damaged block. The error names a table with the
    block.
    """
    if not check_path(path):
        raise missing(path)
    with path.open("rb") as stream, contextlib.ExitStack() as stack:  # closing the stream drops the engine's lock
        try:
            connection = stack.enter_context(reading(path, patience))
        except EngineError as error:  # raised on opening
            raise _damaged(path, error.__cause__ or error) from error
        try:
            _check_blocks(connection, stream, path)
            _check_indexes(connection, path)
            return find_faults(connection)
        except duckdb.Error as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> DatabaseError:
    return DatabaseError(f"{path} is damaged: {str(error).splitlines()[0]}; {ADVICE}")


def _check_blocks(connection: Connection, stream: BinaryIO, path: Path) -> None:
    """Raise DatabaseError for a file with a damaged block. The error names the table, or the block if it is in no
    table.
    """
    damaged = find_damaged_blocks(stream)
    if not damaged:
        return
    names = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name")
    for (name,) in names.fetchall():
        try:
            connection.execute(f"SELECT bit_xor(hash(whole)) FROM internal.{quote_name(name)} AS whole").fetchall()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DatabaseError(f"{path}: the table {name} is damaged: {reason}; {ADVICE}") from error
    numbers = ", ".join(map(str, damaged))
    raise DatabaseError(f"{path}: an index or the catalogue is damaged (block {numbers} of the file); {ADVICE}")


def _check_indexes(connection: Connection, path: Path) -> None:
    """Raise DatabaseError if an index does not find every key of its table."""
    indexed = connection.execute(
        "SELECT i.table_name, c.column_name, c.data_type FROM duckdb_constraints() AS i "
        "JOIN duckdb_columns() AS c ON c.table_oid = i.table_oid AND c.column_name = i.constraint_column_names[1] "
        "WHERE i.constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND len(i.constraint_column_names) = 1 "
        "ORDER BY i.table_name, i.constraint_index"
    ).fetchall()
    for named, indexed_column, kind in indexed:
        table, column = quote_name(named), quote_name(indexed_column)
        if not kind.isalpha():  # a user-defined type, whose name may be of any length
            continue
        keys = [
            key for (key,) in connection.execute(f"SELECT {column} FROM internal.{table} ORDER BY {column}").fetchall()
        ]
        step = 2 * LOOKUPS
        for start in (first for half in (0, 1) for first in range(half, len(keys), step)):
            asked = keys[start : start + step : 2]  # alternate keys: consecutive ones become a range scan
            statement = (
                f"SELECT {column} FROM internal.{table} "
                f"WHERE list_contains(CAST($keys AS {kind}[]), {column}) ORDER BY ALL"
            )
            rows = execute(connection, statement, {"keys": asked}).fetchall()
            if [key for (key,) in rows] != asked:
                raise DatabaseError(f"{path}: the index of {named}.{indexed_column} is damaged; {ADVICE}")


def find_faults(connection: Connection) -> list[Fault]:
    """Return every fault of an open database, sorted by rule, run, workload and location."""
    changes = find_changes(connection)
    faults: list[Fault] = [(SCHEMA_RULE, None, None, *change) for change in changes]
    if any(what.startswith("table ") and expected != "nothing" for what, expected, _ in changes):
        return faults
    stored = dict(connection.execute("SELECT table_name, content_digest FROM internal.table_digest").fetchall())
    digester = Digester(connection)
    for table in REPLACED_TABLES:
        digest = digester.read_table(table)
        expected = stored.get(table, EMPTY)
        if digest != expected:
            faults.append((TABLE_RULE, None, None, table, expected, digest))
    for seal in SEALS:
        digest, expected = digester.read_set(seal), stored.get(seal.table, NO_RECORDS)
        if digest != expected:
            faults.append((SET_RULE, None, None, seal.table, expected, digest))
    return sorted([*faults, *find_row_faults(connection)], key=_order)


def find_row_faults(connection: Connection) -> list[Fault]:
    """Return every fault in the rows of runs and other records, sorted by rule, run, workload and location."""
    faults = [fault for sealed in SEALED for fault in _find_changed(connection, sealed)]
    try:
        faults += run_query(connection, find_query(AUDIT), {}).rows
    except SqlError as error:
        faults.append((f"{AUDIT} has an answer", None, None, "database", "rows", str(error)))
    except duckdb.InternalError as error:
        if not faults:  # every row matches its digest
            raise EngineError(
                f"duckdb {duckdb.__version__} failed internally on {AUDIT}, although no row has changed: "
                f"{str(error).splitlines()[0]}; please report this"
            ) from error
        faults.append((f"{AUDIT} has an answer", None, None, "database", "rows", str(error).splitlines()[0]))
    return sorted(faults, key=_order)


def is_change(fault: Fault) -> bool:
    """Return True for a fault that shows rows other than those that were written, rather than rows that break a rule.

    Only such a fault means that the file is damaged.
    """
    records = (RECORD_RULE.format(noun=one.noun) for one in SEALED)
    return fault[0] in (SCHEMA_RULE, TABLE_RULE, SET_RULE, *records)


def _order(fault: Fault) -> tuple[str, int, int, str]:
    rule, run_id, workload_id, location, _, _ = fault
    return rule, run_id or 0, workload_id or 0, location


def _find_changed(connection: Connection, sealed: Sealed) -> Iterator[Fault]:
    seal = sealed.seal
    name = f"SELECT {sealed.name} FROM internal.{seal.table} AS t WHERE t.{seal.key} = $key"
    for key, stored, current in Digester(connection).compare(seal):
        if stored != current:
            rows = execute(connection, name, {"key": key}).fetchall()
            yield from _list_mismatches(sealed, key, rows[0][0] if rows else str(key), stored, current)


def _list_mismatches(sealed: Sealed, key: Any, name: str | None, stored: str, current: str) -> Iterator[Fault]:
    """Yield a fault for each table in which the rows of a record do not match their digest."""
    rule = RECORD_RULE.format(noun=sealed.noun)
    run_id, workload_id = (key if sealed.seal is seal else None for seal in (RUN, WORKLOAD))
    tables, expected = sealed.seal.tables, stored.split("-")
    if len(expected) != len(tables):
        expected = ["no digest"] * len(tables)
    held = current.split("-") if current else ["no row"] * len(tables)
    for table, was, digest in zip(tables, expected, held, strict=True):
        if was != digest:
            yield rule, run_id, workload_id, f"{table} of {name}" if name else table, was, digest
