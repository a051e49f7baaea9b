"""Rows of the queries of `queries/report`, made from their headers by `make rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.row import Row

if TYPE_CHECKING:
    from joulemap.domain.doubt import Standing


class PredictionStanding(Row, query="report.accuracy"):
    """How predictions like each run's have scored against measurements, and how near to its hardware these are; one
    row per run and quantity; refused runs are left out.
    """

    model: str
    hardware: str
    quantity: str
    half_width: float
    standing: Standing
    basis: str
    measurement_count: int | None
    group_count: int | None
    calibration: str
    run_id: int


class NumberSource(Row, query="report.source"):
    """What the numbers of runs rest on: every source of a price or another number of their hardware, and how much
    energy it prices; one row per run, basis and source; refused runs are left out.
    """

    model: str
    hardware: str
    basis: str
    source: str
    number_count: int
    numbers: str
    energy_fj: int
    run_fraction: float | None
    run_id: int


class EnergyLeaf(Row, query="report.tree"):
    """Where the energy of several runs goes: common categories, the actions in them, and the subgraphs that act
    most; one row per run, action and subgraph; of an action past the subgraphs that act most, one row for all the
    others; the rows of a run sum to its energy, exactly.
    """

    model: str
    hardware: str
    common_category: str
    category_fj: int
    action: str
    action_fj: int
    position: int
    subgraph: str | None
    subgraph_count: int
    energy_fj: int
    energy_j: float
    run_fraction: float | None
    run_id: int
