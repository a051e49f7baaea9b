"""List the hardware and boxes of the catalogue, and show one box."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from joulemap.answer.answer import Answer
from joulemap.answer.computed import described, make_table
from joulemap.domain.architecture import find_class
from joulemap.domain.catalogue import find_alike
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Deployment, Settings
from joulemap.domain.table import Table
from joulemap.generated.hardware import ListedHardware
from joulemap.physics.record.configuration import Precision
from joulemap.plan.catalogue import known_hardware, opening_catalogue, opening_chips
from joulemap.plan.source import Source
from joulemap.present.cell import show_count
from joulemap.present.document import Document, Lines, Section
from joulemap.present.template import Template
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, find_projected
from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.box import Box

CLASSES: Final = Template(
    "{chips}[: {classes:list}][, {unavailable} not available][; {members} (`joulemap hardware list --family all`)]."
)
EVERY_FAMILY: Final = "all"
"""Value of `family` that selects the members of all families."""

CLASS: Final = Template("{count} {architecture}")
MORE: Final = Template("{count} more are listed only in chip families")
SOME: Final = "chips of families are not shown"
NO_MATCH: Final = "No chip matches."

BOX: Final = Template("{box}: {name}")
BOX_SUMMARY: Final = Template("{count:n device}[ that share {power_w:W}].")
DEVICES: Final = "Devices"
PARTS: Final = "device | *hardware | *count alike_count | memory | layout of activations layout"
LINKS: Final = "Links and shared memories"
JOINS: Final = (
    "link or memory joined_by | *devices | *bandwidth bandwidth_bytes_per_s | *latency latency_s | "
    "energy per byte energy_per_byte_j | basis | source"
)
DOUBTS: Final = "Doubts"
PLACE: Final = Template("joulemap place resnet50 {box}")


def hardware_list(
    source: Source,
    *,
    architecture: str = "",
    deployment: Deployment | Literal[""] = "",
    precision: Precision | Literal[""] = "",
    min_memory_bytes: float | None = None,
    max_power_w: float | None = None,
    max_price_usd: float | None = None,
    family: str = "",
) -> Table[ListedHardware]:
    """Return the hardware of the catalogue that passes every filter; None or "" disables a filter.

    `family` selects the members of a family instead, `all` those of every family. Raises UnknownNameError for an
    unknown family, class or deployment, UsageError for an unknown precision.
    """
    architecture = find_class(architecture) or architecture
    if architecture:
        from joulemap.plan.catalogue import known_hardware
        from joulemap.plan.selection import check_architectures

        check_architectures([architecture], {entry.architecture for entry in known_hardware().values()})
    filters = Settings(deployment=deployment or (), precision=precision or ())
    given = {
        "architecture": architecture,
        "deployment": next(iter(filters.deployment), ""),
        "precision": next(iter(filters.precision), ""),
        "min_memory_bytes": min_memory_bytes or 0.0,
        "max_power_w": max_power_w or 0.0,
        "max_price_usd": max_price_usd or 0.0,
    }
    with _opening_family(family) if family else opening_catalogue(source) as connection:
        return find_projected(connection, fetch(connection, ListedHardware, **given))


@contextlib.contextmanager
def _opening_family(family: str) -> Iterator[Connection]:
    """Yield a connection to a temporary database with the members of a family, or of all families for `all`."""
    from joulemap.catalog.family import find_family, list_families

    families = list_families()
    if family != EVERY_FAMILY and family not in families:
        raise UnknownNameError("family", family, (EVERY_FAMILY, *families))
    chosen = families if family == EVERY_FAMILY else (family,)
    with opening_chips({one.id: one for name in chosen for one in find_family(name)}, family) as connection:
        yield connection


def describe_classes(rows: Table[ListedHardware], *, has_families: bool = False, is_filtered: bool = False) -> str:
    """Return a sentence with the number of listed chips per class and of unavailable chips.

    `has_families` adds the number of chips in families; `is_filtered` omits this number, because filters apply to it
    too.
    """
    counts = Counter(row.architecture for row in rows).most_common()
    if not counts:
        return NO_MATCH
    from joulemap.catalog.family import list_members

    listed = {architecture for architecture, _ in counts}
    members = sum(len(counts) > 1 or one.architecture in listed for one in list_members().values())
    alone = next(iter(listed)) if len(counts) == 1 else None
    return CLASSES(
        chips=show_count(len(rows), f"{alone} chip" if alone else "chip"),
        classes=None if alone else [CLASS(count=count, architecture=architecture) for architecture, count in counts],
        unavailable=sum(not row.is_available for row in rows) or None,
        members=(SOME if is_filtered else MORE(count=members)) if has_families and members else None,
    )


@frozen(kw_only=True)
class ListedBox:
    """Box of the catalogue."""

    box: str = described("catalogue id")
    name: str = described("product name, or description")
    devices: str = described("devices of the box, with xN for N equal ones")
    joined_by: str = described("links between devices, and memories that they share")
    power_w: float | None = described("power cap of all devices together; null if each has only its own", "W")


@frozen(kw_only=True)
class BoxPart:
    """Device of a box."""

    device: str = described("name in the box")
    hardware: str = described("catalogue id")
    alike_count: int = described("number of equal devices")
    memory: str = described("memory of the box that it uses; empty for one of its own")
    layout: str = described("layout of activations; empty for the usual one")


@frozen(kw_only=True)
class BoxJoin:
    """Link of a box, or memory that its devices share."""

    joined_by: str = described("link with its generation, or memory")
    devices: str = described("devices that it connects")
    bandwidth_bytes_per_s: float = described("bandwidth of a link in one direction, of a memory in total", "B/s")
    latency_s: float = described("time until the first byte arrives, or another device may start", "s")
    energy_per_byte_j: float | None = described("energy per byte sent; null if nothing moves", "J/B")
    basis: str = described("origin of the bandwidth")
    source: str = described("source of the bandwidth")


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

    def document(self) -> Document:
        """Return the document; csv contains the devices."""
        return Document(
            title=BOX(self),
            answer=BOX_SUMMARY(self, count=sum(part.alike_count for part in self.parts)),
            sections=(Section(DEVICES, self._lay(self.parts, PARTS)), Section(LINKS, self._lay(self.joins, JOINS))),
            details=(Section(DOUBTS, Lines(self.doubts)),),
            steps=(PLACE(self),),
            data=self.data(),
            table=self.parts,
            tables=self.tables,
        )


def box_list(source: Source) -> Table[ListedBox]:
    """Return the boxes of the catalogue, by id."""
    from joulemap.catalog.box import load_boxes

    del source  # boxes are files and are not stored in the database
    return make_table("boxes", ListedBox, map(_list, load_boxes().values()))


def box(source: Source, name: str) -> BoxAnswer:
    """Return one box by id, alias or file; UnknownNameError for an unknown one, CatalogueError for a faulty file."""
    from joulemap.catalog.box import find_box, refuse_box

    del source
    found = find_box(name)
    if found is None:
        raise refuse_box(name)
    return BoxAnswer(
        box=found.id,
        name=found.name,
        parts=make_table(
            "devices",
            BoxPart,
            [
                BoxPart(
                    device=one.name,
                    hardware=one.hardware,
                    alike_count=one.count,
                    memory=one.memory,
                    layout=one.layout,
                )
                for one in found.devices
            ],
        ),
        joins=make_table("links", BoxJoin, _list_joins(found)),
        power_w=None if found.power is None else found.power.value,
        doubts=found.doubts,
    )


def is_box(name: str) -> bool:
    """Return whether a name or file describes a box rather than a chip."""
    if not name.endswith(".toml") and (find_class(name) or find_alike(known_hardware(), HardwareRef.read(name).label)):
        return False
    from joulemap.catalog.box import find_box

    return find_box(name) is not None


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
    found = [
        BoxJoin(
            joined_by=link.name,
            devices="-".join(link.between),
            bandwidth_bytes_per_s=link.bandwidth.value,
            latency_s=link.latency.value,
            energy_per_byte_j=link.energy.value,
            basis=link.bandwidth.basis,
            source=link.bandwidth.source,
        )
        for link in one.links
    ]
    return found + [
        BoxJoin(
            joined_by=memory.name,
            devices="+".join(device.name for device in one.devices if device.memory == memory.name),
            bandwidth_bytes_per_s=memory.bandwidth.value,
            latency_s=memory.latency.value,
            energy_per_byte_j=None,
            basis=memory.bandwidth.basis,
            source=memory.bandwidth.source,
        )
        for memory in one.memories
    ]
