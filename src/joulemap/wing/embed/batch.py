"""Pass of a batch whose requests a simulator lists one by one.

    decoding: a new token each, or a few that are verified ─┐
    prompts: several new tokens each ───────────────────────┴─► sequences with equal new tokens + a chunk of one prompt

A step with a prompt runs without CUDA graphs, however few its new tokens are, so that its launches take time. Verified
tokens of speculative decoding run in graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from joulemap.prediction import check_count
from joulemap.wing.decoder import VERIFIED
from joulemap.wing.llm.serve import Passes, StepPredictor

Request = tuple[int, int]
"""New tokens of a request, and its tokens in the KV cache before them."""

Sizes = tuple[float, float, float, float, float]
"""Sequences, tokens, context, chunk and its context, as `Passes.of` takes them."""

SUFFIX: Final = 256
"""Mean new tokens below which several prompts are no chunk of one prompt, which would read one KV cache instead of all.

32 prompts of Llama 3.2 1B after 8,000 tokens take 4 % longer than the chunk on an L4 at 256 new tokens, 16 % at 64, and
2.4 times as long at 2.
"""


def read_sizes(name: str, sizes: Iterable[int], least: int = 0) -> Sequence[int]:
    """Return numbers of tokens of requests; UsageError unless they are whole numbers from `least`."""
    read = list(sizes)
    if {*map(type, read)} <= {int} and min(read, default=least) >= least:
        return read  # in a tenth of the time
    return [check_count(name, one, least=least) for one in read]


def count_tokens(prompts: Iterable[Request]) -> tuple[int, float]:
    """Return the new tokens of prompts, and the pairs of a new token and one that it attends to."""
    new_tokens, pairs = 0, 0.0
    for new, past in prompts:
        new_tokens += new
        pairs += new * (past + new / 2.0)  # attention of a token covers the tokens before it
    return new_tokens, pairs


def are_suffixes(prompts: Sequence[Request]) -> bool:
    """Return True for several prompts that are short and have tokens in the KV cache."""
    if len(prompts) < 2 or not any(past for _, past in prompts):
        return False
    return sum(new for new, _ in prompts) < SUFFIX * len(prompts)


def find_sizes(decoding: Sequence[Request], prompts: Sequence[Request]) -> Sizes:
    """Return the sizes of the pass of a batch, which has the new tokens of the batch.

    Prompts alone are equal ones. Beside decoding requests they are one chunk that attends to as many pairs of tokens;
    short ones after cached tokens are sequences instead, but for the longest.
    """
    if not prompts:
        return len(decoding), *_average(decoding), 0.0, 0.0
    new_tokens, pairs = count_tokens(prompts)
    each = new_tokens / len(prompts)
    if len(prompts) > 1 and not decoding and each > VERIFIED:
        past = _average(prompts)[1] if are_suffixes(prompts) else max(0.0, pairs / new_tokens - each / 2.0)
        return len(prompts), each, past, 0.0, 0.0
    if are_suffixes(prompts):
        *others, longest = sorted(prompts)
        sequences = [*decoding, *others]
        return len(sequences), *_average(sequences), *longest
    chunk = new_tokens if decoding else max(new_tokens, VERIFIED + 1)
    return len(decoding), *_average(decoding), chunk, max(0.0, pairs / new_tokens - new_tokens / 2.0)


def make_pass(sizes: Sizes) -> Passes:
    """Return the pass of these sizes."""
    sequences, tokens, context, chunk, chunk_context = sizes
    return Passes.of(sequences, tokens=tokens, context=context, chunk=chunk, chunk_context=chunk_context)


def find_shortage(steps: StepPredictor, requests: int, tokens: float) -> str:
    """Return the reason why memory does not hold KV caches of so many tokens per request; empty if it does.

    A chunk stands for several prompts in time and energy, but has the cache of one.
    """
    return str(steps.price(Passes.of(requests, context=max(0.0, tokens - 1.0))).refusal)


def _average(requests: Sequence[Request]) -> tuple[float, float]:
    """Return the mean new tokens and the mean tokens in the KV cache; those of a decode step for no request."""
    if not requests:
        return 1.0, 0.0
    new, past = map(sum, zip(*requests, strict=True))
    return new / len(requests), past / len(requests)
