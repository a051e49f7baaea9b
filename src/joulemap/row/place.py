"""Rows of the queries of `queries/place`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class PlacementDifference(Row, query="place.difference"):
    """Why one placement of a model takes more energy than another of the same question: what each device spends on
    each action; one row per device, component and action that either has a line of.
    """

    device: str
    """Of the box."""
    component: str
    """What acts."""
    action: str
    """What it does."""
    first_count: float
    """How often it happens in the first; 0 where it does not."""
    second_count: float
    """How often it happens in the second."""
    first_j: float
    """J: energy in the first."""
    second_j: float
    """J: energy in the second."""
    difference_j: float
    """J: second less first."""
    first_fj: int
    """fJ: energy in the first, exact: all rows add up to its total."""
    difference_fj: int
    """fJ: the same, exact: all rows add up to the difference of both totals."""


class DoubtedDevice(Row, query="place.doubt"):
    """How far predictions of a model on the devices of a box were off, by what was measured of each or of its like;
    one row per device.
    """

    position: int
    """Of the device in the parameters, from 1."""
    latency_half_width: float
    """Of the 80 % interval of a latency's natural logarithm."""
    left_out_energy_half_width: float | None
    """The same of an energy, of its calibration; null where that has none."""
    energy_half_width: float
    """The same, of the finest group of measurements that it is in."""
    energy_group_count: int | None
    """Of that group; null where it is of other classes."""


class PlacedLine(Row, query="place.ledger"):
    """The ledger of a placement on a box: parts, copies between devices, and what each draws while others work; one
    row per line.
    """

    line_index: int
    """Order in the ledger."""
    device: str
    """Of the box; of a copy the one that sends."""
    subgraph_index: int | None
    """Null where it belongs to none."""
    component: str
    """What acts."""
    action: str
    """What it does."""
    per: str
    """What one count is."""
    action_count: float
    """How often."""
    energy_per_action_j: float
    """J: at the highest voltage of the die."""
    energy_fj: int
    """fJ: of the line, exact."""
    basis: str
    """Where the price comes from."""
    source: str
    """Who says so."""
