"""Run of a placement: each device's part, the copies between parts, and a ledger in integer femtojoules.

    latency  = makespan of parts and copies: `box.schedule`; their sum if nothing overlaps
    interval = max(a part's interval, a link's copies, bytes of a shared memory / its bandwidth)
    period   = latency, or the interval in a pipeline; longer where the power budget requires
    energy   = lines of the parts + copies + static power of each device over the period minus its part's interval
             + idle power of devices without a part x period

A part is evaluated as a run of its operators alone; values that it receives or hands over cross its memory. Static
power of a part's own operators is among its lines; the rest of the period is one more line.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs
import numpy as np

from joulemap.physics import Evaluator, Integers, RunColumns, split_work
from joulemap.system import FJ_PER_J, FS_PER_S, UnsupportedError, frozen
from joulemap.wing.place.box.line import Copy, list_lines, list_transfers, list_waits
from joulemap.wing.place.box.problem import Problem, is_dynamic
from joulemap.wing.place.box.schedule import Followed, follow, share_rate
from joulemap.wing.place.box.score import share_memory
from joulemap.wing.place.record import BUDGET, Box, PlacementLine


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
    sent = list_transfers(problem, copies)
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
