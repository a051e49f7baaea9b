"""Sentences on the utilization of hardware."""

from __future__ import annotations

from typing import Final

from joulemap.answer.run import BOUNDS
from joulemap.answer.scope import SHOWN_FRACTION
from joulemap.present.cell import show, show_plain, show_quantity, show_share
from joulemap.row.utilization import Pairing, Remedy, Utilization, UtilizationFlag

IDLE_FRACTION: Final = 0.2
"""Share of idle units above which it is stated."""


ALIKE: Final = 0.005
"""Deviation of a ratio from 1 below which it is not stated."""


def tell_bound(row: Utilization) -> str:
    """Return the main bound of the time, with its share."""
    shares = _shares(row)
    return f"{shares[0][0]} {show_share(shares[0][1])}" if shares else ""


def _shares(row: Utilization) -> list[tuple[str, float]]:
    """Return the bounds of the time with their shares, largest first."""
    shares = [(name, getattr(row, f"{name}_time_fraction")) for name in BOUNDS]
    return sorted(
        ((name, share) for name, share in shares if share and share >= SHOWN_FRACTION), key=lambda one: -one[1]
    )


def tell_distribution(row: Utilization) -> str:
    """Return the grade of a run, the bounds of its time, and the idle units if they are many."""
    bounds = ", ".join(f"{name} {show_share(share)}" for name, share in _shares(row))
    text = f"{row.compute_grade}, {show_share(row.compute_utilization_fraction)} of its peak; time bound by {bounds}"
    if row.idle_units_fraction is not None and row.idle_units_fraction >= IDLE_FRACTION:
        text += f"; its {row.unit_name}s idle {show_share(row.idle_units_fraction)} of their time"
    return text


def tell_gain(row: Remedy) -> str:
    """Return the effect of a remedy on throughput, on energy and, for a larger batch, on latency."""
    ratios = (("throughput", row.throughput_ratio), ("energy", row.energy_ratio))
    text = ", ".join(f"{_times(ratio)} the {what}" for what, ratio in ratios if abs(ratio - 1.0) >= ALIKE)
    is_waiting = row.remedy == "larger batch"
    return f"{text}, {_times(row.latency_ratio)} the latency" if is_waiting else text


def _times(ratio: float) -> str:
    return f"{show_plain(ratio)}x"


def tell_size(least_flop_count: int) -> str:
    """Return the range of a size class in FLOPs."""
    if not least_flop_count:
        return "no MACs"
    return f"{show_quantity(least_flop_count, '')} to {show_quantity(10 * least_flop_count, '')}"


def tell_median(row: Pairing) -> str:
    """Return the median of the compared quantity over the models that the winner is best for."""
    return show_share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)


def tell_advantage(row: Pairing) -> str:
    """Return the factor by which the winner is better than the next; empty if unknown."""
    return "" if row.median_advantage_ratio is None else f"{row.median_advantage_ratio:.3g}x better"


def tell_level(row: UtilizationFlag) -> str:
    """Return the flagged value with its limit."""
    value, limit = show_share(row.value_fraction), show_share(row.limit_fraction)
    return {
        "low_compute": f"{value} of its peak, below {limit}",
        "high_bandwidth": f"{value} of the off-chip bandwidth that it sustains, above {limit}",
        "idle_units": f"its {row.unit_name}s idle {value} of their time, above {limit}",
    }[row.flag]


def tell_flag(row: UtilizationFlag) -> str:
    """Return the flagged value with its limit, and the subgraphs that contribute most."""
    tiles = f"{show(int(row.tile_count), 'tile_count')} tiles on " if row.tile_count else ""
    worked = f"{tiles}{row.units_used_count} of {row.units_total_count} {row.unit_name}s"
    if not row.units_used_count:
        worked = f"none of its {row.unit_name}s computes it"
    return (
        f"{tell_level(row)}; {show_share(row.bottleneck_fraction)} of the {row.cost} falls on {row.subgraph_count} of "
        f"{row.total_count} subgraphs, bound by {row.bottleneck}; the largest part, "
        f"{show_share(row.subgraph_fraction)}, in {row.subgraph} ({worked})"
    )
