"""Explain the difference of two runs, with sentences and with terms that sum to it exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.explain.pair import EXACT_UNITS, TERMS
from joulemap.answer.explain.sentence import leads, say_headline, say_host, say_insights, say_sure
from joulemap.answer.explain.table import DividedAnswer
from joulemap.answer.run import prove
from joulemap.answer.scope import Scope, holding_scope
from joulemap.catalog.sheet import find_notes
from joulemap.domain.catalogue import ArchitectureNote
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import BATCHES, DifferenceDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.present.document import Document
from joulemap.row.explain import (
    CategoryDifference,
    Effect,
    EnergyTerm,
    PurposeDifference,
    RoleDifference,
    RunPair,
    SubgraphDifference,
    Traffic,
)
from joulemap.store.connection import Connection
from joulemap.store.query import fetch_all
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware


LIKELY: Final = 0.95
"""Probability below which the first next step is a search for constants that reverse the order."""


OF_SERVED: Final = {"logits", "communication"}
"""Purposes of work that occur only in served language models."""

OF_LANGUAGE: Final = {"attention", "cache", "experts", *OF_SERVED}
"""Purposes of work that occur only in language models."""

SHOWN: Final = 12
"""Default number of rows per table."""


@frozen(kw_only=True)
class ExplainAnswer(DividedAnswer):
    """Causes of the difference of run B from run A in a metric; the terms sum to it exactly."""

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the two classes, from literature; not results."""
        return find_notes((self.total.architecture_a, self.total.architecture_b))

    def sentences(self) -> list[str]:
        """Return the headline, the largest causes, counteracting causes, and the host overhead."""
        return [say_headline(self), *say_insights(self), *say_host(self)]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences; `terms` are those of the metric."""
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

    def figures(self) -> Figures:
        """Return the difference as a waterfall from A to B."""
        from joulemap.answer.explain.waterfall import draw_waterfall

        return (draw_waterfall(self, self.scope.bounded(self.title()), "; ".join(self.sentences())),)

    def document(
        self, *, by: DifferenceDivision | None = None, limit: int = SHOWN, repeated: Sequence[str] = ()
    ) -> Document:
        """Return the document with `limit` rows of one table; machine formats hold every table, csv that one.

        The default division is by category; for a pass of a served language model it is by purpose of the work.
        """
        divided = self.divide(limit)
        is_told = by is None
        by = by or ("purpose" if OF_SERVED & {row.purpose for row in self.purposes} else "category")
        by = "action" if self.metric == "memory" and by == "category" else by
        shown = (by, "traffic") if self.metric == "memory" else (by,)
        beside = [] if self.metric in ("energy", "edp") else ["role", "effect"]
        beside += [] if OF_LANGUAGE & {row.purpose for row in self.purposes} else ["purpose"]
        tables: dict[DifferenceDivision, Table[Any]] = {
            "category": self.categories,
            "purpose": self.purposes,
            "role": self.roles,
            "action": self.metric_terms or self.terms,
            "subgraph": self.subgraphs,
        }
        told = [f"{one.architecture}, {one.topic}: {one.text} [{one.source}]" for one in self.notes]
        return self._compose(
            self.title(),
            [divided[name] for name in shown],
            tables[by],
            answer=say_headline(self),
            insights=[*say_insights(self)[: None if is_told or by == "category" else 1], *say_host(self)],
            sure=say_sure(self),
            details=[section for name, section in divided.items() if name not in (*shown, *beside)],
            notes=[*self.scope.describe(), *self._explain(), *told],
            steps=self._steps(repeated),
        )

    def _explain(self) -> list[str]:
        """Return sentences that define the terms of the tables, and the check of their sum."""
        lines = [
            "the last column says why the larger one is larger, without causes below a quarter of the difference; a "
            "difference in count is priced at the mean of both energies per action, the rest is energy per action",
            "equivalent actions of different classes are grouped: a tensor core's MAC and a systolic array's, bytes of "
            "all on-chip memories, an instruction, a bundle and a token; operands are counted by the operations that "
            "they serve, on-chip transfers by the bytes of the memories",
        ]
        if self.metric != "memory":
            sums = (sum(row.difference_exact for row in self.categories), self.difference_exact)
            proof = prove("categories", f"the difference of the {self.whole}", (*sums, EXACT_UNITS[self.metric]))
            lines.append(proof.text)
        return lines

    def title(self) -> str:
        """Return the title: scope, metric, A and B."""
        name_a, name_b = self.names
        what = f"{self.scope.title}, subgraph {self.subgraph}" if self.subgraph else self.scope.title
        return f"{what}: {METRIC[self.metric].label} of A {name_a} and B {name_b}"

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return the next commands: what reverses the order if the two are close, else details of the difference."""
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
            first = next(iter(self.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), sweep)
        is_close = self.probability is not None and self.probability < LIKELY and pair[0] != pair[1]
        if is_close and self.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, ["flip", total.model, *pair, *told, *repeated])
        return steps


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
    """Explain why B differs from A in a metric, as terms that sum to the difference exactly.

    `subgraph` restricts the terms to one subgraph, whose edp is its own energy x its own time. Memory is the peak of
    the whole runs. Raises as `compare`; UnsupportedError if either cannot run the configuration; UsageError for a
    folder of several hardware.
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
    """Explain why stored run B differs from stored run A in a metric.

    Raises UnsupportedError if one was refused, UnknownNameError for a subgraph that is in neither.
    """
    if scope.refused:
        raise UnsupportedError("; ".join(scope.refusals))
    records = {
        "totals": RunPair,
        "terms": EnergyTerm,
        "effects": Effect,
        "categories": CategoryDifference,
        "roles": RoleDifference,
        "purposes": PurposeDifference,
        "subgraphs": SubgraphDifference,
        **({"metric_terms": TERMS[metric]} if metric in TERMS else {}),
        **({"traffic": Traffic} if metric == "memory" else {}),
    }
    given = {"run_a": run_a, "run_b": run_b, "subgraph": subgraph, "metric": metric}
    found: dict[str, Any] = {"traffic": None, "metric_terms": None, **fetch_all(connection, records, **given)}
    if subgraph and subgraph not in (known := [row.name for row in found["subgraphs"]]):
        raise UnknownNameError("subgraph", subgraph, known)
    return ExplainAnswer(scope=scope, metric=metric, subgraph=subgraph, **found)
