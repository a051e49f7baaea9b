"""Fleets: how many of each chip serve a demand, their monthly cost, and their headroom to the latency targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.candidate import read_usage
from joulemap.answer.computed import make_table
from joulemap.answer.price import find_chip, price_parameters
from joulemap.answer.scope import Scope, find_scope, find_stored_scope, widen
from joulemap.ask.asked import Asked
from joulemap.ask.rule import list_findings
from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import DEFAULT_MODE, find_model_name
from joulemap.domain.default import DEPLOYED, USAGE
from joulemap.domain.settings import Price, Serving, Settings, Usage
from joulemap.plan.hold import holding_plans, holding_runs
from joulemap.plan.name import choose_batches
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import Selection, select_hardware
from joulemap.plan.source import Source
from joulemap.row.cost import AssumedNumber
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.fleet.answer.document import FleetAnswer
from joulemap.wing.fleet.answer.text import NO_FLEET, NOTHING_RUNS, REASON
from joulemap.wing.fleet.ask import find_facts
from joulemap.wing.fleet.capacity.cost import choose_payment, find_least, find_winners, list_queues, rank_fleets
from joulemap.wing.fleet.capacity.mixture import MixedRow, mix
from joulemap.wing.fleet.capacity.pair import PairRow, pair_servers
from joulemap.wing.fleet.capacity.row import LATE, FleetRow, FleetWinner, LevelRow, QueueRow, Sizing
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.fleet.row import Station
from joulemap.wing.llm.ask.served import OTHER_INTERVALS
from joulemap.wing.llm.capacity.question import SERVING

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Level

BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
"""Default batch sizes; batches of other sizes get interpolated times."""


def fleet(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    demand: Demand,
    serving: Serving = SERVING,
    usage: Usage = USAGE,
    prices: Sequence[Price] = (),
) -> FleetAnswer:
    """Return how many of each chip serve a demand, with the best fleet by the objective first.

    `model` gets all requests that are not for the models of `demand.beside`. Devices are identical and share one queue.
    A free device takes a batch of the waiting requests. A language model with a target for its first token or between
    tokens is served as `llm` serves it. Raise the errors of `compare`; UsageError for an invalid demand;
    UnsupportedError, with the nearest hardware, if no fleet meets the target.
    """
    from joulemap.wing.fleet.capacity.demand import read_levels

    levels = read_levels(demand)
    demand = attrs.evolve(demand, owned={find_chip(name): count for name, count in demand.owned.items()})
    if demand.is_of_tokens:
        return _serve(source, model, settings, demand, levels, serving, usage, prices)
    if demand.p99_s is None:
        raise UsageError("name a latency target: --p99 15ms; for a language model --first-token and --between-tokens")
    if serving != SERVING:
        raise UsageError(
            "--prompt, --engine and other options of a server apply to a language model with --first-token or "
            "--between-tokens, not to --p99: leave them out"
        )
    from joulemap.wing.fleet.capacity.station import size_stations

    known = load_models()
    model = find_model_name(model, known)  # runs have the catalogue's name, not an alias
    demand = attrs.evolve(demand, beside={find_model_name(one, known): share for one, share in demand.beside.items()})
    if model in demand.beside:
        raise UsageError(f"{model} gets the remaining share: --beside is for other models")
    shares = {model: 1.0 - sum(demand.beside.values()), **demand.beside}
    _check_batched(shares)
    settings = attrs.evolve(settings, batch=choose_batches(tuple(shares), settings, BATCHES))
    plan = plan_selected(tuple(shares), settings, _fill_boxes(select_hardware(settings, "catalogue")))
    with holding_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        found = _read(runs.connection, list(runs.ids), settings, usage, prices)
        found |= _find_caveats(Asked(runs), demand)
        scope = find_scope(runs)
    scope.check_evaluated()
    rows = size_stations(found["stations"].rows, shares, levels, demand)
    return make_answer(scope, demand, shares, levels, rows, found)


def _fill_boxes(selection: Selection) -> Selection:
    """Return a selection in which a box of identical devices is set to throughput, so that all its devices work.

    A box with a named mode is unchanged.
    """
    alike = {name for name, parts in selection.parts.items() if len({one.id for one in parts}) == 1}
    pairs = ((one, "throughput" if one.id in alike and mode == DEFAULT_MODE else mode) for one, mode in selection.pairs)
    return attrs.evolve(selection, pairs=tuple(dict.fromkeys(pairs)))


def _check_batched(models: Iterable[str]) -> None:
    """Raise UsageError for a language model, because its requests take many passes, not one batch."""
    from joulemap.wing.llm.decoder.name import list_decoders

    known = list_decoders()
    for name in models:
        if name in known:
            raise UsageError(
                f"{name} is a language model, which has other targets: --first-token 500ms --between-tokens 30ms"
            )


def _read(
    connection: Connection,
    ids: Sequence[int],
    settings: Settings,
    usage: Usage,
    prices: Sequence[Price],
    engine: str = "",
) -> dict[str, Any]:
    """Return the runs that fleets are built from, and the assumptions of their costs, by field of the answer."""
    used, pay = read_usage(usage, settings, prices)
    paid, _ = price_parameters(prices)
    rest = {name: value for name, value in used.items() if name != "utilization"}
    return {
        "stations": fetch(connection, Station, run_ids=ids, **rest, **paid, **pay, engine=engine),
        "assumptions": fetch(connection, AssumedNumber, **used),
    }


def _find_caveats(asked: Asked, demand: Demand, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the stored runs, and what rules find about them; cost follows time, the other objectives energy."""
    metric = "latency" if demand.objective == "cost" else "energy"
    assert asked.unavailable is not None  # read while the connection is open
    return {"asked": asked, "findings": list_findings(asked, metric=metric, but=but)}


