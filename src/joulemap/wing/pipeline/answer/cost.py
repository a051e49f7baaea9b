"""Compute the cost of a million frames of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.answer import cost as core
from joulemap.answer.cost import CostAnswer
from joulemap.domain.default import DEPLOYED, LIMITS, USAGE
from joulemap.system.record import frozen
from joulemap.wing.pipeline.answer.pace import FRAMES, find_paced

if TYPE_CHECKING:
    from joulemap.domain.settings import Limits, Price, Settings, Usage
    from joulemap.plan.source import Source


@frozen(kw_only=True)
class PipelineCostAnswer(CostAnswer):
    """Cost of a million frames of a pipeline on each configuration, rented or bought."""

    @property
    def _unit(self) -> str:
        return FRAMES


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
    answer = core.cost(source, model, settings, between=between, usage=usage, limits=limits, prices=prices)
    is_paced = find_paced(model) is not None
    return PipelineCostAnswer(**attrs.asdict(answer, recurse=False)) if is_paced else answer
