"""Rows of a ranking: each hardware, what it is made of, how it is used, what it is good and bad at."""

from __future__ import annotations

from typing import ClassVar, Final

from joulemap.answer.run import TimedOutcome
from joulemap.present.cell import show_count, show_quantity, show_share
from joulemap.record import frozen

KIND_NAMES: Final = {
    "conv": "convolutions",
    "depthwise_conv": "depthwise convolutions",
    "grouped_conv": "grouped convolutions",
    "linear": "linear layers",
    "matmul": "matrix products",
}
"""Kind of operator with MACs -> what it is called of several."""


@frozen
class RankedHardware(TimedOutcome):
    """One hardware in the order that a deployment asks for."""

    query: ClassVar[str] = "compare.ranking"

    rank: int | None
    microarchitecture: str
    power_mode: str
    deployment: list[str]
    sort: str
    best_ratio: float | None
    inferences_per_s_per_w: float | None
    energy_per_inference_j: float | None
    tdp_w: float | None
    compute_utilization_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    precision: str
    runtime: str


@frozen
class UtilizationSpread:
    """How utilization spreads over the subgraphs of a run, and what bounds them."""

    query: ClassVar[str] = "compare.spread"

    hardware: str
    mean_utilization_fraction: float | None
    min_utilization_fraction: float | None
    min_kind: str | None
    min_name: str | None
    max_utilization_fraction: float | None
    max_kind: str | None
    max_name: str | None
    idle_kind: str | None
    idle_time_fraction: float | None
    subgraph_count: int
    compute_bound_count: int
    memory_bound_count: int
    launch_bound_count: int
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    run_id: int

    def __str__(self) -> str:
        """Return the mean utilization, its ends with who is responsible, and the time without MACs."""
        text = f"{show_share(self.mean_utilization_fraction)} on average"
        if self.min_utilization_fraction is not None:
            text += (
                f"; least {show_share(self.min_utilization_fraction)} ({self.min_kind} {self.min_name}), "
                f"most {show_share(self.max_utilization_fraction)} ({self.max_kind} {self.max_name})"
            )
        if self.idle_kind is not None:
            time = show_share(self.idle_time_fraction)
            text += f"; {time} of the time in subgraphs without MACs, most of it {self.idle_kind}"
        return text


@frozen
class HardwareNumber:
    """A number of what the hardware of a run is made of."""

    query: ClassVar[str] = "compare.geometry"

    hardware: str
    section: str
    quantity: str
    value: float
    unit: str
    basis: str
    unit_name: str
    memory_type: str
    fact_index: int
    run_id: int

    def __str__(self) -> str:
        """Return the number with what it is, in words."""
        name = self.quantity.removeprefix("geometry.").removeprefix("memory.").removeprefix("power_mode.")
        name = name.replace("_", " ").replace(".", " ")
        if self.quantity == "unit_count":
            return f"{self.value:g} {self.unit_name}s"
        if self.unit == "1":
            return f"{name} {self.value:g}"
        if self.quantity == "memory_capacity":
            name = self.memory_type
        return f"{name} {show_quantity(self.value, self.unit)}"


@frozen
class ModelMix:
    """Operators of one kind in a model."""

    query: ClassVar[str] = "compare.mix"

    model: str
    kind: str
    subgraph_count: int
    operator_count: int
    operator_fraction: float
    mac_count: int
    mac_fraction: float | None
    all_subgraph_count: int
    all_operator_count: int
    all_mac_count: int
    workload_id: int

    def __str__(self) -> str:
        """Return the kind with how much of the model it is."""
        kind = KIND_NAMES.get(self.kind, self.kind.replace("_", " "))
        where = f"{show_count(self.operator_count, 'operator')} in {show_count(self.subgraph_count, 'subgraph')}"
        return (
            f"{kind} {show_share(self.mac_fraction)} of the MACs ({where})" if self.mac_count else f"{kind} ({where})"
        )


@frozen
class Strength:
    """What one run is good or bad at."""

    query: ClassVar[str] = "compare.strength"

    hardware: str
    aspect: str
    verdict: str
    """`strength`, `weakness` or `even`."""
    value: float
    unit: str
    median_value: float
    median_ratio: float | None
    """Median over value: above 1 is less than the median."""
    grade: str | None
    unit_name: str
    run_count: int
    run_id: int

    def __str__(self) -> str:
        """Return what it does with the number."""
        ratio = self.median_ratio or 1.0
        times, share = f"{max(ratio, 1.0 / ratio):.3g}x", show_share(self.value)
        return {
            "energy_per_inference": f"{times} {'less' if ratio > 1.0 else 'more'} energy than the median",
            "latency": f"{times} {'faster' if ratio > 1.0 else 'slower'}",
            "power": f"draws {times} {'less' if ratio > 1.0 else 'more'} power",
            "utilization": f"uses {share} of its peak ({self.grade})",
            "idle": f"its {self.unit_name}s idle {share} of their time",
            "launch": f"{share} of the time goes to launches",
            "memory": f"waits for memory {share} of the time",
        }[self.aspect]


@frozen
class Placement:
    """A subgraph placed on the hardware of one run."""

    query: ClassVar[str] = "compare.allocation"

    hardware: str
    subgraph_index: int
    subgraph: str
    fusion_pattern: str
    latency_s: float
    latency_fraction: float | None
    bottleneck: str
    compute_s: float
    memory_s: float
    launch_s: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    tile_count: float
    wave_count: float
    compute_utilization_fraction: float | None
    energy_j: float
    run_id: int
