"""Show all numbers of one chip after its calibration."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joulemap.ask.answer import Answer, fetch_tables
from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry
from joulemap.domain.computed import make_table
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.offer import SellerPrice
from joulemap.domain.settings import check_name, name_boundary
from joulemap.domain.table import Table
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.hardware import (
    ActionPrice,
    HardwareCompiler,
    HardwareFact,
    HardwareLink,
    HardwareSummary,
    ListedOperator,
    RidgePoint,
)
from joulemap.physics.record.calibration import Calibration, CalibrationEntry
from joulemap.physics.record.compiler import ANY, EXCEPTED, REFUSED
from joulemap.physics.record.configuration import BOARD, BOUNDARY_NAMES, BoundaryName
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.calibration import use_calibration
from joulemap.plan.catalogue import known_hardware, opening_alone, opening_catalogue
from joulemap.plan.selection import find_chip, find_default_chip, resolve_name
from joulemap.plan.source import Source
from joulemap.store.connection import Connection
from joulemap.store.hardware import read_hardware
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class HardwareAnswer(Answer):
    """One chip: summary, rooflines, links and every number."""

    asked: str
    """Name or file given by the caller."""
    summaries: Table[HardwareSummary]
    """Summary of the hardware; one row."""
    ridge: Table[RidgePoint]
    links: Table[HardwareLink]
    facts: Table[HardwareFact]
    compilers: Table[HardwareCompiler]
    """Operators that a compiler supports; empty for hardware that runs every operator."""
    calibrations: Table[StoredCalibration]
    """Calibration of the hardware; empty if class defaults apply."""
    meanings: Mapping[str, str]
    """Class -> chip that represents it, if the caller named a class; empty if the caller named a chip."""

    @property
    def summary(self) -> HardwareSummary:
        """Summary of the hardware."""
        return self.summaries[0]

    @property
    def offers(self) -> list[SellerPrice]:
        """Prices of the chip by way of paying and kind of seller."""
        from joulemap.catalog.sheet import load_offers
        from joulemap.domain.offer import summarize_offers

        return [one for one in summarize_offers(load_offers()) if one.hardware == self.summary.hardware]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        data = super().data()
        return {**data.pop("summaries")[0], **data, "class_defaults": self.meanings}

    def list_operators(self) -> Table[ListedOperator]:
        """Return the entries of the compiler's operator list; empty for hardware that runs every operator."""
        entries = [entry.partition(" ") for one in self.compilers for entry in one.operators]
        support = {REFUSED: "refused", EXCEPTED: "host"}
        rows = [
            ListedOperator(
                operator=name.lstrip("!-"),
                support="limited" if name == ANY else support.get(name[0], "runs"),
                limits=limits,
            )
            for name, _, limits in entries
        ]
        return make_table("hardware show", ListedOperator, rows)


def hardware(source: Source, name: str) -> Hardware:
    """Return the record of one chip: an id or alias, with or without `@MODE`, or a hardware file.

    Its numbers are those of the catalogue or the file, before calibration. `attrs.evolve` makes a variant, which
    questions take in place of a name. Raises UnknownNameError, UsageError, or CatalogueError for an invalid file.
    """
    ref = HardwareRef.read(resolve_name(name))
    if ref.settings:
        raise UsageError(f"{name} sets constants, but a record has those of its file: attrs.evolve makes a variant")
    if not is_hardware_path(ref.label):
        entry = find_chip(known_hardware([ref.label]), ref.label)
        if entry.id in known_hardware():
            with opening_catalogue(source) as connection:
                plain = read_hardware(connection, [entry.digest])[entry.digest]
            return plain.in_mode(entry.mode_of(ref))
    plain, mode = load_named(resolve_name(name))
    return plain.in_mode(mode)


