"""Model on devices under a serving stack: passes evaluated as workloads of one device, then summed over all devices.

`stack` computes the time of a pass. Pipeline stages work one after another, each on the b sequences of a batch:

    pass   = (stages - 1) inner stages + the last one           each with the activations it receives over the link
    joules = devices x (joules of one + (static power + power in gaps) x host overhead
           + power of awake links x pass time) + sampling of a token of each sequence

Some engines split a batch into m parts, at most one per stage, and work on all of them at once. One token of each
sequence then takes the time of one pass of b / m sequences. With fewer parts than stages, some stages wait. Consecutive
prefill passes are parts too: k of them take the time of (k + stages - 1) / stages passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.domain.calibration import name_pace
from joulemap.domain.configuration import FLOPS_PER_MAC
from joulemap.domain.operator.name import READ_ALL
from joulemap.domain.quantity import Quantity
from joulemap.domain.settings import MOST_GUESSED
from joulemap.domain.weight import read_weight_format
from joulemap.domain.workload import ROUTED
from joulemap.model.bulk import Together, Total
from joulemap.model.stream import join_units
from joulemap.model.workload import MACHETE, MARLIN, STREAMED, UNPACKED, WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.wing.llm.decoder.column import Asked, pass_columns
from joulemap.wing.llm.decoder.step import Step, count_stage
from joulemap.wing.llm.serving.surface import Cost, Floats, Passes

if TYPE_CHECKING:
    from joulemap.catalog.stack import Stack
    from joulemap.domain.hardware import Hardware
    from joulemap.wing.llm.decoder.config import Decoder

MEMORIES: Final = ("LPDDR", "GDDR", "HBM", "DDR")
"""Memory technologies for which an engine's kernels may differ."""

VECTOR_ROWS: Final = 8
"""Maximum rows for which weight-streaming kernels compute a GEMM at memory speed; above, matrix kernels run.

Source: llama.cpp, ggml-cuda, MMVQ_MAX_BATCH_SIZE (recalled).
"""

FP8: Final = "fp8"
"""Precision whose weights Marlin unpacks to multiply them at 16 bits. Source: vLLM, `marlin_utils_fp8.py`."""

INTEGER: Final = "int8"
"""Precision whose peak rate may set the rate of 16-bit GEMMs in an engine's own kernels."""

STREAMED_SLOTS: Final = "issue_slots.streamed"
"""Coefficient of a GPU for the issue slots per MAC of a GEMM without tiles."""

EXPERT_STREAM: Final = "experts_dram_share"
"""Coefficient of a GPU for the share of its bandwidth at which experts read their weights."""

K_QUANT: Final = "_k"
"""Part of the names of llama.cpp's weight formats with nested scales, as in `q4_k_m`."""

ANSWER: Final = "_answer"
"""Suffix of an engine's names for numbers that apply to attention of one token per sequence."""

LIBRARY_SHARES: Final = (
    "wide_share",
    "gemm_efficiency.vector",
    "gemm_efficiency.matrix",
    "gemm_efficiency.dot_bf16",
    "gemm_efficiency.dot_int8",
)
"""Coefficients for the share of the peak that library GEMMs reach; 1 for engines with their own kernels."""

STREAM_NORM: Final = 4.0
"""Exponent of the norm that combines the rates of memory and of the units that stream from it.

Source: as the coefficient of `unit_stream` (catalog/data/stack/llamacpp.toml).
"""

VERIFIED: Final = 1.0 + MOST_GUESSED
"""Maximum tokens per sequence and pass that count as speculative decoding; more are a prompt."""

MANY_TOKENS: Final = 32.0
"""Tokens of a pass at which expert-parallel devices wait for 63 % of the longest time, `expert_wait`.

Source: as that coefficient (catalog/data/stack/vllm.toml).
"""

UNPACKED_FORMAT: Final = "nf4"
"""Start of the names of weight formats that engines dequantize to memory.

Source: bitsandbytes, `matmul_4bit`, which Transformers, vLLM and SGLang call: a separate kernel for one row, else
`dequantize_4bit` and a 16-bit GEMM.
"""

