"""Simulation of one server under a request load: limits from stack and memory, pass costs at knots, the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from joulemap.wing.llm.serving.draft import NO_DRAFT, Draft, guess
from joulemap.wing.llm.serving.grid import Pass
from joulemap.wing.llm.serving.load import Limits, Load, Served, Tier
from joulemap.wing.llm.serving.log import Log
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.queue import Server, accept, find_reach
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.reuse import ReusingServer, forget_prefixes
from joulemap.wing.llm.serving.summary import summarize
from joulemap.wing.llm.serving.surface import Surface, Table, tabulate
from joulemap.wing.llm.serving.warm_up import Pool, add_warm_up

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

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


def simulate(surface: Pass, load: Load, limits: Limits, seed: int = 0) -> Served:
    """Simulate a load on one server; the result is the same for the same seed.

    A request that exceeds the KV cache or the context is refused and counted; UnsupportedError if all are.
    """
    if load.is_steady:
        load = add_warm_up(load, Pool(surface=surface, limits=limits), seed)
    requests = draw_requests(load, seed)
    accepted = accept(requests, limits)
    log = Log.of(len(requests.prompt_tokens))
    if requests.prefixes is None:
        server = Server(surface, requests, limits, load, log)
    else:
        requests = requests if load.reuses else forget_prefixes(requests)
        server = ReusingServer(surface, requests, limits, load, log)
    server.expect(accepted)
    while server.advance():
        pass
    return summarize(log, [server.spells], requests, load, limits, server.list_hits())


def open_deployment(
    deployment: Deployment, load: Load, draft: Draft = NO_DRAFT, *, tiers: tuple[Tier, ...] = (), seed: int = 0
) -> tuple[Table, Limits]:
    """Return the costs of a deployment's passes and its limits, with which a load is simulated; raise as `serve`."""
    limits = find_limits(deployment, load, draft)
    if tiers or load.turns > 1 or (load.trace is not None and load.trace.prefixes is not None):
        limits = attrs.evolve(limits, tiers=tiers, token_bytes=_measure_token(deployment, load))
    return _tabulate(guess(deployment, draft), load, limits, seed), limits


def find_limits(deployment: Deployment, load: Load, draft: Draft = NO_DRAFT) -> Limits:
    """Return the limits of a deployment under a load: its stack's settings and the KV cache capacity of its devices."""
    stack = deployment.stack
    room = Room(deployment=deployment, draft=draft.deployment)
    return Limits(
        step_tokens=stack.step_tokens,
        sequences=stack.sequence_limit,
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


def _tabulate(surface: Surface, load: Load, limits: Limits, seed: int) -> Table:
    """Return a table of pass costs that covers every request of a load."""
    if load.turns > 1:
        last = load.prompt_tokens + (load.turns - 1) * (load.prompt_tokens + load.output_tokens)
        load = attrs.evolve(load, prompt_tokens=last, turns=1)
    sequences, step_tokens, longest = find_reach(draw_requests(load, seed), load, limits)
    return tabulate(surface, sequences=sequences, context_tokens=longest, prompt_tokens=step_tokens)
