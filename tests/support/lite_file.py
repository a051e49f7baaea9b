"""Writer of TFLite files: FlatBuffers tables, each before the tables that it refers to."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from joulemap.wing.file.lite import COMPOSITE, load_schema

Field = tuple[str, Any]
"""(`struct` code of a number, or `text`, `table`, `tables`, or `vector:` with a code; value)."""

TYPES = {"fp32": 0, "fp16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int8": 9, "resource": 13, "int4": 17}


@attrs.frozen
class Tensor:
    """Tensor of a subgraph."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "fp32"
    data: Any = None
    """Elements of a constant; True for zeros."""
    is_scaled: bool = False
    open_axes: tuple[int, ...] = ()
    is_variable: bool = False


@attrs.frozen
class Op:
    """Operator with the names of its tensors (empty if omitted), and (field, code, value) of its options."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    options: Sequence[tuple[int, str, int]] = ()


@attrs.frozen
class Graph:
    """Subgraph of a file."""

    tensors: Sequence[Tensor]
    operators: Sequence[Op]
    inputs: Sequence[str] = ("x",)
    outputs: Sequence[str] = ("y",)


class Writer:
    """Bytes of a file as they are written."""

    def __init__(self) -> None:
        self.data = bytearray(8)
        self.data[4:8] = b"TFL3"

    def align(self, size: int, ahead: int = 0) -> None:
        while (len(self.data) + ahead) % size:
            self.data.append(0)

    def table(self, fields: Mapping[int, Field]) -> int:
        """Write a table and return its position."""
        count = max(fields, default=-1) + 1
        self.align(8, ahead=4 + 2 * count)
        vtable = len(self.data)
        self.data += bytes(4 + 2 * count)
        start = len(self.data)
        self.data += struct.pack("<i", start - vtable)
        places = {}
        for index, (code, value) in sorted(fields.items()):
            plain = code if len(code) == 1 else "I"
            self.align(struct.calcsize(f"<{plain}"))
            places[index] = len(self.data)
            self.data += struct.pack(f"<{plain}", value if len(code) == 1 else 0)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * count, len(self.data) - start)
        for index, place in places.items():
            struct.pack_into("<H", self.data, vtable + 4 + 2 * index, place - start)
            code, value = fields[index]
            if len(code) > 1:
                struct.pack_into("<I", self.data, place, self.child(code, value) - place)
        return start

    def child(self, code: str, value: Any) -> int:
        """Write a table, a text or a vector, and return its position."""
        if code == "table":
            return self.table(value)
        item = code.partition(":")[2]
        self.align(16, ahead=4)
        start = len(self.data)
        if code == "tables":
            self.data += struct.pack("<I", len(value)) + bytes(4 * len(value))
            for index, one in enumerate(value):
                place = start + 4 + 4 * index
                struct.pack_into("<I", self.data, place, self.table(one) - place)
        elif code == "text" or item == "bytes":
            told = value.encode() if code == "text" else value
            self.data += struct.pack("<I", len(told)) + told + b"\0"
        else:
            self.data += struct.pack(f"<I{len(value)}{item}", len(value), *value)
        return start


def form_lite(*graphs: Graph) -> bytes:
    """Return the bytes of a file."""
    codes = list(dict.fromkeys(one.name for graph in graphs for one in graph.operators))
    buffers: list[dict[int, Field]] = [{}]
    told = [_form_graph(graph, codes, buffers) for graph in graphs]
    writer = Writer()
    root = writer.table(
        {
            0: ("I", 3),
            1: ("tables", [_form_code(one) for one in codes]),
            2: ("tables", told),
            3: ("text", "made by hand"),
            4: ("tables", buffers),
        }
    )
    struct.pack_into("<I", writer.data, 0, root)
    return bytes(writer.data)


def _form_code(name: str) -> dict[int, Field]:
    known = load_schema()["operators"]
    if name.startswith("custom "):
        return {0: ("b", 32), 1: ("text", name.removeprefix("custom ")), 3: ("i", 32)}
    code = COMPOSITE if name == "STABLEHLO_COMPOSITE" else known.index(name)
    return {0: ("b", min(code, 127)), 3: ("i", code)}


def _form_graph(graph: Graph, codes: list[str], buffers: list[dict[int, Field]]) -> dict[int, Field]:
    index = {one.name: place for place, one in enumerate(graph.tensors)} | {"": -1}
    return {
        0: ("tables", [_form_tensor(one, buffers) for one in graph.tensors]),
        1: ("vector:i", [index[one] for one in graph.inputs]),
        2: ("vector:i", [index[one] for one in graph.outputs]),
        3: ("tables", [_form_operator(one, codes, index) for one in graph.operators]),
    }


def _form_tensor(tensor: Tensor, buffers: list[dict[int, Field]]) -> dict[int, Field]:
    buffer = 0
    if tensor.data is not None:
        kind = {"fp32": "float32", "fp16": "float16"}.get(tensor.dtype, tensor.dtype)
        size = -(-int(np.prod(tensor.shape)) // 2) if tensor.dtype == "int4" else 0
        values = np.zeros(tensor.shape, kind) if tensor.data is True and not size else np.asarray(tensor.data)
        buffers.append({0: ("vector:bytes", bytes(size) or values.astype(kind).tobytes())})
        buffer = len(buffers) - 1
    fields: dict[int, Field] = {
        0: ("vector:i", tensor.shape),
        1: ("b", TYPES[tensor.dtype]),
        2: ("I", buffer),
        3: ("text", tensor.name),
        5: ("?", tensor.is_variable),
    }
    if tensor.is_scaled:
        fields[4] = ("table", {2: ("vector:f", [0.1]), 3: ("vector:q", [0])})
    if tensor.open_axes:
        fields[7] = ("vector:i", [-1 if axis in tensor.open_axes else one for axis, one in enumerate(tensor.shape)])
    return fields


def _form_operator(one: Op, codes: list[str], index: Mapping[str, int]) -> dict[int, Field]:
    fields: dict[int, Field] = {
        0: ("I", codes.index(one.name)),
        1: ("vector:i", [index[name] for name in one.inputs]),
        2: ("vector:i", [index[name] for name in one.outputs]),
    }
    if one.options:
        place = 12 if one.name == "STABLEHLO_COMPOSITE" else 4
        fields[place] = ("table", {field: (code, value) for field, code, value in one.options})
    return fields


def write_lite(path: Path, *graphs: Graph) -> Path:
    """Write a file, and return its path."""
    path.write_bytes(form_lite(*graphs))
    return path
