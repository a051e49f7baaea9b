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
from numpy.typing import NDArray

from joulemap.bundle.pack import Column, Section, as_numbers, as_texts, code_texts

PLACE: Final = "joulemap.physics"
"""Package with the types of records that a file may contain."""

ATOMS: Final[tuple[object, ...]] = (None, False, True)
"""Values with the lowest numbers."""

STEPS: Final = "+"
"""Suffix of a column that holds differences from the previous row, where these repeat more often than the values."""


class Writer:
    """Collector of distinct values."""

    def __init__(self, replaced: Mapping[str, str] | None = None) -> None:
        """Collect values; `replaced` maps fields of records to the text that replaces theirs."""
        self._replaced = replaced or {}
        self._values: dict[str, dict[Any, int]] = {}
        """Kind of value -> its distinct values and their numbers within the kind."""

    def add(self, value: Any) -> tuple[str, int]:
        """Return the kind of a value and its number within the kind."""
        if value is None or isinstance(value, bool):
            return "atom", ATOMS.index(value)
        if isinstance(value, str):
            return self._number("text", value)
        if isinstance(value, int):
            return self._number("integer", value)
        if isinstance(value, float):
            return self._number("real", value.hex())  # equal numbers may differ in their sign
        if isinstance(value, tuple):
            return self._number("tuple", tuple(map(self.add, value)))
        if isinstance(value, Mapping):
            return self._number("mapping", tuple(self.add(one) for pair in value.items() for one in pair))
        kind = type(value)
        if not kind.__module__.startswith(f"{PLACE}.") or not attrs.has(kind):
            raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no record of {PLACE}")
        fields = tuple(self.add(self._read(value, one.name)) for one in attrs.fields(kind) if one.init)
        return self._number(f"{kind.__module__}:{kind.__qualname__}", fields)

    def _read(self, record: object, field: str) -> Any:
        value = getattr(record, field)
        return self._replaced[field] if isinstance(value, str) and value and field in self._replaced else value

    def _number(self, kind: str, value: Any) -> tuple[str, int]:
        known = self._values.setdefault(kind, {})
        return kind, known.setdefault(value, len(known))

    def write(self, roots: Mapping[str, Any]) -> Section:
        """Return the columns of named values and of all values that they contain."""
        numbered = {name: self.add(value) for name, value in roots.items()}
        for kind in ("text", "integer", "real", "tuple", "mapping"):
            self._values.setdefault(kind, {})
        types = [kind for kind in self._values if ":" in kind]
        starts, start = {"atom": 0}, len(ATOMS)
        for kind in ("text", "integer", "real", "tuple", "mapping", *types):
            starts[kind] = start
            start += len(self._values[kind])

        def place(values: Any) -> NDArray[np.int64]:
            return np.array([starts[kind] + number for kind, number in values], dtype=np.int64)

        section: dict[str, Column] = {
            "root": code_texts(numbered),
            **_step("root.value", place(numbered.values())),
            "text": code_texts(self._values["text"]),
            "integer": np.array(list(self._values["integer"]), dtype=np.int64),
            "real": np.array([float.fromhex(one) for one in self._values["real"]], dtype=np.float64),
            "type": code_texts(types),
            "type.count": np.array([len(self._values[kind]) for kind in types], dtype=np.int64),
        }
        for kind in ("tuple", "mapping"):
            values = list(self._values[kind])
            section[f"{kind}.size"] = np.array([len(one) for one in values], dtype=np.int64)
            section |= _step(f"{kind}.item", place(item for one in values for item in one))
        for index, kind in enumerate(types):
            names = [one.name for one in attrs.fields(_find_type(kind)) if one.init]
            for name, column in zip(names, zip(*self._values[kind], strict=True), strict=True):
                section |= _step(f"{index}.{name}", place(column))
        return section


def _step(name: str, values: NDArray[np.int64]) -> dict[str, Column]:
    """Return a column of numbers under its name, as differences if these have fewer distinct values."""
    steps = np.diff(values, prepend=0)
    if len(np.unique(steps)) < len(np.unique(values)):
        return {f"{name}{STEPS}": steps}
    return {name: values}


def _find_type(name: str) -> Any:
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
                kind = _find_type(name)
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
