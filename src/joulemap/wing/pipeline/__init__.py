"""Pipelines of models on one chip: `detector.onnx:30fps + classifier:5/frame`, `encoder + unet x 30 + decoder`."""

from __future__ import annotations

from typing import Final

from joulemap.system.wing import Wing

JOIN: Final = " + "
"""Separator between the stages of a pipeline."""

AROUND: Final = ("prepare(", "boxes(")
"""Beginnings of the names of pre- and postprocessing stages, which a host computes."""

PICTURE: Final = "-txt2img"
"""End of the names of pipelines that make a picture from a text."""

SPEECH: Final = ("whisper", "openai/whisper")
"""Beginnings of the names of pipelines that transcribe speech."""

FRAME: Final = "an inference is one frame"
"""Inference of a pipeline with a frame rate, for its note."""

UNITS: Final = ("fps", "/s", "/frame")
"""Units of a stage's rate."""


def register() -> Wing:
    """Return the contributions of this wing to the core."""
    return Wing(name="pipeline", parts={"models": "joulemap.wing.pipeline.name:NAMES"})
