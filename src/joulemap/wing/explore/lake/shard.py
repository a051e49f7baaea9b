"""Shards of a lake: the points of a block in one immutable file (`joulemap.store.shard`), and its footer.

    LAKE/joulemap-lake.json                         the marker: a folder without it is not a lake
    LAKE/tpu-3f0c…-9b12…/                           class, version of its formulas, version of the design rules
        QUESTION-CONTENT.parquet                    digest of the block, digest of every byte of the file

Row n of a shard is point n of its block.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.physics.run import BOTTLENECKS
from joulemap.store import Shard
from joulemap.store.shard import make_token, read_name, write_shard
from joulemap.system import DatabaseError, FileError, UsageError, digest_code, package_version, read_text
from joulemap.wing.explore.block import LAKE_COLUMNS, QUESTION, Block, name_column

MARKER: Final = "joulemap-lake.json"
MOST_MARKER_BYTES: Final = 10_000

FORMAT: Final = 1
"""Format version of shards; a lake of another version is refused."""

RULED: Final = (
    "wing/explore/design/rule.py", "wing/explore/design/outcome.py", "physics/record/constant.py",
    "physics/record/address.py", "physics/change.py", "physics/area.py", "physics/point.py", "physics/total.py",
    "physics/interval",
    *(f"catalog/data/doubt/{name}.csv" for name in ("power", "scale", "share", "spread")),
)  # fmt: skip
"""Files on which design points depend in addition to formulas: design rules, totals and uncertainty."""

KEY: Final = "joulemap"
"""Key of the shard's description in the Parquet metadata."""

ROW_GROUP: Final = 122_880
"""Rows per row group; one engine thread reads a row group at once."""

MOST_POINTS: Final = 1 << 20
"""Maximum points of a shard; a larger row number would make run ids, which are doubles, inexact."""

BLOCK: Final = re.compile(r"[0-9a-f]{32}")
"""Pattern of the digest of a block, which is the subject of a lake's shard."""

REMOTE: Final = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)")
"""Pattern of a URL that was converted to a path, such as `s3:/bucket/lake`."""
PART: Final = re.compile(r"\.[0-9a-f]{32}\..+\.part")

WORKLOAD: Final = tuple(one.name for one in LAKE_COLUMNS if one.of == "workload")
HARDWARE: Final = tuple(one.name for one in LAKE_COLUMNS if one.of == "hardware")
"""Columns of a block that describe the hardware; the footer lists their distinct values."""

CATEGORIES: Final = tuple(f"{name}_fj" for name in COMMON_CATEGORIES)

TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    **{one.name: (one.type, one.unit) for one in LAKE_COLUMNS if one.of == "result"},
    **dict.fromkeys(CATEGORIES, ("int64", "1e-15 J")),
}
"""Column of results -> (type, unit); a shard may omit a column, which is then read as null."""

ASKED_MOST: Final = ("latency_fs", "interval_fs", "energy_fj")
"""Columns that most queries read; they are stored uncompressed, which halves the read time for a fifth more space."""


class Points(Protocol):
    """Results of points: one attribute per name in `TOTALS`, with one row per point."""

    @property
    def latency_fs(self) -> Any:
        """Latency of each point in femtoseconds."""

    @property
    def energy_fj(self) -> Any:
        """Energy of each point in femtojoules."""

    @property
    def category_fj(self) -> Mapping[str, Any]:
        """Energy in femtojoules by common category."""

    @property
    def refusal(self) -> Any:
        """Reason why the hardware cannot run the point; empty if it can."""


def rule_version() -> str:
    """Return a digest of the design rules, as sixteen hexadecimal digits."""
    return digest_code(*RULED)


