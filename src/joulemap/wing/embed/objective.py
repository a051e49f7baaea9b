"""Objective for Optuna: energy per inference of the model that a trial builds, under a latency limit.

Interface of Optuna 5.0.0: an objective takes a trial and returns a number; `Trial.set_constraint(name, value)` marks a
trial as infeasible if the value is above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from joulemap.prediction import check_names
from joulemap.system import UnsupportedError, UsageError
from joulemap.wing.embed.cost import predict_cost, read_limit

if TYPE_CHECKING:
    from optuna import Trial

LATENCY: Final = "latency"
"""Name of the constraint, whose value is the logarithm of latency over limit."""

UNABLE: Final = 50.0
"""Value of the constraint for a model that the chip cannot run: far beyond any latency."""


def make_objective(
    build: Callable[[Trial], object],
    on: str,
    *,
    latency: str,
    precision: str = "bf16",
    batch: int | None = None,
    runtime: str = "fused",
) -> Callable[[Trial], float]:
    """Return an objective to minimize: joules per inference on a chip of the model that `build` makes for a trial.

    A model is a pair (module, example inputs), a built-in name or a `Workload`. A trial that takes longer than
    `latency`, such as `5 ms`, or that the chip cannot run is infeasible; the latter has an infinite energy. Its
    attributes `latency_s`, `energy_per_inference_low_j` and `energy_per_inference_high_j` have the other numbers.

    Raises UsageError for a limit that cannot be read, or a chip that is no text.
    """
    check_names(on=on)
    limit_s = read_limit("latency", latency, "s")
    if limit_s is None:
        raise UsageError('state a limit: latency="5 ms"')

    def predict_energy(trial: Trial) -> float:
        try:
            cost = predict_cost(build(trial), on, precision=precision, batch=batch, runtime=runtime)
        except UnsupportedError as error:
            trial.set_constraint(LATENCY, UNABLE)
            trial.set_user_attr("refusal", str(error))
            return math.inf
        trial.set_constraint(LATENCY, math.log(cost.latency_s / limit_s))
        for name in ("latency_s", "energy_per_inference_low_j", "energy_per_inference_high_j"):
            trial.set_user_attr(name, getattr(cost, name))
        return cost.energy_per_inference_j

    return predict_energy
