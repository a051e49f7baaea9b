"""Rows of the queries of `queries/run`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Allocation(Row, query="run.allocation"):
    """Where each subgraph of one run is placed, how long it takes and what bounds it; one row per subgraph that
    runs; latencies sum to the run, exactly.
    """

    subgraph_index: int
    units_used_count: int
    units_total_count: int
    unit_name: str
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    executed_mac_count: float
    padding_fraction: float | None
    kernel_count: int
    latency_fs: int
    latency_s: float
    compute_s: float
    memory_s: float
    launch_s: float
    bottleneck: str
    dram_bytes: float
    moved_bytes: float
    pass_bytes: float
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None


class Constant(Row, query="run.constant"):
    """Constants of the hardware in which two runs differ, and what each price moved: exactly its part of the
    difference; one row per constant that differs or that only one side has.
    """

    constant: str
    value_a: float | None
    value_b: float | None
    unit: str
    ratio: float | None
    moved_fj: int | None
    moved_j: float | None
    basis_a: str | None
    basis_b: str | None
    source_a: str | None
    source_b: str | None


class Fallback(Row, query="run.fallback"):
    """What of runs a host computes because the chip's compiler does not run it, or leaves it; one row per run and
    operation that the host computes.
    """

    run_id: int
    configured_hardware: str
    compiler: str
    cut: str
    helper: str
    operation: str
    is_compiled: bool
    operator_count: int
    latency_s: float
    latency_fraction: float
    energy_fraction: float
    first_operator_index: int


class LedgerLine(Row, query="run.ledger"):
    """The ledger of one run: every line with its count and the energy of one; one row per operator and action;
    lines sum to operators, subgraphs and the run, exactly.
    """

    subgraph_index: int
    operator_index: int
    category: str
    common_category: str
    component: str
    action: str
    part: str
    per: str
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    is_overhead: bool
    basis: str
    source: str


class Setting(Row, query="run.setting"):
    """Settings, versions and digests in which two runs differ; one row per setting that differs."""

    setting_index: int
    setting: str
    value_a: str
    value_b: str
