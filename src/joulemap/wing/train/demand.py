"""Configurations of a training question, as plans of runs on one device.

devices x precision ─► name of the step ─► its batches, of one device each ─► a run on every chip

Each step on several devices is also planned without overlap, which gives the time of its communication alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain import Settings
from joulemap.physics import Hardware, carried_precision, columns_of, find_path
from joulemap.plan import Plan, Selection, find_model, find_workload_of, plan_selected
from joulemap.store.connection import log
from joulemap.system import ModelError, UnsupportedError, UsageError, find_nearest, frozen
from joulemap.wing.train.row import find_fullest_memory
from joulemap.wing.train.setting import Training
from joulemap.wing.train.training.memory import Memory, measure
from joulemap.wing.train.training.recipe import JOINED, OPTIMIZERS, Recipe

TRAINED: Final = ("fp8", "bf16", "fp16", "tf32", "fp32", "fp64")
"""Precisions of GEMMs in training; at fp8 everything else is 16 bits. Source: Transformer Engine, introduction.rst
at 1498424b (mixed precision with 8 bits)."""

WIDE: Final = ("tf32", "fp32", "fp64")
"""Precisions wide enough for the optimizer to update weights directly, without a master copy."""

TOKENS: Final = 2048
"""Default tokens per sequence."""

SAMPLES: Final = 256
"""Default samples per batch; a language model defaults to one sequence per device."""

WAYS: Final[tuple[Mapping[str, object], ...]] = (
    {"recompute": True},
    {"zero": 1},
    {"zero": 1, "recompute": True},
    {"zero": 2, "recompute": True},
    {"zero": 3, "recompute": True},
)
"""Settings that reduce a step's memory, in increasing order of overhead."""

FACTORS: Final = (2, 4, 8, 16, 32, 64)
"""Multiples of the devices that a refusal tries."""

RANK: Final = 16
"""Rank of the adapters that a refusal suggests."""

BASE: Final = "nf4"
"""Format of the frozen base that a refusal suggests."""


@frozen(kw_only=True)
class TrainingStep:
    """Training step of a model on one number of devices at one precision, with all its batches."""

    recipe: Recipe
    model: str
    """Name of the model inside the step's name, with its own arguments."""
    is_language: bool
    """True for a language model, whose samples are sequences of tokens."""
    devices: int
    """Number of all devices, tensor-parallel and pipeline devices included."""
    precision: str
    batches: Mapping[int, int]
    """Samples per micro-batch on one device -> samples per step on all devices."""
    training: Training
    plans: Mapping[str, Plan]
    """Name -> plan of runs on one device.

    `last` is the last micro-batch, with the optimizer. `alone`, for several devices, is the same without overlap.
    `before`, for several micro-batches, is a micro-batch before the last. `inner` and `inner_before` are the same for a
    pipeline stage before the last.
    """

    @property
    def name(self) -> str:
        """Name of the model without its arguments."""
        return self.model.partition("(")[0] if self.is_language else self.model


