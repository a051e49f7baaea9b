"""Digests of stored rows, which detect damage and manual edits.

A sealed record is a row with its rows in other tables: a run with its subgraphs, operators and ledger, a workload, a
hardware version, a calibration, a measurement, an estimate, or a measurement and prediction of serving. Its
`content_digest` has eight hexadecimal digits for each of these tables, in the order of its `Seal`, separated by
hyphens. Each group of digits is a digest

- of the row itself, from the Python text of its values in the order of the table's columns;
- or of the rows of another table, as they are stored: see `digest_groups`, which digests many records together.

Numbers that only identify rows of one database are omitted or replaced by the content to which they refer. A run thus
has the same digest in every database. Tables that are replaced as a whole have one digest each in `table_digest`. Each
set of sealed records has one too, so that the removal of a whole record is detected.

A cryptographic digest would slow the writing of ledgers too much. These digests miss one change in four billion. They
are not signatures, because anybody who changes rows can recompute them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

import attrs
import duckdb

from joulemap.store.literal import execute, quote_name
from joulemap.system.record import frozen

OWN_NUMBERS: Final = frozenset(
    {
        "run_id",
        "workload_id",
        "measurement_id",
        "serving_measurement_id",
        "estimate_id",
        "action_id",
        "is_newest",
        "content_digest",
    }
)
"""Columns that do not count as content: ids that are valid in one database only, and values derived from other rows."""

NAMED: Final = "named"
"""Name of the column with the content that replaces omitted ids."""

REPLACED_TABLES: Final = (
    "catalogue_entry", "metric", "model_entry", "cost_assumption", "grid_region", "offer", "seller_price",
    "operator_measurement", "action_role", "event", "event_term", "error_scale", "error_share", "basis_spread",
    "serving_scale", "power_floor", "interval_version",
)  # fmt: skip
"""Tables that are replaced as a whole when the catalogue changes."""

PLACED: Final = ("ledger_line", "point_action")
"""Tables of a run in which an action's position in the reference table replaces its id."""

UNPRICED: Final = 65_535
"""Position that stands for an action without an energy."""

CHUNK_ROWS: Final = 1_000_000
"""Target number of rows digested at a time; more rows cost memory, fewer cost time."""

START: Final = 0x9E3779B97F4A7C15
FACTOR: Final = 0xBF58476D1CE4E5B9
SHIFT: Final = 29
"""Odd constants and a shift that spread each bit of a row's values over its digest (Source: SplitMix64)."""

MISSING: Final = 0xD6E8FEB86659FD93
"""Number that represents a missing value."""

Columns = Mapping[str, Any]
"""Column name -> numpy array with the types that the engine returns."""


@frozen(kw_only=True)
class Seal:
    """Kind of record that one digest covers: a row of `table` with its rows in other tables."""

    table: str
    key: str
    parts: tuple[str, ...] = ()
    """Other tables with rows that belong to a row of `table`."""
    named: Mapping[str, str] = {}
    """Table -> SQL expression for the content that replaces omitted ids of its row `t`."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables in the order of their digits in a digest."""
        return (self.table, *self.parts)


