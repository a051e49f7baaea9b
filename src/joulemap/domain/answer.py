"""What the library hands out: one record per row of a query, fields in the order of its columns.

A contract test keeps each record equal to its query's header.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Comparison:
    """A row of `compare.summary`: one configuration, answered or refused. Energy and latency are per batch."""

    model: str
    batch: int
    hardware: str
    architecture: str
    status: str
    """`ok` or `unsupported`; every figure of an unsupported row is None."""
    energy_j: float | None
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
    energy_ratio: float | None
    latency_ratio: float | None
    baseline_hardware: str | None
    clock_fraction: float | None
    assumed_energy_fraction: float | None
    """The part of the energy whose price per action rests on an assumption."""
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class Recommendation:
    """A row of `compare.recommendation`: the winner for one goal."""

    goal: str
    hardware: str
    value: float
    unit: str
    advantage_ratio: float | None
    runner_up: str | None
    tied_count: int
    """Runs that are exactly as good, the winner included."""
    is_projection: bool
    published_hardware: str | None
    """The best whose key numbers are neither projections nor estimates."""
    published_value: float | None


@attrs.frozen
class Caveat:
    """A row of `model.caveat`: something the trace had to assume, or could not count."""

    kind: str
    """`uncounted` or `assumed`."""
    text: str
    operator_count: int | None


@attrs.frozen
class Insight:
    """A row of `compare.insight`: the lowest-energy run against another."""

    best_hardware: str
    other_hardware: str
    energy_ratio: float
    latency_ratio: float
    difference_j: float
    part: str
    part_difference_j: float
    part_share_fraction: float | None
    best_power_w: float
    other_power_w: float


@attrs.frozen
class EnergyTerm:
    """A row of `explain.energy`: one term of the difference B minus A."""

    term: str
    category_a: str | None
    category_b: str | None
    component: str
    action: str
    per: str
    part: str
    count_a: float
    count_b: float
    energy_per_action_a_j: float | None
    energy_per_action_b_j: float | None
    basis_a: str | None
    basis_b: str | None
    difference_fj: int
    difference_j: float
    share_fraction: float | None


@attrs.frozen
class EnergyTotal:
    """The row of `explain.total`: both runs and their difference, exact in femtojoules."""

    model: str
    hardware_a: str
    hardware_b: str
    energy_a_fj: int
    energy_b_fj: int
    difference_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    ratio: float


@attrs.frozen
class EdpShare:
    """A row of `edp.distribution`: one subgraph's share of a run's energy-delay product."""

    rank: int
    subgraph_index: int
    name: str
    fusion_pattern: str
    energy_j: float
    latency_s: float
    edp_js: float
    edp_share_js: float
    share_fraction: float
    cumulative_fraction: float
    bottleneck: str


@attrs.frozen
class RunTotal:
    """The row of `analyze.total`: one run as a whole. Energy and latency are per batch."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    is_projection: bool
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    energy_per_inference_j: float
    assumed_energy_fraction: float | None
    latency_fs: int
    latency_s: float
    throughput_per_s: float
    edp_js: float
    average_power_w: float
    static_power_w: float
    tdp_w: float
    clock_fraction: float
    nominal_power_w: float
    """At the nominal clock: above the cap where that lowers the clock."""
    mac_count: int
    attained_ops_per_s: float
    peak_ops_per_s: float
    compute_utilization_fraction: float
    dram_bytes: float
    memory_bandwidth_bytes_per_s: float
    bandwidth_utilization_fraction: float
    peak_memory_bytes: int
    weight_bytes: int
    activation_bytes: int
    memory_capacity_bytes: float
    memory_fraction: float
    unit_name: str
    units_used_count: int
    units_total_count: int
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    """Tiles over waves x units; None where nothing has a tile."""
    executed_mac_count: float | None
    """MAC slots of the tiles, padding included; None for a run stored before schema 5."""
    padding_fraction: float | None
    subgraph_count: int
    operator_count: int
    kernel_count: int
    run_id: int


@attrs.frozen
class CategoryShare:
    """A row of `analyze.category`: one category of a run's energy."""

    category: str
    parts: str
    kind_count: int
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    largest_action: str
    """`component.action` that takes most of it."""
    largest_action_fraction: float | None


@attrs.frozen
class ActionShare:
    """A row of `analyze.action`: one action of a run, count x energy per action."""

    category: str
    component: str
    action: str
    part: str
    per: str
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    category_fraction: float | None
    basis: str
    source: str


@attrs.frozen
class SubgraphShare:
    """A row of `analyze.subgraph`: one subgraph's part of a run, and its allocation."""

    subgraph_index: int
    name: str
    fusion_pattern: str
    operator_count: int
    kernel_count: int
    mac_count: int
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    share_fraction: float | None
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    edp_share_js: float
    edp_share_fraction: float | None
    bottleneck: str
    compute_s: float
    memory_s: float
    launch_s: float
    dram_bytes: float
    units_used_count: int
    units_total_count: int
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    """Tiles over waves x units; None without tiles."""
    executed_mac_count: float | None
    padding_fraction: float | None
    """The part of the tiles' MAC slots without a MAC."""
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None


