"""Rows of the queries of `queries/train`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class TrainedStep(Row, query="train.step"):
    """Training steps of one device: time, energy, MACs and cost, and what of the time each phase takes; one row per
    run asked for that was evaluated.
    """

    position: int
    run_id: int
    model: str
    hardware: str
    hardware_id: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    step_s: float
    step_j: float
    power_w: float
    latency_half_width: float
    energy_half_width: float
    forward_s: float
    backward_s: float
    again_s: float
    exchange_s: float
    optimizer_s: float
    model_mac_count: int
    again_mac_count: int
    peak_ops_per_s: float
    memory_bytes: int
    pay: str
    way: str | None
    kwh_per_million: float | None
    gco2_per_million: float | None
    usd_per_million: float | None
    usd_half_width: float | None
    told: str
    unlike_told: str
    is_available: bool