def list_steps(model: str, training: Training, settings: Settings, selection: Selection) -> Iterator[TrainingStep]:
    """Yield a step for each requested number of devices and precision; UsageError for an impossible one."""
    if training.optimizer not in OPTIMIZERS:
        near = find_nearest(training.optimizer, [(one,) for one in OPTIMIZERS])
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"optimizer is {training.optimizer!r}, expected one of {', '.join(OPTIMIZERS)}{hint}")
    for precision in settings.precision:
        if precision not in TRAINED:
            raise UsageError(f"precision is {precision}, expected one of {', '.join(TRAINED)} for training")
        if training.quantize and carried_precision(precision) != precision:
            raise UsageError(
                f"--quantize {training.quantize} is dequantized to 16 bits before each GEMM, which excludes "
                f"{precision}: use --precision bf16"
            )
    name, is_language = _name_model(model, training)
    stages = training.pipeline_devices
    if stages > training.accumulate:
        raise UsageError(
            f"{stages} stages (--pipeline-devices) need at least {stages} micro-batches, found {training.accumulate} "
            "(--accumulate)"
        )
    for devices in training.devices:
        replicas = _divide(devices, training)
        parts = replicas * training.accumulate
        batches = _find_batches(
            settings.batch or ((parts,) if is_language else (SAMPLES,)), replicas, training.accumulate
        )
        for precision in settings.precision:
            recipe = Recipe(
                optimizer=training.optimizer,
                devices=replicas,
                zero=training.zero,
                recompute=training.recompute,
                master=precision not in WIDE,
                lora=training.lora or 0,
                lora_targets=JOINED.join(training.lora_targets),
                quantize=training.quantize.lower(),
            )
            recipe.check()
            one = attrs.evolve(settings, batch=tuple(batches), precision=(precision,))

            def plan(name: str, recipe: Recipe, one: Settings = one, **changes: Any) -> Plan:
                return plan_selected((attrs.evolve(recipe, **changes).spell(name),), one, selection)

            plans = {"last": plan(name, recipe)}
            if replicas > 1:
                plans["alone"] = plan(name, recipe, overlap=False)
            if training.accumulate > 1:
                plans["before"] = plan(name, recipe, adds=True)
            if stages > 1:
                inner = name.replace("logits=all", "logits=none")
                plans |= {"inner": plan(inner, recipe), "inner_before": plan(inner, recipe, adds=True)}
            yield TrainingStep(
                recipe=recipe,
                model=name,
                is_language=is_language,
                devices=devices,
                precision=precision,
                batches=batches,
                training=training,
                plans=plans,
            )


def _name_model(model: str, training: Training) -> tuple[str, bool]:
    """Return the name of the model inside a step's name, with its tokens, and whether it is a language model."""
    from joulemap.wing.decoder import find_decoder, is_pass, split_pass

    if not is_pass(model):
        given = {"--tensor-devices": training.tensor_devices > 1, "--pipeline-devices": training.pipeline_devices > 1,
                 "--sequence-parallel": training.sequence_parallel}  # fmt: skip
        option = next((name for name, is_given in {"--tokens": training.tokens is not None, **given}.items()
                       if is_given), "")  # fmt: skip
        if option:
            raise UsageError(f"{model} is not a known language model: leave out {option}")
        return model, False
    parts = split_pass(model)
    assert parts is not None
    if parts[1] != "()":
        raise UsageError(f"{model}: leave out the brackets and use --tokens and --tensor-devices")
    decoder, tokens = find_decoder(parts[0]), training.tokens or TOKENS
    if decoder is not None and 0 < decoder.context_length < tokens:
        is_default = "" if training.tokens else " (default)"
        raise UsageError(
            f"--tokens is {tokens:,}{is_default}, more than the context of {parts[0]}: {decoder.context_length:,}"
        )
    settings = [f"tokens={tokens}", "logits=all"]
    settings += [f"devices={training.tensor_devices}"] * (training.tensor_devices > 1)
    settings += [f"pipeline_devices={training.pipeline_devices}"] * (training.pipeline_devices > 1)
    settings += ["sequence_parallel=true"] * training.sequence_parallel
    return f"{parts[0]}({','.join(settings)})", True


def _divide(devices: int, training: Training) -> int:
    """Return the number of data-parallel replicas.

    Raise UsageError if the devices cannot be divided into tensor-parallel and pipeline groups.
    """
    together = training.tensor_devices * training.pipeline_devices
    if devices % together:
        option = "--tensor-devices" if training.pipeline_devices == 1 else "--tensor-devices x --pipeline-devices"
        raise UsageError(f"{devices} devices cannot be divided into groups of {together} ({option})")
    return devices // together


