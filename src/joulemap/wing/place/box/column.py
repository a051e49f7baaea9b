"""Model on a box as one run: the best placement for its mode's goal, with the parts' rows and lines merged.

    latency    parts, plus copies, which are added to the subgraph that makes the value
    interval   the placement's period, in proportion to latencies; every device draws static or idle power for it
    ledger     lines of the parts under the names of their devices, and one line per link that a copy crosses

As for chips, a run repeats without a pause: batches follow each other through the devices, and static power covers the
time between two of them. Devices side by side take whole batches: counts are those of the mean batch, times those of
the slowest device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics import (
    HOST_ACTION,
    STATIC_ACTION,
    ActionKey,
    Configuration,
    Floats,
    Hardware,
    Integers,
    RunColumns,
    WorkloadColumns,
)
from joulemap.physics.kernel import share_exactly
from joulemap.physics.law import join_laws
from joulemap.physics.run import (
    BANDWIDTH,
    DEVICES,
    ONE_BY_ONE,
    POWER_CAP,
    STAGE,
    LedgerColumns,
    OperatorColumns,
    SubgraphColumns,
)
from joulemap.system import FS_PER_S, define, frozen
from joulemap.wing.place.box.candidate import Candidate, list_candidates, refuse_all
from joulemap.wing.place.box.hardware import CONVERSIONS, IDLE, BoxHardware, device_key, link_key, reprice
from joulemap.wing.place.box.problem import Problem, build_problem, is_dynamic
from joulemap.wing.place.box.run import PlacedRun, list_conversions, run_placement
from joulemap.wing.place.record import Goal

LIMITS: Final = {
    "sequential execution": ONE_BY_ONE,
    "shared memory": BANDWIDTH,
    "power budget": POWER_CAP,
    "devices": DEVICES,
}
"""Limit of a placement -> limit of a run's throughput; other limits name a device, link or memory, a pipeline stage."""


@frozen(kw_only=True, eq=False)
class _Share:
    """Run of one device's part, weighted by the device's share of the batches."""

    run: RunColumns
    kind: str
    count: float
    """Fraction of the box's batches that the device computes; 1 if it has a part of each batch."""


@define
class Lines:
    """Builder of a box's ledger; each line has an operator, a row of the reference table, and a count."""

    hardware: BoxHardware
    operator: list[Integers] = attrs.field(factory=list)
    action: list[Integers] = attrs.field(factory=list)
    count: list[Floats] = attrs.field(factory=list)

    def add(self, operator: Integers, action: Integers, count: Floats) -> None:
        """Add ledger lines; lines with a count of zero are skipped."""
        some = count > 0.0
        self.operator.append(operator[some])
        self.action.append(action[some])
        self.count.append(count[some])

    def add_each(self, operator: Integers, key: ActionKey, count: Floats) -> None:
        """Add one line per operator for an action; do nothing if the box has no energy for the action."""
        position = self.hardware.reference.position(key)
        if position is not None:
            self.add(operator, np.full(len(operator), position), count)

    def close(self, hardware: BoxHardware) -> LedgerColumns:
        """Return the ledger at a box's energies per action; lines with equal operator and action are merged."""
        size = len(hardware.reference)
        key = np.concatenate(self.operator) * size + np.concatenate(self.action)
        distinct, index = np.unique(key, return_inverse=True)
        counts: Floats = np.bincount(index, weights=np.concatenate(self.count), minlength=len(distinct)).astype(float)
        action = distinct % size
        return LedgerColumns(
            operator_index=distinct // size,
            action_index=action,
            action_count=counts,
            energy_fj=np.rint(counts * np.array(hardware.reference.prices_fj)[action]).astype(np.int64),
        )


def evaluate_box(work: WorkloadColumns, hardware: BoxHardware, configuration: Configuration) -> RunColumns:
    """Return the run of a workload on a box at its best placement; `hardware.placement` of the run describes it.

    Raises UnsupportedError without a possible placement, UsageError for a missing link.
    """
    problem = build_problem(work, hardware.capped, hardware.list_members(configuration))
    return run_placed(hardware, configuration, place(problem, hardware.goal))


def place(problem: Problem, goal: Goal) -> Candidate:
    """Return the best placement for a goal, with batches that follow each other without a pause.

    Raises like `evaluate_box`.
    """
    candidates = list_candidates(problem, goal)
    best = min(candidates, key=lambda one: one.value(goal))
    if best.refusal:
        raise refuse_all(candidates, problem.box.id)
    if best.run is None:
        return best
    repeated = [
        attrs.evolve(one, run=run_placement(problem, one.run.devices, is_pipelined=True))
        for one in (candidates if goal == "energy" else [best])
        if one.run is not None
    ]
    return min(repeated, key=lambda one: one.run.energy_fj if one.run is not None else 0)


