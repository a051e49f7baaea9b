"""Words for contests: which chip is best for most parts or models, which is best in all, and for which kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.ask.fact import Change, Choice, Facts, Win
from joulemap.domain.table import first_of_each
from joulemap.show.caveat import show_middle
from joulemap.show.choice import (
    MOST_TIED,
    MOST_WHY,
    describe_alone,
    describe_choice,
    finish,
    name_metric,
)
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_all, name_first, name_run

OF_SOME: Final = Template("{count} of {total} {level}s")
OF_EVERY: Final = {1: Template("the {level}"), 2: Template("both {level}s")}
OF_ALL: Final = Template("all {total} {level}s")

LEADS: Final = Template("{name} has the lowest {noun} for {won}")
TAKES: Final = Template("Take {name}: it has the lowest {noun} for {won}")
SHARED: Final = Template("{names} each have the lowest {noun} for {won}")
TIE: Final = Template("{names} tie for the lowest {noun} of {won}")
MANY: Final = Template("{count} chips each have the lowest {noun} for {won}")
OTHER: Final = Template("{head}; {name} for {count} of them")
BUT: Final = {
    True: Template("Take {name}: in all it {clause}; {head}"),
    False: Template("In all {name} {clause}; {head}"),
}
"""True for hardware that can be bought -> first line, if another chip is the best of most parts."""
CLOSE: Final = Template("{head}, statistically tied for {count} of them")

IN_ALL: Final = Template("[{model}: ]in all, {name} {clause}")
KINDS: Final = Template("{name} leads on {kinds:and}")
OF_KIND: Final = Template("{won} of {total} {kind}")
ALL_OF_KIND: Final = Template("all {total} {kind}")
ONE_OF_KIND: Final = Template("the only {kind}")
MORE_KINDS: Final = Template("{count} other kinds")
WOULD: Final = Template("{name}, which cannot be bought, would have the lowest {noun} for {won}")
OF_MODEL: Final = Template("{model}: {name} {clause}")

MODELS: Final = Template("On {name}, {least} has the lowest {noun} ({value}); {most} has {ratio:x} as much")
SPREAD: Final = Template("on {name}, {least} has the lowest {noun}; {most} has {ratio:x} as much")
SAME: Final = Template("Every model has the same {noun} on {name}")

MOST_KINDS: Final = 3
"""Maximum kinds of operator in a line."""

COUNTED: Final = "counts compare the middles of 80 % ranges; only the comparison in all says how sure it is"
"""Note on counts of wins."""


def describe_parts(facts: Facts) -> str:
    """Return the first line of a contest by parts: the chip with most wins, and the next, or before them a chip that is
    better in all.
    """
    wins = list_wins(facts)
    if not wins:
        return describe_alone(facts)
    if better := _find_better(facts):
        run = facts.runs[better.run]
        head = _describe_lead(facts, wins, "it" if run.hardware == facts.runs[wins[0].run].hardware else None)
        clauses = [
            *(describe_choice(better, facts.runs, rival) for rival in (None, "")),
            "leads, tied with another" if better.tied else "leads",
        ]
        but = BUT[run.is_available]
        lines = [but(head=head, name=name_first(facts.runs, better), clause=clause) for clause in clauses]
        return finish(lines, run)
    head = _describe_lead(facts, wins)
    return finish([_add_other(facts, head, wins), head], facts.runs[wins[0].run])


def _find_better(facts: Facts) -> Choice | None:
    """Return the choice in all of an answer on one model, if it is between other chips than those of most wins."""
    first, *others = list_wins(facts)
    leader, *named = (facts.runs[one.run].hardware for one in (first, *(one for one in others[:1] if one.count)))
    wholes = (one for one in _list_wholes(facts) if not one.model)
    pairs = ((one, [facts.runs[run].hardware for run in one.runs[:2]]) for one in wholes)
    return next((one for one, pair in pairs if pair[0] != leader or {*named} - {*pair}), None)


def describe_models(facts: Facts) -> str:
    """Return the first line on models: the chip that is best for most of them, or the models of the only chip."""
    wins = list_wins(facts)
    if not wins:
        changes = facts.of(Change)
        run_id = changes[0].run if changes else next(iter(facts.runs))
        line = _describe_change(MODELS, facts, changes[0]) if changes else ""
        same = SAME(name=name_run(facts.runs[run_id]), noun=name_metric(facts.asked[0]))
        return finish([line or same], facts.runs[run_id])
    head = _describe_lead(facts, wins)
    close = sum(bool(one.tied) and one.run in wins[0].runs for one in _list_wholes(facts))
    tied = CLOSE(head=head, count="all" if close == wins[0].count else close)
    lines = [tied, head] if close else [_add_other(facts, head, wins), head]
    return finish(lines, facts.runs[wins[0].run])


def list_wins(facts: Facts) -> list[Win]:
    """Return the wins of available hardware, most first; of all hardware if none is available."""
    wins = facts.of(Win)
    return [one for one in wins if facts.runs[one.run].is_available] or wins


def _list_wholes(facts: Facts) -> list[Choice]:
    """Return the first choice of each model, among several chips."""
    firsts = first_of_each(facts.of(Choice), lambda one: one.model)
    return [one for one in firsts.values() if len(one.runs) > 1]


def _describe_lead(facts: Facts, wins: Sequence[Win], name: str | None = "") -> str:
    """Return the clause on the chips with most wins, or with most ties if no chip wins alone; one that can be bought is
    the one to take, unless another is. `name` is a word for the one chip, or None for its name.
    """
    first = wins[0]
    alike = [one.run for one in wins if (one.count, one.tied) == (first.count, first.tied)]
    given = {"noun": _name(first), "won": show_count(first.count or first.tied, first)}
    names = join_names(name_all(facts.runs, alike))
    if not first.count:
        return TIE(names=names, **given)
    if len(alike) > MOST_TIED:
        return MANY(count=len(alike), **given)
    lead = TAKES if name == "" and facts.runs[first.run].is_available else LEADS
    return lead(name=name or names, **given) if len(alike) == 1 else SHARED(names=names, **given)


def _add_other(facts: Facts, head: str, wins: Sequence[Win]) -> str:
    """Return the line with the chip that has the next most wins; several leading chips have no next one."""
    first, other = wins[0], next(iter(wins[1:]), None)
    if other is None or other.count in (0, first.count):
        return head
    return OTHER(head=head, name=name_first(facts.runs, other), count=other.count)


def _name(win: Win) -> str:
    """Return the noun of the metric; that of the memory of a part is traffic."""
    return "off-chip traffic" if win.metric == "memory" and win.level != "model" else name_metric(win.metric)


def show_count(count: int, win: Win) -> str:
    """Return a count out of the total of a win in words, such as `both models`."""
    form = OF_SOME if count < win.total else OF_EVERY.get(win.total, OF_ALL)
    return form(count=count, total=win.total, level=win.level)


def list_part_reasons(facts: Facts) -> list[str]:
    """Return lines on why: the best chip of each model in all, the kinds of operator that the first chips win, and
    named hardware that cannot be bought and would win.
    """
    if not facts.of(Win):
        return []
    beyond = _describe_beyond(facts)
    wholes = [
        IN_ALL(model=one.model, name=name_first(facts.runs, one), clause=describe_choice(one, facts.runs))
        for one in _list_wholes(facts)
    ]
    kinds = [
        KINDS(name=name_first(facts.runs, one), kinds=_name_kinds(one))
        for one in list_wins(facts)[:2]
        if one.kinds and len(wholes) < 2
    ]
    lines = [*wholes, *kinds[:1]] if not _find_better(facts) else kinds
    return [*lines[: MOST_WHY - len(beyond)], *beyond]


def list_model_reasons(facts: Facts) -> list[str]:
    """Return lines on why: the closest decisions, hardware that cannot be bought, and how the models differ."""
    beyond = _describe_beyond(facts)
    wholes = [one for one in _list_wholes(facts) if not one.equal]
    wholes.sort(key=lambda one: (not one.tied, one.ratio or 1.0))
    lines = [
        OF_MODEL(model=one.model, name=name_first(facts.runs, one), clause=describe_choice(one, facts.runs))
        for one in wholes
    ]
    has_wins = bool(facts.of(Win))
    spreads = [_describe_change(SPREAD, facts, one) for one in facts.of(Change)] if has_wins else []
    return [*[*lines, *spreads][: MOST_WHY - len(beyond)], *beyond]


def _describe_beyond(facts: Facts) -> list[str]:
    """Return a line on the first named hardware that cannot be bought and would win; empty without any."""
    shown = {one.run for one in list_wins(facts)}
    beyond = [one for one in facts.of(Win) if one.run not in shown and facts.runs[one.run].is_named]
    return [
        WOULD(name=name_first(facts.runs, one), noun=_name(one), won=show_count(one.count, one)) for one in beyond[:1]
    ]


def _name_kinds(win: Win) -> list[str]:
    """Return the kinds of operator of which a chip wins most, and a count of the others."""
    shown = win.kinds if len(win.kinds) <= MOST_KINDS + 1 else win.kinds[:MOST_KINDS]
    names = []
    for kind, won, total in shown:
        form = OF_KIND if won < total else ONE_OF_KIND if total == 1 else ALL_OF_KIND
        names.append(form(won=won, total=total, kind=kind))
    more = len(win.kinds) - len(shown)
    return [*names, *([MORE_KINDS(count=more)] if more else [])]


def _describe_change(template: Template, facts: Facts, change: Change) -> str:
    """Return a line on the models with the lowest and the highest value on one chip."""
    return template(
        name=name_first(facts.runs, change),
        noun=name_metric(change.metric),
        value=show_middle(change.before),
        ratio=change.after.value / change.before.value if change.before.value else None,
        **change.values,
    )
