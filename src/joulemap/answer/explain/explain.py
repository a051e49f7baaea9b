"""Explain the difference of two runs, with sentences and with terms that sum to it exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.explain.pair import EXACT_UNITS, TERMS, PairAnswer
from joulemap.answer.explain.table import divide, lay_categories
from joulemap.ask.answer import fetch_tables
from joulemap.ask.explain import LEADING, find_facts
from joulemap.ask.scope import Scope, opening_scope
from joulemap.catalog.sheet import find_notes
from joulemap.domain.catalogue import ArchitectureNote
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import BATCHES, DifferenceDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.explain import Traffic
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.show.explain import CLASS_NOTE, describe_difference, describe_ranges, list_reasons, list_ways
from joulemap.show.page import Figures
from joulemap.show.present.document import Document, Lines, Section, Text
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import find_conditions, prove, title_runs
from joulemap.show.title import Title, bind
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
    from joulemap.physics.record.hardware import Hardware


ABOUT: Final = Template("{quantity} of {a} (A) and {b} (B)")
OF_PART: Final = Template("subgraph {part}")
BY_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --level subgraph")
INTO_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --subgraph {part}")
INTO_ACTIONS: Final = Template("analyze {model} {one} --level subgraph --subgraph {part} --by action")
STEP_SWEEP: Final = Template("sweep {model} --hardware {a},{b} --batch {batches} --level crossing")
STEP_FLIP: Final = Template("flip {model} {a} {b}[ --metric {metric}]")

LIKELY: Final = 0.95
"""Probability of the winner below which the first follow-up command is `flip`."""

OF_SERVED: Final = {"logits", "communication"}
"""Purposes of work that occur only in served language models."""

OF_LANGUAGE: Final = {"attention", "cache", "experts", *OF_SERVED}
"""Purposes of work that occur only in language models."""

SHOWN: Final = 5
"""Default number of rows per table."""

NAMED: Final = 4
"""Maximum categories with a row each on a screen; the others share one."""

LEAST_NAMED: Final = 0.02
"""Minimum share of all differences of a category with a row of its own on a screen."""


@frozen(kw_only=True)
class ExplainAnswer(PairAnswer):
    """Causes of the difference between runs A and B in a metric; the terms sum to B minus A exactly."""

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the two classes from literature; they are not results."""
        return find_notes((self.total.architecture_a, self.total.architecture_b))

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs A and B."""
        from joulemap.ask.check import split_pair

        return split_pair(self.total)

    def sentences(self) -> list[str]:
        """Return the decision and its reasons."""
        return [describe_difference(self.facts, self.subgraph), *list_reasons(self.facts)]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences; `terms` holds the terms of the explained metric."""
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
        """Return a waterfall figure from A through the causes to B."""
        from joulemap.answer.explain.waterfall import draw_waterfall

        title = bind(self.title(), find_conditions(self.scope))
        return (draw_waterfall(self, title, join_clauses(self.sentences())),)

    def document(
        self, *, by: DifferenceDivision | None = None, limit: int = SHOWN, repeated: Sequence[str] = ()
    ) -> Document:
        """Return the document with `limit` rows of one table. Machine formats contain every table, csv only the shown
        one.

        The default division is by category; for a pass of a served language model it is by purpose of the work.
        """
        purposes = {row.purpose for row in self.purposes}
        by = by or ("purpose" if OF_SERVED & purposes and self.metric != "memory" else "category")
        by = "action" if self.metric == "memory" and by == "category" else by
        has_reasons = by in ("category", "purpose") or self.metric == "memory"  # other divisions are the reasons
        shown: tuple[str, ...] = (by, "traffic") if self.metric == "memory" else (by,)
        omitted = [] if self.metric in ("energy", "edp") else ["role", "effect"]
        omitted += [] if OF_LANGUAGE & purposes else ["purpose"]
        tables: Mapping[DifferenceDivision, Table[Any]] = {
            "category": self.categories,
            "purpose": self.purposes,
            "role": self.roles,
            "action": self.metric_terms or self.terms,
            "subgraph": self.subgraphs,
        }
        divided = divide(self, limit)
        sections = [divided[name] for name in shown]
        proofs: list[str] = []
        if len(sections) == 1:  # its columns say what it is, and the notes that it is exact
            (section,) = sections
            proofs = [one.text for one in section.blocks if isinstance(one, Text) and by in ("role", "action")]
            blocks = tuple(one for one in section.blocks if not (proofs and isinstance(one, Text)))
            sections = [attrs.evolve(section, title="", blocks=blocks)]
        if by == "category":
            sections = [Section("", lay_categories(self, most=NAMED, least=LEAST_NAMED), is_brief=True)]
            shown = ()
        return self._compose_facts(
            self.facts,
            sections,
            tables[by],
            title=self.title(),
            answer=describe_difference(self.facts, self.subgraph),
            reasons=list_reasons(self.facts) if has_reasons else (),
            trust=describe_ranges(self.facts),
            details=[
                *(section for name, section in divided.items() if name not in (*shown, *omitted)),
                Section("How these classes work", Lines(tuple(CLASS_NOTE(one) for one in self.notes))),
            ],
            notes=[
                *list_ways(self.facts),
                *proofs,
                *self._prove_rows(by),
            ],
            steps=self._list_steps(repeated),
        )

    def _prove_rows(self, by: DifferenceDivision) -> list[str]:
        """Return the check that the rows of the category or purpose table sum to the difference; empty for other
        tables.
        """
        if by not in ("category", "purpose") or (by == "purpose" and self.metric == "edp"):
            return []
        unit, exact = EXACT_UNITS[self.metric], self.difference_exact
        terms = [row.difference_exact for row in self.categories]
        if by == "purpose":
            name = "latency_difference_fs" if self.metric == "latency" else "energy_difference_fj"
            terms = [getattr(row, name) for row in self.purposes]
        return [prove("rows of the table", self.difference, (sum(terms), exact, unit)).text]

    def title(self) -> Title:
        """Return the title: scope, metric, A and B."""
        name_a, name_b = self.names
        quantity = METRIC[self.metric].label
        return attrs.evolve(
            title_runs(self.scope),
            beside=(OF_PART(part=self.subgraph),) if self.subgraph else (),
            about=ABOUT(quantity=quantity, a=name_a, b=name_b),
        )

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: first `flip` if the winner is uncertain, otherwise a more detailed explanation."""
        total = self.total
        pair = [self.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
        given = {"a": pair[0], "b": pair[1], "part": self.subgraph, "batches": ",".join(map(str, BATCHES))}
        given["metric"] = "" if self.metric == "energy" else self.metric
        if self.subgraph:
            inside = [
                step
                for one in dict.fromkeys(pair)
                for step in self._fill_steps((INTO_ACTIONS,), total, repeated, one=one, **given)
            ]
            return [*self._fill_steps((BY_SUBGRAPH,), total, repeated, **given), *inside]
        if not self.difference_exact:
            return self._fill_steps([STEP_SWEEP] if pair[0] != pair[1] else [], total, repeated, **given)
        steps = [BY_SUBGRAPH]
        if self.metric != "memory" and self.subgraphs.rows:
            given["part"] = self.subgraphs[0].name
            leads = len(self.subgraphs) > 1 and (self.subgraphs[0].share_fraction or 0.0) >= LEADING
            steps.insert(0 if leads else 1, INTO_SUBGRAPH)
        if not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated) and pair[0] != pair[1]:
            first = next(iter(self.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), STEP_SWEEP)
        is_close = self.probability is not None and self.probability < LIKELY and pair[0] != pair[1]
        if is_close and self.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, STEP_FLIP)
        return self._fill_steps(steps, total, repeated, **given)


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

    `subgraph` restricts the terms to one subgraph; its EDP is its own energy times its own time. Memory is the peak of
    the whole runs. Raises like `compare`; UnsupportedError if either chip cannot run the configuration; UsageError for
    a folder of several chips.
    """
    check_name("metric", metric, PART_METRICS)
    if subgraph and metric == "memory":
        raise UsageError(
            "peak memory applies to the whole run; for a subgraph choose the metric energy, latency or edp"
        )
    settings.check_single("explain")
    hardware = (hardware_a, hardware_b)
    for one in hardware:
        select_one(one, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=hardware))
    with opening_scope(source, plan_selected((model,), settings, selection)) as scope:
        scope.check_evaluated()
        return explain_pair(scope, scope.run_ids[0], scope.run_ids[-1], metric, subgraph)


