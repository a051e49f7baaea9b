"""Model files of other tools: ONNX and TFLite graphs, read without torch."""

from __future__ import annotations

from joulemap.system.wing import Wing


def register() -> Wing:
    """Return the contributions of this wing to the core."""
    return Wing(name="file", parts={"models": "joulemap.wing.file.name:NAMES"})
