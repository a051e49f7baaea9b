"""Sources of a requested language model, by name, configuration or trace, and the boxes that it is divided over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

import attrs

from joulemap.construct import ModelRequest, check_batch
from joulemap.domain import HardwareRef, Settings, name_configured, read_arguments
from joulemap.physics import BOARD, Hardware, WorkloadColumns, read_point
from joulemap.plan import Model, Selection, Source, find_model, opening_workload, select_hardware
from joulemap.plan.model import Describer
from joulemap.plan.target import Modifier
from joulemap.system import ModelError, UnknownFamilyError, UnknownNameError, UsageError, package_version
from joulemap.system.name import find_meant
from joulemap.wing.hub import CONFIGURED, HUBS, hub_version
from joulemap.wing.llm.decoder.config import Decoder
from joulemap.wing.llm.decoder.decoder_pass import DecoderPass
from joulemap.wing.llm.decoder.pass_name import (
    EXAMPLE,
    NamedPass,
    decoder_version,
    find_decoder,
    find_pass,
    is_traced_pass,
    list_decoders,
    split_pass,
)
from joulemap.wing.llm.phase import MIXED, find_phase
from joulemap.wing.llm.setting import Serving
from joulemap.wing.place import BOX, BoxHardware

KIND: Final = "decoder"
"""Request kind of passes that are built from the sizes of a model."""

OWN_LAYER: Final = "layer"
"""Value of `--draft` for one more layer like the model's last, as in multi-token prediction (MTP) and EAGLE."""

PADDED: Final = 0.01
"""Maximum relative difference between the vocabulary sizes of models with one tokenizer; padding rows cause it."""


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
    from joulemap.wing.hub import PassSizes
    from joulemap.wing.llm.decoder.traced import TRACED_ARGUMENTS

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
    from joulemap.wing.llm.serving.chip import UnderEngine
    from joulemap.wing.llm.stack import find_engine

    decoder, step = asked.decoder, (asked.step, batch)
    precision, runtime = point["precision"], point["runtime"]
    weights = "" if point["weight_precision"] == precision else point["weight_precision"]

    def choose(first: Hardware, second: Hardware) -> Hardware:
        from joulemap.physics import Together
        from joulemap.wing.llm.decoder.column import pass_columns

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


def find_mixed(settings: Settings) -> BoxHardware | None:
    """Return the box of different devices in the settings; None if there is none. Raise UsageError if other hardware is
    requested too.
    """
    selection = select_hardware(attrs.evolve(settings, boundary=BOARD))
    mixed = [box for box in _list_boxes(selection) if len(box.box.devices) > 1]
    if mixed and len(selection.pairs) > 1:
        raise UsageError(
            f"{mixed[0].id} combines a GPU and a CPU, which divide a model: name it without other hardware"
        )
    return mixed[0] if mixed else None


def open_boxes(settings: Settings) -> tuple[Settings, dict[str, int]]:
    """Return settings with each uniform box replaced by its chip, and chip -> number of such chips in the box.

    Raise UsageError for boxes with different numbers of one chip.
    """
    selection = select_hardware(attrs.evolve(settings, boundary=BOARD))
    boxes = {box.id: box for box in _list_boxes(selection)}
    if not boxes:
        return settings, {}
    names, counts = [], dict[str, int]()
    for entry, mode in selection.pairs:
        box, name = boxes.get(entry.id), name_configured(entry.id, mode)
        names.append(selection.spelling.get(name, name) if box is None else _name_chip(box, mode))
        if box is not None and counts.setdefault(box.devices[0].id, len(box.devices)) != len(box.devices):
            raise UsageError(
                f"{box.id} has {len(box.devices)} of {box.devices[0].id}, another box "
                f"{counts[box.devices[0].id]}: name one of them"
            )
    return attrs.evolve(settings, hardware=tuple(names)), counts


def _list_boxes(selection: Selection) -> list[BoxHardware]:
    return [cast("BoxHardware", one) for one in selection.boxes.values() if one.architecture == BOX]


def _name_chip(box: BoxHardware, mode: str) -> str:
    """Return the name of one device of a uniform box, with its share of the box's power cap."""
    name = box.box.devices[0].hardware
    point = read_point(mode)
    return (
        name
        if point is None
        else str(HardwareRef.at(HardwareRef.read(name).label, f"{point.value / len(box.devices):g}W"))
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


def find_guesser(source: Source, decoder: Decoder, settings: Settings, serving: Serving) -> Decoder | None:
    """Return the draft model: a named one, or a layer like the model's last; None without a draft.

    Raise UnknownNameError for an unknown name, UsageError for a draft with another vocabulary.
    """
    if not serving.draft:
        return None
    if serving.draft == OWN_LAYER:
        return attrs.evolve(decoder, layers=decoder.layers[-1:])
    draft = read_decoder(source, serving.draft, settings, serving.prompt)
    if abs(draft.vocabulary / decoder.vocabulary - 1.0) > PADDED:
        raise UsageError(
            f"the vocabulary of {draft.name} has {draft.vocabulary:,} tokens, that of {decoder.name} "
            f"{decoder.vocabulary:,}: choose a draft model with the same tokenizer"
        )
    return draft


def _trace(source: Source, model: str, settings: Settings, prompt: int) -> Decoder:
    from joulemap.store import read_columns
    from joulemap.store.workload import read_notes
    from joulemap.wing.hub import read_configuration
    from joulemap.wing.llm.decoder.read import read_context
    from joulemap.wing.llm.decoder.traced import TracedDecoder

    def sample(step: DecoderPass, batch: int) -> tuple[WorkloadColumns, tuple[str, ...]]:
        asked = find_model(step.spell(model, is_whole=True), settings, batch)
        with opening_workload(source, asked) as (workload_id, connection):
            return read_columns(connection, workload_id), read_notes(connection, workload_id)

    path = find_model(f"{model}()", settings, None).request.path
    context = 0
    if path is not None and path.suffix == ".json":
        context = read_context(read_configuration(path, str(path)), str(path))
    return TracedDecoder(name=model, prompt=prompt, sample=sample, context_length=context)
