"""Tensors and operators of a TFLite file, without its weights.

    Model ─ subgraphs ─┬ tensors: shape, type, scales, buffer ── small constants are kept, larger ones are passed over
                       └ operators: code, inputs, outputs, options

Source of field numbers: schema.fbs of TensorFlow Lite, version 3, as in the package tflite 2.18.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import struct
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Final

import attrs

from joulemap.system import FileError, ModelError, frozen, open_regular
from joulemap.wing.file.value import MOST_ELEMENTS

MOST_READ: Final = 400_000_000
"""Maximum bytes of memory for what is read of a file. Tables may share vectors, so a small file could fill the memory;
a file with 100,000 operators takes half of it.
"""

TABLE_BYTES: Final = 1000
"""Memory of the record that a table becomes."""

NUMBER_BYTES: Final = 40
"""Memory of a number in a tuple."""


class BrokenTableError(Exception):
    """Error for bytes that are not a valid table."""


@attrs.define
class FlatBuffer:
    """Bytes of a FlatBuffers file, with a limit on how many are read."""

    data: mmap.mmap
    left: int = MOST_READ
    """Number of bytes that may still be read."""

    def number(self, position: int, code: str) -> Any:
        """Return the number at a byte position; `code` is its format in `struct`."""
        size = struct.calcsize(f"<{code}")
        if not 0 <= position <= len(self.data) - size:
            raise BrokenTableError("it ends within a table")
        return struct.unpack_from(f"<{code}", self.data, position)[0]

    def spend(self, count: int) -> None:
        """Subtract bytes of memory from those that are left; raise BrokenTableError below zero."""
        self.left -= count
        if self.left < 0:
            raise BrokenTableError(f"it would take more than {MOST_READ:,} bytes of memory without its weights")

    def take(self, position: int, count: int) -> bytes:
        """Return `count` bytes from a position."""
        if not 0 <= position <= len(self.data) - count:
            raise BrokenTableError(f"{count:,} bytes extend past the end of the file")
        self.spend(count)
        return self.data[position : position + count]


@attrs.frozen
class FlatTable:
    """Table of a FlatBuffers file. Every position is checked, and only requested values are copied.

        table ─ signed offset ─► vtable: size, size of the table, position of each field (0: omitted)

    Source of the format: FlatBuffers internals, flatbuffers.dev/internals.
    """

    data: FlatBuffer
    position: int

    @classmethod
    def find_root(cls, data: mmap.mmap) -> FlatTable:
        """Return the root table of a file."""
        buffer = FlatBuffer(data)
        return cls(buffer, buffer.number(0, "I"))

    def find(self, field: int) -> int:
        """Return the byte position of a field; 0 if it is omitted."""
        vtable = self.position - self.data.number(self.position, "i")
        size = self.data.number(vtable, "H")
        entry = 4 + 2 * field
        offset = self.data.number(vtable + entry, "H") if entry < size else 0
        return self.position + offset if offset else 0

    def number(self, field: int, code: str, default: Any = 0) -> Any:
        """Return the number in a field; `code` is its format in `struct`."""
        position = self.find(field)
        return self.data.number(position, code) if position else default

    def text(self, field: int) -> str:
        """Return the text in a field; empty if it is omitted."""
        return self.data.take(*self.span(field)).decode("utf-8", "replace")

    def span(self, field: int, size: int = 1) -> tuple[int, int]:
        """Return (position, length) of the vector in a field, with items of `size` bytes; (0, 0) if it is omitted."""
        position = self.find(field)
        if not position:
            return 0, 0
        start = position + self.data.number(position, "I")
        count = self.data.number(start, "I")
        if start + 4 + count * size > len(self.data.data):
            raise BrokenTableError(f"a vector of {count:,} items extends past the end of the file")
        return start + 4, count

    def numbers(self, field: int, code: str) -> tuple[Any, ...]:
        """Return the vector of numbers in a field; `code` is the format of one number in `struct`."""
        size = struct.calcsize(f"<{code}")
        position, count = self.span(field, size)
        self.data.spend(count * NUMBER_BYTES)
        return struct.unpack(f"<{count}{code}", self.data.take(position, count * size))

    def table(self, field: int) -> FlatTable | None:
        """Return the inner table in a field; None if it is omitted."""
        position = self.find(field)
        return FlatTable(self.data, position + self.data.number(position, "I")) if position else None

    def tables(self, field: int) -> list[FlatTable]:
        """Return the vector of inner tables in a field."""
        position, count = self.span(field, 4)
        self.data.spend(TABLE_BYTES * count)
        starts = range(position, position + 4 * count, 4)
        return [FlatTable(self.data, start + self.data.number(start, "I")) for start in starts]


IDENTIFIER: Final = b"TFL3"
"""File identifier of TFLite, at bytes 4 to 7."""

MOST_DATA: Final = 4096
"""Maximum bytes of a constant that is stored: shapes, axes and paddings have fewer, weights more."""

MOST_TENSORS: Final = 200_000

MOST_RANK: Final = 10

INT4: Final = 17
"""Number of the element type of four bits in the schema; two elements share a byte."""

DATA: Final = Path(__file__).parents[2] / "catalog" / "data" / "model" / "tflite.toml"

COMPOSITE: Final = 206
"""Code of an operator that consists of a subgraph of simpler operators."""

CUSTOM: Final = 32


@cache
def load_schema() -> Mapping[str, Any]:
    """Return the tables of operators, options and types of the TFLite schema."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def find_type(kind: int) -> tuple[str, int, str]:
    """Return (dtype, bytes of an element, numpy type) for the number of a type in the schema."""
    dtype, item_size, name = load_schema()["types"][str(kind)]
    return dtype, item_size, name


