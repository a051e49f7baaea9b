"""Whole runs side by side: their figures, and the tree of each run's energy."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.fact import Facts
from joulemap.ask.part import find_whole
from joulemap.ask.scope import opening_compared
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import EnergyBranch, RunFigure
from joulemap.plan.source import Source
from joulemap.system.record import frozen


@frozen(kw_only=True)
class BreakdownAnswer(RunAnswer):
    """Figures of whole runs, and an energy tree per run with leaves that sum to the run exactly."""

    rows: Table[RunFigure]
    tree: Table[EnergyBranch]
    """Energy of each run by category and action, largest first within a category."""
    facts: Facts
    """Best run, values and categories of each, and caveats, from which all sentences are made."""

    @property
    def answered(self) -> Table[RunFigure]:
        """Rows of runs that were not refused."""
        return self.rows.with_rows(row for row in self.rows if row.status == "ok")


def compare_runs(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, metric: PartMetricName = "energy"
) -> BreakdownAnswer:
    """Compare models on one or several chips: the figures of each run, and the tree of its energy; `metric` decides.

    Raises like `compare`.
    """
    check_name("metric", metric, PART_METRICS)
    with opening_compared(source, models, settings) as scope:
        tables = fetch_tables(scope.connection, BreakdownAnswer, run_ids=list(scope.run_ids))
        facts = find_whole(scope, tables["rows"], tables["tree"], metric)
        return BreakdownAnswer(scope=scope, **tables, facts=facts)
