"""Lake: a folder of shards that is queried like a database, through the same views.

The views are in a temporary database that lives as long as the query. It is a copy of the template in which scans of
the shards replace the tables of runs. The digest of a shard's content, which is in its file name, is checked once; the
file attributes that a write changes are then remembered next to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb

from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.dimension import fill_views
from joulemap.domain.host import HOST_COLUMNS
from joulemap.plan import formula_version
from joulemap.store import Connection, Kind, Shard, configure, connect, execute, find_damage, quote_text
from joulemap.store.connection import open_in_memory, reporting_failures
from joulemap.store.literal import quote_name
from joulemap.system import DatabaseError, drafting, frozen
from joulemap.system.cache import cache_folder, read_cached, write_cached
from joulemap.system.resource import folder as resource_folder
from joulemap.wing.explore.lake.footer import COLUMNS, Footer, check_rows, confine, read_footers
from joulemap.wing.explore.lake.shard import (
    MOST_POINTS,
    PART,
    is_lake,
    read_block,
    rule_version,
)

MOST_MEMORY: Final = "700MB"
"""Memory limit of the database engine for a lake of any size; beyond it, the engine spills to disk."""

ABSENT: Final = (
    "subgraph_results", "operator_results", "energy_ledger", "energy_parts", "part_amounts",
    "event_counts",
    "run_overheads", "operators", "uncounted", "assumptions", "caveats", "placements", "placement_ledger", "estimates",
    "run_subgraph", "run_operator", "ledger_line", "run_action",
    "point_total", "point_action", "workload_operator",
)  # fmt: skip
"""Views and tables of operators, energies and other parts of runs; they are empty in a lake, which stores only totals.
"""

JOINT_WIDTH: Final = "sqrt(greatest(pow(s.energy_half_width, 2) {latency} * pow(s.latency_half_width, 2), 0e0))"
"""SQL of the half-width of energy x latency (`+ 3`) or of energy / latency (`- 1`)."""

_TABLE: Final = re.compile(r'"table_name":"(\w+)"')
"""Pattern of a table that a statement reads, in the engine's serialized form of the statement."""


@frozen(kw_only=True)
class Survey:
    """State of all files of a lake."""

    shards: tuple[Shard, ...]
    """Whole shards that current formulas and rules wrote, sorted by question."""
    footers: Mapping[Path, Footer]
    """Footer of each whole shard, by its path."""
    stale: tuple[Shard, ...]
    """Shards that other versions of the formulas or design rules wrote."""
    damaged: tuple[tuple[Shard, str], ...]
    """Truncated or altered shards, each with the reason why it counts as damaged."""
    twice: tuple[Shard, ...]
    """Shards that repeat the points of another shard."""
    unfinished: tuple[Path, ...]
    """Files that a process is writing, or that a killed process left."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings on omitted shards, shown with every query of the lake."""
        warnings = [f"left out {one.path}: {why}" for one, why in self.damaged]
        if count := len(self.stale):
            ruled = sum(one.folder.rpartition("-")[0] in _list_current() for one in self.stale)
            parts = [f"{ruled} of other design rules"] * (ruled > 0)
            parts += [f"{count - ruled} of other formulas"] * (count > ruled)
            shards = "shard" if count == 1 else "shards"
            warnings.append(
                f"left out {count} stale {shards} ({', '.join(parts)} than this version's); `joulemap lake clean` "
                "lists them"
            )
        return tuple(warnings)


def survey(lake: Path, *, is_thorough: bool = False) -> Survey:
    """Return the state of a lake's shards.

    With `is_thorough` every row is read, else only bytes written since the last check. Raise DatabaseError for a folder
    that is not a lake.
    """
    if not is_lake(lake):
        raise DatabaseError(
            f"{lake} {'is not a lake' if lake.exists() else 'is missing'}; name a folder that `explore --lake` filled"
        )
    current = _list_current()
    paths = sorted({*lake.glob("*/*"), *lake.glob("*/.*.part")})
    unfinished = [path for path in paths if PART.fullmatch(path.name)]
    shards = [shard for path in paths if (shard := read_block(path)) is not None]
    fresh = [one for one in shards if one.folder in current]
    reasons = _find_damaged(lake, fresh, is_thorough=is_thorough)
    footers, strange = read_footers([one for one in fresh if one.path not in reasons])
    reasons |= strange
    if is_thorough:
        rows = {one.path: check_rows(one, footers[one.path]) for one in fresh if one.path in footers}
        reasons |= {path: why for path, why in rows.items() if why}
    whole: dict[tuple[str, str], Shard] = {}
    for one in fresh:
        if one.path not in reasons:
            whole.setdefault((one.folder, one.subject), one)
    kept = {one.path for one in whole.values()}
    return Survey(
        shards=tuple(whole.values()),
        footers={one.path: footers[one.path] for one in whole.values()},
        stale=tuple(one for one in shards if one.folder not in current),
        damaged=tuple((one, reasons[one.path]) for one in fresh if one.path in reasons),
        twice=tuple(one for one in fresh if one.path not in kept and one.path not in reasons),
        unfinished=tuple(unfinished),
    )


