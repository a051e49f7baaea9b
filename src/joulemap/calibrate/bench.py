"""Predict all measurements of one chip for changing coefficients, and compute the derivatives of latencies.

Derivatives are finite differences; each free parameter is changed only for the kernels that depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.calibrate.free_parameter import FreeParameter, values_at
from joulemap.calibrate.observation import Observation
from joulemap.calibrate.stack import ObservedKernels, Stack, stack
from joulemap.physics.architecture import Architecture, find_architecture
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.placement import Placement
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.calibration import EnergyScale
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.product import MatmulPrecision
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.workload import Booleans, Floats, Integers, WorkloadColumns
from joulemap.system.record import frozen

GAP: Final = "gap_clocks"
"""Coefficient for the gap between kernels; it does not apply to profiles of kernels."""

STEP: Final = 1e-4
"""Step of a coefficient's natural logarithm: large against rounding, small against the distance to a change of tile or
memory level.
"""

PROBE: Final = 2.0
"""Change of a coefficient, in standard deviations, that reveals which kernels depend on it."""

PARTIAL_SHARE: Final = 0.7
"""Share of affected kernels above which evaluating only these is no faster than evaluating all kernels."""


@frozen(kw_only=True, eq=False)
class Group:
    """Observations that are evaluated together: same power mode, precision, runtime and treatment of gaps."""

    power_mode: str
    matmul_precision: MatmulPrecision
    includes_gap: bool
    rows: Integers
    """Indices of the bench's observations that belong to this group."""
    stack: Stack


@frozen(kw_only=True, eq=False)
class Energies:
    """Energy of each observation by energy scale, at uncalibrated energies per action, with data to apply the power
    cap.
    """

    chip_j: Floats
    """On-chip energy in joules at full voltage, without static power: one row per observation, one column per scale."""
    memory_j: Floats
    """Off-chip energy in joules, which does not depend on voltage: one row per observation, one column per scale."""
    chip_rest_j: Floats
    """On-chip energy of each observation from actions without a scale, in joules at full voltage."""
    memory_rest_j: Floats
    components: tuple[NDArray[np.float64], ...]
    """Fixed cost, compute time and memory time of each group's kernels, in seconds at the full clock."""
    hardware: tuple[Hardware, ...]
    """Hardware of each group: with the coefficients and at the power mode of the group."""
    static_w: Floats
    """Uncalibrated static power of each observation's power mode, in watts."""
    owns_static: Booleans
    """True for observations at a power mode that states its own static power, which no calibration changes."""

    def scaled_j(self, voltage_factor: Floats) -> Floats:
        """Return the energy of each observation (row) by scale (column) in joules, with every scale at 1.

        `voltage_factor` is the factor of each observation on on-chip energies.
        """
        total: Floats = self.chip_j * voltage_factor[:, None] + self.memory_j
        return total

    def rest_j(self, voltage_factor: Floats) -> Floats:
        """Return the energy of each observation from actions without a scale, in joules.

        `voltage_factor` is the factor of each observation on on-chip energies.
        """
        return self.chip_rest_j * voltage_factor + self.memory_rest_j

    def static_at(self, factor: float) -> Floats:
        """Return the static power of each observation in watts, scaled by `factor`."""
        return np.where(self.owns_static, self.static_w, self.static_w * factor)


@frozen(kw_only=True, eq=False)
class Throttle:
    """Effect of the power cap on each observation in steady state; it does not apply to observations of a part of a
    run.
    """

    slowdown: Floats
    """Latency divided by the latency at the full clock."""
    voltage_factor: Floats
    """Energy of an on-chip action relative to its energy at the chip's highest voltage."""


