"""Solve penalized robust least squares within bounds.

    minimize  sum_i w_i rho(((ln predicted_i - ln measured_i) / s)^2) + sum_j u_j^2      rho(z) = 2 (sqrt(1 + z) - 1)

The loss of an error is quadratic within s and linear beyond. A row that contradicts all others therefore has bounded
influence. Each step solves a reweighted least-squares problem that is tangent to the sum at the current position. It
omits every u that is at a bound. The penalty keeps the problem well posed.

Source: damped steps of Levenberg and Marquardt with reweighting, soft L1 loss as in Triggs et al., Bundle Adjustment: A
Modern Synthesis, 2000, Broyden's update between derivatives. scipy's least_squares (1.17) is not used: it stalls if a
coefficient starts on its bound, as an efficiency of 1 does (trf), or does not end (dogbox).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.workload import Floats

SCALE: Final = 0.1
"""s: typical error of a good prediction, in natural logarithms."""

TOLERANCE: Final = 1e-6
"""Relative decrease of the minimized sum below which the fit ends."""

FOLLOWED_TOLERANCE: Final = 1e-3
"""Relative decrease of the minimized sum below which approximate derivatives (Broyden's update) are computed anew."""

MOST_STEPS: Final = 60
FIRST_DAMPING: Final = 1e-3
SMALLEST_DAMPING: Final = 1e-6
MOST_TRIALS: Final = 8
"""Maximum damping values tried for one step."""

DAMPING_FACTOR: Final = 5.0

Predict = Callable[[Floats], Floats]
"""Function from the positions of free parameters to the natural logarithm of every row's prediction."""
Slope = Callable[[Floats], NDArray[np.float64]]
"""Function from their positions to the derivatives of `Predict`: one row per row, one column per parameter."""


def add_parts(columns: NDArray[np.float64], fixed: Floats, spreads: Floats) -> tuple[Predict, Slope]:
    """Return two functions of positions: the logarithm of each row's sum of `columns` x exp(spread x u) and `fixed`,
    and its derivatives.
    """

    def parts(position: Floats) -> NDArray[np.float64]:
        return columns * np.exp(spreads * position)

    def predict(position: Floats) -> Floats:
        total: Floats = np.log(parts(position).sum(axis=1) + fixed)
        return total

    def slope(position: Floats) -> NDArray[np.float64]:
        each = parts(position)
        slopes: NDArray[np.float64] = each * spreads / (each.sum(axis=1) + fixed)[:, None]
        return slopes

    return predict, slope


def minimize(
    predict: Predict,
    slope: Slope,
    *,
    measured: Floats,
    weight: Floats,
    start: Floats,
    bounds: tuple[Floats, Floats],
    known_slope: NDArray[np.float64] | None = None,
    tolerance: float = TOLERANCE,
) -> Floats:
    """Return the position of the minimum; `measured` are natural logarithms, and rows of weight 0 are ignored.

    Slopes are computed rarely (the first may be given). In between, derivatives are updated from the steps. The fit
    ends when a step from a computed slope lowers the sum by less than `tolerance`, or is predicted to. If `known_slope`
    is given, the start is assumed to be so near that updated derivatives count as computed.
    """
    used = weight > 0.0
    if not len(start):
        return start
    counted, logarithm = weight[used], measured[used]
    low, high = bounds

    def errors(position: Floats) -> Floats:
        scaled: Floats = (predict(position)[used] - logarithm) / SCALE
        return scaled

    position = np.clip(start, low, high)
    error = errors(position)
    cost = _cost(error, counted, position)
    derivative = None if known_slope is None else known_slope[used] / SCALE
    is_taken, damping = derivative is not None, FIRST_DAMPING
    for _ in range(MOST_STEPS):
        if derivative is None:
            derivative, is_taken = slope(position)[used] / SCALE, True
            damping = FIRST_DAMPING
        is_final = is_taken or known_slope is not None
        least = cost * (1.0 - (tolerance if is_final else FOLLOWED_TOLERANCE))
        for _ in range(MOST_TRIALS):
            moved = np.clip(position + _step(error, derivative, counted, position, bounds, damping), low, high)
            expected = error + _product(derivative, moved - position)
            reached = cost
            if _cost(expected, counted, moved) > least:
                break
            moved_error = errors(moved)
            reached = _cost(moved_error, counted, moved)
            if reached < cost:
                break
            damping *= DAMPING_FACTOR
        if reached < cost:
            step = moved - position
            derivative = derivative + np.outer(moved_error - expected, step) / (step**2).sum()
            position, error, cost = moved, moved_error, reached
            damping = max(damping / DAMPING_FACTOR, SMALLEST_DAMPING)
        if reached > least:
            if is_final:
                break
            derivative = None
        is_taken = False
    return position


def information(
    predicted: Floats, slope: NDArray[np.float64], *, measured: Floats, weight: Floats
) -> NDArray[np.float64]:
    """Return how much the rows determine each position u: 1 minus the variance of u given the rows, from 0 to 1.

    `predicted` and `measured` are natural logarithms.
    """
    used = weight > 0.0
    error = (predicted - measured)[used] / SCALE
    derivative = slope[used] / SCALE
    pull = weight[used] / np.sqrt(1.0 + error**2)
    curvature = np.einsum("ij,i,ik->jk", derivative, pull, derivative, optimize=False)
    variance = np.diag(np.linalg.inv(curvature + np.eye(len(curvature))))
    determined: NDArray[np.float64] = np.clip(1.0 - variance, 0.0, 1.0)
    return determined


def _cost(error: Floats, weight: Floats, position: Floats) -> float:
    return float((weight * 2.0 * (np.sqrt(1.0 + error**2) - 1.0)).sum() + (position**2).sum())


def _step(
    error: Floats,
    derivative: NDArray[np.float64],
    weight: Floats,
    position: Floats,
    bounds: tuple[Floats, Floats],
    damping: float,
) -> Floats:
    """Return the damped step of the reweighted problem; every u that is at a bound stays there."""
    pull = weight / np.sqrt(1.0 + error**2)
    gradient = _product(derivative.T, pull * error) + position
    low, high = bounds
    free = ~(((position <= low) & (gradient > 0.0)) | ((position >= high) & (gradient < 0.0)))
    reduced = derivative[:, free]
    curvature = np.einsum("ij,i,ik->jk", reduced, pull, reduced, optimize=False)
    damped = curvature + np.diag(1.0 + damping * (1.0 + np.diag(curvature)))
    step = np.zeros_like(gradient)
    step[free] = -np.linalg.solve(damped, gradient[free])
    return step


def _product(matrix: NDArray[np.float64], vector: Floats) -> Floats:
    """Multiply a matrix by a vector without BLAS, because its threads would take longer than the multiplication."""
    product: Floats = np.einsum("ij,j->i", matrix, vector, optimize=False)
    return product
