"""Protobuf message of an ONNX file without its weights: the data of large tensors is skipped and never in memory.

    ModelProto ─ graph (7) ─┬ initializer (5) ─ raw_data (9) …          are omitted if they have more than a few bytes
                            ├ node (1) ─ attribute (5) ─ t (5) ─ raw_data (9) …
                            └ value_info (13), texts and metadata       are omitted: shapes are inferred anew

External data is never opened. Source: onnx.proto of the ONNX project, field numbers of version 1.23.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.system import FileError, ModelError, open_regular, package_version

if TYPE_CHECKING:
    from onnx import ModelProto

INSIDE: Final[Mapping[str, Mapping[int, str]]] = {
    "model": {7: "graph", 25: "function"},
    "function": {7: "node"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
"""Message -> number of a field -> message in this field, for fields that may contain tensors."""

LEFT_OUT: Final[Mapping[str, frozenset[int]]] = {
    "model": frozenset({6, 14, 20}), "function": frozenset({8, 12, 14}), "graph": frozenset({10, 13, 14, 16}),
    "node": frozenset({6, 9}), "attribute": frozenset({13}),
}  # fmt: skip
"""Message -> numbers of fields that nothing reads: texts, metadata, training and shapes of inner values."""

NUMBERS: Final = frozenset({4, 5, 6, 7, 9, 10, 11})
"""Protobuf field numbers of a tensor's elements."""

MOST_DATA: Final = 4096
"""Maximum bytes of a tensor whose elements are read: shapes, axes and scales have fewer, weights more."""

MOST_KEPT: Final = 50_000_000
"""Maximum bytes of a model after its weights are left out: 500 for each operator of the largest graph. The message in
memory is several times larger.
"""

MOST_FIELDS: Final = 1_000_000
"""Maximum fields of the messages that are searched for weights: ten for each operator of the largest graph."""

DEEPEST: Final = 100
"""Maximum depth of nested messages, as in the protobuf library."""

MOST_VARINT: Final = 10
"""Maximum bytes of a number in a message."""

WINDOW: Final = 65_536
"""Bytes of the file that are read at once while fields are looked up."""


class BrokenMessageError(Exception):
    """Error for bytes that are not a valid message."""


def load_onnx(path: Path) -> ModelProto:
    """Return an ONNX model without the elements of its weights.

    Raise ModelError for a file that is not an ONNX model, is cut short or is too large without its weights, and where
    the package onnx is not installed.
    """
    if package_version("onnx") == "absent":
        raise ModelError(f"{quote(str(path))} needs the package onnx: pip install 'joulemap[onnx]'")
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
            if not size:
                raise BrokenMessageError("it is empty")
            model = ModelProto.FromString(Stripper(stream).strip("model", 0, size))
    except (OSError, FileError, ValueError) as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error
    except (BrokenMessageError, DecodeError) as error:
        raise ModelError(f"{quote(str(path))} is not an ONNX model, or is incomplete: {error}") from error
    if not model.graph.node:
        raise ModelError(f"{quote(str(path))} is not an ONNX model: it has no operators")
    return model


@attrs.define
class Stripper:
    """Copier of a message without the elements of its tensors."""

    stream: BufferedReader
    kept: int = 0
    """Bytes copied so far."""
    field_count: int = 0
    """Fields seen so far."""
    window: bytes = b""
    """Bytes of the file in which fields are looked up."""
    window_begin: int = 0

    def strip(self, message: str, begin: int, end: int, depth: int = 0) -> bytes:
        """Return the message from `begin` to `end`, without the elements of its tensors."""
        if depth > DEEPEST:
            raise BrokenMessageError(f"its messages are nested more than {DEEPEST} deep")
        inside, left_out = INSIDE.get(message, {}), LEFT_OUT.get(message, frozenset())
        numbers = NUMBERS if message == "tensor" else frozenset[int]()
        kept, begun = bytearray(), -1
        for field, kind, first, content, last in self.list_fields(begin, end):
            is_long = last - content > MOST_DATA
            is_left_out = field in left_out or (field in numbers and last - first > MOST_DATA)
            inner = inside.get(field, "") if is_long and kind == 2 else ""
            if not is_left_out and not inner:
                begun = first if begun < 0 else begun
                continue
            if begun >= 0:
                kept += self.copy(begun, first)
                begun = -1
            if not is_left_out:
                kept += _wrap(field, self.strip(inner, content, last, depth + 1))
        return bytes(kept + self.copy(begun, end)) if begun >= 0 else bytes(kept)

    def list_fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield (number, wire type, start, start of the content, end) of each field from `begin` to `end`."""
        while begin < end:
            self.field_count += 1
            if self.field_count > MOST_FIELDS:
                raise BrokenMessageError(f"it has more than {MOST_FIELDS:,} fields")
            tag, content = self.read_varint(begin)
            field, kind = tag >> 3, tag & 7
            if kind == 2:
                length, content = self.read_varint(content)
                last = content + length
            elif kind == 0:
                _, last = self.read_varint(content)
            elif kind in (1, 5):
                last = content + (8 if kind == 1 else 4)
            else:
                raise BrokenMessageError(f"a field of wire type {kind}")
            if field == 0 or last > end:
                raise BrokenMessageError("a field extends past the end of its message")
            yield field, kind, begin, content, last
            begin = last

    def read_varint(self, position: int) -> tuple[int, int]:
        """Return the number at a position of the file, and the position after it."""
        value = 0
        for index in range(MOST_VARINT):
            offset = position + index - self.window_begin
            if not 0 <= offset < len(self.window):
                self.stream.seek(position + index)
                self.window, self.window_begin, offset = self.stream.read(WINDOW), position + index, 0
                if not self.window:
                    raise BrokenMessageError("it ends within a number")
            one = self.window[offset]
            value |= (one & 0x7F) << 7 * index
            if one < 0x80:
                return value, position + index + 1
        raise BrokenMessageError("a number has no end")

    def copy(self, begin: int, end: int) -> bytes:
        """Return the bytes of whole fields."""
        self.kept += end - begin
        if self.kept > MOST_KEPT:
            raise BrokenMessageError(f"it has more than {MOST_KEPT:,} bytes without its weights")
        self.stream.seek(begin)
        data = self.stream.read(end - begin)
        if len(data) != end - begin:
            raise BrokenMessageError("it ends within a field")
        return data


def _wrap(field: int, content: bytes) -> bytes:
    """Return a serialized field of bytes: tag, length and content."""
    made, length = bytearray([field << 3 | 2]), len(content)
    while length >= 0x80:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    return bytes(made) + content
