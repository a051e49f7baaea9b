"""Rows of a placement answer: placements, devices and subgraphs of the best one, and its events over time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from joulemap.domain import AssumedEnergy, find_unknown, name_configured
from joulemap.physics import HOST_ACTION, STATIC_ACTION
from joulemap.system import FJ_PER_J, FS_PER_S
from joulemap.wing.place.box.candidate import Candidate
from joulemap.wing.place.box.interval import PlacedDoubt, half_width
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.run import IDLE, Copy, PlacedRun
from joulemap.wing.place.generated.row import DeviceRow, EventRow, PlacementRow, SubgraphRow
from joulemap.wing.place.record import Goal

DRAWN: Final = (STATIC_ACTION, HOST_ACTION, IDLE)
"""Actions of static power: a device that runs a part, its host, and an unused device."""


def find_assumed(row: PlacementRow) -> AssumedEnergy | None:
    """Return the energy of a placement with its assumed share; None if the placement is refused."""
    if row.energy_j is None or row.assumed_energy_fraction is None or row.assumed_static_fraction is None:
        return None
    return AssumedEnergy(row.energy_j * FJ_PER_J, row.assumed_energy_fraction, row.assumed_static_fraction)


def form_row(
    one: Candidate, best: Candidate, *, doubt: PlacedDoubt | None, worse: float | None, tokens: float
) -> PlacementRow:
    """Return a candidate as a row.

    `tokens` are those of a batch; 0 for a model that does not decode. `worse` is the probability that `best` beats it.
    """
    run, batch, fields = one.run, one.problem.work.batch, find_unknown(PlacementRow)
    if not one.refusal:
        fields |= {
            "latency_s": one.latency_s,
            "throughput_per_s": batch / one.interval_s,
            "tokens_per_s": tokens / one.interval_s if tokens else None,
            "energy_j": one.energy_j,
            "energy_per_inference_j": one.energy_j / batch,
            "average_power_w": one.energy_j / one.interval_s,
            "gap_fraction": one.gap,
        }
        assumed = sum_assumed(one)
        fields |= {"assumed_energy_fraction": assumed.fraction, "assumed_static_fraction": assumed.static_fraction}
    if run is not None:
        fields |= {"copy_s": run.copy_fs / FS_PER_S, "copy_count": len(run.copies)}
        fields["copied_bytes"] = sum(copy.byte_count for copy in run.copies)
    if doubt is not None:
        fields |= {f"{goal}_half_width": half_width(errors) for goal, errors in doubt.items()}
    fields |= {"is_best": one is best, "worse_probability": worse}
    return PlacementRow(
        **fields, placement=one.label, form=one.form, limit=one.limit, refusal=one.refusal.text if one.refusal else ""
    )


def sum_assumed(one: Candidate) -> AssumedEnergy:
    """Return the energy of a batch of a placement, with its share from assumed numbers."""
    shares = ((line, float(line.basis == "assumed")) for line in one.lines)
    return AssumedEnergy.add_up(
        AssumedEnergy(line.energy_fj, share, share * ((line.component, line.action) in DRAWN)) for line, share in shares
    )


def list_devices(run: PlacedRun | None, *, overlaps: bool) -> list[DeviceRow]:
    """Return the devices' rows of a placement; empty for devices side by side.

    If batches overlap, a device is busy for its interval between batches, not for the latency of its part: a CPU
    computes several batches at once.
    """
    if run is None:
        return []
    rows = []
    for number, member in enumerate(run.problem.members):
        part, one = run.parts.get(number), member.configuration
        needed = part.weight_bytes + part.activation_bytes if part else 0
        busy_s = (part.interval_fs if overlaps else part.latency_fs) / FS_PER_S if part else 0.0
        rows.append(
            DeviceRow(
                device=member.name,
                hardware=name_configured(one.hardware, one.power_mode),
                precision=member.precision,
                subgraph_count=int((run.devices == number).sum()),
                busy_s=busy_s,
                busy_fraction=busy_s / (run.period_fs / FS_PER_S),
                weight_bytes=part.weight_bytes if part else 0,
                activation_bytes=part.activation_bytes if part else 0,
                memory_fraction=needed / member.hardware.memory_capacity.value,
                energy_j=sum(line.energy_fj for line in run.lines if line.device == member.name) / FJ_PER_J,
            )
        )
    return rows


def list_subgraphs(run: PlacedRun | None, goal: Goal) -> list[SubgraphRow]:
    """Return the subgraphs' rows of a placement; empty for devices side by side.

    The other device, of another kind if one runs it, has the least energy if energy is the goal, else the least time.
    """
    if run is None:
        return []
    problem, names, rows = run.problem, list_operations(run.problem), []
    taken = _time_subgraphs(run)
    for node, subgraph in enumerate(problem.subgraph.tolist()):
        own = int(run.devices[node])
        seconds = {at: float(problem.seconds[node, at]) for at in range(len(problem.members))}
        able = {at: value for at, value in seconds.items() if value < float("inf")}
        joules = {
            at: float(problem.joules[node, at]) + problem.members[at].static_w * value for at, value in able.items()
        }
        cost = joules if goal == "energy" else able
        kind = problem.members[own].configuration
        other = min(
            (at for at in able if at != own),
            key=lambda at: (problem.members[at].configuration == kind, cost[at]),
            default=None,
        )
        rows.append(
            SubgraphRow(
                subgraph_index=subgraph,
                operations=names[subgraph],
                device=problem.members[own].name,
                latency_s=taken.get(subgraph, 0) / FS_PER_S,
                energy_j=joules[own],
                other="" if other is None else problem.members[other].name,
                other_s=None if other is None else able[other],
                other_j=None if other is None else joules[other],
            )
        )
    return rows


def list_events(one: Candidate) -> list[EventRow]:
    """Return the events of one batch that runs alone; empty for devices side by side.

    The last event ends at the latency, unless a power budget delays it.
    """
    problem, run = one.problem, one.run
    if run is None:
        return []
    taken = _time_subgraphs(run)
    sent: dict[int, list[Copy]] = {}
    for copy in run.copies:
        sent.setdefault(copy.subgraph, []).append(copy)
    names = list_operations(problem)
    events: list[EventRow] = []

    def add(start_fs: int, latency_fs: int, subgraph: int, device: int, copy: Copy | None = None) -> None:
        events.append(
            EventRow(
                placement=one.label,
                form=one.form,
                event_index=len(events),
                kind="copy" if copy else "subgraph",
                subgraph_index=subgraph,
                operations="" if copy else names[subgraph],
                device=problem.members[device].name,
                receiver="" if copy is None else problem.members[copy.end].name,
                start_s=start_fs / FS_PER_S,
                end_s=(start_fs + latency_fs) / FS_PER_S,
                taken_s=latency_fs / FS_PER_S,
                copied_bytes=None if copy is None else copy.byte_count,
            )
        )

    for node, subgraph in enumerate(problem.subgraph.tolist()):
        add(int(run.start_fs[node]), taken.get(subgraph, 0), subgraph, int(run.devices[node]))
        for copy in sent.get(subgraph, ()):
            add(copy.start_fs, copy.latency_fs, subgraph, copy.start, copy)
    return events


def _time_subgraphs(run: PlacedRun) -> dict[int, int]:
    """Return subgraph -> its latency in femtoseconds on the device that runs it."""
    columns = [part.subgraphs for part in run.parts.values()]
    pairs = (zip(one.subgraph_index.tolist(), one.latency_fs.tolist(), strict=True) for one in columns)
    return dict(itertools.chain.from_iterable(pairs))


def list_operations(problem: Problem) -> dict[int, str]:
    """Return subgraph -> its operations, joined by a plus."""
    return {
        subgraph: "+".join(problem.list_operations(problem.subgraph == subgraph))
        for subgraph in problem.subgraph.tolist()
    }


def list_timeline(candidates: Sequence[Candidate]) -> list[EventRow]:
    """Return the events of the best placement, and of the best mixture where that is another."""
    run = [one for one in candidates if one.run is not None]
    mixed = [one for one in run if one.form != "alone"]
    shown = {id(one): one for one in (*run[:1], *mixed[:1])}
    return [row for one in shown.values() for row in list_events(one)]
