"""A hardware target: units and geometry, clocks, peaks, memory levels, power, price, coefficients."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import attrs

from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import EnergyReference


@attrs.frozen(kw_only=True)
class Peak:
    """The dense peak rate at one precision, and the arithmetic that gives it."""

    rate: Quantity
    """Operations per second; one MAC is two. Dense, never sparse."""
    operations_per_clock: float
    """Of one unit."""
    unit_count: int
    """Units that have this precision; fewer than the chip's on a heterogeneous chip."""
    clock_hz: float
    engine: str = ""
    """The component that gives the rate where a unit has several, e.g. `tensor_core`; empty if unknown."""
    explanation: str = ""
    """Why the product is not the published rate, where it is not."""


@attrs.frozen(kw_only=True)
class MemoryLevel:
    """One on-chip memory level."""

    name: str
    kind: str = attrs.field(validator=attrs.validators.in_(("cache", "scratchpad")))
    """A cache keeps what was used last; a scratchpad holds what the program put there."""
    per: str
    """What one instance belongs to: `processing_element`, `unit`, `core` or `chip`."""
    capacity: Quantity
    """Bytes of one instance."""
    bandwidth: Quantity | None = None
    """Bytes per second of all instances together."""


@attrs.frozen(kw_only=True)
class PowerMode:
    """A named operating point that changes clock and cap."""

    name: str
    tdp: Quantity
    clock: Quantity
    unit_count: Quantity | None = None
    """Units that are on; all where it is None."""
    memory_bandwidth: Quantity | None = None
    static_power: Quantity | None = None


def mode_digest(digest: str, power_mode: str) -> str:
    """Return the digest of a hardware at a power mode; its own at `default`."""
    return digest if power_mode == "default" else hashlib.sha256(f"{digest}@{power_mode}".encode()).hexdigest()[:16]


