"""What choosing among configurations hands out. Latency and memory are of a batch, energy is of one inference."""

from __future__ import annotations

import attrs


@attrs.frozen
class ParetoPoint:
    """A row of `pareto.front`: a configuration among those that are compared in two metrics."""

    status: str
    """`front`, `dominated`, `unplaced` or `unsupported`."""
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    x_value: float | None
    x_unit: str | None
    y_value: float | None
    y_unit: str | None
    dominated_by: str | None
    """The configuration of the front that beats it by most."""
    dominated_by_run_id: int | None
    x_ratio: float | None
    """How many times better that one is."""
    y_ratio: float | None
    dominator_count: int
    """Configurations of the front that beat it."""
    latency_s: float | None
    energy_per_inference_j: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    peak_memory_bytes: int | None
    edp_per_inference_js: float | None
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class RankedConfiguration:
    """A row of `recommend.configuration`: a configuration within its limits, or how far it is from them."""

    status: str
    """`feasible`, `unranked`, `infeasible` or `unsupported`."""
    rank: int | None
    published_rank: int | None
    """Among feasible ones that are no projections."""
    miss_rank: int | None
    """Among infeasible ones, the nearest first."""
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    objective_value: float | None
    objective_unit: str | None
    objective_ratio: float | None
    """How many times worse it is than the best."""
    latency_s: float | None
    energy_per_inference_j: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    peak_memory_bytes: int | None
    edp_per_inference_js: float | None
    price_cloud_usd_per_hour: float | None
    price_purchase_usd: float | None
    way: str | None
    """`cloud` or `purchase`: what `usd_per_million` pays for."""
    usd_per_million: float | None
    gco2_per_million: float | None
    failed_count: int
    failed: str
    worst_limit: str | None
    worst_value: float | None
    worst_bound: float | None
    worst_unit: str | None
    violation_fraction: float | None
    """How far it misses that limit, relative to it; None where a price is not known."""
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class Violation:
    """A row of `recommend.violation`: a limit that a configuration does not keep."""

    hardware: str
    precision: str
    batch: int
    runtime: str
    limit_name: str
    value: float | None
    bound: float
    excess: float | None
    violation_fraction: float | None
    unit: str
    run_id: int


@attrs.frozen
class CostOption:
    """A row of `cost.million`: a configuration and a way to pay for it."""

    rank: int | None
    status: str
    """`ok`, `no price` or `unsupported`."""
    is_best_of_hardware: bool
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    way: str
    """`cloud`, `purchase` or `none`."""
    usd_per_million: float | None
    hardware_usd_per_million: float | None
    energy_usd_per_million: float | None
    price: float | None
    price_unit: str | None
    price_basis: str | None
    price_source: str | None
    price_note: str | None
    throughput_per_s: float | None
    latency_s: float | None
    energy_per_inference_j: float | None
    kwh_per_million: float | None
    gco2_per_million: float | None
    inferences_per_year: float | None
    inferences_per_life: float | None
    idle_power_w: float | None
    idle_quantity: str
    pue_ratio: float
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class GridFootprint:
    """A row of `cost.grid`: a million inferences of one configuration in one grid."""

    region: str
    name: str
    year: int
    gco2_per_kwh: float
    hardware: str
    precision: str
    batch: int
    runtime: str
    kwh_per_million: float
    gco2_per_million: float
    basis: str
    source: str
    note: str
    run_id: int


@attrs.frozen
class BreakEven:
    """The row of `cost.break_even`: two options, and the number of inferences where both have cost the same."""

    hardware_a: str
    precision_a: str
    batch_a: int
    way_a: str
    fixed_a_usd: float
    variable_a_usd_per_million: float
    inferences_per_life_a: float | None
    hardware_b: str
    precision_b: str
    batch_b: int
    way_b: str
    fixed_b_usd: float
    variable_b_usd_per_million: float
    inferences_per_life_b: float | None
    break_even_inferences: float | None
    """None where one is cheaper at any volume."""
    cheaper_below: str | None
    """`A` or `B`; at any volume where there is no break-even."""
    cheaper_above: str | None
    is_within_life: bool | None
    break_even_years: float | None
    run_a: int
    run_b: int


@attrs.frozen
class AssumedNumber:
    """A row of `cost.assumption`: a number that costs and carbon rest on."""

    assumption_index: int
    assumption: str
    value: float
    unit: str
    basis: str
    """As everywhere, or `given` where it was asked for."""
    source: str
    note: str
