"""Scaling an energy per action between process nodes."""

from __future__ import annotations

import itertools
import math
from typing import Final

LOGIC_EXPONENT: Final = 0.57
"""Source: Jouppi et al., Ten Lessons, ISCA 2021, Table 2: geometric mean of eight operations from 45 to 7 nm
falls by 2.87 = (45/7)^0.57."""

BELOW_7NM: Final = {5.0: 0.70, 4.0: 0.65, 3.0: 0.48}
"""Energy relative to 7 nm. Source: TSMC iso-speed power claims per node, compounded for 4 and 3 nm."""

FINEST_NM: Final = 3.0
COARSEST_NM: Final = 65.0


def _relative_to_7nm(node_nm: float) -> float:
    if not FINEST_NM <= node_nm <= COARSEST_NM:
        raise ValueError(f"process node {node_nm:g} nm is outside {FINEST_NM:g} to {COARSEST_NM:g} nm")
    if node_nm >= 7.0:
        return float((node_nm / 7.0) ** LOGIC_EXPONENT)
    points = sorted({**BELOW_7NM, 7.0: 1.0}.items())
    for (low_nm, low), (high_nm, high) in itertools.pairwise(points):
        if low_nm <= node_nm <= high_nm:
            share = math.log(node_nm / low_nm) / math.log(high_nm / low_nm)
            return float(low * (high / low) ** share)
    raise AssertionError(node_nm)


def node_factor(from_nm: float, to_nm: float) -> float:
    """Return energy at `to_nm` over energy at `from_nm` for logic and SRAM.

    Wires and DRAM do not follow it. Raises ValueError outside 3 to 65 nm.
    """
    return _relative_to_7nm(to_nm) / _relative_to_7nm(from_nm)
