"""Rows of the queries of `queries/breakdown`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class PartAction(Row, query="breakdown.action"):
    """Where the energy of each subgraph or operator goes, action by action: count x energy per action; one row per
    part of a run and action; actions sum to their part and parts to the run, exactly.
    """

    run_id: int
    """Number of the run."""
    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    part_index: int
    """subgraph_index or operator_index; 0 for the run."""
    name: str
    """Of the operator, or of that which leads the subgraph."""
    kind: str
    """Of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    fusion_pattern: str
    """Operations of its subgraph in order."""
    category: str
    """The architecture's own."""
    common_category: str
    """compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, communication, control, board or
    static.
    """
    component: str
    """What acts."""
    action: str
    """What it does."""
    part: str
    """compute, memory, control or static."""
    per: str
    """What one count is."""
    action_count: float
    """How often."""
    energy_per_action_j: float
    """J: price of one at the voltage of the run."""
    energy_fj: int
    """fJ: exact; the sum of lines that are each round(count x price)."""
    energy_j: float
    """J: energy."""
    share_fraction: float | None
    """Of its place; null where that takes nothing."""
    run_fraction: float | None
    """Of the run."""
    whole_energy_fj: int
    """fJ: of the run, or of the subgraph that is looked into, exact."""
    basis: str
    """Where the price comes from: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """document, measurement or arithmetic behind the price."""


class PartCategory(Row, query="breakdown.category"):
    """Where the energy of each subgraph or operator goes, by category; one row per part of a run and category;
    categories sum to their part and parts to the run, exactly.
    """

    run_id: int
    """Number of the run."""
    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    part_index: int
    """subgraph_index or operator_index; 0 for the run."""
    name: str
    """Of the operator, or of that which leads the subgraph."""
    kind: str
    """Of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    fusion_pattern: str
    """Operations of its subgraph in order."""
    category: str
    """The architecture's own, or one that all share."""
    common_categories: str
    """Those of all architectures that its actions belong to, most energy first."""
    kind_count: int
    """Different actions."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy."""
    share_fraction: float | None
    """Of its place: the run, subgraph or operator."""
    run_fraction: float | None
    """Of the run."""
    whole_energy_fj: int
    """fJ: of the run, or of the subgraph that is looked into, exact."""
    largest_action: str
    """component.action that takes most of it."""
    largest_action_fraction: float | None
    """How much of the category it takes."""
