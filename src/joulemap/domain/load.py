"""Requests that reach a server of a language model, what the server may hold, and how they were served."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from attrs import Attribute

MOST_REQUESTS: Final = 1_000_000
"""Of a load: what is drawn or read is held in memory."""

LONGEST: Final = 100_000_000
"""Tokens of a prompt or of an answer."""


def _within(least: float, most: float = math.inf) -> Callable[[Any, Attribute[Any], float | None], None]:
    def check(_record: object, field: Attribute[Any], value: float | None) -> None:
        if value is not None and not least <= value <= most:
            limits = f"from {least:g} to {most:,g}" if most < math.inf else f"{least:g} or more"
            raise UsageError(f"{field.name} is {value:g}, expected {limits}")

    return check


def _as_long(requests: Requests, field: Attribute[Any], column: Sequence[float]) -> None:
    if len(column) != len(requests.prompt_tokens):
        raise UsageError(f"{field.name} has {len(column)} requests, prompt_tokens {len(requests.prompt_tokens)}")


@frozen(kw_only=True)
class Requests:
    """Requests in order of their arrival: a column of each of their facts."""

    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...] = attrs.field(validator=_as_long)
    arrival_s: tuple[float, ...] = attrs.field(validator=_as_long)
    """Since the start; all zero where they are there at once."""
    cached_tokens: tuple[int, ...] = attrs.field(validator=_as_long)
    """Of the prompt, in the cache already: prefixes that are hit, which are held and not worked out."""


@frozen(kw_only=True)
class Load:
    """What a server is asked to do: at a rate, with so many in flight, or, where neither is told, all at once.

    A trace has its own arrivals, and gives only the lengths where a rate or requests in flight are told too.
    """

    rate_per_s: float | None = attrs.field(default=None, validator=_within(1e-9, 1e9))
    """Requests that arrive, independent of each other (Poisson)."""
    in_flight: int | None = attrs.field(default=None, validator=_within(1, MOST_REQUESTS))
    """Requests at any time: the next arrives when one has its last token."""
    trace: Requests | None = None
    requests: int = attrs.field(default=1000, validator=_within(1, MOST_REQUESTS))
    """How many are drawn; those of a trace are all taken."""
    prompt_tokens: int = attrs.field(default=2048, validator=_within(1, LONGEST))
    output_tokens: int = attrs.field(default=256, validator=_within(1, LONGEST))
    cached_tokens: int = attrs.field(default=0, validator=_within(0))
    """Of each prompt, hit in the cache."""
    spread_fraction: float = attrs.field(default=0.0, validator=_within(0.0, 0.999))
    """Lengths are drawn evenly from this share below the nominal ones up to them: 0.2 is 80 to 100 %."""
    warm_up: int = attrs.field(default=0, validator=_within(0))
    """Requests at the start that count in no spread, which fill the server."""
    is_steady: bool = False
    """Whether figures are those of a server at work: what fills it is simulated first and counted in none, and
    `requests` is the least number of those behind it."""

    def __attrs_post_init__(self) -> None:
        """Check what no field knows alone."""
        if self.rate_per_s is not None and self.in_flight is not None:
            raise UsageError("a load has a rate or a number of requests in flight, not both")
        if self.is_steady and self.warm_up:
            raise UsageError("a steady load finds its own warm-up: leave out warm_up")
        if self.cached_tokens >= self.prompt_tokens:
            raise UsageError(
                f"cached_tokens {self.cached_tokens} must be below prompt_tokens {self.prompt_tokens}: "
                "the last token of a prompt is always worked out"
            )


@frozen(kw_only=True)
class Limits:
    """What a server takes on: its scheduler's settings, and the room of its cache."""

    step_tokens: int = attrs.field(default=8192, validator=_within(1))
    """Most tokens of a pass, prompts and answers together: longer prompts go in pieces."""
    sequences: int = attrs.field(default=256, validator=_within(1))
    """Most that are in work at once."""
    cache_tokens: int = attrs.field(validator=_within(2))
    """Room for tokens of all sequences."""
    context_tokens: int | None = attrs.field(default=None, validator=_within(2))
    """Longest request that the model takes, prompt and answer; None where nothing is said."""
    mixes: bool = True
    """Pieces of prompts go in the same pass as tokens of answers (vLLM 1, TensorRT-LLM); else in passes of their own,
    before any answer goes on (SGLang, vLLM 0)."""
    reserves_output: bool = False
    """Room for the whole answer is set aside at admission (TensorRT-LLM); else the last that was admitted gives its
    room back when there is none, and is worked out again."""
    waits: bool = False
    """Nothing is admitted until all that was admitted together is done (batches of a framework without a scheduler)."""
    request_s: float = attrs.field(default=0.0, validator=_within(0.0))
    """Of a request before its prompt may start: network, words to tokens."""
    speculated_tokens: int = attrs.field(default=0, validator=_within(0))
    """Guessed ahead for each sequence in a pass, beside the one that is sure."""
    accepted_tokens: float = attrs.field(default=1.0, validator=_within(1.0))
    """Of a sequence in a pass, in the mean: the sure one and the guesses that held."""

    def __attrs_post_init__(self) -> None:
        """Check what no field knows alone."""
        if self.accepted_tokens > self.speculated_tokens + 1:
            raise UsageError(
                f"accepted_tokens {self.accepted_tokens:g} exceeds speculated_tokens + 1 = {self.speculated_tokens + 1}"
            )
        if self.step_tokens <= self.speculated_tokens:
            raise UsageError(f"step_tokens {self.step_tokens} is too few for one sequence of a pass")


