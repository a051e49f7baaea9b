"""Load built-in and user-supplied box files as `Box` records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import attrs

from joulemap.catalog import catalogue_digest, is_box_file
from joulemap.catalog.digest import box_files, own_files
from joulemap.catalog.link import LANE_RATES, find_link_default
from joulemap.catalog.parser import name_file, read_file
from joulemap.catalog.schema import QuantityEntry, resolve_fields
from joulemap.physics import Quantity
from joulemap.system import CatalogueError, UnknownNameError, find_nearest, fold_name, frozen
from joulemap.wing.place.record import Box, BoxDevice, BoxLink, BoxMemory


@frozen(kw_only=True)
class BoxDeviceEntry:
    """Device of a box, as written in a file."""

    name: str
    hardware: str
    count: int = 1
    memory: str = ""
    precision: str = ""
    layout: str = ""
    static_power: QuantityEntry | None = None


@frozen(kw_only=True)
class BoxLinkEntry:
    """Link of a box as written in a file; its name and generation give defaults for missing values."""

    between: list[str]
    link: str
    generation: str = ""
    lanes: int = 0
    """Number of lanes, from which the bandwidth follows if none is given and the standard has a rate per lane."""
    bandwidth: QuantityEntry | None = None
    latency: QuantityEntry | None = None
    energy: QuantityEntry | None = None


@frozen(kw_only=True)
class BoxMemoryEntry:
    """Shared memory of a box, as written in a file."""

    name: str
    capacity: QuantityEntry
    bandwidth: QuantityEntry
    latency: QuantityEntry


@frozen(kw_only=True)
class BoxFile:
    """Contents of a box file."""

    id: str
    devices: list[BoxDeviceEntry]
    sources: dict[str, str] = attrs.field(factory=dict)
    name: str = ""
    aliases: list[str] = attrs.field(factory=list)
    links: list[BoxLinkEntry] = attrs.field(factory=list)
    memories: list[BoxMemoryEntry] = attrs.field(factory=list)
    power: QuantityEntry | None = None
    price: QuantityEntry | None = None
    doubts: list[str] = attrs.field(factory=list)


def load_boxes() -> dict[str, Box]:
    """Return id -> box for the built-in boxes and those in `$JOULEMAP_HARDWARE`.

    Raises CatalogueError, naming file, key and reason, also if two boxes share an id or alias.
    """
    return _load((*box_files(), *filter(is_box_file, own_files())), catalogue_digest())


@cache
def _load(files: tuple[Path, ...], digest: str) -> dict[str, Box]:
    del digest  # only a cache key: changed files have another digest and are loaded again
    owner: dict[str, str] = {}
    boxes = {}
    for path in files:
        box = load_box(path)
        for name in (box.id, *box.aliases):
            other = owner.setdefault(fold_name(name), str(path))
            if other != str(path):
                raise CatalogueError(f"{name_file(path)}: the name {name!r} is already that of {other}; choose another")
        boxes[box.id] = box
    return boxes


def load_box(path: Path) -> Box:
    """Load the box of one file; CatalogueError names file, key and reason."""
    entry, _ = read_file(path, BoxFile)
    try:
        return resolve_box(entry)
    except ValueError as error:
        raise CatalogueError(f"{name_file(path)}: {error}") from error


def find_box(name: str) -> Box | None:
    """Return the box with this id, alias, name or file; None if there is none."""
    if name.endswith(".toml"):
        path = Path(name).expanduser()
        return load_box(path) if is_box_file(path) else None
    folded = fold_name(name)
    return next(
        (box for box in load_boxes().values() if folded in map(fold_name, (box.id, box.name, *box.aliases))), None
    )


def refuse_box(name: str) -> UnknownNameError:
    """Build the error for a name that is not a box."""
    if Path(name).is_file():
        return UnknownNameError("box", name, (), "the file has no [[devices]] of a box")
    return UnknownNameError(
        "box", name, (), "see `joulemap hardware list --boxes`, or name devices with --on", near=list_near(name)
    )


def list_near(name: str) -> list[str]:
    """Return the ids of boxes with similar names."""
    return list(find_nearest(name, [(box.id, *box.aliases) for box in load_boxes().values()]))


def resolve_box(entry: BoxFile) -> Box:
    """Convert a box of a file to SI quantities; ValueError names the fault."""

    def resolve(key: str, written: QuantityEntry, unit: str) -> Quantity:
        try:
            return written.resolve(entry.sources, unit)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error

    links = []
    for link in entry.links:
        fields = resolve_fields(link, f"links.{link.link}.", resolve)
        links.append(make_link(fields.pop("between"), fields.pop("link"), **fields))
    whole = resolve_fields(entry, "", resolve)
    del whole["sources"]
    parts = {
        "name": entry.name or entry.id,
        "devices": tuple(BoxDevice(**resolve_fields(one, f"devices.{one.name}.", resolve)) for one in entry.devices),
        "links": tuple(links),
        "memories": tuple(BoxMemory(**resolve_fields(one, f"memories.{one.name}.", resolve)) for one in entry.memories),
    }
    return Box(**{**whole, **parts})


def make_link(
    between: Sequence[str],
    name: str,
    *,
    generation: str = "",
    lanes: int = 0,
    bandwidth: Quantity | None = None,
    latency: Quantity | None = None,
    energy: Quantity | None = None,
) -> BoxLink:
    """Build a link; ValueError if it has no bandwidth or does not connect two devices."""
    if len(between) != 2:
        raise ValueError(f"links.{name}.between: expected two devices, found {len(between)}")
    if bandwidth is None:
        rate = LANE_RATES.get(name, {}).get(generation)
        if rate is None or lanes < 1:
            raise ValueError(
                f"link {name!r} has no bandwidth: expected a rate such as 400MB/s, or the generation and lanes of "
                f"{' or '.join(LANE_RATES)}"
            )
        origin = f"{lanes} lanes of {name} {generation}, {rate / 1e9:g} GB/s each in one direction: its standard"
        bandwidth = Quantity(value=rate * lanes, unit="B/s", basis="derived", source=origin)
    if not bandwidth.value > 0.0:
        raise ValueError(f"links.{name}.bandwidth: {bandwidth.value:g} B/s is not above 0")
    usual = find_link_default(name, generation)
    return BoxLink(
        between=(between[0], between[1]),
        name=f"{name} {generation}".strip(),
        bandwidth=bandwidth,
        latency=latency or usual.latency,
        energy=energy or usual.energy,
    )
