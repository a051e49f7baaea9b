"""How many tokens and experts a device has to do with, of a mixture whose experts are spread over devices.

Each of T tokens takes k of n experts, of which a device holds n / d. Choices are

    independent   of one another, as the traces of models have it: `hit_count`
    balanced      each expert is taken as often as any other, and none twice while another is free
    power law     the loads of experts are drawn with a density that falls with a power a of the load, between R of one
                  another; the device is that of the largest load

Of a power law with moments m_1 and m_2 of a load x in 1 ... R, an expert is hit that is taken once or more after
rounding, that is where x is above n m_1 / (2 T k), and the busiest of d devices has more than the mean by
0.8 sqrt(2 ln d) deviations of the sum of n / d loads.

Source: aiconfigurator (recalled), which draws loads of its benchmarks so, between 1 and 0.8 T, or 0.01 and 2 where
experts are more than choices; the maximum of d normal numbers is about sqrt(2 ln d) deviations.
"""

from __future__ import annotations

import math
from typing import Final

from joulemap.domain.operator.name import POWER_LAW
from joulemap.trace.formula.product import hit_count

REACH: Final = 0.8
"""Of the deviations at which the largest of d numbers is for large d, for 2 to 64."""


def route(tokens: int, taken: int, experts: int, held: int, routing: str) -> tuple[int, int]:
    """Return (choices that fall on a device, its experts that are hit): at least one of each."""
    choices, devices = tokens * taken, experts // held
    if routing.startswith(POWER_LAW):
        share, hit = _skewed(tokens, choices, experts, devices, float(routing.removeprefix(POWER_LAW)))
        own = min(choices / devices * share, choices, tokens * min(taken, held))
        hit = min(max(hit, min(taken, experts)), choices, experts) / devices * min(share, 1.3)
    else:
        own = choices / devices
        hit = min(choices, experts) / devices if routing else hit_count(tokens, taken, experts) / devices
    rows = max(math.ceil(own - 1e-9), 1)
    return rows, max(min(math.ceil(hit - 1e-9), held, rows), 1)


def _skewed(tokens: int, choices: int, experts: int, devices: int, power: float) -> tuple[float, float]:
    """Return (what the busiest device has of the mean, experts that are hit on all devices)."""
    power = power + 1e-6 if power == 1.0 else power
    spread = max(0.8 * tokens, 1.01) if choices > experts else 200.0
    whole = (1.0 - spread ** (1.0 - power)) / (power - 1.0)
    mean, square = ((spread ** (order + 1.0 - power) - 1.0) / (order + 1.0 - power) / whole for order in (1.0, 2.0))
    least = min(max(0.5 * mean * experts / choices, 1.0), spread)
    missed = (1.0 - least ** (1.0 - power)) / (1.0 - spread ** (1.0 - power))
    variance = (square / mean**2 - 1.0) * devices / experts * (1.0 - 1.0 / devices)
    more = REACH * math.sqrt(2.0 * math.log(devices) * max(variance, 0.0))
    return 1.0 + more, experts * (1.0 - missed)
