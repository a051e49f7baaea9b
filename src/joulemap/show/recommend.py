"""Words and tables of a recommendation: the decision within limits, what would change it, hosts and batteries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.candidate import find_chip
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal, Supply, Turn
from joulemap.ask.recommend import TOTAL, RecommendAnswer
from joulemap.domain.metric import METRIC, MetricName
from joulemap.generated.recommend import RankedConfiguration
from joulemap.show.candidate import (
    ASSUMED,
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
from joulemap.show.fact import tell
from joulemap.show.present.cell import number, show_bound, show_plain
from joulemap.show.present.document import FieldCell
from joulemap.show.present.template import Template
from joulemap.show.refusal import describe_unsupported
from joulemap.show.run import show_limit
from joulemap.show.run_name import drop_settings, name_all, name_first, name_run
from joulemap.show.shape import Part, Shape
from joulemap.show.term import describe_causes

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
FURTHER: Final = Template("; {count:#} more, of unavailable hardware, are not shown")
RANKED_BEGIN: Final = (
    "hardware | *precision! | *batch! | *runtime! | {pay}{label} objective_value | "
    "-objective_value:objective_half_width? | *objective_ratio! | "
)
RANKED_END: Final = "probability_best? | {price}{parts}{rated}"
RANKING: Final[Mapping[str, Any]] = {
    "keep": "precision batch runtime objective_ratio objective_half_width",
    "pictures": "objective_half_width",
    "throughput_limit": show_limit,
}
"""Options of tables of ranked configurations."""

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
        add = KEPT if limits and run.is_available else None
        return describe_choices(facts.of(Choice), facts.runs, add, **more)
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
    return [
        *missed,
        *(tell(LIVES, one, facts, time=show_life(one.life)) for one in facts.of(Supply)),
        *describe_causes(facts)[:1],
        *(describe_turn(one, facts) for one in facts.of(Turn)),
        *_describe_hosts(facts),
        *(BEYOND(name=name_first(runs, one), clause=describe_choice(one, runs)) for one in beyond),
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


def choose(answer: RecommendAnswer, *, repeated: Sequence[str], **_: Any) -> Mapping[str, Any]:
    """Return the values of slots in the texts of parts, the title and the follow-up commands."""
    metric, rows = METRIC[answer.objective], answer.rows.rows
    label, is_money = label_metric(answer.objective, answer.per), answer.objective == "cost"
    rate = show_rate(answer)
    about = ABOUT(
        metric=metric,
        rate=rate if metric.energy_power else "",
        limits=describe_limits(answer.limits, BOUND, rate),
        use=describe_use(answer.assumptions, rows[0].pay) if is_money and rows else "",
    )
    bounded = {
        WITH_HOST(label=METRIC[name].label) if name in TOTAL and not answer.counts_hosts else METRIC[name].label: (
            TOTAL.get(name, METRIC[name].column)
        )
        for name, _ in answer.limits.bounds
        if name != answer.objective
    }
    has_power = bool(rate or answer.limits.max_power_w)
    figures = list_metrics(FIGURES, (answer.objective, *(("power",) if has_power else ())))
    power = f"{WITH_HOST(label='power')} {TOTAL['power']} | " if has_power else ""
    host = "host_energy_per_inference_j | " if metric.unit == "J" else ""
    unseen = len(answer.select("infeasible")) - len(answer.missed)
    return {
        "label": label,
        "pay": "way! | " if is_money else "",
        "bounded": "".join(f"{heading} {column} | " for heading, column in bounded.items()),
        "held": "".join(f" {column}" for column in [*bounded.values()][:SHOWN_LIMITS]),
        "more": f"{figures}{power}throughput_limit? | ",
        "price": "price_text | " if is_money else "",
        "parts": f"{label} without host {metric.column} | {host}" if answer.counts_hosts else "",
        "rated": "idle energy idle_energy_per_inference_j | busy busy_fraction | " if rate else "",
        "runtime": "runtime | " if len(answer.scope.runtimes) > 1 else "",
        "further": FURTHER(count=unseen) if unseen else "",
        "title": title_candidates(answer, about, [row for row in rows if row.status != "unsupported"]),
        "beside": " plus host" if answer.counts_hosts else "",
        "asked": list_steps(answer, repeated),
        "shown": ("shown_chips",) if answer.shown.rows else ("missed",),
    }


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


def find_cells(answer: RecommendAnswer, chance: Callable[[Any], float | None]) -> Mapping[str, Any]:
    """Return cells and options of a table of ranked configurations; `chance` is the probability that a row tells."""
    name, metric = answer.objective, METRIC[answer.objective]
    whole = "objective_value" if answer.counts_hosts else metric.column
    alone = {metric.column: lambda row: show_metric(name, row.hostless_value)} if answer.counts_hosts else {}
    return {
        **alone,
        "stays": is_best(answer),
        "objective_value": FieldCell(whole, lambda row: show_metric(name, row.objective_value)),
        "objective_ratio": lambda row: FACTOR(
            ratio=1.0 / row.objective_ratio if row.objective_ratio and metric.is_higher_better else row.objective_ratio
        ),
        "probability_best": lambda row: show_odds(answer, chance(row), answer.best, row),
    }


def _find_chances(answer: RecommendAnswer) -> Mapping[str, Any]:
    chances, is_single = answer.chances, len(answer.shown_chips) < 2
    return find_cells(answer, lambda row: None if is_single else chances.get(find_chip(row)))


@number
def _percent(row: RankedConfiguration) -> str:
    return "" if row.violation_fraction is None else f"{show_plain(row.violation_fraction * 100)} %"


def _find_misses(answer: RecommendAnswer) -> Mapping[str, Any]:
    """Return the cell with the violated limits of a row, except the one with the largest violation."""
    failed: dict[int, set[str]] = {}
    for one in answer.violations:
        failed.setdefault(one.run_id, set()).add(one.limit_name)

    def list_others(row: RankedConfiguration) -> str:
        names = failed.get(row.run_id, set()) - {row.worst_limit}
        return ", ".join(find_limited(name).label for name in METRIC if name in names)

    return {"failed": list_others}


RECOMMEND: Final = Shape(
    first=describe_recommendation,
    why=list_reasons,
    most_why=None,
    csv="rows",
    choices=choose,
    notes=list_notes,
    words=lambda answer: {
        "limits": [
            {**one, "meaning": meaning}
            for one, meaning in zip(
                answer.data()["limits"], describe_limits(answer.limits, LIMIT, show_rate(answer)), strict=True
            )
        ]
    },
    parts=(
        Part(
            table="shown_chips",
            columns=RANKED_BEGIN + "{bounded}" + RANKED_END,
            lay={**RANKING, "noun": "chips", "ranked": "objective_value{held}"},
            cells=_find_chances,
            is_long=True,
            draw=mark_ranked,
        ),
        Part(
            title="Every configuration ({count:,})",
            table="shown",
            columns=RANKED_BEGIN + "{more}" + RANKED_END,
            lay={**RANKING, "noun": "configurations", "ranked": "objective_value"},
            cells=lambda answer: find_cells(
                answer, lambda row: row.probability_best if len(answer.shown) > 1 else None
            ),
            is_long=True,
            draw=mark_ranked,
        ),
        Part(
            title="Configurations that miss a limit ({count:,}), nearest first{further}",
            table="missed",
            columns="hardware | *precision | *batch | {runtime}*missed limit worst_limit | *violation_fraction | "
            "*worst_value | *worst_bound | failed",
            lay={
                "noun": "configurations",
                "ranked": "worst_limit violation_fraction",
                "worst_limit": lambda row: find_limited(row.worst_limit).label if row.worst_limit else "",
                "violation_fraction": _percent,
                "worst_value": lambda row: (
                    (row.worst_limit and show_metric(row.worst_limit, row.worst_value)) or "not known"
                ),
                "worst_bound": lambda row: (
                    show_bound(row.worst_bound or 0.0, row.worst_unit) if row.worst_limit else ""
                ),
            },
            cells=_find_misses,
            is_long=True,
        ),
        ASSUMED,
    ),
)

PAGES: Final = {RecommendAnswer: RECOMMEND}