def describe_hardware(source: Source, name: str, *, calibration: str | Calibration = "auto") -> HardwareAnswer:
    """Return every number of one chip with unit, basis and source, as `joulemap hardware show` prints them.

    `name` is an id or alias, with or without `@MODE`, or a hardware file. Calibrated numbers replace those of the
    catalogue, as in `compare`. Raises UnknownNameError, or CatalogueError for an invalid file.
    """
    with opening_hardware(source, name, calibration) as (connection, hardware_id, used):
        return HardwareAnswer(
            asked=name,
            **fetch_tables(connection, HardwareAnswer, ("calibrations",), hardware=hardware_id),
            calibrations=_find_calibrations(connection, hardware_id, used),
            meanings={name: meant} if (meant := find_default_chip(name)) else {},
        )


def _find_calibrations(
    connection: Connection, hardware: str, used: CalibrationEntry | None
) -> Table[StoredCalibration]:
    """Return the calibration that a chip uses, or no row. A calibration of another chip is marked as inherited."""
    table = fetch(connection, StoredCalibration, hardware=used.hardware if used else "-")
    is_inherited = used is not None and used.hardware != hardware
    inheritors = [hardware] if is_inherited else []
    return table.with_rows(row.replace(inheritors=inheritors) for row in table)


def energy_reference(
    source: Source, name: str, *, calibration: str | Calibration = "auto", boundary: BoundaryName = "board"
) -> Table[ActionPrice]:
    """Return the energy per action of every action of one chip, as runs at this boundary use it.

    Name, calibration and exceptions are as in `describe_hardware`; UsageError for a boundary that is unknown or that
    the hardware lacks.
    """
    with opening_hardware(source, name, calibration, boundary) as (connection, hardware_id, _):
        return fetch(connection, ActionPrice, hardware=hardware_id)


@contextlib.contextmanager
def opening_hardware(
    source: Source, name: str, calibration: str | Calibration, boundary: BoundaryName | None = None
) -> Iterator[tuple[Connection, str, CalibrationEntry | None]]:
    """Yield a connection to a catalogue with the chip, the chip's id, and its calibration (None for class defaults).

    `name` is an id or alias, with or without `@MODE`, or a file. If `boundary` is None, numbers are as in the hardware
    file, not adjusted to a boundary. UsageError for an unknown boundary.
    """
    if boundary is not None:
        boundary = name_boundary(boundary)
        check_name("boundary", boundary, BOUNDARY_NAMES)
    use = use_calibration(calibration)
    name = resolve_name(name)
    ref = HardwareRef.read(name)
    label = ref.label
    if not ref.mode and not is_hardware_path(label):
        entry = find_chip(known_hardware([label]), label)
        use.check({entry.id})
        with opening_catalogue(source) as connection:
            is_stored = entry.id in known_hardware()
            is_described = is_stored and (boundary is None or boundary == entry.priced_at == BOARD)
            is_described &= entry.mode_of(ref) == DEFAULT_MODE
            if use.find(entry) is None and is_described:
                yield connection, entry.id, None
                return
            plain, mode = (
                (read_hardware(connection, [entry.digest])[entry.digest], entry.mode_of(ref))
                if is_stored
                else load_named(name)
            )
    else:
        plain, mode = load_named(name)
        use.check({plain.id})
    used = use.find(plain)
    if boundary is None:
        hardware = use.adjust(plain, used).in_mode(mode)
    else:
        hardware = use.target(plain, mode, boundary).bind(plain)
    calibrations = [] if used is None else [(used, use.load(used, plain.architecture), plain)]
    with opening_alone(hardware, *calibrations) as connection:
        yield connection, hardware.id, used


def load_named(name: str) -> tuple[Hardware, str]:
    """Return the hardware and the power mode that a name or file selects.

    Raises UnknownNameError, UsageError or CatalogueError.
    """
    from joulemap.catalog.load import find_hardware, load_files

    ref = HardwareRef.read(name)
    label = ref.label
    if is_hardware_path(label):
        loaded = load_files(expand_paths([Path(label).expanduser()]))
        if len(loaded) > 1:
            raise UsageError(f"{label} holds {len(loaded)} hardware files: name one")
        hardware = loaded[0]
    else:
        hardware = find_hardware(label)
    return hardware, HardwareEntry.of(hardware).mode_of(ref)
