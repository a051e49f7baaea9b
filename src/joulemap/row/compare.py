"""Rows of the queries of `queries/compare`, made from their headers by `make rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.row import Row

if TYPE_CHECKING:
    from joulemap.domain.metric import MetricName


class Placement(Row, query="compare.allocation"):
    """Where each subgraph of several runs is placed, how long it takes there and what bounds it; one row per
    evaluated run and subgraph.
    """

    hardware: str
    subgraph_index: int
    subgraph: str
    fusion_pattern: str
    latency_s: float
    latency_fraction: float
    bottleneck: str
    compute_s: float
    memory_s: float
    launch_s: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    tile_count: float
    wave_count: float
    compute_utilization_fraction: float | None
    energy_j: float
    run_id: int


class RunFigure(Row, query="compare.detail"):
    """Several runs, each as a whole: energy by part, time, utilization, memory, what bounds its subgraphs; one row
    per run asked for, refused ones included.
    """

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    status: str
    energy_fj: int | None
    energy_j: float | None
    energy_per_inference_j: float | None
    compute_energy_j: float | None
    memory_energy_j: float | None
    control_energy_j: float | None
    static_energy_j: float | None
    overhead_energy_j: float | None
    overhead_fraction: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    edp_js: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    peak_memory_bytes: int | None
    activation_bytes: int | None
    weight_bytes: int | None
    memory_capacity_bytes: float
    compute_bound_count: int | None
    memory_bound_count: int | None
    launch_bound_count: int | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    clock_fraction: float | None
    clock_hz: float | None
    voltage_factor: float | None
    uncapped_power_w: float | None
    interval_s: float | None
    throughput_limit: str | None
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int


class HardwareNumber(Row, query="compare.geometry"):
    """What the hardware of several runs is made of: geometry, memory, power and its modes, peaks; one row per run
    and number of its hardware.
    """

    hardware: str
    section: str
    quantity: str
    value: float
    unit: str
    basis: str
    unit_name: str
    memory_type: str
    fact_index: int
    run_id: int


class Insight(Row, query="compare.insight"):
    """What separates the runs: how much less energy the best takes than each other, and the category that explains
    most of it; one row per pair of the lowest-energy run with another.
    """

    best_hardware: str
    other_hardware: str
    energy_ratio: float
    latency_per_inference_ratio: float
    difference_j: float
    common_category: str
    category_difference_j: float
    category_share_fraction: float | None
    best_power_w: float
    other_power_w: float


class ModelFigure(Row, query="compare.matrix"):
    """Several models on several hardware: figures, and who is best of either; one row per model and hardware asked
    for, refused ones included.
    """

    model: str
    batch: int
    hardware: str
    architecture: str
    status: str
    metric: str
    value: float | None
    unit: str
    hardware_rank: int | None
    hardware_ratio: float | None
    tied_count: int
    model_rank: int | None
    model_ratio: float | None
    hardware_won_count: int
    model_count: int
    energy_j: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    edp_js: float | None
    peak_memory_bytes: int | None
    compute_utilization_fraction: float | None
    mac_count: int | None
    ops_per_j: float | None
    parameter_count: int
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int
    workload_id: int


class ModelMix(Row, query="compare.mix"):
    """What the model of several runs is made of, by kind of operator; one row per workload of the runs asked for
    and kind of its operators, views apart.
    """

    model: str
    kind: str
    subgraph_count: int
    operator_count: int
    operator_fraction: float
    mac_count: int
    mac_fraction: float | None
    all_subgraph_count: int
    all_operator_count: int
    all_mac_count: int
    workload_id: int


class Contender(Row, query="compare.part"):
    """Each subgraph or operator on each hardware, and who runs it at the least cost; one row per part of a workload
    and run.
    """

    model: str
    part_index: int
    name: str
    kind: str
    fusion_pattern: str
    hardware: str
    metric: str
    value: float
    unit: str
    rank: int
    ratio: float | None
    winner: str
    is_winner: bool
    tied_count: int
    energy_j: float
    latency_s: float
    edp_share_js: float
    memory_bytes: float
    bottleneck: str
    units_used_count: int
    unit_name: str
    is_available: bool
    run_id: int
    workload_id: int


class PairChance(Row, query="compare.probability"):
    """Each of these runs against each other of its model: how probable it is that it is better; one row per metric
    and ordered pair of evaluated runs.
    """

    metric: str
    label: str
    other_label: str
    value: float
    other_value: float
    better_ratio: float
    half_width: float
    probability_better: float
    is_told_apart: bool
    run_id: int
    other_run_id: int


class RankedHardware(Row, query="compare.ranking"):
    """Hardware ranked by what matters where it is deployed; one row per run asked for, refused ones included."""

    rank: int | None
    hardware: str
    architecture: str
    microarchitecture: str
    power_mode: str
    deployment: list[str]
    status: str
    sort: str
    best_ratio: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    inferences_per_j: float | None
    energy_per_inference_j: float | None
    tdp_w: float
    compute_utilization_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    batch: int
    precision: str
    runtime: str
    model: str
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int


class Recommendation(Row, query="compare.recommendation"):
    """The best run for energy, latency, throughput, memory and energy x delay, of all and of some of them, and the
    best that can be had; one row per choice and goal.
    """

    is_among: bool
    goal: MetricName
    hardware: str
    value: float
    unit: str
    advantage_ratio: float | None
    runner_up: str | None
    tied_count: int
    probability_best: float | None
    probability_ahead: float | None
    rivals: list[str]
    ranked_ids: list[int]
    probabilities: list[float]
    is_projection: bool
    is_available: bool
    available_hardware: str | None
    available_value: float | None


class UtilizationSpread(Row, query="compare.spread"):
    """Compute utilization of each run: its mean, its least and most with what is responsible, and what bounds it;
    one row per evaluated run.
    """

    hardware: str
    mean_utilization_fraction: float | None
    min_utilization_fraction: float | None
    min_kind: str | None
    min_name: str | None
    max_utilization_fraction: float | None
    max_kind: str | None
    max_name: str | None
    idle_kind: str | None
    idle_time_fraction: float | None
    subgraph_count: int
    compute_bound_count: int
    memory_bound_count: int
    launch_bound_count: int
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    run_id: int


class Strength(Row, query="compare.strength"):
    """What each of several runs is good and bad at, against the median of them and against its own peak; one row
    per evaluated run and aspect.
    """

    hardware: str
    aspect: str
    verdict: str
    value: float
    unit: str
    median_value: float
    median_ratio: float | None
    grade: str | None
    unit_name: str
    run_count: int
    run_id: int


class Comparison(Row, query="compare.summary"):
    """Energy, latency, memory and utilization of each run, with ratios to a baseline; one row per run asked for,
    refused ones included.
    """

    model: str
    batch: int
    hardware: str
    label: str
    architecture: str
    precision: str
    runtime: str
    status: str
    energy_j: float | None
    energy_per_inference_j: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    edp_js: float | None
    peak_memory_bytes: int | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    overhead_energy_j: float | None
    overhead_fraction: float | None
    energy_ratio: float | None
    latency_ratio: float | None
    baseline_hardware: str | None
    clock_fraction: float | None
    clock_hz: float | None
    voltage_factor: float | None
    uncapped_power_w: float | None
    interval_s: float | None
    placement: str
    throughput_limit: str | None
    assumed_energy_fraction: float | None
    recalled_energy_fraction: float | None
    unattributed_energy_fraction: float | None
    energy_low_j: float | None
    energy_high_j: float | None
    energy_half_width: float | None
    energy_doubt: str | None
    latency_low_s: float | None
    latency_high_s: float | None
    latency_half_width: float | None
    latency_doubt: str | None
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int


class EnergyBranch(Row, query="compare.tree"):
    """Where the energy of several runs goes: categories of their architectures and the actions in them; one row per
    run, category and action; the rows of a run sum to its energy, exactly.
    """

    model: str
    hardware: str
    category: str
    category_energy_fj: int
    category_energy_j: float
    category_fraction: float | None
    common_category: str
    component: str
    action: str
    part: str
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    category_share_fraction: float | None
    run_id: int


class Victory(Row, query="compare.victory"):
    """Which kinds of subgraph or operator each hardware runs at the least cost; one row per workload, hardware and
    kind that the workload has.
    """

    model: str
    hardware: str
    kind: str
    part_count: int
    won_count: int
    tied_count: int
    won_fraction: float
    verdict: str
    hardware_won_count: int
    hardware_tied_count: int
    all_part_count: int
    workload_id: int
