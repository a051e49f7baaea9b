"""Measurements of whole models, power states and profiled operators, and timings of repeated calls."""

from __future__ import annotations

from typing import Final, Self

import attrs

from joulemap.physics.record.configuration import BOUNDARY_NAMES
from joulemap.physics.record.product import DEFAULT, MATMUL_PRECISIONS
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.system.record import frozen

Shape = tuple[int, ...]

LARGEST_SPREAD: Final = 0.2
"""Largest interquartile range of a trusted latency, as a share of its median."""

SMALLEST_SHARE: Final = 0.9
"""Minimum share of a window that a single working thread must have run for the window to be trusted."""


@frozen(kw_only=True)
class Measurement:
    """One measured configuration; a value that was not measured is None."""

    hardware: str
    model: str
    precision: str
    matmul_precision: str = attrs.field(default=DEFAULT, validator=attrs.validators.in_(MATMUL_PRECISIONS))
    """Setting of the library for products at fp32, such as `highest` where TF32 was disabled."""
    batch: int = attrs.field(validator=attrs.validators.ge(1))
    runtime: str = attrs.field(validator=attrs.validators.in_(RUNTIME_NAMES))
    scope: str
    """Description of the measurement, e.g. `MLPerf Inference, offline`."""
    boundary: str = attrs.field(default="", validator=attrs.validators.in_(("", *BOUNDARY_NAMES)))
    """Boundary of `energy_j` and `power_w`: `chip` or `board`; empty without them."""
    idle_power_w: float | None = None
    """Idle power that was subtracted from `energy_j` (`power_w` contains it); None for an energy that contains it."""
    latency_s: float | None = None
    """Latency per batch."""
    throughput_per_s: float | None = None
    """Inferences per second of one device, batches back to back."""
    energy_j: float | None = None
    """Energy per batch."""
    power_w: float | None = None
    wall_power_w: float | None = None
    """Power at the wall plug of the whole system, divided by its devices; it includes host and power supply."""
    device_count: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Number of devices in the system that the wall plug feeds. They share the power of the host."""
    peak_memory_bytes: int | None = None
    source: str
    conditions: str
    """Conditions that the number depends on: versions, clocks, sizes."""
    seen: str = ""
    """Coefficients fitted with this row; empty if there are none."""
    stream_count: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """CUDA streams of the process that had run a GEMM. Frameworks keep a memory workspace for each of them."""


POWER_STATE: Final = "power_state"
"""Name, before its arguments, that measurements of power states have in place of a model."""

PRODUCTS: Final = ("zeros", "random")
LOADS: Final = ("idle", "sleep", "spin", "copy", *PRODUCTS)
"""Loads of power states: no kernel, blocks that wait, blocks that compute integers, a copy, and fp16 GEMMs of zeros and
of random numbers.
"""


@frozen
class PowerState:
    """Load and clocks of a board whose power is measured; it has no latency, so it tests no prediction of a model."""

    load: str = attrs.field(validator=attrs.validators.in_(LOADS))
    core_hz: float
    memory_hz: float
    busy_units: float
    """Units that hold a block of threads."""
    bytes_per_s: float
    """Bytes that a copy reads and writes; 0 for other loads."""

    @property
    def name(self) -> str:
        """Name of the state in place of a model, such as `power_state(spin,1.98e+09,2.619e+09,132,0)`."""
        load, *values = attrs.astuple(self)
        return f"{POWER_STATE}({','.join([load, *(f'{value:.6g}' for value in values)])})"

    @classmethod
    def read(cls, name: str) -> Self | None:
        """Return the state with this name, None for that of a model; ValueError or TypeError for other arguments."""
        if not name.startswith(f"{POWER_STATE}("):
            return None
        load, *values = name[len(POWER_STATE) + 1 :].rstrip(")").split(",")
        return cls(load, *map(float, values))


@frozen(kw_only=True)
class TracedOperator:
    """Properties of an operator that decide which eager kernels run it."""

    operator_index: int
    operation: str
    """Operation as in the view `operator_signatures`, where the three operators of an attention are one operation."""
    shapes: str
    """Shapes as in the view `operator_signatures`."""
    kind: str
    aten: str
    output_shape: Shape
    copied_shape: Shape
    """Shape of the preceding view if the operator copies it to contiguous memory; else the operator's output shape."""
    input_elements: tuple[int, ...]
    """Elements that the operator reads of each input activation."""
    weight_shapes: tuple[Shape, ...]
    gemm: tuple[int, int, int, int]
    """GEMM view: groups, M, N, K."""


@frozen(kw_only=True)
class Timing:
    """Timing of a window of repetitions. Latencies and energy are per call, which is one batch."""

    latency_s: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Median latency."""
    first_quartile_s: float
    third_quartile_s: float
    repetition_count: int = attrs.field(validator=attrs.validators.ge(1))
    calls_per_repetition: int = attrs.field(validator=attrs.validators.ge(1))
    window_s: float
    warm_up_s: float
    is_steady: bool
    """True if the warm-up ended because repetitions agreed, False if it timed out."""
    processor_s: float
    """CPU time per call of all threads of this process, including busy-waiting."""
    processor_fraction: float | None
    """Share of the window that the only working thread ran; None if several threads or another device worked."""
    energy_j: float | None
    power_w: float | None
    """Mean power over the window."""

    @property
    def spread_fraction(self) -> float:
        """Interquartile range of the repetitions divided by their median."""
        return (self.third_quartile_s - self.first_quartile_s) / self.latency_s

    @property
    def is_trusted(self) -> bool:
        """True if the repetitions agree well enough to score a prediction and no other program interfered."""
        return self.spread_fraction <= LARGEST_SPREAD and not self.is_crowded

    @property
    def is_crowded(self) -> bool:
        """True if other programs used a large part of the window."""
        return self.processor_fraction is not None and self.processor_fraction < SMALLEST_SHARE


@frozen(kw_only=True)
class Trial:
    """Result of timing a model, with the conditions of the measurement."""

    timing: Timing
    batch: int
    scope: str
    """Energy boundary that the counters of this machine cover: `board` or `package`; stated even if none was read."""
    peak_memory_bytes: int | None
    stream_count: int | None
    """CUDA streams of the process that had run a GEMM; None without a GPU."""
    device_name: str
    conditions: str
