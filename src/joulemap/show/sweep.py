"""Words and tables of a sweep over batch sizes: the decision, where another chip becomes best, and falls."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from joulemap.ask.decision import decide
from joulemap.ask.fact import Change, Choice, Entry, Facts, Limit, Subject, Turn
from joulemap.ask.sweep import ASKED, SweepAnswer, find_series
from joulemap.domain.column import Col
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import SweepDivision
from joulemap.domain.table import Column, Table, first_of_each, group
from joulemap.generated.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.physics.record.weight import spell_precision
from joulemap.show.caveat import format_value, show_middle
from joulemap.show.choice import describe_choice, describe_choices, finish, name_metric
from joulemap.show.column import derived, find_column, lay_columns
from joulemap.show.page import Asked, Figures, Page, compose_runs, draw_figure, fill_steps, tell_left_out
from joulemap.show.present.category import name_bound
from joulemap.show.present.cell import (
    Remark,
    is_tied,
    mark_projected,
    show,
    show_ends,
    show_quantity,
    show_span,
)
from joulemap.show.present.document import Document, Grid, Section, choose_rows
from joulemap.show.present.picture import Marks, Picture
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import show_limit, show_sure
from joulemap.show.run_name import drop_settings, join_names, name_all, name_first, name_run
from joulemap.show.title import Title

ALONE: Final = Template(
    "Use batch {energy_batch} on {name} for energy, {energy_per_inference} per inference, and batch {throughput_batch} "
    "for throughput, {throughput}."
)
AT_ONE: Final = Template("Use batch {energy_batch} on {name}: {energy_per_inference} per inference and {throughput}.")
ONLY: Final = Template("Take {name}: of these chips, it alone {able:and}")
NEVER: Final = Template("Of these chips, {name} alone {able:and}")
SOLD, WITHIN = "can be bought", Template("has a batch within {bound:s}")
ONE_CHIP: Final = Template(
    "{name} uses the least energy per inference at batch {lean:range} and has its highest throughput at batch "
    "{busy:range}, depending on the model."
)
OF_MODELS: Final = {
    "energy_per_inference": Template("{name} for energy per inference ({count} of {models} models)"),
    "throughput": Template("{name} for throughput ({count} of {models})"),
}
"""Metric -> clause on the chip that is best for most models."""

ON_EACH: Final = Template("{head}; batch {batch} on {name}, {rival_batch} on {rival}")
AT_EACH: Final = Template("{head}, at batch {batch}[ and {other_batch}]")
ON: Final = Template("batch {batch} on {name}")
EFFICIENT: Final = Template("with {chips:and}, inferences per joule come within 10 % of the most")
COURSE: Final = Template("[{settings:list}: ]{nouns:and}: {course}")
ALWAYS: Final = Template("{name} is best at every batch")
FIRST: Final = Template("{name} is best from batch {batch}{turns}")
TURN: Final = Template(", {name} from batch {batch}[ ({remark})]")
FORCED: Final = Template("which {previous} cannot run")

BEYOND_LIMIT: Final = Template("{names} exceed[{s}] {bound:s} at every batch; the nearest takes {value:s}")

FALL: Final = Template(
    "{name}: throughput falls from {before:1/s} at batch {batch} to {after:1/s} at batch {last_batch}[, because "
    "{cause}]"
)
CAUSE: Final[Mapping[str, Template]] = {
    "spill": Template("activations spill off chip ({traffic_before} to {traffic_after} per inference)"),
    "clock": Template("the power cap lowers the clock to {clock_fraction:%}"),
}
"""Cause of a fall -> its clause."""

WHY: Final = ("energy_per_inference", "latency")
"""Metrics whose turns are among the reasons, for the model and settings of the decision; the others are notes."""

NOT_SOLD: Final = Template("{name}, which cannot be bought, {clause}")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the best chip by energy and by throughput, or the values of the only chip."""
    choices = list_decided(facts)
    entries = facts.of(Entry)
    if len(entries) == 1:
        values = {name: show_middle(one).strip() for name, one in entries[0].values.items()}
        form = AT_ONE if values["energy_batch"] == values["throughput_batch"] else ALONE
        return form(name=name_run(facts.runs[entries[0].run]), **values)
    models = list(dict.fromkeys(one.model for one in choices))
    if len(models) == 1 and len(choices[0].runs) < 2:
        run = facts.runs[choices[0].run]
        is_sold = run.is_available and any(not one.is_available for one in facts.runs.values())
        able = [*(WITHIN(bound=one.bound.value) for one in facts.of(Limit)), *([SOLD] if is_sold else [])]
        return finish([(ONLY if run.is_available else NEVER)(name=name_run(run), able=able)], run)
    if len(models) == 1:
        runs, goals = _find_taken(facts)
        batches = [round(facts.find_values(run)[goal].value) for run, goal in zip(runs, goals, strict=True)]
        named = drop_settings(facts.runs, runs)
        name, rival = (name_run(named[run]) for run in runs)
        batch, other = batches
        given = {"batch": batch, "rival_batch": other, "other_batch": other if other != batch else ""}
        given |= {"name": name, "rival": rival}
        return describe_choices(choices, facts.runs, ON_EACH, AT_EACH, **given)
    names = {name_first(facts.runs, one) for one in entries}
    if len(names) == 1:
        lean, busy = (
            [f"{pick(one.values[name].value for one in entries):.0f}" for pick in (min, max)]
            for name in ("energy_batch", "throughput_batch")
        )
        return ONE_CHIP(name=names.pop(), lean=lean, busy=busy)
    clauses = []
    for metric, template in OF_MODELS.items():
        won = Counter(name_first(facts.runs, one) for one in choices if one.metric == metric)
        name, count = won.most_common(1)[0]
        clauses.append(template(name=name, count=count, models=len(models)))
    return ", ".join(clauses) + "."


