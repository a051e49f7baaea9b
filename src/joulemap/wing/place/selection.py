"""Boxes among the hardware of a question, as the devices that a model is divided over."""

from __future__ import annotations

from typing import cast

import attrs

from joulemap.domain import HardwareRef, Settings, name_configured
from joulemap.physics import BOARD, read_point
from joulemap.plan import Selection, select_hardware
from joulemap.system import UsageError
from joulemap.wing.place.box.hardware import BoxHardware
from joulemap.wing.place.record import BOX


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
