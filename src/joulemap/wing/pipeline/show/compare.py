"""Table of a pipeline at its frame rate, below that of one frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs

from joulemap.show import Part, Template, mark_projected, show_quantity, show_share
from joulemap.show.compare import COMPARE, choose
from joulemap.wing.pipeline.ask.compare import PipelineCompareAnswer
from joulemap.wing.pipeline.show.pace import name_busiest

TITLE: Final = Template(
    "At {rate}, with hosts and idle power (busy = {rate} / throughput)[: {slow:and} cannot keep up]"
)


def divide(answer: PipelineCompareAnswer) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the title of the table at the frame rate, and its rows."""
    rate = answer.paced.rate_per_s
    rows = [row for row in answer.paced.rows if row.throughput_per_s is not None]
    slow = [mark_projected(row.hardware, answer.projected) for row in rows if (row.throughput_per_s or 0.0) < rate]
    yield {"head": TITLE(rate=show_quantity(rate, "1/s"), slow=slow or None)}, answer.paced.rows.with_rows(rows)


PACED: Final = Part(
    title="{head}",
    table="paced",
    divide=divide,
    columns="hardware | *precision | busy busy_fraction | frame latency latency_s | average power total_power_w | "
    "busiest stage run_id",
    lay={"noun": "configurations"},
    cells=lambda answer: {
        "busy_fraction": lambda row: show_share(answer.paced.measure_utilization(row)),
        "run_id": partial(name_busiest, answer.paced),
    },
    is_long=True,
)

PAGES: Final = {
    PipelineCompareAnswer: attrs.evolve(
        COMPARE,
        parts=(*COMPARE.parts, PACED),
        choices=lambda answer, **chosen: {**choose(answer, **chosen), "shown": ("rows", "paced")},
    )
}
