"""Stored runs of one answer: its scope, facts and rules read each of their properties once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from joulemap.row.model import Caveat
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.run import Outline, find_outlines, find_projected_hardware
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.table import Table
    from joulemap.row.run import Fallback


@frozen
class RunReading:
    """Properties of stored runs, each read when it is first needed."""

    connection: Connection
    ids: tuple[int, ...]

    @cached_property
    def outlines(self) -> dict[int, Outline]:
        """Run id -> configuration."""
        return find_outlines(self.connection, self.ids)

    @cached_property
    def unavailable(self) -> frozenset[str]:
        """Hardware that can be neither bought nor rented."""
        return find_projected_hardware(self.connection)

    @cached_property
    def remarks(self) -> Table[Caveat]:
        """Assumptions of the traces, and operators that they could not count."""
        return fetch(self.connection, Caveat, run_ids=list(self.ids))

    @cached_property
    def fallen(self) -> tuple[Fallback, ...]:
        """Operators that a host computes because a chip's compiler does not support them."""
        ids = [run_id for run_id, run in self.outlines.items() if run.has_helper]
        if not ids:
            return ()
        from joulemap.row.run import Fallback

        return fetch(self.connection, Fallback, run_ids=ids).rows
