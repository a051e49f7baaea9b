"""Reasons why a chip cannot run a configuration, for formulas that judge many configurations and raise no error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.system.errors import Reason

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

LEAST_GB: Final = 0.1
"""Minimum capacity that a refusal states in GB; a smaller one is stated in MB."""


def refuse_precision(hardware: Hardware, precision: str) -> Reason:
    """Return the reason that a chip lacks a precision."""
    return Reason(
        text=f"{hardware.id} has no {precision}; it has {', '.join(hardware.peaks)}",
        code="precision",
        values={"hardware": hardware.id, "precision": precision, "supported": tuple(hardware.peaks)},
    )


def find_shortage(name: str, required: float, capacity: float) -> Reason | None:
    """Return the reason that the required bytes exceed a chip's memory; None if they fit."""
    return refuse_bytes(name, required, capacity) if required > capacity else None


def refuse_bytes(name: str, required: float, capacity: float) -> Reason:
    """Return the reason that a chip's memory is too small."""
    scale, unit = (1e9, "GB") if capacity >= LEAST_GB * 1e9 else (1e6, "MB")
    has = f"{capacity / scale:.3g} {unit} of memory"
    return Reason(
        text=f"{name} has {has}; this configuration needs {required / scale:,.1f} {unit}",
        code="memory",
        values={"hardware": name, "required_bytes": float(required), "capacity_bytes": float(capacity)},
    )
