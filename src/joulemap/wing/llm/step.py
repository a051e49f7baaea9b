"""Steps of a serving engine for other programs, such as simulators of schedulers: time and energy, without a database.

    model, chip, engine ─► deployment ─► price: exact, with intervals and memory
                                   └──► table: interpolated, thousands of steps per second

Prices equal those of `joulemap llm`. The error of a step is that of measured servers, and what uncertain numbers of the
chip and thinly measured numbers of the engine add to a pass on one device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.physics import GGUF_METHOD, Change, Floats, Hardware, change_hardware, list_constants, read_weight_format
from joulemap.prediction import check_count, check_names, find_chip, find_constant, read_changes, read_numbers
from joulemap.system import UnknownNameError, UnsupportedError, UsageError, define, frozen
from joulemap.wing.decoder import (
    CACHES,
    FP4,
    VERIFIED,
    Asked,
    Decoder,
    check_devices,
    find_decoder,
    find_engine,
    list_decoders,
    name_pass,
)
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.error_scale import load_served_doubt
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads, check_links
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.pass_error import PassErrors, find_errors
from joulemap.wing.llm.serving.surface import Passes, Table, choose_knots
from joulemap.wing.llm.setting import Serving

MEMORY: Final = "memory"
"""Code of a refusal for a step whose sequences exceed the memory of a device."""

KNOTS: Final = 64
"""Contexts at which a table knows the KV cache of a sequence; it is linear between them for most models."""


KEPT: Final = 16
"""Maximum models whose workloads are kept, so that the next chip or setting does not describe them again."""

NUMBERS: Final = ("latency_s", "latency_low_s", "latency_high_s", "energy_j", "energy_low_j", "energy_high_j")
"""Fields of a prediction with numbers."""


@define(kw_only=True, eq=False)
class StepPrediction:
    """Predicted time and energy of steps on all devices together: arrays of the shape of their passes.

    Numbers of a refused step are NaN. An interval contains the measured value with a probability of 80 %.
    """

    latency_s: Floats
    latency_low_s: Floats
    latency_high_s: Floats
    energy_j: Floats
    energy_low_j: Floats
    energy_high_j: Floats
    refusal: NDArray[np.str_]
    """Reason why a device's memory does not hold the sequences of the step; empty if it does."""


@frozen(kw_only=True, eq=False)
class StepTable:
    """Tabulated steps, interpolated between exact ones."""

    _table: Table
    _free_bytes: float
    """Memory of one device for the KV cache."""
    _contexts: Floats
    _cache_bytes: Floats
    """KV cache of one sequence on one device at each of `_contexts`."""

    def step(
        self,
        sequences: ArrayLike,
        context_tokens: ArrayLike,
        prompt_tokens: ArrayLike = 0.0,
        prompt_context: ArrayLike = 0.0,
    ) -> tuple[Floats, Floats]:
        """Return seconds and joules of steps as `Table.step` does; NaN for sizes beyond those of the table, which are
        not extrapolated, and where memory does not hold the sequences.
        """
        table, ends = self._table, np.add(prompt_tokens, prompt_context)
        within = (
            np.less_equal(sequences, table.decode.first[-1])
            & np.less_equal(context_tokens, table.decode.second[-1])
            & np.less_equal(prompt_tokens, table.prompt.second[-1])
            & np.less_equal(ends, self._contexts[-1])
        )
        each = np.interp(np.asarray(context_tokens, dtype=np.float64), self._contexts, self._cache_bytes)
        prompts = np.interp(ends, self._contexts, self._cache_bytes)
        held = np.multiply(sequences, each) + np.where(np.greater(prompt_tokens, 0.0), prompts, 0.0)
        fits = np.where(within & (held >= 0.0) & (held <= self._free_bytes), 1.0, np.nan)
        seconds, joules = table.step(sequences, context_tokens, prompt_tokens, prompt_context)
        return seconds * fits, joules * fits


