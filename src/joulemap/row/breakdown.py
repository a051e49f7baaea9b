"""Rows of the queries of `queries/breakdown`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class PartAction(Row, query="breakdown.action"):
    """Where the energy of each subgraph or operator goes, action by action: count x energy per action; one row per
    part of a run and action; actions sum to their part and parts to the run, exactly.
    """

    run_id: int
    model: str
    hardware: str
    part_index: int
    name: str
    kind: str
    fusion_pattern: str
    category: str
    common_category: str
    component: str
    action: str
    part: str
    per: str
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    run_fraction: float | None
    whole_energy_fj: int
    basis: str
    source: str


class PartCategory(Row, query="breakdown.category"):
    """Where the energy of each subgraph or operator goes, by category; one row per part of a run and category;
    categories sum to their part and parts to the run, exactly.
    """

    run_id: int
    model: str
    hardware: str
    part_index: int
    name: str
    kind: str
    fusion_pattern: str
    category: str
    common_categories: str
    kind_count: int
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    run_fraction: float | None
    whole_energy_fj: int
    largest_action: str
    largest_action_fraction: float | None
