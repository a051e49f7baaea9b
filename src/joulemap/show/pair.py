"""Tables of the difference of two runs: by category, purpose, role, action, cause, subgraph and memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar, cast

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
from joulemap.show.column import alter, lay_columns, show_table
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
from joulemap.system.units import FJ_PER_J, FS_PER_S

Row = TypeVar("Row")

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

TRAFFIC: Final = "Bytes moved by each memory"
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
    """Return whether tables have the shares of the difference; not if the runs are tied or equal."""
    return not is_tied(answer.probability) and any(row.share_fraction for row in answer.categories)


def select(columns: Iterable[Col[Row]], *, has_share: bool) -> list[Col[Row]]:
    """Return columns, without the shares of a difference that has none."""
    return [one for one in columns if has_share or one.field != "share_fraction"]


def lay_categories(answer: ExplainAnswer) -> Grid:
    """Return a grid of the energy or time of both runs per category: the largest ones, and the others together."""
    names = name_pair(answer)
    name_a, name_b = names if len("".join(names)) <= LONGEST and len(set(names)) > 1 else "AB"
    listed = answer.categories.rows
    large = [row for row in listed if abs(row.share_fraction or 0.0) >= LEAST_NAMED][:NAMED]
    large, rest = (large, listed[len(large) :]) if len(listed) - len(large) > 1 and large else (list(listed), ())
    spent = CategoryDifference.spent_a, CategoryDifference.spent_b
    drawn = lay_columns(
        answer,
        answer.categories.with_rows(large),
        (
            CategoryDifference.category.by(name_spent),
            spent[0].headed(name_a),
            spent[1].headed(name_b),
            CategoryDifference.difference.ranking.drawn,
            CategoryDifference.share_fraction.headed("share") if has_shares(answer) else None,
        ),
        keep=spent,
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


def lay_purposes(answer: ExplainAnswer, *, has_share: bool) -> list[Block]:
    """Return the energies and times by purpose with their sums, and why attention takes no compute time in a run."""
    is_time = answer.metric == "latency"
    moved = [row.latency_difference_fs if is_time else row.energy_difference_fj for row in answer.purposes]
    after = "time B" if is_time else "energy B"
    share = PurposeDifference.share_fraction.headed(f"share of {'time' if is_time else 'energy'}")
    purpose = PurposeDifference.purpose.by(lambda row: PURPOSES[row.purpose])
    columns = select(alter(PurposeDifference.table, purpose, share), has_share=has_share)
    drawn = lay_columns(answer, answer.purposes, columns)
    picture = Picture(kind="difference", after=after, rows=tuple((float(one),) for one in moved))
    drawn = label_sides(answer, attrs.evolve(drawn, pictures=(picture,)))
    metrics: tuple[PartMetricName, ...] = ("energy", "latency")
    ends = [show_quantity(value, METRIC[metric].unit) for metric in metrics for value in answer.ends(metric)]
    row = next((row for row in answer.purposes if row.purpose == "attention"), None)
    times = ((row.energy_a_j, row.latency_a_s), (row.energy_b_j, row.latency_b_s)) if row else ((0.0, 0.0),) * 2
    hidden = [name for name, (joules, time) in zip(name_pair(answer), times, strict=True) if joules and not time]
    told = [Text(HIDDEN_ATTENTION(hardware=hidden))] if hidden else []
    return [_add_rows(drawn, [ALL, *ends], is_first=True), *told]


def lay_roles(answer: ExplainAnswer, most: int, *, has_share: bool) -> Grid:
    """Return the energies by role of the actions."""
    columns = alter(
        RoleDifference.table,
        RoleDifference.role.by(lambda row: find_role(row).noun),
        RoleDifference.count_a.by(lambda row: _show_count(row, row.count_a)).kept,
        RoleDifference.count_b.by(lambda row: _show_count(row, row.count_b)).kept,
        RoleDifference.price_a_j.by(lambda row: _show_price(row, row.price_a_j)).kept,
        RoleDifference.price_b_j.by(lambda row: _show_price(row, row.price_b_j)).kept,
        RoleDifference.by_count_fj.by(lambda row: _show_effect(row, row.by_count_fj)),
        RoleDifference.by_price_fj.by(lambda row: _show_effect(row, row.by_price_fj)),
    )
    drawn = lay_columns(answer, answer.roles, select(columns, has_share=has_share), limit=most, noun="roles")
    return label_sides(answer, drawn)


def lay_actions(answer: ExplainAnswer, most: int, *, has_share: bool) -> Grid:
    """Return the terms of the energy with their sums."""
    share, count_a, count_b = EnergyTerm.share_fraction, EnergyTerm.count_a, EnergyTerm.count_b
    columns = alter(
        EnergyTerm.table,
        EnergyTerm.term.by(lambda row: TERM_NAMES.get(row.term, row.term)),
        EnergyTerm.category_a.by(lambda row: _join(row.category_a, row.category_b)),
        EnergyTerm.action.by(ACTION).kept,
        count_a.by(lambda row: _show_amount(row.count_a, row.per)).kept,
        count_b.by(lambda row: _show_amount(row.count_b, row.per)).kept,
        EnergyTerm.energy_per_action_a_j.by(lambda row: show_price(row.energy_per_action_a_j, row.per)).kept,
        EnergyTerm.energy_per_action_b_j.by(lambda row: show_price(row.energy_per_action_b_j, row.per)).kept,
        EnergyTerm.basis_a.by(lambda row: _join(row.basis_a, row.basis_b)),
    )
    columns = select(columns, has_share=has_share)
    drawn = lay_columns(answer, answer.terms, columns, keep=(share, count_a, count_b), limit=most)
    differences = [row.difference_fj / FJ_PER_J for row in answer.terms]
    summed = _add_sums(attrs.evolve(drawn, distinguishing=("term", "action")), differences, most, "J")
    return label_sides(answer, summed)


def lay_terms(answer: Answer, terms: Table[MetricTerm], most: int, *, has_share: bool = True) -> list[Block]:
    """Return a grid of the largest terms of a latency, memory or EDP difference, with their sums."""
    if not terms.rows:
        return [Text("Every term is equal on both.")]
    columns = alter(
        LatencyTerm.table,
        LatencyTerm.term.by(_name_term),
        LatencyTerm.count_a.by(lambda row: _show_amount(row.count_a, row.per)).kept,
        LatencyTerm.count_b.by(lambda row: _show_amount(row.count_b, row.per)).kept,
    )
    alike = cast("Table[LatencyTerm]", terms)  # terms of every metric have the same columns
    drawn = lay_columns(answer, alike, select(columns, has_share=has_share), limit=most)
    return [_add_sums(drawn, [row.difference for row in terms], most, terms[0].unit)]


def show_subgraphs(answer: ExplainAnswer, title: str, most: int, *, has_share: bool) -> list[Section]:
    """Return the section of the differences by subgraph, with the role of the largest action of each."""
    nouns = {
        action: find_role(row).noun
        for row in answer.roles
        for actions in (row.actions_a, row.actions_b)
        for action in split_names(actions)
    }
    row = SubgraphDifference
    columns = alter(
        row.table,
        row.largest_action.headed("mostly").by(lambda one: nouns.get(one.largest_action or "", "")),
        row.largest_difference_j.by(
            lambda one: show_signed(one.largest_difference_j, "J") if one.largest_action else ""
        ),
        row.energy_a_fj.by(lambda one: show_quantity(one.energy_a_fj / FJ_PER_J, "J")),
        row.energy_b_fj.by(lambda one: show_quantity(one.energy_b_fj / FJ_PER_J, "J")),
        row.latency_a_fs.by(lambda one: show_quantity(one.latency_a_fs / FS_PER_S, "s")),
        row.latency_b_fs.by(lambda one: show_quantity(one.latency_b_fs / FS_PER_S, "s")),
    )
    mostly = [row.largest_action] if answer.metric == "energy" else []
    return show_table(
        answer,
        title,
        answer.subgraphs,
        select(columns, has_share=has_share),
        keep=[row.share_fraction, *mostly, row.energy_a_fj, row.energy_b_fj],
        limit=most,
        noun="subgraphs",
        change=partial(label_sides, answer),
    )


def show_traffic(answer: ExplainAnswer, most: int) -> list[Section]:
    """Return the section of the bytes of each memory."""
    columns = alter(Traffic.table, Traffic.component.by(ACTION))
    label = partial(label_sides, answer)
    return show_table(answer, TRAFFIC, answer.traffic, columns, limit=most, noun="memories", change=label)


def _name_term(row: LatencyTerm) -> str:
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


def _show_amount(count: float, per: str) -> str:
    return show_amount(count, per) if count else ""


def _show_count(row: RoleDifference, count: float | None) -> str:
    """Return a count of a role."""
    unit = find_role(row).unit
    return show_quantity(count, unit if unit in SI_WORDS else "") if count else ""


def _show_price(row: RoleDifference, price: float | None) -> str:
    """Return the energy per count of a role: in joules, as a power, or as a share."""
    unit = find_role(row).unit
    return show_share(price) if unit == "J" else show_quantity(price, "W" if unit == "s" else "J")


def _show_effect(row: RoleDifference, energy_fj: int) -> str:
    return show_signed(energy_fj / FJ_PER_J, "J") if row.is_shared else ""


def _join(*values: str | None) -> str:
    """Return the different values of fields."""
    return " / ".join(dict.fromkeys(filter(None, values)))
