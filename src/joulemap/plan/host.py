"""The computer that a chip or card sits in: what launches its kernels, and computes what its compiler does not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.domain.hardware import hosted_digest
from joulemap.plan.boundary import bound_digest, bound_hardware
from joulemap.plan.catalogue import read_known
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.configuration import Boundary
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings
    from joulemap.plan.calibration import CalibrationUse


@frozen(kw_only=True)
class Hosting:
    """What hardware sits in, or has beside it."""

    entry: HardwareEntry
    power_mode: str
    is_counted: bool
    """Whether its static power is in the energy of every run; what it computes is in any case."""

    def digest(self, bounded: str, calibration: CalibrationUse, boundary: Boundary) -> str:
        """Return the digest of hardware in it, from that of the hardware as a run has it by itself."""
        own = bound_digest(self.entry, calibration.find(self.entry), self.power_mode, boundary)
        return hosted_digest(bounded, own, is_counted=self.is_counted)

    def place(self, hardware: Hardware, calibration: CalibrationUse, boundary: Boundary) -> Hardware:
        """Return hardware in it; both are as a run has them."""
        described = read_known([self.entry.digest])[self.entry.digest]
        adjusted = calibration.apply(described, calibration.find(self.entry))
        return hardware.with_host(bound_hardware(adjusted, self.power_mode, boundary), is_counted=self.is_counted)


def find_hosts(
    settings: Settings, chosen: Iterable[HardwareEntry], known: Mapping[str, HardwareEntry]
) -> dict[str, Hosting]:
    """Return id -> host of the hardware that has one: the one that settings name, else what its compiler leaves to.

    The one that is named is counted with what needs a host; of what else a host launches it sets the pace.
    UsageError for a host that needs one itself, or one that launches its kernels.
    """
    asked = _find(settings.host, known, is_counted=True) if settings.host else None
    if asked is not None and asked.entry.needs_host:
        raise UsageError(f"--host {settings.host}: {asked.entry.id} needs a host itself: {asked.entry.needs_host}")
    if asked is not None and asked.entry.is_launched:
        raise UsageError(f"--host {settings.host}: {asked.entry.id} is launched by a host itself")
    found: dict[str, Hosting] = {}
    for entry in chosen:
        if asked is not None and (entry.needs_host or (entry.is_launched and "eager" in settings.runtime)):
            found[entry.id] = attrs.evolve(asked, is_counted=bool(entry.needs_host))
        elif entry.fallback_host:
            found[entry.id] = _find(entry.fallback_host, known, is_counted=False)
    return found


def _find(name: str, known: Mapping[str, HardwareEntry], *, is_counted: bool) -> Hosting:
    plain, at, mode = name.partition("@")
    entry = known.get(CLASS_HARDWARE.get(find_class(plain), "")) or find_entry(known, plain)
    return Hosting(entry=entry, power_mode=entry.find_mode(mode) if at else DEFAULT_MODE, is_counted=is_counted)
