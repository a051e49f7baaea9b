"""What somebody measured, to score predictions against."""

from __future__ import annotations

import attrs

from joulemap.domain.configuration import RUNTIMES


@attrs.frozen(kw_only=True)
class Measurement:
    """One measured configuration; a figure that was not taken is None."""

    hardware: str
    model: str
    precision: str
    batch: int = attrs.field(validator=attrs.validators.ge(1))
    runtime: str = attrs.field(validator=attrs.validators.in_(RUNTIMES))
    scope: str
    """What is covered, e.g. `board`."""
    latency_s: float | None = None
    """Per batch."""
    energy_j: float | None = None
    """Per batch."""
    power_w: float | None = None
    peak_memory_bytes: int | None = None
    source: str
    conditions: str
    """Versions, clocks, sizes: what the number depends on."""
    seen: str = ""
    """Which coefficients were chosen with this row in view; empty where none was."""
    stream_count: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Streams of the process that had run a product by then, where the framework keeps a workspace for each."""
