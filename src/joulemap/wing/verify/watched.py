"""Modules of a model that was watched: what was measured in each and below it, beside what is predicted."""

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
    """A module with all that runs inside it, per call of the model: measured here, and predicted."""

    module: str = told("its path, that of its first use where several hold it; empty for the model itself")
    depth: int = told("modules that it is inside of")
    output_shape: str = told("of the last operator that runs inside it; empty where none does")
    weight_count: int = told("elements of the parameters and buffers that its operators read, each once", is_wide=True)
    mac_count: int = told("multiply-accumulates", is_wide=True)
    call_count: float = told("times that it was called itself in a call of the model")
    measured_latency_s: float = told("here, of modules that were timed", "s")
    own_measured_latency_s: float = told("of that, in no module that it called", "s")
    predicted_latency_s: float | None = told("on the hardware; None without a prediction", "s")
    predicted_energy_j: float | None = told("on the hardware", "J")
    predicted_energy_fraction: float | None = told("of the model's")
    own_energy_fj: int | None = told("of the operators that it calls itself, exact", "fJ", is_wide=True)
    measured_backward_s: float = told("here, of the gradients of what runs inside it, 0 without a backward pass", "s")
    predicted_backward_s: float | None = told("what a training step takes more; None where none was predicted", "s")
    predicted_backward_j: float | None = told("likewise", "J")


def join(
    paths: Sequence[str], calls: Sequence[TimedCall], found: ModulesAnswer | None, step: ModulesAnswer | None
) -> Iterator[WatchedModule]:
    """Yield each module that was called, or runs something as predicted, with what was measured in and below it.

    `found` is the forward pass as predicted and `step` a training step, of which the forward pass is the same.
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
    """Return what a step takes of a module beside its forward pass, the loss and the optimizer."""
    return max(0.0, getattr(whole, name) - sum(getattr(one, name) for one in less)) if whole else 0.0


def _gather(own: Mapping[str, float]) -> dict[str, float]:
    """Return what is in each module and below it."""
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
