"""Words and tables for training: the decision, the total, the parts of a step, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask import Caveat, Choice, Entry, Facts, Refusal, Share, find_decision
from joulemap.domain import TIE_RATIO
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Figures,
    Grid,
    Page,
    Section,
    Template,
    Text,
    Title,
    compose_runs,
    describe_caveat,
    describe_choices,
    describe_use,
    draw_figure,
    fill_steps,
    lay_columns,
    name_run,
    show_interval,
    show_quantity,
    show_range,
    show_table,
)
from joulemap.wing.train.ask.train import TRAINING, TrainAnswer
from joulemap.wing.train.demand import TOKENS as USUAL_TOKENS
from joulemap.wing.train.generated.row import TrainingRow

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

AT_LEAST: Final = Template("at least {value:s}")
"""Step time that leaves out parts of the step."""

STEP_TIME: Final = "step time"
"""Heading before the picture."""

SHOWN: Final = 20
"""Maximum configurations in a figure."""

ANALYZE: Final = Template("analyze {step} {spelled} --precision {precision} --batch {micro_batch}")
PAID: Final = Template("cost and carbon: {use}; `joulemap cost --show details` lists the other assumptions")

PACE: Final = "[a step takes {step}, ]{most}{rate} {unit}[, {cost} per million samples]."
ALONE: Final = Template(f"{{name}} fits it in {{memory:%}} of its memory[, {{lacking}} does not]: {PACE}")
BEST: Final = Template(f"Use {{name}}, which fills {{memory:%}} of its memory: {PACE}")
AT_MOST: Final = "at most "
PRICED: Final = Template("{head}; a sample costs {ratio:x} {word}")
TOKENS, SAMPLES = "tokens/s", "samples/s"
EPOCHS: Final = Template("{epochs:n epoch}")
ALL_SAMPLES: Final = Template("{samples:n sample}")
TOTAL: Final = Template("{amount} on {name} take {time}[ and use {energy}][, for {cost}]")
MEMORY: Final = Template("memory limits {parts:and}")
PART: Final = Template("{memory_bound:%} of the step on {name} ({bandwidth:B/s})")
UNITS: Final = Template("{parts:and}")
PEAK: Final = Template("{name} reaches {mfu:%} of its peak of {peak:ops/s}")
MOSTLY: Final = 0.5
"""Share of a step's time in kernels limited by memory above which bandwidth explains its speed."""

EXTRA: Final[Mapping[str, Template]] = {
    "exchange_s": Template("communication between devices that computation does not hide takes {share:%} of the step"),
    "optimizer_s": Template("the optimizer, which reads and writes every state, takes {share:%} of the step"),
    "bubble_s": Template("the pipeline bubble idles devices for {share:%} of the step: `--accumulate` shrinks it"),
    "again_s": Template("recomputation takes {share:%} of the step, in exchange for memory"),
}
"""Part of a step beside the forward and backward pass -> line on it."""

LEAST_EXTRA: Final = 0.05
"""Minimum share of such a part that is a cause."""

PHASES: Final[Mapping[str, str]] = {
    "forward_s": "forward",
    "backward_s": "backward",
    "again_s": "recomputation",
    "exchange_s": "communication",
    "optimizer_s": "optimizer",
    "bubble_s": "bubble",
}
"""Part of a step's time -> its name."""
MOST_REFUSED: Final = 2
"""Maximum reasons that the line below the table gives."""


def describe_answer(facts: Facts) -> str:
    """Return the configuration to take by training speed and energy per sample, or the values of the fastest one."""
    if decision := find_decision(facts):
        ratio = _compare(facts, "cost", decision.runs) if len(decision.leads) < 3 else None
        word = "less" if (ratio or 1.0) < 1.0 else "more"
        priced = None if ratio is None else max(ratio, 1.0 / ratio)
        add = [PRICED] if priced is not None and priced > TIE_RATIO else []
        return describe_choices(facts.of(Choice), facts.runs, *add, ratio=priced, word=word)
    if told := next(_describe_total(facts), ""):
        return f"{told}."
    entry = facts.of(Entry)[0]
    values = entry.values
    unit, rate = (TOKENS, values["tokens_per_s"]) if "tokens_per_s" in values else (SAMPLES, values["samples_per_s"])
    is_bound = any(one.kind == "lower_bound" for one in facts.of(Caveat))
    lacking = {name_run(facts.runs[one.run]) for one in facts.of(Caveat) if one.kind == "too_large"}
    return (BEST if len(facts.of(Entry)) > 1 else ALONE)(
        name=name_run(facts.runs[entry.run]),
        memory=values["memory"].value,
        lacking=lacking.pop() if len(lacking) == 1 else "",
        step=show_quantity(values["step"].value, "s") if "step" in values and not is_bound else "",
        most=AT_MOST if is_bound else "",
        rate=show_quantity(rate.value, "").strip(),
        unit=unit,
        cost=show_quantity(values["cost"].value, values["cost"].unit) if "cost" in values else "",
    )


