"""Configurations of a training question, as plans of runs on one device.

devices x precision ─► name of the step ─► its batches, of one device each ─► a run on every chip

Each step on several devices is also planned without overlap, which gives the time of its communication alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.configuration import OPERAND_ONLY
from joulemap.domain.name import find_nearest
from joulemap.domain.settings import Settings, Training
from joulemap.plan.run import Plan, plan_selected
from joulemap.store.connection import log
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.wing.train.training.memory import Memory, measure
from joulemap.wing.train.training.recipe import JOINED, OPTIMIZERS, Recipe

if TYPE_CHECKING:
    from joulemap.plan.selection import Selection

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


@frozen(kw_only=True)
class Step:
    """Training step of a model on one number of devices at one precision, with all its batches."""

    recipe: Recipe
    model: str
    """Name of the model inside the step's name, with its own arguments."""
    devices: int
    """Number of all devices, tensor-parallel and pipeline devices included."""
    precision: str
    batches: Mapping[int, int]
    """Samples per micro-batch on one device -> samples per step on all devices."""
    accumulate: int
    """Micro-batches per step."""
    stages: int
    plans: Mapping[str, Plan]
    """Name -> plan of runs on one device.

    `last` is the last micro-batch, with the optimizer. `alone`, for several devices, is the same without overlap.
    `before`, for several micro-batches, is a micro-batch before the last. `inner` and `inner_before` are the same for a
    pipeline stage before the last.
    """


def list_steps(model: str, training: Training, settings: Settings, selection: Selection) -> Iterator[Step]:
    """Yield a step for each requested number of devices and precision; UsageError for an impossible one."""
    if training.optimizer not in OPTIMIZERS:
        near = find_nearest(training.optimizer, [(one,) for one in OPTIMIZERS])
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"optimizer is {training.optimizer!r}, expected one of {', '.join(OPTIMIZERS)}{hint}")
    for precision in settings.precision:
        if precision not in TRAINED:
            raise UsageError(f"precision is {precision}, expected one of {', '.join(TRAINED)} for training")
        if training.quantize and precision in OPERAND_ONLY:
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
            yield Step(
                recipe=recipe,
                model=name,
                devices=devices,
                precision=precision,
                batches=batches,
                accumulate=training.accumulate,
                stages=stages,
                plans=plans,
            )


def _name_model(model: str, training: Training) -> tuple[str, bool]:
    """Return the name of the model inside a step's name, with its tokens, and whether it is a language model."""
    from joulemap.wing.llm.decoder.name import find_decoder, is_pass, split_pass

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


def suggest(step: Step, batch: int, runtime: str, capacity: float) -> str:
    """Return options that reduce a step's memory to `capacity` bytes, or a smaller batch; empty if nothing fits."""
    from joulemap.model.workload import columns_of
    from joulemap.plan.workload import find_model, find_workload_of
    from joulemap.wing.train.training.step import describe_training

    def need(recipe: Recipe, samples: int) -> Memory:
        model = find_model(step.model, attrs.evolve(step.plans["last"].settings, batch=(samples,)), samples)
        work = describe_training(find_workload_of(model, log), recipe, "", model.request.key)
        return measure(columns_of(work), step.precision, runtime)

    for way in WAYS:
        if way.get("zero") and step.recipe.devices == 1:
            continue
        recipe = attrs.evolve(step.recipe, **way)  # type: ignore[arg-type]
        if (recipe.zero, recipe.recompute) <= (step.recipe.zero, step.recipe.recompute):
            continue
        if need(recipe, batch).total <= capacity:
            options = [f"--zero {recipe.zero}"] * (recipe.zero > step.recipe.zero)
            options += ["--recompute"] * (recipe.recompute > step.recipe.recompute)
            return " ".join(options)
    samples = batch // 2
    while samples:
        if need(step.recipe, samples).total <= capacity:
            return f"--batch {samples * step.recipe.devices * step.accumulate}"
        samples //= 2
    return ""
