"""Steps of a serving engine for other programs, such as simulators of schedulers: time and energy, without a database.

    model, chip, engine ─► deployment ─► price: exact, with intervals and memory
                                   └──► table: interpolated, thousands of steps per second

Prices equal those of `joulemap llm`. The error of a step is that of measured servers, and what uncertain numbers of the
chip and thinly measured numbers of the engine add to a pass on one device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.bundle.chip import load_chips
from joulemap.physics.change import change_hardware
from joulemap.physics.interval.error_scale import MODEL
from joulemap.physics.interval.point import Case, PointErrors
from joulemap.physics.pipeline import Evaluator, evaluate_together
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.constant import Change
from joulemap.physics.record.weight import GGUF_METHOD, read_weight_format
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.total import stack_totals
from joulemap.physics.workload import Floats, columns_of
from joulemap.prediction import find_chip, find_constant
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import define, frozen
from joulemap.system.units import FS_PER_S
from joulemap.wing.llm.capacity.question import choose_precision, find_file_weights
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.decoder.column import pass_columns
from joulemap.wing.llm.decoder.decoder_pass import CACHES, check_devices
from joulemap.wing.llm.decoder.layer import describe_step
from joulemap.wing.llm.decoder.overhead import VERIFIED
from joulemap.wing.llm.decoder.pass_name import find_decoder, list_decoders
from joulemap.wing.llm.error_scale import (
    SERVED_POWER,
    SERVED_TIME,
    find_unnamed_backend,
    join_served_energy,
    load_served_doubt,
)
from joulemap.wing.llm.phase import ANSWER
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.surface import Passes, Table, tabulate
from joulemap.wing.llm.stack import find_engine, list_vendors

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.workload import WorkloadColumns
    from joulemap.wing.llm.decoder.column import Asked
    from joulemap.wing.llm.decoder.config import Decoder

MEMORY: Final = "memory"
"""Code of a refusal for a step whose sequences exceed the memory of a device."""

KNOTS: Final = 64
"""Contexts at which a table knows the KV cache of a sequence; it is linear between them for most models."""


KEPT: Final = 16
"""Maximum models whose workloads are kept, so that the next chip or setting does not describe them again."""

FEW: Final = 4
"""Passes up to which their workloads with all layers are kept; each takes about a megabyte."""


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
        """Return seconds and joules of steps as `Table.step` does; NaN where memory does not hold the sequences."""
        each = np.interp(np.asarray(context_tokens, dtype=np.float64), self._contexts, self._cache_bytes)
        prompts = np.interp(np.add(prompt_tokens, prompt_context), self._contexts, self._cache_bytes)
        held = np.multiply(sequences, each) + np.where(np.greater(prompt_tokens, 0.0), prompts, 0.0)
        fits = np.where(held <= self._free_bytes, 1.0, np.nan)
        seconds, joules = self._table.step(sequences, context_tokens, prompt_tokens, prompt_context)
        return seconds * fits, joules * fits


@define(kw_only=True, eq=False)
class StepPredictor:
    """Model on the devices that serve it, as a function of the steps of its engine."""

    _deployment: Deployment
    _calibration: str = ""
    """Digest of the calibration of the chip; empty without one."""

    _chips: dict[str, tuple[Hardware, ...]] = attrs.field(factory=dict, init=False)
    """Word of an engine on a kind of pass -> chips under it."""

    @cached_property
    def _errors(self) -> PointErrors:
        """Known errors, with what was found for the chips of this predictor."""
        known = load_chips().errors
        return PointErrors(known.doubt, known.held_out)

    @cached_property
    def _configuration(self) -> Configuration:
        """Configuration of a pass on one device."""
        one = self._deployment
        return Configuration(
            hardware=one.hardware.id,
            precision=one.precision,
            runtime=one.stack.runtime,
            weight_precision=one.weight_precision or one.precision,
        )

    @cached_property
    def _room(self) -> Room:
        """Memory budget of one device."""
        return Room(deployment=self._deployment)

    def price(self, passes: Passes) -> StepPrediction:
        """Return the time and energy of passes with their intervals; raises as `Deployment.price` does."""
        shape, flat = passes.shape, passes.flatten()
        refusal = self._check_memory(flat)
        fits: Floats = np.where(refusal == "", 1.0, np.nan)
        cost = self._deployment.price(flat)
        wide, tall = self._find_half_widths(flat, cost.seconds)

        def form(values: Floats) -> Floats:
            return np.asarray(fits * values).reshape(shape)

        return StepPrediction(
            latency_s=form(cost.seconds),
            latency_low_s=form(cost.seconds * np.exp(-wide)),
            latency_high_s=form(cost.seconds * np.exp(wide)),
            energy_j=form(cost.joules),
            energy_low_j=form(cost.joules * np.exp(-tall)),
            energy_high_j=form(cost.joules * np.exp(tall)),
            refusal=refusal.reshape(shape),
        )

    def split(self, passes: Passes) -> tuple[dict[str, float], ...]:
        """Return subgraph -> seconds of each pass in order, such as `layers.0.mlp.down_proj`; they sum to its time.

        `engine.` begins the names of the engine's own time. Raises UnsupportedError for a model that is traced or
        divided into pipeline stages, whose subgraphs are not those of one pass.
        """
        one = self._deployment
        if one.stages > 1 or one.decoder.is_traced:
            reason = "is traced" if one.decoder.is_traced else "is divided into pipeline stages"
            raise UnsupportedError(f"{one.decoder.name} {reason}, so that its steps have no parts", code="parts")
        configuration = self._configuration
        parts = []
        for asked in one.ask(passes.flatten()):
            workload = describe_step(one.decoder, *asked, NO_KEY)
            evaluator = Evaluator(columns_of(workload))
            runs = [evaluator.evaluate(chip, configuration) for chip in self._list_chips(asked)]
            fastest = min(runs, key=lambda run: run.latency_fs)
            names = [group.name for group in workload.subgraphs]
            parts.append(dict(zip(names, (fastest.subgraphs.latency_fs / FS_PER_S).tolist(), strict=True)))
        return tuple(parts)

    def table(self, *, sequences: int = 256, context_tokens: int = 32768, prompt_tokens: int = 8192) -> StepTable:
        """Return a table of steps up to a number of sequences, a context per sequence, and prompt tokens per step.

        Raises UnsupportedError if memory does not hold the weights.
        """
        if self._room.free < 0.0:
            raise UnsupportedError(self._describe_shortage(0.0), code=MEMORY)
        contexts = np.unique(np.round(np.linspace(0.0, max(context_tokens, prompt_tokens), KNOTS)))
        return StepTable(
            table=tabulate(
                self._deployment, sequences=sequences, context_tokens=context_tokens, prompt_tokens=prompt_tokens
            ),
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
        like = {"vendor": one.hardware.vendor, "engine": one.stack.release}
        time, power = (load_served_doubt().find(name, **like) for name in (SERVED_TIME, SERVED_POWER))
        if time is None or power is None:
            return (np.full(len(seconds), np.nan),) * 2
        board = one.hardware.id.partition("[")[0]
        backend = find_unnamed_backend(one.hardware.architecture, **like)
        is_prompt = (passes.sequences <= 0.0) | (passes.tokens > VERIFIED) | (passes.chunk > 0.0)
        asked = one.ask(passes)
        own = self._find_own(list(dict.fromkeys(asked)))
        latency_own, energy_own, thin = np.array([own[each] for each in asked]).reshape(-1, 3).T
        served = np.where(is_prompt, math.hypot(time.widen(board), backend), time.widen(board))
        slow = SlowHost.of(one)
        hosts = np.array([slow.find_half_width(each) for each in seconds.tolist()])
        wide = np.sqrt(served**2 + latency_own**2 + thin**2 + np.where(is_prompt, 0.0, hosts) ** 2)
        joint = np.array([join_served_energy(each, power.widen(board)) for each in served.tolist()])
        return wide, np.sqrt(joint**2 + energy_own**2 + thin**2)

    def _find_own(self, asked: Sequence[Asked]) -> dict[Asked, tuple[float, float, float]]:
        """Return what uncertain numbers of the chip add to the latency and energy of passes on one device, and what
        thinly measured numbers of the engine add to both.
        """
        one, configuration = self._deployment, self._configuration
        evaluators = [Evaluator(work) for work in _describe_whole(one.decoder, asked)]
        ways = [self._list_chips(each) for each in asked]
        rows = [(place, chip) for place, chips in enumerate(ways) for chip in chips]
        points = stack_totals(evaluate_together(evaluators, [(place, chip, configuration) for place, chip in rows]))
        cases: dict[tuple[int, str], Case] = {}
        for place, chip in rows:
            work = _find_work(asked[place])
            case = Case(hardware=chip, configuration=configuration, work=work, calibration=self._calibration)
            cases.setdefault((id(chip), work), case)
        places = {key: place for place, key in enumerate(cases)}
        of_case = np.array([places[id(chip), _find_work(asked[place])] for place, chip in rows], dtype=np.int64)
        widths = self._errors.find_half_widths(points, tuple(cases.values()), of_case)
        numbers = np.stack([widths.latency_own, widths.energy_own, widths.thin], axis=1)
        by_time = sorted(range(len(rows)), key=lambda row: -int(points.latency_fs[row]))
        fastest = {rows[row][0]: row for row in by_time}  # the last one of each pass
        own: dict[Asked, tuple[float, float, float]] = {}
        for place, each in enumerate(asked):
            latency, energy, thin = numbers[fastest[place]].tolist()
            own[each] = latency, energy, thin
        return own

    def _list_chips(self, asked: Asked) -> tuple[Hardware, ...]:
        """Return the chip under the engine in each way that it may run a pass."""
        under, whole = self._deployment.put_under(asked), self._deployment.unlimited
        if under.word not in self._chips:
            self._chips[under.word] = tuple(under.take(way, whole) for way in under.list_ways(whole))
        return self._chips[under.word]


def _describe_whole(decoder: Decoder, asked: Sequence[Asked]) -> tuple[WorkloadColumns, ...]:
    """Return workloads of passes with all layers, because bounds of a folded pass count its layers once."""
    describe = _describe_few if len(asked) <= FEW else _describe_few.__wrapped__
    return describe(decoder, tuple(asked))


@lru_cache(maxsize=KEPT)
def _describe_few(decoder: Decoder, asked: tuple[Asked, ...]) -> tuple[WorkloadColumns, ...]:
    if decoder.is_traced:
        return tuple(PassWorkloads(decoder).describe(asked).works)
    columns = pass_columns(decoder, asked)
    return tuple(columns[one] for one in asked)


@lru_cache(maxsize=KEPT)
def _find_workloads(decoder: Decoder) -> PassWorkloads:
    """Return the workloads of a model's passes, which are the same for all chips and settings."""
    return PassWorkloads(decoder)


