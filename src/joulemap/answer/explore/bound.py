"""The limits of designs, as they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain.settings import Limits
from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from joulemap.design.limit import Bound

NO_SHARES: Final[Mapping[str, float]] = {}

BOUNDED: Final[Mapping[str, tuple[str, str]]] = {
    "max_latency_s": ("--max-latency", "latency"),
    "max_energy_per_inference_j": ("--max-energy-per-inference", "energy"),
    "max_memory_bytes": ("--max-memory", "memory"),
    "max_power_w": ("--max-power", "power"),
    "min_throughput_per_s": ("--min-throughput", "throughput"),
}
"""Limit -> its option, and the objective that it bounds."""


def read_bounds(limits: Limits, max_area_mm2: float | None, max_die_cost_usd: float | None) -> tuple[Bound, ...]:
    """Return the limits of designs; UsageError for one that they have not."""
    from joulemap.design.limit import Bound

    given = {name: value for name, value in attrs.asdict(limits).items() if value is not None}
    odd = [name for name in given if name not in BOUNDED]
    if odd:
        raise UsageError(f"{odd[0]} is no limit of a design; limits are {', '.join(BOUNDED)}, max_area_mm2")
    bounds = [Bound.of(*BOUNDED[name], value) for name, value in given.items()]
    for option, name, value in (("--max-area", "area", max_area_mm2), ("--max-die-cost", "cost", max_die_cost_usd)):
        if value is not None:
            if not value > 0.0:
                raise UsageError(f"{option} is {value:g}, expected above 0")
            bounds.append(Bound.of(option, name, value))
    return tuple(bounds)
