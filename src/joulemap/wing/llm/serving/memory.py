"""Device memory of a served model, and the number of sequences that fit.

sequences = (usable memory - process overhead - weights - workspace) x cache share / KV cache of a sequence
usable    = smaller of (engine's share of the memory) and (what the operating system leaves of a machine's memory)

The KV cache is that of a sequence at its full length, or at its mean length. An engine may keep states of recurrent
layers in a pool of their own, which then limits the sequences too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog import find_system, find_usable
from joulemap.catalog.memory import describe_setting
from joulemap.physics import GGUF_METHOD, PRECISION_BYTES, carried_precision, read_weight_format
from joulemap.physics.record.weight import find_weight_format
from joulemap.system import frozen
from joulemap.wing.decoder import MEMORIES, DecoderPass, find_overhead

if TYPE_CHECKING:
    from joulemap.wing.decoder import Stack
    from joulemap.wing.llm.serving.deployment import Deployment

ECC: Final = "ECC"
"""Word in memory types with error correction, which takes a sixteenth of GDDR."""

TABLE: Final = "embed_tokens.weight"
"""Name of the table of tokens, if it is not the output head."""


LONGEST: Final = 10**9
"""Tokens from which the length of a sequence counts as unlimited."""

GROWN: Final = 0.75
"""Mean share of an answer that is in the KV cache of admitted sequences, if the engine reserves no space for outputs.

Source: offline batches larger than memory, vLLM and TensorRT-LLM on A100 and H100 (LLM-Inference-Bench, argonne 2024).
"""


def find_memory_share(stack: Stack, memory_type: str) -> float:
    """Return the share of a device's nominal memory that an engine uses; error correction may take part of it."""
    own = next((one for one in MEMORIES if memory_type.startswith(one)), "")
    kinds = [f"{own}_{ECC}"] if ECC in memory_type.split() else []
    return stack.value("memory_share", *kinds, own)


