"""Observations: measured latencies and energies with their workloads and weights.

Many rows of one kind outweigh few, but less than in proportion:

    weight of a row ~ 1 / sqrt(rows of its family in its group) x 1 / sqrt(families of its group)

There is one group per precision, batch size and runtime. A group or family with four times the rows therefore counts
twice. A row of an eager program counts a quarter, because the host sets its pace. That pace varies by a third between
measurements of one model at different precisions.

Repeated rows carry the information of few measurements, and few measurements say little about models that were not
measured. Their credibility Z expresses this:

    n = sum over families of each group of sqrt(rows)      Z = n / (n + k)

Source of Z: Bühlmann, Experience Rating and Credibility, 1967.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.product import DEFAULT, MatmulPrecision
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.workload import Booleans, Floats, WorkloadColumns
from joulemap.system.record import frozen

EAGER_WEIGHT: Final = 0.25

FOLDS: Final = 10
"""Number of folds into which cross-validation divides the models of a single family."""

PRIOR_ROWS: Final = 4.0
"""k: number of measurements of different families that have the same weight as the class defaults."""


def _above_zero(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not value > 0.0:
        raise ValueError(f"{attribute.name} is {value!r}, expected above 0 or None")


@frozen(kw_only=True, eq=False)
class Observation:
    """Measured latency or energy of a whole workload, or of some of its operators, with the workload and its
    configuration.
    """

    columns: WorkloadColumns
    configuration: Configuration
    matmul_precision: MatmulPrecision = DEFAULT
    """Setting of the library for products at fp32."""
    model: str
    family: str
    """Model family, held out as a whole in cross-validation."""
    operator_index: tuple[int, ...] | None = None
    """Indices of the operators whose kernels were measured; None for the whole run."""
    latency_s: float | None = attrs.field(default=None, validator=_above_zero)
    energy_j: float | None = attrs.field(default=None, validator=_above_zero)
    weight: float = attrs.field(default=1.0, validator=_above_zero)
    """Factor on the weight that the observation gets from the balance of groups and families."""
    includes_gap: bool = True
    """True if the latency includes gaps between kernels; a profile of kernels does not."""

    @property
    def is_run(self) -> bool:
        """True if the observation covers a whole run."""
        return self.operator_index is None

    @property
    def label(self) -> str:
        """Text that describes the observation."""
        one = self.configuration
        mode = "" if one.power_mode == "default" else f" @{one.power_mode}"
        operators = "" if self.operator_index is None else f" {len(self.operator_index)} operators"
        return f"{self.model}{operators} {one.precision} batch {one.batch} {one.runtime}{mode}"


def balance(observations: Sequence[Observation], counts: Booleans) -> Floats:
    """Return the weight of each row. The mean weight of the used rows (`counts`) is 1; other rows get 0."""
    groups = _groups(observations)
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


def credibility(observations: Sequence[Observation], counts: Booleans) -> float:
    """Return the credibility Z of the used rows (`counts`): 0 without rows, towards 1 for many."""
    weights: dict[tuple[object, ...], float] = {}
    for group, one, is_counted in zip(_groups(observations), observations, counts.tolist(), strict=True):
        if is_counted:
            member = (*group, one.family)
            weights[member] = weights.get(member, 0.0) + one.weight
    rows = sum(map(math.sqrt, weights.values()))
    return rows / (rows + PRIOR_ROWS)


def divide(observations: Sequence[Observation]) -> dict[str, Booleans]:
    """Return name -> rows that cross-validation holds out together.

    Each model family is held out as a whole. A single family is divided into `FOLDS` folds of models, unless it has
    fewer models.
    """
    families = np.array([one.family for one in observations])
    if len(set(families.tolist())) > 1:
        return {name: families == name for name in sorted(set(families.tolist()))}
    models = {model: number for number, model in enumerate(sorted({one.model for one in observations}))}
    if len(models) < FOLDS:
        return {str(families[0]): np.ones(len(families), dtype=bool)}
    folds = np.array([models[one.model] % FOLDS for one in observations])
    return {f"part {fold + 1} of {len(models)} models": folds == fold for fold in range(FOLDS)}


def _groups(observations: Sequence[Observation]) -> list[tuple[str, int, str, bool]]:
    """Return the group of each row: precision, batch, runtime, and whether the row covers a whole run."""
    return [
        (one.configuration.precision, one.configuration.batch, one.configuration.runtime, one.is_run)
        for one in observations
    ]


def _own_weight(one: Observation) -> float:
    return one.weight * (EAGER_WEIGHT if RUNTIME[one.configuration.runtime].launches_each else 1.0)
