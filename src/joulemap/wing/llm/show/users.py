"""Words for deployments that serve a number of users: title, table, the decision, its alternatives and notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from joulemap.ask import Choice, Facts, Limit, Quantity, describe_unread
from joulemap.domain import Col
from joulemap.physics import spell_precision
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Page,
    Section,
    Template,
    Title,
    compose_runs,
    derived,
    fill_steps,
    fits,
    join_names,
    lay_columns,
    show_chance,
    show_plain,
    show_quantity,
)
from joulemap.show.choice import name_metric
from joulemap.wing.llm.ask.target import CHEAPER, LIKELY
from joulemap.wing.llm.ask.users import UsersAnswer
from joulemap.wing.llm.generated.row import UserRow
from joulemap.wing.llm.show.serving import (
    describe_costs,
    describe_hits,
    describe_served,
    repeat_reuse,
    tell_reasons,
    title_model,
)

ABOUT: Final = Template("prompt {prompt:#}, output {output:#}{wanted}, {engine}{stored}{served}")
SIMULATE: Final = Template(
    "llm {model} {place} --devices {devices} [--data-devices {data}] [--expert-devices {experts}] "
    "[--micro-batches {parts}] --batch 1 --in-flight {users_per_server} --prompt {prompt} --output {output} "
    "{reuse} {words}"
)
EACH: Final = "each"
WANTED: Final = Template("[, mean TTFT up to {first_token_s:s}][, mean TPOT up to {between_s:s}]")
MET: Final = Template("yes[, {chance:chance}]")
FAR: Final = 10.0
"""Ratio of a time to its target from which the answer shows the ratio without decimals."""
KEPT: Final = Template(
    "{servers} {verb} the target[ ({chance} sure)] at the lowest {noun}[ of those {least} sure]: {value}"
    "[ and {energy}] per million tokens."
)
MISSED: Final = Template("No deployment meets the target; the nearest ({servers}) has {missed}.")
MISS: Final = Template("{ratio:x} the {noun}")
USD: Final = Template("{usd} USD")
SERVERS: Final = Template("{count:n server} of {server}")
SEPARATE: Final = Template("{prefill} prefill and {count:n decode server} of {server}")
LESS_SURE: Final = Template("{servers} would cost {value} but meet the target with only {chance} probability")
SIMPLER: Final = Template("without separate pools, the best is {servers}: {value}")
PUBLISHED: Final = Template("in the checkpoint's own precision, the best is {servers}: {value}[ ({chance} sure)]")
PUBLISHED_NOT: Final = Template(
    "in the checkpoint's own precision, nothing meets the target; the nearest is {servers}, with {missed}"
)
NEXT: Final = Template("the best on another chip is {servers}[, at {ratio:x} the cost][ ({chance} sure)]")
OTHERS: Final[Mapping[str, Template]] = {CHEAPER: LESS_SURE, "simpler": SIMPLER, "published": PUBLISHED}
"""Metric of a further choice -> its sentence."""


def describe_answer(facts: Facts) -> str:
    """Return the deployment that meets the target at the lowest cost, or by how much the nearest misses it."""
    best = facts.of(Choice)[0]
    key = best.run
    if missed := _list_missed(facts, key):
        return MISSED(servers=_name_servers(facts, key), missed=join_names(missed))
    values = facts.find_values(key)
    count = values["servers"].value + values["prefill_servers"].value
    given = {
        "servers": _name_servers(facts, key),
        "verb": "meets" if count == 1.0 else "meet",
        "chance": show_chance(best.probability),
        "noun": name_metric(best.metric),
        "least": show_chance(LIKELY) if any(one.metric == CHEAPER for one in facts.of(Choice)) else None,
        "value": _show(best.value),
    }
    whole = KEPT(energy=_show(values["energy_per_million"]) if best.value.unit == "USD" else None, **given)
    return whole if fits(whole) else KEPT(energy=None, **given)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on cheaper, simpler, published and other deployments, and on the prefix cache."""
    best = facts.find_values(facts.of(Choice)[0].run)
    return [*_describe_others(facts), *describe_hits(best)][:MOST_WHY]


def _describe_others(facts: Facts) -> Iterator[str]:
    first, *others = facts.of(Choice)
    for one in others:
        key = one.run
        given = {"servers": _name_servers(facts, key), "value": _show(one.value)}
        missed = _list_missed(facts, key)
        if missed:
            yield PUBLISHED_NOT(missed=join_names(missed), **given)
        else:
            yield OTHERS[one.metric](chance=show_chance(one.probability), **given)
    if len(first.runs) > 1 and first.runs[1] not in {one.run for one in others}:
        chance = facts.find_values(first.runs[1]).get("met_probability")
        yield NEXT(
            servers=_name_servers(facts, first.runs[1]),
            ratio=first.ratio,
            chance=show_chance(None if chance is None else chance.value),
        )


