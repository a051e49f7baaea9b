"""Power budget of a deployment, the power modes within it, and the host that counts toward it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.sheet import find_scenario, load_scenarios
from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.host import fits_ports, is_part, suggest_host
from joulemap.domain.settings import Settings
from joulemap.physics.record.configuration import BOARD, BOUNDARY, BoundaryName
from joulemap.physics.record.operating_point import OperatingPoint
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.target import host_word
from joulemap.plan.anchor import find_anchors
from joulemap.plan.catalogue import known_hardware, read_known
from joulemap.plan.target import Target
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.surrounding import Surrounding
    from joulemap.plan.calibration import CalibrationUse


@frozen(kw_only=True)
class InHost:
    """Modifier that adds a host to a chip: the computer that holds it, or computes for it."""

    host: Target
    is_counted: bool
    """True if the host's static power is part of every run's energy."""
    around: Surrounding | None = None
    """Surroundings of a counted host (chassis, power supply) at the boundary `system`; None otherwise."""

    @property
    def word(self) -> str:
        """Word for the host that extends the digest of a chip."""
        around = "" if self.around is None else self.around.digest
        return host_word(self.host.digest, is_counted=self.is_counted, around=around)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware with its host; raises like `Target.bind`."""
        return hardware.with_host(_bind_known(self.host), is_counted=self.is_counted, around=self.around)


_HOSTS: dict[str, Hardware] = {}
"""Digest of a target of the catalogue -> its record; many chips have the same host."""


def _bind_known(target: Target) -> Hardware:
    if target.digest not in _HOSTS:
        bind_hosts([target], (), {})
    return _HOSTS[target.digest]


def bind_hosts(hosts: Iterable[Target], others: Iterable[Hardware], begun: Mapping[str, tuple[Hardware, int]]) -> None:
    """Bind hosts of the catalogue together, before chips are bound one by one; `others` are anchored with them.

    `begun` is target digest -> (hardware, number of the target's first modifiers that it has), for `Target.bind`.
    """
    fresh = {host.digest: host for host in hosts if host.digest not in _HOSTS}
    started = {digest: host.bind(*begun[digest]) for digest, host in fresh.items() if digest in begun}
    rest = [host for digest, host in fresh.items() if digest not in begun]
    records = read_known(host.described.digest for host in rest) if rest else {}
    find_anchors((*records.values(), *others))
    _HOSTS.update(started)
    _HOSTS.update((host.digest, host.bind(records[host.described.digest])) for host in rest)


@frozen(kw_only=True)
class Hosting:
    """Computer that holds a chip or computes for it."""

    entry: HardwareEntry
    power_mode: str
    is_counted: bool
    """True if the host's static power is part of every run's energy; its computation always counts."""

    def fits(self, guest: HardwareEntry) -> bool:
        """Return True if the host has a port for a device; one without stated ports has, unless it is a
        microcontroller.
        """
        is_unknown = not self.entry.ports and self.entry.form != "microcontroller"
        return is_unknown or fits_ports(guest.needs_host, self.entry.ports)

    def modifier(self, calibration: CalibrationUse, boundary: BoundaryName) -> InHost:
        """Return the modifier that adds this host to a chip, with the host's own calibration at the same boundary.

        At `system`, the static power of a counted host includes its surroundings, such as the power supply. The actions
        that the host computes have their energies at its board. UsageError if its surroundings are unknown.
        """
        is_at_wall = BOUNDARY[boundary].is_at_wall
        host = calibration.target(self.entry, self.power_mode, BOARD if is_at_wall else boundary)
        if not (is_at_wall and self.is_counted):
            return InHost(host=host, is_counted=self.is_counted)
        from joulemap.catalog.surrounding import find_surrounding

        return InHost(host=host, is_counted=self.is_counted, around=find_surrounding(self.entry))


def find_hosts(
    settings: Settings, chosen: Iterable[HardwareEntry], known: Mapping[str, HardwareEntry]
) -> dict[str, Hosting]:
    """Return id in the catalogue -> host: the named one if it applies, else the host for operators that a compiler does
    not support.

    The named host is counted for hardware that needs a host; for a part of a module or SoC, the rest of that module or
    SoC is counted instead. For other chips, the host only determines the launch rate. Raises UsageError for a host that
    needs a host itself, or whose kernels another host launches.
    """
    asked = _find(settings.host, known, is_counted=True) if settings.host else None
    if asked is not None and asked.entry.needs_host and not is_part(asked.entry.needs_host):
        raise UsageError(f"host {settings.host}: {asked.entry.id} needs a host itself: {asked.entry.needs_host}")
    if asked is not None and asked.entry.is_launched:
        raise UsageError(f"host {settings.host}: {asked.entry.id} is launched by a host itself")
    is_launched_each = any(RUNTIME[one].launches_each for one in settings.runtime)
    hosts: dict[str, Hosting] = {}
    for entry in chosen:
        if asked is not None and is_part(entry.needs_host):
            hosts[entry.described] = _find(suggest_host(entry.needs_host), known, is_counted=True)
        elif asked is not None and (entry.needs_host or (entry.is_launched and is_launched_each)):
            hosts[entry.described] = attrs.evolve(asked, is_counted=bool(entry.needs_host))
        elif entry.fallback_host:
            hosts[entry.described] = _find(entry.fallback_host, known, is_counted=False)
        elif asked is not None and entry.is_unlisted:
            hosts[entry.described] = attrs.evolve(asked, is_counted=False)
    return hosts


