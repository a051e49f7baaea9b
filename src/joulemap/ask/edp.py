"""Energy-delay product of one run: its parts, its facts, and the largest possible savings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.fact import Change, Fact, Facts, Quantity, Share
from joulemap.ask.part import enter, gather, opening_parts
from joulemap.ask.scope import Scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.edp import EdpBound, EdpCut, EdpOperatorShare, EdpPattern, EdpShare, EdpTotal
from joulemap.physics.record.runtime import RUNTIME
from joulemap.plan.source import Source
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
    from joulemap.physics.record.hardware import Hardware

WORTH: Final = 0.01
"""Minimum share of the product that a change saves or costs to be a fact."""


@frozen(kw_only=True)
class EdpAnswer(RunAnswer):
    """Energy-delay product (EDP) of one run. The shares of its subgraphs sum to the EDP, and so do those of its
    operators.
    """

    totals: Table[EdpTotal]
    """Totals of the run; one row."""
    subgraphs: Table[EdpShare]
    """EDP share of each subgraph, largest first."""
    operators: Table[EdpOperatorShare]
    """EDP share of each operator, largest first."""
    cuts: Table[EdpCut]
    """Minimum number of subgraphs, and of operators, that make up 50, 80, 90, 95 and 99 % of the EDP."""
    patterns: Table[EdpPattern]
    """EDP share of each fusion pattern, largest first."""
    bounds: Table[EdpBound]
    """Upper bounds of the EDP saved by removing one cost, largest saving first."""
    facts: Facts
    """Product, largest parts, possible savings and caveats, from which all sentences are made."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """The analyzed run."""
        return self.totals.rows

    @property
    def total(self) -> EdpTotal:
        """Totals of the whole run."""
        return self.totals[0]


def find_facts(
    scope: Scope,
    totals: Sequence[EdpTotal],
    cuts: Iterable[EdpCut],
    subgraphs: Sequence[EdpShare],
    patterns: Sequence[EdpPattern],
    bounds: Sequence[EdpBound],
    **_: Any,
) -> Facts:
    """Return the facts of one run: its product, the subgraphs that make half of it, and changes that reduce it."""
    total = totals[0]
    runs = (total.run_id,)
    half = next(row for row in cuts if row.level == "subgraph" and row.cut_fraction >= 0.5)
    whole: dict[str, Any] = {"runs": runs, "metric": "edp", "total": total.subgraph_count}
    facts: list[Fact] = [
        enter(scope, total, "edp"),
        Share(runs=runs, metric="edp", level="subgraph", share=half.reached_fraction, count=half.top_count,
              total=half.total_count),
        *list_changes(total, subgraphs, bounds),
        *(
            Share(
                **whole,
                level="pattern",
                name=row.fusion_pattern,
                share=row.edp_share_fraction,
                count=row.subgraph_count,
            )
            for row in patterns[:1]
            if len(patterns) > 1
        ),
    ]  # fmt: skip
    return gather(scope, "edp", facts)


def list_changes(total: EdpTotal, subgraphs: Sequence[EdpShare], bounds: Sequence[EdpBound]) -> Iterator[Change]:
    """Yield the largest bound of a saving, the effect of fusion or of launches, and that of halving one subgraph."""

    def change(before: float, after: float, cause: str, **values: str) -> Change:
        ends = Quantity(before, "Js"), Quantity(after, "Js")
        run = total.run_id
        return Change(runs=(run, run), metric="edp", before=ends[0], after=ends[1], cause=cause, values=values)

    edp, separate, runtime = total.edp_js, total.separate_edp_js, RUNTIME[total.runtime]
    if bounds and bounds[0].saving_fraction >= WORTH:
        yield change(edp, bounds[0].edp_js, bounds[0].remedy)
    if runtime.merges and abs(separate / edp - 1.0) >= WORTH:
        yield change(separate, edp, "fusion")
    elif runtime.launches_each and separate / edp <= 1.0 - WORTH:
        yield change(edp, separate, "launch")
    if len(subgraphs) > 1:
        yield change(edp, edp * (1.0 - subgraphs[0].halving_fraction), "halving", name=subgraphs[0].name)


def edp(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> EdpAnswer:
    """Break down a run's energy-delay product by subgraph, operator, fusion pattern and part of the energy.

    Raises like `analyze`.
    """
    with opening_parts(source, "edp", model, hardware, settings) as scope:
        tables: dict[str, Any] = fetch_tables(scope.connection, EdpAnswer, run_id=scope.run_ids[0])
        return EdpAnswer(scope=scope, **tables, facts=find_facts(scope, **tables))
