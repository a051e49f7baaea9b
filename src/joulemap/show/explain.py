"""Words for the difference of two runs: which needs less, what makes most of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import LEADING
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES, DifferenceDivision
from joulemap.show.page import Figures
from joulemap.show.pair import (
    DIVISIONS,
    choose_share,
    name_pair,
)
from joulemap.show.present.document import Lines
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.shape import Part, Shape
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


def choose(
    answer: ExplainAnswer, *, by: DifferenceDivision | None = None, repeated: Sequence[str] = (), **_: Any
) -> Mapping[str, Any]:
    """Return the shown parts, their columns of shares, and the steps.

    The default division is by category; for a pass of a served language model it is by purpose of the work.
    """
    metric, purposes = answer.metric, {row.purpose for row in answer.purposes}
    is_memory = metric == "memory"
    by = by or ("purpose" if OF_SERVED & purposes and not is_memory else "category")
    by = "action" if is_memory and by == "category" else by
    terms = "terms" if answer.metric_terms is None else "metric_terms"
    table = TABLES.get(by, terms)
    share = choose_share(answer)
    shown = [table, "traffic"] if is_memory else [table]
    omitted = {
        "metric_terms" if terms == "terms" else "terms",
        *(() if metric in ("energy", "edp") else ("roles",)),
        *(() if OF_LANGUAGE & purposes else ("purposes",)),
    }
    quantity = "bytes moved off chip" if is_memory else METRIC[metric].label
    return {
        "title": title(answer),
        "csv": "terms" if table == terms and not answer.metric_terms else table,
        "shown": shown,
        "omitted": omitted.difference(shown),
        "alone": "" if is_memory else table,  # its columns say what it is, and the notes that it is exact
        "is_alone": not is_memory,
        "has_reasons": by in ("category", "purpose") or is_memory,  # other divisions are the reasons
        "spent": METRIC["energy" if is_memory else metric].label.capitalize(),
        "quantity": quantity.capitalize(),
        "mostly": "largest_action " if metric == "energy" else "",
        "share": share,
        "purpose_share": share and f"share of {'time' if metric == 'latency' else 'energy'} difference_fraction",
        **_choose_steps(answer, repeated),
    }


def _choose_steps(answer: ExplainAnswer, repeated: Sequence[str]) -> dict[str, Any]:
    """Return the steps, first `flip` if the winner is uncertain, and the values of their slots."""
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
            leads = len(subgraphs) > 1 and (subgraphs[0].difference_fraction or 0.0) >= LEADING
            steps.insert(0 if leads else 1, "explain {model} {a} {b}[ --metric {metric}] --subgraph {part}")
        if is_pair and not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated):
            first = next(iter(answer.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), SWEEP)
        is_close = is_pair and answer.probability is not None and answer.probability < LIKELY
        if is_close and answer.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, "flip {model} {a} {b}[ --metric {metric}]")
    named = {"a": pair[0], "b": pair[1], "part": part, "batches": ",".join(map(str, BATCHES))}
    return {"steps": steps, "row": total, **named, "metric": "" if answer.metric == "energy" else answer.metric}


def draw(answer: ExplainAnswer) -> Figures:
    """Return a waterfall figure from A through the causes to B."""
    from joulemap.show.waterfall import draw_waterfall

    subject = bind(title(answer), find_conditions(answer.scope))
    told = join_clauses([describe_difference(answer.facts), *list_reasons(answer.facts)])
    return (draw_waterfall(answer, subject, told),)


EXPLAIN: Final = Shape(
    first=describe_difference,
    why=list_reasons,
    trust=describe_ranges,
    choices=choose,
    draw=draw,
    csv="{csv}",
    limit=5,
    parts=(
        *DIVISIONS[:2],
        Part(
            title="How these classes work",
            table="notes",
            make=lambda answer, _: Lines(map(CLASS_NOTE, answer.notes)),
        ),
        *DIVISIONS[2:],
    ),
)

PAGES: Final = {ExplainAnswer: EXPLAIN}
