"""Rows of the queries of `queries/place`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class PlacementDifference(Row, query="place.difference"):
    """Why one placement of a model takes more energy than another of the same question: what each device spends on
    each action; one row per device, component and action that either has a line of.
    """

    device: str
    component: str
    action: str
    first_count: float
    second_count: float
    first_j: float
    second_j: float
    difference_j: float
    first_fj: int
    difference_fj: int


class DoubtedDevice(Row, query="place.doubt"):
    """How far predictions of a model on the devices of a box were off, by what was measured of each or of its like;
    one row per device.
    """

    position: int
    latency_half_width: float
    left_out_energy_half_width: float | None
    energy_half_width: float
    energy_group_count: int | None


class PlacedLine(Row, query="place.ledger"):
    """The ledger of a placement on a box: parts, copies between devices, and what each draws while others work; one
    row per line.
    """

    line_index: int
    device: str
    subgraph_index: int | None
    component: str
    action: str
    per: str
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    basis: str
    source: str
