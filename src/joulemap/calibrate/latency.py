"""Latency of every row as a function of the coefficients, and its slope by finite differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.calibrate.bench import Bench, Group
from joulemap.calibrate.parameter import Parameter, values_at
from joulemap.calibrate.stack import Stack
from joulemap.domain.hardware import Hardware
from joulemap.domain.quantity import Quantity
from joulemap.model.workload import Floats, Integers

STEP: Final = 1e-4
"""Of the natural logarithm of a coefficient: large against rounding, small against where a tile or level gives way."""

PROBE: Final = 2.0
"""Standard deviations by which a coefficient is moved to find out which kernels depend on it."""

WORTH_A_PART: Final = 0.7
"""Share of the kernels from which placing all of them is as fast."""


@attrs.frozen(kw_only=True, eq=False)
class _Dependence:
    """Kernels of a group that a parameter changes."""

    number: int
    """Of the parameter."""
    kernels: Integers
    """Which of the group's."""
    stack: Stack
    """Those alone."""


@attrs.frozen(kw_only=True, eq=False, slots=False)
class LatencyModel:
    """Natural logarithms of latencies at the full clock, by position of the coefficients."""

    bench: Bench
    parameters: tuple[Parameter, ...]

    def predict(self, position: Floats) -> Floats:
        """Return the logarithm of each row's latency."""
        coefficients = self._coefficients(position)
        found = np.zeros(self.bench.row_count)
        for group in self.bench.groups:
            found[group.rows] = np.log(self.bench.seconds(coefficients, group))
        return found

    def slope(self, position: Floats) -> NDArray[np.float64]:
        """Return its derivatives: a line per row, a column per parameter.

        A parameter is moved for the kernels alone that depend on it.
        """
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
        """Return the hardware as a group sees it with one parameter elsewhere."""
        one = self.parameters[number]
        changed = {**coefficients, one.name: attrs.evolve(coefficients[one.name], value=one.value(u))}
        return self.bench.under(changed, group)

    @cached_property
    def _dependences(self) -> tuple[tuple[_Dependence, ...], ...]:
        """Per group: the parameters that change any part of any kernel's time, moved far to either side."""
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
                is_whole = len(group.stack.blocks) > 1 or changes.mean() > WORTH_A_PART
                kernels = np.arange(len(changes)) if is_whole else np.flatnonzero(changes)
                stack = group.stack if is_whole else group.stack.only(kernels)
                yield _Dependence(number=number, kernels=kernels, stack=stack)
