"""pprof profile of a run: energy, time, bytes and MACs by stack.

    model ─► module ─► … ─► operator ─► action

Time, bytes and MACs belong to operators, energy to their actions. Amounts are integers that sum to the run's total:
energy in femtojoules, time in femtoseconds, as in the database. The format allows strings and frames between samples,
so each is written at its first use, and memory holds only their names.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto, in the encoding of
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from joulemap.exchange.subject import Subject
from joulemap.generated.export import Sample
from joulemap.system.record import define

SAMPLE_TYPES: Final = (
    ("energy", "femtojoules"),
    ("time", "femtoseconds"),
    ("moved", "bytes"),
    ("off_chip", "bytes"),
    ("macs", "count"),
)
"""(name, unit) of each value of a sample."""

BASE: Final = ("pprof::base", "true")
"""Label of a base run's samples, which tells pprof to compute percentages relative to the base."""

PIECE_BYTES: Final = 1 << 16
"""Bytes that are compressed at a time."""

GZIP: Final = 31
"""Window size argument that makes zlib write a gzip file, without a time stamp."""

SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = range(1, 7)
DURATION_NANOS, COMMENT, DEFAULT_SAMPLE_TYPE = 10, 13, 14
"""Field numbers of pprof's Profile message."""

FS_PER_NS: Final = 1_000_000

VARINT: Final = 0
DELIMITED: Final = 2

MASK: Final = (1 << 64) - 1
"""Mask of 64 bits; negative numbers are written as two's complement."""

SMALL: Final = [bytes([number]) for number in range(0x80)]


@define
class _Rounding:
    """Rounding of a series of amounts to integers, whose sum stays within 0.5 of the exact sum."""

    exact: float = 0.0
    written: int = 0

    def add(self, amount: float) -> int:
        """Return the integer to write for the next amount."""
        self.exact += amount
        before, self.written = self.written, round(self.exact)
        return self.written - before


@define
class _Names:
    """Strings, frames and labels that were written or wait to be written, each once."""

    fields: list[bytes] = attrs.field(factory=list)
    strings: dict[str, int] = attrs.field(factory=dict)
    frames: dict[tuple[str, str], int] = attrs.field(factory=dict)
    labels: dict[tuple[str, str], bytes] = attrs.field(factory=dict)

    def text(self, text: str) -> int:
        """Return the index of a string; a new string is added to the pending fields."""
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.fields.append(bytes_field(STRING, text.encode(errors="replace")))
        return self.strings[text]

    def frame(self, name: str, file: str) -> int:
        """Return the location id of a frame; pprof shows `file` as its source file, which groups frames of one kind."""
        key = name, file
        if key not in self.frames:
            number = self.frames[key] = len(self.frames) + 1
            text = number_field(2, self.text(name)) + number_field(3, self.text(name))
            self.fields.append(bytes_field(FUNCTION, number_field(1, number) + text + number_field(4, self.text(file))))
            line = bytes_field(4, number_field(1, number))
            self.fields.append(bytes_field(LOCATION, number_field(1, number) + number_field(2, 1) + line))
        return self.frames[key]

    def label(self, key: str, value: str) -> bytes:
        """Return the encoded label of a sample."""
        pair = key, value
        if pair not in self.labels:
            self.labels[pair] = bytes_field(3, number_field(1, self.text(key)) + number_field(2, self.text(value)))
        return self.labels[pair]

    def take(self) -> bytes:
        """Return the pending encoded fields, and clear them."""
        content = b"".join(self.fields)
        self.fields.clear()
        return content


def write_profile(
    subject: Subject, samples: Iterable[Sample], base: tuple[Subject, Iterable[Sample]] | None = None
) -> Iterator[bytes]:
    """Yield a gzipped profile of a run in pieces; with a base, the profile of the run minus the base."""
    return _compress(_write(subject, samples, base))


def _write(
    subject: Subject, samples: Iterable[Sample], base: tuple[Subject, Iterable[Sample]] | None
) -> Iterator[bytes]:
    names = _Names()
    names.text("")
    yield names.take() + _describe(names, subject, base[0] if base else None)
    for sample in _write_samples(names, subject, samples, 1, ()):
        yield names.take() + sample
    if base is not None:
        for sample in _write_samples(names, base[0], base[1], -1, (BASE,)):
            yield names.take() + sample


