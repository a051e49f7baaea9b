"""Each hardware of a ranking in words: what it is made of, how it is used, what it is good and bad at."""

from __future__ import annotations

from typing import Final

from joulemap.present.cell import show_count, show_quantity, show_share
from joulemap.row.compare import HardwareNumber, ModelMix, Strength, UtilizationSpread

KIND_NAMES: Final = {
    "conv": "convolutions",
    "depthwise_conv": "depthwise convolutions",
    "grouped_conv": "grouped convolutions",
    "linear": "linear layers",
    "matmul": "matrix products",
}
"""Kind of operator with MACs -> what it is called of several."""


def tell_spread(row: UtilizationSpread) -> str:
    """Return the mean utilization, its ends with who is responsible, and the time without MACs."""
    text = f"{show_share(row.mean_utilization_fraction)} on average"
    if row.min_utilization_fraction is not None:
        text += (
            f"; least {show_share(row.min_utilization_fraction)} ({row.min_kind} {row.min_name}), "
            f"most {show_share(row.max_utilization_fraction)} ({row.max_kind} {row.max_name})"
        )
    if row.idle_kind is not None:
        time = show_share(row.idle_time_fraction)
        text += f"; {time} of the time in subgraphs without MACs, most of it {row.idle_kind}"
    return text


def tell_number(row: HardwareNumber) -> str:
    """Return the number with what it is, in words."""
    name = row.quantity.removeprefix("geometry.").removeprefix("memory.").removeprefix("power_mode.")
    name = name.replace("_", " ").replace(".", " ")
    if row.quantity == "unit_count":
        return f"{row.value:g} {row.unit_name}s"
    if row.unit == "1":
        return f"{name} {row.value:g}"
    if row.quantity == "memory_capacity":
        name = row.memory_type
    return f"{name} {show_quantity(row.value, row.unit)}"


def tell_mix(row: ModelMix) -> str:
    """Return the kind with how much of the model it is."""
    kind = KIND_NAMES.get(row.kind, row.kind.replace("_", " "))
    where = f"{show_count(row.operator_count, 'operator')} in {show_count(row.subgraph_count, 'subgraph')}"
    return f"{kind} {show_share(row.mac_fraction)} of the MACs ({where})" if row.mac_count else f"{kind} ({where})"


def tell_strength(row: Strength) -> str:
    """Return what it does with the number."""
    ratio = row.median_ratio or 1.0
    times, share = f"{max(ratio, 1.0 / ratio):.3g}x", show_share(row.value)
    return {
        "energy_per_inference": f"{times} {'less' if ratio > 1.0 else 'more'} energy than the median",
        "latency": f"{times} {'faster' if ratio > 1.0 else 'slower'}",
        "power": f"draws {times} {'less' if ratio > 1.0 else 'more'} power",
        "utilization": f"uses {share} of its peak ({row.grade})",
        "idle": f"its {row.unit_name}s idle {share} of their time",
        "launch": f"{share} of the time goes to launches",
        "memory": f"waits for memory {share} of the time",
    }[row.aspect]
