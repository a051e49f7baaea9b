"""Subject of a question, as its rules see it: stored runs, and how their hardware was selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask.fact import Subject
from joulemap.plan.hold import StoredRuns
from joulemap.plan.run import Plan, RunTally
from joulemap.plan.selection import Selection
from joulemap.store.connection import Connection
from joulemap.store.reading import RunReading
from joulemap.store.run import Outline

if TYPE_CHECKING:
    from joulemap.domain.table import Table
    from joulemap.row.model import Caveat
    from joulemap.row.run import Fallback

VARYING: Final = ("precision", "batch", "runtime")
"""Settings that distinguish runs of one chip."""


class Asked:
    """Stored runs of a plan, or those of them that matter, with an open connection."""

    def __init__(self, held: StoredRuns, ids: Iterable[int] | None = None) -> None:
        self.plan, self.connection, self.reading = held.plan, held.connection, held.reading
        self.ids = held.ids if ids is None else tuple(ids)

    @classmethod
    def of(cls, plan: Plan, connection: Connection, ids: Iterable[int]) -> Asked:
        """Return the subject of a question about these stored runs, which may be those of several plans."""
        kept = tuple(dict.fromkeys(ids))
        tally = RunTally(stored_count=len(kept), evaluated_count=0, refused_count=0)
        return cls(StoredRuns(plan=plan, ids=kept, connection=connection, tally=tally))

    @property
    def selection(self) -> Selection:
        """Hardware that the question selected."""
        return self.plan.selection

    @property
    def is_named(self) -> bool:
        """True if the user named the hardware."""
        return bool(self.plan.settings.hardware)

    def list_devices(self, run: Outline) -> Sequence[tuple[str, str]]:
        """Return (class, vendor) of the hardware of a run, or of each device of a box."""
        parts = self.selection.parts.get(run.hardware)
        return [(one.architecture, one.vendor) for one in parts] if parts else [(run.architecture, run.vendor)]

    @cached_property
    def outlines(self) -> dict[int, Outline]:
        """Run id -> configuration."""
        return {one: self.reading.outlines[one] for one in self.ids if one in self.reading.outlines}

    @cached_property
    def evaluated(self) -> tuple[int, ...]:
        """Ids of runs that were not refused."""
        return tuple(one for one in self.ids if self.outlines[one].refusal is None)

    def part(self, ids: Iterable[int]) -> Asked:
        """Return some of these runs as the subject, with the same hardware selected."""
        part = copy(self)
        part.ids = tuple(ids)
        for name in ("outlines", "evaluated"):
            part.__dict__.pop(name, None)
        return part

    @property
    def unavailable(self) -> frozenset[str]:
        """Hardware that can be neither bought nor rented."""
        return self.reading.unavailable

    @property
    def remarks(self) -> Table[Caveat]:
        """Assumptions of the traces, and operators that they could not count."""
        reading = self.reading if self.ids == self.reading.ids else RunReading(self.connection, self.ids)
        return reading.remarks

    @property
    def fallen(self) -> dict[int, list[Fallback]]:
        """Run id -> operators that a host computes, for the runs that have some."""
        found: dict[int, list[Fallback]] = {}
        for row in self.reading.fallen:
            if row.run_id in self.outlines:
                found.setdefault(row.run_id, []).append(row)
        return found

    def runs(self, settings: Mapping[int, tuple[str, ...]]) -> dict[int, Subject]:
        """Return run id -> run; `settings` holds what distinguishes a run from others of its hardware."""
        return {
            run_id: Subject(
                hardware=one.configured_hardware,
                settings=settings.get(run_id, ()),
                is_available=one.hardware not in self.unavailable,
                is_named=self.is_named,
            )
            for run_id, one in self.outlines.items()
        }


class AskedStored(Asked):
    """Stored runs that the user named by their ids, so that no hardware is selected."""

    def __init__(self, connection: Connection, ids: Sequence[int]) -> None:
        self.connection, self.ids = connection, tuple(ids)
        self.reading = RunReading(connection, self.ids)

    @property
    def selection(self) -> Selection:
        """Empty selection."""
        return Selection(pairs=(), own={})

    @property
    def is_named(self) -> bool:
        """True, because the user named the runs."""
        return True


def names_engine(model: str) -> bool:
    """Return True for the name of a pass of a served model, which states its engine as an argument."""
    return "engine=" in model


def vary(rows: Iterable[Any], names: Sequence[str] = VARYING) -> dict[int, tuple[str, ...]]:
    """Return run id -> the settings in which the rows differ; the first row of a run counts."""
    listed = list(rows)
    varying = [name for name in names if len({getattr(row, name) for row in listed}) > 1]
    return {
        row.run_id: tuple(f"batch {row.batch}" if one == "batch" else getattr(row, one) or "" for one in varying)
        for row in reversed(listed)
    }
