"""Read default link properties: latency and energy per byte by name and generation, and collective coefficients."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.catalog.parser import read_file
from joulemap.catalog.schema import ClassCoefficientEntry, EvidenceEntry
from joulemap.physics.record.quantity import Quantity
from joulemap.system.record import frozen
from joulemap.system.units import SI_SCALE

FILE: Final = DATA / "link" / "link.toml"


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
class LinkFile:
    """Contents of the link file."""

    links: list[LinkDefaultEntry]
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
