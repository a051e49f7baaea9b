"""Load on a language-model server, scheduler limits of the server, the log of a run, and serving results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system import UsageError, define, frozen
from joulemap.wing.llm.client import CLIENTS

if TYPE_CHECKING:
    from attrs import Attribute


Spell = tuple[float, int, float, float, float, float, int, int, int, float, int]
"""One spell, a series of passes of the same sequences: start; number of passes; seconds of the first pass and increase
per further pass; joules likewise; sequences that get tokens; prompt tokens per pass; active sequences; time since the
last pass that gave tokens; sequences whose first token from a decode pass falls in the first pass.
"""

FIELDS: Final = (
    "start", "passes", "seconds", "longer", "joules", "dearer",
    "answers", "prompt", "running", "stall", "fresh",
)  # fmt: skip
"""Field names of a spell, in order."""


@define(kw_only=True)
class Log:
    """Lists that grow while a server works; the per-request lists have one element for each request."""

    gaps: list[float]
    """Seconds between tokens that span several passes, of sequences that just joined or were recomputed."""
    gap_ends: list[float]
    """End time of each gap in `gaps`."""
    arrival: list[float | None]
    first_token: list[float | None]
    finished: list[float | None]
    token_at: list[float]
    """Time of each request's last token, recorded when the request joins decode or is preempted."""
    preemptions: list[int]
    full_from: float = 0.0
    """Time from which the number of active conversations is steady; earlier turns are not counted."""
    full_until: float = math.inf
    """Time of the last new conversation, after which the load falls; infinite without conversations."""

    @staticmethod
    def of(count: int) -> Log:
        """Return an empty log for `count` requests."""
        return Log(
            gaps=[],
            gap_ends=[],
            arrival=[None] * count,
            first_token=[None] * count,
            finished=[None] * count,
            token_at=[0.0] * count,
            preemptions=[0] * count,
        )


MOST_REQUESTS: Final = 1_000_000
"""Maximum requests of a load; all of them are kept in memory."""

LONGEST: Final = 100_000_000
"""Maximum tokens of a prompt or an answer."""


def _within(least: float, most: float = math.inf) -> Callable[[Any, Attribute[Any], float | None], None]:
    def check(_record: object, field: Attribute[Any], value: float | None) -> None:
        if value is not None and not least <= value <= most:
            limits = f"from {least:g} to {most:,g}" if most < math.inf else f"{least:g} or more"
            raise UsageError(f"{field.name} is {value:g}, expected {limits}")

    return check


def _number(default: float | None, least: float, most: float = math.inf) -> Any:
    """Return the field of a number within limits, with its default."""
    return attrs.field(default=default, validator=_within(least, most))


def _as_long(requests: Requests, field: Attribute[Any], column: Sequence[float]) -> None:
    if len(column) != len(requests.prompt_tokens):
        raise UsageError(
            f"{field.name} has {len(column)} values, expected {len(requests.prompt_tokens)} as in prompt_tokens"
        )


@frozen(kw_only=True)
class Tier:
    """Memory below the device, such as host memory, for evicted blocks of a prefix cache."""

    name: str
    capacity_bytes: float = attrs.field(validator=_within(1.0))
    """Capacity for one server."""
    bytes_per_s: float = attrs.field(validator=_within(1.0))
    """Bandwidth between this memory and all devices of a server together."""
    j_per_byte: float = _number(0.0, 0.0)
    """Energy to read or write one byte, including the link to the device."""


@frozen(kw_only=True)
class Hit:
    """Prompt tokens found in one tier of a prefix cache, and the bytes moved between this tier and the device."""

    tier: str
    asked_tokens: int
    """Prompt tokens of all counted requests."""
    found_tokens: int
    """Prompt tokens that were found in this tier."""
    moved_bytes: float
    """Bytes read from and written to this tier; 0 for the device itself."""
    joules: float

    @property
    def found_fraction(self) -> float:
        """Share of prompt tokens found in this cache tier."""
        return self.found_tokens / self.asked_tokens if self.asked_tokens else 0.0


@frozen(kw_only=True)
class Prefixes:
    """Token blocks of all requests for a simulated prefix cache, and the order of turns in conversations.

    Each sequence has one entry per request. Blocks with the same number hold the same tokens after the same prefix.
    """

    block_tokens: int = attrs.field(validator=_within(1))
    prompts: Sequence[Sequence[int]]
    """Numbers of the blocks of each prompt."""
    answers: Sequence[Sequence[int]] = ()
    """Numbers of the blocks of each prompt and its answer; empty if answers are not reused."""
    next_turn: Sequence[int] = ()
    """Index of the request for the next turn of the same conversation, -1 for none; empty if requests arrive
    independently.
    """
    pause_s: Sequence[float] = ()
    """Pause in seconds before each request that continues a conversation; empty without pauses."""
    filled_s: float = 0.0
    """Time at which the server is considered filled; earlier requests are not counted."""


