"""Cost of passes in closed form, for values computed by hand."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.wing.llm.serving.surface import Cost, Passes

Array = NDArray[np.float64]


@attrs.frozen(kw_only=True)
class StraightPass:
    """Linear time of a pass: per pass, sequence, cached token, prompt token, and prompt token times attended token."""

    pass_s: float = 0.010
    sequence_s: float = 0.0
    cached_s: float = 0.0
    prompt_s: float = 0.0001
    attend_s: float = 0.0
    watts: float = 500.0
    waiting_w: float = 100.0
    resting_w: float = 100.0

    def step(
        self, sequences: ArrayLike, context_tokens: ArrayLike, prompt_tokens: ArrayLike, prompt_context: ArrayLike
    ) -> tuple[Array, Array]:
        """Return (seconds, joules at `watts`)."""
        count, context, prompt, before = (
            np.asarray(one, dtype=float) for one in (sequences, context_tokens, prompt_tokens, prompt_context)
        )
        seconds = (
            self.pass_s
            + self.sequence_s * count
            + self.cached_s * count * context
            + self.prompt_s * prompt
            + self.attend_s * prompt * (before + 0.5 * prompt)
        )
        return seconds, seconds * self.watts

    def find_step(self, sequences: float, context: float) -> tuple[float, float, float, float, float]:
        """Return the cost of a decode pass and its slopes, which hold up to any context."""
        seconds, longer = float(self.step(sequences, context, 0.0, 0.0)[0]), self.cached_s * sequences
        return seconds, seconds * self.watts, longer, longer * self.watts, 1e12

    def find_mixed(self, sequences: float, context: float, prompt: float, prompt_context: float) -> tuple[float, float]:
        """Return the cost of a pass with prompt tokens."""
        seconds = float(self.step(sequences, context, prompt, prompt_context)[0])
        return seconds, seconds * self.watts

    def price(self, passes: Passes, /) -> Cost:
        """Return the cost of passes in the form of the closed formulas."""
        alone = passes.tokens > 1.0
        seconds, joules = self.step(
            np.where(alone, 0.0, passes.sequences),
            passes.context,
            passes.chunk + np.where(alone, passes.sequences * passes.tokens, 0.0),
            passes.chunk_context,
        )
        return Cost(seconds=seconds, joules=joules)
