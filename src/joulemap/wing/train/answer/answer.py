"""Training answer: time, energy and memory of a step on each chip and number of devices, and total cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.candidate import describe_use, drop_idle_hours, read_usage
from joulemap.answer.computed import make_table
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import find_stored_scope, widen
from joulemap.answer.text import BRACKETS
from joulemap.domain.configuration import BOARD
from joulemap.domain.default import LEARNED, USAGE
from joulemap.domain.doubt import TIE_RATIO, TOLD_APART
from joulemap.domain.settings import Price, Settings, Training, Usage
from joulemap.domain.table import Table
from joulemap.plan.hold import ensure_all, find_targets, holding_runs
from joulemap.plan.selection import is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.present.cell import show_interval
from joulemap.present.document import MOST_INSIGHTS, Document, Section
from joulemap.row.compare import PairChance
from joulemap.row.cost import AssumedNumber
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.uncertainty.scale import BASES, OTHER_WORK
from joulemap.wing.llm.source import open_boxes
from joulemap.wing.train.answer import text
from joulemap.wing.train.answer.demand import TOKENS, list_steps
from joulemap.wing.train.answer.row import OK, REFUSED, TOO_LARGE, TrainingRow
from joulemap.wing.train.answer.table import fetch_other_runs, fetch_steps, form_rows

TRAINING: Final = Training()
"""Default training: one device, AdamW."""

HARDWARE: Final = ("h100_sxm5", "a100_sxm4_80gb", "mi300x")
"""Default hardware of a training question."""

SHOWN: Final = 20
"""Maximum configurations in a figure."""

J_PER_KWH: Final = 3.6e6

ANY_OVERHEAD: Final = 1.001
"""Smallest ratio of billed energy to device energy at which the answer mentions cooling."""

TESTED: Final = BASES[BASES.index(OTHER_WORK) + 1 :]
"""Bases of an interval for which training steps were measured."""

LEAST_SHARE: Final = 0.0005
"""Smallest share of a step's time at which the answer names a phase; it rounds to 0.1 %."""


