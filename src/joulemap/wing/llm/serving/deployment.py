"""Model on devices under a serving stack: passes evaluated as workloads of one device, then summed over all devices.

`chip` puts the chip under the engine, so that a pass contains the engine's overhead. A run of the same pass has the
same time and the same ledger. Pipeline stages work one after another, each on the b sequences of a batch:

    pass   = (stages - 1) inner stages + the last one           each with the activations it receives over the link
    joules = devices x joules of one, and idle power of the stages that wait

Some engines split a batch into m parts, at most one per stage, and work on all of them at once. One token of each
sequence then takes the time of one pass of b / m sequences. With fewer parts than stages, some stages wait. Consecutive
prefill passes are parts too: k of them take the time of (k + stages - 1) / stages passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from joulemap.physics import Floats, Hardware, Together, Total, WorkloadColumns, find_path, find_send
from joulemap.system import FJ_PER_J, FS_PER_S, UnsupportedError, define, frozen
from joulemap.wing.decoder import VERIFIED, Asked, DecoderPass, UnderEngine, count_stage, pass_columns, scale
from joulemap.wing.llm.serving.surface import Cost, Passes, Surface, count_accepted

if TYPE_CHECKING:
    from joulemap.wing.decoder import Decoder, Stack

UNLIMITED: Final = 1e6
"""Factor that makes memory capacity unlimited here; `Room` checks beforehand how many sequences fit."""


@define(eq=False)
class PassWorkloads:
    """Workloads of one model's passes, built once for all hardware."""

    decoder: Decoder
    _works: dict[Asked, WorkloadColumns] = attrs.field(factory=dict, init=False)
    _together: dict[tuple[Asked, ...], Together] = attrs.field(factory=dict, init=False)

    def describe(self, asked: Sequence[Asked]) -> Together:
        """Return the workloads of passes; intermediate results are cached."""
        key = tuple(asked)
        if key not in self._together:
            missing = [one for one in asked if one not in self._works]
            self._works |= self._describe(missing)
            self._together[key] = Together(tuple(self._works[one] for one in asked))
        return self._together[key]

    def release(self) -> None:
        """Drop results cached for groups of passes; single passes stay cached."""
        self._together.clear()

    def _describe(self, asked: Sequence[Asked]) -> dict[Asked, WorkloadColumns]:
        if not self.decoder.is_traced:
            return pass_columns(self.decoder, asked, is_folded=True)
        from joulemap.wing.decoder import TracedDecoder

        assert isinstance(self.decoder, TracedDecoder)
        return self.decoder.describe(asked)


def _take_faster(first: Total, second: Total) -> Total:
    """Return the cost of a pass in the faster of two ways."""
    if first.latency_fs is None or second.latency_fs is None:
        return first
    return min(first, second, key=lambda one: one.latency_fs or 0)


def _count() -> Any:
    """Return the field of a number of devices or groups of them, at least 1."""
    return attrs.field(default=1, validator=attrs.validators.ge(1))


