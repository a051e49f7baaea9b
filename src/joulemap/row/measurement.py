"""Rows of the queries of `queries/measurement`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ListedMeasurement(Row, query="measurement.list"):
    """What somebody measured; one row per measurement."""

    measurement_id: int
    """Number of the row."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    model: str
    precision: str
    """As measured."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second of one device."""
    energy_j: float | None
    """J: per batch."""
    power_w: float | None
    """W: average."""
    wall_power_w: float | None
    """W: average of the whole system at the wall plug, over its devices."""
    device_count: int | None
    """Devices of the system at the wall plug; null without wall_power_w."""
    peak_memory_bytes: int | None
    """B: as the framework reports it."""
    scope: str
    """What it covers."""
    seen: str
    """Which coefficients were chosen with this row in view; empty where none was."""
    source: str
    """Where it comes from."""
    conditions: str
    """What it depends on."""
