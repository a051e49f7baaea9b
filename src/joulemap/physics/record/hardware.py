"""Hardware records: units and geometry, clocks, peaks, memory levels, power, price, coefficients."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.physics.record.calibration import scale_reference
from joulemap.physics.record.configuration import (
    BOARD,
    BOUNDARIES,
    BOUNDARY,
    BOUNDARY_NAMES,
    CALL_CLOCKS,
    CHIP,
    FLOPS_PER_MAC,
    HOST_TRANSFER,
    LAUNCH,
    LINK_LANES,
    LINK_SHARE,
    NO_HOST,
)
from joulemap.physics.record.operating_point import OperatingPoint, read_point
from joulemap.physics.record.product import (
    DEFAULT,
    FP32,
    MATMUL_PRECISIONS,
    PASS,
    PASSES,
    MatmulPrecision,
    Products,
    find_products,
)
from joulemap.physics.record.quantity import Quantity, least_sure
from joulemap.physics.record.reference import (
    FJ_PER_J,
    HOST,
    HOST_ACTION,
    STATIC_ACTION,
    EnergyAction,
    EnergyReference,
    host_key,
    price_by,
)
from joulemap.physics.record.runtime import RUNTIME, RUNTIME_NAMES, USUAL_RUNTIME
from joulemap.physics.record.target import (
    DEVICE_WORD,
    FIXED_VOLTAGE_WORD,
    boundary_word,
    calibration_word,
    extend_digest,
    host_word,
    matmul_word,
    mode_word,
)
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.calibration import Calibration, FittedValue
    from joulemap.physics.record.compiler import Compiler
    from joulemap.physics.record.configuration import BoundaryName
    from joulemap.physics.record.surrounding import Surrounding

UNITS: Final[Mapping[str, str]] = {
    "process_node": "nm",
    "launch_year": "year",
    "unit_count": "1",
    "clock": "Hz",
    "clock_base": "Hz",
    "clock_boost": "Hz",
    "clock_sustained": "Hz",
    "clock_die": "Hz",
    "memory_capacity": "B",
    "memory_bandwidth": "B/s",
    "memory_bus_width": "bit",
    "memory_data_rate": "T/s",
    "tdp": "W",
    "power_limit_lowest": "W",
    "power_limit_highest": "W",
    "static_power": "W",
    "idle_power": "W",
    "context_power": "W",
    "loaded_power": "W",
    "price_purchase": "USD",
    "price_cloud": "USD/h",
    "host_share": "1",
    "rate": "ops/s",
    "capacity": "B",
    "bandwidth": "B/s",
    "power": "W",
    "link_count": "1",
    "lane_count": "1",
    "domain_size": "1",
    "latency": "s",
    "energy": "J/B",
    "price": "USD",
}
"""Number of a chip, or of its peaks, memory levels, links and loads -> SI unit."""

TOLERANCE: Final = 0.03
"""Largest relative disagreement between numbers that follow from each other."""

CLOCK_SPREAD: Final = 0.2
"""Largest relative difference between the clock of a quoted peak and the chip's clock."""

SAME_DEFAULT: Final = 1e-6
"""Largest relative difference between a coefficient and the default in its calibration at which both count as equal."""

MOST_STATIC: Final = 0.95
"""Largest static power that a calibration may give, as a share of the lowest power cap or measured load."""

_DIE: Final = re.compile(r" ?\(.*?\)| [A-Z]{2,3}\d{2,3}[A-Z]?$")
"""Pattern of the die's name in a microarchitecture, as in `Hopper GH100` and `Zen 4 (Genoa)`."""

ALL_UNITS: Final = "all_units"
"""Geometry entry for the units that the chip is built with; present if a power mode or a change uses another number."""
REFILL: Final = "refill_ratio"

NARROW_SUMS: Final = "narrow_sum_gain"
"""Coefficient of a GPU: rate of fp16 products with fp16 sums over that with fp32 sums, where they differ."""
"""Coefficient of chips whose units share the refills of their registers."""
VECTOR_UNITS: Final = "vector_core_count"
"""Geometry entry for the vector cores of an NPU, in addition to its tensor engines. It scales with the active units."""

IDLE_STATES: Final = ("idle_power", "context_power", "loaded_power")
"""Idle powers other than active idle: without a process, with a context, and with a loaded model."""

UNMEASURED: Final = "this state was not measured"
"""Last words of the source of an idle power that was not measured and is assumed equal to active idle."""

KEY_QUANTITIES: Final = ("unit_count", "clock", "memory_bandwidth", "tdp")
"""Quantities that, with the peaks, decide an answer. If one of them is assumed, the chip counts as an estimate."""


PRICES: Final = ("price_purchase", "price_cloud")
"""Purchase and rental price of a chip."""

LEVEL_KINDS: Final = ("cache", "scratchpad")
LEVEL_PLACES: Final = ("processing_element", "unit", "core", "chip")

LINK_ENDS: Final = ("device", "host", "guest")
"""Kinds of endpoints to which a link connects a device: other devices, its host, or the devices that it hosts."""

BRIDGE: Final = "bridge"

LINK_TOPOLOGIES: Final = ("pair", BRIDGE, "mesh", "ring", "torus_2d", "torus_3d", "switch")
"""Topologies. `pair`: two devices. `bridge`: two devices, by a part that is sold apart. `mesh`: a direct link between
every two devices. `ring`, `torus_2d`, `torus_3d`: neighbours in one, two or three dimensions. `switch`: every two
devices at full bandwidth.
"""


LOAD_COVERS: Final = tuple(one.name for one in BOUNDARIES if one.includes_board)
"""Possible scopes of a power measured under load. A system contains its board, so the board draws at most the power of
the system."""


