"""Targets of runs: a chip as described, with the modifiers of a question in order.

    described ─► calibration ─► power mode ─► boundary ─► host ─► matmul precision ─► changes

A modifier has a word, which extends the digest, and a change of the numbers. The same modifiers determine the digest
and the record of a target, so a stored run is found without reading the record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from joulemap.physics.record.configuration import BOUNDARY, BoundaryName
from joulemap.physics.record.target import (
    DEVICE_WORD,
    boundary_word,
    calibration_word,
    extend_digest,
    matmul_word,
    mode_word,
)
from joulemap.plan.version import formula_version
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.product import MatmulPrecision
    from joulemap.physics.record.surrounding import Surrounding

    Described = HardwareEntry | Hardware
    """Hardware before any modifier: its record or its catalogue entry."""


AT_BOUNDARY: Final = 3
"""Number of modifiers of a chip at its boundary: its calibration, power mode and boundary."""


class Modifier(Protocol):
    """One change that a question makes to a chip."""

    @property
    def word(self) -> str:
        """Word that extends the digest; empty if the digest stays the same."""
        ...

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware with this change."""
        ...


@frozen(kw_only=True)
class Calibrated:
    """Modifier that sets the board's energies and the coefficients of a calibration."""

    digest: str
    """Digest of the calibration; empty for the class's own coefficients."""
    fit: Callable[[Hardware], Hardware] = attrs.field(eq=False)
    """Function that adds the anchor's energies to hardware and applies the calibration."""

    @property
    def word(self) -> str:
        """Word that the calibration adds to the digest."""
        return calibration_word(self.digest)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware with the anchor's energies and the calibration; raises CatalogueError if that fails."""
        return self.fit(hardware)


@frozen
class AtMode:
    """Modifier that sets a power mode."""

    name: str

    @property
    def word(self) -> str:
        """Word that the mode adds to the digest."""
        return mode_word(self.name)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware at the mode; raises like `Hardware.in_mode`."""
        return hardware.in_mode(self.name)


@frozen(kw_only=True)
class AtBoundary:
    """Modifier that sets the boundary of a run's energy."""

    boundary: BoundaryName
    priced_at: str
    """Boundary at which the energies of the hardware were fitted."""
    version: str
    """Version of the formulas that derive the board's share."""
    around: Surrounding | None = None
    """Surroundings of the board; None unless the boundary is `system`."""

    @classmethod
    def of(cls, described: Described, boundary: BoundaryName) -> AtBoundary:
        """Return the modifier that sets the boundary of a chip; UsageError if `system` needs an unknown power at the
        wall.
        """
        version = formula_version(described.architecture)
        around = None
        if BOUNDARY[boundary].is_at_wall:
            from joulemap.catalog.surrounding import find_surrounding

            around = find_surrounding(described)
        return cls(boundary=boundary, priced_at=described.priced_at, version=version, around=around)

    @property
    def word(self) -> str:
        """Word that the boundary adds to the digest."""
        around = "" if self.around is None else self.around.digest
        return boundary_word(self.boundary, self.priced_at, self.version, around)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware at the boundary."""
        return hardware.at_boundary(self.boundary, self.version, self.around)


@frozen
class WithoutHost:
    """Modifier that leaves out all work of a host."""

    @property
    def word(self) -> str:
        """Word that leaving out the host adds to the digest."""
        return DEVICE_WORD

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware without any work of a host."""
        return hardware.without_host()


@frozen
class AtLink:
    """Modifier that states the link of a chip to its host or to its peer."""

    asked: str

    @property
    def word(self) -> str:
        """Word that the link adds to the digest."""
        return f"link={self.asked}"

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware with the link; UsageError if it has no link of this kind."""
        from joulemap.catalog.link import make_port

        own = {one.name: one for one in hardware.links if one.connects != "guest"}
        built = (attrs.evolve(one, topology="pair") if one.name == self.asked else one for one in hardware.links)
        stated = attrs.evolve(hardware, links=tuple(built))
        if self.asked not in own:
            port = make_port(self.asked)
            if port.name not in own:
                raise UsageError(f"link {self.asked}: {hardware.id} has {', '.join(own) or 'no link'}")
            stated = hardware.at_ports([port])
        described = hardware.described_digest or hardware.digest
        return attrs.evolve(stated, described_digest=described, digest=extend_digest(hardware.digest, self.word))


@frozen
class AtMatmulPrecision:
    """Modifier that sets the matmul precision of the libraries for fp32 runs."""

    setting: MatmulPrecision

    @property
    def word(self) -> str:
        """Word that the setting adds to the digest; empty for the default."""
        return matmul_word(self.setting)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware at the setting."""
        return hardware.at_matmul_precision(self.setting)


@frozen
class Target:
    """Hardware description and the modifiers that a run applies to it."""

    described: Described = attrs.field(eq=False)
    modifiers: tuple[Modifier, ...] = attrs.field(eq=False)
    """Modifiers in the order of application."""
    digest: str = attrs.field(init=False)
    """Digest of the record that `bind` returns."""

    @digest.default
    def _fold(self) -> str:
        return self.digests[-1]

    @property
    def digests(self) -> list[str]:
        """Digest of the description, and after each modifier."""
        words = (one.word for one in self.modifiers)
        return list(accumulate(words, extend_digest, initial=self.described.digest))

    def bind(self, record: Hardware, done: int = 0) -> Hardware:
        """Return the record of the hardware with all modifiers applied; `record` has the first `done` of them.

        Raises CatalogueError for a chip that cannot be mapped, a calibration that does not fit or changes that
        contradict each other; KeyError or UnknownNameError for a mode that it lacks.
        """
        bound = reduce(lambda hardware, one: one.apply(hardware), self.modifiers[done:], record)
        assert bound.digest == self.digest, f"{record.id}: a modifier changed the record by another word than its own"
        return bound

    def modified(self, *modifiers: Modifier) -> Target:
        """Return this target with more modifiers after its own."""
        return Target(self.described, (*self.modifiers, *modifiers))
