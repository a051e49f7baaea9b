"""Notes on a machine: its memory, what answers assume, and what a model file lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from joulemap.wing.here.machine import Machine
from joulemap.wing.here.match import GPU, NPU, Device
from joulemap.wing.here.show.word import MEMORY_LINE, RESERVE, SHARED, TARIFF, WORKS


def describe_memory(machine: Machine) -> str:
    """Return capacity, bandwidth and kind of a machine's memory; empty if unknown."""
    memory = machine.memory
    if memory.capacity_bytes is None:
        return ""
    return MEMORY_LINE(capacity=memory.capacity_bytes, rate=memory.bytes_per_s, kind=memory.kind or None)


def list_assumptions(usable: Sequence[Device], usd_per_kwh: float | None) -> Iterator[str]:
    """Yield notes on the tariff if language models are served, and on the memory that models may use."""
    if usd_per_kwh is not None:
        yield TARIFF(usd=usd_per_kwh)
    yield from _describe_reserve(usable)
    yield from (SHARED(label=one.label) for one in usable if one.shares_memory and one.kind == GPU)
    if usd_per_kwh is not None and (left := [one.label for one in usable if one.kind == NPU]):
        yield WORKS(names=left)


def _describe_reserve(devices: Sequence[Device]) -> Iterator[str]:
    """Yield a note on the memory that the operating system keeps, for the chip that may use most of the rest."""
    sharing = [one for one in devices if one.reserve_bytes and one.memory_bytes]
    most = max(sharing, key=lambda one: one.usable_bytes or 0.0, default=None)
    if most is not None:
        yield RESERVE(most, reserve=most.reserve_bytes, memory=most.memory_bytes, usable=most.usable_bytes)


def read_file_notes(model: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return (notes on missing weights of a model file, its other notes)."""
    from joulemap.wing.decoder import find_decoder

    decoder = find_decoder(model) if model else None
    if decoder is None:
        return (), ()
    missing = decoder.missing_note
    return [missing] if missing else [], [one for one in decoder.file_notes if one != missing]
