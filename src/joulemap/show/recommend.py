"""Words and tables of a recommendation: the decision within limits, what would change it, hosts and batteries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import attrs

from joulemap.ask.candidate import find_chip
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal, Supply, Turn
from joulemap.ask.recommend import TOTAL, RecommendAnswer
from joulemap.domain.column import Col
from joulemap.domain.metric import METRIC, Metric, MetricName
from joulemap.domain.table import Table
from joulemap.generated.recommend import RankedConfiguration
from joulemap.show.candidate import (
    BOUND,
    CONFIGURATIONS,
    FACTOR,
    LIMIT,
    WITH_HOST,
    ask_next,
    describe_limits,
    describe_unranked,
    describe_use,
    find_limited,
    is_best,
    list_metrics,
    mark_ranked,
    show_assumptions,
    show_metric,
    show_odds,
    title_candidates,
)
from joulemap.show.caveat import MOST_CAVEATS, describe_caveat, rank_caveats, show_middle
from joulemap.show.choice import (
    BEYOND,
    describe_choice,
    describe_choices,
    finish,
    name_metric,
)
from joulemap.show.column import find_column, show_table
from joulemap.show.fact import tell
from joulemap.show.page import Asked, Page, compose_runs
from joulemap.show.present.cell import number, show_bound, show_plain
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template
from joulemap.show.refusal import describe_unsupported
from joulemap.show.run import show_limit
from joulemap.show.run_name import drop_settings, name_all, name_first, name_run
from joulemap.show.term import describe_causes
from joulemap.show.title import Title

DAY_S: Final = 86400.0
YEAR_DAYS: Final = 365.0
WHOLE_DAYS: Final = 10.0
"""Number of days from which a battery life is shown without decimals."""

KEPT: Final = Template("{head} and meets {limits}[ ({chance:chance} likely)]")
WITHIN: Final = Template("Take {name}: {values:and} meet {limits}; {count:n other} may be as good")
ONE_LIMIT, BOTH_LIMITS, ALL_LIMITS = "the limit", "both limits", "all limits"
ONLY: Final = Template("Only {hardware} meets {limits}[, best at {settings:list}] ({noun} {value})")
BEST: Final = Template("Take {name}: the {rank} configuration[ within {limits}] ({noun} {value})")
NONE: Final = Template("No available configuration {lack}; {name}, which cannot be bought, does ({noun} {value})")
RUNS: Final = "runs the model"
MEETS: Final = Template("meets {limits}")
NOTHING: Final = Template("No configuration meets {limits}; {name} is nearest: {miss}")
UNKNOWN: Final = Template("No configuration has a known {noun}[ within {limits}]")
ABOVE: Final = Template("{label} {value} ({ratio:x} the limit of {bound})")
BELOW: Final = Template("{label} {value} ({ratio:x} below the limit of {bound})")
UNPRICED: Final = Template("its {label} is unknown (limit {bound})")

ALSO: Final = Template("{name} also misses the limit on {labels:and}")
WITHOUT: Final = Template("{host} ({alone} without it)")
ABOUT: Final = Template("{metric.best} {metric.meaning}[ at {rate}][, {limits:list}][, {use}]")
TRIED: Final = Template("{configurations} of {chips:n chip}")
EVERY: Final = Template("Every configuration ({count:#})")
MISSED: Final = Template(
    "Configurations that miss a limit ({count:#}), nearest first[; {further:#} more, of unavailable hardware, are not "
    "shown]"
)

STEP_RATE: Final = Template("recommend {model} --where scenario={scenario} --min-throughput 10/s {repeated}")
STEP_TRADE: Final = Template("pareto {model} --x {limit} --y {other} {repeated}")

FIGURES: Final[tuple[MetricName, ...]] = (
    "latency", "energy_per_inference", "throughput", "power", "memory", "price", "purchase",
)  # fmt: skip
"""Metrics shown in addition to the objective."""

PER_WORK: Final = ("energy_per_inference", "edp_per_inference")
"""Metrics whose label names the unit of work."""

SHOWN_LIMITS: Final = 2
"""Maximum limited metrics whose columns stay visible on narrow terminals."""


def describe_recommendation(facts: Facts) -> str:
    """Return the first line: the best configuration within the limits, or the nearest miss."""
    decision, limits = find_decision(facts), name_limits(facts)
    if decision is None:
        return _describe_miss(facts) + "."
    first, run = decision.choice, facts.runs[decision.run]
    value = facts.find_values(decision.run)[first.metric]
    given = {
        "name": name_run(run),
        "hardware": run.hardware,
        "limits": limits,
        "noun": name_metric(first.metric, first.per),
        "value": show_metric(first.metric, value.value),
    }
    if not run.is_available and (lack := _find_lack(facts)):
        return finish([NONE(lack=lack, **given)])
    if len(first.runs) < 2:
        is_alone = run.is_available and any(one.missed_count for one in facts.of(Limit))
        if is_alone:
            return finish([ONLY(settings=run.settings, **given)])
        is_sold = all(one.is_available for one in facts.runs.values())
        rank = "best" if run.settings else "only" if is_sold else "only available"
        return finish([BEST(rank=rank, **given)], run)
    if not limits or not run.is_available or not first.tied:
        unsure = [one.values["probability"] for one in facts.of(Caveat) if one.kind == "kept" and one.weight]
        more = {"limits": limits, "chance": next(iter(unsure), None)}
        add = [KEPT] * bool(limits and run.is_available)
        return describe_choices(facts.of(Choice), facts.runs, *add, **more)
    values = [given["value"], *(show_middle(one.value)
                                for one in facts.of(Limit) if one.value is not None)]  # fmt: skip
    (name,) = name_all(drop_settings(facts.runs, first.close), [decision.run])
    head = WITHIN(name=name, values=values, limits=limits, count=len(first.tied))
    return finish([head])


def name_limits(facts: Facts) -> str:
    """Return the limits in words; empty without any."""
    count = len(facts.of(Limit))
    return "" if not count else ONE_LIMIT if count == 1 else BOTH_LIMITS if count == 2 else ALL_LIMITS


def _find_lack(facts: Facts) -> str:
    """Return what no available hardware does: to run the model, or to meet the limits; empty if all is unavailable."""
    if any(run.is_available for one in facts.of(Refusal) for run in map(facts.runs.__getitem__, one.runs)):
        return RUNS
    missed = (one for one in facts.of(Limit) if one.miss != 0.0)
    is_missed = any(facts.runs[run].is_available for one in missed for run in one.runs)
    return MEETS(limits=name_limits(facts)) if is_missed else ""


def _describe_miss(facts: Facts) -> str:
    """Return the clause on the nearest miss, or on unknown values."""
    limits = name_limits(facts)
    for one in facts.of(Limit):
        if one.miss != 0.0 and one.runs:
            return NOTHING(name=name_first(facts.runs, one), limits=limits, miss=_describe_limit(one))
    return UNKNOWN(noun=name_metric(facts.asked[0]), limits=limits)


def _describe_limit(limit: Limit) -> str:
    """Return how far a run misses a limit."""
    given = {"label": find_limited(limit.metric).label, "bound": show_bound(limit.bound.value, limit.bound.unit)}
    if limit.value is None or limit.miss is None:
        return UNPRICED(**given)
    template = BELOW if METRIC[limit.metric].is_higher_better else ABOVE
    return template(value=show_middle(limit.value), ratio=math.exp(limit.miss), **given)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: the cause of the lead, what would change the decision, the host, and the battery."""
    facts = attrs.evolve(facts, runs=drop_settings(facts.runs, facts.runs))
    choices, runs = facts.of(Choice), facts.runs
    also = [one for one in facts.of(Limit) if one.miss and one.miss > 0.0][1:]
    missed = [ALSO(name=name_first(runs, one), labels=[find_limited(each.metric).label for each in also])
              for one in also[:1]]  # fmt: skip
    beyond = [one for one in choices[1:] if one.metric == choices[0].metric and runs[one.run].is_named]
    causes = describe_causes(facts, 1)
    return [
        *missed,
        *(tell(LIVES, one, facts, time=show_life(one.life)) for one in facts.of(Supply)),
        *causes[:1],
        *(describe_turn(one, facts) for one in facts.of(Turn)),
        *_describe_hosts(facts),
        *(BEYOND(name=name_first(runs, one), clause=describe_choice(one, runs)) for one in beyond),
        *causes[1:],
    ]


