"""Rows of the queries of `queries/measurement`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ListedMeasurement(Row, query="measurement.list"):
    """What somebody measured; one row per measurement."""

    measurement_id: int
    """Number of the row."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    model: str
    precision: str
    """As measured."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second of one device."""
    energy_j: float | None
    """J: per batch."""
    power_w: float | None
    """W: average."""
    wall_power_w: float | None
    """W: average of the whole system at the wall plug, over its devices."""
    device_count: int | None
    """Devices of the system at the wall plug; null without wall_power_w."""
    peak_memory_bytes: int | None
    """B: as the framework reports it."""
    scope: str
    """What it covers."""
    seen: str
    """Which coefficients were chosen with this row in view; empty where none was."""
    source: str
    """Where it comes from."""
    conditions: str
    """What it depends on."""


class ServedMeasurement(Row, query="measurement.served"):
    """What somebody measured of language models as they are served; one row per measurement."""

    serving_measurement_id: int
    """Number of the measurement."""
    source: str
    """Where it comes from."""
    hardware: str
    """Catalogue id, or the name of hardware that the catalogue does not have."""
    model: str
    """As its source names it."""
    scope: str
    """prefill_step, decode_step, request, offline or steady_serving."""
    engine: str
    """What serves; empty where not told."""
    engine_version: str
    """As told."""
    date: str
    """Of the measurement."""
    commit: str
    """Repository and commit of the source."""
    device_count: int | None
    """Devices in use."""
    tensor_parallel: int | None
    """Devices that share each layer."""
    pipeline_parallel: int | None
    """Groups of layers one after another."""
    expert_parallel: int | None
    """Devices that share the experts."""
    data_parallel: int | None
    """Copies that share the requests."""
    weight_precision: str
    """As told."""
    activation_precision: str
    """As told."""
    cache_precision: str
    """As told."""
    prompt_tokens: float | None
    """Of a sequence; what lies in its cache before a decode_step."""
    output_tokens: float | None
    """Of a sequence."""
    batch: float
    """Sequences of a call, or the mean of requests in flight."""
    time_to_first_token_s: float | None
    """s: of the whole batch."""
    inter_token_latency_s: float | None
    """s: one step of the whole batch."""
    request_latency_s: float | None
    """s: first prompt token to last output token."""
    output_tokens_per_s: float | None
    """1/s: of all devices."""
    total_tokens_per_s: float | None
    """1/s: prompt and output, of all devices."""
    energy_per_output_token_j: float | None
    """J: of all devices, within power_boundary."""
    energy_per_request_j: float | None
    """J: of all devices, within power_boundary."""
    power_w: float | None
    """W: of all devices, within power_boundary."""
    power_boundary: str
    """What joules and watts contain."""
    speculative: str
    """How tokens are guessed ahead."""
    cached_tokens: float | None
    """Of a sequence, in the cache before a pass over its prompt."""
    uses_cache: bool
    """Whether keys and values are kept from step to step."""
    context_tokens: float | None
    """Of a sequence, that passes were compiled for."""
    file_bytes: float | None
    """B: of the weights as they are stored."""
    statistic: str
    """Of times between tokens: mean or median."""
    prompt_kind: str
    """What is told of a prompt whose length is not: short, or empty."""
    notes: str
    """What else the numbers depend on."""
    seen: str
    """Which coefficients were chosen with this row in view; empty where none was."""
