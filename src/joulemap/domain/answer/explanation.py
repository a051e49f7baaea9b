"""What putting two runs side by side hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class EnergyTerm:
    """A row of `explain.energy`: one term of the difference B minus A."""

    term: str
    category_a: str | None
    category_b: str | None
    component: str
    action: str
    per: str
    part: str
    count_a: float
    count_b: float
    energy_per_action_a_j: float | None
    energy_per_action_b_j: float | None
    basis_a: str | None
    basis_b: str | None
    difference_fj: int
    difference_j: float
    share_fraction: float | None


@attrs.frozen
class EnergyTotal:
    """The row of `explain.total`: both runs and their difference, exact in femtojoules."""

    model: str
    hardware_a: str
    hardware_b: str
    energy_a_fj: int
    energy_b_fj: int
    difference_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    ratio: float


@attrs.frozen
class Setting:
    """A row of `run.setting`: a setting, version or digest in which two runs differ."""

    setting_index: int
    setting: str
    value_a: str
    value_b: str


@attrs.frozen
class Constant:
    """A row of `run.constant`: a number of the hardware in which two runs differ."""

    constant: str
    value_a: float | None
    value_b: float | None
    unit: str
    ratio: float | None
    moved_j: float | None
    """Of an energy per action: B's count times the difference of the prices."""
    basis_a: str | None
    basis_b: str | None
    source_a: str | None
    source_b: str | None
