"""Tables of the difference of two runs: by category, purpose, role, action, cause, subgraph and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from joulemap.ask.answer import Answer
from joulemap.ask.explain import ExplainAnswer, MetricTerm
from joulemap.domain.column import Col
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.role import ROLES, Role
from joulemap.domain.table import Table
from joulemap.generated.explain import (
    CategoryDifference,
    EnergyTerm,
    LatencyTerm,
    PurposeDifference,
    RoleDifference,
    SubgraphDifference,
    Traffic,
)
from joulemap.show.column import lay_columns, show_table
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
from joulemap.show.present.document import Block, Grid, Section, Text
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import prove
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

ACTION: Final = Template("{component}.{action}")

CATEGORIES: Final = Template("{spent} by category")
BY_SUBGRAPH: Final = Template("{quantity} by subgraph")

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


def has_shares(answer: ExplainAnswer) -> bool:
    """Return whether tables show shares of the difference: not if the runs are tied or equal."""
    return not is_tied(answer.probability) and any(row.difference_fraction for row in answer.categories)


def lay_categories(answer: ExplainAnswer) -> Grid:
    """Return a grid of the energy or time of both runs per category: the largest ones, and the others together."""
    names, of = name_pair(answer), CategoryDifference
    name_a, name_b = names if len("".join(names)) <= LONGEST and len(set(names)) > 1 else "AB"
    listed = answer.categories.rows
    large = [row for row in listed if abs(row.difference_fraction or 0.0) >= LEAST_NAMED][:NAMED]
    large, rest = (large, listed[len(large) :]) if len(listed) - len(large) > 1 and large else (list(listed), ())
    columns = (
        of.category.by(name_spent),
        of.spent_a.headed(name_a).kept,
        of.spent_b.headed(name_b).kept,
        of.difference.ranking.drawn,
        of.difference_fraction.headed("share") if has_shares(answer) else None,
    )
    drawn = label_sides(answer, lay_columns(answer, answer.categories.with_rows(large), columns))
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


def show_categories(answer: ExplainAnswer) -> list[Section]:
    """Return the section of categories."""
    spent = METRIC["energy" if answer.metric == "memory" else answer.metric].label.capitalize()
    return [Section(CATEGORIES(spent=spent), lay_categories(answer))] if answer.categories else []


def show_purposes(answer: ExplainAnswer) -> list[Section]:
    """Return the section of energies and times by purpose with their sums, and why attention takes no compute time."""
    of, is_time = PurposeDifference, answer.metric == "latency"
    share = of.difference_fraction.headed(f"share of {'time' if is_time else 'energy'}")
    columns = (
        of.purpose.by(lambda row: PURPOSES[row.purpose]),
        of.energy_a_j.kept,
        of.energy_b_j.kept,
        of.latency_a_s.kept,
        of.latency_b_s.kept,
        share if has_shares(answer) else None,
    )
    moved = [row.latency_difference_fs if is_time else row.energy_difference_fj for row in answer.purposes]
    after = "time B" if is_time else "energy B"
    picture = Picture(kind="difference", after=after, rows=tuple((float(one),) for one in moved))
    metrics: tuple[PartMetricName, ...] = ("energy", "latency")
    ends = [show_quantity(value, METRIC[metric].unit) for metric in metrics for value in answer.ends(metric)]
    row = next((row for row in answer.purposes if row.purpose == "attention"), None)
    times = ((row.energy_a_j, row.latency_a_s), (row.energy_b_j, row.latency_b_s)) if row else ((0.0, 0.0),) * 2
    hidden = [name for name, (joules, time) in zip(name_pair(answer), times, strict=True) if joules and not time]
    told = [Text(HIDDEN_ATTENTION(hardware=hidden))] if hidden else []

    def add_all(drawn: Grid) -> Grid:
        named = label_sides(answer, attrs.evolve(drawn, pictures=(picture,)))
        return _add_rows(named, [ALL, *ends], is_first=True)

    sections = show_table(answer, "Energy and time by purpose", answer.purposes, columns, *told, change=add_all)
    return [attrs.evolve(one, is_tight=True) for one in sections]


def show_roles(answer: ExplainAnswer, limit: int, *, is_alone: bool) -> list[Section]:
    """Return the section of roles of the actions, with the proof of their sum unless they are alone."""
    of = RoleDifference
    columns = (
        of.role.by(lambda row: find_role(row).noun),
        of.energy_a_j.kept,
        of.energy_b_j.kept,
        of.difference_j.drawn.kept,
        of.difference_fraction.headed("share") if has_shares(answer) else None,
        of.count_a.by(partial(_show_count, name="count_a")).kept,
        of.count_b.by(partial(_show_count, name="count_b")).kept,
        of.price_a_j.by(partial(_show_price, name="price_a_j")).kept,
        of.price_b_j.by(partial(_show_price, name="price_b_j")).kept,
        of.by_count_fj.by(_show_effect("by_count_fj")),
        of.by_price_fj.by(_show_effect("by_price_fj")),
        of.actions_a,
        of.actions_b,
        of.way_a.if_any,
        of.way_b.if_any,
    )
    drawn = label_sides(answer, lay_columns(answer, answer.roles, columns, limit=limit, noun="roles"))
    proof = [] if is_alone else [_prove_energies(answer, answer.roles)]
    return [Section("Energy by role of the actions", (drawn, *proof))]


def show_actions(answer: ExplainAnswer, limit: int, *, is_alone: bool) -> list[Section]:
    """Return the section of the terms of the energy with their sums, and with their proof unless they are alone."""
    of = EnergyTerm
    columns = (
        of.term.by(lambda row: TERM_NAMES.get(row.term, row.term)),
        of.category_a.by(_join("category_a", "category_b")),
        of.action.by(ACTION),
        of.difference_j.ranking.drawn,
        of.difference_fraction.headed("share") if has_shares(answer) else None,
        of.count_a.by(_show_amount("count_a")),
        of.count_b.by(_show_amount("count_b")),
        of.energy_per_action_a_j.by(lambda row: show_price(row.energy_per_action_a_j, row.per)).kept,
        of.energy_per_action_b_j.by(lambda row: show_price(row.energy_per_action_b_j, row.per)).kept,
        of.per,
        of.basis_a.by(_join("basis_a", "basis_b")),
    )
    keep = (of.difference_fraction, of.count_a, of.count_b, of.action, of.difference_j)
    laid = lay_columns(answer, answer.terms, columns, keep=keep, limit=limit)
    differences = [row.difference_fj / FJ_PER_J for row in answer.terms]
    summed = _add_sums(attrs.evolve(laid, distinguishing=("term", "action")), differences, limit, "J")
    proof = [] if is_alone else [_prove_energies(answer, answer.terms)]
    return [Section("Difference by action", (label_sides(answer, summed), *proof))]


def _prove_energies(answer: ExplainAnswer, rows: Iterable[RoleDifference | EnergyTerm]) -> Text:
    """Return the check that energies sum to the difference."""
    return prove_terms(answer, (row.difference_fj for row in rows), answer.total.difference_fj, "fJ")


def lay_terms(answer: Answer, terms: Table[MetricTerm], limit: int, *, has_share: bool = True) -> list[Block]:
    """Return a grid of the largest terms of a latency, memory or EDP difference, with their sums."""
    if not terms.rows:
        return [Text("Every term is equal on both.")]
    of = LatencyTerm  # whose columns the terms of all metrics have
    columns: tuple[Col[Any] | None, ...] = (
        of.term.by(_name_term),
        of.contributor.kept,
        of.difference.ranking.drawn.kept,
        of.difference_fraction.headed("share").kept if has_share else None,
        of.part_count.headed("subgraphs"),
        of.count_a.by(_show_amount("count_a")).kept,
        of.count_b.by(_show_amount("count_b")).kept,
        of.price_a.kept,
        of.price_b.kept,
        of.per,
    )
    drawn = lay_columns(answer, terms, columns, limit=limit)
    return [_add_sums(drawn, [row.difference for row in terms], limit, terms[0].unit)]


def show_terms(answer: ExplainAnswer, limit: int, *, is_alone: bool) -> list[Section]:
    """Return the section of terms in a metric other than energy, with their proof unless they are alone."""
    terms = answer.metric_terms
    blocks = [] if terms is None else lay_terms(answer, terms, limit, has_share=has_shares(answer))
    if terms and not is_alone:
        exact = (row.difference_exact for row in terms)
        blocks.append(prove_terms(answer, exact, answer.difference_exact, EXACT_UNITS[answer.metric]))
    return [Section("Terms of the difference", blocks)]


def show_subgraphs(answer: ExplainAnswer, limit: int) -> list[Section]:
    """Return the section of subgraphs, each with its largest action as the role that it has."""
    of, is_energy = SubgraphDifference, answer.metric == "energy"
    nouns = {
        action: find_role(row).noun
        for row in answer.roles
        for actions in (row.actions_a, row.actions_b)
        for action in split_names(actions)
    }
    mostly = of.largest_action.headed("mostly").by(lambda row: nouns.get(row.largest_action or "", ""))
    columns = (
        of.name,
        of.fusion_pattern,
        of.difference.ranking.drawn,
        of.difference_fraction.headed("share") if has_shares(answer) else None,
        mostly,
        of.largest_difference_j.by(
            lambda row: show_signed(row.largest_difference_j, "J") if row.largest_action else ""
        ),
        of.energy_a_fj.by(_show_exact("energy_a_fj", "J")),
        of.energy_b_fj.by(_show_exact("energy_b_fj", "J")),
        of.latency_a_fs.by(_show_exact("latency_a_fs", "s")),
        of.latency_b_fs.by(_show_exact("latency_b_fs", "s")),
        of.bottleneck_a,
        of.bottleneck_b,
    )
    keep = (of.difference_fraction, *((mostly,) if is_energy else ()), of.energy_a_fj, of.energy_b_fj)
    quantity = "bytes moved off chip" if answer.metric == "memory" else METRIC[answer.metric].label
    return show_table(
        answer,
        BY_SUBGRAPH(quantity=quantity.capitalize()),
        answer.subgraphs,
        columns,
        keep=keep,
        limit=limit,
        noun="subgraphs",
        change=partial(label_sides, answer),
    )


def show_traffic(answer: ExplainAnswer, limit: int) -> list[Section]:
    """Return the section of the bytes that each memory moves."""
    of = Traffic
    columns = (
        of.component.by(ACTION), of.bytes_a, of.bytes_b, of.difference_bytes.drawn, of.energy_a_j, of.energy_b_j,
    )  # fmt: skip
    change = partial(label_sides, answer)
    title = "Bytes moved by each memory"
    return show_table(answer, title, answer.traffic, columns, limit=limit, noun="memories", change=change)


def _name_term(row: MetricTerm) -> str:
    if row.term == "price" and row.unit in PRICE_NAMES:
        return PRICE_NAMES[row.unit]
    return TERM_NAMES.get(row.term, row.term)


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