def _describe(names: _Names, subject: Subject, base: Subject | None) -> bytes:
    """Return the encoded header of a profile: sample types, title and duration."""
    fields = [
        bytes_field(SAMPLE_TYPE, number_field(1, names.text(kind)) + number_field(2, names.text(unit)))
        for kind, unit in SAMPLE_TYPES
    ]
    has_names = number_field(7, 1) + number_field(8, 1)
    fields.append(bytes_field(MAPPING, number_field(1, 1) + number_field(5, names.text(subject.model)) + has_names))
    fields.append(number_field(DEFAULT_SAMPLE_TYPE, names.text(SAMPLE_TYPES[0][0])))
    titles = [subject.title] if base is None else [subject.title, f"minus {base.title}"]
    fields.append(packed_field(COMMENT, map(names.text, titles)))
    if base is None:
        fields.append(number_field(DURATION_NANOS, round(subject.latency_fs / FS_PER_NS)))
    return names.take() + b"".join(fields)


def _write_samples(
    names: _Names, subject: Subject, samples: Iterable[Sample], sign: int, labels: Sequence[tuple[str, str]]
) -> Iterator[bytes]:
    """Yield the encoded samples of one run, with values multiplied by `sign`; new strings are added to `names`."""
    moved, off_chip = _Rounding(), _Rounding()
    for _, group in itertools.groupby(samples, lambda sample: sample.operator_index):
        first = next(group)
        stack = [names.frame(*frame) for frame in list_frames(subject.model, first)]
        above = b"".join(map(varint, reversed(stack)))
        pairs = [("hardware", subject.hardware), ("subgraph", first.subgraph), ("operation", first.operation), *labels]
        shared = b"".join(itertools.starmap(names.label, pairs))
        for sample in itertools.chain((first,), group):
            values = (
                sample.energy_fj,
                sample.latency_fs,
                moved.add(sample.moved_bytes),
                off_chip.add(sample.dram_bytes),
                sample.mac_count,
            )
            leaf = written = b""
            if sample.component:
                name = f"{sample.component}.{sample.action}"
                leaf = varint(names.frame(name, sample.common_category))
                written = names.label("category", sample.common_category)
                written += names.label("own_category", sample.category) + names.label("basis", sample.basis)
            counts = packed_field(2, [sign * value for value in values])
            yield bytes_field(SAMPLE, bytes_field(1, leaf + above) + counts + shared + written)


def list_frames(model: str, sample: Sample) -> Iterator[tuple[str, str]]:
    """Yield (name, kind) of an operator's frames: model, modules from the outermost, operator.

    Names are full paths, so that modules with equal names in different places stay distinct.
    """
    yield model, "model"
    parts = sample.module_path.split(".") if sample.module_path else []
    for path in itertools.accumulate(parts, "{}.{}".format):
        yield path, "module"
    yield f"{sample.name} [{sample.operation}]", sample.operation


def _compress(fields: Iterable[bytes]) -> Iterator[bytes]:
    """Yield gzip-compressed fields in pieces."""
    engine = zlib.compressobj(wbits=GZIP)
    waiting, size = list[bytes](), 0
    for field in fields:
        waiting.append(field)
        size += len(field)
        if size >= PIECE_BYTES:
            yield engine.compress(b"".join(waiting))
            waiting, size = [], 0
    yield engine.compress(b"".join(waiting))
    yield engine.flush()


def varint(number: int) -> bytes:
    """Return an integer of at most 64 bits as a varint: seven bits per byte, lowest bits first."""
    if 0 <= number <= 0x7F:
        return SMALL[number]
    rest, encoded = number & MASK, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def number_field(field: int, value: int) -> bytes:
    """Return an encoded integer field; empty for 0, the value that readers assume for a missing field."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def bytes_field(field: int, content: bytes) -> bytes:
    """Return an encoded field that contains a string, a message or packed numbers."""
    return varint(field << 3 | DELIMITED) + varint(len(content)) + content


def packed_field(field: int, values: Iterable[int]) -> bytes:
    """Return an encoded field that contains packed integers."""
    return bytes_field(field, b"".join(map(varint, values)))
