"""Rows of the queries of `queries/cost`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class AssumedNumber(Row, query="cost.assumption"):
    """What a cost per inference assumes, each number with its source; one row per assumption."""

    assumption_index: int
    """Fixed order."""
    assumption: str
    """utilization, lifetime, hours, pue, electricity, host or grid."""
    value: float
    """In unit."""
    unit: str
    """1, year, h/year, USD/kWh or g/kWh."""
    basis: str
    """Where the number comes from; given where it was asked for."""
    source: str
    """Document or arithmetic; the question where it was asked for."""
    note: str
    """What a reader must know to use it well."""


class BreakEven(Row, query="cost.break_even"):
    """From how many inferences on the option with the higher price to begin with is the cheaper one; one row, or
    none where one of the options has no price.
    """

    hardware_a: str
    """Option A, with @MODE where the power mode is not the default."""
    precision_a: str
    """Its precision."""
    batch_a: int
    """Its batch."""
    way_a: str
    """Rented or bought."""
    fixed_a_usd: float
    """USD: paid before the first inference: the purchase price with the host's, 0 in a cloud."""
    variable_a_usd_per_million: float
    """USD: of each further million: rent, or electricity with the host's."""
    inferences_per_life_a: float | None
    """What one bought chip can do in its lifetime; null in a cloud."""
    hardware_b: str
    """Option B."""
    precision_b: str
    """Its precision."""
    batch_b: int
    """Its batch."""
    way_b: str
    """Rented or bought."""
    fixed_b_usd: float
    """USD: paid before the first inference."""
    variable_b_usd_per_million: float
    """USD: of each further million."""
    inferences_per_life_b: float | None
    """What one bought chip can do in its lifetime; null in a cloud."""
    break_even_inferences: float | None
    """Where both have cost the same; null where one is cheaper at any volume, or both are alike."""
    cheaper_below: str | None
    """A or B, the cheaper one up to there or at any volume; null where both are alike."""
    cheaper_above: str | None
    """A or B, the cheaper one from there on."""
    is_within_life: bool | None
    """Whether one bought chip of each option reaches it; null without one."""
    break_even_years: float | None
    """year: that the slower bought chip needs to reach it; null without one."""
    run_a: int
    """Run of A."""
    run_b: int
    """Run of B."""


class GridFootprint(Row, query="cost.grid"):
    """Energy and carbon of a million inferences in each grid; one row per grid and evaluated run."""

    region: str
    """Id of the grid."""
    name: str
    """Of the grid."""
    year: int
    """Of the figure."""
    gco2_per_kwh: float
    """g/kWh: yearly average."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    kwh_per_million: float | None
    """kWh: work and idling between, times PUE."""
    gco2_per_million: float
    """g: CO2 of it."""
    basis: str
    """Where the grid's figure comes from."""
    source: str
    """Document."""
    note: str
    """What a reader must know."""
    run_id: int
    """Number of the run."""


class CostOption(Row, query="cost.million"):
    """What a million inferences cost, rented or bought, with their energy and carbon; one row per run asked for and
    way of paying; one with way none where no price is known or the run was refused.
    """

    rank: int | None
    """1 for the cheapest in the way that is asked for; null in the other way, without a price, and for what cannot
    be had beside what can.
    """
    status: str
    """ok, no price or unsupported."""
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    is_best_of_hardware: bool
    """The cheapest of its hardware in the way that is asked for, whatever the power mode; without a price the one
    with the least energy.
    """
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    way: str
    """Rented by the hour; bought, and powered; none."""
    usd_per_million: float | None
    """USD: all costs of a million inferences."""
    usd_half_width: float | None
    """Of the 80 % interval of its natural logarithm, by the rate and the price that it rests on."""
    probability_cheapest: float | None
    """That it is the cheapest of those with a rank; null beyond the 40 cheapest."""
    likely_cheapest: bool
    """It is predicted to be the cheapest, or cannot be told apart from what is."""
    hardware_usd_per_million: float | None
    """USD: of it rent, or the purchase price spread over the lifetime."""
    energy_usd_per_million: float | None
    """USD: of it electricity of the chip; 0 in a cloud, where the rent contains it."""
    host_usd_per_million: float | None
    """USD: of it the host that a bought chip needs, with its electricity; 0 in a cloud, where the rent contains it."""
    price: float | None
    """Of the chip, board or kit, in price_unit."""
    price_unit: str | None
    """USD/h or USD."""
    price_basis: str | None
    """Where the price comes from; given where it was asked for."""
    price_half_width: float | None
    """What its basis leaves open: of the 80 % interval of its natural logarithm."""
    price_date: str | None
    """The first year, month or day that its note or source names; null where neither does."""
    price_source: str | None
    """document, or the file or question that gives it."""
    price_note: str | None
    """What the price buys, and when."""
    throughput_per_s: float | None
    """1/s: while it works."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    latency_s: float | None
    """s: per batch."""
    energy_per_inference_j: float | None
    """J: of one inference while it works, of the chip alone."""
    kwh_per_million: float | None
    """kWh: work and idling between, times PUE."""
    gco2_per_million: float | None
    """g: CO2 of a million inferences."""
    inferences_per_year: float | None
    """Of one chip at this utilization."""
    inferences_per_life: float | None
    """Of one chip in its lifetime."""
    idle_power_w: float | None
    """W: between inferences."""
    idle_quantity: str
    """idle_power, or static_power where the catalogue has no other."""
    pue_ratio: float
    """Power usage effectiveness; 1 outside data centres."""
    host_share_ratio: float
    """What a host adds to the price and the electricity of a bought chip, as a share of both, of the price alone
    where the energy contains a host; 0 for a whole computer.
    """
    is_available: bool
    """It can be had in this way, at a price that is no guess, or that is given; without a price, in any."""
    reason: str
    """Why there is no cost; empty otherwise."""
    run_id: int
    """Number of the run."""
