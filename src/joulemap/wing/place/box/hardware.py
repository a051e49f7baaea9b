"""Box as one chip: sums over its devices, and the energy of each of their actions.

    peak, static power    sum over devices, each at its own precision
    memory                devices with their own memory, and each shared memory once
    power cap             the box's own, else the sum of its devices'
    reference table       actions of each kind of device under its name, of links, and of waiting devices

A mode of a box is the goal of its placements, or a cap on the power of the whole box.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self, cast

import attrs

from joulemap.physics import (
    BOARD,
    FJ_PER_J,
    PRECISION_BYTES,
    STATIC_ACTION,
    ActionKey,
    Configuration,
    EnergyAction,
    Hardware,
    Quantity,
    choose_precision,
    price_by,
    read_point,
)
from joulemap.physics.record.hardware import Peak, PowerMode
from joulemap.physics.record.product import MatmulPrecision
from joulemap.physics.record.quantity import least_sure
from joulemap.physics.record.reference import EnergyReference
from joulemap.system import UnknownNameError, frozen
from joulemap.wing.place.box.member import Member, list_members
from joulemap.wing.place.record import BOX, GOALS, Box, BoxDevice, Goal

DEFAULT_GOAL: Final[Goal] = "latency"
"""Goal of placements at a box's default mode."""

IDLE: Final = "idle_power"
"""Action for the energy of a device while it runs no part of the model."""

CONVERSIONS: Final = {"read": "convert_read", "write": "convert_write"}
"""DRAM action -> name of the same action where it converts a value from another device."""


@frozen(kw_only=True)
class BoxHardware(Hardware):
    """Box with its devices, before or after calibrations and power modes are applied."""

    box: Box
    devices: tuple[Hardware, ...] = attrs.field(repr=False)
    """Hardware of each device, in the order of the box."""
    device_modes: tuple[str, ...]
    """Power mode of each device."""
    placement: str = ""
    """Form and devices of a run's placement, such as `split cpu+npu`."""

    @property
    def chips(self) -> dict[str, Hardware]:
        """Device name -> chip; several identical devices share one name."""
        return {device.name: chip for (_, device), chip in zip(self.box, self.devices, strict=True)}

    @property
    def goal(self) -> Goal:
        """Goal of placements: the one that the power mode names, else the default goal."""
        return self.power_mode if self.power_mode in GOALS else DEFAULT_GOAL

    @property
    def capped(self) -> Box:
        """Box with the power cap that its mode states, if any."""
        point = read_point(self.power_mode)
        if point is None:
            return self.box
        cap = Quantity(value=point.value, unit="W", basis="derived", source=f"asked for: {self.power_mode}")
        return attrs.evolve(self.box, power=cap)

    def in_mode(self, name: str) -> Self:
        """Return this box at a goal or a power cap.

        Raises UnknownNameError for modes that only chips have: a locked clock, or a part of the units.
        """
        point = read_point(name)
        if point is not None and point.unit != "W":
            raise UnknownNameError("power mode", name, (), f"{self.id} is a box: {', '.join(GOALS)} or a cap, as 300W")
        return attrs.evolve(self, power_mode=name)

    def at_matmul_precision(self, setting: MatmulPrecision) -> Self:
        """Return this box with its devices at a setting of their libraries for fp32 products."""
        devices = tuple(one.at_matmul_precision(setting) for one in self.devices)
        return attrs.evolve(cast("Self", super().at_matmul_precision(setting)), devices=devices)

    def list_members(self, configuration: Configuration) -> tuple[Member, ...]:
        """Return the devices of the box as they run at a configuration."""
        return list_members(self.box, self.devices, self.device_modes, configuration)


