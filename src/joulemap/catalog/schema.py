"""The shape of the catalogue's data files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.calibration import CalibrationError
from joulemap.domain.compiler import CUTS
from joulemap.domain.configuration import BOUNDARIES, CHIP, PRECISION_BYTES, RUNTIMES
from joulemap.domain.hardware import LEVEL_KINDS, LEVEL_PLACES, LINK_ENDS, LOAD_COVERS, UNITS
from joulemap.domain.quantity import BASES, Quantity
from joulemap.domain.role import ROLES
from joulemap.system.record import frozen
from joulemap.system.units import SI_SCALE

ANY: Final = "any"
"""Row of a table of coefficients that holds for all others."""


CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "architecture": tuple(CLASS_HARDWARE),
    "basis": BASES,
    "kind": LEVEL_KINDS,
    "per": LEVEL_PLACES,
    "connects": LINK_ENDS,
    "covers": LOAD_COVERS,
    "runtime": RUNTIMES,
    "precision": tuple(PRECISION_BYTES),
    "cut": tuple(CUTS),
}
"""Key of a hardware file -> what it may be."""

MEASURED_IN: Final[Mapping[str, str]] = {
    **UNITS,
    "rate": "ops/s",
    "capacity": "B",
    "bandwidth": "B/s",
    "power": "W",
    **dict.fromkeys(("link_count", "lane_count", "domain_size"), "1"),
    "latency": "s",
    "energy": "J/B",
    "price": "USD",
}
"""Number of a hardware file -> its SI unit."""

PLAIN: Final[Mapping[str, str]] = {
    "id": "lower case letters, digits and _",
    "sources": 'a table [sources] of key = "document"',
    "quantities": "a table [quantities]",
    "peaks": f"a table [peaks.PRECISION], PRECISION one of {', '.join(PRECISION_BYTES)}",
    "source": "a key of [sources], or where it comes from",
    "value": "a number",
    "batch": "a whole number from 1",
    "energy_pj": "a number, in picojoules",
    "operators": "kinds or operations, as `joulemap hardware show hailo_8 --details` has them",
    "name": "a name",
    "model": "a model that ships: `joulemap model list`",
    "component": "a component, action and price of the class: `joulemap hardware show ID --energy`",
    "action": "an action of that component: `joulemap hardware show ID --energy`",
}
"""Key of a hardware file -> what it is, where no list says it."""


def list_units(unit: str) -> str:
    """Return the units that a file may write a number of an SI unit in."""
    return ", ".join(one for one, (_, measured) in SI_SCALE.items() if measured == unit)


def tell_allowed(where: str) -> str:
    """Return what a key of a hardware file, as `quantities.clock.unit`, may be; empty for one of another file."""
    *above, key = re.sub(r"\[\d+\]", "", where).split(".")
    if key in CHOICES:
        return f"one of {', '.join(CHOICES[key])}"
    if key == "unit" and above[0] == "coefficients":
        return "that of the coefficient: `joulemap hardware show ID`"
    if key == "unit":
        return f"one of {'1, bit' if above[0] == 'geometry' else list_units(MEASURED_IN.get(above[-1], '1'))}"
    if key in MEASURED_IN:
        return f"{{ value, unit, basis, source }}, its unit one of {list_units(MEASURED_IN[key])}"
    return PLAIN.get(key, "")


@frozen(kw_only=True)
class QuantityEntry:
    """A number as written in a file, in the unit that its source uses."""

    value: float
    unit: str
    basis: str
    source: str
    note: str = ""
    explanation: str = ""
    """Why the number is not what follows from others, where it is not."""

    def resolve(self, sources: dict[str, str], expected_unit: str) -> Quantity:
        """Return the number in SI with its source spelled out; ValueError says what is wrong."""
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
"""Key, number and SI unit -> the number in SI."""


def resolve_fields(entry: attrs.AttrsInstance, before: str, resolve: Resolve) -> dict[str, Any]:
    """Return what an entry states as a record has it: numbers in SI, lists as tuples; `before` stands before keys."""
    found: dict[str, Any] = {}
    for field in attrs.fields(type(entry)):
        value = getattr(entry, field.name)
        if isinstance(value, QuantityEntry):
            value = resolve(f"{before}{field.name}", value, MEASURED_IN[field.name])
        found[field.name] = tuple(value) if isinstance(value, list) else value
    return found


@frozen(kw_only=True)
class PeakEntry:
    """A peak rate as written in a file."""

    rate: QuantityEntry
    operations_per_clock: float | None = None
    """Of one unit; left out, it follows from rate, units and clock."""
    clock_ghz: float | None = None
    unit_count: int | None = None
    engine: str = ""
    """The component that gives the rate where a unit has several, e.g. `tensor_core`."""
    explanation: str = ""
    """Why units x operations per clock x clock is not the published rate, where it is not."""


@frozen(kw_only=True)
class LevelEntry:
    """A memory level as written in a file."""

    name: str
    kind: str
    per: str
    capacity: QuantityEntry
    bandwidth: QuantityEntry | None = None


@frozen(kw_only=True)
class LinkEntry:
    """A link as written in a file."""

    name: str
    connects: str
    link_count: QuantityEntry
    bandwidth: QuantityEntry
    """One direction, all links together."""
    generation: str = ""
    topology: str = ""
    lane_count: QuantityEntry | None = None
    domain_size: QuantityEntry | None = None
    latency: QuantityEntry | None = None
    energy: QuantityEntry | None = None
    """Of a byte sent and one received; both as is usual of links of the name where nothing is said."""


@frozen(kw_only=True)
class LoadEntry:
    """A measured load as written in a file."""

    name: str
    model: str
    precision: str
    batch: int
    runtime: str
    power: QuantityEntry
    covers: str = "board"


@frozen(kw_only=True)
class CompilerEntry:
    """What a chip's compiler runs, as written in a file."""

    name: str
    cut: str
    operators: list[str]
    basis: str
    source: str
    host: str = ""
    """That computes the rest where none is named, with @MODE or without."""