RUN: Final = Seal(
    table="run",
    key="run_id",
    parts=("run_subgraph", "run_operator", "ledger_line", "point_total", "point_action"),
    named={
        "run": "(SELECT w.workload_key FROM internal.workload AS w WHERE w.workload_id = t.workload_id)",
        "ledger_line": "t.action_id",  # replaced by its place in the reference table; a join would lose the order
        "point_action": "t.action_id",
    },
)
WORKLOAD: Final = Seal(
    table="workload",
    key="workload_id",
    parts=tuple(f"workload_{part}" for part in ("operator", "tensor", "access", "edge", "buffer", "subgraph")),
)
HARDWARE: Final = Seal(
    table="hardware_version",
    key="hardware_digest",
    parts=(
        "hardware_fact",
        "hardware_precision",
        "hardware_level",
        "hardware_link",
        "hardware_load",
        "hardware_operator",
        "hardware_power_mode",
        "energy_per_action",
    ),
    named={
        "energy_per_action": "(SELECT concat_ws('|', a.architecture, a.category, a.common_category, a.component, "
        "a.action, a.part, a.per) FROM internal.action AS a WHERE a.action_id = t.action_id)"
    },
)
CALIBRATION: Final = Seal(
    table="calibration", key="calibration_digest", parts=("calibration_coefficient", "calibration_error")
)
MEASUREMENT: Final = Seal(table="measurement", key="measurement_id")
SERVING_MEASUREMENT: Final = Seal(table="serving_measurement", key="serving_measurement_id")
SERVING_PREDICTION: Final = Seal(
    table="serving_prediction",
    key="serving_measurement_id",
    named={
        "serving_prediction": "(SELECT m.content_digest FROM internal.serving_measurement AS m "
        "WHERE m.serving_measurement_id = t.serving_measurement_id)"
    },
)
ESTIMATE: Final = Seal(table="estimate", key="estimate_id")
PLACEMENT: Final = Seal(table="placement", key="placement_id", parts=("placement_line",))

SEALS: Final = (
    RUN,
    WORKLOAD,
    HARDWARE,
    CALIBRATION,
    MEASUREMENT,
    SERVING_MEASUREMENT,
    SERVING_PREDICTION,
    ESTIMATE,
    PLACEMENT,
)


def digest_values(values: Sequence[Any]) -> str:
    """Return the digest of a sequence of Python values that the engine returned."""
    return _show(crc32(repr(tuple(values)).encode()))


def _show(checksum: int) -> str:
    return f"{checksum:08x}"


NOTHING: Final = _show(0)
"""Digest of a table without rows for a record."""

EMPTY: Final = digest_values(())
"""Digest of a table without rows, among the tables that are replaced as a whole."""


def _add_up(digests: Iterable[str]) -> int:
    """Return the order-independent sum of the digests of a set's members, modulo 2^64 when shown."""
    return sum(int.from_bytes(blake2b(digest.encode(), digest_size=8).digest(), "little") for digest in digests)


def _show_set(total: int) -> str:
    return f"{total % 2**64:016x}"


NO_RECORDS: Final = _show_set(0)
"""Digest of an empty set of records."""


def digest_groups(keys: Any, columns: Sequence[Any]) -> dict[Any, str]:
    """Return key -> digest of the rows with this key, in their order.

    Each row becomes a 64-bit number that mixes its position under the key with each of its values. The numbers of a key
    are summed and folded into 32 bits.
    """
    import numpy as np

    if not len(keys):
        return {}
    starts = np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1])
    group_keys = keys[starts].tolist()
    if len(set(group_keys)) < len(group_keys):
        order = np.argsort(keys, kind="stable")
        return digest_groups(keys[order], [column[order] for column in columns])
    counts = np.diff(np.append(starts, len(keys)))
    rows = np.arange(1, len(keys) + 1, dtype=np.uint64) - np.repeat(starts, counts).astype(np.uint64)
    rows *= np.uint64(START)
    for column in columns:
        rows ^= _bits(column)
        rows *= np.uint64(FACTOR)
        rows ^= rows >> np.uint64(SHIFT)
    sums = np.add.reduceat(rows, starts)
    sums ^= sums >> np.uint64(32)
    return {key: _show(one & 0xFFFFFFFF) for key, one in zip(group_keys, sums.tolist(), strict=True)}


_quote: Final = json.JSONEncoder(ensure_ascii=False).encode
"""JSON of a text, as `json.dumps` writes it, without making an encoder each time."""


