"""Fit the parts of a board's power to power states, which `joulemap measure --parts` measures.

    power = static power + regulators x (e_clock f U + e_active f B + e_standby W m) + work

f is the core clock and U the number of units; B units hold a block; W is the memory bandwidth, and m the memory clock
as a share of its highest. Energies of the chip follow the voltage at f. Work is an energy per byte of the copy, or per
clock of a busy unit for each other load; it separates work from the parts and is not kept. A part that the chip does
not price remains in the parts that it does.

Errors are relative, and values stay positive. The residuals say how much the states determine each part (its
`data_weight` w), so that its 80 % range is the value x exp(+-1.28 SPREAD sqrt(1 - w)).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from joulemap.calibrate.free_parameter import FreeParameter, bounds_of, free_coefficients, rounded, values_at
from joulemap.calibrate.solve import SCALE, information, minimize
from joulemap.domain.measurement import PowerState
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.calibration import MOST_FACTOR, Calibration, EnergyScale, FittedValue
from joulemap.physics.record.configuration import BUSY_SHARE
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import ActionKey
from joulemap.physics.workload import Floats
from joulemap.system.units import FJ_PER_J

STATIC: Final = "static_power"
CLOCK: Final = "clock_energy"
STANDBY: Final = "standby_energy"
ACTIVE: Final = "unit.active_cycle"
ACTIVE_ACTION: Final[ActionKey] = ("unit", "active_cycle")
PARTS: Final = (STATIC, CLOCK, ACTIVE, STANDBY)
"""Parts of a board's power: static power, and coefficients; `ACTIVE` may be an energy per action instead."""

SPREAD: Final = 1.0
"""Standard deviation of a part's natural logarithm before the fit."""

NOISE: Final = 0.01
"""Smallest relative error of a power. Source: assumed; the counter of a board changes every 0.1 s of a window of 10 s."""

WORK_J: Final = 1e-10
"""Energy of work per byte or clock at which the fit starts, with a spread of `WORK_SPREAD`."""
WORK_SPREAD: Final = 3.0

QUANTILE: Final = 1.2816
"""Half-width of the 80 % range of a normal distribution in standard deviations."""

WEIGHT_DIGITS: Final = 6

States = Sequence[tuple[PowerState, float]]
"""Power states and their measured power in watts."""


def fit_parts(hardware: Hardware, states: States, version: str) -> Calibration:
    """Return a calibration of the parts of a board that power states determine.

    `hardware` is uncalibrated, with the energies of its anchor. `version` is that of its formulas.
    """
    counts = _count(hardware, states)
    parameters = _free_parts(hardware, counts)
    matrix = np.stack([counts[one.name] for one in parameters], axis=1)
    spreads = np.array([one.spread for one in parameters])
    measured = np.log([watts for _, watts in states])

    def split(position: Floats) -> Floats:
        parts: Floats = matrix * np.array(list(values_at(parameters, position).values()))
        return parts

    def predict(position: Floats) -> Floats:
        total: Floats = np.log(split(position).sum(axis=1))
        return total

    def slope(position: Floats) -> Floats:
        each = split(position)
        slopes: Floats = each * spreads / each.sum(axis=1)[:, None]
        return slopes

    def weigh(noise: float) -> Floats:
        return np.full(len(states), (SCALE / noise) ** 2)

    position = minimize(
        predict, slope, measured=measured, weight=weigh(NOISE), start=np.zeros(len(parameters)),
        bounds=bounds_of(parameters),
    )  # fmt: skip
    free = max(1, len(states) - len(parameters))
    noise = max(NOISE, math.sqrt(float(((predict(position) - measured) ** 2).sum()) / free))
    weights = information(predict(position), slope(position), measured=measured, weight=weigh(noise))
    fitted = {
        one.name: FittedValue(
            default=one.default,
            value=rounded(one.value(u)),
            unit="W" if one.name == STATIC else own.unit if (own := hardware.coefficients.get(one.name)) else "1",
            data_weight=rounded(weight, WEIGHT_DIGITS),
        )
        for one, u, weight in zip(parameters, position.tolist(), weights.tolist(), strict=True)
        if one.spread == SPREAD
    }
    static, active = fitted.pop(STATIC), None if ACTIVE in hardware.coefficients else fitted.pop(ACTIVE, None)
    fitted |= _find_share(hardware, states, static)
    return Calibration(
        name="",
        hardware=hardware.id,
        hardware_digest=hardware.digest,
        formula_version=version,
        data_digest=hashlib.sha256(repr(states).encode()).hexdigest()[:16],
        generation=hardware.generation,
        row_count=len(states),
        latency_count=0,
        energy_count=0,
        latency_credibility=0.0,
        energy_credibility=0.0,
        runtimes=(),
        precisions=(),
        families=(),
        coefficients=fitted,
        energy_scales=() if active is None else (_scale(active),),
        static_power=static,
        errors=(),
        digest="",
    )