def run_placed(hardware: BoxHardware, configuration: Configuration, placed: Candidate) -> RunColumns:
    """Return the run of a placement that `place` found."""
    problem, run = placed.problem, placed.run
    hardware = attrs.evolve(hardware, placement=f"{placed.form} {placed.label}")
    busy = Counter(problem.members[number].device.name for number in placed.members)
    shares = _list_shares(placed, busy)
    slowest = max(shares, key=lambda one: one.run.latency_fs)
    shown = [one.run for one in (shares if run is not None else [slowest])]
    leaks = _list_leaks(hardware, busy)
    operators = _gather_operators(hardware, shown, leaks)
    subgraphs = _gather([one.subgraphs for one in shown], "subgraph_index")
    subgraphs["units_used_count"][:] = 1 if run is not None else len(placed.members)
    lines = Lines(hardware)
    if run is not None:
        _add_copies(run, operators, subgraphs, lines)
    latency_fs, interval_fs = placed.times_fs
    interval_fs = min(interval_fs, latency_fs)
    _divide_times(operators, subgraphs, latency_fs, interval_fs)
    _add_parts(hardware, shares, lines)
    for key in leaks:
        lines.add_each(operators["operator_index"].astype(np.int64), key, operators["interval_fs"] / FS_PER_S)
    priced = reprice(hardware, _find_factors(shares), leaks)
    ledger = lines.close(priced)
    return RunColumns(
        configuration=configuration,
        hardware=priced,
        units_total_count=hardware.units,
        peak_ops_per_s=_find_peak(problem),
        memory_bandwidth_bytes_per_s=hardware.memory_bandwidth.value,
        weight_bytes=sum(one.run.weight_bytes for one in shares),
        activation_bytes=sum(one.run.activation_bytes for one in shares),
        mac_count=sum(one.mac_count for one in shown),
        clock_fraction=1.0,
        clock_hz=hardware.clock.value,
        voltage_factor=1.0,
        uncapped_power_w=ledger.total_fj / interval_fs,
        throughput_limit=LIMITS.get(placed.limit if run is None else run.limit, STAGE),
        broken_laws=join_laws(one.run for one in shares),
        suppressed_s=sum(one.run.suppressed_s for one in shares),
        separate_clock_fraction=1.0,
        subgraphs=SubgraphColumns(**subgraphs),  # type: ignore[arg-type]
        operators=OperatorColumns(**operators),  # type: ignore[arg-type]
        ledger=ledger,
    )


def _divide_times(
    operators: dict[str, Integers | Floats],
    subgraphs: dict[str, Integers | Floats],
    latency_fs: int,
    interval_fs: int,
) -> None:
    """Divide latency and interval among operators by their times, and add up the latencies of subgraphs."""
    weights = operators["latency_fs"].astype(np.float64)
    whole = np.zeros(len(weights), dtype=np.int64)
    if int(operators["latency_fs"].sum()) != latency_fs:
        operators["latency_fs"] = share_exactly(np.array([latency_fs], dtype=np.int64), weights, whole)
    operators["interval_fs"] = share_exactly(np.array([interval_fs], dtype=np.int64), weights, whole)
    index = np.searchsorted(subgraphs["subgraph_index"], operators["subgraph_index"])
    subgraphs["latency_fs"] = np.zeros(len(subgraphs["subgraph_index"]), dtype=np.int64)
    np.add.at(subgraphs["latency_fs"], index, operators["latency_fs"])


def _list_shares(placed: Candidate, busy: Counter[str]) -> list[_Share]:
    """Return the parts of a placement; of identical devices side by side, one run stands for all.

    `busy` is device name -> number of devices with a part.
    """
    members = placed.problem.members
    if placed.run is not None:
        return [_Share(run=part, kind=members[at].device.name, count=1.0) for at, part in placed.run.parts.items()]
    runs = {members[number].device.name: run for number, run in placed.runs.items()}
    rates = {kind: busy[kind] / run.interval_fs for kind, run in runs.items()}
    return [
        _Share(run=next(iter(run.parts.values())), kind=kind, count=rates[kind] / sum(rates.values()))
        for kind, run in runs.items()
    ]


