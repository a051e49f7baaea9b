"""A language model that is asked for, by name, configuration or trace, and the boxes that it is divided over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from joulemap.domain.name import find_meant
from joulemap.domain.operating_point import read_point
from joulemap.plan.selection import name_pair, select_hardware
from joulemap.plan.workload import LIBRARY, can_trace_configurations, find_model, holding_workload, is_traced_pass
from joulemap.system.errors import UnknownFamilyError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from joulemap.box.hardware import BoxHardware
    from joulemap.decoder.config import Decoder
    from joulemap.decoder.step import Step
    from joulemap.domain.settings import Settings
    from joulemap.model.workload import WorkloadColumns
    from joulemap.plan.source import Source


def find_mixed(settings: Settings) -> BoxHardware | None:
    """Return the box of unlike devices that settings name; None for none. UsageError for one beside other hardware."""
    selection = select_hardware(settings)
    mixed = [box for box in selection.boxes.values() if len(box.box.devices) > 1]
    if mixed and len(selection.pairs) > 1:
        raise UsageError(f"{mixed[0].id} has unlike devices, which divide a model: name it without other hardware")
    return mixed[0] if mixed else None


def open_boxes(settings: Settings) -> tuple[Settings, dict[str, int]]:
    """Return settings with the chip of each box of alike ones in its place, and chip -> how many those are.

    UsageError for boxes that have unlike numbers of a chip.
    """
    selection = select_hardware(settings)
    if not selection.boxes:
        return settings, {}
    names, counts = [], dict[str, int]()
    for entry, mode in selection.pairs:
        box, name = selection.boxes.get(entry.id), name_pair(entry.id, mode)
        names.append(selection.spelling.get(name, name) if box is None else _name_chip(box, mode))
        if box is not None and counts.setdefault(box.devices[0].id, len(box.devices)) != len(box.devices):
            raise UsageError(f"{box.id} has {len(box.devices)} of {box.devices[0].id}, another box more: ask of one")
    return attrs.evolve(settings, hardware=tuple(names)), counts


def _name_chip(box: BoxHardware, mode: str) -> str:
    """Return a device of a box of alike ones, with its share of a cap on all of them."""
    name = box.box.devices[0].hardware
    point = read_point(mode)
    return name if point is None else f"{name.partition('@')[0]}@{point.value / len(box.devices):g}W"


def read_decoder(source: Source, model: str, settings: Settings, prompt: int) -> Decoder:
    """Return the decoder of a name or path, or one whose passes are traced and kept; `prompt` is the longest of them.

    Raises UnknownNameError, with the nearest, for one that is not there, ModelError for one that cannot be read or
    traced.
    """
    from joulemap.decoder.name import find_decoder, list_decoders

    if model.endswith(".py"):
        find_model(model, settings, None)  # says what is missing of the name
    if "(" not in model and is_traced_pass(f"{model}()", settings):
        return _trace(source, model, settings, prompt)
    try:
        decoder = find_decoder(model)
    except UnknownFamilyError:
        if not can_trace_configurations():
            raise
        return _trace(source, f"{LIBRARY}:{model}", settings, prompt)
    if decoder is None:
        names = list_decoders()
        hint = f"the folder here is ./{model}" if Path(model).is_dir() else ""
        raise UnknownNameError("language model", model, (), hint, near=find_meant(model, names))
    return decoder


def _trace(source: Source, model: str, settings: Settings, prompt: int) -> Decoder:
    from joulemap.decoder.traced import TracedDecoder
    from joulemap.store.workload import read_columns, read_notes

    def sample(step: Step, batch: int) -> tuple[WorkloadColumns, tuple[str, ...]]:
        asked = find_model(step.spell(model, is_whole=True), settings, batch)
        with holding_workload(source, asked) as (workload_id, connection):
            return read_columns(connection, workload_id), read_notes(connection, workload_id)

    path = find_model(f"{model}()", settings, None).request.path
    context = _read_context(path) if path is not None and path.suffix == ".json" else 0
    return TracedDecoder(name=model, prompt=prompt, sample=sample, context_length=context)


def _read_context(path: Path) -> int:
    """Return the tokens that a configuration says its model was made for; 0 where it does not say."""
    from joulemap.decoder.family import Settings as Sizes
    from joulemap.decoder.read import find_text
    from joulemap.trace.configuration import read_configuration

    return Sizes(str(path), find_text(read_configuration(path, str(path)))).context
