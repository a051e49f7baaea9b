"""Scope of an answer: its models and runs, and the notes that a reader needs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer import text
from joulemap.answer.assumed import is_whole, show_assumed
from joulemap.answer.layout import shorten
from joulemap.answer.product import Fp32Run, Meaning, describe_fp32
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.configuration import BOARD, MEASURED_HOST, NO_HOST, SYSTEM
from joulemap.domain.engine import group_engines, has_framework, is_deployed
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.product import FP32 as WIDE
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import find_weight_format, label_precision, split_precision
from joulemap.plan.hold import StoredRuns, holding_runs
from joulemap.plan.run import Plan
from joulemap.plan.selection import Selection
from joulemap.plan.source import Source
from joulemap.present.cell import mark_projected
from joulemap.present.document import EnergyCell, Text
from joulemap.row.calibration import StoredCalibration
from joulemap.row.model import Caveat
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, fetch_none
from joulemap.store.reading import RunReading
from joulemap.store.run import (
    AssumedEnergy,
    Outline,
    find_assumed,
    find_configurations,
    find_launches,
)
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.plan.budget import Budget
    from joulemap.row.run import Fallback, Omitted, PluggedHardware


SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which the share is displayed as zero."""


SHOWN_LEFT_OUT: Final = 3
"""Maximum chips named as omitted by a power budget; machine formats list all chips."""


FEW: Final = 0.8
"""Credibility of a calibration below which a note states that it has few measurements."""

SHOWN_ENGINES: Final = 2
"""Maximum inference engines named in a note; machine formats list all engines."""

SHOWN_PER_ENGINE: Final = 3
"""Maximum chips named per inference engine."""


SHOWN_CHANGES: Final = 3
"""Maximum groups of chips with changed numbers named in a heading; the notes name the others."""

SHOWN_NUMBERS: Final = 6
"""Maximum changed numbers named per chip; a design from a file has dozens."""


DOUBTED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "energy": ("energy",),
    "efficiency": ("energy",),
    "latency": ("latency",),
    "throughput": ("latency",),
    "edp": ("latency", "energy"),
    "power": ("latency", "energy"),
}
"""Metric -> quantities (`energy`, `latency`) that its uncertainty comes from."""

FP32: Final = re.compile(r"(?<=[ ,])fp32(?=[,:]| and |$)")
"""Pattern of `fp32` in a title that lacks a description of its arithmetic."""


