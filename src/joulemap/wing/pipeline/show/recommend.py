"""Tables of a recommendation for a pipeline at its frame rate."""

from __future__ import annotations

from functools import partial
from typing import Final

from joulemap.generated.recommend import RankedConfiguration
from joulemap.show import Asked, Document, Page
from joulemap.show.recommend import draw_recommendation
from joulemap.wing.pipeline.ask.recommend import PipelineRecommendAnswer
from joulemap.wing.pipeline.show.pace import name_busiest


def draw_paced(answer: PipelineRecommendAnswer, asked: Asked) -> Document:
    """Return the document of a recommendation, with the frame latency and the busiest stage of each row."""
    of = RankedConfiguration
    busiest = of.run_id.headed("busiest stage").by(partial(name_busiest, answer.paced)).kept
    return draw_recommendation(answer, asked, (of.latency_s.headed("frame latency").kept, busiest))


PAGES: Final = {PipelineRecommendAnswer: Page[PipelineRecommendAnswer](draw=draw_paced)}