def _is_measured(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Check that a number has its unit; None is valid if it is the field's default."""
    if value is None and attribute.default is None:
        return
    unit = UNITS[attribute.name]
    if not isinstance(value, Quantity):
        raise TypeError(f"{attribute.name} is {value!r}, expected a Quantity in {unit}")
    if value.unit != unit:
        raise ValueError(f"{attribute.name} is in {value.unit}, expected {unit}")


def _check_units(_kind: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """Return the fields of a record, where the unit of each quantity is checked."""
    return [one.evolve(validator=_is_measured) if "Quantity" in str(one.type).split() else one for one in fields]


def _is_text(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{attribute.name} is {value!r}, expected a text")


@frozen(kw_only=True, field_transformer=_check_units)
class Peak:
    """Dense peak rate at one precision: operations per clock x units x clock."""

    rate: Quantity
    """Dense operations per second; one MAC is two operations, and sparsity is never counted."""
    operations_per_clock: float
    """Operations per clock of one unit."""
    unit_count: int
    """Units that support this precision; fewer than the chip's total on a heterogeneous chip."""
    clock_hz: float
    engine: str = ""
    """Component that gives the rate if a unit has several, e.g. `tensor_core`; empty if unknown."""
    explanation: str = ""
    """Reason why the published rate differs from operations per clock x units x clock; empty if it does not."""

    @property
    def macs_per_clock(self) -> float:
        """MACs per clock of one unit."""
        return self.operations_per_clock / FLOPS_PER_MAC


@frozen(kw_only=True, field_transformer=_check_units)
class MemoryLevel:
    """On-chip memory level."""

    name: str
    kind: str = attrs.field(validator=attrs.validators.in_(LEVEL_KINDS))
    """Kind of level: a cache keeps recently used data; a scratchpad keeps what the program stores."""
    per: str = attrs.field(validator=attrs.validators.in_(LEVEL_PLACES))
    """Part of the chip to which one instance of the level belongs, such as `core` or `chip`."""
    capacity: Quantity
    """Capacity of one instance."""
    bandwidth: Quantity | None = None
    """Bandwidth of all instances together."""


@frozen(kw_only=True, field_transformer=_check_units)
class Link:
    """Link between a device and its peers, or between a device and its host."""

    name: str
    """Name, unique on a chip: `nvlink`, `pcie`, `ici` …"""
    connects: str = attrs.field(validator=attrs.validators.in_(LINK_ENDS))
    """Endpoint: `device` for peers of the same kind; `host` for the host processor and its memory; `guest` for a port
    of a host, to one of the devices that it hosts.
    """
    generation: str = ""
    """Generation as counted by the vendor or the standard; empty if there is only one."""
    topology: str = attrs.field(default="", validator=attrs.validators.in_(("", *LINK_TOPOLOGIES)))
    """Topology of the devices in a domain; empty for a host link or if unknown."""
    link_count: Quantity
    """Links per device, to one peer or to several."""
    lane_count: Quantity | None = None
    """Lanes of one link in one direction."""
    bandwidth: Quantity
    """Bandwidth in one direction, all links of the device together."""
    domain_size: Quantity | None = None
    """Devices that the links can connect, including this one."""
    latency: Quantity
    """Time of a minimal message to the next device; the fixed cost of one step of a collective."""
    energy: Quantity
    """Energy that a device spends to send one byte and to receive one. External switches are excluded."""

    @property
    def width(self) -> float:
        """Number of lanes of all links; a link without lanes counts as one."""
        return self.link_count.value * (1.0 if self.lane_count is None else self.lane_count.value)

    @property
    def lane_rate(self) -> float:
        """Bytes per second of one lane in one direction."""
        return self.bandwidth.value / self.width


@frozen(kw_only=True, field_transformer=_check_units)
class MeasuredLoad:
    """Workload under which a board's power was measured at its default power mode."""

    name: str
    """Name, unique on a chip."""
    model: str
    precision: str
    batch: int = attrs.field(validator=attrs.validators.ge(1))
    runtime: str = attrs.field(validator=attrs.validators.in_(RUNTIME_NAMES))
    covers: str = attrs.field(default=BOARD, validator=attrs.validators.in_(LOAD_COVERS))
    power: Quantity
    """Average power with batches back to back."""
    tracer_version: str
    """Version of the tracer for the workload; another version may count other operators."""

    @property
    def label(self) -> str:
        """Description of the workload."""
        return f"{self.model} at {self.precision}, batch {self.batch}, {self.runtime}"


@frozen(kw_only=True, field_transformer=_check_units)
class PowerMode:
    """Named operating point with a clock and power cap."""

    name: str
    tdp: Quantity
    clock: Quantity
    unit_count: Quantity | None = None
    """Active units; None for all."""
    memory_bandwidth: Quantity | None = None
    static_power: Quantity | None = None
    means: tuple[str, ...] = attrs.field(default=(), eq=False)
    """Names of the chip that mean it in this mode, which a database does not store."""


def derive_peaks(
    peaks: Mapping[str, Peak], coefficients: Mapping[str, Quantity], setting: str = DEFAULT
) -> Mapping[str, Peak]:
    """Return the peaks of a chip, with that at fp32 where its products take bf16 passes: peak at bf16 / passes."""
    passes = coefficients.get(f"{PASSES}.{setting}", coefficients.get(PASSES))
    if passes is None or PASS not in peaks:
        return peaks
    one = peaks[PASS]
    rate = attrs.evolve(
        one.rate,
        value=one.rate.value / passes.value,
        basis=least_sure("derived", one.rate.basis, passes.basis),
        source=f"peak at {PASS} / {passes.value:g} passes: {passes.source}",
    )
    derived = attrs.evolve(one, rate=rate, operations_per_clock=one.operations_per_clock / passes.value)
    return {FP32: derived, **{precision: peak for precision, peak in peaks.items() if precision != FP32}}


def name_estimates(quantities: object, peaks: Mapping[str, Peak]) -> str:
    """Return a note that lists the assumed key numbers among the attributes of `quantities`; empty if there are none.

    Peaks are listed only if all of them are assumed.
    """
    assumed = [name for name in KEY_QUANTITIES if getattr(quantities, name).basis == "assumed"]
    if all(peak.rate.basis == "assumed" for peak in peaks.values()):
        assumed.append("every peak")
    return f"not known, so estimated: {', '.join(assumed)}" if assumed else ""


def name_guessed_price(quantities: object) -> str:
    """Return a note on a chip whose known prices are all assumed; empty for other chips."""
    prices = {name: price for name in PRICES if (price := getattr(quantities, name)) is not None}
    is_guess = bool(prices) and all(price.basis == "assumed" for price in prices.values())
    return f"nobody asks its price, which is a guess: {', '.join(prices)}" if is_guess else ""


def _time_launch(host: Hardware, own: Quantity) -> Quantity:
    """Return the host time of one call of an eager framework in seconds; it replaces `own`, the value of the device."""
    clocks, clock = host.coefficients[CALL_CLOCKS], host.thread_clock
    paced = f"a call of an eager framework takes a thread {clocks.value:g} clocks of {clock.value / 1e9:g} GHz"
    return attrs.evolve(
        own,
        value=clocks.value / clock.value,
        basis=least_sure("derived", own.basis, clocks.basis, clock.basis),
        source=f"{host.id}: {paced}; {own.source}",
    )


def _price_host(host: Hardware, around: Surrounding | None) -> EnergyAction:
    """Return the energy row of a counted host: its static power. With `around`, this is the power at the wall plug."""
    static, note = host.static_power, ""
    if around is not None:
        watts = around.idle_w(static.value)
        basis = least_sure("derived", static.basis, around.growth.basis, around.host_power.basis)
        static = attrs.evolve(static, value=watts, basis=basis)
        note = f" within {around.label}, at the wall"
    return price_by(
        static,
        HOST_ACTION,
        f"{host.id}{note}: {static.source}",
        category=HOST,
        common_category="static",
        part="static",
        per="s",
        count_formula="seconds of the run",
    )


@frozen(kw_only=True, field_transformer=_check_units)
class Hardware:
    """One chip with every number that the models need; each number has a unit, basis and source."""

    id: str = attrs.field(validator=_is_text)
    name: str = attrs.field(validator=_is_text)
    vendor: str = attrs.field(validator=_is_text)
    architecture: str = attrs.field(validator=_is_text)
    """Architecture class, such as `cpu`, `gpu`, `tpu` or `kpu`; it selects the performance model."""
    deployment: tuple[str, ...]
    """Deployments: `datacenter`, `edge`, `embedded`."""
    microarchitecture: str = attrs.field(validator=_is_text)
    unit_name: str = attrs.field(validator=_is_text)
    """Name of one unit: `core`, `SM`, `MXU`, `tile`."""
    memory_type: str = attrs.field(validator=_is_text)
    aliases: tuple[str, ...] = ()
    """Alternative names accepted in queries."""
    projection: str = ""
    """Reason why the key numbers are projections or estimates; empty if they are published."""
    unavailable: str = ""
    """Reason why the hardware can be neither bought nor rented, or only at a guessed price; empty if it can."""
    sold_in: str = attrs.field(default="", repr=False)
    """Devices inside which alone the hardware is sold, such as `phones`; empty for a chip with a board that can be
    ordered.
    """
    doubts: tuple[str, ...] = ()
    """Points on which the sources disagree."""
    needs_host: str = ""
    """Slot or port that the hardware needs in a computer. For a part of a module or SoC, it names the rest, as `SoC
    rk3588_cpu`. The power of computer or rest is not included. Empty for standalone hardware.
    """
    host: str = ""
    """Id of the host that a question names, if its energy is counted or it launches the kernels; `none` for a device
    alone.
    """
    compiler: Compiler | None = None
    """Operators that the compiler supports; None if every operator runs on the chip."""
    package: str = attrs.field(default="", repr=False)
    """Package of another distribution that describes it, with version; empty for any other hardware."""
    helper: Hardware | None = attrs.field(default=None, repr=False)
    """Host that computes the fallback operators, with a voltage that does not depend on its clock; None without one."""
    process_node: Quantity
    launch_year: Quantity | None = None
    unit_count: Quantity
    clock: Quantity
    """Clock from which times are calculated."""
    clock_base: Quantity | None = None
    clock_boost: Quantity | None = None
    """Highest clock of this board."""
    clock_sustained: Quantity | None = None
    clock_die: Quantity | None = None
    """Highest clock of any board with the same die, reached at the die's highest voltage."""
    memory_capacity: Quantity
    memory_bandwidth: Quantity
    memory_bus_width: Quantity | None = None
    memory_data_rate: Quantity | None = None
    """Memory transfers per second on one pin."""
    tdp: Quantity
    power_limit_lowest: Quantity | None = None
    """Lowest power limit that the board's driver accepts; None if no source states it."""
    power_limit_highest: Quantity | None = None
    """Highest power limit that the board's driver accepts; None if no source states it."""
    idle_power: Quantity | None = None
    static_power: Quantity
    """Active idle: power drawn at any load while the chip runs; it is the static line of the ledger."""
    context_power: Quantity | None = None
    """Power while a process holds a context and computes nothing; None if it was not measured."""
    loaded_power: Quantity | None = None
    """Power while a model is loaded and waits for requests; None if it was not measured."""
    price_purchase: Quantity | None = None
    price_cloud: Quantity | None = None
    host_share: Quantity | None = None
    """Cost of the host as a share of the hardware's cost; 0 if the purchase price covers a whole computer.

    None means the default of cost answers; it is 0 for hardware that is a host itself (`is_host`).
    """
    geometry: Mapping[str, Quantity]
    """Quantities specific to the architecture class, e.g. `array_rows`."""
    memory_levels: tuple[MemoryLevel, ...]
    """Memory levels, nearest to the units first."""
    peaks: Mapping[str, Peak]
    """Precision -> peak."""
    links: tuple[Link, ...] = ()
    loads: tuple[MeasuredLoad, ...] = ()
    """Loads under which the board's power was measured; its energies per action are adjusted to match them."""
    power_modes: tuple[PowerMode, ...] = ()
    power_mode: str = "default"
    """Power mode that the numbers apply to."""
    coefficients: Mapping[str, Quantity]
    """Coefficients of the class's model, e.g. `dram_efficiency`."""
    reference: EnergyReference
    digest: str
    """Digest of the record's content. A modifier of a run, such as a power mode, extends it."""
    priced_at: str = attrs.field(default=CHIP, validator=attrs.validators.in_(BOUNDARY_NAMES))
    """Boundary of the measurements behind the energies per action: `board`, or `chip` for circuit-level energies."""
    boundary: str = attrs.field(default=BOARD, validator=attrs.validators.in_(BOUNDARY_NAMES))
    """Boundary of a run's energy."""
    matmul_precision: str = attrs.field(default=DEFAULT, validator=attrs.validators.in_(MATMUL_PRECISIONS), repr=False)
    """Setting of the libraries for the products of fp32 runs."""
    kernels: str = attrs.field(default="", repr=False)
    """Families of an engine's kernels, as `OPERATION=WORDS, …`: words for the variants of its operators; empty without
    an engine.
    """
    described_digest: str = ""
    """Digest before the changes of a run, such as a boundary or a host; empty if there are none."""

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if two numbers contradict each other; the message names both."""
        if not self.peaks:
            raise ValueError("peaks: there is none")
        for is_wrong, text, numbers in self.contradictions():
            if is_wrong:
                raise ValueError(text.format(*numbers))

    def contradictions(self) -> Iterator[tuple[Any, str, tuple[Any, ...]]]:
        """Yield (is contradictory, message template, values for the template) for each check of the numbers.

        If the hardware holds arrays of numbers, the first and the last item are arrays too.
        """
        static, tdp, clock = self.static_power.value, self.tdp.value, self.clock.value
        units = (self.unit_count.value + 0.5) // 1
        yield static >= tdp, "static_power: {:g} W is not below the tdp of {:g} W", (static, tdp)
        for low, high in (("clock_base", "clock_boost"), *((name, "tdp") for name in IDLE_STATES)):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None:
                text = f"{low}: {{:g}} {least.unit} is above {high} of {{:g}} {most.unit}"
                yield least.value > most.value, text, (least.value, most.value)
        for load in self.loads if self.power_mode == "default" else ():
            power = load.power.value
            is_wrong = (power <= static) | (load.covers == "board") & (power > tdp)
            text = f"loads.{load.name}.power: {{:g}} W is not above the static power of {{:g}} W and within the tdp"
            yield is_wrong, f"{text} of {{:g}} W", (power, static, tdp)
        has_fewer = True
        for precision, peak in self.peaks.items():
            has_fewer = has_fewer & (peak.unit_count < units)
            yield (
                (peak.unit_count > units) | (abs(peak.clock_hz / clock - 1.0) > CLOCK_SPREAD),
                f"peaks.{precision}: {{:.0f}} units at {{:g}} GHz, but the chip has {{:.0f}} at {{:g}} GHz; "
                "change peaks, units and clock together",
                (peak.unit_count, peak.clock_hz / 1e9, units, clock / 1e9),
            )
        text = "unit_count: {:.0f}, but every peak is that of fewer units; change peaks and units together"
        yield has_fewer, text, (units,)

    @property
    def units(self) -> int:
        """Units on the chip."""
        return round(self.unit_count.value)

    @property
    def full_clock(self) -> Quantity:
        """Highest clock that all units reach together: a GPU's boost clock, else the clock used for computing time."""
        return self.clock_boost if self.clock_boost is not None and self.architecture == "gpu" else self.clock

    @property
    def limits_w(self) -> tuple[float, ...]:
        """Lowest and highest power limit that can be set; empty if no source states the lowest."""
        lowest, highest = self.power_limit_lowest, self.power_limit_highest or self.tdp
        return () if lowest is None else (lowest.value, highest.value)

    @property
    def ports(self) -> tuple[str, ...]:
        """Kinds of ports for the devices that this hardware hosts; empty if none is stated."""
        return tuple(one.name for one in self.links if one.connects == "guest")

    @property
    def peer_links(self) -> list[Link]:
        """Links that join devices of this kind: their own, without a bridge that nobody asked for, and PCIe."""
        joined = [one for one in self.links if one.connects == "device" and one.topology != BRIDGE]
        return [*joined, *(one for one in self.links if (one.connects, one.name) == ("host", "pcie"))]

    @property
    def families(self) -> Mapping[str, str]:
        """Operation -> words of the engine's kernels; empty without an engine."""
        return dict(part.split("=", 1) for part in self.kernels.split(", ")) if self.kernels else {}

    @property
    def around_factor(self) -> float:
        """Joules at the wall plug per joule of the board, without the host; 1 unless the boundary is `system`."""
        return 1.0 + sum(self.reference.prices_fj[row] for row in self.reference.around) / FJ_PER_J

    @property
    def host_w(self) -> float:
        """Power in watts that the host adds to a run: of a counted host, or one board's share at the boundary
        `system`.
        """
        row = self.reference.position(HOST_ACTION)
        return 0.0 if row is None else self.reference.prices_fj[row] / FJ_PER_J

    @property
    def waiting_w(self) -> float:
        """Power in watts at the boundary while the hardware is idle but ready (active idle), including a counted
        host.
        """
        return self.static_power.value * self.around_factor + self.host_w

    @property
    def resting_w(self) -> float:
        """Power in watts at the boundary between requests, while a model is loaded, including a counted host. Active
        idle is used if this power was not measured.
        """
        return (self.loaded_power or self.static_power).value * self.around_factor + self.host_w

    @property
    def unmeasured_states(self) -> Iterator[tuple[str, Quantity]]:
        """Yield (name, power) of each idle state that was not measured, with active idle as its assumed power.

        The states are a held context and a loaded model. Only hardware whose kernels a host launches has contexts.
        """
        for name in IDLE_STATES[1:] if self.is_launched else IDLE_STATES[2:]:
            if getattr(self, name) is None:
                source = f"as active idle, {self.static_power.basis}; {UNMEASURED}"
                yield name, attrs.evolve(self.static_power, basis="assumed", source=source, note="")

    @property
    def thread_clock(self) -> Quantity:
        """Clock of one unit while the others are nearly idle."""
        return self.clock_boost or self.clock

    @property
    def is_launched(self) -> bool:
        """True if a host processor launches the kernels, with one call per kernel in `eager`."""
        return self.architecture == "gpu" and any(link.connects == "host" for link in self.links)

    @property
    def core_count(self) -> int:
        """Cores of a CPU; 0 for other classes."""
        return round(self.unit_count.value) if self.architecture == "cpu" else 0

    @property
    def is_projection(self) -> bool:
        """True if the key numbers are projections or estimates."""
        return bool(self.projection)

    @property
    def is_available(self) -> bool:
        """True if the hardware can be bought or rented at a price that is not a guess."""
        return not self.unavailable

    @property
    def generation(self) -> str:
        """Class, microarchitecture without die name, and process node as one text. Hardware with an equal text may
        share a calibration.
        """
        return f"{self.architecture} {_DIE.sub('', self.microarchitecture)} {self.process_node.value:g} nm"

    def find_products(self, *, is_engine: bool) -> Products:
        """Return the arithmetic of the products of an fp32 run, in an inference engine or in a framework."""
        return find_products(self.architecture, self.vendor, self.peaks, self.matmul_precision, is_engine=is_engine)

    @property
    def stated_peaks(self) -> Mapping[str, Peak]:
        """Peaks of the description: all but the one at fp32 that follows from bf16 passes."""
        if not self.find_products(is_engine=False).has_passes:
            return self.peaks
        return {precision: peak for precision, peak in self.peaks.items() if precision != FP32}

    def product_precision(self, precision: str, weight_precision: str = "") -> str:
        """Return the precision whose peak limits the GEMMs of a run: the fastest that its products use.

        Kernels that widen narrow weights on a GPU are not those of its libraries and compute at the run's precision.
        """
        is_widened = self.architecture == "gpu" and weight_precision not in ("", precision)
        return precision if precision != FP32 or is_widened else self.find_products(is_engine=False).convolution

    def product_passes(self, precision: str) -> float:
        """Return the passes through the arrays that a product of a run takes; 1 except for fp32 on systolic arrays."""
        has_passes = precision == FP32 and self.find_products(is_engine=False).has_passes
        return self.coefficient(PASSES, self.matmul_precision) if has_passes else 1.0

    def product_rate(self, precision: str, weight_precision: str = "", runtime: str = USUAL_RUNTIME) -> float:
        """Return the peak of the products of a run in operations per second, all passes of a product together."""
        rate = self.peaks[self.product_precision(precision, weight_precision)].rate.value
        if precision == "fp16" and RUNTIME[runtime].is_built:
            rate = rate * self.find_sum_gain(weight_precision)
        return rate / self.product_passes(precision)

    def find_sum_gain(self, weight_precision: str) -> float:
        """Return by how much an inference engine's convolutions at fp16 may exceed the peak: 1 on most chips.

        The fp16 peak of a GPU is that with fp32 sums. Such convolutions add in fp16, which GeForce does at twice the
        rate.
        """
        adds_narrowly = weight_precision in ("", "fp16") and NARROW_SUMS in self.coefficients
        return self.coefficients[NARROW_SUMS].value if adds_narrowly else 1.0

    def at_matmul_precision(self, setting: MatmulPrecision) -> Hardware:
        """Return this hardware, as used in a run, at a setting of its libraries for fp32 products."""
        if setting == self.matmul_precision:
            return self
        changed = attrs.evolve(
            self,
            matmul_precision=setting,
            described_digest=self.described_digest or self.digest,
            digest=extend_digest(self.digest, matmul_word(setting)),
        )
        return attrs.evolve(changed, peaks=derive_peaks(self.peaks, self.coefficients, setting))

    def coefficient(self, name: str, *qualifiers: str) -> float:
        """Return the first existing coefficient `name.qualifier`, in the order of the qualifiers; without any, return
        `name`.

        Raises KeyError, naming the hardware, if there is none.
        """
        for qualifier in qualifiers:
            coefficient = self.coefficients.get(f"{name}.{qualifier}")
            if coefficient is not None:
                return coefficient.value
        coefficient = self.coefficients.get(name)
        if coefficient is None:
            raise KeyError(f"{self.id}: no coefficient {name} for {qualifiers or 'any kind'}")
        return coefficient.value

    def level(self, name: str) -> MemoryLevel:
        """Return the memory level called `name`; KeyError if there is none."""
        for level in self.memory_levels:
            if level.name == name:
                return level
        raise KeyError(f"{self.id}: no memory level {name}")

    def with_own_digest(self) -> Hardware:
        """Return this record with its digest, after filling in the notes on estimated numbers and guessed prices."""
        noted = attrs.evolve(
            self,
            digest="",
            projection=self.projection or name_estimates(self, self.peaks),
            unavailable=self.unavailable or name_guessed_price(self),
        )
        return attrs.evolve(noted, digest=hashlib.sha256(f"{noted!r}{self.package}".encode()).hexdigest()[:16])

    def in_mode(self, name: str) -> Hardware:
        """Return this hardware at a power mode, or itself at `default`; KeyError for an unknown mode.

        Besides its named modes, `900MHz` locks the clock, `300W` sets the power cap, and `4cores` uses part of a CPU's
        cores. A cap below that of a named mode also takes that mode's clock, so that a lower cap is never faster.
        UnknownNameError if such a value is out of range. Peaks and on-chip bandwidths scale with the active units and
        the clock, vector cores of an NPU with the units. A mode may lower the highest clock but never raises it. Cap,
        memory bandwidth and static power are replaced if the mode states them. Otherwise static power is not lowered.
        """
        if name == self.power_mode:
            return self
        mode = next((mode for mode in self.power_modes if mode.name == name), None)
        if mode is None and (point := read_point(name)) is not None:
            mode = self._set(name, point)
        if mode is None:
            raise KeyError(f"{self.id}: no power mode {name}")
        clock_ratio = mode.clock.value / self.clock.value
        units = mode.unit_count or self.unit_count
        unit_ratio = units.value / self.unit_count.value
        source = f"x {clock_ratio:.4g} clock and {unit_ratio:.4g} units in power mode {name}"

        def scaled(quantity: Quantity, ratio: float = clock_ratio * unit_ratio) -> Quantity:
            return attrs.evolve(
                quantity,
                value=quantity.value * ratio,
                basis=least_sure("derived", quantity.basis, mode.clock.basis, units.basis),
                source=f"{quantity.source}; {source}",
            )

        def clocked(quantity: Quantity | None) -> Quantity | None:
            return quantity if quantity is None or clock_ratio >= 1.0 else scaled(quantity, clock_ratio)

        def shared(cores: Quantity) -> Quantity:
            return attrs.evolve(scaled(cores, unit_ratio), value=max(1.0, float(round(cores.value * unit_ratio))))

        static = mode.static_power or self.static_power
        vector = self.geometry.get(VECTOR_UNITS) if unit_ratio != 1.0 else None
        idle = {} if unit_ratio >= 1.0 else {ALL_UNITS: self.unit_count}
        return attrs.evolve(
            self,
            geometry={**self.geometry, **idle, **({} if vector is None else {VECTOR_UNITS: shared(vector)})},
            tdp=mode.tdp,
            idle_power=_within(self.idle_power, mode.tdp),
            context_power=_within(self.context_power, mode.tdp),
            loaded_power=_within(self.loaded_power, mode.tdp),
            clock=mode.clock,
            clock_base=clocked(self.clock_base),
            clock_boost=clocked(self.clock_boost),
            clock_die=self.clock_die or max(self.full_clock, mode.clock, key=lambda clock: clock.value),
            unit_count=units,
            memory_bandwidth=mode.memory_bandwidth or self.memory_bandwidth,
            static_power=static,
            memory_levels=tuple(
                attrs.evolve(level, bandwidth=scaled(level.bandwidth)) if level.bandwidth else level
                for level in self.memory_levels
            ),
            peaks={
                precision: attrs.evolve(
                    peak,
                    rate=scaled(peak.rate),
                    unit_count=max(1, round(peak.unit_count * unit_ratio)),
                    clock_hz=peak.clock_hz * clock_ratio,
                )
                for precision, peak in self.peaks.items()
            },
            reference=self.reference.with_static(static),
            power_mode=name,
            digest=extend_digest(self.digest, mode_word(name)),
        )

    def _set(self, name: str, point: OperatingPoint) -> PowerMode:
        """Return the power mode for a requested clock, cap or core count; UnknownNameError if it is out of range."""
        point.check(
            self.id,
            full_clock_hz=self.full_clock.value,
            core_count=self.core_count,
            static_w=self.static_power.value,
            caps_w=(self.tdp.value, *(mode.tdp.value for mode in self.power_modes)),
            limits_w=self.limits_w,
            modes=(mode.name for mode in self.power_modes),
        )
        asked = f"asked for: {name}"
        if point.unit == "core":
            units = attrs.evolve(self.unit_count, value=point.value, basis="derived", source=asked)
            return PowerMode(name=name, tdp=self.tdp, clock=self.clock, unit_count=units)
        if point.unit == "W":
            full = PowerMode(name=name, tdp=self.tdp, clock=self.clock)
            above = [mode for mode in self.power_modes if point.value <= mode.tdp.value < self.tdp.value]
            nearest = min((*above, full), key=lambda mode: (mode.tdp.value, -mode.clock.value))
            return attrs.evolve(
                nearest, name=name, tdp=attrs.evolve(self.tdp, value=point.value, basis="derived", source=asked)
            )
        ratio = point.value / self.full_clock.value
        clock = attrs.evolve(
            self.clock,
            value=self.clock.value * ratio,
            basis=least_sure("derived", self.clock.basis),
            source=f"{asked}, x {ratio:.4g} of {self.full_clock.value / 1e6:.6g} MHz: {self.clock.source}",
        )
        return PowerMode(name=name, tdp=self.tdp, clock=clock)

    def calibrated(self, calibration: Calibration) -> Hardware:
        """Return this hardware with the values of its calibration, before any power mode.

        Coefficients and static power are replaced, and energies of actions are scaled. A power mode that states a
        static power keeps it. Raises ValueError if the calibration is for another chip or description, or has a
        coefficient or action that this hardware lacks.
        """
        calibration.check_target(self.id, self.digest)
        source = calibration.source
        static = calibration.static_power
        for name, one in self._check_coefficients(calibration).items():
            if not math.isclose(one.default, self.coefficients[name].value, rel_tol=SAME_DEFAULT):
                raise ValueError(
                    f"coefficients.{name}: its default is {one.default:g}, but {self.id} has "
                    f"{self.coefficients[name].value:g}"
                )
        return self._under(
            calibration,
            {name: one.quantity(self.coefficients[name], source) for name, one in calibration.coefficients.items()},
            static.quantity(self.static_power, source) if static else self.static_power,
            source,
        )

    def inheriting(self, calibration: Calibration) -> Hardware:
        """Return this hardware scaled by the calibration of another chip of its generation, before any power mode.

        Coefficients with the default that the calibration started from are replaced; others stay. Energies of actions
        are scaled. Static power is scaled, below every cap, unless it was measured or published. No resulting number
        counts as measured. Raises ValueError if generations differ, or if the calibration has a coefficient or action
        that this hardware lacks.
        """
        if calibration.generation != self.generation:
            raise ValueError(
                f"generation: it is a calibration of {calibration.generation}, but {self.id} is {self.generation}"
            )
        source = f"{self.id} uses the calibration of {calibration.hardware}; {calibration.source}"

        def scaled(own: Quantity, value: float) -> Quantity:
            basis = least_sure(own.basis, "scaled")
            return attrs.evolve(own, value=value, basis=basis, source=source, evidence=None)

        coefficients = {}
        for name, one in self._check_coefficients(calibration).items():
            own = self.coefficients[name]
            if math.isclose(own.value, one.default, rel_tol=SAME_DEFAULT):
                coefficients[name] = scaled(own, one.value)
        static = self.static_power
        if calibration.static_power is not None and static.basis not in ("measured", "published"):
            static = scaled(static, min(static.value * calibration.static_power.ratio, self.most_static_w))
        return self._under(calibration, coefficients, static, source)

    @property
    def most_static_w(self) -> float:
        """Largest static power in watts that a calibration may give, at least the current one.

        If larger than that, it is `MOST_STATIC` of the lowest power among the default cap, the caps of power modes
        without a static power, and measured loads.
        """
        caps = (mode.tdp.value for mode in self.power_modes if mode.static_power is None)
        least = min(self.tdp.value, *caps, *(load.power.value for load in self.loads), math.inf)
        return max(self.static_power.value, MOST_STATIC * least)

    def _check_coefficients(self, calibration: Calibration) -> Mapping[str, FittedValue]:
        """Return the coefficients of a calibration. Raises ValueError if this hardware lacks one, or has it in another
        unit.
        """
        for name, one in calibration.coefficients.items():
            own = self.coefficients.get(name)
            if own is None:
                raise ValueError(f"coefficients: {self.architecture} has no coefficient {name}")
            if one.unit != own.unit:
                raise ValueError(f"coefficients.{name}: it is in {one.unit}, expected {own.unit}")
        return calibration.coefficients

    def _under(
        self, calibration: Calibration, coefficients: Mapping[str, Quantity], static: Quantity, source: str
    ) -> Hardware:
        """Return this hardware with these coefficients and static power, and with energies scaled by a calibration.

        Raises ValueError if the static power reaches the cap of a power mode.
        """
        caps = {"default": self.tdp} | {one.name: one.tdp for one in self.power_modes if one.static_power is None}
        for mode, cap in caps.items():
            if static.value >= cap.value:
                raise ValueError(
                    f"static_power: {static.value:g} W is not below the tdp of power mode {mode}, {cap.value:g} W"
                )
        return attrs.evolve(
            self,
            coefficients={**self.coefficients, **coefficients},
            static_power=static,
            reference=scale_reference(self.reference, calibration.energy_scales, source).with_static(static),
            digest=extend_digest(self.digest, calibration_word(calibration.digest)),
        )

    def anchored(self, rows: Iterable[EnergyAction]) -> Hardware:
        """Return this hardware with added or changed energies per action from its anchor (`joulemap.physics.anchor`).

        It must not be calibrated yet. Its digest stays because the energies follow from the description and the
        formulas.
        """
        return attrs.evolve(self, reference=self.reference.with_actions(rows))

    def at_boundary(self, boundary: BoundaryName, version: str, around: Surrounding | None = None) -> Hardware:
        """Return this hardware at an energy boundary. It must already have its anchored energies and its power mode.

        `version` is the version of the formulas that anchored the energies. At `chip`, a run's energy excludes the
        board. The power limit still includes it, so times do not change. At `system`, a run's energy includes `around`.
        """
        word = boundary_word(boundary, self.priced_at, version, "" if around is None else around.digest)
        digest = extend_digest(self.digest, word)
        if digest == self.digest:
            return self
        reference = self.reference if BOUNDARY[boundary].includes_board else self.reference.withheld()
        return attrs.evolve(
            self,
            reference=reference if around is None else reference.with_actions(around.list_actions()),
            coefficients={**self.coefficients, **({} if around is None else around.list_coefficients())},
            boundary=boundary,
            described_digest=self.digest,
            digest=digest,
        )

    def with_host(self, host: Hardware, *, is_counted: bool, around: Surrounding | None = None) -> Hardware:
        """Return this hardware, as used in a run, with a host that is also as used in a run.

        The host runs the fallback operators and, if it launches kernels, sets the launch time. If counted, its static
        power is part of every run's energy, at the wall if its surroundings are given. A counted host replaces the host
        of this hardware's own surroundings, and never counts toward this hardware's power cap. It also moves inputs and
        outputs over the link, even if published rates of this hardware exclude that, and no faster than its own port. A
        chip without a memory of its own has that of its counted host.
        """
        used = self.at_ports(host.links) if is_counted else self
        if is_counted and LINK_LANES in self.geometry:
            used = attrs.evolve(used, memory_capacity=host.memory_capacity)
        rows = [_price_host(host, around)] if is_counted else []
        helper = None
        if self.compiler is not None:
            helper = host.at_fixed_voltage()
            rows += [
                attrs.evolve(
                    row,
                    category=HOST,
                    common_category=HOST,
                    component=host_key(row.key)[0],
                    source=f"{host.id}: {row.source}",
                )
                for row in host.reference
                if row.key != STATIC_ACTION
            ]
        is_paced = self.is_launched and CALL_CLOCKS in host.coefficients
        return attrs.evolve(
            used,
            reference=self.reference.with_actions(rows),
            coefficients={
                **used.coefficients,
                **({LAUNCH: _time_launch(host, self.coefficients[LAUNCH])} if is_paced else {}),
                **(used._time_transfers() if is_counted else {}),
            },
            host=host.id if is_counted or is_paced else "",
            helper=helper,
            described_digest=self.described_digest or self.digest,
            digest=extend_digest(
                self.digest,
                host_word(host.digest, is_counted=is_counted, around="" if around is None else around.digest),
            ),
        )

    def at_ports(self, ports: Iterable[Link]) -> Hardware:
        """Return this hardware at the best of a host's ports that fits, which bounds the link and what it reads there.

        A port that is not stated is assumed to be no bound.
        """
        ends, others = ([one for one in self.links if (one.connects == "host") == is_end] for is_end in (True, False))
        pairs = [(end, port) for end in ends for port in ports if (end.name, port.connects) == (port.name, "guest")]
        link = max(starmap(_join_ends, pairs), key=lambda one: one.bandwidth.value, default=None)
        moved = self.coefficients.get(HOST_TRANSFER)
        if link is None or link == ends[0]:
            return self
        slower = {}
        if moved is not None and moved.value > 0.0:
            value = max(moved.value, 1.0 / (LINK_SHARE * link.bandwidth.value))
            slower[HOST_TRANSFER] = attrs.evolve(moved, value=value)
        return attrs.evolve(
            self,
            links=(link, *others),
            memory_bandwidth=link.bandwidth if LINK_LANES in self.geometry else self.memory_bandwidth,
            coefficients={**self.coefficients, **slower},
        )

    def _time_transfers(self) -> dict[str, Quantity]:
        """Return {`HOST_TRANSFER`: seconds per byte over the host link}.

        The result is empty without a host link, or if another number already includes the transfers.
        """
        own = self.coefficients.get(HOST_TRANSFER)
        link = _find_host_link(self)
        if own is None or link is None or own.value > 0.0 or LINK_LANES in self.geometry:
            return {}
        rate = link.bandwidth
        source = f"1 / ({LINK_SHARE:g} x {rate.value / 1e9:g} GB/s of {link.name}): {rate.source}"
        value = 1.0 / (LINK_SHARE * rate.value)
        return {HOST_TRANSFER: attrs.evolve(own, value=value, basis="assumed", source=source, evidence=None)}

    def without_host(self) -> Hardware:
        """Return this hardware, as used in a run, without its host.

        Its link moves no inputs and outputs, and operators that its compiler does not support are left out.
        """
        own = self.coefficients.get(HOST_TRANSFER)
        return attrs.evolve(
            self,
            coefficients={
                **self.coefficients,
                **({} if own is None else {HOST_TRANSFER: attrs.evolve(own, value=0.0)}),
            },
            host=NO_HOST,
            described_digest=self.described_digest or self.digest,
            digest=extend_digest(self.digest, DEVICE_WORD),
        )

    def at_fixed_voltage(self) -> Hardware:
        """Return this hardware with one voltage for all clocks, so that an action always takes the same energy."""
        fixed = {name: attrs.evolve(self.coefficients[name], value=1.0) for name in ("voltage_floor", "voltage_knee")}
        return attrs.evolve(
            self,
            coefficients={**self.coefficients, **fixed},
            described_digest=self.described_digest or self.digest,
            digest=extend_digest(self.digest, FIXED_VOLTAGE_WORD),
        )

    def quantities(self) -> Iterator[tuple[str, Quantity]]:
        """Yield (dotted name, quantity) for every number of this record except the reference table."""
        yield from _list_quantities("", self)
        yield from self.unmeasured_states
        for name, quantity in self.geometry.items():
            yield f"geometry.{name}", quantity
        for level in self.memory_levels:
            yield from _list_quantities(f"memory.{level.name}.", level)
        for precision, peak in self.peaks.items():
            yield f"peak.{precision}", peak.rate
        for kind, records in (("link", self.links), ("load", self.loads), ("power_mode", self.power_modes)):
            for one in records:
                yield from _list_quantities(f"{kind}.{one.name}.", one)
        for name, quantity in self.coefficients.items():
            yield f"coefficient.{name}", quantity


def _find_host_link(hardware: Hardware) -> Link | None:
    """Return the link to the host; None without one."""
    return next((one for one in hardware.links if one.connects == "host"), None)


def _join_ends(one: Link, port: Link) -> Link:
    """Return the link of a device at a port: it has the lower rate of a lane and the lower width of both ends."""
    if port.bandwidth.value >= one.bandwidth.value and port.lane_rate >= one.lane_rate:
        return one
    slow, narrow = min((one, port), key=lambda end: end.lane_rate), min((one, port), key=lambda end: end.width)
    rate = attrs.evolve(slow.bandwidth, value=slow.lane_rate * narrow.width)
    return attrs.evolve(one, generation=slow.generation, lane_count=narrow.lane_count, bandwidth=rate)


def _within(power: Quantity | None, tdp: Quantity) -> Quantity | None:
    """Return an idle power of a power mode, or None if it exceeds the mode's cap."""
    return None if power is not None and power.value > tdp.value else power


def _list_quantities(
    before: str, record: Hardware | MemoryLevel | Link | MeasuredLoad | PowerMode
) -> Iterator[tuple[str, Quantity]]:
    for field in attrs.fields(type(record)):
        if isinstance(value := getattr(record, field.name), Quantity):
            yield f"{before}{field.name}", value
