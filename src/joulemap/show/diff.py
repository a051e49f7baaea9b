"""Words for two versions of a model: what the new one changes and how surely, limits, and what makes the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.ask.fact import Caveat, Change, Facts, Limit, Refusal, Term
from joulemap.show.caveat import RANGES, describe_caveat
from joulemap.show.choice import MOST_WHY
from joulemap.show.present.cell import show_plain, show_share, show_signed, show_span
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_all

LEAST_SHARED: Final = 0.01
"""Minimum share of the energy in kernels of both versions; below it, the text says that errors do not cancel."""

LOST: Final = ("lost", "gained")
"""Kinds of caveats on hardware that runs only one version."""

CHANGED: Final = Template("the new version {changes:and} on {where}[ ({sure})]")
EQUAL: Final = Template("both versions have equal {metrics:and} on {where}")
NOTHING: Final = "no chip runs either version"
RANGE: Final = Template("{low} to {high} %")
ALL: Final = Template("all {count} chips")
BOTH: Final = "both chips"

CLAUSES: Final[Mapping[str, tuple[Template, Template, Template]]] = {
    "energy": (
        Template("uses {span} % {direction} energy"),
        Template("uses the same energy"),
        Template("changes energy by {low} to {high} %"),
    ),
    "latency": (
        Template("takes {span} % {direction} time"),
        Template("takes the same time"),
        Template("changes latency by {low} to {high} %"),
    ),
}
"""Metric -> clauses on a change in one direction, on none, and on changes in both directions."""

SIGNIFICANT: Final = "significant"
NOT_SIGNIFICANT: Final = "not significant"
BOTH_SIGNIFICANT: Final = "both significant"
NEITHER_SIGNIFICANT: Final = "neither significant"
ALL_SIGNIFICANT: Final = "all significant"
SOME_SIGNIFICANT: Final = "not all significant"
NONE_SIGNIFICANT: Final = "none significant"
ONE_SIGNIFICANT: Final = Template("only {metric} significant")
UNSURE: Final = Template("not significant: {parts:list}")
UNSURE_ON: Final = Template("{metrics:and} on {chips}")

FAILS: Final = Template(
    "Fails: {metric} on {name} rises by {change} %, above the limit of {limit} %[; {count:n more rise} above a limit]"
)
DOES_NOT_RUN: Final = Template("Fails: {line}")
KEPT: Final = Template("no rise is surely above its limit: {limits:and}")
KEPT_LIMIT: Final = Template("{metric} {limit}")
FAILURE: Final = Template("{metric} on {name} changed by {change}[ ({range})], more than {limit}")
NOT_RUNNING: Final = Template("the new version does not run: {reason}")

LEADER: Final = Template(
    "largest change[ on {name}]: {part}[ and {alike:n equal subgraph}], {difference}, {share} of all energy changes"
    "[ {each}]"
)
AGAINST: Final = Template(
    "against it[ on {name}]: {part}[ and {alike:n equal subgraph}], {difference}, {share}[ {each}]"
)
LEAST_AGAINST: Final = 0.1
"""Minimum share of all changes of a subgraph, with its equals, that changes the other way and has a line."""
EACH: Final = "each"
SHARED: Final = Template("{ranges}; {share} of the old version's energy is in kernels of both, whose errors cancel")
NOT_SHARED: Final = Template("{ranges}; the versions share almost no kernel, so errors do not cancel")


def describe_versions(facts: Facts) -> str:
    """Return the first line: a limit that fails, or the changes of energy and time and whether they are significant."""
    failing, lost, limits = list_failing(facts), _list_lost(facts), facts.of(Limit)
    if failing:
        first = max(failing, key=lambda one: one.miss or 0.0)
        line = FAILS(
            metric=first.metric,
            name=name_all(facts.runs, first.runs)[0],
            change=_show_percent(first.value.value if first.value else 0.0),
            limit=_show_percent(first.bound.value),
            count=sum(1 + one.missed_count for one in failing) - 1 or None,
        )
    elif lost and limits:
        line = DOES_NOT_RUN(line=lost[0])
    else:
        line = _describe_changes(facts) if facts.of(Change) else "; ".join(lost) or NOTHING
    return f"{line[0].upper()}{line[1:]}."


def list_failing(facts: Facts) -> list[Limit]:
    """Return the limits that a change surely exceeds."""
    return [one for one in facts.of(Limit) if one.miss]


def _list_lost(facts: Facts) -> list[str]:
    """Return sentences on the hardware that runs only one version, first that which only the old version runs on."""
    return [describe_caveat(one, facts.runs) for kind in LOST for one in facts.of(Caveat) if one.kind == kind]


def show_change(fraction: float | None) -> str:
    """Return a relative change in percent, with its sign."""
    return "" if fraction is None else f"{_show_percent(fraction, has_sign=True)} %"


def show_ends(low: float | None, high: float | None) -> str:
    """Return the range of a relative change in percent; empty without one."""
    if low is None or high is None or low == high:
        return ""
    return RANGE(low=_show_percent(low, has_sign=True), high=_show_percent(high, has_sign=True))


def _show_percent(fraction: float, *, has_sign: bool = False) -> str:
    """Return a relative change as a number of percents."""
    sign = "+" if fraction > 0.0 else "-" if fraction < 0.0 else ""
    return f"{sign if has_sign else ''}{show_plain(abs(fraction) * 100)}"


def _read(change: Change, name: str) -> float:
    """Return a value of a change, as a fraction of the old version's value."""
    value = change.values[name]
    return value if isinstance(value, float) else 0.0


