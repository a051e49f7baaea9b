"""Steady load: a constant number of requests in flight, each followed by the next; all answers are equally long.

    chunk       c = min(prompt, tokens of a pass - active requests)       prompt tokens of one request in one pass
    arrivals    a = active requests x prompt / c / (steps of an answer + prompt / c)   mean chunks that are due per step
    share       q = 1 - exp(-a)                                          steps with a chunk, for Poisson arrivals
    mixed       a pass with a / q chunks, as many as its tokens allow
    mean step   = decode + q (mixed - decode)             median step = decode
    first token = request + waiting for memory and for other ranks + rest of the step at hand
                  + own chunks, in passes with those of others

Chunks of one step share its pass, which is launched once. Without chunked prefill, a separate prefill pass precedes the
decode pass. If a pass has no room for a / q chunks, more steps have one.

The median step is a decode pass for any q: on H100 and B200 the measured median stays at 0.8 to 1.1 times the decode
pass where nearly all steps should have a chunk, and the mean at 1.1 to 1.4 times the median. Source: ML.ENERGY
leaderboard (commit 0cd52da), Llama 3.1 70B at 255 to 2,041 sequences.
"""

from __future__ import annotations

import math
from typing import Final

import attrs

from joulemap.system.record import frozen
from joulemap.wing.llm.serving.batch import NODES, grow
from joulemap.wing.llm.serving.surface import Passes, Surface

ROUNDS: Final = 12
"""Maximum iterations of the search for the requests in flight."""

NEAR: Final = 0.01
"""Relative change of the requests in flight at which the search stops."""

LEAST: Final = 0.05
"""Minimum requests in flight at which passes are priced."""


@frozen(kw_only=True)
class Steady:
    """Steady load: the number of requests that are always in flight, and their lengths."""

    in_flight: float = attrs.field(validator=attrs.validators.gt(0.0))
    prompt_tokens: float = attrs.field(validator=attrs.validators.ge(1.0))
    output_tokens: float = attrs.field(validator=attrs.validators.ge(1.0))
    room: float
    """Maximum sequences that fit in device memory at once."""
    step_tokens: float
    """Maximum tokens per pass."""
    mixes: bool = True
    """True if prompt chunks share a pass with decode tokens (chunked prefill)."""
    request_s: float = 0.0
    """Overhead of each request before its prefill may start."""
    cached_tokens: float = 0.0
    """Prompt tokens that a prefix cache supplies."""
    loaded_s: float = 0.0
    """Time to move these tokens to the device from a slower tier, before the prefill may start."""
    pause_s: float = 0.0
    """Time from a request's end to the next one of its user, who is not in flight meanwhile."""
    speculated_tokens: int = 0
    """Draft tokens per sequence and pass, besides the certain one."""
    accepted_tokens: float = 1.0
    """Mean tokens gained per sequence and pass: the certain one and the accepted drafts."""
    rank_wait_steps: float = 0.0
    """Steps for which a prompt waits for prompts on other data-parallel ranks."""


@frozen(kw_only=True)
class SteadyCost:
    """Latency, throughput and power under a steady load; power is that of all devices."""

    first_token_s: float
    step_s: float
    """Mean time per output token."""
    median_step_s: float
    request_s: float
    output_tokens_per_s: float
    power_w: float

    @property
    def output_token_j(self) -> float:
        """Total energy per output token in joules."""
        return self.power_w / self.output_tokens_per_s


def run_steady(surface: Surface, load: Steady) -> SteadyCost:
    """Return the latency, throughput and power of a steady load on a surface.

    With pauses, `in_flight` counts users. Those in flight are the share of a request's time in it and its pause, of
    which fewer take less time: a contraction, found by iteration. Idle power between requests is not in the power.
    """
    if not load.pause_s:
        return _run(surface, load)
    active = load.in_flight
    for _ in range(ROUNDS):
        cost = _run(surface, attrs.evolve(load, in_flight=max(active, LEAST), pause_s=0.0))
        following = load.in_flight * cost.request_s / (cost.request_s + load.pause_s)
        if abs(following / active - 1.0) < NEAR:
            break
        active = 0.5 * (active + following)
    return cost


def _run(surface: Surface, load: Steady) -> SteadyCost:
    working = min(load.in_flight, load.room)
    steps = max(1.0, load.output_tokens / load.accepted_tokens)
    fresh = max(1.0, load.prompt_tokens - load.cached_tokens)
    most = max(1.0, load.step_tokens - (working * (load.speculated_tokens + 1) if load.mixes else 0.0))
    piece = min(fresh, most)
    pieces = fresh / piece
    starts = working / (steps + pieces) if load.mixes else working / steps
    arrivals = starts * pieces
    together = min(arrivals / -math.expm1(-arrivals), most / piece)
    share = arrivals / together
    answering = starts * steps
    places, shares = grow(load.prompt_tokens, steps, load.accepted_tokens)
    behind = load.cached_tokens + max(0.0, fresh - piece) / 2.0
    cost = surface.price(
        Passes.joined(
            (
                Passes.of(answering, context=places),
                Passes.of(
                    answering if load.mixes else 0.0,
                    context=load.prompt_tokens + load.output_tokens / 2.0,
                    chunk=together * piece,
                    chunk_context=max(0.0, behind - (together - 1.0) * piece / 2.0),
                ),
            )
        )
    )
    decode_s, decode_j = (float(values[:NODES] @ shares) for values in (cost.seconds, cost.joules))
    first = 0.0 if load.mixes else 1.0
    mixed_s, mixed_j = (
        float(values[NODES]) + first * decode for values, decode in ((cost.seconds, decode_s), (cost.joules, decode_j))
    )
    step_s = decode_s + share * (mixed_s - decode_s)
    step_j = decode_j + share * (mixed_j - decode_j)
    busy = min(share, 1.0)
    rest_s = ((1.0 - busy) * decode_s**2 + busy * mixed_s**2) / (2.0 * ((1.0 - busy) * decode_s + busy * mixed_s))
    own_s = pieces * (mixed_s - first * decode_s)
    answer_s = step_s * steps
    waiting_s = (load.in_flight / working - 1.0) * (rest_s + own_s + answer_s)
    first_s = load.request_s + load.loaded_s + waiting_s + load.rank_wait_steps * step_s + rest_s + own_s
    return SteadyCost(
        first_token_s=first_s,
        step_s=step_s / load.accepted_tokens,
        median_step_s=decode_s / load.accepted_tokens,
        request_s=first_s + answer_s,
        output_tokens_per_s=starts * load.output_tokens / step_s,
        power_w=step_j / step_s,
    )