def _list_current() -> set[str]:
    """Return the names of the folders with shards of current formulas, with current design rules or without any."""
    return {f"{one}-{formula_version(one)}{end}" for one in CLASS_HARDWARE for end in ("", f"-{rule_version()}")}


def _find_damaged(lake: Path, shards: Sequence[Shard], *, is_thorough: bool) -> dict[Path, str]:
    """Return the damaged shards by path, with the reason."""
    kept = cache_folder() / f"lake-{hashlib.sha256(str(lake.resolve()).encode()).hexdigest()[:16]}.json"
    seen = {} if is_thorough else read_cached(kept)
    sights = {one.path.name: _read_attributes(one.path) for one in shards}
    new = [one for one in shards if seen.get(one.path.name) != sights[one.path.name]]
    with ThreadPoolExecutor(2) as pool:
        reasons = {one.path: why for one, why in zip(new, pool.map(find_damage, new), strict=True) if why}
    if new:
        sound = {name: at for name, at in sights.items() if name not in {path.name for path in reasons}}
        write_cached(kept, sound)
    return reasons


def _read_attributes(path: Path) -> list[int]:
    with contextlib.suppress(OSError):
        state = path.stat()
        return [state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]
    return []


@contextlib.contextmanager
def reading_lake(lake: Path, template: Path | None, kind: Kind, report: Any) -> Iterator[Connection]:
    """Yield a connection that queries the shards of a lake like a database; `report` gets a message on omitted shards.

    `template` is a database with the catalogue and no runs. Raise DatabaseError for a folder that is not a lake.
    """
    surveyed = survey(lake)
    for text in surveyed.doubts:
        report(text)
    with contextlib.ExitStack() as stack:
        stack.enter_context(reporting_failures(lake))
        connection = stack.enter_context(contextlib.closing(_open(stack, template)))
        connection.execute(f"SET threads = {os.cpu_count() or 1 if len(surveyed.shards) > 1 else 1}")
        connection.execute(f"SET memory_limit = '{MOST_MEMORY}'")
        connection.execute("SET parquet_metadata_cache = true")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        configure(connection, confine(kind, surveyed.shards))
        try:
            _fill(connection, surveyed)
        except duckdb.ConstraintException as error:
            reason = str(error).splitlines()[0]
            raise DatabaseError(f"{lake}: a shard describes what joulemap does not write ({reason})") from error
        yield connection


def _open(stack: contextlib.ExitStack, template: Path | None) -> Connection:
    """Return a temporary database for this query, with the catalogue and no runs."""
    if template is None:
        return open_in_memory()
    import shutil

    try:
        drafts = stack.enter_context(drafting(cache_folder()))
        shutil.copyfile(template, drafts / "lake.duckdb")
    except OSError as error:
        raise DatabaseError(f"cannot read a lake in {cache_folder()}: {error.strerror or error}") from error
    return connect(drafts / "lake.duckdb")


def _fill(connection: Connection, surveyed: Survey) -> None:
    """Replace the tables of runs with scans of shards, and store the workloads and hardware that shards describe."""
    paths = [str(one.path.resolve()) for one in surveyed.shards]
    footers = [surveyed.footers[one.path] for one in surveyed.shards]
    columns = {one.column: one.name for about in footers for one in about.varied}
    workloads = {one["workload_key"]: one for about in footers for one in about.workloads}
    connection.execute("DROP TABLE internal.run; DROP TABLE internal.run_total")
    _insert_workloads(connection, workloads.values())
    _insert_hardware(connection, {one["hardware_digest"]: one for about in footers for one in about.hardware}.values())
    varied = dict(sorted(columns.items()))
    connection.execute(_scan(connection, surveyed.shards, paths, [str(key) for key in workloads], varied))
    connection.execute(_views(varied))


def number_shards(shards: Iterable[Shard]) -> list[int]:
    """Return a 33-bit number for each shard, derived from its question; later shards avoid numbers already taken."""
    numbers: dict[int, None] = {}
    for one in shards:
        number = int(one.subject, 16) >> 95
        while number in numbers:
            number += 1
        numbers[number] = None
    return list(numbers)


