"""Rows of the queries of `queries/train`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class TrainedStep(Row, query="train.step"):
    """Training steps of one device: time, energy, MACs and cost, and what of the time each phase takes; one row per
    run asked for that was evaluated.
    """

    position: int
    """Of the run in run_ids."""
    run_id: int
    """Number of the run."""
    model: str
    """Name of the step, by which it is asked about."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    hardware_id: str
    """Catalogue id."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples of one device."""
    runtime: str
    """eager, graph, fused or engine."""
    step_s: float
    """s: of a step."""
    step_j: float
    """J: of a step, of one device."""
    power_w: float
    """W: of one device."""
    latency_half_width: float
    """Of that interval, of the natural logarithm."""
    energy_half_width: float
    """Of that interval, of the natural logarithm."""
    forward_s: float
    """s: of it the forward pass and the loss; kernels that several phases share by their operators."""
    backward_s: float
    """s: of it gradients."""
    again_s: float
    """s: of it what is computed a second time: activations that were not kept, scores of attention."""
    exchange_s: float
    """s: of it what devices exchange, as far as nothing hides it."""
    optimizer_s: float
    """s: of it the optimizer."""
    model_mac_count: int
    """MACs of the forward pass and of its gradients, without those that a mask hides."""
    again_mac_count: int
    """MACs of what is computed a second time, likewise."""
    peak_ops_per_s: float
    """ops/s: dense peak at this precision and power mode."""
    memory_bytes: int
    """B: of one device at the peak."""
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    way: str | None
    """Rented or bought: what usd_per_million pays for; null where that has no price."""
    kwh_per_million: float | None
    """kWh: of a million samples: work and idling between, times PUE."""
    gco2_per_million: float | None
    """g: CO2 of a million samples."""
    usd_per_million: float | None
    """USD: of a million samples, in that way."""
    usd_half_width: float | None
    """Of the 80 % interval of its natural logarithm, by the rate and the price."""
    is_available: bool
    """It can be bought or rented."""
