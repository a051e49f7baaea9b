"""Compare a pipeline on several chips: the comparison of one frame, and each chip at the frame rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.compare import summary
from joulemap.answer.compare.summary import CompareAnswer
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import PartMetricName
from joulemap.plan.run import plan_runs
from joulemap.show.present.cell import show_quantity, show_share
from joulemap.show.present.document import Section
from joulemap.show.present.template import Template
from joulemap.system.record import frozen
from joulemap.wing.pipeline.answer.pace import Paced, find_paced, pace

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source

TITLE: Final = Template(
    "At {rate}, with hosts and idle power (busy = {rate} / throughput)[: {slow:and} cannot keep up]"
)
COLUMNS: Final = (
    "hardware | *precision | busy busy_fraction | frame latency latency_s | "
    "average power total_power_w | busiest stage run_id"
)


@frozen(kw_only=True)
class PipelineCompareAnswer(CompareAnswer):
    """One pipeline on several chips: its frames one after another, and at its frame rate."""

    paced: Paced
    """Results at the frame rate."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the figures at the frame rate."""
        return {**super().data(), "pipeline": self.paced.records()}

    def _list_further(self, limit: int, /) -> tuple[Section, ...]:
        """Return the table at the frame rate."""
        rate = self.paced.rate_per_s
        rows = [row for row in self.paced.rows if row.throughput_per_s is not None]
        grid = self._lay(
            self.paced.rows.with_rows(rows),
            COLUMNS,
            limit=limit,
            noun="configurations",
            busy_fraction=lambda row: show_share(self.paced.measure_utilization(row)),
            run_id=self.paced.name_busiest,
        )
        slow = [self._mark(row.hardware) for row in rows if (row.throughput_per_s or 0.0) < rate]
        return (Section(TITLE(rate=show_quantity(rate, "1/s"), slow=slow or None), grid),)


def compare(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: PartMetricName = "energy", baseline: str = ""
) -> CompareAnswer:
    """Compare a model on several chips, and a pipeline with a frame rate also at this rate.

    Raises like the comparison of any other model.
    """
    answer = summary.compare(source, model, settings, metric=metric, baseline=baseline)
    pipeline = find_paced(model)
    if pipeline is None:
        return answer
    paced = pace(source, plan_runs((model,), settings), pipeline)
    return PipelineCompareAnswer(**attrs.asdict(answer, recurse=False), paced=paced)