def _compare(facts: Facts, metric: str, runs: Sequence[int]) -> float | None:
    """Return a value of the first of two runs over that of the second; None if one is unknown."""
    first, second = (facts.find_values(one).get(metric) for one in runs)
    return first.value / second.value if first is not None and second is not None else None


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the whole training, on what limits a step, and on its parts beside the two passes."""
    totals = _describe_total(facts) if find_decision(facts) else ()  # otherwise the first line
    return [*totals, _describe_limit(facts), *_describe_extra(facts)][:MOST_WHY]


def describe_refused(facts: Facts) -> str:
    """Return a line on configurations that do not run, below the table; empty if all run."""
    large = [describe_caveat(one, facts.runs) for one in facts.of(Caveat) if one.kind == "too_large"]
    return "; ".join([*large, *dict.fromkeys(one.reason for one in facts.of(Refusal))][:MOST_REFUSED])


def _describe_total(facts: Facts) -> Iterator[str]:
    first = facts.of(Entry)[0]
    values = first.values
    if "total" not in values:
        return
    epochs, samples = round(values["epochs"].value), round(values["samples"].value)
    shown = {name: show_range(values[name]) if name in values else None for name in ("total_energy", "total_cost")}
    yield TOTAL(
        amount=ALL_SAMPLES(samples=samples) if values["epochs"].value == 1.0 else EPOCHS(epochs=epochs),
        name=name_run(facts.runs[first.run]),
        time=show_range(values["total"]),
        energy=shown["total_energy"],
        cost=shown["total_cost"],
    )


def _describe_limit(facts: Facts) -> str:
    """Return the memory bandwidth or the peak that limits the fastest configuration, and its rival."""
    decision = find_decision(facts)
    pair = facts.of(Entry)[0].runs if decision is None else decision.runs
    values = {run: facts.find_values(run) for run in pair}
    is_bound = all("bandwidth" in one and one["memory_bound"].value > MOSTLY for one in values.values())
    part, whole = (PART, MEMORY) if is_bound else (PEAK, UNITS)
    return whole(
        parts=[
            part(name=name_run(facts.runs[run]), **{metric: value.value for metric, value in some.items()})
            for run, some in values.items()
        ]
    )


def _describe_extra(facts: Facts) -> Iterator[str]:
    for one in facts.of(Share):
        if one.name in EXTRA and one.share >= LEAST_EXTRA:
            yield EXTRA[one.name](share=one.share)


def title_step(answer: TrainAnswer) -> Title:
    """Return the title: model, batches, precisions and training settings."""
    training = answer.training
    layers = ", ".join(training.lora_targets) or "query and value"
    is_language = answer.trained[0].tokens_per_s is not None
    values = {
        "name": answer.name,
        "tokens": (training.tokens or USUAL_TOKENS) if is_language else None,
        "batches": [f"{batch:,}" for batch in sorted({row.batch for row in answer.rows})],
        "precisions": list(dict.fromkeys(row.precision for row in answer.rows)),
        "settings": [
            template(training, layers="all linear layers" if training.lora_targets == ("all",) else layers)
            for name, template in NAMED_SETTINGS.items()
            if name == "optimizer" or getattr(training, name) != getattr(TRAINING, name)
        ],
    }
    return Title(form=STEP_TITLE, values=values)


def show_step(row: TrainingRow) -> str:
    """Return the time of a step with its interval, or why there is none."""
    if row.is_lower_bound and row.step_s is not None:
        return AT_LEAST(value=row.step_s)
    return show_interval(row.step_s, "s", row.latency_half_width) or row.status


def add_parts(answer: TrainAnswer, grid: Grid) -> Grid:
    """Return the table with the time per sample by part of the step."""
    rows = answer.ordered.rows[: len(grid.rows)]
    parts = {
        name: [part and part / row.batch for row in rows for part in [getattr(row, field)]]
        for field, name in PHASES.items()
    }
    ranges = (attrs.evolve(one, yields=True) for one in grid.pictures)
    drawn = grid.with_stack(parts, STEP_TIME)
    return attrs.evolve(drawn, pictures=(*drawn.pictures, *ranges))


def draw(answer: TrainAnswer) -> Figures:
    """Return figures of the step time and the device memory by part."""
    rows = answer.ordered.with_rows(answer.ordered.rows[:SHOWN])
    return (draw_figure(answer.scope, "training", rows, title_step(answer), describe_answer(answer.facts)),)


def lay_steps(answer: TrainAnswer, most: int) -> Grid:
    """Return the table of configurations."""
    of, is_language = TrainingRow, answer.trained[0].tokens_per_s is not None
    power = "power per device" if any(row.device_count > 1 for row in answer.rows) else "power"
    columns = (
        of.label,
        of.batch.if_varied,
        of.precision.if_varied,
        of.tokens_per_s.headed(TOKENS).ranking if is_language else of.samples_per_s.headed(SAMPLES).ranking,
        of.sample_j.ranking,
        of.energy_half_width.ends_of(of.sample_j).drawn,
        of.step_s.by(show_step),
        of.utilization_fraction,
        of.device_power_w.headed(power),
        of.memory_fraction,
        of.exchange_seen_fraction.if_any,
        of.usd_per_million,
    )
    keep = (of.batch, of.precision, of.step_s, of.energy_half_width, of.utilization_fraction)
    return lay_columns(answer, answer.ordered, columns, limit=most, noun="configurations", keep=keep)


def list_details(answer: TrainAnswer, most: int) -> Iterator[Section]:
    """Yield the tables of memory, of the parts of a step, and of cost and carbon."""
    of = TrainingRow
    named = (of.label, of.batch.kept)
    memory = (
        of.weight_bytes.kept, of.gradient_bytes.kept, of.state_bytes.kept, of.activation_bytes.kept,
        of.reserved_bytes.kept, of.memory_fraction.kept, of.fits_with.if_any,
    )  # fmt: skip
    yield from show_table(answer, "Memory per device", answer.ordered, (*named, *memory), limit=most)
    times = (
        of.forward_s.kept, of.backward_s.kept, of.again_s.kept, of.exchange_s.kept, of.optimizer_s.kept,
        of.bubble_s.if_any, of.exchange_alone_s.if_any, of.run_id,
    )  # fmt: skip
    yield from show_table(answer, "Time per step", answer.ordered, (*named, *times), limit=most)
    cost = of.usd_per_million.headed("cost per million samples").within(of.usd_half_width).kept
    costs = (
        of.way, cost, of.price_text.if_any, of.gco2_per_million.kept, of.total_s.if_any, of.total_kwh.if_any,
        of.total_usd.if_any, of.total_gco2.if_any,
    )  # fmt: skip
    yield from show_table(answer, "Cost and carbon", answer.ordered, (*named, *costs), limit=most)


def draw_training(answer: TrainAnswer, asked: Asked) -> Document:
    """Return the document of training."""
    most, refused, decision = asked.most(12), describe_refused(answer.facts), find_decision(answer.facts)
    best = answer.trained[0] if decision is None else answer.rows[decision.run - 1]
    assert best.run_id is not None
    table = add_parts(answer, lay_steps(answer, most))
    named = {"step": answer.step_names[best.run_id], "spelled": answer.scope.spell(best.hardware)}
    return compose_runs(
        answer,
        answer.facts,
        [Section("", (table, *([Text(refused)] if refused else [])), is_tight=True)],
        answer.rows,
        title=title_step(answer),
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        details=list_details(answer, most),
        notes=[PAID(use=describe_use(answer.assumptions, answer.pay))],
        steps=fill_steps([ANALYZE], best, asked.repeated, **named),
    )


PAGES: Final = {TrainAnswer: Page[TrainAnswer](draw=draw_training, draw_figures=draw)}
