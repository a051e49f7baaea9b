"""Boxes as a kind of hardware that implements the core's hardware interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from joulemap.wing.place.record import BOX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from joulemap.domain import HardwareEntry
    from joulemap.physics import BoundaryName, Change, Configuration, Constant, Hardware, RunColumns, WorkloadColumns
    from joulemap.plan import CalibrationUse
    from joulemap.wing.place.box.hardware import BoxHardware
    from joulemap.wing.place.box.variation import VariedBox
    from joulemap.wing.place.target import BoxedTargets


class BoxKind:
    """Box: several devices in one machine, on which a model is placed."""

    architecture: Final = BOX
    formulas: Final = ("wing/place/box",)
    list_question: Final = "box_list"
    list_columns: Final = ("devices", "joined_by")
    show_question: Final = "box"

    def is_name(self, name: str) -> bool:
        """Return True if a name belongs to a box of the catalogue."""
        from joulemap.wing.place.file import find_box

        return find_box(name) is not None

    def is_file(self, path: Path) -> bool:
        """Return True if a file describes a box."""
        from joulemap.catalog import is_box_file

        return is_box_file(path)

    def list_near(self, name: str) -> list[str]:
        """Return the boxes of the catalogue whose names are nearest to a misspelled one."""
        from joulemap.wing.place.file import list_near

        return list_near(name)

    def find(self, name: str, known: Mapping[str, HardwareEntry]) -> Hardware | None:
        """Return the box with this name; None if the name is not that of a box.

        Raise CatalogueError if one of its devices cannot be found.
        """
        from joulemap.wing.place.file import find_box
        from joulemap.wing.place.target import describe_box

        box = find_box(name)
        return None if box is None else describe_box(box, known)

    def load(self, path: Path, known: Mapping[str, HardwareEntry]) -> Hardware:
        """Return the box that a file describes; raises CatalogueError."""
        from joulemap.wing.place.file import load_box
        from joulemap.wing.place.target import describe_box

        return describe_box(load_box(path), known)

    def extend_entry(self, entry: HardwareEntry) -> HardwareEntry:
        """Return the catalogue entry of a box, with the default placement goal as its default mode."""
        import attrs

        from joulemap.wing.place.box.hardware import DEFAULT_GOAL

        return attrs.evolve(entry, default_names=(DEFAULT_GOAL,))

    def list_parts(self, hardware: Hardware) -> tuple[Hardware, ...]:
        """Return the devices of a box, one entry per device."""
        return cast("BoxHardware", hardware).devices

    def modifier(
        self, hardware: Hardware, calibration: CalibrationUse, mode: str, boundary: BoundaryName
    ) -> BoxedTargets:
        """Return the calibrations and power modes that turn a described box into one that can be evaluated."""
        from joulemap.wing.place.target import bind_devices

        return bind_devices(cast("BoxHardware", hardware), calibration, mode, boundary)

    def list_constants(self, hardware: Hardware) -> dict[str, Constant]:
        """Return name -> constant of an evaluated box."""
        from joulemap.wing.place.box.variation import list_box_constants

        return list_box_constants(cast("BoxHardware", hardware))

    def change(self, hardware: Hardware, changes: Sequence[Change], name: str, *, is_varied: bool) -> Hardware:
        """Return a box with changed constants; ValueError if its numbers contradict each other."""
        from joulemap.wing.place.box.variation import change_box, vary_box

        box = cast("BoxHardware", hardware)
        return vary_box(box, changes) if is_varied else change_box(box, changes, name)

    def evaluate(self, work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> RunColumns:
        """Return the run of a workload on a box at its best placement; UnsupportedError if it cannot run there."""
        from joulemap.wing.place.box.column import evaluate_box

        return evaluate_box(work, cast("BoxHardware", hardware), configuration)

    def vary(self, work: WorkloadColumns, configuration: Configuration) -> VariedBox:
        """Return a workload on a box as a function of the box's constants."""
        from joulemap.wing.place.box.variation import VariedBox

        return VariedBox(work, configuration)

    def name_chips(self, hardware: Hardware) -> Mapping[str, Hardware]:
        """Return device name -> chip."""
        return cast("BoxHardware", hardware).chips


KIND: Final = BoxKind()
