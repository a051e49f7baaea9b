"""A model on devices under a stack: its passes, evaluated as workloads of one device, and what all devices hold.

A pass takes what `stack` says. Stages of a pipeline work one after another on all sequences of a batch, as TensorRT-LLM
and llama.cpp have it.

    joules = devices x (joules of one + static power x what the host adds)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.decoder.column import step_columns
from joulemap.decoder.step import Step
from joulemap.domain.quantity import Quantity
from joulemap.domain.workload import ROUTED
from joulemap.model.bulk import Together, Total
from joulemap.model.workload import STREAMED, WorkloadColumns
from joulemap.serving.surface import Cost, Floats, Passes, count_prompts
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from joulemap.decoder.config import Decoder
    from joulemap.domain.hardware import Hardware
    from joulemap.serving.stack import Stack

NORM: Final = 2.5
"""Of the times of devices and host, which go on side by side.

Source: as that of compute and memory; vLLM, TensorRT-LLM and DeepSpeed-MII on 1 to 4 A100 and H100
(LLM-Inference-Bench, commit 4211f5d): 8 % mean, 10 % where both are added up."""

MEMORIES: Final = ("LPDDR", "GDDR", "HBM", "DDR")
"""Kinds of memory by which an engine's kernels may differ."""

VECTOR_ROWS: Final = 8
"""Rows up to which kernels that stream weights take a product, as fast as memory allows; beyond, those of matrices.

Source: llama.cpp, ggml-cuda, MMVQ_MAX_BATCH_SIZE (recalled)."""

UNLIMITED: Final = 1e6
"""Factor on a memory that is not to refuse a pass: who serves asks first how many sequences it holds."""

Asked = tuple[Step, int]
"""A pass of so many sequences."""

Kernels = tuple[tuple[str, str], ...]
"""Operation -> family of kernels that runs it, as variants of operators have it."""


@define(eq=False)
class Book:
    """Passes of a model as workloads, told once for all hardware."""

    decoder: Decoder
    _works: dict[Asked, WorkloadColumns] = attrs.field(factory=dict, init=False)
    _together: dict[tuple[Kernels, tuple[Asked, ...]], Together] = attrs.field(factory=dict, init=False)

    def describe(self, asked: Sequence[Asked], kernels: Kernels = ()) -> Together:
        """Return the workloads of passes whose products families of kernels run, with what was formed of them."""
        key = kernels, tuple(asked)
        if key not in self._together:
            missing: dict[int, list[Step]] = {}
            for step, count in asked:
                if (step, count) not in self._works:
                    missing.setdefault(count, []).append(step)
            for count, steps in missing.items():
                found = step_columns(self.decoder, steps, count)
                self._works |= {(step, count): work for step, work in zip(steps, found, strict=True)}
            self._together[key] = Together(tuple(_name_kernels(self._works[one], kernels) for one in asked))
        return self._together[key]


def _name_kernels(work: WorkloadColumns, kernels: Kernels) -> WorkloadColumns:
    """Return a pass whose products of some operations are of families of kernels."""
    for operation, family in kernels:
        words = np.char.strip(np.char.add(np.char.add(work.variant, " "), family))
        work = attrs.evolve(work, variant=np.where(work.of_operation(operation), words, work.variant))
    return work


