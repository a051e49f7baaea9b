"""List hardware, and show one with all its numbers under its calibration."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Answer, fetch_tables
from joulemap.answer.scope import describe_calibration
from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.domain.catalogue import DEFAULT_MODE, find_entry
from joulemap.domain.compiler import CUTS, HOST_OPERATIONS, UNLISTED_NAME
from joulemap.domain.configuration import BOARD, BOUNDARIES, Boundary
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.host import suggest_host
from joulemap.domain.name import PROJECTED
from joulemap.domain.settings import check_name, name_boundary
from joulemap.domain.table import Table
from joulemap.plan.calibration import use_calibration
from joulemap.plan.catalogue import known_hardware, opening_alone, opening_catalogue
from joulemap.plan.selection import describe_meanings, find_meant, resolve_name
from joulemap.plan.source import Source
from joulemap.present.cell import join_names, show_count, show_quantity
from joulemap.present.document import Document, Grid, Lines, Section, draw_columns, grid
from joulemap.row.calibration import StoredCalibration
from joulemap.row.hardware import ActionPrice, HardwareCompiler, HardwareFact, HardwareLink, HardwareSummary, RidgePoint
from joulemap.store.connection import Connection
from joulemap.store.hardware import read_hardware
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration, CalibrationEntry
    from joulemap.domain.hardware import Hardware

PREFIXED: Final = ("Hz", "B/s", "ops/s", "W", "s", "T/s")
"""Units shown with an SI prefix; bytes too, from 1000."""

ROOFLINE: Final = (
    "precision", "peak_ops_per_s", "ridge_ops_per_byte", "basis", "units_count", "operations_per_clock", "clock_hz",
    "peak_ops_per_j", "explanation",
)  # fmt: skip
"""Columns shown of peaks."""

LINK: Final = (
    "link", "generation", "connects", "link_count", "bandwidth_bytes_per_s", "lane_count", "topology", "domain_size",
    "latency_s", "energy_per_byte_j", "basis", "source",
)  # fmt: skip
"""Columns shown of links."""

KILO: Final = 1000.0

MATTERS: Final = {
    "clock": "clock",
    "memory_capacity": "memory",
    "memory_bandwidth": "memory bandwidth",
    "tdp": "power cap",
    "idle_power": "idle power",
    "static_power": "static power",
    "process_node": "process node",
    "launch_year": "launched in",
    "price_purchase": "purchase price",
    "price_cloud": "cloud price",
}
"""Main quantity of a hardware -> its label."""

PRICES: Final = {"rented": "price_cloud", "bought": "price_purchase"}
"""Way of paying -> quantity of a hardware that holds its price."""


@frozen(kw_only=True)
class HardwareAnswer(Answer):
    """One hardware: summary, rooflines, links and every number."""

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
    """Calibration of the numbers; empty for class defaults."""
    meanings: Mapping[str, str]
    """Class given by the caller -> hardware that represents it; empty if a chip was named."""

    @property
    def summary(self) -> HardwareSummary:
        """Summary of the hardware."""
        return self.summaries[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        data = super().data()
        return {**data.pop("summaries")[0], **data, "class_defaults": self.meanings}

    def document(self) -> Document:
        """Return the document; csv holds the numbers."""
        one = self.summary
        mark = PROJECTED if one.unavailable else ""
        roofs = draw_columns(self.ridge, columns=ROOFLINE, keep=ROOFLINE[1:4], is_bare=True)
        links = draw_columns(self.links, columns=LINK, keep=LINK[2:5], is_bare=True)
        facts = grid(
            self.facts,
            (
                ("quantity", "quantity"),
                ("value", lambda row: _amount(row.value, row.unit)),
                ("basis", "basis"),
                ("source", "source"),
                ("note", "note"),
            ),
            keep=("value", "basis"),
        )
        return Document(
            title=f"{mark}{one.hardware}: {one.name} ({one.vendor}, {one.microarchitecture})",
            answer=self.say_what(),
            sections=(Section("What matters", self._matters()),),
            sure=self.say_bases(),
            details=(
                Section("Roofline", roofs),
                Section("Links, in one direction", links),
                Section("Numbers", facts),
                Section("What its compiler runs", Lines(tuple(map(_tell_compiler, self.compilers)))),
                Section("Doubts", Lines(one.doubts)),
            ),
            notes=tuple(self._describe()),
            steps=(f"joulemap hardware show {shlex.quote(self.asked)} --energy",),
            data=self.data(),
            table=self.facts,
            tables=self.tables,
        )

    def say_what(self) -> str:
        """Return a sentence on the hardware: class, units, peak, memory and power limit."""
        one = self.summary
        found = {row.quantity: _amount(row.value, row.unit) for row in self.facts}
        fastest = max(self.ridge, key=lambda row: row.peak_ops_per_s)
        peak = show_quantity(fastest.peak_ops_per_s, "ops/s")
        where = f", for {join_names(one.deployment)}" if one.deployment else ""
        article = "An" if one.architecture == "npu" else "A"
        text = (
            f"{article} {one.architecture} of {show_count(one.units_total_count, one.unit_name)}, {peak} at most "
            f"({fastest.precision}), with {found['memory_capacity']} at {found['memory_bandwidth']} "
            f"({one.memory_type}), within {found['tdp']}{where}."
        )
        text += f" It needs a host: {one.needs_host}." if one.needs_host else ""
        return text + (f" Not available: {one.unavailable}." if one.unavailable else "")

    def say_bases(self) -> str:
        """Return the counts of recalled and assumed numbers."""
        one = self.summary
        return (
            f"{one.recalled_fact_count} of {one.fact_count} numbers are recalled and {one.assumed_fact_count} assumed; "
            f"of {one.action_count} energies per action {one.recalled_action_count} are recalled and "
            f"{one.assumed_action_count} assumed"
        )

    def _matters(self) -> Grid:
        """Return the peaks, memory, power and prices, each with its basis."""
        facts = {row.quantity: row for row in self.facts}
        rows = [(f"peak {row.precision}", show_quantity(row.peak_ops_per_s, "ops/s"), row.basis) for row in self.ridge]
        prices = self._list_prices()
        for name, label in MATTERS.items():
            if name in facts:
                fact = facts[name]
                rows += prices.get(name) or [(label, _amount(fact.value, fact.unit), fact.basis)]
        return Grid(headings=("quantity", "value", "basis"), rows=tuple(rows))

    def _list_prices(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return quantity of a price -> its rows, one per kind of seller, as in answers about cost."""
        from joulemap.catalog.sheet import load_offers
        from joulemap.domain.offer import summarize_offers

        found: dict[str, list[tuple[str, str, str]]] = {}
        for one in summarize_offers(load_offers()):
            if one.hardware == self.summary.hardware:
                name = PRICES[one.way]
                amount = _amount(one.usd, self._price_units[name])
                found.setdefault(name, []).append((MATTERS[name], amount, f"{one.basis}: {one.told}"))
        return found

    @property
    def _price_units(self) -> dict[str, str]:
        return {row.quantity: row.unit for row in self.facts if row.quantity in PRICES.values()}

    def _describe(self) -> list[str]:
        one = self.summary
        most, least = show_quantity(one.tdp_w, "W"), show_quantity(one.static_power_w, "W")
        watts = f"power limit {most}, static power {least}"
        if one.needs_host:
            host = suggest_host(one.needs_host)
            watts += f", without the computer that it needs ({one.needs_host}): --host {host}, for example, counts it"
        lines = [watts]
        if one.aliases:
            lines.append(f"also called {', '.join(one.aliases)}")
        if one.power_modes:
            lines.append(f"power modes: {', '.join(f'{one.hardware}@{mode}' for mode in one.power_modes)}")
        if one.projection:
            lines.append(f"estimated: {one.projection}")
        if one.unavailable:
            lines.append(f"{PROJECTED} not available: {one.unavailable}")
        calibrated = [line for row in self.calibrations for line in describe_calibration(row, [one.hardware])]
        calibrated = calibrated or ["not calibrated: coefficients are those of the class"]
        return [*lines, *calibrated, *describe_meanings(self.meanings)]


