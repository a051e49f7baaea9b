"""Constants that a question sets on its hardware: texts as written, parsed for each chip."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain.catalogue import HardwareEntry, Variant, find_entry
from joulemap.domain.hardware_ref import HardwareRef, name_variant
from joulemap.domain.value import is_several, read_value, read_values, show_constant
from joulemap.physics.record.address import CLOCK, UNIT_COUNT
from joulemap.physics.record.constant import Change, Constant, match_names, word_changes
from joulemap.plan.catalogue import known_hardware, read_known
from joulemap.plan.kind import change_numbers, list_numbers
from joulemap.plan.target import Modifier, Target
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.system.name import find_nearest
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.hardware import Hardware
    from joulemap.plan.calibration import CalibrationUse
    from joulemap.plan.selection import Selection

    Pair = tuple[HardwareEntry, str]
    """(hardware, power mode)."""

MOST_UNITS: Final = 2**31 - 1
"""Maximum units of one chip that the store can hold."""

ROUNDING: Final = 1.0 + 1e-9
"""Relative tolerance, as a factor, within which two clocks are equal."""


@frozen(kw_only=True)
class Demand:
    """Constant that the user sets, as written after `--set`."""

    hardware: str
    """Hardware as written, with or without a power mode; empty for all hardware that has the constant."""
    name: str
    written: str | float

    @property
    def label(self) -> str:
        """Option with its value, as errors quote it."""
        at = f"{self.hardware}:" if self.hardware else ""
        return f"--set {at}{self.name}={self.written}"


def read_demands(changes: Mapping[str, str | float], hardware: str = "") -> tuple[Demand, ...]:
    """Return the constants that settings or a variant set; UsageError for a constant without a name or value."""
    demands = []
    for key, written in changes.items():
        asked, _, name = key.strip().rpartition(":")
        if not name.strip() or (isinstance(written, str) and not written.strip()):
            raise UsageError(f"--set {key}={written}: write NAME=VALUE, e.g. dram.read=31pJ, clock=1.2GHz or tdp=x1.5")
        demands.append(Demand(hardware=asked.strip() or hardware, name=name.strip(), written=written))
    return tuple(demands)


def find_changes(
    settings: Settings, selection: Selection, calibration: CalibrationUse
) -> tuple[Selection, dict[Pair, tuple[Change, ...]]]:
    """Return the selection with its variants, and the changes of each chip at its power mode.

    A constant with several values makes as many variants, each with a label. Values such as x1.5 refer to the chip
    after calibration, at its mode and boundary. Raises UsageError for a constant that no hardware has, or an invalid
    value; UnknownNameError for an unknown hardware.
    """
    demands = read_demands(settings.changes)
    if not demands and all(entry.variant is None for entry, _ in selection.pairs):
        return selection, {}
    known = {**known_hardware(), **{entry.id: entry for entry, _ in selection.pairs}}
    chosen = {demand: _choose(demand, selection, known) for demand in demands}
    records = read_known([entry.digest for entry, _ in selection.pairs], selection.own.values())
    by_pair: dict[Pair, tuple[Change, ...]] = {}
    pairs: dict[Pair, None] = {}
    met: set[Demand] = set()
    names: dict[str, None] = {}
    for entry, mode in selection.pairs:
        record = records[entry.digest]
        if entry.variant is not None and entry.variant.memory is not None:
            bus = record.memory_bus_width
            entry.variant.memory.check_fit(entry.variant.base, record.memory_type, bus.value if bus else None)
        target = selection.target(entry, mode, calibration, settings.boundary).bind(record)
        constants = list_numbers(target)
        names |= dict.fromkeys(constants)
        own = read_demands(dict(entry.variant.changes), entry.id) if entry.variant is not None else ()
        mine = [one for one in sorted(demands, key=lambda one: bool(one.hardware)) if (entry, mode) in chosen[one]]
        if own:  # it already is one of several variants
            met |= {one for one in mine if is_several(one.written)}
            mine = [one for one in mine if not is_several(one.written)]
        values: dict[str, tuple[Change, ...]] = {}
        for demand in (*mine, *own):
            matched = match_names(demand.name, constants)
            if len(matched) > 1:
                raise UsageError(f"{demand.label}: it may be {' or '.join(matched)}: name one")
            for name in matched:
                met.add(demand)
                values[name] = _read_changes(demand, constants[name])
        for one, changes in spread_variants(entry, values):
            pairs[one, mode] = None
            if changes:
                by_pair[one, mode] = changes
            _check(target, changes)
        for demand in set(own) - met:
            _refuse(demand, names, selection)
    for demand in demands:
        if demand not in met:
            _refuse(demand, names, selection)
    return attrs.evolve(selection, pairs=tuple(pairs)), by_pair


@frozen
class Changed:
    """Modifier that sets constants and names the variant."""

    changes: tuple[Change, ...]
    name: str = ""
    """Name of the variant; empty to keep the name of the hardware."""

    @property
    def word(self) -> str:
        """Word for the changes and the name that extends the digest of a chip."""
        return word_changes(self.changes, self.name)

    def apply(self, hardware: Hardware) -> Hardware:
        """Return the hardware with the changed constants; raises CatalogueError if they contradict each other."""
        try:
            return change_numbers(hardware, self.changes, self.name)
        except ValueError as error:
            raise CatalogueError(f"{hardware.id}: {error}") from error


def split_changes(target: Target) -> tuple[Target, Changed, tuple[Modifier, ...]]:
    """Return the target of a run before constants are set, the modifier that sets them, and the modifiers after it."""
    position = next(index for index, one in enumerate(target.modifiers) if isinstance(one, Changed))
    changed = target.modifiers[position]
    assert isinstance(changed, Changed)
    return Target(target.described, target.modifiers[:position]), changed, target.modifiers[position + 1 :]


def spread_variants(
    entry: HardwareEntry, values: Mapping[str, tuple[Change, ...]]
) -> Iterator[tuple[HardwareEntry, tuple[Change, ...]]]:
    """Yield a chip with each combination of values; if there are several, each becomes a variant with its own id."""
    several = [name for name, changes in values.items() if len(changes) > 1]
    for changes in itertools.product(*values.values()):
        if not several:
            yield entry, changes
            continue
        choices = tuple(
            (one.name, show_constant(one.value, one.unit).replace(" ", "")) for one in changes if one.name in several
        )
        label = name_variant(entry.id, choices)
        base = () if entry.variant is None else entry.variant.changes
        variant = Variant(base=entry.described, changes=(*base, *choices), place=label)
        yield attrs.evolve(entry, id=label, variant=variant), changes


def _choose(demand: Demand, selection: Selection, known: Mapping[str, HardwareEntry]) -> frozenset[Pair]:
    """Return the (chip, power mode) pairs of a selection to which a demand applies."""
    if not demand.hardware:
        return frozenset(selection.pairs)
    ref = HardwareRef.read(demand.hardware)
    entry = find_entry(known, ref.label)
    pairs = frozenset(
        pair for pair in selection.pairs if entry.id in (pair[0].id, pair[0].described) and ref.mode in ("", pair[1])
    )
    if not pairs:
        asked = ", ".join(dict.fromkeys(one.id for one, _ in selection.pairs))
        raise UsageError(f"{demand.label}: {demand.hardware} is not among the requested hardware ({asked[:80]})")
    return pairs


def _read_changes(demand: Demand, constant: Constant) -> tuple[Change, ...]:
    """Return the changes of a constant; several values are rounded to the digits of the variants' names."""
    try:
        values = read_values(demand.written, constant)
        if len(values := tuple(dict.fromkeys(values))) > 1:
            shown = [show_constant(value, constant.unit) for value in values]
            if alike := next((text for text in shown if shown.count(text) > 1), None):
                raise ValueError(
                    f"several values round to {alike} at the three digits of a variant's name: space them further apart"
                )
            values = tuple(read_value(text.replace(" ", ""), constant) for text in shown)
        if constant.address == UNIT_COUNT and max(values) > MOST_UNITS:
            raise ValueError(f"{max(values):g} is above {MOST_UNITS:,}")
    except ValueError as error:
        raise UsageError(f"{demand.label}: {error}") from error
    return tuple(Change.of(constant, value) for value in values)


