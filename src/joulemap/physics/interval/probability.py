"""Closed forms: probabilities of logistic errors, and exponents of latency and energy in metrics.

The logarithm of a predicted value has a logistic error; h is the half-width of its 80 % interval. If its prediction is
`ahead` above a bound, the logarithm is above the bound with the probability

    1 / (1 + exp(-ln 9 x ahead / h))

Source: quantiles of the logistic distribution; an 80 % interval ends at ln(0.9 / 0.1) = ln 9 scales from the middle.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.physics.interval.error_scale import LOGISTIC, MOST_SURE, TOLD_APART
from joulemap.system.record import frozen

Floats = NDArray[np.float64]


@frozen
class Powers:
    """Exponents of latency and energy in a metric. They multiply the errors of latency and energy in the metric's
    logarithm.
    """

    latency: float
    energy: float

    def as_cost(self, *, is_higher_better: bool) -> Powers:
        """Return the exponents in a cost, where lower is better: with opposite signs if a higher metric is better."""
        return Powers(-self.latency, -self.energy) if is_higher_better else self


def probability_above(ahead: ArrayLike, half_width: ArrayLike, thin: ArrayLike = 0.0) -> Floats:
    """Return the probability that a logarithm exceeds a bound. `ahead` is the predicted logarithm minus the bound.

    A half-width of 0 or NaN means no error; the probability is then 0, 0.5 or 1. `thin` is the part of the half-width
    that numbers of one source add: a difference within it hangs on them, and is never surer than `MOST_SURE`.
    """
    ahead, half_width = np.asarray(ahead, dtype=float), np.asarray(half_width, dtype=float)
    has_error = half_width > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = -LOGISTIC * ahead / np.where(has_error, half_width, 1.0)
        certain = np.where(np.isnan(ahead), np.nan, np.heaviside(ahead, 0.5))
        probability = np.where(has_error, 1.0 / (1.0 + np.exp(exponent)), certain)
        return np.where(np.abs(ahead) < np.asarray(thin), np.clip(probability, 1.0 - MOST_SURE, MOST_SURE), probability)


def is_told_apart(probability: Floats) -> NDArray[np.bool_]:
    """Return whether one of two candidates is clearly better, given the probability that the first is better."""
    return np.asarray(np.fmax(probability, 1.0 - probability) >= TOLD_APART)


def probability_better(ratio: float, half_width: float) -> float:
    """Return the probability that a candidate is better, if it is predicted to be `ratio` times better."""
    return float(probability_above(math.log(ratio), half_width))