def combine(box: Box, devices: Sequence[Hardware], modes: Sequence[str], digest: str = "") -> BoxHardware:
    """Return the hardware of a box; `devices` and `modes` have one entry per device.

    `digest` is empty for a box as described, else it identifies the evaluated devices.
    """
    kinds = [device for _, device in box]
    chips = [state_static_power(device, one) for device, one in zip(kinds, devices, strict=True)]
    main = max(chips, key=lambda one: max(peak.rate.value for peak in one.peaks.values()))
    clock, count = main.clock, len(chips)
    cap = box.power or _add([one.tdp for one in chips], "of its devices")
    static = _add([one.static_power for one in chips], "of its devices")
    described = hashlib.sha256("|".join((repr(box), *(one.digest for one in chips))).encode()).hexdigest()[:16]
    return BoxHardware(
        id=box.id,
        name=box.name,
        vendor=main.vendor,
        architecture=BOX,
        deployment=main.deployment,
        microarchitecture="box of " + ", ".join(dict.fromkeys(one.id for one in chips)),
        unit_name="device",
        memory_type=" + ".join(dict.fromkeys(one.memory_type for one in chips)),
        aliases=box.aliases,
        projection="; ".join(dict.fromkeys(f"{one.id}: {one.projection}" for one in chips if one.projection)),
        unavailable="; ".join(
            dict.fromkeys(f"{one.id}: {one.unavailable}" for one in chips if one.unavailable and not one.sold_in)
        ),
        doubts=box.doubts,
        needs_host="" if any(not one.needs_host for one in chips) else main.needs_host,
        process_node=main.process_node,
        launch_year=main.launch_year,
        unit_count=Quantity(value=float(count), unit="1", basis="derived", source="devices of the box"),
        clock=clock,
        memory_capacity=_add(_list_memories(box, kinds, chips, "capacity"), "of its memories"),
        memory_bandwidth=_add(_list_memories(box, kinds, chips, "bandwidth"), "of its memories"),
        tdp=cap,
        static_power=static,
        price_purchase=box.price or _add_prices([one.price_purchase for one in chips]),
        price_cloud=_add_prices([one.price_cloud for one in chips]),
        geometry={},
        memory_levels=(),
        peaks={
            precision: _add_peaks(chips, precision, clock.value)
            for precision in PRECISION_BYTES
            if any(precision in one.peaks for one in chips)
        },
        power_modes=tuple(PowerMode(name=goal, tdp=cap, clock=clock) for goal in GOALS),
        coefficients={},
        reference=EnergyReference(tuple(_list_actions(box, chips))),
        priced_at=BOARD,
        boundary=main.boundary,
        described_digest=described if digest else "",
        digest=digest or described,
        box=box,
        devices=tuple(chips),
        device_modes=tuple(modes),
    )


def state_static_power(device: BoxDevice, hardware: Hardware) -> Hardware:
    """Return the hardware of a device with the static power that its box states, if any."""
    static = device.static_power
    if static is None:
        return hardware
    return attrs.evolve(
        hardware, static_power=static, idle_power=None, reference=hardware.reference.with_static(static)
    )


def _add(parts: Sequence[Quantity], what: str) -> Quantity:
    """Return the sum of quantities in one unit."""
    sources = "; ".join(dict.fromkeys(one.source for one in parts))
    return Quantity(
        value=sum(one.value for one in parts),
        unit=parts[0].unit,
        basis=least_sure("derived", *(one.basis for one in parts)) if len(parts) > 1 else parts[0].basis,
        source=f"sum {what}: {sources}" if len(parts) > 1 else sources,
    )


def _add_prices(prices: Sequence[Quantity | None]) -> Quantity | None:
    """Return the sum of prices; None if one is unknown."""
    known = [one for one in prices if one is not None]
    return _add(known, "of its devices") if len(known) == len(prices) else None


def _list_memories(box: Box, kinds: Sequence[BoxDevice], chips: Sequence[Hardware], name: str) -> list[Quantity]:
    shared = [getattr(memory, name) for memory in box.memories]
    own = [
        getattr(one, f"memory_{name}") for device, one in zip(kinds, chips, strict=True) if not box.memory_of(device)
    ]
    return [*shared, *own]


