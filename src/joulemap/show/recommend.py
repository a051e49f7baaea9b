"""Words for a recommendation: the decision within limits, what would change it, hosts and batteries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, cast

from joulemap.ask.fact import (
    Cause,
    Caveat,
    Choice,
    Entry,
    Facts,
    Limit,
    Quantity,
    Refusal,
    Subject,
    Supply,
    Turn,
    Value,
)
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.caveat import MOST_CAVEATS, describe_caveat, format_value, rank_caveats
from joulemap.show.choice import (
    BEYOND,
    describe_causes,
    describe_choice,
    describe_choices,
    name_metric,
    show_value,
)
from joulemap.show.present.cell import show_bound, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import drop_settings, name_run

DAY_S: Final = 86400.0
YEAR_DAYS: Final = 365.0
WHOLE_DAYS: Final = 10.0
"""Number of days from which a battery life is shown without decimals."""

KEPT: Final = Template("{head} within {limits}")
ONE_LIMIT, ALL_LIMITS = "the limit", "all limits"
ONLY: Final = Template("Only {hardware} meets {limits}[, best at {settings:list}] ({noun} {value})")
SINGLE: Final = Template("{name} is the only[ {available}] configuration ({noun} {value})")
AVAILABLE: Final = "available"
PROJECTED: Final = Template("{name}, which cannot be bought, is the best configuration ({noun} {value})")
BEST_OF: Final = Template("{name} is the best configuration of {hardware}[ within {limits}] ({noun} {value})")
NONE_KEEPS: Final = Template(
    "No available configuration meets {limits}; {name}, which cannot be bought, does ({noun} {value})"
)
NONE_RUNS: Final = Template("No available chip can run the model; {name}, which cannot be bought, can ({noun} {value})")
NOTHING: Final = Template("No configuration meets {limits}; {name} is nearest: {miss}")
UNKNOWN: Final = Template("No configuration has a known {noun}[ within {limits}]")
ABOVE: Final = Template("{label} {value} ({ratio:x} the limit of {bound})")
BELOW: Final = Template("{label} {value} ({ratio:x} below the limit of {bound})")
UNPRICED: Final = Template("its {label} is unknown (limit {bound})")

LIMITED: Final = {"purchase": "purchase price with host"}
"""Metric -> what a limit on it refers to, if that is more than the metric."""

ALSO: Final = Template("{name} also misses the limit on {labels:and}")
HOSTLESS: Final = Template("without hosts, {name} would lead: {value} ({whole} with its host)")
WITHOUT: Final = Template("{host} ({alone} without it)")
PAID: Final = Template("{name} is the cheapest to {way}: {value} (--pay {pay})")
WAYS: Final = {"rented": "rent", "bought": "buy"}
"""Way of paying -> its verb."""
LOOSER: Final = Template("{label} {word} {limit}: {name} would lead with {value}")
UP_TO, DOWN_TO = "up to", "down to"
LIFE: Final = Template("{name} draws {power:W} on average, without sensor and radio: {life} on {battery}")


def describe_recommendation(facts: Facts) -> str:
    """Return the first line: the best configuration within the limits, or the nearest miss."""
    choices, limits = facts.of(Choice), name_limits(facts)
    if not choices:
        return _describe_miss(facts) + "."
    first = choices[0]
    run = facts.runs[first.runs[0]]
    given = {
        "name": name_run(run),
        "hardware": run.hardware,
        "limits": limits,
        "available": "" if all(one.is_available for one in facts.runs.values()) else AVAILABLE,
        "noun": name_metric(first.metric, first.per),
        "value": show_value(first),
    }
    if not run.is_available and (lacks := _find_lack(facts)) is not None:
        return lacks(**given) + "."
    if len(first.runs) < 2:
        is_alone = any(one.missed_count for one in facts.of(Limit))
        if not run.is_available:
            return PROJECTED(**given) + "."
        only = ONLY if is_alone else BEST_OF if run.settings else SINGLE
        return only(settings=run.settings, **given) + "."
    return describe_choices([first], facts.runs, KEPT if limits and run.is_available else None, limits=limits)


def name_limits(facts: Facts) -> str:
    """Return the limits in words; empty without any."""
    count = len(facts.of(Limit))
    return "" if not count else ONE_LIMIT if count == 1 else ALL_LIMITS


def _find_lack(facts: Facts) -> Template | None:
    """Return the words for available hardware that has no result, or misses a limit; None if all is unavailable."""
    if any(run.is_available for one in facts.of(Refusal) for run in map(facts.runs.__getitem__, one.runs)):
        return NONE_RUNS
    missed = (one for one in facts.of(Limit) if one.miss != 0.0)
    return NONE_KEEPS if any(facts.runs[run].is_available for one in missed for run in one.runs) else None


def _describe_miss(facts: Facts) -> str:
    """Return the clause on the nearest miss, or on unknown values."""
    missed = [one for one in facts.of(Limit) if one.miss != 0.0 and one.runs]
    if not missed:
        return UNKNOWN(noun=name_metric(facts.asked[0]), limits=name_limits(facts))
    first = missed[0]
    run = facts.runs[first.runs[0]]
    return NOTHING(name=name_run(run), limits=name_limits(facts), miss=_describe_limit(first))


def _describe_limit(limit: Limit) -> str:
    """Return how far a run misses a limit."""
    metric = METRIC[cast("MetricName", limit.metric)]
    given = {"label": LIMITED.get(limit.metric, metric.label), "bound": show_bound(limit.bound.value, limit.bound.unit)}
    if limit.value is None or limit.miss is None:
        return UNPRICED(**given)
    template = BELOW if metric.is_higher_better else ABOVE
    return template(value=show_quantity(limit.value.value, limit.value.unit), ratio=math.exp(limit.miss), **given)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: the cause of the lead, what would change the decision, the host, and the battery."""
    choices, runs = facts.of(Choice), drop_settings(facts.runs, facts.runs)
    also = [one for one in facts.of(Limit) if one.miss and one.miss > 0.0][1:]
    labels = [LIMITED.get(one.metric, METRIC[cast("MetricName", one.metric)].label) for one in also]
    lines = [ALSO(name=name_run(runs[also[0].runs[0]]), labels=labels)] if also else []
    lines += [LIFE(name=name_run(runs[one.runs[0]]), power=one.power.value, life=show_life(one.life), battery=one.name)
              for one in facts.of(Supply)]  # fmt: skip
    lines += describe_causes(facts.of(Cause)[:1], runs)
    lines += [_describe_turn(one, runs) for one in facts.of(Turn)]
    lines += _describe_hosts(facts)
    for one in choices[1:2]:
        run = runs[one.runs[0]]
        lines += [BEYOND(name=name_run(run), clause=describe_choice(one, runs))] if run.is_named else []
    return lines


