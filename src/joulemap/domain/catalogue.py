"""Catalogue of named hardware and models, with notes on architectures, assumptions about use, and grid regions."""

from __future__ import annotations

import functools
import operator
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.hardware_ref import HardwareRef, MemoryConfiguration
from joulemap.domain.host import is_part, name_rest
from joulemap.domain.operator.name import is_operator, spell
from joulemap.physics.record.configuration import PRECISION_BYTES, Precision
from joulemap.physics.record.operating_point import read_point
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.target import DEFAULT_MODE as DEFAULT_MODE
from joulemap.system.errors import AmbiguousNameError, UnknownNameError
from joulemap.system.name import find_nearest, fold_into, fold_name, has_words, keeps_parts, split_words, unmark
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Form
    from joulemap.domain.supplied import Supplied
    from joulemap.physics.record.hardware import Hardware, PowerMode

DEFAULT_HARDWARE: Final = (*(CLASS_HARDWARE[name] for name in ("cpu", "gpu", "tpu")), "rtx_4090", CLASS_HARDWARE["kpu"])
"""Default hardware of a comparison: chips that people can buy or rent, and that run every operator without a host, then
a projection of a class of which none can be bought, which is shown and never advised.
"""

MICROCONTROLLER_W: Final = 1.0
"""Power cap below which a chip counts as a microcontroller, unless it is deployed at the edge."""

SHORT: Final = 2
"""Longest query, in characters, that a name must contain as one piece. Longer queries are matched word by word."""

LIST_HINT: Final = "see `joulemap hardware list`"

LIKE_HINT: Final = (
    "or start from a known chip and state the numbers that differ, such as {like}[{numbers}] (also unit_count, "
    "memory_bandwidth, memory_capacity)"
)
"""Hint that shows how to describe an unknown chip: a known chip with other numbers."""

EXAMPLE: Final = "rtx_4090"
"""Chip in `LIKE_HINT` if no known name is similar."""

ANY_NUMBERS: Final = "clock=x1;tdp=x1"
"""Example changes in `LIKE_HINT` for a chip whose clock and power limit are not in the catalogue."""

SHOWN_CANDIDATES: Final = 8
"""Maximum candidates that an error lists for an ambiguous name."""


STATED: Final = ("tdp", "clock", "unit_count", "memory_bandwidth", "static_power")
"""Quantities that a power mode may override."""

SAME: Final = (
    "id", "name", "vendor", "architecture", "deployment", "aliases", "limits_w", "core_count", "generation",
    "unavailable", "sold_in", "needs_host", "is_launched", "priced_at", "digest", "ports",
)  # fmt: skip
"""Fields that an entry copies from its hardware."""

OPERATOR: Final = "operator"
"""Family and task of single-operator models."""

ALIKE: Final = 0.03
"""Relative difference below which two values belong to the same operating point."""


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


@frozen(kw_only=True)
class Variant:
    """Origin of a chip that was derived from another chip by changed numbers."""

    base: str
    """Id of the original hardware."""
    changes: tuple[tuple[str, str | float], ...]
    """Constants and their new values, as written by the user."""
    place: str
    """Name or file by which the user selects the variant."""
    memory: MemoryConfiguration | None = None
    """Memory modules that the user stated; the changed memory bandwidth is calculated from them. None if none were
    stated.
    """


