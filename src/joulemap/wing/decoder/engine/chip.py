"""Chip under an engine: the rates that its kernels reach, their families, and the overhead that it adds to a pass.

An engine's kernels differ between passes of few and of many rows, so a pass has one or two ways to run, of which the
faster counts:

    few        weights stream past at most `VECTOR_ROWS` rows, at the engine's rate of memory and units
    gathered   as few, for several rows; experts read their weights at another share of the bandwidth
    untiled    products of more rows, with tiles of their own height
    tiled      products of many rows, cut into full tiles at the engine's matrix rate

Overhead becomes coefficients of the chip, one for each kind of overhead operator (`decoder.decoder_pass`), and
actions: a device that waits for its host draws a share of its power limit above static power, a sampled token takes
energy for each logit, and links to peers stay awake.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from joulemap.physics import (
    FLOPS_PER_MAC,
    OVERHEAD,
    ROUTED,
    UNPACKED,
    EnergyAction,
    Hardware,
    Quantity,
    extend_digest,
    name_pace,
    price_by,
    read_weight_format,
)
from joulemap.physics.interval.error_scale import find_thinnest
from joulemap.physics.record.quantity import Evidence
from joulemap.physics.record.reference import AWAKE_ACTION, WAIT_ACTION
from joulemap.physics.stream import UNIT_STREAM, join_units
from joulemap.physics.workload import MACHETE, MARLIN, STREAMED
from joulemap.system import frozen
from joulemap.wing.decoder.engine.stack import FP4
from joulemap.wing.decoder.network.decoder_pass import VERIFIED

if TYPE_CHECKING:
    from joulemap.wing.decoder.engine.stack import Stack
    from joulemap.wing.decoder.network.column import Asked
    from joulemap.wing.decoder.network.config import Decoder

MEMORIES: Final = ("LPDDR", "GDDR", "HBM", "DDR")
"""Memory technologies for which an engine's kernels may differ."""

VECTOR_ROWS: Final = 8
"""Maximum rows for which weight-streaming kernels compute a GEMM at memory speed; above, matrix kernels run.

Source: llama.cpp, ggml-cuda, MMVQ_MAX_BATCH_SIZE (recalled).
"""

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
    "fp32_share",
    "gemm_efficiency.matrix",
    "gemm_efficiency.dot_bf16",
    "gemm_efficiency.dot_int8",
)
"""Coefficients for the share of the peak that library GEMMs reach; 1 for engines with their own kernels."""

MANY_TOKENS: Final = 32.0
"""Tokens of a pass at which expert-parallel devices wait for 63 % of the longest time, `expert_wait`.

Source: as that coefficient (wing/decoder/engine/data/stack/vllm.toml).
"""

SCALES: Final = ("device_time_scale", "launch_time_scale")
"""Coefficients that multiply the times of kernels."""

UNPACKED_FORMAT: Final = "nf4"
"""Start of the names of weight formats that engines dequantize to memory.

Source: bitsandbytes, `matmul_4bit`, which Transformers, vLLM and SGLang call: a separate kernel for one row, else
`dequantize_4bit` and a 16-bit GEMM.
"""

FP8: Final = "fp8"
"""Precision whose weights Marlin unpacks to multiply them at 16 bits, as it does FP4 on any microarchitecture. Source:
vLLM, `marlin_utils_fp8.py` and `marlin_utils_fp4.py`."""

MARLIN_METHODS: Final = ("awq",)
"""Methods whose weights Marlin multiplies on every microarchitecture. Source: vLLM, `awq_marlin.py`; in issue 15809 an
H100 is 10 to 30 % faster than an A100 with AWQ and twice as fast with GPTQ."""

LINKS: Final = Quantity(
    value=36.0,
    unit="W",
    basis="measured",
    source="2 to 8 A100, vLLM of 2023 (splitwise-sim, commit 8f99e7d), 36 W per board: mean power error 15.6 -> 4.9 %; "
    "4 H100, vLLM of 2024 (LLM-Inference-Bench, commit 4211f5d), 44 W: 14.8 -> 3.4 % at 36. Other links are assumed "
    "equal",
    evidence=Evidence(sources=2, boards=2, models=2),
)
"""Power of a board's links while it has peers; links draw it regardless of traffic."""

LINKS_RATE: Final = 3e11
"""Bytes per second in one direction of the links of an A100, whose power is `LINKS`."""

MOST_LINKS: Final = 0.5
"""Maximum share that links take of the power between static power and cap; it binds only on caps below 150 W."""

WIDE: Final = frozenset(("bf16", "fp16"))
"""16-bit precisions."""

