"""Words for batches that arrive together: the decision, its reasons, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from joulemap.ask import Caveat, Choice, Entry, Facts, Share, Subject, find_decision
from joulemap.show import (
    MOST_WHY,
    Template,
    describe_caveat,
    describe_choices,
    name_all,
    name_run,
    show_plain,
    show_quantity,
)
from joulemap.wing.decoder import PHASE_NAMES, PROMPT
from joulemap.wing.llm.ask.served import COST

MOST_NAMED: Final = 2
"""Maximum hardware without enough memory that the line below the table names."""

MOST_EXCEPTIONS: Final = 1
"""Maximum exceptions to the most common limit of a phase that a sentence lists."""

BATCH: Final = Template("batch {batch}")
ONE: Final = Template("{name} serves {rate} tokens/s, one every {time} per sequence; decoding takes {energy} each")
ONE_OF_SEVERAL: Final = Template(
    "On {name}, batch {batch} serves most, {rate} tokens/s ({energy} each to decode); batch {other_batch} answers "
    "fastest, {other_time} per token"
)
AT_BATCHES: Final = Template("{head}; batch {fast} for latency, {cheap} for cost")
SHORT: Final = Template("too large: {shortages}[; {more} more]")
LIMITS: Final = Template("prefill is limited by {prefill}, decode by {decode}[; {exceptions:and}][{others}]")
LIMITED_ALIKE: Final = Template("prefill and decode are limited by {decode}[; {exceptions:and}][{others}]")
LIMITED_DECODE: Final = Template("decode is limited by {decode}[; {exceptions:and}][{others}]")
"""Sentence on the limit of decode alone, where no prompt fits in memory as one stored pass."""
OTHERS: Final = " on most (--show details)"
EXCEPTION: Final = Template("{phase} on {names:few} by {bound}")
BOUNDS: Final[Mapping[str, str]] = {
    "memory": "memory bandwidth",
    "operands": "on-chip data movement",
    "launch": "kernel launch overhead",
    "communication": "communication between devices",
    "engine": "engine overhead",
}
"""Limit of a phase -> its name in a sentence, if that differs."""
CHEAPEST: Final = Template("{usd} USD per million output tokens[ on {name}][, {way}]")


def name_batches(facts: Facts) -> dict[int, Subject]:
    """Return the runs of batches; the names have the batch where batches differ."""
    batches = {one.run: round(one.values["batch"].value) for one in facts.of(Entry)}
    if len(set(batches.values())) < 2:
        return dict(facts.runs)
    return {
        key: attrs.evolve(run, settings=(*run.settings, BATCH(batch=batches[key]))) if key in batches else run
        for key, run in facts.runs.items()
    }


def describe_answer(facts: Facts) -> str:
    """Return the decision among chips by energy per token and TPOT, or the values of the only chip."""
    batches = {one.run: round(one.values["batch"].value) for one in facts.of(Entry)}
    if (decision := find_decision(facts)) is not None:
        first, *others = facts.of(Choice)
        names = [name_run(facts.runs[one]) for one in (decision.run, decision.runs[-1 if decision.is_trade else 0])]
        at = {one.metric: one for one in (first, *others[:1])}
        chosen = zip((first, at.get(COST, first)), names, strict=True)
        fast, cheap = (
            next(batches[one] for one in choice.runs if name_run(facts.runs[one]) == name) for choice, name in chosen
        )
        add = [AT_BATCHES] * (fast != cheap)
        return describe_choices(facts.of(Choice), facts.runs, *add, fast=fast, cheap=cheap)
    entries = facts.of(Entry)
    most = max(entries, key=lambda one: one.values["tokens_per_s"].value)
    fastest = min(entries, key=lambda one: one.values["time_per_token"].value)
    given = {"name": name_run(facts.runs[most.run]), **show_values(most)}
    if most is fastest:
        return ONE(**given) + "."
    other = {"other_batch": batches[fastest.run], "other_time": show_values(fastest)["time"]}
    return ONE_OF_SEVERAL(batch=batches[most.run], **other, **given) + "."


def show_values(entry: Entry) -> dict[str, str]:
    """Return the tokens per second, the energy per token and the time per token of a configuration."""
    rate, energy, time = (entry.values[name] for name in ("tokens_per_s", "decode_energy_per_token", "time_per_token"))
    return {
        "rate": show_quantity(rate.value, "").strip(),
        "energy": show_quantity(energy.value, energy.unit),
        "time": show_quantity(time.value, time.unit),
    }


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the limit of each phase, and on the lowest cost."""
    return [*_describe_division(facts), *_describe_limits(facts), *_describe_cost(facts)][:MOST_WHY]