def _describe_hosts(facts: Facts) -> list[str]:
    """Return the sentence on the host of the winner, unless the line on trust has it."""
    decision = find_decision(facts)
    own = set() if decision is None else {decision.run}
    alone = [one.values["hostless"] for one in facts.of(Entry) if one.run in own and "hostless" in one.values]
    told = {one.kind for one, _ in rank_caveats(facts)[:MOST_CAVEATS]}
    return [
        WITHOUT(host=describe_caveat(one, facts.runs, (*own,)), alone=show_middle(alone[0]))
        for one in facts.of(Caveat)
        if one.kind == "counted" and one.kind not in told and own & {*one.runs}
    ]


def show_life(life: Quantity) -> str:
    """Return the life of a battery in years, or in days if it is below a year."""
    days = life.value / DAY_S
    if days >= YEAR_DAYS:
        years = f"{days / YEAR_DAYS:.2g}"
        return f"{years} year" if years == "1" else f"{years} years"
    return f"{days:.0f} days" if days >= WHOLE_DAYS else f"{days:.2g} days"


LIVES: Final = Template("{run} draws {power} on average, without sensor and radio: {time} on {name}")
HOSTLESS: Final = Template("without hosts, {run} would lead: {value} ({before} with its host)")
LOOSER: Final = Template("{label} {word} {after}: {run} would lead with {value}")


