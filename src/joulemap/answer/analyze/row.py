"""Rows of one run taken apart."""

from __future__ import annotations

from typing import ClassVar

from joulemap.answer.run import ActionEnergy, Amounts, RunRow
from joulemap.record import frozen


@frozen
class RunTotal(RunRow):
    """A run with all that it does and takes."""

    query: ClassVar[str] = "analyze.total"

    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    overhead_energy_j: float
    """Neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    energy_per_inference_j: float
    assumed_energy_fraction: float | None
    recalled_energy_fraction: float | None
    throughput_per_s: float
    average_power_w: float
    static_power_w: float
    tdp_w: float
    clock_fraction: float
    """Of the full clock."""
    clock_hz: float
    voltage_factor: float
    """What an action on the chip costs, relative to the highest voltage of its die."""
    uncapped_power_w: float
    """At the full clock: above the cap where that lowers the clock."""
    interval_s: float
    """From one batch to the next, in steady state."""
    throughput_limit: str
    mac_count: int
    attained_ops_per_s: float
    peak_ops_per_s: float
    compute_utilization_fraction: float
    dram_bytes: float
    pass_bytes: float
    """Read and written again by passes that the runtime adds."""
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
    """MAC slots of the tiles, padding included; None where nothing has a tile."""
    padding_fraction: float | None
    kernel_count: int


@frozen
class CategoryShare:
    """One category of a run's energy."""

    query: ClassVar[str] = "analyze.category"

    category: str
    common_categories: str
    """Those of all architectures that its actions belong to, most energy first."""
    parts: str
    kind_count: int
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    largest_action: str
    """`component.action` that takes most of it."""
    largest_action_fraction: float | None


@frozen
class ActionShare(ActionEnergy):
    """One action of a run."""

    query: ClassVar[str] = "analyze.action"

    share_fraction: float | None
    category_fraction: float | None


@frozen
class EventCount:
    """One kind of event of a run, in the words of those who ask."""

    query: ClassVar[str] = "analyze.event"

    component: str
    event: str
    per: str
    event_count: float
    part_of: str
    """Event of the same component that it is a share of; empty for none."""
    share_fraction: float | None
    energy_fj: int | None
    """Of the actions that pay for it, which may pay for other events too; None where none does."""
    energy_j: float | None
    energy_per_event_j: float | None
    run_fraction: float | None
    meaning: str
    formula: str
    """How the count follows from actions of the ledger, operator by operator."""
    event_index: int


@frozen
class _Share(Amounts):
    name: str
    mac_count: int
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    share_fraction: float | None
    latency_fraction: float | None
    edp_share_js: float
    edp_share_fraction: float | None


@frozen
class SubgraphShare(_Share):
    """One subgraph's part of a run, and its allocation."""

    query: ClassVar[str] = "analyze.subgraph"

    subgraph_index: int
    fusion_pattern: str
    operator_count: int
    kernel_count: int
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
    pass_bytes: float
    """Read and written again by passes that the runtime adds."""


@frozen
class OperatorShare(_Share):
    """One operator's part of a run, and what fusing it saves."""

    query: ClassVar[str] = "analyze.operator"

    operator_index: int
    subgraph_index: int
    operation: str
    kind: str
    is_fused: bool
    separate_energy_j: float
    separate_latency_s: float
    saved_energy_j: float | None
    """Separate minus own; None where it is not fused."""
    saved_latency_s: float | None
    dram_bytes: float
    pass_bytes: float
    """Read and written again by passes that the runtime adds."""
    bias_addition_count: int
    bias_element_count: int
    """0 without a bias."""


@frozen
class BottleneckShare(Amounts):
    """What compute, memory or launch bounds."""

    query: ClassVar[str] = "analyze.bottleneck"

    bottleneck: str
    subgraph_count: int
    latency_fraction: float | None
    energy_fraction: float | None
    busy_s: float
    """Its own time in all subgraphs; compute and memory overlap."""


@frozen
class EnergyLeaf:
    """An action of a run in one subgraph, or in all those past the ones that act most."""

    query: ClassVar[str] = "report.tree"

    model: str
    hardware: str
    common_category: str
    category_fj: int
    action: str
    """`component.action`."""
    action_fj: int
    position: int
    subgraph: str | None
    """None where the row stands for all the others."""
    subgraph_count: int
    energy_fj: int
    energy_j: float
    run_fraction: float | None
    run_id: int


@frozen
class SubgraphRoof:
    """One subgraph under the roof of the hardware that its run is on."""

    query: ClassVar[str] = "analyze.roofline"

    subgraph_index: int
    name: str
    kind: str
    """The operation that leads it."""
    fusion_pattern: str
    energy_j: float
    latency_s: float
    bottleneck: str
    dram_bytes: float
    dram_intensity_ops_per_byte: float | None
    """None where nothing is moved off chip."""
    attained_ops_per_s: float
    """0 where it has no MAC."""
    peak_ops_per_s: float
    memory_bandwidth_bytes_per_s: float
    ridge_ops_per_byte: float
    roofline_ops_per_s: float
    roofline_fraction: float | None
    """Of the lesser of the peak and intensity x bandwidth."""
