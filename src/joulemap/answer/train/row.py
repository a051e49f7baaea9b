"""What a training step takes on so many devices: a row for each configuration, of its time, energy and memory."""

from __future__ import annotations

from typing import Any, Final

from joulemap.answer.computed import find_unknown, told
from joulemap.answer.train.whole import WholeStep
from joulemap.row.train import TrainedStep
from joulemap.system.record import frozen
from joulemap.training.memory import Memory

OK: Final = "ok"
REFUSED: Final = "unsupported"
TOO_LARGE: Final = "does not fit"

MILLION: Final = 1e6


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
        return TrainingRow(**place, **held, **find_unknown(TrainingRow), way="", is_available=False)
    step = whole.last
    rate = place["batch"] / whole.step_s
    parts = samples / MILLION
    return TrainingRow(
        **place,
        **held,
        step_s=whole.step_s,
        latency_half_width=step.latency_half_width,
        samples_per_s=rate,
        tokens_per_s=rate * tokens if tokens else None,
        utilization_fraction=2.0 * whole.mac_count / whole.step_s / step.peak_ops_per_s,
        sample_j=whole.device_j * place["device_count"] / place["batch"],
        energy_half_width=step.energy_half_width,
        device_power_w=whole.device_j / whole.step_s,
        **whole.phases,
        bubble_s=whole.bubble_s,
        exchange_alone_s=None if alone is None else alone.exchange_s,
        exchange_seen_fraction=None if alone is None else min(step.exchange_s / max(alone.exchange_s, 1e-15), 1.0),
        **_spend(whole, place["device_count"] * step.batch / place["batch"], parts),
        total_s=samples / rate if samples else None,
        is_available=step.is_available,
        run_id=step.run_id,
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
        "total_kwh": of(step.kwh_per_million, more * parts),
        "total_usd": of(step.usd_per_million, longer * parts),
        "total_gco2": of(step.gco2_per_million, more * parts),
    }