def describe_turn(turn: Turn, facts: Facts) -> str:
    """Return the line on another run that would lead without hosts, or with a looser limit."""
    if turn.axis == "host":
        return tell(HOSTLESS, turn, facts)
    metric = METRIC[turn.axis]
    return tell(LOOSER, turn, facts, label=metric.label, word="down to" if metric.is_higher_better else "up to")


def label_metric(name: str, per: str) -> str:
    """Return the heading of a metric; a metric per inference is named per unit of work."""
    return name_metric(name, per) if name in PER_WORK else METRIC[name].label


def title_recommendation(answer: RecommendAnswer) -> Title:
    """Return the subject line: the objective, the limits, and the assumptions of a cost."""
    metric, rows, rate = METRIC[answer.objective], answer.rows.rows, show_rate(answer)
    about = ABOUT(
        metric=metric,
        rate=rate if metric.energy_power else "",
        limits=describe_limits(answer.limits, BOUND, rate),
        use=describe_use(answer.assumptions, rows[0].pay) if answer.objective == "cost" and rows else "",
    )
    return title_candidates(answer, about, [row for row in rows if row.status != "unsupported"])


def show_rate(answer: RecommendAnswer) -> str:
    """Return the fixed rate; empty if the chip runs at full speed."""
    return show_metric("throughput", answer.rate_per_s) if answer.rate_per_s else ""


