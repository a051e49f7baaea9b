"""Words for deployments under a request load, and for two pools: the decision and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from joulemap.ask import Choice, Entry, Facts, Limit, Quantity, Share, find_decision
from joulemap.show import (
    MOST_WHY,
    Template,
    describe_choices,
    join_names,
    name_all,
    name_run,
    show_quantity,
    show_range,
)
from joulemap.wing.decoder import ANSWER, PROMPT
from joulemap.wing.llm.show.serving import describe_hits

ALONE: Final = Template("Only {name} keeps up with the arrivals: its p99 TTFT is {tail}, at {energy} per output token.")
OF_ONE: Final = Template("{name} has a p99 TTFT of {tail} and uses {energy} per output token.")
OVERLOADED: Final = Template("No deployment keeps up with {bound}: the best, {name}, serves {value} requests.")
OVERLOADED_ONE: Final = Template("{name} cannot keep up with {bound}: it serves {value} requests.")
ARRIVALS: Final = Template("{rate} arrivals")
POOLS: Final = Template(
    "{prompts} for prefill and {answers} for decode have a p99 TTFT of {tail}, at {energy} per output token."
)
FIRST: Final = Template("{count:n server} of {label}")
SECOND: Final = Template("{count} of {label}")
USED: Final = Template(
    "prefill servers are at {prompts:%} utilization, decode servers at {answers:%}; {first} saturates first"
)
BEHIND: Final = Template("{name} cannot keep up with {bound}; it serves {value}")
BEHIND_ALL: Final = Template("{names} cannot keep up with {bound}; the best of them, {name}, serves {value}")
IDLED: Final = Template("idle time takes {share:%} of the energy[ of {name}]")
POOL: Final[Mapping[str, str]] = {"prompts": PROMPT.name, "answers": ANSWER.name}
OTHER_POOL: Final[Mapping[str, str]] = {"prompts": ANSWER.name, "answers": PROMPT.name}


def describe_answer(facts: Facts) -> str:
    """Return the decision among deployments that keep up, or what the only one reaches."""
    if choices := facts.of(Choice):
        return describe_choices(choices, facts.runs)
    limits, best = facts.of(Limit), list_taken(facts)[0]
    name = name_run(facts.runs[best])
    if limits and limits[0].run == best:
        return (OVERLOADED if len(limits) > 1 else OVERLOADED_ONE)(name=name, **_show_limit(limits[0]))
    return (ALONE if limits else OF_ONE)(name=name, **_show_values(facts.find_values(best)))


def describe_pools(facts: Facts, servers: Sequence[tuple[int, str]]) -> str:
    """Return the servers of both pools with what they reach; `servers` holds (count, server) for prefill and decode."""
    prompts, answers = (
        template(count=count, label=label) for template, (count, label) in zip((FIRST, SECOND), servers, strict=True)
    )
    return POOLS(prompts=prompts, answers=answers, **_show_values(facts.find_values(1)))


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on both pools, the prefix cache, deployments that fall behind, and idle energy."""
    return [*_describe_use(facts), *_describe_hits(facts), *_describe_behind(facts), *_describe_idle(facts)][:MOST_WHY]


def _show_values(values: Mapping[str, Quantity]) -> dict[str, str]:
    tail, energy = values["first_token_p99"], values["energy_per_token"]
    return {"tail": show_quantity(tail.value, tail.unit), "energy": show_quantity(energy.value, energy.unit)}


def _show_limit(limit: Limit) -> dict[str, str]:
    value = "" if limit.value is None else show_range(limit.value)
    return {"bound": ARRIVALS(rate=show_range(limit.bound)), "value": value}


def list_taken(facts: Facts) -> tuple[int, ...]:
    """Return the deployments of the decision, the one to take first, or the only one that keeps up or serves most."""
    if (decision := find_decision(facts)) is not None:
        return decision.runs
    limits = facts.of(Limit)
    behind = {one.run for one in limits}
    kept = (one for one in facts.of(Entry) if one.run not in behind)
    return next(kept, next(iter(limits), facts.of(Entry)[0])).runs[:1]


def _describe_use(facts: Facts) -> Iterator[str]:
    shares = {one.name: one.share for one in facts.of(Share) if one.metric == "utilization"}
    if shares:
        first = max(shares, key=lambda name: shares[name])
        yield USED(**shares, first=POOL[first])


def _describe_hits(facts: Facts) -> Iterator[str]:
    best = list_taken(facts)[0]
    name = name_run(facts.runs[best]) if len(facts.of(Entry)) > 1 else ""
    yield from describe_hits(facts.find_values(best), name)


def _describe_behind(facts: Facts) -> Iterator[str]:
    limits = facts.of(Limit)
    if limits and len(limits) < len(facts.of(Entry)):
        names = name_all(facts.runs, (one.run for one in limits))
        template = BEHIND if len(names) == 1 else BEHIND_ALL
        yield template(names=join_names(names), name=name_run(facts.runs[limits[0].run]), **_show_limit(limits[0]))


def _describe_idle(facts: Facts) -> Iterator[str]:
    best = list_taken(facts)[0]
    for one in facts.of(Share):
        if one.name == "idle" and one.run == best:
            yield IDLED(share=one.share, name=name_run(facts.runs[best]) if len(facts.of(Entry)) > 1 else None)
