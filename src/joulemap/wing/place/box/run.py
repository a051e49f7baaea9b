"""Run of a placement: each device's part, the copies between parts, and a ledger in integer femtojoules.

    latency  = makespan of parts and copies: `box.score`; their sum if nothing overlaps
    interval = max(a part's interval, a link's copies, bytes of a shared memory / its bandwidth)
    period   = latency, or the interval in a pipeline; longer where the power budget requires
    energy   = lines of the parts + copies + static power of each device over the period minus its part's interval
             + idle power of devices without a part x period

A part is evaluated as a run of its operators alone; values that it receives or hands over cross its memory. Static
power of a part's own operators is among its lines; the rest of the period is one more line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.physics import (
    STATIC_ACTION,
    ActionKey,
    EnergyAction,
    Evaluator,
    Integers,
    Quantity,
    RunColumns,
    split_work,
)
from joulemap.physics.record.reference import LINK_ACTION
from joulemap.system import FJ_PER_J, FS_PER_S, UnsupportedError, frozen
from joulemap.wing.place.box.hardware import CONVERSIONS
from joulemap.wing.place.box.member import Hop
from joulemap.wing.place.box.problem import Problem, converts, is_dynamic
from joulemap.wing.place.box.score import Followed, follow, share_memory, share_rate
from joulemap.wing.place.record import BUDGET, Box, PlacementLine

IDLE: Final = ("chip", "idle_power")
"""Component and action of a device that runs no part of the model."""


@frozen(kw_only=True)
class Copy:
    """Value copied from the device that made it to a device that reads it."""

    start: int
    end: int
    subgraph: int
    """Subgraph that produces the value."""
    value: int
    """Index of the value in the problem."""
    byte_count: float
    """Bytes that are sent, at the sender's precision."""
    latency_fs: int
    start_fs: int = 0
    """Start of the copy after the start of a batch, if no other batch runs."""


@frozen(kw_only=True, eq=False)
class PlacedRun:
    """Run of a model on one or more devices of a box."""

    problem: Problem
    devices: Integers
    """Index of the device of each node."""
    parts: dict[int, RunColumns]
    """Device -> run of its part."""
    copies: tuple[Copy, ...]
    start_fs: Integers
    """Start of each node after the start of a batch, if no other batch runs."""
    latency_fs: int
    interval_fs: int
    """Interval between batches in a pipeline, in femtoseconds."""
    period_fs: int
    """Time per batch over which the box draws static power: the latency, or the interval of a pipeline."""
    limit: str
    """Limit of the period: sequential execution, parallel branches, the power budget, or the name of a device, link or
    memory.
    """
    between: tuple[PlacementLine, ...]
    """Ledger lines outside all parts: copies, and devices that wait."""

    @cached_property
    def lines(self) -> tuple[PlacementLine, ...]:
        """Ledger lines: those of the parts, by subgraph and action, then those of copies and waiting devices."""
        members = self.problem.members
        return (*(line for at, run in self.parts.items() for line in list_lines(members[at].name, run)), *self.between)

    @property
    def energy_fj(self) -> int:
        """Exact energy of a batch in femtojoules."""
        return sum(run.ledger.total_fj for run in self.parts.values()) + sum(line.energy_fj for line in self.between)

    @property
    def copy_fs(self) -> int:
        """Time of all copies in a batch, in femtoseconds."""
        return sum(copy.latency_fs for copy in self.copies)


