"""Compare a pipeline on several chips: the comparison of one frame, and each chip at the frame rate."""

from __future__ import annotations

from typing import Any

import attrs

from joulemap.ask import compare as core
from joulemap.ask.compare import CompareAnswer
from joulemap.domain import SETTINGS, Settings
from joulemap.domain.metric import RunMetricName
from joulemap.plan import Source, plan_runs
from joulemap.system import frozen
from joulemap.wing.pipeline.ask.pace import Paced, find_paced, pace


@frozen(kw_only=True)
class PipelineCompareAnswer(CompareAnswer):
    """One pipeline on several chips: its frames one after another, and at its frame rate."""

    paced: Paced
    """Results at the frame rate."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the figures at the frame rate."""
        return {**super().data(), "pipeline": self.paced.records()}


def compare(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: RunMetricName = "energy", baseline: str = ""
) -> CompareAnswer:
    """Compare a model on several chips, and a pipeline with a frame rate also at this rate.

    Raises like the comparison of any other model.
    """
    answer = core.compare(source, model, settings, metric=metric, baseline=baseline)
    pipeline = find_paced(model)
    if pipeline is None:
        return answer
    paced = pace(source, plan_runs((model,), settings), pipeline)
    return PipelineCompareAnswer(**attrs.asdict(answer, recurse=False), paced=paced)
