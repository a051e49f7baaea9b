"""Words and tables of a Pareto front: which configuration to take, and the configurations that it dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Entry, Facts, Front, Term
from joulemap.ask.pareto import ParetoAnswer
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.table import Column
from joulemap.show.candidate import (
    ASSUMED,
    COMMON,
    ask_next,
    describe_lost,
    describe_unranked,
    describe_use,
    draw_candidates,
    find_limited,
    list_metrics,
    show_metric,
    show_odds,
    title_candidates,
)
from joulemap.show.choice import describe_choices, describe_lead, finish
from joulemap.show.page import Figures
from joulemap.show.present.cell import show_chance
from joulemap.show.present.document import Block, FieldCell, Grid
from joulemap.show.present.template import Template
from joulemap.show.run import show_limit
from joulemap.show.run_name import join_names, name_all, name_run
from joulemap.show.shape import Part, Shape
from joulemap.show.term import describe_causes

KNEE: Final = Template("Take {pick}, the knee: it {clauses:and}[; {chance} likely on the front]")
KNEE_OR_END: Final = Template(
    "{pick}, the knee, or {first}, the {best}: {pick} {clauses:and}[; {chance} likely on the front]"
)
LIKELY: Final = Template("{head}[; {pick} is {chance} likely on the front]")
ONE: Final = Template("Take {name}: {x} and {y}, both better than those of every other[ {sold}] configuration.")
ALONE: Final = Template("{name} is the only configuration: {x}, {y}.")
RATE: Final = Template("{name} attains {rate:ops/s} on {count:n inference} ({time:s})")
BEYOND: Final = Template("{names}, which cannot be bought, would be on the front ({count:n configuration})")

NOTHING: Final = Template("No configuration has a known {x} and a known {y}.")
ABOUT: Final = Template("{count:n configuration}[, {use}]")
DRAWN_ABOUT: Final = Template("{y.meaning} over {x.meaning}")

SETTINGS: Final = "hardware | *precision= | *batch= | runtime= | "
VALUES: Final = (
    "*{x} x_value | *{y} y_value | {x} range -x_value:x_half_width? | {y} range -y_value:y_half_width? | "
    "*probability_front? | "
)
CHOSEN, PLACED = SETTINGS + "*pick? | " + VALUES, SETTINGS + VALUES
PICK: Final = (Column(name="pick", type="VARCHAR", meaning="reason to choose a configuration of the front"),)
"""Column that the rows of a chart have in addition to those of the query."""
MORE: Final = "{more}throughput limit throughput_limit?"
DOMINATED_BY: Final = "*dominated_by | ratio of {x} x_ratio | ratio of {y} y_ratio | dominator_count"

BEST: Final = {"latency": "fastest", "cost": "cheapest"}
BEST_BY: Final = Template("{word} {noun}")
"""Reason to choose the end of a front that is best by a metric, and by one without words of its own."""

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Metrics shown in addition to the two metrics of the front."""

