"""Header of a file of weights: metadata of the model, and the shape and type of each tensor."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import Any, Final

import attrs

from joulemap.system import FileError, ModelError, frozen, open_regular

MOST_TENSORS: Final = 1_000_000
"""Maximum tensors of a file; the largest published models have 60,000 in all parts."""

MOST_RANK: Final = 8

PART: Final = re.compile(r"(?P<begin>.*)-\d{5}-of-(?P<count>\d{5})(?P<suffix>\.gguf|\.safetensors)")
"""Name of one file of a model in several files, in the scheme of llama.cpp and of Transformers."""

MOST_ELEMENTS: Final = 10**14
"""Maximum elements of a tensor: more than any model has in all."""


@frozen(kw_only=True)
class StoredTensor:
    """Tensor of a file, or a weight that several tensors store."""

    name: str
    shape: tuple[int, ...]
    """Sizes of the tensor; the last size is the inner dimension of GEMMs."""
    stored: str
    """Format of weights as `--weight-precision` takes it; empty for 16 bits."""
    byte_count: int
    wide: str = ""
    """Precision of weights that are not quantized, such as fp16; empty for other weights, and if it is unknown."""

    @property
    def element_count(self) -> int:
        """Number of weights in this tensor."""
        return math.prod(self.shape)


@frozen(kw_only=True)
class RawTensor:
    """Tensor of a file, as it is stored."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    byte_count: int


@frozen(kw_only=True)
class FileHeader:
    """Metadata and tensors that the headers of a model's files state."""

    values: Mapping[str, Any]
    tensors: tuple[StoredTensor, ...]
    present_bytes: int
    """Bytes that follow the headers; fewer than `byte_count` if a download is not complete."""

    @property
    def byte_count(self) -> int:
        """Bytes of all weights, as the headers state them."""
        return sum(tensor.byte_count for tensor in self.tensors)

    @property
    def element_count(self) -> int:
        """Number of weights of all tensors."""
        return sum(tensor.element_count for tensor in self.tensors)


@attrs.define
class HeaderReader:
    """Reader of bytes that never reads beyond the end of a file."""

    stream: BufferedReader
    name: str
    size: int
    position: int = 0

    def take(self, count: int, what: str) -> bytes:
        """Return the next `count` bytes; ModelError, which names them as `what`, if the file ends earlier."""
        self._check(count, what)
        data = self.stream.read(count)
        self.position += len(data)
        if len(data) != count:
            raise self.refuse(f"it ends within {what}")
        return data

    def skip(self, count: int, what: str) -> None:
        """Skip the next `count` bytes; ModelError, which names them as `what`, if the file ends earlier."""
        self._check(count, what)
        self.stream.seek(count, 1)
        self.position += count

    def _check(self, count: int, what: str) -> None:
        if not 0 <= count <= self.size - self.position:
            raise self.refuse(
                f"{what} should have {count:,} bytes, but {self.size - self.position:,} are left: is the file complete?"
            )

    def refuse(self, reason: str) -> ModelError:
        """Return an error that names the file and the reason why it cannot be read."""
        return ModelError(f"{quote(self.name)} cannot be read: {reason}")


@contextmanager
def open_header(path: Path) -> Iterator[HeaderReader]:
    """Yield a reader of a regular file; ModelError if it cannot be opened."""
    try:
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            yield HeaderReader(stream, str(path), size)
    except (FileError, OSError, ValueError) as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error


def list_siblings(path: Path) -> tuple[Path, ...]:
    """Return all files of a model by the name of any of its files; ModelError for one that is missing."""
    match = PART.fullmatch(path.name)
    if match is None:
        return (path,)
    begin, count, suffix = match.groups()
    parts = [path.with_name(f"{begin}-{index:05}-of-{count}{suffix}") for index in range(1, int(count) + 1)]
    return check_parts(path, parts, "is one of")


def check_parts(path: Path, parts: Sequence[Path], verb: str) -> tuple[Path, ...]:
    """Return the files of a model; ModelError for one that is missing."""
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise ModelError(
            f"{quote(str(path))} {verb} {len(parts)} files of weights; {missing[0]}{more} missing: download the rest"
        )
    return tuple(parts)


def check_names(path: Path, tensors: Sequence[StoredTensor | RawTensor]) -> set[str]:
    """Return the names of tensors; ModelError if two have one name."""
    names = {tensor.name for tensor in tensors}
    if len(names) != len(tensors):
        raise ModelError(f"{quote(str(path))} cannot be read: two tensors have one name")
    return names


def check_shape(reader: HeaderReader, name: str, shape: tuple[int, ...]) -> None:
    """Raise ModelError for a shape that no tensor of a model has."""
    if len(shape) > MOST_RANK or any(size < 0 for size in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise reader.refuse(f"tensor {name[:80]!r} has the shape {str(shape)[:80]}")
