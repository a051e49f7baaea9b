"""What is usual of links: latency and energy of a byte by name and generation, and how collectives use any of them."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.catalog.parser import read_file
from joulemap.catalog.schema import ClassCoefficientEntry
from joulemap.domain.quantity import Quantity
from joulemap.system.record import frozen
from joulemap.system.units import SI_SCALE

FILE: Final = DATA / "link" / "link.toml"


@frozen(kw_only=True)
class UsualEntry:
    """A number of a link as the file has it; its unit is that of the column."""

    value: float
    basis: str
    source: str

    def resolve(self, unit: str) -> Quantity:
        """Return the number in SI, of a unit of the file."""
        factor, measured = SI_SCALE[unit]
        return Quantity(value=self.value * factor, unit=measured, basis=self.basis, source=self.source)


@frozen(kw_only=True)
class UsualLinkEntry:
    """A link as the file has it."""

    name: str
    """Empty for any other."""
    generation: str = ""
    """Empty for any other of the name."""
    latency_us: UsualEntry
    energy_pj: UsualEntry


@frozen(kw_only=True)
class LinkFile:
    """The file."""

    links: list[UsualLinkEntry]
    coefficients: list[ClassCoefficientEntry]
    """Of every hardware that has links, whatever its class."""


@frozen(kw_only=True)
class Usual:
    """What a link is taken to have of which a hardware says nothing."""

    latency: Quantity
    energy: Quantity


@cache
def read_links() -> LinkFile:
    """Return the file."""
    return read_file(FILE, LinkFile)[0]


@cache
def find_usual(name: str, generation: str) -> Usual:
    """Return what is usual of links of a name and generation, of the name, or of any."""
    told = {(one.name, one.generation): one for one in read_links().links}
    found = next(told[key] for key in ((name, generation), (name, ""), ("", "")) if key in told)
    return Usual(latency=found.latency_us.resolve("us"), energy=found.energy_pj.resolve("pJ/B"))
