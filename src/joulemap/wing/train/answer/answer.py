"""Training answer: time, energy and memory of a step on each hardware and number of devices, and total cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.candidate import describe_use, read_usage
from joulemap.answer.computed import make_table
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import find_stored_scope, widen
from joulemap.domain.configuration import BOARD
from joulemap.domain.default import LEARNED, USAGE
from joulemap.domain.settings import Price, Settings, Training, Usage
from joulemap.domain.table import Table
from joulemap.plan.hold import ensure_all, find_targets, holding_runs
from joulemap.plan.selection import is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.present.cell import join_names, show, show_count, show_doubt, show_quantity, show_share
from joulemap.present.document import Document, Section
from joulemap.row.cost import AssumedNumber
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.wing.llm.source import open_boxes
from joulemap.wing.train.answer.demand import list_steps
from joulemap.wing.train.answer.row import OK, PHASES, REFUSED, TOO_LARGE, TrainingRow
from joulemap.wing.train.answer.table import fetch_beside, fetch_steps, form_rows

TRAINING: Final = Training()
"""Default training: one device, AdamW."""

HARDWARE: Final = ("h100_sxm5", "a100_sxm4_80gb", "mi300x")
"""Hardware where none is requested."""

SHOWN: Final = 20
"""Maximum configurations in a figure."""

WORDS: Final[Mapping[str, str]] = {
    "forward_s": "forward",
    "backward_s": "gradients",
    "again_s": "computed again",
    "exchange_s": "exchange",
    "optimizer_s": "optimizer",
}

NOTES: Final = (
    "of peak: model FLOPs utilization (MFU), MACs of forward and backward pass over time and dense peak; masked "
    "and recomputed MACs do not count",
    "gradients are exchanged in buckets while the next ones are computed; a collective takes no compute units from "
    "concurrent products, so the hidden share is optimistic",
    "the loss is a cross-entropy of the model's outputs in single precision; data loading, augmentation, dropout, "
    "gradient clipping and gradient scaling are not counted",
    "each of several devices has an equal part of the batch (data parallel), of each product (tensor parallel, "
    "--tensor-devices) or of the layers (--pipeline-devices): all stages wait for the last, which has the logits; "
    "`waits` is the bubble while the pipeline fills and drains; memory is that of the fullest stage, the first one "
    "with activations of one micro-batch per stage",
)

ADAPTED: Final = (
    "only adapters (LoRA) have gradients and optimizer state; the base is frozen. Each product dequantizes a narrow "
    "base (QLoRA), forward and backward; a separate kernel, as in bitsandbytes, takes longer. ZeRO "
    "shards adapters, not the frozen base"
)
"""Note on adapters."""


@frozen(kw_only=True)
class TrainAnswer(RunAnswer):
    """Training step of a model on several hardware, device counts, precisions and batches."""

    about = ("model", "training", "pay")

    model: str
    training: Training
    rows: Table[TrainingRow]
    """Configurations in the requested order, refused ones included."""
    assumptions: Table[AssumedNumber]
    """Assumptions behind cost and carbon."""
    pay: str
    """Way of paying for chips."""

    @property
    def trained(self) -> tuple[TrainingRow, ...]:
        """Rows that fit, by descending samples per second."""
        return tuple(sorted((row for row in self.rows if row.status == OK), key=lambda row: -(row.samples_per_s or 0)))

    def title(self) -> str:
        """Return the title: model, batches, precisions and training settings."""
        training = self.training
        batches = join_names([f"{batch:,}" for batch in sorted({row.batch for row in self.rows})])
        told = [training.optimizer]
        told += [f"ZeRO {training.zero}"] * bool(training.zero) + ["recomputation"] * training.recompute
        told += self._describe_adapters()
        told += [f"{training.tensor_devices} devices a product"] * (training.tensor_devices > 1)
        told += ["tokens divided over them"] * training.sequence_parallel
        told += [f"{training.pipeline_devices} stages"] * (training.pipeline_devices > 1)
        told += [f"{training.accumulate} small batches"] * (training.accumulate > 1)
        precisions = join_names(list(dict.fromkeys(row.precision for row in self.rows)))
        return f"training {self.model}, batch {batches}, {precisions}, {', '.join(told)}"

    def _describe_adapters(self) -> list[str]:
        """Return the rank and layers of adapters and the format of the base; empty where all weights are trained."""
        training = self.training
        if training.lora is None:
            return []
        layers = ", ".join(training.lora_targets) or "query and value"
        if training.lora_targets == ("all",):
            layers = "all linear layers"
        stored = f"; base {training.quantize.upper()}" if training.quantize else ""
        return [f"LoRA rank {training.lora} on {layers}{stored}"]

    def figures(self) -> Figures:
        """Return figures of the step time and the device memory by part."""
        return (self._draw_figure("training", self._select(SHOWN), self.title(), self._describe_best()),)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` configurations in its tables; exported data has all of them."""
        rows = self._select(len(self.rows))
        is_language = any(row.tokens_per_s for row in rows)
        rate = "*tokens/s ~tokens_per_s" if is_language else "*samples/s ~samples_per_s"
        figures = self._lay(
            rows,
            f"hardware @label | *batch | precision! | *step step_s | *80 % latency_half_width | {rate} | "
            "*of peak utilization_fraction | *J/sample sample_j | power device_power_w | *memory memory_fraction | "
            "not hidden exchange_seen_fraction? | USD/M #usd_per_million",
            limit=limit,
            noun="configurations",
            ranked="tokens/s" if is_language else "samples/s",
            latency_half_width=lambda row: show_doubt(row.latency_half_width) if row.step_s else row.status,
        )
        details = {
            "Memory of one device": self._lay(
                rows,
                "hardware @label | *batch | *weights weight_bytes | *gradients gradient_bytes | "
                "*optimizer state_bytes | *activations activation_bytes | *of it memory_fraction | "
                "would fit with fits_with?",
                limit=limit,
            ),
            "Time of a step": self._lay(
                rows,
                f"hardware @label | *batch | {' | '.join(f'*{WORDS[name]} {name}' for name in PHASES)} | "
                "waits bubble_s? | exchange alone exchange_alone_s? | run run_id",
                limit=limit,
            ),
            "Cost and carbon": self._lay(
                rows,
                "hardware @label | *batch | way | *a million samples usd_per_million | *80 % ±usd_half_width | "
                "price price_told? | *CO2 gco2_per_million | hours in all total_s? | energy in all total_kwh? | "
                "cost in all total_usd? | "
                "CO2 in all total_gco2?",
                limit=limit,
                total_s=lambda row: "" if row.total_s is None else f"{row.total_s / 3600.0:.3g}",
            ),
        }
        return self._compose(
            self.title(),
            (Section("", figures),),
            self.rows,
            answer=self._describe_best(),
            insights=[*self._list_phases(), *self._list_exchange(), *self._list_refused(), *self._list_total()],
            sure=self._describe_uncertainty(),
            details=[Section(title, drawn) for title, drawn in details.items()],
            notes=[
                *NOTES,
                *((ADAPTED,) if self.training.lora else ()),
                f"cost and carbon: {describe_use(self.assumptions, self.pay)}; "
                "`joulemap cost` says what else is assumed",
                *self.scope.describe(),
            ],
            steps=self._steps(repeated),
        )

    def _describe_best(self) -> str:
        """Return the sentence on the fastest configuration."""
        row = self.trained[0]
        rate = self._rate(row)
        verb = "is fastest with" if len(self.trained) > 1 else "takes"
        return (
            f"{self.scope.mark(row.label)} {verb} {show_quantity(row.step_s, 's')} per step of batch {row.batch:,}: "
            f"{rate}, {show_share(row.utilization_fraction)} of its peak, "
            f"{show_quantity(row.sample_j, 'J')} per sample, {show_share(row.memory_fraction)} of its memory"
        )

    def _rate(self, row: TrainingRow) -> str:
        if row.tokens_per_s is not None:
            return f"{show_quantity(row.tokens_per_s, '').strip()} tokens/s"
        return f"{show_quantity(row.samples_per_s, '').strip()} samples/s"

    def _list_phases(self) -> list[str]:
        row = self.trained[0]
        named = {**{name: WORDS[name] for name in PHASES}, "bubble_s": "pipeline bubble"}
        parts = sorted(((getattr(row, name) or 0.0, word) for name, word in named.items()), reverse=True)
        total = row.step_s or 1.0
        told = [f"{word} {show_share(part / total)}" for part, word in parts if part / total >= 0.005]
        return [f"time of a step: {', '.join(told)}"]

    def _list_exchange(self) -> list[str]:
        row = self.trained[0]
        if row.exchange_alone_s is None:
            return []
        return [
            f"communication alone would take {show_quantity(row.exchange_alone_s, 's')}; "
            f"{show_share(row.exchange_seen_fraction)} of it is not hidden behind the backward pass"
        ]

    def _list_refused(self) -> list[str]:
        found: dict[str, str] = {}
        for row in self.rows:
            if row.status == TOO_LARGE:
                would = f"; it fits with {row.fits_with}" if row.fits_with else ""
                found.setdefault(row.label, f"batch {row.batch:,} does not fit {self.scope.mark(row.label)}{would}")
            elif row.status == REFUSED:
                found.setdefault(row.label, row.reason)
        return list(dict.fromkeys(found.values()))

    def _list_total(self) -> list[str]:
        row = self.trained[0]
        if row.total_s is None:
            return []
        epochs = show_count(round(self.training.epochs), "epoch") if self.training.epochs != 1.0 else "all samples"
        told = [f"{row.total_s / 3600.0:,.3g} hours", show(row.total_kwh, "", "kWh")]
        told += [f"{show(row.total_usd, '', 'USD')} {row.way}"] if row.total_usd is not None else []
        told += [f"{show(row.total_gco2, '', 'g')} of CO2"] if row.total_gco2 is not None else []
        return [f"{epochs} on {self.scope.mark(row.label)}: {', '.join(told)}"]

    def _describe_uncertainty(self) -> str:
        widths = {name: sorted(getattr(row, name) for row in self.trained) for name in
                  ("energy_half_width", "latency_half_width")}  # fmt: skip
        spans = [f"{show_doubt(found[-1])} ({name.partition('_')[0]})" for name, found in widths.items() if found]
        return (
            f"80 % of steps should be within {join_names(spans)} of the prediction, estimated from other workloads; "
            "no training is measured"
        )

    def _select(self, limit: int) -> Table[TrainingRow]:
        refused = tuple(row for row in self.rows if row.status != OK)
        return attrs.evolve(self.rows, rows=(*self.trained, *refused)[:limit])

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return a command that analyzes the energy of the fastest step."""
        row = self.trained[0]
        assert row.run_id is not None
        beside = ["--precision", row.precision, "--batch", str(row.micro_batch), *repeated]
        return [["analyze", self.step_names[row.run_id], self.scope.spell(row.hardware), *beside]]

    step_names: Mapping[int, str]
    """Run -> name of its step as a workload."""


def train(
    source: Source,
    model: str,
    settings: Settings = LEARNED,
    *,
    training: Training = TRAINING,
    usage: Usage = USAGE,
    prices: Sequence[Price] = (),
) -> TrainAnswer:
    """Return time, energy, memory and sample cost of a model's training step on each hardware.

    The batch of the settings counts samples of all devices. Runs are of one device, with full ledgers; energies of the
    answer are of all devices. A configuration that does not fit is a row with options that would fit. A box means all
    of its devices, unless `training` states their number. Raises UnknownNameError for an unknown model or hardware,
    UsageError for invalid settings, ModelError for a model that cannot be trained as traced, UnsupportedError where
    nothing trains it.
    """
    settings = attrs.evolve(settings, hardware=settings.hardware if is_choice(settings) else HARDWARE)
    select_hardware(attrs.evolve(settings, boundary=BOARD)).check_alike("train")
    settings, alike = open_boxes(settings)
    if alike and training.devices == TRAINING.devices:
        training = attrs.evolve(training, devices=tuple(dict.fromkeys(alike.values())))
    selection = select_hardware(settings)
    steps = list(list_steps(model, training, settings, selection))
    ensure_all(source, [plan for step in steps for plan in step.plans.values()])
    used, pay = read_usage(usage if usage.utilization else attrs.evolve(usage, utilization=1.0))  # jobs never wait
    paid, _ = price_parameters(prices)
    rows: list[TrainingRow] = []
    names: dict[int, str] = {}
    told = {**used, **paid, **pay}
    for step in steps:
        beside, inner = fetch_beside(source, step, told)
        plan = step.plans["last"]
        targets = find_targets(source, plan)  # before `holding_runs`: it may write hardware
        with holding_runs(source, plan, needs_catalogue=True) as runs:
            found = fetch_steps(runs, told)
            names |= {one.run_id: one.model for one in found.values()}
            rows += form_rows(runs, step, targets, {"last": found, **beside}, inner, training)
            if step is steps[-1]:
                assumptions = fetch(runs.connection, AssumedNumber, **used)
                ids = [row.run_id for row in rows if row.run_id is not None]
                if not ids:
                    raise UnsupportedError(_refuse(rows))
                scope = find_stored_scope(runs.connection, ids)
                chosen = next((one.pay for one in found.values()), "")
    return TrainAnswer(
        scope=widen(scope, selection),
        model=steps[0].model,
        training=training,
        rows=make_table("train", TrainingRow, rows),
        assumptions=assumptions,
        pay=chosen,
        step_names=names,
    )


def _refuse(rows: Sequence[TrainingRow]) -> str:
    """Return the reason why nothing trains the model, and options that would."""
    row = rows[0]
    would = f"; it fits with {row.fits_with}" if row.fits_with else ""
    return f"{row.label}, batch {row.batch:,}: {row.reason or row.status}{would}"
