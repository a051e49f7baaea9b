"""Rows of a training answer: time, energy and memory of each configuration, composed from runs of one device.

    time   = last + (m - 1) before + (p - 1) before          slowest stage; the last term is the bubble
    energy = last + (m - 1) before + static power x waiting  mean over stages
    bubble = (p - 1) / (m + p - 1) of the passes

`m` counts micro-batches, `p` stages. `last` is the pass that exchanges gradients and updates weights; `before` only
accumulates gradients. Only the last stage computes logits. Activations are sent between stages during computation.

Source: Huang et al., GPipe, 2019; Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM, 2021 (one forward, one backward; a stage holds the activations of at most as many micro-batches as there
are stages).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.domain import find_unknown, take
from joulemap.system import frozen
from joulemap.wing.train.generated.row import TrainedStep, TrainingRow
from joulemap.wing.train.training.memory import Memory

OK: Final = "ok"
REFUSED: Final = "unsupported"
TOO_LARGE: Final = "does not fit"

MILLION: Final = 1e6

HALF_WIDTHS: Final = ("latency_half_width", "energy_half_width", "usd_half_width")
"""Columns that a lower bound leaves empty, because an interval has two sides."""

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s")


def form_row(
    identity: dict[str, Any],
    memory: Memory,
    capacity: float,
    whole: WholeStep | None,
    alone: TrainedStep | None,
    *,
    tokens: int,
    samples: float,
) -> TrainingRow:
    """Return the row of a configuration; `identity` has its identifying fields.

    `samples` is the total to train on, epochs included; 0 for none. `whole` is None if the step does not run.
    """
    filled: dict[str, Any] = {
        "weight_bytes": memory.weights,
        "gradient_bytes": memory.gradients,
        "state_bytes": memory.states,
        "activation_bytes": memory.activations,
        "reserved_bytes": memory.reserved,
        "capacity_bytes": capacity,
        "memory_fraction": memory.total / capacity,
    }
    if whole is None:
        return TrainingRow(**identity, **filled, **find_unknown(TrainingRow), way="", price_text="", is_available=False)
    step = whole.last
    rate = identity["batch"] / whole.step_s
    parts = samples / MILLION
    fields = {**take(TrainingRow, whole, step), **whole.phases, **identity, **filled}
    fields |= _spend(whole, identity["device_count"] * step.batch / identity["batch"], parts)
    if alone is not None:
        fields["exchange_seen_fraction"] = min(step.exchange_s / max(alone.exchange_s, 1e-15), 1.0)
    return TrainingRow(
        **{
            **find_unknown(TrainingRow),
            **fields,
            "samples_per_s": rate,
            "tokens_per_s": rate * tokens if tokens else None,
            "utilization_fraction": 2.0 * whole.mac_count / whole.step_s / step.peak_ops_per_s,
            "memory_bound_fraction": step.memory_bound_s / step.step_s,
            "sample_j": whole.device_j * identity["device_count"] / identity["batch"],
            "device_power_w": whole.device_j / whole.step_s,
            "exchange_alone_s": None if alone is None else alone.exchange_s,
            "total_s": samples / rate if samples else None,
            **(dict.fromkeys(HALF_WIDTHS) if identity["is_lower_bound"] else {}),
        }
    )


def _spend(whole: WholeStep, share: float, parts: float) -> dict[str, Any]:
    """Return the cost and carbon of a million samples, and of `parts` million.

    `share` is device time per sample, in units of the time that the last micro-batch takes per sample. Money scales
    with time; energy and carbon scale with joules.
    """
    step = whole.last
    longer, more = whole.step_s / step.step_s, whole.device_j / step.step_j

    def of(value: float | None, times: float) -> float | None:
        return None if value is None or not times else value * share * times

    return {
        "usd_per_million": of(step.usd_per_million, longer),
        "usd_half_width": step.usd_half_width,
        "gco2_per_million": of(step.gco2_per_million, more),
        "way": step.way or "",
        "price_text": step.price_text or step.unlike_price_text,
        "total_kwh": of(step.kwh_per_million, more * parts),
        "total_usd": of(step.usd_per_million, longer * parts),
        "total_gco2": of(step.gco2_per_million, more * parts),
    }


@frozen(kw_only=True)
class WholeStep:
    """Step on one device, averaged over all devices."""

    last: TrainedStep
    """Run of the last micro-batch on the slowest stage."""
    step_s: float
    device_j: float
    mac_count: float
    """MACs of the forward and backward pass per device."""
    phases: Mapping[str, Any]
    """Phase -> its time, micro-batches included."""
    bubble_s: float | None
    """Pipeline bubble; None for a single stage."""


def add_up_step(parts: Mapping[str, TrainedStep], *, accumulate: int, stages: int, static_w: float) -> WholeStep:
    """Return a step of several micro-batches and stages from its runs, named as in `TrainingStep.plans`."""
    last, before = parts["last"], parts.get("before")
    more = accumulate - 1
    plain: dict[str, float] = {name: getattr(last, name) for name in PHASES}
    joules, macs = last.step_j, float(last.model_mac_count)
    if before is None:
        return WholeStep(last=last, step_s=last.step_s, device_j=joules, mac_count=macs, phases=plain, bubble_s=None)
    bubble_s = (stages - 1) * before.step_s
    step_s = last.step_s + more * before.step_s + bubble_s
    joules = joules + more * before.step_j + static_w * bubble_s
    if "inner" in parts:
        inner, inner_before = parts["inner"], parts["inner_before"]
        own_s = inner.step_s + more * inner_before.step_s
        other_j = inner.step_j + more * inner_before.step_j + static_w * max(step_s - own_s, 0.0)
        joules = (joules + (stages - 1) * other_j) / stages
        macs = (macs + (stages - 1) * float(inner.model_mac_count)) / stages
    return WholeStep(
        last=last,
        step_s=step_s,
        device_j=joules,
        mac_count=accumulate * macs,
        phases={name: value + more * getattr(before, name) for name, value in plain.items()},
        bubble_s=bubble_s if stages > 1 else None,
    )


def find_fullest_memory(first: Memory, last: Memory, stages: int) -> Memory:
    """Return the memory of the fullest device; the first stage holds activations of one micro-batch per stage."""
    filled = attrs.evolve(first, activations=first.activations * stages)
    return max(filled, last, key=lambda one: one.total)