@frozen(kw_only=True)
class PowerModeEntry:
    """A power mode as written in a file."""

    name: str
    tdp: QuantityEntry
    clock: QuantityEntry
    unit_count: QuantityEntry | None = None
    memory_bandwidth: QuantityEntry | None = None
    static_power: QuantityEntry | None = None


@frozen(kw_only=True)
class OverrideEntry:
    """An energy per action that this target has better numbers for than its class."""

    component: str
    action: str
    energy_pj: float
    basis: str
    source: str


@frozen(kw_only=True)
class ChipQuantities:
    """The `[quantities]` table of a hardware file. What is optional here follows from the class's defaults."""

    unit_count: QuantityEntry
    clock: QuantityEntry
    memory_capacity: QuantityEntry
    memory_bandwidth: QuantityEntry
    tdp: QuantityEntry
    process_node: QuantityEntry | None = None
    launch_year: QuantityEntry | None = None
    static_power: QuantityEntry | None = None
    idle_power: QuantityEntry | None = None
    clock_base: QuantityEntry | None = None
    clock_boost: QuantityEntry | None = None
    clock_sustained: QuantityEntry | None = None
    clock_die: QuantityEntry | None = None
    memory_bus_width: QuantityEntry | None = None
    memory_data_rate: QuantityEntry | None = None
    """Transfers per second and pin."""
    price_purchase: QuantityEntry | None = None
    price_cloud: QuantityEntry | None = None
    host_share: QuantityEntry | None = None


@frozen(kw_only=True)
class CoefficientEntry:
    """One model coefficient of an architecture class or a target, already in SI."""

    name: str
    value: float
    unit: str
    basis: str
    source: str


@frozen(kw_only=True)
class ClassCoefficientEntry(CoefficientEntry):
    """One model coefficient of an architecture class, with what a calibration may do to it."""

    spread: float | None = None
    """Standard deviation of its natural logarithm around the class's value; without one it is never fitted."""
    meaning: str = ""
    """What it is, in a line, of one that is fitted."""


