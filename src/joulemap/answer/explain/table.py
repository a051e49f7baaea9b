"""Draw the tables of a difference: by category, role, action and subgraph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.explain.pair import (
    EXACT_UNITS,
    PURPOSES,
    MetricTerm,
    PairAnswer,
    find_role,
    name_category,
    say_why,
)
from joulemap.answer.explain.sentence import SI
from joulemap.answer.run import prove
from joulemap.domain.metric import METRIC
from joulemap.domain.table import Table
from joulemap.present.cell import show_amount, show_price, show_quantity, show_share, show_signed
from joulemap.present.document import Block, Grid, Section, Text, grid
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.role import Role

LONGEST: Final = 20
"""Maximum characters of two names as column headings; longer names become A and B."""


@frozen(kw_only=True)
class DividedAnswer(PairAnswer):
    """Two runs, and their difference divided in every way."""

    def divide(self, limit: int) -> dict[str, Section]:
        """Return division -> section with its table."""
        what = "bytes moved off chip" if self.metric == "memory" else METRIC[self.metric].label
        return {
            "category": Section("", self.draw_categories()),
            "purpose": Section("Energy and time by what the work is for", self._purposes()),
            "role": Section("Energy by what it is for", self._roles(limit)),
            "action": self._terms(limit),
            "effect": Section("Energy by kind of cause", self.energy_effects()),
            "subgraph": Section(f"{what.capitalize()} by subgraph", self._subgraphs(limit)),
            "traffic": Section("Bytes that each memory carries", self._traffic(limit)),
        }

    def _terms(self, limit: int) -> Section:
        if self.metric_terms is None:
            return Section("Terms: action by action", self.energy_terms(limit))
        proof = self._prove(
            (row.difference_exact for row in self.metric_terms), self.difference_exact, EXACT_UNITS[self.metric]
        )
        return Section("Terms", (*draw_terms(self.metric_terms, limit), proof))

    def energy_terms(self, limit: int) -> tuple[Block, ...]:
        """Return the terms of the energy, and the check of their sum."""
        drawn = grid(
            self.terms,
            (
                ("term", "term"),
                ("where", lambda row: _join(row.category_a, row.category_b)),
                ("action", lambda row: f"{row.component}.{row.action}"),
                ("difference", lambda row: show_signed(row.difference_j, "J")),
                ("share", "share_fraction"),
                ("count A", lambda row: _count(row.count_a, row.per)),
                ("count B", lambda row: _count(row.count_b, row.per)),
                ("price A", lambda row: show_price(row.energy_per_action_a_j, row.per)),
                ("price B", lambda row: show_price(row.energy_per_action_b_j, row.per)),
                ("per", "per"),
                ("basis", lambda row: _join(row.basis_a, row.basis_b)),
            ),
            limit=limit,
            keep=("action", "difference", "share", "price A", "price B", "count A", "count B"),
        )
        differences = [row.difference_fj / 1e15 for row in self.terms]
        return (
            _add_sums(drawn, differences, limit, "J"),
            self._prove((row.difference_fj for row in self.terms), self.total.difference_fj, "fJ"),
        )

    def energy_effects(self) -> tuple[Block, ...]:
        """Return the energy moved by each kind of cause, and the check of its sum."""
        drawn = grid(
            self.effects,
            (
                ("effect", "effect"),
                ("difference", lambda row: show_signed(row.difference_j, "J")),
                ("share", "share_fraction"),
                ("actions", "action_count"),
                ("mostly", "largest_action"),
                ("of it", lambda row: show_signed(row.largest_difference_j, "J")),
            ),
        )
        return drawn, self._prove((row.difference_fj for row in self.effects), self.total.difference_fj, "fJ")

    def draw_categories(self) -> Grid:
        """Return a grid of the amounts spent by both runs per category, and the reason for each difference."""
        name_a, name_b = self.names if len("".join(self.names)) <= LONGEST and len(set(self.names)) > 1 else "AB"
        drawn = grid(
            self.categories,
            (
                ("spent on", name_category),
                (name_a, lambda row: show_quantity(row.spent_a, row.spent_unit)),
                (name_b, lambda row: show_quantity(row.spent_b, row.spent_unit)),
                ("difference", lambda row: show_signed(row.difference, row.unit)),
                ("share", "share_fraction"),
                ("why larger", say_why),
            ),
            keep=("why larger", name_a, name_b, "difference"),
        )
        whole = self.metric if self.metric != "memory" else "energy"
        unit, (value_a, value_b) = METRIC[whole].unit, self.ends(whole)
        ends = [show_quantity(value_a, unit), show_quantity(value_b, unit), show_signed(value_b - value_a, unit)]
        return attrs.evolve(drawn, rows=(*drawn.rows, ("all", *ends, "", "")))

    def _purposes(self) -> tuple[Block, ...]:
        drawn = grid(
            self.purposes,
            (
                ("purpose", lambda row: PURPOSES[row.purpose]),
                ("energy A", "energy_a_j"),
                ("energy B", "energy_b_j"),
                ("time A", "latency_a_s"),
                ("time B", "latency_b_s"),
                ("share", "share_fraction"),
            ),
            keep=("energy A", "energy B", "time A", "time B"),
        )
        ends = [
            show_quantity(value, METRIC[metric].unit) for metric in ("energy", "latency") for value in self.ends(metric)
        ]
        terms, exact = (row.energy_difference_fj for row in self.purposes), self.total.difference_fj
        if self.metric == "latency":
            terms, exact = (row.latency_difference_fs for row in self.purposes), self.difference_exact
        proof = self._prove(terms, exact, EXACT_UNITS["latency" if self.metric == "latency" else "energy"])
        return attrs.evolve(drawn, rows=(*drawn.rows, ("all", *ends, ""))), proof

    def _roles(self, limit: int) -> tuple[Block, ...]:
        drawn = grid(
            self.roles,
            (
                ("role", lambda row: find_role(row).noun),
                ("A", "energy_a_j"),
                ("B", "energy_b_j"),
                ("difference", lambda row: show_signed(row.difference_j, "J")),
                ("share", "share_fraction"),
                ("count A", lambda row: _amount(row.count_a, find_role(row))),
                ("count B", lambda row: _amount(row.count_b, find_role(row))),
                ("price A", lambda row: _price(row.price_a_j, find_role(row))),
                ("price B", lambda row: _price(row.price_b_j, find_role(row))),
                ("by count", lambda row: show_signed(row.by_count_fj / FJ_PER_J, "J") if row.is_shared else ""),
                ("by price", lambda row: show_signed(row.by_price_fj / FJ_PER_J, "J") if row.is_shared else ""),
                ("actions A", "actions_a"),
                ("actions B", "actions_b"),
            ),
            limit=limit,
            noun="roles",
            keep=("A", "B", "difference", "price A", "price B", "count A", "count B"),
        )
        proof = self._prove((row.difference_fj for row in self.roles), self.total.difference_fj, "fJ")
        return drawn, proof

    def _prove(self, terms: Iterable[int], exact: int, unit: str) -> Text:
        return prove_terms(terms, exact, unit, self.whole)

    def _subgraphs(self, limit: int) -> tuple[Block, ...]:
        nouns = {
            action: find_role(row).noun
            for row in self.roles
            for action in f"{row.actions_a}, {row.actions_b}".split(", ")
        }
        drawn = grid(
            self.subgraphs,
            (
                ("subgraph", "name"),
                ("pattern", "fusion_pattern"),
                ("difference", lambda row: show_signed(row.difference, row.unit)),
                ("share", "share_fraction"),
                ("mostly", lambda row: nouns.get(row.largest_action or "", "")),
                ("of it", lambda row: show_signed(row.largest_difference_j, "J") if row.largest_action else ""),
                ("energy A", lambda row: show_quantity(row.energy_a_fj / 1e15, "J")),
                ("energy B", lambda row: show_quantity(row.energy_b_fj / 1e15, "J")),
                ("latency A", lambda row: show_quantity(row.latency_a_fs / 1e15, "s")),
                ("latency B", lambda row: show_quantity(row.latency_b_fs / 1e15, "s")),
                ("bound A", "bottleneck_a"),
                ("bound B", "bottleneck_b"),
            ),
            limit=limit,
            noun="subgraphs",
            keep=(
                "difference",
                "share",
                *(("mostly", "of it") if self.metric == "energy" else ()),
                "energy A",
                "energy B",
            ),
        )
        return (drawn,)

    def _traffic(self, limit: int) -> tuple[Block, ...]:
        if self.traffic is None:
            return ()
        columns = (
            ("memory", lambda row: f"{row.component}.{row.action}"),
            ("A", "bytes_a"),
            ("B", "bytes_b"),
            ("difference", lambda row: show_signed(row.difference_bytes, "B")),
            ("energy A", "energy_a_j"),
            ("energy B", "energy_b_j"),
        )
        return (grid(self.traffic, columns, limit=limit, noun="memories"),)


def draw_terms(terms: Table[MetricTerm], limit: int) -> tuple[Block, ...]:
    """Return the terms of a latency, memory or edp."""
    if not terms.rows:
        return (Text("no term is different"),)
    drawn = grid(
        terms,
        (
            ("term", "term"),
            ("where", "place"),
            ("difference", lambda row: show_signed(row.difference, row.unit)),
            ("share", "share_fraction"),
            ("parts", "part_count"),
            ("count A", lambda row: _count(row.count_a, row.per)),
            ("count B", lambda row: _count(row.count_b, row.per)),
            ("price A", lambda row: show_quantity(row.price_a, row.price_unit)),
            ("price B", lambda row: show_quantity(row.price_b, row.price_unit)),
            ("per", "per"),
        ),
        limit=limit,
        keep=("where", "difference", "share", "price A", "price B", "count A", "count B"),
    )
    return (_add_sums(drawn, [row.difference for row in terms], limit, terms[0].unit),)


def _add_sums(drawn: Grid, differences: Sequence[float], limit: int, unit: str) -> Grid:
    """Return a grid with two more rows: the sum of the hidden rows, and the sum of all."""
    sums = [("sum of all terms", differences)]
    if rest := differences[limit:]:
        sums.insert(0, (f"{len(rest)} smaller terms", rest))
    place = drawn.headings.index("difference")
    below = tuple(
        (name, *[""] * (place - 1), show_signed(sum(values), unit), *[""] * (len(drawn.headings) - place - 1))
        for name, values in sums
    )
    return attrs.evolve(drawn, rows=(*drawn.rows, *below))


def prove_terms(terms: Iterable[int], exact: int, unit: str, whole: str = "runs") -> Text:
    """Return the sentence that checks the sum of terms against the total difference."""
    return prove("terms", f"the difference of the {whole}", (sum(terms), exact, unit))


def _join(*words: str | None) -> str:
    return " / ".join(dict.fromkeys(word for word in words if word))


def _amount(value: float, role: Role) -> str:
    return show_quantity(value, role.unit if role.unit in SI else "") if value else ""


def _price(value: float | None, role: Role) -> str:
    if role.unit == "J":
        return show_share(value)
    return show_quantity(value, "W" if role.unit == "s" else "J")


def _count(value: float, per: str) -> str:
    return show_amount(value, per) if value else ""