@frozen(kw_only=True, eq=False)
class Deployment:
    """Model on all devices that serve it; implements `Surface`."""

    workloads: PassWorkloads
    hardware: Hardware
    """Hardware at its power mode and measurement boundary, calibrated."""
    stack: Stack
    precision: str
    weight_precision: str = ""
    cache: str = ""
    """KV cache precision; empty for the precision of the run."""
    devices: int = _count()
    """Tensor-parallel devices."""
    expert_devices: int = _count()
    data_devices: int = _count()
    stages: int = _count()
    """Pipeline-parallel stages, each with equally many devices."""
    micro_batches: int = _count()
    """Parts of a batch that overlap the exchange of tokens with experts with computation."""
    busiest: int = 100
    """Tokens for experts of the busiest expert-parallel device, in percent of the mean."""
    compiled_tokens: float = 0.0
    """Sequence length that passes were compiled for; attention always covers the full length."""
    totals: dict[Asked, Total] | None = None
    """Pass -> its time and energy on one device, shared by deployments of one model, chip, precision and engine.

    None to cache nothing.
    """

    @property
    def decoder(self) -> Decoder:
        """Decoder that this deployment serves."""
        return self.workloads.decoder

    @property
    def world(self) -> int:
        """Total number of devices."""
        return self.devices * self.data_devices * self.stages

    @property
    def step_tokens(self) -> int:
        """Maximum tokens of a pass."""
        return self.stack.limit("step_tokens", self.hardware)

    @property
    def sequence_limit(self) -> int:
        """Maximum sequences in progress."""
        return self.stack.limit("sequence_limit", self.hardware)

    @property
    def division(self) -> dict[str, Any]:
        """Arguments of a pass that state how it is divided among devices, and how its cache is stored."""
        return {
            "devices": self.devices,
            "expert_devices": self.expert_devices,
            "data_devices": self.data_devices,
            "pipeline_devices": self.stages,
            "micro_batches": self.micro_batches,
            "busiest": self.busiest,
            "cache": self.cache,
        }

    @property
    def waiting_w(self) -> float:
        """Power of all devices in watts while they wait for the host."""
        return self.world * self.hardware.waiting_w

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests, with the model loaded."""
        return self.world * self.hardware.resting_w

    @cached_property
    def unlimited(self) -> Hardware:
        """The chip with memory for any number of sequences."""
        return attrs.evolve(self.hardware, memory_capacity=scale(self.hardware.memory_capacity, UNLIMITED))

    def put_under(self, asked: Asked) -> UnderEngine:
        """Return the engine as a modifier of the chip, for a pass of one device."""
        return UnderEngine.of(
            self.stack, self.decoder, asked, precision=self.precision, weight_precision=self.weight_precision
        )

    def price(self, passes: Passes, /) -> Cost:
        """Return the cost of passes; UnsupportedError if hardware cannot run them, UsageError for an invalid pass.

        A prompt chunk counts as its mean share on each data-parallel rank. `Room` tells which passes fit in memory.
        """
        shape, passes = passes.shape, passes.flatten()
        parts, asked = self._cut(passes), self.ask(passes)
        seconds, drawn_s, joules = self._work(asked)
        if self.stages > 1:
            before = self._work([(attrs.evolve(step, logits="none"), count) for step, count in asked])
            size = count_stage(self.decoder, self.stages)
            # number of stages before the last, in units of the last stage's layers
            more = (self.decoder.layer_count - size) / size
            seconds, drawn_s, joules = (
                last + more * one for last, one in zip((seconds, drawn_s, joules), before, strict=True)
            )
        most = self.stages if self.stack.fills_stages or self.stack.find("chained_passes") else 1
        chained = np.minimum(passes.following, self.stack.value("chained_passes"))
        seconds = seconds * np.where(parts > 0.0, 1.0, (chained + most - 1.0) / chained / most)
        seconds, parts = seconds * self.micro_batches, np.maximum(parts, 1.0) * self.micro_batches
        idle_s = self.stages * seconds - parts * drawn_s  # while other stages work
        each_j = parts * joules + self._idle_w * idle_s
        joules = self.devices * self.data_devices * each_j
        return Cost(seconds=seconds.reshape(shape), joules=joules.reshape(shape))

    @property
    def links_w(self) -> float:
        """Power in watts of one device's links while it has peers in a stage."""
        return self.put_under(self._ask(1.0, 1.0, 0.0, 0.0, 0.0)).links_w(self.hardware)

    @property
    def _idle_w(self) -> float:
        """Power in watts of one device that waits for other stages, with the links to its peers."""
        return self.hardware.waiting_w + self.links_w * self.hardware.around_factor

    def ask(self, passes: Passes) -> list[Asked]:
        """Return each pass as one device runs it, with sizes rounded to integers, and its number of sequences."""
        parts = np.maximum(self._cut(passes), 1.0) * self.micro_batches
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
        totals = self.evaluate(asked)
        return (
            np.array([one.latency_fs or 0 for one in totals]) / FS_PER_S,
            np.array([one.interval_fs or 0 for one in totals]) / FS_PER_S,
            np.array([one.energy_fj or 0 for one in totals]) / FJ_PER_J,
        )

    def evaluate(self, asked: Sequence[Asked]) -> tuple[Total, ...]:
        """Return the cost of passes on one device; raise as `price` does."""
        known = {} if self.totals is None else self.totals
        groups: dict[str, tuple[UnderEngine, list[Asked]]] = {}
        for one in dict.fromkeys(asked):
            if one not in known:
                under = self.put_under(one)
                groups.setdefault(under.word, (under, []))[1].append(one)
        for under, some in groups.values():
            totals, *others = (
                self._evaluate(some, self._share_cap(under, under.take(way, self.unlimited)))
                for way in under.list_ways(self.unlimited)
            )
            for other in others:
                totals = tuple(map(_take_faster, totals, other))
            known.update(zip(some, totals, strict=True))
        costs = tuple(known[one] for one in asked)
        refusal = next((one.refusal for one in costs if one.refusal), None)
        if refusal:
            raise UnsupportedError.of(refusal)
        return costs

    def _share_cap(self, under: UnderEngine, chip: Hardware) -> Hardware:
        """Return the chip with the power limit for one of its token passes, if it waits while other stages work.

        A board holds its mean power over many tokens at its limit: it may draw more while it works, at idle power
        otherwise.
        """
        if under.is_prompt or under.has_chunk or self.stack.fills_stages:
            return chip
        static_w = chip.static_power.value
        limit_w = static_w + self.stages * (chip.tdp.value - static_w)
        return attrs.evolve(chip, tdp=attrs.evolve(chip.tdp, value=limit_w))

    def _evaluate(self, asked: Sequence[Asked], chip: Hardware) -> tuple[Total, ...]:
        together = self.workloads.describe(asked)
        return tuple(
            together.evaluate(chip, self.precision, self.stack.runtime, weight_precision=self.weight_precision)
        )

    def _ask(self, sequences: float, tokens: float, context: float, chunk: float, chunk_context: float) -> Asked:
        """Return the pass nearest to the given sizes that has integer sizes."""
        is_verified = sequences > 0.0 and context > 0.0 and tokens <= VERIFIED
        if sequences <= 0.0:
            sequences, tokens, context, chunk, chunk_context = 1.0, chunk, chunk_context, 0.0, 0.0
        size = max(1, round(tokens))
        step = DecoderPass(
            tokens=size,
            cached=max(0, round(context), round(self.compiled_tokens) - size),
            logits="all" if size > 1 and (self.stack.all_logits or is_verified) else "last",
            chunk=max(0, round(chunk)),
            chunk_cached=max(0, round(chunk_context)) if round(chunk) > 0 else 0,
            **self.division,
            routing=self.stack.choose_routing(self.expert_devices, self.weight_precision or self.precision),
            engine=self.stack.id,
        )
        return step, max(1, round(sequences))