def _find_batches(batches: Sequence[int], replicas: int, accumulate: int) -> dict[int, int]:
    """Return samples per micro-batch of a device -> samples per step.

    Raise UsageError for a batch that replicas and micro-batches do not divide.
    """
    parts = replicas * accumulate
    groups = f"{replicas} devices" + (f" in {accumulate} micro-batches" if accumulate > 1 else "")
    for batch in batches:
        if batch % parts:
            lower, upper = batch - batch % parts, batch - batch % parts + parts
            near = f"{lower} or {upper}" if lower else f"{upper}"
            raise UsageError(f"batch {batch} cannot be divided over {groups}: use {near}")
    return {batch // parts: batch for batch in sorted(batches)}


def suggest(step: TrainingStep, batch: int, runtime: str, hardware: Hardware) -> str:
    """Return options with which a step fits into a device's memory; empty if none of those tried does.

    Less memory per device comes first, then fewer samples, more devices, and adapters in place of all weights.
    """
    from joulemap.wing.decoder import find_overhead

    capacity = hardware.memory_capacity.value

    def fits(recipe: Recipe, samples: int, devices: int) -> bool:
        needed = _measure(step, recipe, samples, runtime).total
        return needed + find_overhead(hardware, exchanges=devices > 1) <= capacity

    def is_adaptable(recipe: Recipe) -> bool:
        try:
            fits(recipe, 1, step.devices)
        except (ModelError, UsageError):  # no linear layers, or none that are adapted by default
            return False
        return True

    own, devices = step.recipe, step.devices
    together = devices // own.devices
    for recipe in _lighten(own):
        if fits(recipe, batch, devices):
            return _spell(own, recipe)
    samples = batch // 2
    while samples:
        if fits(own, samples, devices):
            return f"--batch {samples * own.devices * step.training.accumulate}"
        samples //= 2
    for replicas in _multiply(own.devices, together, hardware):
        for recipe in _lighten(attrs.evolve(own, devices=replicas)):
            if recipe.zero and fits(recipe, 1, replicas * together):
                options = f"--devices {replicas * together} --batch {replicas * step.training.accumulate}"
                return f"{options} {_spell(own, recipe)}"
    for lora, quantize in _list_adapters(step):
        adapted = attrs.evolve(own, lora=lora, quantize=quantize, zero=0)
        for recipe in (adapted, attrs.evolve(adapted, recompute=True)):
            if is_adaptable(recipe) and fits(recipe, 1, devices):
                options = f"--batch {own.devices * step.training.accumulate}" if batch > 1 else ""
                return " ".join(filter(None, (options, _spell(own, recipe))))
    return ""


def _measure(step: TrainingStep, recipe: Recipe, samples: int, runtime: str) -> Memory:
    """Return the memory of a step on the fullest device, with another recipe or number of samples per micro-batch."""
    from joulemap.wing.train.training.step import describe_training

    def of(name: str) -> Memory:
        model = find_model(name, attrs.evolve(step.plans["last"].settings, batch=(samples,)), samples)
        work = describe_training(find_workload_of(model, log), recipe, "", model.request.key)
        return measure(columns_of(work), step.precision, runtime)

    last = of(step.model)
    if step.training.pipeline_devices == 1:
        return last
    return find_fullest_memory(
        of(step.model.replace("logits=all", "logits=none")), last, step.training.pipeline_devices
    )


def _lighten(recipe: Recipe) -> Iterator[Recipe]:
    """Yield variants of a recipe that need less memory, in increasing order of overhead."""
    for way in WAYS:
        if way.get("zero") and recipe.devices == 1:
            continue
        lighter = attrs.evolve(recipe, **way)  # type: ignore[arg-type]
        if lighter.zero >= recipe.zero and lighter.recompute >= recipe.recompute and lighter != recipe:
            yield lighter


def _list_adapters(step: TrainingStep) -> Iterator[tuple[int, str]]:
    """Yield the ranks and base formats of adapters that need less memory than a step's own, the widest base first."""
    own = step.recipe
    if not own.lora:
        yield RANK, ""
    if not own.quantize and carried_precision(step.precision) == step.precision:
        yield own.lora or RANK, BASE


def _multiply(replicas: int, together: int, hardware: Hardware) -> Iterator[int]:
    """Yield larger numbers of data-parallel groups whose devices a link or a network joins."""
    for factor in FACTORS:
        try:
            find_path(hardware, replicas * factor, together)
        except UnsupportedError:
            return
        yield replicas * factor


def _spell(before: Recipe, after: Recipe) -> str:
    """Return the options that change one recipe into another."""
    options = [f"--zero {after.zero}"] * (after.zero > before.zero)
    options += ["--recompute"] * (after.recompute > before.recompute)
    options += [f"--lora {after.lora}"] * (after.lora > before.lora)
    options += [f"--quantize {after.quantize}"] * (after.quantize != before.quantize)
    return " ".join(options)