def _describe_changes(facts: Facts) -> str:
    """Return the changes of energy and time over all chips."""
    changes = facts.of(Change)
    where = _name_place(_name_chips(facts))
    metrics = dict.fromkeys(one.metric for one in changes)
    if all(one.before == one.after for one in changes):
        return EQUAL(metrics=list(metrics), where=where)
    asked = {name: [one for one in changes if one.metric == name] for name in facts.asked if name in metrics}
    clauses = [_describe_metric(name, own) for name, own in asked.items()]
    return CHANGED(changes=clauses, where=where, sure=_describe_sure(asked))


def _name_place(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else BOTH if len(names) == 2 else ALL(count=len(names))


def _describe_metric(metric: str, changes: Sequence[Change]) -> str:
    """Return the clause on one metric over all chips."""
    moved, same, mixed = CLAUSES[metric]
    low, high = (pick(_read(one, "fraction") for one in changes) for pick in (min, max))
    if low == high == 0.0:
        return same()
    if low < 0.0 < high:
        return mixed(low=_show_percent(low, has_sign=True), high=_show_percent(high, has_sign=True))
    ends = [_show_percent(one) for one in sorted((low, high), key=abs)]
    return moved(span=show_span(*ends), direction="more" if high > 0.0 else "less")


def _describe_sure(asked: Mapping[str, Sequence[Change]]) -> str:
    """Return whether the changes that are not zero are significant."""
    sure = {
        name: [bool(one.values["is_sure"]) for one in changes if one.before != one.after]
        for name, changes in asked.items()
    }
    every = [one for own in sure.values() for one in own]
    if not every:
        return ""
    if len(every) == 1:
        return SIGNIFICANT if every[0] else NOT_SIGNIFICANT
    if max(map(len, sure.values())) > 1:
        return ALL_SIGNIFICANT if all(every) else SOME_SIGNIFICANT if any(every) else NONE_SIGNIFICANT
    if all(every) or not any(every):
        return BOTH_SIGNIFICANT if all(every) else NEITHER_SIGNIFICANT
    return ONE_SIGNIFICANT(metric=next(name for name, own in sure.items() if all(own)))


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: limits, hardware that runs only one version, changes that are not significant, and the
    subgraph that changes most on the first chip.
    """
    changes, limits, failing = facts.of(Change), facts.of(Limit), list_failing(facts)
    is_lost_first = not failing and bool(_list_lost(facts)) and bool(limits or not changes)
    lines = [_describe_changes(facts)] if changes and (failing or is_lost_first) else []
    if changes and limits and not failing and not is_lost_first:
        lines.append(KEPT(limits=[KEPT_LIMIT(metric=one.metric, limit=show_change(one.bound.value)) for one in limits]))
    lines += [] if is_lost_first else _list_lost(facts)
    has_several = len(_name_chips(facts)) > 1
    lines += _list_unsure(facts) if has_several else []
    terms = facts.of(Term)
    own = [one for one in terms[:2] if one.runs == terms[0].runs]
    leaders = (_describe_leader(one, facts, is_first=one is own[0], has_several=has_several) for one in own)
    return [*lines, *filter(None, leaders)][:MOST_WHY]


def _name_chips(facts: Facts) -> list[str]:
    """Return the names of the chips that run both versions."""
    return name_all(facts.runs, (one.runs[1] for one in facts.of(Change)))


def _list_unsure(facts: Facts) -> list[str]:
    """Return a line on the changes of energy and time that are not significant, if some are."""
    changes = [one for one in facts.of(Change) if one.metric in facts.asked and one.before != one.after]
    unsure = [one for one in changes if not one.values["is_sure"]]
    if not unsure or len(unsure) == len(changes):
        return []
    by_chips: dict[str, list[str]] = {}
    for metric in facts.asked:
        names = name_all(facts.runs, (one.runs[1] for one in unsure if one.metric == metric))
        if names:
            chips = _name_place(names) if names == _name_chips(facts) else join_names(names)
            by_chips.setdefault(chips, []).append(metric)
    return [UNSURE(parts=[UNSURE_ON(metrics=metrics, chips=chips) for chips, metrics in by_chips.items()])]


def _describe_leader(term: Term, facts: Facts, *, is_first: bool, has_several: bool) -> str:
    """Return the subgraph whose energy changes most, or most the other way; one chip is not named again."""
    if term.share is None or (not is_first and abs(term.share) * (term.alike + 1) < LEAST_AGAINST):
        return ""
    return (LEADER if is_first else AGAINST)(
        name=name_all(facts.runs, term.runs[1:])[0] if has_several else None,
        part=term.name,
        alike=term.alike or None,
        each=EACH if term.alike else "",
        difference=show_signed(term.difference.value, term.difference.unit),
        share=show_share(abs(term.share)),
    )


def describe_shared(facts: Facts) -> str:
    """Return what ranges mean, and how far the errors of both versions cancel; empty if every change is exact."""
    changes = [one for one in facts.of(Change) if one.values["low"] != one.values["high"]]
    if not changes:
        return ""
    shares = [
        share
        for one in changes
        if one.metric == facts.asked[0] and isinstance(share := one.values["same_fraction"], float)
    ]
    if not shares or max(shares) < LEAST_SHARED:
        return NOT_SHARED(ranges=RANGES)
    return SHARED(ranges=RANGES, share=show_span(*map(show_share, (min(shares), max(shares)))))


def list_failures(facts: Facts) -> list[str]:
    """Return a sentence on each rise above its limit, and on hardware that only the old version runs on, if there are
    limits.
    """
    changes = {(one.metric, one.runs[1]): one for one in facts.of(Change)}
    above = [
        FAILURE(
            metric=one.metric,
            name=name_all(facts.runs, (run_id,))[0],
            change=show_change(_read(changed, "fraction")),
            range=show_ends(_read(changed, "low"), _read(changed, "high")),
            limit=show_change(one.bound.value),
        )
        for one in list_failing(facts)
        for run_id in one.runs
        for changed in (changes[one.metric, run_id],)
    ]
    lost = [run_id for one in facts.of(Caveat) if one.kind == LOST[0] for run_id in one.runs if facts.of(Limit)]
    reasons = {run_id: one.reason for one in facts.of(Refusal) for run_id in one.runs}
    return [
        *above,
        *(NOT_RUNNING(reason=reasons[one]) for one in lost),
    ]
