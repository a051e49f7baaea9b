"""Tables and figure of a comparison of one model on several chips, and what to ask next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask.compare import CompareAnswer
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Entry, Facts
from joulemap.ask.scope import Scope
from joulemap.domain.column import Col
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, TIE_RATIO, PartMetricName, RunMetricName
from joulemap.domain.table import Column
from joulemap.generated.compare import Comparison, Recommendation
from joulemap.physics.record.weight import spell_precision
from joulemap.show.caveat import show_middle
from joulemap.show.choice import MOST_WHY, describe_answer, describe_choice, name_metric
from joulemap.show.column import alter, lay_columns, show_table
from joulemap.show.page import (
    Asked,
    Figures,
    Page,
    compose_runs,
    count_left_out_below,
    draw_figure,
    drop_options,
    fill_steps,
)
from joulemap.show.present.cell import mark_projected, show_busy_units
from joulemap.show.present.document import Document, Grid, Section, choose_rows
from joulemap.show.present.template import Template
from joulemap.show.run import show_sure, title_runs
from joulemap.show.run_name import name_run
from joulemap.show.term import describe_gap

EXPLAINED: Final[Mapping[RunMetricName, PartMetricName]] = {
    "throughput": "latency",
    "power": "energy",
    "efficiency": "energy",
}
"""Metric that parts do not have -> that of the steps that divide it."""

LIMIT: Final = 10
RATIO_TO: Final = Template("ratio to {baseline}")
POWER: Final = Template("{power:W}[ + {host}]")
EDP: Final = Template("{edp:Js}")
BEST_TITLE: Final = "Best of all hardware"
DISTRIBUTION: Final = Template("query run edp.distribution -p run_id={run_id}")
STEPS_OF_ONE: Final = (Template("analyze {model} {hardware}"), DISTRIBUTION)
STEPS_OF_VARIANT: Final = tuple(
    Template(f"{command} {{model}} {{hardware}} {{precision}} --batch {{row.batch}} --runtime {{row.runtime}}")
    for command in ("analyze", "edp")
)
STEPS_OF_PAIR: Final = (
    Template("{question} {model} {rival} {best} {repeated}[ --metric {other_metric}]"),
    DISTRIBUTION,
    Template("compare {model} {rival} {best} --level subgraph --metric {metric} {repeated}"),
)

DEAR: Final = ("energy_per_inference", "edp_per_inference")
"""Metrics of which the fastest batch takes more."""

FASTEST: Final = Template("{name} answers fastest, {latency} per batch[, for {ratio:x} the {noun}]")
SETTING: Final = Template("on {hardware}, {own} {clause}")

STATED: Final = ("--precision", "--weight-precision", "--batch", "--runtime")
"""Options that a step states itself if the rows differ in them."""

JUDGED: Final = (
    Column(name="probability_best", type="DOUBLE", meaning="probability of the least energy per inference"),
    Column(name="fastest_probability", type="DOUBLE", meaning="probability of the least latency"),
    Column(name="likely_best", type="BOOLEAN", meaning="true for the least energy, or a tie with it"),
    Column(name="likely_fastest", type="BOOLEAN", meaning="true for the least latency, or a tie with it"),
)
"""Columns that a figure's rows have in addition to the query's columns."""


def list_steps(answer: CompareAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up commands: on the best chip, and on the pair of the decision."""
    (best, *others), metric, spell = answer.answered, answer.metric, answer.scope.spell
    rows = {row.run_id: row for row in answer.answered}
    steps = STEPS_OF_VARIANT if answer.varying else STEPS_OF_PAIR if others else STEPS_OF_ONE
    winner = rival = ""
    is_close = False
    if others:
        goal, decision = answer.available[0], find_decision(answer.facts)
        best = best if decision is None else rows[decision.run]
        winner, *rivals = [goal.hardware] if decision is None else [rows[run].hardware for run in decision.runs]
        rival = next((one for one in rivals if one != winner), goal.runner_up or others[0].hardware)
        is_close = bool(goal.rivals) and metric != "memory" and answer.scope.can_flip(rival, winner)
    asked = metric if is_close else EXPLAINED.get(metric, metric)
    return fill_steps(
        steps,
        best,
        drop_options(repeated, STATED) if answer.varying else repeated,
        row=best,
        model=answer.scope.model,
        hardware=spell(best.hardware),
        rival=spell(rival),
        best=spell(winner),
        question="flip" if is_close else "explain",
        metric=EXPLAINED.get(metric, metric),
        other_metric="" if asked == "energy" else asked,  # energy is the default of both commands
        precision=spell_precision(best.precision),
    )


