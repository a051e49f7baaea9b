"""Constants of a box by name: those of its devices, of its links and memories, and of the whole box.

gpu.memory_bandwidth      each device that the box calls `gpu`
link.cpu-gpu.bandwidth    links between two devices; latency and energy per byte too
memory.NAME.bandwidth     memory that devices share; capacity and latency too
tdp, price_purchase, …    the whole box
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from joulemap.domain.box import Box, BoxLink, BoxMemory
from joulemap.domain.change import SOURCE, Change, change_hardware, word_changes
from joulemap.domain.constant import Constant, list_constants
from joulemap.domain.hardware import Hardware
from joulemap.domain.quantity import Quantity
from joulemap.domain.target import extend_digest
from joulemap.system.record import vary
from joulemap.wing.place.box.hardware import BoxHardware, combine

Joined = TypeVar("Joined", BoxLink, BoxMemory)

LINK_FIELDS: Final = ("bandwidth", "latency", "energy")

MEMORY_FIELDS: Final = ("capacity", "bandwidth", "latency")

WHOLE: Final = ("tdp", "price_purchase", "price_cloud")
"""Constants of all devices together."""


def list_kinds(hardware: BoxHardware) -> dict[str, Hardware]:
    """Return name of a device -> its chip; the first one of several identical devices."""
    found: dict[str, Hardware] = {}
    for (_, device), chip in zip(hardware.box, hardware.devices, strict=True):
        found.setdefault(device.name, chip)
    return found


def name_link(box: Box, link: BoxLink) -> str:
    """Return the prefix of a link's constants; its devices in the order of the box."""
    order = [device.name for device in box.devices]
    return f"link.{'-'.join(sorted(link.between, key=order.index))}"


def list_box_constants(hardware: BoxHardware) -> dict[str, Constant]:
    """Return name -> constant of a box as it is evaluated."""
    found = {
        f"{kind}.{one.name}": attrs.evolve(one, name=f"{kind}.{one.name}", of=kind)
        for kind, chip in list_kinds(hardware).items()
        for one in list_constants(chip).values()
    }
    for kind, name, quantity in _list_joins(hardware):
        told = {"value": quantity.value, "unit": quantity.unit, "basis": quantity.basis, "source": quantity.source}
        found[name] = Constant(name=name, kind=kind, **told)  # type: ignore[arg-type]
    return found


def _list_joins(hardware: BoxHardware) -> Iterator[tuple[str, str, Quantity]]:
    """Yield kind, name and quantity of links, memories and the whole box."""
    for link in hardware.box.links:
        for field in LINK_FIELDS:
            yield "link", f"{name_link(hardware.box, link)}.{field}", getattr(link, field)
    for memory in hardware.box.memories:
        for field in MEMORY_FIELDS:
            yield "memory", f"memory.{memory.name}.{field}", getattr(memory, field)
    for name in WHOLE:
        if (quantity := getattr(hardware, name)) is not None:
            yield "quantity", name, quantity


def vary_box(hardware: BoxHardware, changes: Sequence[Change]) -> BoxHardware:
    """Return a box with other numbers for its devices, links and memories; sums over devices stay as they were."""
    value = {one.name: one.value for one in changes}
    chips = {
        kind: change_hardware(chip, [attrs.evolve(one, name=own) for one, own in _list_own(changes, kind)])
        for kind, chip in list_kinds(hardware).items()
    }
    box = attrs.evolve(
        hardware.box,
        devices=tuple(attrs.evolve(one, static_power=None) for one in hardware.box.devices),  # already part of the chip
        links=tuple(_set_each(one, name_link(hardware.box, one), LINK_FIELDS, value) for one in hardware.box.links),
        memories=tuple(_set_each(one, f"memory.{one.name}", MEMORY_FIELDS, value) for one in hardware.box.memories),
        power=_set(hardware.tdp, value["tdp"]) if "tdp" in value else hardware.box.power,
    )
    return vary(hardware, box=box, devices=tuple(chips[device.name] for _, device in box))


def change_box(hardware: BoxHardware, changes: Sequence[Change], name: str = "") -> BoxHardware:
    """Return an evaluated box with some numbers replaced; as `change_hardware` for a chip."""
    if not changes and not name:
        return hardware
    value, varied = {one.name: one.value for one in changes}, vary_box(hardware, changes)
    digest = extend_digest(hardware.digest, word_changes(changes, name))
    whole = combine(varied.box, varied.devices, hardware.device_modes, digest)
    prices = {one: _set(getattr(whole, one), value[one]) for one in WHOLE[1:] if one in value}
    return attrs.evolve(
        whole,
        **prices,  # type: ignore[arg-type]
        id=name or hardware.id,
        described_digest=hardware.described_digest or hardware.digest,
    ).in_mode(hardware.power_mode)


def _list_own(changes: Sequence[Change], kind: str) -> list[tuple[Change, str]]:
    """Return the changes of a device, each with its name on the chip."""
    return [(one, one.name.removeprefix(f"{kind}.")) for one in changes if one.name.startswith(f"{kind}.")]


def _set(quantity: Quantity, value: float) -> Quantity:
    return attrs.evolve(quantity, value=value, basis="assumed", source=SOURCE)


def _set_each(joined: Joined, prefix: str, fields: Sequence[str], value: Mapping[str, float]) -> Joined:
    changed = {
        one: _set(getattr(joined, one), value[f"{prefix}.{one}"]) for one in fields if f"{prefix}.{one}" in value
    }
    return attrs.evolve(joined, **changed)  # type: ignore[arg-type]
