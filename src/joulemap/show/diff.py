"""Words and tables for two versions of a model, and for two stored runs: what changes, how surely, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from joulemap.ask.diff import METRICS, DiffAnswer, DifferenceAnswer, is_above
from joulemap.ask.fact import Caveat, Change, Facts, Limit, Refusal, Term
from joulemap.domain.column import Col
from joulemap.domain.table import group
from joulemap.generated.diff import VersionFigure
from joulemap.generated.explain import SubgraphDifference
from joulemap.generated.run import Constant, Setting
from joulemap.show.caveat import RANGES, describe_caveat
from joulemap.show.choice import MOST_WHY
from joulemap.show.column import derived, lay_columns, show_table
from joulemap.show.page import Asked, Page, compose, compose_runs, count_left_out_below, fill_steps, list_facts
from joulemap.show.pair import EXACT_UNITS, lay_terms, prove_terms
from joulemap.show.present.cell import (
    mark_projected,
    show,
    show_plain,
    show_quantity,
    show_share,
    show_signed,
    show_span,
)
from joulemap.show.present.document import Document, Grid, Section, Text
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import list_settings
from joulemap.show.run_name import name_all
from joulemap.show.title import Title
from joulemap.show.view import draw
from joulemap.system.units import FJ_PER_J, FS_PER_S

LEAST_WORK: Final = 0.005
"""Minimum relative difference in MACs that explains a change."""

LEAST_SHARED: Final = 0.01
"""Minimum share of the energy in kernels of both versions; below it, the text says that errors do not cancel."""

LOST: Final = ("lost", "gained")
"""Kinds of caveats on hardware that runs only one version."""

KEEP: Final = Template(
    "keep {before} unless the accuracy of {after}, not compared here, pays for {changes:and} on {where}[ ({sure})]"
)
TAKE: Final = Template("take {after}: it needs {changes:and} on {where}[ ({sure})]")
SPLIT: Final = Template("{first} for {gain}, {last} for {loss}: {after} needs {changes:and} on {where}[ ({sure})]")
BY_CHIP: Final = Template("choose by chip: {after} needs {changes:and} on {where}[ ({sure})]")
EITHER: Final = Template("take the more accurate version: {after} needs {changes:and} on {where} ({sure})")
EQUAL: Final = Template("take the more accurate version: both have equal {metrics:and} on {where}")
BEFORE, AFTER = "the old version", "the new version"
"""Names of versions whose own names are too long for a sentence."""
MOST_NAME: Final = 24
"""Maximum characters of a version's name in a sentence."""
RANGE: Final = Template("{low} to {high} %")
ALL: Final = Template("all {count} chips")

NOUNS: Final = {"energy": "energy", "latency": "time"}
CLAUSE: Final = Template("{span} % {direction} {noun}")
SAME: Final = Template("the same {noun}")
"""Changes in one direction, and none."""

SURE: Final = {True: "significant", False: "not significant", None: "not all significant"}
"""True if all changes are significant, False if none is -> words."""
ONE_SURE: Final = Template("only {metric} significant")
FAILS: Final = Template(
    "Fails: {metric} on {name} rises by {change} %, above the limit of {limit} %[; {count:n more rise} above a limit]"
)
DOES_NOT_RUN: Final = Template("Fails: {line}")
KEPT: Final = Template("no rise is surely above its limit: {limits:and}")
KEPT_LIMIT: Final = Template("{metric} {limit}")
FAILURE: Final = Template("{metric} on {name} changed by {change}[ ({range})], more than {limit}")
NOT_RUNNING: Final = Template("the new version does not run: {reason}")

WORK: Final = Template(
    "the new version computes {macs:~} MACs, the old one {own_macs:~}: {work:x} the work, at {energy:x} the energy and "
    "{time:x} the time per MAC on {chip}"
)
ORIGIN: Final = Template("{count:#} {name} {amount}")
ORIGINS: Final = Template(
    "subgraphs on {chip}: {parts:list}; largest change: {part}, {difference}[ and {alike} like it]"
)
SHARED: Final = Template("{ranges}; {share} of the old version's energy is in kernels of both, whose errors cancel")
NOT_SHARED: Final = Template("{ranges}; the versions share almost no kernel, so errors do not cancel")