@frozen(kw_only=True, eq=False)
class Draft:
    """Draft model and acceptance rate for speculative decoding."""

    guessed_tokens: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Tokens guessed per sequence and step, in addition to the verified token; 0 without speculative decoding."""
    acceptance: float = attrs.field(default=0.0, validator=(attrs.validators.ge(0.0), attrs.validators.le(1.0)))
    """Probability that a guess is accepted, given that all guesses before it were."""
    later: tuple[float, ...] = ()
    """Acceptance of the second and later guesses; empty if it is `acceptance` for all."""
    deployment: Deployment | None = None
    """Deployment of the draft model; None if guesses cost nothing, such as guesses that are looked up in the prompt."""

    @property
    def accepted_tokens(self) -> float:
        """Mean tokens gained per sequence and step, including the verified token."""
        return count_accepted(self.guessed_tokens, self.acceptance, self.later)


@frozen(kw_only=True, eq=False)
class Guessing:
    """Surface with speculative decoding: decode passes also verify guessed tokens."""

    surface: Surface
    draft: Draft

    @property
    def waiting_w(self) -> float:
        """Power of all devices in watts while they wait within a pass."""
        return self.surface.waiting_w

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests."""
        return self.surface.resting_w

    def price(self, passes: Passes, /) -> Cost:
        """Return the cost of passes; decode passes include the draft passes before them."""
        is_answer = (passes.tokens == 1.0) & (passes.sequences > 0.0)
        guessed = np.where(is_answer, self.draft.guessed_tokens, 0.0)
        whole = self.surface.price(attrs.evolve(passes, tokens=passes.tokens + guessed))
        guess = self.draft.deployment
        if guess is None:
            return whole
        once = guess.price(passes)
        again = guess.price(attrs.evolve(passes, chunk=np.zeros_like(passes.chunk)))
        more = np.maximum(guessed - 1.0, 0.0)
        seconds = once.seconds + more * again.seconds
        waiting = (self.waiting_w - guess.waiting_w) * seconds
        return Cost(seconds=whole.seconds + seconds, joules=whole.joules + once.joules + more * again.joules + waiting)


NO_DRAFT: Final = Draft()
"""No speculative decoding: each step adds one token to a sequence."""


def guess(surface: Surface, draft: Draft) -> Surface:
    """Return a surface with speculative decoding; `surface` itself without guessed tokens."""
    return Guessing(surface=surface, draft=draft) if draft.guessed_tokens else surface


def check_links(chip: Hardware, devices: int, groups: int, world: int, *, has_experts: bool) -> None:
    """Raise UnsupportedError for a chip whose links do not join so many devices of a stage, or of all stages. Groups of
    devices that send tokens to experts may be on several hosts.
    """
    joined = devices * groups
    for count, stride in ((devices, 0), (joined, int(has_experts))):
        if count > 1:
            find_path(chip, count, stride)
    if world > joined:
        find_send(chip, world)
