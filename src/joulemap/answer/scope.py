"""Scope of an answer: its models and runs, and what tables and follow-up commands need to know of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.assumed import is_whole, show_assumed
from joulemap.ask.asked import names_engine
from joulemap.ask.fact import Refusal
from joulemap.ask.refusal import find_left_out, find_refused
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.configuration import BOARD, NO_HOST, SYSTEM
from joulemap.domain.engine import group_engines, has_framework
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.product import FP32 as WIDE
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import label_precision, split_precision
from joulemap.plan.hold import StoredRuns, holding_runs
from joulemap.plan.run import Plan
from joulemap.plan.selection import Selection
from joulemap.plan.source import Source
from joulemap.present.cell import mark_projected
from joulemap.present.document import EnergyCell
from joulemap.present.template import Template
from joulemap.row.calibration import StoredCalibration
from joulemap.row.model import Caveat
from joulemap.show.product import Fp32Run, Meaning, describe_fp32
from joulemap.show.title import RUNS, Conditions, Title
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, fetch_none
from joulemap.store.reading import RunReading
from joulemap.store.run import (
    AssumedEnergy,
    Outline,
    find_assumed,
    find_configurations,
)
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.plan.budget import Budget, Excess
    from joulemap.row.run import Fallback, Omitted


SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which the share is displayed as zero."""


POWER: Final = Template("{power:W}{host}")
AND_HOST: Final = " + host"

DOUBTED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "energy": ("energy",),
    "efficiency": ("energy",),
    "latency": ("latency",),
    "throughput": ("latency",),
    "edp": ("latency", "energy"),
    "power": ("latency", "energy"),
}
"""Metric -> quantities (`energy`, `latency`) that its uncertainty comes from."""


