"""What a device holds while a model is served, and how many sequences that leaves room for.

room = (share of the memory - what a process keeps - weights - workspace) / cache of a sequence

That is of a sequence at its longest, or at what is mostly held.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain.configuration import PRECISION_BYTES, carried_precision
from joulemap.system.record import frozen
from joulemap.wing.llm.decoder.step import Step

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

MIDDLE: Final = 0.5
"""Of an answer that is in the cache in the mean of a steady load, whose answers are at all of their places."""

CONTEXT: Final = 5e8
"""Bytes that a process holds of a GPU: code of kernels, stacks, what the driver needs.

Source: recalled; nvidia-smi shows 0.4 to 0.6 GB of a process of PyTorch that holds nothing."""

EXCHANGE: Final = 5e8
"""Bytes more where devices exchange: channels of NCCL, buffers of direct sums.

Source: Llama 2 70B on four A100 of 40 GB, whose cache has hardly room (LLM-Inference-Bench, TensorRT-LLM)."""

GROWN: Final = 0.75
"""Of an answer that is in the cache in the mean of what is held, where none is set aside.

Source: offline batches beyond the room, vLLM and TensorRT-LLM on A100 and H100 (LLM-Inference-Bench, argonne 2024)."""


@frozen(kw_only=True, eq=False)
class Room:
    """Bytes on one device."""

    deployment: Deployment
    prompts: float = math.inf
    """Tokens of all prompts of a batch: engines that wait for a whole batch take memory as they need it."""
    draft: Deployment | None = None
    """What guesses tokens ahead on the same device."""

    @property
    def capacity(self) -> float:
        """Of its memory, what may be taken, without what a process of the engine holds whatever it serves."""
        one = self.deployment
        kept = CONTEXT + EXCHANGE * (one.devices * one.data_devices > 1)
        share = one.hardware.memory_capacity.value * one.stack.memory_share
        return share - kept * (one.hardware.architecture == "gpu")

    @cached_property
    def weights(self) -> float:
        """Of the model, as they are stored there."""
        decoder = self.deployment.decoder
        weights, _ = self._held(Step(cached=decoder.longest_pass if decoder.is_traced else 0))
        return weights + (self._draft.weights if self._draft else 0.0)

    @cached_property
    def _draft(self) -> Room | None:
        return None if self.draft is None else Room(deployment=self.draft)

    @cached_property
    def workspace(self) -> float:
        """Of activations of the largest pass over prompts, beside what it writes to the cache."""
        tokens = self.deployment.stack.step_tokens
        decoder = self.deployment.decoder
        asked = max(1.0, self.prompts) if self.deployment.stack.waits else math.inf
        size = math.ceil(min(tokens, decoder.longest_pass or tokens, asked))
        sequences = max(1, tokens // size) if decoder.is_traced else 1
        _, activations = self._held(Step(tokens=size), sequences)
        written = (self.cache(2) - self.cache(1)) * size * sequences * self.deployment.stages
        return max(0.0, activations - written)

    def cache(self, tokens: float) -> float:
        """Return what a sequence of so many tokens holds there."""
        one = self.deployment
        stage = Step(pipeline_devices=one.stages).cut(one.decoder)
        held = stage.cache_bytes(round(tokens), self.item_bytes, one.devices) / one.data_devices
        return held + (self._draft.cache(tokens) if self._draft else 0.0)

    @property
    def item_bytes(self) -> float:
        """Of one element of the cache."""
        return PRECISION_BYTES[self.deployment.cache or carried_precision(self.deployment.precision)]

    @property
    def free(self) -> float:
        """What is left for the cache."""
        return self.capacity - self.weights - self.workspace

    def sequences(self, prompt_tokens: float, output_tokens: float, grown: float = GROWN) -> float:
        """Return how many sequences of such lengths are held at once, in the mean; below 1 where none is.

        Of an answer, so much is in the cache in the mean, unless all is set aside.
        """
        each = self.cache(prompt_tokens + (1.0 if self.deployment.stack.reserves_output else grown) * output_tokens)
        return max(0.0, self.free / each if each else math.inf)

    def tokens(self, sequences: int) -> int:
        """Return the longest that so many sequences can be together; 0 where they cannot be held."""
        return _most(lambda tokens: sequences * self.cache(tokens) <= self.free, self.deployment.decoder.context_length)

    @property
    def cache_tokens(self) -> float:
        """Tokens of all sequences that are held at once."""
        longest = self.deployment.decoder.context_length or 4096
        return max(0.0, self.free) / self.cache(longest) * longest if self.cache(longest) else math.inf

    def _held(self, step: Step, sequences: int = 1) -> tuple[float, float]:
        """Return bytes of weights and of activations of a pass of so many sequences, of the last stage."""
        one = self.deployment
        step = attrs.evolve(
            step,
            devices=one.devices,
            expert_devices=one.expert_devices,
            data_devices=one.data_devices,
            pipeline_devices=one.stages,
            cache=one.cache,
        )
        (found,) = one.book.describe([(step, sequences)]).sizes(
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