@define(kw_only=True, eq=False)
class StepPredictor:
    """Model on the devices that serve it, as a function of the steps of its engine."""

    _deployment: Deployment = attrs.field(repr=lambda one: f"<{one.decoder.name} on {one.hardware.id}>")
    _calibration: str = ""
    """Digest of the calibration of the chip; empty without one."""

    @cached_property
    def _errors(self) -> PassErrors:
        """Errors that uncertain numbers of the chip and engine add to passes on one device."""
        return PassErrors(deployment=self._deployment, calibration=self._calibration)

    @cached_property
    def _room(self) -> Room:
        """Memory budget of one device."""
        return Room(deployment=self._deployment)

    def price(self, passes: Passes) -> StepPrediction:
        """Return the time and energy of passes with their intervals; raises as `Deployment.price` does, and UsageError
        for sizes that no pass has.

        Passes that memory does not hold are not evaluated.
        """
        shape, flat = passes.shape, passes.checked().flatten()
        refusal = self._check_memory(flat)
        fits = np.flatnonzero(refusal == "")
        numbers = np.full((6, len(refusal)), np.nan)
        if len(fits):
            numbers[:, fits] = self._price(flat.take(fits))
        named = zip(NUMBERS, numbers, strict=True)
        return StepPrediction(**{name: each.reshape(shape) for name, each in named}, refusal=refusal.reshape(shape))

    def _price(self, passes: Passes) -> Floats:
        """Return the numbers of a prediction in the order of `NUMBERS`, one column per pass."""
        find_errors([(self._errors, self._deployment.ask(passes))])
        cost = self._deployment.price(passes)
        wide, tall = self._find_half_widths(passes, cost.seconds)
        times = cost.seconds, cost.seconds * np.exp(-wide), cost.seconds * np.exp(wide)
        return np.stack([*times, cost.joules, cost.joules * np.exp(-tall), cost.joules * np.exp(tall)])

    def _list_asked(self, passes: Passes) -> tuple[PassErrors, list[Asked]]:
        """Return the passes of one device that `price` needs; without those that memory does not hold."""
        flat = passes.checked().flatten()
        return self._errors, self._deployment.ask(flat.take(np.flatnonzero(self._check_memory(flat) == "")))

    def split(self, passes: Passes) -> tuple[dict[str, float], ...]:
        """Return subgraph -> seconds of each pass in order, such as `layers.0.mlp.down_proj`; they sum to its time.

        `engine.` begins the names of the engine's own time. Raises UnsupportedError for a model that is traced or
        divided into pipeline stages, whose subgraphs are not those of one pass, and for passes that memory does not
        hold.
        """
        one, flat = self._deployment, passes.checked().flatten()
        if reason := next(filter(None, self._check_memory(flat).tolist()), ""):
            raise UnsupportedError(reason, code=MEMORY)
        if one.stages > 1 or one.decoder.is_traced:
            reason = "is traced" if one.decoder.is_traced else "is divided into pipeline stages"
            raise UnsupportedError(f"{one.decoder.name} {reason}, so that its steps have no parts", code="parts")
        parts = (
            name_pass(one.decoder, asked, is_folded=one.hardware.compiler is None).time(
                self._errors.list_chips(asked), self._errors.configuration
            )
            for asked in one.ask(flat)
        )
        return tuple({name: one.micro_batches * seconds for name, seconds in part.items()} for part in parts)

    def table(self, *, sequences: int = 256, context_tokens: int = 32768, prompt_tokens: int = 8192) -> StepTable:
        """Return a table of steps up to a number of sequences, a context per sequence, and prompt tokens per step.

        Raises UnsupportedError if memory does not hold the weights, UsageError for a size that is no whole number.
        """
        sequences, context_tokens = check_count("sequences", sequences), check_count("context_tokens", context_tokens)
        prompt_tokens = check_count("prompt_tokens", prompt_tokens, least=0)
        if self._room.free < 0.0:
            raise UnsupportedError(self._describe_shortage(0.0), code=MEMORY)
        contexts = np.unique(np.round(np.linspace(0.0, max(context_tokens, prompt_tokens), KNOTS)))
        return StepTable(
            table=choose_knots(
                sequences=sequences, context_tokens=context_tokens, prompt_tokens=prompt_tokens
            ).tabulate(self._deployment),
            free_bytes=self._room.free,
            contexts=contexts,
            cache_bytes=np.array([self._room.cache(one) for one in contexts.tolist()]),
        )

    def _check_memory(self, passes: Passes) -> NDArray[np.str_]:
        """Return the reason why memory does not hold the sequences of each pass; empty where it does."""
        held = passes.sequences * self._find_cache(passes.context + passes.tokens)
        held = held + np.where(passes.chunk > 0.0, self._find_cache(passes.chunk_context + passes.chunk), 0.0)
        return np.array(
            ["" if one <= self._room.free else self._describe_shortage(one) for one in held.tolist()], dtype=np.str_
        )

    def _find_cache(self, tokens: Floats) -> Floats:
        """Return the KV cache of a sequence of each length in bytes, on one device."""
        lengths, each = np.unique(tokens, return_inverse=True)
        return np.array([self._room.cache(one) for one in lengths.tolist()])[each]

    def _describe_shortage(self, cache_bytes: float) -> str:
        room, chip = self._room, self._deployment.hardware
        needed = room.weights + room.workspace + cache_bytes
        return (
            f"needs {needed / 1e9:.3g} GB of each {chip.id}, {room.weights / 1e9:.3g} GB of them for weights, but "
            f"{room.usable / 1e9:.3g} GB are usable"
        )

    def _find_half_widths(self, passes: Passes, seconds: Floats) -> tuple[Floats, Floats]:
        """Return the half-widths of the logarithms of time and energy of each pass, as `joulemap llm` states them."""
        one = self._deployment
        chip = one.hardware
        measured = [
            load_served_doubt().half_width(
                quantity,
                vendor=chip.vendor,
                engine=one.stack.release,
                hardware=chip.id.partition("[")[0],
                architecture=chip.architecture,
                scope=scope,
            )
            for quantity in ("inter_token_latency_s", "energy_per_request_j")
            for scope in ("decode_step", "prefill_step")
        ]
        is_prompt = (passes.sequences <= 0.0) | (passes.tokens > VERIFIED) | (passes.chunk > 0.0)
        own = [self._errors.known[each] for each in one.ask(passes)]
        latency_own, energy_own, thin = np.array([(each.latency, each.energy, each.thin) for each in own]).T
        served, joint = (
            np.where(is_prompt, prompts, answers) for answers, prompts in np.array(measured, dtype=float).reshape(2, 2)
        )
        slow = SlowHost.of(one)
        hosts = np.array([slow.find_half_width(each) for each in seconds.tolist()])
        wide = np.sqrt(served**2 + latency_own**2 + thin**2 + np.where(is_prompt, 0.0, hosts) ** 2)
        return wide, np.sqrt(joint**2 + energy_own**2 + thin**2)


