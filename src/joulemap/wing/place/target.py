"""Devices of a box for one question: hardware with its calibration, power mode and measurement boundary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog import is_hardware_path
from joulemap.domain import HardwareRef
from joulemap.domain.architecture import find_class
from joulemap.physics import FP32, PRECISION_BYTES, Configuration, Quantity, choose_precision
from joulemap.plan import find_targets, known_hardware, plan_runs
from joulemap.plan.selection import is_hardware
from joulemap.system import UnknownNameError, UsageError, split_names
from joulemap.wing.place.box.hardware import state_static_power
from joulemap.wing.place.box.member import Member
from joulemap.wing.place.device import check_boundary
from joulemap.wing.place.file import find_box, make_link, refuse_box
from joulemap.wing.place.record import Box, BoxDevice, BoxLink, BoxMemory

if TYPE_CHECKING:
    from joulemap.domain import Settings
    from joulemap.physics import Hardware
    from joulemap.plan import Source

ASKED: Final = "asked for"

SHARED: Final = "shared"
"""Link name that stands for one memory shared by the devices."""

HAND_OVER_S: Final = 5e-6
"""Time to hand a value over in shared memory, in seconds, if no box file states it: a cache write-back and a fence.
Source: assumed.
"""

_LANES: Final = re.compile(r"([a-z_]+?)(\d+)x(\d+)")
"""Format of a link with a name, generation and lane count, such as `pcie4x16`."""


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
    from joulemap.system import read_real

    lanes = _LANES.fullmatch(text.lower())
    number = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]+/s)", text)
    try:
        if number is not None:
            from joulemap.system.units import SI_SCALE

            factor, unit = SI_SCALE.get(number[2], (0.0, ""))
            if unit != "B/s":
                raise UsageError(f"--link {text}: expected a bandwidth in B/s, MB/s, GB/s or TB/s")
            rate = Quantity(value=read_real(number[1]) * factor, unit=unit, basis="assumed", source=ASKED)
            return make_link((first, second), "link", bandwidth=rate)
        if lanes is not None:
            return make_link((first, second), lanes[1], generation=lanes[2], lanes=int(lanes[3]))
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
    """Return the devices of a box, each at the requested precision or the narrowest supported precision that can
    represent it.
    """
    check_boundary(settings.boundary)
    named = [(name, device) for name, device in box]
    chips = find_hardware(source, model, [device.hardware for _, device in named], settings)
    (asked,), (runtime,) = settings.precision, settings.runtime
    weights = settings.weight_precision[0] if settings.weight_precision else ""
    members = []
    for (name, device), (hardware_id, mode, calibration, hardware) in zip(named, chips, strict=True):
        precision, stored = _choose_precision(hardware, device.precision or asked, weights)
        if precision == FP32:
            hardware = hardware.at_matmul_precision(settings.matmul_precision)
        configuration = Configuration(
            hardware=hardware_id,
            precision=precision,
            weight_precision=stored,
            batch=batch,
            runtime=runtime,
            power_mode=mode,
        )
        members.append(
            Member(
                name=name,
                device=device,
                hardware=state_static_power(device, hardware),
                configuration=configuration,
                calibration_digest=calibration,
            )
        )
    return tuple(members)


def _choose_precision(hardware: Hardware, asked: str, weights: str) -> tuple[str, str]:
    """Return the precisions (activations, weights) at which a device computes.

    Weights keep a narrower requested precision. Weights below one byte stay packed on a device without such GEMMs and
    are converted when read.
    """
    precision, stored = choose_precision(hardware, asked, weights)
    if precision == asked:
        return precision, stored
    if weights:
        return precision, weights
    return precision, asked if PRECISION_BYTES[asked] < 1.0 else stored