def hardware(source: Source, name: str, *, calibration: str | Calibration = "auto") -> HardwareAnswer:
    """Return every number of one hardware: an id or alias, with or without `@MODE`, or a hardware file.

    Numbers are those under its calibration, as in `compare`. Raises UnknownNameError, or CatalogueError for a file that
    breaks a rule.
    """
    with opening_hardware(source, name, calibration) as (connection, found, used):
        return HardwareAnswer(
            asked=name,
            **fetch_tables(connection, HardwareAnswer, ("calibrations",), hardware=found),
            calibrations=_find_calibrations(connection, found, used),
            meanings={name: meant} if (meant := find_meant(name)) else {},
        )


def _find_calibrations(
    connection: Connection, hardware: str, used: CalibrationEntry | None
) -> Table[StoredCalibration]:
    """Return the calibration of a hardware's numbers; one of another hardware is marked as inherited."""
    table = fetch(connection, StoredCalibration, hardware=used.hardware if used else "-")
    is_inherited = used is not None and used.hardware != hardware
    inheritors = [hardware] if is_inherited else []
    return attrs.evolve(table, rows=tuple(row.replace(inheritors=inheritors) for row in table))


def energy_reference(
    source: Source, name: str, *, calibration: str | Calibration = "auto", boundary: Boundary = "board"
) -> Table[ActionPrice]:
    """Return the energy reference table of one hardware, as runs at this boundary use it.

    Name, calibration and exceptions are as in `hardware`; UsageError for an unknown boundary, or one that the
    hardware lacks.
    """
    with opening_hardware(source, name, calibration, boundary) as (connection, found, _):
        return fetch(connection, ActionPrice, hardware=found)


