"""Words for batches that arrive together: the decision, its reasons, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from joulemap.ask import Caveat, Choice, Entry, Facts, Quantity, Share, Subject
from joulemap.show import (
    MOST_WHY,
    Template,
    describe_caveat,
    describe_choice,
    describe_choices,
    name_all,
    name_run,
    show_plain,
    show_quantity,
)
from joulemap.wing.llm.phase import PHASE_NAMES, PROMPT

MOST_NAMED: Final = 2
"""Maximum hardware without enough memory that the line below the table names."""

MOST_EXCEPTIONS: Final = 1
"""Maximum exceptions to the most common limit of a phase that a sentence lists."""

BATCH: Final = Template("batch {batch}")
ONE: Final = Template(
    "{name} serves {rate} tokens/s[ with batch {batch}][ ({other_rate} with batch {other_batch})]; "
    "decoding takes {energy} per token"
)
SHORT: Final = Template("not enough memory: {shortages}[; {more} more]")
LIMITS: Final = Template("prefill is limited by {prefill}, decode by {decode}[; {exceptions:and}][{others}]")
LIMITED_ALIKE: Final = Template("prefill and decode are limited by {decode}[; {exceptions:and}][{others}]")
LIMITED_DECODE: Final = Template("decode is limited by {decode}[; {exceptions:and}][{others}]")
"""Sentence on the limit of decode alone, where no prompt fits in memory as one stored pass."""
OTHERS: Final = " on most (--details)"
EXCEPTION: Final = Template("{phase} on {names:few} by {bound}")
BOUNDS: Final[Mapping[str, str]] = {
    "memory": "memory bandwidth",
    "operands": "on-chip data movement",
    "launch": "kernel launch overhead",
    "communication": "communication between devices",
    "engine": "engine overhead",
}
"""Limit of a phase -> its name in a sentence, if that differs."""
COST: Final = Template("{name} {clause}: {usd} USD per million output tokens[, {way}]")
COST_OF_ONE: Final = Template("{usd} USD per million output tokens[ at batch {batch}][, {way}]")


def name_batches(facts: Facts) -> dict[int, Subject]:
    """Return the runs of batches; the names have the batch where batches differ."""
    batches = {one.runs[0]: round(one.values["batch"].value) for one in facts.of(Entry)}
    if len(set(batches.values())) < 2:
        return dict(facts.runs)
    return {
        key: attrs.evolve(run, settings=(*run.settings, BATCH(batch=batches[key]))) if key in batches else run
        for key, run in facts.runs.items()
    }


def describe_answer(facts: Facts) -> str:
    """Return the decision among chips by energy per token and TPOT, or the values of the only chip."""
    if choices := facts.of(Choice):
        return describe_choices(choices[:2], name_rivals(facts, choices[0].runs[0]))
    first, *others = facts.of(Entry)
    last = others[-1] if others else first
    values = show_values(last)
    batch, other = (round(one.values["batch"].value) if others else None for one in (last, first))
    rate = show_values(first)["rate"] if others else None
    name = name_run(facts.runs[last.runs[0]])
    return ONE(name=name, batch=batch, other_rate=rate, other_batch=other, **values) + "."


def name_rivals(facts: Facts, winner: int) -> dict[int, Subject]:
    """Return the runs by name, where those at another batch size than the winner's keep their settings.

    A sentence drops a rival's settings, which are otherwise the winner's. The batch size alone may make the winner.
    """
    batches = {one.runs[0]: one.values["batch"].value for one in facts.of(Entry)}
    unlike = {key for key, batch in batches.items() if batch != batches[winner]}
    return {
        key: attrs.evolve(run, hardware=" ".join((run.hardware, *run.settings)), settings=()) if key in unlike else run
        for key, run in name_batches(facts).items()
    }


def show_values(entry: Entry) -> dict[str, str]:
    """Return the tokens per second and the energy per token of a configuration."""
    rate, energy = entry.values["tokens_per_s"], entry.values["decode_energy_per_token"]
    return {"rate": show_quantity(rate.value, "").strip(), "energy": show_quantity(energy.value, energy.unit)}


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
        shares = [one for one in facts.of(Share) if one.metric == phase]
        if not shares:
            continue
        ((usual[phase], _),) = Counter(one.name for one in shares).most_common(1)
        for bound in dict.fromkeys(one.name for one in shares if one.name != usual[phase]):
            own = name_all(facts.runs, (one.runs[0] for one in shares if one.name == bound))
            rest = name_all(facts.runs, (one.runs[0] for one in shares if one.name != bound))
            is_whole = not set(own) & set(rest)
            names = own if is_whole else name_all(runs, (one.runs[0] for one in shares if one.name == bound))
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
    choice = next((one for one in facts.of(Choice) if one.metric == "usd_per_million"), None)
    if choice is not None:
        usd = _show_usd(choice.value)
        way = ways.get(choice.runs[0])
        yield COST(name=name_run(runs[choice.runs[0]]), clause=describe_choice(choice, runs), usd=usd, way=way)
        return
    priced = [one for one in facts.of(Entry) if "usd_per_million" in one.values]
    if priced:
        best = min(priced, key=lambda one: one.values["usd_per_million"].value)
        batch = round(best.values["batch"].value) if len(facts.of(Entry)) > 1 else None
        usd = _show_usd(best.values["usd_per_million"])
        yield COST_OF_ONE(usd=usd, batch=batch, way=ways.get(best.runs[0]))


def _show_usd(value: Quantity) -> str:
    return show_plain(value.value)


def _spell_bound(bound: str) -> str:
    """Return the limit of a phase as a sentence names it."""
    return BOUNDS.get(bound, bound)