@frozen(kw_only=True)
class Requests:
    """Requests in order of arrival, one column per attribute."""

    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...] = attrs.field(validator=_as_long)
    arrival_s: tuple[float, ...] = attrs.field(validator=_as_long)
    """Arrival times in seconds since the start; all 0 if every request arrives at the start."""
    cached_tokens: tuple[int, ...] = attrs.field(validator=_as_long)
    """Prompt tokens that a cached prefix supplies; they occupy the cache but are not recomputed."""
    prefixes: Prefixes | None = None
    """Blocks for a simulated prefix cache; None if `cached_tokens` states the cache hits."""


CLIENT_S: Final = 0.03
"""Mean time in which a client answers the end of a request with its next one: network, and the loop of the client.

Without it, requests arrive at the very end of a pass, and none waits for the pass at hand. Source: assumed; from 5 to
50 ms, mean times to first token of steady clients differ by 5 %. Nine loads of blawesom/gpu_inference_bench on L40,
whose client keeps requests together, are predicted with an error of 9 % at 30 to 100 ms, 28 % without a gap.
"""

ROUNDS: Final = {"together": 10, "waves": 3}
"""Requests of a simulated client that are not independent, as a multiple of those in flight. Source: a choice."""


@frozen(kw_only=True)
class Load:
    """Load on a server: an arrival rate, a number of requests in flight, or, without both, all requests at once.

    A trace has arrival times; with a rate or requests in flight, only its token counts are used.
    """

    rate_per_s: float | None = _number(None, 1e-9, 1e9)
    """Arrival rate of independent requests (Poisson)."""
    in_flight: int | None = _number(None, 1, MOST_REQUESTS)
    """Concurrent requests; a new one arrives when one finishes."""
    trace: Requests | None = None
    requests: int = _number(1000, 1, MOST_REQUESTS)
    """Number of random requests; a trace is used in full."""
    prompt_tokens: int = _number(2048, 1, LONGEST)
    output_tokens: int = _number(256, 1, LONGEST)
    cached_tokens: int = _number(0, 0)
    """Prompt tokens supplied by the prefix cache, per request."""
    turns: int = _number(1, 1)
    """Turns of each conversation. Above 1, `prompt_tokens` counts the new tokens of a turn, and `in_flight` counts
    conversations.
    """
    pause_s: float = _number(0.0, 0.0)
    """Mean time from the end of an answer to the next turn."""
    reuses: bool = True
    """True if prompt tokens in the prefix cache are reused; False computes all of them."""
    client: str = attrs.field(default="steady", validator=attrs.validators.in_(CLIENTS))
    """Start of the requests in flight, one of `CLIENTS`."""
    gap_s: float = _number(0.0, 0.0)
    """Mean time from the end of an answer to the next request of its client; exponential if steady."""
    spread_fraction: float = _number(0.0, 0.0, 0.999)
    """Relative spread around the lengths, which are means, drawn uniformly: 0.1 gives 90 to 110 %."""
    warm_up: int = _number(0, 0)
    """Requests at the start that fill the server and are omitted from percentiles."""
    is_steady: bool = False
    """True for steady-state figures: the server is filled before counting starts, and `requests` is the least number of
    requests counted afterwards.
    """

    def __attrs_post_init__(self) -> None:
        """Raise UsageError if fields contradict each other."""
        if self.rate_per_s is not None and self.in_flight is not None:
            raise UsageError("a load has a rate or a number of requests in flight, not both")
        if self.is_steady and self.warm_up:
            raise UsageError("a steady load finds its own warm-up: leave out warm_up")
        if self.cached_tokens >= self.prompt_tokens:
            raise UsageError(
                f"cached_tokens {self.cached_tokens} must be below prompt_tokens {self.prompt_tokens}: "
                "the last token of a prompt is always computed"
            )


