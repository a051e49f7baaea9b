"""Steady load: a constant number of requests in flight, each followed by the next; all answers are equally long.

    chunk       c = min(prompt, tokens of a pass - active requests)       prompt tokens of one pass
    arrivals    a = active requests / (steps of an answer + prompt / c)   mean prompts that start per step
    step          = decode + a prompt / c (decode with a chunk - decode)
    first token   = request + waiting for memory + half a step + waiting for earlier prompts + own chunks
    waiting       = a prompt / c own chunks / 2        a request that starts as another ends meets a pass with a chunk

Without chunked prefill, a separate prefill pass replaces the pass with a chunk. While a prompt / c is below one half,
at least half of all steps have no chunk, and the median step is decode alone.
"""

from __future__ import annotations

import attrs

from joulemap.system.record import frozen
from joulemap.wing.llm.serving.batch import NODES, grow
from joulemap.wing.llm.serving.surface import Passes, Surface


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
    """Return the latency, throughput and power of a steady load on a surface."""
    working = min(load.in_flight, load.room)
    steps = max(1.0, load.output_tokens)
    fresh = max(1.0, load.prompt_tokens)
    piece = max(1.0, min(fresh, load.step_tokens - (working if load.mixes else 0.0)))
    pieces = fresh / piece
    arrivals = working / (steps + pieces) if load.mixes else working / steps
    answering = arrivals * steps
    places, shares = grow(load.prompt_tokens, steps)
    middle = load.prompt_tokens + load.output_tokens / 2.0
    behind = max(0.0, fresh - piece) / 2.0
    beside = answering if load.mixes else 0.0
    cost = surface.price(
        Passes.joined(
            (
                Passes.of(answering, context=places),
                Passes.of(beside, context=middle),
                Passes.of(beside, context=middle, chunk=piece, chunk_context=behind),
            )
        )
    )
    decode_s, decode_j = (float(values[:NODES] @ shares) for values in (cost.seconds, cost.joules))
    added_s, added_j = (float(values[-1] - values[-2] * load.mixes) for values in (cost.seconds, cost.joules))
    step_s = decode_s + arrivals * pieces * added_s
    step_j = decode_j + arrivals * pieces * added_j
    own_s = pieces * (added_s + decode_s * load.mixes)
    before_s = min(arrivals * pieces, 1.0) / 2.0 * pieces * added_s
    answer_s = step_s * steps
    waiting_s = (load.in_flight / working - 1.0) * (before_s + own_s + answer_s)
    first_s = load.request_s + waiting_s + step_s / 2.0 + before_s + own_s
    return SteadyCost(
        first_token_s=first_s,
        step_s=step_s,
        median_step_s=decode_s if arrivals * pieces < 0.5 else step_s,
        request_s=first_s + answer_s,
        output_tokens_per_s=arrivals * load.output_tokens / step_s,
        power_w=step_j / step_s,
    )