def _scan(
    connection: Connection,
    shards: Sequence[Shard],
    paths: Sequence[str],
    workloads: Sequence[str],
    varied: Mapping[str, str],
) -> str:
    """Return SQL of a view with the points of all shards; columns that no shard has are null.

    `varied` maps columns to constants.
    """
    if not shards:
        nulls = {**COLUMNS, "shard": "VARCHAR", "point_index": "BIGINT", "run_id": "BIGINT", "workload_id": "INTEGER",
                 "created_at": "TIMESTAMP", "changes": "VARCHAR[]", "is_plain": "BOOLEAN",
                 "edp_half_width": "DOUBLE", "power_half_width": "DOUBLE"}  # fmt: skip
        none = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in nulls.items())
        return f"CREATE VIEW internal.point AS SELECT {none} WHERE FALSE"
    source = f"read_parquet([{', '.join(map(quote_text, paths))}], union_by_name = true)"
    there = {str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    listed = [
        f"s.{quote_name(name)}" if name in there else f"CAST(NULL AS {kind}) AS {quote_name(name)}"
        for name, kind in COLUMNS.items()
    ]
    numbers = ", ".join(str(number * MOST_POINTS) for number in number_shards(shards))
    questions = ", ".join(quote_text(one.subject[:16]) for one in shards)
    times = ", ".join(
        quote_text(str(datetime.fromtimestamp(one.path.stat().st_mtime, UTC).replace(tzinfo=None))) for one in shards
    )
    keys = ", ".join(map(quote_text, workloads))
    terms = ", ".join(
        f"CASE WHEN s.{quote_name(column)} IS NOT NULL THEN {quote_text(f'{name}=')} || s.{quote_name(column)} END"
        for column, name in varied.items()
    )
    changes = f"list_filter([{terms}], lambda one: one IS NOT NULL)" if terms else "CAST([] AS VARCHAR[])"
    plain = " AND ".join(["TRUE", *(f"s.{quote_name(name)} IS NULL" for name in varied)])
    listed += [
        *(f"s.{quote_name(name)}" for name in varied),
        f"[{questions}][CAST(s.file_index AS BIGINT) + 1] AS shard",
        "s.file_row_number AS point_index",
        f"[{numbers}][CAST(s.file_index AS BIGINT) + 1] + s.file_row_number AS run_id",
        f"CAST(list_position([{keys}], s.workload_key) AS INTEGER) AS workload_id",
        f"CAST([{times}][CAST(s.file_index AS BIGINT) + 1] AS TIMESTAMP) AS created_at",
        f"{changes} AS changes",
        f"{plain} AS is_plain",
        f"{JOINT_WIDTH.format(latency='+ 3')} AS edp_half_width",
        f"{JOINT_WIDTH.format(latency='- 1')} AS power_half_width",
    ]
    return f"CREATE VIEW internal.point AS SELECT {', '.join(listed)} FROM {source} AS s"


def _views(varied: Iterable[str]) -> str:
    """Return SQL of the views of a lake; `varied` are the columns of varied constants."""
    sql = (resource_folder("schemas") / "lake" / "views.sql").read_text(encoding="utf-8")
    columns = "".join(f", p.{quote_name(name)}" for name in varied)
    return fill_views(sql.replace(",\n    p.{varied}", columns))


def _insert_workloads(connection: Connection, workloads: Iterable[Mapping[str, Any]]) -> None:
    for number, one in enumerate(workloads, 1):
        execute(
            connection,
            "INSERT INTO internal.workload (workload_id, workload_key, model, source, input_spec, input_shape, batch, "
            "inner_batch, parameter_count, weight_bytes, work, torch_version, torchvision_version, tracer_version, "
            "notes, created_at) VALUES ($number, $workload_key, $model, $source, $input_spec, $input_shape, $batch, 1, "
            "$parameter_count, 0, $work, $torch_version, $torchvision_version, $tracer_version, [], now()::TIMESTAMP)",
            {"number": number, **one},
        )


def _insert_hardware(connection: Connection, hardware: Iterable[Mapping[str, Any]]) -> None:
    """Store the hardware of shards, except versions that the catalogue has."""
    for one in hardware:
        execute(
            connection,
            "INSERT INTO internal.hardware_version (hardware_digest, hardware, name, vendor, architecture, deployment, "
            "microarchitecture, unit_name, memory_type, projection, unavailable, package_version, power_mode, aliases, "
            "doubts, priced_at, boundary, described_digest, needs_host, is_part, whole, own_host, host, "
            "matmul_precision) SELECT "
            "$hardware_digest, $hardware, $hardware, '', $architecture, string_split($deployment, ','), '', "
            "$unit_name, '', $projection, $unavailable, '', $power_mode, [], [], "
            "CASE WHEN $boundary = 'system' THEN 'board' ELSE $boundary END, $boundary, '', "
            "$needs_host, $is_part, $whole, $own_host, $host, $matmul_precision "
            "WHERE $hardware_digest NOT IN (SELECT hardware_digest FROM internal.hardware_version)",
            {**one, **{name: read(one["needs_host"]) for name, read in HOST_COLUMNS.items()}},
        )


def describe_absent(connection: Connection, sql: str) -> str:
    """Return a note if a statement reads views or tables that are empty in a lake; else an empty text."""
    with contextlib.suppress(duckdb.Error):
        ((tree,),) = execute(connection, "SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
        asked = set(_TABLE.findall(tree))
        if absent := [name for name in ABSENT if name in asked]:
            return (
                f"a lake holds totals of points and no parts of them: {', '.join(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} empty here; `joulemap analyze` has the parts of a configuration"
            )
    return ""
