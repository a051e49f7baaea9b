"""Rows of the answer about a machine: its chips, language models on them, and other models."""

from __future__ import annotations

from joulemap.answer.computed import told
from joulemap.system.record import frozen


@frozen(kw_only=True)
class DeviceRow:
    """Chip of the machine; null for a number that is neither reported nor in the catalogue."""

    printed: str = told("name as the machine prints it")
    label: str = told("hardware of the catalogue, or of the description made here; empty if unknown")
    kind: str = told("class: cpu, gpu or npu")
    count: int = told("chips of this kind")
    memory_bytes: float | None = told("memory of one chip; the machine's if the chip shares it", "B")
    memory_bytes_per_s: float | None = told("peak bandwidth of that memory", "B/s")
    power_w: float | None = told("power limit", "W")
    origin: str = told("source of the description")


@frozen(kw_only=True)
class ServedHere:
    """Language model with one weight format on a chip, on several, or divided between GPU and processor."""

    model: str = told("language model")
    weights: str = told("weight format")
    label: str = told("chip, several chips, or the two that divide the layers")
    fits: str = told("yes, no, or the number of layers on the GPU")
    context_tokens: int | None = told("maximum tokens of a sequence; null if the model does not fit or is divided")
    first_token_s: float | None = told("time to first token", "s")
    first_token_half_width: float | None = told("half-width of the 80 % interval of the logarithm of first_token_s")
    tokens_per_s: float | None = told("output tokens per second of one user", "1/s")
    between_half_width: float | None = told("half-width of the 80 % interval of the logarithm of tokens_per_s")
    power_w: float | None = told("power during decode, of all chips that work", "W")
    output_token_j: float | None = told("energy per output token", "J")
    output_token_half_width: float | None = told("half-width of the 80 % interval of the logarithm of output_token_j")
    usd_per_million: float | None = told("electricity for a million output tokens at the tariff", "USD")
    memory_fraction: float | None = told("share of the chip's memory that is used; above 1 if it does not fit")
    reason: str = told("reason for a refusal; empty otherwise")


@frozen(kw_only=True)
class RunHere:
    """Model other than a language model on one chip."""

    model: str = told("model")
    label: str = told("chip")
    precision: str = told("precision")
    latency_s: float | None = told("latency of a batch of one", "s")
    latency_half_width: float | None = told("half-width of the 80 % interval of the logarithm of latency_s")
    per_s: float | None = told("inferences per second", "1/s")
    energy_j: float | None = told("energy of an inference", "J")
    energy_half_width: float | None = told("half-width of the 80 % interval of the logarithm of energy_j")
    power_w: float | None = told("average power", "W")
    memory_bytes: float | None = told("memory that is used", "B")
    reason: str = told("reason for a refusal; empty otherwise")
