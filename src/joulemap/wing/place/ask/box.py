"""List the boxes of the catalogue, and describe one."""

from __future__ import annotations

from typing import Any

from joulemap.ask import Answer
from joulemap.domain import Table, make_table
from joulemap.plan import Source
from joulemap.system import frozen
from joulemap.wing.place.file import find_box, load_boxes, refuse_box
from joulemap.wing.place.generated.row import BoxJoin, BoxPart, ListedBox
from joulemap.wing.place.record import Box, BoxLink, BoxMemory


@frozen(kw_only=True)
class BoxAnswer(Answer):
    """Description of one box."""

    box: str
    name: str
    parts: Table[BoxPart]
    joins: Table[BoxJoin]
    power_w: float | None
    doubts: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {"box": self.box, "name": self.name, "power_w": self.power_w, **super().data(), "doubts": self.doubts}


def box_list(source: Source) -> Table[ListedBox]:
    """Return the boxes of the catalogue, by id."""
    del source  # boxes are files and are not stored in the database
    return make_table("boxes", ListedBox, map(_list, load_boxes().values()))


def box(source: Source, name: str) -> BoxAnswer:
    """Return one box by id, alias or file; UnknownNameError for an unknown one, CatalogueError for a faulty file."""
    del source
    chosen = find_box(name)
    if chosen is None:
        raise refuse_box(name)
    parts = [
        BoxPart(device=one.name, hardware=one.hardware, alike_count=one.count, memory=one.memory, layout=one.layout)
        for one in chosen.devices
    ]
    return BoxAnswer(
        box=chosen.id,
        name=chosen.name,
        parts=make_table("devices", BoxPart, parts),
        joins=make_table("links", BoxJoin, _list_joins(chosen)),
        power_w=None if chosen.power is None else chosen.power.value,
        doubts=chosen.doubts,
    )


def _list(one: Box) -> ListedBox:
    counted = [f"{each.hardware}{f' x{each.count}' if each.count > 1 else ''}" for each in one.devices]
    return ListedBox(
        box=one.id,
        name=one.name,
        devices=", ".join(counted),
        joined_by=", ".join(dict.fromkeys([*(link.name for link in one.links), *(each.name for each in one.memories)])),
        power_w=None if one.power is None else one.power.value,
    )


def _list_joins(one: Box) -> list[BoxJoin]:
    users = {memory.name: [device.name for device in one.devices if device.memory == memory.name]
             for memory in one.memories}  # fmt: skip
    return [
        *(_join(link, "-".join(link.between), link.energy.value) for link in one.links),
        *(_join(memory, "+".join(users[memory.name]), None) for memory in one.memories),
    ]


def _join(one: BoxLink | BoxMemory, devices: str, energy_per_byte_j: float | None) -> BoxJoin:
    return BoxJoin(
        joined_by=one.name,
        devices=devices,
        bandwidth_bytes_per_s=one.bandwidth.value,
        latency_s=one.latency.value,
        energy_per_byte_j=energy_per_byte_j,
        basis=one.bandwidth.basis,
        source=one.bandwidth.source,
    )
