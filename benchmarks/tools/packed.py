"""Writer of packed files, in the form that `joulemap.bundle.pack` and `joulemap.bundle.record` read."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.bundle.pack import ABSENT, SEPARATOR, Column, Section, Texts, join_sections
from joulemap.bundle.record import ATOMS, PLACE, STEPS, find_type

CONTEXT: Final = {"lc": 0, "lp": 0, "pb": 0}
"""Compression of a section by xz. Its bytes have no alignment in common, so that positions tell nothing."""


NARROW: Final = ("i1", "<i2", "<i4", "<i8")


def code_texts(values: Iterable[str | None]) -> Texts:
    """Return texts as a column, the distinct ones in their order of occurrence."""
    places: dict[str, int] = {}
    codes = [ABSENT if one is None else places.setdefault(one, len(places)) for one in values]
    if any(SEPARATOR in one for one in places):
        raise ValueError("a packed text contains the character U+001F")
    return Texts(codes=np.array(codes, dtype=np.int64), texts=tuple(places))


def write_pack(path: Path, sections: Mapping[str, Section]) -> None:
    """Write sections to a file."""
    path.write_bytes(join_sections({name: _compress(_pack(section)) for name, section in sections.items()}))


def _compress(raw: bytes) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, **CONTEXT}]
    return lzma.compress(raw, check=lzma.CHECK_CRC32, filters=filters)


def _pack(section: Section) -> bytes:
    head: list[tuple[str, str, str, int, int]] = []
    texts, numbers = [], []
    for name, column in section.items():
        kind, text = "number", b""
        if isinstance(column, Texts):
            kind, text, array = "text", SEPARATOR.join(column.texts).encode(), _narrow(column.codes)
        elif isinstance(column, np.ma.MaskedArray):
            kind, array = "masked", _narrow(np.where(column.mask, 0, column.data))
        else:
            kind = "truth" if column.dtype.kind == "b" else kind
            array = column.astype("<f8") if column.dtype.kind == "f" else _narrow(column)
        head.append((name, kind, array.dtype.str, len(array), len(text)))
        planes = array.view(np.uint8).reshape(len(array), array.dtype.itemsize)
        texts.append(text)
        numbers.append((planes.T if kind == "text" else planes).tobytes())
        if isinstance(column, np.ma.MaskedArray):
            numbers.append(np.packbits(np.ma.getmaskarray(column)).tobytes())
    described = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((len(described).to_bytes(4, "little"), described, *texts, *numbers))


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the narrowest type that holds them all."""
    lowest, highest = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for kind in NARROW:
        limits = np.iinfo(kind)
        if limits.min <= lowest and highest <= limits.max:
            return np.ascontiguousarray(column, dtype=kind)
    raise ValueError(f"{highest} exceeds 64 bits")


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
            names = [one.name for one in attrs.fields(find_type(kind)) if one.init]
            for name, column in zip(names, zip(*self._values[kind], strict=True), strict=True):
                section |= _step(f"{index}.{name}", place(column))
        return section


def _step(name: str, values: NDArray[np.int64]) -> dict[str, Column]:
    """Return a column of numbers under its name, as differences if these have fewer distinct values."""
    steps = np.diff(values, prepend=0)
    if len(np.unique(steps)) < len(np.unique(values)):
        return {f"{name}{STEPS}": steps}
    return {name: values}
