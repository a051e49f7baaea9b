"""Variants of a chip with other numbers, set by a question or by one of many points.

A number changes alone, except clock and unit count. Peaks and on-chip bandwidths follow both, and vector cores of an
NPU follow the units. A peak in several passes follows the peak of one pass and their number. The other clocks follow
the main clock, as in a power mode. The highest clock of the die stays, so voltage follows the clock by the power law.
`follow` implements this for single numbers and for arrays of many designs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from joulemap.physics.record.address import CLOCK, REGULATOR_LOSS, UNIT_COUNT, Address, find_action, set_numbers
from joulemap.physics.record.constant import Change, word_changes
from joulemap.physics.record.hardware import ALL_UNITS, REFILL, VECTOR_UNITS
from joulemap.physics.record.product import FP32, PASS, PASSES
from joulemap.physics.record.reference import FJ_PER_J
from joulemap.physics.record.target import changes_word, extend_digest
from joulemap.physics.stream import DIVIDED

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.reference import EnergyAction


def change_hardware(hardware: Hardware, changes: Sequence[Change], name: str = "") -> Hardware:
    """Return a chip with some numbers replaced, and with the numbers that `follow` derives from them.

    Without changes and name, the result is the hardware itself. `name` becomes the new id, if given. Raises ValueError
    if the resulting numbers contradict each other.
    """
    if not changes and not name:
        return hardware
    values = {one.address: one.value for one in changes}
    whole = open_to_change(hardware, values) if changes else hardware
    return attrs.evolve(
        set_numbers(whole, follow(whole, values), attrs.evolve),
        id=name or hardware.id,
        described_digest=hardware.described_digest or hardware.digest,
        digest=extend_digest(hardware.digest, word_changes(changes, name)),
    )


def open_to_change(hardware: Hardware, addresses: Container[Address]) -> Hardware:
    """Return a chip some of whose numbers will change: the highest clock of its die and the cores for which the caches
    of a CPU are built stay, and the loads that were measured on the unchanged chip are left out.
    """
    highest = hardware.clock_die or (hardware.full_clock if CLOCK in addresses else None)
    built = {ALL_UNITS: hardware.unit_count} if UNIT_COUNT in addresses and REFILL in hardware.coefficients else {}
    return attrs.evolve(hardware, clock_die=highest, loads=(), geometry={**built, **hardware.geometry})


def point_hardware(hardware: Hardware, varied: Mapping[Address, Any], index: int) -> Hardware:
    """Return the hardware of one point: the chip with the numbers at `index` of the arrays in `varied`.

    Raises ValueError if numbers contradict each other, KeyError if the hardware has no such number.
    """
    values = {address: float(numbers[index]) for address, numbers in varied.items()}
    if not values:
        return hardware
    word = changes_word(sorted((str(address), value) for address, value in values.items()))
    return attrs.evolve(
        set_numbers(hardware, values, attrs.evolve),
        digest=extend_digest(hardware.digest, word),
        described_digest=hardware.described_digest or hardware.digest,
    )


def follow(hardware: Hardware, values: Mapping[Address, Any]) -> dict[Address, Any]:
    """Return address -> new number, for these constants and for the numbers that follow from them.

    Values are in the units of constants, energies in joules; they are numbers, or arrays that broadcast. The result has
    the form that `set_numbers` expects.
    """
    following = dict(_follow_rates(hardware, values))
    following |= _follow_passes(hardware, values, following)
    numbers = {**following, **{one: value for one, value in values.items() if one.kind != "peak"}}
    for address, value in values.items():
        if address.kind == "price":
            numbers[address] = _price(find_action(hardware, address), value)
    if REGULATOR_LOSS in values and "regulator_loss" in hardware.coefficients:
        numbers[Address("coefficient", "regulator_loss")] = values[REGULATOR_LOSS]
    return numbers


def _follow_rates(hardware: Hardware, values: Mapping[Address, Any]) -> Iterator[tuple[Address, Any]]:
    """Yield (address, new number) of peaks that are set, and of all that follows the clock and the number of units.

    If each unit may run its own copy of a model, on-chip memory follows the number of units.
    """
    if not any(one in (CLOCK, UNIT_COUNT) or one.kind == "peak" for one in values):
        return
    clock_ratio = values[CLOCK] / hardware.clock.value if CLOCK in values else 1.0
    unit_ratio = values[UNIT_COUNT] / hardware.unit_count.value if UNIT_COUNT in values else 1.0
    has_clock, has_units = (bool(np.any(np.not_equal(one, 1.0))) for one in (clock_ratio, unit_ratio))
    for precision, peak in hardware.peaks.items():
        rate, per_clock = peak.rate.value * (clock_ratio * unit_ratio), peak.operations_per_clock
        own_peak = values.get(Address("peak", precision))
        if own_peak is not None:
            rate, per_clock = own_peak, per_clock * (own_peak / rate)
        if has_clock or has_units or own_peak is not None:
            yield Address("peak", precision), rate
            yield Address("peak", precision, "operations_per_clock"), per_clock
        if has_units:
            count = np.maximum(1.0, np.rint(peak.unit_count * unit_ratio))
            yield Address("peak", precision, "unit_count"), count
        if has_clock:
            yield Address("peak", precision, "clock_hz"), peak.clock_hz * clock_ratio
    for level in hardware.memory_levels if has_clock or has_units else ():
        if level.bandwidth is not None:
            yield Address("memory", level.name, "bandwidth"), level.bandwidth.value * (clock_ratio * unit_ratio)
        if has_units and level.per == "chip" and DIVIDED in hardware.geometry:
            yield Address("memory", level.name, "capacity"), level.capacity.value * unit_ratio
    if has_units and VECTOR_UNITS in hardware.geometry:
        cores = hardware.geometry[VECTOR_UNITS].value * unit_ratio
        yield Address("geometry", VECTOR_UNITS), np.maximum(1.0, np.rint(cores))
    if not has_clock:
        return
    for name in ("clock_base", "clock_boost"):
        if (quantity := getattr(hardware, name)) is not None:
            yield Address("quantity", name), quantity.value * clock_ratio


def _follow_passes(
    hardware: Hardware, values: Mapping[Address, Any], following: Mapping[Address, Any]
) -> dict[Address, Any]:
    """Return the peak at fp32 where products take bf16 passes, or the number of passes for a peak that is set."""
    if not hardware.find_products(is_engine=False).has_passes:
        return {}
    named = Address("coefficient", f"{PASSES}.{hardware.matmul_precision}")
    passes = named if named.name in hardware.coefficients else Address("coefficient", PASSES)
    whole, one = Address("peak", FP32), Address("peak", PASS)
    rate = following.get(one, hardware.peaks[PASS].rate.value)
    if whole in values:
        return {passes: rate / values[whole]}
    if passes not in values and one not in values:
        return {}
    count = values.get(passes, hardware.coefficients[passes.name].value)
    per_clock = following.get(Address("peak", PASS, "operations_per_clock"), hardware.peaks[PASS].operations_per_clock)
    return {whole: rate / count, Address("peak", FP32, "operations_per_clock"): per_clock / count}


def _price(action: EnergyAction, value: Any) -> Any:
    """Return the energies of an action in femtojoules. `value` is a number of joules, or an array of them."""
    if not np.ndim(value):
        return price_fj(action, float(value))
    each, index = np.unique(value, return_inverse=True)
    return np.array([price_fj(action, float(one)) for one in each])[index.reshape(value.shape)]


def price_fj(action: EnergyAction, value_j: float) -> float:
    """Return an energy per action in femtojoules, rounded to 15 digits.

    If it equals the action's own energy, that energy is returned unrounded.
    """
    own = action.energy_per_action_fj
    return own if value_j == own / FJ_PER_J else float(f"{value_j * FJ_PER_J:.15g}")
