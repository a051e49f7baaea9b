"""Recommend configurations for a pipeline at its frame rate."""

from __future__ import annotations

from typing import Any

import attrs

from joulemap.ask import recommend as core
from joulemap.ask.candidate import plan_candidates
from joulemap.ask.recommend import RecommendAnswer
from joulemap.domain import CANDIDATES, LIMITS, Limits, MetricName, Settings
from joulemap.domain.default import price_at_wall
from joulemap.plan import Source
from joulemap.system import frozen
from joulemap.wing.pipeline.ask.pace import Paced, find_paced, pace
from joulemap.wing.pipeline.pipeline_name import FRAME


@frozen(kw_only=True)
class PipelineRecommendAnswer(RecommendAnswer):
    """Every configuration of a pipeline at its frame rate: those that meet the limits, and the violations of the
    others.
    """

    paced: Paced
    """Results at the frame rate."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the figures at the frame rate."""
        return {**super().data(), "pipeline": self.paced.records()}


def recommend(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    objective: MetricName = "energy_per_inference",
    limits: Limits = LIMITS,
) -> RecommendAnswer:
    """Return the configurations that meet the limits, for a pipeline with a frame rate at this rate.

    Raises like the recommendation for any other model.
    """
    pipeline = find_paced(model)
    if pipeline is None:
        return core.recommend(source, model, settings, objective=objective, limits=limits)
    rate_per_s = pipeline.frames_per_s
    answer = core.recommend_at_rate(source, model, settings, rate_per_s, objective=objective, limits=limits, per=FRAME)
    plan = plan_candidates(model, price_at_wall(settings, (objective,)), rate_per_s)
    return PipelineRecommendAnswer(**attrs.asdict(answer, recurse=False), paced=pace(source, plan, pipeline))
