"""Tables of the difference of two runs: by category, purpose, role, action, cause, subgraph and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from joulemap.ask.explain import ExplainAnswer, MetricTerm
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.role import ROLES, Role
from joulemap.domain.table import Table
from joulemap.generated.explain import CategoryDifference, RoleDifference
from joulemap.show.layout import lay
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import (
    is_tied,
    mark_projected,
    show_amount,
    show_price,
    show_quantity,
    show_share,
    show_signed,
    split_names,
)
from joulemap.show.present.document import Block, Grid, Text
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import prove
from joulemap.show.shape import Part
from joulemap.show.term import SI_WORDS
from joulemap.system.units import FJ_PER_J

HIDDEN_ATTENTION: Final = Template(
    "On {hardware:and}, computing attention adds no time, because each kernel waits longer for keys and values"
)
EXACT_UNITS: Final[dict[PartMetricName, str]] = {"energy": "fJ", "latency": "fs", "edp": "fJ fs, twice", "memory": "B"}
"""Metric -> unit in which terms are integers and sum exactly."""

MORE_ON: Final = Template("more on {name}")
OTHERS: Final = Template("{count} others")
ALL: Final = "total"
PURPOSES: Final[Mapping[str, str]] = {
    "weights": "GEMMs with weights",
    "experts": "experts",
    "cache": "attention: keys, values",
    "attention": "attention: computation",
    "logits": "logits",
    "communication": "communication",
    "host": "kernel launches",
    "static": "static power",
    "energy: static": "static power",
    "rest": "norms and the rest",
}
"""Purpose of work in a language model -> displayed name."""

SMALLER: Final = Template("{count} smaller terms")
SUM: Final = "sum of all terms"
TERM_NAMES: Final[Mapping[str, str]] = {
    "static": "static power",
    "energy: static": "static power",
    "price": "energy each",
    "energy: price": "energy each",
    "latency: price": "time each",
}
"""Name of a term in query results -> displayed name, if different."""

PRICE_NAMES: Final[Mapping[str, str]] = {"s": "time each", "B": "bytes each"}
"""Unit of a metric -> displayed name of the term `price`, if it differs from TERM_NAMES."""

SHARE: Final = "share difference_fraction | "
"""Column of the shares of the difference, in the syntax of `lay`."""

ACTION: Final = Template("{component}.{action}")
TERM_COLUMNS: Final = Template(
    "term | *contributor | *difference |[ *{share}] subgraphs part_count | *count_a | *count_b | *price_a | "
    "*price_b | per"
)

NAMED: Final = 4
"""Maximum categories with a row each; the others share one."""

LEAST_NAMED: Final = 0.02
"""Minimum share of all differences of a category with a row of its own."""

LONGEST: Final = 20
"""Maximum total length of two chip names, in characters, as column headings; longer names become A and B."""


def name_pair(answer: ExplainAnswer) -> list[str]:
    """Return the displayed names of A and B."""
    return [mark_projected(name, answer.projected) for name in answer.names]


def name_spent(row: CategoryDifference) -> str:
    """Return the displayed name of a category of energy or time."""
    return name_category(row.category) if row.quantity == "energy" else f"{row.category} time"


def find_role(row: RoleDifference) -> Role:
    """Return the role of a row. An action without a known role forms its own role."""
    return ROLES.get(row.role) or Role(row.role, row.role, "count")


def choose_share(answer: ExplainAnswer) -> str:
    """Return the column of shares; empty if the runs are tied or equal."""
    is_small = is_tied(answer.probability) or not any(row.difference_fraction for row in answer.categories)
    return "" if is_small else SHARE


def lay_categories(answer: ExplainAnswer) -> Grid:
    """Return a grid of the energy or time of both runs per category: the largest ones, and the others together."""
    names = name_pair(answer)
    name_a, name_b = names if len("".join(names)) <= LONGEST and len(set(names)) > 1 else "AB"
    listed = answer.categories.rows
    large = [row for row in listed if abs(row.difference_fraction or 0.0) >= LEAST_NAMED][:NAMED]
    large, rest = (large, listed[len(large) :]) if len(listed) - len(large) > 1 and large else (list(listed), ())
    drawn = lay(
        answer.categories.with_rows(large),
        f"category | {name_a} spent_a | {name_b} spent_b | difference | {choose_share(answer)}",
        ranked="difference",
        keep="spent_a spent_b",
        pictures="difference",
        category=name_spent,
    )
    drawn = label_sides(answer, drawn)
    if rest:
        drawn = _add_rows(drawn, _sum_rest(rest))
    whole = answer.metric if answer.metric != "memory" else "energy"
    unit, (value_a, value_b) = METRIC[whole].unit, answer.ends(whole)
    ends = [show_quantity(value_a, unit), show_quantity(value_b, unit), show_signed(value_b - value_a, unit)]
    return _add_rows(drawn, [ALL, *ends], is_first=True)


def _sum_rest(rows: Sequence[CategoryDifference]) -> list[str]:
    """Return the cells of several categories together; amounts of energy and time have no sum."""
    units = {row.spent_unit for row in rows}
    sums = [sum(getattr(row, name) for row in rows) for name in ("spent_a", "spent_b")] if len(units) == 1 else []
    cells = [show_quantity(one, rows[0].spent_unit) for one in sums] or ["", ""]
    return [OTHERS(count=len(rows)), *cells, show_signed(sum(row.difference for row in rows), rows[0].unit)]


def label_sides(answer: ExplainAnswer, drawn: Grid) -> Grid:
    """Return the grid with pictures of differences that name the run that needs more on either side."""
    left, heading = (MORE_ON(name=name) for name in name_pair(answer))
    pictures = (
        attrs.evolve(one, heading=heading, left=left) if one.kind == "difference" else one for one in drawn.pictures
    )
    return attrs.evolve(drawn, pictures=tuple(pictures))


def prove_terms(answer: ExplainAnswer, terms: Iterable[int], whole: int, unit: str) -> Text:
    """Return the check that terms sum to the difference of the runs, or of the explained subgraph."""
    named = f"the difference of the {'subgraph' if answer.subgraph else 'runs'}"
    return prove("rows", named, (sum(terms), whole, unit))


def draw_purposes(answer: ExplainAnswer, drawn: Grid) -> list[Block]:
    """Return the energies and times by purpose with their sums, and why attention takes no compute time in a run."""
    is_time = answer.metric == "latency"
    moved = [row.latency_difference_fs if is_time else row.energy_difference_fj for row in answer.purposes]
    after = "time B" if is_time else "energy B"
    picture = Picture(kind="difference", after=after, rows=tuple((float(one),) for one in moved))
    drawn = label_sides(answer, attrs.evolve(drawn, pictures=(picture,)))
    metrics: tuple[PartMetricName, ...] = ("energy", "latency")
    ends = [show_quantity(value, METRIC[metric].unit) for metric in metrics for value in answer.ends(metric)]
    row = next((row for row in answer.purposes if row.purpose == "attention"), None)
    times = ((row.energy_a_j, row.latency_a_s), (row.energy_b_j, row.latency_b_s)) if row else ((0.0, 0.0),) * 2
    hidden = [name for name, (joules, time) in zip(name_pair(answer), times, strict=True) if joules and not time]
    told = [Text(HIDDEN_ATTENTION(hardware=hidden))] if hidden else []
    return [_add_rows(drawn, [ALL, *ends], is_first=True), *told]


def draw_energies(answer: ExplainAnswer, drawn: Grid, _limit: int, *, alone: str, table: str, **_: Any) -> list[Block]:
    """Return a table of energies, with its proof unless the table is alone on a screen."""
    drawn, terms = label_sides(answer, drawn), (row.difference_fj for row in getattr(answer, table))
    return [drawn] if table == alone else [drawn, prove_terms(answer, terms, answer.total.difference_fj, "fJ")]


def draw_actions(answer: ExplainAnswer, drawn: Grid, limit: int, **given: Any) -> list[Block]:
    """Return the terms of the energy with their sums, and with their proof unless they are alone."""
    differences = [row.difference_fj / FJ_PER_J for row in answer.terms]
    summed = _add_sums(attrs.evolve(drawn, distinguishing=("term", "action")), differences, limit, "J")
    return draw_energies(answer, summed, limit, **given)


def lay_terms(terms: Table[MetricTerm], limit: int, share: str = SHARE) -> list[Block]:
    """Return a grid of the largest terms of a latency, memory or EDP difference, with their sums."""
    if not terms.rows:
        return [Text("Every term is equal on both.")]
    drawn = lay(
        terms,
        TERM_COLUMNS(share=share),
        limit=limit,
        ranked="difference",
        pictures="difference",
        term=_name_term,
        **AMOUNTS,
    )
    return [_add_sums(drawn, [row.difference for row in terms], limit, terms[0].unit)]


def draw_terms(answer: ExplainAnswer, _rows: Any, limit: int, *, alone: str, share: str, **_: Any) -> list[Block]:
    """Return the terms of a difference in a metric other than energy, with their proof unless they are alone."""
    terms = answer.metric_terms
    laid = [] if terms is None else lay_terms(terms, limit, share)
    if alone == "metric_terms" or not terms:
        return laid
    exact = (row.difference_exact for row in terms)
    return [*laid, prove_terms(answer, exact, answer.difference_exact, EXACT_UNITS[answer.metric])]


def _name_term(row: MetricTerm) -> str:
    if row.term == "price" and row.unit in PRICE_NAMES:
        return PRICE_NAMES[row.unit]
    return TERM_NAMES.get(row.term, row.term)


def name_largest(answer: ExplainAnswer) -> Mapping[str, Any]:
    """Return the cells on the largest action of a subgraph: the role that it has."""
    nouns = {
        action: find_role(row).noun
        for row in answer.roles
        for actions in (row.actions_a, row.actions_b)
        for action in split_names(actions)
    }
    return {"largest_action": lambda row: nouns.get(row.largest_action or "", "")}


def _add_rows(drawn: Grid, *rows: Sequence[str], is_first: bool = False) -> Grid:
    """Add rows without a picture at the end of a grid, or at its beginning; return the new grid.

    Short rows are padded with empty cells.
    """
    width = len(drawn.headings)
    more, blank = tuple((*row, *[""] * (width - len(row))) for row in rows), ((),) * len(rows)
    pictures = (
        attrs.evolve(one, rows=(*blank, *one.rows) if is_first else (*one.rows, *blank)) for one in drawn.pictures
    )
    added = (*more, *drawn.rows) if is_first else (*drawn.rows, *more)
    return attrs.evolve(drawn, rows=added, pictures=tuple(pictures))


def _add_sums(drawn: Grid, differences: Sequence[float], limit: int, unit: str) -> Grid:
    """Append the sum of the hidden rows and the sum of all rows to a grid; return the new grid."""
    sums = [(SUM, differences)]
    if rest := differences[limit:]:
        sums.insert(0, (SMALLER(count=len(rest)), rest))
    before = next(column for column, name in enumerate(drawn.headings) if name == "difference") - 1
    return _add_rows(drawn, *((name, *[""] * before, show_signed(sum(values), unit)) for name, values in sums))


def _show_exact(name: str, unit: str) -> Callable[[Any], str]:
    return lambda row: show_quantity(getattr(row, name) / 1e15, unit)


def _show_amount(name: str) -> Callable[[Any], str]:
    return lambda row: show_amount(getattr(row, name), row.per) if getattr(row, name) else ""


def _show_count(row: RoleDifference, name: str) -> str:
    """Return a count of a role."""
    value, unit = getattr(row, name), find_role(row).unit
    return show_quantity(value, unit if unit in SI_WORDS else "") if value else ""


def _show_price(row: RoleDifference, name: str) -> str:
    """Return the energy per count of a role: in joules, as a power, or as a share."""
    value, unit = getattr(row, name), find_role(row).unit
    return show_share(value) if unit == "J" else show_quantity(value, "W" if unit == "s" else "J")


def _show_effect(name: str) -> Callable[[Any], str]:
    return lambda row: show_signed(getattr(row, name) / FJ_PER_J, "J") if row.is_shared else ""


def _join(*names: str) -> Callable[[Any], str]:
    """Return a function that joins the different values of fields."""
    return lambda row: " / ".join(dict.fromkeys(filter(None, (getattr(row, name) for name in names))))


AMOUNTS: Final[Mapping[str, Any]] = {name: _show_amount(name) for name in ("count_a", "count_b")}
"""Cells of the counts of a term."""

DIVISIONS: Final = (
    Part(title="{spent} by category", table="categories", make=lambda answer, _: lay_categories(answer)),
    Part(
        title="Energy by role of the actions",
        table="roles",
        rows="roles",
        columns="role | *energy_a_j | *energy_b_j | *difference_j | {share}*count_a | *count_b | "
        "*price_a_j | *price_b_j | by_count_fj | by_price_fj | actions_a | actions_b | way_a? | way_b?",
        lay={
            "noun": "roles",
            "pictures": "difference_j",
            "role": lambda row: find_role(row).noun,
            **{name: partial(_show_count, name=name) for name in ("count_a", "count_b")},
            **{name: partial(_show_price, name=name) for name in ("price_a_j", "price_b_j")},
            **{name: _show_effect(name) for name in ("by_count_fj", "by_price_fj")},
        },
        draw=draw_energies,
        is_long=True,
    ),
    Part(
        title="Energy and time by purpose",
        table="purposes",
        columns="purpose | *energy_a_j | *energy_b_j | *latency_a_s | *latency_b_s | {purpose_share}",
        lay={"purpose": lambda row: PURPOSES[row.purpose]},
        make=draw_purposes,
        is_tight=True,
    ),
    Part(
        title="Difference by action",
        table="terms",
        rows="terms",
        columns="term | category_a | *action | *difference_j | {share}*count_a | *count_b | "
        "*energy_per_action_a_j | *energy_per_action_b_j | per | basis_a",
        lay={
            "keep": "difference_fraction count_a count_b",
            "ranked": "difference_j",
            "pictures": "difference_j",
            "term": lambda row: TERM_NAMES.get(row.term, row.term),
            "category_a": _join("category_a", "category_b"),
            "action": ACTION,
            **AMOUNTS,
            "energy_per_action_a_j": lambda row: show_price(row.energy_per_action_a_j, row.per),
            "energy_per_action_b_j": lambda row: show_price(row.energy_per_action_b_j, row.per),
            "basis_a": _join("basis_a", "basis_b"),
        },
        draw=draw_actions,
        is_long=True,
    ),
    Part(
        title="Terms of the difference",
        table="metric_terms",
        rows="metric_terms",
        draw=draw_terms,
    ),
    Part(
        title="{quantity} by subgraph",
        table="subgraphs",
        columns="name | fusion_pattern | difference | {share}mostly largest_action | largest_difference_j | "
        "energy_a_fj | energy_b_fj | latency_a_fs | latency_b_fs | bottleneck_a | bottleneck_b",
        lay={
            "noun": "subgraphs",
            "ranked": "difference",
            "pictures": "difference",
            "keep": "difference_fraction {mostly}energy_a_fj energy_b_fj",
            "largest_difference_j": lambda row: (
                show_signed(row.largest_difference_j, "J") if row.largest_action else ""
            ),
            **{name: _show_exact(name, "J") for name in ("energy_a_fj", "energy_b_fj")},
            **{name: _show_exact(name, "s") for name in ("latency_a_fs", "latency_b_fs")},
        },
        cells=name_largest,
        make=label_sides,
        is_long=True,
    ),
    Part(
        title="Bytes moved by each memory",
        table="traffic",
        columns="component | bytes_a | bytes_b | difference_bytes | energy_a_j | energy_b_j",
        lay={"noun": "memories", "pictures": "difference_bytes", "component": ACTION},
        make=label_sides,
        is_long=True,
    ),
)
