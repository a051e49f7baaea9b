"""Rows of a watched model's modules: measured and predicted time, each including the modules below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from joulemap.answer.computed import told
from joulemap.domain.workload import OPTIMIZER
from joulemap.system.record import frozen
from joulemap.wing.train.training.forward import LOSS

if TYPE_CHECKING:
    from joulemap.answer.model import ModulesAnswer
    from joulemap.device.call import TimedCall
    from joulemap.row.model import ModulePart


@frozen(kw_only=True)
class WatchedModule:
    """Module with everything that runs inside it, per call of the model: measured here, and predicted."""

    module: str = told("path of the module, by its first use where shared; empty for the model itself")
    depth: int = told("number of enclosing modules")
    output_shape: str = told("output shape of the last operator inside it; empty where none runs")
    weight_count: int = told(
        "elements of the parameters and buffers that its operators read, counted once", is_wide=True
    )
    mac_count: int = told("multiply-accumulates", is_wide=True)
    call_count: float = told("direct calls of the module per call of the model")
    measured_latency_s: float = told("time measured here, modules below included", "s")
    own_measured_latency_s: float = told("time measured here outside the modules that it called", "s")
    predicted_latency_s: float | None = told("predicted time on the hardware; null without a prediction", "s")
    predicted_energy_j: float | None = told("predicted energy on the hardware", "J")
    predicted_energy_fraction: float | None = told("share of the model's predicted energy")
    own_energy_fj: int | None = told("exact predicted energy of the operators that it calls itself", "fJ", is_wide=True)
    measured_backward_s: float = told("backward time measured here; 0 without a backward pass", "s")
    predicted_backward_s: float | None = told("predicted backward time; null where no training step is predicted", "s")
    predicted_backward_j: float | None = told(
        "predicted backward energy; null where no training step is predicted", "J"
    )


def join(
    paths: Sequence[str], calls: Sequence[TimedCall], found: ModulesAnswer | None, step: ModulesAnswer | None
) -> Iterator[WatchedModule]:
    """Yield a row for each module that was called or has a predicted run.

    `found` is the predicted forward pass and `step` a predicted training step with the same forward pass.
    """
    own = _average([call.own_s for call in calls])
    counts = _average([call.counts for call in calls])
    within, backward = _gather(own), _gather(_average([call.backward_s for call in calls]))
    predicted = {row.module: row for row in found.modules} if found else {}
    whole = {row.module: row for row in step.modules} if step else {}
    beside = [whole[name] for name in (LOSS, OPTIMIZER) if name in whole and name not in predicted]
    for path in dict.fromkeys((*paths, *predicted)):
        row = predicted.get(path)
        if row is None and path not in within:
            continue
        less = [*([row] if row else []), *(beside if not path else [])]
        yield WatchedModule(
            module=path,
            depth=path.count(".") + 1 if path else 0,
            output_shape=row.output_shape if row else "",
            weight_count=row.weight_count if row else 0,
            mac_count=row.mac_count if row else 0,
            call_count=counts.get(path, 0.0),
            measured_latency_s=within.get(path, 0.0),
            own_measured_latency_s=own.get(path, 0.0),
            predicted_latency_s=row.latency_s if row else (0.0 if found else None),
            predicted_energy_j=row.energy_j if row else (0.0 if found else None),
            predicted_energy_fraction=row.energy_fraction if row else (0.0 if found else None),
            own_energy_fj=row.own_energy_fj if row else (0 if found else None),
            measured_backward_s=backward.get(path, 0.0),
            predicted_backward_s=_more(whole.get(path), less, "latency_s") if step else None,
            predicted_backward_j=_more(whole.get(path), less, "energy_j") if step else None,
        )


def _more(whole: ModulePart | None, less: Sequence[ModulePart], name: str) -> float:
    """Return a module's part of a training step, minus its forward pass, the loss and the optimizer."""
    return max(0.0, getattr(whole, name) - sum(getattr(one, name) for one in less)) if whole else 0.0


def _gather(own: Mapping[str, float]) -> dict[str, float]:
    """Return the sum over each module and the modules below it."""
    within: dict[str, float] = {}
    for path, seconds in own.items():
        parts = path.split(".") if path else []
        for depth in range(len(parts) + 1):
            inside = ".".join(parts[:depth])
            within[inside] = within.get(inside, 0.0) + seconds
    return within


def _average(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for one in parts:
        for path, value in one.items():
            sums[path] = sums.get(path, 0.0) + value
    return {path: value / len(parts) for path, value in sums.items()}
