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

from joulemap.domain import described, find_unknown, take
from joulemap.system import frozen
from joulemap.wing.train.generated.row import TrainedStep
from joulemap.wing.train.training.memory import Memory

OK: Final = "ok"
REFUSED: Final = "unsupported"
TOO_LARGE: Final = "does not fit"

MILLION: Final = 1e6

HALF_WIDTHS: Final = ("latency_half_width", "energy_half_width", "usd_half_width")
"""Columns that a lower bound leaves empty, because an interval has two sides."""

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s")


@frozen(kw_only=True)
class TrainingRow:
    """Training configuration of one hardware at one batch; results are null if it was refused."""

    label: str = described("hardware, with xN where N devices work together")
    hardware: str = described("catalogue id, with @MODE where the power mode is not the default")
    device_count: int = described("devices that work together")
    precision: str = described("precision of activations and GEMMs")
    batch: int = described("samples, or sequences of a language model, per step over all devices")
    micro_batch: int = described("samples per micro-batch of one device")
    status: str = described("ok, does not fit or unsupported")
    step_s: float | None = described("time of a step", "s")
    latency_half_width: float | None = described("half-width of the 80 % interval of the logarithm of the step time")
    latency_basis: str | None = described("measurements that this interval comes from")
    samples_per_s: float | None = described("samples per second over all devices", "1/s")
    tokens_per_s: float | None = described(
        "tokens per second over all devices; null for other than language models", "1/s"
    )
    utilization_fraction: float | None = described(
        "model FLOPs utilization (MFU): share of the peak by MACs of the forward and backward pass, "
        "without masked or recomputed ones"
    )
    sample_j: float | None = described("energy of a sample over all devices", "J")
    energy_half_width: float | None = described("half-width of the 80 % interval of the logarithm of the energy")
    device_power_w: float | None = described("mean power of one device", "W")
    forward_s: float | None = described("time of the forward pass and the loss per step", "s")
    backward_s: float | None = described("time of the backward pass per step", "s")
    again_s: float | None = described("time of recomputation per step", "s")
    exchange_s: float | None = described("exposed communication time per step", "s")
    optimizer_s: float | None = described("time of the optimizer per step", "s")
    bubble_s: float | None = described("pipeline bubble per step; null without a pipeline", "s")
    exchange_alone_s: float | None = described("communication time per step without overlap; null for one device", "s")
    exchange_seen_fraction: float | None = described("exposed share of the communication time; null for one device")
    weight_bytes: float = described("weights of one device at the precision", "B")
    gradient_bytes: float = described("gradients of one device", "B")
    state_bytes: float = described("optimizer state of one device, single-precision master weights included", "B")
    activation_bytes: float = described(
        "activations of one device: values kept for the backward pass, gathered weights, inputs", "B"
    )
    reserved_bytes: float = described(
        "memory of one device that the process takes before any data, and for exchanges with other devices", "B"
    )
    capacity_bytes: float = described("memory of one device that its operating system leaves to models", "B")
    memory_fraction: float = described(
        "share of a device's memory that all of these fill; above 1 where they do not fit"
    )
    fits_with: str = described("options that would make it fit; empty where it fits or none is known")
    usd_per_million: float | None = described("cost of a million samples, for chips rented or bought by `way`", "USD")
    usd_half_width: float | None = described("half-width of the 80 % interval of the logarithm of the cost")
    gco2_per_million: float | None = described("CO2 emissions of a million samples", "g")
    way: str = described("way of paying: rented or bought; empty without a price")
    price_text: str = described("price of a device with its seller and date; empty without one")
    total_s: float | None = described("time of all requested samples and epochs; null where none are requested", "s")
    total_kwh: float | None = described("energy of all samples and epochs, idling and PUE included", "kWh")
    total_usd: float | None = described("cost of all samples and epochs", "USD")
    total_gco2: float | None = described("CO2 emissions of all samples and epochs", "g")
    is_lower_bound: bool = described(
        "true where parts of the step are not counted, so that it takes at least this time"
    )
    is_available: bool = described("true where the hardware can be bought or rented")
    reason: str = described("reason of refusal; empty otherwise")
    run_id: int | None = described("run of one device")


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