@attrs.frozen(kw_only=True)
class Hardware:
    """One target with everything the models need, each number with unit, basis and source."""

    id: str
    name: str
    vendor: str
    architecture: str
    """`cpu`, `gpu`, `tpu`, `kpu`, …: selects the module that maps and counts."""
    deployment: tuple[str, ...]
    """`datacenter`, `edge`, `embedded`."""
    microarchitecture: str
    unit_name: str
    """What one unit is called: `core`, `SM`, `MXU`, `tile`."""
    memory_type: str
    aliases: tuple[str, ...] = ()
    """Other names that it is asked for by."""
    projection: str = ""
    """Why the key numbers are projections or estimates; empty where they are published."""
    doubts: tuple[str, ...] = ()
    """What the sources disagree about."""
    process_node: Quantity
    launch_year: Quantity | None = None
    unit_count: Quantity
    clock: Quantity
    """The clock that time is computed with."""
    clock_base: Quantity | None = None
    clock_boost: Quantity | None = None
    clock_sustained: Quantity | None = None
    memory_capacity: Quantity
    memory_bandwidth: Quantity
    memory_bus_width: Quantity | None = None
    memory_data_rate: Quantity | None = None
    """Transfers per second and pin."""
    tdp: Quantity
    idle_power: Quantity | None = None
    static_power: Quantity
    """Drawn while running, whatever is computed; the ledger's static line."""
    price_purchase: Quantity | None = None
    price_cloud: Quantity | None = None
    geometry: Mapping[str, Quantity]
    """What only this architecture class has, e.g. `array_rows`."""
    memory_levels: tuple[MemoryLevel, ...]
    """Nearest to the units first."""
    peaks: Mapping[str, Peak]
    """precision -> peak."""
    power_modes: tuple[PowerMode, ...] = ()
    power_mode: str = "default"
    """The one of them that these numbers are of."""
    coefficients: Mapping[str, Quantity]
    """The class's model coefficients, e.g. `dram_efficiency`."""
    reference: EnergyReference
    digest: str
    """Of every byte that this record was made from."""

    @property
    def units(self) -> int:
        """Units on the chip."""
        return int(self.unit_count.value)

    @property
    def is_projection(self) -> bool:
        """Whether the key numbers are projections rather than those of an existing chip."""
        return bool(self.projection)

    def coefficient(self, name: str, *qualifiers: str) -> float:
        """Return the coefficient `name.qualifier` for the first qualifier that has one, else `name`.

        Raises KeyError naming the hardware if none exists.
        """
        for qualifier in qualifiers:
            found = self.coefficients.get(f"{name}.{qualifier}")
            if found is not None:
                return found.value
        found = self.coefficients.get(name)
        if found is None:
            raise KeyError(f"{self.id}: no coefficient {name} for {qualifiers or 'any kind'}")
        return found.value

    def level(self, name: str) -> MemoryLevel:
        """Return the memory level called `name`; raises KeyError if there is none."""
        for level in self.memory_levels:
            if level.name == name:
                return level
        raise KeyError(f"{self.id}: no memory level {name}")

    def in_mode(self, name: str) -> Hardware:
        """Return this hardware at a power mode; itself at `default`. Raises KeyError if there is no such mode.

        Peaks scale with the units that are on and with the clock, on-chip bandwidths too; cap, memory bandwidth and
        static power are the mode's where it states them. Static power that it does not state is not lowered.
        """
        if name == self.power_mode:
            return self
        mode = next((mode for mode in self.power_modes if mode.name == name), None)
        if mode is None:
            raise KeyError(f"{self.id}: no power mode {name}")
        clock_ratio = mode.clock.value / self.clock.value
        units = mode.unit_count or self.unit_count
        unit_ratio = units.value / self.unit_count.value
        source = f"x {clock_ratio:.4g} clock and {unit_ratio:.4g} units in power mode {name}"

        def scaled(quantity: Quantity) -> Quantity:
            return attrs.evolve(
                quantity,
                value=quantity.value * clock_ratio * unit_ratio,
                basis="assumed" if quantity.basis == "assumed" else "derived",
                source=f"{quantity.source}; {source}",
            )

        static = mode.static_power or self.static_power
        return attrs.evolve(
            self,
            tdp=mode.tdp,
            clock=mode.clock,
            unit_count=units,
            memory_bandwidth=mode.memory_bandwidth or self.memory_bandwidth,
            static_power=static,
            memory_levels=tuple(
                attrs.evolve(level, bandwidth=scaled(level.bandwidth)) if level.bandwidth else level
                for level in self.memory_levels
            ),
            peaks={
                precision: attrs.evolve(
                    peak,
                    rate=scaled(peak.rate),
                    unit_count=max(1, round(peak.unit_count * unit_ratio)),
                    clock_hz=peak.clock_hz * clock_ratio,
                )
                for precision, peak in self.peaks.items()
            },
            reference=self.reference.with_static(static),
            power_mode=name,
            digest=mode_digest(self.digest, name),
        )

    def quantities(self) -> Iterator[tuple[str, Quantity]]:
        """Yield (dotted name, quantity) for every number of this record except the reference table."""
        for field in attrs.fields(Hardware):
            value = getattr(self, field.name)
            if isinstance(value, Quantity):
                yield field.name, value
        for name, quantity in self.geometry.items():
            yield f"geometry.{name}", quantity
        for level in self.memory_levels:
            yield f"memory.{level.name}.capacity", level.capacity
            if level.bandwidth is not None:
                yield f"memory.{level.name}.bandwidth", level.bandwidth
        for precision, peak in self.peaks.items():
            yield f"peak.{precision}", peak.rate
        for mode in self.power_modes:
            for field in attrs.fields(PowerMode):
                value = getattr(mode, field.name)
                if isinstance(value, Quantity):
                    yield f"power_mode.{mode.name}.{field.name}", value
        for name, quantity in self.coefficients.items():
            yield f"coefficient.{name}", quantity
