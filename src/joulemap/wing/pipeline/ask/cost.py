"""Compute the cost of a million frames of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from joulemap.ask import cost as core
from joulemap.domain.default import DEPLOYED, LIMITS, USAGE
from joulemap.wing.pipeline.answer.pace import find_paced
from joulemap.wing.pipeline.ask.recommend import FRAME

if TYPE_CHECKING:
    from joulemap.ask.cost import CostAnswer
    from joulemap.domain.settings import Limits, Price, Settings, Usage
    from joulemap.plan.source import Source


def cost(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    between: Sequence[str] = (),
    usage: Usage = USAGE,
    limits: Limits = LIMITS,
    prices: Sequence[Price] = (),
) -> CostAnswer:
    """Compute the cost of a million inferences, for a pipeline with a frame rate that of a million frames.

    Raises like the cost of any other model.
    """
    if find_paced(model) is None:
        return core.cost(source, model, settings, between=between, usage=usage, limits=limits, prices=prices)
    return core.cost_per(source, model, settings, between=between, usage=usage, limits=limits, prices=prices, per=FRAME)
