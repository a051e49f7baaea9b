"""Stored runs of one answer: its scope, facts and rules read each of their properties once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

import attrs

from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.table import Table
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.model import Caveat
from joulemap.generated.run import Fallback, Omitted
from joulemap.physics.record.configuration import NO_HOST
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, fetch_none
from joulemap.store.run import Outline, find_assumed, find_outlines, find_projected_hardware
from joulemap.system.record import frozen

RunRow = TypeVar("RunRow", Fallback, Omitted)


@frozen
class RunReading:
    """Properties of stored runs, each read when it is first needed."""

    connection: Connection = attrs.field(eq=False, repr=False)
    ids: tuple[int, ...]
    whole: RunReading | None = attrs.field(default=None, eq=False, repr=False)
    """Reading that these runs are a part of, which has read or reads the properties of single runs."""
    behind: list[Table[Any]] = attrs.field(factory=list, eq=False, repr=False)
    """Query results behind facts, where no table of the answer has their rows."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies of an answer hold: what has been read, without the connection."""
        return {name: value for name, value in vars(self).items() if name != "connection"}

    def part(self, ids: tuple[int, ...]) -> RunReading:
        """Return a reading of some of these runs."""
        return self if ids == self.ids else RunReading(self.connection, ids, self.whole or self, self.behind)

    @cached_property
    def outlines(self) -> dict[int, Outline]:
        """Run id -> configuration."""
        if self.whole is None:
            return find_outlines(self.connection, self.ids)
        return {one: self.whole.outlines[one] for one in self.ids if one in self.whole.outlines}

    @cached_property
    def unavailable(self) -> frozenset[str]:
        """Hardware that can be neither bought nor rented."""
        return find_projected_hardware(self.connection) if self.whole is None else self.whole.unavailable

    @cached_property
    def remarks(self) -> Table[Caveat]:
        """Assumptions of the traces, and operators that they could not count."""
        return fetch(self.connection, Caveat, run_ids=list(self.ids))

    @cached_property
    def fallen(self) -> tuple[Fallback, ...]:
        """Operators that a host computes because a chip's compiler does not support them."""
        if self.whole is not None:
            return tuple(row for row in self.whole.fallen if row.run_id in self.outlines)
        return self._fetch(Fallback, [run_id for run_id, run in self.outlines.items() if run.has_helper])

    @cached_property
    def omitted(self) -> tuple[Omitted, ...]:
        """Unsupported operators that runs without a host do not count."""
        if self.whole is not None:
            return tuple(row for row in self.whole.omitted if row.run_id in self.outlines)
        return self._fetch(Omitted, [run_id for run_id, run in self.outlines.items() if run.host == NO_HOST])

    def _fetch(self, record: type[RunRow], ids: list[int]) -> tuple[RunRow, ...]:
        return fetch(self.connection, record, run_ids=ids).rows if ids else ()

    @cached_property
    def calibrations(self) -> Table[StoredCalibration]:
        """Calibrations that the runs used; empty if all used class defaults."""
        find = fetch if any(run.is_calibrated for run in self.outlines.values()) else fetch_none
        return find(self.connection, StoredCalibration, run_ids=list(self.ids))

    @cached_property
    def assumed(self) -> Mapping[int, AssumedEnergy]:
        """Run id -> assumed part of its energy."""
        return find_assumed(self.connection, self.ids) if self.whole is None else self.whole.assumed

    def read(self) -> None:
        """Read all properties, so that they stay known after the connection is closed."""
        for name in ("outlines", "unavailable", "remarks", "fallen", "omitted", "calibrations", "assumed"):
            getattr(self, name)