@attrs.frozen
class OperatorShare:
    """A row of `analyze.operator`: one operator's part of a run, and what fusing it saves."""

    operator_index: int
    subgraph_index: int
    name: str
    operation: str
    kind: str
    mac_count: int
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    share_fraction: float | None
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    edp_share_js: float
    edp_share_fraction: float | None
    is_fused: bool
    separate_energy_j: float
    separate_latency_s: float
    saved_energy_j: float | None
    """Separate minus own; None where it is not fused."""
    saved_latency_s: float | None


@attrs.frozen
class BottleneckShare:
    """A row of `analyze.bottleneck`: what is bound by compute, memory or launch."""

    bottleneck: str
    subgraph_count: int
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    energy_fj: int
    energy_j: float
    energy_fraction: float | None
    busy_s: float
    """Its own time in all subgraphs; compute and memory overlap."""


@attrs.frozen
class Finding:
    """A row of `audit.conservation`: a rule that the database breaks."""

    rule: str
    run_id: int
    place: str
    expected: str
    found: str


@attrs.frozen
class ModelProfile:
    """The row of `model.profile`: a model at one input, independent of hardware. Bytes are at the traced dtype."""

    name: str
    batch: int
    input_spec: str
    parameter_count: int
    mac_count: int
    flop_count: int
    elementwise_count: int
    special_count: int
    operator_count: int
    subgraph_count: int
    uncounted_count: int
    weight_bytes: int
    moved_bytes: int
    """When every operator is a kernel of its own."""
    fused_moved_bytes: int
    """When every subgraph is."""
    peak_activation_bytes: int
    fused_peak_activation_bytes: int
    arithmetic_intensity_ops_per_byte: float | None
    fused_arithmetic_intensity_ops_per_byte: float | None
    assumption_count: int
    is_shipped: bool
    torch_version: str
    torchvision_version: str
    tracer_version: int


@attrs.frozen
class OperationShare:
    """A row of `model.mix`: one kind of operation."""

    operation: str
    kind: str
    operator_count: int
    operator_fraction: float
    mac_count: int
    mac_fraction: float | None
    elementwise_count: int
    special_count: int
    moved_bytes: int
    moved_fraction: float | None


@attrs.frozen
class PatternShare:
    """A row of `model.pattern`: subgraphs of one fusion pattern."""

    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    mac_count: int
    mac_fraction: float | None
    moved_bytes: int
    """Unfused."""
    fused_moved_bytes: int
    saved_fraction: float | None
    """The part of the bytes that fusing keeps on chip."""


@attrs.frozen
class Setting:
    """A row of `run.setting`: a setting, version or digest in which two runs differ."""

    setting_index: int
    setting: str
    value_a: str
    value_b: str


@attrs.frozen
class Constant:
    """A row of `run.constant`: a number of the hardware in which two runs differ."""

    constant: str
    value_a: float | None
    value_b: float | None
    unit: str
    ratio: float | None
    moved_j: float | None
    """Of an energy per action: B's count times the difference of the prices."""
    basis_a: str | None
    basis_b: str | None
    source_a: str | None
    source_b: str | None


@attrs.frozen
class Default:
    """A number that a hardware file leaves out, as its class fills it in."""

    quantity: str
    value: float
    unit: str
    source: str


@attrs.frozen
class Trial:
    """One configuration that a hardware file was tried on."""

    power_mode: str
    precision: str
    model: str
    runtime: str
    latency_s: float | None
    energy_j: float | None
    clock_fraction: float | None
    """Of the nominal clock; below 1 where the power cap gives way."""
    reason: str
    """Why it cannot run, if it cannot."""


@attrs.frozen(kw_only=True)
class FileCheck:
    """A hardware file that keeps every rule."""

    file: str
    hardware: str
    architecture: str
    defaults: tuple[Default, ...]
    trials: tuple[Trial, ...]


@attrs.frozen
class Score:
    """A row of `measure.score`: a measurement and the prediction of the same configuration, per batch."""

    measurement_id: int
    run_id: int
    model: str
    hardware: str
    precision: str
    batch: int
    runtime: str
    scope: str
    """What measured energy and power cover."""
    measured_latency_s: float
    predicted_latency_s: float | None
    latency_ratio: float | None
    """Predicted over measured, like every ratio here."""
    measured_energy_j: float | None
    predicted_energy_j: float | None
    energy_ratio: float | None
    measured_power_w: float | None
    predicted_power_w: float | None
    power_ratio: float | None
    measured_peak_memory_bytes: int | None
    predicted_peak_memory_bytes: int | None
    memory_ratio: float | None
    refusal: str | None
    """Why there is no prediction."""
    source: str
    conditions: str


@attrs.frozen(kw_only=True)
class RunTally:
    """How many runs `Workspace.evaluate` was asked for, by what became of them."""

    stored_count: int
    """Stored before, evaluated or refused."""
    evaluated_count: int
    refused_count: int
    """Configurations that their hardware cannot run, stored with the reason."""

    @property
    def run_count(self) -> int:
        """All runs that were asked for; each is stored now."""
        return self.stored_count + self.evaluated_count + self.refused_count
