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

import math
from collections.abc import Sequence
from typing import Final, Self

import attrs

from joulemap.physics import Floats
from joulemap.system import frozen
from joulemap.wing.llm.serving.batch import NODES, grow
from joulemap.wing.llm.serving.surface import Passes, Surface

ROUNDS: Final = 8
"""Maximum iterations of the search for the requests in flight."""

NEWTON: Final = 20
"""Iterations of the search for the time that a context stays in the prefix cache."""

GRAIN: Final = 12.0
"""Steps per power of two to which requests in flight are rounded, so that evaluated passes can be reused."""


@frozen(kw_only=True)
class Residence:
    """Contexts of all users in a prefix cache of several tiers, each of which evicts the least recently used.

    A request takes a time r and holds its context. A context then stays for a time T after its last use. Pauses are
    exponential with mean z, so a share p = 1 - exp(-T / z) of them is shorter than T. A share s of the tokens is used
    again; the others belong to conversations that end, and stay for T too. The contexts of n users take n (r + s z p +
    (1 - s) T) / (r + z); T follows because this equals the capacity C. Source: Che et al., IEEE JSAC 2002, for users in
    place of documents. For 120 conversations on H200, this differs by 0.01 from the simulated share.
    """

    context_tokens: float
    """Mean tokens before a turn that are reused if they are found."""
    capacities: tuple[float, ...]
    """Cumulative capacity of the device and of each tier below, as a share of all users' contexts."""
    reused_fraction: float = 1.0
    """Share of the tokens of a context that the next turn uses again, in the mean of a conversation's turns."""
    load_s: tuple[float, ...] = ()
    """Seconds to move a context to the device from each tier below it."""
    move_j: tuple[float, ...] = ()
    """Joules to move a context to or from each tier."""

    def find(self, request_s: float, pause_s: float) -> tuple[float, ...]:
        """Return the share of turns whose context is found on the device, and in each tier below."""
        if not pause_s:
            shares = [float(one >= 1.0) for one in self.capacities]
        else:
            part = request_s / pause_s
            shares = [self._find_shorter(one * (1.0 + part) - part) for one in self.capacities]
        return tuple(here - before for here, before in zip(shares, [0.0, *shares], strict=False))

    def _find_shorter(self, room: float) -> float:
        """Return the share of pauses that end while the context is still cached.

        `room` is the capacity for contexts of users in a pause, as a share of these contexts.
        """
        if room <= 0.0:
            return 0.0
        rest = 1.0 - self.reused_fraction
        if math.isinf(room) or (room >= 1.0 and not rest):
            return 1.0
        stay = 0.0  # T / z; the contexts are concave in it, so that each step remains below the solution
        for _ in range(NEWTON):
            shorter = -math.expm1(-stay)
            slope = self.reused_fraction * (1.0 - shorter) + rest
            stay += (room - self.reused_fraction * shorter - rest * stay) / slope
        return -math.expm1(-stay)

    def sum_moves(self, hits: Sequence[float]) -> tuple[float, float]:
        """Return the mean seconds and joules that a turn spends on moves between tiers; evicted blocks move to the next
        tier.
        """
        seconds = sum(hit * one for hit, one in zip(hits[1:], self.load_s, strict=True))
        lost = [1.0 - sum(hits[: index + 1]) for index in range(len(self.move_j))]
        joules = sum(one * (gone + hit) for one, gone, hit in zip(self.move_j, lost, hits[1:], strict=True))
        return seconds, joules


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
    cached_tokens: float = 0.0
    """Prompt tokens that a prefix cache supplies."""
    residence: Residence | None = None
    """Prefix cache that decides how many prompt tokens are found; None to use `cached_tokens`."""
    pause_s: float = 0.0
    """Seconds from the end of a request to the next request of the same user."""
    begin_s: float = 0.0
    """Initial guess of a request's time in the search for the requests in flight; 0 to start from `pause_s`."""
    speculated_tokens: int = 0
    """Draft tokens per sequence and pass, in addition to the token that every pass yields."""
    accepted_tokens: float = 1.0
    """Mean tokens gained per sequence and pass: one certain token and the accepted drafts."""
    rank_wait_steps: float = 0.0
    """Steps for which a prompt waits for prompts on other data-parallel ranks."""

    @property
    def kept_tokens(self) -> float:
        """Mean cached prompt tokens per request, without those of requests for which memory has no room."""
        return self.cached_tokens * min(1.0, self.room / self.in_flight)


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
    hits: tuple[float, ...] = ()
    """Share of turns whose context is found on the device and in each lower tier; empty without a prefix cache."""
    moved_j: float = 0.0
    """Energy of a request for moves between the tiers of a prefix cache, in addition to the power."""

    @property
    def output_token_j(self) -> float:
        """Total energy per output token in joules."""
        return self.power_w / self.output_tokens_per_s


