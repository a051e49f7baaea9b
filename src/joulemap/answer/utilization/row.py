"""Rows of how well hardware is used."""

from __future__ import annotations

from typing import ClassVar

from joulemap.answer.run import Outcome
from joulemap.present.cell import show, show_share
from joulemap.record import frozen


@frozen
class Utilization(Outcome):
    """How much of its hardware a run uses; a figure of a run that was refused is None."""

    query: ClassVar[str] = "utilization.summary"

    model: str
    precision: str
    runtime: str
    flop_count: int | None
    """Of one inference."""
    least_flop_count: int | None
    """Where its class of sizes begins."""
    attained_ops_per_s: float | None
    peak_ops_per_s: float | None
    compute_utilization_fraction: float | None
    compute_grade: str | None
    attained_bytes_per_s: float | None
    memory_bandwidth_bytes_per_s: float | None
    bandwidth_utilization_fraction: float | None
    """Of the published bandwidth."""
    sustained_bandwidth_fraction: float | None
    """Of the bandwidth that the class sustains."""
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
    """Of low_compute, high_bandwidth and idle_units, in this order."""


@frozen
class UtilizationFlag:
    """What is unhealthy about a run, and which subgraphs are the reason."""

    query: ClassVar[str] = "utilization.flag"

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

    def __str__(self) -> str:
        """Return what is high or low, and where most of it comes from."""
        value, limit = show_share(self.value_fraction), show_share(self.limit_fraction)
        what = {
            "low_compute": f"{value} of its peak, below {limit}",
            "high_bandwidth": f"{value} of the off-chip bandwidth that it sustains, above {limit}",
            "idle_units": f"its {self.unit_name}s idle {value} of their time, above {limit}",
        }[self.flag]
        tiles = f"{show(int(self.tile_count), 'tile_count')} tiles on " if self.tile_count else ""
        return (
            f"{what}; {show_share(self.bottleneck_fraction)} of the {self.cost} falls on {self.subgraph_count} of "
            f"{self.total_count} subgraphs, bound by {self.bottleneck}; the largest part, "
            f"{show_share(self.subgraph_fraction)}, in {self.subgraph} ({tiles}{self.units_used_count} of "
            f"{self.units_total_count} {self.unit_name}s)"
        )


@frozen
class Pairing:
    """Which hardware wins most often for a size of model, a precision and a batch."""

    query: ClassVar[str] = "utilization.pairing"

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


@frozen
class Grade:
    """A word for a share of a peak."""

    query: ClassVar[str] = "utilization.grade"

    grade_index: int
    grade: str
    least_fraction: float


@frozen
class Remedy:
    """The best of the runs that differ from one in one thing, and what it gains."""

    query: ClassVar[str] = "utilization.remedy"

    hardware: str
    compute_utilization_fraction: float
    bound: str
    bound_time_fraction: float
    remedy: str
    place: int | None
    """Among the remedies for what bounds the run; None where it does not follow from that."""
    choice: str
    is_better: bool
    gain_ratio: float
    throughput_ratio: float
    energy_ratio: float
    """Below 1 is less energy."""
    latency_ratio: float
    chosen_utilization_fraction: float
    tried_count: int
    is_projection: bool
    chosen_run_id: int
    run_id: int


@frozen
class BatchZone:
    """The batches at which one hardware is used well."""

    query: ClassVar[str] = "utilization.zone"

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


@frozen
class PrecisionGain:
    """What a precision of one hardware gains over its baseline."""

    query: ClassVar[str] = "utilization.precision"

    model: str
    hardware: str
    batch: int
    runtime: str
    precision: str
    baseline_precision: str
    speedup_ratio: float
    energy_ratio: float
    """Below 1 is less energy."""
    peak_ratio: float
    memory_ratio: float
    compute_utilization_fraction: float
    latency_s: float
    energy_per_inference_j: float
    is_projection: bool
    run_id: int