def describe_versions(facts: Facts, before: str = BEFORE, after: str = AFTER) -> str:
    """Return the first line: a limit that fails, or the version to take, with the changes of energy and time and
    whether they are significant.
    """
    failing, lost, limits = list_failing(facts), _list_lost(facts), facts.of(Limit)
    if failing:
        first = failing[0]
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
        line = (
            _describe_changes(facts, before, after)
            if facts.of(Change)
            else "; ".join(lost) or "no chip runs either version"
        )
    return f"{line[0].upper()}{line[1:]}."


def list_failing(facts: Facts) -> list[Limit]:
    """Return the limits that a change surely exceeds, the one that is exceeded most first."""
    return sorted((one for one in facts.of(Limit) if one.miss), key=lambda one: -(one.miss or 0.0))


def find_subject(facts: Facts) -> Change | None:
    """Return the change that the reasons and the next step are about: the one that exceeds its limit most, which leads
    the first line, or the largest change, of energy if any; None if nothing changes.
    """
    lead = next(((one.metric, one.runs[:1]) for one in list_failing(facts)), None)

    def weigh(one: Change) -> tuple[bool, bool, float]:
        return (one.metric, one.runs[1:]) == lead, one.metric == facts.asked[0], abs(_read(one, "fraction"))

    return max((one for one in facts.of(Change) if one.before != one.after), key=weigh, default=None)


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


def _describe_changes(facts: Facts, before: str = BEFORE, after: str = AFTER) -> str:
    """Return the version to take, with the changes of energy and time over all chips."""
    before, after = (word if len(name) > MOST_NAME else name for name, word in ((before, BEFORE), (after, AFTER)))
    changes = facts.of(Change)
    names = name_all(facts.runs, (one.runs[1] for one in changes))
    where = names[0] if len(names) == 1 else "both chips" if len(names) == 2 else ALL(count=len(names))
    metrics = dict.fromkeys(one.metric for one in changes)
    if all(one.before == one.after for one in changes):
        return EQUAL(metrics=list(metrics), where=where)
    asked = {name: [one for one in changes if one.metric == name] for name in facts.asked if name in metrics}
    clauses = [_describe_metric(name, own) for name, own in asked.items()]
    values = {"before": before, "after": after, "changes": clauses, "where": where, "sure": _describe_sure(asked)}
    if not any(one.values["is_sure"] for own in asked.values() for one in own):
        return EITHER(**values)
    signs = {name: {math.copysign(1.0, move) for one in own if (move := _read(one, "fraction"))}
             for name, own in asked.items()}  # fmt: skip
    gains, losses = ([name for name, own in signs.items() if own == {sign}] for sign in (-1.0, 1.0))
    if any(len(own) > 1 for own in signs.values()):
        return BY_CHIP(**values)
    if gains and losses:
        return SPLIT(first=after, last=before, gain=gains[0], loss=losses[0], **values)
    return (TAKE if gains else KEEP)(**values)


def _describe_metric(metric: str, changes: Sequence[Change]) -> str:
    """Return the clause on one metric over all chips."""
    noun = NOUNS[metric]
    low, high = (pick(_read(one, "fraction") for one in changes) for pick in (min, max))
    if low == high == 0.0:
        return SAME(noun=noun)
    if low < 0.0 < high:
        return f"{show_ends(low, high)} {noun}"
    ends = [_show_percent(one) for one in sorted((low, high), key=abs)]
    return CLAUSE(noun=noun, span=show_span(*ends), direction="more" if high > 0.0 else "less")