def run_placement(
    problem: Problem, devices: Integers, *, is_pipelined: bool, known: Mapping[int, RunColumns] | None = None
) -> PlacedRun:
    """Return the run of a placement from known or newly evaluated parts; UnsupportedError if a part does not fit."""
    parts = _run_parts(problem, devices) if known is None else dict(known)
    _check_shared(problem, parts)
    copies = _list_copies(problem, devices)
    in_turn_fs = sum(run.latency_fs for run in parts.values()) + sum(copy.latency_fs for copy in copies)
    followed = _follow(problem, devices, parts, copies)
    latency_fs = int(followed.makespan[0])
    interval_fs, limit = _find_interval(problem, parts, copies)
    period_fs = interval_fs if is_pipelined else latency_fs
    sent = tuple(_list_transfers(problem, copies))
    spent_fj = sum(line.energy_fj for line in sent) + sum(map(own_fj, parts.values()))
    least_fs = _find_budget_period(problem.box, spent_fj, problem.draw_w(parts))
    if least_fs > period_fs:
        period_fs, limit = least_fs, BUDGET
    elif not is_pipelined:
        limit = "sequential execution" if latency_fs == in_turn_fs else "parallel branches"
    return PlacedRun(
        problem=problem,
        devices=devices,
        parts=parts,
        copies=tuple(attrs.evolve(one, start_fs=int(followed.sent[one.value, one.end, 0])) for one in copies),
        start_fs=followed.begin[:, 0],
        latency_fs=latency_fs if is_pipelined else max(latency_fs, period_fs),
        interval_fs=max(interval_fs, period_fs) if is_pipelined else interval_fs,
        period_fs=period_fs,
        limit=limit,
        between=(*sent, *list_waits(problem, {at: run.interval_fs for at, run in parts.items()}, period_fs)),
    )


def form_parts(problem: Problem, devices: Integers) -> dict[int, Evaluator]:
    """Return device -> evaluator of the operators that a placement gives it."""
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
    runs = {}
    for number, evaluator in form_parts(problem, devices).items():
        member = problem.members[number]
        runs[number] = evaluator.evaluate(attrs.evolve(member.hardware, compiler=None), member.configuration)
    return runs


def own_fj(run: RunColumns) -> int:
    """Return the energy of a part in femtojoules, without static power."""
    return int(run.ledger.energy_fj[is_dynamic(run)].sum())


def _check_shared(problem: Problem, parts: dict[int, RunColumns]) -> None:
    """Raise UnsupportedError if the parts of devices with a shared memory exceed its capacity."""
    box = problem.box
    for memory in box.memories:
        mine = [run for number, run in parts.items() if problem.members[number].device.memory == memory.name]
        needed = sum(run.weight_bytes + run.activation_bytes for run in mine)
        if needed > memory.capacity.value:
            raise UnsupportedError(
                f"{memory.name} of {box.id} has {memory.capacity.value / 1e9:.3g} GB; the parts need "
                f"{needed / 1e9:.1f} GB",
                code="shared_memory",
                hardware=box.id,
                memory=memory.name,
                required_bytes=needed,
                capacity_bytes=memory.capacity.value,
            )