def _find_taken(facts: Facts) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the runs of the decision, and of each the value of its row that is its batch."""
    decision = decide(list_decided(facts), facts.runs)
    return decision.runs, ("energy_batch", "throughput_batch" if decision.is_trade else "energy_batch")


def _describe_efficient(facts: Facts) -> list[str]:
    """Return a line on the smallest batches that nearly reach the least energy, if they are smaller than its own."""
    runs = _find_taken(facts)[0] if len(facts.of(Entry)) > 1 else facts.of(Entry)[0].runs[:1]
    named, values = drop_settings(facts.runs, runs), {run: facts.find_values(run) for run in runs}
    small = {run: one for run, one in values.items() if one["efficient_batch"].value < one["energy_batch"].value}
    chips = [ON(batch=round(one["efficient_batch"].value), name=name_run(named[run])) for run, one in small.items()]
    return [EFFICIENT(chips=chips)] if chips else []


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: chips beyond the limit, efficient batches, turns, falls, and named hardware that cannot be
    bought.
    """
    decided = list_decided(facts)
    beyond = [
        NOT_SOLD(name=name_first(facts.runs, one), clause=describe_choice(one, facts.runs))
        for one in facts.of(Choice)
        if one not in decided and facts.runs[one.run].is_named
    ]
    falls = [describe_fall(one, facts.runs) for one in facts.of(Change)]
    limits = [describe_limit(one, facts.runs) for one in facts.of(Limit)]
    names = WHY if all(not one.model for one in decided) else WHY[:1]
    first = tuple(filter(None, (decided[0].model, *facts.runs[decided[0].run].settings)))
    turns = list_turns(facts, names=names, settings=first)
    efficient = _describe_efficient(facts) if all(not one.model for one in decided) else []
    return [*limits, *beyond[:1], *efficient, *turns, *falls]


def describe_limit(limit: Limit, runs: Mapping[int, Subject]) -> str:
    """Return a line on the chips that exceed a limit at every batch."""
    names = name_all(runs, limit.runs)
    value = limit.value.value if limit.value is not None else None
    return BEYOND_LIMIT(
        names=join_names(names), s="s" if len(names) == 1 else None, bound=limit.bound.value, value=value
    )


