"""Networks that this wing defines, by name: of MLPerf Tiny, detectors and their backbones, and parts of Whisper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from torch import nn

from joulemap.domain import ModelEntry
from joulemap.wing.hub import detector, speech, tiny

NETWORKS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], tuple[nn.Module, Any]]]] = {
    **dict.fromkeys(tiny.NETWORKS, tiny.build_tiny),
    **dict.fromkeys(detector.NETWORKS, detector.build_detector),
    **dict.fromkeys(speech.NETWORKS, speech.build_whisper),
}
"""Name -> function (name, arguments) -> (module, example inputs)."""


def _find_family(name: str) -> str:
    """Return the model family under which a network's errors are reported."""
    if name in tiny.NETWORKS:
        return tiny.FAMILY
    return speech.FAMILY if name in speech.NETWORKS else detector.find_family(name)


def list_networks() -> Iterator[ModelEntry]:
    """Yield the row of each network, with its number of parameters."""
    for name, build in NETWORKS.items():
        module, _ = build(name, {})
        count = sum(parameter.numel() for parameter in module.parameters())
        yield ModelEntry(name=name, family=_find_family(name), task="block", parameter_count=count)
