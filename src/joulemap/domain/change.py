"""Changes of a hardware's numbers for one question, applied to a separate version of its record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.coefficient import check_coefficient
from joulemap.domain.constant import LOSS, STATIC, Constant
from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import FJ_PER_J
from joulemap.domain.target import changes_word, extend_digest
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware, Peak
    from joulemap.domain.reference import EnergyAction, EnergyReference

SOURCE: Final = "--set"
"""Source of a number set by the user; its basis is `assumed`."""


@frozen(kw_only=True)
class Change:
    """One constant of a hardware, as set by the user."""

    name: str
    """Name of the constant, as in `Constant.name`."""
    kind: str
    value: float
    """New value in SI units."""
    before: float
    """Original value."""
    unit: str


def check_value(constant: Constant, value: float) -> None:
    """Raise ValueError for a value outside the valid range of a constant."""
    if constant.kind == "coefficient":
        check_coefficient(constant.own.partition(".")[2], value)
    if value < 0.0 or (value == 0.0 and constant.kind not in ("price", "coefficient")):
        raise ValueError(f"{value:g} is not {'from' if constant.kind in ('price', 'coefficient') else 'above'} 0")
    if constant.own == "unit_count" and value != int(value):
        raise ValueError(f"{value:g} is not a whole number")


def word_changes(changes: Sequence[Change], name: str = "") -> str:
    """Return the word that stands for changes, and a new name, in a digest."""
    return changes_word(((one.name, one.value) for one in changes), name)


def change_hardware(hardware: Hardware, changes: Sequence[Change], name: str = "") -> Hardware:
    """Return a hardware, as used in runs, with some numbers replaced; without changes, the hardware itself.

    Each number changes alone, except clock and unit count: peaks and on-chip bandwidths follow both, as in a power
    mode. Numbers derived earlier stay as they are. `name` becomes the new id, if given. Raises ValueError if the
    resulting numbers contradict each other.
    """
    if not changes and not name:
        return hardware
    value = {one.name: one.value for one in changes}
    updates: dict[str, Any] = {
        name: _set(getattr(hardware, name), number) for name, number in value.items() if "." not in name
    }
    peaks = dict(hardware.peaks)
    levels = list(hardware.memory_levels)
    clock_ratio = value["clock"] / hardware.clock.value if "clock" in value else 1.0
    unit_ratio = value["unit_count"] / hardware.unit_count.value if "unit_count" in value else 1.0
    if clock_ratio != 1.0 or unit_ratio != 1.0:
        peaks = {name: _scale_peak(peak, clock_ratio, unit_ratio) for name, peak in peaks.items()}
        levels = [
            attrs.evolve(level, bandwidth=_scale(level.bandwidth, clock_ratio * unit_ratio))
            if level.bandwidth is not None
            else level
            for level in levels
        ]
    if clock_ratio != 1.0:
        updates = {**_scale_clocks(hardware, updates["clock"], clock_ratio), **updates}
    for precision, peak in peaks.items():
        if (rate := value.get(f"peak.{precision}")) is not None:
            ratio = rate / peak.rate.value
            per_clock = peak.operations_per_clock * ratio
            peaks[precision] = attrs.evolve(peak, rate=_set(peak.rate, rate), operations_per_clock=per_clock)
    for index, level in enumerate(levels):
        capacity, bandwidth = (value.get(f"memory.{level.name}.{field}") for field in ("capacity", "bandwidth"))
        levels[index] = attrs.evolve(
            level,
            capacity=level.capacity if capacity is None else _set(level.capacity, capacity),
            bandwidth=level.bandwidth
            if bandwidth is None or level.bandwidth is None
            else _set(level.bandwidth, bandwidth),
        )
    if LOSS in value:
        value["coefficient.regulator_loss"] = value[LOSS]
    reference = _set_prices(hardware.reference, value)
    if STATIC in updates:
        reference = reference.with_static(updates[STATIC])
    return attrs.evolve(
        hardware,
        loads=() if changes else hardware.loads,  # the load was measured on the unchanged chip
        id=name or hardware.id,
        **updates,
        geometry=_set_each(hardware.geometry.items(), "geometry", value),
        coefficients=_set_each(hardware.coefficients.items(), "coefficient", value),
        peaks=peaks,
        memory_levels=tuple(levels),
        reference=reference,
        described_digest=hardware.described_digest or hardware.digest,
        digest=extend_digest(hardware.digest, word_changes(changes, name)),
    )


def _set(quantity: Quantity, value: float) -> Quantity:
    return attrs.evolve(quantity, value=value, basis="assumed", source=SOURCE)


def _set_each(quantities: Iterable[tuple[str, Quantity]], prefix: str, value: dict[str, float]) -> dict[str, Quantity]:
    return {
        name: _set(quantity, value[key]) if (key := f"{prefix}.{name}") in value else quantity
        for name, quantity in quantities
    }


def _scale(quantity: Quantity, ratio: float) -> Quantity:
    return attrs.evolve(
        quantity, value=quantity.value * ratio, basis="assumed", source=f"{quantity.source}; x {ratio:.4g}: {SOURCE}"
    )


def _scale_peak(peak: Peak, clock_ratio: float, unit_ratio: float) -> Peak:
    return attrs.evolve(
        peak,
        rate=_scale(peak.rate, clock_ratio * unit_ratio),
        unit_count=max(1, round(peak.unit_count * unit_ratio)),
        clock_hz=peak.clock_hz * clock_ratio,
    )


def _scale_clocks(hardware: Hardware, clock: Quantity, ratio: float) -> dict[str, Quantity]:
    """Scale the other clocks with the main clock; the die's highest clock changes only if it would be exceeded."""
    moved = {
        name: _scale(quantity, ratio)
        for name in ("clock_base", "clock_boost")
        if (quantity := getattr(hardware, name)) is not None
    }
    full = moved["clock_boost"] if hardware.full_clock is hardware.clock_boost else clock
    die = hardware.clock_die or hardware.full_clock
    return {**moved, "clock_die": max(die, full, key=lambda one: one.value)}


def price_fj(action: EnergyAction, value_j: float) -> float:
    """Convert an energy per action to femtojoules at 15 digits, or return the action's own energy if it is equal."""
    own = action.energy_per_action_fj
    return own if value_j == own / FJ_PER_J else float(f"{value_j * FJ_PER_J:.15g}")


def _set_prices(reference: EnergyReference, value: dict[str, float]) -> EnergyReference:
    return reference.with_actions(
        attrs.evolve(
            action, energy_per_action_fj=price_fj(action, value[key]), low_fj=None, high_fj=None, basis="assumed",
            source=SOURCE,
        )
        for action in reference
        if (key := ".".join(action.key)) in value
    )  # fmt: skip
