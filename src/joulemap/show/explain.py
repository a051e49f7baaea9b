"""Words for the difference of two runs: which needs less, what makes most of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import LEADING
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, DifferenceDivision
from joulemap.show.choice import MOST_WHY
from joulemap.show.page import Asked, Figures, Page, compose_runs, fill_steps
from joulemap.show.pair import (
    name_pair,
    show_actions,
    show_categories,
    show_purposes,
    show_roles,
    show_subgraphs,
    show_terms,
    show_traffic,
)
from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.term import CLASS_NOTE, describe_difference, describe_ranges, list_reasons
from joulemap.show.title import Title, bind

ABOUT: Final = Template("{quantity} of {a} (A) and {b} (B)")
OF_PART: Final = Template("subgraph {part}")
BY_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --level subgraph")
OF_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --subgraph {part}")
INTO_ACTIONS: Final = tuple(
    Template(f"analyze {{model}} {{{side}}} --level subgraph --subgraph {{part}} --by action") for side in ("a", "b")
)
SWEEP: Final = Template("sweep {model} --hardware {a},{b} --batch {batches} --level crossing")
FLIP: Final = Template("flip {model} {a} {b}[ --metric {metric}]")

LIKELY: Final = 0.95
"""Probability of the winner below which the first follow-up command is `flip`."""

OF_SERVED: Final = {"logits", "communication"}
"""Purposes of work that occur only in served language models."""

OF_LANGUAGE: Final = {"attention", "cache", "experts", *OF_SERVED}
"""Purposes of work that occur only in language models."""

TABLES: Final[Mapping[DifferenceDivision, str]] = {
    "category": "categories",
    "purpose": "purposes",
    "role": "roles",
    "subgraph": "subgraphs",
}
"""Division -> table; that of actions depends on the metric."""


def title(answer: ExplainAnswer) -> Title:
    """Return the title: scope, metric, A and B."""
    name_a, name_b = name_pair(answer)
    return attrs.evolve(
        title_runs(answer.scope),
        beside=(OF_PART(part=answer.subgraph),) if answer.subgraph else (),
        about=ABOUT(quantity=METRIC[answer.metric].label, a=name_a, b=name_b),
    )


def choose_division(answer: ExplainAnswer, asked: Asked) -> DifferenceDivision:
    """Return the division of the first table: by default by category, for a pass of a served language model by purpose.

    Memory has no categories.
    """
    known: tuple[DifferenceDivision, ...] = ("action", "category", "purpose", "role", "subgraph")
    by, is_memory = next((one for one in known if one == asked.by), None), answer.metric == "memory"
    is_served = bool(OF_SERVED & {row.purpose for row in answer.purposes})
    by = by or ("purpose" if is_served and not is_memory else "category")
    return "action" if is_memory and by == "category" else by


def list_steps(answer: ExplainAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up commands, first `flip` if the winner is uncertain."""
    total, subgraphs = answer.total, answer.subgraphs
    pair = [answer.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
    is_pair = pair[0] != pair[1]
    part = answer.subgraph
    if part:
        steps = [BY_SUBGRAPH, *INTO_ACTIONS[: 1 + is_pair]]
    elif not answer.difference_exact:
        steps = [SWEEP] if is_pair else []
    else:
        steps = [BY_SUBGRAPH]
        if answer.metric != "memory" and subgraphs.rows:
            part = subgraphs[0].name
            leads = len(subgraphs) > 1 and (subgraphs[0].difference_fraction or 0.0) >= LEADING
            steps.insert(0 if leads else 1, OF_SUBGRAPH)
        if is_pair and not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated):
            first = next(iter(answer.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), SWEEP)
        is_close = is_pair and answer.probability is not None and answer.probability < LIKELY
        if is_close and answer.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, FLIP)
    named = {"a": pair[0], "b": pair[1], "part": part, "batches": ",".join(map(str, BATCHES))}
    metric = "" if answer.metric == "energy" else answer.metric
    return fill_steps(steps, total, repeated, **named, metric=metric)


def draw(answer: ExplainAnswer) -> Figures:
    """Return a waterfall figure from A through the causes to B."""
    from joulemap.show.waterfall import draw_waterfall

    subject = bind(title(answer), find_conditions(answer.scope))
    told = join_clauses([describe_difference(answer.facts), *list_reasons(answer.facts)])
    return (draw_waterfall(answer, subject, told),)


def draw_explained(answer: ExplainAnswer, asked: Asked) -> Document:
    """Return the document of the difference of two runs; the first table is that of a division."""
    by, most, is_memory = choose_division(answer, asked), asked.most(5), answer.metric == "memory"
    terms = "terms" if answer.metric_terms is None else "metric_terms"
    table = TABLES.get(by, terms)
    alone = "" if is_memory else table  # its columns say what it is, and the notes that it is exact
    parts: dict[str, list[Section]] = {
        "categories": show_categories(answer),
        "roles": show_roles(answer, most, is_alone=alone == "roles"),
        "notes": [Section("How these classes work", Lines(map(CLASS_NOTE, answer.notes)))] if answer.notes else [],
        "purposes": show_purposes(answer),
        "terms": show_actions(answer, most, is_alone=alone == "terms"),
        "metric_terms": show_terms(answer, most, is_alone=alone == "metric_terms"),
        "subgraphs": show_subgraphs(answer, most),
        "traffic": show_traffic(answer, most),
    }
    shown = [table, "traffic"] if is_memory else [table]
    omitted = {
        "metric_terms" if terms == "terms" else "terms",
        *(() if answer.metric in ("energy", "edp") else ("roles",)),
        *(() if OF_LANGUAGE & {row.purpose for row in answer.purposes} else ("purposes",)),
    }
    first = [one for name in shown for one in parts[name]]
    rest = [one for name, own in parts.items() if name not in {*shown, *omitted} for one in own]
    has_reasons = by in ("category", "purpose") or is_memory  # other divisions are the reasons
    return compose_runs(
        answer,
        answer.facts,
        first if is_memory else [attrs.evolve(one, title="") for one in first],
        getattr(answer, "terms" if table == terms and not answer.metric_terms else table),
        title=title(answer),
        headline=describe_difference(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY] if has_reasons else (),
        trust=describe_ranges(answer.facts),
        details=rest,
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {ExplainAnswer: Page[ExplainAnswer](draw=draw_explained, draw_figures=draw)}