@frozen(kw_only=True)
class Scope:
    """Models, runs and hardware of an answer."""

    models: tuple[str, ...]
    """Models, as the caller named them."""
    batches: tuple[int, ...]
    """Batch sizes of the runs, smallest first."""
    single: tuple[str, ...] = ()
    """Hardware that runs at one batch size although other hardware runs at several, in alphabetical order."""
    settings: Settings
    precisions: tuple[tuple[str, str], ...]
    """Distinct precisions of the runs, each as (precision of activations, stored precision of GEMM weights)."""
    run_ids: tuple[int, ...]
    """Run ids in the order of the question: by model, batch, hardware."""
    refused: Mapping[int, str]
    """Id of a refused run -> reason why the hardware cannot run it."""
    refused_runs: tuple[Refusal, ...] = ()
    """Refused runs by reason."""
    spelling: Mapping[str, str] = attrs.field(factory=dict)
    """Displayed name of hardware from a file -> name that commands use for it."""
    meanings: Mapping[str, str] = attrs.field(factory=dict)
    """Class that the caller named -> hardware that represents it."""
    budget: Budget | None = None
    """Power budget, which limits the power modes of hardware; None without a budget."""
    left_out: Mapping[str, Excess] = attrs.field(factory=dict)
    """Hardware omitted because every power mode exceeds the budget -> its excess."""
    omissions: tuple[Refusal, ...] = ()
    """Hardware that the power budget or the boundary excludes."""
    unplugged: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware that lacks the requested boundary -> reason."""
    fallback_boundary: str = ""
    """Boundary used for the hardware in `unplugged`; empty if that hardware is omitted."""
    at_wall: frozenset[str] = frozenset()
    """Hardware with energies at the wall plug. These energies include a host."""
    hardware: tuple[str, ...]
    """Ids of the runs' hardware, in alphabetical order."""
    projected: frozenset[str]
    """Hardware that can be neither bought nor rented."""
    caveats: Table[Caveat]
    """Assumptions of the traces, and operators that they could not count."""
    calibrations: Table[StoredCalibration]
    """Calibrations that the runs used; empty if all used class defaults."""
    uncalibrated_runs: Mapping[int, str]
    """Run id of a run without a calibration -> its hardware."""
    boundaries: tuple[str, ...]
    """Boundaries of the energies: `board`, `chip` or `system`. Only stored runs named by id may mix several."""
    fp32: Meaning = Meaning()
    """Meaning of fp32 in the runs."""
    changes: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Hardware at its power mode -> changed numbers, with their former values."""
    hosts: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware that needs a host -> host that its runs include; empty if they include none."""
    boxes: frozenset[str] = frozenset()
    """Boxes at their power modes, on whose devices runs are placed."""
    fallen: tuple[Fallback, ...] = ()
    """Operators that a host computes because a chip's compiler does not support them."""
    omitted: tuple[Omitted, ...] = ()
    """Unsupported operators that runs without a host do not count."""
    assumed: Mapping[int, AssumedEnergy] = attrs.field(factory=dict)
    """Run id -> assumed part of its energy."""
    named: Mapping[int, str] = attrs.field(factory=dict)
    """Run id -> its hardware at its power mode."""
    doubts: Mapping[str, Mapping[str, tuple[float, float]]] = attrs.field(factory=dict)
    """Hardware at its power mode -> `latency` or `energy` -> two half-widths of 80 % intervals, in natural logarithms.

    The first is the total, the second the part due to the hardware's own numbers. Both are the largest of its runs.
    """
    engines: Mapping[str, list[str]] = attrs.field(factory=dict)
    """Inference engine -> hardware deployed with it.

    Empty unless the engine runtime is requested, or hardware that only an engine supports is compared with other
    hardware.
    """

    def repeat_boundary(self, hardware: Iterable[str], repeated: Sequence[str]) -> list[str]:
        """Return the repeated options, plus `--boundary system` if the boundary was not given but all hardware runs at
        it.
        """
        is_implied = bool(self.fallback_boundary) and "--boundary" not in repeated
        is_at_wall = all(HardwareRef.read(name).label in self.at_wall for name in hardware)
        return [*repeated, *(("--boundary", SYSTEM) if is_implied and is_at_wall else ())]

    @property
    def evaluated_ids(self) -> tuple[int, ...]:
        """Ids of runs that were not refused."""
        return tuple(run_id for run_id in self.run_ids if run_id not in self.refused)

    @property
    def uncalibrated(self) -> tuple[str, ...]:
        """Hardware of the runs without a calibration, in alphabetical order."""
        return tuple(sorted({*self.uncalibrated_runs.values()}))

    @property
    def refusals(self) -> tuple[str, ...]:
        """Distinct reasons why hardware was refused."""
        return tuple(dict.fromkeys(self.refused.values()))

    @property
    def model(self) -> str:
        """First model of the answer; most answers have only one."""
        return self.models[0]

    @property
    def labels(self) -> list[str]:
        """Precisions of the runs, with that of the weights if it differs."""
        return [label_precision(*pair) for pair in self.precisions]

    @property
    def title(self) -> Title:
        """Models, batch sizes, precisions and runtimes."""
        return Title(form=RUNS, values={"models": self.models, **self.setting_values})

    @property
    def setting_values(self) -> dict[str, Any]:
        """Batch sizes, precisions and runtimes as values of a title."""
        return {
            "batches": [str(batch) for batch in self.batches],
            "precisions": self.labels,
            "runtimes": self.settings.runtime,
        }

    @property
    def conditions(self) -> Conditions:
        """Conditions of the runs for a subject line."""
        return Conditions(
            boundaries=self.boundaries,
            is_wall_else_board=self.fallback_boundary == BOARD and len(self.boundaries) > 1,
            hosts=tuple(dict.fromkeys(filter(None, self.hosts.values()))),
            changes={self.mark(hardware): numbers for hardware, numbers in self.changes.items()},
            products=self.fp32.title,
            is_fp32=self.precisions == (("fp32", "fp32"),),
        )

    @property
    def refusals_by_reason(self) -> tuple[Refusal, ...]:
        """Refused runs by reason, then the hardware that was left out before."""
        return (*self.refused_runs, *self.omissions)

    @property
    def set_constants(self) -> frozenset[str]:
        """Names of the constants that `--set` changes; a command that sets one of them again would be refused."""
        return frozenset(name.rpartition(":")[2] for name in self.settings.changes)

    def find_width(self, hardware: str, quantity: str) -> float | None:
        """Return the half-width of a chip's energy or latency, in natural logarithms; None if unknown."""
        return self.doubts.get(hardware, {}).get(quantity, (None, None))[0]

    def check_evaluated(self) -> None:
        """Raise UnsupportedError with the reasons if every run was refused."""
        if not self.evaluated_ids:
            meant = [f"{name} means {hardware}" for name, hardware in self.meanings.items()]
            raise UnsupportedError("; ".join((*self.refusals, *meant)))

    def mark(self, hardware: str) -> str:
        """Return a text that begins with a chip's id, marked if it can be neither bought nor rented."""
        return mark_projected(hardware, self.projected)

    def can_flip(self, *hardware: str) -> bool:
        """Return whether `flip` accepts this hardware; it accepts chips but no boxes."""
        return not set(hardware) & self.boxes

    def spell(self, hardware: str) -> str:
        """Return the name that a command uses for a displayed chip name."""
        return self.spelling.get(hardware, hardware)

    def show_assumed(self, energy: EnergyCell) -> str:
        """Return the assumed share of an energy for a table cell; empty for a share up to a third, or for a part of a
        run.
        """
        whole = self.assumed.get(energy.run_id)
        is_part = whole is not None and energy.field == "energy_j" and not is_whole(whole, energy.value)
        return "" if is_part else show_assumed(whole)

    def show_power(self, hardware: str, power_w: float | None) -> str:
        """Return a power for display, marked if it omits the host that the hardware needs."""
        if power_w is None:
            return ""
        label = HardwareRef.read(hardware).label
        is_alone = self.hosts.get(label) == "" and label not in self.at_wall
        return POWER(power=power_w, host=AND_HOST if is_alone else "")

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {
            "models": self.models,
            "batches": self.batches,
            "precisions": tuple(dict.fromkeys(precision for precision, _ in self.precisions)),
            "weight_precisions": tuple(dict.fromkeys(weights for _, weights in self.precisions)),
            "runtimes": self.settings.runtime,
            "boundaries": self.boundaries,
            "matmul_precisions": self.fp32.settings,
            "fp32_products": self.fp32.title,
            "run_ids": self.run_ids,
            "class_defaults": self.meanings,
            "unsupported": self.refusals,
            "power_budget_w": None if self.budget is None else self.budget.power_w,
            "left_out": {
                **{name: str(excess) for name, excess in self.left_out.items()},
                **({} if self.fallback_boundary else self.unplugged),
            },
            "caveats": self.caveats.records(),
            "calibrations": self.calibrations.records(),
            "uncalibrated": self.uncalibrated,
            "hosts": dict(self.hosts),
            "fallback": tuple(row.record() for row in self.fallen),
            "omitted": tuple(row.record() for row in self.omitted),
            "engines": dict(self.engines),
            "changes": dict(self.changes),
            "half_widths": {
                name: {quantity: {"all": width, "own": own} for quantity, (width, own) in widths.items()}
                for name, widths in self.doubts.items()
            },
        }


