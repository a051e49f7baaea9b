"""Placement and bound from a mixed-integer solver, if the search leaves a gap; needs the extra `solver`.

    x[node, device] in {0, 1}                                one device per node, with room for all its weights
    f[value, reader, from, to] >= 0                          sums: over `to` x[maker, from], over `from` x[reader, to]
    z[value, from, to] >= f of each of its readers           a value is sent once to a device
    least t, which is at least
        throughput   the busy time of each device, link and shared memory
        latency      the same, and each node's end: latest of (end of an input + its copy) + its own time
        energy       as latency; its joules are added, and those of x and z

In this program a node waits for its inputs, and the sum of a device's work bounds its busy time; the order on a device
is relaxed. So latency and energy are bounds, and `box.score` gives the placement's actual value. HiGHS solves it,
starting from the known placement. Source: Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical
Programming Computation 10, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics import Integers
from joulemap.system import define
from joulemap.system.descriptor import silencing
from joulemap.wing.place.box.score import Aim, room, share_groups

TIME_LIMIT_S: Final = 5.0

MOST_COLUMNS: Final = 150_000
"""Maximum columns of a program; beyond, even its relaxation is not solved within the time limit."""

ENOUGH: Final = 1e-3
"""Relative gap at which the solver stops."""


@cache
def has_solver() -> bool:
    """Return True if the extra `solver` is installed."""
    return find_spec("highspy") is not None


def solve_placement(aim: Aim, known: Integers) -> tuple[Integers | None, float]:
    """Return the placement that the solver finds within its time limit, and a lower bound in the unit of the goal.

    It starts from a known placement; None if it finds none.
    """
    program = _Program(aim, _start_solver())
    program.write()
    if program.solver.getNumCol() > MOST_COLUMNS:
        return None, 0.0
    start = {column: float(known[node] == device) for (node, device), column in program.node.items()}
    values, bound = _solve(program.solver, start)
    if values is None:
        return None, bound / program.scale
    devices = np.array(known)
    for (node, device), column in program.node.items():
        if values[column] > 0.5:
            devices[node] = device
    return devices, bound / program.scale


@define(eq=False)
class _Program:
    """Mixed-integer program of an aim; all times and joules are multiplied by `scale`."""

    aim: Aim
    solver: Any
    node: dict[tuple[int, int], int] = attrs.field(factory=dict, init=False)
    """(node, device) -> column that is 1 if the node runs there."""
    ends: list[int] = attrs.field(factory=list, init=False)
    """Column of the end of each node; empty for throughput."""
    own: list[dict[int, float]] = attrs.field(factory=list, init=False)
    """Terms of the time that each node adds to its end."""

    @cached_property
    def scale(self) -> float:
        """Factor that makes the longest time of all nodes in sequence 1."""
        return 1.0 / max(float(np.where(self.aim.is_out, 0.0, self.aim.problem.seconds).max(axis=1).sum()), 1e-30)

    @cached_property
    def able(self) -> list[list[int]]:
        """Devices that may run each node."""
        return [np.flatnonzero(~row).tolist() for row in self.aim.is_out]

    def add_column(self, cost: float = 0.0, upper: float = math.inf) -> int:
        """Add a variable between 0 and an upper bound; return its column number."""
        self.solver.addCol(cost, 0.0, upper, 0, [], [])
        return int(self.solver.getNumCol()) - 1

    def add_row(self, terms: Mapping[int, float], low: float = -math.inf, high: float = math.inf) -> None:
        """Add a row: a weighted sum of columns between two bounds."""
        self.solver.addRow(low, high, len(terms), list(terms), list(terms.values()))

    def write(self) -> None:
        """Write the columns and rows of the program."""
        import highspy

        problem, is_paced = self.aim.problem, self.aim.goal == "throughput"
        takes = (problem.paced_s if is_paced else problem.seconds) * self.scale
        joules, copy_j, way = (one * self.scale for one in (self.aim.joules, self.aim.copy_j, problem.way_s))
        leave, enter = problem.leave_s * self.scale, problem.enter_s * self.scale
        for number, devices in enumerate(self.able):
            for device in devices:
                column = self.node[number, device] = self.add_column(float(joules[number, device]), 1.0)
                self.solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        total = self.add_column(self.aim.power)
        for number, devices in enumerate(self.able):
            self.add_row({self.node[number, device]: 1.0 for device in devices}, 1.0, 1.0)
        self.ends = [] if is_paced else [self.add_column() for _ in self.able]
        busy: list[dict[int, float]] = [{} for _ in problem.members]
        self.own = [{} for _ in self.able]
        for (number, device), column in self.node.items():
            busy[device][column] = float(takes[number, device])
            self.own[number][column] = -busy[device][column]
        links: dict[tuple[int, int], dict[int, float]] = {}
        for value, maker in enumerate(problem.maker.tolist()):
            sent: dict[tuple[int, int], int] = {}
            for start in self.able[maker]:
                for end in range(len(problem.members)):
                    if start != end and np.isfinite(way[value, start, end]):
                        column = sent[start, end] = self.add_column(float(copy_j[value, start, end]), 1.0)
                        pair = min(start, end), max(start, end)
                        links.setdefault(pair, {})[column] = float(way[value, start, end])
                        busy[start][column] = float(leave[value, start])
                        if is_paced:
                            busy[end][column] = float(enter[value, end])
                        elif leave[value, start]:
                            self.own[maker][column] = -float(leave[value, start])
            for reader in problem.readers[value]:
                self._write_edge(value, reader, sent)
        for terms in (*busy, *links.values()):
            self.add_row({**terms, total: -1.0}, high=0.0)
        for rate, mine in share_groups(problem) if is_paced else ():
            moved = problem.dram_bytes * rate * self.scale
            self.add_row(
                {**{c: float(moved[at]) for at, c in self.node.items() if at[1] in mine}, total: -1.0}, high=0.0
            )
        for end, terms in zip(self.ends, self.own, strict=False):
            self.add_row({total: 1.0, end: -1.0}, low=0.0)
            self.add_row({end: 1.0, **terms}, low=0.0)
        for device, most in enumerate(room(problem)):
            held = {c: float(problem.weight_bytes[at] / most) for at, c in self.node.items() if at[1] == device}
            if most and sum(held.values()) > 1.0:
                self.add_row(held, high=1.0)

    def _write_edge(self, value: int, reader: int, sent: Mapping[tuple[int, int], int]) -> None:
        """Write the constraints on a value and one of its readers: the flow between devices, its sums, and the reader's
        end time.
        """
        problem, maker = self.aim.problem, int(self.aim.problem.maker[value])
        flow = {
            (start, end): self.add_column(upper=1.0)
            for start in self.able[maker]
            for end in self.able[reader]
            if start == end or (start, end) in sent
        }
        for node, side in ((maker, 0), (reader, 1)):
            for device in self.able[node]:
                terms = {column: 1.0 for ends, column in flow.items() if ends[side] == device}
                self.add_row({**terms, self.node[node, device]: -1.0}, 0.0, 0.0)
        copied = {ends: column for ends, column in flow.items() if ends[0] != ends[1]}
        for ends, column in copied.items():
            self.add_row({sent[ends]: 1.0, column: -1.0}, low=0.0)
        if self.ends:
            arrives = (problem.way_s[value] + problem.enter_s[value]) * self.scale
            copies = {column: -float(arrives[ends]) for ends, column in copied.items()}
            self.add_row({self.ends[reader]: 1.0, self.ends[maker]: -1.0, **self.own[reader], **copies}, low=0.0)


def _start_solver() -> Any:
    import highspy

    with silencing():  # its constructor prints a banner before any option can be set
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, info in (
            ("output_flag", False), ("time_limit", TIME_LIMIT_S), ("threads", 1), ("mip_rel_gap", ENOUGH),
        ):  # fmt: skip
            solver.setOptionValue(option, info)
    return solver


def _solve(solver: Any, start: Mapping[int, float]) -> tuple[Any, float]:
    """Return the values of the columns, or None if no solution was found, and the lower bound of the objective."""
    import highspy

    solver.setSolution(len(start), np.array(list(start), dtype=np.int32), np.array(list(start.values())))
    solver.run()
    info = solver.getInfo()
    is_found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = float(info.mip_dual_bound)
    return (np.array(solver.getSolution().col_value) if is_found else None), bound if math.isfinite(bound) else 0.0
