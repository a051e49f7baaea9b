"""Devices of a box: lookup by the names in its file, and binding to a calibration and power mode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from joulemap.catalog import is_box_file, is_hardware_path
from joulemap.domain import DEFAULT_MODE, HardwareEntry, HardwareRef, find_entry
from joulemap.physics import BOUNDARY, extend_digest
from joulemap.plan import read_known
from joulemap.plan.selection import find_default_chip
from joulemap.system import CatalogueError, JoulemapError, UsageError, frozen
from joulemap.wing.place.box.hardware import BoxHardware, combine

if TYPE_CHECKING:
    from joulemap.physics import BoundaryName, Hardware
    from joulemap.plan import CalibrationUse, Target
    from joulemap.wing.place.record import Box


def describe_box(box: Box, known: Mapping[str, HardwareEntry]) -> BoxHardware:
    """Return a box with its devices described; CatalogueError names a device that cannot be found."""
    entries: list[tuple[HardwareEntry | Hardware, str]] = []
    for device in box.devices:
        try:
            one = _find(device.hardware, known)
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
