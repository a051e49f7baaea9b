"""Table of a pipeline at its frame rate, below that of one frame."""

from __future__ import annotations

from functools import partial
from typing import Final

from joulemap.generated.recommend import RankedConfiguration
from joulemap.show import (
    Asked,
    Document,
    Page,
    Section,
    Template,
    lay_columns,
    mark_projected,
    show_quantity,
    show_share,
)
from joulemap.show.compare import LIMIT, draw, draw_compare
from joulemap.wing.pipeline.ask.compare import PipelineCompareAnswer
from joulemap.wing.pipeline.show.pace import name_busiest

TITLE: Final = Template(
    "At {rate}, with hosts and idle power (busy = {rate} / throughput)[: {slow:and} cannot keep up]"
)


def show_paced(answer: PipelineCompareAnswer, limit: int) -> Section:
    """Return the section of the configurations at the frame rate."""
    of, paced = RankedConfiguration, answer.paced
    rows = [row for row in paced.rows if row.throughput_per_s is not None]
    slow = [
        mark_projected(row.hardware, answer.projected)
        for row in rows
        if (row.throughput_per_s or 0.0) < paced.rate_per_s
    ]
    columns = (
        of.hardware,
        of.precision.kept,
        of.busy_fraction.headed("busy").by(lambda row: show_share(paced.measure_utilization(row))),
        of.latency_s.headed("frame latency"),
        of.total_power_w.headed("average power"),
        of.run_id.headed("busiest stage").by(partial(name_busiest, paced)),
    )
    title = TITLE(rate=show_quantity(paced.rate_per_s, "1/s"), slow=slow or None)
    return Section(title, lay_columns(answer, paced.rows.with_rows(rows), columns, limit=limit, noun="configurations"))


def draw_paced(answer: PipelineCompareAnswer, asked: Asked) -> Document:
    """Return the document of a comparison, with the table at the frame rate below its own."""
    return draw_compare(answer, asked, [show_paced(answer, asked.most(LIMIT))])


PAGES: Final = {PipelineCompareAnswer: Page[PipelineCompareAnswer](draw=draw_paced, draw_figures=draw)}
