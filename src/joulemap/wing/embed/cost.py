"""Cost of one configuration of a model, which adapters compare with limits."""

from __future__ import annotations

import math
from typing import Any

from joulemap.cli import read_quantity
from joulemap.physics import Workload
from joulemap.prediction import check_count, check_names, predict
from joulemap.show import show_interval
from joulemap.system import UnsupportedError, UsageError, frozen


@frozen(kw_only=True)
class InferenceCost:
    """Energy of one inference and latency of one batch, with their 80 % intervals."""

    model: str
    hardware: str
    precision: str
    batch: int
    """Inferences per batch."""
    runtime: str
    energy_per_inference_j: float
    energy_per_inference_low_j: float
    """Lower end of the interval; the energy itself where no errors are known."""
    energy_per_inference_high_j: float
    latency_s: float
    latency_low_s: float
    """Lower end of the interval; the latency itself where no errors are known."""
    latency_high_s: float

    @property
    def energy_text(self) -> str:
        """Energy per inference with its interval, for people."""
        return _show(self.energy_per_inference_j, self.energy_per_inference_high_j, "J")

    @property
    def latency_text(self) -> str:
        """Latency with its interval, for people."""
        return _show(self.latency_s, self.latency_high_s, "s")


def _show(value: float, high: float, unit: str) -> str:
    return show_interval(value, unit, math.log(high / value))


def read_model(model: object) -> str | Workload:
    """Return a model as `predict` takes it: a built-in name, a `Workload`, or a pair (module, example inputs), which
    is traced.

    Raises UsageError for anything else, MissingPackageError without torch, ModelError if a module cannot be traced.
    """
    if isinstance(model, str | Workload):
        return model
    if isinstance(model, tuple | list) and len(model) == 2:
        from joulemap.construct.held import request_module

        return request_module(*model)[1]
    raise UsageError(
        f"the model is of type {type(model).__name__}, expected a built-in name, a Workload or (module, inputs)"
    )


def read_limit(name: str, limit: object, unit: str) -> float | None:
    """Return a limit such as `40 mJ` in `unit`, None for an empty text or None.

    Raises UsageError for another text, and for a number, whose unit is unknown.
    """
    if limit is None or isinstance(limit, str):
        return read_quantity(name, limit or "", unit)
    number = f"{limit:g}" if isinstance(limit, (int, float)) and not isinstance(limit, bool) else "5"
    raise UsageError(f'{name} is {limit!r}, expected a text with a unit, such as "{number} m{unit}"')


def predict_cost(
    model: object, on: str, *, precision: str = "bf16", batch: int | None = None, runtime: str = "fused"
) -> InferenceCost:
    """Return the cost of a model on a chip; the batch size is that of the example inputs, or 1.

    A model is a built-in name, a `Workload`, or a pair (module, example inputs). Raises as `joulemap.predict` does,
    UsageError for several values of an argument, and UnsupportedError for a chip that cannot run the configuration.
    """
    check_names(on=on, precision=precision, runtime=runtime)
    work = read_model(model)
    if batch is None:
        batch = work.batch if isinstance(work, Workload) else 1
    batch = check_count("batch", batch)
    found = predict(work, on, precision=precision, batch=batch, runtime=runtime)
    if found.refusal:
        raise UnsupportedError(str(found.refusal), code=str(found.refusal_code))
    energy, latency = float(found.energy_j), float(found.latency_s)

    def end(value: Any, other: float) -> float:
        return other if math.isnan(value) else float(value)

    return InferenceCost(
        model=work if isinstance(work, str) else work.model,
        hardware=on,
        precision=precision,
        batch=batch,
        runtime=runtime,
        energy_per_inference_j=energy / batch,
        energy_per_inference_low_j=end(found.energy_low_j, energy) / batch,
        energy_per_inference_high_j=end(found.energy_high_j, energy) / batch,
        latency_s=latency,
        latency_low_s=end(found.latency_low_s, latency),
        latency_high_s=end(found.latency_high_s, latency),
    )