@frozen(kw_only=True)
class Scope:
    """Models, runs and hardware of an answer, with the facts that its notes state."""

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
    spelling: Mapping[str, str] = attrs.field(factory=dict)
    """Displayed name of hardware from a file -> name that commands use for it."""
    meanings: Mapping[str, str] = attrs.field(factory=dict)
    """Class that the caller named -> hardware that represents it."""
    budget: Budget | None = None
    """Power budget, which limits the power modes of hardware; None without a budget."""
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware omitted because every power mode exceeds the budget -> its lowest power, as `at least 75 W`."""
    unplugged: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware that lacks the requested boundary -> reason."""
    fallback_boundary: str = ""
    """Boundary used for the hardware in `unplugged`; empty if that hardware is omitted."""
    plugged: tuple[PluggedHardware, ...] = ()
    """Hardware of the runs with energies at the boundary `system` (wall plug)."""
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
    launches: tuple[tuple[str, str, bool, float], ...] = ()
    """Launch times of eager runs as (hardware, host, whether hardware has a link to a host, seconds per launch)."""
    placements: Mapping[str, str] = attrs.field(factory=dict)
    """Box at its power mode -> text on how its runs are placed on its devices."""
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

    @property
    def at_wall(self) -> frozenset[str]:
        """Hardware with energies at the wall plug. These energies include a host."""
        return frozenset(one.hardware for one in self.plugged)

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
    def title(self) -> str:
        """Models, batch sizes, precisions and runtimes on one line."""
        return text.TITLE(
            models=self.models,
            batches=list(map(str, self.batches)),
            precisions=[label_precision(*pair) for pair in self.precisions],
            runtimes=self.settings.runtime,
        )

    def describe_runtime(self) -> str:
        """Return the precisions and runtimes of the runs."""
        precisions = [label_precision(*pair) for pair in self.precisions]
        return text.RUNTIME(precisions=precisions, runtimes=self.settings.runtime)

    def bounded(self, title: str, beside: str = "") -> str:
        """Insert the boundary of the energies, `beside`, hosts and changed numbers into a title, before any colon."""
        subject, colon, rest = self._mark_fp32(title).partition(": ")
        is_mixed = self.fallback_boundary == BOARD and len(self.boundaries) > 1
        changes = self.describe_changes()
        hidden = len(changes) - SHOWN_CHANGES
        return text.BOUNDED(
            subject=subject,
            boundaries=[f"{one}{beside}" for one in ([text.WALL_ELSE_BOARD] if is_mixed else self.boundaries)],
            hosts=[
                text.DEVICE_ONLY if host == NO_HOST else text.WITH_HOST(host=host)
                for host in dict.fromkeys(filter(None, self.hosts.values()))
            ],
            changes=[*changes[:SHOWN_CHANGES], *([text.MORE_CHANGED(count=hidden)] if hidden > 0 else [])],
            rest=f"{colon}{rest}",
        )

    def _mark_fp32(self, title: str) -> str:
        """Add what it computes in to `fp32` in a title; return the title.

        If the title does not name fp32, the addition is appended, but only if fp32 is the only precision.
        """
        if not self.fp32.title:
            return title
        name = text.FP32(products=self.fp32.title)
        marked, count = FP32.subn(name, title, count=1)
        if count or self.precisions != (("fp32", "fp32"),):
            return marked
        subject, colon, rest = title.partition(": ")
        return f"{subject}, {name}{colon}{rest}"

    @property
    def set_constants(self) -> frozenset[str]:
        """Names of the constants that `--set` changes; a command that sets one of them again would be refused."""
        return frozenset(name.rpartition(":")[2] for name in self.settings.changes)

    def describe_changes(self) -> list[str]:
        """Return one text per group of hardware with the same changed numbers."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for hardware, numbers in self.changes.items():
            groups.setdefault(numbers, []).append(self.mark(hardware))
        return [text.CHANGED(hardware=names, numbers=_shorten(numbers)) for numbers, names in groups.items()]

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
        return not set(hardware) & set(self.placements)

    def spell(self, hardware: str) -> str:
        """Return the name that a command uses for a displayed chip name."""
        return self.spelling.get(hardware, hardware)

    def describe_left_out(self) -> tuple[Text, ...]:
        """Return a line for below a table: how much hardware was omitted, and one reason of each kind."""
        unsupported = self.describe_unsupported()
        if self.left_out and self.budget is not None:
            name, reason = next(iter(self.left_out.items()))
            example = text.EXAMPLE if len(self.left_out) > 1 else ""
            values = {"count": len(self.left_out), "example": example, "first": self.mark(name), "reason": reason}
            unsupported.append(text.BEYOND_BUDGET(budget=self.budget.limit, **values))
        return (Text(text.LEFT_OUT(reasons="; ".join(unsupported))),) if unsupported else ()

    def count_left_out(self) -> tuple[Text, ...]:
        """Return a line for below a table whose answer has each reason among its notes: how much hardware was omitted,
        with the reason if it is the only one.
        """
        beyond = len(self.left_out) if self.budget is not None else 0
        if len(self.refusals) + beyond < 2:
            return self.describe_left_out()
        refused = [text.REFUSED_COUNT(count=len(self.refused))] if self.refused else []
        over = [text.BEYOND_COUNT(count=beyond, budget=self.budget.limit)] if beyond and self.budget else []
        return (Text(text.LEFT_OUT(reasons=", ".join((*refused, *over)))),)

    def describe_unsupported(self) -> list[str]:
        """Return the count of unsupported configurations, with the reasons or an example; empty if there is none."""
        if not self.refused:
            return []
        chips = {HardwareRef.read(self.named[run_id]).label for run_id in self.refused if run_id in self.named}
        has_all = len(self.refusals) <= text.MOST_REASONS
        reasons = [self.mark(reason) for reason in (self.refusals if has_all else self.refusals[:1])]
        if len(reasons) > 1:  # without the alternatives of each chip
            reasons = [reason.partition("; it has ")[0] for reason in reasons]
        return [
            text.REFUSED(
                count=len(self.refused),
                chips=len(chips) if len(chips) < len(self.refused) else None,
                example="" if has_all else text.EXAMPLE,
                reasons="; ".join(reasons),
            )
        ]

    def describe_settings(self) -> list[str]:
        """Return the notes that no rule of `joulemap.ask` makes yet: how weights are stored, placements, power budgets,
        the boundary, launches, engines and calibrations.
        """
        weights = (find_weight_format(*pair) for pair in self.precisions)
        formats = dict.fromkeys(one.describe() for one in weights if one is not None)
        return [
            *([text.WEIGHTS(formats="; ".join(formats))] if formats else []),
            *(text.PLACED(hardware=name, placement=change) for name, change in self.placements.items()),
            *self._describe_budget(),
            *self._describe_plugged(),
            *self._describe_launches(),
            *self._describe_engines(),
            *(line for row in self.calibrations for line in describe_calibration(row, self.hardware)),
        ]

    def _describe_budget(self) -> list[str]:
        if self.budget is None:
            return []
        chips: dict[str, str] = {}  # a chip without a mode is listed once, at its lowest power
        for name, reason in self.left_out.items():
            chips.setdefault(HardwareRef.read(name).label, reason)
        lines = [text.REASON(hardware=self.mark(name), reason=reason) for name, reason in chips.items()]
        more = max(0, len(lines) - SHOWN_LEFT_OUT) or None
        no_mode = text.NO_MODE(budget=self.budget.limit, names=lines[:SHOWN_LEFT_OUT], more=more)
        told_budget = text.MEAN_BUDGET if self.budget.is_mean else text.BUDGET
        return [told_budget(budget=self.budget), *([no_mode] if lines else [])]

    def _describe_plugged(self) -> list[str]:
        """Return the notes on the boundary `system`; empty for answers at another boundary."""
        if not self.plugged and not self.unplugged:
            return []
        from joulemap.answer.surrounding import describe_plugged

        return describe_plugged(self.plugged, self.unplugged, self.fallback_boundary, self.mark)

    def _describe_launches(self) -> list[str]:
        """Return sentences on the host that launches kernels in the runtime `eager`, with the time per launch."""
        groups: dict[tuple[str, float, str], list[str]] = {}
        for hardware, host, has_link, seconds in self.launches:
            key = (
                host or (MEASURED_HOST if has_link else text.BESIDE),
                seconds,
                "" if host or not has_link else text.OTHER_HOST,
            )
            groups.setdefault(key, []).append(self.mark(hardware))
        return [
            text.LAUNCHED(host=host, hardware=names, seconds=seconds, how=how)
            for (host, seconds, how), names in groups.items()
        ]

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
        return text.POWER(power=power_w, host=text.AND_HOST if is_alone else "")

    def _describe_engines(self) -> list[str]:
        if not self.engines:
            return []
        by_engine = {
            engine: text.ENGINE_ON(engine=engine, hardware=shorten(list(map(self.mark, names)), SHOWN_PER_ENGINE))
            for engine, names in self.engines.items()
        }
        if "engine" in self.settings.runtime:
            return [text.ENGINES(engines="; ".join(shorten(list(by_engine.values()), SHOWN_ENGINES, text.ENGINE_NOUN)))]
        nouns = {False: text.COMPILER_NOUN, True: text.ENGINE_NOUN}
        own, deployed = (
            "; ".join(
                shorten(
                    [line for engine, line in by_engine.items() if is_deployed(engine) == kind],
                    SHOWN_ENGINES,
                    nouns[kind],
                )
            )
            for kind in (False, True)
        )
        return [text.COMPILERS(own=own, deployed=deployed)]

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
            "left_out": {**self.left_out, **({} if self.fallback_boundary else self.unplugged)},
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


def _shorten(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the first changed numbers of one chip, and a count of the others."""
    hidden = len(numbers) - SHOWN_NUMBERS
    return (*numbers[:SHOWN_NUMBERS], text.MORE_NUMBERS(count=hidden)) if hidden > 1 else tuple(numbers)


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
    if all("engine=" in model.request.model for model in plan.models):
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


