"""Sentences on architecture classes; each is derived from the runs' numbers and omitted without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from joulemap.present.cell import show_plain, show_quantity, show_share, show_units
from joulemap.row.architectures import ArchitectureAction, ArchitectureSummary
from joulemap.system.units import FJ_PER_J

PARTS: Final = {
    "compute": "arithmetic",
    "register": "registers",
    "on_chip_memory": "on-chip memory",
    "interconnect": "wires and switches",
    "off_chip_memory": "off-chip memory",
    "control": "control",
    "board": "the rest of the board",
    "static": "static power",
}
"""Parts of the energy, from arithmetic outwards: field -> words."""

MOSTLY: Final = 0.5
"""Share of an energy above which a part explains it."""

WELL_USED: Final = 0.5
"""Share of the peak above which no reason for waiting is given."""

AROUND: Final = ("register", "on_chip_memory", "interconnect", "control")
"""Parts that are architectural overhead."""

WAITS: Final = {
    "compute": "compute time, with the padding and gaps of its tiles, bounds",
    "memory": "memory bounds",
    "launch": "the fixed cost of kernels bounds",
}
"""Bound of the time -> words for it."""

Name = Callable[[ArchitectureSummary], str]
"""Function that names a row."""


def tell_place(row: ArchitectureSummary, rows: Sequence[ArchitectureSummary], name: Name) -> list[str]:
    """Return sentences on a class: its rank, its largest part, and the overhead around its arithmetic."""
    return [*_tell_rank(row, rows, name), *_tell_largest(row), *_tell_surroundings(row)]


def _tell_rank(row: ArchitectureSummary, rows: Sequence[ArchitectureSummary], name: Name) -> list[str]:
    """Return the rank of a class by energy; empty if only one class answered."""
    ordered = sorted(rows, key=lambda one: (one.energy_fj or 0, one.hardware))
    if len(ordered) < 2:
        return []
    place, best = ordered.index(row) + 1, ordered[0]
    dynamic = sorted(rows, key=lambda one: ((one.energy_fj or 0) - (one.static_fj or 0), one.hardware))
    without = f"{_ordinal(dynamic.index(row) + 1)} without static power"
    if row is best:
        return [f"least energy of {len(rows)}; {without}"]
    ratio = (row.energy_fj or 0) / (best.energy_fj or 1)
    return [f"{_ordinal(place)} of {len(rows)} by energy, {show_plain(ratio)}x that of {name(best)}; {without}"]


def _ordinal(number: int) -> str:
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def find_share(row: ArchitectureSummary, part: str) -> float:
    """Return the share of a part in the energy; 0 for a refused run."""
    return getattr(row, f"{part}_fraction") or 0.0


def tell_mostly(row: ArchitectureSummary) -> str:
    """Return the largest part of the energy, and its share."""
    part = max(PARTS, key=lambda one: find_share(row, one))
    return f"{PARTS[part]} {find_share(row, part) * 100:.0f} %"


def _tell_largest(row: ArchitectureSummary) -> list[str]:
    """Return the largest part of the energy, and the share of the peak that is used."""
    part = max(PARTS, key=lambda one: find_share(row, one))
    used = row.compute_utilization_fraction or 0.0
    if part == "static":
        drawn_s = (row.static_fj or 0) / FJ_PER_J / (row.static_power_w or 1.0)
        power, time = show_quantity(row.static_power_w, "W"), show_quantity(drawn_s, "s")
        text = f"{show_share(row.static_fraction)} is static power, {power} for {time} in which "
        return [f"{text}{show_share(used)} of its peak is used{_tell_wait(row)}"]
    share = show_share(find_share(row, part))
    return [f"{share} goes to {PARTS[part]}, its largest part; {show_share(used)} of its peak is used"]


def _tell_wait(row: ArchitectureSummary) -> str:
    """Return the main bound of the time and the units in use; empty if the peak is well used."""
    if (row.compute_utilization_fraction or 0.0) >= WELL_USED:
        return ""
    bound = max(WAITS, key=lambda name: getattr(row, f"{name}_time_fraction") or 0.0)
    units = ""
    if row.units_used_count is not None and row.units_used_count < (row.units_total_count or 0):
        units = f", on {show_units(row.units_used_count, row.units_total_count, row.unit_name)} on average"
    return f": {WAITS[bound]} {show_share(getattr(row, f'{bound}_time_fraction'))} of the time{units}"


def _tell_surroundings(row: ArchitectureSummary) -> list[str]:
    """Return the on-chip overhead per MAC relative to arithmetic; empty for a model without MACs."""
    if row.overhead_ratio is None or row.compute_per_mac_j is None:
        return []
    part = max(AROUND, key=lambda one: find_share(row, one))
    arithmetic = show_quantity(row.compute_per_mac_j, "J")
    around = show_quantity(row.overhead_ratio * row.compute_per_mac_j, "J")
    most = show_quantity(getattr(row, f"{part}_per_mac_j"), "J")
    orders = ""
    if row.macs_per_order is not None:
        orders = f"; one {row.order_name} for {show_plain(row.macs_per_order)} MACs"
    return [
        f"arithmetic takes {arithmetic} a MAC and what the architecture adds around it {around}, "
        f"{show_plain(row.overhead_ratio)}x as much, the largest part for {PARTS[part]} ({most}){orders}"
    ]


def tell_contrast(rows: Sequence[ArchitectureSummary], name: Name) -> list[str]:
    """Return sentences that compare the classes; empty for fewer than two answers, or a model without MACs."""
    counted = [row for row in rows if row.dynamic_per_mac_j is not None]
    if len(counted) < 2:
        return []
    lines = [
        *_tell_overhead(counted, name),
        *_tell_static(counted, name),
        _tell_spread("arithmetic alone", counted, lambda row: row.compute_per_mac_j or 0.0, name),
        _tell_spread(
            "with all that moves and steers it, without static power", counted,
            lambda row: row.dynamic_per_mac_j or 0.0, name,
        ),
        _tell_spread("with static power", counted, lambda row: row.energy_per_mac_j or 0.0, name),
    ]  # fmt: skip
    ordered = sorted(counted, key=lambda row: row.dynamic_per_mac_j or 0.0)
    lines.append(f"without static power, from least to most: {', '.join(map(name, ordered))}")
    return lines


def _tell_static(rows: Sequence[ArchitectureSummary], name: Name) -> list[str]:
    """Return the classes dominated by static power, and those that a larger batch would help."""
    waiting = [row for row in rows if find_share(row, "static") >= MOSTLY]
    if not waiting:
        return []
    lines = [
        f"static power is most of the energy on {', '.join(map(name, waiting))}: it is drawn during the whole "
        "run, regardless of utilization"
    ]
    launching = [row for row in waiting if (row.launch_time_fraction or 0.0) >= MOSTLY]
    if launching:
        lines.append(
            "the fixed cost of kernels bounds most of that time on "
            f"{', '.join(map(name, launching))}: a larger `--batch` shares it"
        )
    return lines


def _tell_overhead(rows: Sequence[ArchitectureSummary], name: Name) -> list[str]:
    """Return the overhead ratio of the classes, from least to most."""
    added = sorted((row.overhead_ratio, name(row)) for row in rows if row.overhead_ratio is not None)
    if not added:
        return []
    (low, least), (high, most) = added[0], added[-1]
    return [
        f"registers, on-chip memory, network and control together take {show_plain(low)}x ({least}) to "
        f"{show_plain(high)}x ({most}) of what arithmetic takes"
    ]


def _tell_spread(
    what: str, rows: Sequence[ArchitectureSummary], energy: Callable[[ArchitectureSummary], float], name: Name
) -> str:
    least, most = min(rows, key=energy), max(rows, key=energy)
    low, high = show_quantity(energy(least), "J"), show_quantity(energy(most), "J")
    ratio = f", {show_plain(energy(most) / energy(least))}x" if energy(least) > 0.0 else ""
    return f"a MAC, {what}: from {low} ({name(least)}) to {high} ({name(most)}){ratio}"


def name_action(row: ArchitectureAction) -> str:
    """Return the component and action of a row as one name."""
    return f"{row.component}.{row.action}"
