"""Constants of a box by name: of its devices, its links and memories, and the whole box.

gpu.memory_bandwidth      each device that the box calls `gpu`
link.cpu-gpu.bandwidth    links between two devices; latency and energy per byte too
memory.NAME.bandwidth     memory that devices share; capacity and latency too
tdp, price_purchase, …    the whole box
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from joulemap.physics import Address, Change, Constant, Quantity, change_hardware, extend_digest, list_constants
from joulemap.physics.record.address import replace_value, set_fields
from joulemap.physics.record.constant import word_changes
from joulemap.system.record import vary
from joulemap.wing.place.box.hardware import BoxHardware, combine
from joulemap.wing.place.record import Box, BoxLink

LINK_FIELDS: Final = ("bandwidth", "latency", "energy")

MEMORY_FIELDS: Final = ("capacity", "bandwidth", "latency")

WHOLE: Final = ("tdp", "price_purchase", "price_cloud")
"""Constants that belong to the whole box."""


def name_link(box: Box, link: BoxLink) -> str:
    """Return the name of a link in addresses: its devices in the order of the box."""
    order = [device.name for device in box.devices]
    return "-".join(sorted(link.between, key=order.index))


def list_box_constants(hardware: BoxHardware) -> dict[str, Constant]:
    """Return name -> constant of an evaluated box."""
    constants = [
        attrs.evolve(one, address=one.address._replace(device=kind))
        for kind, chip in hardware.chips.items()
        for one in list_constants(chip).values()
    ]
    for address, one in _list_joins(hardware):
        constants.append(Constant(address=address, value=one.value, unit=one.unit, basis=one.basis, source=one.source))
    return {one.name: one for one in constants}


def _list_joins(hardware: BoxHardware) -> Iterator[tuple[Address, Quantity]]:
    """Yield (address, quantity) of the links, the memories and the whole box."""
    for link in hardware.box.links:
        for field in LINK_FIELDS:
            yield Address("link", name_link(hardware.box, link), field), getattr(link, field)
    for memory in hardware.box.memories:
        for field in MEMORY_FIELDS:
            yield Address("memory", memory.name, field), getattr(memory, field)
    for name in WHOLE:
        if (quantity := getattr(hardware, name)) is not None:
            yield Address("quantity", name), quantity


def vary_box(hardware: BoxHardware, changes: Sequence[Change]) -> BoxHardware:
    """Return a box with changed numbers of devices, links and memories.

    Its sums over devices are not updated; `change_box` does that.
    """
    chips = {
        kind: change_hardware(chip, [_drop_device(one) for one in changes if one.address.device == kind])
        for kind, chip in hardware.chips.items()
    }
    box, whole = hardware.box, _list_fields(changes, "quantity", "")
    box = attrs.evolve(
        box,
        devices=tuple(attrs.evolve(one, static_power=None) for one in box.devices),  # already part of the chip
        links=tuple(set_fields(one, _list_fields(changes, "link", name_link(box, one))) for one in box.links),
        memories=tuple(set_fields(one, _list_fields(changes, "memory", one.name)) for one in box.memories),
        power=replace_value(hardware.tdp, whole["tdp"]) if "tdp" in whole else box.power,
    )
    return vary(hardware, box=box, devices=tuple(chips[device.name] for _, device in box))


def change_box(hardware: BoxHardware, changes: Sequence[Change], name: str = "") -> BoxHardware:
    """Return an evaluated box with some numbers replaced, and with sums over devices updated.

    The digest and the name change too, as for a changed chip.
    """
    if not changes and not name:
        return hardware
    varied, value = vary_box(hardware, changes), _list_fields(changes, "quantity", "")
    digest = extend_digest(hardware.digest, word_changes(changes, name))
    whole = combine(varied.box, varied.devices, hardware.device_modes, digest)
    prices = {one: replace_value(getattr(whole, one), value[one]) for one in WHOLE[1:] if one in value}
    return attrs.evolve(
        whole,
        **prices,
        id=name or hardware.id,
        described_digest=hardware.described_digest or hardware.digest,
    ).in_mode(hardware.power_mode)


def _drop_device(change: Change) -> Change:
    """Return a change of a box's device as a change of that chip: its address without the device's name."""
    return attrs.evolve(change, address=change.address._replace(device=""))


def _list_fields(changes: Sequence[Change], kind: str, name: str) -> dict[str, float]:
    """Return field -> new value for the link or memory `name`; for the kind `quantity`, name -> new value of the whole
    box.
    """
    mine = [(one.address, one.value) for one in changes if one.address.kind == kind and not one.address.device]
    return {one.field or one.name: value for one, value in mine if name in ("", one.name)}