def _bits(column: Any) -> Any:
    """Return a column as 64-bit integers that represent its values, MISSING for NULL."""
    import numpy as np

    is_masked = isinstance(column, np.ma.MaskedArray)
    values = column.data if is_masked else column
    if values.dtype.kind == "O":
        listed = column.tolist()
        if set(map(type, listed)) == {str}:
            crcs = {text: crc32(_quote(text).encode()) for text in dict.fromkeys(listed)}
            return np.fromiter(map(crcs.__getitem__, listed), np.uint64, len(listed))
        texts = [repr(value) for value in listed]
        one_of = dict(zip(texts, listed, strict=True))
        numbers = {text: crc32(json.dumps(value, ensure_ascii=False).encode()) for text, value in one_of.items()}
        return np.array([numbers[text] for text in texts], dtype=np.uint64)
    if values.dtype.kind == "f":
        bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
    else:
        bits = values.astype(np.int64, copy=False).view(np.uint64)
    return np.where(column.mask, np.uint64(MISSING), bits) if is_masked and np.any(column.mask) else bits


@frozen
class Digester:
    """Computation of digests for rows that are stored or will be stored."""

    connection: duckdb.DuckDBPyConnection
    _types: dict[str, dict[str, Any]] = attrs.field(factory=dict, init=False)

    def types(self, table: str) -> Mapping[str, Any]:
        """Return column -> numpy type of the engine's arrays, in the order of the table's columns."""
        if table not in self._types:
            columns = self.connection.execute(f"FROM internal.{table} LIMIT 0").fetchnumpy()
            self._types[table] = {str(name): column.dtype for name, column in columns.items()}
        return self._types[table]

    def compare(self, seal: Seal) -> Iterator[tuple[Any, str, str]]:
        """Yield (key, stored digest, digest computed from the rows) for every record of a kind, sorted by key.

        The computed digest is empty for rows that a damaged index does not find.
        """
        stored = dict(
            self.connection.execute(
                f"SELECT {seal.key}, content_digest FROM internal.{seal.table} ORDER BY {seal.key}"
            ).fetchall()
        )
        for keys in self.chunk(seal, list(stored)):
            current = self.read(seal, keys)
            yield from ((key, stored[key], current.get(key, "")) for key in keys)

    def chunk(self, seal: Seal, keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Yield groups of keys with at most `CHUNK_ROWS` rows in all; a larger record forms a group of its own."""
        counted = [
            self.connection.execute(f"SELECT {seal.key}, count(*) FROM internal.{part} GROUP BY ALL").fetchall()
            for part in seal.parts
        ]
        counts = [dict(one) for one in counted]
        start, rows = 0, 0
        for end, key in enumerate(keys):
            own = 1 + sum(one.get(key, 0) for one in counts)
            if rows and rows + own > CHUNK_ROWS:
                yield keys[start:end]
                start, rows = end, 0
            rows += own
        if keys:
            yield keys[start:]

    def read(self, seal: Seal, keys: Sequence[Any]) -> dict[Any, str]:
        """Return key -> digest computed from the stored rows, for each key that is stored."""
        heads = {row[0]: digest_values(row[1:]) for row in self._select(seal, seal.table, keys).fetchall()}
        parts = [self.read_part(seal, part, keys) for part in seal.parts]
        return {key: _join(heads[key], [part.get(key, NOTHING) for part in parts]) for key in keys if key in heads}

    def read_part(self, seal: Seal, part: str, keys: Sequence[Any]) -> dict[Any, str]:
        """Return key -> digest of the key's rows in the table `part`."""
        columns = self._select(seal, part, keys).fetchnumpy()
        if part in PLACED:
            columns[NAMED] = self._place_actions(keys, columns[seal.key], columns[NAMED])
        return digest_groups(columns.pop(seal.key), list(columns.values()))

    def digest_runs(self, runs: Mapping[str, Sequence[Any]], parts: Mapping[str, Columns]) -> list[str]:
        """Return the digests of runs that will be stored, in their order.

        `runs` has the columns of `run`, except columns that are NULL in all rows. `parts` maps each other table to its
        columns with the types of the engine, and a column `NAMED` with each action's position in the reference table.
        """
        keys = dict(self.connection.execute("SELECT workload_id, workload_key FROM internal.workload").fetchall())
        types = self.types(RUN.table)
        missing = [None] * len(runs[RUN.key])
        columns = [
            [_plain(types[name], value) for value in runs.get(name, missing)]
            for name in self._list_content(RUN, RUN.table)
        ]
        columns.append([keys.get(workload_id) for workload_id in runs["workload_id"]])
        part_digests = [
            digest_groups(parts[part][RUN.key], [parts[part][name] for name in self._shown(part)])
            if part in parts
            else {}
            for part in RUN.parts
        ]
        heads = map(digest_values, zip(*columns, strict=True))
        return [
            _join(head, [part.get(run_id, NOTHING) for part in part_digests])
            for head, run_id in zip(heads, runs[RUN.key], strict=True)
        ]

    def seal(self, seal: Seal, keys: Sequence[Any]) -> None:
        """Store the digests of new, complete records. The caller holds the transaction."""
        self.change_set(seal, self.reseal(seal, keys))

    def reseal(self, seal: Seal, keys: Sequence[Any]) -> Iterable[str]:
        """Compute, store and return the digests of stored records. The caller holds the transaction."""
        digests = self.read(seal, keys) if keys else {}
        execute(
            self.connection,
            f"UPDATE internal.{seal.table} SET content_digest = s.digest "
            "FROM (SELECT unnest($keys) AS key, unnest($digests) AS digest) AS s "
            f"WHERE {seal.table}.{seal.key} = s.key",
            {"keys": list(digests), "digests": list(digests.values())},
        )
        return digests.values()

    def change_set(self, seal: Seal, added: Iterable[str], removed: Iterable[str] = ()) -> None:
        """Update the digest of a set of records by the digests of added and removed records.

        A record lost for any other reason still makes a difference. The caller holds the transaction.
        """
        stored = execute(
            self.connection,
            "SELECT content_digest FROM internal.table_digest WHERE table_name = $table",
            {"table": seal.table},
        ).fetchall()
        before = int(stored[0][0], 16) if stored else 0
        self._store_digests({seal.table: _show_set(before + _add_up(added) - _add_up(removed))})

    def read_set(self, seal: Seal) -> str:
        """Return the digest of the set of all records of a kind, from their stored digests."""
        rows = self.connection.execute(f"SELECT content_digest FROM internal.{seal.table}").fetchall()
        return _show_set(_add_up(digest for (digest,) in rows))

    def seal_tables(self, tables: Sequence[str] = REPLACED_TABLES) -> None:
        """Store the digests of tables that were replaced. The caller holds the transaction."""
        self._store_digests({table: self.read_table(table) for table in tables})

    def _store_digests(self, digests: Mapping[str, str]) -> None:
        execute(
            self.connection,
            "INSERT OR REPLACE INTO internal.table_digest SELECT unnest($tables), unnest($digests)",
            {"tables": list(digests), "digests": list(digests.values())},
        )

    def read_table(self, table: str) -> str:
        """Return the digest of all rows of a table."""
        rows = self.connection.execute(
            f"SELECT {', '.join(map(quote_name, self.types(table)))} FROM internal.{table} ORDER BY rowid"
        ).fetchall()
        return digest_values(rows)

    def conform(self, table: str, columns: Columns) -> dict[str, Any]:
        """Return columns converted to the types that the engine returns for a table; unknown columns stay unchanged."""
        types = self.types(table)
        return {
            name: values.astype(types[name], casting="same_kind", copy=False) if name in types else values
            for name, values in columns.items()
        }

    def _list_content(self, seal: Seal, table: str) -> list[str]:
        """Return the columns of a table that count as content in its digest."""
        return [name for name in self.types(table) if name not in OWN_NUMBERS and name != seal.key]

    def _shown(self, table: str) -> list[str]:
        return [*self._list_content(RUN, table), *([NAMED] if table in RUN.named else [])]

    def _select(self, seal: Seal, table: str, keys: Sequence[Any]) -> duckdb.DuckDBPyConnection:
        """Select key and content of the rows with these keys, in stored order.

        For integer keys, rows with other keys between the smallest and the largest are included.
        """
        shown = [f"t.{quote_name(name)}" for name in (seal.key, *self._list_content(seal, table))]
        if table in seal.named:
            shown.append(f"{seal.named[table]} AS {NAMED}")
        if isinstance(keys[0], int):  # rows are in the order of insertion; a sort would take longer than the rest
            chosen, given = f"t.{seal.key} BETWEEN $first AND $last", {"first": min(keys), "last": max(keys)}
        else:
            chosen, given = f"t.{seal.key} IN (SELECT unnest($keys)) ORDER BY t.rowid", {"keys": list(keys)}
        return execute(self.connection, f"SELECT {', '.join(shown)} FROM internal.{table} AS t WHERE {chosen}", given)

    def _place_actions(self, keys: Sequence[int], run_ids: Any, action_ids: Any) -> Any:
        """Return the position of each row's action in the reference table of its run's hardware."""
        import numpy as np

        statement = "SELECT run_id, hardware_digest FROM internal.run WHERE run_id BETWEEN $first AND $last"
        first, last = min(keys), max(keys)
        rows = np.zeros(last - first + 1, dtype=np.int64)
        for run_id, digest in execute(self.connection, statement, {"first": first, "last": last}).fetchall():
            rows[run_id - first] = self._prices.rows.get(digest, 0)
        places = self._prices.places
        return places[rows[run_ids - first], np.minimum(action_ids, places.shape[1] - 1)]

    @cached_property
    def _prices(self) -> _Prices:
        import numpy as np

        priced = self.connection.execute(
            "SELECT hardware_digest, action_id, action_index FROM internal.energy_per_action ORDER BY hardware_digest"
        ).fetchall()
        rows = {digest: row for row, digest in enumerate(dict.fromkeys(digest for digest, _, _ in priced), 1)}
        width = max((action_id for _, action_id, _ in priced), default=0) + 2
        places = np.full((len(rows) + 1, width), UNPRICED, dtype=np.uint16)
        for digest, action_id, column in priced:
            places[rows[digest], action_id] = column
        return _Prices(rows, places)


@frozen
class _Prices:
    rows: Mapping[str, int]
    """Hardware digest -> row of `places`; row 0 stands for unknown hardware."""
    places: Any
    """(row, action_id) -> position of the action in the reference table, or UNPRICED."""


@contextlib.contextmanager
def resealing(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Update digests of rows whose columns change in this context; rows with an invalid digest keep it.

    The caller holds the transaction.
    """
    before = Digester(connection)
    whole = [(seal, [key for key, stored, current in before.compare(seal) if stored == current]) for seal in SEALS]
    stored = dict(connection.execute("SELECT table_name, content_digest FROM internal.table_digest").fetchall())
    tables = [table for table in REPLACED_TABLES if stored.get(table) == before.read_table(table)]
    sets = [seal for seal in SEALS if stored.get(seal.table, NO_RECORDS) == before.read_set(seal)]
    yield
    after = Digester(connection)
    for seal, keys in whole:
        for chunk in after.chunk(seal, keys):
            after.reseal(seal, chunk)
    after.seal_tables(tables)
    after._store_digests({seal.table: after.read_set(seal) for seal in sets})


def _plain(kind: Any, value: Any) -> Any:
    """Return a value converted to the Python form in which the engine returns values of this column type."""
    if value is None:
        return None
    return {"f": float, "i": int, "u": int}.get(kind.kind, lambda same: same)(value)


def _join(head: str, parts: Iterable[str]) -> str:
    return "-".join((head, *parts))
