"""State of the page: fields of its form as texts, as a link has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from joulemap.physics import Hardware
from joulemap.prediction import find_chip
from joulemap.system import UsageError

Answer = dict[str, Any]
"""Sentences, pictures and the command that gives the same, as JSON."""

State = Mapping[str, str]

MODELS: Final = (
    "llama-3.2-1b", "gemma-3-4b", "llama-3.1-8b", "qwen3-14b", "gpt-oss-20b", "gemma-3-27b", "qwen3-30b-a3b",
    "llama-3.1-70b",
)  # fmt: skip
"""Language models that people run at home, by size."""

DEFAULTS: Final[Mapping[str, State]] = {
    "compare": {
        "model": "resnet50",
        "chips": "h100_sxm5,l4,rtx_4090,jetson_agx_orin_64gb_gpu,hailo_8,xeon_8490h",
        "precision": "int8",
        "batch": "1",
        "runtime": "engine",
    },
    "why": {"model": "resnet50", "chips": "h100_sxm5,l4", "precision": "int8", "batch": "1", "runtime": "engine"},
    "gpu": {
        "chip": "rtx_4090",
        "models": ",".join(MODELS),
        "weights": "q4_k_m",
        "prompt": "512",
        "power": "100",
        "bandwidth": "100",
        "file": "",
    },
}
"""View -> its fields, with the values that a link may leave out."""


def find_plain(name: str) -> Hardware:
    """Return a chip by id or alias, at its default power mode: others need files that the page lacks.

    Raises UnknownNameError, and UsageError for a name with a power mode or constants.
    """
    for sign, what in (("@", "names a power mode"), ("[", "sets constants")):
        if sign in name:
            raise UsageError(f"{name[:40]} {what}, but chips of this page are at their defaults")
    return find_chip(name)[0]


def read_whole(state: State, name: str, least: int, most: int) -> int:
    """Return the whole number in a field; UsageError for anything else, or outside of its range."""
    text = state[name]
    is_whole = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_whole or not least <= int(text) <= most:
        raise UsageError(f"{name} is {text[:40]!r}, expected a whole number from {least} to {most:,}")
    return int(text)
