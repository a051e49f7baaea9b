"""The hardware of a question, each at its power modes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.domain.catalogue import DEFAULT_HARDWARE, DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.errors import UnknownNameError, UsageError
from joulemap.plan.budget import Budget, enter_scenario, find_budget, keep_within
from joulemap.plan.catalogue import check_names, known_hardware

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings

Default = Literal["four", "catalogue", "every mode"]
"""What is taken where no hardware is named: one of each of four classes, all, or all in each of their power modes."""


@attrs.frozen(kw_only=True)
class Selection:
    """Hardware at power modes, in the order of asking."""

    pairs: tuple[tuple[HardwareEntry, str], ...]
    own: Mapping[str, Hardware]
    """What to write to ask for it -> the hardware of a file or record."""
    budget: Budget | None = None
    """What no mode is capped above."""
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware without a mode within the budget -> why."""

    @property
    def ids(self) -> frozenset[str]:
        """Of all hardware."""
        return frozenset(entry.id for entry, _ in self.pairs)

    @property
    def spelling(self) -> dict[str, str]:
        """How to ask again for hardware that was named by file: its name in an answer -> what to write."""
        paths = {hardware.id: path for path, hardware in self.own.items()}
        return {
            name_pair(entry.id, mode): name_pair(paths[entry.id], mode)
            for entry, mode in self.pairs
            if entry.id in paths
        }


def name_pair(hardware: str, mode: str) -> str:
    """Return a hardware at a power mode as answers name it."""
    return hardware if mode == DEFAULT_MODE else f"{hardware}@{mode}"


def select_hardware(settings: Settings, default: Default = "four") -> Selection:
    """Return the hardware of settings, each pair once.

    Raises UnknownNameError for a name that does not exist, CatalogueError for a file that is wrong or takes a name of
    the catalogue, UsageError where nothing is left.
    """
    settings = enter_scenario(settings)
    names, own = read_names(settings.hardware)
    known = known_hardware()
    for label, hardware in own.items():
        check_names(hardware, known, label)
    known = {**known, **{hardware.id: HardwareEntry.of(hardware) for hardware in own.values()}}
    check_architectures(settings.architecture, {entry.architecture for entry in known.values()})
    pairs = _pairs(known, names, settings, default)
    chosen = tuple(
        dict.fromkeys(
            (entry, mode)
            for entry, mode in pairs
            if (not settings.architecture or entry.architecture in settings.architecture)
            and (not settings.deployment or set(entry.deployment) & set(settings.deployment))
        )
    )
    if not chosen:
        raise UsageError(f"no hardware is {_describe(names, settings)}; see `joulemap hardware list`")
    budget = find_budget(settings)
    if budget is None or (default == "every mode" and not budget.is_asked):
        return Selection(pairs=chosen, own=own)
    kept, left_out = keep_within(chosen, budget, is_every_mode=default == "every mode")
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"no hardware keeps within {budget.power_w:g} W: {reasons}")
    return Selection(pairs=kept, own=own, budget=budget, left_out=left_out)


def select_one(hardware: str | Hardware, settings: Settings) -> Selection:
    """Return the one hardware that is named, whatever else the settings name; UsageError for a folder of several."""
    selection = select_hardware(attrs.evolve(settings, hardware=(hardware,)))
    if len(selection.pairs) != 1:
        raise UsageError(f"{hardware} holds {len(selection.pairs)} hardware, expected one; name its file")
    return selection


def name_configuration(name: str, settings: Settings | None = None) -> str:
    """Return a hardware as answers name it under settings, from an id, alias or file with a power mode or without."""
    from joulemap.domain.settings import Settings

    ((entry, mode), *_) = select_hardware(attrs.evolve(settings or Settings(), hardware=(name,))).pairs
    return name_pair(entry.id, mode)


def check_architectures(architectures: Iterable[str], classes: Collection[str]) -> None:
    """Raise UnknownNameError for an architecture class that does not exist."""
    for architecture in architectures:
        if architecture not in classes:
            raise UnknownNameError("architecture", architecture, classes)


def read_names(hardware: Iterable[str | Hardware]) -> tuple[tuple[str, ...], dict[str, Hardware]]:
    """Return names with records, files and folders replaced by their ids, and what to write -> hardware of those."""
    names: list[str] = []
    own: dict[str, Hardware] = {}
    for name in hardware:
        if not isinstance(name, str):
            from joulemap.catalog.load import load_catalogue

            names.append(name.id)
            if load_catalogue().hardware.get(name.id) != name:
                own[name.id] = name.with_own_digest()
            continue
        place, at, mode = name.partition("@")
        if not is_hardware_path(place):
            names.append(name)
            continue
        from joulemap.catalog.load import load_files

        files = expand_paths([Path(place).expanduser()])
        for path, one in zip(files, load_files(files), strict=True):
            names.append(f"{one.id}{at}{mode}")
            own[place if len(files) == 1 and path == Path(place) else str(path)] = one
    return tuple(names), own


def _pairs(
    known: Mapping[str, HardwareEntry], names: tuple[str, ...], settings: Settings, default: Default
) -> list[tuple[HardwareEntry, str]]:
    power_mode = settings.power_mode
    if names:
        pairs = [pair for name in names for pair in _find(known, name, power_mode, default)]
    else:
        is_filtered = settings.architecture or settings.deployment or power_mode or settings.power_budget_w
        entries = [known[name] for name in DEFAULT_HARDWARE]
        if is_filtered or default != "four":
            entries = list(known.values())
        pairs = [(entry, mode) for entry in entries for mode in _modes(entry, power_mode, default)]
        if power_mode and not pairs:
            raise UnknownNameError(
                "power mode", power_mode, {mode for one in known.values() for mode in one.power_modes}
            )
    return pairs


def _modes(entry: HardwareEntry, power_mode: str, default: Default) -> list[str]:
    if power_mode:
        return [entry.find_mode(power_mode)] if entry.has_mode(power_mode) else []
    return list(entry.distinct_modes) if default == "every mode" else [DEFAULT_MODE]


def _find(
    known: Mapping[str, HardwareEntry], name: str, power_mode: str, default: Default
) -> list[tuple[HardwareEntry, str]]:
    plain, at, mode = name.partition("@")
    entry = find_entry(known, plain)
    if at or power_mode:
        return [(entry, entry.find_mode(mode if at else power_mode))]
    return [(entry, one) for one in _modes(entry, "", default)]


def _describe(names: tuple[str, ...], settings: Settings) -> str:
    parts = [
        f"one of {', '.join(names)}" if names else "",
        f"of architecture {' or '.join(settings.architecture)}" if settings.architecture else "",
        f"for {' or '.join(settings.deployment)}" if settings.deployment else "",
        f"with a power mode {settings.power_mode}" if settings.power_mode else "",
    ]
    return " and ".join(part for part in parts if part)