def run_steady(surface: Surface, load: Steady) -> SteadyCost:
    """Return the latency, throughput and power of a steady load on a surface.

    With pauses, `in_flight` counts users, each with a request in flight for part of the time. While no request is in
    flight, the devices draw resting power. That part of the time, and the hits of a prefix cache, depend on the time of
    a request; iteration finds all three.
    """
    if not load.pause_s and load.residence is None:
        return _run(surface, attrs.evolve(load, cached_tokens=load.kept_tokens))
    users, request_s = load.in_flight, load.begin_s or load.pause_s
    tried: dict[tuple[float, float], tuple[float, SteadyCost]] = {}
    for _ in range(ROUNDS):
        part = request_s / (request_s + load.pause_s) if load.pause_s else 1.0
        busy = 1.0 - (1.0 - part) ** users
        hits = load.residence.find(request_s, load.pause_s) if load.residence else ()
        seconds, joules = load.residence.sum_moves(hits) if load.residence else (0.0, 0.0)
        cached = round(sum(hits) * load.residence.context_tokens) if load.residence else load.cached_tokens
        key = round_flight(users * part / busy), cached
        if key in tried:
            break
        alone = attrs.evolve(load, in_flight=key[0], cached_tokens=cached, residence=None, pause_s=0.0)
        cost = _run(surface, attrs.evolve(alone, request_s=load.request_s + seconds))
        tried[key] = request_s, cost
        request_s = _meet([(before, one.request_s) for before, one in tried.values()])
    _, cost = tried[key]
    return attrs.evolve(
        cost,
        output_tokens_per_s=cost.output_tokens_per_s * busy,
        power_w=cost.power_w * busy + surface.resting_w * (1.0 - busy),
        hits=hits,
        moved_j=joules,
    )


def round_flight(requests: float) -> float:
    """Return the number of requests in flight, rounded so that evaluations can be reused."""
    grain = 2.0 ** math.floor(math.log2(max(requests, 1.0))) / GRAIN
    return max(grain, round(requests / grain) * grain)


def _meet(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the request time at which assumed and resulting time are equal, from the last two pairs."""
    assumed, resulting = pairs[-1]
    if len(pairs) == 1:
        return resulting
    before, former = pairs[-2]
    slope = (resulting - former) / (assumed - before) if assumed != before else 0.0
    met = (resulting - slope * assumed) / (1.0 - slope) if slope < 1.0 else resulting
    low, high = sorted((assumed, resulting))
    return min(max(met, 0.5 * low), 2.0 * high)


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
        """Return the mix of phases of a load without pauses."""
        working = min(load.in_flight, load.room)
        steps = max(1.0, (load.output_tokens - 1.0) / load.accepted_tokens)
        fresh = max(1.0, load.prompt_tokens - load.cached_tokens)
        each = load.speculated_tokens + 1.0
        answering = min(working, load.step_tokens * steps / (fresh + each * steps)) if load.mixes else 0.0
        most = max(1.0, load.step_tokens - each * answering)
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
        contexts, shares = grow(load.prompt_tokens, steps, load.accepted_tokens)
        behind = load.cached_tokens + max(0.0, fresh - piece) / 2.0
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
    """Return the passes on which the cost of a load without pauses and residence depends."""
    return _Mix.of(load).passes


def _run(surface: Surface, load: Steady) -> SteadyCost:
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
        step_s=step_s / load.accepted_tokens,
        median_step_s=decode_s / load.accepted_tokens,
        request_s=request_s,
        output_tokens_per_s=used * mix.starts * load.output_tokens / pass_s,
        power_w=used * pass_j / pass_s + (1.0 - used) * surface.resting_w,
    )
