"""Totals and own errors of the passes of several deployments, evaluated together.

    (deployment, passes), ... ─► folded workloads x chips under their engines ─► totals, and half-widths of each pass

Deployments of one model share its workloads, and deployments on one chip with one engine share the chip under it, so
that a table of models and chips costs a fraction of what its cells cost one by one.

For measured rows, what the engine's thinly measured numbers add is found alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from joulemap.bundle import load_chips
from joulemap.physics import (
    MODEL,
    Case,
    Configuration,
    Evaluator,
    Floats,
    Hardware,
    PointColumns,
    PointErrors,
    RunColumns,
    Total,
    WorkloadColumns,
    evaluate_together,
    stack_totals,
)
from joulemap.physics.interval.error_scale import find_peak, find_thin_bounds
from joulemap.physics.interval.half_width import find_moving_width
from joulemap.physics.kernel import FEW, KernelColumns
from joulemap.physics.kind import Kinds
from joulemap.physics.pipeline import Gathering
from joulemap.physics.sum import Patterns
from joulemap.system import define, frozen
from joulemap.wing.decoder import ANSWER, VERIFIED, Asked, pass_columns

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads


KnownChips = dict[tuple[int, str], "tuple[Hardware, ...]"]
"""(identity of a chip, word of an engine on a kind of pass) -> chip under the engine in each way to run the pass."""


@frozen(kw_only=True)
class OwnError:
    """Half-widths that the numbers of one chip and engine add to the logarithms of a pass's time and energy."""

    latency: float
    """Part of the time that is due to uncertain numbers of the chip."""
    energy: float
    """Part of the energy that is due to uncertain numbers of the chip."""
    thin: float
    """Part of both that thinly measured numbers of the engine add."""


@define(kw_only=True, eq=False)
class PassErrors:
    """Own errors of the passes of one deployment on one of its devices, kept for the next question."""

    deployment: Deployment
    calibration: str = ""
    """Digest of the calibration of the chip; empty without one."""

    known: dict[Asked, OwnError] = attrs.field(factory=dict, init=False)
    _chips: dict[str, tuple[Hardware, ...]] = attrs.field(factory=dict, init=False)

    @cached_property
    def configuration(self) -> Configuration:
        """Configuration of a pass on one device."""
        one = self.deployment
        return Configuration(
            hardware=one.hardware.id,
            precision=one.precision,
            runtime=one.stack.runtime,
            weight_precision=one.weight_precision or one.precision,
        )

    @cached_property
    def errors(self) -> PointErrors:
        """Known errors, with what was found for the chips of this deployment."""
        known = load_chips().errors
        return PointErrors(known.doubt, known.held_out)

    def list_chips(self, asked: Asked, shared: KnownChips | None = None) -> tuple[Hardware, ...]:
        """Return the chip under the engine in each way that it may run a pass; `shared` has those of others."""
        under, whole = self.deployment.put_under(asked), self.deployment.unlimited
        word = under.word
        if word not in self._chips:
            shared = {} if shared is None else shared
            key = id(self.deployment.hardware), word
            if key not in shared:
                shared[key] = tuple(under.take(way, whole) for way in under.list_ways(whole))
            self._chips[word] = shared[key]
        return self._chips[word]

    def describe(self, asked: Sequence[Asked]) -> Sequence[WorkloadColumns]:
        """Return workloads of passes, with all layers if the chip's compiler may leave some of them to a host."""
        one = self.deployment
        if one.hardware.compiler is None or one.decoder.is_traced:
            return one.workloads.describe(asked).works
        columns = pass_columns(one.decoder, asked)
        return [columns[each] for each in asked]


@frozen(kw_only=True)
class PassRow:
    """One way of a deployment to run a pass."""

    owner: PassErrors
    asked: Asked
    work: WorkloadColumns
    chip: Hardware

    @property
    def case(self) -> Case:
        """Chip and configuration, as errors are known for them."""
        step, _ = self.asked
        return Case(
            hardware=self.chip,
            configuration=self.owner.configuration,
            work=MODEL if step.tokens > VERIFIED else ANSWER.name,  # most attention of a decode step is of few tokens
            calibration=self.owner.calibration,
        )


