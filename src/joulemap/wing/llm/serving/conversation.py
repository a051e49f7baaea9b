"""Conversations: the blocks that their turns share, and loads of conversations with pauses between turns.

    turn n: prompt = context of turn n - 1, its answer included, + new tokens;   context = prompt + answer

Blocks are numbered by conversation and place, so that a turn's prompt begins with the blocks of all turns before it.
The last token of an answer is not in the KV cache, since no pass has read it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.system import UsageError
from joulemap.wing.llm.serving.load import MOST_REQUESTS, Load, Prefixes, Requests

BLOCK_TOKENS: Final = 16
"""Tokens of a block. Source: default block size of vLLM's KV cache (documentation of engine arguments)."""

MOST_BLOCKS: Final = 256
"""Maximum blocks of a generated conversation. Longer conversations get larger blocks, which lowers hits by at most 0.4
%.
"""

LONGEST: Final = 1 << 40
"""Block numbers that each conversation reserves, so that no two conversations share a number."""

COUNTED: Final = 1000
"""Minimum requests or turns in the statistics, so that ten lie beyond the p99."""

GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0
"""Inverse of the golden ratio, whose multiples modulo 1 are spread evenly for any count."""


def share_blocks(
    conversations: Sequence[int], prompts: Sequence[int], outputs: Sequence[int], block_tokens: int = BLOCK_TOKENS
) -> Prefixes:
    """Return the blocks of requests, given the number of each request's conversation, its prompt tokens and output
    tokens.
    """

    def count(conversation: int, tokens: int) -> range:
        first = conversation * LONGEST
        return range(first, first + tokens // block_tokens)

    columns = list(zip(conversations, prompts, outputs, strict=True))
    return Prefixes(
        block_tokens=block_tokens,
        prompts=[count(conversation, prompt) for conversation, prompt, _ in columns],
        answers=[count(conversation, prompt + output - 1) for conversation, prompt, output in columns],
    )


def form_conversations(load: Load, seed: int, filled_s: float) -> Load:
    """Return a load of conversations at a rate of turns or with a number of concurrent conversations.

    The first wave of concurrent conversations starts at even intervals within `filled_s`, at evenly spread turns, with
    the context already computed. Turns before `filled_s` and turns after the last conversation began are not counted.
    Pauses are exponential: with equal pauses, turns that once shared a pass would share all later ones.
    """
    wave = load.in_flight or 0
    early = 0.0 if load.rate_per_s is None else filled_s * load.rate_per_s
    many = math.ceil((max(load.requests, COUNTED) + early) / load.turns) + 2 * wave
    if many * load.turns > MOST_REQUESTS:
        raise UsageError(f"{many * load.turns:,} turns, expected at most {MOST_REQUESTS:,}")
    shares = GOLDEN * np.arange(1, wave + 1) % 1.0
    begins = np.concatenate([np.floor(shares * load.turns).astype(int), np.zeros(many - wave, dtype=int)])
    draw, heads = np.random.default_rng(seed), np.zeros(many)
    if load.rate_per_s is not None:
        gaps = draw.exponential(1.0, many)
        heads = np.cumsum(gaps) / gaps.mean() / load.rate_per_s * load.turns
    elif wave:
        heads[:wave] = filled_s * np.arange(wave) / wave
    conversations = np.repeat(np.arange(many), (load.turns - begins).astype(np.intp))
    turns = np.concatenate([np.arange(begin, load.turns, dtype=np.int64) for begin in begins])
    is_begun = (conversations < wave) & (np.diff(conversations, prepend=-1) > 0)
    prompts = (turns * (load.prompt_tokens + load.output_tokens) + load.prompt_tokens).tolist()
    outputs = [load.output_tokens] * len(prompts)
    coarser = -(-max(prompts) // (BLOCK_TOKENS * MOST_BLOCKS))
    following = np.where(turns == load.turns - 1, -1, np.arange(1, len(prompts) + 1))
    prefixes = attrs.evolve(
        share_blocks(conversations.tolist(), prompts, outputs, BLOCK_TOKENS * coarser),
        next_turn=following.tolist(),
        pause_s=draw.exponential(load.pause_s, len(prompts)).tolist(),
        filled_s=filled_s,
    )
    trace = Requests(
        prompt_tokens=tuple(prompts),
        output_tokens=tuple(outputs),
        arrival_s=tuple(heads[conversations].tolist()),
        cached_tokens=tuple(np.where(is_begun, np.array(prompts) - 1, 0).tolist()),
        prefixes=prefixes,
    )
    return attrs.evolve(load, trace=trace, rate_per_s=None, turns=1, requests=len(prompts), is_steady=False)
