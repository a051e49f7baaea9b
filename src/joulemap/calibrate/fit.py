"""Fit latency, then energy at that latency, and repeat while the power cap changes clocks; cross-validate by family.

    latency = kernels at the fitted coefficients x slowdown      at the clock that the last energies allow under the cap
    energy  = sum over scales of factor x joules + rest + static power x latency

The fit ends at the optimum for its rows. The values in use are then shrunk by the credibility Z of the rows:

    u used = Z u fitted
    weight of the data = Z (1 - variance of u given the rows)      without rows, the variance is 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.calibrate.bench import Bench, Energies, LatencyModel, Throttle
from joulemap.calibrate.free_parameter import FreeParameter, bounds_of, rounded, values_at
from joulemap.calibrate.observation import balance, credibility, divide
from joulemap.calibrate.solve import TOLERANCE, Predict, Slope, add_parts, information, minimize
from joulemap.physics.record.calibration import EnergyScale
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import define, frozen

PASSES: Final = 3
"""Maximum rounds of latency and energy fits."""

NEAR_TOLERANCE: Final = 1e-5
"""Relative decrease of the loss at which a cross-validation fit ends; 1e-8 gives the same errors."""

CLOCK_TOLERANCE: Final = 1e-3
"""Relative change of an observation's clock below which no further round is made."""


@frozen(kw_only=True, eq=False)
class Target:
    """Free parameters, and the bench of observations to fit them to."""

    bench: Bench
    coefficients: tuple[FreeParameter, ...]
    scales: tuple[EnergyScale, ...]
    """Energy scales at factor 1, including static power."""
    factors: tuple[FreeParameter, ...]
    """Factor of each energy scale."""

    @property
    def dynamic(self) -> list[int]:
        """Indices of the scales other than static power."""
        return [number for number, scale in enumerate(self.scales) if STATIC_ACTION not in scale.actions]

    @property
    def static(self) -> int | None:
        """Index of the scale of static power; None if it is not fitted."""
        return next((number for number, scale in enumerate(self.scales) if STATIC_ACTION in scale.actions), None)


@frozen(kw_only=True, eq=False)
class Solution:
    """Positions of all free parameters, in standard deviations from their defaults."""

    coefficients: Floats
    factors: Floats


@frozen(kw_only=True, eq=False)
class Prediction:
    """Predicted latency and energy of every observation."""

    latency_s: Floats
    energy_j: Floats


