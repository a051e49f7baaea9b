"""Training answer: time, energy and memory of a step on each chip and number of devices, and total cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.candidate import drop_idle_hours, read_usage
from joulemap.ask.fact import Facts
from joulemap.ask.price import price_parameters
from joulemap.ask.scope import Scope
from joulemap.domain.computed import make_table
from joulemap.domain.default import LEARNED, USAGE
from joulemap.domain.settings import Price, Settings, Usage
from joulemap.domain.table import Table
from joulemap.generated.compare import PairChance
from joulemap.generated.cost import AssumedNumber
from joulemap.physics.record.configuration import BOARD
from joulemap.plan.selection import is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import ensure_all, find_targets, opening_runs
from joulemap.show.candidate import describe_use
from joulemap.show.page import Figures
from joulemap.show.present.cell import show_interval
from joulemap.show.present.document import Document, Section, Text, show_under
from joulemap.show.present.template import Template
from joulemap.show.title import Title
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.wing.llm.serve import open_boxes
from joulemap.wing.train.answer.demand import TOKENS, list_steps
from joulemap.wing.train.answer.row import OK, REFUSED, TrainingRow
from joulemap.wing.train.answer.table import fetch_other_runs, fetch_steps, form_rows
from joulemap.wing.train.ask import SAMPLE, SPEED, find_facts, find_pairs, rank
from joulemap.wing.train.setting import Training
from joulemap.wing.train.show import EACH, NOTHING, PAID, REFUSED_RUN, describe_answer, describe_refused, list_reasons

STEP_TITLE: Final = Template(
    "training {name}[, {tokens:#} tokens per sequence], batch {batches:and}, {precisions:and}, {settings:list}"
)
NAMED_SETTINGS: Final[Mapping[str, Template]] = {
    "optimizer": Template("{optimizer}"),
    "zero": Template("ZeRO {zero}"),
    "recompute": Template("recomputation"),
    "lora": Template("LoRA rank {lora} on {layers}"),
    "quantize": Template("{quantize} base"),
    "tensor_devices": Template("{tensor_devices} tensor-parallel devices"),
    "sequence_parallel": Template("sequence parallel"),
    "pipeline_devices": Template("{pipeline_devices} stages"),
    "accumulate": Template("{accumulate} micro-batches"),
}
"""Setting of training -> its text in a title; of settings with default values, only the optimizer is named."""

COLUMNS: Final = Template(
    "hardware @label | batch batch! | precision! | {unit} ~{rate} | energy per sample sample_j | "
    "range -sample_j:energy_half_width | step time step_s | MFU utilization_fraction | {power} device_power_w | "
    "memory share memory_fraction | exposed share of communication exchange_seen_fraction? | "
    "USD per million samples #usd_per_million"
)
SAMPLE_HEADING: Final = "energy per sample"
AT_LEAST: Final = Template("at least {value:s}")
"""Step time that leaves out parts of the step."""

MEMORY_TITLE: Final = "Memory per device"
MEMORY_COLUMNS: Final = (
    "hardware @label | *batch | *weights weight_bytes | *gradients gradient_bytes | *optimizer state state_bytes | "
    "*activations activation_bytes | *process reserved_bytes | *memory share memory_fraction | fits with fits_with?"
)
TIME_TITLE: Final = "Time per step"
TIME_COLUMNS: Final = (
    "hardware @label | *batch | *forward forward_s | *backward backward_s | *recomputation again_s | "
    "*exposed communication exchange_s | *optimizer optimizer_s | pipeline bubble bubble_s? | "
    "communication without overlap exchange_alone_s? | run run_id"
)
COST_TITLE: Final = "Cost and carbon"
COST_COLUMNS: Final = (
    "hardware @label | *batch | payment way | *cost per million samples usd_per_million:usd_half_width | "
    "price price_text? | *CO2 per million samples gco2_per_million | total time total_s? | total energy total_kwh? | "
    "total cost total_usd? | total CO2 total_gco2?"
)
ANALYZE: Final = Template("analyze {step} {spelled} --precision {precision} --batch {micro_batch}")

TRAINING: Final = Training()
"""Default training: one device, AdamW."""

HARDWARE: Final = ("h100_sxm5", "a100_sxm4_80gb", "mi300x")
"""Default hardware of a training question."""

SHOWN: Final = 20
"""Maximum configurations in a figure."""


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
        return rank(self.rows.rows)

    def title(self) -> Title:
        """Return the title: model, batches, precisions and training settings."""
        training = self.training
        layers = ", ".join(training.lora_targets) or "query and value"
        words = {"layers": "all linear layers" if training.lora_targets == ("all",) else layers}
        is_language = self.trained[0].tokens_per_s is not None
        values = {
            "name": self.model.partition("(")[0] if is_language else self.model,
            "tokens": (training.tokens or TOKENS) if is_language else None,
            "batches": [f"{batch:,}" for batch in sorted({row.batch for row in self.rows})],
            "precisions": list(dict.fromkeys(row.precision for row in self.rows)),
            "settings": [
                template(training, **words)
                for name, template in NAMED_SETTINGS.items()
                if name == "optimizer" or getattr(training, name) != getattr(TRAINING, name)
            ],
        }
        return Title(form=STEP_TITLE, values=values)

    def figures(self) -> Figures:
        """Return figures of the step time and the device memory by part."""
        return (self._draw_figure("training", self._select(SHOWN), self.title(), describe_answer(self.facts)),)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` configurations in its tables; exported data has all of them."""
        rows, best = self._select(len(self.rows)), self.trained[0]
        unit, rate = ("samples/s", "samples_per_s") if best.tokens_per_s is None else ("tokens/s", "tokens_per_s")
        power = "power per device" if any(row.device_count > 1 for row in self.rows) else "power"
        figures = self._lay(
            rows,
            COLUMNS(unit=unit, rate=rate, power=power),
            limit=limit,
            noun="configurations",
            ranked=f"{unit} | {SAMPLE_HEADING}",
            keep="batch | precision | step time | range | MFU",
            pictures="range",
            step_s=lambda row: (
                AT_LEAST(value=row.step_s)
                if row.is_lower_bound and row.step_s is not None
                else show_interval(row.step_s, "s", row.latency_half_width) or row.status
            ),
        )
        details = {MEMORY_TITLE: MEMORY_COLUMNS, TIME_TITLE: TIME_COLUMNS, COST_TITLE: COST_COLUMNS}
        refused = describe_refused(self.facts)
        return self._compose_facts(
            self.facts,
            (show_under("", figures, *([Text(refused)] if refused else [])),),
            self.rows,
            title=attrs.evolve(self.title(), about=", ".join(figures.common)),
            answer=describe_answer(self.facts),
            reasons=list_reasons(self.facts),
            details=[Section(title, self._lay(rows, columns, limit=limit)) for title, columns in details.items()],
            notes=[PAID(use=describe_use(self.assumptions, self.pay))],
            steps=self._list_steps(repeated),
        )

    def _select(self, limit: int) -> Table[TrainingRow]:
        refused = tuple(row for row in self.rows if row.status != OK)
        return self.rows.with_rows((*self.trained, *refused)[:limit])

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return the next command to run, which analyzes the energy of the fastest step, as a list of its words."""
        row = self.trained[0]
        assert row.run_id is not None
        values = {"step": self.step_names[row.run_id], "spelled": self.scope.spell(row.hardware)}
        return self._fill_steps((ANALYZE,), row, repeated, **values)

    facts: Facts
    """Decision, parts of a step, rows and caveats, from which all sentences are made."""
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
        targets = find_targets(source, plan)  # before `opening_runs`, because it may write hardware
        with opening_runs(source, plan, needs_catalogue=True) as runs:
            fetched = fetch_steps(runs, given)
            names |= {one.run_id: one.model for one in fetched.values()}
            rows += form_rows(runs, step, targets, {"last": fetched, **beside}, inner, training)
            if step is steps[-1]:
                assumptions = fetch(runs.connection, AssumedNumber, **used)
                ids = [row.run_id for row in rows if row.run_id is not None]
                if not ids:
                    raise UnsupportedError(_refuse(rows), code="no_training", model=model)
                scope = Scope.of_plan(plan, runs.connection, ids)
                chance = _find_chance(runs.connection, rank(rows)[:2], SPEED)
                pairs = find_pairs(rows)
                chances = {metric: _find_chance(runs.connection, pair, metric) for metric, pair in pairs.items()}
                facts = find_facts(scope, rows, training, chances)
                scope.read()
                chosen = next((one.pay for one in fetched.values()), "")
    return TrainAnswer(
        scope=scope,
        model=steps[0].model,
        training=training,
        rows=make_table("train", TrainingRow, rows),
        assumptions=assumptions,
        pay=chosen,
        facts=facts,
        step_names=names,
        probability_best=chance,
    )


def _find_chance(connection: Connection, ranked: Sequence[TrainingRow], metric: str) -> float | None:
    """Return the probability that the first configuration is better than the second, given the errors of their runs.

    Return None for a single row, and for runs of different steps, whose errors are not compared.
    """
    from joulemap.physics.interval.probability import probability_better

    if len(ranked) < 2:
        return None
    first, second = ranked
    error = "energy_per_inference" if metric == SAMPLE else "latency"
    chances = fetch(connection, PairChance, run_ids=[first.run_id, second.run_id], metric=error)
    width = next((row.half_width for row in chances if row.run_id == first.run_id), None)
    ratio = (first.samples_per_s or 0.0) / (second.samples_per_s or math.inf)
    if metric == SAMPLE:
        ratio = (second.sample_j or 0.0) / (first.sample_j or math.inf)
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
        (EACH if some[1:] else NOTHING)(some[0], runs=map(REFUSED_RUN, some), why=why)
        for (why, _), some in alike.items()
    ]
    return "; ".join([*large, *dict.fromkeys(row.reason for row in first.values() if row.status == REFUSED)])