def list_turns(facts: Facts, *, names: Sequence[str] = (), settings: tuple[str, ...] | None = None) -> list[str]:
    """Return a line per course along the batches: the best chip of some metrics at small batches, and its successors.

    `names` restricts the metrics, `settings` the model and settings; a single group has no settings.
    """
    turns = [
        one
        for one in facts.of(Turn)
        if (not names or one.metric in names) and (settings is None or one.settings in ((), settings))
    ]
    courses = group(turns, lambda one: (one.settings, one.metric or ""))
    told = [
        (place, describe_course(course, facts.runs), name_metric(name)) for (place, name), course in courses.items()
    ]
    alike = group(told, lambda one: one[:2])
    return [
        COURSE(settings=place, nouns=[one[2] for one in own], course=course) for (place, course), own in alike.items()
    ]


def describe_course(turns: Sequence[Turn], runs: Mapping[int, Subject]) -> str:
    """Return the clause on the turns of one metric, which start with the best run of the smallest batch."""
    first, *later = turns
    name = _name_chip(runs[first.run])
    if not later:
        return ALWAYS(name=name)
    moves = []
    for before, one in zip(turns, later, strict=False):
        forced = FORCED(previous=_name_chip(runs[before.run])) if one.is_forced else ""
        remark = "statistically tied" if one.is_tied else forced
        moves.append(TURN(name=_name_chip(runs[one.run]), batch=one.after, remark=remark))
    return FIRST(name=name, batch=first.after, turns="".join(moves))


def describe_fall(fall: Change, runs: Mapping[int, Subject]) -> str:
    """Return a line on a fall of throughput at large batches, with its cause."""
    given = {name: format_value(one) for name, one in fall.values.items()}
    cause = CAUSE[fall.cause](**given) if fall.cause else ""
    return FALL(
        name=name_first(runs, fall),
        before=fall.before.value,
        after=fall.after.value,
        cause=cause,
        batch=given["batch"],
        last_batch=given["last_batch"],
    )


def _name_chip(run: Subject) -> str:
    """Return the name of a run without its settings, which the line states."""
    return name_run(attrs.evolve(run, settings=()))


def list_decided(facts: Facts) -> list[Choice]:
    """Return the choices of the first line: the first of each model and metric."""
    return list(first_of_each(facts.of(Choice), lambda one: (one.model, one.metric)).values())


TITLE: Final = Template("{models:list}, {batches}, {hardware:n chip}, {precisions:list}, {runtimes:list}")
MANY_MODELS: Final = Template("{count} models")
SPAN: Final = Template("batch {first}[ to {last}]")
SERIES: Final = Template("{model} on {name}")
CAP_SERIES: Final = Template("{chip}, batch {batch}")
PAIR: Final = Template("{one} against {other}[ at batch {batch}]")
TIED_WITH: Final = Template("tied with {runner_up}")
TABLES: Final[Mapping[SweepDivision, str]] = {
    "hardware": "series", "batch": "points", "winner": "winners", "crossing": "crossings"
}  # fmt: skip
"""Division -> table of the answer, in the order of follow-up commands."""

BEST_BATCH: Final = "Best batch of each chip"
AT_BATCH: Final = Template("[{energy_per_inference_j:J} at {energy_batch}]")
STEPS: Final = (
    Template("sweep {models} --level {deeper} {again}"),
    Template("[utilization {model} {hardware} --batch {batch}] {precision} [--runtime {runtime}]"),
    Template("[edp {model} {hardware} --batch {batch}] {precision} [--runtime {runtime}]"),
)
Row = TypeVar("Row")

SHOWN_TURNS: Final = 12
"""Maximum sentences of a figure."""

LABELLED: Final = (Column(name="label", type="VARCHAR", meaning="hardware, with the settings that vary"),)
"""Columns that a figure's rows have in addition to the query's columns."""

CAPPED: Final = (
    *LABELLED,
    Column(name="chip", type="VARCHAR", meaning="hardware without its power mode"),
    Column(name="cap_w", type="DOUBLE", meaning="power cap of its mode"),
)
"""Columns that the rows of a figure over power caps have in addition."""

