"""Rows of the queries of `queries/measurement`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ListedMeasurement(Row, query="measurement.list"):
    """What somebody measured; one row per measurement."""

    measurement_id: int
    hardware: str
    model: str
    precision: str
    batch: int
    runtime: str
    latency_s: float | None
    throughput_per_s: float | None
    energy_j: float | None
    power_w: float | None
    wall_power_w: float | None
    device_count: int | None
    peak_memory_bytes: int | None
    scope: str
    seen: str
    source: str
    conditions: str


class ServedMeasurement(Row, query="measurement.served"):
    """What somebody measured of language models as they are served; one row per measurement."""

    serving_measurement_id: int
    source: str
    hardware: str
    model: str
    scope: str
    engine: str
    engine_version: str
    date: str
    commit: str
    device_count: int | None
    tensor_parallel: int | None
    pipeline_parallel: int | None
    expert_parallel: int | None
    data_parallel: int | None
    weight_precision: str
    activation_precision: str
    cache_precision: str
    prompt_tokens: float | None
    output_tokens: float | None
    batch: float
    time_to_first_token_s: float | None
    inter_token_latency_s: float | None
    request_latency_s: float | None
    output_tokens_per_s: float | None
    total_tokens_per_s: float | None
    energy_per_output_token_j: float | None
    energy_per_request_j: float | None
    power_w: float | None
    power_boundary: str
    speculative: str
    cached_tokens: float | None
    uses_cache: bool
    context_tokens: float | None
    file_bytes: float | None
    statistic: str
    prompt_kind: str
    notes: str
    seen: str
