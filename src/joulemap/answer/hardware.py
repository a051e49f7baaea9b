"""List hardware, and show all numbers of one chip after its calibration."""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.base import Answer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.setting import find_calibrations
from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.domain.catalogue import DEFAULT_MODE
from joulemap.domain.computed import described, make_table
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.host import suggest_host
from joulemap.domain.label import CUT_MEANING
from joulemap.domain.settings import check_name, name_boundary
from joulemap.domain.table import Table
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.hardware import (
    ActionPrice,
    HardwareCompiler,
    HardwareFact,
    HardwareLink,
    HardwareSummary,
    RidgePoint,
)
from joulemap.physics.record.compiler import ANY, EVERYTHING, EXCEPTED, HOST_OPERATIONS, REFUSED, UNLISTED_NAME
from joulemap.physics.record.configuration import BOARD, BOUNDARY_NAMES, BoundaryName
from joulemap.plan.calibration import use_calibration
from joulemap.plan.catalogue import known_hardware, opening_alone, opening_catalogue
from joulemap.plan.selection import describe_meanings, find_chip, find_default_chip, resolve_name
from joulemap.plan.source import Source
from joulemap.show.caveat import describe_values
from joulemap.show.layout import lay_lines
from joulemap.show.present.cell import Number, number, show_count, show_quantity
from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.template import Template
from joulemap.store.connection import Connection
from joulemap.store.hardware import read_hardware
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.name import PROJECTED
from joulemap.system.package import list_packages
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.calibration import Calibration, CalibrationEntry
    from joulemap.physics.record.hardware import Hardware

PREFIXED: Final = ("Hz", "B/s", "ops/s", "W", "s", "T/s")
"""Units that are shown with an SI prefix; bytes also get one, from 1000 B."""

KILO: Final = 1000.0

TITLE: Final = Template("{mark}{hardware}: {name}, {vendor}, {microarchitecture}")
SUMMARY: Final = Template(
    "{kind} with {units}: {peak_ops_per_s:ops/s} peak ({precision}), {memory_capacity} at {memory_bandwidth} "
    "({memory_type}), {tdp}[, deployment: {deployment:and}][; needs a host: {needs_host}]"
    "[; not available: {unavailable}]."
)

FIGURES: Final = "Main figures"
FIGURE_COLUMNS: Final = "quantity | value | basis"
MAIN: Final[Mapping[str, str]] = {
    "clock": "clock",
    "memory_capacity": "memory",
    "memory_bandwidth": "memory bandwidth",
    "tdp": "power cap",
    "power_limit_lowest": "lowest power limit",
    "power_limit_highest": "highest power limit",
    "idle_power": "idle power",
    "static_power": "static power",
    "context_power": "idle power with an open context",
    "loaded_power": "idle power with a loaded model",
    "process_node": "process node",
    "launch_year": "launch year",
    "price_purchase": "purchase price",
    "price_cloud": "cloud price",
}
"""Main quantity of a chip -> its label."""
PEAK: Final = Template("peak {precision}")
OFFER: Final = Template("{basis}: {price_text}")

SURE: Final = Template("of {count} {noun}, {some:and}")
SURE_SOME: Final = Template("{count:n is|are} {basis}")
SURE_NONE: Final = "none is recalled or assumed"
NUMBERS_NOUN, ENERGIES_NOUN = "numbers", "energies per action"

ROOFLINE: Final = "Roofline"
ROOFLINE_COLUMNS: Final = (
    "precision | *peak peak_ops_per_s | *ridge (ops/B) ridge_ops_per_byte | *basis | units units_count | "
    "operations per clock operations_per_clock | clock clock_hz | efficiency peak_ops_per_j | explanation"
)
LINKS: Final = "Links, in one direction"
LINK_COLUMNS: Final = (
    "link | generation | *connects | *links link_count | *bandwidth bandwidth_bytes_per_s | lanes lane_count | "
    "topology | domain size domain_size | latency latency_s | energy per byte energy_per_byte_j | basis | source"
)
NUMBERS: Final = "Numbers"
NUMBER_COLUMNS: Final = "quantity | *value | *basis | source | note"
COMPILER: Final = "Operators that its compiler supports"
COMPILED: Final = Template(
    "{compiler}: {operators:list}. If a model has another operator, the chip runs {cut}[; {host} runs the others, "
    "unless --host selects another host]. Source ({basis}): {source}"
)
OPERATORS: Final = Template("{hardware}: operators of {compiler}")
OPERATOR_COUNTS: Final = Template(
    "It runs {runs}[, and refuses a model that contains any of {refused}][; {host} computes all others]. "
    "Source ({basis}): {source}"
)
ALL_BUT: Final = Template("all operators but {count}")
LISTED: Final = Template("{count} kinds and operations")
EVERY_OPERATOR: Final = Template("{hardware} runs every operator.")
UNLISTED: Final = Template("Unknown: no list of its operators exists. Assumed to need a host: {operators:list}.")
DOUBTS: Final = "Doubts"

