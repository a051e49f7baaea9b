"""Adapters that put predictions into other programs: test runners, optimizers, simulators and leaderboards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.system import Wing
    from joulemap.wing.embed.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.embed.generated.public")


def register() -> Wing:
    """Return the adapters of this wing, which adds nothing to the core."""
    from joulemap.system import Wing

    return Wing(
        name="embed",
        public=(
            "joulemap.wing.embed.cost:InferenceCost",
            "joulemap.wing.embed.cost:predict_cost",
            "joulemap.wing.embed.kernel_profile:write_kernel_profile",
            "joulemap.wing.embed.mark:joules",
            "joulemap.wing.embed.objective:make_objective",
            "joulemap.wing.embed.serving_profile:write_serving_profile",
            "joulemap.wing.embed.sglang:SglangPredictor",
            "joulemap.wing.embed.token_cost:TokenCost",
            "joulemap.wing.embed.token_cost:predict_token_costs",
            "joulemap.wing.embed.token_cost:write_token_costs",
            "joulemap.wing.embed.vidur:VidurPredictor",
            "joulemap.wing.embed.vidur:VidurTime",
        ),
        uses=("decoder", "llm"),
    )
