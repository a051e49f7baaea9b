"""The power that a chip gets where it is used, the modes that keep within it, and the host that counts in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.sheet import find_scenario, load_scenarios
from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.domain.configuration import BOARD
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Settings
from joulemap.domain.target import host_word
from joulemap.plan.catalogue import known_hardware, read_known
from joulemap.plan.target import Target
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

if TYPE_CHECKING:
    from joulemap.domain.configuration import Boundary
    from joulemap.domain.hardware import Hardware
    from joulemap.plan.calibration import CalibrationUse


@frozen(kw_only=True)
class InHost:
    """A host in which a hardware sits, or that computes beside it."""

    host: Target
    is_counted: bool
    """Whether its static power is in the energy of every run."""

    @property
    def word(self) -> str:
        """The word of the host."""
        return host_word(self.host.digest, is_counted=self.is_counted)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware in its host; raises as `Target.bind`."""
        digest = self.host.described.digest
        return hardware.with_host(self.host.bind(read_known([digest])[digest]), is_counted=self.is_counted)


@frozen(kw_only=True)
class Hosting:
    """What hardware sits in, or has beside it."""

    entry: HardwareEntry
    power_mode: str
    is_counted: bool
    """Whether its static power is in the energy of every run; what it computes is in any case."""

    def modifier(self, calibration: CalibrationUse, boundary: Boundary) -> InHost:
        """Return what it makes of hardware in it; the host has its own calibration, at the same boundary."""
        return InHost(host=calibration.target(self.entry, self.power_mode, boundary), is_counted=self.is_counted)


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
        elif asked is not None and entry.is_unlisted:
            found[entry.id] = attrs.evolve(asked, is_counted=False)
    return found


def _find(name: str, known: Mapping[str, HardwareEntry], *, is_counted: bool) -> Hosting:
    ref = HardwareRef.read(name)
    entry = known.get(CLASS_HARDWARE.get(find_class(ref.label), "")) or find_entry(known, ref.label)
    return Hosting(entry=entry, power_mode=entry.find_mode(ref.mode or DEFAULT_MODE), is_counted=is_counted)


def bind_alone(hardware: Hardware, power_mode: str) -> Hardware:
    """Return a hardware as a run has it where nothing else is asked: calibrated, at its board, beside its host.

    Raises CatalogueError for a hardware that cannot be mapped or a calibration that does not fit.
    """
    from joulemap.plan.calibration import CalibrationUse

    calibration, entry = CalibrationUse(), HardwareEntry.of(hardware)
    target = calibration.target(hardware, power_mode, BOARD)
    hosts = find_hosts(Settings(), [entry], known_hardware())
    if entry.id in hosts:
        target = target.modified(hosts[entry.id].modifier(calibration, BOARD))
    return target.bind(hardware)


Pair = tuple[HardwareEntry, str]
"""A hardware at a power mode."""


@frozen(kw_only=True)
class Budget:
    """What a chip may be capped at."""

    power_w: float
    reason: str
    """Whose it is, with its source; empty where it was asked for by itself."""
    is_asked: bool
    """Whether it was asked for, not only a deployment that has it."""

    def __str__(self) -> str:
        return format_si(self.power_w, "W") + (f" ({self.reason})" if self.reason else "")


def enter_scenario(settings: Settings) -> Settings:
    """Return settings with the deployments of their scenario; UnknownNameError for one that does not exist."""
    if not settings.scenario or settings.deployment:
        return settings
    return attrs.evolve(settings, deployment=find_scenario(settings.scenario).deployment)  # type: ignore[arg-type]


def find_budget(settings: Settings) -> Budget | None:
    """Return the budget that was asked for, by itself, by a scenario or by deployments; None where there is none.

    Of several deployments the one that gives most counts. A power mode that is asked for leaves no choice to a
    deployment's budget.
    """
    if settings.power_budget_w is not None:
        return Budget(power_w=settings.power_budget_w, reason="", is_asked=True)
    if settings.scenario:
        chosen = [find_scenario(settings.scenario)]
    else:
        chosen = [] if settings.power_mode else [load_scenarios()[name] for name in settings.deployment]
    budgets = [(one.power_budget.value, one.name, one.power_budget) for one in chosen if one.power_budget is not None]
    if not budgets or len(budgets) < len(chosen):
        return None
    power_w, name, quantity = max(budgets, key=lambda one: one[0])
    source = quantity.source.removeprefix("assumption: ")
    return Budget(power_w=power_w, reason=f"{name}, {quantity.basis}: {source}", is_asked=bool(settings.scenario))


def keep_within(
    pairs: Sequence[Pair], budget: Budget, *, is_every_mode: bool, beside_w: Mapping[str, float]
) -> tuple[tuple[Pair, ...], dict[str, str]]:
    """Return what of some hardware at modes keeps within a budget, and name -> why another is left out.

    Hardware at its default mode stands for its largest one that fits, unless every mode is there by itself. A mode that
    was named counts against a budget that was asked for only. What sits in a host leaves it the watts of `beside_w`.
    """

    def draw_w(entry: HardwareEntry, mode: str) -> float:
        return entry.cap_w(mode) + beside_w.get(entry.id, 0.0)

    kept: list[Pair] = []
    left_out: dict[str, str] = {}
    for entry, mode in pairs:
        is_free = mode == DEFAULT_MODE and not is_every_mode
        modes = entry.distinct_modes if is_free else (mode,)
        fitting = [one for one in modes if draw_w(entry, one) <= budget.power_w or not (is_free or budget.is_asked)]
        if fitting:
            kept.append((entry, _largest(entry, fitting)))
        else:
            name = str(HardwareRef.at(entry.id, mode))
            with_host = " with its host" if entry.id in beside_w else ""
            left_out[name] = f"at least {format_si(min(draw_w(entry, one) for one in modes), 'W')}{with_host}"
    return tuple(dict.fromkeys(kept)), left_out


def _largest(entry: HardwareEntry, modes: Sequence[str]) -> str:
    """Return the mode with the highest cap; of equal ones the default, then the one that is listed last."""
    return max(reversed(modes), key=lambda mode: (entry.cap_w(mode), mode == DEFAULT_MODE))
