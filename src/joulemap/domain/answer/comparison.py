"""What comparing hardware hands out."""

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
    recalled_energy_fraction: float | None
    """The part whose price per action is a public number not checked against its source."""
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
