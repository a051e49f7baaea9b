"""Recommend configurations for a pipeline at its frame rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.answer import recommend as core
from joulemap.answer.candidate import plan_candidates
from joulemap.answer.recommend import IDLE, RATE_NOTE, RecommendAnswer
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE, price_at_wall
from joulemap.domain.metric import METRIC, Metric, MetricName
from joulemap.system.record import frozen
from joulemap.wing.pipeline.answer.pace import FRAMES, Paced, find_paced, pace

if TYPE_CHECKING:
    from joulemap.domain.settings import Limits, Settings, Usage
    from joulemap.plan.source import Source
    from joulemap.show.present.document import Grid

PER_INFERENCE, PER_FRAME = "per inference", "per frame"
"""Unit of work in labels: of a single model, and of a pipeline, in which a frame may need several inferences."""

STAGES: Final = "*frame latency latency_s | *busiest stage run_id | "
FRAME: Final = "frame"
"""Unit of work of a pipeline."""


@frozen(kw_only=True)
class PipelineRecommendAnswer(RecommendAnswer):
    """Every configuration of a pipeline at its frame rate: those that meet the limits, and the violations of the
    others.
    """

    rated_columns: ClassVar[str] = STAGES + IDLE

    paced: Paced
    """Results at the frame rate."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the figures at the frame rate."""
        return {**super().data(), "pipeline": self.paced.records()}

    @property
    def _metric(self) -> Metric:
        return _count_frames(super()._metric)

    def _show_ranked(self, *given: Any, **shown: Any) -> Grid:
        """Return the grid of the core with the busiest stage of each row."""
        return super()._show_ranked(*given, run_id=self.paced.name_busiest, **shown)

    def _describe_rate(self) -> str:
        label = _count_frames(METRIC["energy_per_inference"]).label
        return RATE_NOTE(rate=self._rate, inputs=FRAMES, label=label)


def _count_frames(metric: Metric) -> Metric:
    """Return a metric with a label per frame in place of one per inference."""
    return attrs.evolve(metric, label=metric.label.replace(PER_INFERENCE, PER_FRAME))


def recommend(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    objective: MetricName = "energy_per_inference",
    limits: Limits = LIMITS,
    usage: Usage = USAGE,
) -> RecommendAnswer:
    """Return the configurations that meet the limits, for a pipeline with a frame rate at this rate.

    Raises like the recommendation for any other model.
    """
    pipeline = find_paced(model)
    if pipeline is None:
        return core.recommend(source, model, settings, objective=objective, limits=limits, usage=usage)
    rate_per_s = pipeline.frames_per_s
    answer = core.recommend_at_rate(
        source, model, settings, rate_per_s, objective=objective, limits=limits, usage=usage, per=FRAME
    )
    plan = plan_candidates(model, price_at_wall(settings, (objective,)), rate_per_s)
    return PipelineRecommendAnswer(**attrs.asdict(answer, recurse=False), paced=pace(source, plan, pipeline))
