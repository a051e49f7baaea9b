"""Rows of the queries of `queries/fleet`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Station(Row, query="fleet.station"):
    """What a fleet is made of: each configuration's time and energy of a batch, its price, idle power and doubt;
    one row per run asked for, refused ones included.
    """

    run_id: int
    model: str
    hardware: str
    hardware_id: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    status: str
    reason: str
    latency_s: float | None
    throughput_per_s: float | None
    energy_j: float | None
    idle_power_w: float | None
    latency_half_width: float | None
    energy_half_width: float | None
    weight_bytes: int | None
    memory_capacity_bytes: float | None
    peak_memory_bytes: int | None
    price_cloud_usd_per_hour: float | None
    price_purchase_usd: float | None
    rented_told: str
    bought_told: str
    unlike_told: str
    rented_half_width: float
    bought_half_width: float
    pay: str
    pue_ratio: float
    host_share_ratio: float
    host_energy_share_ratio: float
    lifetime_years: float
    usd_per_kwh: float
    gco2_per_kwh: float
    is_available: bool