def list_columns(answer: CompareAnswer, ratio: str) -> Iterator[Col[Comparison]]:
    """Yield the columns; those of the metric that decides come first, and `ratio` heads that of the ratio."""
    of, metric, scope = Comparison, answer.metric, answer.scope
    energy, edp = of.energy_j, of.edp_js.kept
    if "batch" in answer.varying:
        energy = of.energy_per_inference_j
        edp = edp.headed(METRIC["edp_per_inference"].label).by(lambda row: EDP(edp=(row.edp_js or 0.0) / row.batch))
    power = of.average_power_w.by(lambda row: show_power(scope, row.hardware, row.average_power_w)).kept
    blocks: dict[RunMetricName, tuple[Col[Comparison], ...]] = {
        "energy": (energy.ranking, of.energy_half_width.ends_of(energy).drawn),
        "latency": (of.latency_s.ranking, of.latency_half_width.ends_of(of.latency_s).drawn),
        "edp": (edp,),
        "memory": (of.peak_memory_bytes.or_common,),
        "throughput": (of.throughput_per_s.or_common,),
        "power": (power.or_common,),
    }
    plain: dict[RunMetricName, Col[Comparison]] = {
        "edp": edp,
        "memory": of.peak_memory_bytes,
        "throughput": of.throughput_per_s,
        "power": power,
        "efficiency": of.inferences_per_j.kept,
    }
    yield from (of.hardware, of.precision.if_varied.kept, of.batch.if_varied.kept, of.runtime.if_varied.kept)
    yield from (plain[metric].ranking,) if metric in plain else blocks[metric]
    if len(answer.answered) > 1:
        yield of.ratio.headed(ratio).kept
    yield of.placement.if_any
    yield from (one for name, block in blocks.items() if name != metric for one in block)
    yield from (of.compute_utilization_fraction.or_common, of.overhead_fraction.or_common)
    yield of.units_used_count.by(show_busy_units).or_common


def lay_figures(answer: CompareAnswer, limit: int) -> Grid:
    """Return a grid of the first `limit` rows and of the best hardware for each metric."""
    scope, rows = answer.scope, answer.answered
    is_each = "batch" in answer.varying
    label = "energy per inference" if is_each else "energy"
    winners = {row.hardware for row in answer.available if row.tied_count == 1}

    def stays(row: Comparison) -> bool:
        return row.label in winners

    if not scope.settings.hardware and not scope.settings.takes_all:
        rows = tuple(sorted(rows, key=lambda row: not row.is_available))  # available chips first
    shown = choose_rows(rows, limit, stays)
    baseline = next(row.baseline_hardware for row in answer.rows if row.baseline_hardware)
    has_baseline = any(row.ratio == 1.0 for row in shown)  # it is divided by itself
    ratio = "ratio" if has_baseline else RATIO_TO(baseline=mark_projected(baseline, answer.projected))
    drawn = lay_columns(
        answer,
        answer.rows.with_rows(rows),
        list_columns(answer, ratio),
        keep=(Comparison.ratio, Comparison.energy_half_width, Comparison.latency_half_width),
        limit=limit,
        noun="configurations" if answer.varying else "chips",
        stays=stays,
    )
    for goal in answer.available:
        heading = label if goal.goal in ("energy", "energy_per_inference") else METRIC[goal.goal].label
        if heading in drawn.headings and goal.tied_count < len(scope.evaluated_ids):
            column = METRIC[goal.goal].column
            equal = [row.label for row in shown if row.is_available and getattr(row, column, None) == goal.value]
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


def describe_settings(facts: Facts, varying: Collection[str]) -> list[str]:
    """Return a line on what another batch would change: the batch sizes at which the decision turns, or the batch that
    answers fastest; without several, on what the next best precision or runtime of the same chip would.
    """
    decision = find_decision(facts)
    if decision is None or not (own := facts.runs[decision.run].settings):
        return []
    first, noun = decision.choice, name_metric(decision.choice.metric)
    if len(facts.turns("batch")) > 1:
        from joulemap.show.sweep import list_turns

        return list_turns(facts)
    times = {one.run: one.values["latency"] for one in facts.of(Entry) if facts.runs[one.run].is_available}
    quickest = min(times, key=lambda run: times[run].value, default=decision.run)
    siblings = [run for run, one in facts.runs.items() if one.hardware == facts.runs[decision.run].hardware]
    others = [run for run in first.further if run in siblings]
    if quickest not in decision.runs and "batch" in varying:
        ratio = first.find_ratio(quickest) / first.find_ratio(decision.run)
        is_dear = first.metric in DEAR and TIE_RATIO < ratio < float("inf")
        name, latency = name_run(facts.runs[quickest]), show_middle(times[quickest])
        return [FASTEST(name=name, latency=latency, ratio=ratio if is_dear else None, noun=noun)]
    if decision.run != first.run or len(decision.runs) < 2 or decision.runs[1] in siblings or not others:
        return []
    clause = describe_choice(first.facing(others[0]), facts.runs, " ".join(facts.runs[others[0]].settings))
    return [SETTING(hardware=facts.runs[decision.run].hardware, own=" ".join(own), clause=clause)]


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


def draw_compare(answer: CompareAnswer, asked: Asked, more: Sequence[Section] = ()) -> Document:
    """Return the document of a comparison, with `more` sections behind its table."""
    drawn = lay_figures(answer, asked.most(LIMIT))
    per = ["all but energy per batch"] if "batch" in answer.varying else []
    per = per or ["per batch"] * any(row.batch > 1 for row in answer.rows)
    sure = Recommendation.probability_best.by(lambda row: show_sure(answer.scope, row.probability_best, row.hardware))
    columns = alter(Recommendation.table, sure)
    return compose_runs(
        answer,
        answer.facts,
        [*count_left_out_below(answer.scope, [Section("", drawn)]), *more],
        answer.rows,
        title=attrs.evolve(title_runs(answer.scope), about=", ".join((*per, *drawn.common))),
        headline=describe_answer(answer.facts),
        reasons=[*describe_settings(answer.facts, answer.varying), *describe_gap(answer.facts)][:MOST_WHY],
        details=show_table(answer, BEST_TITLE, answer.recommendations, columns),
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {CompareAnswer: Page[CompareAnswer](draw=draw_compare, draw_figures=draw)}