POWER: Final = Template("power limit {tdp_w:W}, static power {static_power_w:W}")
POWER_WITHOUT_HOST: Final = Template(
    "power limit {tdp_w:W}, static power {static_power_w:W}, excluding its host ({needs_host}); --host {host}, for "
    "example, adds it"
)
ALIASES: Final = Template("aliases: {aliases:list}")
MODES: Final = Template("power modes: {modes:list}; without one, the clock is {clock} and the power cap {tdp}")
PROJECTION: Final = Template("estimated: {numbers}")
GUESSED: Final = "not known, so estimated: "
"""First words of a projection's note if the note only lists assumed numbers."""
UNAVAILABLE: Final = Template("{mark} not available: {unavailable}")
PACKAGED: Final = Template("described by the installed package {package}[; its page: {page}]")
UNCALIBRATED: Final = "not calibrated: uses class defaults"
EVIDENCE: Final = Template("joulemap evidence {asked}")
ENERGIES: Final = Template("joulemap hardware show {asked} --energy")

PRICES: Final = {"rented": "price_cloud", "bought": "price_purchase"}
"""Way of paying -> quantity of a chip that holds its price."""


@frozen(kw_only=True)
class ListedOperator:
    """Entry of a compiler's operator list."""

    operator: str = described("kind, operation, or operation of one kind as conv.conv2d; * for all others")
    support: str = described("runs, refused (the compiler refuses the model), host, or limited (all operators)")
    limits: str = described("sizes for which it runs: kernel, stride or rank; empty for any")


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

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        data = super().data()
        return {**data.pop("summaries")[0], **data, "class_defaults": self.meanings}

    def document(self) -> Document:
        """Return the document; csv contains the numbers."""
        one = self.summary
        links = self._lay(self.links, LINK_COLUMNS, generation=lambda row: Number(row.generation or ""))
        facts = self._lay(self.facts, NUMBER_COLUMNS, value=lambda row: _show_amount(row.value, row.unit))
        return Document(
            title=TITLE(one, mark=self._mark),
            answer=self._summarize(),
            sections=(Section(FIGURES, lay_lines(FIGURE_COLUMNS, self._list_figures())),),
            sure="; ".join(
                (
                    _describe_bases(one.fact_count, one.recalled_fact_count, one.assumed_fact_count, NUMBERS_NOUN),
                    _describe_bases(
                        one.action_count, one.recalled_action_count, one.assumed_action_count, ENERGIES_NOUN
                    ),
                )
            ),
            details=(
                Section(ROOFLINE, self._lay(self.ridge, ROOFLINE_COLUMNS)),
                Section(LINKS, links),
                Section(NUMBERS, facts),
                Section(COMPILER, Lines(tuple(map(_describe_compiler, self.compilers)))),
                Section(DOUBTS, Lines(one.doubts)),
            ),
            notes=tuple(self._list_notes()),
            steps=tuple(shlex.join(one.words(self)) for one in (EVIDENCE, ENERGIES)),
            data=self.data(),
            table=self.facts,
            tables=self.tables,
        )

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

    def describe_operators(self) -> str:
        """Return a sentence on the compiler: how many operators it runs or refuses, and the source of its list."""
        if not self.compilers:
            return EVERY_OPERATOR(hardware=self.summary.hardware)
        one, rows = self.compilers[0], self.list_operators()
        if one.compiler == UNLISTED_NAME:
            return _describe_compiler(one)
        counts = Counter(row.support for row in rows)
        is_open = any(row.operator == EVERYTHING for row in rows)
        runs = ALL_BUT(count=counts["host"] + counts["refused"]) if is_open else LISTED(count=counts["runs"])
        line = OPERATOR_COUNTS(one, runs=runs, refused=counts["refused"] or None, host=one.host or None)
        return f"{OPERATORS(one, hardware=self.summary.hardware)}. {line}"

    @property
    def _mark(self) -> str:
        return PROJECTED if self.summary.unavailable else ""

    def _summarize(self) -> str:
        """Return class, units, peak, memory and power limit in a line."""
        one = self.summary
        amounts = {row.quantity: _show_amount(row.value, row.unit) for row in self.facts}
        fastest = max(self.ridge, key=lambda row: row.peak_ops_per_s)
        return SUMMARY(
            one,
            kind=one.architecture.upper(),
            units=show_count(one.units_total_count, one.unit_name),
            peak_ops_per_s=fastest.peak_ops_per_s,
            precision=fastest.precision,
            **{name: amounts[name] for name in ("memory_capacity", "memory_bandwidth", "tdp")},
        )

    def _list_figures(self) -> Iterator[tuple[str, str, str]]:
        """Yield the peaks, memory, power and prices as (label, value, basis)."""
        for row in self.ridge:
            yield PEAK(row), show_quantity(row.peak_ops_per_s, "ops/s"), row.basis
        facts, prices = {row.quantity: row for row in self.facts}, self._list_prices()
        for name, label in MAIN.items():
            if name in facts:
                fact = facts[name]
                yield from prices.get(name) or [(label, _show_amount(fact.value, fact.unit), fact.basis)]

    def _list_prices(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return quantity of the price (rent or purchase) -> rows for display, one per kind of seller."""
        from joulemap.catalog.sheet import load_offers
        from joulemap.domain.offer import summarize_offers

        units = {row.quantity: row.unit for row in self.facts}
        by_way: dict[str, list[tuple[str, str, str]]] = {}
        for one in summarize_offers(load_offers()):
            if one.hardware == self.summary.hardware:
                name = PRICES[one.way]
                by_way.setdefault(name, []).append((MAIN[name], _show_amount(one.usd, units[name]), OFFER(one)))
        return by_way

    def _list_notes(self) -> Iterator[str]:
        one = self.summary
        yield POWER_WITHOUT_HOST(one, host=suggest_host(one.needs_host)) if one.needs_host else POWER(one)
        if one.aliases:
            yield ALIASES(one)
        if one.power_modes:
            amounts = {row.quantity: _show_amount(row.value, row.unit) for row in self.facts}
            modes = [f"{one.hardware}@{mode}" for mode in one.power_modes]
            yield MODES(modes=modes, clock=amounts["clock"], tdp=amounts["tdp"])
        if one.package:
            packages = {known.label: known.page for known in list_packages()}
            yield PACKAGED(one, page=packages.get(one.package))
        if one.projection:
            yield PROJECTION(numbers=one.projection.removeprefix(GUESSED))
        if one.unavailable:
            yield UNAVAILABLE(one, mark=self._mark)
        applied = [*find_calibrations(self.calibrations, [one.hardware])]
        yield from [describe_values(each.kind, each.values) for each in applied] or [UNCALIBRATED]
        yield from describe_meanings(self.meanings)


def _describe_bases(count: int, recalled: int, assumed: int, noun: str) -> str:
    """Return a text that counts the recalled and the assumed numbers among `count` numbers."""
    counts = {"recalled": recalled, "assumed": assumed}
    some = [SURE_SOME(count=each, basis=basis) for basis, each in counts.items() if each]
    return SURE(count=count, noun=noun, some=some or [SURE_NONE])


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
            return plain.in_mode(entry.find_mode(ref.mode or DEFAULT_MODE))
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
            if use.find(entry) is None and is_described:
                yield connection, entry.id, None
                return
            plain, mode = (
                (read_hardware(connection, [entry.digest])[entry.digest], DEFAULT_MODE)
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
    from joulemap.domain.catalogue import HardwareEntry

    ref = HardwareRef.read(name)
    label = ref.label
    if is_hardware_path(label):
        loaded = load_files(expand_paths([Path(label).expanduser()]))
        if len(loaded) > 1:
            raise UsageError(f"{label} holds {len(loaded)} hardware files: name one")
        hardware = loaded[0]
    else:
        hardware = find_hardware(label)
    return hardware, HardwareEntry.of(hardware).find_mode(ref.mode or DEFAULT_MODE)


def _describe_compiler(row: HardwareCompiler) -> str:
    """Return a sentence on the operators that a compiler runs, what it does with other operators, and the source."""
    if row.compiler == UNLISTED_NAME:
        return UNLISTED(operators=HOST_OPERATIONS)
    return COMPILED(row, cut=CUT_MEANING[row.cut])


@number
def _show_amount(value: float, unit: str) -> str:
    """Format a number of the catalogue with its unit."""
    if unit in PREFIXED or unit.startswith("USD") or (unit == "B" and value >= KILO):
        return show_quantity(value, unit)
    return f"{value:.6g}" if unit in ("1", "year") else f"{value:.6g} {unit}"
