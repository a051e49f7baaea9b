"""Rows of the queries of `queries/hardware`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class HardwareCompiler(Row, query="hardware.compiler"):
    """What the compiler of one hardware runs on it; one row, or none for hardware that runs every operator."""

    compiler: str
    cut: str
    operators: list[str]
    host: str
    basis: str
    source: str


class ActionPrice(Row, query="hardware.energy"):
    """The energy reference table of one hardware; one row per action."""

    category: str
    component: str
    action: str
    part: str
    energy_per_action_j: float
    per: str
    low_j: float | None
    high_j: float | None
    basis: str
    source: str
    count_formula: str


class HardwareFact(Row, query="hardware.fact"):
    """Every number of one hardware with unit, basis and source; one row per number."""

    fact_index: int
    quantity: str
    value: float
    unit: str
    basis: str
    source: str
    note: str


class HardwareLink(Row, query="hardware.link"):
    """Links of one hardware to devices of its kind and to its host; one row per link."""

    link_index: int
    link: str
    generation: str
    connects: str
    topology: str
    link_count: int
    lane_count: int | None
    bandwidth_bytes_per_s: float
    domain_size: int | None
    latency_s: float
    energy_per_byte_j: float
    basis: str
    source: str


class ListedHardware(Row, query="hardware.list"):
    """Hardware targets of the catalogue, filtered; one row per hardware."""

    hardware: str
    name: str
    architecture: str
    deployment: str
    units_total_count: int
    unit_name: str
    precisions: str
    memory_capacity_bytes: float
    memory_bandwidth_bytes_per_s: float
    tdp_w: float
    needs_host: str
    power_modes: str
    price_purchase_usd: float | None
    price_cloud_usd_per_hour: float | None
    fact_count: int
    recalled_fact_count: int
    assumed_fact_count: int
    aliases: str
    is_projection: bool
    projection: str
    is_available: bool
    unavailable: str


class RidgePoint(Row, query="hardware.ridge"):
    """Roofline of one hardware: peak and ridge point per precision; one row per precision."""

    precision_index: int
    precision: str
    peak_ops_per_s: float
    units_count: int
    operations_per_clock: float
    clock_hz: float
    ridge_ops_per_byte: float
    peak_ops_per_j: float
    basis: str
    explanation: str


class Probe(Row, query="hardware.sanity"):
    """Probes from the top down: what a large matrix product and a stream copy draw, against the power cap and what
    was measured; one row per run asked for, refused ones included.
    """

    hardware: str
    architecture: str
    model: str
    precision: str
    status: str
    average_power_w: float | None
    tdp_w: float
    power_ratio: float | None
    uncapped_ratio: float | None
    clock_fraction: float | None
    attained_ops_per_s: float | None
    attained_bytes_per_s: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    static_share_fraction: float | None
    unattributed_share_fraction: float | None
    measured_power_w: float | None
    measured_ratio: float | None
    peak_ops_per_s: float | None
    is_projection: bool
    reason: str
    run_id: int


class HardwareSummary(Row, query="hardware.summary"):
    """What one hardware is: class, names, operating points, and what is uncertain about it; one row."""

    hardware: str
    name: str
    vendor: str
    architecture: str
    microarchitecture: str
    deployment: list[str]
    units_total_count: int
    unit_name: str
    memory_type: str
    tdp_w: float
    static_power_w: float
    needs_host: str
    aliases: list[str]
    power_modes: list[str]
    fact_count: int
    recalled_fact_count: int
    assumed_fact_count: int
    action_count: int
    recalled_action_count: int
    assumed_action_count: int
    projection: str
    unavailable: str
    doubts: list[str]
    hardware_digest: str
