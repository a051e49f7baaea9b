"""Pass costs interpolated on a grid that covers every pass of a simulation, evaluated once."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

BLOCK: Final = 64
"""Number of sequence counts that the surface evaluates together."""
FINE: Final = 1.3
"""Ratio between neighboring contexts of decode passes."""
COARSE: Final = 4.0
"""Ratio between neighboring contexts of mixed passes, whose time is nearly linear in the context."""
BETWEEN: Final = 1.5
"""Ratio between neighboring sequence counts, and between neighboring prompt tokens, of mixed passes."""
SHORTEST: Final = 64
"""Smallest nonzero context knot in tokens."""


class Pass(Protocol):
    """Cost model of passes on all devices; arguments are arrays that are broadcast."""

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests."""

    def step(
        self, sequences: ArrayLike, context_tokens: ArrayLike, prompt_tokens: ArrayLike, prompt_context: ArrayLike
    ) -> tuple[Array, Array]:
        """Return the seconds and joules of passes on all devices.

        Each of `sequences` decodes one token with a mean of `context_tokens` cached. `prompt_tokens` of prompts run
        after `prompt_context` cached tokens, as one prompt with the same attention work.
        """


class StepGrid:
    """Surface at knots, linear in between; for decode passes, every sequence count is a knot."""

    def __init__(self, surface: Pass, sequences: int, step_tokens: int, longest: int, *, mixes: bool) -> None:
        """Evaluate mixed passes up to `sequences` sequences, `step_tokens` prompt tokens and `longest` context."""
        self.surface, self.most = surface, sequences
        self.contexts: list[float] = _knots(SHORTEST, longest, FINE)
        self.rows: dict[int, tuple[list[float], list[float]]] = {}
        counts = [float(one) for one in _knots(1, sequences, BETWEEN)] if mixes else [0.0]
        self.mixed_contexts = _knots(SHORTEST, longest, COARSE) if mixes else [0.0, 1.0]
        self.prompt_contexts = _knots(1024, longest, COARSE)
        prompts = sorted({1.0, *_knots(8, step_tokens, BETWEEN)[1:], step_tokens + 1.0})
        self.counts = _places(counts, sequences if mixes else 0)
        self.prompts = _places(prompts, step_tokens)
        axes = np.meshgrid(counts, self.mixed_contexts, prompts, self.prompt_contexts, indexing="ij", sparse=True)
        shape = (len(counts), len(self.mixed_contexts), len(prompts), len(self.prompt_contexts))
        seconds, joules = (np.broadcast_to(one, shape) for one in surface.step(*axes))
        self.seconds: list[float] = seconds.ravel().tolist()
        self.joules: list[float] = joules.ravel().tolist()
        self.strides = (shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3])

    def find_step(self, sequences: int, context: float) -> tuple[float, float, float, float, float]:
        """Return (seconds, joules, slope of the seconds, slope of the joules, end) of a decode pass.

        The slopes are per token of context. Both hold up to the context `end`.
        """
        if sequences not in self.rows:
            self._ask(sequences)
        seconds, joules = self.rows[sequences]
        contexts = self.contexts
        index = min(bisect_right(contexts, context), len(contexts) - 1) - 1
        low, high = contexts[index], contexts[index + 1]
        longer = (seconds[index + 1] - seconds[index]) / (high - low)
        dearer = (joules[index + 1] - joules[index]) / (high - low)
        beyond = context - low
        return seconds[index] + longer * beyond, joules[index] + dearer * beyond, longer, dearer, high

    def _ask(self, sequences: int) -> None:
        first = (sequences - 1) // BLOCK * BLOCK + 1
        counts = np.arange(first, min(first + BLOCK, self.most + 1), dtype=float)
        shape = (len(counts), len(self.contexts))
        costs = self.surface.step(counts[:, None], np.array(self.contexts)[None, :], 0.0, 0.0)
        seconds, joules = (np.broadcast_to(one, shape).tolist() for one in costs)
        self.rows.update((first + index, (seconds[index], joules[index])) for index in range(len(counts)))

    def find_mixed(self, sequences: int, context: float, prompt: int, prompt_context: float) -> tuple[float, float]:
        """Return seconds and joules of a pass with `prompt` prompt tokens.

        Several short prompts attend to less than one prompt of all their tokens. Their context is then negative, and
        the first two knots are extrapolated.
        """
        by_count, by_context, by_prompt = self.strides
        index, beyond = _place(self.mixed_contexts, context)
        last, behind = _place(self.prompt_contexts, prompt_context)
        count, above = self.counts[sequences]
        piece, more = self.prompts[prompt]
        corner = count * by_count + index * by_context + piece * by_prompt + last
        found_s = found_j = 0.0
        for share, first in ((1.0 - above, corner), (above, corner + by_count)):
            if not share:
                continue
            for part, second in ((1.0 - beyond, first), (beyond, first + by_context)):
                if not part:
                    continue
                for weight, at in ((1.0 - more, second), (more, second + by_prompt)):
                    if weight:
                        weight *= share * part
                        near, far = weight * (1.0 - behind), weight * behind
                        found_s += near * self.seconds[at] + far * self.seconds[at + 1]
                        found_j += near * self.joules[at] + far * self.joules[at + 1]
        return found_s, found_j


def _knots(least: int, most: int, ratio: float) -> list[float]:
    """Return knots: 0, then rounded values from `least` at this ratio, ending at `most`."""
    knots = [0.0]
    while knots[-1] < most:
        following = max(knots[-1] + 1, round(knots[-1] * ratio)) if knots[-1] else least
        knots.append(float(min(following, most)))
    return knots


def _places(knots: list[float], most: int) -> list[tuple[int, float]]:
    """Return, for each integer up to `most`, the index of the knot below it and its fraction of the way to the next
    knot.
    """
    numbers = np.arange(most + 1, dtype=float)
    if len(knots) == 1:
        return [(0, 0.0)] * len(numbers)
    indices = np.clip(np.searchsorted(knots, numbers, side="right") - 1, 0, len(knots) - 2)
    low, high = np.array(knots)[indices], np.array(knots)[indices + 1]
    return list(zip(indices.tolist(), ((numbers - low) / (high - low)).tolist(), strict=True))


def _place(knots: list[float], number: float) -> tuple[int, float]:
    index = max(0, min(bisect_right(knots, number), len(knots) - 1) - 1)
    return index, (number - knots[index]) / (knots[index + 1] - knots[index])
