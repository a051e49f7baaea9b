"""Reasons why a chip cannot run a configuration, for formulas that judge many configurations and raise no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.physics.pipeline import describe_precision, describe_shortage
from joulemap.system.errors import Reason

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware


def refuse_precision(hardware: Hardware, precision: str) -> Reason:
    """Return the reason that a chip lacks a precision."""
    return Reason(
        text=describe_precision(hardware, precision),
        code="precision",
        values={"hardware": hardware.id, "precision": precision, "supported": tuple(hardware.peaks)},
    )


def find_shortage(name: str, required: float, capacity: float) -> Reason | None:
    """Return the reason that the required bytes exceed a chip's memory; None if they fit."""
    text = describe_shortage(name, required, capacity)
    values = {"hardware": name, "required_bytes": float(required), "capacity_bytes": float(capacity)}
    return Reason(text=text, code="memory", values=values) if text else None