@define(eq=False)
class Fitter:
    """Fits the parameters of a target to any subset of the target's observations."""

    target: Target
    model: LatencyModel = attrs.field(init=False)
    measured_s: Floats = attrs.field(init=False)
    """Measured latency of each observation in seconds; NaN if not measured."""
    measured_j: Floats = attrs.field(init=False)
    _known: dict[bytes, Energies] = attrs.field(factory=dict, init=False)
    """Cached energies at the coefficients that were evaluated last."""

    def __attrs_post_init__(self) -> None:
        observations = self.target.bench.observations
        self.model = LatencyModel(bench=self.target.bench, parameters=self.target.coefficients)
        self.measured_s = np.array([np.nan if one.latency_s is None else one.latency_s for one in observations])
        self.measured_j = np.array([np.nan if one.energy_j is None else one.energy_j for one in observations])

    def start(self) -> Solution:
        """Return the class defaults as a solution."""
        return Solution(
            coefficients=np.zeros(len(self.target.coefficients)), factors=np.zeros(len(self.target.factors))
        )

    def fit(self, rows: Booleans, start: Solution, known_slope: NDArray[np.float64] | None = None) -> Solution:
        """Fit the parameters to the observations in `rows`; return the solution.

        `known_slope` holds the derivatives at `start`. If given, `start` must be near the optimum: the derivatives are
        then reused, and the tolerance is coarser.
        """
        observations = self.target.bench.observations
        latency_weight = balance(observations, rows & np.isfinite(self.measured_s))
        energy_weight = balance(observations, rows & np.isfinite(self.measured_j))
        solution = start
        slowdown = self._throttle(solution).slowdown
        for _ in range(PASSES):
            position = minimize(
                self.model.predict,
                self.model.slope,
                measured=np.log(self.measured_s / slowdown),
                weight=latency_weight,
                start=solution.coefficients,
                bounds=bounds_of(self.target.coefficients),
                known_slope=known_slope,
                tolerance=TOLERANCE if known_slope is None else NEAR_TOLERANCE,
            )
            solution = self._fit_energy(Solution(coefficients=position, factors=solution.factors), energy_weight)
            last, slowdown = slowdown, self._throttle(solution).slowdown
            if np.allclose(slowdown, last, rtol=CLOCK_TOLERANCE, atol=0.0):
                break
        return solution

    def _fit_energy(self, solution: Solution, weight: Floats) -> Solution:
        if not (weight > 0.0).any():
            return solution
        predict, slope = self._energy_model(solution)
        factors = minimize(
            predict,
            slope,
            measured=np.log(self.measured_j),
            weight=weight,
            start=solution.factors,
            bounds=bounds_of(self.target.factors),
        )
        return Solution(coefficients=solution.coefficients, factors=factors)

    def _energy_model(self, solution: Solution) -> tuple[Predict, Slope]:
        """Return two functions of the scale positions: the logarithm of each row's energy, and its derivatives."""
        energies = self._energies(solution)
        throttle = self._throttle(solution)
        seconds = self._seconds(solution) * throttle.slowdown
        seconds = np.where(np.isfinite(self.measured_s), self.measured_s, seconds)
        columns = self._joules(energies, throttle, seconds)
        fixed = energies.rest_j(throttle.voltage_factor) + np.where(
            energies.owns_static, energies.static_w * seconds, 0.0
        )
        if self.target.static is None:
            fixed = fixed + np.where(energies.owns_static, 0.0, energies.static_w * seconds)
        return add_parts(columns, fixed, np.array([one.spread for one in self.target.factors]))

    def _joules(self, energies: Energies, throttle: Throttle, seconds: Floats) -> NDArray[np.float64]:
        """Return the energy of each observation (row) by scale (column), with every scale at 1."""
        columns = np.zeros((len(seconds), len(self.target.scales)))
        columns[:, self.target.dynamic] = energies.scaled_j(throttle.voltage_factor)
        if self.target.static is not None:
            columns[:, self.target.static] = np.where(energies.owns_static, 0.0, energies.static_w * seconds)
        return columns

    def _seconds(self, solution: Solution) -> Floats:
        seconds: Floats = np.exp(self.model.predict(solution.coefficients))
        return seconds

    def _energies(self, solution: Solution) -> Energies:
        key = solution.coefficients.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = self._count(solution)
        return self._known[key]

    def _count(self, solution: Solution) -> Energies:
        scales = [self.target.scales[number] for number in self.target.dynamic]
        return self.target.bench.energies(values_at(self.target.coefficients, solution.coefficients), scales)

    def _factors(self, solution: Solution) -> tuple[Floats, float]:
        """Return the factor of each scale except static power, and the factor of static power."""
        values = list(values_at(self.target.factors, solution.factors).values())
        static = 1.0 if self.target.static is None else values[self.target.static]
        return np.array([values[number] for number in self.target.dynamic]), static

    def _throttle(self, solution: Solution) -> Throttle:
        energies = self._energies(solution)
        factors, static = self._factors(solution)
        return self.target.bench.throttle(energies, factors, energies.static_at(static))

    def predict(self, solution: Solution) -> Prediction:
        """Predict latency and energy of every observation for a solution."""
        energies = self._energies(solution)
        factors, static = self._factors(solution)
        static_w = energies.static_at(static)
        throttle = self.target.bench.throttle(energies, factors, static_w)
        latency_s = self._seconds(solution) * throttle.slowdown
        dynamic_j = energies.scaled_j(throttle.voltage_factor) @ factors + energies.rest_j(throttle.voltage_factor)
        return Prediction(latency_s=latency_s, energy_j=dynamic_j + static_w * latency_s)

    def shrink(self, solution: Solution, rows: Booleans) -> Solution:
        """Shrink a solution towards the class defaults by the credibility of the rows that it was fitted to."""
        latency, energy = self.credibility(rows)
        return Solution(coefficients=latency * solution.coefficients, factors=energy * solution.factors)

    def credibility(self, rows: Booleans) -> tuple[float, float]:
        """Return the credibility of these rows, for latencies and for energies."""
        observations = self.target.bench.observations
        return (
            credibility(observations, rows & np.isfinite(self.measured_s)),
            credibility(observations, rows & np.isfinite(self.measured_j)),
        )

    def data_weights(self, solution: Solution) -> tuple[Floats, Floats]:
        """Return the weight of the measurements, from 0 to 1, in each coefficient and in each energy scale of a
        solution.
        """
        observations = self.target.bench.observations
        all_rows = np.ones(len(observations), dtype=bool)
        latency, energy = self.credibility(all_rows)
        has_latency, has_energy = np.isfinite(self.measured_s), np.isfinite(self.measured_j)
        coefficients, factors = np.zeros_like(solution.coefficients), np.zeros_like(solution.factors)
        if has_latency.any():
            coefficients = latency * information(
                self.model.predict(solution.coefficients),
                self.model.slope(solution.coefficients),
                measured=np.log(self.measured_s / self._throttle(solution).slowdown),
                weight=balance(observations, has_latency),
            )
        if has_energy.any():
            predict, slope = self._energy_model(solution)
            factors = energy * information(
                predict(solution.factors),
                slope(solution.factors),
                measured=np.log(self.measured_j),
                weight=balance(observations, has_energy),
            )
        return coefficients, factors

    def round_values(self, solution: Solution) -> Solution:
        """Round the values of a solution to the digits that a file keeps."""
        return Solution(
            coefficients=_round_positions(self.target.coefficients, solution.coefficients),
            factors=_round_positions(self.target.factors, solution.factors),
        )

    def cross_validate(self, solution: Solution, report: Callable[[str], None]) -> Prediction | None:
        """Predict each observation by a fit that holds out its model family; None if rows cannot be divided.

        Each fit starts at `solution` and is shrunk by the credibility of its own rows.
        """
        parts = divide(self.target.bench.observations)
        if len(parts) < 2:
            return None
        slope = self.model.slope(solution.coefficients)
        count = self.target.bench.row_count
        latency_s, energy_j = np.zeros(count), np.zeros(count)
        for number, (name, left_out) in enumerate(parts.items(), 1):
            report(f"leaving out {name} ({number} of {len(parts)}) …")
            prediction = self.predict(self.shrink(self.fit(~left_out, solution, slope), ~left_out))
            latency_s[left_out], energy_j[left_out] = prediction.latency_s[left_out], prediction.energy_j[left_out]
        return Prediction(latency_s=latency_s, energy_j=energy_j)


def _round_positions(parameters: Sequence[FreeParameter], position: Floats) -> Floats:
    kept = changed(parameters, position)
    return np.array([one.position(kept.get(one.name, one.default)) for one in parameters])


def changed(parameters: Sequence[FreeParameter], position: Floats) -> dict[str, float]:
    """Return name -> value of the parameters that differ from their defaults, rounded as in a file."""
    values = {name: rounded(value) for name, value in values_at(parameters, position).items()}
    return {one.name: values[one.name] for one in parameters if values[one.name] != rounded(one.default)}
