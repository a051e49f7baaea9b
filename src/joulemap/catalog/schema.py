"""Schema of the catalogue's data files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.role import ROLES
from joulemap.physics.record.calibration import CalibrationError
from joulemap.physics.record.compiler import CUTS
from joulemap.physics.record.configuration import BOUNDARY_NAMES, CHIP, PRECISION_BYTES
from joulemap.physics.record.hardware import LEVEL_KINDS, LEVEL_PLACES, LINK_ENDS, LOAD_COVERS, UNITS
from joulemap.physics.record.quantity import BASES, COUNTS, Evidence, Quantity, read_evidence
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.system.record import frozen
from joulemap.system.units import SI_SCALE

ANY: Final = "any"
"""Name of the row in a table of coefficients that applies to all rows without an entry."""


CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "architecture": tuple(CLASS_HARDWARE),
    "basis": BASES,
    "kind": LEVEL_KINDS,
    "per": LEVEL_PLACES,
    "connects": LINK_ENDS,
    "covers": LOAD_COVERS,
    "runtime": RUNTIME_NAMES,
    "precision": tuple(PRECISION_BYTES),
    "cut": CUTS,
}
"""Key of a hardware file -> valid values."""

PLAIN: Final[Mapping[str, str]] = {
    "id": "lower case letters, digits and _",
    "sources": 'a table [sources] of key = "document"',
    "quantities": "a table [quantities]",
    "peaks": f"a table [peaks.PRECISION], PRECISION one of {', '.join(PRECISION_BYTES)}",
    "source": "a key of [sources], or where it comes from",
    "value": "a number",
    "batch": "a whole number from 1",
    "energy_pj": "a number, in picojoules",
    "operators": "kinds or operations, as `joulemap hardware show hailo_8 --show details` has them",
    "name": "a name",
    "model": "a model that ships: `joulemap model list`",
    "component": "a component, action and price of the class: `joulemap hardware show ID --energy`",
    "action": "an action of that component: `joulemap hardware show ID --energy`",
}
"""Key of a hardware file -> description, for keys that have no list of valid values."""


def list_units(unit: str) -> str:
    """Return the units in which a file may state a number of this SI unit."""
    return ", ".join(one for one, (_, measured) in SI_SCALE.items() if measured == unit)


def describe_valid(where: str) -> str:
    """Return a description of the valid values of a key such as `quantities.clock.unit`; empty for an unknown key."""
    *above, key = re.sub(r"\[\d+\]", "", where).split(".")
    if key in COUNTS and above:
        return "a whole number from 1"
    if key in CHOICES:
        return f"one of {', '.join(CHOICES[key])}"
    if key == "unit" and above[0] == "coefficients":
        return "that of the coefficient: `joulemap hardware show ID`"
    if key == "unit":
        return f"one of {'1, bit' if above[0] == 'geometry' else list_units(UNITS.get(above[-1], '1'))}"
    if key in UNITS:
        return f"{{ value, unit, basis, source }}, its unit one of {list_units(UNITS[key])}"
    return PLAIN.get(key, "")


@frozen(kw_only=True)
class QuantityEntry:
    """Number as written in a file, in the unit of its source."""

    value: float
    unit: str
    basis: str
    source: str
    note: str = ""
    explanation: str = ""
    """Reason why the number differs from the value that other numbers imply; empty if it does not."""

    def resolve(self, sources: dict[str, str], expected_unit: str) -> Quantity:
        """Return the number in SI with its source spelled out; ValueError names the fault."""
        if self.unit not in SI_SCALE:
            raise ValueError(f"unknown unit {self.unit!r}, expected one of {list_units(expected_unit)}")
        factor, unit = SI_SCALE[self.unit]
        if unit != expected_unit:
            raise ValueError(f"unit {self.unit!r} measures {unit}, expected {expected_unit}")
        if self.source not in sources:
            raise ValueError(f"source {self.source!r} is not in [sources], which has {', '.join(sources) or 'none'}")
        return Quantity(
            value=self.value * factor,
            unit=unit,
            basis=self.basis,
            source=sources[self.source],
            note="; ".join(text for text in (self.note, self.explanation) if text),
        )


Resolve = Callable[[str, QuantityEntry, str], Quantity]
"""Function from key, number and SI unit to the number in SI."""


def resolve_fields(entry: attrs.AttrsInstance, before: str, resolve: Resolve) -> dict[str, Any]:
    """Return field -> value of an entry: numbers in SI, lists as tuples; `before` prefixes the keys in errors."""
    values: dict[str, Any] = {}
    for field in attrs.fields(type(entry)):
        value = getattr(entry, field.name)
        if isinstance(value, QuantityEntry):
            value = resolve(f"{before}{field.name}", value, UNITS[field.name])
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return values


@frozen(kw_only=True)
class PeakEntry:
    """Peak rate as written in a file."""

    rate: QuantityEntry
    operations_per_clock: float | None = None
    """Operations per clock of one unit; None derives them from rate, units and clock."""
    clock_ghz: float | None = None
    unit_count: int | None = None
    engine: str = ""
    """Component that gives the rate if a unit has several, e.g. `tensor_core`."""
    explanation: str = ""
    """Reason why the published rate differs from units x operations per clock x clock; empty if it does not."""


@frozen(kw_only=True)
class LevelEntry:
    """Memory level as written in a file."""

    name: str
    kind: str
    per: str
    capacity: QuantityEntry
    bandwidth: QuantityEntry | None = None


@frozen(kw_only=True)
class LinkEntry:
    """Link as written in a file."""

    name: str
    connects: str
    link_count: QuantityEntry
    bandwidth: QuantityEntry
    """Bandwidth in one direction, summed over all links."""
    generation: str = ""
    topology: str = ""
    lane_count: QuantityEntry | None = None
    domain_size: QuantityEntry | None = None
    latency: QuantityEntry | None = None
    energy: QuantityEntry | None = None
    """Energy per byte sent, including that of receiving one byte. Latency and energy default to those of the named
    link."""


@frozen(kw_only=True)
class LoadEntry:
    """Measured load as written in a file."""

    name: str
    model: str
    precision: str
    batch: int
    runtime: str
    power: QuantityEntry
    covers: str = "board"


@frozen(kw_only=True)
class CompilerEntry:
    """Compiler of a chip as written in a file: the list of a known compiler, or operators listed for this chip."""

    list: str = ""
    """Name of a file in `data/compiler`; with it, only a host may be given."""
    name: str = ""
    cut: str = ""
    operators: Sequence[str] = ()
    basis: str = ""
    source: str = ""
    host: str = ""
    """Default host for fallback operators, with or without @MODE."""


@frozen(kw_only=True)
class CompilerFile:
    """Contents of a file in `data/compiler`: the operators that one compiler runs, according to its documentation."""

    name: str
    version: str
    cut: str
    basis: str
    source: str
    operators: Sequence[str]


@frozen(kw_only=True)
class PowerModeEntry:
    """Power mode as written in a file."""

    name: str
    tdp: QuantityEntry
    clock: QuantityEntry
    unit_count: QuantityEntry | None = None
    memory_bandwidth: QuantityEntry | None = None
    static_power: QuantityEntry | None = None
    means: list[str] = attrs.field(factory=list)
    """Names of the chip that mean it in this mode."""


@frozen(kw_only=True)
class OverrideEntry:
    """Energy per action of one chip that replaces that of its class."""

    component: str
    action: str
    energy_pj: float
    basis: str
    source: str


@frozen(kw_only=True)
class ChipQuantities:
    """The `[quantities]` table of a hardware file; optional quantities have defaults in the class."""

    unit_count: QuantityEntry
    clock: QuantityEntry
    memory_capacity: QuantityEntry
    memory_bandwidth: QuantityEntry
    tdp: QuantityEntry
    power_limit_lowest: QuantityEntry | None = None
    power_limit_highest: QuantityEntry | None = None
    process_node: QuantityEntry | None = None
    launch_year: QuantityEntry | None = None
    static_power: QuantityEntry | None = None
    idle_power: QuantityEntry | None = None
    context_power: QuantityEntry | None = None
    loaded_power: QuantityEntry | None = None
    clock_base: QuantityEntry | None = None
    clock_boost: QuantityEntry | None = None
    clock_sustained: QuantityEntry | None = None
    clock_die: QuantityEntry | None = None
    memory_bus_width: QuantityEntry | None = None
    memory_data_rate: QuantityEntry | None = None
    """Transfers per second of each memory pin."""
    price_purchase: QuantityEntry | None = None
    price_cloud: QuantityEntry | None = None
    host_share: QuantityEntry | None = None


@frozen(kw_only=True)
class EvidenceEntry:
    """Counts of the measurements behind a fitted number: all three, or none."""

    sources: int | None = None
    boards: int | None = None
    models: int | None = None
    evidence: Evidence | None = attrs.field(init=False, eq=False, repr=False)
    """The counts together; None without them."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "evidence", read_evidence({name: getattr(self, name) for name in COUNTS}))


