"""Rows of the answer about a machine: its chips, language models on them, and other models."""

from __future__ import annotations

from joulemap.domain.computed import described
from joulemap.system.record import frozen


@frozen(kw_only=True)
class DeviceRow:
    """Chip of the machine; null for a number that is neither reported nor in the catalogue."""

    printed: str = described("name as the machine prints it")
    label: str = described("hardware of the catalogue, or of the description made here; empty if unknown")
    kind: str = described("class: cpu, gpu or npu")
    count: int = described("chips of this kind")
    memory_bytes: float | None = described("memory of one chip; the machine's if the chip shares it", "B")
    usable_bytes: float | None = described("memory that the operating system leaves to models on this chip", "B")
    memory_bytes_per_s: float | None = described("peak bandwidth of that memory", "B/s")
    power_w: float | None = described("power limit", "W")
    origin: str = described("source of the description; numbers that the machine reports or that are assumed")


@frozen(kw_only=True)
class ServedHere:
    """Language model in one weight format on a chip, on several equal chips, or divided between GPU and processor."""

    model: str = described("language model")
    weights: str = described("weight format")
    label: str = described("chip, several chips, or the two that divide the layers")
    fits: str = described("yes, no, or the number of layers on the GPU")
    context_tokens: int | None = described(
        "maximum tokens of a sequence; null if the model does not fit or is divided, or nothing limits them"
    )
    first_token_s: float | None = described("time to first token", "s")
    first_token_half_width: float | None = described("half-width of the 80 % interval of ln(first_token_s)")
    tokens_per_s: float | None = described("output tokens per second of one user", "1/s")
    between_half_width: float | None = described("half-width of the 80 % interval of ln(tokens_per_s)")
    power_w: float | None = described("power during decode, of all chips that work", "W")
    output_token_j: float | None = described("energy per output token", "J")
    output_token_half_width: float | None = described("half-width of the 80 % interval of ln(output_token_j)")
    usd_per_million: float | None = described("electricity for a million output tokens at the tariff", "USD")
    memory_fraction: float | None = described(
        "share of the chip's memory, or of the machine's if shared, that the model takes together with what the "
        "operating system and the engine keep; above 1 if it does not fit"
    )
    reason: str = described("reason for a refusal; empty otherwise")


@frozen(kw_only=True)
class RunHere:
    """Model other than a language model on one chip."""

    model: str = described("model")
    label: str = described("chip")
    precision: str = described("precision")
    batch: int | None = described("batch size; more than 1 only where a file or an input states it")
    latency_s: float | None = described("latency of a batch", "s")
    latency_half_width: float | None = described("half-width of the 80 % interval of the logarithm of latency_s")
    per_s: float | None = described("inferences per second", "1/s")
    energy_j: float | None = described("energy of a batch", "J")
    energy_half_width: float | None = described("half-width of the 80 % interval of the logarithm of energy_j")
    power_w: float | None = described("average power", "W")
    memory_bytes: float | None = described("memory that is used", "B")
    reason: str = described("reason for a refusal; empty otherwise")