@contextlib.contextmanager
def opening_hardware(
    source: Source, name: str, calibration: str | Calibration, boundary: Boundary | None = None
) -> Iterator[tuple[Connection, str, CalibrationEntry | None]]:
    """Yield a connection whose catalogue holds a hardware, the hardware's id, and the calibration of its numbers.

    `name` is an id or alias, with or without `@MODE`, or a file. Without a boundary the hardware is as described,
    without an anchor. The database is used if it holds the answer. UsageError for an unknown boundary.
    """
    if boundary is not None:
        boundary = name_boundary(boundary)
        check_name("boundary", boundary, BOUNDARIES)
    use = use_calibration(calibration)
    name = resolve_name(name)
    ref = HardwareRef.read(name)
    place = ref.label
    if not ref.mode and not is_hardware_path(place):
        entry = find_entry(known_hardware(), place)
        use.check({entry.id})
        with opening_catalogue(source) as connection:
            is_described = boundary is None or boundary == entry.priced_at == BOARD
            if use.find(entry) is None and is_described:
                yield connection, entry.id, None
                return
            plain, mode = read_hardware(connection, [entry.digest])[entry.digest], DEFAULT_MODE
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
    """Return the hardware and power mode of a name or file; UnknownNameError, UsageError or CatalogueError."""
    from joulemap.catalog.load import load_catalogue, load_files
    from joulemap.domain.catalogue import HardwareEntry

    ref = HardwareRef.read(name)
    place = ref.label
    if is_hardware_path(place):
        found = load_files(expand_paths([Path(place).expanduser()]))
        if len(found) > 1:
            raise UsageError(f"{place} holds {len(found)} hardware files: name one")
        hardware = found[0]
    else:
        hardware = load_catalogue().find(place)
    return hardware, HardwareEntry.of(hardware).find_mode(ref.mode or DEFAULT_MODE)


def _tell_compiler(row: HardwareCompiler) -> str:
    """Return the operators that a compiler runs, its treatment of other models, and the source."""
    if row.compiler == UNLISTED_NAME:
        return f"Not known: nobody listed its operators. Assumed to need a host: {', '.join(HOST_OPERATIONS)}."
    rest = f"{row.host} computes the rest, unless --host names another" if row.host else "the rest has no host"
    return (
        f"{row.compiler}: {', '.join(row.operators)}. Of a model with others it keeps {CUTS[row.cut]}; {rest}. "
        f"[{row.basis}: {row.source}]"
    )


def _amount(value: float, unit: str) -> str:
    """Return a number of the catalogue for people."""
    if unit in PREFIXED or (unit == "B" and value >= KILO):
        return show_quantity(value, unit)
    return f"{value:.6g}" if unit in ("1", "year") else f"{value:.6g} {unit}"