def open_lake(folder: Path) -> None:
    """Make a new or empty folder a lake.

    Raise UsageError if the folder has other content or cannot be written, DatabaseError if the disk is full.
    """
    if is_lake(folder):
        return
    draft = folder / f".{MARKER}.{make_token()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(one.name != MARKER and not one.name.startswith(f".{MARKER}") for one in folder.iterdir()):
            raise UsageError(f"{folder} is a folder with other files: name a lake, or a folder that is new or empty")
        draft.write_text(json.dumps({"format": FORMAT}), encoding="utf-8")
        draft.replace(folder / MARKER)
    except OSError as error:
        kind = DatabaseError if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else UsageError
        raise kind(f"cannot make a lake of {folder}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def is_lake(folder: Path) -> bool:
    """Return whether a folder is a lake; UsageError for a lake of another format or a path that is not a folder."""
    if remote := REMOTE.match(str(folder)):
        raise UsageError(
            f"{remote[1]}://{remote[2]} is an object store, but a lake is a folder: name a folder, and copy new files "
            "between the two (`aws s3 sync`, `rclone copy`): shards are never changed"
        )
    try:
        if not os.path.lexists(folder / MARKER):
            return False
        version = json.loads(read_text(folder / MARKER, MOST_MARKER_BYTES)).get("format")
    except (FileError, OSError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"{folder / MARKER} cannot be read: {error}") from error
    if version != FORMAT:
        raise UsageError(f"{folder} is a lake of format {version}, this joulemap reads format {FORMAT}")
    return True


def read_block(path: Path) -> Shard | None:
    """Return the shard that a file's name and size describe; None if the name is not that of a lake's shard."""
    shard = read_name(path)
    return shard if shard is not None and BLOCK.fullmatch(shard.subject) else None


def store_points(lake: Path, block: Block, points: Points) -> Shard:
    """Write the points of a block atomically as a shard and return it; an existing shard is returned unchanged.

    Raise ValueError if points and block differ in length, DatabaseError if the shard cannot be written.
    """
    try:
        return write_shard(lake / block.folder, block.digest, encode(block, points))
    except OSError as error:
        raise DatabaseError(
            f"{lake}: a shard cannot be written: {error.strerror or error}; finished shards stay, and the same "
            "command continues from there"
        ) from error


def encode(block: Block, points: Points) -> Any:
    """Return the bytes of a shard; they depend only on the block, the points and versions of the code."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = block.point_count
    if len(points.latency_fs) != count or count > MOST_POINTS:
        raise ValueError(f"{len(points.latency_fs)} points for a block of {count}, of at most {MOST_POINTS}")
    columns = {name: _column(block.columns[name], kind, count) for name, kind in QUESTION.items()}
    varied = {name: name_column(name, unit) for name, (unit, _) in block.varied.items()}
    columns |= {varied[name]: pa.array(np.asarray(values, np.float64)) for name, (_, values) in block.varied.items()}
    repeated = [*columns, *(one.name for one in LAKE_COLUMNS if one.repeats)]  # others are faster without a dictionary
    evaluated = np.asarray(points.refusal) == ""
    for name, values in _list_totals(points):
        columns[name] = _total(values, TOTALS[name][0], evaluated if name == "refusal" else ~evaluated)
    columns["is_edge"] = pa.array(evaluated & _find_edge(block, points))
    columns["package_version"] = _column(package_version(KEY), "text", count)
    about = _describe(block, points, varied)
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression={name: "none" if name in ASKED_MOST else "zstd" for name in columns},
        use_dictionary=[name for name in (*repeated, "package_version") if name in columns],
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata({KEY: json.dumps(about, sort_keys=True)})
    return sink.getvalue()


def _find_edge(block: Block, points: Points) -> Any:
    """Return a mask of points that no other point of the shard beats in both totals.

    If the block has several models or batches, the mask includes every point, because each has its own front.
    """
    count = block.point_count
    if not isinstance(block.columns["workload_key"], str) or not isinstance(block.columns["batch"], int):
        return np.ones(count, np.bool_)
    rows = np.flatnonzero(np.asarray(points.refusal) == "")
    latency, energy = np.asarray(points.latency_fs)[rows], np.asarray(points.energy_fj)[rows]
    order = np.lexsort((energy, latency))
    is_edge = np.zeros(count, np.bool_)
    is_edge[rows[order]] = energy[order] <= np.minimum.accumulate(energy[order])
    return is_edge


def _list_totals(points: Points) -> list[tuple[str, Any]]:
    """Return (name, values) of the result columns that the points have."""
    columns = [(name, getattr(points, name, None)) for name in TOTALS if name not in CATEGORIES]
    columns += [(f"{name}_fj", values) for name, values in points.category_fj.items()]
    return [(name, values) for name, values in columns if values is not None]


def _total(values: Any, kind: str, unknown: Any) -> Any:
    """Return a column of results for Parquet, with null where `unknown` is true."""
    import pyarrow as pa

    array, mask = np.asarray(values), unknown if unknown.any() else None
    if kind != "string":
        return pa.array(array.astype(kind, copy=False), mask=mask)
    texts = np.array(BOTTLENECKS)[array] if array.dtype.kind in "iu" else array
    return pa.array(texts, pa.string(), mask=mask).dictionary_encode()


def _column(value: Any, kind: str, count: int) -> Any:
    import pyarrow as pa

    is_one = isinstance(value, str | int | float)
    if kind == "text":
        if is_one:
            return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [str(value)])
        return pa.array([*map(str, value)], pa.string()).dictionary_encode()
    plain = {"whole": np.int64, "count": np.int32, "number": np.float64}[kind]
    return pa.array(np.full(count, value, plain) if is_one else np.asarray(value, plain))


def _describe(block: Block, points: Points, varied: Mapping[str, str]) -> dict[str, Any]:
    """Return the footer: versions, digests, units, varied constants, workloads and hardware."""
    fixed = {name: value for name, value in block.columns.items() if isinstance(value, str | int | float)}
    refused = int(np.count_nonzero(np.asarray(points.refusal) != ""))
    return {
        "format": FORMAT,
        "question": block.digest,
        "point_count": block.point_count,
        "refused_count": refused,
        "fixed": fixed,
        "varied": [
            {"name": name, "column": varied[name], "unit": unit, "low": float(np.min(at)), "high": float(np.max(at))}
            for name, (unit, at) in block.varied.items()
        ],
        "units": {name: unit for name, (_, unit) in TOTALS.items() if unit},
        "workloads": _distinct(block, WORKLOAD),
        "hardware": _distinct(block, HARDWARE),
        "package_version": package_version(KEY),
    }


def _distinct(block: Block, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the distinct rows of these columns of a block, in order of first occurrence."""
    lists = {
        name: list(map(_plain, value)) for name in names if not isinstance(value := block.columns[name], str | int)
    }
    fixed = {name: block.columns[name] for name in names if name not in lists}
    rows = dict.fromkeys(zip(*lists.values(), strict=True)) if lists else {(): None}
    return [{**fixed, **dict(zip(lists, row, strict=True))} for row in rows]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