def list_steps(answer: RecommendAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return follow-up commands: show the trade-off if no configuration fits, otherwise compare the best two.

    Commands that analyze the best configurations follow.
    """
    best, nearest, case = answer.best, answer.nearest_miss, answer.use_case
    chosen = [row for row in (best, nearest, answer.projection) if row is not None]
    steps = ask_next(answer, answer.tied_pair, chosen, repeated)
    given = {"model": answer.scope.model, "repeated": repeated}
    if best is None and nearest is not None and nearest.worst_limit is not None:
        other = "latency" if nearest.worst_limit != "latency" else "energy_per_inference"
        return [STEP_TRADE.words(limit=nearest.worst_limit, other=other, **given), *steps]
    if case is not None and case.battery is not None and not answer.rate_per_s:
        steps.insert(len(steps) - len(chosen), STEP_RATE.words(scenario=answer.scope.settings.scenario, **given))
    return steps


def list_notes(answer: RecommendAnswer) -> list[str]:
    """Return notes on what was tried, and on hardware that is not ranked or has no result."""
    refused = describe_unsupported(answer.scope.refused_runs)
    return [
        TRIED(configurations=CONFIGURATIONS(count=len(answer.rows)), chips=len({*map(find_chip, answer.rows)})),
        *describe_unranked(answer, answer.unranked),
        *([refused] if refused else []),
    ]


def list_bounded(answer: RecommendAnswer) -> list[Col[RankedConfiguration]]:
    """Return the columns of the limited metrics, those with the host as limits refer to them."""
    return [
        find_column(RankedConfiguration, TOTAL.get(name, METRIC[name].column)).headed(
            WITH_HOST(label=METRIC[name].label) if name in TOTAL and not answer.counts_hosts else METRIC[name].label
        )
        for name, _ in answer.limits.bounds
        if name != answer.objective
    ]


def list_figures(answer: RecommendAnswer) -> list[Col[RankedConfiguration]]:
    """Return the columns of the metrics that are shown in addition to the objective."""
    of, has_power = RankedConfiguration, bool(show_rate(answer) or answer.limits.max_power_w)
    figures = list_metrics(of, FIGURES, (answer.objective, *(("power",) if has_power else ())))
    power = [of.total_power_w.headed(WITH_HOST(label="power"))] if has_power else []
    return [*figures, *power, of.throughput_limit.by(show_limit).if_any]


def show_ranked(
    answer: RecommendAnswer,
    title: str,
    table: Table[RankedConfiguration],
    columns: Iterable[Col[RankedConfiguration]],
    chance: Callable[[RankedConfiguration], float | None],
    limit: int,
    noun: str,
    stages: Iterable[Col[RankedConfiguration]] = (),
) -> list[Section]:
    """Return the section of ranked configurations; `columns` and `stages` are further ones, `chance` is what a row
    tells.
    """
    of, name, metric = RankedConfiguration, answer.objective, METRIC[answer.objective]
    label, is_money = label_metric(name, answer.per), name == "cost"
    whole = "objective_value" if answer.counts_hosts else metric.column
    value = of.objective_value.headed(label).by(lambda row: show_metric(name, row.objective_value), whole).ranking
    hostless = (
        of.hostless_value.headed(f"{label} without host").by(lambda row: show_metric(name, row.hostless_value)),
        of.host_energy_per_inference_j if metric.unit == "J" else None,
    )
    rated = (of.idle_energy_per_inference_j.headed("idle energy"), of.busy_fraction.headed("busy"))
    every = (
        of.hardware,
        of.precision.if_varied.kept,
        of.batch.if_varied.kept,
        of.runtime.if_varied.kept,
        of.way.if_varied if is_money else None,
        value,
        of.objective_half_width.ends_of(of.objective_value).if_any.drawn,
        of.objective_ratio.by(partial(_show_factor, metric)).if_varied.kept,
        *columns,
        of.probability_best.by(lambda row: show_odds(answer, chance(row), answer.best, row)).if_any,
        of.price_text if is_money else None,
        *(hostless if answer.counts_hosts else ()),
        *stages,
        *(rated if show_rate(answer) else ()),
    )
    return show_table(
        answer,
        title,
        table,
        every,
        keep=(of.precision, of.batch, of.runtime, of.objective_ratio, of.objective_half_width),
        limit=limit,
        noun=noun,
        stays=is_best(answer),
        change=lambda drawn: mark_ranked(answer, drawn, table, limit, label),
    )


def _show_factor(metric: Metric, row: RankedConfiguration) -> str:
    """Return the factor by which a configuration is worse than the best."""
    ratio = row.objective_ratio
    return FACTOR(ratio=1.0 / ratio if ratio and metric.is_higher_better else ratio)


@number
def _percent(row: RankedConfiguration) -> str:
    return "" if row.violation_fraction is None else f"{show_plain(row.violation_fraction * 100)} %"


def show_missed(answer: RecommendAnswer, limit: int) -> list[Section]:
    """Return the section of configurations that miss a limit, each with the largest violation and the other ones."""
    of, failed = RankedConfiguration, dict[int, set[str]]()
    for one in answer.violations:
        failed.setdefault(one.run_id, set()).add(one.limit_name)

    def list_others(row: RankedConfiguration) -> str:
        names = failed.get(row.run_id, set()) - {row.worst_limit}
        return ", ".join(find_limited(name).label for name in METRIC if name in names)

    columns = (
        of.hardware,
        of.precision.kept,
        of.batch.kept,
        of.runtime if len(answer.scope.runtimes) > 1 else None,
        of.worst_limit.headed("missed limit").by(_name_worst).ranking.kept,
        of.violation_fraction.by(_percent).ranking.kept,
        of.worst_value.by(_show_worst).kept,
        of.worst_bound.by(_show_bound).kept,
        of.failed.by(list_others),
    )
    unseen = len(answer.select("infeasible")) - len(answer.missed)
    title = MISSED(count=len(answer.missed), further=unseen or None)
    return show_table(answer, title, answer.missed, columns, limit=limit, noun="configurations")


def _name_worst(row: RankedConfiguration) -> str:
    """Return the limit that a configuration violates most."""
    return find_limited(row.worst_limit).label if row.worst_limit else ""


def _show_worst(row: RankedConfiguration) -> str:
    """Return the value that violates a limit most."""
    return (row.worst_limit and show_metric(row.worst_limit, row.worst_value)) or "not known"


def _show_bound(row: RankedConfiguration) -> str:
    """Return the bound that a configuration violates most."""
    return show_bound(row.worst_bound or 0.0, row.worst_unit or "") if row.worst_limit else ""


def draw_recommendation(
    answer: RecommendAnswer, asked: Asked, stages: Sequence[Col[RankedConfiguration]] = ()
) -> Document:
    """Return the document of a recommendation; `stages` are further columns of ranked configurations."""
    most, chances, bounded = asked.most(6), answer.chances, list_bounded(answer)
    held = {one.field for one in bounded[:SHOWN_LIMITS]}
    limited = [one.ranking if one.field in held else one for one in bounded]
    is_single, is_only = len(answer.shown_chips) < 2, len(answer.shown) < 2
    chips = show_ranked(
        answer,
        "",
        answer.shown_chips,
        limited,
        lambda row: None if is_single else chances.get(find_chip(row)),
        most,
        "chips",
        stages,
    )
    every = show_ranked(
        answer,
        EVERY(count=len(answer.shown)),
        answer.shown,
        list_figures(answer),
        lambda row: None if is_only else row.probability_best,
        most,
        "configurations",
        stages,
    )
    missed, assumed = show_missed(answer, most), show_assumptions(answer)
    first, rest = (chips, [*every, *missed]) if answer.shown.rows else (missed, [*chips, *every])
    limits = zip(answer.data()["limits"], describe_limits(answer.limits, LIMIT, show_rate(answer)), strict=True)
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.rows,
        title=title_recommendation(answer),
        beside=" plus host" if answer.counts_hosts else "",
        headline=describe_recommendation(answer.facts),
        reasons=list_reasons(answer.facts),
        details=[*rest, *assumed],
        notes=list_notes(answer),
        words={"limits": [{**one, "meaning": meaning} for one, meaning in limits]},
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {RecommendAnswer: Page[RecommendAnswer](draw=draw_recommendation)}
