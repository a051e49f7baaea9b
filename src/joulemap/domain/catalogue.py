"""The catalogue: every hardware and model that joulemap knows by name, and the notes, uses and grids beside them."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.domain.configuration import PRECISION_BYTES
from joulemap.domain.name import find_nearest, fold_into, fold_name, has_words, split_words, unmark
from joulemap.domain.operating_point import read_point
from joulemap.domain.operator.name import is_operator, spell
from joulemap.domain.quantity import Quantity
from joulemap.domain.target import DEFAULT_MODE as DEFAULT_MODE
from joulemap.system.errors import AmbiguousNameError, UnknownNameError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.configuration import Precision
    from joulemap.domain.hardware import Hardware, PowerMode

DEFAULT_HARDWARE: Final = tuple(CLASS_HARDWARE[name] for name in ("cpu", "gpu", "tpu", "kpu"))
"""What a comparison takes when no hardware is named: one of each of four architecture classes."""

LIST_HINT: Final = "see `joulemap hardware list`"

SHOWN_CANDIDATES: Final = 8
"""Hardware that a part of a name may mean, as an error lists them."""


STATED: Final = ("tdp", "clock", "unit_count", "memory_bandwidth", "static_power")
"""What a power mode may state of a hardware."""

SAME: Final = (
    "id", "name", "vendor", "architecture", "deployment", "aliases", "core_count", "generation", "unavailable",
    "needs_host", "is_launched", "priced_at", "digest",
)  # fmt: skip
"""What an entry has as its hardware has it."""

OPERATOR: Final = "operator"
"""Family and task of single operators."""

ALIKE: Final = 0.03
"""Numbers that agree within this share are those of one operating point."""


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


@frozen(kw_only=True)
class Variant:
    """What makes a hardware of another: numbers in place of its own."""

    base: str
    """Id of the other."""
    changes: tuple[tuple[str, str | float], ...]
    """Constant and value, as it was written."""
    place: str
    """What to write to ask for it."""


@frozen(kw_only=True)
class HardwareEntry:
    """What must be known of a hardware to choose it."""

    id: str
    name: str
    vendor: str
    architecture: str
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    aliases: tuple[str, ...] = attrs.field(converter=_texts)
    power_modes: tuple[str, ...] = attrs.field(converter=_texts)
    """Names of its modes beside the default one."""
    default_names: tuple[str, ...] = attrs.field(converter=_texts)
    """Those of them that are the default one by another name."""
    caps_w: tuple[float, ...] = attrs.field(converter=_numbers)
    """The power cap of the default mode, then of each other."""
    core_count: int
    """Of a CPU; 0 for other classes."""
    full_clock_hz: float
    """The highest clock that all units reach together."""
    static_w: float
    precisions: tuple[str, ...] = attrs.field(converter=_texts)
    generation: str
    """As `Hardware.generation`."""
    unavailable: str
    """As `Hardware.unavailable`."""
    needs_host: str
    """As `Hardware.needs_host`."""
    is_launched: bool
    """As `Hardware.is_launched`."""
    fallback_host: str
    """As `Compiler.host`."""
    is_unlisted: bool
    """True if the operators that its compiler supports are not listed."""
    priced_at: str
    """As `Hardware.priced_at`, without a calibration."""
    digest: str
    variant: Variant | None = None

    @property
    def described(self) -> str:
        """Id of the hardware whose description it has: that which it is a variant of, else its own."""
        return self.id if self.variant is None else self.variant.base

    @classmethod
    def of(cls, hardware: Hardware) -> HardwareEntry:
        """Return the entry of a hardware record."""
        same = {name: getattr(hardware, name) for name in SAME}
        return cls(
            **same,
            power_modes=(mode.name for mode in hardware.power_modes),
            default_names=_name_default(hardware),
            caps_w=(hardware.tdp.value, *(mode.tdp.value for mode in hardware.power_modes)),
            full_clock_hz=hardware.full_clock.value,
            static_w=hardware.static_power.value,
            precisions=hardware.peaks,
            fallback_host=hardware.compiler.host if hardware.compiler else "",
            is_unlisted=bool(hardware.compiler and hardware.compiler.is_unlisted),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called: its id, its aliases, and its name for people with and without what stands in brackets."""
        return self.id, *self.aliases, self.name, self.name.partition("(")[0].strip()

    @property
    def needless_words(self) -> frozenset[str]:
        """Words that tell nothing new beside its name: its vendor and class."""
        return frozenset(split_words(f"{self.vendor} {self.architecture}"))

    @property
    def caps(self) -> dict[str, float]:
        """Power mode -> its cap in W, the default one first."""
        return dict(zip((DEFAULT_MODE, *self.power_modes), self.caps_w, strict=True))

    @property
    def distinct_modes(self) -> tuple[str, ...]:
        """The modes that are different operating points: the default one, and those that are not it by another name."""
        return (DEFAULT_MODE, *(mode for mode in self.power_modes if mode not in self.default_names))

    def cap_w(self, mode: str) -> float:
        """Return the power cap of a mode; that of the default one where a mode locks the clock."""
        if mode in self.caps:
            return self.caps[mode]
        point = read_point(mode)
        return point.value if point is not None and point.unit == "W" else self.caps[DEFAULT_MODE]

    def has_mode(self, name: str) -> bool:
        """Whether it has a named power mode of this name."""
        return fold_name(name) in (fold_name(mode) for mode in (DEFAULT_MODE, *self.power_modes))

    def find_mode(self, name: str) -> str:
        """Return the power mode of this name, or the one way to write the clock (`900MHz`) or cap (`300W`) that it is.

        UnknownNameError names the modes that it has and the range of what it can be set to.
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
            modes=self.power_modes,
        )
        return point.name

    def nearest_precision(self, asked: Precision) -> Precision:
        """Return the precision that it has and that is nearest to what was asked: that, else in width, wider first."""
        order = list(PRECISION_BYTES)

        def distance(name: str) -> tuple[bool, float, bool, int]:
            factor = PRECISION_BYTES[name] / PRECISION_BYTES[asked]
            return name != asked, max(factor, 1.0 / factor), factor < 1.0, order.index(name)

        return cast("Precision", min(self.precisions, key=distance))


def _name_default(hardware: Hardware) -> tuple[str, ...]:
    """Return the power modes that are a hardware's default one by another name."""
    return tuple(mode.name for mode in hardware.power_modes if _is_alike(hardware, mode))


