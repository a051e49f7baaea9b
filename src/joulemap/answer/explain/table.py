"""Lay out the tables of a difference: by category, purpose, role, action, cause, subgraph and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.explain.pair import EXACT_UNITS, MetricTerm, PairAnswer, find_role, name_cause, name_spent
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.table import Table
from joulemap.generated.explain import CategoryDifference, RoleDifference
from joulemap.show.explain import HIDDEN_ATTENTION, SI_WORDS
from joulemap.show.layout import lay
from joulemap.show.present.cell import name_unit, show_amount, show_price, show_quantity, show_share, show_signed
from joulemap.show.present.document import Block, Grid, Section, Text, show_under
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import prove
from joulemap.system.units import FJ_PER_J

CATEGORY_COLUMNS: Final = Template("category | {a} spent_a | {b} spent_b | +difference[ | {share}]")
MORE_ON: Final = Template("more on {name}")
OTHERS: Final = Template("{count} others")
CATEGORY_TABLE: Final = Template("{quantity} by category")
ALL: Final = "total"
PURPOSE_COLUMNS: Final = Template(
    "purpose | *energy A energy_a_j | *energy B energy_b_j | *time A latency_a_s | *time B latency_b_s[ | {share}]"
)
ENERGY_B, TIME_B = "energy B", "time B"
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

ROLE_COLUMNS: Final = Template(
    "role | *A energy_a_j | *B energy_b_j | *difference +difference_j | [{share} | ]"
    "*count A count_a | *count B count_b | *energy each of A price_a_j | *energy each of B price_b_j | "
    "difference from count by_count_fj | difference from energy each by_price_fj | actions A actions_a | "
    "actions B actions_b"
)
TERM_COLUMNS: Final = Template(
    "term | category category_a | *action | *difference +difference_j | [*{share} | ]"
    "*count A count_a | *count B count_b | *energy each of A energy_per_action_a_j | "
    "*energy each of B energy_per_action_b_j | per | basis basis_a"
)
METRIC_TERM_COLUMNS: Final = Template(
    "term | *contributor | *+difference | [*{share} | ]subgraphs part_count | "
    "*count A count_a | *count B count_b | *each in A price_a | *each in B price_b | per"
)
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

EFFECT_NAMES: Final[Mapping[str, str]] = {
    "price": "energy each",
    "time": "static power: longer or shorter time",
    "static power": "static power: higher or lower power",
}
EFFECT_COLUMNS: Final = Template(
    "cause effect | difference +difference_j | [{share} | ]actions action_count | "
    "largest action largest_action | its difference +largest_difference_j"
)
SUBGRAPH_TABLE: Final = Template("{quantity} by subgraph")
SUBGRAPH_COLUMNS: Final = Template(
    "subgraph name | pattern fusion_pattern | +difference | [{share} | ]"
    "mostly largest_action | of it largest_difference_j | energy A energy_a_fj | "
    "energy B energy_b_fj | latency A latency_a_fs | latency B latency_b_fs | "
    "bottleneck A bottleneck_a | bottleneck B bottleneck_b"
)
TRAFFIC_COLUMNS: Final = (
    "memory component | A bytes_a | B bytes_b | difference +difference_bytes | energy A energy_a_j | "
    "energy B energy_b_j"
)
SHARE: Final = "share share_fraction"
"""Column of the shares of a difference."""

SHARE_OF_ENERGY: Final = "share of energy differences share_fraction"
"""Column of the shares of the energy difference, in tables with another metric or in answers on one."""

SHARE_OF_TIME: Final = "share of time differences share_fraction"
"""Column of the shares of the time difference, in tables with energies and times."""


LONGEST: Final = 20
"""Maximum total length of two chip names, in characters, as column headings; longer names become A and B."""


def divide(answer: PairAnswer, limit: int) -> dict[str, Section]:
    """Return one section with a table for each division of a difference."""
    quantity = "bytes moved off chip" if answer.metric == "memory" else METRIC[answer.metric].label
    spent = METRIC["energy" if answer.metric == "memory" else answer.metric].label
    return {
        "category": Section(CATEGORY_TABLE(quantity=spent.capitalize()), lay_categories(answer)),
        "purpose": show_under("Energy and time by purpose", _lay_purposes(answer), *_describe_hidden(answer)),
        "role": Section("Energy by role of the actions", _lay_roles(answer, limit)),
        "action": _lay_actions(answer, limit),
        "effect": Section("Energy by kind of cause", _lay_effects(answer)),
        "subgraph": Section(SUBGRAPH_TABLE(quantity=quantity.capitalize()), _lay_subgraphs(answer, limit)),
        "traffic": Section("Bytes moved by each memory", _lay_traffic(answer, limit)),
    }


def lay_categories(answer: PairAnswer, *, most: int | None = None, least: float = 0.0) -> Grid:
    """Return a grid of the energy or time of both runs per category, with the cause of each difference.

    With `most`, a grid for a screen: at most so many categories, each with at least the share `least`, have a row, the
    others share one, and the reasons below the table state the causes.
    """
    name_a, name_b = answer.names if len("".join(answer.names)) <= LONGEST and len(set(answer.names)) > 1 else "AB"
    listed = answer.categories.rows
    large = [row for row in listed if abs(row.share_fraction or 0.0) >= least][:most]
    large, rest = (large, listed[len(large) :]) if len(listed) - len(large) > 1 and large else (list(listed), ())
    drawn = lay(
        answer.categories.with_rows(large),
        _select(answer, CATEGORY_COLUMNS, a=name_a, b=name_b)
        + ("" if most else " | why the larger is larger by_count_exact"),
        ranked="difference",
        keep=f"{name_a} | {name_b}",
        pictures="difference",
        category=name_spent,
        spent_a=lambda row: show_quantity(row.spent_a, row.spent_unit),
        spent_b=lambda row: show_quantity(row.spent_b, row.spent_unit),
        by_count_exact=lambda row: name_cause(row, answer.total),
    )
    whole = answer.metric if answer.metric != "memory" else "energy"
    unit, (value_a, value_b) = METRIC[whole].unit, answer.ends(whole)
    difference = value_b - value_a
    drawn = _label_sides(drawn, answer)
    if rest:
        drawn = _add_rows(drawn, _sum_rest(rest))
    ends = [show_quantity(value_a, unit), show_quantity(value_b, unit), show_signed(difference, unit)]
    return _add_rows(drawn, [ALL, *ends], is_first=True)


def _sum_rest(rows: Sequence[CategoryDifference]) -> list[str]:
    """Return the cells of several categories together; amounts of energy and time have no sum."""
    units = {row.spent_unit for row in rows}
    sums = [sum(getattr(row, name) for row in rows) for name in ("spent_a", "spent_b")] if len(units) == 1 else []
    cells = [show_quantity(one, rows[0].spent_unit) for one in sums] or ["", ""]
    return [OTHERS(count=len(rows)), *cells, show_signed(sum(row.difference for row in rows), rows[0].unit)]


def _label_sides(drawn: Grid, answer: PairAnswer) -> Grid:
    """Return the grid with pictures of differences that name the run that needs more on either side."""
    headings = [MORE_ON(name=name) for name in answer.names]
    pictures = (
        attrs.evolve(one, heading=headings[1], left=headings[0]) if one.kind == "difference" else one
        for one in drawn.pictures
    )
    return attrs.evolve(drawn, pictures=tuple(pictures))


def _lay_purposes(answer: PairAnswer) -> Grid:
    share = SHARE_OF_TIME if answer.metric == "latency" else SHARE_OF_ENERGY
    columns = _select(answer, PURPOSE_COLUMNS, share)
    drawn = lay(answer.purposes, columns, purpose=lambda row: PURPOSES[row.purpose])
    is_time = answer.metric == "latency"
    moved = [row.latency_difference_fs if is_time else row.energy_difference_fj for row in answer.purposes]
    after = TIME_B if is_time else ENERGY_B
    picture = Picture(kind="difference", after=after, rows=tuple((float(one),) for one in moved))
    drawn = _label_sides(attrs.evolve(drawn, pictures=(picture,)), answer)
    metrics: tuple[PartMetricName, ...] = ("energy", "latency")
    ends = [show_quantity(value, METRIC[metric].unit) for metric in metrics for value in answer.ends(metric)]
    return _add_rows(drawn, [ALL, *ends], is_first=True)


def _describe_hidden(answer: PairAnswer) -> list[Text]:
    """Return a text on why attention takes no compute time in a run; empty if it takes time in both runs."""
    row = next((row for row in answer.purposes if row.purpose == "attention"), None)
    if row is None:
        return []
    ends = zip(answer.names, (row.energy_a_j, row.energy_b_j), (row.latency_a_s, row.latency_b_s), strict=True)
    hidden = [name for name, joules, seconds in ends if joules and not seconds]
    return [Text(HIDDEN_ATTENTION(hardware=hidden))] if hidden else []


def _lay_roles(answer: PairAnswer, limit: int) -> tuple[Block, ...]:
    drawn = lay(
        answer.roles,
        _select_energy(answer, ROLE_COLUMNS),
        limit=limit,
        noun="roles",
        pictures="difference",
        role=lambda row: find_role(row).noun,
        **{name: _show_count_of(name) for name in ("count_a", "count_b")},
        **{name: _show_price_of(name) for name in ("price_a_j", "price_b_j")},
        **{name: _show_effect_of(name) for name in ("by_count_fj", "by_price_fj")},
    )
    terms, exact = (row.difference_fj for row in answer.roles), answer.total.difference_fj
    return _label_sides(drawn, answer), prove("rows", answer.difference, (sum(terms), exact, "fJ"))


def _lay_actions(answer: PairAnswer, limit: int) -> Section:
    if answer.metric_terms is not None:
        terms, unit = (row.difference_exact for row in answer.metric_terms), EXACT_UNITS[answer.metric]
        proof = prove("rows", answer.difference, (sum(terms), answer.difference_exact, unit))
        laid = lay_terms(answer.metric_terms, limit, _select(answer, METRIC_TERM_COLUMNS))
        return Section(
            "Terms of the difference",
            (*laid, proof) if answer.metric_terms.rows else laid,
        )
    drawn = lay(
        answer.terms,
        _select(answer, TERM_COLUMNS),
        limit=limit,
        keep="share | count A | count B",
        ranked="difference",
        pictures="difference",
        term=lambda row: TERM_NAMES.get(row.term, row.term),
        category_a=lambda row: _join(row.category_a, row.category_b),
        per=lambda row: name_unit(row.per),
        action=lambda row: f"{row.component}.{row.action}",
        **{name: _show_amount_of(name) for name in ("count_a", "count_b")},
        energy_per_action_a_j=lambda row: show_price(row.energy_per_action_a_j, row.per),
        energy_per_action_b_j=lambda row: show_price(row.energy_per_action_b_j, row.per),
        basis_a=lambda row: _join(row.basis_a, row.basis_b),
    )
    terms, exact = (row.difference_fj for row in answer.terms), answer.total.difference_fj
    drawn = attrs.evolve(drawn, distinguishing=("term", "action"))
    differences = [row.difference_fj / FJ_PER_J for row in answer.terms]
    proof = prove("rows", answer.difference, (sum(terms), exact, "fJ"))
    return Section("Difference by action", (_add_sums(_label_sides(drawn, answer), differences, limit, "J"), proof))


def lay_terms(terms: Table[MetricTerm], limit: int, columns: str = "") -> tuple[Block, ...]:
    """Return a grid of the largest terms of a latency, memory or EDP difference, with their sums."""
    if not terms.rows:
        return (Text("Every term is equal on both."),)
    drawn = lay(
        terms,
        columns or METRIC_TERM_COLUMNS(share=SHARE),
        limit=limit,
        ranked="difference",
        pictures="difference",
        term=_name_term,
        per=lambda row: name_unit(row.per),
        **{name: _show_amount_of(name) for name in ("count_a", "count_b")},
        price_a=lambda row: show_quantity(row.price_a, row.price_unit),
        price_b=lambda row: show_quantity(row.price_b, row.price_unit),
    )
    return (_add_sums(drawn, [row.difference for row in terms], limit, terms[0].unit),)


def _lay_effects(answer: PairAnswer) -> tuple[Block, ...]:
    terms, exact = (row.difference_fj for row in answer.effects), answer.total.difference_fj
    drawn = lay(
        answer.effects,
        _select_energy(answer, EFFECT_COLUMNS),
        pictures="difference",
        effect=lambda row: EFFECT_NAMES.get(row.effect, row.effect),
    )
    return _label_sides(drawn, answer), prove("rows", answer.difference, (sum(terms), exact, "fJ"))


def _name_term(row: MetricTerm) -> str:
    names = PRICE_NAMES if row.term == "price" and row.unit in PRICE_NAMES else TERM_NAMES
    return names.get(row.unit if names is PRICE_NAMES else row.term, row.term)


def _lay_subgraphs(answer: PairAnswer, limit: int) -> Grid:
    nouns = {
        action: find_role(row).noun
        for row in answer.roles
        for action in f"{row.actions_a}, {row.actions_b}".split(", ")
    }
    drawn = lay(
        answer.subgraphs,
        _select(answer, SUBGRAPH_COLUMNS),
        limit=limit,
        noun="subgraphs",
        ranked="difference",
        pictures="difference",
        keep="share | mostly | energy A | energy B" if answer.metric == "energy" else "share | energy A | energy B",
        largest_action=lambda row: nouns.get(row.largest_action or "", ""),
        largest_difference_j=lambda row: show_signed(row.largest_difference_j, "J") if row.largest_action else "",
        **{name: _show_exact_of(name, "J") for name in ("energy_a_fj", "energy_b_fj")},
        **{name: _show_exact_of(name, "s") for name in ("latency_a_fs", "latency_b_fs")},
    )
    return _label_sides(drawn, answer)


def _lay_traffic(answer: PairAnswer, limit: int) -> tuple[Block, ...]:
    if answer.traffic is None:
        return ()
    cells: dict[str, Any] = {"component": lambda row: f"{row.component}.{row.action}"}
    drawn = lay(answer.traffic, TRAFFIC_COLUMNS, limit=limit, noun="memories", pictures="difference", **cells)
    return (_label_sides(drawn, answer),)


def _select(answer: PairAnswer, columns: Template, share: str = SHARE, **names: str) -> str:
    """Return the columns of a table, without shares if the runs are tied or equal."""
    is_small = answer.is_tied or not any(row.share_fraction for row in answer.categories)
    return columns(share="" if is_small else share, **names)


def _select_energy(answer: PairAnswer, columns: Template) -> str:
    """Return the columns of a table of energies; if another metric is explained, the heading of shares names energy."""
    return _select(answer, columns, SHARE_OF_ENERGY if answer.metric in ("edp", "memory") else SHARE)


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
    column = drawn.headings.index("difference")
    return _add_rows(drawn, *((name, *[""] * (column - 1), show_signed(sum(values), unit)) for name, values in sums))


def _show_exact_of(name: str, unit: str) -> Any:
    return lambda row: show_quantity(getattr(row, name) / 1e15, unit)


def _show_amount_of(name: str) -> Any:
    return lambda row: show_amount(getattr(row, name), row.per) if getattr(row, name) else ""


def _show_count_of(name: str) -> Any:
    """Return a function that formats a count of a role; the argument is the field name."""

    def show(row: RoleDifference) -> str:
        value, unit = getattr(row, name), find_role(row).unit
        return show_quantity(value, unit if unit in SI_WORDS else "") if value else ""

    return show


def _show_price_of(name: str) -> Any:
    """Return a function that formats the energy per count of a role: in joules, as a power, or as a share."""

    def show(row: RoleDifference) -> str:
        value, unit = getattr(row, name), find_role(row).unit
        return show_share(value) if unit == "J" else show_quantity(value, "W" if unit == "s" else "J")

    return show


def _show_effect_of(name: str) -> Any:
    return lambda row: show_signed(getattr(row, name) / FJ_PER_J, "J") if row.is_shared else ""


def _join(*words: str | None) -> str:
    return " / ".join(dict.fromkeys(word for word in words if word))