@frozen(kw_only=True)
class TrainAnswer(RunAnswer):
    """Answer with the training step of a model on several chips, device counts, precisions and batches."""

    about = ("model", "training", "pay", "probability_best")

    model: str
    training: Training
    rows: Table[TrainingRow]
    """Configurations in the requested order, refused ones included."""
    assumptions: Table[AssumedNumber]
    """Assumptions behind cost and carbon."""
    pay: str
    """Way of paying for the chips, such as `rented`."""

    @property
    def trained(self) -> tuple[TrainingRow, ...]:
        """Rows that fit into memory, by descending samples per second."""
        return _rank(self.rows)

    def title(self) -> str:
        """Return the title: model, batches, precisions and training settings."""
        training = self.training
        layers = ", ".join(training.lora_targets) or text.QUERY_AND_VALUE
        words = {"layers": text.ALL_LAYERS if training.lora_targets == ("all",) else layers}
        is_language = self.trained[0].tokens_per_s is not None
        return text.TITLE(
            name=self.model.partition("(")[0] if is_language else self.model,
            tokens=(training.tokens or TOKENS) if is_language else None,
            batches=[f"{batch:,}" for batch in sorted({row.batch for row in self.rows})],
            precisions=dict.fromkeys(row.precision for row in self.rows),
            settings=[
                template(training, **words)
                for name, template in text.SETTINGS.items()
                if name == "optimizer" or getattr(training, name) != getattr(TRAINING, name)
            ],
        )

    def figures(self) -> Figures:
        """Return figures of the step time and the device memory by part."""
        return (self._draw_figure("training", self._select(SHOWN), self.title(), self._describe_best()),)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` configurations in its tables; exported data has all of them."""
        rows, best = self._select(len(self.rows)), self.trained[0]
        unit, rate = ("samples/s", "samples_per_s") if best.tokens_per_s is None else ("tokens/s", "tokens_per_s")
        power = text.DEVICE_POWER if any(row.device_count > 1 for row in self.rows) else text.POWER
        figures = self._lay(
            rows,
            text.COLUMNS(unit=unit, rate=rate, power=power),
            limit=limit,
            noun="configurations",
            ranked=unit,
            step_s=lambda row: (
                text.AT_LEAST(value=row.step_s)
                if row.is_lower_bound and row.step_s is not None
                else show_interval(row.step_s, "s", row.latency_half_width) or row.status
            ),
        )
        details = {text.MEMORY: text.MEMORY_COLUMNS, text.TIME: text.TIME_COLUMNS, text.COST: text.COST_COLUMNS}
        return self._compose(
            self.title(),
            (Section("", figures),),
            self.rows,
            answer=self._describe_best(),
            insights=[*self._list_total(), self._describe_phases(), *self._list_refused()][:MOST_INSIGHTS],
            sure=self._describe_uncertainty(),
            details=[Section(title, self._lay(rows, columns, limit=limit)) for title, columns in details.items()],
            notes=[
                *text.NOTES,
                *(text.SEVERAL if any(row.device_count > 1 for row in self.rows) else ()),
                *([text.ADAPTERS] if self.training.lora else []),
                text.PAID(use=describe_use(self.assumptions, self.pay)),
                *self.scope.describe(),
            ],
            steps=self._list_steps(repeated),
        )

    def _describe_best(self) -> str:
        """Return a sentence on the fastest configuration and its lead over the next one."""
        row, *others = self.trained
        if row.is_lower_bound:
            return self._describe_bound(row)
        values = {
            "name": self.scope.mark(row.label),
            "rate": (text.SAMPLES if row.tokens_per_s is None else text.TOKENS)(row),
            "step": (row.step_s, row.latency_half_width),
            "sample": (row.sample_j, row.energy_half_width),
        }
        if not others:
            return text.ONLY(row, **values)
        ratio = (row.samples_per_s or 0.0) / (others[0].samples_per_s or math.inf)
        chance = self.probability_best
        is_tied = ratio <= TIE_RATIO or (chance is not None and chance < TOLD_APART)
        shown = ratio if ratio > TIE_RATIO or not is_tied else None
        is_same = others[0].label == row.label and others[0].batch != row.batch
        lead = (text.TIED if is_tied else text.LEAD)(
            runner_up=(text.ITSELF if is_tied else None) if is_same else self.scope.mark(others[0].label),
            other_batch=others[0].batch if others[0].batch != row.batch else None,
            ratio=shown,
            chance=chance,
        )
        return text.FASTEST(row, **values, lead=lead)

    def _describe_bound(self, row: TrainingRow) -> str:
        """Return a sentence on the fastest configuration if its time is a lower bound."""
        rate = (text.SAMPLES if row.tokens_per_s is None else text.TOKENS)(row)
        return text.BOUND(row, name=self.scope.mark(row.label), rate=rate)

    def _describe_phases(self) -> str:
        row = self.trained[0]
        names = text.NAMES if self.training.recompute else {**text.NAMES, "again_s": text.ATTENTION_AGAIN}
        parts = sorted(((getattr(row, field) or 0.0, name) for field, name in names.items()), reverse=True)
        shares = [(part / (row.step_s or 1.0), name) for part, name in parts]
        return text.PHASES(
            name=self.scope.mark(row.label),
            shares=[text.SHARE(phase=name, share=share) for share, name in shares if share >= LEAST_SHARE],
        )

    def _list_refused(self) -> list[str]:
        refused: dict[str, TrainingRow] = {}  # first refusal of each configuration
        for row in self.rows:
            if row.status in (TOO_LARGE, REFUSED):
                refused.setdefault(row.label, row)
        alike: dict[tuple[int, str], list[TrainingRow]] = {}
        for row in refused.values():
            if row.status == TOO_LARGE:
                alike.setdefault((row.batch, row.fits_with or ""), []).append(row)
        large = [text.TOO_LARGE(some[0], names=[self.scope.mark(row.label) for row in some]) for some in alike.values()]
        return [*large, *dict.fromkeys(row.reason for row in refused.values() if row.status == REFUSED)]

    def _list_total(self) -> list[str]:
        row, epochs = self.trained[0], round(self.training.epochs)
        if row.total_s is None:
            return []
        amount = (
            text.ALL_SAMPLES(samples=round(self.training.samples or 0))
            if self.training.epochs == 1.0
            else text.EPOCHS(epochs=epochs)
        )
        trained_j = (row.sample_j or 0.0) * (self.training.samples or 0.0) * self.training.epochs
        pue = (row.total_kwh or 0.0) * J_PER_KWH / trained_j if trained_j else 0.0
        price = row.price_told.partition(", ")[0] + (text.EACH if row.device_count > 1 else "")
        values: dict[str, Any] = {"pue": pue if pue > ANY_OVERHEAD else None, "price": price}
        parts = list(filter(None, (part(row, **values) for part in text.TOTAL_PARTS)))
        return [text.TOTAL(amount=amount, name=self.scope.mark(row.label), parts=parts)]

    def _describe_uncertainty(self) -> str:
        """Return a note that explains the intervals and the measurements behind them."""
        untested = [self.scope.mark(row.label) for row in self.trained if row.latency_basis not in TESTED]
        bounds = [self.scope.mark(row.label) for row in self.trained if row.is_lower_bound]
        has_brackets = any(row.latency_half_width or row.energy_half_width for row in self.trained)
        return "; ".join((
            *([BRACKETS] if has_brackets else []),
            *([text.EVIDENCE] if len(untested) < len(self.trained) else []),
            *([text.UNTESTED(untested=untested)] if untested else []),
            *([text.LOWER(bounds=bounds)] if bounds else []),
        ))  # fmt: skip

    def _select(self, limit: int) -> Table[TrainingRow]:
        refused = tuple(row for row in self.rows if row.status != OK)
        return self.rows.with_rows((*self.trained, *refused)[:limit])

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return the next command to run, which analyzes the energy of the fastest step, as a list of its words."""
        row = self.trained[0]
        assert row.run_id is not None
        values = {"step": self.step_names[row.run_id], "spelled": self.scope.spell(row.hardware)}
        return self._fill_steps((text.ANALYZE,), row, repeated, **values)

    step_names: Mapping[int, str]
    """Run id -> name of the training step as a workload."""
    probability_best: float | None = None
    """Probability that the fastest configuration is faster than the next; None if their errors are not compared."""


def train(
    source: Source,
    model: str,
    settings: Settings = LEARNED,
    *,
    training: Training = TRAINING,
    usage: Usage = USAGE,
    prices: Sequence[Price] = (),
) -> TrainAnswer:
    """Return time, energy, memory and sample cost of a model's training step on each chip.

    The batch of the settings counts samples of all devices. Runs are of one device, with full ledgers; energies of the
    answer are of all devices. A configuration that does not fit is a row with options that would fit. A box stands for
    all of its devices, unless `training` states their number. Raises UnknownNameError for an unknown model or hardware,
    UsageError for invalid settings, ModelError for a model that cannot be trained as traced, UnsupportedError if no
    hardware trains it.
    """
    settings = attrs.evolve(settings, hardware=settings.hardware if is_choice(settings) else HARDWARE)
    select_hardware(attrs.evolve(settings, boundary=BOARD)).check_alike("train")
    settings, alike = open_boxes(settings)
    if alike and training.devices == TRAINING.devices:
        training = attrs.evolve(training, devices=tuple(dict.fromkeys(alike.values())))
    selection = select_hardware(settings)
    steps = list(list_steps(model, training, settings, selection))
    ensure_all(source, [plan for step in steps for plan in step.plans.values()])
    used, pay = read_usage(drop_idle_hours(usage), settings, prices)  # training uses the devices all the time
    paid, _ = price_parameters(prices)
    rows: list[TrainingRow] = []
    names: dict[int, str] = {}
    given = {**used, **paid, **pay}
    for step in steps:
        beside, inner = fetch_other_runs(source, step, given)
        plan = step.plans["last"]
        targets = find_targets(source, plan)  # before `holding_runs`, because it may write hardware
        with holding_runs(source, plan, needs_catalogue=True) as runs:
            found = fetch_steps(runs, given)
            names |= {one.run_id: one.model for one in found.values()}
            rows += form_rows(runs, step, targets, {"last": found, **beside}, inner, training)
            if step is steps[-1]:
                assumptions = fetch(runs.connection, AssumedNumber, **used)
                ids = [row.run_id for row in rows if row.run_id is not None]
                if not ids:
                    raise UnsupportedError(_refuse(rows))
                scope = find_stored_scope(runs.connection, ids)
                chance = _find_chance(runs.connection, _rank(rows))
                chosen = next((one.pay for one in found.values()), "")
    return TrainAnswer(
        scope=widen(scope, selection),
        model=steps[0].model,
        training=training,
        rows=make_table("train", TrainingRow, rows),
        assumptions=assumptions,
        pay=chosen,
        step_names=names,
        probability_best=chance,
    )


def _rank(rows: Iterable[TrainingRow]) -> tuple[TrainingRow, ...]:
    """Return the rows that fit into memory, by descending samples per second."""
    return tuple(sorted((row for row in rows if row.status == OK), key=lambda row: -(row.samples_per_s or 0.0)))


def _find_chance(connection: Connection, ranked: Sequence[TrainingRow]) -> float | None:
    """Return the probability that the first configuration is faster than the second, given the errors of their runs.

    Return None for a single row, and for runs of different steps, whose errors are not compared.
    """
    from joulemap.uncertainty.probability import probability_better

    if len(ranked) < 2:
        return None
    first, second = ranked[:2]
    found = fetch(connection, PairChance, run_ids=[first.run_id, second.run_id], metric="latency")
    width = next((row.half_width for row in found if row.run_id == first.run_id), None)
    ratio = (first.samples_per_s or 0.0) / (second.samples_per_s or math.inf)
    return probability_better(ratio, width) if width and ratio > 0.0 else None


def _refuse(rows: Sequence[TrainingRow]) -> str:
    """Return the reasons why chips do not train the model, and options with which they would."""
    first: dict[str, TrainingRow] = {}
    for row in rows:
        first.setdefault(row.label, row)
    alike: dict[tuple[str, str], list[TrainingRow]] = {}
    for row in first.values():
        if row.status != REFUSED:
            alike.setdefault((row.reason or row.status, row.fits_with or ""), []).append(row)
    large = [
        text.NOTHING(some[0], runs=map(text.REFUSED_RUN, some), why=why.replace("needs", "need") if some[1:] else why)
        for (why, _), some in alike.items()
    ]
    return "; ".join([*large, *dict.fromkeys(row.reason for row in first.values() if row.status == REFUSED)])
