"""Footer of a shard, which describes its points; it is parsed into a record before any of it enters a statement.

A footer may come from a stranger, because lakes are copied between people. It is refused as a whole if a key is
unknown, a value has another type, or a name is not one that joulemap writes.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import duckdb

from joulemap.catalog.parser import structure
from joulemap.physics import BOUNDARY_NAMES, SHORT
from joulemap.physics.record.product import MATMUL_PRECISIONS
from joulemap.show import show_quantity, show_span
from joulemap.store import Connection, Kind, Shard, configure, connect, quote_text
from joulemap.store.connection import ALLOWED, CONFINED, READING
from joulemap.store.engine import IN_MEMORY
from joulemap.system import CatalogueError, frozen
from joulemap.system.key import describe_unknown, keep_once
from joulemap.wing.explore.block import PREFIX, QUESTION, Block, name_column
from joulemap.wing.explore.lake.shard import CATEGORIES, FORMAT, HARDWARE, KEY, MOST_POINTS, TOTALS, WORKLOAD

TYPES: Final[Mapping[str, str]] = {
    "text": "VARCHAR", "whole": "BIGINT", "count": "INTEGER", "number": "DOUBLE",
    "int64": "BIGINT", "int32": "INTEGER", "float64": "DOUBLE", "string": "VARCHAR",
}  # fmt: skip

COLUMNS: Final[Mapping[str, str]] = {
    **{name: TYPES[kind] for name, kind in QUESTION.items()},
    **{name: TYPES[kind] for name, (kind, _) in TOTALS.items()},
    "package_version": "VARCHAR",
    "is_edge": "BOOLEAN",
}
"""Column of a shard -> its type in the engine; varied constants have further columns."""

NEEDED: Final = (*QUESTION, "latency_fs", "energy_fj", "refusal", "is_edge", "package_version")
"""Columns that every valid shard has."""

SPELLED: Final = {full: short for short, full in SHORT.items()}
"""Full name of a constant -> short name, as options use it."""

_VARIED: Final = re.compile(rf"{PREFIX}[a-z0-9_]+")
_CONSTANT: Final = re.compile(r"[A-Za-z0-9_.+-]+")
_UNIT: Final = re.compile(r"[A-Za-z0-9%/^*.-]*")

MOST_REASON: Final = 200
"""Maximum characters of a reason why a footer is refused; it may quote the footer."""

MOST_FOOTER_CHARACTERS: Final = 50_000_000
"""Maximum footer length in characters; a footer describes models and hardware, and lists no points."""


class FooterError(ValueError):
    """Error for a footer that joulemap did not write."""


@frozen(kw_only=True)
class Varied:
    """Constant that differs between the points of a shard, with the column that stores its values and their range."""

    name: str
    column: str
    unit: str
    low: float
    high: float

    def __attrs_post_init__(self) -> None:
        if not _CONSTANT.fullmatch(self.name) or not _UNIT.fullmatch(self.unit):
            raise FooterError(f"{self.name[:40]!r} in {self.unit[:40]!r} is not a constant of a chip")
        if not _VARIED.fullmatch(self.column) or self.column != name_column(self.name, self.unit):
            raise FooterError(f"{self.column[:40]!r} is not the column of {self.name}")
        if not math.isfinite(self.low) or not math.isfinite(self.high):
            raise FooterError(f"{self.name} has no finite range")

    def __str__(self) -> str:
        ends = (show_quantity(one, self.unit) for one in (self.low, self.high))
        return f"{SPELLED.get(self.name, self.name)} {show_span(*ends)}"


@frozen(kw_only=True)
class Footer:
    """Footer of a shard, which describes its points."""

    format: int
    question: str
    """Digest of the block whose points the shard stores."""
    point_count: int
    refused_count: int
    """Number of points that the hardware cannot run."""
    fixed: Mapping[str, Any]
    """Column -> value, for columns of the block that have one value in all points."""
    varied: tuple[Varied, ...]
    units: Mapping[str, str]
    """Column of results -> its unit."""
    workloads: tuple[Mapping[str, Any], ...]
    hardware: tuple[Mapping[str, Any], ...]
    package_version: str

    def __attrs_post_init__(self) -> None:
        if self.format != FORMAT:
            raise FooterError(f"its footer has format {self.format}, expected {FORMAT}")
        if not 0 < self.point_count <= MOST_POINTS or not 0 <= self.refused_count <= self.point_count:
            raise FooterError(f"its footer says {self.point_count} points, of which {self.refused_count} are refused")
        if len({one.column for one in self.varied}) < len(self.varied):
            raise FooterError("its footer has a varied constant twice")
        if unknown := sorted(self.units.keys() - TOTALS.keys()):
            raise FooterError(f"units: {describe_unknown(unknown[0][:40], tuple(TOTALS))}")
        _check_row(self.fixed, tuple(QUESTION), "fixed", is_partial=True)
        if missing := [name for name in ("architecture", "formula_version", "rules") if name not in self.fixed]:
            raise FooterError(f"fixed lacks {missing[0]}")
        for names, rows, what in ((WORKLOAD, self.workloads, "workloads"), (HARDWARE, self.hardware, "hardware")):
            for row in rows:
                _check_row(row, names, what)

    @property
    def folder(self) -> str:
        """Name of the lake's subfolder to which the shard belongs."""
        parts = (str(self.fixed[name]) for name in ("architecture", "formula_version", "rules"))
        return "-".join(part for part in parts if part)


