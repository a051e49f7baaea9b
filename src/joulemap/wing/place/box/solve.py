"""Placement and bound from a mixed-integer solver, if the search leaves a gap; needs the extra `solver`.

    x[node, device] in {0, 1}                                one device per node, with room for all its weights
    f[value, reader, from, to] >= 0                          sums: over `to` x[maker, from], over `from` x[reader, to]
    z[value, from, to] >= f of each of its readers           a value is sent once to a device
    least t, which is at least
        throughput   the busy time of each device, link and shared memory
        latency      the same, and each node's end: latest of (end of an input + its copy) + its own time
        energy       as latency; its joules are added, and those of x and z

In this program a node waits for its inputs, and the sum of a device's work bounds its busy time; the order on a device
is relaxed. So latency and energy are bounds, and `box.schedule` gives the placement's actual value. HiGHS solves it,
starting from the known placement. Source: Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical
Programming Computation 10, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from joulemap.physics.workload import Booleans, Integers
from joulemap.system.descriptor import silencing
from joulemap.system.record import define, frozen
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.score import room, share_groups
from joulemap.wing.place.record import Goal

TIME_LIMIT_S: Final = 5.0

MOST_COLUMNS: Final = 150_000
"""Maximum columns of a program; beyond, even its relaxation is not solved within the time limit."""

ENOUGH: Final = 1e-3
"""Relative gap at which the solver stops."""


@frozen(kw_only=True, eq=False)
class Solved:
    """Solver's result within its time limit."""

    devices: Integers | None
    """Device of each node; None if no placement was found."""
    bound: float
    """Lower bound of any placement, in the unit of the goal."""


@cache
def has_solver() -> bool:
    """Return True if the extra `solver` is installed."""
    return find_spec("highspy") is not None


