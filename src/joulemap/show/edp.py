"""Words and tables of a run's energy-delay product: shares, concentration, and the largest possible savings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.ask.edp import EdpAnswer
from joulemap.ask.fact import Change, Entry, Facts
from joulemap.domain.settings import ModelDivision
from joulemap.show.choice import finish
from joulemap.show.page import Figures, draw_figure, sketch
from joulemap.show.part import describe_ranges
from joulemap.show.present.cell import Number
from joulemap.show.present.document import Grid
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import prove_parts, title_run
from joulemap.show.shape import Part, Shape, tell

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


def describe_edp(facts: Facts) -> str:
    """Return the first line: the product and what makes half of it."""
    return finish([tell(PRODUCT, facts.of(Entry)[0], facts, {"half": facts.share("edp", "subgraph")})])


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: possible savings, and the largest fusion pattern."""
    return [
        *(tell(SAVED[one.cause], one, facts) for one in facts.of(Change)),
        *(tell(PATTERN, one, facts) for one in facts.shares("edp", "pattern")),
    ]


def draw_shares(answer: EdpAnswer, grid: Grid, limit: int, *, by: str, **_: Any) -> Grid:
    """Return the table of shares with a picture of their sum, and the share of the rows that are not shown."""
    rows = getattr(answer, f"{by}s").rows
    marks = tuple((row.cumulative_fraction - row.edp_share_fraction, row.cumulative_fraction) for row in rows[:limit])
    picture = Picture(kind="cumulative", after="cumulative share", rows=marks)
    rest = sum(row.edp_share_fraction for row in rows[limit:])
    return attrs.evolve(grid, in_all=REST(share=rest), pictures=(picture,))


def choose(answer: EdpAnswer, *, by: ModelDivision = "subgraph", **_: Any) -> Mapping[str, Any]:
    """Return the values of slots in the texts of parts and steps."""
    is_whole = by == "subgraph"
    return {
        "by": by,
        "other": "operator" if is_whole else "subgraph",
        "kind": "" if is_whole else "kind | ",
        "fused": "" if is_whole else "is_fused | ",
        "noun": f"{by}s",
        "hardware": answer.scope.spell(answer.total.hardware),
        "row": answer.total,
        "title": title_run(answer.total, answer.scope),
    }


def draw(answer: EdpAnswer) -> Figures:
    """Return the figure of the subgraphs' shares and their cumulative sum, largest first."""
    told = " ".join((describe_edp(answer.facts), *(f"{one}." for one in list_reasons(answer.facts)[:1])))
    title = title_run(answer.total, answer.scope)
    return (draw_figure(answer.scope, "edp", answer.subgraphs, title, told, {"part": "subgraph"}),)


EDP: Final = Shape(
    first=describe_edp,
    why=list_reasons,
    trust=describe_ranges,
    csv="{by}s",
    choices=choose,
    draw=draw,
    sketch=lambda answer, by: (sketch("edp", answer.operators, {"part": by}),) if by == "operator" else draw(answer),
    steps=(
        "edp {model} {hardware} --level {other}",
        "analyze {model} {hardware} --level {other}",
        "query run edp.bound -p run_id={run_id}",
    ),
    parts=(
        Part(
            title="By {by}, in order of additive EDP",
            table="{by}s",
            columns="rank | {by} name | {kind}fusion_pattern | {fused}energy_j | latency_s | edp_js | "
            "edp_share_js | edp_share_fraction | cumulative_fraction | compute_share_fraction | "
            "memory_share_fraction | control_share_fraction | static_share_fraction | halving_fraction | "
            "bottleneck",
            lay={
                "keep": "name edp_share_js edp_share_fraction energy_j latency_s cumulative_fraction bottleneck",
                "ranked": "edp_share_js cumulative_fraction",
                "noun": "{noun}",
            },
            is_long=True,
            draw=draw_shares,
        ),
        Part(
            title="Energy x delay",
            table="totals",
            columns=(
                "energy x delay | {edp_js:Js} | {energy_j:J} x {latency_s:s}",
                "by part | | compute {compute_share_fraction:%}, memory {memory_share_fraction:%}, "
                "control {control_share_fraction:%}, static {static_share_fraction:%}",
                "own EDP | {own_edp_js:Js} | "
                "sum of energy x latency of each subgraph: {own_edp_fraction:%} of the run's",
                "subgraphs | {subgraph_count} | {operator_count} operators",
            ),
            draw=lambda answer, grid, _, *, by, noun, **__: (
                grid,
                prove_parts(noun, getattr(answer, f"{by}s"), answer.total),
            ),
        ),
        Part(
            title="By fusion pattern",
            table="patterns",
            columns="fusion_pattern | edp_share_fraction | energy_j | latency_s | subgraph_count | operator_count | "
            "cumulative_fraction | mac_fraction | bottleneck | bottleneck_fraction",
        ),
        Part(
            title="Upper bounds on savings",
            table="bounds",
            columns="remedy | saving_fraction | edp_js | latency_saving_fraction | energy_saving_fraction | "
            "subgraph_count",
            lay={
                "remedy": lambda row: REMOVED[row.remedy],
                "subgraph_count": lambda row: Number(f"{row.subgraph_count}/{row.total_count}"),
            },
        ),
    ),
)

PAGES: Final = {EdpAnswer: EDP}
