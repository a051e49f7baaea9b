"""Identity and totals of a run for an exported file."""

from __future__ import annotations

from joulemap.system.record import frozen


@frozen(kw_only=True)
class Subject:
    """Run to which an exported file belongs."""

    model: str
    hardware: str
    title: str
    """Model, hardware and configuration in one line."""
    energy_fj: int
    latency_fs: int
    weight_bytes: int