def _gather_operators(
    hardware: BoxHardware, runs: Sequence[RunColumns], leaks: Mapping[ActionKey, int]
) -> dict[str, Integers | Floats]:
    """Return the columns of all operators of the parts, in the order of the model.

    The energy of an operator that runs separately includes the static power of the whole box.
    """
    all_fj = sum(_price_fj(hardware, key) * count for key, count in leaks.items())
    parts = []
    for one in runs:
        more_fj = all_fj - _price_fj(one.hardware, STATIC_ACTION)
        leaked = np.rint(more_fj * one.operators.separate_latency_fs / FS_PER_S).astype(np.int64)
        parts.append(attrs.evolve(one.operators, separate_energy_fj=one.operators.separate_energy_fj + leaked))
    return _gather(parts, "operator_index")


def _price_fj(hardware: Hardware, key: ActionKey) -> float:
    """Return the energy of an action in femtojoules; 0 if the hardware has none."""
    position = hardware.reference.position(key)
    return 0.0 if position is None else hardware.reference.prices_fj[position]


def _gather(parts: Sequence[OperatorColumns | SubgraphColumns], by: str) -> dict[str, Integers | Floats]:
    """Return the concatenated columns of several parts, with rows sorted by the column `by`."""
    names = [field.name for field in attrs.fields(type(parts[0]))]
    columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    order = np.argsort(columns[by], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _add_copies(
    run: PlacedRun, operators: dict[str, Integers | Floats], subgraphs: dict[str, Integers | Floats], lines: Lines
) -> None:
    """Add the copies of a run: their times to the subgraph that makes the value, their links and conversions to the
    ledger.
    """
    problem = run.problem
    last = {index: row for row, index in enumerate(operators["subgraph_index"].tolist())}
    for copy in run.copies:
        operators["latency_fs"][last[copy.subgraph]] += copy.latency_fs
        subgraphs["launch_s"][np.searchsorted(subgraphs["subgraph_index"], copy.subgraph)] += copy.latency_fs / FS_PER_S
        receiver = problem.members[copy.end]
        at = operators["operator_index"][[last[copy.subgraph]]].astype(np.int64)
        for hop in problem.ways[copy.start, copy.end]:
            if hop.s_per_byte:
                lines.add_each(at, link_key(hop.name), np.array([copy.byte_count]))
        for action, amount in list_conversions(problem, copy):
            key = device_key(receiver.device.name, ("dram", CONVERSIONS[action]))
            lines.add_each(at, key, np.array([amount]))


def _find_peak(problem: Problem) -> float:
    """Return the sum of the devices' peaks, each at the precision that the device uses."""
    asked = ((one.hardware, one.configuration) for one in problem.members)
    return sum(hardware.product_rate(own.precision, own.weight_precision, own.runtime) for hardware, own in asked)


def _add_parts(hardware: BoxHardware, shares: list[_Share], lines: Lines) -> None:
    """Add the ledger lines of dynamic energy of the devices' parts, under the names of the devices."""
    for one in shares:
        reference, ledger = one.run.hardware.reference, one.run.ledger
        kept = is_dynamic(one.run)
        rows = np.array([hardware.reference.position(device_key(one.kind, row.key)) for row in reference])
        action = rows[ledger.action_index[kept]].astype(np.int64)
        lines.add(ledger.operator_index[kept], action, ledger.action_count[kept] * one.count)


def _list_leaks(hardware: BoxHardware, busy: Counter[str]) -> dict[ActionKey, int]:
    """Return static-power or idle-power action -> number of devices that draw it; a host counts as one.

    `busy` is device name -> number of devices with a part.
    """
    component, static = STATIC_ACTION
    counts = {HOST_ACTION: 1}
    for device in hardware.box.devices:
        at_work = busy[device.name]
        counts[device_key(device.name, (component, static))] = at_work
        counts[device_key(device.name, (component, IDLE))] = device.count - at_work
    return {key: count for key, count in counts.items() if count}


def _find_factors(shares: list[_Share]) -> dict[str, float]:
    """Return device name -> factor by which voltage scales its on-chip energy, averaged over its parts by energy."""
    energies: dict[str, tuple[float, float]] = {}
    for one in shares:
        reference, ledger = one.run.hardware.reference, one.run.ledger
        prices = np.where(reference.on_chip, reference.prices_fj, 0.0)
        full_fj = float((ledger.action_count * prices[ledger.action_index]).sum()) * one.count
        whole, spent = energies.get(one.kind, (0.0, 0.0))
        energies[one.kind] = whole + full_fj, spent + full_fj * one.run.voltage_factor
    return {kind: spent / whole if whole else 1.0 for kind, (whole, spent) in energies.items()}
