"""Headers of safetensors files, one or several parts of a model.

    length of the header (8 bytes) │ {"name": {"dtype", "shape", "data_offsets"} …} │ weights, which are not read

Source of the format: github.com/huggingface/safetensors, README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from shlex import quote
from typing import Any, Final

from joulemap.system import FileError, ModelError, read_text
from joulemap.wing.decoder.file.header import (
    MOST_TENSORS,
    HeaderReader,
    RawTensor,
    check_names,
    check_parts,
    check_shape,
    list_siblings,
    open_header,
)

SUFFIX: Final = ".safetensors"

INDEX_SUFFIX: Final = ".safetensors.index.json"
"""Suffix of the file that lists the tensors of each part."""

POINTER: Final = b"version "
"""First bytes of the text that Git LFS leaves in place of a file that was not downloaded."""

MOST_HEADER_BYTES: Final = 25_000_000
"""Maximum bytes of a header; 90,000 tensors in one file take 12 million."""

MOST_INDEX_BYTES: Final = 50_000_000

LEAST_BYTES: Final = 12
"""Minimum bytes of a header per bracket: an entry of a tensor has three brackets and over 50 bytes."""

ITEM_BITS: Final[Mapping[str, int]] = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16,
    "U16": 16, "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Element type -> bits per element. Source: safetensors 0.8, safetensors/src/tensor.rs."""


def list_parts(path: Path) -> tuple[Path, ...]:
    """Return all files of a model, given its index or any of its files.

    Raise ModelError for a part that is missing, and for an index that names no files next to it.
    """
    if not path.name.endswith(INDEX_SUFFIX):
        return list_siblings(path)
    return check_parts(path, [path.with_name(file) for file in sorted(set(read_index(path).values()))], "lists")


def read_index(path: Path) -> dict[str, str]:
    """Return tensor name -> file name; ModelError unless the index names files of its own folder."""
    try:
        index = json.loads(read_text(path, MOST_INDEX_BYTES))
    except FileError as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{quote(str(path))} is not an index of weights: it is not JSON") from error
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not files or not all(isinstance(one, str) for one in files.values()):
        raise ModelError(f"{quote(str(path))} is not an index of weights: it has no weight_map of tensors and files")
    for file in set(files.values()):
        if not file.endswith(SUFFIX) or PurePath(file).name != file or "\\" in file or "\0" in file:
            raise ModelError(f"{quote(str(path))}: {file[:80]!r} is not a safetensors file of its folder")
    return files


def read_tensors(path: Path) -> tuple[RawTensor, ...]:
    """Return the tensors of a model, given its index or any of its files; their data is not read.

    Raise ModelError for a file that is not a safetensors file, is not whole, or lacks tensors of its index.
    """
    parts = list_parts(path)
    tensors = [tensor for part in parts for tensor in _read_part(part)]
    names = check_names(path, tensors)
    if not tensors:
        raise ModelError(f"{quote(str(path))} holds no tensors")
    if path.name.endswith(INDEX_SUFFIX):
        lacking = sorted(read_index(path).keys() - names)
        if lacking:
            raise ModelError(f"{quote(str(path))} lists {lacking[0][:80]!r}, which its file does not hold")
    return tuple(tensors)


def _read_part(path: Path) -> tuple[RawTensor, ...]:
    with open_header(path) as reader:
        begin = reader.take(8, "the length of its header")
        length = int.from_bytes(begin, "little")
        if begin == POINTER:
            raise reader.refuse("it is a pointer of Git LFS; download the weights: git lfs pull")
        if length > reader.size - reader.position:
            raise reader.refuse(
                f"its header takes {length:,} bytes, but {reader.size - reader.position:,} are left: it is not a "
                "safetensors file, or is incomplete"
            )
        if length > MOST_HEADER_BYTES:
            raise reader.refuse(f"its header takes {length:,} bytes, at most {MOST_HEADER_BYTES:,} are read")
        header = _parse(reader, reader.take(length, "its header"))
        header.pop("__metadata__", None)
        if len(header) > MOST_TENSORS:
            raise reader.refuse(f"it has {len(header):,} tensors")
        room = reader.size - reader.position
        return tuple(_tensor(reader, name, value, room) for name, value in header.items())


def _parse(reader: HeaderReader, text: bytes) -> dict[str, Any]:
    """Return the object in a header; ModelError for anything else, and for nesting that would take much memory."""
    if text[:1] != b"{" or (text.count(b"[") + text.count(b"{")) * LEAST_BYTES > len(text) + 100:
        raise reader.refuse("its header is not a list of tensors")
    try:
        header: dict[str, Any] = json.loads(text, object_pairs_hook=_refuse_doubles)
    except RecursionError as error:
        raise reader.refuse("its header is not a list of tensors") from error
    except ValueError as error:
        raise reader.refuse(f"its header is not JSON: {str(error)[:120]}") from error
    return header


def _refuse_doubles(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name occurs twice in it")
    return fields


def _tensor(reader: HeaderReader, name: str, entry: Any, room: int) -> RawTensor:
    shape, offsets = (_read_counts(entry.get(key)) for key in ("shape", "data_offsets")) if _is_entry(entry) else (0, 0)
    if not isinstance(shape, tuple) or not isinstance(offsets, tuple) or len(offsets) != 2:
        raise reader.refuse(f"tensor {name[:80]!r} needs a dtype, a shape of counts and two data_offsets")
    dtype = entry["dtype"]
    if dtype not in ITEM_BITS:
        raise reader.refuse(f"tensor {name[:80]!r} has the type {str(dtype)[:20]!r}, which is not known")
    check_shape(reader, name, shape)
    byte_count = -(-math.prod(shape) * ITEM_BITS[dtype] // 8)
    if offsets[1] - offsets[0] != byte_count:
        raise reader.refuse(
            f"tensor {name[:80]!r} has {byte_count:,} bytes by its shape and {offsets[1] - offsets[0]:,} by its offsets"
        )
    if offsets[1] > room:
        raise reader.refuse(
            f"its weights take {offsets[1]:,} bytes or more, but the file has {room:,}: is it complete?"
        )
    return RawTensor(name=name, shape=shape, dtype=dtype, byte_count=byte_count)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("dtype"), str)


def _read_counts(value: Any) -> tuple[int, ...] | None:
    """Return a list of counts as a tuple; None for any other value."""
    is_list = isinstance(value, list) and all(type(one) is int and 0 <= one < 2**63 for one in value)
    return tuple(value) if is_list else None


def list_dtypes(tensors: Iterable[RawTensor]) -> dict[str, int]:
    """Return type of elements -> bytes of all tensors of this type, the largest first."""
    sizes: dict[str, int] = {}
    for tensor in tensors:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.byte_count
    return dict(sorted(sizes.items(), key=lambda one: -one[1]))
