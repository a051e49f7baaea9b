"""Page of this machine: what it runs, how fast, and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Final

import attrs

from joulemap.ask import Choice, Entry, Facts, Limit, Quantity, Refusal, Subject
from joulemap.domain import Table, make_table
from joulemap.show import (
    Asked,
    Document,
    Grid,
    Page,
    Section,
    Template,
    Text,
    compose,
    describe_choice,
    join_names,
    lay_columns,
    list_facts,
    show_chance,
    show_ends,
    show_interval,
    show_plain,
    show_quantity,
    show_table,
)
from joulemap.wing.here.ask.here import HereAnswer
from joulemap.wing.here.generated.row import DeviceRow, RunHere, ServedHere
from joulemap.wing.here.match import CPU
from joulemap.wing.llm.serve import READING_RATE

LARGEST: Final = Template("Run {model}[ on {name}]: {rate}, above reading speed ({least}).")
UNSURE: Final = Template(
    "Run {model}[ on {name}]: {rate}, {chance} likely to reach reading speed[; {sure} surely does]."
)
"""`LARGEST` where the range of the rate includes slower ones."""

SLOW: Final = Template("Run {model}[ on {name}], the fastest: {rate}; no model reaches reading speed ({least}).")
SLOWER: Final = Template("below reading speed: {models:few}")
MODEL_RATE: Final = Template("{model} {tokens_per_s:~}")
LEAST_SHOWN: Final = 4
"""Minimum models in the table, slower ones included."""

READING: Final = "┊ reading, 5/s"
"""Key of the mark in the picture of speeds."""
BEST: Final = Template(
    "Run {model} with {weights} weights[ on {name}]: {rate}[ and {energy} per token]"
    "[; {fastest} reaches {most} tokens/s]."
)
ONLY: Final = Template("Expect {latency} and {energy} per {unit} from {name}.")
FASTEST: Final = Template("Use {name}: {latency} and {energy} per {unit}[; it {lead}].")
INFERENCE: Final = "inference"
BATCH: Final = Template("batch of {batch}")
NOTHING: Final = Template("{model} runs on no chip of this machine.")
NOTHING_FITS: Final = "None of the listed language models fits."
NO_DEVICE: Final = "No chip of this machine can be predicted."
TOO_LARGE: Final = Template("too large: {models:few}")
REASON: Final = Template("[{weights} on ]{name} {reason}")
MOST_REASONS: Final = 3
"""Maximum chips whose refusals the line below the table explains."""
HERE_TITLE: Final = Template("This machine: {parts:and}[, {memory}][; {asked:list}]")
TITLE_OF_MODEL: Final = Template("{model} on this machine: {parts:and}[, {memory}][; {asked:list}]")
LENGTHS: Final = Template("prompt {prompt:#}")
OUTPUT_LENGTH: Final = Template("output {output:#}")
RATE: Final = "tokens/s"
MODEL: Final = "model"
WEIGHTS: Final = "weights"
WITH_CPU: Final = Template("{device}+CPU")
SAME: Final = "="
"""Sign of the column of chips; if the machine has one chip, the subject names it and the column is dropped (`!`)."""

RUN: Final = Template("{models}, batch {batch}, {precision}")
NO_CHIP: Final = "no chip that joulemap knows"
ENGINE_NAME: Final = "llama.cpp"


def describe_answer(facts: Facts, model: str, batch: int) -> str:
    """Return the largest model that is read as it comes, or the best chip for one model."""
    choices = facts.of(Choice)
    if not choices:
        if not facts.runs:
            return NO_DEVICE
        return NOTHING(model=model) if model else NOTHING_FITS
    first = choices[0]
    run = facts.runs[first.run]
    name = run.hardware if len({one.hardware for one in facts.runs.values()}) > 1 else None
    if first.metric == "largest_model":
        (limit,), sure = facts.of(Limit), next(iter(choices[1:]), None)
        slowest = first.value.value * math.exp(-(first.value.half_width or 0.0))
        template = SLOW if limit.miss else LARGEST if slowest >= limit.bound.value else UNSURE
        return template(
            model=run.settings[0],
            name=name,
            rate=show_rate(attrs.evolve(first.value, half_width=None) if template is UNSURE else first.value),
            least=show_plain(limit.bound.value),
            chance=show_chance(first.probability),
            sure=None if sure is None else facts.runs[sure.run].settings[0],
        )
    values = facts.find_values(first.run)
    energy = values.get("energy_per_token", values.get("energy"))
    given = {"name": run.hardware, "model": model, "energy": None if energy is None else _show(energy)}
    if first.metric == "latency":
        unit = INFERENCE if batch == 1 else BATCH(batch=batch)
        if len(first.runs) == 1:
            return ONLY(unit=unit, latency=show_interval(first.value.value, "s", first.value.half_width), **given)
        given["latency"] = _show(first.value)
        return FASTEST(unit=unit, lead=describe_choice(first, _bare(facts)), **given)
    other = next((one for one in choices if one.metric == "fastest"), None)
    most = None if other is None else show_quantity(other.value.value, "").strip()
    fastest = None if other is None else facts.runs[other.run].settings[1]
    given |= {"name": name, "rate": show_rate(first.value), "weights": run.settings[1]}
    return BEST(fastest=fastest, most=most, **given)


def describe_refused(facts: Facts) -> str:
    """Return a line on what does not fit, below the table; empty if everything runs."""
    refused = {key: one.reason for one in facts.of(Refusal) for key in one.runs}
    running = {facts.runs[one.run].settings[0] for one in facts.of(Entry) if one.run not in refused}
    models = dict.fromkeys(facts.runs[key].settings[0] for key in refused)
    large = [one for one in models if one not in running]
    if len({run.settings[0] for run in facts.runs.values()}) > 1:
        return TOO_LARGE(models=large) if large else ""
    last: dict[str, str] = {}
    for key, reason in refused.items():
        run = facts.runs[key]
        weights = run.settings[1] if len(run.settings) > 1 else None
        # the reason of another model names the chip
        last[run.hardware] = REASON(weights=weights, name=run.hardware, reason=reason) if weights else reason
    return "; ".join([*last.values()][:MOST_REASONS])


def show_rate(value: Quantity) -> str:
    """Return tokens per second with their interval."""
    ends = show_interval(value.value, "", value.half_width)
    number = show_quantity(value.value, "").strip()
    return f"{number} tokens/s{ends[len(number) :]}"


def _show(value: Quantity) -> str:
    return show_quantity(value.value, value.unit)


def _bare(facts: Facts) -> dict[int, Subject]:
    """Return the runs with the names of their chips alone."""
    return {key: Subject(hardware=run.hardware) for key, run in facts.runs.items()}


def _rank_fastest(rows: Iterable[ServedHere]) -> list[ServedHere]:
    """Return the fastest row of each model, fastest first."""
    fastest: dict[str, ServedHere] = {}
    for row in sorted(rows, key=lambda row: -(row.tokens_per_s or 0.0)):
        fastest.setdefault(row.model, row)
    return [*fastest.values()]


def _keep_fluent(rows: Iterable[ServedHere]) -> list[ServedHere]:
    """Return the fastest row of each model that reaches reading speed, or of the fastest models if few do."""
    ranked = _rank_fastest(rows)
    return ranked[: max(LEAST_SHOWN, sum((row.tokens_per_s or 0.0) >= READING_RATE for row in ranked))]


def describe_slower(answer: HereAnswer) -> str:
    """Return a line on the models below reading speed, that the table leaves out; empty for a named model."""
    running = [row for row in answer.served if row.tokens_per_s]
    shown = _keep_fluent(running)
    slower = [MODEL_RATE(row) for row in _rank_fastest(running) if row not in shown]
    return SLOWER(models=slower) if slower and not answer.model else ""


def _show_rate(row: ServedHere) -> str:
    """Return the tokens per second of a row, without a unit."""
    return "" if row.tokens_per_s is None else show_quantity(row.tokens_per_s, "")


def _show_range(row: ServedHere) -> str:
    """Return the ends of the interval of the tokens per second."""
    return show_ends(row.tokens_per_s, "", row.between_half_width)


def lay_runs(answer: HereAnswer, table: Table[RunHere]) -> Grid:
    """Return the table of models other than language models."""
    of = RunHere
    keep = (of.model, of.latency_s, of.energy_j, of.latency_half_width, of.reason)
    return lay_columns(answer, table, of.table, keep=keep)


def lay_served(answer: HereAnswer, limit: int) -> Grid:
    """Return the table of language models that run: of one model, or the popular models near the decision."""
    running = [row for row in answer.served if row.tokens_per_s]
    rows = running if answer.model else _keep_fluent(running)
    best = next((answer.served[one.run - 1] for one in answer.facts.of(Choice)), None)
    begin = max(0, next((index for index, row in enumerate(rows) if row is best), 0) + 1 - limit)
    window = rows[begin : begin + limit]
    of, is_one = ServedHere, bool(answer.model)
    label = of.label.by(partial(_shorten, answer))
    columns = (
        None if is_one else of.model,
        of.weights.or_common,
        label.or_common if len(answer.parts) > 1 else label.if_varied,
        of.fits.if_varied,
        of.tokens_per_s.by(_show_rate).ranking.drawn,
        of.between_half_width.by(_show_range) if is_one else None,
        of.output_token_j.ranking,
        of.first_token_s,
        of.power_w.or_common,
        of.context_tokens.or_common if is_one else None,
        of.usd_per_million,
        of.memory_fraction,
    )
    keep = (of.label, of.weights, of.between_half_width, of.first_token_s)
    laid = lay_columns(answer, make_table("here", of, window), columns, keep=keep)
    places = [index for index, row in enumerate(window) if row is best]
    chosen = WEIGHTS if WEIGHTS in laid.headings else RATE  # precise weights win over faster ones
    (marked_column,) = (at for at, one in enumerate(laid.headings) if one == (chosen if answer.model else MODEL))
    marked = frozenset((index, marked_column) for index in places if len(window) > 1)
    speeds = [attrs.evolve(one, mark=READING_RATE, heading=READING) for one in laid.pictures]
    drawn = attrs.evolve(laid, best=marked, pictures=tuple(speeds))
    return drawn.out_of(len(rows), len(window), "rows" if answer.model else "models")


def _shorten(answer: HereAnswer, row: ServedHere) -> str:
    """Return the chips of a row; the only processor of the machine takes no name beside a GPU."""
    has_one = sum(one.kind == CPU for one in answer.devices) == 1
    return WITH_CPU(device=row.cards) if row.cards and has_one else row.label


def lay_every(answer: HereAnswer) -> list[Section]:
    """Return the section of language models on every chip."""
    of = ServedHere
    columns = (
        of.model.kept,
        of.weights,
        of.label.kept,
        of.fits.kept,
        of.context_tokens,
        of.first_token_s.within(of.first_token_half_width),
        of.tokens_per_s.by(_show_rate).kept,
        of.power_w.kept,
        of.output_token_j.within(of.output_token_half_width),
        of.memory_fraction,
        of.reason.if_any,
    )
    return show_table(answer, "Language models on every chip", answer.every, columns)


def draw_here(answer: HereAnswer, asked: Asked) -> Document:
    """Return the document of this machine."""
    batch = (answer.runs[0].batch or 1) if answer.runs else 1
    grid = None
    if answer.shown:
        grid = lay_served(answer, asked.most(6)) if answer.served else lay_runs(answer, answer.runs)
    said = [LENGTHS(answer), OUTPUT_LENGTH(answer), ENGINE_NAME] if answer.served else []
    title = (TITLE_OF_MODEL if answer.model else HERE_TITLE)(
        answer,
        parts=list(answer.parts) or [NO_CHIP],
        memory=answer.memory or None,
        asked=[*said, *(grid.common if grid is not None else ())],
    )
    lines = [Text(line) for line in (describe_slower(answer), describe_refused(answer.facts)) if line]
    precisions = join_names(list(dict.fromkeys(row.precision for row in answer.runs)))
    others = RUN(models="Other models", batch=batch, precision=precisions)
    document = compose(
        answer,
        [Section("", (grid, *lines), is_tight=True)] if grid is not None else [],
        answer.main,
        title=title,
        headline=describe_answer(answer.facts, answer.model, batch),
        details=[
            *show_table(answer, "Chips", answer.devices, DeviceRow.table, noun="chips"),
            *lay_every(answer),
            *([Section(others, lay_runs(answer, answer.others))] if answer.others else []),
        ],
        notes=(*answer.gaps, *answer.assumptions),
        facts=answer.facts,
    )
    told = list_facts(answer.facts)
    data = {
        "answer": document.answer,
        "how_sure": document.sure,
        **answer.data(),
        "asked": told["asked"],
        "facts": told["facts"],
        "configurations": told["runs"],  # `runs` is a table
        "notes": answer.assumptions,
        "next_steps": answer.checks,
    }
    return attrs.evolve(document, data=data, steps=tuple(answer.checks))


PAGES: Final = {HereAnswer: Page[HereAnswer](draw=draw_here)}