@frozen(kw_only=True, eq=False)
class Bench:
    """Observations of one chip, prepared for fast evaluation at changing coefficients."""

    hardware: Hardware
    """Hardware before any calibration, at the default power mode."""
    architecture: Architecture[Placement]
    observations: tuple[Observation, ...]
    groups: tuple[Group, ...]
    is_run: Booleans
    """True for observations of a whole run; the power cap applies only to these."""

    @property
    def row_count(self) -> int:
        """Number of observations."""
        return len(self.observations)

    def seconds(self, coefficients: Mapping[str, Quantity], group: Group) -> Floats:
        """Return the latency of a group's observations in seconds at the full clock.

        `coefficients` holds all coefficients of the hardware.
        """
        return group.stack.seconds(self.under(coefficients, group), self.architecture)

    def energies(self, values: Mapping[str, float], scales: Sequence[EnergyScale]) -> Energies:
        """Return the dynamic energy of every observation, divided by scale."""
        coefficients = self.coefficients(values)
        columns = {action: number for number, scale in enumerate(scales) for action in scale.actions}
        joules = np.zeros((2, self.row_count, len(scales) + 1))
        static = np.zeros(self.row_count)
        own = np.zeros(self.row_count, dtype=bool)
        seen = tuple(self.under(coefficients, group) for group in self.groups)
        for group, hardware in zip(self.groups, seen, strict=True):
            joules[:, group.rows] = group.stack.joules(hardware, self.architecture, columns)
            static[group.rows] = hardware.static_power.value
            own[group.rows] = any(
                mode.name == group.power_mode and mode.static_power is not None for mode in hardware.power_modes
            )
        chip, memory = joules
        return Energies(
            chip_j=chip[:, :-1],
            memory_j=memory[:, :-1],
            chip_rest_j=chip[:, -1],
            memory_rest_j=memory[:, -1],
            components=tuple(
                group.stack.components(hardware, self.architecture)
                for group, hardware in zip(self.groups, seen, strict=True)
            ),
            hardware=seen,
            static_w=static,
            owns_static=own,
        )

    def coefficients(self, values: Mapping[str, float]) -> dict[str, Quantity]:
        """Return all coefficients of the hardware; `values` replace those of the same name."""
        own = self.hardware.coefficients
        moved = {name: attrs.evolve(own[name], value=value) for name, value in values.items()}
        return {**own, **moved}

    def throttle(self, energies: Energies, factors: Floats, static_w: Floats) -> Throttle:
        """Return the effect of the power cap on each observation, given the factors of the energy scales and static
        power.
        """
        chip_j = energies.chip_j @ factors + energies.chip_rest_j
        memory_j = energies.memory_j @ factors + energies.memory_rest_j
        slowdown, voltage = np.ones(self.row_count), np.ones(self.row_count)
        for group, hardware, components in zip(self.groups, energies.hardware, energies.components, strict=True):
            rows = group.rows
            law = PowerLaw.of(hardware, float(static_w[rows[0]]))
            seconds_at = partial(group.stack.seconds_at, components, law)
            full = np.ones(len(rows))
            steady = np.where(self.is_run[rows], law.clock_under_cap(seconds_at, chip_j[rows], memory_j[rows]), full)
            is_lone = np.bincount(group.stack.pair_row, group.stack.pair_count, group.stack.row_count) == 1.0
            at_first = law.at_first(steady, seconds_at, chip_j[rows], memory_j[rows])
            clock = np.where(is_lone, at_first[0], steady)
            slowdown[rows] = seconds_at(clock) / seconds_at(full)
            voltage[rows] = np.where(is_lone, at_first[1], law.energy_factor(steady))
        return Throttle(slowdown=slowdown, voltage_factor=voltage)

    def under(self, coefficients: Mapping[str, Quantity], group: Group) -> Hardware:
        """Return the hardware for a group of observations: with these coefficients and at the group's power mode."""
        if not group.includes_gap and GAP in coefficients:
            coefficients = {**coefficients, GAP: attrs.evolve(coefficients[GAP], value=0.0)}
        moved = attrs.evolve(self.hardware, coefficients=coefficients)
        return moved.in_mode(group.power_mode).at_matmul_precision(group.matmul_precision)


def make_bench(hardware: Hardware, observations: Sequence[Observation]) -> Bench:
    """Build a bench of these observations; its rows keep their order."""
    architecture = find_architecture(hardware.architecture)
    formed: dict[tuple[int, str, str], KernelColumns] = {}
    grouped: dict[tuple[str, MatmulPrecision, str, str, bool], list[int]] = {}
    for row, one in enumerate(observations):
        settings = one.configuration
        key = (settings.power_mode, one.matmul_precision, settings.precision, settings.runtime, one.includes_gap)
        grouped.setdefault(key, []).append(row)
    groups = []
    for (mode, setting, precision, runtime, includes_gap), rows in grouped.items():
        device = hardware.in_mode(mode).at_matmul_precision(setting)
        covered: dict[int, list[tuple[int, tuple[int, ...] | None]]] = {}
        columns: dict[int, WorkloadColumns] = {}
        for number, row in enumerate(rows):
            work = observations[row].columns
            columns[id(work)] = work
            covered.setdefault(id(work), []).append((number, observations[row].operator_index))
        for key_of_work, work in columns.items():
            if (key_of_work, precision, runtime) not in formed:
                formed[key_of_work, precision, runtime] = form_kernels(work, precision, runtime)
        parts = [
            ObservedKernels.of(formed[key_of_work, precision, runtime], those, device)
            for key_of_work, those in covered.items()
        ]
        groups.append(
            Group(
                power_mode=mode,
                matmul_precision=setting,
                includes_gap=includes_gap,
                rows=np.array(rows, dtype=np.int64),
                stack=stack(parts, len(rows), device, architecture),
            )
        )
    return Bench(
        hardware=hardware,
        architecture=architecture,
        observations=tuple(observations),
        groups=tuple(groups),
        is_run=np.array([one.is_run for one in observations], dtype=bool),
    )


