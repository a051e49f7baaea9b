"""Model on a box as one run: the best placement for its mode's goal, with the parts' rows and lines merged.

    latency    parts, plus copies, which are added to the subgraph that makes the value
    interval   the placement's period, in proportion to latencies; every device draws static or idle power for it
    ledger     lines of the parts under the names of their devices, and one line per link that a copy crosses

As for chips, a run repeats without a pause: batches follow each other through the devices, and static power covers the
time between two of them. Devices side by side take whole batches: counts are those of the mean batch, times those of
the slowest device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics.kernel import share_exactly
from joulemap.physics.law import join_laws
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION, ActionKey
from joulemap.physics.run import (
    BANDWIDTH,
    DEVICES,
    ONE_BY_ONE,
    POWER_CAP,
    STAGE,
    OperatorColumns,
    RunColumns,
    SubgraphColumns,
)
from joulemap.physics.workload import Floats, Integers, WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S
from joulemap.wing.place.box.candidate import Candidate, list_candidates
from joulemap.wing.place.box.hardware import CONVERSIONS, IDLE, BoxHardware, device_key, link_key, reprice
from joulemap.wing.place.box.line import Copy, Lines, keep_bytes
from joulemap.wing.place.box.member import find_ways
from joulemap.wing.place.box.problem import Problem, build_problem, converts, is_dynamic
from joulemap.wing.place.box.run import PlacedRun, run_placement

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


def evaluate_box(work: WorkloadColumns, hardware: BoxHardware, configuration: Configuration) -> RunColumns:
    """Return the run of a workload on a box at its best placement; `hardware.placement` of the run describes it.

    Raises UnsupportedError without a possible placement, UsageError for a missing link.
    """
    problem = build_box_problem(work, hardware, configuration)
    return run_placed(problem, hardware, configuration, place(problem, hardware))


def build_box_problem(work: WorkloadColumns, hardware: BoxHardware, configuration: Configuration) -> Problem:
    """Return the placement problem of a workload on the devices of a box; raises like `evaluate_box`."""
    members = hardware.list_members(configuration)
    return build_problem(work, members, find_ways(hardware.box, members))


def place(problem: Problem, hardware: BoxHardware) -> Candidate:
    """Return the best placement for the goal of a box's mode, with batches that follow each other without a pause.

    Raises like `evaluate_box`.
    """
    box = hardware.capped
    candidates = list_candidates(problem, box, hardware.goal)
    best = min(candidates, key=lambda one: one.value(hardware.goal))
    if best.refusal:
        reasons = "; ".join(f"{one.label}: {one.refusal.text}" for one in candidates if one.refusal is not None)
        names = tuple(one.label for one in candidates)
        raise UnsupportedError(f"{box.id}: {reasons}", code="no_placement", hardware=box.id, placements=names)
    if best.run is None:
        return best
    repeated = [
        attrs.evolve(one, run=run_placement(problem, box, one.run.devices, is_pipelined=True))
        for one in (candidates if hardware.goal == "energy" else [best])
        if one.run is not None
    ]
    return min(repeated, key=lambda one: one.run.energy_fj if one.run is not None else 0)


def run_placed(problem: Problem, hardware: BoxHardware, configuration: Configuration, placed: Candidate) -> RunColumns:
    """Return the run of a placement that `place` found."""
    named = attrs.evolve(hardware, placement=f"{placed.form} {placed.label}")
    if placed.run is None:
        return _mix_batches(problem, named, configuration, placed)
    return _join_parts(problem, named, configuration, placed.run)


def _join_parts(problem: Problem, hardware: BoxHardware, configuration: Configuration, run: PlacedRun) -> RunColumns:
    shares = [
        _Share(run=part, kind=problem.members[number].device.name, count=1.0) for number, part in run.parts.items()
    ]
    busy = {kind: sum(problem.members[at].device.name == kind for at in run.parts) for kind in problem.kinds}
    operators, subgraphs = _gather_operators(hardware, shares, busy), _gather_subgraphs(shares)
    last = {index: row for row, index in enumerate(operators["subgraph_index"].tolist())}
    for copy in run.copies:
        operators["latency_fs"][last[copy.subgraph]] += copy.latency_fs
        subgraphs["launch_s"][np.searchsorted(subgraphs["subgraph_index"], copy.subgraph)] += copy.latency_fs / FS_PER_S
    lines = Lines(hardware)
    for copy in run.copies:
        _add_copy(problem, lines, int(operators["operator_index"][last[copy.subgraph]]), copy)
    return _close(
        hardware,
        configuration,
        shares,
        operators,
        subgraphs,
        lines,
        latency_fs=max(run.latency_fs, run.period_fs),
        interval_fs=run.period_fs,
        mac_count=sum(one.run.mac_count for one in shares),
        limit=LIMITS.get(run.limit, STAGE),
        busy=busy,
    )


def _mix_batches(problem: Problem, hardware: BoxHardware, configuration: Configuration, best: Candidate) -> RunColumns:
    kinds = {name: len(members) for name, members in problem.kinds.items() if members[0] in best.members}
    runs = {name: best.runs[problem.kinds[name][0]] for name in kinds}
    rates = {name: count / runs[name].interval_fs for name, count in kinds.items()}
    shares = [
        _Share(run=next(iter(run.parts.values())), kind=name, count=rates[name] / sum(rates.values()))
        for name, run in runs.items()
    ]
    slowest = max(shares, key=lambda one: one.run.latency_fs)
    operators, subgraphs = _gather_operators(hardware, [slowest], kinds), _gather_subgraphs([slowest])
    subgraphs["units_used_count"][:] = sum(kinds.values())
    return _close(
        hardware,
        configuration,
        shares,
        operators,
        subgraphs,
        Lines(hardware),
        latency_fs=round(best.latency_s * FS_PER_S),
        interval_fs=round(best.interval_s * FS_PER_S),
        mac_count=slowest.run.mac_count,
        limit=LIMITS[best.limit],
        busy=kinds,
    )


def _gather_operators(
    hardware: BoxHardware, shares: list[_Share], busy: dict[str, int]
) -> dict[str, Integers | Floats]:
    """Return the columns of all operators of the parts, in the order of the model.

    The energy of an operator that runs separately includes the static power of the whole box.
    """
    prices_fj, leaks = hardware.reference.prices_fj, _list_leaks(hardware, busy)
    places = {key: hardware.reference.position(key) for key in leaks}
    all_fj = sum(prices_fj[at] * leaks[key] for key, at in places.items() if at is not None)
    parts = []
    for one in (share.run for share in shares):
        static = one.hardware.reference.position(STATIC_ACTION)
        more_fj = all_fj - (0.0 if static is None else one.hardware.reference.prices_fj[static])
        leaked = np.rint(more_fj * one.operators.separate_latency_fs / FS_PER_S).astype(np.int64)
        parts.append(attrs.evolve(one.operators, separate_energy_fj=one.operators.separate_energy_fj + leaked))
    return _gather(parts, "operator_index")


def _gather(parts: Sequence[OperatorColumns | SubgraphColumns], by: str) -> dict[str, Integers | Floats]:
    """Return the concatenated columns of several parts, with rows sorted by the column `by`."""
    names = [field.name for field in attrs.fields(type(parts[0]))]
    columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    order = np.argsort(columns[by], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _gather_subgraphs(shares: list[_Share]) -> dict[str, Integers | Floats]:
    columns = _gather([one.run.subgraphs for one in shares], "subgraph_index")
    return columns | {"units_used_count": np.ones_like(columns["units_used_count"])}


def _add_copy(problem: Problem, lines: Lines, operator: int, copy: Copy) -> None:
    """Add the ledger lines of a copy: the links that it crosses, and the reads and writes of its conversion."""
    sender, receiver = problem.members[copy.start], problem.members[copy.end]
    at = np.array([operator])
    for hop in problem.ways.hops[copy.start, copy.end]:
        if hop.s_per_byte:
            lines.add_each(at, link_key(hop.name), np.array([copy.byte_count]))
    if converts(sender, receiver):
        for action, amount in zip(
            CONVERSIONS.values(), (copy.byte_count, keep_bytes(copy, sender, receiver)), strict=True
        ):
            lines.add_each(at, device_key(receiver.device.name, ("dram", action)), np.array([amount]))


def _close(
    hardware: BoxHardware,
    configuration: Configuration,
    shares: list[_Share],
    operators: dict[str, Integers | Floats],
    subgraphs: dict[str, Integers | Floats],
    lines: Lines,
    *,
    latency_fs: int,
    interval_fs: int,
    mac_count: int,
    limit: str,
    busy: dict[str, int],
) -> RunColumns:
    """Return the run of the box from the columns and ledger lines of its parts.

    Latency and interval are divided among operators by their times, and static power is added. `busy` is device name ->
    number of devices with a part.
    """
    weights = operators["latency_fs"].astype(np.float64)
    whole = np.zeros(len(weights), dtype=np.int64)
    if int(operators["latency_fs"].sum()) != latency_fs:
        operators["latency_fs"] = share_exactly(np.array([latency_fs], dtype=np.int64), weights, whole)
    interval_fs = min(interval_fs, latency_fs)
    operators["interval_fs"] = share_exactly(np.array([interval_fs], dtype=np.int64), weights, whole)
    index = np.searchsorted(subgraphs["subgraph_index"], operators["subgraph_index"])
    subgraphs["latency_fs"] = np.zeros(len(subgraphs["subgraph_index"]), dtype=np.int64)
    np.add.at(subgraphs["latency_fs"], index, operators["latency_fs"])
    _add_parts(hardware, shares, lines)
    leaks = _list_leaks(hardware, busy)
    for key in leaks:
        lines.add_each(operators["operator_index"].astype(np.int64), key, operators["interval_fs"] / FS_PER_S)
    priced = reprice(hardware, _find_factors(shares), leaks)
    ledger = lines.close(priced)
    return RunColumns(
        configuration=configuration,
        hardware=priced,
        units_total_count=hardware.units,
        peak_ops_per_s=_find_peak(hardware, configuration),
        memory_bandwidth_bytes_per_s=hardware.memory_bandwidth.value,
        weight_bytes=sum(one.run.weight_bytes for one in shares),
        activation_bytes=sum(one.run.activation_bytes for one in shares),
        mac_count=mac_count,
        clock_fraction=1.0,
        clock_hz=hardware.clock.value,
        voltage_factor=1.0,
        uncapped_power_w=ledger.total_fj / interval_fs,
        throughput_limit=limit,
        broken_laws=join_laws(one.run for one in shares),
        suppressed_s=sum(one.run.suppressed_s for one in shares),
        separate_clock_fraction=1.0,
        subgraphs=SubgraphColumns(**subgraphs),  # type: ignore[arg-type]
        operators=OperatorColumns(**operators),  # type: ignore[arg-type]
        ledger=ledger,
    )


def _find_peak(hardware: BoxHardware, configuration: Configuration) -> float:
    """Return the sum of the devices' peaks, each at the precision that the device uses."""
    members = hardware.list_members(configuration)
    return sum(
        one.hardware.product_rate(one.configuration.precision, one.configuration.weight_precision) for one in members
    )


def _add_parts(hardware: BoxHardware, shares: list[_Share], lines: Lines) -> None:
    """Add the ledger lines of dynamic energy of the devices' parts, under the names of the devices."""
    for one in shares:
        reference, ledger = one.run.hardware.reference, one.run.ledger
        kept = is_dynamic(one.run)
        rows = np.array([hardware.reference.position(device_key(one.kind, row.key)) for row in reference])
        action = rows[ledger.action_index[kept]].astype(np.int64)
        lines.add(ledger.operator_index[kept], action, ledger.action_count[kept] * one.count)


def _list_leaks(hardware: BoxHardware, busy: dict[str, int]) -> dict[ActionKey, int]:
    """Return static-power or idle-power action -> number of devices that draw it; a host counts as one.

    `busy` is device name -> number of devices with a part.
    """
    component, static = STATIC_ACTION
    counts = {HOST_ACTION: 1}
    for device in hardware.box.devices:
        at_work = busy.get(device.name, 0)
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