def _describe_sure(asked: Mapping[str, Sequence[Change]]) -> str:
    """Return whether the changes that are not zero are significant."""
    sure = {
        name: [bool(one.values["is_sure"]) for one in changes if one.before != one.after]
        for name, changes in asked.items()
    }
    every = [one for own in sure.values() for one in own]
    if not every or any(every) == all(every):
        return SURE[all(every)] if every else ""
    known = [name for name, own in sure.items() if all(own)]
    return ONE_SURE(metric=known[0]) if known and max(map(len, sure.values())) == 1 else SURE[None]


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: limits, hardware that runs only one version, and the work and the
    subgraphs behind the change of `find_subject`.
    """
    changes, limits, failing = facts.of(Change), facts.of(Limit), list_failing(facts)
    is_lost_first = not failing and bool(_list_lost(facts)) and bool(limits or not changes)
    lines = [_describe_changes(facts)] if changes and (failing or is_lost_first) else []
    if changes and limits and not failing and not is_lost_first:
        lines.append(KEPT(limits=[KEPT_LIMIT(metric=one.metric, limit=show_change(one.bound.value)) for one in limits]))
    lines += [] if is_lost_first else _list_lost(facts)
    return [*lines, *_describe_terms(facts)][:MOST_WHY]


def _describe_terms(facts: Facts) -> Iterator[str]:
    """Yield lines on the chip of `find_subject`: the work of both versions, and its energy and time per unit; and the
    subgraphs behind the change by their origin.
    """
    subject = find_subject(facts)
    if subject is None:
        return
    levels = group((one for one in facts.of(Term) if one.runs == subject.runs), lambda one: one.level)
    (chip,) = name_all(facts.runs, subject.runs[1:])
    ratios = {one.metric: 1.0 + _read(one, "fraction") for one in facts.of(Change) if one.runs == subject.runs}
    for one in levels.get("work", ()):
        own, macs = (each.value if each is not None else 0.0 for each in one.counts)
        work = macs / own if own else 0.0
        if work and abs(work - 1.0) >= LEAST_WORK:
            per = {"energy": ratios["energy"] / work, "time": ratios["latency"] / work}
            yield WORK(macs=macs, own_macs=own, work=work, chip=chip, **per)
    shown = {one: show_signed(one.difference.value, one.difference.unit) for some in levels.values() for one in some}
    parts = [ORIGIN(count=one.total, name=one.name, amount=shown[one]) for one in levels.get("origin", ())]
    for one in levels.get("subgraph", ()) if parts else ():
        yield ORIGINS(chip=chip, parts=parts, part=one.name, difference=shown[one], alike=one.alike or None)


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


TITLE: Final = Template("{before} -> {after}[ on {name}], batch {batches:and}, {precisions:list}[, {runtimes:list}]")
MORE, LESS = "more", "less"
DIFF: Final = Template("db diff {runs}")
DIFFER: Final = Template("Subgraphs that differ on {name}")
VERDICTS: Final = {"above": "FAILS ({limit})", "below": "kept ({limit})", "unsure": "not significant ({limit})"}


def _show_change(row: VersionFigure) -> str:
    return show_change(row.change_fraction)


def _show_range(row: VersionFigure) -> str:
    return show_ends(row.low_fraction, row.high_fraction)


def show_figures(answer: DiffAnswer, title: str, *, has_owner: bool) -> list[Section]:
    """Return the section with a row per metric and chip."""
    of = VersionFigure
    columns = (
        of.hardware if has_owner else None,
        of.metric.by(lambda row: "cost per million" if row.metric == "cost" else row.metric).kept,
        of.value_a.by(lambda row: show_quantity(row.value_a, row.unit)),
        of.value_b.by(lambda row: show_quantity(row.value_b, row.unit)),
        of.change_fraction.by(_show_change).ranking.kept,
        of.low_fraction.by(_show_range).if_any.kept,
        derived("limit", partial(_judge, answer)).if_any.kept,
    )
    rows = answer.changed
    drawn = _picture(lay_columns(answer, rows, columns), "change", (row.change_fraction for row in rows))
    return count_left_out_below(answer.scope, [Section(title, drawn)])


def show_chips(answer: DiffAnswer) -> list[Section]:
    """Return the section with a row per chip: the change of each metric and its range, and the verdicts on limits."""
    rows = {(row.hardware, row.metric): row for row in answer.rows}
    chips = answer.changed.with_rows(row for row in answer.changed if row.metric == "energy")

    def show_metric(chip: VersionFigure, metric: str, show_row: Callable[[VersionFigure], str]) -> str:
        row = rows.get((chip.hardware, metric))
        return "" if row is None else show_row(row)

    change = {name: derived(name, partial(show_metric, metric=name, show_row=_show_change)) for name in METRICS}
    span = {name: derived(f"{name} range", partial(show_metric, metric=name, show_row=_show_range)) for name in METRICS}
    verdicts: Col[VersionFigure] = derived("limits", lambda row: _judge_chip(answer, row, rows))
    columns = (
        VersionFigure.hardware,
        change["energy"].ranking,
        span["energy"].if_any.ranking,
        change["latency"],
        span["latency"].if_any,
        change["memory"].if_any,
        change["cost"].if_any,
        verdicts.if_any,
    )
    keep = (verdicts, change["latency"], change["memory"], change["cost"])
    drawn = _picture(lay_columns(answer, chips, columns, keep=keep), "energy", (row.change_fraction for row in chips))
    return count_left_out_below(answer.scope, [Section("", drawn)])


def show_subgraphs(answer: DiffAnswer, hardware: str, limit: int) -> list[Section]:
    """Return the section of the subgraphs that differ on a chip."""
    of = SubgraphDifference
    columns = (
        of.name,
        of.fusion_pattern,
        of.energy_difference_fj.by(lambda row: show_signed(row.energy_difference_fj / FJ_PER_J, "J")).ranking.drawn,
        of.latency_difference_fs.by(lambda row: show_signed(row.latency_difference_fs / FS_PER_S, "s")).kept,
        of.difference_fraction.headed("share"),
        of.unit.by(lambda row: "new" if not row.energy_a_fj else "" if row.energy_b_fj else "removed").if_any.kept,
    )
    title = DIFFER(name=mark_projected(hardware, answer.projected))
    drawn = lay_columns(answer, answer.subgraphs[hardware], columns, limit=limit, noun="subgraphs")
    return [Section(title, drawn)]


def _judge_chip(answer: DiffAnswer, chip: VersionFigure, rows: Mapping[tuple[str, str], VersionFigure]) -> str:
    """Return the verdicts on a chip's metrics that fail, or might; empty without a limit."""
    known = [rows[chip.hardware, metric] for metric in answer.allowed if (chip.hardware, metric) in rows]
    shown = [f"{one.metric} {_judge(answer, one)}" for one in known if _compare(answer, one) != "below"]
    return "; ".join(shown) or ("kept" if known else "")