def _find_plugged(connection: Connection, ids: list[int]) -> tuple[PluggedHardware, ...]:
    from joulemap.row.run import PluggedHardware

    return fetch(connection, PluggedHardware, run_ids=ids).rows


def _find_of_runs(reading: RunReading) -> dict[str, Any]:
    connection, ids, runs = reading.connection, list(reading.ids), reading.outlines
    find = fetch if any(run.is_calibrated for run in runs.values()) else fetch_none
    return {
        "batches": tuple(sorted({run.batch for run in runs.values()})),
        "single": _find_single(runs.values()),
        "run_ids": tuple(ids),
        "refused": {run_id: run.refusal for run_id, run in runs.items() if run.refusal is not None},
        "projected": reading.unavailable,
        "caveats": reading.remarks,
        "changes": {run.configured_hardware: tuple(run.changes) for run in runs.values() if run.changes},
        "placements": _find_placements(runs.values()),
        "hosts": {
            # a host that only launches the kernels of a server's board adds no energy
            run.hardware: run.host if run.needs_host or run.host == NO_HOST else ""
            for run in runs.values()
            if run.needs_host or run.is_node_board
        },
        "launches": find_launches(connection, ids) if any(run.runtime == "eager" for run in runs.values()) else (),
        "fallen": reading.fallen,
        "omitted": _find_omitted(connection, [run_id for run_id, run in runs.items() if run.host == NO_HOST]),
        "doubts": _find_doubts(runs.values()),
        "calibrations": find(connection, StoredCalibration, run_ids=ids),
        "hardware": tuple(sorted({run.hardware for run in runs.values()})),
        "boundaries": tuple(sorted({run.boundary for run in runs.values()})),
        "plugged": _find_plugged(connection, ids) if any(run.boundary == SYSTEM for run in runs.values()) else (),
        "assumed": find_assumed(connection, ids),
        "named": {run_id: run.configured_hardware for run_id, run in runs.items()},
        "fp32": describe_fp32(
            Fp32Run.of(run.architecture, run.vendor, run.hardware_precisions, run.matmul_precision, run.runtime)
            for run in runs.values()
            if run.precision == WIDE
        ),
        "uncalibrated_runs": {run_id: run.hardware for run_id, run in runs.items() if not run.is_calibrated},
    }