def _is_alike(hardware: Hardware, mode: PowerMode) -> bool:
    """Whether what a mode states agrees with the hardware's own numbers."""
    for name in STATED:
        stated, own = getattr(mode, name), getattr(hardware, name)
        if stated is not None and abs(stated.value - own.value) > ALIKE * own.value:
            return False
    return True


def find_entry(entries: Mapping[str, HardwareEntry], name: str) -> HardwareEntry:
    """Return the entry that has this name, never one that has a part of it.

    Case, spaces, `-` and `_` do not matter, nor the order of words, nor its vendor and class beside them. Raises
    AmbiguousNameError for words that several hardware have, UnknownNameError with the nearest for others.
    """
    asked = unmark(name)
    found = find_alike(entries, asked)
    if len(found) == 1:
        return found[0]
    if find_class(asked):
        raise UnknownNameError("hardware", name, (), f"it is a class of hardware, name a chip of it: {LIST_HINT}")
    partly = [entry.id for entry in found or _find_partly(entries, asked)]
    if len(partly) > 1:
        raise AmbiguousNameError("hardware", name, partly, SHOWN_CANDIDATES, LIST_HINT)
    near = partly or find_nearest(asked, [entry.names for entry in entries.values()])
    raise UnknownNameError("hardware", name, (), LIST_HINT, near=near)


def find_alike(entries: Mapping[str, HardwareEntry], name: str) -> list[HardwareEntry]:
    """Return the hardware of this name, or where there is none, those whose words it has.

    Words of vendor and class may be there or lack; then words of other names of the same hardware may be there too, as
    in `Altra Max M128`, whose names are Altra-Max and M128-30.
    """
    asked = unmark(name)
    if asked in entries:
        return [entries[asked]]
    folded, words = _compare(asked)
    exact = [entry for entry in entries.values() if any(_compare(one)[0] == folded for one in entry.names)]
    if exact or find_class(asked):
        return exact
    strict = [
        entry
        for entry in entries.values()
        if any(has_words(words, _compare(one)[1], entry.needless_words) for one in entry.names)
    ]
    return strict or [entry for entry in entries.values() if _has_names(entry, words)]