@frozen(kw_only=True)
class Spread:
    """How seconds are spread."""

    mean: float
    p50: float
    p90: float
    p99: float


@frozen(kw_only=True)
class Moment:
    """A server's means over one of the equal times that a run is cut into."""

    time_s: float
    """When it begins."""
    power_w: float
    """Of all devices."""
    running: float
    """Sequences in work."""
    waiting: float
    """Requests that have arrived and are not in work."""
    cache_tokens: float


@frozen(kw_only=True)
class Outcomes:
    """What became of each request, in order of arrival; None where it was refused."""

    arrival_s: tuple[float | None, ...]
    """Since the start, as the two below."""
    first_token_s: tuple[float | None, ...]
    finished_s: tuple[float | None, ...]
    preemptions: tuple[int, ...]


@frozen(kw_only=True)
class Window:
    """The part of a run that rates and powers are of: all of it, or behind a warm-up until the last request comes."""

    start_s: float
    end_s: float
    output_tokens: float
    energy_j: float
    idle_j: float
    """Idle part of it."""
    idle_s: float

    @property
    def duration_s(self) -> float:
        """From its start to its end."""
        return self.end_s - self.start_s

    @property
    def busy_fraction(self) -> float:
        """Share of the time in which there was something to do."""
        return 1.0 - self.idle_s / self.duration_s

    @property
    def busy_w(self) -> float:
        """Joules of passes a second."""
        return (self.energy_j - self.idle_j) / self.duration_s


@frozen(kw_only=True)
class Served:
    """How a load was served; joules and watts are those of all devices."""

    requests: int
    """That were served to their last token."""
    refused: int
    """That are longer than the cache or the model's context."""
    preemptions: int
    """Times that a sequence gave its room back and was worked out again."""
    duration_s: float
    """From the start to the last token."""
    steps: int
    output_tokens: int
    prompt_tokens: int
    """Of prompts served, hits included."""
    computed_tokens: int
    """Prompt tokens that passes worked out: hits are not in it, what was preempted is again, and so is the first token
    of an answer where a pool of its own goes on with it."""
    energy_j: float
    idle_j: float
    """Of it, while there was nothing to do."""
    idle_s: float
    first_token: Spread
    """From arrival, over requests."""
    between_tokens: Spread
    """Over all pairs of successive tokens."""
    token_time: Spread
    """Over requests: the mean time between tokens of each."""
    latency: Spread
    """From arrival to the last token, over requests."""
    arrivals_per_s: float | None
    """None where requests do not arrive at times of their own."""
    served_per_s: float
    """Requests that were finished, in the second half of the arrivals; of the whole run where none are told, or ever
    more wait."""
    is_growing: bool
    """Whether requests arrive faster than they are served, so that those who wait become ever more."""
    window: Window
    timeline: tuple[Moment, ...]
    outcomes: Outcomes

    @property
    def output_tokens_per_s(self) -> float:
        """Tokens of answers a second, in the window."""
        return self.window.output_tokens / self.window.duration_s

    @property
    def power_w(self) -> float:
        """Mean power in the window."""
        return self.window.energy_j / self.window.duration_s

    @property
    def energy_per_output_token_j(self) -> float:
        """All energy of the window, that of prompts and of waiting included."""
        return self.window.energy_j / self.window.output_tokens
