"""Pipelines of models on one chip, each stage at its own rate: `detector.onnx:30fps + classifier:5/frame`."""

from __future__ import annotations

from typing import Final

from joulemap.system.wing import Wing

JOIN: Final = " + "
"""Separator between the stages of a pipeline."""

AROUND: Final = ("prepare(", "boxes(")
"""Beginnings of the names of work around a model, which a host computes."""

UNITS: Final = ("fps", "/s", "/frame")
"""Units of a stage's rate."""


def register() -> Wing:
    """Return the contributions of this wing to the core."""
    return Wing(name="pipeline", parts={"models": "joulemap.wing.pipeline.name:NAMES"})
