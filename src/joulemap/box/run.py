"""A placement as it runs: each device's part by itself, copies between them, and a ledger of whole femtojoules.

    latency  = makespan of parts and copies: `box.schedule`; their sum where nothing runs at once
    interval = max(a part's interval, a link's copies, bytes of a shared memory / its bandwidth)
    period   = latency, or the interval where batches follow each other; longer where the power budget says so
    energy   = lines of the parts + copies + static power of each device over what of the period its part leaves
             + idle power of devices without a part x period

A part is evaluated as a run of its operators alone, values that it hands on or is handed crossing its memory. Static
power of a part's own operators is among its lines; the rest of the period is a line more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.box.member import Member
from joulemap.box.problem import Problem, conversion_fj, converts, is_dynamic
from joulemap.box.schedule import Followed, follow, share_rate
from joulemap.box.score import share_memory
from joulemap.domain.box import BUDGET, Box, PlacementLine
from joulemap.domain.configuration import PRECISION_BYTES
from joulemap.domain.reference import LINK_ACTION, STATIC_ACTION
from joulemap.model.fallback import split_work
from joulemap.model.pipeline import Evaluator
from joulemap.model.run import RunColumns
from joulemap.model.workload import Integers
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

IDLE: Final = ("chip", "idle_power")
"""What a device draws that has no part of the model."""


@frozen(kw_only=True)
class Copy:
    """A value on its way from the device that made it to one that reads it."""

    start: int
    end: int
    subgraph: int
    """That makes it."""
    value: int
    """Of the problem."""
    byte_count: float
    """As it is sent."""
    latency_fs: int
    start_fs: int = 0
    """From the start of a batch by itself."""


@frozen(kw_only=True, eq=False)
class PlacedRun:
    """A model on devices of a box."""

    devices: Integers
    """Of each node of the problem."""
    parts: dict[int, RunColumns]
    """Device -> the run of its part."""
    copies: tuple[Copy, ...]
    start_fs: Integers
    """Of each node, from the start of a batch by itself."""
    latency_fs: int
    interval_fs: int
    """From batch to batch where they follow each other."""
    period_fs: int
    """For which the box draws static power for a batch: the latency, or the interval."""
    limit: str
    """What the period is: devices in turn, branches at once, a device, link or memory by name, or the power budget."""
    names: tuple[str, ...]
    """Of the devices of the problem."""
    between: tuple[PlacementLine, ...]
    """What is in the ledger of no part: copies, and devices that wait."""

    @cached_property
    def lines(self) -> tuple[PlacementLine, ...]:
        """Its ledger: of the parts, by subgraph and action, then what is between them."""
        return (*(line for at, run in self.parts.items() for line in _list_lines(self.names[at], run)), *self.between)

    @property
    def energy_fj(self) -> int:
        """Of a batch, exact."""
        return sum(run.ledger.total_fj for run in self.parts.values()) + sum(line.energy_fj for line in self.between)

    @property
    def copy_fs(self) -> int:
        """Of all copies of a batch."""
        return sum(copy.latency_fs for copy in self.copies)


def run_placement(
    problem: Problem,
    box: Box,
    devices: Integers,
    *,
    is_pipelined: bool,
    known: Mapping[int, RunColumns] | None = None,
) -> PlacedRun:
    """Return the run of a placement, of parts that are known or run now; UnsupportedError where one does not fit."""
    parts = _run_parts(problem, devices) if known is None else dict(known)
    _check_shared(problem, box, parts)
    copies = _list_copies(problem, devices)
    in_turn_fs = sum(run.latency_fs for run in parts.values()) + sum(copy.latency_fs for copy in copies)
    followed, rest_fs = _follow(problem, devices, parts, copies)
    latency_fs = int(followed.makespan[0]) + rest_fs if len(parts) > 1 else in_turn_fs
    interval_fs, limit = _find_interval(problem, parts, copies)
    period_fs = interval_fs if is_pipelined else latency_fs
    sent = _list_transfers(problem, copies)
    spent_fj = sum(line.energy_fj for line in sent) + sum(map(own_fj, parts.values()))
    power_w = sum(one.static_w if at in parts else one.idle_w for at, one in enumerate(problem.members))
    least_fs = _hold_to_budget(box, spent_fj, power_w)
    if least_fs > period_fs:
        period_fs, limit = least_fs, BUDGET
    elif not is_pipelined:
        limit = "one by one" if latency_fs == in_turn_fs else "branches at once"
    return PlacedRun(
        devices=devices,
        parts=parts,
        copies=tuple(attrs.evolve(one, start_fs=int(followed.sent[one.value, one.end, 0])) for one in copies),
        start_fs=followed.begin[:, 0],
        latency_fs=latency_fs if is_pipelined else max(latency_fs, period_fs),
        interval_fs=max(interval_fs, period_fs) if is_pipelined else interval_fs,
        period_fs=period_fs,
        limit=limit,
        names=tuple(member.name for member in problem.members),
        between=(*sent, *_list_waits(problem, parts, period_fs)),
    )


def form_parts(problem: Problem, devices: Integers) -> dict[int, Evaluator]:
    """Return device -> what evaluates its part of a placement."""
    work = problem.work
    of_subgraph = np.full(work.subgraph_count, devices[0])
    of_subgraph[problem.subgraph] = devices
    side = of_subgraph[work.subgraph_index]
    used = np.unique(devices).tolist()
    if len(used) == 1:
        return {used[0]: Evaluator(work)}
    split = split_work(work, side)
    return {number: Evaluator(*split[number]) for number in used}


def _run_parts(problem: Problem, devices: Integers) -> dict[int, RunColumns]:
    found = {}
    for number, evaluator in form_parts(problem, devices).items():
        member = problem.members[number]
        found[number] = evaluator.evaluate(attrs.evolve(member.hardware, compiler=None), member.configuration)
    return found


def own_fj(run: RunColumns) -> int:
    """Return what a part takes, but for leakage."""
    return int(run.ledger.energy_fj[is_dynamic(run)].sum())


def _check_shared(problem: Problem, box: Box, parts: dict[int, RunColumns]) -> None:
    """Raise UnsupportedError where parts do not fit together in a memory that they share."""
    for memory in box.memories:
        mine = [run for number, run in parts.items() if problem.members[number].memory == memory.name]
        needed = sum(run.weight_bytes + run.activation_bytes for run in mine)
        if needed > memory.capacity.value:
            raise UnsupportedError(
                f"{memory.name} of {box.id} has {memory.capacity.value / 1e9:.3g} GB; the parts need "
                f"{needed / 1e9:.1f} GB"
            )


def _list_copies(problem: Problem, devices: Integers) -> tuple[Copy, ...]:
    found = []
    for value, readers in enumerate(problem.readers):
        start = int(devices[problem.maker[value]])
        found += [
            Copy(
                start=start,
                end=end,
                subgraph=int(problem.subgraph[problem.maker[value]]),
                value=value,
                byte_count=float(problem.value_bytes[value, start]),
                latency_fs=round(float(problem.way_s[value, start, end]) * FS_PER_S),
            )
            for end in sorted({int(devices[reader]) for reader in readers} - {start})
        ]
    return tuple(found)


def _follow(
    problem: Problem, devices: Integers, parts: dict[int, RunColumns], copies: tuple[Copy, ...]
) -> tuple[Followed[Integers], int]:
    """Return when each node and copy begins, in femtoseconds, and what subgraphs take that are none, after them."""
    shape = problem.node_count, 1
    place = np.full(problem.work.subgraph_count, -1)
    place[problem.subgraph] = np.arange(problem.node_count)
    takes, moves = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    rest_fs, rates = 0, share_rate(problem)
    for number, run in parts.items():
        rows = place[run.subgraphs.subgraph_index]
        takes[rows[rows >= 0], 0] = run.subgraphs.latency_fs[rows >= 0]
        moves[rows[rows >= 0], 0] = np.rint(run.subgraphs.dram_bytes[rows >= 0] * rates[number] * FS_PER_S)
        rest_fs += int(run.subgraphs.latency_fs[rows < 0].sum())
    ways = np.zeros((len(problem.maker), len(problem.members), 1), dtype=np.int64)
    if len(parts) == 1:
        return Followed(begin=takes.cumsum(axis=0) - takes, sent=ways, makespan=takes.sum(axis=0)), rest_fs
    for copy in copies:
        ways[copy.value, copy.end, 0] = copy.latency_fs
    return follow(problem, devices[:, None], takes, moves, ways), rest_fs


def _find_interval(problem: Problem, parts: dict[int, RunColumns], copies: tuple[Copy, ...]) -> tuple[int, str]:
    """Return the longest stage, and what it is."""
    stages = {problem.members[number].name: run.interval_fs for number, run in parts.items()}
    for copy in copies:
        first, second = sorted((copy.start, copy.end))
        name = f"{problem.members[first].name}-{problem.members[second].name} link"
        stages[name] = stages.get(name, 0) + copy.latency_fs
    dram = np.zeros((1, len(problem.members)))
    for number, run in parts.items():
        dram[0, number] = run.subgraphs.dram_bytes.sum()
    stages["shared memory"] = round(float(share_memory(problem, dram)[0]) * FS_PER_S)
    name = max(stages, key=lambda one: stages[one])
    return stages[name], name


def _hold_to_budget(box: Box, own_fj: int, power_w: float) -> int:
    """Return the shortest period in which a batch keeps the box within its power."""
    if box.power is None:
        return 0
    left_w = box.power.value - power_w
    if left_w <= 0.0:
        raise UnsupportedError(f"{box.id}: static power of {power_w:.3g} W leaves nothing of {box.power.value:g} W")
    return round(own_fj / FJ_PER_J / left_w * FS_PER_S)


def _list_lines(device: str, run: RunColumns) -> Iterator[PlacementLine]:
    """Yield the lines of a device's part, by subgraph and action."""
    actions = run.hardware.reference.actions
    row = np.searchsorted(run.operators.operator_index, run.ledger.operator_index)
    subgraph = run.operators.subgraph_index[row]
    key = subgraph * len(actions) + run.ledger.action_index
    distinct, place = np.unique(key, return_inverse=True)
    counts = np.bincount(place, weights=run.ledger.action_count, minlength=len(distinct))
    energy = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(energy, place, run.ledger.energy_fj)
    for one, count, fj in zip(distinct.tolist(), counts.tolist(), energy.tolist(), strict=True):
        action = actions[one % len(actions)]
        yield PlacementLine(
            device=device,
            subgraph_index=one // len(actions),
            component=action.component,
            action=action.action,
            per=action.per,
            action_count=count,
            energy_per_action_fj=action.energy_per_action_fj,
            energy_fj=fj,
            basis=action.basis,
            source=action.source,
        )


