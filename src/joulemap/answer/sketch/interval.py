"""Intervals of sketches, and how a metric stands at an axis."""

from __future__ import annotations

import math

from joulemap.domain.metric import METRIC, MetricName
from joulemap.present.sketch import Axis


def find_ends(value: float | None, half_width: float | None) -> tuple[float | None, float | None]:
    """Return the ends of a value's interval, from the half-width of that of its logarithm; None without one."""
    if value is None or half_width is None:
        return None, None
    return value * math.exp(-half_width), value * math.exp(half_width)


def make_axis(metric: MetricName, *, is_log: bool | None = None) -> Axis:
    """Return the axis of a metric."""
    found = METRIC[metric]
    unit = "%" if found.column.endswith("_fraction") else found.unit
    return Axis(label=found.meaning, unit=unit, is_log=is_log)
