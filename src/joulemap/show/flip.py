"""Tables on constants that would reverse the order of two chips; their words are those of all answers on constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs

from joulemap.ask.fact import Facts
from joulemap.ask.flip import SIDES, Flip, FlipAnswer
from joulemap.domain.metric import METRIC
from joulemap.domain.value import show_constant
from joulemap.physics.record.constant import STATIC
from joulemap.show.choice import MOST_WHY
from joulemap.show.column import show_table
from joulemap.show.constant import (
    BOTH,
    DIGITS,
    FEWEST,
    describe_odds,
    describe_turn,
    explain_words,
    list_reasons,
    name_pair,
    show_field,
    show_slope,
    show_value,
    title,
)
from joulemap.show.page import Asked, Figures, Page, compose_runs, draw_figure, fill_steps, first_and_rest
from joulemap.show.present.cell import Remark, mark_projected, show_plain
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template, join_clauses

SAME_ORDER: Final = Template("the order is the same at batch {first} to {last}")

FLIP_TITLE: Final = Template("constants that would reverse the {metric.label} ranking of {a} (A) and {b} (B)[, {paid}]")
DRAWN_PAIR: Final = Template("{metric.label} of A {a} and B {b}")
NOT_BELOW: Final = Template("none up to {limit}")
EVERY: Final = "Every constant, the likeliest to reverse the order first"
ODDS: Final = Template("{likelihood:odds}")
STEPS: Final = (
    Template("[compare {model} --hardware {joined} --set {setting}]"),
    Template("[explain {model} {pair} --metric {explained}]"),
    Template("sensitivity {model} {pair} --metric {metric}"),
    Template("[compare {model} --hardware {joined} --set {later}]"),
)
FIRST: Final = 4
"""Places of the table of reversals that only the likeliest use."""

SHOWN_STILL: Final = 4
"""Maximum constants in the main table that cannot reverse the order alone; the largest uncertainty shares are kept."""

LEAST_LIKELY: Final = 1e-3
"""Minimum likelihood of a reversal for the main table; `LEAST_SHARE` of the uncertainty suffices too."""

LEAST_SHARE: Final = 5e-3

WORTH_TRYING: Final = 0.02
"""Minimum likelihood of a reversal for which the first follow-up command tries the constant beyond its break-even."""

BEYOND: Final = 1.02
"""Factor by which a follow-up command sets a constant beyond its break-even."""

STILL_IN_TIME: Final = ("latency", "throughput")
"""Metrics that static power does not change."""


def list_steps(answer: FlipAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up commands: a comparison beyond the likeliest break-even first, if it is likely enough."""
    row = next((row for row in answer.rows if row.flip_ratio is not None and answer.can_set(row)), None)
    setting, is_first = "", False
    if row is not None and row.flip_ratio is not None:
        beyond = row.flip_ratio * (BEYOND if row.flip_ratio > 1.0 else 1.0 / BEYOND)
        at = "" if row.hardware is None else f"{row.hardware}:"
        setting, is_first = f"{at}{row.constant}=x{beyond:.4g}", (row.likelihood or 0.0) >= WORTH_TRYING
    return fill_steps(
        STEPS,
        None,
        repeated,
        **name_pair(answer, answer.names),
        explained=answer.metric if answer.metric in ("energy", "latency", "edp") else "",
        setting=setting if is_first else "",
        later="" if is_first else setting,
    )


def mark_pair(answer: FlipAnswer) -> dict[str, str]:
    """Return the names of A and B with the mark of projected hardware."""
    return {side: mark_projected(name, answer.projected) for side, name in zip("ab", answer.names, strict=True)}


def list_sentences(facts: Facts) -> list[str]:
    """Return sentences on the likeliest reversals, the confidence, and the next measurement."""
    return [describe_turn(facts), *filter(None, (describe_odds(facts), *list_reasons(facts)))]


def list_likely(answer: FlipAnswer, limit: int) -> list[Flip]:
    """Return at most `limit` constants for the main table: first those that can reverse the order, likeliest first.

    Static power of each side follows if there is a place behind the `FIRST` likeliest, then the constants with the
    largest shares of the uncertainty.
    """
    order = {side: rank for rank, side in enumerate(SIDES)}
    rows = sorted(
        answer.rows,
        key=lambda row: (-(row.likelihood or 0.0), order[row.side], -row.variance_fraction, row.constant),
    )
    flips = [row for row in rows if row.likelihood]
    likely = [row for rank, row in enumerate(flips) if (row.likelihood or 0.0) >= LEAST_LIKELY or rank < FEWEST]
    static = [row for row in rows if row.constant == STATIC and answer.metric not in STILL_IN_TIME]
    others = (row for row in rows if row.variance_fraction >= LEAST_SHARE and row not in (*likely, *static))
    still = sorted(others, key=lambda row: -row.variance_fraction)[:SHOWN_STILL]
    kept = likely[: max(limit - sum(row not in likely[:limit] for row in static), FIRST)]
    return [*kept, *(row for row in static if row not in kept), *still][:limit]


