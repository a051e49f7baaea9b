"""Latency of every row as a function of the coefficients, and its slope by finite differences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.calibrate.bench import Bench, Group
from joulemap.calibrate.parameter import Parameter, values_at
from joulemap.columns.workload import Floats
from joulemap.domain.quantity import Quantity

STEP: Final = 1e-4
"""Of the natural logarithm of a coefficient: large against rounding, small against where a tile or level gives way."""

PROBE: Final = 2.0
"""Standard deviations by which a coefficient is moved to find out whether a group of rows depends on it."""


@attrs.frozen(kw_only=True, eq=False, slots=False)
class LatencyModel:
    """Natural logarithms of latencies at the full clock, by position of the coefficients."""

    bench: Bench
    parameters: tuple[Parameter, ...]

    def predict(self, position: Floats) -> Floats:
        """Return the logarithm of each row's latency."""
        return self._at(position).copy()

    def slope(self, position: Floats) -> NDArray[np.float64]:
        """Return its derivatives: a line per row, a column per parameter; a row is only moved by what it depends on."""
        base = self._at(position)
        coefficients = self._coefficients(position)
        slopes = np.zeros((self.bench.row_count, len(self.parameters)))
        for group, relevant in zip(self.bench.groups, self._relevant, strict=True):
            for number in relevant:
                step = STEP / self.parameters[number].spread
                if position[number] + step > self.parameters[number].bounds[1]:
                    step = -step
                moved = self._moved(coefficients, number, float(position[number]) + step, group)
                slopes[group.rows, number] = (moved - base[group.rows]) / step
        return slopes

    def _at(self, position: Floats) -> Floats:
        key = position.tobytes()
        if key not in self._known:
            coefficients = self._coefficients(position)
            found = np.zeros(self.bench.row_count)
            for group in self.bench.groups:
                found[group.rows] = np.log(self.bench.seconds(coefficients, group))
            self._known.clear()
            self._known[key] = found
        return self._known[key]

    def _coefficients(self, position: Floats) -> dict[str, Quantity]:
        return self.bench.coefficients(values_at(self.parameters, position))

    def _moved(self, coefficients: Mapping[str, Quantity], number: int, u: float, group: Group) -> Floats:
        """Return the logarithms of a group's latencies with one parameter elsewhere."""
        one = self.parameters[number]
        changed = {**coefficients, one.name: attrs.evolve(coefficients[one.name], value=one.value(u))}
        found: Floats = np.log(self.bench.seconds(changed, group))
        return found

    @cached_property
    def _known(self) -> dict[bytes, Floats]:
        return {}

    @cached_property
    def _relevant(self) -> tuple[tuple[int, ...], ...]:
        """Per group: the parameters that change any of its rows, moved far to either side."""
        coefficients = self._coefficients(np.zeros(len(self.parameters)))
        found = []
        for group in self.bench.groups:
            base = np.log(self.bench.seconds(coefficients, group))
            numbers = []
            for number, one in enumerate(self.parameters):
                low, high = one.bounds
                sides = (u for u in (max(-PROBE, low), min(PROBE, high)) if u)
                if any(not np.array_equal(self._moved(coefficients, number, u, group), base) for u in sides):
                    numbers.append(number)
            found.append(tuple(numbers))
        return tuple(found)