@frozen(kw_only=True)
class HardwareEntry:
    """Hardware summary, enough to choose a chip."""

    id: str
    name: str
    vendor: str
    architecture: str
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    aliases: tuple[str, ...] = attrs.field(converter=_texts)
    power_modes: tuple[str, ...] = attrs.field(converter=_texts)
    """Names of power modes other than the default."""
    meant_modes: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """Name of the hardware -> named mode that this name means."""
    default_names: tuple[str, ...] = attrs.field(converter=_texts)
    """Named modes that equal the default mode."""
    caps_w: tuple[float, ...] = attrs.field(converter=_numbers)
    """Power cap of the default mode, then of each named mode."""
    limits_w: tuple[float, ...] = attrs.field(converter=_numbers)
    """Range of settable power limits, as in `Hardware.limits_w`."""
    core_count: int
    """Cores of a CPU; 0 for other classes."""
    full_clock_hz: float
    """Highest clock that all units reach together."""
    static_w: float
    precisions: tuple[str, ...] = attrs.field(converter=_texts)
    generation: str
    """Chip generation, as in `Hardware.generation`."""
    unavailable: str
    """Reason why the hardware cannot be bought, as in `Hardware.unavailable`."""
    sold_in: str
    """Devices inside which alone it is sold, as in `Hardware.sold_in`."""
    needs_host: str
    """Slot or port of a computer that the hardware needs, as in `Hardware.needs_host`."""
    ports: tuple[str, ...] = attrs.field(converter=_texts)
    """Kinds of ports for other devices, as in `Hardware.ports`."""
    is_launched: bool
    """True if a host launches the kernels, as in `Hardware.is_launched`."""
    fallback_host: str
    """Default host for fallback operators: the rest of the chip's own module or SoC, else that of `Compiler.host`."""
    is_unlisted: bool
    """True if no list of the compiler's supported operators is known."""
    priced_at: str
    """Energy boundary of the uncalibrated energies per action, as in `Hardware.priced_at`."""
    digest: str
    variant: Variant | None = None

    @property
    def form(self) -> Form:
        """Kind of product in which the hardware can be bought."""
        if self.sold_in:
            named: tuple[tuple[str, Form], ...] = (("phone", "phone"), ("car", "car"), ("laptop", "laptop"))
            return next((form for word, form in named if word in self.sold_in), "computer")
        if "datacenter" in self.deployment and not self.needs_host:
            return "server"
        if self.needs_host and not is_part(self.needs_host):
            return "card"
        if self.caps_w[0] < MICROCONTROLLER_W and "edge" not in self.deployment:
            return "microcontroller"
        return "board" if "embedded" in self.deployment else "computer"

    @property
    def described(self) -> str:
        """Id of the chip in the catalogue: the base chip of a variant, else its own id."""
        return self.id if self.variant is None else self.variant.base

    @classmethod
    def of(cls, hardware: Hardware) -> HardwareEntry:
        """Build the entry of a hardware record."""
        same = {name: getattr(hardware, name) for name in SAME}
        return cls(
            **same,
            power_modes=(mode.name for mode in hardware.power_modes),
            meant_modes={name: mode.name for mode in hardware.power_modes for name in mode.means},
            default_names=_name_default(hardware),
            caps_w=(hardware.tdp.value, *(mode.tdp.value for mode in hardware.power_modes)),
            full_clock_hz=hardware.full_clock.value,
            static_w=hardware.static_power.value,
            precisions=hardware.peaks,
            fallback_host=_find_fallback(hardware),
            is_unlisted=bool(hardware.compiler and hardware.compiler.is_unlisted),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Id, aliases, and display name with and without its bracketed part."""
        return self.id, *self.aliases, *self.meant_modes, self.name, self.name.partition("(")[0].strip()

    @property
    def needless_words(self) -> frozenset[str]:
        """Words that are optional in the name of the chip: its vendor and class."""
        return list_needless(self.vendor, self.architecture)

    @property
    def caps(self) -> dict[str, float]:
        """Power mode -> power cap in W, default mode first."""
        return dict(zip((DEFAULT_MODE, *self.power_modes), self.caps_w, strict=True))

    @property
    def distinct_modes(self) -> tuple[str, ...]:
        """Modes with distinct operating points: the default mode and every named mode that differs from it."""
        return (DEFAULT_MODE, *(mode for mode in self.power_modes if mode not in self.default_names))

    def cap_w(self, mode: str) -> float:
        """Return the power cap of a mode; the default mode's cap if the mode locks the clock or the number of cores."""
        if mode in self.caps:
            return self.caps[mode]
        point = read_point(mode)
        return point.value if point is not None and point.unit == "W" else self.caps[DEFAULT_MODE]

    def has_mode(self, name: str) -> bool:
        """Return True if the hardware has a power mode of this name."""
        return fold_name(name) in (fold_name(mode) for mode in (DEFAULT_MODE, *self.power_modes))

    def mode_of(self, ref: HardwareRef) -> str:
        """Return the power mode of a reference: the one that it states, else the one that its name means."""
        words = split_words(ref.id).keys() - self.needless_words
        meant = (mode for name, mode in self.meant_modes.items() if split_words(name).keys() == words)
        return self.find_mode(ref.mode or next(meant, DEFAULT_MODE))

    def find_mode(self, name: str) -> str:
        """Return the canonical name of a power mode, of a clock (`900MHz`) or of a power cap (`300W`).

        Raises UnknownNameError, which lists the modes and the valid range.
        """
        modes = (DEFAULT_MODE, *self.power_modes)
        mode = fold_into(name, modes)
        if mode in modes:
            return mode
        point = read_point(name)
        if point is None:
            cores = ", a part of its cores (4cores)" if self.core_count else ""
            has = f"{', '.join(self.power_modes)}, " if self.power_modes else ""
            raise UnknownNameError(
                "power mode", name, (), f"{self.id} has {has}a clock (900MHz){cores} or a power cap (300W)"
            )
        point.check(
            self.id,
            full_clock_hz=self.full_clock_hz,
            core_count=self.core_count,
            static_w=self.static_w,
            caps_w=self.caps_w,
            limits_w=self.limits_w,
            modes=self.power_modes,
        )
        return point.name

    def nearest_precision(self, asked: Precision) -> Precision:
        """Return the requested precision if it is supported, else a supported one of the nearest width: the wider of
        two.
        """
        order = list(PRECISION_BYTES)

        def distance(name: str) -> tuple[bool, float, bool, int]:
            factor = PRECISION_BYTES[name] / PRECISION_BYTES[asked]
            return name != asked, max(factor, 1.0 / factor), factor < 1.0, order.index(name)

        return cast("Precision", min(self.precisions, key=distance))


@lru_cache(512)
def list_needless(vendor: str, architecture: str) -> frozenset[str]:
    """Return the words of a vendor and a class that are optional in the name of a chip."""
    return frozenset(split_words(f"{vendor} {architecture}"))


def _find_fallback(hardware: Hardware) -> str:
    """Return the default host for operators that a chip's compiler leaves out; empty without one."""
    if hardware.compiler is None:
        return ""
    return name_rest(hardware.needs_host) or hardware.compiler.host


def _name_default(hardware: Hardware) -> tuple[str, ...]:
    """Return the named power modes that equal a chip's default mode."""
    return tuple(mode.name for mode in hardware.power_modes if _is_alike(hardware, mode))


def _is_alike(hardware: Hardware, mode: PowerMode) -> bool:
    """Return True if every value that a power mode overrides nearly equals (`ALIKE`) that of the default mode."""
    for name in STATED:
        stated, own = getattr(mode, name), getattr(hardware, name)
        if stated is not None and abs(stated.value - own.value) > ALIKE * own.value:
            return False
    return True


def find_entry(entries: Mapping[str, HardwareEntry], name: str) -> HardwareEntry:
    """Return the entry with this name; a partial name never matches.

    Case, spaces, `-`, `_` and word order do not matter; vendor and class may be added. Raises AmbiguousNameError if
    several chips match, else UnknownNameError with the nearest names.
    """
    asked = unmark(name)
    alike = find_alike(entries, asked)
    if len(alike) == 1:
        return alike[0]
    if find_class(asked):
        raise UnknownNameError("hardware", name, (), f"it is a class of hardware, name a chip of it: {LIST_HINT}")
    partly = [entry.id for entry in alike or _find_partly(entries, asked)]
    if len(partly) > 1:
        raise AmbiguousNameError("hardware", name, partly, SHOWN_CANDIDATES, LIST_HINT)
    from joulemap.domain.printed import shorten

    near = partly or find_nearest(shorten(asked), [entry.names for entry in entries.values()])
    hint = f"{LIST_HINT}, {describe_like(entries, near[0] if near else EXAMPLE)}"
    raise UnknownNameError("hardware", name, (), hint, near=near)


def describe_like(entries: Mapping[str, HardwareEntry], like: str) -> str:
    """Return the hint for describing an unknown chip: the known chip `like` with other numbers."""
    entry = entries.get(like)
    numbers = ANY_NUMBERS if entry is None else f"clock={entry.full_clock_hz / 1e9:.3g}GHz;tdp={entry.caps_w[0]:.4g}W"
    return LIKE_HINT.format(like=like, numbers=numbers)


def find_alike(entries: Mapping[str, HardwareEntry], name: str) -> list[HardwareEntry]:
    """Return the hardware with exactly this name; if there is none, return the hardware with the same words in its
    names.

    Vendor and class words may be added, but no word of a name may be missing, and letters and digits that are written
    together keep their order: `h10` is not `hailo_10h`. Words of several names of one chip may be combined: `Altra Max
    M128` combines Altra-Max and M128-30. A name printed by a machine (`domain/printed.py`) is tried last.
    """
    asked = unmark(name)
    if asked in entries:
        return [entries[asked]]
    folded, words = _compare(asked)
    exact = [entry for entry in entries.values() if any(_compare(one)[0] == folded for one in entry.names)]
    # `Apple M1 Pro CPU` is an alias of one entry, and the display name of two without their bracketed parts
    exact = [one for one in exact if folded in map(fold_name, (one.id, *one.aliases, one.name))] or exact
    if exact or find_class(asked):
        return exact
    if processor := _find_processor(entries, asked):
        return processor
    able = [
        entry
        for entry in entries.values()
        if words.keys() <= _list_words(entry.names, entry.vendor, entry.architecture)
    ]
    able = [entry for entry in able if keeps_parts(asked, (*entry.names, entry.vendor))]
    strict = [
        entry for entry in able if any(has_words(words, _compare(one)[1], entry.needless_words) for one in entry.names)
    ]
    return strict or [entry for entry in able if _has_names(entry, words)] or _find_printed(entries, asked)


def _find_processor(entries: Mapping[str, HardwareEntry], name: str) -> list[HardwareEntry]:
    """Return the CPUs that match a CPU brand string; none for any other name."""
    from joulemap.domain.printed import is_processor

    if not is_processor(name):
        return []
    processors = {key: one for key, one in entries.items() if one.architecture == "cpu"}
    return _find_printed(processors, name, is_of_class=True)


def _find_printed(entries: Mapping[str, HardwareEntry], name: str, *, is_of_class: bool = False) -> list[HardwareEntry]:
    """Return the hardware that matches a name printed by a machine. Vendor, trademark signs, clock and core count are
    ignored.

    With `is_of_class`, all entries are of one class, so a name may lack the word for the class.
    """
    from joulemap.domain.printed import find_vendors, list_readings, read_words

    vendors = find_vendors(name)
    if not vendors and not any(map(str.isdecimal, name)):  # `vii` alone is no name of a Radeon
        return []
    classes = {entry.architecture for entry in entries.values()}
    for words in list_readings(name, ("", *classes)):
        printed = [
            entry
            for entry in entries.values()
            if (not vendors or vendors & find_vendors(entry.vendor))
            and any(
                known and known in (words[""], words[entry.architecture])
                for known in (read_words(one, entry.architecture if is_of_class else "") for one in entry.names)
            )
        ]
        if printed:
            return printed
    return []


def _has_names(entry: HardwareEntry, words: Counter[str]) -> bool:
    """Return True if the words contain one whole name of a chip and otherwise only words of its other names."""
    names = [_compare(one)[1] for one in entry.names]
    every = functools.reduce(operator.or_, names)
    return not words - every - Counter(dict.fromkeys(entry.needless_words, 1)) and any(
        one and not one - words for one in names
    )


@lru_cache(8192)
def _compare(name: str) -> tuple[str, Counter[str]]:
    """Return a name without case and separators (`fold_name`), and its words. Cached: one search compares every name of
    the catalogue.
    """
    return fold_name(name), split_words(name)


@lru_cache(8192)
def _list_words(names: tuple[str, ...], vendor: str, architecture: str) -> frozenset[str]:
    """Return all words that may occur in a name of a chip. Cached, because a search first excludes chips by these
    words.
    """
    return frozenset(word for one in (*names, vendor, architecture) for word in split_words(one))


@lru_cache(maxsize=4)
def _fold_aliases(named: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, str]:
    """Return alias -> model name, with aliases in the form that `fold_name` gives."""
    return {fold_name(alias): name for name, aliases in named for alias in aliases}


def find_model_name(name: str, known: Mapping[str, ModelEntry]) -> str:
    """Return the catalogue model that a name means (`ResNet-50`, `ViT-B/16`, `BAAI/bge-m3`), else the name unchanged.

    The owner in a hub name (`BAAI/`) may differ or be missing; paths of files stay unchanged. The sizes of a single
    operator are written in canonical form; UsageError if they are invalid.
    """
    if name in known or ":" in name or name.endswith((".py", ".pt2")):
        return name
    is_owned = name.count("/") == 1 and name[0] not in "./~" and not os.path.exists(name)
    aliases = _fold_aliases(tuple((entry.name, entry.aliases) for entry in known.values() if entry.aliases))
    for one in (name, name.partition("/")[2]) if is_owned else (name,):
        known_name = fold_into(one, known, ignoring="/")
        known_name = aliases.get(fold_name(one), known_name)
        if known_name in known:
            return known_name
    return spell(name)


def find_family(name: str, models: Mapping[str, ModelEntry]) -> str:
    """Return the family of a measured model; `other` if the model is not in the catalogue."""
    if is_operator(name):
        return OPERATOR
    return models[name].family if name in models else "other"


def _find_partly(entries: Mapping[str, HardwareEntry], asked: str) -> list[HardwareEntry]:
    """Return the hardware whose names contain all words of a query; none if the query has only numbers."""
    words = split_words(asked)
    if not any(map(str.isalpha, words)):
        return []
    # the words of a short query occur in many names: `L2` must not match `V2L`
    whole = fold_name(asked) if len(fold_name(asked)) <= SHORT else ""
    return [
        entry
        for entry in entries.values()
        if any(not words - split_words(one) and whole in fold_name(one) for one in entry.names)
    ]


@frozen
class Catalogue:
    """All known hardware, by id."""

    hardware: Mapping[str, Hardware]
    digest: str
    """Digest of all data files."""
    supplied: tuple[Supplied, ...] = ()
    """Content of each installed package with hardware."""

    @cached_property
    def entries(self) -> dict[str, HardwareEntry]:
        """Id -> hardware summary."""
        return {name: HardwareEntry.of(hardware) for name, hardware in self.hardware.items()}

    def find(self, name: str) -> Hardware:
        """Return the hardware with this id or alias; UnknownNameError suggests the nearest ids."""
        return self.hardware[find_entry(self.entries, name).id]


@frozen(kw_only=True)
class ModelEntry:
    """Model of the catalogue. Published figures are for its default weights at batch size 1."""

    name: str
    family: str
    task: str
    """Task: `classification`, `segmentation`, `video` …"""
    input_shape: tuple[int, ...] = ()
    """Shape of one sample, without the batch dimension; empty if the model supplies its own inputs."""
    input_layout: str = "tensors"
    """Input type: `tensors`; `images`, a list with one image per sample; or `pair`, two tensors of this shape."""
    parameter_count: int | None = None
    """Parameter count published by torchvision."""
    published_mac_count: int | None = None
    """MAC count that torchvision publishes as `_ops`, here as a plain count; None if it publishes none."""
    is_traceable: bool = True
    reason: str = ""
    """Reason why the model is not traceable; empty if it is."""
    package: str = ""
    """Package besides torch that is needed to trace the model; empty if torch and torchvision suffice."""
    aliases: tuple[str, ...] = ()
    """Other names of the model, and names of models with equal layer sizes."""


@frozen(kw_only=True)
class ShippedWorkload:
    """Built-in workload of a model at its default input shape."""

    model: str
    is_affine: bool
    """True if every count is an affine function of the batch size. The built-in workload then determines all batch
    sizes.
    """
    parameter_count: int
    mac_count: int
    """MAC count at batch size 1."""
    torch_version: str = ""
    torchvision_version: str = ""
    tracer_version: str = ""
    is_affine_above: bool = False
    """True if the workload at batch size 2 determines all larger batch sizes, but batch size 1 runs other operators."""

    @property
    def ships_any(self) -> bool:
        """True if the workload at every batch size can be calculated from built-in ones."""
        return self.is_affine or self.is_affine_above

    def ships(self, batch: int | None) -> bool:
        """Return True if the workload at a batch size can be calculated from built-in ones; None means every batch
        size.
        """
        return batch == 1 or self.ships_any


def _filled(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty")


@frozen(kw_only=True)
class ArchitectureNote:
    """Note on how an architecture class handles one topic, with its source."""

    architecture: str = attrs.field(validator=_filled)
    topic: str = attrs.field(validator=_filled)
    """Topic: `principle`, `instruction fetch`, `coherence` or `data movement`."""
    text: str = attrs.field(validator=_filled)
    source: str = attrs.field(validator=_filled)


@frozen(kw_only=True)
class CostAssumption:
    """Assumption about the use of a chip; the user may override it."""

    name: str
    """Name: `utilization`, `lifetime`, `hours`, `pue`, `electricity` or `host`."""
    quantity: Quantity


@frozen(kw_only=True)
class GridRegion:
    """Yearly average carbon intensity of one region's electricity."""

    region: str
    """Id: `world`, `eu`, or a two-letter country code."""
    name: str
    year: int
    intensity: Quantity
    """Carbon intensity in g/kWh of CO2 equivalents, unless its note says otherwise."""


@frozen(kw_only=True)
class Scenario:
    """Deployment scenario with the power available to a chip."""

    name: str = attrs.field(validator=_filled)
    """Scenario name: `datacenter`, `edge` and `embedded` are deployments; other scenarios combine these."""
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    kinds: tuple[str, ...] = attrs.field(converter=_texts)
    """Kinds of product that fit the scenario, such as `board`; empty for all."""
    power_budget: Quantity | None
    """Power budget in W; None if the site is designed around the chip."""
    battery: Quantity | None
    """Energy of a usual battery in Wh; None for scenarios without one."""
    is_pulse: bool
    """True if the budget bounds the power at every moment, as for a coin cell; False if it bounds the mean power."""
    note: str

    @property
    def battery_name(self) -> str:
        """Battery, from its source; empty without one."""
        return "" if self.battery is None else self.battery.source.removesuffix(f", {self.battery.basis}")