def _find_work(asked: Asked) -> str:
    """Return the kind of work of a pass (`Workload.work`): most attention of a decode step is of few tokens."""
    step, _ = asked
    return MODEL if step.tokens > VERIFIED else ANSWER.name


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
    compiled_tokens: float = 0.0,
    changes: Mapping[str, float] | None = None,
) -> StepPredictor:
    """Return the steps of a language model under an engine on equal devices of one server.

    A model is a built-in language model by name, or a checkpoint's configuration or weights by path; hardware as in
    `joulemap.predict`. Precisions, weights and KV cache are those of the checkpoint unless given. `compiled_tokens` is
    the length that the passes of an engine with static shapes were compiled for. `changes` maps names of numbers of the
    chip, as `--set` takes them, to values in their SI units.

    Raises UnknownNameError for an unknown name, UsageError for a model that cannot be divided in this way, and
    UnsupportedError for a chip that the engine does not run on or that lacks the precision.
    """
    decoder = find_decoder(model)
    if decoder is None:
        raise UnknownNameError("language model", model, list_decoders(), "see `joulemap model list`")
    chip, calibration = find_chip(hardware)
    if changes:
        chip = _change(chip, changes)
    stack = find_engine(engine)
    if (vendors := list_vendors(stack.name)) and chip.vendor not in vendors:
        raise UnsupportedError(f"{chip.id}: {stack.label} runs only on chips of {', '.join(vendors)}", code="engine")
    if not precision and not weight_precision:
        precision, weight_precision = choose_precision(decoder, chip)
        cache = cache or (decoder.published.cache if decoder.published is not None else "")
        if stack.methods == (GGUF_METHOD,):
            weight_precision = find_file_weights(decoder) or weight_precision
    precision = precision or choose_precision(decoder, chip)[0]
    if weight_precision:
        read_weight_format(weight_precision)
    if precision not in chip.peaks:
        raise UnsupportedError(f"{chip.id} has no {precision} (it has {', '.join(chip.peaks)})", code="precision")
    if cache and cache not in CACHES:
        raise UnknownNameError("precision of a cache", cache, CACHES)
    for name, count in (("devices", devices), ("pipeline_devices", pipeline_devices)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UsageError(f"{name} is {count!r}, expected a whole number from 1")
    check_devices(decoder, devices, expert_devices, data_devices, pipeline_devices)
    _check_links(chip, devices * data_devices, devices * data_devices * pipeline_devices)
    return StepPredictor(
        deployment=Deployment(
            workloads=_find_workloads(decoder),
            hardware=chip,
            stack=stack,
            precision=precision,
            weight_precision="" if weight_precision == precision else weight_precision,
            cache=cache,
            devices=devices,
            expert_devices=expert_devices,
            data_devices=data_devices,
            stages=pipeline_devices,
            compiled_tokens=compiled_tokens if stack.compiles else 0.0,
            totals={},
        ),
        calibration=calibration,
    )


def _change(chip: Hardware, changes: Mapping[str, float]) -> Hardware:
    """Return a chip with other numbers; UsageError if they contradict each other."""
    made = [Change.of(find_constant(chip, name, (value,)), value) for name, value in changes.items()]
    try:
        return change_hardware(chip, made)
    except ValueError as error:
        raise UsageError(f"{chip.id}: {error}") from error


def _check_links(chip: Hardware, joined: int, world: int) -> None:
    """Raise UnsupportedError for a chip whose links do not join so many devices of a stage, or of all stages."""
    from joulemap.physics.communication import find_path, find_send

    if joined > 1:
        find_path(chip, joined)
    if world > joined:
        find_send(chip, world)
