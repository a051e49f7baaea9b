"""The run that a file for another program is about."""

from __future__ import annotations

from joulemap.system.record import frozen


@frozen(kw_only=True)
class Subject:
    """The run that a file is about."""

    model: str
    hardware: str
    title: str
    """Model, hardware and configuration in a line."""
    energy_fj: int
    latency_fs: int
    weight_bytes: int
