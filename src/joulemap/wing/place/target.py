"""Devices of a box: lookup by the names in its file or in a question, calibration, power mode and boundary."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import attrs

from joulemap.catalog import is_box_file, is_hardware_path, make_port
from joulemap.domain import DEFAULT_MODE, HardwareEntry, HardwareRef, Settings, find_entry
from joulemap.domain.architecture import find_class
from joulemap.physics import BOUNDARY, FP32, BoundaryName, Configuration, Hardware, Quantity, extend_digest
from joulemap.plan import CalibrationUse, Source, Target, find_targets, known_hardware, plan_runs, read_known
from joulemap.plan.selection import find_default_chip, is_hardware
from joulemap.system import (
    CatalogueError,
    JoulemapError,
    UnknownNameError,
    UsageError,
    frozen,
    parse_si,
    split_names,
)
from joulemap.wing.place.box.hardware import BoxHardware, combine, state_static_power
from joulemap.wing.place.box.member import Member, list_members
from joulemap.wing.place.file import find_box, make_link, refuse_box
from joulemap.wing.place.record import Box, BoxDevice, BoxLink, BoxMemory

ASKED: Final = "asked for"

SHARED: Final = "shared"
"""Link name that stands for one memory shared by the devices."""

HAND_OVER_S: Final = 5e-6
"""Time to hand a value over in shared memory, in seconds, if no box file states it: a cache write-back and a fence.
Source: assumed.
"""

_RATE: Final = re.compile(r"[0-9.]+\s*[A-Za-z]+/s")
"""Format of a bandwidth, such as `25GB/s`."""


def read_box(
    box: str, devices: Sequence[str], links: Sequence[str], find: Callable[[list[str]], Sequence[Hardware]]
) -> Box:
    """Return a named box, a box file, or a box of the listed devices and links.

    A device is `HARDWARE`, or `NAME=HARDWARE` to rename it. A link is `25GB/s`, `pcie4x16`, the name of a link that
    both devices have, or `shared`; it joins all devices, or two of them as `A-B=LINK`. `find` returns the hardware of
    listed devices. Raises UsageError.
    """
    if box and devices:
        raise UsageError(f"name either a box, {box}, or devices with --on")
    if not box and not devices:
        raise UsageError("name a box of `joulemap hardware list --boxes`, or devices with --on, as in --on cpu,gpu")
    if box:
        named_box = find_box(box)
        if named_box is None:
            raise _refuse(box)
        return named_box
    named = [_read_device(text) for one in devices for text in split_names(one)]
    for name in {one.name for one in named}:
        if [one.name for one in named].count(name) > 1:
            raise UsageError(f"--on names the device {name} twice: rename one, as in NAME=HARDWARE")
    if len(named) > 1 and not links:
        raise UsageError(
            "--link: name the link between the devices, e.g. --link pcie4x16, --link 25GB/s or --link shared"
        )
    joined = [_read_link(text) for one in links for text in split_names(one)]
    return _join(named, joined, find([one.hardware for one in named]))


def _refuse(name: str) -> UsageError | UnknownNameError:
    """Return the error for a name that is not a box; if it names chips, the message suggests `--on` and `--link`."""
    chips, known = split_names(name), known_hardware()
    if is_hardware_path(name) or not all(is_hardware(known, chip) for chip in chips):
        return refuse_box(name)
    fault = f"{name} is a chip, not a box" if len(chips) == 1 else f"{name} are chips, not a box"
    beside, it = (name, "them") if len(chips) > 1 else (f"{name},cpu", "it to others")
    return UsageError(f"{fault}: name what joins {it}, as in --on {beside} --link pcie4x16, or see "
                      "`joulemap hardware list --boxes`")  # fmt: skip


def _read_device(text: str) -> BoxDevice:
    name, equals, hardware = text.partition("=")
    return BoxDevice(
        name=name if equals else find_class(text) or HardwareRef.read(text).label, hardware=hardware or text
    )


def _read_link(text: str) -> tuple[tuple[str, str] | None, str]:
    ends, equals, link = text.partition("=")
    if not equals:
        return None, text
    first, dash, second = ends.partition("-")
    if not dash:
        raise UsageError(f"--link {text}: expected LINK, or A-B=LINK of two devices")
    return (first, second), link


def _join(
    devices: list[BoxDevice], links: list[tuple[tuple[str, str] | None, str]], hardware: Sequence[Hardware]
) -> Box:
    """Return a box of devices; a link between two devices takes precedence over the link between all."""
    by_name = {device.name: one for device, one in zip(devices, hardware, strict=True)}
    names = [device.name for device in devices]
    for pair, _ in links:
        for end in pair or ():
            if end not in names:
                raise UsageError(f"--link: {end} is not one of the devices {', '.join(names)}")
    usual = [link for pair, link in links if pair is None]
    stated = {frozenset(pair): link for pair, link in links if pair is not None}
    joined: list[BoxLink] = []
    sharing: set[str] = set()
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            pair_link = stated.get(frozenset((first, second)), usual[0] if usual else "")
            if pair_link == SHARED:
                sharing |= {first, second}
            elif pair_link:
                joined.append(_make(pair_link, first, second, by_name))
    memories = (_share([by_name[name] for name in sharing]),) if sharing else ()
    placed = tuple(attrs.evolve(one, memory=SHARED) if one.name in sharing else one for one in devices)
    try:
        return Box(id="+".join(names), name="+".join(names), devices=placed, links=tuple(joined), memories=memories)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _share(hardware: Sequence[Hardware]) -> BoxMemory:
    """Return the memory that devices share: the largest capacity and the highest bandwidth among them."""
    largest = max(hardware, key=lambda one: one.memory_capacity.value)
    fastest = max(hardware, key=lambda one: one.memory_bandwidth.value)
    return BoxMemory(
        name=SHARED,
        capacity=largest.memory_capacity,
        bandwidth=fastest.memory_bandwidth,
        latency=Quantity(value=HAND_OVER_S, unit="s", basis="assumed", source="caches written back, and a fence"),
    )


def _make(text: str, first: str, second: str, hardware: dict[str, Hardware]) -> BoxLink:
    try:
        if _RATE.fullmatch(text):
            rate = Quantity(value=parse_si(text, "B/s"), unit="B/s", basis="assumed", source=ASKED)
            return make_link((first, second), "link", bandwidth=rate)
        with suppress(UsageError):
            port = make_port(text)
            lanes = round(port.lane_count.value) if port.lane_count else 1
            return make_link((first, second), port.name, generation=port.generation, lanes=lanes)
        own = [link for name in (first, second) for link in hardware[name].links]
        alike = [link for link in own if link.name == text.lower()]
        slowest = min(alike, key=lambda link: link.bandwidth.value, default=None)
        if slowest is None:
            known = "".join(f"{name}, " for name in sorted({link.name for link in own}))
            raise UsageError(f"--link: unknown link {text!r}; expected a bandwidth such as 25GB/s, {known}pcie4x16 or "
                             f"{SHARED}")  # fmt: skip
        return make_link(
            (first, second),
            text.lower(),
            generation=slowest.generation,
            bandwidth=slowest.bandwidth,
            latency=slowest.latency,
            energy=slowest.energy,
        )
    except ValueError as error:
        raise UsageError(f"--link {text}: {error}") from error


def find_hardware(
    source: Source, model: str, names: Sequence[str], settings: Settings
) -> list[tuple[str, str, str, Hardware]]:
    """Return (id, power mode, calibration digest, hardware) for each name, with the question's settings.

    Raises UsageError for a name of several chips, and the errors of `plan_runs`.
    """
    by_name: dict[str, tuple[str, str, str, Hardware]] = {}
    for name in dict.fromkeys(names):
        plan = plan_runs((model,), attrs.evolve(settings, hardware=(name,)))
        if len(plan.selection.pairs) != 1:
            raise UsageError(f"{name} matches {len(plan.selection.pairs)} chips, expected one per device")
        ((entry, mode),) = plan.selection.pairs
        (hardware,) = find_targets(source, plan).values()
        calibration = plan.calibration.find(entry)
        by_name[name] = entry.id, mode, calibration.digest if calibration else "", hardware
    return [by_name[name] for name in names]


def find_members(source: Source, model: str, box: Box, settings: Settings, batch: int) -> tuple[Member, ...]:
    """Return the devices of a box as a question evaluates them; raises the errors of `find_hardware`."""
    check_boundary(settings.boundary)
    found = find_hardware(source, model, [device.hardware for _, device in box], settings)
    (precision,), (runtime,), (weights, *_) = settings.precision, settings.runtime, (*settings.weight_precision, "")
    asked = Configuration(hardware="", precision=precision, weight_precision=weights, batch=batch, runtime=runtime)
    chips = [state_static_power(device, chip) for (_, device), (*_, chip) in zip(box, found, strict=True)]
    members = list_members(box, chips, [mode for _, mode, *_ in found], asked)
    return tuple(
        attrs.evolve(
            member,
            hardware=member.hardware.at_matmul_precision(settings.matmul_precision)
            if member.configuration.precision == FP32
            else member.hardware,
            configuration=attrs.evolve(member.configuration, hardware=hardware_id),
            calibration_digest=calibration,
        )
        for member, (hardware_id, _, calibration, _) in zip(members, found, strict=True)
    )


def describe_box(box: Box, known: Mapping[str, HardwareEntry]) -> BoxHardware:
    """Return a box with its devices described; CatalogueError names a device that cannot be found."""
    entries: list[tuple[HardwareEntry | Hardware, str]] = []
    members = known_hardware([device.hardware for device in box.devices])
    for device in box.devices:
        try:
            one = _find(device.hardware, {**members, **known})
        except JoulemapError as error:
            raise CatalogueError(f"{box.id}: devices.{device.name}.hardware: {error}") from error
        entries += [one] * device.count
    described = read_known([one.digest for one, _ in entries if isinstance(one, HardwareEntry)])
    chips = [described[one.digest] if isinstance(one, HardwareEntry) else one for one, _ in entries]
    try:
        return combine(box, chips, [mode for _, mode in entries])
    except ValueError as error:
        raise CatalogueError(f"{box.id}: {error}") from error


def _find(name: str, known: Mapping[str, HardwareEntry]) -> tuple[HardwareEntry | Hardware, str]:
    """Return the hardware with this name or file, and its power mode."""
    ref = HardwareRef.read(name)
    label, mode = ref.label, ref.mode
    if is_hardware_path(label):
        from joulemap.catalog.chip import load_hardware

        path = Path(label).expanduser()
        if is_box_file(path):
            raise CatalogueError(f"{label} is a box: name its devices instead")
        own = load_hardware(path)
        return own, HardwareEntry.of(own).find_mode(mode or DEFAULT_MODE)
    entry = find_entry(known, find_default_chip(label) or label)
    return entry, entry.find_mode(mode or DEFAULT_MODE)


@frozen(kw_only=True)
class BoxedTargets:
    """Calibration and power mode for each device of a box, and the mode of the whole box."""

    devices: tuple[Target, ...]
    mode: str

    @property
    def word(self) -> str:
        """Text that identifies the mode and the devices' targets in digests."""
        return "".join(f"|{one}" for one in (self.mode, *(one.digest for one in self.devices)))

    def apply(self, hardware: Hardware) -> BoxHardware:
        """Return the box with the calibration and power mode of each device applied.

        Raises CatalogueError for a calibration that does not fit, UnknownNameError for a mode that the box lacks.
        """
        box = cast("BoxHardware", hardware)
        bound: dict[str, Hardware] = {}
        for target, device in zip(self.devices, box.devices, strict=True):
            if target.digest not in bound:
                bound[target.digest] = target.bind(device)
        chips = [bound[one.digest] for one in self.devices]
        whole = combine(box.box, chips, box.device_modes, extend_digest(box.digest, self.word))
        return attrs.evolve(whole, described_digest=box.digest).in_mode(self.mode)


def check_boundary(boundary: BoundaryName) -> None:
    """Raise UsageError for a measurement boundary that boxes do not support."""
    if BOUNDARY[boundary].is_at_wall:
        raise UsageError("--boundary system does not apply to a box: the power of its other parts is unknown")


def bind_devices(hardware: BoxHardware, calibration: CalibrationUse, mode: str, boundary: BoundaryName) -> BoxedTargets:
    """Return the calibration and power mode of each device of a described box.

    Raises UsageError for the boundary `system`, which requires devices of one kind.
    """
    check_boundary(boundary)
    pairs = zip(hardware.devices, hardware.device_modes, strict=True)
    return BoxedTargets(devices=tuple(calibration.target(one, own, boundary) for one, own in pairs), mode=mode)