PACKED_WORDS: Final = {"marlin": MARLIN, "machete": MACHETE}
"""Kernel that unpacks integer weights -> word in the variants of its GEMMs."""

MARLIN_METHODS: Final = ("awq",)
"""Methods whose weights Marlin multiplies on every microarchitecture. Source: vLLM, `awq_marlin.py`; in issue 15809 an
H100 is 10 to 30 % faster than an A100 with AWQ and twice as fast with GPTQ."""

LINKS_W: Final = 36.0
"""Power of a board's links in watts while it has peers; links draw it regardless of traffic.

Source: 2 to 8 A100, vLLM of 2023 (splitwise-sim, commit 8f99e7d), 36 W per board: mean power error 15.6 -> 4.9 %; 4
H100, vLLM of 2024 (LLM-Inference-Bench, commit 4211f5d), 44 W: 14.8 -> 3.4 % at 36. Other links are assumed equal.
"""

MOST_LINKS: Final = 0.5
"""Maximum share that links take of the power between static power and cap; it binds only on caps below 150 W."""

WIDE: Final = frozenset(("bf16", "fp16"))
"""16-bit precisions."""

UNLIMITED: Final = 1e6
"""Factor that makes memory capacity unlimited here; `Room` checks beforehand how many sequences fit."""

Kernels = tuple[tuple[str, str], ...]
"""(operation, kernel family that runs it) pairs, as in operator variants."""


@define(eq=False)
class Book:
    """Workloads of one model's passes, built once for all hardware."""

    decoder: Decoder
    _works: dict[Asked, WorkloadColumns] = attrs.field(factory=dict, init=False)
    _together: dict[tuple[Kernels, tuple[Asked, ...]], Together] = attrs.field(factory=dict, init=False)

    def describe(self, asked: Sequence[Asked], kernels: Kernels = ()) -> Together:
        """Return the workloads of passes, with the given kernel families; intermediate results are cached."""
        key = kernels, tuple(asked)
        if key not in self._together:
            missing = [one for one in asked if one not in self._works]
            self._works |= self._describe(missing)
            self._together[key] = Together(tuple(_name_kernels(self._works[one], kernels) for one in asked))
        return self._together[key]

    def release(self) -> None:
        """Drop results cached for groups of passes; single passes stay cached."""
        self._together.clear()

    def _describe(self, asked: Sequence[Asked]) -> dict[Asked, WorkloadColumns]:
        if not self.decoder.is_traced:
            return pass_columns(self.decoder, asked, is_folded=True)
        from joulemap.wing.llm.decoder.traced import TracedDecoder

        assert isinstance(self.decoder, TracedDecoder)
        return self.decoder.describe(asked)


def _name_kernels(work: WorkloadColumns, kernels: Kernels) -> WorkloadColumns:
    """Return a pass whose GEMMs are labeled with the kernel families of their operations."""
    for operation, family in kernels:
        words = np.char.strip(np.char.add(np.char.add(work.variant, " "), family))
        work = attrs.evolve(work, variant=np.where(work.of_operation(operation), words, work.variant))
    return work


def _take_faster(streamed: Total, tiled: Total) -> Total:
    """Return the cost of a pass of few rows under the faster of two kernels.

    llama.cpp's developers chose VECTOR_ROWS on NVIDIA boards, where integer products of more rows are no faster than
    those of fewer. On Radeon, 8 rows of nested formats do take longer than 16 (strix-halo-testing, commit 5ee14b5).
    """
    if streamed.latency_fs is None or tiled.latency_fs is None:
        return streamed
    return min(streamed, tiled, key=lambda one: one.latency_fs or 0)


def _count_sampled(passes: Passes) -> Floats:
    """Return the number of sequences for which each pass samples a token."""
    counts: Floats = passes.sequences + (passes.chunk > 0.0)
    return counts


