"""Break down a run's energy-delay product: shares, concentration, and the largest possible savings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Drawings, Figures, fetch_tables
from joulemap.answer.layout import lay_facts
from joulemap.answer.part.part import FACTS, PartsAnswer, lay_across, opening_parts
from joulemap.answer.run import title_run
from joulemap.ask.edp import find_facts
from joulemap.ask.fact import Facts
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import ModelDivision, RunDivision, Settings
from joulemap.domain.table import Table
from joulemap.generated.edp import EdpBound, EdpComparison, EdpCut, EdpOperatorShare, EdpPattern, EdpShare, EdpTotal
from joulemap.plan.source import Source
from joulemap.present.cell import Number, show_chosen_share
from joulemap.present.document import Document, Grid, Section
from joulemap.present.picture import Picture
from joulemap.present.template import Template
from joulemap.show.edp import describe_product, list_reasons
from joulemap.show.part import describe_ranges
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow
    from joulemap.physics.record.hardware import Hardware

BESIDE_TABLE: Final = "Each subgraph on each chip"
BESIDE: Final = Template("{edp_share_js:Js} ({share_fraction:%})", is_number=True)
LOWEST: Final = "lowest"
SHARES_TABLE: Final = Template("By {by}, in order of additive EDP")
EDP_COLUMNS: Final = (
    "# rank | {by} name |{kind} pattern fusion_pattern |{fused} energy energy_j | latency latency_s | own EDP edp_js | "
    "additive EDP edp_share_js | run share share_fraction | cumulative share cumulative_fraction | "
    "compute compute_share_fraction | memory memory_share_fraction | control control_share_fraction | "
    "static static_share_fraction | saved by halving halving_fraction | bottleneck"
)
EDP_KEEP: Final = "{by} | additive EDP | run share | energy | latency | cumulative share | bottleneck"
EDP_REST: Final = Template("{share:%} of energy x delay")
EDP_FACTS_TABLE: Final = "Energy x delay"
EDP_FACTS: Final = (
    "energy x delay | {edp_js:Js} | {energy_j:J} x {latency_s:s}",
    "by part | | compute {compute_share_fraction:%}, memory {memory_share_fraction:%}, "
    "control {control_share_fraction:%}, static {static_share_fraction:%}",
    "own EDP | {own_edp_js:Js} | sum of energy x latency of each subgraph: {own_edp_fraction:%} of the run's",
    "subgraphs | {subgraph_count} | {operator_count} operators",
)
CUT_TABLE: Final = Template("Concentration by {by}")
CUT_COLUMNS: Final = "additive EDP cut_fraction | {by}s top_count | reached share reached_fraction | last {by} last"
CUT_COUNT: Final = Template("top {top_count} of {total_count}")
PATTERN_TABLE: Final = "By fusion pattern"
PATTERN_COLUMNS: Final = (
    "fusion pattern fusion_pattern | run share share_fraction | energy energy_j | latency latency_s | "
    "subgraphs subgraph_count | operators operator_count | cumulative share cumulative_fraction | "
    "MAC share mac_fraction | bottleneck | bottleneck share bottleneck_fraction"
)
BOUND_TABLE: Final = "Upper bounds on savings"
BOUND_COLUMNS: Final = (
    "without remedy | EDP saved saving_fraction | EDP left edp_js | latency saved latency_saving_fraction | "
    "energy saved energy_saving_fraction | subgraphs affected subgraph_count"
)
REMEDIES: Final = {
    "roofline": "any gap to the roofline",
    "no_memory_wait": "waiting for memory",
    "full_units": "padding and partly filled waves",
    "no_launch": "fixed cost of kernels",
    "no_static": "static power",
    "no_control": "control energy",
}
EDP_STEPS: Final = (
    Template("edp {model} {hardware} --level {other}"),
    Template("analyze {model} {hardware} --level {other}"),
    Template("query run edp.bound -p run_id={run_id}"),
)

SHOWN: Final = 6
"""Default number of rows per table."""


@frozen(kw_only=True)
class EdpAnswer(PartsAnswer):
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
    comparison: Table[EdpComparison]
    """Each subgraph on this and on other hardware, with the run's own row first; empty without other hardware."""
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

    def figures(self) -> Figures:
        """Return the figure of the subgraphs' shares and their cumulative sum, largest first."""
        facts = " ".join((self.headline(), *(f"{one}." for one in list_reasons(self.facts)[:1])))
        return (
            self._draw_figure("edp", self.subgraphs, title_run(self.total, self.scope), facts, {"part": "subgraph"}),
        )

    def sketched(self, by: RunDivision, /) -> Drawings:
        """Return a text drawing of the shares of subgraphs, or of operators if these are shown."""
        return (self._sketch("edp", self.operators, {"part": by}),) if by == "operator" else self.figures()

    def document(self, *, by: ModelDivision = "subgraph", limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` subgraphs or operators. Machine formats contain both tables, csv the shown
        one.
        """
        rows: Table[Any] = self.subgraphs if by == "subgraph" else self.operators
        noun = "operators and their biases" if any(getattr(row, "kind", "") == "bias" for row in rows) else f"{by}s"
        shares = Section(SHARES_TABLE(by=by), self._lay_shares(by, rows, noun, limit))
        tables = (Section(BESIDE_TABLE, self._lay_beside(limit), is_tight=True), shares)
        first, *others = tables if self.comparison.rows else tables[1:]
        cuts = self.cuts.with_rows(row for row in self.cuts if row.level == by)
        given = {
            "hardware": self.scope.spell(self.total.hardware),
            "other": "operator" if by == "subgraph" else "subgraph",
        }
        return self._compose_facts(
            self.facts,
            (first,),
            rows,
            title=title_run(self.total, self.scope),
            answer=self.headline(),
            reasons=list_reasons(self.facts),
            trust=describe_ranges(self.facts),
            details=(
                *others,
                Section(
                    EDP_FACTS_TABLE,
                    (lay_facts(FACTS, EDP_FACTS, self.total), self._prove(noun, rows, self.total)),
                ),
                Section(
                    CUT_TABLE(by=by),
                    self._lay(
                        cuts,
                        CUT_COLUMNS.format(by=by),
                        cut_fraction=lambda row: show_chosen_share(row.cut_fraction),
                        top_count=CUT_COUNT,
                    ),
                ),
                Section(PATTERN_TABLE, self._lay(self.patterns, PATTERN_COLUMNS)),
                Section(
                    BOUND_TABLE,
                    self._lay(
                        self.bounds,
                        BOUND_COLUMNS,
                        remedy=lambda row: REMEDIES[row.remedy],
                        subgraph_count=lambda row: Number(f"{row.subgraph_count}/{row.total_count}"),
                    ),
                ),
            ),
            steps=self._fill_steps(EDP_STEPS, self.total, repeated, **given),
        )

    def headline(self) -> str:
        """Return the EDP of the run, or the least of compared hardware, and the subgraphs that make half of it."""
        return describe_product(self.facts)

    def _lay_shares(self, by: ModelDivision, rows: Table[Any], noun: str, limit: int) -> Grid:
        kind, fused = ("", "") if by == "subgraph" else (" kind |", " fused is_fused |")
        drawn = self._lay(
            rows,
            EDP_COLUMNS.format(by=by, kind=kind, fused=fused),
            limit=limit,
            keep=EDP_KEEP.format(by=by),
            ranked="additive EDP | cumulative share",
            noun=noun,
        )
        rest = sum(row.share_fraction for row in rows.rows[limit:])
        marks = ((row.cumulative_fraction - row.share_fraction, row.cumulative_fraction) for row in rows.rows[:limit])
        picture = Picture(kind="cumulative", after="cumulative share", rows=tuple(marks))
        return attrs.evolve(drawn, in_all=EDP_REST(share=rest), pictures=(picture,))

    def _lay_beside(self, limit: int) -> Grid:
        """Return a grid with a row per subgraph and a column per chip.

        A cell holds the subgraph's EDP share, in J s and as a fraction of the run's EDP.
        """
        names: dict[int, str] = {}
        subgraphs: dict[int, dict[int, EdpComparison]] = {}
        for row in self.comparison:
            names[row.run_id] = self._mark(row.hardware)
            subgraphs.setdefault(row.subgraph_index, {})[row.run_id] = row
        lines = []
        for by_run in list(subgraphs.values())[:limit]:
            first = next(iter(by_run.values()))
            best = next(row for row in by_run.values() if row.is_best)
            cells = [BESIDE(by_run[run_id]) if run_id in by_run else "" for run_id in names]
            lines.append((first.name, *cells, names[best.run_id], first.fusion_pattern))
        headings = ("subgraph", *names.values(), LOWEST, "pattern")
        return lay_across(headings, lines, len(subgraphs), "subgraphs", (*names.values(), LOWEST))


def edp(
    source: Source,
    model: str,
    hardware: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    against: Iterable[str | Hardware] = (),
) -> EdpAnswer:
    """Break down a run's energy-delay product by subgraph, operator, fusion pattern and part of the energy.

    `against` adds the same subgraphs on other hardware; hardware that cannot run the configuration is omitted, with its
    reason. Raises like `analyze`.
    """
    with opening_parts(source, "edp", model, hardware, settings, against=against) as scope:
        beside = list(scope.evaluated_ids) if len(scope.run_ids) > 1 else []
        tables = fetch_tables(scope.connection, EdpAnswer, run_id=scope.run_ids[0], run_ids=beside)
        (total,) = tables["totals"]
        facts = find_facts(
            scope,
            total,
            cuts=tables["cuts"],
            subgraphs=tables["subgraphs"].rows,
            patterns=tables["patterns"].rows,
            bounds=tables["bounds"].rows,
            comparison=tables["comparison"].rows,
        )
        return EdpAnswer(scope=scope, **tables, facts=facts)
