"""Fit the parts of a board's power to power states, which `joulemap measure --parts` measures.

    power = static + (1 + regulator loss) (e_clock f U + e_standby W m + e_active f B + e_spin f B) + e_copy bytes/s

f is the core clock and U the number of units, of which B hold a block. W is the memory bandwidth, and m the memory
clock as a share of its highest. On-chip energies follow the voltage at f. The work of spinning blocks and of copies
only separates the parts; it is not kept. GEMMs tell nothing of the parts and are left out. A chip that has no price for
its clock or its awake memory counts them as static power, at full clocks.

Errors are relative, values stay positive. The residuals determine how much the states say about a part (its
`data_weight` w): its 80 % range is the value x exp(+-1.28 SPREAD sqrt(1 - w)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.calibrate.free_parameter import FARTHEST, rounded
from joulemap.calibrate.solve import SCALE, add_parts, information, minimize
from joulemap.domain.measurement import PRODUCTS, PowerState
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.calibration import MOST_FACTOR, Calibration, EnergyScale, FittedValue
from joulemap.physics.record.configuration import BUSY_SHARE, CLOCK_ENERGY, STANDBY_ENERGY
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import ACTIVE_ACTION, CYCLE_ACTION, STATIC_ACTION, ActionKey
from joulemap.physics.record.target import extend_digest
from joulemap.physics.workload import Floats
from joulemap.system.units import FJ_PER_J

STATIC, CLOCK, STANDBY, ACTIVE = "static_power", CLOCK_ENERGY, STANDBY_ENERGY, "active_units"
COLUMNS: Final = (STATIC, CLOCK, STANDBY, ACTIVE, "spin", "copy")

DEFAULT_J: Final = 1e-10
"""Energy of a part without a price and of work, at which the fit starts."""

SPREAD: Final = 0.7
"""Standard deviation of a part's natural logarithm before the fit."""

NOISE: Final = 0.01
"""Smallest relative error of a power. Source: assumed; a board's counter changes every 0.1 s in a window of seconds."""

States = Sequence[tuple[PowerState, float]]
"""Power states and their measured power in watts."""


def fit_parts(hardware: Hardware, states: States, formula_version: str) -> Calibration:
    """Return a calibration of the parts of a board, which is uncalibrated and has the energies of its anchor."""
    used = [(state, watts) for state, watts in states if state.load not in PRODUCTS]
    own, measured = _price_parts(hardware), np.log([watts for _, watts in used])
    counts = {name: one for name, one in _count(hardware, used).items() if name in own or np.ptp(one) > 0.0}
    defaults = np.array([own.get(name, DEFAULT_J) for name in counts])
    columns, ends = np.stack([*counts.values()], axis=1) * defaults, np.full(len(counts), FARTHEST)
    predict, slope = add_parts(columns, np.zeros(len(used)), np.full(len(counts), SPREAD))
    weight = np.full(len(used), (SCALE / NOISE) ** 2)
    at = minimize(predict, slope, measured=measured, weight=weight, start=0.0 * ends, bounds=(-ends, ends))
    noise = max(NOISE, float(np.std(predict(at) - measured)))
    weights = information(predict(at), slope(at), measured=measured, weight=weight * (NOISE / noise) ** 2)
    weight_of = dict(zip(counts, weights.tolist(), strict=True))
    values = dict(zip(counts, (defaults * np.exp(SPREAD * at)).tolist(), strict=True))
    awake = {name: values[name] * float(counts[name].max()) for name in (CLOCK, STANDBY) if name in counts}
    values[STATIC] += sum(watts for name, watts in awake.items() if name not in own)
    copied = max((watts for state, watts in used if state.load == "copy"), default=0.0)
    above = copied - values[STATIC] - (awake[STANDBY] if STANDBY in own else 0.0)
    if BUSY_SHARE in hardware.coefficients and above > 0.0:
        own[BUSY_SHARE], weight_of[BUSY_SHARE] = hardware.coefficients[BUSY_SHARE].value, 1.0 - (noise / SPREAD) ** 2
        values[BUSY_SHARE] = min(1.0, above / hardware.tdp.value)
    fitted = {
        name: FittedValue(
            default=default,
            value=rounded(values[name]),
            unit=hardware.coefficients[name].unit if name in hardware.coefficients else "W",
            data_weight=rounded(weight_of[name]),
        )
        for name, default in own.items()
    }
    static = fitted.pop(STATIC)
    scales = tuple(
        EnergyScale(
            name=ACTIVE,
            factor=min(max(one.ratio, 1.0 / MOST_FACTOR), MOST_FACTOR),
            actions=(ACTIVE_ACTION,),
            meaning="clock of units that hold a block",
            data_weight=one.data_weight,
        )
        for one in (fitted.pop(name) for name in (ACTIVE,) if name in fitted)
    )
    return Calibration(
        name="",
        hardware=hardware.id,
        hardware_digest=hardware.digest,
        formula_version=formula_version,
        data_digest=extend_digest(hardware.digest, repr(states)),
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
        energy_scales=scales,
        static_power=static,
        errors=(),
        digest="",
    )


def list_held(parts: Calibration) -> set[ActionKey]:
    """Return the actions that a fit to runs may not scale, because power states determine their energies."""
    return {STATIC_ACTION, CYCLE_ACTION, *(key for scale in parts.energy_scales for key in scale.actions)}


def join_parts(parts: Calibration, runs: Calibration) -> Calibration:
    """Return the calibration to runs on a board with these parts, with the parts in it."""
    return attrs.evolve(
        runs,
        hardware_digest=parts.hardware_digest,
        data_digest=extend_digest(parts.data_digest, runs.data_digest),
        row_count=parts.row_count + runs.row_count,
        coefficients={**parts.coefficients, **runs.coefficients},
        energy_scales=(*parts.energy_scales, *runs.energy_scales),
        static_power=parts.static_power,
    )


def _price_parts(hardware: Hardware) -> dict[str, float]:
    """Return the price of each part that the chip prices: watts of static power, joules of the others."""
    row = hardware.reference.position(ACTIVE_ACTION) if BUSY_SHARE in hardware.coefficients else None
    prices = {
        STATIC: hardware.static_power.value,
        **{name: hardware.coefficients[name].value for name in (CLOCK, STANDBY) if name in hardware.coefficients},
        ACTIVE: 0.0 if row is None else float(hardware.reference.prices_fj[row]) / FJ_PER_J,
    }
    return {name: price for name, price in prices.items() if price > 0.0}


def _count(hardware: Hardware, states: States) -> dict[str, Floats]:
    """Return part or load -> its count per second in each state, regulator losses included."""
    core, memory, busy, copied = np.array([attrs.astuple(state)[1:] for state, _ in states]).T
    lost = 1.0 + hardware.reference.loss_j
    cycles = lost * core * PowerLaw.of(hardware).energy_factor(core / hardware.full_clock.value)
    clock, standby = cycles * hardware.unit_count.value, lost * hardware.memory_bandwidth.value * memory / memory.max()
    active, spins = cycles * busy, np.array([state.load == "spin" for state, _ in states])
    return dict(zip(COLUMNS, (np.ones_like(core), clock, standby, active, active * spins, copied), strict=True))
