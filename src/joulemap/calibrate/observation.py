"""What was measured, beside the workload that it was measured on."""

from __future__ import annotations

from typing import Any

import attrs

from joulemap.domain.configuration import Configuration
from joulemap.model.workload import WorkloadColumns


def _above_zero(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not value > 0.0:
        raise ValueError(f"{attribute.name} is {value!r}, expected above 0 or None")


@attrs.frozen(kw_only=True, eq=False)
class Observation:
    """One measured latency or energy, of a whole workload or of some of its operators."""

    columns: WorkloadColumns
    configuration: Configuration
    model: str
    family: str
    """What cross-validation leaves out together."""
    operator_index: tuple[int, ...] | None = None
    """The operators whose kernels were measured; None for the whole run."""
    latency_s: float | None = attrs.field(default=None, validator=_above_zero)
    energy_j: float | None = attrs.field(default=None, validator=_above_zero)
    weight: float = attrs.field(default=1.0, validator=_above_zero)
    """Beside that which balances groups and families."""
    includes_gap: bool = True
    """Whether the latency has the gaps between kernels in it; a profile of kernels has not."""

    @property
    def is_run(self) -> bool:
        """Whether it covers a whole run."""
        return self.operator_index is None

    @property
    def label(self) -> str:
        """What it is, for people."""
        one = self.configuration
        mode = "" if one.power_mode == "default" else f" @{one.power_mode}"
        operators = "" if self.operator_index is None else f" {len(self.operator_index)} operators"
        return f"{self.model}{operators} {one.precision} batch {one.batch} {one.runtime}{mode}"
