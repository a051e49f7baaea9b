"""Rows of the queries of `queries/utilization`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class UtilizationFlag(Row, query="utilization.flag"):
    """What is unhealthy about how runs use their hardware, and which subgraphs are the reason; one row per run and
    flag that it raises.
    """

    hardware: str
    flag: str
    value_fraction: float
    limit_fraction: float
    cost: str
    bottleneck: str
    bottleneck_fraction: float | None
    subgraph_count: int
    total_count: int
    subgraph_index: int
    subgraph: str
    subgraph_fraction: float | None
    tile_count: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    run_id: int


class Grade(Row, query="utilization.grade"):
    """The grades of a share of a peak, and where each begins; one row per grade."""

    grade_index: int
    grade: str
    least_fraction: float


class Pairing(Row, query="utilization.pairing"):
    """Which hardware suits which size of model and batch: who wins most often among the stored runs; one row per
    class of FLOPs, precision, batch and goal.
    """

    least_flop_count: int
    precision: str
    batch: int
    goal: str
    hardware: str
    architecture: str
    won_count: int
    entered_count: int
    contest_count: int
    model_count: int
    hardware_count: int
    median_value: float
    unit: str
    median_advantage_ratio: float | None
    median_utilization_fraction: float
    runner_up: str | None
    runner_up_won_count: int | None
    is_projection: bool


class PrecisionGain(Row, query="utilization.precision"):
    """What each precision of a hardware gains over fp32, or over the widest that it has without fp32; one row per
    evaluated run asked for.
    """

    model: str
    hardware: str
    batch: int
    runtime: str
    precision: str
    baseline_precision: str
    speedup_ratio: float
    energy_ratio: float
    peak_ratio: float
    memory_ratio: float
    compute_utilization_fraction: float
    latency_s: float
    energy_per_inference_j: float
    is_projection: bool
    run_id: int


class Remedy(Row, query="utilization.remedy"):
    """What would use the hardware of runs better: the best of other runs that differ in one thing, and what it
    gains; one row per evaluated run and thing that some evaluated other run differs in.
    """

    hardware: str
    compute_utilization_fraction: float
    bound: str
    bound_time_fraction: float
    remedy: str
    place: int | None
    choice: str
    is_better: bool
    gain_ratio: float
    throughput_ratio: float
    energy_ratio: float
    latency_ratio: float
    chosen_utilization_fraction: float
    tried_count: int
    is_projection: bool
    chosen_run_id: int
    run_id: int


class Utilization(Row, query="utilization.summary"):
    """How much of each hardware a run uses: arithmetic, bandwidth, units, and where it stands on the roofline; one
    row per run asked for, refused ones included.
    """

    model: str
    batch: int
    precision: str
    runtime: str
    hardware: str
    architecture: str
    status: str
    flop_count: int | None
    least_flop_count: int | None
    attained_ops_per_s: float | None
    peak_ops_per_s: float | None
    compute_utilization_fraction: float | None
    compute_grade: str | None
    attained_bytes_per_s: float | None
    memory_bandwidth_bytes_per_s: float | None
    bandwidth_utilization_fraction: float | None
    sustained_bandwidth_fraction: float | None
    arithmetic_intensity_ops_per_byte: float | None
    dram_intensity_ops_per_byte: float | None
    ridge_ops_per_byte: float | None
    ridge_ratio: float | None
    roof: str | None
    roofline_ops_per_s: float | None
    roofline_fraction: float | None
    roofline_grade: str | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    idle_units_fraction: float | None
    average_power_w: float | None
    tdp_w: float
    ops_per_j: float | None
    peak_ops_per_j: float | None
    clock_fraction: float | None
    flags: list[str]
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int


class BatchZone(Row, query="utilization.zone"):
    """The batches at which a hardware is used well: utilization and inferences per joule near the best of a series;
    one row per model, hardware, precision and runtime of the runs asked for.
    """

    model: str
    hardware: str
    precision: str
    runtime: str
    batches: list[int]
    zone_batches: list[int]
    best_batch: int | None
    best_utilization_fraction: float | None
    utilization_batch: int | None
    least_energy_per_inference_j: float | None
    energy_batch: int | None
    latency_s: float | None
    peak_memory_bytes: int | None
    refused_batch: int | None
    refusal: str | None
    run_id: int | None
