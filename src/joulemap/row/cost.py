"""Rows of the queries of `queries/cost`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class AssumedNumber(Row, query="cost.assumption"):
    """What a cost per inference assumes, each number with its source; one row per assumption."""

    assumption_index: int
    assumption: str
    value: float
    unit: str
    basis: str
    source: str
    note: str


class BreakEven(Row, query="cost.break_even"):
    """From how many inferences on the option with the higher price to begin with is the cheaper one; one row, or
    none where one of the options has no price.
    """

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
    cheaper_below: str | None
    cheaper_above: str | None
    is_within_life: bool | None
    break_even_years: float | None
    run_a: int
    run_b: int


class GridFootprint(Row, query="cost.grid"):
    """Energy and carbon of a million inferences in each grid; one row per grid and evaluated run."""

    region: str
    name: str
    year: int
    gco2_per_kwh: float
    hardware: str
    precision: str
    batch: int
    runtime: str
    kwh_per_million: float | None
    gco2_per_million: float
    basis: str
    source: str
    note: str
    run_id: int


class CostOption(Row, query="cost.million"):
    """What a million inferences cost, rented or bought, with their energy and carbon; one row per run asked for and
    way of paying; one with way none where no price is known or the run was refused.
    """

    rank: int | None
    status: str
    pay: str
    is_best_of_hardware: bool
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    way: str
    usd_per_million: float | None
    usd_half_width: float | None
    probability_cheapest: float | None
    likely_cheapest: bool
    hardware_usd_per_million: float | None
    energy_usd_per_million: float | None
    host_usd_per_million: float | None
    price: float | None
    price_unit: str | None
    price_basis: str | None
    price_half_width: float | None
    price_told: str | None
    seller_kind: str | None
    compared_kind: str | None
    is_alike: bool
    price_source: str | None
    price_note: str | None
    throughput_per_s: float | None
    throughput_limit: str | None
    latency_s: float | None
    energy_per_inference_j: float | None
    kwh_per_million: float | None
    gco2_per_million: float | None
    inferences_per_year: float | None
    inferences_per_life: float | None
    idle_power_w: float | None
    idle_quantity: str
    pue_ratio: float
    host_share_ratio: float
    is_available: bool
    reason: str
    run_id: int
