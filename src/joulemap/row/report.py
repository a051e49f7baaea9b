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
    """Catalogue id, with @MODE where the power mode is not the default."""
    quantity: str
    """Latency or energy."""
    half_width: float
    """Of the 80 % interval of ln(measured / predicted)."""
    standing: Standing
    """What it was measured on: this hardware, its class, or other classes."""
    basis: str
    """What the interval follows from."""
    measurement_count: int | None
    """Measurements behind it; null where they are of other classes."""
    group_count: int | None
    """Model families times boards that they are of; null where they are of other classes."""
    calibration: str
    """Calibration of the run; none for the class defaults."""
    run_id: int
    """Number of the run."""


class NumberSource(Row, query="report.source"):
    """What the numbers of runs rest on: every source of a price or another number of their hardware, and how much
    energy it prices; one row per run, basis and source; refused runs are left out.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    basis: str
    """measured, published, derived, scaled, recalled or assumed."""
    source: str
    """document, measurement or arithmetic."""
    number_count: int
    """Numbers of the hardware that are from there."""
    numbers: str
    """Their names in alphabetical order, separated by commas: quantities, and COMPONENT.ACTION for a price."""
    energy_fj: int
    """fJ: of the run that the prices among them price, exact."""
    run_fraction: float | None
    """Of the run's energy."""
    run_id: int
    """Number of the run."""


class EnergyLeaf(Row, query="report.tree"):
    """Where the energy of several runs goes: common categories, the actions in them, and the subgraphs that act
    most; one row per run, action and subgraph; of an action past the subgraphs that act most, one row for all the
    others; the rows of a run sum to its energy, exactly.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    common_category: str
    """compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, communication, control, board or
    static.
    """
    category_fj: int
    """fJ: of the category, exact."""
    action: str
    """What acts, and what it does: COMPONENT.ACTION."""
    action_fj: int
    """fJ: of the action, exact."""
    position: int
    """Of the subgraph in the action, 1 for the most energy; the last where it stands for several."""
    subgraph: str | None
    """name; null where the row stands for all the others."""
    subgraph_count: int
    """Subgraphs that the row stands for."""
    energy_fj: int
    """fJ: of the action in them, exact."""
    energy_j: float
    """J: of the action in them."""
    run_fraction: float | None
    """Of the run's energy."""
    run_id: int
    """Number of the run."""
