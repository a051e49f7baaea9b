"""Several hardware as one, whose numbers are columns: a formula that is written for one runs for all of them.

    hardware.coefficient("tile_rows")      of one: a number
    columns.coefficient("tile_rows")       of several: a number for each operator's hardware, or the one that all have

What formulas decide by, texts, truth values and what there is at all, is the same of all of them: `pipeline` puts only
such hardware together. What is found of one hardware alone, without a workload's columns, is found of each in turn:
functions that do so are marked by `of_each`, and return records whose numbers are columns again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.model.workload import Floats, Integers

Given = ParamSpec("Given")
Found = TypeVar("Found")
Number = TypeVar("Number", bound=np.generic)


class Columns:
    """Records of one kind, one for each hardware, read as if they were one."""

    __slots__ = ("_found", "_rows", "_taken", "memo", "records")

    def __init__(self, records: Sequence[Any], rows: Integers, memo: dict[Any, Any] | None = None) -> None:
        """Read records for rows of which each names one of them; `memo` keeps what was found of these records."""
        self.records = tuple(records)
        self._rows = rows
        self.memo: dict[Any, Any] = {} if memo is None else memo
        self._found: dict[Any, Any] = {}
        self._taken: dict[int, tuple[Integers, Columns]] = {}

    @property
    def id(self) -> str:
        """The ids of all."""
        return ", ".join(one.id for one in self.records)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return int(self.find("len", len))

    def __getattr__(self, name: str) -> Any:
        if name in self._found:
            return self._found[name]
        if callable(getattr(self.records[0], name)):
            return lambda *given: self.find((name, *given), lambda one: getattr(one, name)(*given))
        return self.find(name, lambda one: getattr(one, name))

    def __getitem__(self, key: Any) -> Any:
        return self.find(("[]", key), lambda one: one[key])

    def __contains__(self, key: object) -> bool:
        return bool(self.find(("in", key), lambda one: key in one))

    def find(self, key: object, function: Callable[[Any], Any]) -> Any:
        """Return what a function finds of each record, as one; `key` is what it is known by again."""
        if key not in self._found:
            if key not in self.memo:
                self.memo[key] = _merge([function(one) for one in self.records])
            self._found[key] = self._show(self.memo[key])
        return self._found[key]

    def take(self, rows: Integers) -> Columns:
        """Return the same records for some of the rows."""
        if id(rows) not in self._taken:
            self._taken[id(rows)] = rows, Columns(self.records, self._rows[rows], self.memo)
        return self._taken[id(rows)][1]

    def _show(self, merged: Any) -> Any:
        if isinstance(merged, _Rows):
            return merged.values[self._rows]
        if isinstance(merged, _Records):
            return Columns(merged.values, self._rows, merged.memo)
        return tuple(map(self._show, merged)) if isinstance(merged, tuple) else merged


@attrs.frozen
class _Rows:
    values: Any
    """An array with a row for each record."""


class _Records:
    """Records that are not the same, with what was found of them."""

    __slots__ = ("memo", "values")

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.memo: dict[Any, Any] = {}


def _merge(values: list[Any]) -> Any:
    """Return what all values are, an array of numbers, a tuple of either, or records."""
    first = values[0]
    if isinstance(first, bool | str | None):
        if any(one != first for one in values):
            raise TypeError(f"{set(values)} of hardware that is evaluated together")
        return first
    if isinstance(first, int | float):
        return first if all(one == first for one in values) else _Rows(np.array(values, dtype=np.float64))
    if all(one is first for one in values):
        return first
    if isinstance(first, tuple):
        return tuple(_merge(list(each)) for each in zip(*values, strict=True))
    return _Records(values)


def take(record: Found, rows: Integers) -> Found:
    """Return a record for some rows; one alone is the same for all of them."""
    return record.take(rows) if isinstance(record, Columns) else record  # type: ignore[return-value]


def of_each(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Return the function that finds of each of several what `function` finds of one, for its first argument."""

    @functools.wraps(function)
    def found(*given: Given.args, **named: Given.kwargs) -> Found:
        first, *others = given
        if not isinstance(first, Columns):
            return function(*given, **named)
        whole: Found = first.find((function, *others), lambda one: function(one, *others))  # type: ignore[call-arg, arg-type]
        return whole

    return found


def table(record: Any, function: Callable[[Any], NDArray[Number]]) -> NDArray[Number]:
    """Return an array of each of several records, or of the one: a line for each."""
    if not isinstance(record, Columns):
        return function(record)[None]
    key = table, function
    if key not in record.memo:
        record.memo[key] = np.stack([function(one) for one in record.records])
    found: NDArray[Number] = record.memo[key]
    return found


def members(record: Found) -> tuple[Found, ...]:
    """Return the records of several, or the one."""
    return record.records if isinstance(record, Columns) else (record,)


def is_one(number: Floats | float) -> bool:
    """Whether a factor changes nothing."""
    return bool(np.all(np.equal(number, 1.0)))


def gather(records: Sequence[Found], times: int) -> Found:
    """Return several records as one, each for so many rows, one behind the other; one alone as it is."""
    if len(records) == 1:
        return records[0]
    return Columns(records, np.repeat(np.arange(len(records)), times))  # type: ignore[return-value]
