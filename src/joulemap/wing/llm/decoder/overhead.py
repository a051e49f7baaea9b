"""Overhead of a served pass as operators: what an engine and its host add to kernels, by what it grows with.

Times and energies of one count belong to the engine (`serving.chip`); counts belong to one device's pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from joulemap.physics import OVERHEAD, Operator
from joulemap.physics.record.reference import (
    OVERHEAD_DEVICE as DEVICE,
    OVERHEAD_HOST as HOST,
    OVERHEAD_SERIAL as SERIAL,
)
from joulemap.wing.llm.decoder.config import Decoder
from joulemap.wing.llm.decoder.decoder_pass import DecoderPass
from joulemap.wing.llm.setting import MOST_GUESSED

VERIFIED = 1 + MOST_GUESSED
"""Maximum tokens per sequence and pass that count as speculative decoding; more are a prompt."""

PATH = "engine"
"""Module path of operators that the engine adds to the model's."""


def is_prompt(step: DecoderPass) -> bool:
    """Return whether a pass computes a prompt, alone or beside tokens that follow others."""
    return step.tokens > VERIFIED or step.chunk > 0


def list_overhead(decoder: Decoder, step: DecoderPass, batch: int) -> list[Operator]:
    """Return the operators that an engine adds to a pass of `batch` sequences; empty for a pass without an engine.

    `decoder` has the layers of the pass. Of scores, those are counted that attention computes on one device.
    """
    if not step.engine:
        return []
    sampled = 0 if step.logits == "none" else batch + (step.chunk > 0)
    prompt, answer = _count_scores(decoder, step, batch)
    counts = {
        (DEVICE, "layer"): decoder.layer_count,
        (DEVICE, "recurrent"): decoder.recurrent_count,
        (DEVICE, "expert_wait"): decoder.routed_count if step.expert_devices > 1 else 0,
        (DEVICE, "score_prompt"): prompt,
        (DEVICE, "score_answer"): answer,
        (HOST, "launch_layer"): decoder.layer_count,
        (HOST, "launch_expert"): decoder.expert_count,
        (SERIAL, "sequence"): sampled,
        (SERIAL, "state"): sampled * decoder.recurrent_count,
        (SERIAL, "logit"): round(sampled * decoder.vocabulary / step.world),
    }
    return list(_form(counts))


def _form(counts: dict[tuple[str, str], int]) -> Iterator[Operator]:
    for (operation, name), count in counts.items():
        if count:
            yield Operator(
                name=f"{PATH}.{name}",
                module_path=PATH,
                operation=operation,
                kind=OVERHEAD,
                aten="",
                output_shape=(),
                dtype="",
                gemm_m=count,
                variant=name,
            )


def _count_scores(decoder: Decoder, step: DecoderPass, batch: int) -> tuple[int, int]:
    """Return the scores of queries with keys in prompts, and in the answers' single tokens, on one device."""
    alone = chunk = 0
    each = -(-batch // step.data_devices)
    for heads, window in decoder.score_heads:
        after, before = step.cached + step.tokens, step.chunk_cached + step.chunk
        alone += heads * each * step.tokens * (min(after, window) if window else after)
        chunk += heads * step.chunk * (min(before, window) if window else before)
    alone, chunk = alone // step.devices, chunk // step.devices
    return (alone + chunk, 0) if step.tokens > 1 else (chunk, alone)
