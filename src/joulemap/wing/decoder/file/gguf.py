"""Headers of GGUF files, one or several parts of a model.

    magic, version, counts │ key type value … │ name shape type offset … │ weights, which are not read

Tokens and merges of a vocabulary are skipped: only their number is kept. Source of the format: GGUF version 3,
github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.wing.decoder.file.header import (
    MOST_TENSORS,
    FileHeader,
    HeaderReader,
    StoredTensor,
    check_names,
    check_shape,
    list_siblings,
    open_header,
)

MAGIC: Final = b"GGUF"

VERSIONS: Final = (2, 3)

DATA: Final = Path(__file__).parents[3] / "catalog" / "data" / "model" / "gguf.toml"

MOST_KEYS: Final = 100_000

MOST_NAME_BYTES: Final = 65_535
"""Maximum bytes of a key or of a tensor's name. Source: docs/gguf.md, which states it for keys."""

MOST_TEXT_BYTES: Final = 16_000_000
"""Maximum bytes of a text value; chat templates are the longest texts, with about 100,000 bytes."""

MOST_TEXTS: Final = 10_000_000
"""Maximum texts of an array; the largest vocabularies have half a million merges."""

MOST_KEPT: Final = 65_536
"""Maximum length of an array of numbers that is kept, such as one number per layer; of longer arrays only the length
is.
"""

TEXT: Final = 8
ARRAY: Final = 9

NUMBERS: Final[Mapping[int, str]] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
"""GGUF type of a value -> format character of Python's `struct`."""


@cache
def load_tables() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables that translate GGUF to this package: tensor types, architectures and names."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def read_gguf(path: Path) -> FileHeader:
    """Return the header of a model, given its only file or any of its files.

    Raise ModelError for a file that is not a GGUF file, is cut short or has a part missing.
    """
    headers = [_read_part(part) for part in list_siblings(path)]
    values: dict[str, Any] = {}
    for header in reversed(headers):
        values |= header.values
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    check_names(path, tensors)
    present = sum(min(header.present_bytes, header.byte_count) for header in headers)
    return FileHeader(values=values, tensors=tensors, present_bytes=present)


def _read_part(path: Path) -> FileHeader:
    with open_header(path) as reader:
        magic = reader.take(4, "its first bytes")
        if magic != MAGIC:
            raise reader.refuse(f"it begins with {magic!r}, but a GGUF file begins with {MAGIC!r}")
        version = _number(reader, "I")
        if version not in VERSIONS:
            turned = int.from_bytes(version.to_bytes(4, "little"), "big")
            kind = "big-endian" if turned in VERSIONS else f"GGUF version {version}"
            raise reader.refuse(f"it is {kind}, expected version 2 or 3, little-endian")
        tensor_count, key_count = _number(reader, "Q"), _number(reader, "Q")
        if tensor_count > MOST_TENSORS or key_count > MOST_KEYS:
            raise reader.refuse(f"it states {tensor_count:,} tensors and {key_count:,} keys")
        values = {}
        for _ in range(key_count):
            key = _text(reader, MOST_NAME_BYTES)
            values[key] = _value(reader, key, _number(reader, "I"))
        tensors = tuple(_tensor(reader) for _ in range(tensor_count))
        return FileHeader(values=values, tensors=tensors, present_bytes=reader.size - reader.position)


def _number(reader: HeaderReader, code: str) -> Any:
    return struct.unpack(f"<{code}", reader.take(struct.calcsize(f"<{code}"), "its header"))[0]


def _text(reader: HeaderReader, most: int) -> str:
    count = _number(reader, "Q")
    if count > most:
        raise reader.refuse(f"a text of its header has {count:,} bytes, at most {most:,} are read")
    return reader.take(count, "a text of its header").decode("utf-8", "replace")


def _value(reader: HeaderReader, key: str, kind: int) -> Any:
    """Return a value of a header; for long arrays and arrays of texts, return the length."""
    if kind == TEXT:
        return _text(reader, MOST_TEXT_BYTES)
    if kind in NUMBERS:
        return _number(reader, NUMBERS[kind])
    if kind != ARRAY:
        raise reader.refuse(f"{key[:80]!r} has a value of type {kind}, which is not known")
    inner, count = _number(reader, "I"), _number(reader, "Q")
    if inner == TEXT:
        if count > MOST_TEXTS:
            raise reader.refuse(f"{key[:80]!r} has {count:,} texts, at most {MOST_TEXTS:,} are read")
        for _ in range(count):
            reader.skip(_number(reader, "Q"), f"a text of {key[:80]!r}")
        return count
    if inner not in NUMBERS:
        raise reader.refuse(f"{key[:80]!r} has values of type {inner}, which is not known")
    code = NUMBERS[inner]
    size = struct.calcsize(f"<{code}")
    if count > MOST_KEPT:
        reader.skip(size * count, f"{key[:80]!r}")
        return count
    return list(struct.unpack(f"<{count}{code}", reader.take(size * count, f"{key[:80]!r}")))


def _tensor(reader: HeaderReader) -> StoredTensor:
    name = _text(reader, MOST_NAME_BYTES)
    rank = _number(reader, "I")
    shape = tuple(_number(reader, "Q") for _ in range(rank)) if rank <= 8 else (-1,)
    kind = _number(reader, "I")
    _number(reader, "Q")
    check_shape(reader, name, shape)
    known = load_tables()["types"].get(str(kind))
    if known is None:
        raise reader.refuse(f"tensor {name[:80]!r} has the type {kind}, which is not known")
    stored, block, size = known
    if shape and shape[0] % block:
        raise reader.refuse(f"tensor {name[:80]!r} has rows of {shape[0]:,}, expected a multiple of {block}")
    wide = load_tables()["wide"].get(str(kind), "")
    tensor = StoredTensor(name=name, shape=shape[::-1], stored=stored, byte_count=0, wide=wide)
    return attrs.evolve(tensor, byte_count=tensor.element_count // block * size)
