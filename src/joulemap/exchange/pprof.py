"""A run as a pprof profile: where its energy, time, bytes and MACs go, as stacks.

    model ─► module ─► … ─► operator ─► action

Time, bytes and MACs belong to operators, energy to their actions. Amounts are whole numbers that sum to the run: energy
in femtojoules, time in femtoseconds, as the database has them. The tables of a profile may stand in any order among its
samples, so each name is written where it is first needed, and memory holds the names alone.

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
from joulemap.row.export import Sample
from joulemap.system.record import define

SAMPLE_TYPES: Final = (
    ("energy", "femtojoules"),
    ("time", "femtoseconds"),
    ("moved", "bytes"),
    ("off_chip", "bytes"),
    ("macs", "count"),
)
"""What a sample has an amount of, and the unit."""

BASE: Final = ("pprof::base", "true")
"""Label of the samples that are subtracted, by which pprof knows what percentages are of."""

PIECE_BYTES: Final = 1 << 16
"""Before compression."""

GZIP: Final = 31
"""Window of zlib that writes a gzip file, which has no time in it."""

SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = range(1, 7)
DURATION_NANOS, COMMENT, DEFAULT_SAMPLE_TYPE = 10, 13, 14
"""Fields of a profile."""

FS_PER_NS: Final = 1_000_000

VARINT: Final = 0
DELIMITED: Final = 2

MASK: Final = (1 << 64) - 1
"""Negative numbers are written as their two's complement of 64 bits."""

SMALL: Final = [bytes([number]) for number in range(0x80)]


@define
class _Whole:
    """Amounts as whole numbers whose sum is never more than a half from theirs."""

    exact: float = 0.0
    told: int = 0

    def add(self, amount: float) -> int:
        """Return what to write of an amount."""
        self.exact += amount
        before, self.told = self.told, round(self.exact)
        return self.told - before


@define
class _Names:
    """Strings and frames that are written once, and the fields that are to be written of them."""

    fields: list[bytes] = attrs.field(factory=list)
    strings: dict[str, int] = attrs.field(factory=dict)
    frames: dict[tuple[str, str], int] = attrs.field(factory=dict)
    labels: dict[tuple[str, str], bytes] = attrs.field(factory=dict)

    def text(self, text: str) -> int:
        """Return the place of a string."""
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.fields.append(bytes_field(STRING, text.encode(errors="replace")))
        return self.strings[text]

    def frame(self, name: str, file: str) -> int:
        """Return the location of a frame, which is a function of its own; its file groups frames of a kind."""
        key = name, file
        if key not in self.frames:
            number = self.frames[key] = len(self.frames) + 1
            text = number_field(2, self.text(name)) + number_field(3, self.text(name))
            self.fields.append(bytes_field(FUNCTION, number_field(1, number) + text + number_field(4, self.text(file))))
            line = bytes_field(4, number_field(1, number))
            self.fields.append(bytes_field(LOCATION, number_field(1, number) + number_field(2, 1) + line))
        return self.frames[key]

    def label(self, key: str, value: str) -> bytes:
        """Return a label of a sample."""
        pair = key, value
        if pair not in self.labels:
            self.labels[pair] = bytes_field(3, number_field(1, self.text(key)) + number_field(2, self.text(value)))
        return self.labels[pair]

    def take(self) -> bytes:
        """Return the fields that are not written yet."""
        found = b"".join(self.fields)
        self.fields.clear()
        return found


def write_profile(
    subject: Subject, samples: Iterable[Sample], base: tuple[Subject, Iterable[Sample]] | None = None
) -> Iterator[bytes]:
    """Yield a gzipped profile of a run; with a base, of what the run takes more than that one."""
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
    """Return what a profile says of itself."""
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
    """Yield the samples of one run, each behind the names that it is the first to need."""
    moved, off_chip = _Whole(), _Whole()
    for _, group in itertools.groupby(samples, lambda sample: sample.operator_index):
        first = next(group)
        stack = [names.frame(*frame) for frame in list_frames(subject.model, first)]
        above = b"".join(map(varint, reversed(stack)))
        told = [("hardware", subject.hardware), ("subgraph", first.subgraph), ("operation", first.operation), *labels]
        shared = b"".join(itertools.starmap(names.label, told))
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
    """Yield (name, kind) of the frames of an operator, from the model down.

    Names are whole paths, so that modules of one name in different places stay apart.
    """
    yield model, "model"
    parts = sample.module_path.split(".") if sample.module_path else []
    for path in itertools.accumulate(parts, "{}.{}".format):
        yield path, "module"
    yield f"{sample.name} [{sample.operation}]", sample.operation


def _compress(fields: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what fields are compressed to, in pieces."""
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
    """Return a whole number of at most 64 bits, seven bits a byte, the low ones first."""
    if 0 <= number <= 0x7F:
        return SMALL[number]
    rest, found = number & MASK, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def number_field(field: int, value: int) -> bytes:
    """Return a field that holds a whole number; nothing for 0, which a reader takes a missing one for."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def bytes_field(field: int, content: bytes) -> bytes:
    """Return a field that holds a text, a message or packed numbers."""
    return varint(field << 3 | DELIMITED) + varint(len(content)) + content


def packed_field(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of whole numbers."""
    return bytes_field(field, b"".join(map(varint, values)))