@frozen(kw_only=True, eq=False)
class Room:
    """Memory budget of one device, in bytes."""

    deployment: Deployment
    prompts: float = math.inf
    """Prompt tokens of a whole batch; they limit the workspace of engines that wait for a full batch."""
    draft: Deployment | None = None
    """Draft model for speculative decoding on the same device."""

    @property
    def kept(self) -> float:
        """Bytes of the fixed overhead and the margin of the engine's process."""
        one = self.deployment
        is_gpu = one.hardware.architecture == "gpu"
        overhead = find_overhead(one.hardware, exchanges=one.devices * one.data_devices > 1)
        return overhead + one.stack.value("memory_margin") * is_gpu

    @cached_property
    def limit(self) -> float:
        """Usable memory of the device in bytes.

        In a memory that is the machine's, the system's reserve is not usable, nor memory beyond its GPU's share, unless
        the model does not fit otherwise and a setting lends more.
        """
        one = self.deployment
        usable = one.hardware.memory_capacity.value * find_memory_share(one.stack, one.hardware.memory_type)
        if not find_system(one.hardware):
            return usable
        lent = find_usable(one.hardware)
        is_short = self.weights + self.workspace + self.cache(1) + self.kept > lent
        return min(usable, find_usable(one.hardware, is_set=is_short))

    @property
    def setting(self) -> str:
        """Setting of the system that the limit needs; empty for its default."""
        hardware = self.deployment.hardware
        return describe_setting(hardware) if find_system(hardware) and self.limit > find_usable(hardware) else ""

    @property
    def capacity(self) -> float:
        """Usable memory of the device in bytes, less what the engine's process keeps."""
        return self.limit - self.kept

    @cached_property
    def weights(self) -> float:
        """Stored weights on this device in bytes, including those of the draft model."""
        decoder = self.deployment.decoder
        weights, _ = self._measure(DecoderPass(cached=decoder.longest_pass if decoder.is_traced else 0))
        return weights - self._narrowed + self._draft_weights

    @cached_property
    def model_bytes(self) -> float:
        """Stored weights of the model on a single device in bytes."""
        one = self.deployment
        if one.world == 1:
            return self.weights
        alone = attrs.evolve(one, devices=1, expert_devices=1, data_devices=1, stages=1, totals=None)
        return Room(deployment=alone, draft=self.draft).weights

    @property
    def _narrowed(self) -> float:
        """Bytes of the token table that a pass counts and an engine of GGUF files does not store on this device.

        llama.cpp leaves the table in host memory, in the format of the file. A table that is also the output head is
        stored on the device.
        """
        one, decoder = self.deployment, self.deployment.decoder
        if one.stack.methods != (GGUF_METHOD,) or decoder.is_tied or one.stages > 1:
            return 0.0
        counted = wide = PRECISION_BYTES[carried_precision(one.precision)]
        if (published := decoder.published) is not None and published.weights == one.weight_precision:
            own = dict(published.stored).get(TABLE, "")
            counted = read_weight_format(own).width_bytes if own else wide
        kept = 0.0
        if one.hardware.architecture != "gpu":
            stored = find_weight_format(one.precision, one.weight_precision)
            kept = counted if stored is None else min((stored.others or stored).width_bytes, counted)
        rows = DecoderPass(devices=one.devices).part(decoder.vocabulary)
        return rows * (decoder.embedding_width or decoder.hidden) * (counted - kept)

    @cached_property
    def _draft(self) -> Room | None:
        return None if self.draft is None else Room(deployment=self.draft)

    @property
    def _draft_weights(self) -> float:
        """Stored weights of the draft model in bytes; one more layer of the model shares its token table and head."""
        if self.draft is None or self._draft is None:
            return 0.0
        layer = self.draft.decoder.layers[-1]
        if layer is not self.deployment.decoder.layers[-1]:
            return self._draft.weights
        two = attrs.evolve(self.draft.decoder, layers=(layer, layer))
        return (
            Room(deployment=attrs.evolve(self.draft, workloads=type(self.draft.workloads)(two))).weights
            - self._draft.weights
        )

    @cached_property
    def workspace(self) -> float:
        """Activations of the largest prefill pass in bytes, less the bytes that it writes to the KV cache."""
        tokens = self.deployment.step_tokens // self.deployment.stack.groups
        decoder = self.deployment.decoder
        asked = max(1.0, self.prompts) if self.deployment.stack.waits else math.inf
        size = math.ceil(min(tokens, decoder.longest_pass or tokens, asked))
        sequences = max(1, tokens // size) if decoder.is_traced else 1
        _, activations = self._measure(DecoderPass(tokens=size), sequences)
        written = (self.cache(2) - self.cache(1)) * size * sequences * self.deployment.stages
        logits = self.deployment.stack.value("logit_bytes") * decoder.vocabulary * size
        return max(0.0, activations - written) + logits

    def cache(self, tokens: float) -> float:
        """Return the KV cache bytes of a sequence of `tokens` tokens on this device."""
        one = self.deployment
        stage = DecoderPass(pipeline_devices=one.stages).cut(one.decoder)
        held = stage.cache_bytes(round(tokens), self.item_bytes, one.devices) / one.data_devices
        return held + (self._draft.cache(tokens) if self._draft else 0.0)

    @property
    def item_bytes(self) -> float:
        """Bytes per element of the KV cache."""
        return PRECISION_BYTES[self.deployment.cache or carried_precision(self.deployment.precision)]

    @property
    def free(self) -> float:
        """Memory left for the KV cache in bytes; negative if weights and workspace do not fit."""
        left = self.capacity - self.weights - self.workspace
        return left * self.deployment.stack.cache_share if left > 0.0 else left

    @property
    def usable(self) -> float:
        """Bytes that weights, workspace and KV cache may take together; an engine may leave part of the capacity."""
        return self.weights + self.workspace + self.free

    def sequences(self, prompt_tokens: float, output_tokens: float) -> float:
        """Return the mean number of sequences that fit at once; below 1 if not even one fits."""
        each = self.cache(prompt_tokens + (1.0 if self.deployment.stack.reserves_output else GROWN) * output_tokens)
        return max(0.0, min(self.free / each if each else math.inf, self.states))

    @cached_property
    def states(self) -> float:
        """Mean number of sequences whose states fit into the engine's own pool for states; infinite without one.

        SGLang keeps several states per sequence, for later sequences with its prefix, of gated-delta layers only.
        """
        share = self.deployment.stack.value("state_share")
        has_pool = share > 0.0 and self.deployment.decoder.delta_count > 0
        return max(0.0, self.free) * share / self.cache(0.0) if has_pool else math.inf

    def tokens(self, sequences: int) -> int | None:
        """Return the maximum length at which `sequences` sequences fit together; 0 if they do not fit at any length.

        None without a limit: states of a recurrence do not grow, and not every file states a longest context.
        """
        limit = self.deployment.decoder.context_length
        most = _most(lambda tokens: sequences * self.cache(tokens) <= self.free, limit or LONGEST)
        return most if limit or most < LONGEST else None

    def count_tokens(self, length: float) -> float:
        """Return the total tokens of all sequences that fit at once, each `length` long.

        Long sequences need less memory per token if layers have windows or states.
        """
        each = self.cache(length)
        return max(0.0, self.free) / each * length if each else math.inf

    def _measure(self, step: DecoderPass, sequences: int = 1) -> tuple[float, float]:
        """Return the weight and activation bytes of a pass of `sequences` sequences on the last pipeline stage."""
        one = self.deployment
        (sizes,) = one.workloads.describe([(attrs.evolve(step, **one.division), sequences)]).sizes(
            one.precision, one.stack.runtime, weight_precision=one.weight_precision
        )
        return sizes


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number up to `limit` that fits; 0 if not even 1 fits."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
