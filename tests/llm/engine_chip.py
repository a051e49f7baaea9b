"""Chips as an engine uses them in passes of few and of many rows."""

from __future__ import annotations

from joulemap.physics.record.hardware import Hardware
from joulemap.physics.stream import find_stream_ratio, slow_stream
from joulemap.wing.decoder.engine.chip import FEW, TILED
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.surface import Passes


def find_chips(deployment: Deployment) -> tuple[Hardware, Hardware]:
    """Return the chip of a deployment for a token of one sequence, and for products cut into full tiles."""
    (asked,) = deployment.ask(Passes.of([1.0], context=[8.0]))
    under = deployment.put_under(asked)
    return under.take(FEW, deployment.hardware), under.take(TILED, deployment.hardware)


def reach_bandwidth(chip: Hardware) -> float:
    """Return the bytes per second that the units of a chip stream from memory at the full clock."""
    return float(chip.memory_bandwidth.value / slow_stream(find_stream_ratio(chip)))
