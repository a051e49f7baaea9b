"""What a question may say about the runs that it needs, beside the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware

COMPARED: Final = ("energy", "latency", "edp", "memory")
"""Metrics that decide who wins, and that a difference is explained in."""

SORTS: Final = ("latency", "throughput", "power", "efficiency", "energy")
"""What hardware is ranked by."""

LEVELS: Final = ("subgraph", "operator")
"""Parts of a model that are compared one by one."""


class Settings(TypedDict, total=False):
    """Keyword arguments of a comparison; what is left out has the default of `Workspace.compare`."""

    hardware: Sequence[str | Hardware]
    architecture: Sequence[str]
    deployment: Sequence[str]
    power_mode: str
    batch: int | None
    precision: str
    runtime: str
    inputs: Sequence[str]
    arguments: Mapping[str, object] | None
    retrace: bool
    calibration: str | Calibration
