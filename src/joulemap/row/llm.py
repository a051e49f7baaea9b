"""Rows of the queries of `queries/llm`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ServedPhase(Row, query="llm.phase"):
    """Prefill and decode of a language model as it is served: time, energy and cost of a token, and what bounds it;
    one row per served configuration and phase.
    """

    place: int
    """Of the configuration in decode_ids, from 1."""
    phase: str
    """Prefill or decode."""
    model: str
    """Name of the pass, by which it is asked about."""
    label: str
    """hardware, with xN where N devices work together, and the precision where configurations differ in it."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    hardware_id: str
    """Catalogue id."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Sequences at a time."""
    runtime: str
    """eager, graph, fused or engine."""
    device_count: int
    """Devices that work together."""
    token_count: int
    """Of the batch: of its prompts, or made by its decode steps."""
    phase_s: float
    """s: of the phase, all decode steps together."""
    phase_j: float
    """J: of all devices in it."""
    tokens_per_s: float
    """1/s: of all devices together, while the phase lasts."""
    tokens_per_s_per_device: float
    """1/s: of that a device's share."""
    energy_per_token_j: float
    """J: of all devices, for one token of the phase."""
    device_power_w: float
    """W: of one device in the phase."""
    run_latency_s: float
    """s: of the pass that is stored: of prompts, or one step at the middle of the output, without what the engine
    adds; of the nearest batch that is.
    """
    run_energy_j: float
    """J: of the pass that is stored, of one device."""
    latency_half_width: float | None
    """Of the 80 % interval of the natural logarithm of its time: of the first token, or between tokens, from
    measurements of served models.
    """
    energy_half_width: float | None
    """Of the 80 % interval of the natural logarithm of its energy: of a request, or of an output token, from
    measurements of served models.
    """
    bound: str
    """What most of the time goes to: compute, operands (units whose MACs take less than a tenth of their time),
    memory, launch, communication, or engine: what that adds to its passes.
    """
    bound_fraction: float
    """Of the phase's time."""
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    kwh_per_million: float | None
    """kWh: of a million tokens of the phase: work and idling between, times PUE."""
    gco2_per_million: float | None
    """g: CO2 of a million tokens of the phase."""
    rented_usd_per_million: float | None
    """USD: of a million tokens of the phase, all devices rented."""
    bought_usd_per_million: float | None
    """USD: of a million tokens of the phase, all devices bought."""
    usd_per_million: float | None
    """USD: of a million tokens of the phase, in that way."""
    way: str | None
    """Rented or bought: what usd_per_million pays for; null where that has no price."""
    price_half_width: float
    """What the price leaves open of usd_per_million: of the 80 % interval of its natural logarithm; 0 for a given
    one.
    """
    seller: str
    """Whose prices err together: the source of a rent, the maker of what is bought."""
    usd_half_width: float | None
    """Of the 80 % interval of the natural logarithm of usd_per_million, by the rate and the price."""
    activation_bytes: int
    """B: of the pass on one device, as the run has it."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    run_id: int
    """Number of the pass's run."""


class ServedWinner(Row, query="llm.winner"):
    """Which hardware serves a language model best: first token, between tokens, energy and cost of a token, each at
    the batch that suits it; one row per goal; none of a goal that nothing has a value of.
    """

    goal: str
    """first_token: least seconds to it; between_tokens: least seconds; energy: least joules of an output token, of
    all devices; cost: least USD of a million output tokens, in the way that is asked for.
    """
    label: str
    """The winner, as llm.phase calls it; ties go to the first name."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    device_count: int
    """Devices that work together."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Sequences at a time."""
    value: float
    """Of the goal, in unit."""
    unit: str
    """s, J or USD."""
    half_width: float | None
    """Of the 80 % interval of the value's natural logarithm."""
    advantage_ratio: float | None
    """How many times better than the next hardware; null without one."""
    runner_up: str | None
    """The next hardware, at its best batch; null without one."""
    runner_up_batch: int | None
    """That batch."""
    probability_best: float | None
    """That it is the best of these hardware."""
    rivals: list[str]
    """Hardware that cannot be told apart from it."""
    hardware_count: int
    """hardware, each with its number of devices and precision, that it is chosen from."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    place: int
    """Of the configuration in decode_ids, from 1."""
    run_id: int
    """Number of the pass's run."""
