"""Words and tables of a run's energy-delay product: shares, concentration, and the largest possible savings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import attrs

from joulemap.ask.edp import EdpAnswer
from joulemap.ask.fact import Change, Entry, Facts
from joulemap.domain.settings import Division, ModelDivision
from joulemap.domain.table import Table
from joulemap.generated.edp import EdpBound, EdpOperatorShare, EdpPattern, EdpShare
from joulemap.show.choice import MOST_WHY, finish
from joulemap.show.column import alter, show_table
from joulemap.show.fact import tell
from joulemap.show.layout import lay_facts
from joulemap.show.page import (
    Asked,
    Drawings,
    Figures,
    Page,
    compose_runs,
    draw_figure,
    fill_steps,
    first_and_rest,
    sketch,
)
from joulemap.show.part import describe_ranges
from joulemap.show.present.document import Document, Section
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import prove_parts, title_run

AFFECTED: Final = Template("{subgraph_count}/{total_count}", is_number=True)
REST: Final = Template("{share:%} of energy x delay")

REMOVED: Final = {
    "roofline": "any gap to the roofline",
    "no_memory_wait": "waiting for memory",
    "full_units": "padding and partly filled waves",
    "no_launch": "fixed cost of kernels",
    "no_static": "static power",
    "no_control": "control energy",
}
"""Remedy -> what it removes."""

PRODUCT: Final = Template(
    "{run} has an energy x delay of {edp}[: start at the top, {half_count} of {half_total} subgraphs make "
    "{half_share:%} of it]"
)
PATTERN: Final = Template("largest fusion pattern: {name}, {share:%} in {count:n subgraph}")

SAVES: Final = {
    **{name: f"without {what}: {{saving:%}} less" for name, what in REMOVED.items()},
    "roofline": "with every subgraph at its roofline: {saving:%} less ({after})",
    "no_memory_wait": "without waiting for memory: at most {saving:%} less",
    "full_units": "without padding and partly filled waves: at most {saving:%} less",
    "no_launch": "without the fixed cost of kernels: {saving:%} less",
    "fusion": "fusion [saves {saving:%} of][costs {more:%} more than] {before} with one kernel per operator",
    "launch": "without launches by the host (`--runtime graph`): {saving:%} less",
    "halving": "with half the energy and time of {name}: {saving:%} less",
}
SAVED: Final = {cause: Template(text) for cause, text in SAVES.items()}
"""Cause of a change -> what it saves."""

STEPS: Final = (
    Template("edp {model} {hardware} --level {other}"),
    Template("analyze {model} {hardware} --level {other}"),
    Template("query run edp.bound -p run_id={run_id}"),
)
TOTAL: Final = (
    "energy x delay | {edp_js:Js} | {energy_j:J} x {latency_s:s}",
    "by part | | compute {compute_share_fraction:%}, memory {memory_share_fraction:%}, "
    "control {control_share_fraction:%}, static {static_share_fraction:%}",
    "own EDP | {own_edp_js:Js} | sum of energy x latency of each subgraph: {own_edp_fraction:%} of the run's",
    "subgraphs | {subgraph_count} | {operator_count} operators",
)

SHARES: Final = "By {by}, in order of additive EDP"
PRODUCTS: Final = "Energy x delay"
PATTERNS: Final = "By fusion pattern"
BOUNDS: Final = "Upper bounds on savings"

PartShare = TypeVar("PartShare", EdpShare, EdpOperatorShare)


def describe_edp(facts: Facts) -> str:
    """Return the first line: the product and what makes half of it."""
    return finish([tell(PRODUCT, facts.of(Entry)[0], facts, {"half": facts.share("edp", "subgraph")})])


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: possible savings, and the largest fusion pattern."""
    return [
        *(tell(SAVED[one.cause], one, facts) for one in facts.of(Change)),
        *(tell(PATTERN, one, facts) for one in facts.shares("edp", "pattern")),
    ]


def show_shares(
    answer: EdpAnswer, by: ModelDivision, row: type[PartShare], table: Table[PartShare], most: int
) -> list[Section]:
    """Return the section of shares with a picture of their sum, and the share of the rows that are not shown."""
    shown, rest = table.rows[:most], table.rows[most:]
    marks = tuple((one.cumulative_fraction - one.edp_share_fraction, one.cumulative_fraction) for one in shown)
    picture = Picture(kind="cumulative", after="cumulative share", rows=marks)
    in_all = REST(share=sum(one.edp_share_fraction for one in rest))
    return show_table(
        answer,
        SHARES.format(by=by),
        table,
        alter(row.table, row.name.headed(by)),
        keep=(
            row.name, row.edp_share_js, row.edp_share_fraction, row.energy_j, row.latency_s, row.cumulative_fraction,
            row.bottleneck,
        ),
        noun=f"{by}s",
        limit=most,
        change=lambda drawn: attrs.evolve(drawn, in_all=in_all, pictures=(picture,)),
    )  # fmt: skip


def list_details(answer: EdpAnswer, by: ModelDivision) -> Iterator[list[Section]]:
    """Yield the tables behind that of the shares: the product, fusion patterns, and bounds of savings."""
    rows = answer.subgraphs if by == "subgraph" else answer.operators
    product = lay_facts("quantity | value | detail", TOTAL, answer.total)
    yield [Section(PRODUCTS, (product, prove_parts(f"{by}s", rows, answer.total)))]
    yield show_table(answer, PATTERNS, answer.patterns, EdpPattern.table)
    removed = EdpBound.remedy.by(lambda row: REMOVED[row.remedy])
    columns = alter(EdpBound.table, removed, EdpBound.subgraph_count.by(AFFECTED))
    yield show_table(answer, BOUNDS, answer.bounds, columns)


def draw_edp(answer: EdpAnswer, asked: Asked) -> Document:
    """Return the document of a run."""
    scope, total, most = answer.scope, answer.total, asked.most(6)
    by: ModelDivision = "operator" if asked.by == "operator" else "subgraph"
    if by == "subgraph":
        shares = show_shares(answer, by, EdpShare, answer.subgraphs, most)
    else:
        shares = show_shares(answer, by, EdpOperatorShare, answer.operators, most)
    first, rest = first_and_rest([shares, *list_details(answer, by)])
    other = "operator" if by == "subgraph" else "subgraph"
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.subgraphs if by == "subgraph" else answer.operators,
        title=title_run(total, scope),
        headline=describe_edp(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=rest,
        steps=fill_steps(STEPS, total, asked.repeated, hardware=scope.spell(total.hardware), other=other),
    )


def draw_figures(answer: EdpAnswer) -> Figures:
    """Return the figure of the subgraphs' shares and their cumulative sum, largest first."""
    told = join_clauses([describe_edp(answer.facts), *list_reasons(answer.facts)[:1]])
    title = title_run(answer.total, answer.scope)
    return (draw_figure(answer.scope, "edp", answer.subgraphs, title, told, {"part": "subgraph"}),)


def sketch_parts(answer: EdpAnswer, by: Division) -> Drawings:
    """Return the drawing of the shares of operators, or the figure."""
    return (sketch("edp", answer.operators, {"part": by}),) if by == "operator" else draw_figures(answer)


PAGES: Final = {EdpAnswer: Page[EdpAnswer](draw=draw_edp, draw_figures=draw_figures, sketch=sketch_parts)}