FEW, GATHERED, UNTILED, TILED = "few", "gathered", "untiled", "tiled"

Faster = Callable[["Hardware", "Hardware"], "Hardware"]
"""Function that returns the one of two chips on which a pass takes less time."""


def list_kinds(hardware: Hardware, backend: str = "") -> list[str]:
    """Return the names under which an engine may have separate numbers for a chip, the most specific first.

    They are the microarchitecture, its words from the last to the first, and the class. Each follows itself on the
    engine's backend, if one is named: `RDNA_vulkan`.
    """
    words = hardware.microarchitecture.split()
    kinds = [name_family(hardware), *words[::-1], hardware.architecture]
    return [name for one in kinds for name in (f"{one}_{backend}", one)] if backend else kinds


def name_family(hardware: Hardware) -> str:
    """Return the microarchitecture of a chip as one word."""
    return "".join(hardware.microarchitecture.split())


@frozen(kw_only=True)
class UnderEngine:
    """Modifier that puts a chip under an engine for one kind of pass."""

    stack: Stack
    precision: str
    weight_precision: str = ""
    is_routed: bool = False
    """True for a mixture of experts."""
    rows: int = 1
    """Rows of the pass's GEMMs: tokens of all its sequences and of its chunk."""
    is_prompt: bool = False
    """True if each sequence has a prompt in the pass; False for one or a few tokens after others."""
    has_chunk: bool = False
    """True if a piece of a prompt shares the pass with tokens that follow others."""
    peers: int = 1
    """Devices that work on the pass."""
    divides_experts: bool = False
    """True if devices hold different experts, and tokens are sent between them."""
    sends_tokens: bool = False
    """True if groups of devices with their own tokens send them to experts."""
    pass_key: str = ""
    """Pass of which `faster` chooses the way; empty without it."""
    faster: Faster | None = attrs.field(default=None, eq=False)

    @classmethod
    def of(cls, stack: Stack, decoder: Decoder, asked: Asked, **fields: Any) -> Self:
        """Return the modifier for a pass of a number of sequences on one device; `fields` has the other fields."""
        step, count = asked
        return cls(
            stack=stack,
            is_routed=decoder.is_routed,
            rows=step.tokens * count + step.chunk,
            is_prompt=step.tokens > VERIFIED,
            has_chunk=step.chunk > 0,
            peers=step.world,
            divides_experts=step.expert_devices > 1,
            sends_tokens=step.sends_tokens,
            **fields,
        )

    @property
    def word(self) -> str:
        """Word that the engine adds to the digest."""
        stack = self.stack
        numbers = [(name, one.value) for name, one in sorted(stack.coefficients.items())]
        limits = sorted({VECTOR_ROWS, 1, *(one for name, one in numbers if name.startswith("tiled_rows"))})
        tile = (self.rows,) if self.divides_experts else (sum(self.rows > one for one in limits), self.rows in limits)
        own = (numbers, stack.id, stack.streams, stack.experts, sorted(stack.packed.items()))
        flags = self.is_routed, self.is_prompt, self.has_chunk, self.peers, self.divides_experts, self.sends_tokens
        chosen = self.pass_key if 1 < self.rows <= VECTOR_ROWS else ""
        text = repr((own, self.precision, self.weight_precision, tile, flags, chosen))
        return f"|engine {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware as the engine's kernels and host use it for this kind of pass."""
        ways = self.list_ways(hardware)
        chips = [self.take(way, hardware) for way in ways]
        return chips[0] if len(chips) == 1 or self.faster is None else self.faster(*chips)

    def list_ways(self, hardware: Hardware) -> tuple[str, ...]:
        """Return the one or two ways in which the engine may run the pass; the faster one counts.

        llama.cpp's developers chose VECTOR_ROWS on NVIDIA boards, where integer products of more rows are no faster
        than those of fewer. On Radeon, 8 rows of nested formats do take longer than 16 (strix-halo-testing, commit
        5ee14b5).
        """
        whole = join_units(hardware)
        differs = self.stack.streams or self._compute_rate(whole) != 1.0
        tiled = self.stack.value("tiled_rows", *self._list_kinds(hardware))
        if differs and self.rows > VECTOR_ROWS:
            return (TILED,) if self.rows >= tiled else (UNTILED,)
        if self.rows == 1:
            return (FEW,)
        return (GATHERED, TILED) if differs and not tiled and INTEGER in whole.peaks else (GATHERED,)

    def take(self, way: str, hardware: Hardware) -> Hardware:
        """Return the hardware for one of `list_ways`."""
        few = self._stream(hardware)
        if way == TILED:
            chip = self._tile(few)
        else:
            chip = few if way == FEW else self._gather(few)
            chip = chip if way != UNTILED else self._untile(chip, self._tile(few))
        times = self._add_times(hardware, few)
        return attrs.evolve(
            chip,
            compiler=None if self.stack.compiles_all else chip.compiler,
            kernels=self._name_kernels(hardware, is_tiled=way == TILED),
            coefficients={**chip.coefficients, **self._scale_times(hardware), **times},
            reference=chip.reference.with_actions(self._add_actions(hardware, times)),
            described_digest=hardware.described_digest or hardware.digest,
            digest=extend_digest(hardware.digest, self.word),
        )

    def links_w(self, hardware: Hardware) -> float:
        """Return the power in watts of one device's links while it has peers, regardless of traffic.

        It grows with the rate of the links up to `LINKS_RATE`. PCIe takes none, nor does a bridge of two boards in a
        group of more.
        """
        links = (one for one in hardware.peer_links if one.connects == "device")
        joined = (one.bandwidth.value for one in links if one.topology != "pair" or self.peers == 2)
        rate = max(joined, default=0.0) if self.peers > 1 else 0.0
        return LINKS.value * min(1.0, rate / LINKS_RATE)

    def _list_kinds(self, hardware: Hardware) -> list[str]:
        return list_kinds(hardware, self.stack.backend)

    def _kinds(self, hardware: Hardware) -> tuple[str, ...]:
        """Return the names under which the engine has rates of matrix kernels."""
        *words, architecture = self._list_kinds(hardware)
        routed = [f"experts_{one}" for one in (*words, architecture)] if self.is_routed else []
        return (*routed, *words, f"{architecture}_{self.precision}", architecture)

    def _memory_kinds(self, hardware: Hardware) -> list[str]:
        """Return the names under which an engine may have separate numbers for this memory technology."""
        memory = next((one for one in MEMORIES if hardware.memory_type.startswith(one)), "")
        *words, architecture = self._list_kinds(hardware)
        return [*(f"{memory}_{word}" for word in words), architecture, memory]

    def _compute_rate(self, hardware: Hardware, name: str = "compute_rate") -> float:
        """Return a rate of matrix kernels, by the engine's factor for prompts on its backend."""
        kinds = self._kinds(hardware)
        return self.stack.value("prompt_rate", *kinds) * self.stack.value(name, *kinds)

    def _stream(self, hardware: Hardware) -> Hardware:
        """Return the hardware for passes of few rows, whose kernels stream weights.

        The memory capacity is unlimited here; `Room` checks beforehand how many sequences fit.
        """
        whole, kinds = join_units(hardware), self._list_kinds(hardware)
        rate = self.stack.value("memory_rate", *self._memory_kinds(hardware))
        bits, nested, _ = self.weight_precision.partition(K_QUANT)
        units = (f"{whole.unit_name}_{bits}{nested}", whole.unit_name)  # SM_q3_k, then SM
        unit_bytes = self.stack.value("unit_stream", *kinds, *units)
        budget_w = whole.tdp.value - whole.static_power.value
        links_w = min(self.links_w(hardware), MOST_LINKS * budget_w)  # the board's cap includes its links
        few = attrs.evolve(
            whole,
            tdp=attrs.evolve(whole.tdp, value=whole.tdp.value - links_w),
            memory_bandwidth=scale(
                whole.memory_bandwidth, rate, self._find_evidence("memory_rate", *self._memory_kinds(hardware))
            ),
        )
        own: dict[str, Quantity] = {}
        if unit_bytes:
            own[UNIT_STREAM] = self._quote(unit_bytes, "unit_stream", *kinds, *units)
        formats = [f"{one}{K_QUANT}" for one in kinds[:-1] if K_QUANT in self.weight_precision]
        slots = self.stack.value("stream_slots", *formats)
        if slots and (streamed := few.coefficients.get(STREAMED_SLOTS)):
            own[STREAMED_SLOTS] = attrs.evolve(
                self._quote(slots, "stream_slots", *formats, unit=streamed.unit), note=streamed.note
            )
        return attrs.evolve(few, coefficients={**few.coefficients, **own}) if own else few

    def _tile(self, few: Hardware) -> Hardware:
        """Return the hardware for passes of many rows, each GEMM at the rate that the engine's kernels reach.

        Kernels that multiply integers, or accumulate 16-bit GEMMs in 16 bits, scale with the int8 rate, also on chips
        whose only floating-point products are fp32. Gaming boards accumulate in 32 bits at half that rate.
        """
        kinds, compute = self._kinds(few), self._compute_rate(few)
        if compute == 1.0:
            return few
        integer = self._compute_rate(few, "integer_rate")
        plain = 1.0 if self.weight_precision else self.stack.value("plain_rate", *kinds)
        known = find_thinnest(self._find_evidence(name, *kinds) for name in ("compute_rate", "prompt_rate"))
        peaks = {name: attrs.evolve(peak, rate=scale(peak.rate, compute, known)) for name, peak in few.peaks.items()}
        if integer and (eighth := few.peaks.get(INTEGER)):
            known = find_thinnest(self._find_evidence(name, *kinds) for name in ("integer_rate", "prompt_rate"))
            reached = scale(eighth.rate, integer * plain, known)
            wide = WIDE & peaks.keys() or {"fp32"} & peaks.keys()
            peaks |= {name: attrs.evolve(peaks[name], rate=reached) for name in wide}
        own = {name: one for name, one in few.coefficients.items() if name in LIBRARY_SHARES}
        own = {name: attrs.evolve(one, value=1.0) for name, one in own.items()}  # the engine has own kernels
        return attrs.evolve(few, peaks=peaks, coefficients={**few.coefficients, **own})

    def _gather(self, few: Hardware) -> Hardware:
        """Return the hardware for passes with several rows, but few.

        Experts read their weights at another share of the bandwidth there, because their tokens are gathered first.
        """
        share = self.stack.value("expert_stream", *self._list_kinds(few)) if self.is_routed else 1.0
        if share == 1.0:
            return few
        stream = few.coefficients[EXPERT_STREAM]
        own = {f"{EXPERT_STREAM}.{self.stack.experts}": attrs.evolve(stream, value=stream.value * share)}
        return attrs.evolve(few, coefficients={**few.coefficients, **own})

    def _untile(self, chip: Hardware, many: Hardware) -> Hardware:
        """Return a chip on which GEMMs without tiles are as fast as GEMMs with full tiles; experts wait for memory."""
        slots_hz = many.unit_count.value * many.clock.value * many.geometry["issue_slots_per_unit"].value
        slots = slots_hz * FLOPS_PER_MAC / many.peaks[self.precision].rate.value
        own = {STREAMED_SLOTS: attrs.evolve(many.coefficients[STREAMED_SLOTS], value=slots)}
        return attrs.evolve(chip, coefficients={**chip.coefficients, **own})

    def _name_kernels(self, hardware: Hardware, *, is_tiled: bool) -> str:
        """Return the kernel families of GEMMs with weights, cut into full tiles or not, as `Hardware.kernels`."""
        streamed = STREAMED if self.stack.streams and not is_tiled else ""
        unpacked = UNPACKED if self.weight_precision.startswith(UNPACKED_FORMAT) else ""
        named = {
            "linear": f"{streamed} {unpacked or self._find_packed(hardware)}".strip(),
            ROUTED[0]: f"{self.stack.experts} {streamed}".strip(),
        }
        return ", ".join(f"{operation}={words}" for operation, words in named.items() if words)

    def _find_packed(self, hardware: Hardware) -> str:
        """Return the word of the kernel that unpacks integer weights in a GEMM's registers; empty if there is none."""
        if not self.weight_precision or self.precision not in WIDE:
            return ""
        words = {"marlin": MARLIN, "machete": MACHETE}
        weights, packed = read_weight_format(self.weight_precision), self.stack.packed
        kernel = next((packed[word] for word in self._list_kinds(hardware) if word in packed), "")
        if not weights.is_packed:
            takes = weights.precision == FP4 or (weights.precision == FP8 and words.get(kernel) == MARLIN)
            return MARLIN if kernel and takes else ""
        return MARLIN if kernel and weights.method in MARLIN_METHODS else words.get(kernel, "")

    def _find_pace(self, hardware: Hardware) -> float:
        """Return the factor on device time from the chip's calibration for this engine."""
        pace = hardware.coefficients.get(name_pace(self.stack.name, is_prompt=self.is_prompt))
        return 1.0 if pace is None else pace.value

    def _scale_times(self, hardware: Hardware) -> dict[str, Quantity]:
        """Return the coefficients that scale kernel times, by the engine's factor for this chip and by its pace.

        Factors of mixtures were measured where each device computes all tokens, which share experts.
        """
        name = name_family(hardware)
        kinds = (f"experts_{name}", "experts") if self.is_routed and not self.sends_tokens else ()
        factor = self.stack.value("device_time", *kinds, name) * self._find_pace(hardware)
        known = self._find_evidence("device_time", *kinds, name)
        return {} if factor == 1.0 else {one: scale(hardware.coefficients[one], factor, known) for one in SCALES}

    def _add_times(self, hardware: Hardware, few: Hardware) -> dict[str, Quantity]:
        """Return the coefficients of a pass's overhead, in seconds per count."""
        kinds, pace = self._list_kinds(hardware), self._find_pace(hardware)
        kind = self.weight_precision or self.precision
        routed = [f"experts_{one}" for one in (kind.partition("_")[0], *kinds)] if self.is_routed else []
        has_prompt = self.is_prompt or self.has_chunk
        launched = (*([*(f"prompt_{one}" for one in kinds), "prompt"] if has_prompt else routed), kind)
        launched = tuple(dict.fromkeys(name for one in launched for name in (one, one.partition(":")[0])))
        stack, byte_s = self.stack, 1.0 / few.memory_bandwidth.value
        layers = (f"{name_family(hardware)}_{self.precision}", *self._memory_kinds(hardware), *kinds)
        layers = (*(["prompt"] if has_prompt else []), *layers)
        factors = {
            "layer": (pace, "layer_time", layers),
            "recurrent": (pace, "recurrent_time", tuple(kinds)),
            "expert_wait": (-math.expm1(-self.rows / MANY_TOKENS), "expert_wait", ()),
            "score_prompt": (pace * byte_s, "score_bytes", tuple(kinds)),
            "score_answer": (pace * byte_s, "score_bytes", (*(f"{one}{ANSWER}" for one in kinds), *kinds)),
            "launch_layer": (1.0, "host_layer", launched),
            "launch_expert": (1.0, "host_expert", launched),
            "launch_delta": (1.0, "host_delta", ()),
            "sequence": (1.0, "host_sequence", tuple(kinds)),
            "state": (1.0, "state_time", ()),
        }
        return {
            f"{OVERHEAD}.{name}": self._quote(factor * value, called, *named, unit="s")
            for name, (factor, called, named) in factors.items()
            if (value := stack.value(called, *named))
        }

    def _add_actions(self, hardware: Hardware, times: Mapping[str, Quantity]) -> list[EnergyAction]:
        """Return the energies of a pass's overhead; `times` are those of `_add_times`."""
        kinds, actions = self._list_kinds(hardware), []
        for name, own in (("layer", kinds), ("expert_wait", ["experts", *kinds])):
            seconds = times.get(f"{OVERHEAD}.{name}")
            if seconds is not None and (share := self.stack.value("gap_power", *own)):
                energy = self._quote(share * hardware.tdp.value * seconds.value, "gap_power", *own, unit="J")
                actions.append(_price((OVERHEAD, name), energy, "board", "control", "layer", "layers of a pass"))
        if gap := self.stack.value("gap_power", *kinds):
            power = self._quote(gap * hardware.tdp.value, "gap_power", *kinds, unit="W")
            actions.append(_price(WAIT_ACTION, power, "board", "control", "s", "time that the host adds"))
        if sample := self.stack.value("sample_energy"):
            energy = self._quote(sample, "sample_energy", unit="J")
            key = (OVERHEAD, "logit")
            actions.append(_price(key, energy, "board", "control", "logit", "logits of sampled tokens"))
        if awake_w := self.links_w(hardware):
            power = scale(LINKS, awake_w / LINKS.value)
            actions.append(_price(AWAKE_ACTION, power, "communication", "memory", "s", "time of a pass with peers"))
        return actions

    def _find_evidence(self, name: str, *kinds: str) -> Evidence | None:
        """Return the measurements behind one of the engine's numbers; None for a default or a number without any."""
        number = self.stack.find(name, *kinds)
        return None if number is None else number.evidence

    def _quote(self, value: float, name: str, *kinds: str, unit: str = "B") -> Quantity:
        """Return a number that follows from one of the engine's, with its basis and source."""
        number = self.stack.find(name, *kinds)
        return Quantity(
            value=value,
            unit=unit,
            basis="assumed" if number is None else number.basis,
            source=f"{self.stack.id}, {name}" + ("" if number is None else f": {number.source}"),
            evidence=None if number is None else number.evidence,
        )


def scale(quantity: Quantity, by: float, evidence: Evidence | None = None) -> Quantity:
    """Return a quantity with its value multiplied by `by`, a number with this evidence."""
    return attrs.evolve(quantity, value=quantity.value * by, evidence=evidence or quantity.evidence)


def _price(key: tuple[str, str], price: Quantity, category: str, part: str, per: str, count: str) -> EnergyAction:
    return price_by(price, key, category=category, common_category=category, part=part, per=per, count_formula=count)