def _judge(answer: DiffAnswer, row: VersionFigure) -> str:
    """Return the verdict on a change, with its limit; empty without one."""
    verdict = _compare(answer, row)
    return VERDICTS[verdict].format(limit=show_change(answer.allowed[row.metric])) if verdict else ""


def _compare(answer: DiffAnswer, row: VersionFigure) -> str:
    """Return whether a change is above or below its limit, or uncertain; empty without a limit."""
    allowed = answer.allowed.get(row.metric)
    if allowed is None:
        return ""
    is_below = (row.change_fraction or 0.0) <= allowed
    return "above" if is_above(row, allowed) else "below" if is_below else "unsure"


def _picture(grid: Grid, after: str, changes: Iterable[float | None]) -> Grid:
    """Return the grid with a picture of changes around zero, beside the column with this heading."""
    marks = tuple((one or 0.0,) for one in changes)
    picture = Picture(kind="difference", after=after, rows=marks, heading=MORE, left=LESS)
    return attrs.evolve(grid, pictures=(picture,))


def draw_versions(answer: DiffAnswer, asked: Asked) -> Document:
    """Return the document of two versions: the table of one chip or of several, and the step on `find_subject`."""
    rows, most = answer.changed, asked.most(5)
    chips = list(dict.fromkeys(row.hardware for row in rows))
    subject = find_subject(answer.facts)
    is_one = len(chips) < 2
    only = mark_projected(chips[0], answer.projected) if len(chips) == 1 else ""
    values = {"before": answer.before, "after": answer.after, "name": only, **list_settings(answer.scope)}
    figures = show_figures(answer, "" if is_one else "Before and after", has_owner=not is_one)
    parts = [one for name in chips[: most or None] for one in show_subgraphs(answer, name, most)]
    return compose_runs(
        answer,
        answer.facts,
        figures if is_one else show_chips(answer),
        answer.rows,
        title=Title(form=TITLE, values=values),
        headline=describe_versions(answer.facts, answer.before, answer.after),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_shared(answer.facts),
        details=parts if is_one else [*figures, *parts],
        words={"failures": tuple(list_failures(answer.facts))},
        steps=fill_steps([DIFF], subject, asked.repeated) if subject else (),
    )