@frozen(kw_only=True)
class ColumnEntry:
    """One column of a table of coefficients."""

    name: str
    unit: str
    meaning: str


@frozen(kw_only=True)
class CoefficientTableEntry:
    """Coefficients `NAME_COLUMN.ROW` of several kinds of one thing, which share a source."""

    name: str
    basis: str
    source: str
    spread: float
    columns: list[ColumnEntry]
    rows: dict[str, dict[str, float]]
    """Row -> column -> value; the row `any` is what all others have where they say nothing."""

    def entries(self) -> list[ClassCoefficientEntry]:
        """Return the coefficients, row by row; ValueError for a value of no column."""
        known = {column.name: column for column in self.columns}
        cells = [(row, name, value) for row, values in self.rows.items() for name, value in values.items()]
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
            )
            for row, name, value in cells
        ]


@frozen(kw_only=True)
class EnergyScaleEntry:
    """One factor that a calibration puts on the energies of several actions."""

    name: str
    actions: list[str]
    """As `component.action`, each in at most one scale; `chip.static_power`, alone, is static power."""
    spread: float
    """Standard deviation of the factor's natural logarithm around 0."""
    meaning: str
    """What it stands for, in a line."""


@frozen(kw_only=True)
class HardwareFile:
    """One hardware file: of `data/hardware`, or a person's own."""

    id: str
    architecture: str
    sources: dict[str, str]
    quantities: ChipQuantities
    peaks: dict[str, PeakEntry]
    name: str = ""
    vendor: str = ""
    aliases: list[str] = attrs.field(factory=list)
    """Other names that it is asked for by; case, `-`, `_` and space do not matter."""
    deployment: list[str] = attrs.field(factory=list)
    microarchitecture: str = ""
    unit_name: str = ""
    memory_type: str = ""
    geometry: dict[str, QuantityEntry] = attrs.field(factory=dict)
    memory_levels: list[LevelEntry] = attrs.field(factory=list)
    """Nearest to the units first; none at all for those of the class's defaults."""
    links: list[LinkEntry] = attrs.field(factory=list)
    loads: list[LoadEntry] = attrs.field(factory=list)
    projection: str = ""
    unavailable: str = ""
    sold_in: str = ""
    """Products that it is sold in, where nobody sells a board of it."""
    """Why it can be neither bought nor rented, and who says so."""
    doubts: list[str] = attrs.field(factory=list)
    needs_host: str = ""
    """The slot or port of a computer that it needs, whose power is not in its own; empty for what works by itself."""
    works_at_limit: bool = False
    """True for a chip that is sold and works near its power limit: energy that its prices miss follows from `tdp`.
    False for a described chip, whose prices are taken as they are."""
    compiler: CompilerEntry | None = None
    power_modes: list[PowerModeEntry] = attrs.field(factory=list)
    coefficients: list[CoefficientEntry] = attrs.field(factory=list)
    """Instead of those of the same name in the class."""
    energy_overrides: list[OverrideEntry] = attrs.field(factory=list)


@frozen(kw_only=True)
class ActionEntry:
    """One energy per action at its reference node."""

    category: str
    """The architecture's own."""
    common_category: str
    component: str
    action: str
    part: str
    per: str
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    energy_pj: float
    scaling: str = attrs.field(validator=attrs.validators.in_(("logic", "sram", "wire", "die", "none")))
    """`logic` and `sram` follow the process node, each in its own way below 7 nm; `wire` and `none` keep their value:
    wires follow voltage, DRAM its standard. A GPU's memories are `logic`: its prices were fitted to boards together."""
    low_pj: float
    high_pj: float
    basis: str
    source: str
    count: str
    node_nm: float | None = None
    amount: float = 1.0
    """How much of the role's unit one count is."""


