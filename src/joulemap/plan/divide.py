"""Boxes that a language model is divided over: their chips, where these are alike, or layers, where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from joulemap.domain.operating_point import read_point
from joulemap.plan.selection import name_pair, select_hardware
from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from joulemap.box.hardware import BoxHardware
    from joulemap.domain.settings import Settings


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