@frozen(kw_only=True, eq=False)
class Deployment:
    """A model on all devices that serve it; a surface."""

    book: Book
    hardware: Hardware
    """At its mode, calibrated, and at a boundary."""
    stack: Stack
    precision: str
    weight_precision: str = ""
    cache: str = ""
    """What keys and values are stored at; empty for the precision of the run."""
    devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Over which each product is divided."""
    expert_devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    data_devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    stages: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Of a pipeline, each with as many devices."""
    routing: str = ""
    compiled_tokens: float = 0.0
    """Of a sequence, that passes were compiled for and attend over whether they are there or not."""

    @property
    def decoder(self) -> Decoder:
        """The model."""
        return self.book.decoder

    @property
    def world(self) -> int:
        """All devices."""
        return self.devices * self.data_devices * self.stages

    @property
    def idle_w(self) -> float:
        """Watts of all devices while they wait for the host."""
        return self.world * self.hardware.static_power.value

    @cached_property
    def chips(self) -> tuple[Hardware, Hardware]:
        """The hardware at the rates that the engine's kernels reach, for few rows and for many.

        What its memory holds is asked of `Room`.
        """

        def scaled(quantity: Quantity, by: float) -> Quantity:
            return attrs.evolve(quantity, value=quantity.value * by)

        kind = next((one for one in MEMORIES if self.hardware.memory_type.startswith(one)), "")
        memory = self.stack.value("memory_rate", kind)
        compute = self.stack.value("compute_rate", self.hardware.microarchitecture.partition(" ")[0])
        few = attrs.evolve(
            self.hardware,
            memory_capacity=scaled(self.hardware.memory_capacity, UNLIMITED),
            memory_bandwidth=scaled(self.hardware.memory_bandwidth, memory),
        )
        peaks = {name: attrs.evolve(peak, rate=scaled(peak.rate, compute)) for name, peak in few.peaks.items()}
        return few, few if compute == 1.0 else attrs.evolve(few, peaks=peaks)

    def price(self, passes: Passes, /) -> Cost:
        """Return what passes take; UnsupportedError for what hardware cannot run, UsageError for what is no pass."""
        asked = [
            self._ask(*sizes)
            for sizes in zip(
                passes.sequences.tolist(),
                passes.tokens.tolist(),
                passes.context.tolist(),
                passes.chunk.tolist(),
                passes.chunk_context.tolist(),
                strict=True,
            )
        ]
        distinct = list(dict.fromkeys(asked))
        place = {one: number for number, one in enumerate(distinct)}
        totals = self.evaluate(distinct)
        found = [totals[place[one]] for one in asked]
        device_s = np.array([one.latency_fs or 0 for one in found]) / FS_PER_S
        drawn_s = np.array([one.interval_fs or 0 for one in found]) / FS_PER_S
        device_j = np.array([one.energy_fj or 0 for one in found]) / FJ_PER_J
        static_w = self.hardware.static_power.value
        seconds = self._with_host(device_s, passes)
        working_j = (device_j - static_w * drawn_s) * self.devices * self.data_devices
        return Cost(seconds=seconds, joules=working_j + self.world * static_w * seconds)

    def evaluate(self, asked: Sequence[Asked]) -> tuple[Total, ...]:
        """Return what one device takes for passes, without the stack's part; raises as `price`."""
        found: dict[Asked, Total] = {}
        few, many = self.chips
        differs = few is not many or self.stack.streams
        groups: dict[bool, list[Asked]] = {}
        for one in asked:
            is_many = differs and one[0].tokens * one[1] + one[0].chunk > VECTOR_ROWS
            groups.setdefault(is_many, []).append(one)
        for is_many, some in groups.items():
            together = self.book.describe(some, self._kernels(is_many))
            totals = together.evaluate(
                many if is_many else few, self.precision, self.stack.runtime, weight_precision=self.weight_precision
            )
            found |= zip(some, totals, strict=True)
        refusal = next((one.refusal for one in found.values() if one.refusal), None)
        if refusal:
            raise UnsupportedError(refusal)
        return tuple(found[one] for one in asked)

    def _kernels(self, is_many: bool) -> Kernels:
        """Return the families of kernels that the engine runs, of passes of many rows or of few."""
        stack = self.stack
        streamed = STREAMED if stack.streams and not is_many else ""
        named = {
            "matmul": stack.attention(self.hardware),
            "linear": streamed,
            ROUTED[0]: f"{stack.experts} {streamed}".strip(),
        }
        return tuple((operation, words) for operation, words in named.items() if words)

    def _ask(self, sequences: float, tokens: float, context: float, chunk: float, chunk_context: float) -> Asked:
        """Return the pass nearest to sizes that need not be whole."""
        if sequences <= 0.0:
            sequences, tokens, context, chunk, chunk_context = 1.0, chunk, chunk_context, 0.0, 0.0
        size = max(1, round(tokens))
        step = Step(
            tokens=size,
            cached=max(0, round(context), round(self.compiled_tokens) - size),
            logits="all" if self.stack.all_logits and size > 1 else "last",
            chunk=max(0, round(chunk)),
            chunk_cached=max(0, round(chunk_context)) if round(chunk) > 0 else 0,
            devices=self.devices,
            expert_devices=self.expert_devices,
            data_devices=self.data_devices,
            cache=self.cache,
            routing=self.routing,
        )
        return step, max(1, round(sequences))

    def _with_host(self, device_s: Floats, passes: Passes) -> Floats:
        """Return the time of passes with what the stack adds."""
        host_s = len(self.decoder.layers) * self.stack.value("host_layer")
        together_s = (device_s**NORM + host_s**NORM) ** (1.0 / NORM)
        total: Floats = together_s + self.stack.value("host_sequence") * (passes.sequences + (passes.chunk > 0.0))
        return total

    def step(
        self,
        sequences: ArrayLike,
        context_tokens: ArrayLike,
        prompt_tokens: ArrayLike = 0.0,
        prompt_context: ArrayLike = 0.0,
    ) -> tuple[Floats, Floats]:
        """Return seconds and joules as `surface.Table.step`, of each place evaluated for itself.

        Beside sequences that decode, several short prompts are as many tokens of one.
        """
        columns = (
            np.asarray(one, dtype=np.float64) for one in (sequences, context_tokens, prompt_tokens, prompt_context)
        )
        count, context, prompt, behind = np.broadcast_arrays(*columns)
        shape = count.shape
        count, context, prompt, behind = (np.ravel(one) for one in (count, context, prompt, behind))
        prompts, length, before = count_prompts(prompt, behind)
        alone = count <= 0.0
        cost = self.price(
            Passes.of(
                np.where(alone, prompts, count),
                tokens=np.where(alone, length, 1.0),
                context=np.where(alone, before, context),
                chunk=np.where(alone, 0.0, prompt),
                chunk_context=np.where(alone, 0.0, before),
            )
        )
        return cost.seconds.reshape(shape), cost.joules.reshape(shape)
