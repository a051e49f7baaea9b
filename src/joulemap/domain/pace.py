"""Factors of a calibration on the time that one engine's passes of language models take on one machine."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "served_time"
"""First part of the name of such a factor among a calibration's coefficients."""

MEANING: Final = "factor on the device time of an engine's passes of language models"


def name_pace(engine: str, *, is_prompt: bool) -> str:
    """Return the name of a factor: `served_time.llamacpp.decode`."""
    return f"{PREFIX}.{engine}.{'prompt' if is_prompt else 'decode'}"


def is_pace(name: str) -> bool:
    """Return whether a coefficient is such a factor, which no class has by itself."""
    return name.startswith(f"{PREFIX}.")
