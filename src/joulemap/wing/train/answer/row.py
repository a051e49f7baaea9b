"""Rows of training steps: each configuration's time, energy and memory, put together from runs of one device each.

    time   = last + (m - 1) before + (p - 1) before          the slowest stage; what it waits is the bubble
    energy = last + (m - 1) before + static power x waiting  of each stage, by the mean of all
    bubble = (p - 1) / (m + p - 1) of the passes

`last` is the pass that exchanges and changes weights, `before` one that adds its gradients to what is held. Every stage
but the last has no logits. What stages hand on is sent while others are computed.

Source: Huang et al., GPipe, 2019; Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM, 2021 (one forward, one backward; a stage holds the activations of at most as many small batches as there
are stages).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.answer.computed import find_unknown, take, told
from joulemap.system.record import frozen
from joulemap.wing.train.row import TrainedStep
from joulemap.wing.train.training.memory import Memory

OK: Final = "ok"
REFUSED: Final = "unsupported"
TOO_LARGE: Final = "does not fit"

MILLION: Final = 1e6

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s")


@frozen(kw_only=True)
class TrainingRow:
    """So many of a hardware that train at a batch; what is refused lacks what it would take."""

    label: str = told("hardware, with xN where N devices work together")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    device_count: int = told("devices that work together")
    precision: str = told("of activations and products")
    batch: int = told("samples, or sequences of a language model, of a step on all devices")
    micro_batch: int = told("of these, of one device at a time")
    status: str = told("ok, does not fit or unsupported")
    step_s: float | None = told("of a step", "s")
    latency_half_width: float | None = told("of the 80 % interval of its logarithm")
    samples_per_s: float | None = told("of all devices together", "1/s")
    tokens_per_s: float | None = told("the same, in tokens; null of what is no language model", "1/s")
    utilization_fraction: float | None = told(
        "of the peak: MACs of the forward pass and its gradients, without those that a mask hides or that are computed "
        "a second time (MFU)"
    )
    sample_j: float | None = told("of a sample, all devices together", "J")
    energy_half_width: float | None = told("of the 80 % interval of its logarithm")
    device_power_w: float | None = told("of one device", "W")
    forward_s: float | None = told("of a step the forward pass and the loss", "s")
    backward_s: float | None = told("of a step gradients", "s")
    again_s: float | None = told("of a step what is computed a second time", "s")
    exchange_s: float | None = told("of a step what devices exchange, as far as nothing hides it", "s")
    optimizer_s: float | None = told("of a step the optimizer", "s")
    bubble_s: float | None = told("of a step what a pipeline's stages wait while it fills and drains; null of one", "s")
    exchange_alone_s: float | None = told("what devices exchange with nothing hidden; null of one device", "s")
    exchange_seen_fraction: float | None = told("of that, what is not hidden; null of one device")
    weight_bytes: float = told("of one device, at the precision", "B")
    gradient_bytes: float = told("of one device", "B")
    state_bytes: float = told(
        "what the optimizer holds on one device, a copy of weights in single precision in it", "B"
    )
    activation_bytes: float = told("of one device: what gradients read, what is gathered, inputs", "B")
    capacity_bytes: float = told("of one device", "B")
    memory_fraction: float = told("of a device's memory that these take together; above 1 where they do not fit")
    fits_with: str = told("options with which it would fit where it does not; empty where none is known")
    usd_per_million: float | None = told("of a million samples, rented or bought as way says", "USD")
    usd_half_width: float | None = told("of the 80 % interval of its logarithm")
    gco2_per_million: float | None = told("CO2 of a million samples", "g")
    way: str = told("rented or bought: what is paid for; empty without a price")
    price_told: str = told("price of a device, who asks it, and when; empty without one")
    total_s: float | None = told("of all samples and epochs that are asked for; null where none are", "s")
    total_kwh: float | None = told("of them, idling and PUE in it", "kWh")
    total_usd: float | None = told("of them", "USD")
    total_gco2: float | None = told("CO2 of them", "g")
    is_available: bool = told("it can be bought or rented")
    reason: str = told("why it is refused; empty otherwise")
    run_id: int | None = told("run of one device")


def form_row(
    place: dict[str, Any],
    memory: Memory,
    capacity: float,
    whole: WholeStep | None,
    alone: TrainedStep | None,
    *,
    tokens: int,
    samples: float,
) -> TrainingRow:
    """Return the row of a configuration; `place` is what it is, `samples` what is learned from in all, 0 for none."""
    held: dict[str, Any] = {
        "weight_bytes": memory.weights,
        "gradient_bytes": memory.gradients,
        "state_bytes": memory.states,
        "activation_bytes": memory.activations,
        "capacity_bytes": capacity,
        "memory_fraction": memory.total / capacity,
    }
    if whole is None:
        return TrainingRow(**place, **held, **find_unknown(TrainingRow), way="", price_told="", is_available=False)
    step = whole.last
    rate = place["batch"] / whole.step_s
    parts = samples / MILLION
    found = {**take(TrainingRow, whole, step), **whole.phases, **place, **held}
    found |= _spend(whole, place["device_count"] * step.batch / place["batch"], parts)
    if alone is not None:
        found["exchange_seen_fraction"] = min(step.exchange_s / max(alone.exchange_s, 1e-15), 1.0)
    return TrainingRow(
        **{
            **find_unknown(TrainingRow),
            **found,
            "samples_per_s": rate,
            "tokens_per_s": rate * tokens if tokens else None,
            "utilization_fraction": 2.0 * whole.mac_count / whole.step_s / step.peak_ops_per_s,
            "sample_j": whole.device_j * place["device_count"] / place["batch"],
            "device_power_w": whole.device_j / whole.step_s,
            "exchange_alone_s": None if alone is None else alone.exchange_s,
            "total_s": samples / rate if samples else None,
        }
    )


def _spend(whole: WholeStep, share: float, parts: float) -> dict[str, Any]:
    """Return what a million samples and all of them cost.

    A sample takes `share` devices the time of one of the last small batch's; money goes by time, the rest by joules.
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
        "price_told": step.told or step.unlike_told,
        "total_kwh": of(step.kwh_per_million, more * parts),
        "total_usd": of(step.usd_per_million, longer * parts),
        "total_gco2": of(step.gco2_per_million, more * parts),
    }


@frozen(kw_only=True)
class WholeStep:
    """What a step takes of one device, by the mean of all."""

    last: TrainedStep
    """The last small batch, of the slowest stage."""
    step_s: float
    device_j: float
    mac_count: float
    """Of the forward pass and its gradients, of one device in the mean."""
    phases: Mapping[str, Any]
    """Of the time, with what repeats as often as it does."""
    bubble_s: float | None
    """Of the time; None of one stage."""


def add_up_step(parts: Mapping[str, TrainedStep], *, accumulate: int, stages: int, static_w: float) -> WholeStep:
    """Return a step of so many small batches over so many stages, from its runs, called as those of `Step.plans`."""
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


def hold_in_flight(first: Memory, last: Memory, stages: int) -> Memory:
    """Return what the device that holds most does: the first stage has the activations of as many passes as stages."""
    held = attrs.evolve(first, activations=first.activations * stages)
    return max(held, last, key=lambda one: one.total)