def _has_names(entry: HardwareEntry, words: Counter[str]) -> bool:
    """Return True if the words match one name of a hardware, with words of its other names.

    Vendor and class may lack from its id and its full name, not from a shorter one, which they tell from others.
    """
    needless = entry.needless_words

    def strip(known: Counter[str]) -> Counter[str]:
        return Counter({word: count for word, count in known.items() if word not in needless})

    names = [_compare(one)[1] for one in entry.names]
    every = functools.reduce(operator.or_, names)
    known = [*(_compare(one)[1] for one in entry.aliases), *(strip(_compare(one)[1]) for one in (entry.id, entry.name))]
    return not strip(words) - every and any(one and not one - words for one in known)


@lru_cache(8192)
def _compare(name: str) -> tuple[str, Counter[str]]:
    """Return a name folded, and its words; remembered, because one that is looked up is compared with all."""
    return fold_name(name), split_words(name)


def find_model_name(name: str, known: Collection[str]) -> str:
    """Return the model of the catalogue that a name is, as in `ResNet-50` or `ViT-B/16`; any other name as it is.

    A single operator has one spelling; UsageError for one whose sizes are wrong.
    """
    is_source = ":" in name or name.endswith((".py", ".pt2"))
    return name if is_source else spell(fold_into(name, known, ignoring="/"))


def find_family(name: str, models: Mapping[str, ModelEntry]) -> str:
    """Return the family of a model that measurements name; `other` for one that is not known by name."""
    if is_operator(name):
        return OPERATOR
    return models[name].family if name in models else "other"


def _find_partly(entries: Mapping[str, HardwareEntry], asked: str) -> list[HardwareEntry]:
    """Return the hardware that have all words of what is asked for, and others; none for numbers alone."""
    words = split_words(asked)
    if not any(map(str.isalpha, words)):
        return []
    return [entry for entry in entries.values() if any(not words - split_words(one) for one in entry.names)]


@frozen
class Catalogue:
    """Every hardware that joulemap knows, by id."""

    hardware: Mapping[str, Hardware]
    digest: str
    """Of all data files."""

    @cached_property
    def entries(self) -> dict[str, HardwareEntry]:
        """Id -> what must be known to choose it."""
        return {name: HardwareEntry.of(hardware) for name, hardware in self.hardware.items()}

    def find(self, name: str) -> Hardware:
        """Return the hardware with this id or alias; UnknownNameError offers the nearest ids."""
        return self.hardware[find_entry(self.entries, name).id]


@frozen(kw_only=True)
class ModelEntry:
    """A model known by name. Published figures are for its default weights, at batch 1."""

    name: str
    family: str
    task: str
    """`classification`, `segmentation`, `video` …"""
    input_shape: tuple[int, ...]
    """Of one sample, without the batch; empty where the model brings its own inputs."""
    input_layout: str
    """`tensors`; `images`: a list with one image for each of the batch; `pair`: two tensors of this shape."""
    parameter_count: int | None
    """As published by torchvision."""
    published_mac_count: int | None
    """torchvision's `_ops`, which counts MACs, in units."""
    is_traceable: bool
    reason: str
    """Why not, if not."""


@frozen(kw_only=True)
class ShippedWorkload:
    """What the package has traced of a model, at its default input."""

    model: str
    is_affine: bool
    """Whether its workload at other batches follows exactly from the shipped one."""
    parameter_count: int
    mac_count: int
    """At batch 1."""
    torch_version: str
    torchvision_version: str
    tracer_version: str


def _filled(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty")


@frozen(kw_only=True)
class ArchitectureNote:
    """How a class of hardware handles one matter, and who says so."""

    architecture: str = attrs.field(validator=_filled)
    topic: str = attrs.field(validator=_filled)
    """`principle`, `instruction fetch`, `coherence` or `data movement`."""
    text: str = attrs.field(validator=_filled)
    source: str = attrs.field(validator=_filled)


@frozen(kw_only=True)
class CostAssumption:
    """A number of use that a person may replace."""

    name: str
    """`utilization`, `lifetime`, `hours`, `pue`, `electricity` or `host`."""
    quantity: Quantity


@frozen(kw_only=True)
class GridRegion:
    """Where electricity comes from, as a yearly average."""

    region: str
    """Id: `world`, `eu`, or a country's two letters."""
    name: str
    year: int
    intensity: Quantity
    """In g/kWh of CO2 equivalents, unless its note says otherwise."""


@frozen(kw_only=True)
class Scenario:
    """Where hardware is used, and the power that a chip gets there."""

    name: str = attrs.field(validator=_filled)
    """`datacenter`, `edge` and `embedded` are deployments; others are made of them."""
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    power_budget: Quantity | None
    """In W; None where it is planned for the chip."""
    note: str
