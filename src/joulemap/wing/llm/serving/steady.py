"""Steady load: a constant number of requests in flight, each followed by the next; all answers are equally long.

    chunk       c = min(prompt, tokens of a pass - active requests)       prompt tokens of one request in one pass
    own         p = prompt / c / (steps of an answer + prompt / c)       passes with a chunk of one given request
    arrivals    a = n p, for n active requests                           mean chunks that are due per pass
    share       q = 1 - (1 - p)^n                                        passes with a chunk of any request
    mixed       a pass with a / q chunks, as many as its tokens allow
    mean pass   = decode + q (mixed - decode)             median step = decode
    mean step   = decode + (q - p) / (1 - p) (mixed - decode): an answer meets the chunks of other requests alone
    first token = request + waiting for memory and for other ranks + rest of the step at hand (of others)
                  + own chunks, in passes with those of others
    request     = first token + steps of an answer; the server is idle while the overhead of all requests coincides

Chunks of one step share its pass, which is launched once. Without chunked prefill, a separate prefill pass precedes the
decode pass, p and q count prefill passes per decode pass, and an answer meets q - p of them per step. If a pass has no
room for a / q chunks, more steps have one. If all are full, they limit the requests that start; a prompt waits for
others, so that a request takes the requests in flight over their rate (Little's law).

The median step is a decode pass for any q: on H100 and B200 the measured median stays at 0.8 to 1.1 times the decode
pass where nearly all steps should have a chunk, and the mean at 1.1 to 1.4 times the median. Source: ML.ENERGY
leaderboard (commit 0cd52da), Llama 3.1 70B at 255 to 2,041 sequences.
"""

from __future__ import annotations

from typing import Self

from joulemap.physics import Floats
from joulemap.system import frozen
from joulemap.wing.llm.serving.batch import NODES, grow
from joulemap.wing.llm.serving.surface import Passes, Surface


@frozen(kw_only=True)
class Steady:
    """Steady load: the number of requests that are always in flight, and their lengths."""

    in_flight: float
    prompt_tokens: float
    output_tokens: float
    room: float
    """Maximum sequences that fit in device memory at once."""
    step_tokens: float
    """Maximum tokens per pass."""
    mixes: bool = True
    """True if prompt chunks share a pass with decode tokens (chunked prefill)."""
    request_s: float = 0.0
    """Overhead of each request before its prefill may start."""
    rank_wait_steps: float = 0.0
    """Steps for which a prompt waits for prompts on other data-parallel ranks."""


@frozen(kw_only=True)
class SteadyCost:
    """Latency, throughput and power under a steady load; power covers all devices."""

    first_token_s: float
    step_s: float
    """Mean time per output token in seconds."""
    median_step_s: float
    request_s: float
    output_tokens_per_s: float
    power_w: float

    @property
    def output_token_j(self) -> float:
        """Total energy per output token in joules."""
        return self.power_w / self.output_tokens_per_s


@frozen(kw_only=True)
class _Mix:
    """Requests of a steady load by phase, and their passes."""

    working: float
    """Requests that fit in device memory."""
    steps: float
    """Decode steps of an answer, after its first token; at least 1."""
    pieces: float
    """Number of passes in which a prompt is computed."""
    starts: float
    """Requests that start per decode step."""
    share: float
    """Passes with prompt chunks per decode step; at most 1, except that separate prefill passes may be several."""
    others_share: float
    """Share of an answer's steps with prompt chunks, those of other requests; 0 for a request alone."""
    shares: Floats
    """Share of decode steps that each of the contexts in `passes` represents."""
    passes: Passes
    """Decode passes at `NODES` contexts, then a pass with prompt chunks."""

    @classmethod
    def of(cls, load: Steady) -> Self:
        """Return the mix of phases of a load."""
        working = min(load.in_flight, load.room)
        steps = max(1.0, load.output_tokens - 1.0)
        fresh = max(1.0, load.prompt_tokens)
        answering = min(working, load.step_tokens * steps / (fresh + steps)) if load.mixes else 0.0
        most = max(1.0, load.step_tokens - answering)
        piece = min(fresh, most)
        pieces = fresh / piece
        starts = working / (steps + pieces if load.mixes else steps)
        if not load.mixes or starts <= most / fresh:
            answering = working  # passes without chunks have room for all
        else:
            starts = most / fresh
        arrivals = starts * pieces
        own = arrivals / working
        together = min(max(1.0, arrivals / (1.0 - (1.0 - min(own, 1.0)) ** working)), most / piece)
        share = arrivals / together
        others_share = 0.0  # exactly, for a request alone
        if working > 1.0:
            others_share = max(0.0, share - own) / (1.0 - own if load.mixes else 1.0)
        contexts, shares = grow(load.prompt_tokens, steps)
        behind = max(0.0, fresh - piece) / 2.0
        mixed = Passes.of(
            max(0.0, min(answering, working - together)) if load.mixes else 0.0,
            context=load.prompt_tokens + load.output_tokens / 2.0,
            chunk=together * piece,
            chunk_context=max(0.0, behind - (together - 1.0) * piece / 2.0),
        )
        return cls(
            working=working,
            steps=steps,
            pieces=pieces,
            starts=starts,
            share=share,
            others_share=others_share,
            shares=shares,
            passes=Passes.joined((Passes.of(answering, context=contexts), mixed)),
        )


def list_passes(load: Steady) -> Passes:
    """Return the passes on which the cost of a load depends."""
    return _Mix.of(load).passes


def run_steady(surface: Surface, load: Steady) -> SteadyCost:
    """Return the latency, throughput and power of a steady load on a surface."""
    mix = _Mix.of(load)
    cost = surface.price(mix.passes)
    decode_s, decode_j = (float(values[:NODES] @ mix.shares) for values in (cost.seconds, cost.joules))
    first = 0.0 if load.mixes else 1.0
    mixed_s, mixed_j = (
        float(values[NODES]) + first * decode for values, decode in ((cost.seconds, decode_s), (cost.joules, decode_j))
    )
    pass_s = decode_s + mix.share * (mixed_s - decode_s)
    pass_j = decode_j + mix.share * (mixed_j - decode_j)
    step_s = decode_s + mix.others_share * (mixed_s - decode_s)
    busy = min(mix.share, 1.0)
    rest_s = ((1.0 - busy) * decode_s**2 + busy * mixed_s**2) / (2.0 * ((1.0 - busy) * decode_s + busy * mixed_s))
    rest_s *= min(1.0, max(0.0, load.in_flight - 1.0))  # steps at hand are those of other requests
    own_s = mix.pieces * (mixed_s - first * decode_s)
    answer_s = step_s * mix.steps
    cycle_s = mix.working * pass_s / mix.starts
    prompt_s = max(rest_s + own_s, cycle_s - answer_s)
    after_s = answer_s if load.mixes else max(0.0, cycle_s - prompt_s)
    waiting_s = (load.in_flight / mix.working - 1.0) * (prompt_s + after_s)
    first_s = load.request_s + waiting_s + load.rank_wait_steps * step_s + prompt_s
    request_s = first_s + after_s
    used = 1.0 - (load.request_s / request_s) ** load.in_flight  # idle if all requests are on their way
    return SteadyCost(
        first_token_s=first_s,
        step_s=step_s,
        median_step_s=decode_s,
        request_s=request_s,
        output_tokens_per_s=used * mix.starts * load.output_tokens / pass_s,
        power_w=used * pass_j / pass_s + (1.0 - used) * surface.resting_w,
    )
