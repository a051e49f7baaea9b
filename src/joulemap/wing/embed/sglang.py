"""Forward-time predictor of SGLang's simulator (`tools/sglang-simulator` of sgl-project/sglang).

Interface as merged with pull request 33824 (time_predictor/base.py at 2f070b1b): `predict_infer_time(batch)` returns
seconds, a negative number if the batch is impossible; `get_metrics` and `reset_metrics` frame a profile. Requests have
`extend_length` new tokens after `past_kv_length` cached ones, and one new token is a decode step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from joulemap.wing.llm.step import StepPredictor

IMPOSSIBLE_S = -1.0
"""Time of a batch that memory does not hold, as the simulator expects it."""


class ScheduleRequest(Protocol):
    """Part of a request of the simulator that determines its cost."""

    @property
    def extend_length(self) -> int:
        """New tokens of this step."""
        ...

    @property
    def past_kv_length(self) -> int:
        """Tokens in the KV cache before this step."""
        ...


class ScheduleBatch(Protocol):
    """Requests that one step of the simulator runs together."""

    @property
    def reqs(self) -> Sequence[ScheduleRequest]:
        """Requests of the step."""
        ...


class SglangPredictor:
    """Predictor of the time of each step, which also sums the energy of the steps.

    Steps are read from a table up to `sequences` requests of `context_tokens` each, with `prompt_tokens` new tokens.
    """

    def __init__(
        self,
        steps: StepPredictor,
        *,
        sequences: int = 256,
        context_tokens: int = 32768,
        prompt_tokens: int = 8192,
    ) -> None:
        self._table = steps.table(sequences=sequences, context_tokens=context_tokens, prompt_tokens=prompt_tokens)
        self.reset_metrics()

    def predict_infer_time(self, batch: ScheduleBatch) -> float:
        """Return the seconds of a batch on all devices; negative if memory does not hold it."""
        if not batch.reqs:
            return 0.0
        contexts = [one.past_kv_length for one in batch.reqs if one.extend_length <= 1]
        prompts = [(one.extend_length, one.past_kv_length) for one in batch.reqs if one.extend_length > 1]
        added = sum(new for new, _ in prompts)
        # one prompt of all new tokens attends to as many pairs as the prompts together
        pairs = sum(new * (past + new / 2) for new, past in prompts)
        seconds, joules = self._table.step(
            len(contexts),
            sum(contexts) / max(len(contexts), 1),
            added,
            pairs / added - added / 2 if added else 0.0,
        )
        if math.isnan(seconds):
            return IMPOSSIBLE_S
        self._steps += 1
        self._joules += float(joules)
        self._tokens += added + len(contexts)
        return float(seconds)

    def get_metrics(self) -> dict[str, float]:
        """Return the energy and the number of steps and tokens since the last reset."""
        return {
            "joulemap_energy_j": self._joules,
            "joulemap_steps": self._steps,
            "joulemap_tokens": self._tokens,
        }

    def reset_metrics(self) -> None:
        """Begin another profile."""
        self._joules, self._steps, self._tokens = 0.0, 0, 0
