"""Model files of other tools: ONNX and TFLite graphs, read without torch."""

from __future__ import annotations

from joulemap.system import Wing


def register() -> Wing:
    """Return the model names that this wing adds to the core."""
    return Wing(name="file", parts={"models": "joulemap.wing.file.model_file:NAMES"}, uses=("pipeline",))