def find_rest_w(chosen: Iterable[HardwareEntry], known: Mapping[str, HardwareEntry]) -> dict[str, float]:
    """Return id in the catalogue -> static power in watts of the rest of its module or SoC; other chips are omitted."""
    hosts = {entry.described: suggest_host(entry.needs_host) for entry in chosen if is_part(entry.needs_host)}
    rests = {name: known.get(host) or known_hardware((host,)).get(host) for name, host in hosts.items()}
    return {name: rest.static_w for name, rest in rests.items() if rest is not None}


def _find(name: str, known: Mapping[str, HardwareEntry], *, is_counted: bool) -> Hosting:
    ref = HardwareRef.read(name)
    entry = known.get(CLASS_HARDWARE.get(find_class(ref.label), "")) or known.get(ref.label)
    if entry is None:
        entry = find_entry({**known, **known_hardware((ref.label,))}, ref.label)
    return Hosting(entry=entry, power_mode=entry.find_mode(ref.mode or DEFAULT_MODE), is_counted=is_counted)


def bind_alone(hardware: Hardware, power_mode: str) -> Hardware:
    """Return a chip with default settings: calibrated, at the boundary of its board, with its host.

    Raises CatalogueError for a chip that cannot be mapped or a calibration that does not fit.
    """
    from joulemap.plan.calibration import CalibrationUse

    calibration, entry = CalibrationUse(), HardwareEntry.of(hardware)
    target = calibration.target(hardware, power_mode, BOARD)
    hosts = find_hosts(Settings(), [entry], known_hardware())
    if entry.described in hosts:
        target = target.modified(hosts[entry.described].modifier(calibration, BOARD))
    return target.bind(hardware)


Pair = tuple[HardwareEntry, str]
"""(hardware, power mode)."""


@frozen(kw_only=True)
class Budget:
    """Maximum power of a chip, with the origin of this limit."""

    power_w: float
    reason: str
    """Origin of the budget, with its source; empty if it was requested directly."""
    is_asked: bool
    """True if the budget was requested, not only implied by a deployment."""
    is_mean: bool = False
    """True if the budget limits the average power at a fixed rate, not the cap of a power mode."""

    @property
    def limit(self) -> str:
        """Budget as text with five significant digits, because a given number is not rounded like a prediction."""
        return format_si(self.power_w, "W", digits=5)

    def __str__(self) -> str:
        return self.limit + (f" ({self.reason})" if self.reason else "")


def apply_scenario(settings: Settings) -> Settings:
    """Return settings with the deployments and kinds of their scenario; UnknownNameError for an unknown scenario."""
    if not settings.scenario:
        return settings
    scenario = find_scenario(settings.scenario)
    deployment, kind = settings.deployment or scenario.deployment, settings.kind or scenario.kinds
    return attrs.evolve(settings, deployment=deployment, kind=kind)  # type: ignore[arg-type]


def find_budget(settings: Settings) -> Budget | None:
    """Return the budget requested directly, by a scenario or by deployments; None if there is none.

    The largest budget of several deployments applies. A requested power mode overrides the budget of a deployment.
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
    reason = f"{name}, {quantity.basis}: {quantity.source}"
    return Budget(power_w=power_w, reason=reason, is_asked=bool(settings.scenario))


@frozen(kw_only=True)
class Excess:
    """Why hardware has no power mode within a budget."""

    least_w: float
    """Lowest power of its modes, with its host if the budget includes one."""
    has_host: bool

    def __str__(self) -> str:
        return f"at least {format_si(self.least_w, 'W')}{' with its host' if self.has_host else ''}"


def keep_within(
    pairs: Sequence[Pair],
    budget: Budget,
    *,
    is_every_mode: bool,
    beside_w: Mapping[str, float],
    named_modes: Collection[str],
) -> tuple[tuple[Pair, ...], dict[str, Excess]]:
    """Return the hardware at modes within a budget, and name -> excess for omitted hardware.

    Hardware at its default mode gets the mode with the highest cap that fits, or else a cap at the budget if its power
    limit can be set that low, unless every mode is listed. One of the `named_modes` is checked against a requested
    budget only. `beside_w` is the id of hardware in the catalogue -> power of its host in watts.
    """

    def draw_w(entry: HardwareEntry, mode: str) -> float:
        return entry.cap_w(mode) + beside_w.get(entry.described, 0.0)

    kept: list[Pair] = []
    left_out: dict[str, Excess] = {}
    for entry, mode in pairs:
        is_free = mode == DEFAULT_MODE and not is_every_mode
        modes = entry.distinct_modes if is_free else (mode,)
        is_kept = not budget.is_asked and mode.casefold() in named_modes
        fitting = [one for one in modes if is_kept or draw_w(entry, one) <= budget.power_w]
        host_w = beside_w.get(entry.described, 0.0)
        cap_w, limits_w = math.floor(budget.power_w - host_w), entry.limits_w if is_free else ()
        if fitting:
            kept.append((entry, _largest(entry, fitting)))
        elif limits_w and min(limits_w) <= cap_w <= max(limits_w):
            kept.append((entry, OperatingPoint(float(cap_w), "W").name))
        else:
            left_out[str(HardwareRef.at(entry.id, mode))] = Excess(
                least_w=min([*(one + host_w for one in limits_w), *(draw_w(entry, one) for one in modes)]),
                has_host=entry.described in beside_w,
            )
    return tuple(dict.fromkeys(kept)), left_out


def _largest(entry: HardwareEntry, modes: Sequence[str]) -> str:
    """Return the mode with the highest cap; of equal caps the default mode, else the last one listed."""
    return max(reversed(modes), key=lambda mode: (entry.cap_w(mode), mode == DEFAULT_MODE))
