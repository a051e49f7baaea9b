"""Boxes: devices in one machine, the links between them, shared memories and a common power budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import attrs

from joulemap.physics import Quantity
from joulemap.system import frozen

BOX: Final = "box"
"""Architecture class that represents a box."""

Goal = Literal["latency", "throughput", "energy"]

GOALS: Final[tuple[Goal, ...]] = get_args(Goal)
"""Placement objectives: latency of one batch, throughput of consecutive batches, or energy per batch."""

BUDGET: Final = "power budget"
"""Name of the throughput limit of a box that must wait between batches to stay within its power budget."""

MOST_DEVICES: Final = 16
"""Maximum devices per box, identical devices counted individually."""


@frozen(kw_only=True)
class BoxDevice:
    """One device of a box, or several identical ones."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    """Name, unique in the box."""
    hardware: str
    """Catalogue id, with or without @MODE, or a file."""
    count: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    memory: str = ""
    """Name of the shared memory that the device uses; empty if it has its own."""
    precision: str = ""
    """Fixed precision that overrides the requested one. Empty: the requested precision, or the narrowest supported
    precision that can represent it.
    """
    static_power: Quantity | None = None
    """Static power in this box; None for the value in the hardware's file. It is 0 if the module's static power is
    already counted at another device.
    """
    layout: str = ""
    """Activation layout, e.g. `nhwc`; data from a device with another layout is transposed."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the individual devices: `dla1` and `dla2` for two devices called `dla`."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}{one + 1}" for one in range(self.count))


@frozen(kw_only=True)
class BoxLink:
    """Link between two devices of a box, or between any two of several identical devices."""

    between: tuple[str, str]
    """Names of the two devices; the same name twice for a link among identical devices."""
    name: str
    bandwidth: Quantity
    """Bandwidth in one direction."""
    latency: Quantity
    """Time to the first byte."""
    energy: Quantity
    """Energy to send and receive one byte."""


@frozen(kw_only=True)
class BoxMemory:
    """Memory that several devices share, so that they exchange data in place."""

    name: str
    capacity: Quantity
    bandwidth: Quantity
    """Bandwidth that all devices share."""
    latency: Quantity
    """Time from the end of one device's work to the start of the next device that waits for it."""


@frozen(kw_only=True)
class Box:
    """Devices in one machine."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    devices: tuple[BoxDevice, ...]
    links: tuple[BoxLink, ...] = ()
    memories: tuple[BoxMemory, ...] = ()
    power: Quantity | None = None
    """Power budget of all devices together; None if only the devices' own caps apply."""
    price: Quantity | None = None
    """Purchase price of the whole box; None for the sum of the devices' prices."""
    doubts: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if devices, links and memories are inconsistent; the message names the fault."""
        names = [name for device in self.devices for name in device.members]
        if not self.devices:
            raise ValueError("devices: there is none")
        if len(names) > MOST_DEVICES:
            raise ValueError(f"devices: found {len(names)}, expected at most {MOST_DEVICES}")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"devices: {name} is listed twice")
        kinds = {device.name for device in self.devices}
        for link in self.links:
            for end in link.between:
                if end not in kinds:
                    raise ValueError(f"links: {end} is none of the devices {', '.join(sorted(kinds))}")
        memories = {memory.name for memory in self.memories}
        for device in self.devices:
            if device.memory and device.memory not in memories:
                raise ValueError(f"devices.{device.name}.memory: {device.memory} is none of the box's memories")

    def __iter__(self) -> Iterator[tuple[str, BoxDevice]]:
        """Yield each individual device with its name."""
        for device in self.devices:
            for name in device.members:
                yield name, device

    def memory_of(self, device: BoxDevice) -> BoxMemory | None:
        """Return the shared memory that a device uses; None if it has its own."""
        return next((memory for memory in self.memories if memory.name == device.memory), None)


@frozen(kw_only=True)
class PlacementLine:
    """Ledger line of a model placed on a box."""

    device: str
    """Device that spends the energy; for a transfer, the sender."""
    subgraph_index: int | None
    """Index of the subgraph; None for energy outside all subgraphs."""
    component: str
    action: str
    per: str
    action_count: float
    energy_per_action_fj: float
    energy_fj: int
    basis: str
    source: str
