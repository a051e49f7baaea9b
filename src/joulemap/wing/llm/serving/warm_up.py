"""Steady loads: number of warm-up requests of a server, and the initial state of the first ones.

    in flight   the first wave starts at evenly spaced points of its answers, prompts computed; it is not counted
    at a rate   requests that arrive while the server fills are not counted: twice those in flight (Little's law)

Requests that start together wait for each other's prompts. This burst is `in_flight` of all requests: above 1 % it
would set the p99, at 18 times that of the steady state (Llama 8B on H100, 64 in flight). Answers of equal length that
start together also end together for 20 to 40 generations; with evenly spaced starts they never do.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import attrs
import numpy as np

from joulemap.system import frozen
from joulemap.wing.llm.serving.load import MOST_REQUESTS, Limits, Load, Requests
from joulemap.wing.llm.serving.request import COUNTED, GOLDEN, draw_requests, form_conversations
from joulemap.wing.llm.serving.surface import PassCost

WAVES: Final = 4
"""Counted waves after the first, if they have more requests than `COUNTED`."""

MOST_COUNTED: Final = 4
"""Maximum requests in the `WAVES` counted waves, as a multiple of the least number of counted requests."""

FILLED: Final = 2.0
"""Warm-up requests as a multiple of the requests in flight."""

ROUNDS: Final = 60
"""Iterations of the search for the number of active requests."""


@frozen(kw_only=True, eq=False)
class Pool:
    """Pool of identical servers, with their pass costs and limits."""

    surface: PassCost
    limits: Limits
    count: int = 1
    reads_prompts: bool = True
    """True if the servers compute prompts too."""


def add_warm_up(load: Load, pool: Pool, seed: int) -> Load:
    """Return a load with warm-up requests, so that percentiles refer to the steady state.

    All requests of a file with arrival times, or with simultaneous arrivals, are counted, because the start is part of
    the question.
    """
    if load.turns > 1:
        return _warm_up_turns(load, pool, seed)
    if load.in_flight is not None and load.client == "steady":
        return _warm_up_flight(load, pool, seed)
    if load.rate_per_s is not None:
        warm_up = math.ceil(FILLED * count_in_work(load, pool))
        return _lengthen(load, warm_up + _count(load), warm_up, seed)
    return attrs.evolve(load, is_steady=False)


def _warm_up_turns(load: Load, pool: Pool, seed: int) -> Load:
    """Return a load of conversations in its steady state.

    With a rate, turns before the first conversations can end are not counted.
    """
    mean = load.prompt_tokens + (load.turns - 1) * (load.prompt_tokens + load.output_tokens) // 2
    limits, many = pool.limits, load.in_flight
    if many is not None:
        step_s = pool.surface.find_step(min(many, limits.sequences), mean + 0.5 * load.output_tokens)[0]
        answer_s = load.output_tokens / limits.accepted_tokens * step_s
        return form_conversations(load, seed, load.pause_s + limits.request_s + answer_s)
    assert load.rate_per_s is not None
    in_work = count_in_work(attrs.evolve(load, prompt_tokens=mean, turns=1), pool)
    filled_s = load.turns * (FILLED * in_work / load.rate_per_s + load.pause_s)
    return form_conversations(load, seed, min(filled_s, FILLED * COUNTED / load.rate_per_s))


def _warm_up_flight(load: Load, pool: Pool, seed: int) -> Load:
    """Return a load whose first wave starts at evenly spaced points of its answers, as far as capacity allows."""
    assert load.in_flight is not None
    wave = load.in_flight
    counted = max(_count(load), min(WAVES * wave, MOST_COUNTED * _count(load)))
    longer = _lengthen(load, wave + counted, min(wave, MOST_REQUESTS - 1), seed)
    trace, limits = longer.trace, pool.limits
    assert trace is not None
    if limits.waits:
        return longer  # sequences of a batch start together on such a server
    prompts, outputs, cached = (
        np.array(column[:wave]) for column in (trace.prompt_tokens, trace.output_tokens, trace.cached_tokens)
    )
    longest = int((prompts + outputs).max())
    room = min(limits.sequences, max(1, limits.cache_tokens // longest)) * pool.count
    is_working = np.arange(len(prompts)) < room
    done = np.floor(GOLDEN * np.arange(1, len(prompts) + 1) % 1.0 * outputs).astype(int)
    done = np.where(is_working, np.minimum(done, outputs - 1), 0)
    return attrs.evolve(
        longer,
        trace=attrs.evolve(
            trace,
            prompt_tokens=(*(prompts + done).tolist(), *trace.prompt_tokens[wave:]),
            output_tokens=(*(outputs - done).tolist(), *trace.output_tokens[wave:]),
            cached_tokens=(
                *np.where(is_working, prompts + done - 1, cached).tolist(),
                *trace.cached_tokens[wave:],
            ),
        ),
    )


def _count(load: Load) -> int:
    """Return the minimum number of counted requests; a file counts in full."""
    return max(load.requests, len(load.trace.prompt_tokens) if load.trace else 0)


def _lengthen(load: Load, count: int, warm_up: int, seed: int) -> Load:
    """Return a load of `count` requests, without the first `warm_up` in the statistics; requests of a file repeat."""
    count = min(count, MOST_REQUESTS)
    drawn = draw_requests(attrs.evolve(load, requests=count), seed)
    columns: dict[str, Any] = {
        name: tuple(itertools.islice(itertools.cycle(getattr(drawn, name)), count))
        for name in ("prompt_tokens", "output_tokens", "cached_tokens")
    }
    trace = Requests(**columns, arrival_s=(0.0,) * count)
    return attrs.evolve(load, trace=trace, requests=count, warm_up=min(warm_up, count - 1), is_steady=False)


def count_in_work(load: Load, pool: Pool) -> float:
    """Return the mean number of requests in flight at a rate (Little's law), at most half of `COUNTED`.

    Answers wait while a prompt is computed. This share of time is the rate times the time of a prompt.
    """
    assert load.rate_per_s is not None
    prompt, output, limits = *_mean_lengths(load), pool.limits
    rate, steps = load.rate_per_s / pool.count, max(0.0, output - 1.0) / limits.accepted_tokens
    pieces = max(1, math.ceil(prompt / limits.step_tokens))

    def step_s(sequences: float, prompt_tokens: float = 0.0) -> float:
        return pool.surface.find_mixed(sequences, prompt + 0.5 * output, prompt_tokens, 0.0)[0]

    prompt_s = pieces * step_s(0.0, prompt / pieces) if pool.reads_prompts else 0.0
    most = min(limits.sequences, max(1.0, limits.cache_tokens / (prompt + output)))
    halted, active = rate * prompt_s, 1.0
    if halted >= 1.0:
        return 0.5 * COUNTED
    for _ in range(ROUNDS):
        following = rate * (limits.request_s + prompt_s + steps * step_s(max(active, 1.0)) / (1.0 - halted))
        if following >= most:
            return 0.5 * COUNTED
        if following <= 1.01 * active:
            return following * pool.count
        active = following
    return active * pool.count


def _mean_lengths(load: Load) -> tuple[float, float]:
    """Return the mean computed tokens per prompt, and the mean tokens per answer."""
    if load.trace is None:
        return max(1.0, load.prompt_tokens - load.cached_tokens), load.output_tokens
    fresh = np.array(load.trace.prompt_tokens) - np.array(load.trace.cached_tokens)
    return float(fresh.mean()), float(np.mean(load.trace.output_tokens))
