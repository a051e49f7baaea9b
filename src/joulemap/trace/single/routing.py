"""Load of one device by a mixture of experts whose experts are spread over devices.

Each of T tokens takes k of n experts, of which a device holds n / d. Choices are

    independent   of one another, as in the traces of models: `hit_count`
    balanced      each expert is taken as often as any other, and none twice while another is free
    all           as independent choices, but all n / d experts are read, each for full blocks of rows
    power law     the density of the experts' loads falls with a power a of the load, and loads differ by at most a
                  factor R; the device is the one with the largest load

Under a power law with moments m_1 and m_2 of a load x in 1 ... R, an expert is hit if it is taken at least once after
rounding, that is, if x is above n m_1 / (2 T k). The busiest of d devices exceeds the mean by 0.8 sqrt(2 ln d)
deviations of the sum of n / d loads.

Source: aiconfigurator (recalled), which draws the loads of its benchmarks in this way: between 1 and 0.8 T, or 0.01 and
2 if there are more experts than choices. The maximum of d normal numbers is about sqrt(2 ln d) deviations.
"""

from __future__ import annotations

import math
from typing import Final

from joulemap.domain.operator.name import POWER_LAW, READ_ALL
from joulemap.trace.formula.product import hit_count

BLOCK: Final = 64
"""Rows to which those of each expert are filled up if all are read. Source: vLLM, `get_default_config` of fused_moe.py:
BLOCK_SIZE_M for weights with scales of blocks.
"""

REACH: Final = 0.8
"""Ratio of the expected largest of d normal numbers (2 <= d <= 64) to its limit sqrt(2 ln d), both in deviations."""


def route(tokens: int, taken: int, experts: int, held: int, routing: str) -> tuple[int, int]:
    """Return (choices that fall on one device, distinct experts of this device that are read), each at least one.

    `taken` is experts per token, `held` experts per device.
    """
    choices, devices = tokens * taken, experts // held
    if routing == READ_ALL:
        return held * BLOCK * math.ceil(choices / experts / BLOCK - 1e-9), held
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
    """Return (load of the busiest device divided by the mean, distinct experts chosen on all devices)."""
    power = power + 1e-6 if power == 1.0 else power
    spread = max(0.8 * tokens, 1.01) if choices > experts else 200.0
    whole = (1.0 - spread ** (1.0 - power)) / (power - 1.0)
    mean, square = ((spread ** (order + 1.0 - power) - 1.0) / (order + 1.0 - power) / whole for order in (1.0, 2.0))
    least = min(max(0.5 * mean * experts / choices, 1.0), spread)
    missed = (1.0 - least ** (1.0 - power)) / (1.0 - spread ** (1.0 - power))
    variance = (square / mean**2 - 1.0) * devices / experts * (1.0 - 1.0 / devices)
    more = REACH * math.sqrt(2.0 * math.log(devices) * max(variance, 0.0))
    return 1.0 + more, experts * (1.0 - missed)