def _list_copies(problem: Problem, devices: Integers) -> tuple[Copy, ...]:
    copies = []
    for value, readers in enumerate(problem.readers):
        start = int(devices[problem.maker[value]])
        copies += [
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
    return tuple(copies)


def _follow(
    problem: Problem, devices: Integers, parts: dict[int, RunColumns], copies: tuple[Copy, ...]
) -> Followed[Integers]:
    """Return the start of each node and copy in femtoseconds; subgraphs that are no nodes extend the makespan."""
    takes, moves = (np.zeros((problem.node_count, 1), dtype=np.int64) for _ in range(2))
    rates = share_rate(problem)
    for number, run in parts.items():
        rows = problem.node_of[run.subgraphs.subgraph_index]
        takes[rows[rows >= 0], 0] = run.subgraphs.latency_fs[rows >= 0]
        moves[rows[rows >= 0], 0] = np.rint(run.subgraphs.dram_bytes[rows >= 0] * rates[number] * FS_PER_S)
    ways = np.zeros((len(problem.maker), len(problem.members), 1), dtype=np.int64)
    for copy in copies:
        ways[copy.value, copy.end, 0] = copy.latency_fs
    followed = follow(problem, devices[:, None], takes, moves, ways)
    rest_fs = sum(run.latency_fs for run in parts.values()) - takes.sum()
    return attrs.evolve(followed, makespan=followed.makespan + rest_fs)


def _find_interval(problem: Problem, parts: dict[int, RunColumns], copies: tuple[Copy, ...]) -> tuple[int, str]:
    """Return the time of the slowest pipeline stage in femtoseconds, and its name."""
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


def _find_budget_period(box: Box, own_fj: int, power_w: float) -> int:
    """Return the shortest period per batch, in femtoseconds, that keeps the box within its power budget."""
    if box.power is None:
        return 0
    left_w = box.power.value - power_w
    if left_w <= 0.0:
        raise UnsupportedError(
            f"{box.id}: static power of {power_w:.3g} W exceeds the power budget of {box.power.value:g} W",
            code="static_power",
            hardware=box.id,
            static_w=power_w,
            budget_w=box.power.value,
        )
    return round(own_fj / FJ_PER_J / left_w * FS_PER_S)


def list_lines(device: str, run: RunColumns) -> Iterator[PlacementLine]:
    """Yield the lines of a device's part, by subgraph and action."""
    actions = run.hardware.reference.actions
    row = np.searchsorted(run.operators.operator_index, run.ledger.operator_index)
    subgraph = run.operators.subgraph_index[row]
    key = subgraph * len(actions) + run.ledger.action_index
    distinct, index = np.unique(key, return_inverse=True)
    counts = np.bincount(index, weights=run.ledger.action_count, minlength=len(distinct))
    energy = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(energy, index, run.ledger.energy_fj)
    for one, count, fj in zip(distinct.tolist(), counts.tolist(), energy.tolist(), strict=True):
        node, at = divmod(one, len(actions))
        price = actions[at]
        yield _line(device, node, price.key, price.per, count, price.energy_per_action_fj, price, energy_fj=fj)


def _line(
    device: str,
    subgraph: int | None,
    key: ActionKey,
    per: str,
    count: float,
    each_fj: float,
    origin: EnergyAction | Hop | Quantity,
    *,
    before: str = "",
    energy_fj: int | None = None,
) -> PlacementLine:
    """Return a ledger line; `origin` has the basis and the source of its energy per action."""
    return PlacementLine(
        device=device,
        subgraph_index=subgraph,
        component=key[0],
        action=key[1],
        per=per,
        action_count=count,
        energy_per_action_fj=each_fj,
        energy_fj=round(count * each_fj) if energy_fj is None else energy_fj,
        basis=origin.basis,
        source=f"{before}{origin.source}",
    )


def _list_transfers(problem: Problem, copies: tuple[Copy, ...]) -> Iterator[PlacementLine]:
    """Yield a ledger line for each link that a copy crosses, and two lines for a conversion."""
    for copy in copies:
        sender, receiver = problem.members[copy.start].name, problem.members[copy.end]
        for hop in problem.ways[copy.start, copy.end]:
            if hop.s_per_byte:
                before = f"{hop.name}: "
                yield _line(
                    sender, copy.subgraph, LINK_ACTION, "B", copy.byte_count, hop.fj_per_byte, hop, before=before
                )
        reference = receiver.hardware.reference
        for action, amount in list_conversions(problem, copy):
            if (position := reference.position(("dram", action))) is not None:
                price = reference.actions[position]
                key, each_fj = ("dram", CONVERSIONS[action]), price.energy_per_action_fj
                yield _line(receiver.name, copy.subgraph, key, price.per, amount, each_fj, price)


def list_conversions(problem: Problem, copy: Copy) -> list[tuple[str, float]]:
    """Return the DRAM actions that convert a copied value where it arrives, with the bytes of each; empty for none."""
    if not converts(problem.members[copy.start], problem.members[copy.end]):
        return []
    return [("read", copy.byte_count), ("write", float(problem.value_bytes[copy.value, copy.end]))]


def list_waits(problem: Problem, worked_fs: Mapping[int, float], period_fs: float) -> Iterator[PlacementLine]:
    """Yield ledger lines of static or idle power, for the part of the period in which a device does not work.

    `worked_fs` is device -> the part of the period whose static power is among the lines of the device's part.
    """
    for number, member in enumerate(problem.members):
        is_used = number in worked_fs
        rest_s = (period_fs - worked_fs.get(number, 0)) / FS_PER_S
        each_fj = (member.static_w if is_used else member.idle_w) * FJ_PER_J
        key, rest = STATIC_ACTION if is_used else IDLE, member.find_rest(is_used=is_used)
        if rest_s > 0.0:
            yield _line(member.name, None, key, "s", rest_s, each_fj, rest, before="while others work: ")
