"""The devices of a box: found by what its file calls them, and as a run has them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.box import is_box_file
from joulemap.catalog.digest import is_hardware_path
from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.plan.boundary import bound_digest, bound_hardware
from joulemap.plan.catalogue import read_known
from joulemap.system.errors import CatalogueError, JoulemapError
from joulemap.wing.place.box.hardware import BoxHardware, combine

if TYPE_CHECKING:
    from joulemap.domain.box import Box
    from joulemap.domain.configuration import Boundary
    from joulemap.domain.hardware import Hardware
    from joulemap.plan.calibration import CalibrationUse


def describe_box(box: Box, known: Mapping[str, HardwareEntry]) -> BoxHardware:
    """Return a box with its devices as they are described; CatalogueError names the device that cannot be had."""
    found: list[tuple[HardwareEntry | Hardware, str]] = []
    for device in box.devices:
        try:
            one = _find(device.hardware, known)
        except JoulemapError as error:
            raise CatalogueError(f"{box.id}: devices.{device.name}.hardware: {error}") from error
        found += [one] * device.count
    described = read_known([one.digest for one, _ in found if isinstance(one, HardwareEntry)])
    chips = [described[one.digest] if isinstance(one, HardwareEntry) else one for one, _ in found]
    try:
        return combine(box, chips, [mode for _, mode in found])
    except ValueError as error:
        raise CatalogueError(f"{box.id}: {error}") from error


def _find(name: str, known: Mapping[str, HardwareEntry]) -> tuple[HardwareEntry | Hardware, str]:
    """Return the hardware of a name or file, and its power mode."""
    place, _, mode = name.partition("@")
    if is_hardware_path(place):
        from joulemap.catalog.load import load_hardware

        path = Path(place).expanduser()
        if is_box_file(path):
            raise CatalogueError(f"{place} is a box itself: name its devices")
        own = load_hardware(path)
        return own, HardwareEntry.of(own).find_mode(mode or DEFAULT_MODE)
    entry = find_entry(known, CLASS_HARDWARE.get(find_class(place), place))
    return entry, entry.find_mode(mode or DEFAULT_MODE)


def bind_box(hardware: BoxHardware, calibration: CalibrationUse, mode: str, boundary: Boundary) -> BoxHardware:
    """Return a box at a mode, its devices as runs have them: each under its calibration, at its mode and boundary.

    Raises CatalogueError for a calibration that does not fit, UnknownNameError for a mode that a box has not.
    """
    bound: dict[tuple[str, str], Hardware] = {}
    for one, own in _pair(hardware):
        if (one.digest, own) not in bound:
            bound[one.digest, own] = bound_hardware(calibration.apply(one, calibration.find(one)), own, boundary)
    chips = [bound[one.digest, own] for one, own in _pair(hardware)]
    digest = bound_box_digest(hardware, calibration, mode, boundary)
    whole = combine(hardware.box, chips, hardware.device_modes, digest)
    return attrs.evolve(whole, described_digest=hardware.digest).in_mode(mode)


def _pair(hardware: BoxHardware) -> list[tuple[Hardware, str]]:
    return list(zip(hardware.devices, hardware.device_modes, strict=True))


def bound_box_digest(hardware: BoxHardware, calibration: CalibrationUse, mode: str, boundary: Boundary) -> str:
    """Return the digest of what `bind_box` returns."""
    parts = [bound_digest(one, calibration.find(one), own, boundary) for one, own in _pair(hardware)]
    return hashlib.sha256("|".join((hardware.digest, mode, *parts)).encode()).hexdigest()[:16]