REFUSED: Final = "A run was refused, so there is no energy to compare."
RUNS_TITLE: Final = Template("Run A {a} and run B {b}")
MOVED: Final = Template(
    "energies per action and static power moved {moved:#} fJ in total; other constants act through counts and time"
)


def show_delays(answer: DifferenceAnswer, limit: int) -> list[Section]:
    """Return the section of the terms of the latency difference with their proof."""
    rows, pair = answer.delays, answer.explanation
    if rows is None:
        return []
    blocks = lay_terms(answer, rows, limit)
    if pair is not None and rows.rows:
        exact = (row.difference_exact for row in rows)
        blocks.append(prove_terms(pair, exact, pair.total.latency_difference_fs, EXACT_UNITS["latency"]))
    return [Section("Terms of the latency", blocks)] if rows else []


def show_constants(answer: DifferenceAnswer, limit: int) -> list[Section]:
    """Return the section of the constants that differ, and the energy that they move."""
    of = Constant
    columns = (
        of.constant,
        of.value_a.by(lambda row: show(row.value_a, "value")),
        of.value_b.by(lambda row: show(row.value_b, "value")),
        of.unit,
        of.ratio,
        of.moved_j,
        of.basis_b,
        of.source_b,
    )
    moved = Text(MOVED(moved=sum(row.moved_fj or 0 for row in answer.constants)))
    keep = (of.ratio, of.value_a, of.value_b, of.unit, of.moved_j)
    title = "Constants that differ"
    return show_table(answer, title, answer.constants, columns, moved, keep=keep, limit=limit, noun="constants")


def draw_runs(answer: DifferenceAnswer, asked: Asked) -> Document:
    """Return the document of two stored runs, with the explanation of their energies unless a run was refused.

    csv contains the constants.
    """
    most, pair = asked.most(20), answer.explanation
    settings = show_table(answer, "Settings that differ", answer.settings, Setting.table)
    details = [*show_constants(answer, most), *show_delays(answer, most)]
    title = RUNS_TITLE(a=answer.scope.run_ids[0], b=answer.scope.run_ids[-1])
    if pair is None:
        return compose(answer, settings, answer.constants, title=title, headline=REFUSED, details=details)
    explained = draw(pair, limit=asked.limit or 20)
    return attrs.evolve(
        explained,
        title=title,
        sections=(*explained.sections, *settings),
        details=(*details, *explained.details),
        steps=(),
        data={**answer.data(), **list_facts(pair.facts)},
        table=answer.constants,
        tables=answer.tables,
    )


PAGES: Final = {
    DiffAnswer: Page[DiffAnswer](draw=draw_versions),
    DifferenceAnswer: Page[DifferenceAnswer](draw=draw_runs),
}
