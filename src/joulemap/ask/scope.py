"""Scope of a question, as its rules and its answer see it: stored runs, and how their hardware was selected."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from joulemap.ask.fact import Refusal, Subject
from joulemap.ask.refusal import find_left_out, find_refused
from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.default import SETTINGS
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table, group
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.model import Caveat
from joulemap.generated.run import Fallback, Omitted
from joulemap.physics.record.configuration import BOUNDARY, NO_HOST
from joulemap.physics.record.product import FP32
from joulemap.physics.record.weight import label_precision
from joulemap.plan.price import find_chip
from joulemap.plan.run import Plan, plan_runs
from joulemap.plan.selection import Selection
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import StoredRuns, opening_runs
from joulemap.store.connection import Connection
from joulemap.store.reading import RunReading
from joulemap.store.run import Outline
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

VARYING: Final = ("precision", "batch", "runtime")
"""Settings that distinguish runs of one chip."""


@frozen(kw_only=True)
class Scope:
    """Stored runs of a question, or those of them that matter, and how their hardware was selected.

    Properties are found when they are first used, from what `reading` holds or reads.
    """

    reading: RunReading
    settings: Settings
    selection: Selection
    """Hardware that the question selected; empty if the user named runs."""
    is_named: bool
    """True if the user named the hardware or the runs."""
    names: tuple[str, ...] = ()
    """Models as the caller named them; empty to take the names of the stored runs."""
    unstored: tuple[Refusal, ...] = ()
    """Hardware that was refused before it had a stored run."""

    @classmethod
    def of(cls, held: StoredRuns) -> Scope:
        """Return the scope of a question about the runs of a plan."""
        names = tuple(dict.fromkeys(model.request.model for model in held.plan.models))
        return attrs.evolve(cls.of_plan(held.plan, held.connection, held.ids), names=names)

    @classmethod
    def of_plan(cls, plan: Plan, connection: Connection, ids: Iterable[int]) -> Scope:
        """Return the scope of a question about these stored runs, which may be those of several plans."""
        return cls(
            reading=RunReading(connection, tuple(dict.fromkeys(ids))),
            settings=plan.settings,
            selection=plan.selection,
            is_named=bool(plan.settings.hardware),
        )

    @classmethod
    def of_runs(cls, connection: Connection, ids: Sequence[int]) -> Scope:
        """Return the scope of a question about runs that the user named by their ids."""
        return cls(
            reading=RunReading(connection, tuple(ids)),
            settings=SETTINGS,
            selection=Selection(pairs=(), own={}),
            is_named=True,
        )

    def part(self, ids: Iterable[int]) -> Scope:
        """Return some of these runs as the scope, with the same hardware selected."""
        return attrs.evolve(self, reading=self.reading.part(tuple(dict.fromkeys(ids))))

    def narrow(self, ids: Iterable[int]) -> Scope:
        """Return these runs and all refused ones as the scope, in the order of the question."""
        kept = {*ids, *self.refused}
        return self.part(one for one in self.run_ids if one in kept)

    def read(self) -> None:
        """Read everything that an answer needs after the connection is closed."""
        self.reading.read()

    @property
    def connection(self) -> Connection:
        """Connection to the database with the runs."""
        return self.reading.connection

    @property
    def run_ids(self) -> tuple[int, ...]:
        """Run ids in the order of the question: by model, batch, hardware."""
        return self.reading.ids

    @property
    def outlines(self) -> dict[int, Outline]:
        """Run id -> configuration."""
        return self.reading.outlines

    @property
    def remarks(self) -> Table[Caveat]:
        """Assumptions of the traces, and operators that they could not count."""
        return self.reading.remarks

    @property
    def calibrations(self) -> Table[StoredCalibration]:
        """Calibrations that the runs used; empty if all used class defaults."""
        return self.reading.calibrations

    @cached_property
    def unavailable(self) -> frozenset[str]:
        """Hardware that can be neither bought nor rented, and has no price of the site."""
        return self.reading.unavailable - {find_chip(one.hardware) for one in self.settings.site.prices}

    @property
    def assumed(self) -> Mapping[int, AssumedEnergy]:
        """Run id -> assumed part of its energy."""
        return self.reading.assumed

    @cached_property
    def fallen(self) -> dict[int, list[Fallback]]:
        """Run id -> operators that a host computes, for the runs that have some."""
        return group(self.reading.fallen, lambda row: row.run_id)

    @cached_property
    def omitted(self) -> dict[int, list[Omitted]]:
        """Run id -> unsupported operators that a run without a host does not count, for the runs that have some."""
        return group(self.reading.omitted, lambda row: row.run_id)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Models, as the caller named them if known."""
        return self.names or tuple(dict.fromkeys(one.model for one in self.outlines.values()))

    @property
    def model(self) -> str:
        """First model of the question; most questions have only one."""
        return self.models[0]

    @cached_property
    def batches(self) -> tuple[int, ...]:
        """Batch sizes of the runs, smallest first."""
        return tuple(sorted({one.batch for one in self.outlines.values()}))

    @cached_property
    def precisions(self) -> tuple[tuple[str, str], ...]:
        """Distinct precisions of the runs, each as (precision of activations, stored precision of GEMM weights)."""
        return tuple(dict.fromkeys((one.precision, one.weight_precision) for one in self.outlines.values()))

    @property
    def labels(self) -> list[str]:
        """Precisions of the runs, with that of the weights if it differs."""
        return [label_precision(*pair) for pair in self.precisions]

    @cached_property
    def runtimes(self) -> tuple[str, ...]:
        """Distinct runtimes of the runs."""
        return tuple(dict.fromkeys(one.runtime for one in self.outlines.values()))

    @cached_property
    def boundaries(self) -> tuple[str, ...]:
        """Boundaries of the energies: `board`, `chip` or `system`. Only stored runs named by id may mix several."""
        return tuple(sorted({one.boundary for one in self.outlines.values()}))

    @cached_property
    def at_wall(self) -> frozenset[str]:
        """Hardware with energies at the wall plug. These energies include a host."""
        return frozenset(one.hardware for one in self.outlines.values() if BOUNDARY[one.boundary].is_at_wall)

    @cached_property
    def hardware(self) -> tuple[str, ...]:
        """Ids of the runs' hardware, in alphabetical order."""
        return tuple(sorted({one.hardware for one in self.outlines.values()}))

    @cached_property
    def hosts(self) -> dict[str, str]:
        """Hardware that needs a host -> host that its runs include; empty if they include none."""
        return {
            # a host that only launches the kernels of a server's board adds no energy
            one.hardware: one.host if one.needs_host or one.host == NO_HOST else ""
            for one in self.outlines.values()
            if one.needs_host or one.is_node_board
        }

    @cached_property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """Hardware at its power mode -> changed numbers, with their former values."""
        return {one.configured_hardware: tuple(one.changes) for one in self.outlines.values() if one.changes}

    @cached_property
    def uncalibrated(self) -> tuple[str, ...]:
        """Hardware of the runs without a calibration, in alphabetical order."""
        return tuple(sorted({one.hardware for one in self.outlines.values() if not one.is_calibrated}))

    @cached_property
    def doubts(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Hardware at its power mode -> `latency` or `energy` -> two half-widths of 80 % intervals, in natural
        logarithms.

        The first is the total, the second the part due to the hardware's own numbers. Both are the largest of its runs.
        """
        by_hardware: dict[str, dict[str, tuple[float, float]]] = {}
        for one in self.outlines.values():
            widths = by_hardware.setdefault(one.configured_hardware, {})
            for quantity, width, own in (
                ("latency", one.latency_half_width, one.latency_own_half_width),
                ("energy", one.energy_half_width, one.energy_own_half_width),
            ):
                if width is not None:
                    widths[quantity] = max(widths.get(quantity, (0.0, 0.0)), (width, own or 0.0))
        return by_hardware

    @cached_property
    def evaluated_ids(self) -> tuple[int, ...]:
        """Ids of runs that were not refused."""
        return tuple(one for one in self.run_ids if self.outlines[one].refusal is None)

    @cached_property
    def refused(self) -> dict[int, str]:
        """Id of a refused run -> reason why the hardware cannot run it."""
        return {run_id: one.refusal for run_id, one in self.outlines.items() if one.refusal is not None}

    @cached_property
    def refused_runs(self) -> tuple[Refusal, ...]:
        """Refused runs by reason, then hardware that was refused before it had a run."""
        return (*find_refused(self.outlines, self.unavailable), *self.unstored)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Distinct reasons why hardware was refused."""
        return tuple(dict.fromkeys(one.reason for one in self.refused_runs))

    @property
    def refusals_by_reason(self) -> tuple[Refusal, ...]:
        """Refused runs by reason, then the hardware that the power budget or the boundary excludes."""
        return (*self.refused_runs, *find_left_out(self.selection, self.unavailable))

    def check_evaluated(self) -> None:
        """Raise UnsupportedError with the reasons if every run was refused."""
        if not self.evaluated_ids:
            meant = [f"{name} means {hardware}" for name, hardware in self.selection.meanings.items()]
            raise UnsupportedError("; ".join((*self.refusals, *meant)))

    def can_flip(self, *hardware: str) -> bool:
        """Return whether `flip` accepts this hardware at its power modes; it accepts chips but no boxes."""
        return not any(one.placement and one.configured_hardware in hardware for one in self.outlines.values())

    @cached_property
    def spelling(self) -> dict[str, str]:
        """Displayed name of hardware from a file -> name that commands use for it."""
        return self.selection.spelling

    def spell(self, hardware: str) -> str:
        """Return the name that a command uses for a displayed chip name."""
        return self.spelling.get(hardware, hardware)

    @cached_property
    def unlisted(self) -> frozenset[str]:
        """Hardware of which it is unknown whether it can run every operator, so that no chance about it holds."""
        return frozenset(entry.id for entry, _ in self.selection.pairs if entry.is_unlisted)

    def data(self) -> dict[str, Any]:
        """Return the scope for machine formats."""
        selection = self.selection
        at_fp32 = (one.matmul_precision for one in self.outlines.values() if one.precision == FP32)
        return {
            "models": self.models,
            "batches": self.batches,
            "precisions": tuple(dict.fromkeys(precision for precision, _ in self.precisions)),
            "weight_precisions": tuple(dict.fromkeys(weights for _, weights in self.precisions)),
            "runtimes": self.runtimes,
            "boundaries": self.boundaries,
            "matmul_precisions": tuple(dict.fromkeys(at_fp32)),
            "fp32_products": find_printer().describe_products(self),
            "run_ids": self.run_ids,
            "class_defaults": selection.meanings,
            "unsupported": self.refusals,
            "power_budget_w": None if selection.budget is None else selection.budget.power_w,
            "left_out": {
                **{name: str(excess) for name, excess in selection.left_out.items()},
                **({} if selection.fallback_boundary else selection.unplugged),
                **selection.portless,
                **selection.miscalibrated,
            },
            "caveats": self.remarks.records(),
            "calibrations": self.calibrations.records(),
            "uncalibrated": self.uncalibrated,
            "hosts": dict(self.hosts),
            "fallback": tuple(row.record() for row in self.reading.fallen),
            "omitted": tuple(row.record() for row in self.reading.omitted),
            "changes": dict(self.changes),
            "half_widths": {
                name: {quantity: {"all": width, "own": own} for quantity, (width, own) in widths.items()}
                for name, widths in self.doubts.items()
            },
        }

    def subjects(self, settings: Mapping[int, tuple[str, ...]]) -> dict[int, Subject]:
        """Return run id -> run; `settings` holds what distinguishes a run from others of its hardware."""
        return {
            run_id: Subject(
                hardware=one.configured_hardware,
                settings=settings.get(run_id, ()),
                is_available=one.hardware not in self.unavailable,
                is_named=self.is_named,
                is_sure=one.hardware not in self.unlisted,
            )
            for run_id, one in self.outlines.items()
        }


@contextlib.contextmanager
def opening_scope(
    source: Source, plan: Plan, *, needs_catalogue: bool = False, has_ledger: bool = True
) -> Iterator[Scope]:
    """Yield the scope of a question about the runs of a plan, with an open connection.

    When the question ends, the scope is read, so that the answer outlives the connection. Raises like `opening_runs`.
    """
    with opening_runs(source, plan, needs_catalogue=needs_catalogue, has_ledger=has_ledger) as held:
        scope = Scope.of(held)
        yield scope
        scope.read()


@contextlib.contextmanager
def opening_compared(source: Source, models: Sequence[str], settings: Settings) -> Iterator[Scope]:
    """Yield the scope of a question of `compare` about models, with an open connection.

    Raises UnsupportedError if no run has a result, UsageError for settings with several values.
    """
    settings.check_single("compare")
    with opening_scope(source, plan_runs(models, settings)) as scope:
        scope.check_evaluated()
        yield scope


def vary(rows: Iterable[Any], names: Sequence[str] = VARYING) -> dict[int, tuple[str, ...]]:
    """Return run id -> the settings in which the rows differ; the first row of a run counts."""
    listed = list(rows)
    varying = [name for name in names if len({getattr(row, name) for row in listed}) > 1]
    return {
        row.run_id: tuple(f"batch {row.batch}" if one == "batch" else getattr(row, one) or "" for one in varying)
        for row in reversed(listed)
    }
