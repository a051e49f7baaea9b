"""Simulation of a request load on one server, or on a prefill pool and a decode pool.

arrivals ─► prefill pool, first token ─► KV cache over the link ─► decode pool, remaining tokens ─► done

Limits come from stack and memory, pass costs from a table at knots. Every server is one of a `station`. The server that
is earliest in time makes the next step. Decode servers never step beyond the time of the prefill servers. A decode
server sees a request as a prompt whose KV cache holds all but the first token. The requests of a pool go to its servers
in turn.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.system import frozen
from joulemap.wing.llm.serving.batch import prefill
from joulemap.wing.llm.serving.deployment import NO_DRAFT, Deployment, Draft, guess
from joulemap.wing.llm.serving.load import Limits, Load, Log, Served, Tier, Window
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.request import draw_gaps, draw_requests
from joulemap.wing.llm.serving.reuse import ReusingServer, assign_homes, forget_prefixes, sum_hits
from joulemap.wing.llm.serving.station import Server, Station, find_fitting, find_reach, run
from joulemap.wing.llm.serving.summary import find_window, summarize, tabulate_spells
from joulemap.wing.llm.serving.surface import KNOTS, Knots, PassCost, Passes, Table, choose_knots, choose_steady_knots
from joulemap.wing.llm.serving.warm_up import Pool, add_warm_up

MOST_TOKENS: Final = 10**12
"""Cap on the KV cache capacity in tokens, for a model without a KV cache."""


def serve(
    deployment: Deployment, load: Load, draft: Draft = NO_DRAFT, *, tiers: tuple[Tier, ...] = (), seed: int = 0
) -> Served:
    """Simulate a load on a deployment, with speculative decoding if there is a draft; energy covers all devices.

    `tiers` are the slower memories of a prefix cache. Raise UnsupportedError if no request fits.
    """
    table, limits = open_deployment(deployment, load, draft, tiers=tiers, seed=seed)
    return simulate(table, load, limits, seed)


def simulate(surface: PassCost, load: Load, limits: Limits, seed: int = 0) -> Served:
    """Simulate a load on one server; the result is the same for the same seed.

    A request that exceeds the KV cache or the context is refused and counted; UnsupportedError if all are.
    """
    if load.is_steady:
        load = add_warm_up(load, Pool(surface=surface, limits=limits), seed)
    requests = draw_requests(load, seed)
    accepted = find_fitting(requests, limits)
    log = Log.of(len(requests.prompt_tokens))
    if requests.prefixes is not None and not load.reuses:
        requests = forget_prefixes(requests)
    kind = Server if requests.prefixes is None else ReusingServer
    station = Station(surface, requests, limits, load, log, gaps_s=draw_gaps(load, seed), kind=kind)
    station.expect(accepted)
    run([station])
    (server,) = station.servers
    return summarize(log, [server.spells], requests, load, limits, server.list_hits())


def open_deployment(
    deployment: Deployment,
    load: Load,
    draft: Draft = NO_DRAFT,
    *,
    tiers: tuple[Tier, ...] = (),
    seed: int = 0,
    only_prompts: bool = False,
) -> tuple[Table, Limits]:
    """Return the costs of a deployment's passes and its limits, with which a load is simulated; raise as `serve`.

    A server of `only_prompts` leaves answers to another pool.
    """
    limits = find_limits(deployment, load, draft)
    limits = attrs.evolve(limits, mixes=limits.mixes and not only_prompts)
    if tiers or load.turns > 1 or (load.trace is not None and load.trace.prefixes is not None):
        limits = attrs.evolve(limits, tiers=tiers, token_bytes=_measure_token(deployment, load))
    table = list_knots(load, limits, seed).tabulate(guess(deployment, draft))
    return table, wait_for_ranks(limits, deployment, load, table)


def wait_for_ranks(limits: Limits, deployment: Deployment, load: Load, table: Table) -> Limits:
    """Return limits with the steps for which a prompt waits for prompts on other data-parallel ranks."""
    steps = deployment.stack.value("rank_wait") * (deployment.data_devices > 1)
    step_s = table.find_step(min(load.in_flight or 1, limits.sequences), _mean_length(load))[0]
    return attrs.evolve(limits, request_s=limits.request_s + steps * step_s)


def find_limits(deployment: Deployment, load: Load, draft: Draft = NO_DRAFT) -> Limits:
    """Return the limits of a deployment under a load: its stack's settings and the KV cache capacity of its devices."""
    stack = deployment.stack
    room = Room(deployment=deployment, draft=draft.deployment)
    return Limits(
        step_tokens=deployment.step_tokens,
        sequences=deployment.sequence_limit,
        cache_tokens=max(2, int(min(room.count_tokens(_mean_length(load)), MOST_TOKENS))),
        context_tokens=deployment.decoder.context_length or None,
        mixes=stack.mixes,
        reserves_output=stack.reserves_output,
        waits=stack.waits,
        request_s=stack.value("request"),
        speculated_tokens=draft.guessed_tokens,
        accepted_tokens=draft.accepted_tokens,
    )


