"""Forward-time predictor of SGLang's simulator (`tools/sglang-simulator` of sgl-project/sglang).

Interface as merged with pull request 33824 (time_predictor/base.py at 2f070b1b): `predict_infer_time(batch)` returns
seconds, a negative number if the batch is impossible; `get_metrics` and `reset_metrics` frame a profile. Requests have
`extend_length` new tokens after `past_kv_length` cached ones. Its scheduler (scheduler.py at 0b610834) states one new
token in all decode steps, also in those that verify guesses; more than one are of an extend step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from joulemap.prediction import check_count
from joulemap.wing.decoder import VERIFIED
from joulemap.wing.embed.batch import (
    Request,
    are_suffixes,
    count_tokens,
    find_shortage,
    find_sizes,
    make_pass,
    read_sizes,
)
from joulemap.wing.llm.serve import StepPredictor

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
    Others are priced exactly: beyond these sizes, and prompts that are too short for a table.
    """

    def __init__(
        self,
        steps: StepPredictor,
        *,
        sequences: int = 256,
        context_tokens: int = 32768,
        prompt_tokens: int = 8192,
        verified_tokens: int = 1,
    ) -> None:
        """Make the table; up to `verified_tokens` new tokens of a request are a decode step, and more are a prompt.

        Raises UsageError for a size that is no whole number, UnsupportedError if memory does not hold the weights.
        """
        self._table = steps.table(sequences=sequences, context_tokens=context_tokens, prompt_tokens=prompt_tokens)
        self._predictor, self._verified = steps, check_count("verified_tokens", verified_tokens, most=VERIFIED)
        self._sequences, self._context, self._prompt = sequences, context_tokens, prompt_tokens
        self.reset_metrics()

    def predict_infer_time(self, batch: ScheduleBatch) -> float:
        """Return the seconds of a batch on all devices; negative if memory does not hold it.

        Raises UsageError for lengths that are no whole numbers from 0.
        """
        extended = read_sizes("extend_length", [one.extend_length for one in batch.reqs])
        cached = read_sizes("past_kv_length", [one.past_kv_length for one in batch.reqs])
        if not extended:
            return 0.0
        requests = [(new or 1, past) for new, past in zip(extended, cached, strict=True)]
        decoding, prompts = requests, []
        if max(extended) > self._verified:
            decoding = [one for one in requests if one[0] <= self._verified]
            prompts = [one for one in requests if one[0] > self._verified]
        seconds, joules = self._read(decoding, prompts)
        if math.isnan(seconds):
            seconds, joules = self._price(decoding, prompts)
        if math.isnan(seconds):
            return IMPOSSIBLE_S
        self._steps += 1
        self._joules += joules
        self._tokens += sum(new for new, _ in requests)
        return seconds

    def _read(self, decoding: Sequence[Request], prompts: Sequence[Request]) -> tuple[float, float]:
        """Return seconds and joules of a batch by table; NaN where it has none, or where memory does not suffice."""
        new_tokens, pairs = count_tokens(prompts)
        count, requests = len(decoding), len(decoding) + len(prompts)
        verified, cached = map(sum, zip(*decoding, strict=True)) if decoding else (0, 0)
        context = cached / max(count, 1)
        held = (cached + verified + new_tokens + sum(past for _, past in prompts)) / requests
        # one prompt of all new tokens attends to as many pairs as the prompts together
        before = pairs / new_tokens - new_tokens / 2.0 if new_tokens else 0.0
        is_known = requests <= self._sequences and new_tokens <= self._prompt and verified == count
        # between the first knots of a table, a pass without sequences leaves the graphs of decode steps
        is_coarse = are_suffixes(prompts) or (not decoding and new_tokens < 2 * VERIFIED)
        if not is_known or is_coarse or max(context, held, before + new_tokens) > self._context:
            return math.nan, math.nan
        if len(prompts) < 2:
            seconds, joules = self._table.step(count, context, new_tokens, before)
            return float(seconds), float(joules)
        # the second step has the KV caches of all prompts, of which the first has one
        times, energies = self._table.step([count, requests], [context, held], [new_tokens, 0.0], [before, 0.0])
        return (float(times[0]), float(energies[0])) if times[1] >= 0.0 else (math.nan, math.nan)

    def _price(self, decoding: Sequence[Request], prompts: Sequence[Request]) -> tuple[float, float]:
        """Return exact seconds and joules of a batch; NaN where memory does not suffice."""
        requests = [*decoding, *prompts]
        held = sum(new + past for new, past in requests) / len(requests)
        if decoding and len(prompts) > 1 and find_shortage(self._predictor, len(requests), held):
            return math.nan, math.nan
        found = self._predictor.price(make_pass(find_sizes(decoding, prompts)))
        return float(found.latency_s), float(found.energy_j)

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
