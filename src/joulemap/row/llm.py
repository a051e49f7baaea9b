"""Rows of the queries of `queries/llm`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ServedPhase(Row, query="llm.phase"):
    """Prefill and decode of a language model as it is served: time, energy and cost of a token, and what bounds it;
    one row per served configuration and phase.
    """

    place: int
    phase: str
    model: str
    label: str
    hardware: str
    hardware_id: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    device_count: int
    token_count: int
    phase_s: float
    phase_j: float
    tokens_per_s: float
    tokens_per_s_per_device: float
    energy_per_token_j: float
    device_power_w: float
    run_latency_s: float
    run_energy_j: float
    latency_half_width: float | None
    energy_half_width: float | None
    bound: str
    bound_fraction: float
    pay: str
    kwh_per_million: float | None
    gco2_per_million: float | None
    rented_usd_per_million: float | None
    bought_usd_per_million: float | None
    usd_per_million: float | None
    way: str | None
    price_half_width: float
    seller: str
    told: str
    unlike_told: str
    usd_half_width: float | None
    activation_bytes: int
    is_available: bool
    run_id: int


class ServedWinner(Row, query="llm.winner"):
    """Which hardware serves a language model best: first token, between tokens, energy and cost of a token, each at
    the batch that suits it; one row per goal; none of a goal that nothing has a value of.
    """

    goal: str
    label: str
    hardware: str
    device_count: int
    precision: str
    batch: int
    value: float
    unit: str
    half_width: float | None
    advantage_ratio: float | None
    runner_up: str | None
    runner_up_batch: int | None
    probability_best: float | None
    rivals: list[str]
    hardware_count: int
    is_available: bool
    place: int
    run_id: int
