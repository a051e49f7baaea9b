"""Words and tables of a Pareto front: which configuration to take, and the configurations that it dominates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Entry, Facts, Front
from joulemap.ask.pareto import ParetoAnswer
from joulemap.domain.column import Col
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.table import Column, Table
from joulemap.generated.pareto import ParetoPoint
from joulemap.show.candidate import (
    COMMON,
    ask_next,
    describe_lost,
    describe_unranked,
    describe_use,
    draw_candidates,
    find_limited,
    list_metrics,
    show_assumptions,
    show_metric,
    show_odds,
    title_candidates,
)
from joulemap.show.choice import describe_choices, describe_lead, finish
from joulemap.show.column import derived, show_table
from joulemap.show.page import Asked, Figures, Page, compose_runs
from joulemap.show.present.cell import show_chance
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template
from joulemap.show.run import show_limit
from joulemap.show.run_name import join_names, name_all, name_run
from joulemap.show.term import describe_causes

KNEE: Final = Template("Take {pick}, the knee: it {clauses:and}[; {chance} likely on the front]")
KNEE_OR_END: Final = Template(
    "{pick}, the knee, or {first}, the {best}: {pick} {clauses:and}[; {chance} likely on the front]"
)
LIKELY: Final = Template("{head}[; {pick} is {chance} likely on the front]")
ONE: Final = Template("Take {name}: {x} and {y}, both better than those of every other[ {sold}] configuration.")
ALONE: Final = Template("{name} is the only configuration: {x}, {y}.")
BEYOND: Final = Template("{names}, which cannot be bought, would be on the front ({count:n configuration})")

NOTHING: Final = Template("No configuration has a known {x} and a known {y}.")
ABOUT: Final = Template("{count:n configuration}[, {use}]")
DRAWN_ABOUT: Final = Template("{y.meaning} over {x.meaning}")

PICK: Final = (Column(name="pick", type="VARCHAR", meaning="reason to choose a configuration of the front"),)
"""Column that the rows of a chart have in addition to those of the query."""
WHOLE: Final = Template("Front ({count})")
PROJECTED: Final = Template("On the front if available ({count})")
DOMINATED: Final = Template("Dominated ({count:#})")

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
    return [
        *describe_causes(facts, 1),
        *describe_lost(facts),
        *(describe_beyond(facts) if facts.is_named else []),
    ]


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


def show_points(
    answer: ParetoAnswer,
    title: str,
    table: Table[ParetoPoint],
    limit: int,
    more: Iterable[Col[ParetoPoint]] = (),
    pick: Col[ParetoPoint] | None = None,
) -> list[Section]:
    """Return the section of configurations: values and intervals in both metrics, and `more` columns."""
    of, x, y = ParetoPoint, METRIC[answer.x], METRIC[answer.y]
    columns = (
        of.hardware,
        of.precision.or_common.kept,
        of.batch.or_common.kept,
        of.runtime.or_common,
        pick,
        of.x_value.headed(x.label).by(lambda row: show_metric(x.name, row.x_value), x.column).ranking.kept,
        of.y_value.headed(y.label).by(lambda row: show_metric(y.name, row.y_value), y.column).ranking.kept,
        of.x_half_width.headed(f"{x.label} range").ends_of(of.x_value).if_any,
        of.y_half_width.headed(f"{y.label} range").ends_of(of.y_value).if_any,
        of.probability_front.by(lambda row: show_odds(answer, row.probability_front, row, *answer.front)).if_any.kept,
        *more,
    )
    return show_table(answer, title, table, columns, limit=limit, noun="configurations")


def show_front(answer: ParetoAnswer, limit: int) -> list[Section]:
    """Return the section of `limit` configurations of the front, including both ends and the knee."""
    front, picks, names = answer.front, answer.picks, name_picks(answer)
    wanted = {row.run_id for row in spread_evenly(front.rows, limit - (answer.knee is not None))} | picks.keys()
    kept = front.with_rows(row for row in front if row.run_id in wanted)
    pick: Col[ParetoPoint] = derived("pick", lambda row: names.get(row.run_id, ""))
    drawn = show_points(answer, "", kept, limit, pick=pick.if_any.kept)
    grids = [one.out_of(len(front), len(kept), "configurations") for own in drawn for one in own.grids]
    return [Section("", grids)] if front else []


def list_details(answer: ParetoAnswer, limit: int) -> Iterator[Section]:
    """Yield the tables of the whole front, of unavailable hardware, of dominated configurations, and assumptions."""
    of, x, y = ParetoPoint, METRIC[answer.x].label, METRIC[answer.y].label
    limits = of.throughput_limit.headed("throughput limit").by(show_limit).if_any
    more = (*list_metrics(of, SHOWN, (answer.x, answer.y)), limits)
    yield from show_points(answer, WHOLE(count=len(answer.front)), answer.front, limit, more)
    yield from show_points(answer, PROJECTED(count=len(answer.projections)), answer.projections, limit, more)
    by = (of.dominated_by.kept, of.x_ratio.headed(f"ratio of {x}"), of.y_ratio.headed(f"ratio of {y}"))
    dominated = DOMINATED(count=len(answer.dominated))
    yield from show_points(answer, dominated, answer.dominated, limit, (*by, of.dominator_count))
    yield from show_assumptions(answer)


def draw_front(answer: ParetoAnswer, asked: Asked) -> Document:
    """Return the document of a front."""
    most, front, picks = asked.most(5), answer.front.rows, list(answer.picks.values())
    is_money = "cost" in answer.facts.asked and bool(answer.rows.rows)
    about = ABOUT(
        count=sum(row.x_value is not None for row in answer.rows),
        use=describe_use(answer.assumptions, answer.rows[0].pay) if is_money else "",
    )
    return compose_runs(
        answer,
        answer.facts,
        show_front(answer, most),
        answer.rows,
        title=title_candidates(answer, about, spread_evenly(front, most) if len(front) > 1 else ()),
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts),
        details=list_details(answer, most),
        notes=list_notes(answer),
        steps=ask_next(answer, picks[:2], picks[:2], asked.repeated),
        picture=partial(draw, answer),
    )


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


PAGES: Final = {ParetoAnswer: Page[ParetoAnswer](draw=draw_front, draw_figures=draw)}