@frozen(kw_only=True)
class EventEntry:
    """What a class does, in the words of those who ask, as counted from its actions."""

    component: str
    event: str
    per: str
    """What one is."""
    meaning: str
    terms: list[str] = attrs.field(validator=attrs.validators.min_len(1))
    """Actions that add up, as `component.action`; with `-` before one that is taken away, or a factor and a space."""
    floor: list[str] = attrs.field(factory=list)
    """Actions whose sum the count is at least."""
    divisor: str = ""
    """Quantity that the sum is divided by: `coefficient.NAME` or `geometry.NAME`."""
    part_of: str = ""
    """The event of the same component, above it, that it is a share of."""
    costs: list[str] | None = None
    """Actions whose energy it is; left out, those that it is a sum of, or none where it is a difference."""


@frozen(kw_only=True)
class DefaultEntry:
    """What a hardware file may leave out, and the rule that fills it in: a value, or a value times another number."""

    quantity: str
    """Dotted name, e.g. `static_power`, `geometry.warp_size`, `memory.l2.capacity`."""
    value: float
    unit: str
    source: str
    of: str = ""
    """The number that `value` multiplies: a quantity, or `operations_per_clock` with or without `.PRECISION`."""
    power: float = 1.0


@frozen(kw_only=True)
class DefaultLevelEntry:
    """A memory level that a hardware file without levels is taken to have; its numbers are defaults too."""

    name: str
    kind: str
    per: str


@frozen(kw_only=True)
class ArchitectureFile:
    """One file of `data/architecture`."""

    architecture: str
    coefficients: list[ClassCoefficientEntry]
    actions: list[ActionEntry]
    coefficient_tables: list[CoefficientTableEntry] = attrs.field(factory=list)
    energy_scales: list[EnergyScaleEntry] = attrs.field(factory=list)
    events: list[EventEntry] = attrs.field(factory=list)
    ways: dict[str, str] = attrs.field(factory=dict)
    """Role -> how this class does what it is for, after `they`."""
    unit_name: str = "unit"
    operators: str = attrs.field(default="listed", validator=attrs.validators.in_(("listed", "any")))
    """`any` where compilers of this class lower any operator, as those for CPUs and GPUs and XLA for TPUs do; `listed`
    where they run those that a chip's file lists."""
    priced_at: str = attrs.field(default=CHIP, validator=attrs.validators.in_(BOUNDARIES))
    """`board` where the energies of actions were fitted to what boards drew: what regulators lose is in them."""
    geometry: list[str] = attrs.field(factory=list)
    """Names that a `[geometry]` table of this class may hold."""
    needed_levels: list[str] = attrs.field(factory=list)
    """Memory levels that every hardware of this class has, by name."""
    geometry_needs: list[list[str]] = attrs.field(factory=list)
    """Pairs: a chip whose `[geometry]` has a name that begins as the first has the second too."""
    defaults: list[DefaultEntry] = attrs.field(factory=list)
    default_levels: list[DefaultLevelEntry] = attrs.field(factory=list)


@frozen(kw_only=True)
class FittedEntry:
    """One fitted coefficient of a calibration file, in SI."""

    name: str
    default: float
    """Before."""
    value: float
    unit: str
    data_weight: float
    """Part of what is known of it that the measurements said."""


@frozen(kw_only=True)
class FittedStaticEntry:
    """Fitted static power of a calibration file, in watts."""

    default: float
    value: float
    data_weight: float


@frozen(kw_only=True)
class FittedScaleEntry:
    """One fitted factor of a calibration file, and the actions whose energy it multiplies."""

    name: str
    factor: float
    data_weight: float
    meaning: str
    actions: list[str]


@frozen(kw_only=True)
class FittedDataEntry:
    """What a calibration was fitted to."""

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
    """How well a calibration did."""

    errors: list[CalibrationError] = attrs.field(factory=list)


@frozen(kw_only=True)
class CalibrationFile:
    """A calibration as its file has it."""

    hardware: str
    hardware_digest: str
    formula_version: str
    generation: str
    """What other hardware it may be inherited by."""
    data: FittedDataEntry
    static_power: FittedStaticEntry | None = None
    coefficients: list[FittedEntry] = attrs.field(factory=list)
    energy_scales: list[FittedScaleEntry] = attrs.field(factory=list)
    accuracy: AccuracyEntry = attrs.field(factory=AccuracyEntry)