def _find_placements(runs: Iterable[Outline]) -> dict[str, str]:
    """Return the texts for `Scope.placements`."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.placement:
            form, _, devices = run.placement.rpartition(" ")
            placed = text.PLACED_ON(form=form, devices=devices)
            found.setdefault(run.configured_hardware, {})[placed] = None
    return {name: " or ".join(placements) for name, placements in found.items()}


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


def describe_calibration(row: StoredCalibration, hardware: Collection[str]) -> list[str]:
    """Return the origin, data and errors of a calibration, if any of this hardware uses it."""
    errors = {"latency": row.latency_error_fraction, "energy": row.energy_error_fraction}
    lines = [text.ERROR(error=error, quantity=name) for name, error in errors.items() if error is not None]
    fit = text.FIT(row, errors=lines, held_out=text.HELD_OUT if lines and row.family_count > 1 else "")
    is_own = row.hardware in hardware
    verb = "uses" if len(row.inheritors) == 1 else "use"
    inherited = text.INHERITED(row=row, verb=verb, place=None if is_own else row.place, fit=fit)
    return [
        *([text.CALIBRATED(row=row, fit=fit), *describe_weight(row)] if is_own else []),
        *([inherited] if row.inheritors else []),
    ]


def describe_weight(row: StoredCalibration) -> list[str]:
    """Return how far a calibration with few measurements is trusted; empty if it has many."""
    shares = {"time": row.latency_credibility_fraction, "energy": row.energy_credibility_fraction}
    weights = [text.WEIGHT_IN(share=share, quantity=name) for name, share in shares.items() if 0.0 < share < FEW]
    if not weights or row.most_moved is None or row.most_moved_ratio is None:
        return []
    farthest = max(row.most_moved_ratio, 1.0 / row.most_moved_ratio) - 1.0
    return [text.WEIGHT(row, weights=weights, farthest=farthest)]