@frozen(kw_only=True)
class CoefficientEntry(EvidenceEntry):
    """Model coefficient of an architecture class or of one chip, in SI."""

    name: str
    value: float
    unit: str
    basis: str
    source: str


@frozen(kw_only=True)
class ClassCoefficientEntry(CoefficientEntry):
    """Model coefficient of an architecture class, with the range that a calibration may fit."""

    spread: float | None = None
    """Standard deviation of the coefficient's natural logarithm around the class's value; None if it is never fitted.
    """
    meaning: str = ""
    """One-line meaning of a fitted coefficient."""
    chips: tuple[str, ...] = ()
    """Ids of chips among the boards that the value was fitted to; it is measured on them, and scaled on all others."""
    level: str = ""
    """Memory level that a chip needs for the coefficient to replace an earlier one of the same name."""
    memory: str = ""
    """Start of the memory type of the chips that have the coefficient; empty for all chips."""
    above_w: float = 0.0
    """Power limit in watts above which chips have the coefficient."""


@frozen(kw_only=True)
class ColumnEntry:
    """Column of a table of coefficients."""

    name: str
    unit: str
    meaning: str


@frozen(kw_only=True)
class CoefficientTableEntry(EvidenceEntry):
    """Table of coefficients with a common source; each is named `NAME_COLUMN.ROW`. A row may have its own counts."""

    name: str
    basis: str
    source: str
    spread: float
    columns: list[ColumnEntry]
    rows: dict[str, dict[str, float]]
    """Row -> column -> value; the row `any` contains the default of all other rows."""

    def entries(self) -> list[ClassCoefficientEntry]:
        """Return the coefficients, row by row; ValueError for a value without a column."""
        known = {column.name: column for column in self.columns}
        cells = [
            (row, name, value)
            for row, values in self.rows.items()
            for name, value in values.items()
            if name not in COUNTS
        ]
        counts = {row: self._count(row) for row in self.rows}
        for row, name, _ in cells:
            if name not in known:
                raise ValueError(f"coefficient_tables.{self.name}.rows.{row}: {name} is none of {', '.join(known)}")
        return [
            ClassCoefficientEntry(
                name=f"{self.name}_{name}" + ("" if row == ANY else f".{row}"),
                value=value,
                unit=known[name].unit,
                basis=self.basis,
                source=self.source,
                spread=self.spread,
                meaning=f"{known[name].meaning}, {'of all other rows' if row == ANY else row}",
                **counts[row],
            )
            for row, name, value in cells
        ]

    def _count(self, row: str) -> dict[str, Any]:
        """Return the counts of a row, by default those of the table; ValueError names an invalid one."""
        try:
            evidence = read_evidence(self.rows[row]) or self.evidence
        except ValueError as error:
            raise ValueError(f"coefficient_tables.{self.name}.rows.{row}: {error}") from error
        return {} if evidence is None else attrs.asdict(evidence)


