"""Words for the difference of two runs: which needs less, what makes most of it, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import LEADING
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, Division
from joulemap.show.choice import MOST_WHY
from joulemap.show.page import Asked, Figures, Page, compose_runs, fill_steps
from joulemap.show.pair import (
    EXACT_UNITS,
    has_shares,
    lay_actions,
    lay_categories,
    lay_purposes,
    lay_roles,
    lay_terms,
    name_pair,
    prove_terms,
    show_subgraphs,
    show_traffic,
)
from joulemap.show.present.document import Block, Document, Lines, Section, Text
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.term import CLASS_NOTE, describe_difference, describe_ranges, list_reasons
from joulemap.show.title import Title, bind

ABOUT: Final = Template("{quantity} of {a} (A) and {b} (B)")
OF_PART: Final = Template("subgraph {part}")
BY_SUBGRAPH: Final = "explain {model} {a} {b}[ --metric {metric}] --level subgraph"
INTO_ACTIONS: Final = "analyze {{model}} {{{one}}} --level subgraph --subgraph {{part}} --by action"
SWEEP: Final = "sweep {model} --hardware {a},{b} --batch {batches} --level crossing"

LIKELY: Final = 0.95
"""Probability of the winner below which the first follow-up command is `flip`."""

OF_SERVED: Final = {"logits", "communication"}
"""Purposes of work that occur only in served language models."""

OF_LANGUAGE: Final = {"attention", "cache", "experts", *OF_SERVED}
"""Purposes of work that occur only in language models."""


def title(answer: ExplainAnswer) -> Title:
    """Return the title: scope, metric, A and B."""
    name_a, name_b = name_pair(answer)
    return attrs.evolve(
        title_runs(answer.scope),
        beside=(OF_PART(part=answer.subgraph),) if answer.subgraph else (),
        about=ABOUT(quantity=METRIC[answer.metric].label, a=name_a, b=name_b),
    )


def find_division(answer: ExplainAnswer, asked: Division | None) -> str:
    """Return the table that is shown first.

    The default division is by category; for a pass of a served language model it is by purpose of the work.
    """
    is_memory, terms = answer.metric == "memory", "terms" if answer.metric_terms is None else "metric_terms"
    is_served = not is_memory and OF_SERVED & {row.purpose for row in answer.purposes}
    by = asked or ("purpose" if is_served else "category")
    tables = {"purpose": "purposes", "role": "roles", "subgraph": "subgraphs"}
    return tables.get(by) or ("categories" if by == "category" and not is_memory else terms)


def list_sections(answer: ExplainAnswer, shown: str, most: int) -> dict[str, list[Section]]:
    """Return the sections of the difference by table; those of other metrics and models only if they are `shown`."""
    metric, has_share = answer.metric, has_shares(answer)
    is_memory = metric == "memory"
    spent = METRIC["energy" if is_memory else metric].label.capitalize()
    quantity = ("bytes moved off chip" if is_memory else METRIC[metric].label).capitalize()
    alone = "" if is_memory else shown  # its columns say what it is, and the notes that it is exact

    energy, sections = answer.total.difference_fj, dict[str, list[Section]]()

    def add(name: str, title: str, *blocks: Block, proof: Text | None = None, is_tight: bool = False) -> None:
        is_alone = name == alone
        proved = () if is_alone or proof is None else (proof,)
        sections[name] = [Section("" if is_alone else title, (*blocks, *proved), is_tight=is_tight)]

    if answer.categories:
        add("categories", f"{spent} by category", lay_categories(answer))
    if metric in ("energy", "edp") or shown == "roles":
        proof = prove_terms(answer, (row.difference_fj for row in answer.roles), energy, "fJ")
        add("roles", "Energy by role of the actions", lay_roles(answer, most, has_share=has_share), proof=proof)
    if answer.notes:
        add("notes", "How these classes work", Lines(map(CLASS_NOTE, answer.notes)))
    if answer.purposes and (shown == "purposes" or OF_LANGUAGE & {row.purpose for row in answer.purposes}):
        add("purposes", "Energy and time by purpose", *lay_purposes(answer, has_share=has_share), is_tight=True)
    terms = answer.metric_terms
    if terms is None:
        proof = prove_terms(answer, (row.difference_fj for row in answer.terms), energy, "fJ")
        add("terms", "Difference by action", lay_actions(answer, most, has_share=has_share), proof=proof)
    else:
        exact, unit = (row.difference_exact for row in terms), EXACT_UNITS[metric]
        proved = prove_terms(answer, exact, answer.difference_exact, unit) if terms else None
        laid = lay_terms(answer, terms, most, has_share=has_share)
        add("metric_terms", "Terms of the difference", *laid, proof=proved)
    title = "" if alone == "subgraphs" else f"{quantity} by subgraph"
    sections["subgraphs"] = show_subgraphs(answer, title, most, has_share=has_share)
    sections["traffic"] = show_traffic(answer, most)
    return sections


def draw_difference(answer: ExplainAnswer, asked: Asked) -> Document:
    """Return the document of the difference by one division."""
    is_memory, shown = answer.metric == "memory", find_division(answer, asked.by)
    sections = list_sections(answer, shown, asked.most(5))
    names = [shown, "traffic"] if is_memory else [shown]
    first = [one for name in names for one in sections.pop(name, [])]
    is_reason = shown not in ("categories", "purposes") and not is_memory  # other divisions are the reasons
    is_energy = shown == "metric_terms" and not answer.metric_terms
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.own_tables["terms" if is_energy else shown],
        title=title(answer),
        headline=describe_difference(answer.facts),
        reasons=[] if is_reason else list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=[one for some in sections.values() for one in some],
        steps=list_steps(answer, asked.repeated),
    )


def list_steps(answer: ExplainAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the steps, first `flip` if the winner is uncertain."""
    total, subgraphs = answer.total, answer.subgraphs
    pair = [answer.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
    is_pair = pair[0] != pair[1]
    part = answer.subgraph
    if part:
        steps = [BY_SUBGRAPH, *(INTO_ACTIONS.format(one=one) for one in ("a", "b")[: 1 + is_pair])]
    elif not answer.difference_exact:
        steps = [SWEEP] if is_pair else []
    else:
        steps = [BY_SUBGRAPH]
        if answer.metric != "memory" and subgraphs.rows:
            part = subgraphs[0].name
            leads = len(subgraphs) > 1 and (subgraphs[0].share_fraction or 0.0) >= LEADING
            steps.insert(0 if leads else 1, "explain {model} {a} {b}[ --metric {metric}] --subgraph {part}")
        if is_pair and not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated):
            first = next(iter(answer.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), SWEEP)
        is_close = is_pair and answer.probability is not None and answer.probability < LIKELY
        if is_close and answer.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, "flip {model} {a} {b}[ --metric {metric}]")
    named = {"a": pair[0], "b": pair[1], "part": part, "batches": ",".join(map(str, BATCHES))}
    metric = "" if answer.metric == "energy" else answer.metric
    return fill_steps(map(Template, steps), total, repeated, **named, metric=metric)


def draw_figures(answer: ExplainAnswer) -> Figures:
    """Return a waterfall figure from A through the causes to B."""
    from joulemap.show.waterfall import draw_waterfall

    subject = bind(title(answer), find_conditions(answer.scope))
    told = join_clauses([describe_difference(answer.facts), *list_reasons(answer.facts)])
    return (draw_waterfall(answer, subject, told),)


PAGES: Final = {ExplainAnswer: Page[ExplainAnswer](draw=draw_difference, draw_figures=draw_figures)}
