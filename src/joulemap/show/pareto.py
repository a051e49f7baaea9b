"""Words and tables of a Pareto front: its size, its two ends, and the configurations that it dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from joulemap.ask.fact import Entry, Facts, Front
from joulemap.ask.pareto import ParetoAnswer
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.candidate import (
    ASSUMED,
    BATCH_NOTE,
    ask_next,
    describe_lost,
    describe_unranked,
    describe_use,
    draw_candidates,
    list_metrics,
    list_terms,
    show_metric,
    title_candidates,
)
from joulemap.show.page import Figures
from joulemap.show.present.document import Block, FieldCell, Grid
from joulemap.show.present.template import Template
from joulemap.show.run import show_limit
from joulemap.show.run_name import join_names, name_all, name_run
from joulemap.show.shape import Part, Shape

FRONT: Final = Template("{count} configurations are on the front, from {first} to {last}.")
END: Final = Template("{name} ({x}, {y})")
ONE: Final = Template("{end} beats every other configuration.")
ALONE: Final = Template("{end} is the only configuration.")
NOTHING: Final = Template("No configuration has a known {x} and a known {y}.")
BEYOND: Final = Template("{names}, which cannot be bought, would be on the front ({count:n configuration})")

ABOUT: Final = Template("{x.meaning} against {y.meaning} of {count:n configuration}[, {use}]")
DRAWN_ABOUT: Final = Template("{y.meaning} over {x.meaning}")

PLACED: Final = (
    "hardware | *precision= | *batch= | runtime= | *{x} x_value | {x} range -x_value:x_half_width? | *{y} y_value | "
    "{y} range -y_value:y_half_width? | *probability_front? | "
)
MORE: Final = "{more}throughput limit throughput_limit?"
DOMINATED_BY: Final = "*dominated_by | ratio of {x} x_ratio | ratio of {y} y_ratio | dominator_count"
DOMINATED_NOTE: Final = "dominated: another configuration is at least as good in both metrics and better in one"
FRONT_NOTE: Final = (
    "front confidence: fraction of Monte Carlo samples in which no other configuration is better in both metrics"
)

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Metrics shown in addition to the two metrics of the front."""

One = TypeVar("One")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the number of configurations on the front, and its ends."""
    front = next((one for one in facts.of(Front) if one.is_available), None)
    if front is None:
        x, y = (METRIC[name].meaning for name in facts.asked if name in METRIC)
        return NOTHING(x=x, y=y)
    entries = {one.runs[0]: one.values for one in facts.of(Entry)}
    first, last = (
        END(
            name=name_run(facts.runs[run]),
            **{at: show_metric(name, entries[run][name].value) for at, name in zip("xy", front.metrics, strict=True)},
        )
        for run in (front.runs[0], front.runs[-1])
    )
    if len(front.runs) == 1:
        return (ALONE if front.count < 2 else ONE)(end=first)
    return FRONT(count=len(front.runs), first=first, last=last)


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on unavailable hardware that would be on the front; empty without any."""
    beyond = [one for one in facts.of(Front) if not one.is_available]
    return [BEYOND(names=join_names(name_all(facts.runs, one.runs)), count=len(one.runs)) for one in beyond]


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: named hardware that a missing price leaves out, or that would be on the front."""
    is_named = any(one.is_named for one in facts.runs.values())
    return [*describe_lost(facts), *(describe_beyond(facts) if is_named else [])]


def spread_evenly(rows: Sequence[One], count: int) -> tuple[One, ...]:
    """Return `count` rows at even distances, including the first and the last; all rows if there are fewer."""
    if len(rows) <= count or count < 2:
        return tuple(rows[:count])
    return tuple(rows[round(step * (len(rows) - 1) / (count - 1))] for step in range(count))


def lay_front(answer: ParetoAnswer, _: Grid, limit: int, **values: Any) -> Sequence[Block]:
    """Return a grid of `limit` configurations of the front, including both ends."""
    front = answer.front
    kept = spread_evenly(front.rows, limit)
    sections = POINTS.show(attrs.evolve(answer, rows=front.with_rows(kept)), limit, values)
    return [one.out_of(len(front), len(kept), "configurations") for own in sections for one in own.grids]


def find_cells(answer: ParetoAnswer) -> Mapping[str, Any]:
    """Return the cells with the values of both metrics."""
    x, y = METRIC[answer.x], METRIC[answer.y]
    return {
        "x_value": FieldCell(x.column, lambda row: show_metric(x.name, row.x_value)),
        "y_value": FieldCell(y.column, lambda row: show_metric(y.name, row.y_value)),
    }


POINTS: Final = Part(
    table="front",
    columns=PLACED,
    lay={
        "ranked": "x_value y_value",
        "pictures": "y_half_width x_half_width",
        "noun": "configurations",
        "throughput_limit": show_limit,
    },
    cells=find_cells,
    is_long=True,
)
"""Configurations: values and intervals in both metrics, with the intervals drawn."""


def choose(answer: ParetoAnswer, *, limit: int, repeated: Sequence[str]) -> Mapping[str, Any]:
    """Return the values of slots in the texts of parts, the title and the follow-up commands."""
    x, y = METRIC[answer.x], METRIC[answer.y]
    is_money = "cost" in answer.facts.asked and bool(answer.rows.rows)
    about = ABOUT(
        x=x,
        y=y,
        count=sum(row.x_value is not None for row in answer.rows),
        use=describe_use(answer.assumptions, answer.rows[0].pay) if is_money else "",
    )
    front = answer.front.rows
    ends = [*front[:1], *front[1:][-1:]]
    return {
        "x": x.label,
        "y": y.label,
        "more": list_metrics(SHOWN, (answer.x, answer.y)),
        "title": title_candidates(answer, about, spread_evenly(front, limit)),
        "asked": ask_next(answer, ends, ends, repeated),
        **({} if front else {"shown": ()}),
    }


def list_notes(answer: ParetoAnswer) -> list[str]:
    """Return notes on the front, batch sizes, and hardware that is not on it."""
    hidden = [row for row in answer.select("projection", "dominated") if not row.is_available]
    is_placed = any(not row.is_available for row in answer.front)
    unranked = describe_unranked(answer, [] if is_placed else hidden)
    return [*describe_beyond(answer.facts), DOMINATED_NOTE, FRONT_NOTE, BATCH_NOTE, *unranked, *list_terms(answer)]


def draw(answer: ParetoAnswer) -> Figures:
    """Return a figure of all configurations in both metrics, with the front marked; empty without a front."""
    from joulemap.show.figure.figure import describe_metric

    if not answer.front.rows:
        return ()
    x, y = METRIC[answer.x], METRIC[answer.y]
    texts = {**describe_metric(x, "x_"), **describe_metric(y, "y_")}
    told = describe_answer(answer.facts)
    return draw_candidates(answer, "pareto", answer.rows, DRAWN_ABOUT(x=x, y=y), told, **texts)


PARETO: Final = Shape(
    first=describe_answer,
    why=list_reasons,
    most_why=None,
    csv="rows",
    choices=choose,
    notes=list_notes,
    draw=draw,
    limit=8,
    parts=(
        Part(table="front", draw=lay_front),
        attrs.evolve(POINTS, title="Front ({count})", columns=PLACED + MORE),
        attrs.evolve(POINTS, title="On the front if available ({count})", columns=PLACED + MORE, table="projections"),
        attrs.evolve(POINTS, title="Dominated ({count:,})", columns=PLACED + DOMINATED_BY, table="dominated"),
        ASSUMED,
    ),
)

PAGES: Final = {ParetoAnswer: PARETO}
