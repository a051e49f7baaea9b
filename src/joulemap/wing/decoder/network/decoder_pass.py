"""Pass of a decoder as a workload: prefill of a prompt, a decode token of each sequence, or both.

If several devices share a pass, the workload is the work of one device. Tensor parallel divides heads, inner columns
and the vocabulary, and adds up results over the link. Expert parallel places whole experts on some devices. Data
parallel divides sequences before attention, and sends their tokens to the experts. Pipeline parallel places layers on
stages that work one after another and hand their tokens on. The workload is then the work of the last stage, or without
logits of an earlier stage. Sequence parallel divides norms and sums between the GEMMs of a layer by tokens: sums are
scattered, then gathered before the next GEMMs, which moves as many bytes as an all-reduce.

Source: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022 (sequence parallel).

An engine and its host add overhead to the kernels of a pass: operators, one for what it grows with. Times and energies
of one count belong to the engine (`engine.chip`); counts belong to one device's pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.domain import Argument, Value
from joulemap.physics import OVERHEAD, Operator
from joulemap.physics.record.reference import (
    OVERHEAD_DEVICE as DEVICE,
    OVERHEAD_HOST as HOST,
    OVERHEAD_SERIAL as SERIAL,
)
from joulemap.system import UsageError, frozen
from joulemap.wing.decoder.engine.stack import find_engine
from joulemap.wing.decoder.network.config import Attention, Compressed, Decoder, Experts, Network, Recurrence
from joulemap.wing.decoder.phase import MOST_GUESSED

CACHES: Final = ("bf16", "fp16", "fp8", "int8")
"""Precisions at which the KV cache may be stored, whatever the precision of the run."""


def _none() -> Any:
    """Return the field of a number of tokens that is 0 by default."""
    return attrs.field(default=0, metadata={"least": 0})


@frozen(kw_only=True)
class DecoderPass:
    """One pass of a model: prefill, decode, or both. Its fields are the arguments of its name, in this order."""

    tokens: int = 1
    """New tokens of each sequence."""
    cached: int = _none()
    """Tokens of each sequence already in the KV cache."""
    logits: str = attrs.field(default="last", metadata={"choices": ("last", "all", "none")})
    """Logits to compute: `last` for each sequence's last token, `all`, or `none` for a pipeline stage before the last.
    """
    chunk: int = _none()
    """Tokens of an additional prompt chunk of one sequence in the same pass."""
    chunk_cached: int = _none()
    """Tokens of the chunk's prompt already in the KV cache."""
    devices: int = 1
    """Tensor-parallel devices, which divide heads, inner columns and the vocabulary."""
    expert_devices: int = 1
    """Expert-parallel devices, which divide the experts."""
    data_devices: int = 1
    """Data-parallel groups of `devices` devices each, which divide the sequences."""
    pipeline_devices: int = 1
    """Pipeline-parallel stages, which divide the layers; the pass describes one stage."""
    micro_batches: int = 1
    """Parts of a batch that overlap the exchange of one part with the computation of others; the pass is of one part.
    """
    busiest: int = 100
    """Tokens for experts of the busiest expert-parallel device, in percent of the mean, if tokens are sent to experts.
    """
    sequence_parallel: bool = False
    """True if `devices` also divide the tokens between GEMMs (sequence parallelism)."""
    cache: str = attrs.field(default="", metadata={"choices": CACHES})
    """KV cache precision; empty for the precision of the run."""
    routing: str = ""
    """Choice of experts, as in the single operator `experts`; empty for balanced routing."""
    engine: str = ""
    """Engine and date whose attention kernels are used; empty for built-in kernels."""

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> DecoderPass:
        """Return the pass with the given arguments; raise as `find_engine` does."""
        own = cls(**{name: values[name] for name in values})  # type: ignore[arg-type]
        return attrs.evolve(own, engine=find_engine(own.engine).id) if own.engine else own

    @property
    def kernels(self) -> str:
        """Words that name the engine's kernels in the variants of attention operators; empty for built-in kernels."""
        return find_engine(self.engine).words if self.engine else ""

    def cut(self, decoder: Decoder) -> Decoder:
        """Return the decoder with its last layers only, as many as the largest pipeline stage has."""
        if self.pipeline_devices == 1:
            return decoder
        return attrs.evolve(decoder, layers=decoder.layers[-count_stage(decoder, self.pipeline_devices) :])

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments as a name states them, e.g. `cached=2048`; defaults are omitted."""
        values = [(one.name, getattr(self, one.name), one.default) for one in ARGUMENTS]
        return tuple(
            f"{name}={'true' if value is True else value}" for name, value, default in values if value != default
        )

    @property
    def world(self) -> int:
        """Number of devices of a stage."""
        return self.devices * self.data_devices

    @property
    def sends_tokens(self) -> bool:
        """True if data-parallel groups send each token to the devices of its experts."""
        return self.data_devices > 1 and self.expert_devices > 1

    def part(self, count: int) -> int:
        """Return one device's part of a divided count, rounded up; key heads are copied if devices outnumber them."""
        return -(-count // self.devices)

    def queries(self, count: int, pairs: int) -> int:
        """Return the query heads of one device, equally many for each of its key heads."""
        each = self.part(pairs)
        return -(-self.part(count) // each) * each

    def spell(self, name: str, *, is_whole: bool = False) -> str:
        """Return the canonical name of the pass; `is_whole` adds parentheses where a bare name is not a pass."""
        return f"{name}({','.join(self.arguments)})" if self.arguments or is_whole else name


ARGUMENTS: Final = tuple(
    Argument(field.name, default=field.default, **field.metadata) for field in attrs.fields(DecoderPass)
)
"""Arguments of a pass."""


def check_step(decoder: Decoder, step: DecoderPass) -> None:
    """Raise UsageError for a pass that the model does not accept."""
    most = decoder.context_length
    for what, count in (("", step.cached + step.tokens), ("chunk: ", step.chunk_cached + step.chunk)):
        if most and count > most:
            raise UsageError(f"{decoder.name}: {what}{count:,} tokens are more than its context of {most:,}")
    if step.chunk_cached and not step.chunk:
        raise UsageError(f"{decoder.name}: chunk_cached is {step.chunk_cached}, expected a chunk after it")
    if step.logits == "none" and step.pipeline_devices == 1:
        raise UsageError(f"{decoder.name}: a pass without logits needs several pipeline_devices")
    if step.sequence_parallel:
        _check_tokens(decoder, step)
    check_devices(decoder, step.devices, step.expert_devices, step.data_devices, step.pipeline_devices)


def _check_tokens(decoder: Decoder, step: DecoderPass) -> None:
    """Raise UsageError if the tensor-parallel devices cannot divide the tokens."""
    if step.devices == 1:
        raise UsageError(f"{decoder.name}: sequence_parallel needs several devices")
    if step.tokens % step.devices:
        raise UsageError(f"{decoder.name}: {step.tokens:,} tokens cannot be divided by {step.devices} devices")
    if step.chunk or step.data_devices > 1:
        raise UsageError(f"{decoder.name}: sequence_parallel cannot be combined with a chunk or data_devices")
    if decoder.per_layer[1] or any(getattr(layer.network, "beside", None) for layer in decoder.layers):
        raise UsageError(f"{decoder.name}: layers have parallel paths, so sequence_parallel cannot divide their tokens")


def count_stage(decoder: Decoder, stages: int) -> int:
    """Return the number of layers on the largest of `stages` pipeline stages."""
    return -(-decoder.layer_count // stages)


def check_devices(
    decoder: Decoder, devices: int, expert_devices: int = 1, data_devices: int = 1, pipeline_devices: int = 1
) -> None:
    """Raise UsageError if a model cannot be divided among these devices."""

    def refuse(what: str, count: int, of: int) -> None:
        if count % of:
            raise UsageError(f"{decoder.name}: {count} {what} cannot be divided by {of} devices")

    decoder.check_division(devices, expert_devices, pipeline_devices)
    if pipeline_devices > decoder.layer_count:
        raise UsageError(f"{decoder.name}: {len(decoder.layers)} layers are too few for {pipeline_devices} stages")
    if pipeline_devices > 1 and decoder.shares_caches:
        raise UsageError(f"{decoder.name}: layers use the state of others, so they cannot be divided into stages")
    if expert_devices > 1 and not decoder.is_routed:
        raise UsageError(f"{decoder.name} has no experts: leave out --expert-devices")
    world = devices * data_devices
    if world % expert_devices:
        raise UsageError(
            f"{decoder.name}: --expert-devices is {expert_devices}, expected a divisor of all devices, {world}"
        )
    for layer in dict.fromkeys(decoder.layers):
        network = layer.network
        for mixer in layer.mixers:
            refuse("heads", mixer.heads, devices)
            if isinstance(mixer, Attention) and mixer.kv_heads % devices and devices % mixer.kv_heads:
                refuse("heads of keys", mixer.kv_heads, devices)
            if isinstance(mixer, Compressed):
                refuse("output groups", mixer.output_groups, devices)
            if isinstance(mixer, Recurrence) and mixer.groups % devices and devices % mixer.groups:
                refuse("groups of keys", mixer.groups, devices)
        if isinstance(network, Network):
            refuse("inner columns", network.inner, devices)
        if isinstance(network, Experts):
            if not (data_devices > 1 and expert_devices > 1):  # else copies of some experts fill the last places
                refuse("experts", network.count, expert_devices)
            refuse("inner columns of an expert", network.inner, world // expert_devices)
            for one in (network.shared, network.beside):
                if one is not None:
                    refuse("inner columns", one.inner, devices)


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
        (DEVICE, "expert_wait"): decoder.routed_count if step.expert_devices > 1 and not step.sends_tokens else 0,
        (DEVICE, "score_prompt"): prompt,
        (DEVICE, "score_answer"): answer,
        (HOST, "launch_layer"): decoder.layer_count,
        (HOST, "launch_expert"): decoder.expert_count,
        (HOST, "launch_delta"): decoder.delta_count if is_prompt(step) else 0,
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
