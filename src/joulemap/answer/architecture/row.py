"""Rows of a model on one hardware of each architecture class."""

from __future__ import annotations

from typing import ClassVar, Final

from joulemap.answer.run import Outcome
from joulemap.record import frozen

PARTS: Final = {
    "compute": "arithmetic",
    "register": "registers",
    "on_chip_memory": "on-chip memory",
    "interconnect": "wires and switches",
    "off_chip_memory": "off-chip memory",
    "control": "control",
    "board": "the board",
    "static": "static power",
}
"""What energy is spent on, from the arithmetic outwards: field -> words."""


@frozen
class ArchitectureSummary(Outcome):
    """What a class spends a model's joules on, and what one MAC takes; a figure of a run that was refused is None."""

    query: ClassVar[str] = "architectures.summary"

    model: str
    precision: str
    runtime: str
    latency_s: float | None
    energy_fj: int | None
    """The sum of the eight parts, exactly."""
    energy_j: float | None
    mac_count: int | None
    energy_per_mac_j: float | None
    """Of one MAC with all that happens around it; None without MACs, as all that is of one MAC."""
    dynamic_per_mac_j: float | None
    """Without static energy."""
    compute_fj: int | None
    register_fj: int | None
    on_chip_memory_fj: int | None
    interconnect_fj: int | None
    off_chip_memory_fj: int | None
    control_fj: int | None
    board_fj: int | None
    static_fj: int | None
    compute_fraction: float | None
    register_fraction: float | None
    on_chip_memory_fraction: float | None
    interconnect_fraction: float | None
    off_chip_memory_fraction: float | None
    control_fraction: float | None
    board_fraction: float | None
    static_fraction: float | None
    compute_per_mac_j: float | None
    register_per_mac_j: float | None
    on_chip_memory_per_mac_j: float | None
    interconnect_per_mac_j: float | None
    off_chip_memory_per_mac_j: float | None
    control_per_mac_j: float | None
    board_per_mac_j: float | None
    static_per_mac_j: float | None
    overhead_fj: int | None
    """Neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    overhead_ratio: float | None
    """Over the energy of arithmetic."""
    order_name: str | None
    """What tells a unit what to do: an instruction, a token, a read of a configuration."""
    order_count: float | None
    macs_per_order: float | None
    unit_memory_bytes_per_mac: float | None
    """Memories of one unit."""
    chip_memory_bytes_per_mac: float | None
    """Memories that all units share."""
    off_chip_bytes_per_mac: float | None
    compute_utilization_fraction: float | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    units_used_count: int | None
    """Mean over time, rounded up."""
    units_total_count: int | None
    unit_name: str
    static_power_w: float | None
    average_power_w: float | None
    process_node_nm: float | None
    clock_fraction: float | None
    assumed_fraction: float | None
    recalled_fraction: float | None

    def share(self, part: str) -> float:
        """Return the share that a part has of the energy; 0 of a run that was refused."""
        return getattr(self, f"{part}_fraction") or 0.0

    def per_mac(self, part: str) -> float | None:
        """Return the energy of a part for one MAC, in J; None without MACs."""
        energy: float | None = getattr(self, f"{part}_per_mac_j")
        return energy


@frozen
class ArchitectureCategory:
    """One of the nine categories that all classes share, in one run."""

    query: ClassVar[str] = "architectures.category"

    architecture: str
    hardware: str
    category_index: int
    """From the arithmetic outwards, from 1."""
    common_category: str
    is_overhead: bool
    """Neither arithmetic nor off-chip memory nor board nor static."""
    categories: str
    """What the class calls it; empty where it has no such action."""
    kind_count: int
    energy_fj: int
    energy_j: float
    energy_per_mac_j: float | None
    share_fraction: float | None
    run_id: int


@frozen
class ArchitectureAction:
    """An action in one run: count for a MAC x energy per action."""

    query: ClassVar[str] = "architectures.action"

    architecture: str
    hardware: str
    rank: int
    """1 for the action with most energy."""
    category_rank: int
    """1 for the action with most energy of its common category."""
    common_category: str
    category: str
    """The class's own."""
    component: str
    action: str
    per: str
    action_count: float
    count_per_mac: float | None
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    energy_per_mac_j: float | None
    share_fraction: float | None
    basis: str
    source: str
    run_id: int

    @property
    def name(self) -> str:
        """What acts and what it does."""
        return f"{self.component}.{self.action}"
