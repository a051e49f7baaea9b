"""The difference of two runs: sentences, and terms that sum to it exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.explain.pair import EXACT_UNITS, TERMS, MetricTerm, PairAnswer
from joulemap.answer.explain.sentence import SI, leads, say_headline, say_insights, say_sure
from joulemap.answer.explain.word import find_role, name_category, say_why
from joulemap.answer.run import prove
from joulemap.answer.scope import Scope, holding_scope
from joulemap.catalog.sheet import find_notes
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import BATCHES, DifferenceDivision, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.present.cell import show_quantity, show_signed
from joulemap.present.document import Block, Document, Grid, Section, Text, grid, say_rest
from joulemap.row.explain import (
    CategoryDifference,
    Effect,
    EnergyTerm,
    RoleDifference,
    RunPair,
    SubgraphDifference,
    Traffic,
)
from joulemap.store.query import fetch_all
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.catalogue import ArchitectureNote
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.role import Role
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source
    from joulemap.row import Row
    from joulemap.store.connection import Connection


LONGEST: Final = 15
"""Characters of a name that heads a column; where one is longer both are A and B, as the title has them."""

LIKELY: Final = 0.95
"""Probability below which what would flip it is the first question."""


@frozen(kw_only=True)
class ExplainAnswer(PairAnswer):
    """Why run B differs from run A in a metric; the terms sum to the difference exactly."""

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """What the two classes are known for: no result."""
        return find_notes((self.total.architecture_a, self.total.architecture_b))

    def sentences(self) -> list[str]:
        """Return what the numbers support: who needs less, the largest causes, what goes against them."""
        return [say_headline(self), *say_insights(self)]

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the sentences; `terms` are those of the metric."""
        rows = super().data()
        terms = rows.pop("metric_terms", rows["terms"])
        return {
            **rows,
            "metric": self.metric,
            "subgraph": self.subgraph or None,
            "terms": terms,
            "traffic": rows.get("traffic", []),
            "sentences": self.sentences(),
            "architecture_notes": [attrs.asdict(note) for note in self.notes],
        }

    def figures(self) -> tuple[Figure, ...]:
        """Return what makes the difference as a waterfall from A to B."""
        from joulemap.answer.explain.waterfall import draw_waterfall

        return (draw_waterfall(self, self.scope.bounded(self.title()), "; ".join(self.sentences())),)

    def document(
        self, *, by: DifferenceDivision = "category", limit: int = 20, repeated: Sequence[str] = ()
    ) -> Document:
        """Return it with `limit` rows of one table; programs get every table, csv that one."""
        divided = self._divide(limit)
        by = "action" if self.metric == "memory" and by == "category" else by
        shown = (by, "traffic") if self.metric == "memory" else (by,)
        beside = () if self.metric in ("energy", "edp") else ("role", "effect")
        tables: dict[DifferenceDivision, Table[Any]] = {
            "category": self.categories,
            "role": self.roles,
            "action": self.metric_terms or self.terms,
            "subgraph": self.subgraphs,
        }
        told = [f"{one.architecture}, {one.topic}: {one.text} [{one.source}]" for one in self.notes]
        marks = self.scope.explain_marks((self.total.hardware_a, self.total.hardware_b))
        return self._compose(
            self.title(),
            [divided[name] for name in shown],
            tables[by],
            answer=say_headline(self),
            insights=say_insights(self),
            sure=say_sure(self),
            details=[section for name, section in divided.items() if name not in (*shown, *beside)],
            notes=[*marks, *self.scope.describe(), *self._explain(), *told],
            steps=self._steps(repeated),
        )

    def _divide(self, limit: int) -> dict[str, Section]:
        """Return every table of the difference by what it is divided by."""
        return {
            "category": Section("", self.draw_categories()),
            "role": Section("Energy by what it is for", self._roles(limit)),
            "action": self._terms(limit),
            "effect": Section("Energy by kind of cause", self.energy_effects()),
            "subgraph": Section(self._subgraph_title, self._subgraphs(limit)),
            "traffic": Section("Bytes that each memory carries", self._traffic(limit)),
        }

    def _explain(self) -> list[str]:
        """Return what the words of the tables mean, and that they add up."""
        lines = [
            "the last column says what makes the greater of both greater, and nothing of what moves less than a "
            "quarter of it: more of it, or less, is counted at the mean of both prices; dearer or cheaper is the rest",
            "acts that are for the same are one, whatever a class calls them: a tensor core's MAC and a systolic "
            "array's, bytes of all memories on a chip, an instruction, a bundle and a token; operands are counted by "
            "the operations that they serve, what crosses a chip by the bytes of its memories",
        ]
        if self.metric != "memory":
            sums = (sum(row.difference_exact for row in self.categories), self.difference_exact)
            proof = prove("categories", f"the difference of the {self.whole}", (*sums, EXACT_UNITS[self.metric]))
            lines.append(proof.text)
        return lines

    def title(self) -> str:
        """Return what is compared."""
        name_a, name_b = self.names
        what = f"{self.scope.title}, subgraph {self.subgraph}" if self.subgraph else self.scope.title
        return f"{what}: {METRIC[self.metric].label} of A {name_a} and B {name_b}"

    def _terms(self, limit: int) -> Section:
        if self.metric_terms is None:
            return Section("Terms: action by action", self.energy_terms(limit))
        proof = self._prove(
            (row.difference_exact for row in self.metric_terms), self.difference_exact, EXACT_UNITS[self.metric]
        )
        return Section("Terms", (*draw_terms(self.metric_terms, limit), proof))

    def energy_terms(self, limit: int) -> tuple[Block, ...]:
        """Return the terms of the energy, and that they sum to the difference."""
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
                ("price A", lambda row: show_quantity(row.energy_per_action_a_j, "W" if row.per == "s" else "J")),
                ("price B", lambda row: show_quantity(row.energy_per_action_b_j, "W" if row.per == "s" else "J")),
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
        """Return what each kind of cause moved the energy, and that they sum to the difference."""
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
        """Return what each spends on what, and why the greater is greater."""
        name_a, name_b = self.names if max(map(len, self.names)) <= LONGEST and len(set(self.names)) > 1 else "AB"
        drawn = grid(
            self.categories,
            (
                ("spent on", name_category),
                (name_a, lambda row: show_quantity(row.spent_a, row.spent_unit)),
                (name_b, lambda row: show_quantity(row.spent_b, row.spent_unit)),
                ("difference", lambda row: show_signed(row.difference, row.unit)),
                ("share", "share_fraction"),
                ("why greater", say_why),
            ),
            keep=("why greater", name_a, name_b, "difference"),
        )
        whole = self.metric if self.metric != "memory" else "energy"
        unit, (value_a, value_b) = METRIC[whole].unit, self.ends[whole]
        ends = [show_quantity(value_a, unit), show_quantity(value_b, unit), show_signed(value_b - value_a, unit)]
        return attrs.evolve(drawn, rows=(*drawn.rows, ("all", *ends, "", "")))

    def _roles(self, limit: int) -> tuple[Block, ...]:
        drawn = grid(
            self.roles,
            (
                ("what for", lambda row: find_role(row).noun),
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
            keep=("A", "B", "difference", "price A", "price B", "count A", "count B"),
        )
        proof = self._prove((row.difference_fj for row in self.roles), self.total.difference_fj, "fJ")
        return drawn, *say_rest(len(self.roles), limit, "roles"), proof

    def _prove(self, terms: Iterable[int], exact: int, unit: str) -> Text:
        return prove_terms(terms, exact, unit, self.whole)

    @property
    def _subgraph_title(self) -> str:
        what = "bytes moved off chip" if self.metric == "memory" else METRIC[self.metric].label
        return f"{what.capitalize()} by subgraph"

    def _subgraphs(self, limit: int) -> tuple[Block, ...]:
        drawn = grid(
            self.subgraphs,
            (
                ("subgraph", "name"),
                ("pattern", "fusion_pattern"),
                ("difference", lambda row: show_signed(row.difference, row.unit)),
                ("share", "share_fraction"),
                ("mostly", lambda row: row.largest_action or ""),
                ("of it", lambda row: show_signed(row.largest_difference_j, "J") if row.largest_action else ""),
                ("energy A", lambda row: show_quantity(row.energy_a_fj / 1e15, "J")),
                ("energy B", lambda row: show_quantity(row.energy_b_fj / 1e15, "J")),
                ("latency A", lambda row: show_quantity(row.latency_a_fs / 1e15, "s")),
                ("latency B", lambda row: show_quantity(row.latency_b_fs / 1e15, "s")),
                ("bound A", "bottleneck_a"),
                ("bound B", "bottleneck_b"),
            ),
            limit=limit,
            keep=(
                "difference",
                "share",
                *(("mostly", "of it") if self.metric == "energy" else ()),
                "energy A",
                "energy B",
            ),
        )
        return drawn, *say_rest(len(self.subgraphs), limit, "subgraphs")

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
        return grid(self.traffic, columns, limit=limit), *say_rest(len(self.traffic), limit, "memories")

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return what to ask next: what would turn it where that is near, else where the difference is made."""
        total = self.total
        pair = [self.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
        told = [] if self.metric == "energy" else ["--metric", self.metric]
        explained = ["explain", total.model, *pair, *told]
        if self.subgraph:
            inside = ["--level", "subgraph", "--subgraph", self.subgraph, "--by", "action", *repeated]
            whole = [*explained, "--level", "subgraph", *repeated]
            return [whole, *(["analyze", total.model, one, *inside] for one in dict.fromkeys(pair))]
        steps = [[*explained, "--level", "subgraph", *repeated]]
        if self.metric != "memory" and self.subgraphs.rows:
            inside = [*explained, "--subgraph", self.subgraphs[0].name, *repeated]
            steps.insert(0 if leads(self.subgraphs) else 1, inside)
        if not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated) and pair[0] != pair[1]:
            both = ["--hardware", ",".join(pair), "--batch", ",".join(map(str, BATCHES)), "--level", "crossing"]
            sweep = ["sweep", total.model, *both, *repeated]
            steps.insert(0 if _waits(self.categories) else len(steps), sweep)
        if self.probability is not None and self.probability < LIKELY and pair[0] != pair[1]:
            steps.insert(0, ["flip", total.model, *pair, *told, *repeated])
        return steps


def _waits(rows: Table[CategoryDifference]) -> bool:
    """Whether most of a difference is static power or fixed time, which a larger batch spreads."""
    return bool(rows.rows) and (rows[0].quantity, rows[0].category) in (("energy", "static"), ("time", "launch"))


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


def explain(
    source: Source,
    model: str,
    hardware_a: str | Hardware,
    hardware_b: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    metric: PartMetricName = "energy",
    subgraph: str = "",
) -> ExplainAnswer:
    """Return why B differs from A in a metric, as terms that sum to the difference exactly.

    `subgraph` names one to look inside: then the terms sum to the difference of that one, whose edp is its own
    energy x its own time. Memory is the peak of the whole runs. Raises as `compare`; UnsupportedError if either
    cannot run the configuration; UsageError for a folder of several in place of a hardware.
    """
    check_name("metric", metric, PART_METRICS)
    if subgraph and metric == "memory":
        raise UsageError("peak memory is of the whole run; explain a subgraph's energy, latency or edp")
    settings.check_single("explain")
    hardware = (hardware_a, hardware_b)
    for one in hardware:
        select_one(one, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=hardware))
    with holding_scope(source, plan_selected((model,), settings, selection)) as (scope, connection, ids):
        return explain_pair(connection, scope, ids[0], ids[-1], metric, subgraph)


def explain_pair(
    connection: Connection, scope: Scope, run_a: int, run_b: int, metric: PartMetricName, subgraph: str = ""
) -> ExplainAnswer:
    """Return why run B differs from run A in a metric; both are stored.

    Raises UnsupportedError where one was refused, UnknownNameError for a subgraph that runs on neither.
    """
    if scope.refused:
        raise UnsupportedError("; ".join(scope.refusals))
    records: dict[str, type[Row]] = {
        "totals": RunPair,
        "terms": EnergyTerm,
        "effects": Effect,
        "categories": CategoryDifference,
        "roles": RoleDifference,
        "subgraphs": SubgraphDifference,
        **({"metric_terms": TERMS[metric]} if metric in TERMS else {}),
        **({"traffic": Traffic} if metric == "memory" else {}),
    }
    given = {"run_a": run_a, "run_b": run_b, "subgraph": subgraph, "metric": metric}
    found: dict[str, Any] = {"traffic": None, "metric_terms": None, **fetch_all(connection, records, **given)}
    if subgraph and subgraph not in (known := [row.name for row in found["subgraphs"]]):
        raise UnknownNameError("subgraph", subgraph, known)
    return ExplainAnswer(scope=scope, metric=metric, subgraph=subgraph, **found)


def _add_sums(drawn: Grid, differences: Sequence[float], limit: int, unit: str) -> Grid:
    """Return a table with what the rows that are not shown add up to, and all of them."""
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
    """Return the sentence that compares what terms add up to with the difference of the whole."""
    return prove("terms", f"the difference of the {whole}", (sum(terms), exact, unit))


def _join(*words: str | None) -> str:
    return " / ".join(dict.fromkeys(word for word in words if word))


def _amount(value: float, role: Role) -> str:
    return show_quantity(value, role.unit if role.unit in SI else "") if value else ""


def _price(value: float | None, role: Role) -> str:
    return show_quantity(value, "W" if role.unit == "s" else "J")


def _count(value: float, per: str) -> str:
    return show_quantity(value, "s" if per == "s" else "") if value else ""
