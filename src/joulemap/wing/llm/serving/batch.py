"""Batches of equal sequences, each served as a whole: prefill first, then one token per sequence and step.

    first token = prefill, in chunks of at most `step_tokens` tokens
    answers     = sum of decode steps, after each of which the cache is longer by the accepted tokens (one, or more)
    request     = (first token + answers) x waves,   waves = sequences / room, at least 1

The sum over a growing cache uses Simpson's rule on the first, middle and last step. It is exact if the step time is at
most cubic in the context. If the cache holds fewer sequences than there are, waiting sequences replace those that end:
the number of waves need not be whole, unless the engine waits for a full batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.physics import Floats
from joulemap.system import frozen
from joulemap.wing.llm.serving.surface import Cost, Passes, Surface

NODES: Final = 3
"""Number of context lengths at which the decode steps of an answer are evaluated."""


@frozen(kw_only=True)
class Batch:
    """Equal sequences that start together, as one batch."""

    sequences: float
    prompt_tokens: float
    output_tokens: float = 1.0
    room: float = math.inf
    """Maximum sequences that fit in device memory at once."""
    waits: bool = False
    """True if a wave starts only after all of the previous wave has ended."""
    step_tokens: float = math.inf
    """Maximum tokens of a prefill pass."""
    recomputes: bool = False
    """True if there is no KV cache, so that each step recomputes all tokens."""
    accepted_tokens: float = 1.0
    """Mean tokens gained per sequence and step; above 1 with speculative decoding."""

    @property
    def waves(self) -> float:
        """Number of waves that run one after another."""
        waves = max(1.0, self.sequences / self.room)
        return float(math.ceil(waves - 1e-9)) if self.waits else waves

    @property
    def together(self) -> float:
        """Mean number of sequences in a wave."""
        return self.sequences / self.waves

    @property
    def steps(self) -> float:
        """Decode steps of an answer after its first token."""
        return max(0.0, self.output_tokens - 1.0) / self.accepted_tokens


@frozen(kw_only=True)
class BatchCost:
    """Latency and energy of a batch; energy covers all devices and the whole batch."""

    first_token_s: float
    """Time from the start to the first token of all sequences that start together."""
    first_step_s: float
    last_step_s: float
    between_s: float
    """Mean time per output token of a sequence."""
    between_j: float
    """Mean energy of the whole batch from one token of each sequence to the next. Requests of one token have no decode
    step; the first step of a longer answer stands for it, as in `between_s`.
    """
    request_s: float
    """Time from the start to the last token of the last sequence."""
    prompt_j: float
    output_j: float

    @property
    def joules(self) -> float:
        """Total energy of prefill and decode."""
        return self.prompt_j + self.output_j


def run_batches(surface: Surface, batches: Sequence[Batch]) -> tuple[BatchCost, ...]:
    """Return the cost of each batch run alone; all passes are evaluated at once."""
    if not batches:
        return ()
    asked = [_passes(one) for one in batches]
    cost = surface.price(Passes.joined(tuple(passes for passes, _ in asked)))
    ends = np.cumsum([len(weights) for _, weights in asked])[:-1]
    seconds, joules = np.split(cost.seconds, ends), np.split(cost.joules, ends)
    return tuple(
        _sum(batch, Cost(seconds=second, joules=joule), weights)
        for batch, second, joule, (_, weights) in zip(batches, seconds, joules, asked, strict=True)
    )


def _passes(batch: Batch) -> tuple[Passes, Floats]:
    """Return the passes of a wave, prefill first, and the number of times each runs."""
    prompts, times = prefill(batch.together, batch.prompt_tokens, 0.0, batch.step_tokens)
    contexts, shares = grow(batch.prompt_tokens, batch.steps, batch.accepted_tokens)
    if batch.recomputes:
        answers = Passes.of(batch.together, tokens=contexts + 1.0)
    else:
        answers = Passes.of(batch.together, context=contexts)
    return Passes.joined((prompts, answers)), np.concatenate([times, shares * batch.steps])


def _sum(batch: Batch, cost: Cost, weights: Floats) -> BatchCost:
    first = len(weights) - NODES
    seconds, joules = cost.seconds * weights, cost.joules * weights
    prompt_s, output_s = float(seconds[:first].sum()), float(seconds[first:].sum())
    tokens, output_j = batch.steps * batch.accepted_tokens, float(joules[first:].sum()) * batch.waves
    return BatchCost(
        first_token_s=prompt_s,
        first_step_s=float(cost.seconds[first]),
        last_step_s=float(cost.seconds[-1]),
        between_s=output_s / tokens if tokens else float(cost.seconds[first]),
        between_j=output_j / tokens if tokens else float(cost.joules[first]) * batch.waves,
        request_s=(prompt_s + output_s) * batch.waves,
        prompt_j=float(joules[:first].sum()) * batch.waves,
        output_j=output_j,
    )


def prefill(sequences: float, prompt_tokens: float, prefix_tokens: float, step_tokens: float) -> tuple[Passes, Floats]:
    """Return the prefill passes of sequences, and the number of times each runs.

    `prefix_tokens` of each prompt are cached already. A pass computes as many complete prompts as fit. A longer prompt
    runs in consecutive chunks.
    """
    fresh = max(0.0, prompt_tokens - prefix_tokens)
    if fresh <= step_tokens:
        most = max(1.0, float(np.floor(step_tokens / max(fresh, 1.0)))) if math.isfinite(step_tokens) else sequences
        most = min(most, max(sequences, 1.0))
        count = sequences / most if fresh else 0.0
        return Passes.of([most], tokens=fresh, context=prefix_tokens, following=max(count, 1.0)), np.array([count])
    starts = prefix_tokens + np.arange(0.0, fresh, step_tokens)
    pieces = np.minimum(step_tokens, prompt_tokens - starts)
    following = sequences * len(starts)
    return Passes.of(1.0, tokens=pieces, context=starts, following=following), np.full(len(starts), sequences)


def grow(context: float, steps: float, accepted_tokens: float = 1.0) -> tuple[Floats, Floats]:
    """Return the first, middle and last context of a growing answer, and the share of steps that each represents.

    The mean square of n places from -1 to 1 is (n + 1) / (n - 1) / 3. It sets the weight of both ends.
    """
    more = max(0.0, steps - 1.0)
    ends = min(1.0, (steps + 1.0) / more / 3.0) if more else 1.0
    contexts: Floats = context + more * accepted_tokens * np.array([0.0, 0.5, 1.0])
    shares: Floats = np.array([ends / 2.0, 1.0 - ends, ends / 2.0])
    return contexts, shares