def _measure_token(deployment: Deployment, load: Load) -> float:
    """Return the mean KV cache bytes of a token in a load, over all devices; a tier holds one copy of them."""
    length = round(_mean_length(load))
    return deployment.decoder.cache_bytes(length, Room(deployment=deployment).item_bytes) / length


def _mean_length(load: Load) -> float:
    """Return the mean tokens of a request, prompt and answer."""
    if load.trace is not None:
        return (sum(load.trace.prompt_tokens) + sum(load.trace.output_tokens)) / len(load.trace.prompt_tokens)
    return (load.prompt_tokens + load.output_tokens) * (load.turns + 1) / 2.0


def list_knots(load: Load, limits: Limits, seed: int = 0) -> Knots:
    """Return the knots of a table of pass costs that covers every request of a load."""
    sequences, step_tokens, longest = find_reach(draw_requests(_last_turn(load), seed), load, limits)
    if load.in_flight is not None and load.client == "steady" and load.trace is None:
        return choose_steady_knots(
            sequences=[sequences],
            contexts=(load.prompt_tokens, longest),
            prompts=[load.prompt_tokens - load.cached_tokens],
            prompt_tokens=step_tokens,
            alone=not limits.mixes or load.pause_s > 0.0,
        )
    return choose_knots(sequences=sequences, context_tokens=longest, prompt_tokens=step_tokens)


def _last_turn(load: Load) -> Load:
    """Return the load of the last turns of conversations alone; the load itself without turns."""
    last = load.prompt_tokens + (load.turns - 1) * (load.prompt_tokens + load.output_tokens)
    return attrs.evolve(load, prompt_tokens=last, turns=1)


HANDOVER_J_PER_BYTE: Final = 1e-9
"""Energy per byte sent from one server to another, for both network adapters.

Source: 25 W of a ConnectX-7 at 50 GB/s on each side (recalled); excludes switches and optics.
"""


def simulate_pools(
    pools: tuple[Pool, Pool], load: Load, seed: int = 0, *, handover_token_s: float = 0.0
) -> tuple[Served, tuple[Window, Window]]:
    """Simulate a load on a prefill pool and a decode pool; return the result and the window of each, in this order.

    The KV cache of a prompt takes `handover_token_s` per prompt token to reach the decode pool. If
    the load has a fixed number of requests in flight, the prefill servers share it evenly.
    """
    prompts, answers = pools
    if load.is_steady:
        load = add_warm_up(load, attrs.evolve(answers, reads_prompts=False), seed)
    requests = draw_requests(load, seed)
    prefixes = requests.prefixes
    if prefixes is not None:
        requests = attrs.evolve(requests, prefixes=attrs.evolve(prefixes, answers=()))
        requests = requests if load.reuses else forget_prefixes(requests)
    fitting = set(find_fitting(requests, answers.limits))
    log = Log.of(len(requests.prompt_tokens))
    more = attrs.evolve(
        requests,
        prefixes=None,
        cached_tokens=requests.prompt_tokens,
        prompt_tokens=tuple(tokens + 1 for tokens in requests.prompt_tokens),
        output_tokens=tuple(tokens - 1 for tokens in requests.output_tokens),
    )
    limits = attrs.evolve(answers.limits, mixes=True, waits=False, request_s=0.0)
    behind = [Station(answers.surface, more, limits, load, log) for _ in range(answers.count)]
    first = attrs.evolve(requests, output_tokens=(1,) * len(requests.prompt_tokens))
    accepted = [number for number in find_fitting(first, prompts.limits) if number in fitting]
    before: list[Station] = []
    homes: dict[int, Station] = {}

    def hand_over(number: int, now: float) -> None:
        station = behind[number % len(behind)]
        if not station.left[number]:
            finish(number, now)
            return
        seconds = handover_token_s * requests.prompt_tokens[number]
        insort(station.coming, (now + seconds, number))

    def finish(number: int, now: float) -> None:
        """End a request; the next one starts on the server of its conversation, or where most remain."""
        home = homes[number] if prefixes else max(before, key=lambda one: len(one.source.later))
        home.end(number, now)

    full_until, kind = -math.inf, Server if prefixes is None else ReusingServer
    limits, gaps_s = attrs.evolve(prompts.limits, mixes=False), draw_gaps(load, seed)
    for place, mine in enumerate(assign_homes(accepted, prefixes.next_turn if prefixes else (), prompts.count)):
        share = load.in_flight and len(range(place, load.in_flight, prompts.count))
        own = attrs.evolve(load, in_flight=share)
        one = Station(prompts.surface, first, limits, own, log, gaps_s=gaps_s, kind=kind)
        one.after = hand_over
        one.expect(mine)
        before.append(one)
        homes |= dict.fromkeys(mine, one)
        full_until = max(full_until, log.full_until)
    log.full_until = full_until
    for one in behind:
        one.after = finish
    run(before, behind)
    fronts, backs = ([one.servers[0] for one in stations] for stations in (before, behind))
    hits = sum_hits([server.list_hits() for server in fronts])
    served = summarize(log, [server.spells for server in (*fronts, *backs)], requests, load, answers.limits, hits)
    bounds = served.window.start_s, served.window.end_s
    windows = [
        find_window([tabulate_spells(server.spells) for server in servers], bounds, tokens)
        for servers, tokens in ((fronts, float(served.requests)), (backs, served.window.output_tokens))
    ]
    return served, (windows[0], windows[1])


