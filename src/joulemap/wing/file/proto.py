"""Protobuf message of an ONNX file without its weights: the data of large tensors is skipped and never in memory.

    ModelProto ─ graph (7) ─ initializer (5) ─ raw_data (9) … are omitted where a tensor has more than a few bytes

External data is never opened. Source: onnx.proto of the ONNX project, field numbers of version 1.23.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from joulemap.system.errors import ModelError
from joulemap.system.file import FileError, open_regular
from joulemap.system.resource import package_version

if TYPE_CHECKING:
    from onnx import ModelProto

GRAPH: Final = 7
"""Number of the field of a model that contains its graph."""

INITIALIZER: Final = 5
"""Number of the field of a graph that contains a tensor of weights."""

NUMBERS: Final = frozenset({4, 5, 6, 7, 9, 10, 11})
"""Protobuf field numbers of a tensor's elements."""

MOST_DATA: Final = 4096
"""Maximum bytes of a tensor whose elements are read: shapes, axes and scales have fewer, weights more."""

MOST_KEPT: Final = 200_000_000
"""Maximum bytes of a model after its weights are left out."""

MOST_VARINT: Final = 10
"""Maximum bytes of a number in a message."""


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
            stream.seek(0)
            model = ModelProto.FromString(_strip_model(stream, size))
    except (OSError, FileError, ValueError) as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error
    except (BrokenMessageError, DecodeError) as error:
        raise ModelError(f"{quote(str(path))} is not an ONNX model, or is incomplete: {error}") from error
    if not model.graph.node:
        raise ModelError(f"{quote(str(path))} is not an ONNX model: it has no operators")
    return model


def _strip_model(stream: BufferedReader, size: int) -> bytes:
    """Return the serialized model without the elements of its weights; `size` is the length of the file."""
    kept = bytearray()
    for field, kind, end, begin in _fields(stream, size):
        if field != GRAPH or kind != 2:
            kept += _copy(stream, begin, end, len(kept))
            continue
        graph = bytearray()
        for inner, inner_kind, inner_end, inner_begin in _fields(stream, end):
            if inner == INITIALIZER and inner_kind == 2 and inner_end - stream.tell() > MOST_DATA:
                graph += _wrap(INITIALIZER, _strip_tensor(stream, inner_end))
            else:
                graph += _copy(stream, inner_begin, inner_end, len(graph))
        kept += _wrap(GRAPH, bytes(graph))
    return bytes(kept)


def _strip_tensor(stream: BufferedReader, end: int) -> bytes:
    kept = bytearray()
    for field, _, inner_end, begin in _fields(stream, end):
        if field in NUMBERS and inner_end - begin > MOST_DATA:
            stream.seek(inner_end)
        else:
            kept += _copy(stream, begin, inner_end, len(kept))
    return bytes(kept)


def _fields(stream: BufferedReader, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, end position, start position) of each field up to `end`.

    The caller must leave the stream at the end of the field.
    """
    while (begin := stream.tell()) < end:
        tag = _varint(stream)
        field, kind = tag >> 3, tag & 7
        if kind == 0:
            _varint(stream)
            last = stream.tell()
        elif kind in (1, 5):
            last = stream.tell() + (8 if kind == 1 else 4)
        elif kind == 2:
            length = _varint(stream)
            last = stream.tell() + length
        else:
            raise BrokenMessageError(f"a field of wire type {kind}")
        if field == 0 or last > end:
            raise BrokenMessageError("a field extends past the end of its message")
        yield field, kind, last, begin


def _varint(stream: BufferedReader) -> int:
    value = 0
    for index in range(MOST_VARINT):
        one = stream.read(1)
        if not one:
            raise BrokenMessageError("it ends within a number")
        value |= (one[0] & 0x7F) << 7 * index
        if one[0] < 0x80:
            return value
    raise BrokenMessageError("a number has no end")


def _copy(stream: BufferedReader, begin: int, end: int, held: int) -> bytes:
    if held + end - begin > MOST_KEPT:
        raise BrokenMessageError(f"it has more than {MOST_KEPT:,} bytes without its weights")
    stream.seek(begin)
    found = stream.read(end - begin)
    if len(found) != end - begin:
        raise BrokenMessageError("it ends within a field")
    return found


def _wrap(field: int, content: bytes) -> bytes:
    """Return a serialized field of bytes: tag, length and content."""
    made, length = bytearray([field << 3 | 2]), len(content)
    while length >= 0x80:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    return bytes(made) + content
