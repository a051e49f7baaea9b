"""The catalogue: every hardware and model that joulemap knows by name, and the notes, uses and grids beside them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.domain.configuration import PRECISION_BYTES
from joulemap.domain.quantity import Quantity
from joulemap.errors import UnknownNameError

if TYPE_CHECKING:
    from joulemap.domain.configuration import Precision
    from joulemap.domain.hardware import Hardware, PowerMode

DEFAULT_BY_CLASS: Final[Mapping[str, str]] = {
    "cpu": "xeon_8490h",
    "gpu": "h100_sxm5",
    "tpu": "tpu_v4",
    "kpu": "kpu_t256",
    "dsp": "tda4vm_c7x_mma",
    "npu": "cloud_ai_100_pro",
    "dpu": "dpu_b4096_kv260",
    "cgra": "plasticine",
}
"""Architecture class -> the hardware that stands for it: a common one that runs int8, with published key numbers where
the class has such."""

COMMON_PRECISION: Final[Precision] = "int8"
"""The one precision that all of those have."""

DEFAULT_HARDWARE: Final = tuple(DEFAULT_BY_CLASS[name] for name in ("cpu", "gpu", "tpu", "kpu"))
"""What a comparison takes when no hardware is named: one of each of four architecture classes."""

NEARER: Final = 0.1
"""An alias is offered instead of the id if it is more like what was asked by this much of 1."""

DEFAULT_MODE: Final = "default"
"""The power mode of a chip that is in none of its named ones."""


STATED: Final = ("tdp", "clock", "unit_count", "memory_bandwidth", "static_power")
"""What a power mode may state of a hardware."""

ALIKE: Final = 0.03
"""Numbers that agree within this share are those of one operating point."""


def fold_name(name: str) -> str:
    """Return a hardware's name as names are compared: case, `-`, `_` and spaces do not matter."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class HardwareEntry:
    """What must be known of a hardware to choose it."""

    id: str
    architecture: str
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    aliases: tuple[str, ...] = attrs.field(converter=_texts)
    power_modes: tuple[str, ...] = attrs.field(converter=_texts)
    """Names of its modes beside the default one."""
    default_names: tuple[str, ...] = attrs.field(converter=_texts)
    """Those of them that are the default one by another name."""
    caps_w: tuple[float, ...] = attrs.field(converter=_numbers)
    """The power cap of the default mode, then of each other."""
    precisions: tuple[str, ...] = attrs.field(converter=_texts)
    digest: str

    @classmethod
    def of(cls, hardware: Hardware) -> HardwareEntry:
        """Return the entry of a hardware record."""
        return cls(
            id=hardware.id,
            architecture=hardware.architecture,
            deployment=hardware.deployment,
            aliases=hardware.aliases,
            power_modes=(mode.name for mode in hardware.power_modes),
            default_names=_name_default(hardware),
            caps_w=(hardware.tdp.value, *(mode.tdp.value for mode in hardware.power_modes)),
            precisions=hardware.peaks,
            digest=hardware.digest,
        )

    @property
    def caps(self) -> dict[str, float]:
        """Power mode -> its cap in W, the default one first."""
        return dict(zip((DEFAULT_MODE, *self.power_modes), self.caps_w, strict=True))

    @property
    def distinct_modes(self) -> tuple[str, ...]:
        """The modes that are different operating points: the default one, and those that are not it by another name."""
        return (DEFAULT_MODE, *(mode for mode in self.power_modes if mode not in self.default_names))

    def has_mode(self, name: str) -> bool:
        """Whether it has a power mode of this name."""
        return fold_name(name) in (fold_name(mode) for mode in (DEFAULT_MODE, *self.power_modes))

    def find_mode(self, name: str) -> str:
        """Return the power mode of this name; UnknownNameError names those that it has."""
        for mode in (DEFAULT_MODE, *self.power_modes):
            if fold_name(mode) == fold_name(name):
                return mode
        has = ", ".join(self.power_modes) or "none"
        raise UnknownNameError("power mode", name, (), f"{self.id} has {has}")

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
    """Return the entry whose id or alias this is, never by part of a name; UnknownNameError offers the nearest."""
    if name in entries:
        return entries[name]
    asked = fold_name(name)
    for entry in entries.values():
        if asked in (fold_name(known) for known in (entry.id, *entry.aliases)):
            return entry
    raise UnknownNameError("hardware", name, _one_name_each(entries, asked), "see `joulemap hardware list`")


def _one_name_each(entries: Mapping[str, HardwareEntry], asked: str) -> list[str]:
    """Return a name of each hardware: its id, or an alias that is far nearer to what was asked."""

    def nearness(name: str) -> float:
        return difflib.SequenceMatcher(None, asked, name).ratio()

    names = []
    for entry in entries.values():
        alias = max((fold_name(alias) for alias in entry.aliases), key=nearness, default=entry.id)
        names.append(alias if nearness(alias) > nearness(entry.id) + NEARER else entry.id)
    return names


@attrs.frozen
class Catalogue:
    """Every hardware that joulemap knows, by id."""

    hardware: Mapping[str, Hardware]
    digest: str
    """Of all data files."""

    @property
    def entries(self) -> dict[str, HardwareEntry]:
        """Id -> what must be known to choose it."""
        return {name: HardwareEntry.of(hardware) for name, hardware in self.hardware.items()}

    def find(self, name: str) -> Hardware:
        """Return the hardware with this id or alias; UnknownNameError offers the nearest ids."""
        return self.hardware[find_entry(self.entries, name).id]


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
class ArchitectureNote:
    """How a class of hardware handles one matter, and who says so."""

    architecture: str = attrs.field(validator=_filled)
    topic: str = attrs.field(validator=_filled)
    """`principle`, `instruction fetch`, `coherence` or `data movement`."""
    text: str = attrs.field(validator=_filled)
    source: str = attrs.field(validator=_filled)


@attrs.frozen(kw_only=True)
class CostAssumption:
    """A number of use that a person may replace."""

    name: str
    """`utilization`, `lifetime`, `hours`, `pue` or `electricity`."""
    quantity: Quantity


@attrs.frozen(kw_only=True)
class GridRegion:
    """Where electricity comes from, as a yearly average."""

    region: str
    """Id: `world`, `eu`, or a country's two letters."""
    name: str
    year: int
    intensity: Quantity
    """In g/kWh of CO2 equivalents, unless its note says otherwise."""


@attrs.frozen(kw_only=True)
class Scenario:
    """Where hardware is used, and the power that a chip gets there."""

    name: str = attrs.field(validator=_filled)
    """`datacenter`, `edge` and `embedded` are deployments; others are made of them."""
    deployment: tuple[str, ...] = attrs.field(converter=_texts)
    power_budget: Quantity | None
    """In W; None where it is planned for the chip."""
    note: str