FEWEST_CAPS: Final = 3
"""Minimum caps of one chip for a figure over power caps."""

SHOWN_MODELS: Final = 4


def draw(answer: SweepAnswer) -> Figures:
    """Return a figure of energy, latency and throughput over the batch size, and one over the power cap if a chip has
    several.
    """
    varying = [name for name in answer.varying if name != "model"]
    series = " ".join(f"{{{name}}}" for name in ("hardware", *varying))
    texts = {"series": series, "of": " of {model}" if len(answer.scope.models) > 1 else ""}

    def label(row: SweepPoint) -> str:
        name = " ".join((mark_projected(row.hardware, answer.projected), *(getattr(row, one) for one in varying)))
        return SERIES(model=row.model, name=name) if "model" in answer.varying else name

    named = answer.points.with_columns(LABELLED, ((label(row),) for row in answer.points))
    told = join_clauses(list_turns(answer.facts)[:SHOWN_TURNS])
    drawn = draw_figure(answer.scope, "sweep", named, None, told, texts)
    chips = {row.hardware: HardwareRef.read(row.hardware).label for row in answer.points}
    count = Counter(chips.values())
    rows = [row for row in answer.points if count[chips[row.hardware]] >= FEWEST_CAPS]
    cells = (
        (CAP_SERIES(row, chip=chips[row.hardware]), chips[row.hardware], answer.caps_w[row.hardware]) for row in rows
    )
    capped = answer.points.with_rows(rows).with_columns(CAPPED, cells)
    return (drawn, *([draw_figure(answer.scope, "cap", capped, None, "", texts)] if rows else []))


def list_best(answer: SweepAnswer, row: SweepSeries) -> list[int | None]:
    """Return the runs of a series with the lowest energy per inference and with the highest throughput."""
    points = (answer.find_point(row, batch) for batch in (row.energy_batch, row.throughput_batch))
    return [None if point is None else point.run_id for point in points]


def mark_best(answer: SweepAnswer, grid: Grid, series: Table[SweepSeries], rows: Sequence[SweepSeries]) -> Grid:
    """Return the table of the best batches, with the best of each model marked, and a trend by batch."""
    marks = tuple(_follow(answer, row) for row in rows)
    trend = Picture(kind="trend", after="ratio", of=METRIC[ASKED[0]].label, heading="by batch", rows=marks)
    drawn = attrs.evolve(grid, pictures=(trend,))
    for column, metric in enumerate(ASKED if len(series) > 1 else ()):
        choices = [one for one in list_decided(answer.facts) if one.metric == metric]
        close = {run_id for one in choices for run_id in (*one.tied, *one.equal)}
        ids = [list_best(answer, row)[column] for row in rows]
        drawn = drawn.mark_best(METRIC[metric].label, ids, {one.run for one in choices}, close)
    return drawn


