"""Pipelines of models on one chip: `detector.onnx:30fps + classifier:5/frame`, `encoder + unet x 30 + decoder`."""

from __future__ import annotations

from typing import Final

from joulemap.system import Wing

PICTURE: Final = "-txt2img"
"""Suffix of the names of built-in text-to-image pipelines."""

SPEECH: Final = ("whisper", "openai/whisper")
"""Prefixes of the names of built-in speech pipelines."""

FRAME: Final = "an inference is one frame"
"""Note on what one inference is, for a pipeline with a frame rate."""

UNITS: Final = ("fps", "/s", "/frame")
"""Units in which a stage may state its rate."""


def register() -> Wing:
    """Return the model names that this wing adds to the core, and the questions that it answers about them."""
    return Wing(
        name="pipeline",
        answers={
            "compare": "joulemap.wing.pipeline.ask.compare",
            "recommend": "joulemap.wing.pipeline.ask.recommend",
        },
        parts={"models": "joulemap.wing.pipeline.pipeline_name:NAMES"},
        queries=("pipeline",),
    )
