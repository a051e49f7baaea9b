"""A box: devices in one case, links between them, memories that they share, and the power that all of them get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import attrs

from joulemap.domain.quantity import Quantity
from joulemap.system.record import frozen

BOX: Final = "box"
"""Class of a box, as a hardware."""

Goal = Literal["latency", "throughput", "energy"]

GOALS: Final[tuple[Goal, ...]] = get_args(Goal)
"""What a placement may be best at: time of a batch, batches that follow each other, or energy of a batch."""

BUDGET: Final = "power budget"
"""What batches wait for where the box's power stretches the time between them."""

MOST_DEVICES: Final = 16
"""Of one box, alike ones counted one by one."""


@frozen(kw_only=True)
class BoxDevice:
    """One device of a box, or several alike."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    """Once in a box."""
    hardware: str
    """Of the catalogue, with @MODE or without, or a file."""
    count: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    memory: str = ""
    """Which of the box's memories it works in; empty for one of its own."""
    precision: str = ""
    """What it computes at, whatever is asked; empty for what is asked, else the narrowest of its own that holds it."""
    static_power: Quantity | None = None
    """What it draws here in place of its own, where that is of a module whose other devices have it."""
    layout: str = ""
    """How it keeps activations, e.g. `nhwc`: what comes from a device with another is turned over."""

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the devices one by one: `dla1`, `dla2` of two called `dla`."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}{one + 1}" for one in range(self.count))


@frozen(kw_only=True)
class BoxLink:
    """What carries data between two devices of a box, or between any two of several alike."""

    between: tuple[str, str]
    """Names of devices; twice the same for several alike."""
    name: str
    bandwidth: Quantity
    """Bytes per second in one direction."""
    latency: Quantity
    """Until the first byte is there."""
    energy: Quantity
    """Of a byte that is sent and received."""


@frozen(kw_only=True)
class BoxMemory:
    """A memory that several devices work in, so that what one made another reads in place."""

    name: str
    capacity: Quantity
    bandwidth: Quantity
    """Bytes per second of all devices together."""
    latency: Quantity
    """From the end of one device's work to the start of another's that waits for it."""


@frozen(kw_only=True)
class Box:
    """Devices in one case."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    devices: tuple[BoxDevice, ...]
    links: tuple[BoxLink, ...] = ()
    memories: tuple[BoxMemory, ...] = ()
    power: Quantity | None = None
    """That all devices together may draw; None where each has its own cap alone."""
    price: Quantity | None = None
    """Of all of it, bought; None where that is the sum of its devices'."""
    doubts: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        """Refuse what does not fit together; ValueError names it."""
        names = [name for device in self.devices for name in device.members]
        if not self.devices:
            raise ValueError("devices: there is none")
        if len(names) > MOST_DEVICES:
            raise ValueError(f"devices: {len(names)}, more than {MOST_DEVICES}")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"devices: {name} stands twice")
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
        """Yield each device by its name, alike ones one by one."""
        for device in self.devices:
            for name in device.members:
                yield name, device

    def memory_of(self, device: BoxDevice) -> BoxMemory | None:
        """Return the memory of the box that a device works in; None for one of its own."""
        return next((memory for memory in self.memories if memory.name == device.memory), None)


@frozen(kw_only=True)
class PlacementLine:
    """A line of the ledger of a model on the devices of a box."""

    device: str
    """That the energy is of, or that sends."""
    subgraph_index: int | None
    """None of what belongs to none."""
    component: str
    action: str
    per: str
    action_count: float
    energy_per_action_fj: float
    energy_fj: int
    basis: str
    source: str
