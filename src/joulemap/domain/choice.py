"""What a choice is made from, within which limits, and how a chip is used where money or carbon count."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.errors import UsageError

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware

METRICS: Final = (
    "latency",
    "energy_per_inference",
    "energy",
    "throughput",
    "power",
    "memory",
    "edp",
    "edp_per_inference",
    "price",
    "purchase",
    "cost",
    "carbon",
)
"""What configurations are compared in; the queries say what each is and in which unit."""

OBJECTIVES: Final = (
    "energy_per_inference",
    "energy",
    "latency",
    "throughput",
    "edp",
    "edp_per_inference",
    "cost",
    "carbon",
)
"""What a recommendation is best in."""

DEFAULT_PRECISIONS: Final = ("fp32", "fp16", "bf16", "int8")
DEFAULT_BATCHES: Final = (1, 8, 32)

WAYS: Final = ("cloud", "purchase")
"""How a chip is paid for."""

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _within(low: float, high: float, *, is_open: bool) -> Check:
    """Refuse a number that is not between two others; `is_open` leaves out the lower one."""

    def check(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
        if value is None:
            return
        if not (low < value if is_open else low <= value) or not value <= high:
            word = "above" if is_open else "at least"
            most = "" if high == math.inf else f" and at most {high:g}"
            raise UsageError(f"{attribute.name} is {value:g}, expected {word} {low:g}{most}")
        if math.isinf(value):
            raise UsageError(f"{attribute.name} is {value:g}, expected a finite number")

    return check


@attrs.frozen(kw_only=True)
class Candidates:
    """Every configuration that is chosen from: each hardware, power mode, precision and batch with each other."""

    hardware: tuple[str | Hardware, ...] = ()
    """As for a comparison; empty for the whole catalogue, or what the two filters leave of it."""
    architecture: tuple[str, ...] = ()
    deployment: tuple[str, ...] = ()
    power_mode: str = ""
    """Of hardware that is named without one; empty for every mode that it has."""
    precisions: tuple[str, ...] = DEFAULT_PRECISIONS
    batches: tuple[int, ...] = ()
    """Empty for 1, 8 and 32, or the one of the inputs where those are given."""
    runtime: str = "fused"
    inputs: tuple[str, ...] = ()
    arguments: Mapping[str, object] = attrs.field(factory=dict)
    retrace: bool = False
    calibration: str | Calibration = "auto"
    """As for a comparison."""


_ABOVE_0: Final = _within(0.0, math.inf, is_open=True)


@attrs.frozen(kw_only=True)
class Limits:
    """What a configuration must keep to; None for no limit."""

    max_latency_s: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of a batch."""
    max_energy_j: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of a batch."""
    max_energy_per_inference_j: float | None = attrs.field(default=None, validator=_ABOVE_0)
    max_memory_bytes: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of weights and activations of a batch."""
    max_power_w: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """While it runs."""
    min_throughput_per_s: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """In inferences."""
    max_price_usd_per_hour: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of one chip in a cloud."""
    max_purchase_usd: float | None = attrs.field(default=None, validator=_ABOVE_0)

    @property
    def parameters(self) -> dict[str, float]:
        """As the queries take them: 0 for no limit."""
        return {name: value or 0.0 for name, value in attrs.asdict(self).items()}

    @property
    def bounds(self) -> tuple[tuple[str, float], ...]:
        """(metric, bound) of every limit that is set."""
        return tuple((LIMITED[name], value) for name, value in attrs.asdict(self).items() if value is not None)


LIMITED: Final = {
    "max_latency_s": "latency",
    "max_energy_j": "energy",
    "max_energy_per_inference_j": "energy_per_inference",
    "max_memory_bytes": "memory",
    "max_power_w": "power",
    "min_throughput_per_s": "throughput",
    "max_price_usd_per_hour": "price",
    "max_purchase_usd": "purchase",
}
"""Limit -> the metric that it bounds."""


@attrs.frozen(kw_only=True)
class Usage:
    """How a chip is used and powered; None for what the catalogue assumes."""

    utilization: float | None = attrs.field(default=None, validator=_within(0.0, 1.0, is_open=True))
    """The part of the powered or rented hours that it works."""
    lifetime_years: float | None = attrs.field(default=None, validator=_ABOVE_0)
    hours_per_year: float | None = attrs.field(default=None, validator=_within(0.0, 8784.0, is_open=True))
    """That a bought chip is powered."""
    pue: float | None = attrs.field(default=None, validator=_within(1.0, math.inf, is_open=False))
    """Of data centres; elsewhere it is 1."""
    usd_per_kwh: float | None = attrs.field(default=None, validator=_within(0.0, math.inf, is_open=False))
    region: str = ""
    """Grid, by id or name; empty for the world."""
    gco2_per_kwh: float | None = attrs.field(default=None, validator=_within(0.0, math.inf, is_open=False))
    """In place of the region's."""
