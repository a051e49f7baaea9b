"""Dimensions of a pass of a language model: what tells its runs apart beside the model's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.domain.dimension import Dimension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.wing.llm.decoder.step import Step

DIMENSIONS: Final = (
    Dimension(
        name="phase",
        table="dimensions",
        meaning="Phase of a language model's pass: prefill, decode, or mixed; empty for any other model",
    ),
    Dimension(name="engine", table="dimensions"),
    Dimension(
        name="device_count",
        table="dimensions",
        shown="CAST(coalesce(w.dimensions['device_count'], '1') AS INTEGER)",
    ),
)


def describe_pass(step: Step) -> Mapping[str, str]:
    """Return the dimensions of a pass, those of the default left out."""
    phase = "mixed" if step.chunk else "prefill" if step.tokens > 1 else "decode"
    devices = step.world * step.pipeline_devices
    found = {"phase": phase, "engine": step.engine, "device_count": str(devices) if devices > 1 else ""}
    return {name: value for name, value in found.items() if value}
