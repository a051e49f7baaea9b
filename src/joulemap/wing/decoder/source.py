"""Sources of a requested language model, by name, configuration or trace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from joulemap.construct import ModelRequest, check_batch
from joulemap.domain import Settings, read_arguments
from joulemap.physics import GGUF_METHOD, Hardware, WorkloadColumns
from joulemap.plan import Model, Source, find_model, opening_workload
from joulemap.plan.model import Describer
from joulemap.plan.target import Modifier
from joulemap.system import ModelError, UnknownFamilyError, UnknownNameError, UsageError, package_version
from joulemap.system.name import find_meant
from joulemap.wing.decoder.engine.stack import find_engine
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.pass_name import (
    EXAMPLE,
    NamedPass,
    decoder_version,
    find_decoder,
    find_pass,
    is_pass,
    is_traced_pass,
    list_decoders,
    split_pass,
)
from joulemap.wing.decoder.phase import MIXED, find_phase
from joulemap.wing.hub import CONFIGURED, HUBS, hub_version

KIND: Final = "decoder"
"""Request kind of passes that are built from the sizes of a model."""


def can_trace_configurations() -> bool:
    """Return True if the library that traces any configuration of a language model is installed."""
    return "absent" not in (package_version("torch"), package_version(HUBS[CONFIGURED]))


def describe_pass(step: DecoderPass) -> Mapping[str, str]:
    """Return dimension -> value of a pass; defaults are omitted."""
    phase = MIXED if step.chunk else find_phase(step.tokens).name
    devices = step.world * step.pipeline_devices
    dimensions = {"phase": phase, "engine": step.engine, "device_count": str(devices) if devices > 1 else ""}
    return {name: value for name, value in dimensions.items() if value}


def find_traced_pass(name: str, settings: Settings, batch: int | None) -> Model:
    """Return the pass of a traced model at the sizes in its name; raise as `find_model` does."""
    from joulemap.wing.decoder.network.traced import TRACED_ARGUMENTS
    from joulemap.wing.hub import PassSizes

    before, rest = split_pass(name) or (name, "()")
    step = DecoderPass.of(read_arguments(before, name, rest, TRACED_ARGUMENTS, EXAMPLE))
    if settings.inputs:
        raise UsageError(f"{name} takes no --input: its sizes are its arguments")
    model = settings.modules.get(before)
    if not isinstance(model, Model):
        model = find_model(before, settings, batch)
    request = attrs.evolve(
        model.request,
        model=step.spell(before, is_whole=True),
        batch=check_batch(batch) or 1,
        builder=hub_version(),
        sizes=PassSizes(
            tokens=step.tokens,
            cached=step.cached,
            has_all_logits=step.logits == "all",
            data_devices=step.data_devices,
        ),
    )
    return attrs.evolve(model, request=request, traced=None, dimensions=describe_pass(step))


def find_closed_pass(name: str, settings: Settings, batch: int | None, names: Describer) -> Model | None:
    """Return the pass of a decoder given by name or path, with its workload described by `names`; None for other
    models.

    A family whose sizes are not known in closed form is traced, if possible. Raise as `find_model` does.
    """
    try:
        asked = find_pass(name, [(one, str(value)) for one, value in settings.arguments.items()])
    except UnknownFamilyError:
        if not can_trace_configurations():
            raise
        return find_model(f"{CONFIGURED}:{name}", settings, batch)
    if asked is None:
        return None
    if settings.inputs or settings.config:
        raise UsageError(
            f"{asked} takes no {'--input' if settings.inputs else '--config'}: its sizes are its arguments"
        )
    request = ModelRequest(
        model=str(asked),
        kind=KIND,
        batch=check_batch(batch) or 1,
        is_default=True,
        content_digest=asked.digest,
        build_memory_bytes=settings.build_memory_bytes,
        version=decoder_version(),
    )
    may_run = settings.is_named or settings.trust
    return Model(
        request=request,
        retrace=settings.retrace,
        may_run=may_run,
        names=names,
        dimensions=describe_pass(asked.step),
        modifiers=partial(_run_under, asked, request.batch or 1) if asked.step.engine else None,
    )


def _run_under(asked: NamedPass, batch: int, point: Mapping[str, str]) -> tuple[Modifier, ...]:
    """Return the engine that a pass names, as a change of the chip; `point` has the precisions of the run."""
    from joulemap.wing.decoder.engine.chip import UnderEngine

    decoder, step = asked.decoder, (asked.step, batch)
    precision, runtime = point["precision"], point["runtime"]
    weights = "" if point["weight_precision"] == precision else point["weight_precision"]

    def choose(first: Hardware, second: Hardware) -> Hardware:
        from joulemap.physics import Together
        from joulemap.wing.decoder.network.column import pass_columns

        together = Together((pass_columns(decoder, [step])[step],))
        times = [
            one.latency_fs or 0
            for chip in (first, second)
            for one in together.evaluate(chip, precision, runtime, weight_precision=weights)
        ]
        return second if 0 < times[1] < times[0] else first

    return (
        UnderEngine.of(
            find_engine(asked.step.engine),
            decoder,
            step,
            precision=precision,
            weight_precision=weights,
            pass_key=f"{asked}:{batch}",
            faster=choose,
        ),
    )


def read_decoder(source: Source, model: str, settings: Settings, prompt: int) -> Decoder:
    """Return the decoder of a name or path.

    A decoder without known sizes is interpolated from traces of at most `prompt` tokens. Raise UnknownNameError, with
    the nearest name, for an unknown model; ModelError if a model cannot be read or traced.
    """
    if model.endswith(".py"):
        find_model(model, settings, None)  # raises the error that names the missing factory
    if "(" not in model and is_traced_pass(f"{model}()", settings):
        return _trace(source, model, settings, prompt)
    try:
        decoder = find_decoder(model)
    except UnknownFamilyError:
        if not can_trace_configurations():
            raise
        return _trace(source, f"{CONFIGURED}:{model}", settings, prompt)
    if decoder is None:
        path = Path(model)
        if "/" in model and path.exists():
            given = "a folder without a config.json" if path.is_dir() else "no configuration"
            raise ModelError(f"cannot read {model!r}: it is {given}; give a config.json or a folder that has one")
        names = list_decoders()
        hint = "for a model that is not built in, give the path of its config.json"
        hint = f"the folder here is ./{model}" if path.is_dir() else hint
        raise UnknownNameError("language model", model, (), hint, near=find_meant(model, names))
    return decoder


def find_published(model: str, engine: str = "", named: str = "") -> str:
    """Return the format of a language model's weights under an engine; empty for 16 bits.

    It is the format of the checkpoint unless another one is named, or that of its files for an engine of GGUF files.
    """
    decoder = find_decoder(model) if is_pass(model) else None
    if decoder is None or decoder.published is None or named not in ("", decoder.published.weights):
        return named
    stored = decoder.file_weights if find_engine(engine).methods == (GGUF_METHOD,) else ""
    return stored or decoder.published.weights


def _trace(source: Source, model: str, settings: Settings, prompt: int) -> Decoder:
    from joulemap.store import read_columns
    from joulemap.store.workload import read_notes
    from joulemap.wing.decoder.network.read import read_context
    from joulemap.wing.decoder.network.traced import TracedDecoder
    from joulemap.wing.hub import read_configuration

    def sample(step: DecoderPass, batch: int) -> tuple[WorkloadColumns, tuple[str, ...]]:
        asked = find_model(step.spell(model, is_whole=True), settings, batch)
        with opening_workload(source, asked) as (workload_id, connection):
            return read_columns(connection, workload_id), read_notes(connection, workload_id)

    path = find_model(f"{model}()", settings, None).request.path
    context = 0
    if path is not None and path.suffix == ".json":
        context = read_context(read_configuration(path, str(path)), str(path))
    return TracedDecoder(name=model, prompt=prompt, sample=sample, context_length=context)