@frozen(kw_only=True)
class EnergyScaleEntry:
    """Factor that a calibration applies to the energies of several actions."""

    name: str
    actions: list[str]
    """Actions as `component.action`; no action is in two scales, and `chip.static_power` is alone in its scale."""
    spread: float
    """Standard deviation of the factor's natural logarithm around 0."""
    meaning: str
    """One-line meaning of the scale."""


@frozen(kw_only=True)
class HardwareFile:
    """Contents of a hardware file, in `data/hardware` or a user's own."""

    id: str
    architecture: str
    sources: dict[str, str]
    quantities: ChipQuantities
    peaks: dict[str, PeakEntry]
    name: str = ""
    vendor: str = ""
    aliases: list[str] = attrs.field(factory=list)
    """Alternative names; case, `-`, `_` and space do not matter."""
    deployment: list[str] = attrs.field(factory=list)
    microarchitecture: str = ""
    unit_name: str = ""
    memory_type: str = ""
    geometry: dict[str, QuantityEntry] = attrs.field(factory=dict)
    memory_levels: list[LevelEntry] = attrs.field(factory=list)
    """Memory levels, nearest to the units first; empty for the class's defaults."""
    links: list[LinkEntry] = attrs.field(factory=list)
    loads: list[LoadEntry] = attrs.field(factory=list)
    projection: str = ""
    unavailable: str = ""
    """Reason why the chip can be neither bought nor rented, with its source."""
    sold_in: str = ""
    """Products that contain the chip, if it is not sold as a board."""
    doubts: list[str] = attrs.field(factory=list)
    needs_host: str = ""
    """Slot or port of a computer that the hardware needs; that computer's power is not included. Empty for standalone
    hardware.
    """
    works_at_limit: bool = False
    """True for a chip on sale that works near its power limit: energy missing from its actions is derived from `tdp`.
    False for a chip whose energies are used as given.
    """
    compiler: CompilerEntry | None = None
    power_modes: list[PowerModeEntry] = attrs.field(factory=list)
    coefficients: list[CoefficientEntry] = attrs.field(factory=list)
    """Coefficients that replace those of the same name in the class."""
    energy_overrides: list[OverrideEntry] = attrs.field(factory=list)


