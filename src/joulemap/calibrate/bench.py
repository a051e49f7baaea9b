"""All observations of one hardware, ready to be predicted again and again under changed coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.calibrate.observation import Observation
from joulemap.calibrate.stack import Part, Stack, stack
from joulemap.domain.calibration import EnergyScale
from joulemap.domain.hardware import Hardware
from joulemap.domain.quantity import Quantity
from joulemap.model.architecture import Architecture, find_architecture
from joulemap.model.kernel import KernelColumns, form_kernels
from joulemap.model.placement import Placement
from joulemap.model.workload import Booleans, Floats, Integers, WorkloadColumns

GAP: Final = "kernel_gap"
"""The coefficient of a class that a profile of kernels does not see."""


@attrs.frozen(kw_only=True, eq=False)
class Group:
    """Observations that one placement serves."""

    power_mode: str
    includes_gap: bool
    rows: Integers
    """Which of the bench's."""
    stack: Stack


@attrs.frozen(kw_only=True, eq=False)
class Energies:
    """Energy of each row at the prices of the class, divided by what a calibration may scale."""

    scaled_j: Floats
    """A line per row, a column per energy scale, static power not among them."""
    rest_j: Floats
    """Of actions without a scale."""
    static_w: Floats
    """Static power of each row's power mode, without a calibration."""
    owns_static: Booleans
    """Rows whose power mode states a static power of its own, which no calibration changes."""
    tdp_w: Floats

    def dynamic_j(self, factors: Floats) -> Floats:
        """Return the dynamic energy of each row at these factors of the scales."""
        total: Floats = self.scaled_j @ factors + self.rest_j
        return total

    def static_at(self, factor: float) -> Floats:
        """Return the static power of each row at this factor."""
        return np.where(self.owns_static, self.static_w, self.static_w * factor)


@attrs.frozen(kw_only=True, eq=False)
class Bench:
    """Observations of one hardware."""

    hardware: Hardware
    """Before any calibration, at the default power mode."""
    architecture: Architecture[Placement]
    observations: tuple[Observation, ...]
    groups: tuple[Group, ...]
    is_run: Booleans
    """Rows that cover a whole run: only those meet the power cap."""

    @property
    def row_count(self) -> int:
        """Observations."""
        return len(self.observations)

    def seconds(self, coefficients: Mapping[str, Quantity], group: Group) -> Floats:
        """Return the latency of a group's rows at the full clock, under all coefficients of the hardware."""
        return group.stack.seconds(self.under(coefficients, group), self.architecture)

    def energies(self, values: Mapping[str, float], scales: Sequence[EnergyScale]) -> Energies:
        """Return what the dynamic energy of every row is made of."""
        coefficients = self.coefficients(values)
        columns = {action: number for number, scale in enumerate(scales) for action in scale.actions}
        joules = np.zeros((self.row_count, len(scales) + 1))
        static, tdp = np.zeros(self.row_count), np.zeros(self.row_count)
        own = np.zeros(self.row_count, dtype=bool)
        for group in self.groups:
            hardware = self.under(coefficients, group)
            joules[group.rows] = group.stack.joules(hardware, self.architecture, columns)
            static[group.rows] = hardware.static_power.value
            tdp[group.rows] = hardware.tdp.value
            own[group.rows] = any(
                mode.name == group.power_mode and mode.static_power is not None for mode in hardware.power_modes
            )
        return Energies(scaled_j=joules[:, :-1], rest_j=joules[:, -1], static_w=static, owns_static=own, tdp_w=tdp)

    def coefficients(self, values: Mapping[str, float]) -> dict[str, Quantity]:
        """Return all coefficients of the hardware, with these values in place of its own."""
        own = self.hardware.coefficients
        moved = {name: attrs.evolve(own[name], value=value) for name, value in values.items()}
        return {**own, **moved}

    def clock(self, seconds: Floats, dynamic_j: Floats, static_w: Floats, tdp_w: Floats) -> Floats:
        """Return the share of the clock at which each run stays within the cap; 1 for what is part of a run."""
        budget = (tdp_w - static_w) * seconds
        allowed = np.divide(budget, dynamic_j, out=np.ones_like(budget), where=dynamic_j > 0.0)
        return np.where(self.is_run, np.minimum(1.0, allowed), 1.0)

    def under(self, coefficients: Mapping[str, Quantity], group: Group) -> Hardware:
        """Return the hardware as a group of rows sees it: with all these coefficients, at its power mode."""
        if not group.includes_gap and GAP in coefficients:
            coefficients = {**coefficients, GAP: attrs.evolve(coefficients[GAP], value=0.0)}
        return attrs.evolve(self.hardware, coefficients=coefficients).in_mode(group.power_mode)


def make_bench(hardware: Hardware, observations: Sequence[Observation]) -> Bench:
    """Return a bench of these observations, in their order."""
    architecture = find_architecture(hardware.architecture)
    formed: dict[tuple[int, str, str], KernelColumns] = {}
    grouped: dict[tuple[str, str, str, bool], list[int]] = {}
    for row, one in enumerate(observations):
        settings = one.configuration
        key = (settings.power_mode, settings.precision, settings.runtime, one.includes_gap)
        grouped.setdefault(key, []).append(row)
    groups = []
    for (mode, precision, runtime, includes_gap), rows in grouped.items():
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
            Part(kernels=formed[key_of_work, precision, runtime], covered=tuple(those))
            for key_of_work, those in covered.items()
        ]
        groups.append(
            Group(
                power_mode=mode,
                includes_gap=includes_gap,
                rows=np.array(rows, dtype=np.int64),
                stack=stack(parts, len(rows), hardware.in_mode(mode), architecture),
            )
        )
    return Bench(
        hardware=hardware,
        architecture=architecture,
        observations=tuple(observations),
        groups=tuple(groups),
        is_run=np.array([one.is_run for one in observations], dtype=bool),
    )