@frozen(kw_only=True)
class Throughput:
    """Saturated throughput of one server for prefill or decode alone, with requests always waiting."""

    per_s: float
    joules: float
    """Energy per request in joules."""


@frozen(kw_only=True, eq=False)
class SaturatedRates:
    """Saturated rates of one server for prefill alone and for decode alone."""

    alone_s: float
    """Time from a prompt to its first token on an idle server."""
    prompts: Throughput | None
    """Prefill throughput; None if even a single prompt misses the time limit."""
    answers: Throughput | None
    """Decode throughput; None if even a single sequence misses the time limit."""
    beside_s: float
    """Least time that a prompt adds to decode passes: its own passes share at most those of one sequence."""
    most: float
    """Maximum sequences in decode, by memory and the time limit; 0 if even one misses it."""
    counts: NDArray[np.float64]
    between_s: NDArray[np.float64]
    """Time per output token for each of `counts` sequences."""

    def find_between(self, sequences: float) -> float:
        """Return the time per output token of a number of sequences in decode."""
        return float(np.interp(sequences, self.counts, self.between_s))


def find_saturated_rates(
    deployment: Deployment,
    prompt_tokens: float,
    output_tokens: float,
    *,
    cached_tokens: float = 0.0,
    most_s: float | None = None,
    draft: Draft = NO_DRAFT,
    in_flight: float | None = None,
    later: Sequence[Passes] = (),
) -> SaturatedRates:
    """Return the saturated prefill and decode rates of a server whose output tokens take at most `most_s` seconds.

    With at most `in_flight` requests at once, all chips with room for them run the same passes.
    Passes needed `later` are evaluated too.
    Step times are interpolated linearly between a few numbers of sequences.
    """
    stack, gain = deployment.stack, draft.accepted_tokens
    held = Room(deployment=deployment, draft=draft.deployment)
    limit = deployment.sequence_limit
    room = max(1.0, min(held.sequences(prompt_tokens, output_tokens), limit, in_flight or math.inf))
    one, one_times = prefill(1.0, prompt_tokens, cached_tokens, deployment.step_tokens)
    many = max(1.0, deployment.step_tokens // (prompt_tokens - cached_tokens))
    several, several_times = prefill(many, prompt_tokens, cached_tokens, deployment.step_tokens)
    counts = np.unique([*np.geomspace(1.0, room, max(2, math.ceil(math.log(room, KNOTS)) + 1)), 1.0])
    steps = max(1.0, (output_tokens - 1.0) / gain)
    answering = Passes.of(counts, context=prompt_tokens + 0.5 * steps * gain)
    cost = guess(deployment, draft).price(Passes.joined((one, several, answering, *later)))
    ends = np.cumsum([len(one_times), len(several_times), len(counts)])
    (one_s, several_s, step_s, _), (_, several_j, step_j, _) = np.split(cost.seconds, ends), np.split(cost.joules, ends)
    most = room if most_s is None else _find_most(counts, step_s, most_s * gain)
    kept = np.union1d(counts[counts <= most], [most]) if most >= 1.0 else np.zeros(0)
    each_s, each_j = (np.interp(kept, counts, column) for column in (step_s, step_j))
    answers = None
    if len(kept):
        best = int(np.argmax(kept / each_s))
        answers = Throughput(
            per_s=float(kept[best] / (steps * each_s[best])), joules=float(steps * (each_j / kept).min())
        )
    return SaturatedRates(
        beside_s=float(np.maximum(0.0, several_s - step_s[0]) @ several_times) / many,
        alone_s=float(one_s @ one_times) + stack.value("request"),
        prompts=Throughput(
            per_s=many / float(several_s @ several_times), joules=float(several_j @ several_times) / many
        ),
        answers=answers,
        most=most,
        counts=counts,
        between_s=step_s / gain,
    )


def _find_most(counts: NDArray[np.float64], step_s: NDArray[np.float64], most_s: float) -> float:
    """Return the most sequences whose step takes no longer than `most_s`; 0 if even the fewest exceed it."""
    late = np.flatnonzero(step_s > most_s)
    if not len(late):
        return float(counts[-1])
    if not late[0]:
        return 0.0
    index = int(late[0])
    return float(np.interp(most_s, step_s[index - 1 : index + 1], counts[index - 1 : index + 1]))