def _list_transfers(problem: Problem, copies: tuple[Copy, ...]) -> list[PlacementLine]:
    """Return a line for each link that a copy crosses, and two for what is read and written where it is converted."""
    found = []
    for copy in copies:
        sender, receiver = problem.members[copy.start], problem.members[copy.end]
        component, action = LINK_ACTION
        found += [
            PlacementLine(
                device=sender.name,
                subgraph_index=copy.subgraph,
                component=component,
                action=action,
                per="B",
                action_count=copy.byte_count,
                energy_per_action_fj=hop.fj_per_byte,
                energy_fj=round(copy.byte_count * hop.fj_per_byte),
                basis=hop.basis,
                source=f"{hop.name}: {hop.source}",
            )
            for hop in problem.ways.hops[copy.start, copy.end]
            if hop.s_per_byte
        ]
        if converts(sender, receiver):
            found += _list_conversion(copy, receiver, keep_bytes(copy, sender, receiver))
    return found


def keep_bytes(copy: Copy, sender: Member, receiver: Member) -> float:
    """Return the bytes of a copied value as the receiver keeps it."""
    widths = [PRECISION_BYTES[one.configuration.precision] for one in (receiver, sender)]
    return copy.byte_count * widths[0] / widths[1]


def _list_conversion(copy: Copy, receiver: Member, kept: float) -> list[PlacementLine]:
    found = []
    for action, amount, price in zip(("read", "write"), (copy.byte_count, kept), conversion_fj(receiver), strict=True):
        position = receiver.hardware.reference.position(("dram", action))
        if position is None:
            continue
        row = receiver.hardware.reference.actions[position]
        found.append(
            PlacementLine(
                device=receiver.name,
                subgraph_index=copy.subgraph,
                component="dram",
                action=f"convert_{action}",
                per=row.per,
                action_count=amount,
                energy_per_action_fj=price,
                energy_fj=round(amount * price),
                basis=row.basis,
                source=row.source,
            )
        )
    return found


def _list_waits(problem: Problem, parts: dict[int, RunColumns], period_fs: int) -> list[PlacementLine]:
    """Return what each device draws for the rest of the period."""
    found = []
    for number, member in enumerate(problem.members):
        rest_s = (period_fs - (parts[number].interval_fs if number in parts else 0)) / FS_PER_S
        power_w = member.static_w if number in parts else member.idle_w
        component, action = STATIC_ACTION if number in parts else IDLE
        told = member.hardware.static_power
        if number not in parts and member.hardware.idle_power is not None:
            told = member.hardware.idle_power
        if rest_s > 0.0:
            found.append(
                PlacementLine(
                    device=member.name,
                    subgraph_index=None,
                    component=component,
                    action=action,
                    per="s",
                    action_count=rest_s,
                    energy_per_action_fj=power_w * FJ_PER_J,
                    energy_fj=round(rest_s * power_w * FJ_PER_J),
                    basis=told.basis,
                    source=f"while others work: {told.source}",
                )
            )
    return found