def find_scope(runs: StoredRuns) -> Scope:
    """Return the scope of an answer about the runs of a plan."""
    plan = runs.plan
    scope = Scope(
        models=tuple(dict.fromkeys(model.request.model for model in plan.models)),
        settings=plan.settings,
        precisions=plan.settings.precisions,
        engines=_find_engines(plan),
        **_find_of_runs(runs.reading),
    )
    return widen(scope, plan.selection)


def _find_engines(plan: Plan) -> dict[str, list[str]]:
    """Return the inference engines for `Scope.engines`; a box has the engines of its devices.

    Empty if the models name their serving engine.
    """
    if all(names_engine(model.request.model) for model in plan.models):
        return {}
    boxes = plan.selection.parts
    entries = [
        one
        for entry, _ in plan.selection.pairs
        for one in (map(HardwareEntry.of, boxes[entry.id]) if entry.id in boxes else (entry,))
    ]
    runtimes = plan.settings.runtime
    is_mixed = "fused" in runtimes and len({has_framework(entry.architecture) for entry in entries}) > 1
    return group_engines(entries) if "engine" in runtimes or is_mixed else {}


@contextlib.contextmanager
def holding_scope(source: Source, plan: Plan) -> Iterator[tuple[Scope, Connection, list[int]]]:
    """Yield the scope of an answer about the runs of a plan, a connection to the database with the runs, and the run
    ids.

    Raises like `holding_runs`, and UnsupportedError with the reasons if every run was refused.
    """
    with holding_runs(source, plan) as runs:
        scope = find_scope(runs)
        scope.check_evaluated()
        yield scope, runs.connection, list(runs.ids)