def _describe_turn(turn: Turn, runs: Mapping[int, Subject]) -> str:
    """Return the sentence on what would make another configuration the best."""
    name, value = name_run(runs[turn.runs[0]]), format_value(turn.value)
    if turn.axis == "pay":
        return PAID(name=name, value=value, way=WAYS[str(turn.after)], pay=turn.after)
    if turn.axis == "host":
        return HOSTLESS(name=name, value=value, whole=format_bare(turn.before))
    metric = METRIC[cast("MetricName", turn.axis)]
    word = DOWN_TO if metric.is_higher_better else UP_TO
    return LOOSER(
        label=metric.label, word=word, limit=format_value(turn.after), name=name, value=format_bare(turn.value)
    )


def format_bare(value: Value) -> str:
    """Return a quantity without its interval."""
    return show_quantity(value.value, value.unit) if isinstance(value, Quantity) else str(value)


def _describe_hosts(facts: Facts) -> list[str]:
    """Return the sentence on the host of the winner, unless the line on trust has it."""
    told = {one.kind for one, _ in rank_caveats(facts)[:MOST_CAVEATS]}
    alone = {one.runs[0]: one.values["hostless"] for one in facts.of(Entry) if "hostless" in one.values}
    runs = drop_settings(facts.runs, facts.runs)
    return [
        WITHOUT(host=describe_caveat(one, runs, own), alone=format_bare(alone[own[0]]))
        for own in [one.runs[:1] for one in facts.of(Choice)[:1]]
        for one in facts.of(Caveat)
        if one.kind == "counted" and one.kind not in told and own[0] in one.runs
    ]


def show_life(life: Quantity) -> str:
    """Return the life of a battery in years, or in days if it is below a year."""
    days = life.value / DAY_S
    if days >= YEAR_DAYS:
        years = f"{days / YEAR_DAYS:.2g}"
        return f"{years} year" if years == "1" else f"{years} years"
    return f"{days:.0f} days" if days >= WHOLE_DAYS else f"{days:.2g} days"