@frozen(kw_only=True, eq=False)
class _Dependence:
    """Kernels of a group that a free parameter changes."""

    number: int
    """Index of the parameter."""
    kernels: Integers
    """Kernels of the group that the parameter changes."""
    stack: Stack
    """Stack of only these kernels."""


@frozen(kw_only=True, eq=False, slots=False)
class LatencyModel:
    """Natural logarithm of each observation's latency at the full clock, as a function of coefficient positions.

    A position is in standard deviations from the default.
    """

    bench: Bench
    parameters: tuple[FreeParameter, ...]

    def predict(self, position: Floats) -> Floats:
        """Return the natural logarithm of each observation's latency in seconds."""
        coefficients = self._coefficients(position)
        logarithms = np.zeros(self.bench.row_count)
        for group in self.bench.groups:
            logarithms[group.rows] = np.log(self.bench.seconds(coefficients, group))
        return logarithms

    def slope(self, position: Floats) -> NDArray[np.float64]:
        """Return the derivatives of the logarithms: one row per observation, one column per parameter."""
        coefficients = self._coefficients(position)
        slopes = np.zeros((self.bench.row_count, len(self.parameters)))
        for group, dependences in zip(self.bench.groups, self._dependences, strict=True):
            base = group.stack.kernel_seconds(self.bench.under(coefficients, group), self.bench.architecture)
            seconds = group.stack.rows(base)
            for one in dependences:
                parameter, u = self.parameters[one.number], float(position[one.number])
                step = STEP / parameter.spread
                if u + step > parameter.bounds[1]:
                    step = -step
                hardware = self._moved(coefficients, one.number, u + step, group)
                moved = one.stack.kernel_seconds(hardware, self.bench.architecture)
                slopes[group.rows, one.number] = np.log1p(one.stack.rows(moved - base[one.kernels]) / seconds) / step
        return slopes

    def _coefficients(self, position: Floats) -> dict[str, Quantity]:
        return self.bench.coefficients(values_at(self.parameters, position))

    def _moved(self, coefficients: Mapping[str, Quantity], number: int, u: float, group: Group) -> Hardware:
        """Return the hardware for a group of observations, with parameter `number` at position `u`."""
        one = self.parameters[number]
        changed = {**coefficients, one.name: attrs.evolve(coefficients[one.name], value=one.value(u))}
        return self.bench.under(changed, group)

    @cached_property
    def _dependences(self) -> tuple[tuple[_Dependence, ...], ...]:
        """Free parameters of each group that change the time of any kernel, with these kernels."""
        coefficients = self._coefficients(np.zeros(len(self.parameters)))
        return tuple(tuple(self._depend(coefficients, group)) for group in self.bench.groups)

    def _depend(self, coefficients: Mapping[str, Quantity], group: Group) -> Iterator[_Dependence]:
        architecture = self.bench.architecture
        base = group.stack.components(self.bench.under(coefficients, group), architecture)
        for number, one in enumerate(self.parameters):
            low, high = one.bounds
            changes = np.zeros(base.shape[1], dtype=bool)
            for u in (max(-PROBE, low), min(PROBE, high)):
                moved = group.stack.components(self._moved(coefficients, number, u, group), architecture)
                changes |= (moved != base).any(axis=0)
            if changes.any():
                is_whole = len(group.stack.blocks) > 1 or changes.mean() > PARTIAL_SHARE
                kernels = np.arange(len(changes)) if is_whole else np.flatnonzero(changes)
                stack = group.stack if is_whole else group.stack.only(kernels)
                yield _Dependence(number=number, kernels=kernels, stack=stack)