def show_break_even(answer: FlipAnswer, row: Flip) -> str:
    """Return the value of a constant that makes the chips equal, or a remark that there is none."""
    if row.flip_value is not None:
        return show_value(row.flip_value, row.shown_unit)
    if row.constant == STATIC:
        limits_w = dict(zip("AB", answer.limits_w, strict=True))
        return Remark(NOT_BELOW(limit=show_constant(limits_w.get(row.side, min(answer.limits_w)), "W")))
    return "none"


def show_factor(row: Flip) -> str:
    """Return the factor of a constant that makes the chips equal; empty without one."""
    factor = row.flip_ratio
    return "" if factor is None else f"x{factor:.3g}" if factor >= 1.0 else f"/{1.0 / factor:.3g}"


def lay_reversals(answer: FlipAnswer, limit: int) -> list[Section]:
    """Return the section of the likeliest reversals with a picture of the shares of the uncertainty."""
    of, chosen = Flip, answer.rows.with_rows(list_likely(answer, limit))
    columns = (
        of.word,
        of.side.kept,
        of.value.by(show_field("value", DIGITS)).kept,
        of.flip_value.by(partial(show_break_even, answer)).ranking.kept,
        of.flip_ratio.by(show_factor).kept,
        of.likelihood.by(ODDS).ranking.kept,
        of.variance_fraction.drawn.kept,
        of.basis,
    )

    def count(drawn: Grid) -> Grid:
        pictures = tuple(attrs.evolve(one, heading="uncertainty") for one in drawn.pictures)
        counted = attrs.evolve(drawn, pictures=pictures)
        return counted.out_of(len(answer.rows), len(chosen), "constants", "--show details")

    return show_table(answer, "", chosen, columns, *explain_words(chosen), change=count)


def lay_all(answer: FlipAnswer) -> list[Section]:
    """Return the section of every constant."""
    of = Flip
    columns = (
        of.constant,
        of.hardware.by(lambda row: mark_projected(row.hardware or BOTH, answer.projected)).kept,
        of.value.by(show_field("value")),
        of.flip_value.by(partial(show_break_even, answer)).kept,
        of.flip_ratio.by(show_factor).kept,
        of.likelihood.by(ODDS).kept,
        of.variance_fraction.kept,
        of.ratio_elasticity.by(show_slope("ratio_elasticity")),
        of.low_ratio.by(lambda row: f"/{show_plain(1.0 / row.low_ratio)} x{show_plain(row.high_ratio)}").kept,
        of.spread,
        of.method,
        of.basis.kept,
        of.meaning,
    )
    return show_table(answer, EVERY, answer.rows, columns)


def draw_flip(answer: FlipAnswer) -> Figures:
    """Return a figure of the factor at which each constant reverses the order, next to its spread.

    Empty if no constant can reverse the order alone.
    """
    if all(row.flip_ratio is None for row in answer.rows):
        return ()
    texts = {"quantity": METRIC[answer.metric].label}
    subject, told = title(answer, DRAWN_PAIR, **mark_pair(answer)), join_clauses(list_sentences(answer.facts))
    return (draw_figure(answer.scope, "flip", answer.rows, subject, told, texts),)


def draw_reversals(answer: FlipAnswer, asked: Asked) -> Document:
    """Return the document of constants that would reverse the order of two chips."""
    first, rest = first_and_rest([lay_reversals(answer, asked.most(6)), lay_all(answer)])
    batches = [row.batch for row in answer.batches if row.winner is not None]
    is_same = len(batches) > 1 and not answer.facts.turns("batch")
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.rows,
        title=title(answer, FLIP_TITLE, **mark_pair(answer)),
        headline=describe_turn(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_odds(answer.facts),
        details=rest,
        notes=[SAME_ORDER(first=batches[0], last=batches[-1])] if is_same else [],
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {FlipAnswer: Page[FlipAnswer](draw=draw_reversals, draw_figures=draw_flip)}
