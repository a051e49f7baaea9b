"""Tables and figure of a comparison of one model on several chips, and what to ask next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.compare import CompareAnswer
from joulemap.ask.decision import find_decision
from joulemap.ask.scope import Scope
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, PartMetricName, RunMetricName
from joulemap.domain.table import Column
from joulemap.generated.compare import Comparison
from joulemap.physics.record.weight import spell_precision
from joulemap.show.choice import describe_answer
from joulemap.show.page import Figures, draw_figure, drop_options, lay_rows
from joulemap.show.present.cell import mark_projected, show_busy_units
from joulemap.show.present.document import Grid, choose_rows
from joulemap.show.present.template import Template
from joulemap.show.run import show_sure, title_runs
from joulemap.show.shape import Part, Shape
from joulemap.show.term import describe_gap

COLUMNS: Final = Template(
    "hardware | *precision! | *batch! | *runtime! | {decided}[*{ratio_heading} {ratio} | ]placement? | {others}"
    "compute_utilization_fraction= | overhead_fraction= | "
    "units_used_count="
)
BLOCKS: Final[Mapping[RunMetricName, str]] = {
    "energy": "{energy} | -{energy}:energy_half_width | ",
    "latency": "latency_s | -latency_s:latency_half_width | ",
    "edp": "*edp_js | ",
    "memory": "peak_memory_bytes{common} | ",
    "throughput": "throughput_per_s{common} | ",
    "power": "*average_power_w{common} | ",
    "efficiency": "*inferences_per_j{common} | ",
}
"""Metric -> its columns; those of the one that decides come first, and `efficiency` has none unless it decides."""

EXPLAINED: Final[Mapping[RunMetricName, PartMetricName]] = {
    "throughput": "latency",
    "power": "energy",
    "efficiency": "energy",
}
"""Metric that parts do not have -> that of the steps that divide it."""

RANGES: Final = ("energy_half_width", "latency_half_width")
"""Columns of ranges, which pictures draw."""

RATIO_TO: Final = Template("ratio to {baseline}")
POWER: Final = Template("{power:W}[ + {host}]")
BEST_TITLE: Final = "Best of all hardware"
DISTRIBUTION: Final = "query run edp.distribution -p run_id={run_id}"
STEPS_OF_ONE: Final = ("analyze {model} {hardware}", DISTRIBUTION)
STEPS_OF_VARIANT: Final = tuple(
    f"{command} {{model}} {{hardware}} {{precision}} --batch {{row.batch}} --runtime {{row.runtime}}"
    for command in ("analyze", "edp")
)
STEPS_OF_PAIR: Final = (
    "{question} {model} {rival} {best} {repeated}[ --metric {other_metric}]",
    DISTRIBUTION,
    "compare {model} {rival} {best} --level subgraph --metric {metric} {repeated}",
)

STATED: Final = ("--precision", "--weight-precision", "--batch", "--runtime")
"""Options that a step states itself if the rows differ in them."""

JUDGED: Final = (
    Column(name="probability_best", type="DOUBLE", meaning="probability of the least energy per inference"),
    Column(name="fastest_probability", type="DOUBLE", meaning="probability of the least latency"),
    Column(name="likely_best", type="BOOLEAN", meaning="true for the least energy, or a tie with it"),
    Column(name="likely_fastest", type="BOOLEAN", meaning="true for the least latency, or a tie with it"),
)
"""Columns that a figure's rows have in addition to the query's columns."""


def choose(answer: CompareAnswer, *, limit: int, repeated: Sequence[str] = (), **_: Any) -> Mapping[str, Any]:
    """Return the table, the title and the values of slots in the steps."""
    drawn = lay_figures(answer, limit)
    per = ["all but energy per batch"] if "batch" in answer.varying else []
    per = per or ["per batch"] * any(row.batch > 1 for row in answer.rows)
    return {
        "drawn": drawn,
        "title": attrs.evolve(title_runs(answer.scope), about=", ".join((*per, *drawn.common))),
        "options": drop_options(repeated, STATED) if answer.varying else repeated,
        **choose_steps(answer),
    }


def choose_steps(answer: CompareAnswer) -> dict[str, Any]:
    """Return the steps with the values of their slots: on the best chip, and on the pair of the decision."""
    (best, *others), metric, spell = answer.answered, answer.metric, answer.scope.spell
    steps = STEPS_OF_VARIANT if answer.varying else STEPS_OF_PAIR if others else STEPS_OF_ONE
    winner = rival = ""
    is_close = False
    if others:
        goal, names = answer.available[0], {row.run_id: row.hardware for row in answer.answered}
        decision = find_decision(answer.facts)
        winner, *rivals = [goal.hardware] if decision is None else [names[run] for run in decision.runs]
        rival = next((one for one in rivals if one != winner), goal.runner_up or others[0].hardware)
        is_close = bool(goal.rivals) and metric != "memory" and answer.scope.can_flip(rival, winner)
    asked = metric if is_close else EXPLAINED.get(metric, metric)
    return {
        "steps": steps,
        "row": best,
        "model": answer.scope.model,
        "hardware": spell(best.hardware),
        "rival": spell(rival),
        "best": spell(winner),
        "question": "flip" if is_close else "explain",
        "metric": EXPLAINED.get(metric, metric),
        "other_metric": "" if asked == "energy" else asked,  # energy is the default of both commands
        "precision": spell_precision(best.precision),
    }


def lay_figures(answer: CompareAnswer, limit: int) -> Grid:
    """Return a grid of the first `limit` rows and of the best hardware for each metric."""
    scope, rows = answer.scope, answer.answered
    is_each = "batch" in answer.varying
    label, energy = ("energy per inference", "energy_per_inference_j") if is_each else ("energy", "energy_j")
    winners = {row.hardware for row in answer.available if row.tied_count == 1}

    def stays(row: Comparison) -> bool:
        return row.label in winners

    if not scope.settings.hardware and not scope.settings.takes_all:
        rows = tuple(sorted(rows, key=lambda row: not row.is_available))  # available chips first
    shown = choose_rows(rows, limit, stays)
    baseline = next(row.baseline_hardware for row in answer.rows if row.baseline_hardware)
    has_baseline = any(row.ratio == 1.0 for row in shown)  # it is divided by itself
    ratio = "ratio" if has_baseline else RATIO_TO(baseline=mark_projected(baseline, answer.projected))
    metric = answer.metric
    blocks = {name: block.format(energy=energy, common="" if name == metric else "=") for name, block in BLOCKS.items()}
    decided = blocks.pop(metric)
    blocks.pop("efficiency", None)
    drawn = lay_rows(
        answer,
        answer.rows.with_rows(rows),
        COLUMNS(
            decided=decided,
            others="".join(blocks.values()),
            ratio="ratio" if len(rows) > 1 else "",
            ratio_heading=ratio,
        ),
        ranked=" ".join(dict.fromkeys((energy if metric == "energy" else METRIC[metric].column, energy, "latency_s"))),
        keep="ratio energy_half_width latency_half_width",
        pictures=" ".join(RANGES[:: -1 if metric == "latency" else 1]),
        limit=limit,
        noun="configurations" if answer.varying else "chips",
        stays=stays,
        average_power_w=lambda row: show_power(scope, row.hardware, row.average_power_w),
        units_used_count=show_busy_units,
    )
    for goal in answer.available:
        heading = label if goal.goal in ("energy", "energy_per_inference") else METRIC[goal.goal].label
        if heading in drawn.headings and goal.tied_count < len(scope.evaluated_ids):
            column = METRIC[goal.goal].column
            equal = [row.label for row in shown if row.is_available and getattr(row, column) == goal.value]
            labels = [row.label for row in shown]
            drawn = drawn.mark_best(heading, labels, (goal.hardware,), (*goal.rivals, *equal))
    return drawn


def show_power(scope: Scope, hardware: str, power_w: float | None) -> str:
    """Return a power for a table cell, marked if it omits the host that the hardware needs."""
    if power_w is None:
        return ""
    label = HardwareRef.read(hardware).label
    is_alone = scope.hosts.get(label) == "" and label not in scope.at_wall
    return POWER(power=power_w, host="host" if is_alone else "")


def draw(answer: CompareAnswer) -> Figures:
    """Return a figure with the energy and latency of each chip and their intervals."""
    goals = {row.goal: row for row in answer.recommendations}
    chosen = [goals.get("energy_per_inference", goals.get("energy")), goals.get("latency")]
    chances = [dict(zip(goal.ranked_ids, goal.probabilities, strict=True)) if goal else {} for goal in chosen]
    labels = {row.label for row in answer.rows}
    likely = [{goal.hardware, *goal.rivals} if goal else labels for goal in chosen]
    judged = answer.rows.with_columns(
        JUDGED,
        ((*(own.get(row.run_id) for own in chances), *(row.label in own for own in likely)) for row in answer.rows),
    )
    is_each = "batch" in answer.varying
    quantity = METRIC["energy_per_inference" if is_each else "energy"].meaning
    texts = {"quantity": quantity, "per": "batch" if is_each else ""}
    return (draw_figure(answer.scope, "comparison", judged, None, describe_answer(answer.facts), texts),)


COMPARE: Final = Shape(
    first=describe_answer,
    why=describe_gap,
    choices=choose,
    draw=draw,
    limit=10,
    parts=(
        Part(table="rows", counts_left_out=True, draw=lambda *_, drawn, **__: drawn),
        Part(
            title=BEST_TITLE,
            table="recommendations",
            columns="goal | *hardware | probability_best | *value | *advantage_ratio | runner_up | "
            "available_hardware | available_value",
            cells=lambda answer: {
                "probability_best": lambda row: show_sure(answer.scope, row.probability_best, row.hardware)
            },
        ),
    ),
)

PAGES: Final = {CompareAnswer: COMPARE}
