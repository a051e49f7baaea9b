"""The shape of the catalogue's data files, and how text becomes records or a one-line refusal."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import attrs
from cattrs import Converter
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError
from cattrs.v import transform_error

from joulemap.domain.quantity import Quantity
from joulemap.errors import CatalogueError
from joulemap.units import SI_SCALE

MAX_FILE_BYTES = 1_000_000
"""A target's file is a few kilobytes; anything larger is not one."""


@attrs.frozen(kw_only=True)
class QuantityEntry:
    """A number as written in a file, in the unit that its source uses."""

    value: float
    unit: str
    basis: str
    source: str
    note: str = ""

    def resolve(self, sources: dict[str, str], expected_unit: str) -> Quantity:
        """Return the number in SI with its source spelled out; ValueError says what is wrong."""
        if self.unit not in SI_SCALE:
            raise ValueError(f"unknown unit {self.unit!r}; known: {', '.join(SI_SCALE)}")
        factor, unit = SI_SCALE[self.unit]
        if unit != expected_unit:
            raise ValueError(f"unit {self.unit!r} measures {unit}, expected {expected_unit}")
        if self.source not in sources:
            raise ValueError(f"source {self.source!r} is not in [sources]")
        return Quantity(
            value=self.value * factor,
            unit=unit,
            basis=self.basis,
            source=sources[self.source],
            note=self.note,
        )


@attrs.frozen(kw_only=True)
class PeakEntry:
    """A peak rate as written in a file."""

    rate: QuantityEntry
    operations_per_clock: float
    clock_ghz: float | None = None
    unit_count: int | None = None


@attrs.frozen(kw_only=True)
class LevelEntry:
    """A memory level as written in a file."""

    name: str
    kind: str
    per: str
    capacity: QuantityEntry
    bandwidth: QuantityEntry | None = None


@attrs.frozen(kw_only=True)
class PowerModeEntry:
    """A power mode as written in a file."""

    name: str
    tdp: QuantityEntry
    clock: QuantityEntry


@attrs.frozen(kw_only=True)
class OverrideEntry:
    """An energy per action that this target has better numbers for than its class."""

    component: str
    action: str
    energy_pj: float
    basis: str
    source: str


@attrs.frozen(kw_only=True)
class ChipQuantities:
    """The `[quantities]` table of a hardware file."""

    process_node: QuantityEntry
    launch_year: QuantityEntry
    unit_count: QuantityEntry
    clock: QuantityEntry
    memory_capacity: QuantityEntry
    memory_bandwidth: QuantityEntry
    tdp: QuantityEntry
    static_power: QuantityEntry
    idle_power: QuantityEntry | None = None
    clock_base: QuantityEntry | None = None
    clock_boost: QuantityEntry | None = None
    clock_sustained: QuantityEntry | None = None
    price_purchase: QuantityEntry | None = None
    price_cloud: QuantityEntry | None = None


@attrs.frozen(kw_only=True)
class CoefficientEntry:
    """One model coefficient of an architecture class or a target, already in SI."""

    name: str
    value: float
    unit: str
    basis: str
    source: str


@attrs.frozen(kw_only=True)
class HardwareFile:
    """One file of `data/hardware`."""

    id: str
    name: str
    vendor: str
    architecture: str
    deployment: list[str]
    microarchitecture: str
    unit_name: str
    memory_type: str
    sources: dict[str, str]
    quantities: ChipQuantities
    geometry: dict[str, QuantityEntry]
    peaks: dict[str, PeakEntry]
    memory_levels: list[LevelEntry]
    projection: str = ""
    doubts: list[str] = attrs.field(factory=list)
    power_modes: list[PowerModeEntry] = attrs.field(factory=list)
    coefficients: list[CoefficientEntry] = attrs.field(factory=list)
    """Instead of those of the same name in the class."""
    energy_overrides: list[OverrideEntry] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ActionEntry:
    """One energy per action at its reference node."""

    category: str
    component: str
    action: str
    part: str
    per: str
    energy_pj: float
    scaling: str = attrs.field(validator=attrs.validators.in_(("logic", "wire", "none")))
    """`logic` follows the process node; `wire` and `none` keep their value: wires follow voltage, DRAM its standard."""
    low_pj: float
    high_pj: float
    basis: str
    source: str
    count: str
    node_nm: float | None = None


@attrs.frozen(kw_only=True)
class ArchitectureFile:
    """One file of `data/architecture`."""

    architecture: str
    coefficients: list[CoefficientEntry]
    actions: list[ActionEntry]


Structured = TypeVar("Structured")


@cache
def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)

    def structure_float(value: Any, _: type) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"expected a number, found {value!r}")
        return float(value)

    def structure_int(value: Any, _: type) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"expected a whole number, found {value!r}")
        return value

    def structure_str(value: Any, _: type) -> str:
        if not isinstance(value, str):
            raise ValueError(f"expected a text, found {value!r}")
        return value

    converter.register_structure_hook(float, structure_float)
    converter.register_structure_hook(int, structure_int)
    converter.register_structure_hook(str, structure_str)
    return converter


def _describe(exception: BaseException, _type: type | None) -> str:
    if isinstance(exception, ForbiddenExtraKeysError):
        return f"unknown key {', '.join(sorted(exception.extra_fields))}"
    if isinstance(exception, KeyError):
        return f"missing key {exception.args[0]}"
    return str(exception)


def read_file(path: Path, record: type[Structured]) -> tuple[Structured, bytes]:
    """Return the file structured as `record`, and its bytes; CatalogueError names file, key and reason."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise CatalogueError(f"{path.name}: {size} bytes is too large for a catalogue file")
    content = path.read_bytes()
    try:
        raw = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"{path.name}: not valid TOML: {error}") from error
    try:
        return _make_converter().structure(raw, record), content
    except BaseValidationError as error:
        reasons = transform_error(error, path="", format_exception=_describe)
        raise CatalogueError(f"{path.name}: {reasons[0].replace(' @ .', ' at ').replace(' @ ', ' at ')}") from error
