"""How much each row counts: many rows of one kind count for more than few, but not in proportion.

    weight of a row ~ 1 / sqrt(rows of its family in its group) x 1 / sqrt(families of its group)

with a group for each precision, batch and runtime. So a group or a family with four times the rows counts twice. A row
of an eager program counts a quarter: its pace is that of the host, which the same model at another precision shows to
vary by a third from one measurement to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.calibrate.observation import Observation
from joulemap.model.workload import Booleans, Floats

EAGER_WEIGHT: Final = 0.25


def balance(observations: Sequence[Observation], counts: Booleans) -> Floats:
    """Return the weight of each row, 1 on average over those that count, 0 for the others."""
    groups = [
        (one.configuration.precision, one.configuration.batch, one.configuration.runtime, one.is_run)
        for one in observations
    ]
    members = [(group, one.family) for group, one in zip(groups, observations, strict=True)]
    of_family = Counter(member for member, is_counted in zip(members, counts.tolist(), strict=True) if is_counted)
    families = Counter(group for group, _ in of_family)
    weights = np.array(
        [
            _own_weight(one) / np.sqrt(of_family[member] * families[group]) if is_counted else 0.0
            for one, group, member, is_counted in zip(observations, groups, members, counts.tolist(), strict=True)
        ]
    )
    total = weights.sum()
    return weights * (np.count_nonzero(counts) / total) if total > 0.0 else weights


def _own_weight(one: Observation) -> float:
    return one.weight * (EAGER_WEIGHT if one.configuration.runtime == "eager" else 1.0)