@lru_cache(maxsize=KEPT)
def _find_workloads(decoder: Decoder) -> PassWorkloads:
    """Return the workloads of a model's passes, which are the same for all chips and settings."""
    return PassWorkloads(decoder)


def evaluate_steps(asked: Iterable[tuple[StepPredictor, Passes]]) -> None:
    """Evaluate passes of several predictors together, so that `StepPredictor.price` finds what it needs.

    A table of models and chips takes a fraction of the time that its cells take one by one, and has equal numbers.
    """
    find_errors([steps._list_asked(passes) for steps, passes in asked])


def predict_step(
    model: str,
    hardware: str | Hardware,
    *,
    engine: str = "vllm",
    devices: int = 1,
    precision: str = "",
    weight_precision: str = "",
    cache: str = "",
    expert_devices: int = 1,
    data_devices: int = 1,
    pipeline_devices: int = 1,
    micro_batches: int = 1,
    compiled_tokens: float = 0.0,
    changes: Mapping[str, float] | None = None,
) -> StepPredictor:
    """Return the steps of a language model under an engine on equal devices of one server.

    A model is a built-in language model by name, or a checkpoint's configuration or weights by path; hardware as in
    `joulemap.predict`. `devices` are tensor-parallel, or pipeline stages of an engine that gives each its own layers.
    Groups that send tokens to experts may be on several servers; two `micro_batches` overlap that with computation.
    Precisions, weights and KV cache are those of the checkpoint unless given. `compiled_tokens` is
    the length that the passes of an engine with static shapes were compiled for. `changes` maps names of numbers of the
    chip, as `--set` takes them, to values in their SI units.

    Raises UnknownNameError for an unknown name, UsageError for a model that cannot be divided in this way, and
    UnsupportedError for a chip that the engine does not run on or that lacks the precision.
    """
    check_names(model=model, engine=engine, precision=precision, weight_precision=weight_precision, cache=cache)
    devices, expert_devices = check_count("devices", devices), check_count("expert_devices", expert_devices)
    data_devices = check_count("data_devices", data_devices)
    pipeline_devices = check_count("pipeline_devices", pipeline_devices)
    serving = Serving(expert_devices=expert_devices, data_devices=data_devices, micro_batches=micro_batches)
    compiled_tokens = _read_number("compiled_tokens", compiled_tokens)
    decoder = find_decoder(model)
    if decoder is None:
        raise UnknownNameError("language model", model, list_decoders(), "see `joulemap model list`")
    chip, calibration = find_chip(hardware)
    if changes:
        chip = _change(chip, changes)
    stack = find_engine(engine)
    if (vendors := stack.vendors) and chip.vendor not in vendors:
        raise UnsupportedError(f"{chip.id}: {stack.label} runs only on chips of {', '.join(vendors)}", code="engine")
    published = decoder.published
    own = published.weights if published is not None else ""
    if published is not None and weight_precision:
        weight_precision = published.find_format(weight_precision)
    if not precision and weight_precision in ("", own):
        precision, weight_precision = decoder.choose_precision(chip, stack)
        cache = cache or (published.cache if published is not None else "")
        if stack.methods == (GGUF_METHOD,):
            weight_precision = decoder.file_weights or weight_precision
    fp4 = weight_precision if weight_precision and read_weight_format(weight_precision).precision == FP4 else ""
    precision = precision or decoder.choose_precision(chip, stack, fp4)[0]
    if weight_precision:
        read_weight_format(weight_precision)
    if precision not in chip.peaks:
        raise UnsupportedError(f"{chip.id} has no {precision} (it has {', '.join(chip.peaks)})", code="precision")
    if cache and cache not in CACHES:
        raise UnknownNameError("precision of a cache", cache, CACHES)
    devices, pipeline_devices = stack.divide(devices, pipeline_devices)
    check_devices(decoder, devices, expert_devices, data_devices, pipeline_devices)
    world = devices * data_devices * pipeline_devices
    check_links(chip, devices, data_devices, world, has_experts=serving.sends_tokens)
    return StepPredictor(
        deployment=Deployment(
            workloads=_find_workloads(decoder),
            hardware=chip,
            stack=stack,
            precision=precision,
            weight_precision="" if weight_precision == precision else weight_precision,
            cache=cache,
            devices=devices,
            **serving.division,
            stages=pipeline_devices,
            compiled_tokens=compiled_tokens if stack.compiles else 0.0,
            totals={},
        ),
        calibration=calibration,
    )


def _change(chip: Hardware, changes: Mapping[str, float]) -> Hardware:
    """Return a chip with other numbers; UsageError if they contradict each other."""
    values = {name: _read_number(name, value) for name, value in read_changes(changes).items()}
    known = list_constants(chip)
    made = [Change.of(find_constant(known, name, (value,)), value) for name, value in values.items()]
    try:
        return change_hardware(chip, made)
    except ValueError as error:
        raise UsageError(f"{chip.id}: {error}") from error


def _read_number(name: str, value: ArrayLike) -> float:
    """Return a single number; UsageError if it is none."""
    numbers = read_numbers(name, value)
    if numbers.ndim:
        raise UsageError(f"{name} is {value!r}, expected one number")
    return float(numbers)
