"""Words for deployments that serve a number of users: the decision and its alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity
from joulemap.present.cell import join_names, show_chance, show_plain, show_quantity
from joulemap.present.template import Template
from joulemap.show.choice import MOST_WHY, MOST_WORDS, name_metric
from joulemap.wing.llm.show.hit import describe_hits

KEPT: Final = Template(
    "{servers} {verb} the target[ ({chance} sure)] at the lowest {noun}: {value}[ and {energy}] per million tokens."
)
MISSED: Final = Template("No deployment meets the target; the nearest ({servers}) has {missed}.")
MISS: Final = Template("{ratio:x} the {noun}")
USD: Final = Template("{usd} USD")
SERVERS: Final = Template("{count:n server} of {server}")
SEPARATE: Final = Template("{prefill} prefill and {count:n decode server} of {server}")
CHEAPER: Final = Template("{servers} would cost {value} but meet the target with only {chance} probability")
SIMPLER: Final = Template("without separate pools, the best is {servers}: {value}")
PUBLISHED: Final = Template("in the checkpoint's own precision, the best is {servers}: {value}[ ({chance} sure)]")
PUBLISHED_NOT: Final = Template(
    "in the checkpoint's own precision, nothing meets the target; the nearest is {servers}, with {missed}"
)
NEXT: Final = Template("the best on another chip is {servers}[, at {ratio:x} the cost][ ({chance} sure)]")
OTHERS: Final[Mapping[str, Template]] = {"cheaper": CHEAPER, "simpler": SIMPLER, "published": PUBLISHED}
"""Metric of a further choice -> its sentence."""


def describe_answer(facts: Facts) -> str:
    """Return the deployment that meets the target at the lowest cost, or by how much the nearest misses it."""
    best = facts.of(Choice)[0]
    key = best.runs[0]
    if missed := _list_missed(facts, key):
        return MISSED(servers=_name_servers(facts, key), missed=join_names(missed))
    values = _find_values(facts, key)
    count = values["servers"].value + values["prefill_servers"].value
    given = {
        "servers": _name_servers(facts, key),
        "verb": "meets" if count == 1.0 else "meet",
        "chance": show_chance(best.probability),
        "noun": name_metric(best.metric),
        "value": _show(best.value),
    }
    whole = KEPT(energy=_show(values["energy_per_million"]) if best.value.unit == "USD" else None, **given)
    return whole if whole.count(" ") < MOST_WORDS else KEPT(energy=None, **given)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on cheaper, simpler, published and other deployments, and on the prefix cache."""
    best = _find_values(facts, facts.of(Choice)[0].runs[0])
    return [*_describe_others(facts), *describe_hits(best)][:MOST_WHY]


def _describe_others(facts: Facts) -> Iterator[str]:
    first, *others = facts.of(Choice)
    for one in others:
        key = one.runs[0]
        given = {"servers": _name_servers(facts, key), "value": _show(one.value)}
        missed = _list_missed(facts, key)
        if missed:
            yield PUBLISHED_NOT(missed=join_names(missed), **given)
        else:
            yield OTHERS[one.metric](chance=show_chance(one.probability), **given)
    if len(first.runs) > 1 and first.runs[1] not in {one.runs[0] for one in others}:
        chance = _find_values(facts, first.runs[1]).get("met_probability")
        yield NEXT(
            servers=_name_servers(facts, first.runs[1]),
            ratio=first.ratio,
            chance=show_chance(None if chance is None else chance.value),
        )


def _find_values(facts: Facts, key: int) -> Mapping[str, Quantity]:
    found: Mapping[str, Quantity] = next(one.values for one in facts.of(Entry) if one.runs[0] == key)
    return found


def _list_missed(facts: Facts, key: int) -> list[str]:
    """Return a phrase for each mean time of a deployment that exceeds its target."""
    return [
        MISS(ratio=math.exp(one.miss), noun=name_metric(one.metric))
        for one in facts.of(Limit)
        if one.runs[0] == key and one.miss
    ]


def _name_servers(facts: Facts, key: int) -> str:
    """Return a phrase for the servers of a deployment, such as `2 servers of h200_sxm x2 fp8`."""
    run, values = facts.runs[key], _find_values(facts, key)
    server = " ".join((run.hardware, *run.settings))
    count, prefill = (round(values[name].value) for name in ("servers", "prefill_servers"))
    if prefill:
        return SEPARATE(prefill=prefill, count=count, server=server)
    return SERVERS(count=count, server=server)


def _show(value: Quantity) -> str:
    return USD(usd=show_plain(value.value)) if value.unit == "USD" else show_quantity(value.value, value.unit)
