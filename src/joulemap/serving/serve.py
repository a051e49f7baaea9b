"""A deployment under a load of requests: its limits from its stack and memory, its passes at knots, then the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.domain.load import Limits, Load, Served
from joulemap.serving.memory import Room
from joulemap.serving.queue import find_reach, simulate
from joulemap.serving.request import draw_requests
from joulemap.serving.surface import Cost, Passes, Surface, Table, tabulate
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.serving.deployment import Deployment

MOST_TOKENS: Final = 10**12
"""Of a cache: one that nothing is kept in has room for all."""


def serve(
    deployment: Deployment, load: Load, *, guessed_tokens: int = 0, accepted_tokens: float = 1.0, seed: int = 0
) -> Served:
    """Return how a load is served; joules are of all devices.

    In each pass a sequence is verified for so many tokens guessed ahead, and gets so many in the mean; what guesses
    them is not counted. UnsupportedError where no request fits.
    """
    limits = find_limits(deployment, guessed_tokens=guessed_tokens, accepted_tokens=accepted_tokens)
    return simulate(tabulate_for(deployment, load, limits, seed), load, limits, seed)


def find_limits(deployment: Deployment, *, guessed_tokens: int = 0, accepted_tokens: float = 1.0) -> Limits:
    """Return what a deployment takes on: its stack's settings, and the room that its devices have for the cache."""
    stack = deployment.stack
    return Limits(
        step_tokens=stack.step_tokens,
        sequences=stack.sequence_limit,
        cache_tokens=max(2, int(min(Room(deployment=deployment).cache_tokens, MOST_TOKENS))),
        context_tokens=deployment.decoder.context_length or None,
        mixes=stack.mixes,
        reserves_output=stack.reserves_output,
        waits=stack.waits,
        request_s=stack.value("request"),
        speculated_tokens=guessed_tokens,
        accepted_tokens=accepted_tokens,
    )


def tabulate_for(surface: Surface, load: Load, limits: Limits, seed: int) -> Table:
    """Return a surface at knots as far as the requests of a load may go."""
    sequences, step_tokens, longest = find_reach(draw_requests(load, seed), load, limits)
    return tabulate(
        _Verified(surface=surface, guessed_tokens=limits.speculated_tokens),
        sequences=sequences,
        context_tokens=longest,
        prompt_tokens=step_tokens,
    )


@frozen(kw_only=True, eq=False)
class _Verified:
    """A surface whose sequences work on tokens guessed ahead beside the one that is sure."""

    surface: Surface
    guessed_tokens: int

    @property
    def idle_w(self) -> float:
        return self.surface.idle_w

    def price(self, passes: Passes, /) -> Cost:
        tokens = passes.tokens + np.where(passes.sequences > 0.0, self.guessed_tokens, 0.0)
        return self.surface.price(attrs.evolve(passes, tokens=tokens))