def lay_series(answer: SweepAnswer, limit: int | None) -> Grid:
    """Return the table of the best batches of each chip."""
    of, decided, models = SweepSeries, list_decided(answer.facts), answer.scope.models
    places = {name: index for index, name in enumerate(dict.fromkeys(row.model for row in answer.series))}
    ran = [row for row in answer.series if row.batch_count]
    ordered = sorted(ran, key=lambda row: (places[row.model], row.energy_per_inference_j or 0.0))
    series, leaders = answer.series.with_rows(ordered), {(one.metric, one.run) for one in decided}
    least = {one.model or name: one.value.value for one in decided if one.metric == ASKED[0] for name in models}
    widths = {run_id: one.energy_half_width for run_id, one in answer.scope.outlines.items()}

    def stays(row: SweepSeries) -> bool:
        return not leaders.isdisjoint(zip(ASKED, list_best(answer, row), strict=True))

    def show_range(row: SweepSeries) -> str:
        return show_ends(row.energy_per_inference_j, "J", widths[list_best(answer, row)[0] or 0])

    ratio: Col[SweepSeries] = derived(
        "ratio", lambda row: show((row.energy_per_inference_j or 0.0) / least[row.model], "ratio")
    )
    energies: Col[SweepSeries] = derived("energy range", show_range)
    columns = (
        *list_varying(answer, of),
        of.hardware.kept,
        of.energy_per_inference_j.by(AT_BATCH, find_run=lambda row: list_best(answer, row)[0]).ranking.kept,
        of.throughput_per_s.ranking.kept,
        ratio.kept,
        energies,
        of.least_latency_s,
        of.throughput_latency_s,
        of.throughput_limit.by(lambda row: _name_limit(row, answer.find_point(row, row.throughput_batch))).if_any,
        of.zone_low_batch.by(lambda row: show_zone(row.zone_low_batch, row.zone_high_batch)),
        of.zone_low_power_w.by(lambda row: show_zone(row.zone_low_power_w, row.zone_high_power_w, "W")),
        of.largest_batch,
        of.largest_batch_scaling_ratio,
    )
    drawn = lay_columns(answer, series, columns, limit=limit, stays=stays)
    return mark_best(answer, drawn, series, choose_rows(series.rows, limit, stays))


def lay_points(answer: SweepAnswer, limit: int | None) -> Grid:
    """Return the table of every batch."""
    of = SweepPoint
    columns = (
        *list_varying(answer, of),
        of.hardware.kept,
        of.batch.kept,
        of.latency_s.by(lambda row: show_quantity(row.latency_s, "s") or row.status).kept,
        of.throughput_per_s.kept,
        of.throughput_limit.by(lambda row: _name_limit(row, row)).if_any,
        of.speedup_ratio,
        of.batch_scaling_ratio,
        of.energy_per_inference_j.kept,
        of.average_power_w.kept,
        of.inferences_per_j,
        of.is_in_zone.by(lambda row: show(row.is_in_zone, "") if row.status == "ok" else ""),
        of.compute_utilization_fraction.headed("utilization"),
        of.bandwidth_utilization_fraction,
        of.peak_memory_bytes,
    )
    return lay_columns(answer, answer.points, columns, limit=limit)


def lay_winners(answer: SweepAnswer, rows: Table[SweepWinner], limit: int | None) -> Grid:
    """Return the table of the best hardware at each batch."""
    of = SweepWinner
    columns = (
        *list_varying(answer, of),
        of.metric.kept,
        of.batch.kept,
        of.winner.kept,
        of.value.kept,
        of.advantage_ratio,
        of.probability_ahead.by(partial(show_confidence, answer)).kept,
        of.candidate_count,
        of.is_change.kept,
    )
    return lay_columns(answer, rows, columns, limit=limit)


def lay_crossings(answer: SweepAnswer, limit: int | None) -> Grid:
    """Return the table of pairs whose order reverses."""
    of = SweepCrossing
    columns = (
        *list_varying(answer, of),
        of.metric.kept,
        of.batch.kept,
        of.overtaker.kept,
        of.overtaken.kept,
        of.overtaker_value.by(lambda row: show_pair(row.unit, row.overtaker_value, row.overtaken_value)),
        of.previous_overtaker_value.by(
            lambda row: show_pair(
                row.unit, row.previous_overtaker_value, row.previous_overtaken_value, row.previous_batch
            )
        ),
    )
    return lay_columns(answer, answer.crossings, columns, limit=limit)


def list_varying(answer: SweepAnswer, row: type[Row]) -> list[Col[Row]]:
    """Return the columns of the settings that vary, the batch apart."""
    return [find_column(row, name).kept for name in answer.varying]


def _follow(answer: SweepAnswer, row: SweepSeries) -> Marks:
    """Return the energy per inference of a series at each batch size that its chip can run."""
    own = sorted((one for one in answer.points if find_series(one) == find_series(row)), key=lambda one: one.batch)
    values = tuple(one.energy_per_inference_j for one in own if one.energy_per_inference_j)
    return values if len(values) > 1 else ()


