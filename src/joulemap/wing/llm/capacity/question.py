"""Question about a served model: the model, its requests, its engine, and the passes that describe it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask import Scope
from joulemap.domain import SERVED, Settings
from joulemap.physics import Hardware, Precision, read_weight_format
from joulemap.system import UsageError, define
from joulemap.wing.decoder import (
    FP4,
    SIXTEEN_BITS,
    VERIFIED,
    WIDE,
    Decoder,
    DecoderPass,
    Stack,
    check_devices,
    drop_arguments,
    find_pass,
)
from joulemap.wing.llm.serving.deployment import NO_DRAFT, Deployment, Draft, PassWorkloads
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.show.word import NO_METHOD

if TYPE_CHECKING:
    from joulemap.plan import Plan, PlannedRun
    from joulemap.store import Connection
    from joulemap.wing.llm.serving.memory import Room

HARDWARE: Final = ("h100_sxm5", "h200_sxm", "b200_sxm", "mi300x", "gaudi3", "tpu_v6e")
"""Default hardware, on which models of all sizes are served."""


TITLED: Final = ("quantization_config", "model_type", "not read")
"""Beginnings of the notes on a model that the title includes."""

ACTIVATIONS: Final[tuple[Precision, ...]] = (*SIXTEEN_BITS, WIDE)
"""Precisions of activations to choose from if none is given, the preferred precision first."""


@define(kw_only=True, slots=False, eq=False)
class Question:
    """Question about a served model: the model, its serving parameters and the engine."""

    decoder: Decoder
    stack: Stack
    serving: Serving
    asked: Settings = SERVED
    """Settings of hardware and precisions, as the user stated them."""
    guesser: Decoder | None = None
    """Draft model for speculative decoding; None without one."""
    takes_published: bool = False
    """True if neither activation nor weight precision is given, so that each chip runs the checkpoint as published."""
    is_published: bool = False
    """True if the checkpoint runs in its own formats, chosen by each chip or, in GGUF files, by the model."""
    chooses_precision: bool = False
    """True if no activation precision is given, so that each chip runs the first usual one that it has."""
    alike: Mapping[str, int] = attrs.field(factory=dict)
    """Chip -> number of such devices in a requested box, which serve the model together."""
    workloads: PassWorkloads = attrs.field(
        default=attrs.Factory(lambda self: PassWorkloads(self.decoder), takes_self=True), repr=False
    )
    """Workloads of the model's passes, built once for all hardware and divisions."""
    guesser_workloads: PassWorkloads | None = attrs.field(
        default=attrs.Factory(lambda self: self.guesser and PassWorkloads(self.guesser), takes_self=True), repr=False
    )
    """Workloads of the draft model's passes."""

    def find_scope(self, whole: Plan, connection: Connection, run_ids: Sequence[int]) -> Scope:
        """Return the scope of stored passes, with the settings as stated; `whole` is the plan of all configurations."""
        return Scope.of_plan(attrs.evolve(whole, settings=self.asked), connection, run_ids)

    def change(self, **serving: Any) -> Question:
        """Return the question with other serving parameters."""
        return attrs.evolve(self, serving=attrs.evolve(self.serving, **serving))

    def draft(self, deployment: Deployment) -> Draft:
        """Return the draft model of a deployment: divided like the model, or whole on one device."""
        serving = self.serving
        if serving.speculate is None or serving.acceptance is None:
            return NO_DRAFT
        return Draft(
            guessed_tokens=serving.speculate,
            acceptance=serving.acceptance,
            later=serving.later_acceptance,
            deployment=self._deploy_guesser(deployment),
        )

    def _deploy_guesser(self, deployment: Deployment) -> Deployment | None:
        if self.guesser is None or self.guesser_workloads is None:
            return None
        quick = deployment.stack.without_host_sequence
        guess = attrs.evolve(deployment, workloads=self.guesser_workloads, stack=quick, stages=1, totals=None)
        try:
            check_devices(self.guesser, guess.devices, guess.expert_devices, guess.data_devices)
        except UsageError:
            return attrs.evolve(guess, devices=1, expert_devices=1, data_devices=1)
        return guess

    @property
    def named_fp4(self) -> str:
        """FP4 format that is asked for without a precision of activations; empty without one."""
        named = () if self.asked.precision else self.asked.weight_precision
        is_one = len(named) == 1 and read_weight_format(named[0]).precision == FP4
        return named[0] if is_one else ""

    @property
    def context(self) -> int:
        """Number of tokens of a sequence after its last output token."""
        return self.serving.longest_prompt + self.serving.output

    @property
    def steps(self) -> int:
        """Decode steps of a request; prefill yields the first token."""
        return max(self.serving.output - 1, 1)

    def describe_stored(self) -> str:
        """Return a note on the checkpoint's published format, which follows the precision in a title; empty for 16
        bits.
        """
        published = self.decoder.published
        notes = self.describe_unknown()
        if published is None or not (published.weights or published.doubt):
            return notes
        if not published.weights:
            return f"; {published.doubt}{notes}"
        doubt = f"; {published.doubt}" if published.doubt else ""
        stored = f" as published{doubt}" if self.takes_published else f" (published with {published.describe()})"
        return f"{stored}{notes}"

    def describe_unknown(self) -> str:
        """Return the notes on what of the checkpoint's settings is not known or not read, for a title."""
        return "".join(f"; {note}" for note in self.decoder.notes if note.startswith(TITLED))

    def check(self) -> None:
        """Raise UsageError for a context longer than the model's maximum."""
        most = self.decoder.context_length
        if most and self.context > most:
            tokens = f"{self.serving.longest_prompt:,} + {self.serving.output:,}"
            ways = "--prompt, --output or --turns" if self.serving.turns > 1 else "--prompt or --output"
            raise UsageError(f"{self.decoder.name}: {tokens} tokens exceed its context of {most:,}; lower {ways}")

    def count_prefills(self, batch: int, step_tokens: int) -> int:
        """Return the number of passes of at most `step_tokens` tokens that the prompts of a batch take; a prompt longer
        than a pass has several chunks.
        """
        chunks = -(-self.serving.prompt // step_tokens)
        return -(-batch // self._join(batch, step_tokens)) * chunks

    def _join(self, batch: int, step_tokens: int) -> int:
        """Return the number of a batch's prompts that fit in one pass."""
        return min(batch, max(1, step_tokens // self.serving.prompt))

    def prefill_key(self, devices: int, batch: int, step_tokens: int, routing: str = "") -> tuple[str, int]:
        """Return the name and the batch size of the prefill pass of a batch, on one of `devices` devices.

        A pass has at most `step_tokens` tokens. Of a prompt longer than a pass, it is the middle chunk: costs grow
        linearly with the tokens before a chunk.
        """
        prompt = self.serving.prompt
        chunk = min(prompt, step_tokens)
        return self._name(devices, chunk, (prompt - chunk) // 2, "last", routing), self._join(batch, step_tokens)

    def decode_key(self, devices: int, batch: int, routing: str = "") -> tuple[str, int]:
        """Return the name and the batch size of the decode step at half the output.

        With several pipeline stages or micro-batches, the batch size counts the sequences of one.
        """
        context = self.serving.prompt + self.serving.output // 2
        parts = min(self.divide_stages(devices)[1], batch) if self.stack.fills_stages else 1
        parts, guessed = parts * self.serving.micro_batches, self.serving.speculate or 0
        return self._name(devices, 1 + guessed, context, "all" if guessed else "last", routing), -(-batch // parts)

    def find_routing(self, point: Mapping[str, str]) -> str:
        """Return the routing of passes at the precisions of a run, as arguments of passes name it."""
        return self.stack.choose_routing(self.serving.expert_devices, point["weight_precision"] or point["precision"])

    def _name(self, devices: int, tokens: int, cached: int, logits: str, routing: str) -> str:
        serving, (tensor_devices, stages) = self.serving, self.divide_stages(devices)
        step = DecoderPass(
            tokens=tokens,
            cached=cached,
            logits=logits,
            devices=tensor_devices,
            **serving.division,
            pipeline_devices=stages,
            cache=serving.cache,
            routing=routing,
            engine="" if self.decoder.is_traced else self.stack.id,
        )
        return step.spell(self.decoder.name, is_whole=self.decoder.is_traced)

    def deploy(self, run: PlannedRun, target: Hardware, devices: int, weight_precision: str = "") -> Deployment:
        """Return the model deployed on `devices` devices; UsageError if it cannot be divided that way."""
        serving, precision = self.serving, run.point["precision"]
        tensor_devices, stages = self.divide_stages(devices)
        check_devices(self.decoder, tensor_devices, serving.expert_devices, serving.data_devices, stages)
        weights = weight_precision or run.point["weight_precision"]
        return Deployment(
            workloads=self.workloads,
            hardware=target,
            stack=self.stack,
            precision=precision,
            weight_precision="" if weights == precision else weights,
            cache=serving.cache,
            devices=tensor_devices,
            **serving.division,
            stages=stages,
            compiled_tokens=self.context if self.stack.compiles else 0.0,
        )

    def divide(self, hardware: str) -> tuple[int, ...]:
        """Return the number of tensor-parallel devices, as the only element, if a box of this chip is requested; else
        empty.

        Raise UsageError if data-parallel groups and pipeline stages do not divide the devices of the box.
        """
        count = self.alike.get(hardware, 0)
        if count % self.beside:
            raise UsageError(f"{count} {hardware} cannot be divided into {self.beside} equal groups and stages")
        return (count // self.beside,) if count else ()

    def divide_stages(self, devices: int) -> tuple[int, int]:
        """Return the tensor-parallel devices of a stage and the number of stages of a server, without its groups."""
        return self.stack.divide(devices, self.serving.pipeline_devices)

    def is_one_run(self, devices: int) -> bool:
        """Return whether one run represents a pass: without pipeline stages, micro-batches and a draft model."""
        serving = self.serving
        return self.divide_stages(devices)[1] == serving.micro_batches == 1 and serving.speculate is None

    @property
    def beside(self) -> int:
        """Devices per tensor-parallel device: data-parallel groups times pipeline stages."""
        return self.serving.data_devices * self.serving.pipeline_devices

    def count_sequences(self, room: Room) -> int:
        """Return the number of requests that device memory holds to their end."""
        each = room.cache(self.context)
        held = room.free / each if each else math.inf
        return max(0, math.floor(min(held, room.states, room.deployment.sequence_limit)))


def choose_activations(question: Question, target: Hardware) -> Precision:
    """Return the precision of activations on this hardware if none is given: as published, that at which the engine
    multiplies named FP4 weights, or 16 bits.
    """
    if question.takes_published or question.named_fp4:
        return question.decoder.choose_precision(target, question.stack, question.named_fp4)[0]
    return next((one for one in ACTIVATIONS if one in target.peaks), SIXTEEN_BITS[0])


def check_methods(question: Question, weight_precisions: Sequence[str]) -> None:
    """Raise UsageError for weights of a quantization method whose checkpoints the engine does not run."""
    stack = question.stack
    for name in weight_precisions:
        method = read_weight_format(name).method
        if method and stack.methods and method not in stack.methods:
            other = None if name.startswith(method) else method
            raise UsageError(NO_METHOD(engine=stack.label, weights=name, method=other, methods=stack.methods))


def find_served(model: str) -> tuple[str, Serving]:
    """Return the model of a named pass and the serving parameters that reproduce it; UsageError if it is not a pass."""
    asked = find_pass(model)
    if asked is None:
        raise UsageError(f"{model} is not a pass of a language model")
    step = asked.step
    return drop_arguments(model), Serving(
        prompt=max(1, step.cached + (step.tokens if step.tokens > VERIFIED else 0)),
        engine=step.engine,
        devices=(step.devices,),
        expert_devices=step.expert_devices,
        data_devices=step.data_devices,
        pipeline_devices=step.pipeline_devices,
        cache=step.cache,
    )