@frozen(kw_only=True, eq=False)
class Deployment:
    """Model on all devices that serve it; implements `Surface`."""

    book: Book
    hardware: Hardware
    """Hardware at its power mode and measurement boundary, calibrated."""
    stack: Stack
    precision: str
    weight_precision: str = ""
    cache: str = ""
    """KV cache precision; empty for the precision of the run."""
    devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Tensor-parallel devices."""
    expert_devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    data_devices: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    stages: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Pipeline-parallel stages, each with equally many devices."""
    compiled_tokens: float = 0.0
    """Sequence length that passes were compiled for; attention always covers the full length."""
    totals: dict[Asked, Total] | None = None
    """Pass -> its time and energy on one device, shared by deployments of one model, chip, precision and engine.

    None to cache nothing.
    """

    @property
    def decoder(self) -> Decoder:
        """Decoder that this deployment serves."""
        return self.book.decoder

    @property
    def world(self) -> int:
        """Total number of devices."""
        return self.devices * self.data_devices * self.stages

    @property
    def waiting_w(self) -> float:
        """Power of all devices in watts while they wait for the host."""
        return self.world * self.hardware.waiting_w

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests, with the model loaded."""
        return self.world * self.hardware.resting_w

    @property
    def awake_w(self) -> float:
        """Power in watts of one device's links while it has peers, regardless of traffic."""
        joined = self.devices * self.data_devices > 1 and any(one.connects == "device" for one in self.hardware.links)
        return LINKS_W * self.hardware.around_factor if joined else 0.0

    @property
    def kinds(self) -> list[str]:
        """Names under which an engine may have separate numbers, the most specific first.

        They are the microarchitecture, its words from the last to the first, and the class.
        """
        words = self.hardware.microarchitecture.split()
        return ["".join(words), *words[::-1], self.hardware.architecture]

    @cached_property
    def chips(self) -> tuple[Hardware, Hardware]:
        """(hardware for few rows, hardware for many rows), each at the rates that the engine's kernels reach.

        Kernels that multiply integers, or accumulate 16-bit GEMMs in 16 bits, scale with the int8 rate, also on chips
        whose only floating-point products are fp32. Gaming boards accumulate in 32 bits at half that rate. `Room`
        checks the memory capacity.
        """

        def scaled(quantity: Quantity, by: float) -> Quantity:
            return attrs.evolve(quantity, value=quantity.value * by)

        memory = self.stack.value("memory_rate", *self._memory_kinds)
        routed = [f"experts_{one}" for one in self.kinds] if self.decoder.is_routed else []
        *words, architecture = self.kinds
        kinds = (*routed, *words, f"{architecture}_{self.precision}", architecture)
        plain = 1.0 if self.weight_precision else self.stack.value("plain_rate", *kinds)
        compute, integer = (self.stack.value(one, *kinds) for one in ("compute_rate", "integer_rate"))
        whole = join_units(self.hardware)
        unit_rate = (
            self.stack.value("unit_stream", *self.kinds, whole.unit_name) * whole.unit_count.value * whole.clock.value
        )
        shares = [memory, *([unit_rate / whole.memory_bandwidth.value] if unit_rate else [])]
        budget_w = whole.tdp.value - whole.static_power.value
        links_w = min(self.awake_w / whole.around_factor, MOST_LINKS * budget_w)  # the board's cap includes its links
        few = attrs.evolve(
            whole,
            tdp=attrs.evolve(whole.tdp, value=whole.tdp.value - links_w),
            memory_capacity=scaled(whole.memory_capacity, UNLIMITED),
            memory_bandwidth=scaled(
                whole.memory_bandwidth, sum(one**-STREAM_NORM for one in shares) ** (-1.0 / STREAM_NORM)
            ),
        )
        formats = [f"{one}{K_QUANT}" for one in words if K_QUANT in self.weight_precision]
        slots = self.stack.value("stream_slots", *formats)
        if slots and (streamed := few.coefficients.get(STREAMED_SLOTS)):
            own = {STREAMED_SLOTS: attrs.evolve(streamed, value=slots)}
            few = attrs.evolve(few, coefficients={**few.coefficients, **own})
        peaks = {name: attrs.evolve(peak, rate=scaled(peak.rate, compute)) for name, peak in few.peaks.items()}
        if integer and (eighth := few.peaks.get(INTEGER)):
            reached = scaled(eighth.rate, integer * plain)
            wide = WIDE & peaks.keys() or {"fp32"} & peaks.keys()
            peaks |= {name: attrs.evolve(peaks[name], rate=reached) for name in wide}
        if compute == 1.0:
            return few, few
        own = {name: one for name, one in few.coefficients.items() if name in LIBRARY_SHARES}
        own = {name: attrs.evolve(one, value=1.0) for name, one in own.items()}  # the engine has own kernels
        return few, attrs.evolve(few, peaks=peaks, coefficients={**few.coefficients, **own})

    def price(self, passes: Passes, /) -> Cost:
        """Return the cost of passes; UnsupportedError if hardware cannot run them, UsageError for an invalid pass.

        A prompt chunk counts as its mean share on each data-parallel rank.
        """
        parts, asked = self._cut(passes), self.ask(passes)
        device_s, drawn_s, device_j = self._work(asked)
        if self.stages > 1:
            before = self._work([(attrs.evolve(step, logits="none"), count) for step, count in asked])
            size = count_stage(self.decoder, self.stages)
            # number of stages before the last, in units of the last stage's layers
            more = (self.decoder.layer_count - size) / size
            device_s, drawn_s, device_j = (
                last + more * one for last, one in zip((device_s, drawn_s, device_j), before, strict=True)
            )
        most = self.stages if self.stack.fills_stages else 1
        device_s = device_s * np.where(parts > 0.0, 1.0, (passes.following + most - 1.0) / passes.following / most)
        device_s = device_s * self._device_factor + self._layer_s + self._score_s(passes)
        device_s = device_s * self._calibrate(passes)
        parts = np.maximum(parts, 1.0)
        waiting_w = self.hardware.waiting_w
        seconds = self.stack.add_host(device_s, self._launch(passes), _count_sampled(passes), self._each_s)
        seconds = seconds + self._wait_s(passes)
        working_j = (device_j - waiting_w * drawn_s) * parts * self.devices * self.data_devices
        working_j += self.stack.value("sample_energy") * self.decoder.vocabulary * _count_sampled(passes)
        gap_w = self.stack.value("gap_power", *self.kinds) * self.hardware.tdp.value
        working_j += self.world * gap_w * (seconds - device_s)
        return Cost(seconds=seconds, joules=working_j + self.world * (waiting_w + self.awake_w) * seconds)

    def ask(self, passes: Passes) -> list[Asked]:
        """Return each pass as one device runs it, with sizes rounded to integers, and its number of sequences."""
        parts = np.maximum(self._cut(passes), 1.0)
        sizes = (
            passes.sequences / parts,
            passes.tokens,
            passes.context,
            passes.chunk / parts / self.data_devices,
            passes.chunk_context,
        )
        return [self._ask(*one) for one in zip(*(column.tolist() for column in sizes), strict=True)]

    def _cut(self, passes: Passes) -> Floats:
        """Return the number of parts on which pipeline stages work at once; 0 for prefill-only passes."""
        most = float(self.stages if self.stack.fills_stages else 1)
        is_prompt = (passes.tokens > VERIFIED) | (passes.sequences <= 0.0)
        return np.where(is_prompt, 0.0, np.clip(np.floor(passes.sequences), 1.0, most))

    def _work(self, asked: Sequence[Asked]) -> tuple[Floats, Floats, Floats]:
        """Return (seconds of the passes, seconds for which the device draws static power, joules) on one device."""
        found = self.evaluate(asked)
        return (
            np.array([one.latency_fs or 0 for one in found]) / FS_PER_S,
            np.array([one.interval_fs or 0 for one in found]) / FS_PER_S,
            np.array([one.energy_fj or 0 for one in found]) / FJ_PER_J,
        )

    def evaluate(self, asked: Sequence[Asked]) -> tuple[Total, ...]:
        """Return the cost of passes on one device, without the stack's overhead; raise as `price` does."""
        known = {} if self.totals is None else self.totals
        few, many = self.chips
        differs = few is not many or self.stack.streams
        tiled = self.stack.value("tiled_rows", *self.kinds)
        chooses = differs and not tiled and INTEGER in few.peaks
        groups: dict[tuple[bool, bool, bool], list[Asked]] = {}
        for one in dict.fromkeys(asked):
            if one not in known:
                rows = one[0].tokens * one[1] + one[0].chunk
                is_many = differs and rows > VECTOR_ROWS
                groups.setdefault((is_many, is_many and rows >= tiled, rows > 1.0), []).append(one)
        for (is_many, is_tiled, is_gathered), some in groups.items():
            together = self.book.describe(some, self._kernels(is_tiled))
            chip = many if is_tiled else self._untiled if is_many else self._gathering if is_gathered else few
            totals = self._evaluate(together, chip)
            if chooses and is_gathered and not is_many:
                others = self._evaluate(self.book.describe(some, self._kernels(is_tiled=True)), many)
                totals = tuple(map(_take_faster, totals, others))
            known.update(zip(some, totals, strict=True))
        found = tuple(known[one] for one in asked)
        refusal = next((one.refusal for one in found if one.refusal), None)
        if refusal:
            raise UnsupportedError.of(refusal)
        return found

    def _evaluate(self, together: Together, chip: Hardware) -> tuple[Total, ...]:
        return tuple(
            together.evaluate(chip, self.precision, self.stack.runtime, weight_precision=self.weight_precision)
        )

    @cached_property
    def _gathering(self) -> Hardware:
        """Hardware for passes with several rows, but few.

        Experts read their weights at another share of the bandwidth there, because their tokens are gathered first.
        """
        few, _ = self.chips
        share = self.stack.value("expert_stream", *self.kinds) if self.decoder.is_routed else 1.0
        if share == 1.0:
            return few
        stream = few.coefficients[EXPERT_STREAM]
        own = {f"{EXPERT_STREAM}.{self.stack.experts}": attrs.evolve(stream, value=stream.value * share)}
        return attrs.evolve(few, coefficients={**few.coefficients, **own})

    @cached_property
    def _untiled(self) -> Hardware:
        """Hardware on which GEMMs without tiles are as fast as GEMMs with full tiles; experts wait for memory."""
        (_, many), chip = self.chips, self._gathering
        slots_hz = many.unit_count.value * many.clock.value * many.geometry["issue_slots_per_unit"].value
        slots = slots_hz * FLOPS_PER_MAC / many.peaks[self.precision].rate.value
        own = {STREAMED_SLOTS: attrs.evolve(many.coefficients[STREAMED_SLOTS], value=slots)}
        return attrs.evolve(chip, coefficients={**chip.coefficients, **own})

    def _kernels(self, is_tiled: bool) -> Kernels:
        """Return the kernel families of weight GEMMs, cut into full tiles or not."""
        stack = self.stack
        streamed = STREAMED if stack.streams and not is_tiled else ""
        unpacked = UNPACKED if self.weight_precision.startswith(UNPACKED_FORMAT) else ""
        named = {
            "linear": f"{streamed} {unpacked or self._packed}".strip(),
            ROUTED[0]: f"{stack.experts} {streamed}".strip(),
        }
        return tuple((operation, words) for operation, words in named.items() if words)

    @property
    def _packed(self) -> str:
        """Variant word of the kernel that unpacks integer weights in a GEMM's registers; empty if there is none."""
        if not self.weight_precision or self.precision not in WIDE:
            return ""
        weights = read_weight_format(self.weight_precision)
        kernel = next((self.stack.packed[word] for word in self.kinds if word in self.stack.packed), "")
        if not weights.is_packed:
            return MARLIN if weights.precision == FP8 and PACKED_WORDS.get(kernel) == MARLIN else ""
        return MARLIN if kernel and weights.method in MARLIN_METHODS else PACKED_WORDS.get(kernel, "")

    def _ask(self, sequences: float, tokens: float, context: float, chunk: float, chunk_context: float) -> Asked:
        """Return the pass nearest to the given sizes that has integer sizes."""
        is_verified = sequences > 0.0 and context > 0.0 and tokens <= VERIFIED
        if sequences <= 0.0:
            sequences, tokens, context, chunk, chunk_context = 1.0, chunk, chunk_context, 0.0, 0.0
        size = max(1, round(tokens))
        step = Step(
            tokens=size,
            cached=max(0, round(context), round(self.compiled_tokens) - size),
            logits="all" if size > 1 and (self.stack.all_logits or is_verified) else "last",
            chunk=max(0, round(chunk)),
            chunk_cached=max(0, round(chunk_context)) if round(chunk) > 0 else 0,
            devices=self.devices,
            expert_devices=self.expert_devices,
            data_devices=self.data_devices,
            pipeline_devices=self.stages,
            cache=self.cache,
            routing=READ_ALL if self._reads_all else "",
            engine=self.stack.id,
        )
        return step, max(1, round(sequences))

    def _calibrate(self, passes: Passes) -> Floats:
        """Return the factor on each pass's device time from the chip's calibration for this engine."""
        by_name = self.hardware.coefficients
        prompt, decode = (
            by_name[name].value if (name := name_pace(self.stack.name, is_prompt=one)) in by_name else 1.0
            for one in (True, False)
        )
        return np.where(passes.tokens > VERIFIED, prompt, decode)

    @property
    def _device_factor(self) -> float:
        """Engine's factor on device time, for mixtures of experts or this microarchitecture."""
        name = self.kinds[0]
        kinds = (f"experts_{name}", "experts") if self.decoder.is_routed else ()
        return self.stack.value("device_time", *kinds, name)

    @property
    def _layer_s(self) -> float:
        """Seconds that all layers add to a pass, besides their kernels."""
        kinds = (f"{self.kinds[0]}_{self.precision}", *self._memory_kinds, *self.kinds)
        return self.decoder.layer_count * self.stack.value("layer_time", *kinds)

    @property
    def _reads_all(self) -> bool:
        """True if a device reads the weights of all experts that it holds."""
        weights = self.weight_precision or self.precision
        return self.expert_devices > 1 and weights.partition("_")[0] in self.stack.reads_all

    def _wait_s(self, passes: Passes) -> Floats:
        """Return the seconds in which expert-parallel devices exchange tokens and wait for the busiest one."""
        most = self.stack.value("expert_wait") * self.decoder.routed_count if self.expert_devices > 1 else 0.0
        rows = passes.sequences * passes.tokens + passes.chunk
        waits: Floats = most * -np.expm1(-rows / MANY_TOKENS)
        return waits

    def _score_s(self, passes: Passes) -> Floats:
        """Return the seconds in which unfused attention moves its scores, or keys for each head, through memory."""
        prompt = self.stack.value("score_bytes", *self.kinds)
        answer = self.stack.value("score_bytes", *(f"{one}{ANSWER}" for one in self.kinds), *self.kinds)
        if not prompt and not answer:
            return np.zeros_like(passes.tokens)
        alone, chunk = np.zeros_like(passes.tokens), np.zeros_like(passes.tokens)
        for heads, window in self.decoder.score_heads:
            most = window or np.inf
            alone += heads * passes.sequences * passes.tokens * np.minimum(passes.context + passes.tokens, most)
            chunk += heads * passes.chunk * np.minimum(passes.chunk_context + passes.chunk, most)
        moved: Floats = alone * np.where(passes.tokens > 1.0, prompt, answer) + chunk * prompt
        return moved / self.devices / self.chips[0].memory_bandwidth.value

    @property
    def _memory_kinds(self) -> list[str]:
        """Names under which an engine may have separate numbers for this memory technology, most specific first."""
        found = next((one for one in MEMORIES if self.hardware.memory_type.startswith(one)), "")
        return [*(f"{found}_{word}" for word in self.kinds[:-1]), self.hardware.architecture, found]

    @property
    def _each_s(self) -> float:
        """Seconds that each sequence adds to a pass."""
        return self.stack.each(self.decoder.recurrent_count, *self.kinds)

    def _launch(self, passes: Passes) -> Floats:
        """Return the host's launch time in seconds for all layers of each pass."""
        layers, experts = self.decoder.layer_count, self.decoder.expert_count
        kind = self.weight_precision or self.precision
        has_prompt = (passes.tokens > VERIFIED) | (passes.chunk > 0.0)
        prompt, answer = (self.stack.launch(layers, experts, *kinds) for kinds in (("prompt", kind), (kind,)))
        return np.where(has_prompt, prompt, answer)
