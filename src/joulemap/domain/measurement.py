"""Measurements of whole models, of their operators as a profiler lists them, and the timing of a repeated call."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.domain.configuration import RUNTIMES
from joulemap.system.record import frozen

Shape = tuple[int, ...]

LARGEST_SPREAD: Final = 0.2
"""Of the middle half of repetitions over their median; beyond, a latency is not to be trusted."""

SMALLEST_SHARE: Final = 0.9
"""Of a window that the one working thread must have had."""


@frozen(kw_only=True)
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
    throughput_per_s: float | None = None
    """Inferences per second of one device, one batch after another without a pause."""
    energy_j: float | None = None
    """Per batch."""
    power_w: float | None = None
    wall_power_w: float | None = None
    """At the wall plug of the whole system, over its devices: a board draws less than with its host and supply."""
    device_count: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Devices of the system at the wall plug: the more there are, the less of the power is the host's."""
    peak_memory_bytes: int | None = None
    source: str
    conditions: str
    """Versions, clocks, sizes: what the number depends on."""
    seen: str = ""
    """Which coefficients were chosen with this row in view; empty where none was."""
    stream_count: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Streams of the process that had run a product by then, where the framework keeps a workspace for each."""


@frozen(kw_only=True)
class ProfiledKernel:
    """One row of a profile: an ATen operator at its input shapes, over one pass of a model."""

    model: str
    precision: str
    batch: int
    aten: str
    """Dispatched operator, e.g. `cudnn_convolution`."""
    shapes: tuple[Shape, ...]
    """Of its arguments; empty for one that is no tensor, or a list of tensors."""
    call_count: int
    device_time_us: float
    """Of all calls, without what lies between kernels."""


@frozen(kw_only=True)
class TracedOperator:
    """What of an operator decides which eager kernels run it."""

    operator_index: int
    operation: str
    """As `operator_signatures` has it: an attention's three operators are one operation."""
    shapes: str
    """As `operator_signatures` has them."""
    kind: str
    aten: str
    output_shape: Shape
    copied_shape: Shape
    """Of the view that it makes contiguous, if it comes right behind one, else its own."""
    input_elements: tuple[int, ...]
    """Of each activation that it reads, as far as it reads them."""
    weight_shapes: tuple[Shape, ...]
    gemm: tuple[int, int, int, int]
    """Groups, M, N, K."""


@frozen(kw_only=True)
class OperatorMeasurement:
    """Device time of the operators of a model that have the same operation and shapes, or of kernels that have none."""

    model: str
    precision: str
    batch: int
    operation: str
    """Empty for kernels that no operator of the trace stands for."""
    shapes: str
    """As traced; for kernels without an operator, of their arguments."""
    operator_count: int
    """Operators of the trace."""
    kernels: str
    """ATen operators that run them, in alphabetical order."""
    call_count: int
    """Calls of those."""
    device_time_us: float
    """Of all operators of the row, without what lies between kernels."""
    is_overlapping: bool
    """Whether its kernels run side by side in a graph, so that they take less time there."""
    pass_count: int
    """How often the profile lists every operator; times and calls are those of one pass."""


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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