def _describe_division(facts: Facts) -> Iterator[str]:
    """Yield why the hardware that leads, or the only one, takes several devices."""
    choices = facts.of(Choice)
    (first, *_) = choices[0].runs if choices else facts.of(Entry)[0].runs
    leader = facts.runs[first].hardware
    bare = {key: attrs.evolve(run, settings=()) for key, run in facts.runs.items() if run.hardware == leader}
    for one in facts.of(Caveat):
        if one.kind == "divided" and (own := [key for key in one.runs if key in bare]):
            yield describe_caveat(attrs.evolve(one, runs=tuple(own)), bare)


def describe_shortage(facts: Facts) -> str:
    """Return a line on hardware whose memory holds no batch, or only smaller ones; empty if all fit."""
    shortages = [describe_caveat(one, facts.runs) for one in facts.of(Caveat) if one.kind == "memory"]
    more = len(shortages) - MOST_NAMED
    named = shortages[:MOST_NAMED] if more > 1 else shortages
    return SHORT(shortages="; ".join(named), more=more if more > 1 else None) if shortages else ""


def _describe_limits(facts: Facts) -> Iterator[str]:
    """Yield a sentence on the limit of each phase on most configurations, and on the exceptions."""
    runs = name_batches(facts)
    usual, exceptions = dict[str, str](), list[str]()
    for phase in PHASE_NAMES:
        shares = [one for one in facts.of(Share) if one.within == phase]
        if not shares:
            continue
        ((usual[phase], _),) = Counter(one.name for one in shares).most_common(1)
        for bound in dict.fromkeys(one.name for one in shares if one.name != usual[phase]):
            own = name_all(facts.runs, (one.run for one in shares if one.name == bound))
            rest = name_all(facts.runs, (one.run for one in shares if one.name != bound))
            is_whole = not set(own) & set(rest)
            names = own if is_whole else name_all(runs, (one.run for one in shares if one.name == bound))
            exceptions.append(EXCEPTION(phase=phase, names=names, bound=_spell_bound(bound)))
    words = {phase: _spell_bound(bound) for phase, bound in usual.items()}
    if not words:
        return
    is_alike = len(usual) > 1 and len(set(words.values())) == 1
    has_few = len(exceptions) <= MOST_EXCEPTIONS
    template = LIMITED_ALIKE if is_alike else LIMITS if PROMPT.name in usual else LIMITED_DECODE
    yield template(**words, exceptions=exceptions if has_few else None, others="" if has_few else OTHERS)


def _describe_cost(facts: Facts) -> Iterator[str]:
    """Yield the lowest cost per million tokens, among several chips or of the only one."""
    runs = name_batches(facts)
    ways = {key: one.values["way"] for one in facts.of(Caveat) if one.kind == "price" for key in one.runs}
    priced = [one for one in facts.of(Entry) if COST in one.values]
    if priced:
        best = min(priced, key=lambda one: one.values[COST].value)
        name = name_run(runs[best.run]) if len(facts.of(Entry)) > 1 else None
        yield CHEAPEST(usd=show_plain(best.values[COST].value), name=name, way=ways.get(best.run))


def _spell_bound(bound: str) -> str:
    """Return the limit of a phase as a sentence names it."""
    return BOUNDS.get(bound, bound)