def _list_missed(facts: Facts, key: int) -> list[str]:
    """Return a phrase for each mean time of a deployment that exceeds its target."""
    return [
        MISS(ratio=math.exp(one.miss), noun=name_metric(one.metric))
        for one in facts.of(Limit)
        if one.run == key and one.miss
    ]


def _name_servers(facts: Facts, key: int) -> str:
    """Return a phrase for the servers of a deployment, such as `2 servers of h200_sxm x2 fp8`."""
    run, values = facts.runs[key], facts.find_values(key)
    server = " ".join((run.hardware, *run.settings))
    count, prefill = (round(values[name].value) for name in ("servers", "prefill_servers"))
    if prefill:
        return SEPARATE(prefill=prefill, count=count, server=server)
    return SERVERS(count=count, server=server)


def _show(value: Quantity) -> str:
    return USD(usd=show_plain(value.value)) if value.unit == "USD" else show_quantity(value.value, value.unit)


def show_met(row: UserRow) -> str:
    """Return whether a deployment meets the target, with its probability, or by how much it misses it."""
    if row.is_met:
        return MET(chance=row.met_probability)
    return f"no, {row.target_ratio:{'.2f' if row.target_ratio < FAR else ',.0f'}}x"


def list_notes(answer: UsersAnswer) -> Iterator[str]:
    """Yield notes on the cache, and on cost and carbon."""
    if answer.wide_cache:
        yield answer.wide_cache
    if answer.assumptions.rows:
        yield describe_costs(answer.assumptions, answer.pay)


def title_users(answer: UsersAnswer) -> Title:
    """Return the title: the model, the users, the lengths and the target."""
    serving, target = answer.serving, answer.target
    about = ABOUT(
        serving,
        wanted=WANTED(target),
        engine=answer.engine,
        stored=answer.stored,
        served=describe_served(serving),
    )
    more = {"users": target.users, "each": EACH if target.users > 1 else None}
    return title_model(answer, about, ", {users:n user}[ {each}] with one request at a time", **more)


def list_steps(answer: UsersAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the command that simulates one server of the best deployment."""
    best, serving = answer.chosen, answer.serving
    pools = ["--prefill-on", best.hardware, "--decode-on", best.hardware]
    return fill_steps(
        [SIMULATE],
        best,
        repeated,
        model=answer.model,
        place=pools if best.prefill_server_count else [best.hardware],
        devices=best.device_count // serving.data_devices,
        data=serving.data_devices if serving.data_devices > 1 else None,
        parts=serving.micro_batches if serving.micro_batches > 1 else None,
        experts=best.expert_device_count if best.expert_device_count > 1 else None,
        prompt=serving.prompt,
        output=serving.output,
        reuse=repeat_reuse(serving),
        words=[] if best.is_published else spell_precision(best.precision),
    )


def draw_users(answer: UsersAnswer, asked: Asked) -> Document:
    """Return the document of deployments that serve a number of users."""
    of = UserRow
    met: Col[UserRow] = derived("met", show_met)
    columns = (
        of.label,
        of.precision.kept,
        of.first_token_s.kept,
        of.between_s.kept,
        met.ranking.kept,
        of.usd_per_million.ranking.if_any.kept,
        of.million_j.ranking.kept,
        of.gco2_per_million.if_any,
        of.tokens_per_s,
        of.users_per_server,
        of.largest_users,
        of.request_s,
        of.request_usd.if_any,
        of.request_j,
        of.request_gco2.if_any,
        of.prefix_hit_fraction.if_any.kept,
        of.tier_hit_fraction.if_any,
        of.uncached_request_j.if_any.kept,
    )
    keep = (of.precision, of.first_token_s, of.between_s)
    drawn = lay_columns(answer, answer.rows, columns, keep=keep, limit=asked.most(18), noun="deployments")
    return compose_runs(
        answer,
        answer.facts,
        [Section("", (drawn, *tell_reasons(answer.not_taken)), is_tight=True)],
        answer.rows,
        title=title_users(answer),
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts),
        told=describe_unread(answer.scope.models),
        notes=list_notes(answer),
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {UsersAnswer: Page[UsersAnswer](draw=draw_users)}
