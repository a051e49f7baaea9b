"""Toy devices of a box, for values computed by hand."""

from __future__ import annotations

import attrs

import chip
from joulemap.physics.record.compiler import Compiler
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.wing.place.box.member import Member
from joulemap.wing.place.record import Box, BoxDevice, BoxLink


def member(hardware: Hardware, name: str, device: BoxDevice | None = None, precision: str = "fp32") -> Member:
    own = device or BoxDevice(name=name, hardware=hardware.id)
    configuration = Configuration(hardware=hardware.id, runtime="engine", precision=precision, batch=8)
    return Member(name=name, device=own, hardware=hardware, configuration=configuration)


def link(*ends: str, rate: float = 1e9, latency: float = 1e-6, energy: float = 1e-11) -> BoxLink:
    return BoxLink(
        between=(ends[0], ends[1]),
        name="toy",
        bandwidth=chip.number(rate, "B/s"),
        latency=chip.number(latency, "s"),
        energy=chip.number(energy, "J/B"),
    )


def toys(**changes: object) -> tuple[Box, tuple[Member, ...]]:
    """Return two alike toys of 1 W, the second of which lacks gelu, and a link of 1 GB/s."""
    second = attrs.evolve(chip.cpu(), id="other", compiler=Compiler(
        name="Toy", cut="first", operators=("linear", "relu"), basis="assumed", source="a toy"
    ))  # fmt: skip
    devices = (BoxDevice(name="a", hardware="toy_cpu"), BoxDevice(name="b", hardware="other"))
    box = Box(id="toys", name="toys", devices=devices, links=(link("a", "b"),), **changes)  # type: ignore[arg-type]
    return box, (member(chip.cpu(), "a"), member(second, "b"))
