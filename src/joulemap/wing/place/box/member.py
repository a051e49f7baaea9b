"""Devices of a box for one question, and the routes between them.

    copy_s = sum over the links of the way of (latency + bytes / bandwidth) + command_s + conversion_s
    conversion_s = (bytes as sent + bytes as kept) / receiver's memory bandwidth    if precision or layout differs
    command_s = host_launch of the receiver: time to start work on it

Devices that share a memory hand values over in place: the receiver waits for the hand-over latency, and no byte moves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.physics import (
    FJ_PER_J,
    PRECISION_BYTES,
    STATIC_ACTION,
    Configuration,
    Hardware,
    Quantity,
    choose_precision,
    label_precision,
)
from joulemap.system import UsageError, frozen
from joulemap.wing.place.record import Box, BoxDevice, BoxLink, BoxMemory

TYPICAL_BYTES: Final = 2.0**20
"""Bytes of a copy for which the fastest route between two devices is found."""


@frozen(kw_only=True)
class Member:
    """Device of a box as it is evaluated for one question."""

    name: str
    device: BoxDevice
    hardware: Hardware
    """Hardware with its calibration, at its power mode and measurement boundary."""
    configuration: Configuration
    calibration_digest: str = ""

    @property
    def precision(self) -> str:
        """Precision of GEMMs, with that of weights if it differs."""
        own = self.configuration
        return label_precision(own.precision, own.weight_precision or own.precision)

    @property
    def static_w(self) -> float:
        """Static power in watts, which the device draws while it has a part of the model."""
        position = self.hardware.reference.position(STATIC_ACTION)
        return 0.0 if position is None else self.hardware.reference.prices_fj[position] / FJ_PER_J

    def find_rest(self, *, is_used: bool) -> Quantity:
        """Return the stated power of a device that waits: static power beside its part, else idle power if known."""
        idle = None if is_used else self.hardware.idle_power
        return self.hardware.static_power if idle is None else idle

    @property
    def idle_w(self) -> float:
        """Power in watts of a device without a part of the model: its idle power if known, else its static power."""
        idle = self.hardware.idle_power
        return self.static_w if idle is None else min(idle.value, self.static_w)


def list_members(box: Box, chips: Sequence[Hardware], modes: Sequence[str], asked: Configuration) -> tuple[Member, ...]:
    """Return the devices of a box; `chips` and `modes` have one entry per device, `asked` is the configuration of all.

    Each device computes at the requested precision or the narrowest that can represent it. Weights keep a narrower
    requested precision: those below one byte stay packed on a device without such GEMMs, and are converted when read.
    A port of one device bounds the links of the others.
    """
    members = []
    ports = [link for one in chips for link in one.links]
    for (name, device), chip, mode in zip(box, chips, modes, strict=True):
        hardware = chip.at_ports(ports)
        wanted = device.precision or asked.precision
        precision, weights = choose_precision(hardware, wanted, asked.weight_precision)
        if precision != wanted:
            is_stated = asked.weight_precision not in ("", wanted)
            weights = asked.weight_precision if is_stated else wanted if PRECISION_BYTES[wanted] < 1.0 else weights
        own = attrs.evolve(asked, hardware=hardware.id, power_mode=mode, precision=precision, weight_precision=weights)
        members.append(Member(name=name, device=device, hardware=hardware, configuration=own))
    return tuple(members)


@frozen(kw_only=True)
class Hop:
    """Link of a route, or a memory that both ends share."""

    name: str
    latency_s: float
    s_per_byte: float
    fj_per_byte: float
    basis: str
    source: str


Ways = Mapping[tuple[int, int], tuple[Hop, ...]]
"""(sender, receiver) -> links of the fastest route; absent if there is no route."""


def find_ways(box: Box, members: Sequence[Member]) -> Ways:
    """Return the fastest route between each pair of members; UsageError for a member without a link."""
    count = len(members)
    ways: dict[tuple[int, int], tuple[Hop, ...]] = {}
    for start, first in enumerate(members):
        for end, second in enumerate(members):
            hop = _find_hop(box, first, second) if start != end else None
            if hop is not None:
                ways[start, end] = (hop,)
    for middle in range(count):
        for start in range(count):
            for end in range(count):
                legs = ways.get((start, middle)), ways.get((middle, end))
                if start != end and legs[0] and legs[1]:
                    way = (*legs[0], *legs[1])
                    if time_way(way, TYPICAL_BYTES) < time_way(ways.get((start, end)), TYPICAL_BYTES):
                        ways[start, end] = way
    for start, member in enumerate(members):
        if count > 1 and not any((start, end) in ways for end in range(count)):
            raise UsageError(f"{box.id}: no link joins {member.name} to another device")
    return ways


def time_way(way: Sequence[Hop] | None, byte_count: float) -> float:
    """Return the transfer time of a number of bytes in seconds; infinite without a route."""
    return math.inf if way is None else sum(hop.latency_s + byte_count * hop.s_per_byte for hop in way)


def _find_hop(box: Box, first: Member, second: Member) -> Hop | None:
    memory = box.memory_of(first.device)
    if memory is not None and memory == box.memory_of(second.device):
        return _make_hop(memory)
    ends = {first.device.name, second.device.name}
    hops = (_make_hop(link) for link in box.links if set(link.between) == ends)
    return min(hops, key=lambda hop: time_way((hop,), TYPICAL_BYTES), default=None)


def _make_hop(one: BoxLink | BoxMemory) -> Hop:
    """Return a link as part of a route, or a memory that both ends share, in which no byte moves."""
    energy = one.energy if isinstance(one, BoxLink) else None
    stated = energy or one.latency
    return Hop(
        name=one.name,
        latency_s=one.latency.value,
        s_per_byte=1.0 / one.bandwidth.value if energy else 0.0,
        fj_per_byte=energy.value * FJ_PER_J if energy else 0.0,
        basis=stated.basis,
        source=stated.source,
    )