@frozen(kw_only=True)
class ActionEntry(EvidenceEntry):
    """Energy per action at its reference node."""

    category: str
    """Energy category as the architecture class names it."""
    common_category: str
    component: str
    action: str
    part: str
    per: str
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    energy_pj: float
    scaling: str = attrs.field(validator=attrs.validators.in_(("logic", "sram", "wire", "die", "none")))
    """Scaling rule. `logic` and `sram` follow the process node, differently below 7 nm. `die` follows the die's edge.
    `wire` and `none` keep their value: wires follow voltage, DRAM its standard. A GPU's memories are `logic` because
    its energies were fitted to whole boards.
    """
    low_pj: float
    high_pj: float
    basis: str
    source: str
    count: str
    node_nm: float | None = None
    amount: float = 1.0
    """Amount of the role's unit in one action, such as bytes per access."""
    level: str = ""
    """Memory level that a chip must have for the action to apply. Such a chip has no actions without a level."""


@frozen(kw_only=True)
class EventEntry:
    """Event of an architecture class, counted from its actions."""

    component: str
    event: str
    per: str
    """Unit in which the event is counted."""
    meaning: str
    terms: list[str] = attrs.field(validator=attrs.validators.min_len(1))
    """Actions to add, as `component.action`; preceded by `-` to subtract, or by a factor and a space."""
    floor: list[str] = attrs.field(factory=list)
    """Actions whose sum is a lower bound of the count."""
    divisor: str = ""
    """Quantity that divides the sum: `coefficient.NAME` or `geometry.NAME`."""
    part_of: str = ""
    """Earlier event of the same component that includes this one."""
    costs: list[str] | None = None
    """Actions whose energy belongs to the event; None for those in `terms`, or for none if `terms` subtracts one."""


@frozen(kw_only=True)
class DefaultEntry:
    """Number that a hardware file may omit, with its rule: a value, or a factor of another number."""

    quantity: str
    """Name of the number with dots, such as `static_power`, `geometry.warp_size` or `memory.l2.capacity`."""
    value: float
    unit: str
    source: str
    of: str = ""
    """Number that `value` multiplies: a quantity, or `operations_per_clock` with or without `.PRECISION`."""
    power: float = 1.0