def _add_peaks(chips: Sequence[Hardware], precision: str, clock_hz: float) -> Peak:
    """Return the sum of the devices' peaks; a device without `precision` counts with the precision that it uses
    instead.
    """
    rate = _add([one.peaks[choose_precision(one, precision, "")[0]].rate for one in chips], "of its devices")
    each = rate.value / clock_hz / len(chips)
    return Peak(rate=rate, operations_per_clock=each, unit_count=len(chips), clock_hz=clock_hz)


def device_key(device: str, key: ActionKey) -> ActionKey:
    """Return the key of a device's action in the reference table of its box."""
    return f"{device}_{key[0]}", key[1]


def link_key(name: str) -> ActionKey:
    """Return the reference-table key of moving one byte over a link."""
    return f"link_{name.replace(' ', '_')}", "transfer"


def _list_actions(box: Box, chips: Sequence[Hardware]) -> Iterator[EnergyAction]:
    """Yield the reference-table rows of each kind of device, and of the links."""
    by_kind = {device.name: one for (_, device), one in zip(box, chips, strict=True)}
    for kind, hardware in by_kind.items():
        for row in hardware.reference:
            named = f"{hardware.id}: {row.source}"
            yield attrs.evolve(row, component=device_key(kind, row.key)[0], source=named)
            if row.component == "dram" and row.action in CONVERSIONS:
                formula = f"{row.count_formula}; converts values that another device stores in another format"
                key = device_key(kind, (row.component, CONVERSIONS[row.action]))
                yield attrs.evolve(row, component=key[0], action=key[1], source=named, count_formula=formula)
            if row.key == STATIC_ACTION:
                idle = hardware.idle_power or hardware.static_power
                yield attrs.evolve(
                    row,
                    component=device_key(kind, row.key)[0],
                    action=IDLE,
                    energy_per_action_fj=min(idle.value * FJ_PER_J, row.energy_per_action_fj),
                    basis=idle.basis,
                    source=f"{hardware.id}: {idle.source}",
                    count_formula="seconds of the run, on a device that runs no part",
                )
    for key, link in {link_key(link.name): link for link in box.links}.items():
        yield price_by(
            link.energy,
            key,
            category="link",
            common_category="communication",
            part="memory",
            per="B",
            count_formula="bytes of values that one device sends to another",
        )


def reprice(hardware: BoxHardware, factors: Mapping[str, float], leaks: Mapping[ActionKey, int]) -> BoxHardware:
    """Return the box with the energies per action of one placement.

    `factors` is device name -> factor of on-chip energy due to voltage; `leaks` is static-power action -> number of
    devices that draw it.
    """
    scales: dict[ActionKey, tuple[float, str]] = {
        key: (float(count), f"x {count} devices") for key, count in leaks.items() if count > 1
    }
    for kind, own in hardware.chips.items():
        factor = factors.get(kind, 1.0)
        if factor != 1.0:
            source = f"x {factor:.4g} at the voltage that its power cap leaves"
            keys = [device_key(kind, row.key) for row in own.reference if row.follows_voltage]
            scales |= dict.fromkeys(keys, (factor, source))
    if not scales:
        return hardware
    rows = [
        attrs.evolve(row, energy_per_action_fj=row.energy_per_action_fj * scale, source=f"{row.source}; {source}")
        for row in hardware.reference
        for scale, source in ([scales[row.key]] if row.key in scales else [])
    ]
    named = "|".join((hardware.digest, *(f"{row.key}={row.energy_per_action_fj!r}" for row in rows)))
    return attrs.evolve(
        hardware,
        reference=hardware.reference.with_actions(rows),
        described_digest=hardware.described_digest or hardware.digest,
        digest=hashlib.sha256(named.encode()).hexdigest()[:16],
    )