def find_errors(each: Iterable[tuple[PassErrors, Sequence[Asked]]]) -> None:
    """Find the own errors of passes that are not known yet, and their totals, which `Deployment.price` then reads."""
    shared: KnownChips = {}
    rows: list[PassRow] = []
    for owner, asked in each:
        missing = [one for one in dict.fromkeys(asked) if one not in owner.known]
        for one, work in zip(missing, owner.describe(missing) if missing else (), strict=True):
            rows += [PassRow(owner=owner, asked=one, work=work, chip=chip) for chip in owner.list_chips(one, shared)]
    numbers: dict[int, int] = {}
    for row in rows:
        numbers.setdefault(id(row.work), len(numbers))
    gathering = Gathering()
    groups: dict[int, list[PassRow]] = {}
    for row in rows:
        groups.setdefault(numbers[id(row.work)] // FEW, []).append(row)
    for some in groups.values():
        _find_errors(some, gathering)


def _find_errors(rows: Sequence[PassRow], gathering: Gathering) -> None:
    """Find the own errors and totals of passes in all of their ways."""
    points = evaluate_rows(rows, gathering)
    cases: dict[tuple[object, ...], tuple[int, Case]] = {}
    of_case = []
    for row in rows:
        case = row.case
        key = id(row.chip), case.configuration, case.work, case.calibration
        of_case.append(cases.setdefault(key, (len(cases), case))[0])
    widths = rows[0].owner.errors.find_half_widths(
        points, [case for _, case in cases.values()], np.array(of_case, dtype=np.int64)
    )
    numbers = np.stack([widths.latency_own, widths.energy_own, widths.thin], axis=1).tolist()
    ways: dict[tuple[PassErrors, Asked], list[int]] = {}
    for number, row in enumerate(rows):
        ways.setdefault((row.owner, row.asked), []).append(number)
    latency = points.latency_fs.tolist()
    for mine in ways.values():
        row = rows[mine[0]]
        latency_own, energy_own, thin = numbers[min(reversed(mine), key=latency.__getitem__)]
        row.owner.known[row.asked] = OwnError(latency=latency_own, energy=energy_own, thin=thin)
        _keep_total(row, points, min(mine, key=latency.__getitem__), mine)


def evaluate_rows(rows: Sequence[PassRow], gathering: Gathering) -> PointColumns:
    """Return the points of rows. A run whose sums exceed 64 bits has a ledger, which needs each layer of the pass."""
    evaluators: dict[int, Evaluator] = {}
    places: dict[int, int] = {}
    cells = []
    for row in rows:
        key, configuration = id(row.work), row.owner.configuration
        if key not in evaluators:
            places[key], evaluators[key] = len(evaluators), Evaluator(row.work, gathering=gathering)
        _weigh_patterns(evaluators[key].form(configuration, configuration.runtime))
        cells.append((places[key], row.chip, configuration))
    runs = evaluate_together(list(evaluators.values()), cells)
    for number, (row, run) in enumerate(zip(rows, runs, strict=True)):
        if isinstance(run, RunColumns) and row.work.times is not None:
            whole = pass_columns(row.owner.deployment.decoder, [row.asked])[row.asked]
            (runs[number],) = Evaluator(whole).evaluate_totals([(row.chip, row.owner.configuration)])
    return stack_totals(runs)


def _keep_total(row: PassRow, points: PointColumns, fastest: int, ways: Sequence[int]) -> None:
    """Keep the total of a pass in the fastest way. Refusals, and whatever a host may run, are left to `Deployment`."""
    totals = row.owner.deployment.totals
    if totals is None or row.chip.compiler is not None or any(points.refusal[way] for way in ways):
        return
    totals.setdefault(
        row.asked,
        Total(
            latency_fs=int(points.latency_fs[fastest]),
            interval_fs=int(points.interval_fs[fastest]),
            energy_fj=int(points.energy_fj[fastest]),
            clock_fraction=float(points.clock_fraction[fastest]),
            weight_bytes=int(points.weight_bytes[fastest]),
            activation_bytes=int(points.activation_bytes[fastest]),
            mac_count=int(points.mac_count[fastest]),
        ),
    )


def _weigh_patterns(kernels: KernelColumns) -> None:
    """Count each subgraph of a folded pass as often as it occurs in the whole pass.

    Patterns of a folded pass count its layers once, but the share of a time that a number of the chip sets needs all of
    them.
    """
    if kernels.times is None or ("patterns",) in kernels.memo:
        return
    row, owner = Kinds.of(kernels).row, kernels.work.subgraph_index
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(owner[order]) != 0))
    occurrences = kernels.times[kernels.kernel_index][order][starts].astype(np.int64).tolist()
    counts: dict[tuple[int, ...], int] = {}
    for some, count in zip(np.split(row[order], starts[1:]), occurrences, strict=True):
        pattern = tuple(some.tolist())
        counts[pattern] = counts.get(pattern, 0) + count
    lengths = [len(pattern) for pattern in counts]
    kernels.memo["patterns",] = Patterns(
        row=np.array([index for pattern in counts for index in pattern], dtype=np.int64),
        owner=np.repeat(np.arange(len(counts)), lengths),
        starts=np.cumsum([0, *lengths])[:-1].astype(np.int64),
        times=np.array(list(counts.values()), dtype=np.int64),
    )