@frozen(kw_only=True)
class DefaultLevelEntry:
    """Memory level assumed for a hardware file without levels; its numbers are defaults too."""

    name: str
    kind: str
    per: str


@frozen(kw_only=True)
class StaticRangeEntry:
    """Range of static power among measured boards of a class with one kind of memory, as shares of `tdp`."""

    memory: str
    """Prefix of the memory type, such as `LPDDR`."""
    low: float
    high: float
    source: str


@frozen(kw_only=True)
class ArchitectureFile:
    """Contents of a file of `data/architecture`."""

    architecture: str
    coefficients: list[ClassCoefficientEntry]
    actions: list[ActionEntry]
    coefficient_tables: list[CoefficientTableEntry] = attrs.field(factory=list)
    energy_scales: list[EnergyScaleEntry] = attrs.field(factory=list)
    events: list[EventEntry] = attrs.field(factory=list)
    ways: dict[str, str] = attrs.field(factory=dict)
    """Role -> way in which this class fulfils it, as a phrase that follows `they`."""
    control_step: str = ""
    """Name of what the role `instruction` counts in this class, such as an instruction or a token."""
    unit_name: str = "unit"
    operators: str = attrs.field(default="listed", validator=attrs.validators.in_(("listed", "any")))
    """Operator support. `any`: compilers of this class lower every operator, as for CPUs and GPUs, and XLA for TPUs.
    `listed`: they run the operators that a chip's file lists.
    """
    priced_at: str = attrs.field(default=CHIP, validator=attrs.validators.in_(BOUNDARY_NAMES))
    """Boundary of the energies; `board` if they were fitted to board power, which includes regulator loss."""
    geometry: list[str] = attrs.field(factory=list)
    """Valid names in a `[geometry]` table of this class."""
    needed_levels: list[str] = attrs.field(factory=list)
    """Names of memory levels that all hardware of this class must have."""
    geometry_needs: list[list[str]] = attrs.field(factory=list)
    """Pairs (prefix, name): a chip with a `[geometry]` name of this prefix must also have the second name."""
    defaults: list[DefaultEntry] = attrs.field(factory=list)
    default_levels: list[DefaultLevelEntry] = attrs.field(factory=list)
    static_ranges: list[StaticRangeEntry] = attrs.field(factory=list)
    """Ranges of a static power that was neither measured nor published; the first that matches applies."""


@frozen(kw_only=True)
class FittedEntry:
    """Fitted coefficient of a calibration file, in SI."""

    name: str
    default: float
    """Value of the coefficient before the fit."""
    value: float
    unit: str
    data_weight: float
    """Weight of the measurements in the fitted value, from 0 to 1; the rest is the class's value."""


@frozen(kw_only=True)
class FittedStaticEntry:
    """Fitted static power of a calibration file, in watts."""

    default: float
    value: float
    data_weight: float


@frozen(kw_only=True)
class FittedScaleEntry:
    """Fitted factor of a calibration file, with the actions whose energy it multiplies."""

    name: str
    factor: float
    data_weight: float
    meaning: str
    actions: list[str]


@frozen(kw_only=True)
class FittedDataEntry:
    """Description of the measurements to which a calibration was fitted."""

    digest: str
    row_count: int
    latency_count: int
    energy_count: int
    latency_credibility: float
    energy_credibility: float
    runtimes: list[str]
    precisions: list[str]
    families: list[str]


@frozen(kw_only=True)
class AccuracyEntry:
    """Accuracy of a calibration, as written in its file."""

    errors: list[CalibrationError] = attrs.field(factory=list)


@frozen(kw_only=True)
class CalibrationFile:
    """Contents of a calibration file."""

    hardware: str
    hardware_digest: str
    formula_version: str
    generation: str
    """Generation of hardware that may inherit the calibration."""
    data: FittedDataEntry
    static_power: FittedStaticEntry | None = None
    coefficients: list[FittedEntry] = attrs.field(factory=list)
    energy_scales: list[FittedScaleEntry] = attrs.field(factory=list)
    accuracy: AccuracyEntry = attrs.field(factory=AccuracyEntry)
