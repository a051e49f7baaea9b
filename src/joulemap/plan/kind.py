"""Kinds of hardware that wings add to the chips of the catalogue, and the interface of a kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from joulemap.physics.record.constant import Change, Constant, list_constants
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.physics.record.configuration import BoundaryName, Configuration
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.run import RunColumns
    from joulemap.physics.variation import Totals
    from joulemap.physics.workload import WorkloadColumns
    from joulemap.plan.calibration import CalibrationUse
    from joulemap.plan.target import Modifier

PORT: Final = "hardware"


class VariedRun(Protocol):
    """Interface of a workload at one configuration that is evaluated on changed hardware, such as
    `model.variation.Varied`.
    """

    def evaluate(self, hardware: Hardware) -> Totals:
        """Return the workload's totals on hardware; raises the errors of a run."""
        ...

    def evaluate_all(self, hardware: Sequence[Hardware]) -> list[Totals | None]:
        """Return the workload's totals on each hardware; None where `evaluate` raises."""
        ...

    def find_asked(self, hardware: Hardware) -> frozenset[str]:
        """Return the names of the constants that the formulas read."""
        ...


class HardwareKind(Protocol):
    """Kind of hardware other than a chip, such as a box of several devices; wings register kinds at `hardware`."""

    architecture: str
    """Architecture class that hardware of this kind has."""
    formulas: tuple[str, ...]
    """Files and folders, below the package `joulemap`, with the code that computes a run of this kind."""
    list_question: str
    """Question of the workspace that lists all hardware of this kind as a table."""
    list_columns: tuple[str, ...]
    """Columns of that table that a narrow terminal keeps."""
    show_question: str
    """Question of the workspace that describes one piece of hardware of this kind, by name or file."""

    def is_name(self, name: str) -> bool:
        """Return True if a name that is not a chip belongs to this kind."""
        ...

    def is_file(self, path: Path) -> bool:
        """Return True if a file describes hardware of this kind."""
        ...

    def list_near(self, name: str) -> list[str]:
        """Return the names of this kind that are nearest to a misspelled name."""
        ...

    def find(self, name: str, known: Mapping[str, HardwareEntry]) -> Hardware | None:
        """Return the named hardware, None if it is not of this kind; CatalogueError if a part cannot be found."""
        ...

    def load(self, path: Path, known: Mapping[str, HardwareEntry]) -> Hardware:
        """Return the hardware that a file describes; raises CatalogueError."""
        ...

    def extend_entry(self, entry: HardwareEntry) -> HardwareEntry:
        """Return an entry with the additions of its kind, such as the names of its default mode."""
        ...

    def list_parts(self, hardware: Hardware) -> tuple[Hardware, ...]:
        """Return the chips that hardware consists of."""
        ...

    def modifier(self, hardware: Hardware, calibration: CalibrationUse, mode: str, boundary: BoundaryName) -> Modifier:
        """Return the modifier that calibrates the chips of hardware and sets its mode and boundary."""
        ...

    def list_constants(self, hardware: Hardware) -> dict[str, Constant]:
        """Return name -> constant of hardware with all modifiers applied."""
        ...

    def change(self, hardware: Hardware, changes: Sequence[Change], name: str, *, is_varied: bool) -> Hardware:
        """Return hardware with changed constants, renamed if a name is given.

        ValueError if the constants contradict each other. With `is_varied` the hardware is evaluated once and needs no
        sums over its chips.
        """
        ...

    def evaluate(self, work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> RunColumns:
        """Return a run; UnsupportedError if the hardware cannot run it."""
        ...

    def vary(self, work: WorkloadColumns, configuration: Configuration) -> VariedRun:
        """Return a workload as a function of the constants of the hardware."""
        ...

    def name_chips(self, hardware: Hardware) -> Mapping[str, Hardware]:
        """Return the chips of hardware, by the prefix that their constants' names have."""
        ...


def list_kinds() -> list[HardwareKind]:
    """Return the kinds of hardware that all wings register."""
    return list(find_parts(PORT))


def list_numbers(hardware: Hardware) -> dict[str, Constant]:
    """Return name -> constant of a chip or of any other kind of hardware."""
    kind = find_kind(hardware.architecture)
    return list_constants(hardware) if kind is None else kind.list_constants(hardware)


def change_numbers(
    hardware: Hardware, changes: Sequence[Change], name: str = "", *, is_varied: bool = False
) -> Hardware:
    """Return a chip, or any other kind of hardware, with set constants; ValueError if they contradict each other.

    With `is_varied` the hardware is evaluated once and needs no sums over its chips.
    """
    if (kind := find_kind(hardware.architecture)) is not None:
        return kind.change(hardware, changes, name, is_varied=is_varied)
    from joulemap.physics.change import change_hardware

    return change_hardware(hardware, changes, name)


@cache
def find_kind(architecture: str) -> HardwareKind | None:
    """Return the kind of a class of hardware; None for a class of chips."""
    return next((one for one in list_kinds() if one.architecture == architecture), None)
