"""Language models as workloads: sizes, files and checkpoints, passes by name, and the engines that run a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.domain.dimension import Dimension
    from joulemap.wing.decoder.generated.public import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.decoder.generated.public")


def register() -> Wing:
    """Return the model names, dimensions and options that this wing adds to the core."""
    return Wing(
        name="decoder",
        parts={
            "models": "joulemap.wing.decoder.model_name:NAMES",
            "dimensions": "joulemap.wing.decoder:list_dimensions",
            "run_options": "joulemap.wing.decoder.option:PassRunOptions",
        },
        uses=("hub",),
    )


def list_dimensions() -> tuple[Dimension, ...]:
    """Return the dimensions that distinguish passes of a language model, in addition to its name."""
    from joulemap.domain.dimension import Dimension
    from joulemap.system import join_choices
    from joulemap.wing.decoder.phase import MIXED, PHASE_NAMES

    choices = join_choices([*PHASE_NAMES, MIXED])
    meaning = f"Phase of a language model's pass: {choices}; empty for any other model"
    count = "CAST(coalesce(w.dimensions['device_count'], '1') AS INTEGER)"
    return (
        Dimension(name="phase", table="dimensions", meaning=meaning),
        Dimension(name="engine", table="dimensions"),
        Dimension(name="device_count", table="dimensions", shown=count),
    )
