"""Read default link properties: latency and energy per byte by name and generation, and collective coefficients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.catalog.parser import read_file
from joulemap.catalog.schema import ClassCoefficientEntry, EvidenceEntry
from joulemap.physics.record.hardware import Link
from joulemap.physics.record.quantity import Quantity
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.units import SI_SCALE

FILE: Final = DATA / "link" / "link.toml"

LANES: Final = re.compile(r"([a-z_]+?)(\d+)(?:x(\d+))?")
"""Format of a link with a name, generation and lane count, such as `pcie4x16` or `usb3`."""

LANE_RATES: Final[Mapping[str, Mapping[str, float]]] = {
    "pcie": {"1": 0.25e9, "2": 0.5e9, "3": 0.985e9, "4": 1.969e9, "5": 3.938e9, "6": 8e9},
    "usb": {"2": 0.0532e9, "3": 0.4e9},
    "csi": {"2": 0.1875e9},
}
"""Link -> generation -> bytes per second of a lane in one direction.

Source: PCI-SIG, PCI Express Base Specification: 2.5 and 5 GT/s with 8b/10b encoding, 8 to 32 GT/s with 128b/130b
encoding, 64 GT/s in flow control units. USB carries less than its signalling rate: 13 bulk packets of 512 B in a
microframe of 125 us (USB 2.0 specification, 5.8.4), and 3.2 of 5 Gbit/s after encoding, flow control and framing (USB
3.0 specification, 4.4.11; recalled). MIPI CSI-2 on D-PHY 1.1: 1.5 Gbit/s a lane (recalled).
"""


@frozen(kw_only=True)
class LinkNumberEntry(EvidenceEntry):
    """Number of a link as written in the file; the column states its unit."""

    value: float
    basis: str
    source: str

    def resolve(self, unit: str) -> Quantity:
        """Return the number in SI, given the unit in the file."""
        factor, measured = SI_SCALE[unit]
        return Quantity(
            value=self.value * factor, unit=measured, basis=self.basis, source=self.source, evidence=self.evidence
        )


@frozen(kw_only=True)
class LinkDefaultEntry:
    """Default latency and energy of a link as written in the file."""

    name: str
    """Link name; empty for the entry that applies to links without an entry."""
    generation: str = ""
    """Generation of the link; empty for the entry that applies to generations without an entry."""
    latency_us: LinkNumberEntry
    energy_pj: LinkNumberEntry


@frozen(kw_only=True)
class PortEntry:
    """Ports of hosts for other devices, as written in the file."""

    hosts: list[str]
    """Patterns of ids or microarchitectures of processors; the first entry with a match applies."""
    links: list[str]
    """Widest port of each kind, such as `pcie4x16`."""
    basis: str
    source: str


@frozen(kw_only=True)
class LinkFile:
    """Contents of the link file."""

    links: list[LinkDefaultEntry]
    ports: list[PortEntry]
    coefficients: list[ClassCoefficientEntry]
    """Coefficients that apply to all hardware with links, whatever its class."""


@frozen(kw_only=True)
class LinkDefault:
    """Default latency and energy of a link."""

    latency: Quantity
    energy: Quantity


@cache
def read_links() -> LinkFile:
    """Read the link file."""
    return read_file(FILE, LinkFile)[0]


@cache
def find_link_default(name: str, generation: str) -> LinkDefault:
    """Return the defaults for a link's name and generation, or else for its name, or else for any link."""
    known = {(one.name, one.generation): one for one in read_links().links}
    entry = next(known[key] for key in ((name, generation), (name, ""), ("", "")) if key in known)
    return LinkDefault(latency=entry.latency_us.resolve("us"), energy=entry.energy_pj.resolve("pJ/B"))


def make_port(text: str, basis: str = "assumed", source: str = "asked for") -> Link:
    """Return a port for other devices, written as `pcie4x16` or `usb3`; UsageError for an unknown one."""
    read = LANES.fullmatch(text.lower())
    name, generation, lanes = read.groups() if read else ("", "", "")
    rate = LANE_RATES.get(name, {}).get(generation)
    if rate is None:
        raise UsageError(f"--link {text}: expected a kind, generation and lanes, such as pcie4x16 or usb3")
    usual, width = find_link_default(name, generation), float(lanes or 1)
    one = Quantity(value=1.0, unit="1", basis=basis, source=source)
    return Link(
        name=name,
        connects="guest",
        generation=generation,
        link_count=one,
        lane_count=attrs.evolve(one, value=width),
        bandwidth=attrs.evolve(one, value=rate * width, unit="B/s"),
        latency=usual.latency,
        energy=usual.energy,
    )


@cache
def find_ports(hardware: str, microarchitecture: str) -> tuple[Link, ...]:
    """Return the ports of a processor for other devices; empty if they are not known."""
    for entry in read_links().ports:
        if any(fnmatchcase(name, one) for name in (hardware, microarchitecture) for one in entry.hosts):
            return tuple(make_port(link, entry.basis, entry.source) for link in entry.links)
    return ()