def parse_footer(text: str) -> Footer:
    """Return the footer in a text; FooterError states what is wrong with it."""
    if len(text) > MOST_FOOTER_CHARACTERS:
        raise FooterError(f"its footer is longer than {MOST_FOOTER_CHARACTERS:,} characters")
    try:
        document = json.loads(text, object_pairs_hook=keep_once)
        if not isinstance(document, dict):
            raise FooterError("its footer is not a table")
        return structure("its footer", document, Footer)
    except FooterError:
        raise
    except (ValueError, RecursionError) as error:
        raise FooterError(f"its footer is not JSON: {error}") from error
    except CatalogueError as error:
        raise FooterError(str(error)[:MOST_REASON]) from error


def _check_row(row: Any, names: Sequence[str], what: str, *, is_partial: bool = False) -> None:
    """Raise FooterError unless a row has exactly these columns; with `is_partial`, columns may be missing."""
    if not isinstance(row, dict):
        raise FooterError(f"{what} is not a table")
    unknown = sorted(set(row) - set(names))
    missing = [] if is_partial else [name for name in names if name not in row]
    if unknown:
        raise FooterError(f"{what}: {describe_unknown(unknown[0][:40], names)}")
    if missing:
        raise FooterError(f"{what} lacks {missing[0]}")
    for name, value in row.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        kind = QUESTION[name]
        if kind == "text" and not isinstance(value, str):
            raise FooterError(f"{name} is not text")
        if kind == "number" and not (is_number and math.isfinite(value)):
            raise FooterError(f"{name} is not a finite number")
        if kind in ("whole", "count") and not (is_number and isinstance(value, int) and 0 <= value < 2**63):
            raise FooterError(f"{name} is not a whole number from 0 on")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise FooterError(f"{name} of its {what} is none of {', '.join(_CHOICES[name])}")


_CHOICES: Final[Mapping[str, Sequence[str]]] = {"boundary": BOUNDARY_NAMES, "matmul_precision": MATMUL_PRECISIONS}
"""Texts that have few values."""


@contextlib.contextmanager
def reading_files(shards: Iterable[Shard]) -> Iterator[Connection]:
    """Yield an in-memory connection that may read these files and nothing else."""
    with contextlib.closing(connect(IN_MEMORY)) as connection:
        configure(connection, confine(READING, shards))
        yield connection


def confine(kind: Kind, shards: Iterable[Shard]) -> Kind:
    """Return the engine settings of `kind`, changed so that only these shards and the allowed output are accessible."""
    settings = {**dict(kind.config), **dict(kind.later), **dict(CONFINED)}
    paths = [quote_text(str(one.path.resolve())) for one in shards]
    settings[ALLOWED] = f"[{', '.join(filter(None, (*paths, settings.get(ALLOWED, '[]')[1:-1])))}]"
    return attrs.evolve(kind, config=tuple(settings.items()), later=())


def read_footers(shards: Sequence[Shard]) -> tuple[dict[Path, Footer], dict[Path, str]]:
    """Return path -> footer for valid shards, and path -> reason for invalid shards."""
    footers: dict[Path, Footer] = {}
    reasons: dict[Path, str] = {}
    if not shards:
        return footers, reasons
    with reading_files(shards) as connection:
        for one, described in _describe_files(connection, shards):
            try:
                if isinstance(described, str):
                    raise FooterError(described)
                footers[one.path] = described.check(one)
            except FooterError as error:
                reasons[one.path] = f"it is not as joulemap writes one: {error}"
    return footers, reasons


@attrs.define
class _File:
    """Parts of a Parquet file that describe its content."""

    texts: list[str] = attrs.field(factory=list)
    row_count: int = 0
    columns: dict[str, str] = attrs.field(factory=dict)

    def check(self, shard: Shard) -> Footer:
        """Return the footer of a shard; raise FooterError if it contradicts the file or its place."""
        if len(self.texts) != 1:
            raise FooterError("it has no footer" if not self.texts else "it has several footers")
        footer = parse_footer(self.texts[0])
        if footer.question != shard.subject or footer.folder != shard.folder:
            raise FooterError("its footer answers another question than its name says")
        if footer.point_count != self.row_count:
            raise FooterError(f"it has {self.row_count} rows, its footer says {footer.point_count}")
        known = {**COLUMNS, **{one.column: "DOUBLE" for one in footer.varied}}
        missing = [name for name in (*NEEDED, *(one.column for one in footer.varied)) if name not in self.columns]
        if missing:
            raise FooterError(f"it lacks the column {missing[0]}")
        for name, kind in self.columns.items():
            if known.get(name) != kind:
                expected = f"expected {known[name]}" if name in known else "which shards do not have"
                raise FooterError(f"its column {name[:40]!r} is {kind[:40]}, {expected}")
        return footer