def find_thin_widths(passes: Sequence[tuple[Deployment, Asked]]) -> Floats:
    """Return the half-width of the natural logarithm of the time of each pass of a deployment that its thinnest number
    adds.

    A number counts if it sets a tenth of the time. Passes of several deployments are evaluated together, which is
    fastest if these share their workloads. A pass that its chip cannot run has 0.
    """
    chips: dict[tuple[Deployment, str], tuple[Hardware, tuple[float, float, float]]] = {}
    places: dict[tuple[PassWorkloads, Asked], int] = {}
    evaluators: list[Evaluator] = []
    cells: list[tuple[int, Hardware, Configuration]] = []
    rows: list[int] = []
    known: list[tuple[float, float, float]] = []
    for row, (deployment, asked) in enumerate(passes):
        under = deployment.put_under(asked)
        key = deployment, under.word
        if key not in chips:
            chip = under.take(under.list_ways(deployment.unlimited)[0], deployment.unlimited)
            chips[key] = chip, _find_bounds(chip, deployment.precision)
        chip, bounds = chips[key]
        if not any(bounds):
            continue
        place = deployment.workloads, asked
        if place not in places:
            places[place] = len(evaluators)
            evaluators.append(Evaluator(deployment.workloads.describe([asked]).works[0]))
        configuration = Configuration(
            hardware=chip.id,
            precision=deployment.precision,
            runtime=deployment.stack.runtime,
            weight_precision=deployment.weight_precision,
        )
        cells.append((places[place], chip, configuration))
        rows.append(row)
        known.append(bounds)
    widths = np.zeros(len(passes))
    if rows:
        shares = stack_totals(evaluate_together(evaluators, cells)).share_fs.astype(np.float64)
        times = shares.sum(axis=1)
        widths[rows] = np.where(times > 0.0, find_moving_width(shares, np.array(known), times), 0.0)
    return widths


def _find_bounds(chip: Hardware, precision: str) -> tuple[float, float, float]:
    """Return what thin numbers of a chip under an engine add to times bound by compute, memory and launches."""
    known = {name: one.evidence for name, one in chip.quantities() if one.evidence is not None}
    return find_thin_bounds(known, find_peak(chip.architecture, precision))