def _serve(
    source: Source,
    model: str,
    settings: Settings,
    demand: Demand,
    levels: tuple[Level, ...],
    serving: Serving,
    usage: Usage,
    prices: Sequence[Price],
) -> FleetAnswer:
    """Return how many servers of each chip meet the targets of a language model."""
    from joulemap.wing.fleet.capacity.division import open_servers
    from joulemap.wing.fleet.capacity.served import size_servers
    from joulemap.wing.llm.answer.document import describe_later, describe_reuse
    from joulemap.wing.llm.answer.text import GUESSED
    from joulemap.wing.llm.capacity.case import describe_refusal, refuse
    from joulemap.wing.llm.capacity.choice import find_quality, list_choices
    from joulemap.wing.llm.capacity.stored import divide, find_ids, key_runs

    if demand.beside:
        raise UsageError("a fleet serves a language model alone: --beside is for other kinds of models")
    published = settings.precision == DEPLOYED.precision
    settings = attrs.evolve(settings, batch=(1,), precision=() if published else settings.precision)
    choices = list_choices(source, model, settings, serving)
    question, whole, every = choices[0]
    for own, *_ in choices[1:]:
        own.book = question.book
    report = source.progress or (lambda _done, _total: None)
    source.talk("simulating servers (1 of 3) …")
    opened = open_servers(choices, levels, demand, report)
    if not opened:
        raise refuse(every)
    source.talk("evaluating the chosen servers (2 of 3) …")
    plans = [plan for one in opened for plan in divide(one.question, one.plan, [one.case])]
    with holding_plans(source, plans, needs_catalogue=True, has_ledger=False) as (connection, held):
        ids = key_runs(held)
        decode = [find_ids(one.question, [one.case], ids)[1][0] for one in opened]
        found = _read(connection, decode, settings, usage, prices, question.stack.name)
        found |= _find_caveats(Asked.of(whole, connection, decode), demand, OTHER_INTERVALS)
        scope = widen(find_stored_scope(connection, decode), whole.selection)
    served = {one.case.hardware for one in opened}
    lost = {case.hardware: describe_refusal(case) for case in every if case.hardware not in served}
    if settings.hardware:  # without runs, these chips have no ids in the scope
        named = {-place: reason for place, reason in enumerate(lost.values(), 1)}
        scope = attrs.evolve(scope, refused={**scope.refused, **named})
    stations = {row.run_id: row for row in found["stations"]}
    servers, cases = [one.server for one in opened], [one.case for one in opened]
    source.talk("counting devices (3 of 3) …")
    rows = size_servers(servers, cases, [stations[one] for one in decode], levels, report)
    if len(choices) > 1:
        narrow = [None if one.plan is whole else find_quality(one.case) for one in opened]
        rows = [one.describe_quality(loss) for one, loss in zip(rows, narrow, strict=True)]
    both = [(server, row) for server, row in zip(servers, rows, strict=True) if not isinstance(server, str)]
    pairing = partial(pair_servers, question, both, levels, takes_all=scope.settings.takes_all)
    engine = f"{question.stack.label} {question.stack.date}"
    return make_answer(
        scope,
        demand,
        {question.decoder.name: 1.0},
        levels,
        rows,
        found,
        pairing,
        engine,
        GUESSED(serving) + describe_later(serving) + describe_reuse(serving),
        serving,
    )


def make_answer(
    scope: Scope,
    demand: Demand,
    shares: Mapping[str, float],
    levels: tuple[Level, ...],
    sized: Sequence[Sizing],
    found: Mapping[str, Any],
    pairing: Callable[[str, Demand, FleetRow | None], list[PairRow]] | None = None,
    engine: str = "",
    reused: str = "",
    serving: Serving | None = None,
) -> FleetAnswer:
    """Return an answer with the best fleet first; UnsupportedError if no fleet meets the latency target.

    `pairing` finds separate prefill and decode pools; its arguments are the way of paying, the demand, and the best
    fleet of one kind. `engine` is the inference engine of a language model, `reused` the title's text on reused prompt
    prefixes, and `serving` the lengths of its requests.
    """
    pay, takes_all = found["stations"][0].pay, scope.settings.takes_all
    paid = [choose_payment(one.row, pay, demand) for one in sized]
    pairs = pairing(pay, demand, find_least(paid, demand, takes_all=takes_all)) if pairing else []
    if all(row.status == LATE for row in paid) and not pairs:
        nearest = sorted(paid, key=lambda row: (row.promise_fraction or math.inf, row.label))[:2]
        reasons = "; ".join(REASON(row) for row in nearest)
        raise UnsupportedError(NO_FLEET(reasons=reasons or NOTHING_RUNS))
    ranking = rank_fleets(sized, paid, demand, takes_all=takes_all)
    winners = find_winners(ranking.rows, takes_all=takes_all)
    mixtures = mix(ranking.available, levels, pay, demand)
    facts = find_facts(found["asked"], found["findings"], ranking.rows, winners, [*mixtures, *pairs], demand)
    return FleetAnswer(
        scope=scope,
        facts=facts,
        demand=demand,
        shares=shares,
        levels=levels,
        pay=pay,
        engine=engine,
        reused=reused,
        serving=serving,
        rows=make_table("fleet", FleetRow, ranking.rows),
        winners=make_table("fleet winners", FleetWinner, winners),
        pairs=make_table("fleet pairs", PairRow, pairs),
        mixtures=make_table("fleet mixtures", MixedRow, mixtures),
        at_rates=make_table("fleet rates", LevelRow, [level for one in sized for level in one.levels]),
        queue=make_table("fleet queue", QueueRow, list_queues(ranking.available)),
        assumptions=found["assumptions"],
    )
