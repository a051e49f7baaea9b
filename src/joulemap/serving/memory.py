"""What a device holds while a model is served, and how many sequences that leaves room for.

room = (share of the memory - weights - workspace) / cache of a sequence at its longest, or at what is mostly held
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.decoder.step import Step
from joulemap.domain.configuration import PRECISION_BYTES, carried_precision
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.serving.deployment import Deployment

GROWN: Final = 0.75
"""Of an answer that is in the cache in the mean of what is held, where none is set aside.

Source: offline batches beyond the room, vLLM and TensorRT-LLM on A100 and H100 (LLM-Inference-Bench, argonne 2024)."""


@frozen(kw_only=True, eq=False)
class Room:
    """Bytes on one device."""

    deployment: Deployment
    prompts: float = math.inf
    """Tokens of all prompts of a batch: engines that wait for a whole batch take memory as they need it."""

    @property
    def capacity(self) -> float:
        """Of its memory, what may be taken."""
        return self.deployment.hardware.memory_capacity.value * self.deployment.stack.memory_share

    @cached_property
    def weights(self) -> float:
        """Of the model, as they are stored there."""
        weights, _ = self._held(Step(tokens=1))
        return weights / self.deployment.stages

    @cached_property
    def workspace(self) -> float:
        """Of activations of the largest pass over prompts."""
        tokens = self.deployment.stack.step_tokens
        most = self.deployment.decoder.context_length or tokens
        asked = max(1.0, self.prompts) if self.deployment.stack.waits else math.inf
        _, activations = self._held(Step(tokens=math.ceil(min(tokens, most, asked))))
        return activations

    def cache(self, tokens: float) -> float:
        """Return what a sequence of so many tokens holds there."""
        one = self.deployment
        held = one.decoder.cache_bytes(round(tokens), self.item_bytes, one.devices)
        return held / one.stages / one.data_devices

    @property
    def item_bytes(self) -> float:
        """Of one element of the cache."""
        return PRECISION_BYTES[self.deployment.cache or carried_precision(self.deployment.precision)]

    @property
    def free(self) -> float:
        """What is left for the cache."""
        return self.capacity - self.weights - self.workspace

    def sequences(self, prompt_tokens: float, output_tokens: float) -> float:
        """Return how many sequences of such lengths are held at once, in the mean; below 1 where none is."""
        grown = 1.0 if self.deployment.stack.reserves_output else GROWN
        each = self.cache(prompt_tokens + grown * output_tokens)
        return max(0.0, min(self.free / each if each else math.inf, self.deployment.stack.sequence_limit))

    def tokens(self, sequences: int) -> int:
        """Return the longest that so many sequences can be together; 0 where they cannot be held."""
        return _most(lambda tokens: sequences * self.cache(tokens) <= self.free, self.deployment.decoder.context_length)

    @property
    def cache_tokens(self) -> float:
        """Tokens of all sequences that are held at once."""
        longest = self.deployment.decoder.context_length or 4096
        return max(0.0, self.free) / self.cache(longest) * longest if self.cache(longest) else math.inf

    def _held(self, step: Step) -> tuple[float, float]:
        """Return bytes of weights and of activations of a pass of one sequence, all stages together."""
        one = self.deployment
        step = attrs.evolve(
            step,
            devices=one.devices,
            expert_devices=one.expert_devices,
            data_devices=one.data_devices,
            cache=one.cache,
        )
        (found,) = one.book.describe([(step, 1)]).sizes(
            one.precision, one.stack.runtime, weight_precision=one.weight_precision
        )
        return found


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number up to a limit, or to a thousand million, that fits; 0 where not even 1 does."""
    low, high = 0, limit or 10**9
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