def _check(hardware: Hardware, changes: tuple[Change, ...]) -> None:
    try:
        change_numbers(hardware, changes)
    except ValueError as error:
        numbers = ", ".join(describe_change(one) for one in changes)
        raise UsageError(f"--set: {hardware.id} with {numbers}: {error}") from error


def _refuse(demand: Demand, names: Iterable[str], selection: Selection) -> None:
    shown = [(name, name.partition(".")[2] or name) for name in names]
    near = find_nearest(demand.name, shown)
    advice = f"did you mean {' or '.join(near)}?" if near else "see `joulemap sensitivity MODEL HARDWARE` for names"
    asked = list(dict.fromkeys(entry.id for entry, _ in selection.pairs))
    who = asked[0] if len(asked) == 1 else f"none of the {len(asked)} requested chips"
    raise UsageError(f"{demand.label}: {who} has {'no' if len(asked) == 1 else 'a'} constant {demand.name!r}; {advice}")


def describe_change(change: Change, changed: Hardware | None = None) -> str:
    """Describe a set constant with its new and its previous value.

    If the clock of the `changed` chip is above the highest of its die, the text adds that the voltage there is assumed.
    """
    text = f"{change.name} {show_constant(change.value, change.unit)} (was {show_constant(change.before, change.unit)})"
    highest = changed.clock_die if changed is not None and change.address == CLOCK else None
    if changed is None or highest is None or changed.full_clock.value <= highest.value * ROUNDING:
        return text
    is_fixed = changed.coefficient("voltage_floor") >= 1.0
    return text if is_fixed else f"{text}, voltage assumed above {show_constant(highest.value, highest.unit)}"
