"""Rows of the queries of `queries/fleet`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Station(Row, query="fleet.station"):
    """What a fleet is made of: each configuration's time and energy of a batch, its price, idle power and doubt;
    one row per run asked for, refused ones included.
    """

    run_id: int
    """Number of the run."""
    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    hardware_id: str
    """Catalogue id."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    status: str
    """Ok or unsupported."""
    reason: str
    """Why it is unsupported."""
    latency_s: float | None
    """s: of a batch."""
    throughput_per_s: float | None
    """1/s: inferences of batches one behind the other."""
    energy_j: float | None
    """J: of a batch."""
    idle_power_w: float | None
    """W: between inferences."""
    latency_half_width: float | None
    """Of the 80 % interval of the natural logarithm of latency_s."""
    energy_half_width: float | None
    """Of the 80 % interval of the natural logarithm of energy_j."""
    weight_bytes: int | None
    """B: parameters and buffers read, as they are stored."""
    memory_capacity_bytes: float | None
    """B: of one device."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    price_cloud_usd_per_hour: float | None
    """USD/h: of one chip in a cloud; null where none is known."""
    price_purchase_usd: float | None
    """USD: purchase price; null where none is known."""
    rented_half_width: float
    """As price_half_width, of rented_usd_per_million."""
    bought_half_width: float
    """As price_half_width, of bought_usd_per_million, of which the price is a part."""
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    pue_ratio: float
    """Power usage effectiveness; 1 outside data centres."""
    host_share_ratio: float
    """What a host adds to the price and the electricity of a bought chip, as a share of both, of the price alone
    where the energy contains a host; 0 for a whole computer.
    """
    host_energy_share_ratio: float
    """Of it what counts for the electricity: 0 where the energy contains a host."""
    lifetime_years: float
    """year: that a bought chip serves."""
    usd_per_kwh: float
    """USD/kWh: price of electricity."""
    gco2_per_kwh: float
    """g/kWh: of the grid."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
