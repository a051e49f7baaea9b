"""A deployment under a load of requests: its limits from its stack and memory, its passes at knots, then the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.domain.load import Limits, Load, Served
from joulemap.wing.llm.serving.draft import Draft, Guessing
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.queue import find_reach, simulate
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.surface import Surface, Table, tabulate

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

MOST_TOKENS: Final = 10**12
"""Of a cache: one that nothing is kept in has room for all."""


def serve(deployment: Deployment, load: Load, draft: Draft | None = None, *, seed: int = 0) -> Served:
    """Return how a load is served, with tokens guessed ahead by a draft; joules are of all devices.

    UnsupportedError where no request fits.
    """
    limits = find_limits(deployment, draft)
    surface = deployment if draft is None else Guessing(surface=deployment, draft=draft)
    return simulate(tabulate_for(surface, load, limits, seed), load, limits, seed)


def find_limits(deployment: Deployment, draft: Draft | None = None) -> Limits:
    """Return what a deployment takes on: its stack's settings, and the room that its devices have for the cache."""
    stack = deployment.stack
    room = Room(deployment=deployment, draft=draft.deployment if draft else None)
    return Limits(
        step_tokens=stack.step_tokens,
        sequences=stack.sequence_limit,
        cache_tokens=max(2, int(min(room.cache_tokens, MOST_TOKENS))),
        context_tokens=deployment.decoder.context_length or None,
        mixes=stack.mixes,
        reserves_output=stack.reserves_output,
        waits=stack.waits,
        request_s=stack.value("request"),
        speculated_tokens=draft.guessed_tokens if draft else 0,
        accepted_tokens=draft.accepted_tokens if draft else 1.0,
    )


def tabulate_for(surface: Surface, load: Load, limits: Limits, seed: int) -> Table:
    """Return a surface at knots as far as the requests of a load may go."""
    sequences, step_tokens, longest = find_reach(draw_requests(load, seed), load, limits)
    return tabulate(surface, sequences=sequences, context_tokens=longest, prompt_tokens=step_tokens)