def _name_limit(row: SweepSeries | SweepPoint, point: SweepPoint | None) -> str:
    """Return what limits the throughput, or the latency of one batch at a run; empty if unknown."""
    return show_limit(row) or ("" if point is None else name_bound(point.bound or ""))


def show_zone(low: float | None, high: float | None, unit: str = "") -> str:
    """Return the range of the efficient batches, or of a value at them; empty without any."""
    return show_span(*(show_quantity(one, unit) if unit else str(one) for one in (low, high))) if low else ""


def show_confidence(answer: SweepAnswer, row: SweepWinner) -> str:
    """Return how surely a winner is better than the runner-up."""
    if row.runner_up and is_tied(row.probability_ahead):
        return Remark(TIED_WITH(runner_up=mark_projected(row.runner_up, answer.projected)))
    return show_sure(answer.scope, row.probability_ahead, row.winner)


def show_pair(unit: str, one: float, other: float, batch: int | None = None) -> str:
    """Return the values of two chips."""
    return PAIR(one=show_quantity(one, unit), other=show_quantity(other, unit), batch=batch)


def title_sweep(answer: SweepAnswer) -> Title:
    """Return the title: models, batch sizes, number of chips, precisions and runtimes."""
    scope = answer.scope
    models, batches = scope.models, scope.batches
    values = {
        "models": models if len(models) <= SHOWN_MODELS else [MANY_MODELS(count=len(models))],
        "batches": SPAN(first=batches[0], last=batches[-1] if len(batches) > 1 else ""),
        "hardware": len({row.hardware for row in answer.series}),
        "precisions": scope.labels,
        "runtimes": scope.runtimes,
    }
    return Title(form=TITLE, values=values)


def draw_sweep(answer: SweepAnswer, asked: Asked) -> Document:
    """Return the document of a sweep; the first table is that of a division, whose rows alone are limited.

    The details leave out winners that had no rival. `again` holds options that only a repeat of this sweep needs.
    """
    by: SweepDivision = next((name for name in TABLES if name == asked.by), "hardware")
    contested = answer.winners.with_rows(row for row in answer.winners if row.candidate_count > 1)
    tables: dict[SweepDivision, tuple[str, Table[Any], Callable[[int | None], Grid]]] = {
        "hardware": ("" if by == "hardware" else BEST_BATCH, answer.series, partial(lay_series, answer)),
        "batch": ("Every batch", answer.points, partial(lay_points, answer)),
        "winner": (
            "Best hardware at each batch",
            answer.winners if by == "winner" else contested,
            partial(lay_winners, answer, answer.winners if by == "winner" else contested),
        ),
        "crossing": ("Pairs whose order reverses", answer.crossings, partial(lay_crossings, answer)),
    }
    below = tell_left_out(answer.scope) if answer.scope.settings.hardware else ()
    title, table, lay = tables.pop(by)
    first = [Section(title, (lay(asked.most(4)), *below), is_tight=True)] if table else []
    rest = [Section(title, lay(None), is_tight=True) for title, table, lay in tables.values() if table]
    divisions, told = tuple(TABLES), list_reasons(answer.facts)
    best = next(row for row in answer.series if row.throughput_batch is not None)
    steps = fill_steps(
        STEPS,
        None,
        asked.repeated,
        models=answer.scope.models,
        deeper=dict(itertools.pairwise(divisions + divisions[:1]))[by],
        again=asked.again,
        model=best.model,
        hardware=answer.scope.spell(best.hardware),
        batch=best.throughput_batch,
        precision=spell_precision(best.precision) if best.precision != "fp32" else [],
        runtime=best.runtime if best.runtime != USUAL_RUNTIME else "",
    )
    return compose_runs(
        answer,
        answer.facts,
        first,
        getattr(answer, TABLES[by]),
        title=title_sweep(answer),
        headline=describe_answer(answer.facts),
        reasons=told,
        details=rest,
        notes=[line for line in list_turns(answer.facts) if line not in told],
        steps=steps,
    )


PAGES: Final = {SweepAnswer: Page[SweepAnswer](draw=draw_sweep, draw_figures=draw)}
