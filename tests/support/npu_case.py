"""A toy NPU with round numbers."""

from __future__ import annotations

from chip import npu
from joulemap.physics.record.hardware import Hardware


def fabric(macs: float = 2_500.0, **geometry: float) -> Hardware:
    """Return a dataflow fabric without DRAM of eight units, 50 x 50 outputs and an image in four intervals."""
    geometry = {"dataflow_intervals": 4.0, "resident_programs": 1.0, "host_link_lanes": 4.0, **geometry}
    return npu(units=8, macs_per_clock={"int8": macs}, **geometry)
