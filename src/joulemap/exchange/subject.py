"""Run that an exported file describes."""

from __future__ import annotations

from joulemap.system.record import frozen


@frozen(kw_only=True)
class Subject:
    """Run that an exported file describes."""

    model: str
    hardware: str
    title: str
    """Model, hardware and configuration in one line."""
    energy_fj: int
    latency_fs: int
    weight_bytes: int
