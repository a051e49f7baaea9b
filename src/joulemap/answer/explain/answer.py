"""The difference of two runs: sentences, and terms that sum to it exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.answer.explain.pair import EXACT_UNITS, TERMS, MetricTerm, PairAnswer
from joulemap.answer.explain.sentence import write_sentences
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
from joulemap.present.document import Block, Document, Grid, Lines, Section, Text, grid, say_rest
from joulemap.row.explain import CategoryDifference, Effect, EnergyTerm, RunPair, SubgraphDifference, Traffic
from joulemap.store.query import fetch_all
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.catalogue import ArchitectureNote
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source
    from joulemap.row import Row
    from joulemap.store.connection import Connection


@frozen(kw_only=True)
class ExplainAnswer(PairAnswer):
    """Why run B differs from run A in a metric; the terms sum to the difference exactly."""

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """What the two classes are known for: no result."""
        return find_notes((self.total.architecture_a, self.total.architecture_b))

    def sentences(self) -> list[str]:
        """Return what the numbers support: who needs less, the largest cause, what goes against it."""
        return write_sentences(self)

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
        """Return the terms as a waterfall from A to B."""
        from joulemap.answer.explain.waterfall import draw_waterfall

        return (draw_waterfall(self, self.scope.bounded(self.title()), "; ".join(self.sentences()[:3])),)

    def document(self, *, by: DifferenceDivision = "term", limit: int = 20, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` rows of one table; programs get every table, csv that one."""
        sections: dict[DifferenceDivision, tuple[Section, ...]] = {
            "term": self._terms(limit),
            "category": (Section("Energy by category", self._categories()),),
            "subgraph": self._terms(limit)
            if self.subgraph
            else (Section(self._subgraph_title, self._subgraphs(limit)),),
        }
        tables: dict[DifferenceDivision, Table[Any]] = {
            "term": self.metric_terms or self.terms,
            "category": self.categories,
            "subgraph": (self.metric_terms or self.terms) if self.subgraph else self.subgraphs,
        }
        known = [f"{one.architecture}, {one.topic}: {one.text} [{one.source}]" for one in self.notes]
        marks = self.scope.explain_marks((self.total.hardware_a, self.total.hardware_b))
        return self._compose(
            self.title(),
            (self.head(), Section("Why", Lines(self.sentences())), *sections[by]),
            tables[by],
            notes=[*marks, *self.scope.describe(), *known],
            steps=self._steps(repeated),
        )

    def title(self) -> str:
        """Return what is compared."""
        name_a, name_b = self.names
        what = f"{self.scope.title}, subgraph {self.subgraph}" if self.subgraph else self.scope.title
        return f"{what}: {METRIC[self.metric].label} of B {name_b} minus A {name_a}"

    def head(self) -> Section:
        """Return both values and the difference."""
        (value_a, value_b), unit = self.values, METRIC[self.metric].unit
        ratio = f" ({self.ratio:.3g}x)" if self.ratio else ""
        return Section("", Text(
            f"A {show_quantity(value_a, unit)}, B {show_quantity(value_b, unit)}, "
            f"difference {show_signed(value_b - value_a, unit)}{ratio}"
        ))  # fmt: skip

    def _terms(self, limit: int) -> tuple[Section, ...]:
        if self.metric_terms is None:
            return Section("Terms", self.energy_terms(limit)), Section("Effects", self.energy_effects())
        proof = self._prove(
            (row.difference_exact for row in self.metric_terms), self.difference_exact, EXACT_UNITS[self.metric]
        )
        terms = (*draw_terms(self.metric_terms, limit), proof)
        return Section("Terms", terms), Section("Bytes that each memory carries", self._traffic(limit))

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

    def _categories(self) -> tuple[Block, ...]:
        drawn = grid(
            self.categories,
            (
                ("category", "category"),
                ("of A", "categories_a"),
                ("of B", "categories_b"),
                ("A", "energy_a_j"),
                ("B", "energy_b_j"),
                ("difference", lambda row: show_signed(row.difference_j, "J")),
                ("share", "share_fraction"),
            ),
            keep=("A", "B", "difference", "share"),
        )
        return drawn, self._prove((row.difference_fj for row in self.categories), self.total.difference_fj, "fJ")

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
        total = self.total
        pair = [self.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
        explained = ["explain", total.model, *pair, "--metric", self.metric, "--level", "subgraph"]
        if self.subgraph:
            inside = ["--level", "subgraph", "--subgraph", self.subgraph, "--by", "action", *repeated]
            return [[*explained, *repeated], *(["analyze", total.model, one, *inside] for one in dict.fromkeys(pair))]
        steps = [[*explained, *repeated]]
        if self.metric != "memory" and self.subgraphs.rows:
            steps.append([*explained, "--subgraph", self.subgraphs[0].name, *repeated])
        if not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated) and pair[0] != pair[1]:
            both = ["--hardware", ",".join(pair), "--batch", ",".join(map(str, BATCHES)), "--level", "crossing"]
            steps.append(["sweep", total.model, *both, *repeated])
        return steps


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


def _count(value: float, per: str) -> str:
    return show_quantity(value, "s" if per == "s" else "") if value else ""
