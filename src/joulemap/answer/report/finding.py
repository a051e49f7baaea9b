"""Collect the findings on one model for a report: answers of other questions on the same hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.answer.constant.flip import FlipAnswer, flip
from joulemap.answer.report.part import list_parts
from joulemap.answer.sweep.sweep import SweepAnswer, sweep
from joulemap.ask.answer import Answer, RunAnswer
from joulemap.ask.compare import CompareAnswer, compare
from joulemap.ask.contest import ContestAnswer, compare_parts
from joulemap.ask.cost import CostAnswer, cost
from joulemap.ask.edp import EdpAnswer, edp
from joulemap.ask.explain import ExplainAnswer, explain
from joulemap.ask.pareto import ParetoAnswer, pareto
from joulemap.ask.utilization import UtilizationAnswer, utilization
from joulemap.ask.whole import BreakdownAnswer, compare_runs
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import SubgraphRoof
from joulemap.generated.compare import Comparison
from joulemap.generated.report import EnergyLeaf, NumberSource, PredictionStanding
from joulemap.plan.model_name import find_answer
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

Found = TypeVar("Found", bound=RunAnswer)
Asked = TypeVar("Asked")

LEAVES: Final = 3
"""Number of subgraphs listed for each action of a run."""

FEW: Final = 12
"""Maximum chips for which `LEAVES` subgraphs per action are listed; for more chips, one per action."""

SWEPT: Final = 8
"""Maximum chips in the batch sweep, lowest energy first; more curves would be hard to distinguish."""


@frozen(kw_only=True)
class ModelFinding:
    """Answers on one model, all on the same hardware; None for a question that cannot be answered."""

    compare: CompareAnswer
    runs: BreakdownAnswer
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
    runs = compare_runs(source, (model,), chosen)
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
    several = len(named) > 1

    def ask_each(ask: Callable[..., Found], pairs: Sequence[tuple[Any, ...]]) -> list[Found]:
        """Ask a question about each pair of chips; return the answers.

        Pairs without an answer are omitted, unless the caller named the pair: then exceptions propagate.
        """
        answers = (
            ask(source, model, *one, plain) if pair else attempt(partial(ask, source, model, *one, plain))
            for one in pairs
        )
        return [one for one in answers if one is not None]

    candidates = attrs.evolve(chosen, batch=settings.batch or compared.scope.batches)
    swept = attrs.evolve(plain, batch=(), hardware=tuple(spellings[:SWEPT]))

    def answer(name: str, ask: Callable[[], Asked]) -> Asked:
        steps.begin(name)
        return ask()

    return ModelFinding(
        compare=compared,
        runs=runs,
        roofs=roofs,
        **own,  # type: ignore[arg-type]
        pareto=answer("pareto", lambda: attempt(lambda: pareto(source, model, candidates))),
        parts=answer("parts", lambda: attempt(lambda: compare_parts(source, (model,), chosen)) if several else None),
        edp=answer("edp", lambda: tuple(edp(source, model, one, plain) for one in spellings)),
        sweep=answer("sweep", lambda: attempt(lambda: sweep(source, (model,), swept)) if is_swept else None),
        explain=answer("explain", lambda: tuple(ask_each(explain, pairs))),
        flip=answer("flip", lambda: next(iter(ask_each(flip, pairs[:1])), None)),
        cost=answer("cost", lambda: attempt(lambda: find_answer(cost, model)(source, model, candidates))),
        utilization=answer("utilization", lambda: utilization(source, model, chosen, has_advice=False)),
        added={name: part for name, part in added.items() if part is not None},
    )


QUESTIONS: Final = 11
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
        runtime=settings.runtime,
    )


def attempt(ask: Callable[[], Found]) -> Found | None:
    """Ask a question; return None if it raises UnsupportedError or UsageError."""
    try:
        return ask()
    except (UnsupportedError, UsageError):
        return None