def _describe_files(connection: Connection, shards: Sequence[Shard]) -> Iterator[tuple[Shard, _File | str]]:
    """Yield each shard with the description in its file, or the reason why it cannot be read."""
    try:
        yield from zip(shards, _ask_files(connection, shards), strict=True)
    except duckdb.Error as error:
        if len(shards) == 1:
            yield shards[0], str(error).splitlines()[0]
            return
        for one in shards:
            yield from _describe_files(connection, [one])


def _ask_files(connection: Connection, shards: Sequence[Shard]) -> list[_File]:
    paths = [str(one.path.resolve()) for one in shards]
    files = {path: _File() for path in paths}
    listed = f"[{', '.join(map(quote_text, paths))}]"
    asked = f"SELECT file_name, decode(value) FROM parquet_kv_metadata({listed}) WHERE key = encode('{KEY}')"
    for path, text in connection.execute(asked).fetchall():
        files[path].texts.append(text)
    asked = f"SELECT file_name, num_rows FROM parquet_file_metadata({listed})"
    for path, count in connection.execute(asked).fetchall():
        files[path].row_count = count
    asked = f"SELECT file_name, name, coalesce(duckdb_type, 'a group') FROM parquet_schema({listed}) "
    asked += "WHERE num_children IS NULL OR num_children = 0 OR type IS NOT NULL"
    for path, name, kind in connection.execute(asked).fetchall():
        if name in files[path].columns:
            raise duckdb.InvalidInputException(f"it has the column {name[:40]!r} twice")
        files[path].columns[name] = kind
    return [files[path] for path in paths]


def check_rows(shard: Shard, footer: Footer) -> str:
    """Return how a shard's rows contradict its name or footer; empty if they do not."""
    try:
        with reading_files([shard]) as connection:
            return _check_totals(connection, shard, footer) or _check_question(connection, shard, footer)
    except duckdb.Error as error:
        return f"its rows cannot be read: {str(error).splitlines()[0]}"


def _check_totals(connection: Connection, shard: Shard, footer: Footer) -> str:
    """Return what is wrong with a shard's results; empty if nothing is.

    Every value is read, and energy must be the sum of its categories.
    """
    source = f"read_parquet({quote_text(str(shard.path.resolve()))})"
    there = {str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    numbers = [name for name, (kind, _) in TOTALS.items() if kind != "string" and name in there]
    parts = [f"coalesce({name}, 0)::HUGEINT" for name in CATEGORIES if name in there]
    negative = " OR ".join(f"{name} < 0 OR NOT isfinite({name}::DOUBLE)" for name in numbers)
    rules = {
        f"{{}} of its rows are refused, its footer says {footer.refused_count}": (
            f"count(*) FILTER (refusal IS NOT NULL) - {footer.refused_count}"
        ),
        "{} of its rows lack a total": (
            "count(*) FILTER (refusal IS NULL AND (latency_fs IS NULL OR energy_fj IS NULL OR latency_fs = 0))"
        ),
        "{} of its rows have a negative or an infinite number": f"count(*) FILTER ({negative})",
        "in {} of its rows the categories of energy do not add up": (
            f"count(*) FILTER (refusal IS NULL AND energy_fj <> {' + '.join(parts)})" if parts else "0"
        ),
    }
    asked = f"SELECT bit_xor(hash(s)), {', '.join(rules.values())} FROM {source} AS s"
    ((_, *counts),) = connection.execute(asked).fetchall()
    return next((rule.format(abs(count)) for rule, count in zip(rules, counts, strict=True) if count), "")


def _check_question(connection: Connection, shard: Shard, footer: Footer) -> str:
    """Return the difference between a shard's rows and its name or footer; empty if there is none.

    The digest of the block is computed again from the rows.
    """
    source = f"read_parquet({quote_text(str(shard.path.resolve()))})"
    listed = [name for name in QUESTION if name not in footer.fixed]
    asked = [*listed, *(one.column for one in footer.varied)]
    values = connection.execute(f"SELECT {', '.join(asked)} FROM {source}").fetchnumpy() if asked else {}
    for name, value in footer.fixed.items():
        literal = quote_text(value) if isinstance(value, str) else f"'{value!r}'::{COLUMNS[name]}"
        different = f"SELECT count(*) FROM {source} WHERE {name} IS DISTINCT FROM {literal}"
        if connection.execute(different).fetchall() != [(0,)]:
            return f"its rows have another {name} than its footer says"
    block = Block(
        columns={**footer.fixed, **{name: values[name] for name in listed}},
        varied={one.name: (one.unit, values[one.column]) for one in footer.varied},
    )
    return "" if block.digest == shard.subject else "its rows answer another question than its name says"
