"""The latency of a repeated call, and whether it is to be trusted."""

from __future__ import annotations

from typing import Final

import attrs

LARGEST_SPREAD: Final = 0.2
"""Of the middle half of repetitions over their median; beyond, a latency is not to be trusted."""

SMALLEST_SHARE: Final = 0.9
"""Of a window that the one working thread must have had."""


@attrs.frozen(kw_only=True)
class Timing:
    """A window of repetitions. Latencies and energy are per call, which is one batch."""

    latency_s: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Median."""
    first_quartile_s: float
    third_quartile_s: float
    repetition_count: int = attrs.field(validator=attrs.validators.ge(1))
    calls_per_repetition: int = attrs.field(validator=attrs.validators.ge(1))
    window_s: float
    warm_up_s: float
    is_steady: bool
    """Whether the warm-up ended because repetitions agreed, not because its time was up."""
    processor_s: float
    """Of all threads of this process; what waits in a loop for another thread counts too."""
    processor_fraction: float | None
    """Of the window, in which the one thread that works ran; None where several threads or another device do."""
    energy_j: float | None
    power_w: float | None
    """Mean over the window."""

    @property
    def spread_fraction(self) -> float:
        """Width of the middle half of repetitions over their median."""
        return (self.third_quartile_s - self.first_quartile_s) / self.latency_s

    @property
    def is_trusted(self) -> bool:
        """Whether the repetitions agree well enough to score a prediction by, and were not those of others too."""
        return self.spread_fraction <= LARGEST_SPREAD and not self.is_crowded

    @property
    def is_crowded(self) -> bool:
        """Whether other programs took a large part of the window."""
        return self.processor_fraction is not None and self.processor_fraction < SMALLEST_SHARE


@attrs.frozen(kw_only=True)
class Trial:
    """A timed model and the circumstances."""

    timing: Timing
    batch: int
    scope: str
    """What energy and power cover, whether counted or not."""
    peak_memory_bytes: int | None
    stream_count: int | None
    """Streams that the process had used; None without a GPU."""
    device_name: str
    conditions: str