def _count(hardware: Hardware, states: States) -> dict[str, Floats]:
    """Return part or load -> its count per second in each state."""
    core, memory, busy, copied = (
        np.array([getattr(state, name) for state, _ in states])
        for name in ("core_hz", "memory_hz", "busy_units", "bytes_per_s")
    )
    lost = 1.0 + hardware.reference.loss_j
    cycles = lost * core * PowerLaw.of(hardware).energy_factor(core / hardware.full_clock.value)
    loads = np.array([state.load for state, _ in states])
    return {
        STATIC: np.ones(len(states)),
        CLOCK: cycles * hardware.unit_count.value,
        ACTIVE: cycles * busy,
        STANDBY: lost * hardware.memory_bandwidth.value * memory / memory.max(),
        **{
            load: np.where(loads == load, copied if load == "copy" else cycles * busy, 0.0)
            for load in sorted({*loads.tolist()} - {"idle", "sleep"})
        },
    }


def _free_parts(hardware: Hardware, counts: Mapping[str, Floats]) -> tuple[FreeParameter, ...]:
    """Return the parts that the chip prices and the work of each load as free parameters."""
    static = hardware.static_power.value
    parts = [
        FreeParameter(name=STATIC, default=static, spread=SPREAD, highest=hardware.most_static_w),
        *free_coefficients(hardware, dict.fromkeys(PARTS, SPREAD)),
    ]
    row = None if ACTIVE in hardware.coefficients else hardware.reference.position(ACTIVE_ACTION)
    if row is not None and (price := float(hardware.reference.prices_fj[row]) / FJ_PER_J) > 0.0:
        low, high = price / MOST_FACTOR, price * MOST_FACTOR
        parts.append(FreeParameter(name=ACTIVE, default=price, spread=SPREAD, lowest=low, highest=high))
    work = (FreeParameter(name=one, default=WORK_J, spread=WORK_SPREAD) for one in counts if one not in PARTS)
    return (*parts, *work)


def _scale(active: FittedValue) -> EnergyScale:
    return EnergyScale(
        name="active_units",
        factor=rounded(active.ratio),
        actions=(ACTIVE_ACTION,),
        meaning="units that hold a block",
        data_weight=active.data_weight,
    )


def _find_share(hardware: Hardware, states: States, static: FittedValue) -> dict[str, FittedValue]:
    """Return the share of the power limit that the copy with the highest power draws above static power, if the chip
    has such a share.
    """
    own = hardware.coefficients.get(BUSY_SHARE)
    copied = [watts - static.value for state, watts in states if state.load == "copy"]
    if own is None or not copied or max(copied) <= 0.0:
        return {}
    share = min(1.0, max(copied) / hardware.tdp.value)
    return {
        BUSY_SHARE: FittedValue(
            default=own.value, value=rounded(share), unit=own.unit, data_weight=1.0 - (NOISE / SPREAD) ** 2
        )
    }


def find_range(value: float, data_weight: float) -> tuple[float, float]:
    """Return the ends of the 80 % range of a part."""
    half_width = QUANTILE * SPREAD * math.sqrt(1.0 - data_weight)
    return value * math.exp(-half_width), value * math.exp(half_width)