@frozen(kw_only=True)
class LiteTensor:
    """Tensor of a TFLite subgraph."""

    name: str
    shape: tuple[int, ...]
    open_axes: tuple[int, ...]
    """Axes of dynamic size."""
    kind: int
    """Type of elements, by its number in the schema."""
    is_scaled: bool
    """True if elements are integers that represent real numbers by a scale."""
    is_variable: bool
    """True if the tensor keeps its elements from one call to the next."""
    stored_bytes: int
    """Bytes that the file stores for a constant; 0 for a tensor that an operator makes."""
    known: bytes
    """Elements of a small constant as bytes; empty for other tensors."""


@frozen(kw_only=True)
class LiteOperator:
    """Operator of a TFLite subgraph."""

    op: str
    """Name in the schema, or the own name of an operator outside it."""
    inputs: tuple[int, ...]
    """Indices of the input tensors; -1 for an omitted input."""
    outputs: tuple[int, ...]
    options: Mapping[str, int]


@frozen(kw_only=True)
class LiteGraph:
    """Subgraph of a TFLite file."""

    tensors: tuple[LiteTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[LiteOperator, ...]


@frozen(kw_only=True)
class LiteModel:
    """Content of a file without its weights; the first subgraph is the model."""

    graphs: tuple[LiteGraph, ...]
    description: str

    @property
    def digest(self) -> str:
        """Hexadecimal digest of everything in the file on which a workload depends."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()


def load_lite(path: Path) -> LiteModel:
    """Return the content of a TFLite file.

    Raise ModelError for a file that is not a TFLite file or is cut short.
    """
    try:
        with open_regular(path) as stream:
            if stream.seek(0, 2) < 8:
                raise BrokenTableError("it has fewer than 8 bytes")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if data[4:8] != IDENTIFIER:
                    raise BrokenTableError(f"bytes 4 to 7 are {bytes(data[4:8])!r}, expected {IDENTIFIER!r}")
                return _read_model(data)
    except (OSError, FileError, ValueError) as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error
    except BrokenTableError as error:
        raise ModelError(f"{quote(str(path))} is not a TFLite model, or is incomplete: {error}") from error


def _read_model(data: mmap.mmap) -> LiteModel:
    root = FlatTable.find_root(data)
    codes = [_read_code(one) for one in root.tables(1)]
    buffers = [_read_buffer(one) for one in root.tables(4)]
    graphs = tuple(_read_graph(one, codes, buffers) for one in root.tables(2))
    if not graphs or not graphs[0].operators:
        raise BrokenTableError("it has no operators")
    return LiteModel(graphs=graphs, description=root.text(3)[:200])


def _read_code(table: FlatTable) -> str:
    """Return the name of an operator in the schema, or its own name if it is outside the schema."""
    code = max(table.number(0, "b"), table.number(3, "i"))
    if code == CUSTOM:
        return table.text(1)[:100] or "CUSTOM"
    if code == COMPOSITE:
        return "STABLEHLO_COMPOSITE"
    names = load_schema()["operators"]
    return names[code] if 0 <= code < len(names) else f"operator {code}"


def _read_buffer(table: FlatTable) -> tuple[int, bytes]:
    """Return (number of bytes, content) of a constant; a long constant has empty content.

    A constant of a large file may lie after the tables.
    """
    position, count = table.span(0)
    if not count and table.number(1, "Q") > 1:
        position, count = table.number(1, "Q"), table.number(2, "Q")
    if position + count > len(table.data.data):
        raise BrokenTableError(f"a constant of {count:,} bytes extends past the end of the file")
    return count, table.data.take(position, count) if count <= MOST_DATA else b""


def _read_graph(table: FlatTable, codes: list[str], buffers: list[tuple[int, bytes]]) -> LiteGraph:
    tables = table.tables(0)
    if len(tables) > MOST_TENSORS:
        raise BrokenTableError(f"it has {len(tables):,} tensors, expected at most {MOST_TENSORS:,}")
    tensors = tuple(_read_tensor(one, buffers) for one in tables)
    graph = LiteGraph(
        tensors=tensors,
        inputs=table.numbers(1, "i"),
        outputs=table.numbers(2, "i"),
        operators=tuple(_read_operator(one, codes) for one in table.tables(3)),
    )
    used = [*graph.inputs, *graph.outputs, *(index for one in graph.operators for index in (*one.inputs, *one.outputs))]
    if any(not -1 <= index < len(tensors) for index in used):
        raise BrokenTableError("an operator reads or writes a tensor that is not in the file")
    return graph


def _read_tensor(table: FlatTable, buffers: list[tuple[int, bytes]]) -> LiteTensor:
    name, shape, kind = table.text(3)[:400], table.numbers(0, "i"), table.number(1, "b")
    signature, buffer = table.numbers(7, "i"), table.number(2, "I")
    if str(kind) not in load_schema()["types"] or buffer >= max(len(buffers), 1):
        raise BrokenTableError(
            f"tensor {name[:60]!r} has an unknown type {kind}, or a buffer {buffer} that is not in the file"
        )
    if len(shape) > MOST_RANK or any(one < 0 for one in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise BrokenTableError(f"tensor {name[:60]!r} has the invalid shape {str(shape)[:80]}")
    scales = table.table(4)
    stored, known = buffers[buffer] if buffers else (0, b"")
    is_packed = table.table(6) is not None
    _, item_size, readable = find_type(kind)
    expected = -(-math.prod(shape) // 2) if kind == INT4 else math.prod(shape) * item_size
    if stored and not is_packed and (readable or kind == INT4) and stored != expected:
        raise BrokenTableError(
            f"tensor {name[:60]!r} has {stored:,} bytes, but its shape {str(shape)[:80]} needs {expected:,}"
        )
    return LiteTensor(
        name=name,
        shape=shape,
        open_axes=tuple(axis for axis, one in enumerate(signature) if one < 0) if len(signature) == len(shape) else (),
        kind=kind,
        is_scaled=scales is not None and scales.span(2, 4)[1] > 0,
        is_variable=bool(table.number(5, "?")),
        stored_bytes=stored,
        known=b"" if is_packed else known,
    )


def _read_operator(table: FlatTable, codes: list[str]) -> LiteOperator:
    index = table.number(0, "I")
    if index >= len(codes):
        raise BrokenTableError(f"an operator has the code index {index}, but the file has {len(codes)} codes")
    op = codes[index]
    options = table.table(12 if op == "STABLEHLO_COMPOSITE" else 4)
    return LiteOperator(
        op=op,
        inputs=table.numbers(1, "i"),
        outputs=table.numbers(2, "i"),
        options=_read_options(options, load_schema()["options"].get(op, "")),
    )


def _read_options(table: FlatTable | None, names: str) -> dict[str, Any]:
    options = {}
    for one in names.split():
        name, _, rest = one.partition(":")
        spot, _, default = rest.partition("=")
        options[name] = (
            int(default or 0) if table is None else int(table.number(int(spot[:-1]), spot[-1], default or 0))
        )
    return options
