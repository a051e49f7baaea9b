"""Tables of a recommendation for a pipeline at its frame rate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import attrs

from joulemap.show import Part, Shape, recommend as core
from joulemap.wing.pipeline.ask.recommend import PipelineRecommendAnswer
from joulemap.wing.pipeline.show.pace import name_busiest

STAGES: Final = "*frame latency latency_s | *busiest stage run_id | "


def choose(answer: PipelineRecommendAnswer, **chosen: Any) -> Mapping[str, Any]:
    """Return the values of slots, with the columns of the stages."""
    values = core.choose(answer, **chosen)
    return {**values, "rated": STAGES + values["rated"]}


def name_stages(part: Part) -> Part:
    """Return a part of the core with the busiest stage of each row."""
    return attrs.evolve(
        part, cells=lambda answer: {**part.cells(answer), "run_id": partial(name_busiest, answer.paced)}
    )


RECOMMEND: Final[Shape] = attrs.evolve(
    core.RECOMMEND, choices=choose, parts=tuple(map(name_stages, core.RECOMMEND.parts))
)

PAGES: Final = {PipelineRecommendAnswer: RECOMMEND}
