"""Records as columns: equal values are stored once, and a record is formed when it is asked for.

    values of all records ─► distinct numbers, texts, tuples, mappings and records ─► one column per field

A value has a number. Numbers and texts come first, then tuples and mappings, then the records of each type; a field of
a record is the number of its value. A type is found by its module and name, which must lie in `PLACE`, so a file can
make no other object than a record of the laws. Compared with a pickle, the file is a third smaller, and one of a
thousand chips is formed without the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import attrs
import numpy as np

from joulemap.bundle.pack import Section, as_numbers, as_texts

PLACE: Final = "joulemap.physics"
"""Package with the types of records that a file may contain."""

ATOMS: Final[tuple[object, ...]] = (None, False, True)
"""Values with the lowest numbers."""

STEPS: Final = "+"
"""Suffix of a column that holds differences from the previous row, where these repeat more often than the values."""


def find_type(name: str) -> Any:
    """Return the type of records that a file names; ValueError if it is not in `PLACE`."""
    module, _, kind = name.partition(":")
    if not module.startswith(f"{PLACE}."):
        raise ValueError(f"{name} is no record of {PLACE}")
    return getattr(import_module(module), kind)


class Reader:
    """Values of a section that `Writer` made, formed when asked for; equal values are one object."""

    def __init__(self, section: Section) -> None:
        """Read where each value is; no record is formed yet."""
        self._section = section
        names = map(str, as_texts(section["root"]).list())
        self.roots: Mapping[str, int] = dict(zip(names, self._read("root.value"), strict=True))
        """Name of each value -> its number."""
        atoms = (*ATOMS, *as_texts(section["text"]).texts)
        numbers = (*as_numbers(section["integer"]).tolist(), *as_numbers(section["real"]).tolist())
        self._values: dict[int, Any] = dict(enumerate((*atoms, *numbers)))
        self._starts = [len(self._values)]
        self._makers: list[Callable[[int], Any]] = []
        for kind, make in (("tuple", tuple), ("mapping", _pair)):
            self._makers.append(self._list_items(kind, make))
            self._starts.append(self._starts[-1] + len(as_numbers(section[f"{kind}.size"])))
        counts = as_numbers(section["type.count"]).tolist()
        for index, (name, count) in enumerate(zip(as_texts(section["type"]).list(), counts, strict=True)):
            self._makers.append(self._list_records(index, str(name)))
            self._starts.append(self._starts[-1] + count)

    def find(self, name: str) -> Any:
        """Return a named value; KeyError for an unknown name."""
        return self._form(self.roots[name])

    def _read(self, name: str) -> list[int]:
        """Return the numbers in a column."""
        if name in self._section:
            column: list[int] = as_numbers(self._section[name]).tolist()
            return column
        summed: list[int] = np.cumsum(as_numbers(self._section[f"{name}{STEPS}"]), dtype=np.int64).tolist()
        return summed

    def _form(self, number: int) -> Any:
        if number not in self._values:
            kind = bisect_right(self._starts, number) - 1
            self._values[number] = self._makers[kind](number - self._starts[kind])
        return self._values[number]

    def _list_items(self, kind: str, make: Callable[[list[Any]], Any]) -> Callable[[int], Any]:
        """Return a function that forms a tuple or mapping."""
        items, ends = self._read(f"{kind}.item"), np.cumsum(as_numbers(self._section[f"{kind}.size"])).tolist()

        def form(index: int) -> Any:
            return make(list(map(self._form, items[ends[index - 1] if index else 0 : ends[index]])))

        return form

    def _list_records(self, index: int, name: str) -> Callable[[int], Any]:
        """Return a function that forms a record of a type. Its fields were checked when it was written."""
        columns: list[list[int]] = []
        kind: Any = None
        names: list[str] = []
        is_whole = False

        def form(row: int) -> Any:
            nonlocal kind, is_whole
            if kind is None:  # the first record of a type that is asked for
                kind = find_type(name)
                fields = attrs.fields(kind)
                names.extend(one.name for one in fields if one.init)
                is_whole = len(names) == len(fields)
                columns.extend(self._read(f"{index}.{one}") for one in names)
            values = dict(zip(names, [self._form(column[row]) for column in columns], strict=True))
            if not is_whole:  # others follow from these
                return kind(**values)
            record = object.__new__(kind)
            vars(record).update(values)
            return record

        return form


def _pair(items: list[Any]) -> dict[Any, Any]:
    """Return keys and values that follow each other as a mapping."""
    return dict(zip(items[::2], items[1::2], strict=True))
