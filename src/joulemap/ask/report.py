"""Report on models and several chips: the answers to several questions on the same hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.ask.analyze import PartAnswer, compare_breakdowns
from joulemap.ask.answer import Answer
from joulemap.ask.compare import CompareAnswer, compare
from joulemap.ask.contest import ContestAnswer, ModelsAnswer, compare_models, compare_parts
from joulemap.ask.cost import CostAnswer, cost
from joulemap.ask.edp import EdpAnswer, edp
from joulemap.ask.explain import ExplainAnswer, explain
from joulemap.ask.flip import FlipAnswer, flip
from joulemap.ask.pareto import ParetoAnswer, pareto
from joulemap.ask.sweep import SweepAnswer, sweep
from joulemap.ask.utilization import UtilizationAnswer, utilization
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.analyze import SubgraphRoof
from joulemap.generated.compare import Comparison
from joulemap.generated.report import EnergyLeaf, NumberSource, PredictionStanding
from joulemap.plan.model_name import find_answer
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.store.connection import keeping_open
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.file import write_file
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

Found = TypeVar("Found", bound=Answer)

LEAVES: Final = 3
"""Number of subgraphs listed for each action of a run."""

FEW: Final = 12
"""Maximum chips for which `LEAVES` subgraphs per action are listed; for more chips, one per action."""

SWEPT: Final = 8
"""Maximum chips in the batch sweep, lowest energy first; more curves would be hard to distinguish."""


class ReportPart:
    """Chapter of an optional extension; the extension registers an instance of a subclass at `report`."""

    name: str
    """Name of the chapter in the data of a report, and in `asked` of `report`."""
    is_first = False
    """True if the chapter comes before the built-in chapters."""
    label = ""
    """Label of the answer's decision in the head of the report; empty to leave it to the chapter."""

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the answer of the chapter; None if the chapter does not apply.

        `settings` select exactly the hardware of the report. `wanted` is the request that `report` got for this
        chapter, or None.
        """
        raise NotImplementedError(self.name)

    def draw(self, drawn: Any, answer: Any) -> Any:
        """Return the chapter of an answer, built with the methods of `drawn`, findings on one model."""
        raise NotImplementedError(self.name)


def list_parts() -> list[ReportPart]:
    """Return the chapters of all installed extensions."""
    return list(find_parts("report"))


@frozen(kw_only=True)
class ModelFinding:
    """Answers on one model, all on the same hardware; None for a question that cannot be answered."""

    compare: CompareAnswer
    runs: PartAnswer
    tree: Table[EnergyLeaf]
    roofs: tuple[Table[SubgraphRoof], ...]
    """Rooflines of the subgraphs, one table per chip, lowest energy first."""
    accuracy: Table[PredictionStanding]
    sources: Table[NumberSource]
    pareto: ParetoAnswer | None
    parts: ContestAnswer | None
    edp: tuple[EdpAnswer, ...]
    """Answers of `edp`, one per chip, lowest energy first."""
    sweep: SweepAnswer | None
    explain: tuple[ExplainAnswer, ...]
    """One comparison of the lowest-energy available chip with each other chip, the second-best chip first."""
    flip: FlipAnswer | None
    cost: CostAnswer | None
    utilization: UtilizationAnswer
    added: Mapping[str, Answer]
    """Chapter name of an optional extension -> answer shown in it."""

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.compare.scope.model

    @property
    def answered(self) -> tuple[Comparison, ...]:
        """Rows of hardware that was not refused, lowest energy first."""
        return tuple(row for row in self.compare.rows if row.status == "ok")

    @property
    def best(self) -> Comparison:
        """Available hardware with the lowest energy, or any hardware if none is available."""
        return next((row for row in self.answered if row.is_available), self.answered[0])

    def data(self) -> dict[str, Any]:
        """Return the data of every answer, and the rows of every table but the rooflines."""
        own = [one.name for one in attrs.fields(ModelFinding) if one.name not in ("roofs", "added")]
        added = {one.name: self.added.get(one.name) for one in list_parts()}
        found = {name: getattr(self, name) for name in own} | added
        return {name: _to_data(one) for name, one in found.items()}


def _to_data(found: Any) -> Any:
    if isinstance(found, tuple):
        return list(map(_to_data, found))
    return found.records() if isinstance(found, Table) else found.data() if found is not None else None


@frozen(kw_only=True, repr=False)
class ReportAnswer(Answer):
    """Report on models and several chips, from the verdict to the sources; `html` returns the page."""

    findings: tuple[ModelFinding, ...]
    """Answers to all questions of the report, one record per model."""
    models: ModelsAnswer | None
    """Comparison of the models; None for a single model."""
    names: tuple[str, ...]
    """Names of the models, as the caller gave them."""
    repeated: tuple[str, ...]
    """Options of the command that makes the page again."""

    @cached_property
    def report(self) -> Any:
        """The page: its decision, reasons and chapters."""
        return find_printer().compose_report(self)

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the report."""
        own = self.models.tables if self.models else ()
        return (*own, *self.report.tables)

    @property
    def rows(self) -> Table[Any]:
        """The comparison of the models, or that of the hardware for a single model."""
        return self.models.rows if self.models else self.findings[0].compare.rows

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: every row of every table."""
        return {
            "title": self.report.title,
            "answer": self.report.decision,
            "reasons": {label: list(lines) for label, lines in self.report.reasons},
            "models": self.models.data() if self.models else None,
            "reports": {one.model: one.data() for one in self.findings},
        }

    def html(self) -> str:
        """Return one page that needs no network; figures fall back to text if vl-convert-python is missing."""
        return find_printer().write_page(self.report)

    def save(self, path: str | Path) -> None:
        """Write the page to a file; UsageError if the file holds anything that joulemap did not write."""
        page = self.html()
        write_file(Path(path), lambda draft: draft.write_text(page, encoding="utf-8"), ())


@keeping_open()
def report(
    source: Source,
    models: str | Sequence[str],
    settings: Settings = SETTINGS,
    *,
    between: Sequence[str | Hardware] = (),
    asked: Mapping[str, Any] | None = None,
    repeated: Sequence[str] = (),
) -> ReportAnswer:
    """Return a report on models on each chip; its `save` writes one page that needs no network.

    The report asks `compare` and related questions on the same hardware; without given batches, it sweeps the default
    batches of `sweep`. `between` names the two chips to explain, by default the best and each other one. `asked` maps
    further chapters to their requests: "fleet" to a `Demand`, "placed" to a box. `repeated` are the options of the
    page's own command. Raises like `compare`, `fleet` and `place`; UsageError for several batches, precisions or
    runtimes; UnknownNameError for an unknown chapter.
    """
    settings.check_single("report")
    if between and len(between) != 2:
        raise UsageError(f"name two chips to explain, A and B; found {len(between)}")
    names = tuple(dict.fromkeys((models,) if isinstance(models, str) else models))
    known = [one.name for one in list_parts()]
    for name in asked or {}:
        check_name("chapter", name, known)
    return ReportAnswer(
        findings=tuple(find_out(source, name, settings, between, asked or {}) for name in names),
        models=compare_models(source, names, settings) if len(names) > 1 else None,
        names=names,
        repeated=tuple(repeated),
    )


def find_out(
    source: Source,
    model: str,
    settings: Settings,
    pair: Sequence[str | Hardware],
    asked: Mapping[str, Any],
) -> ModelFinding:
    """Collect the findings of a report on one model.

    `pair` names the two chips to explain, by default the best chip and each other one. `asked` maps chapters of
    optional extensions to their requests. Raises like `compare` and like the questions of those chapters.
    """
    steps = _Steps(source, model)
    source = steps.source
    steps.begin("compare")
    compared = find_answer(compare, model)(source, model, settings)
    named = [_Named.of(row, compared, settings) for row in compared.rows if row.status == "ok"]
    chosen = _fix_hardware(settings, [one.spelling for one in named])
    steps.begin("chapters of wings")
    added = {one.name: one.ask(source, model, chosen, asked.get(one.name)) for one in list_parts()}
    steps.begin("breakdown")
    runs = compare_breakdowns(source, (model,), chosen, level="run", by="action")
    with opening_runs(source, plan_runs((model,), chosen)) as held:
        connection, ids = held.connection, list(held.ids)
        own = {
            "tree": fetch(connection, EnergyLeaf, run_ids=ids, most=LEAVES if len(ids) <= FEW else 1),
            "accuracy": fetch(connection, PredictionStanding, run_ids=ids),
            "sources": fetch(connection, NumberSource, run_ids=ids),
        }
        run_ids = {row.hardware: row.run_id for row in runs.rows}
        roofs = tuple(fetch(connection, SubgraphRoof, run_id=run_ids[one.name]) for one in named)
    spellings = [one.spelling for one in named]
    had = sorted(range(len(named)), key=lambda index: not named[index].is_available)
    best, *others = (spellings[index] for index in had)
    pairs = [tuple(pair)] if pair else [(other, best) for other in others]
    plain = attrs.evolve(chosen, hardware=())
    is_swept = not settings.inputs and not settings.modules
    candidates = attrs.evolve(chosen, batch=settings.batch or compared.scope.batches)
    swept = attrs.evolve(plain, batch=(), hardware=tuple(spellings[:SWEPT]))

    def ask(question: Callable[..., Found], *given: Any) -> Found | None:
        """Return the answer to the question of the next step; None if it has none."""
        steps.begin(question.__name__)
        return attempt(partial(question, source, *given))

    def ask_pairs(question: Callable[..., Found], pairs: Sequence[tuple[Any, ...]]) -> tuple[Found, ...]:
        """Return the answers about pairs of chips that have one; exceptions propagate if the caller named the pair."""
        steps.begin(question.__name__)
        asked = (partial(question, source, model, *one, plain) for one in pairs)
        return tuple(found for one in asked if (found := one() if pair else attempt(one)) is not None)

    steps.begin("edp and utilization")
    by_chip = tuple(edp(source, model, one, plain) for one in spellings)
    used = utilization(source, model, chosen, has_advice=False)
    return ModelFinding(
        compare=compared,
        runs=runs,
        roofs=roofs,
        **own,  # type: ignore[arg-type]
        pareto=ask(pareto, model, candidates),
        parts=ask(compare_parts, (model,), chosen) if len(named) > 1 else None,
        edp=by_chip,
        sweep=ask(sweep, (model,), swept) if is_swept else None,
        explain=ask_pairs(explain, pairs),
        flip=next(iter(ask_pairs(flip, pairs[:1])), None),
        cost=ask(find_answer(cost, model), model, candidates),
        utilization=used,
        added={name: part for name, part in added.items() if part is not None},
    )


QUESTIONS: Final = 10
"""Number of steps of a report on one model."""


class _Steps:
    """Progress of a report: each question is one step, whatever it evaluates."""

    def __init__(self, source: Source, model: str) -> None:
        self._whole, self._model, self._count = source, model, 0
        self.source = attrs.evolve(source, progress=self._move)

    def begin(self, name: str) -> None:
        """Begin the question of this name."""
        self._count += 1
        self._whole.talk(f"{name} of {self._model} …")
        self._move(0, 0)

    def _move(self, _done: int, _total: int) -> None:
        if self._whole.progress is not None:
            self._whole.progress(self._count - 1, QUESTIONS)


@frozen
class _Named:
    """Chip of an answer, and its name in a command."""

    name: str
    spelling: str | Hardware
    is_available: bool

    @classmethod
    def of(cls, row: Comparison, compared: CompareAnswer, settings: Settings) -> _Named:
        records = {one.id: one for one in settings.hardware if not isinstance(one, str)}
        plain = HardwareRef.read(row.hardware).label
        return cls(row.hardware, records.get(plain) or compared.scope.spell(row.hardware), row.is_available)


def _fix_hardware(settings: Settings, hardware: Sequence[str | Hardware]) -> Settings:
    """Return settings that select exactly these chips."""
    return attrs.evolve(
        settings,
        hardware=tuple(hardware),
        architecture=(),
        deployment=(),
        scenario="",
        power_budget_w=None,
    )


def attempt(ask: Callable[[], Found]) -> Found | None:
    """Ask a question; return None if it raises UnsupportedError or UsageError."""
    try:
        return ask()
    except (UnsupportedError, UsageError):
        return None