@frozen(kw_only=True)
class Limits:
    """Limits of a server: scheduler settings and cache capacity."""

    step_tokens: int = _number(8192, 1)
    """Maximum tokens per pass, prefill and decode together; longer prompts are split into chunks."""
    sequences: int = _number(256, 1)
    """Maximum sequences in progress."""
    cache_tokens: int = attrs.field(validator=_within(2))
    """Cache capacity in tokens of all sequences."""
    context_tokens: int | None = _number(None, 2)
    """Maximum prompt plus answer tokens of the model; None if not stated."""
    mixes: bool = True
    """True if prefill chunks share a pass with decode (vLLM 1, TensorRT-LLM). False if prefill has its own passes,
    before any decode (SGLang, vLLM 0).
    """
    reserves_output: bool = False
    """True if admission reserves cache for the whole answer (TensorRT-LLM). False if the sequence admitted last is
    preempted when the cache is full, and recomputed later.
    """
    waits: bool = False
    """True if no request is admitted until the current batch is complete (static batching without a scheduler)."""
    request_s: float = _number(0.0, 0.0)
    """Time in seconds before a request's prefill may start: network and tokenization."""
    speculated_tokens: int = _number(0, 0)
    """Draft tokens per sequence and pass, in addition to the one token that every pass produces."""
    accepted_tokens: float = _number(1.0, 1.0)
    """Mean number of tokens that a pass adds to a sequence: the token that every pass produces, and accepted drafts."""
    token_bytes: float = _number(1.0, 0.0)
    """Bytes of KV cache per token in slower tiers, summed over devices."""
    tiers: tuple[Tier, ...] = ()
    """Memory below the device for evicted blocks of a prefix cache, the fastest first."""

    def __attrs_post_init__(self) -> None:
        """Raise UsageError if fields contradict each other."""
        if self.accepted_tokens > self.speculated_tokens + 1:
            raise UsageError(
                f"accepted_tokens {self.accepted_tokens:g} exceeds speculated_tokens + 1 = {self.speculated_tokens + 1}"
            )
        if self.step_tokens <= self.speculated_tokens:
            raise UsageError(f"step_tokens {self.step_tokens} is too few for one sequence of a pass")


@frozen(kw_only=True)
class Spread:
    """Mean and percentiles of a time."""

    mean: float
    p50: float
    p90: float
    p99: float


@frozen(kw_only=True)
class Window:
    """Part of a run over which rates and powers are computed: all of it, or from the end of the warm-up to the last
    arrival.
    """

    start_s: float
    end_s: float
    output_tokens: float
    energy_j: float
    idle_j: float
    """Part of `energy_j` spent while idle."""
    idle_s: float
    prompt_j: float = 0.0
    """Part of `energy_j` spent in passes with prompt tokens, including their output tokens."""
    moved_j: float = 0.0
    """Part of `energy_j` spent on moves between the tiers of a prefix cache."""

    @property
    def answer_j(self) -> float:
        """Part of `energy_j` spent in passes without prompt tokens."""
        return self.energy_j - self.idle_j - self.prompt_j - self.moved_j

    @property
    def duration_s(self) -> float:
        """Length of the window in seconds."""
        return self.end_s - self.start_s

    @property
    def busy_fraction(self) -> float:
        """Share of the window in which the server works."""
        return 1.0 - self.idle_s / self.duration_s

    @property
    def busy_w(self) -> float:
        """Energy of the window outside idle time, divided by the length of the whole window, in watts."""
        return (self.energy_j - self.idle_j) / self.duration_s


@frozen(kw_only=True)
class Served:
    """Result of serving a load. Energies and powers are sums over all devices."""

    requests: int
    """Requests completed."""
    refused: int
    """Requests refused because they exceed the cache or the model's context."""
    preemptions: int
    """Times that a sequence gave up its cache and was recomputed."""
    duration_s: float
    """Time from the start to the last token."""
    steps: int
    output_tokens: int
    prompt_tokens: int
    """Prompt tokens of completed requests, cache hits included."""
    computed_tokens: int
    """Prompt tokens computed by passes. Cache hits are excluded; recomputation after preemption is included, and so is
    the first output token if a separate pool continues the answer.
    """
    first_token: Spread
    """Time from arrival to first token (TTFT), over requests."""
    between_tokens: Spread
    """Time between successive tokens, over all token pairs; 0 unless `has_gaps`."""
    token_time: Spread
    """Mean time between tokens of a request (TPOT), over requests; 0 unless `has_gaps`."""
    latency: Spread
    """Time from arrival to last token, over requests."""
    arrivals_per_s: float | None
    """Arrival rate; None if requests have no arrival times."""
    served_per_s: float
    """Completion rate during the second half of the arrivals; over the whole run if there are no arrival times or the
    queue grows.
    """
    is_growing: bool
    """True if requests arrive faster than they are served, so that the queue grows."""
    window: Window
    hits: tuple[Hit, ...] = ()
    """Prompt tokens found in each tier of a prefix cache; empty without a cache."""
    log: Log
    """Times of each request, in order of arrival; None if it was refused."""

    @property
    def hit_fraction(self) -> float:
        """Share of the counted requests' prompt tokens that a prefix cache found."""
        return sum(hit.found_fraction for hit in self.hits)

    @property
    def has_gaps(self) -> bool:
        """True if a request has two output tokens or more, so that there is a time between tokens."""
        return self.output_tokens > self.requests

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens per second in the window."""
        return self.window.output_tokens / self.window.duration_s

    @property
    def power_w(self) -> float:
        """Mean power in the window."""
        return self.window.energy_j / self.window.duration_s

    @property
    def energy_per_output_token_j(self) -> float:
        """Energy of the window per output token, with prefill and idle time included."""
        return self.window.energy_j / self.window.output_tokens
