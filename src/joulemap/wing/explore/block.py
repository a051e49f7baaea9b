"""Blocks: predictions of one model at many configurations, computed together and stored in one Parquet file."""

from __future__ import annotations

import csv
import hashlib
import json
import struct
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from joulemap.system import frozen
from joulemap.system.resource import folder


@frozen(kw_only=True)
class LakeColumn:
    """Column of every shard, as `schemas/lake/columns.csv` lists it."""

    name: str
    of: str
    """`workload`, `hardware` or `run`, which identify a point, or `result`."""
    type: str
    unit: str
    repeats: str
    """`yes` for a result with few distinct values."""


LAKE_COLUMNS: Final = tuple(
    LakeColumn(**row)
    for row in csv.DictReader((folder("schemas") / "lake" / "columns.csv").read_text(encoding="utf-8").splitlines())
)

QUESTION: Final[Mapping[str, str]] = {one.name: one.type for one in LAKE_COLUMNS if one.of != "result"}
"""Input column of a block -> type of its values. Constants that vary between points are in `Block.varied`.

`deployment` is a comma-separated list. `full_clock_hz` is the clock before a power cap. `rules` is a digest of the
rules that derive other numbers from the varied ones; empty if there are none.
"""

SUFFIXES: Final[Mapping[str, str]] = {
    "Hz": "hz",
    "W": "w",
    "J": "j",
    "s": "s",
    "B": "bytes",
    "B/s": "bytes_per_s",
    "ops/s": "ops_per_s",
    "USD": "usd",
    "USD/h": "usd_per_hour",
}
"""Unit -> suffix of a column name; counts, shares and ratios have no suffix."""

PREFIX: Final = "set_"
"""Prefix of columns of varied constants. It distinguishes them from columns of runs: `runs.clock_hz` is the clock under
a power cap.
"""


def name_column(constant: str, unit: str) -> str:
    """Return the column name of a varied constant: `memory.l2.capacity` -> `set_memory_l2_capacity_bytes`."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in constant.lower())
    ending = SUFFIXES.get(unit, "")
    return PREFIX + (plain if not ending or plain.endswith(f"_{ending}") else f"{plain}_{ending}")


@frozen(kw_only=True, eq=False)
class Block:
    """Configurations (points) of one architecture class that are evaluated together and stored in one file.

    Raises ValueError if a column is missing or unknown, if columns differ in length, or if the points differ in class,
    formula version or rules.
    """

    columns: Mapping[str, Any]
    """Column of `QUESTION` -> one value for all points, or one value per point."""
    varied: Mapping[str, tuple[str, Any]] = {}
    """Constant -> (unit, one value per point)."""

    def __attrs_post_init__(self) -> None:
        wrong = sorted(self.columns.keys() ^ QUESTION.keys())
        if wrong:
            raise ValueError(f"a block needs exactly the columns of QUESTION; missing or unknown: {', '.join(wrong)}")
        lengths = {len(values) for values in self._lists.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of a block need equal lengths, found {', '.join(map(str, sorted(lengths)))}")
        if not all(isinstance(self.columns[name], str) for name in ("architecture", "formula_version", "rules")):
            raise ValueError("a block needs one class of hardware and one version of its formulas and rules")

    @property
    def _lists(self) -> dict[str, Any]:
        listed = {name: value for name, value in self.columns.items() if not isinstance(value, str | int | float)}
        return {**listed, **{f"set {name}": values for name, (_, values) in self.varied.items()}}

    @property
    def point_count(self) -> int:
        """Number of points."""
        return max(map(len, self._lists.values()), default=1)

    @cached_property
    def digest(self) -> str:
        """Name of the block's file: 32 hexadecimal digits of a hash of all inputs."""
        lists = self._lists
        fixed = {name: value for name, value in self.columns.items() if name not in lists}
        units = {name: unit for name, (unit, _) in self.varied.items()}
        digest = hashlib.sha256(json.dumps([fixed, units], sort_keys=True).encode())
        for name in sorted(lists):
            digest.update(f"\n{name} {len(lists[name])}\n".encode())
            is_text = QUESTION.get(name) == "text"
            digest.update("\n".join(map(str, lists[name])).encode() if is_text else _list_bytes(lists[name]))
        return digest.hexdigest()[:32]

    @property
    def folder(self) -> str:
        """Folder of the block's file: class, formula version and rules, so that files of old versions are in other
        folders.
        """
        parts = (self.columns[name] for name in ("architecture", "formula_version", "rules"))
        return "-".join(part for part in parts if part)


def _list_bytes(values: Any) -> bytes:
    """Encode a list or array of numbers as little-endian doubles."""
    if hasattr(values, "astype"):
        return bytes(values.astype("<f8").tobytes())
    return struct.pack(f"<{len(values)}d", *values)