@define(eq=False)
class _Program:
    """Columns and rows of a mixed-integer program under construction."""

    cost: list[float]
    upper: list[float]
    integral: list[bool]
    starts: list[int]
    index: list[int]
    value: list[float]
    low: list[float]
    high: list[float]

    def add_column(self, cost: float = 0.0, upper: float = math.inf, *, is_integral: bool = False) -> int:
        """Add a variable between 0 and an upper bound; return its column number."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.integral.append(is_integral)
        return len(self.cost) - 1

    def add_row(self, terms: Mapping[int, float], low: float = -math.inf, high: float = math.inf) -> None:
        """Add a row: a weighted sum of columns between two bounds."""
        self.starts.append(len(self.index))
        self.index += terms.keys()
        self.value += terms.values()
        self.low.append(low)
        self.high.append(high)


def solve_placement(
    problem: Problem, goal: Goal, is_out: Booleans, power: float, known: Integers, time_limit_s: float = TIME_LIMIT_S
) -> Solved:
    """Return the solver's best placement, which starts from a known one, and its lower bound.

    `is_out` is node x device: True if the device cannot run the node. `power` is the static power in watts, which only
    the goal `energy` uses.
    """
    scale = 1.0 / max(float(np.where(is_out, 0.0, problem.seconds).max(axis=1).sum()), 1e-30)
    program, nodes = _write(problem, goal, is_out, power, scale)
    if len(program.cost) > MOST_COLUMNS:
        return Solved(devices=None, bound=0.0)
    start = {column: float(known[node] == device) for (node, device), column in nodes.items()}
    values, bound = _solve(program, start, time_limit_s)
    if values is None:
        return Solved(devices=None, bound=bound / scale)
    devices = np.array(known)
    for (node, device), column in nodes.items():
        if values[column] > 0.5:
            devices[node] = device
    return Solved(devices=devices, bound=bound / scale)


def _write(
    problem: Problem, goal: Goal, is_out: Booleans, power: float, scale: float
) -> tuple[_Program, dict[tuple[int, int], int]]:
    """Return the mixed-integer program, and (node, device) -> column that is 1 if the node runs there.

    All times and joules are multiplied by `scale`.
    """
    program = _Program([], [], [], [], [], [], [], [])
    takes = problem.paced_s if goal == "throughput" else problem.seconds
    joules, copy_j = (
        (problem.joules, problem.copy_j) if goal == "energy" else tuple(map(np.zeros_like, (takes, problem.way_s)))
    )
    able = [np.flatnonzero(~row).tolist() for row in is_out]
    node = {
        (number, device): program.add_column(float(joules[number, device]) * scale, 1.0, is_integral=True)
        for number, devices in enumerate(able)
        for device in devices
    }
    total = program.add_column(power if goal == "energy" else 1.0)
    for number, devices in enumerate(able):
        program.add_row({node[number, device]: 1.0 for device in devices}, 1.0, 1.0)
    ends = [program.add_column() for _ in able] if goal != "throughput" else []
    busy: list[dict[int, float]] = [{} for _ in problem.members]
    for (number, device), column in node.items():
        busy[device][column] = float(takes[number, device]) * scale
    own = [{node[n, d]: -busy[d][node[n, d]] for d in devices} for n, devices in enumerate(able)]
    links: dict[tuple[int, int], dict[int, float]] = {}
    for value, readers in enumerate(problem.readers):
        maker = int(problem.maker[value])
        sent: dict[tuple[int, int], int] = {}
        for start in able[maker]:
            for end in range(len(problem.members)):
                if start != end and np.isfinite(problem.way_s[value, start, end]):
                    column = sent[start, end] = program.add_column(float(copy_j[value, start, end]) * scale, 1.0)
                    pair = min(start, end), max(start, end)
                    links.setdefault(pair, {})[column] = float(problem.way_s[value, start, end]) * scale
                    leave, enter = float(problem.leave_s[value, start]), float(problem.enter_s[value, end])
                    busy[start][column] = leave * scale
                    if goal == "throughput":
                        busy[end][column] = enter * scale
                    elif leave:
                        own[maker][column] = -leave * scale
        for reader in readers:
            _write_edge(problem, program, node, able, value, maker, reader, sent, ends, own, scale)
    for terms in (*busy, *links.values()):
        program.add_row({**terms, total: -1.0}, high=0.0)
    for rate, mine in share_groups(problem) if goal == "throughput" else ():
        moved = {column: float(problem.dram_bytes[n, d]) * rate * scale for (n, d), column in node.items() if d in mine}
        program.add_row({**moved, total: -1.0}, high=0.0)
    for end, terms in zip(ends, own, strict=False):
        program.add_row({total: 1.0, end: -1.0}, low=0.0)
        program.add_row({end: 1.0, **terms}, low=0.0)
    for device, most in enumerate(room(problem)):
        weights = {column: float(problem.weight_bytes[n, d] / most) for (n, d), column in node.items() if d == device}
        if most and sum(weights.values()) > 1.0:
            program.add_row(weights, high=1.0)
    return program, node


def _write_edge(
    problem: Problem,
    program: _Program,
    node: Mapping[tuple[int, int], int],
    able: Sequence[Sequence[int]],
    value: int,
    maker: int,
    reader: int,
    sent: Mapping[tuple[int, int], int],
    ends: Sequence[int],
    own: Sequence[Mapping[int, float]],
    scale: float,
) -> None:
    """Write the constraints on a value and one of its readers: the flow between devices, its sums, and the reader's end
    time.
    """
    flow = {
        (start, end): program.add_column(upper=1.0)
        for start in able[maker]
        for end in able[reader]
        if start == end or (start, end) in sent
    }
    for start in able[maker]:
        program.add_row({**{c: 1.0 for (s, _), c in flow.items() if s == start}, node[maker, start]: -1.0}, 0.0, 0.0)
    for end in able[reader]:
        program.add_row({**{c: 1.0 for (_, e), c in flow.items() if e == end}, node[reader, end]: -1.0}, 0.0, 0.0)
    for (start, end), column in flow.items():
        if start != end:
            program.add_row({sent[start, end]: 1.0, column: -1.0}, low=0.0)
    if ends:
        copies = {
            column: -float(problem.way_s[value, start, end] + problem.enter_s[value, end]) * scale
            for (start, end), column in flow.items()
            if start != end
        }
        program.add_row({ends[reader]: 1.0, ends[maker]: -1.0, **own[reader], **copies}, low=0.0)


def _solve(program: _Program, start: Mapping[int, float], time_limit_s: float) -> tuple[Any, float]:
    """Return the values of the columns, or None if no solution was found, and the lower bound of the objective."""
    import highspy

    with silencing():  # its constructor prints a banner before any option can be set
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, info in (
            ("output_flag", False), ("time_limit", time_limit_s), ("threads", 1), ("mip_rel_gap", ENOUGH),
        ):  # fmt: skip
            solver.setOptionValue(option, info)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.low)
    model.col_cost_, model.col_upper_ = np.array(program.cost), np.array(program.upper)
    model.col_lower_ = np.zeros(len(program.cost))
    model.row_lower_, model.row_upper_ = np.array(program.low), np.array(program.high)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array([*program.starts, len(program.index)])
    model.a_matrix_.index_, model.a_matrix_.value_ = np.array(program.index), np.array(program.value)
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    model.integrality_ = [kinds[is_integral] for is_integral in program.integral]
    solver.passModel(model)
    solver.setSolution(len(start), np.array(list(start), dtype=np.int32), np.array(list(start.values())))
    solver.run()
    info = solver.getInfo()
    is_found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = float(info.mip_dual_bound)
    return (np.array(solver.getSolution().col_value) if is_found else None), bound if math.isfinite(bound) else 0.0
