"""Candidates of synthetic runs, bought and rented."""

from __future__ import annotations

from typing import Any

from choice_database import MadeUp, fill
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.store.query import run_query


def ask(connection: Connection, name: str, runs: list[MadeUp] | None = None, **given: Any) -> list[dict[str, Any]]:
    """Return the rows of a query about these runs, or about those that are there."""
    if runs is not None:
        given["run_ids"] = fill(connection, runs)
    return run_query(connection, find_query(name), given).records()


RENTED = MadeUp(hardware="rented", latency_s=1e-3, energy_j=1.0, cloud_usd_per_hour=3.6, idle_w=2.0)


BOUGHT = MadeUp(hardware="bought", latency_s=8e-3, energy_j=4.0, batch=8, purchase_usd=5760.0, static_w=100.0)