One = TypeVar("One")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the knee of the front and what it gains and costs, or which end is for which metric."""
    front = next((one for one in facts.of(Front) if one.is_available), None)
    if front is None:
        x, y = (METRIC[name].meaning for name in facts.asked if name in METRIC)
        return NOTHING(x=x, y=y)
    choices, first = facts.of(Choice), front.run
    if len(front.runs) == 1:
        own_values = facts.of(Entry)[0].values
        shown = {at: show_metric(name, own_values[name].value) for at, name in zip("xy", front.metrics, strict=True)}
        if front.count < 2:
            return ALONE(name=name_run(facts.runs[first]), **shown)
        sold = None if all(one.is_available for one in facts.of(Front)) else "available"
        return ONE(name=name_run(facts.runs[first]), sold=sold, **shown)
    taken = choices[0].run
    chance = facts.find_values(taken).get("probability_front")
    sure = "" if chance is None or not facts.runs[taken].is_sure else show_chance(chance.value)
    if front.knee is None:
        return describe_choices(choices, facts.runs, LIKELY, pick=name_run(facts.runs[taken]), chance=sure)
    gain, loss = decide(choices).leads
    clauses = [describe_lead(gain, name_run(facts.runs[first]), "inference"), describe_lead(loss, "", "inference")]
    form = KNEE if (gain.ratio or 1.0) >= (loss.ratio or 1.0) else KNEE_OR_END
    given = {
        "pick": name_run(facts.runs[taken]),
        "first": name_run(facts.runs[first]),
        "best": name_end(front.metrics[0]),
    }
    return finish([form(clauses=clauses, chance=one, **given) for one in (sure, "")])


def name_end(name: str) -> str:
    """Return the reason to choose the end of a front that is best by a metric."""
    metric = find_limited(name)
    return BEST.get(name) or BEST_BY(word="most" if metric.is_higher_better else "least", noun=metric.label)


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on unavailable hardware that would be on the front; empty without any."""
    beyond = [one for one in facts.of(Front) if not one.is_available]
    return [BEYOND(names=join_names(name_all(facts.runs, one.runs)), count=len(one.runs)) for one in beyond]


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: what makes the difference, named hardware that a missing price leaves out, or that would be
    on the front.
    """
    rates = [_describe_rates(one, facts) for one in facts.of(Term) if one.level == "work"]
    return [
        *(describe_causes(facts) or rates)[:1],
        *describe_lost(facts),
        *(describe_beyond(facts) if facts.is_named else []),
    ]


def _describe_rates(term: Term, facts: Facts) -> str:
    """Return the line on how much each of two configurations computes at a time, and how fast."""
    sides = zip(term.runs, term.prices, term.counts, term.amounts, strict=True)
    told = [
        RATE(name=name_run(facts.runs[run]), rate=rate.value, count=round(count.value), time=time.value)
        for run, rate, count, time in sides
        if rate is not None and count is not None
    ]
    return ", ".join(told[::-1])


def name_picks(answer: ParetoAnswer) -> dict[int, str]:
    """Return run id -> reason to choose a configuration: an end of the front by its metric, or the knee."""
    picks, knee = list(answer.picks), answer.knee
    if len(picks) < 2:
        return {}
    middle = {} if knee is None else {knee.run_id: "knee"}
    return {picks[-1]: name_end(answer.y), **middle, picks[0]: name_end(answer.x)}


def spread_evenly(rows: Sequence[One], count: int) -> tuple[One, ...]:
    """Return `count` rows at even distances, including the first and the last; all rows if there are fewer."""
    if len(rows) <= count or count < 2:
        return tuple(rows[:count])
    return tuple(rows[round(step * (len(rows) - 1) / (count - 1))] for step in range(count))


def lay_front(answer: ParetoAnswer, _: Grid, limit: int, **values: Any) -> Sequence[Block]:
    """Return a grid of `limit` configurations of the front, including both ends and the knee."""
    front, picks = answer.front, answer.picks
    wanted = {row.run_id for row in spread_evenly(front.rows, limit - (answer.knee is not None))} | picks.keys()
    kept = [row for row in front if row.run_id in wanted]
    sections = POINTS.show(attrs.evolve(answer, rows=front.with_rows(kept)), limit, values)
    return [one.out_of(len(front), len(kept), "configurations") for own in sections for one in own.grids]


def find_cells(answer: ParetoAnswer) -> Mapping[str, Any]:
    """Return the cells with the values of both metrics, and with the reason to choose a configuration."""
    picks = name_picks(answer)
    x, y = METRIC[answer.x], METRIC[answer.y]
    return {
        "pick": lambda row: picks.get(row.run_id, ""),
        "probability_front": lambda row: show_odds(answer, row.probability_front, row, *answer.front),
        "x_value": FieldCell(x.column, lambda row: show_metric(x.name, row.x_value)),
        "y_value": FieldCell(y.column, lambda row: show_metric(y.name, row.y_value)),
    }


POINTS: Final = Part(
    table="front",
    columns=CHOSEN,
    lay={
        "ranked": "x_value y_value",
        "noun": "configurations",
        "throughput_limit": show_limit,
    },
    cells=find_cells,
    is_long=True,
)
"""Configurations: values and intervals in both metrics."""


def choose(answer: ParetoAnswer, *, limit: int, repeated: Sequence[str]) -> Mapping[str, Any]:
    """Return the values of slots in the texts of parts, the title and the follow-up commands."""
    x, y = METRIC[answer.x], METRIC[answer.y]
    is_money = "cost" in answer.facts.asked and bool(answer.rows.rows)
    about = ABOUT(
        count=sum(row.x_value is not None for row in answer.rows),
        use=describe_use(answer.assumptions, answer.rows[0].pay) if is_money else "",
    )
    front = answer.front.rows
    picks = list(answer.picks.values())
    return {
        "x": x.label,
        "y": y.label,
        "more": list_metrics(SHOWN, (answer.x, answer.y)),
        "title": title_candidates(answer, about, spread_evenly(front, limit) if len(front) > 1 else ()),
        "asked": ask_next(answer, picks[:2], picks[:2], repeated),
        **({} if front else {"shown": ()}),
    }


def list_notes(answer: ParetoAnswer) -> list[str]:
    """Return notes on hardware that is not on the front."""
    hidden = [row for row in answer.select("projection", "dominated") if not row.is_available]
    is_placed = any(not row.is_available for row in answer.front)
    unranked = describe_unranked(answer, [] if is_placed else hidden)
    return [
        *describe_beyond(answer.facts),
        *unranked,
    ]


def draw(answer: ParetoAnswer) -> Figures:
    """Return a figure of all configurations in both metrics, with the front marked; empty without a front. Names in
    characters have the settings that differ on the front.
    """
    from joulemap.show.figure.figure import describe_metric

    front = answer.front.rows
    if not front:
        return ()
    x, y = METRIC[answer.x], METRIC[answer.y]
    differing = [name for name in COMMON if len({getattr(row, name) for row in front}) > 1]
    label = " ".join(("{hardware}", *(f"batch {{{one}}}" if one == "batch" else f"{{{one}}}" for one in differing)))
    texts = {**describe_metric(x, "x_"), **describe_metric(y, "y_"), "label": label}
    picks = name_picks(answer)
    rows = answer.rows.with_columns(PICK, ((picks.get(row.run_id),) for row in answer.rows))
    return draw_candidates(answer, "pareto", rows, DRAWN_ABOUT(x=x, y=y), describe_answer(answer.facts), **texts)


PARETO: Final = Shape(
    first=describe_answer,
    why=list_reasons,
    most_why=None,
    csv="rows",
    choices=choose,
    notes=list_notes,
    draw=draw,
    picture=draw,
    limit=5,
    parts=(
        Part(table="front", draw=lay_front),
        attrs.evolve(POINTS, title="Front ({count})", columns=PLACED + MORE),
        attrs.evolve(POINTS, title="On the front if available ({count})", columns=PLACED + MORE, table="projections"),
        attrs.evolve(POINTS, title="Dominated ({count:,})", columns=PLACED + DOMINATED_BY, table="dominated"),
        ASSUMED,
    ),
)

PAGES: Final = {ParetoAnswer: PARETO}