def widen(scope: Scope, selection: Selection) -> Scope:
    """Return the scope of stored runs, extended by how their hardware was selected."""
    return attrs.evolve(
        scope,
        omissions=tuple(find_left_out(selection, scope.projected)),
        spelling=selection.spelling,
        meanings=selection.meanings,
        budget=selection.budget,
        left_out=selection.left_out,
        unplugged=selection.unplugged,
        fallback_boundary=selection.fallback_boundary,
    )


def find_stored_scope(connection: Connection, run_ids: Sequence[int], reading: RunReading | None = None) -> Scope:
    """Return the scope of an answer about stored runs, with models and hardware read from the database."""
    from joulemap.domain.settings import Settings

    models, labels, runtimes = find_configurations(connection, run_ids)
    precisions = tuple(map(split_precision, labels))
    activations = tuple(dict.fromkeys(precision for precision, _ in precisions))
    return Scope(
        models=models,
        settings=Settings(precision=activations, runtime=runtimes),  # type: ignore[arg-type]
        precisions=tuple((precision, weights or precision) for precision, weights in precisions),
        **_find_of_runs(reading or RunReading(connection, tuple(run_ids))),
    )


def _find_single(runs: Iterable[Outline]) -> tuple[str, ...]:
    """Return the hardware for `Scope.single`."""
    sizes: dict[str, set[int]] = {}
    for run in runs:
        sizes.setdefault(run.hardware, set()).add(run.batch)
    is_mixed = any(len(found) > 1 for found in sizes.values())
    return tuple(sorted(name for name, found in sizes.items() if is_mixed and len(found) == 1))


def _find_of_runs(reading: RunReading) -> dict[str, Any]:
    connection, ids, runs = reading.connection, list(reading.ids), reading.outlines
    find = fetch if any(run.is_calibrated for run in runs.values()) else fetch_none
    return {
        "batches": tuple(sorted({run.batch for run in runs.values()})),
        "single": _find_single(runs.values()),
        "run_ids": tuple(ids),
        "refused": {run_id: run.refusal for run_id, run in runs.items() if run.refusal is not None},
        "refused_runs": tuple(find_refused(runs, reading.unavailable)),
        "projected": reading.unavailable,
        "caveats": reading.remarks,
        "changes": {run.configured_hardware: tuple(run.changes) for run in runs.values() if run.changes},
        "boxes": frozenset(run.configured_hardware for run in runs.values() if run.placement),
        "hosts": {
            # a host that only launches the kernels of a server's board adds no energy
            run.hardware: run.host if run.needs_host or run.host == NO_HOST else ""
            for run in runs.values()
            if run.needs_host or run.is_node_board
        },
        "fallen": reading.fallen,
        "omitted": _find_omitted(connection, [run_id for run_id, run in runs.items() if run.host == NO_HOST]),
        "doubts": _find_doubts(runs.values()),
        "calibrations": find(connection, StoredCalibration, run_ids=ids),
        "hardware": tuple(sorted({run.hardware for run in runs.values()})),
        "boundaries": tuple(sorted({run.boundary for run in runs.values()})),
        "at_wall": frozenset(run.hardware for run in runs.values() if run.boundary == SYSTEM),
        "assumed": find_assumed(connection, ids),
        "named": {run_id: run.configured_hardware for run_id, run in runs.items()},
        "fp32": describe_fp32(
            Fp32Run.of(run.architecture, run.vendor, run.hardware_precisions, run.matmul_precision, run.runtime)
            for run in runs.values()
            if run.precision == WIDE
        ),
        "uncalibrated_runs": {run_id: run.hardware for run_id, run in runs.items() if not run.is_calibrated},
    }


def _find_omitted(connection: Connection, ids: list[int]) -> tuple[Omitted, ...]:
    """Return the operators that runs without a host do not count; empty without such runs."""
    if not ids:
        return ()
    from joulemap.row.run import Omitted

    return tuple(fetch(connection, Omitted, run_ids=ids))


def _find_doubts(runs: Iterable[Outline]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the half-widths for `Scope.doubts`."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for run in runs:
        widths = found.setdefault(run.configured_hardware, {})
        for quantity, width, own in (
            ("latency", run.latency_half_width, run.latency_own_half_width),
            ("energy", run.energy_half_width, run.energy_own_half_width),
        ):
            if width is not None:
                widths[quantity] = max(widths.get(quantity, (0.0, 0.0)), (width, own or 0.0))
    return found
