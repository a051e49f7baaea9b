"""Words and tables for one chip for many models: its regret, and the best chip of each model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.domain import TIE_RATIO
from joulemap.show import Asked, Document, Page, Template, compose, show_table
from joulemap.wing.explore.ask.regret import RegretAnswer
from joulemap.wing.explore.design.best import show_objective
from joulemap.wing.explore.design.regret import list_tied
from joulemap.wing.explore.generated.row import ChipRegret, WinnerColumns

TITLE: Final = Template("{count:n model} on all {chips:n chip} that run any: one chip for all, by {objective}")
TITLE_OF_ONE: Final = Template("{model} on all {chips:n chip} that run it, by {objective}")
LEAST: Final = Template(
    "{hardware} has the least regret in {objective}: {regret_ratio:x} relative to each model's best chip on average, "
    "and {worst_ratio:x} at worst ({worst_model})."
)
BEST: Final = Template("{hardware} {leads}{scope}[ ({chance:chance} confidence against {runner_up}{tie})].")
EVERY_MODEL: Final = " for every model"
TIE: Final = Template("[, statistically tied with {count:n chip}]")
LEADS: Final[Mapping[str, str]] = {
    "energy": "uses the least energy",
    "latency": "has the lowest latency",
    "throughput": "has the highest throughput",
}
"""Objective -> verb phrase for the chip that is best by it."""
LEADS_IN: Final = Template("is best in {objective}")
NO_CHIP: Final = "no chip runs all models."
SURE: Final = Template("the best chip beats every rival with at least 80 % probability for {sure} of {known:n model}")
TIED: Final = Template("{names:list}[, +{more}]")
NAMED: Final = 2
"""Maximum tied chips that a table names."""


def title_models(answer: RegretAnswer) -> str:
    """Return the number of models and chips, and the objective."""
    template = TITLE if len(answer.models) > 1 else TITLE_OF_ONE
    return template(answer, count=len(answer.models), model=answer.models[0], chips=len(answer.rows))


def describe_least(answer: RegretAnswer) -> str:
    """Return a sentence on the chip with the least regret."""
    first = answer.rows[0]
    if first.model_count < len(answer.models):
        return NO_CHIP
    if (first.worst_ratio or 0.0) >= TIE_RATIO:
        return LEAST(first, objective=answer.objective)
    alone = answer.winners[0] if len(answer.models) == 1 else None
    return BEST(
        first,
        leads=LEADS.get(answer.objective) or LEADS_IN(answer),
        scope="" if alone else EVERY_MODEL,
        chance=alone.probability if alone else None,
        runner_up=alone.runner_up if alone else None,
        tie=TIE(count=alone.alike_count or None) if alone else "",
    )


def list_reasons(answer: RegretAnswer) -> Iterator[str]:
    """Yield for how many of several models the best chip surely is that."""
    known = [one for one in answer.winners if one.probability is not None]
    if known and len(answer.models) > 1:
        yield SURE(sure=sum(not one.alike_count for one in known) or "none", known=len(known))


def _format_alike(row: WinnerColumns) -> str:
    tied = list_tied(row)
    return TIED(names=tied[:NAMED], more=max(len(tied) - NAMED, 0) or None)


def draw_regret(answer: RegretAnswer, asked: Asked) -> Document:
    """Return the document of one chip for many models."""
    of, most = WinnerColumns, asked.most(12)
    columns = (
        of.model.kept,
        of.hardware.kept,
        of.precision,
        of.batch,
        of.runtime,
        of.value.headed(answer.objective).by(lambda row: show_objective(row.value, row.unit)).ranking.kept,
        of.runner_up,
        of.runner_up_ratio,
        of.probability.if_any.kept,
        of.alike.by(_format_alike).if_any,
    )
    return compose(
        answer,
        [
            *show_table(answer, "One chip for all models", answer.rows, ChipRegret.table, limit=most, noun="chips"),
            *show_table(answer, "Best chip of each model", answer.winners, columns, limit=most, noun="models"),
        ],
        answer.rows,
        title=title_models(answer),
        headline=describe_least(answer),
        reasons=list_reasons(answer),
    )


PAGES: Final = {RegretAnswer: Page[RegretAnswer](draw=draw_regret)}