def explain_pair(scope: Scope, run_a: int, run_b: int, metric: PartMetricName, subgraph: str = "") -> ExplainAnswer:
    """Explain why stored run B differs from stored run A in a metric.

    Raises UnsupportedError if a run was refused, UnknownNameError for a subgraph that neither run has.
    """
    if scope.refused:
        raise UnsupportedError("; ".join(scope.refusals))
    more: dict[str, type[Any]] = {"metric_terms": TERMS[metric]} if metric in TERMS else {}
    more |= {"traffic": Traffic} if metric == "memory" else {}
    given: dict[str, Any] = {"run_a": run_a, "run_b": run_b, "subgraph": subgraph, "metric": metric}
    tables: dict[str, Any] = {
        "traffic": None,
        "metric_terms": None,
        **fetch_tables(scope.connection, PairAnswer, more=more, **given),
    }
    if subgraph and subgraph not in (known := [row.name for row in tables["subgraphs"]]):
        raise UnknownNameError("subgraph", subgraph, known)
    facts = find_facts(
        scope,
        tables["totals"][0],
        tables["categories"],
        tables["roles"].rows,
        tables["subgraphs"].rows,
        tables["metric_terms"] if metric == "memory" else (),
        tables["traffic"] or (),
        metric=metric,
        subgraph=subgraph,
    )
    return ExplainAnswer(scope=scope, metric=metric, subgraph=subgraph, facts=facts, **tables)
