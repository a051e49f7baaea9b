"""Candidate placements on a box: each device alone, a model split over several, whole batches side by side.

`choose` picks a split, which is then run. The ratio of a part's actual time to the sum of its subgraphs corrects the
costs, and the choice is repeated: a part may fit where the whole model did not, or have a start-up cost of its own.
Side by side, each device that runs the whole model takes whole batches:

    rate = sum over devices of 1 / interval, all slowed alike where a shared memory or the power budget is exceeded
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Final, TypeVar

import attrs
import numpy as np

from joulemap.physics import Integers, RunColumns
from joulemap.system import FJ_PER_J, FS_PER_S, Reason, UnsupportedError, frozen
from joulemap.wing.place.box.choose import choose, improve
from joulemap.wing.place.box.overlap import list_neighbours
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.run import PlacedRun, list_lines, list_waits, own_fj, run_placement
from joulemap.wing.place.box.score import Aim, fit_weights
from joulemap.wing.place.box.search import Choice
from joulemap.wing.place.box.solve import has_solver
from joulemap.wing.place.record import BUDGET, Goal, PlacementLine
from joulemap.wing.place.show.word import LACKING

Member = TypeVar("Member", int, str)

ROUNDS: Final = 4
"""Maximum rounds in which a split is chosen and run."""

SETTLED: Final = 5e-3
"""Relative gap to the bound below which a split is accepted without a solver's search."""

MOST_SETS: Final = 32
"""Maximum sets of devices that are tried."""


@frozen(kw_only=True, eq=False)
class Candidate:
    """Way to run the model on the box, or the reason why it is impossible."""

    problem: Problem
    form: str
    """`alone`; `split`: subgraphs on several devices, in turn or with branches at once; `pipeline`: batches follow each
    other; or `side by side`."""
    members: tuple[int, ...]
    refusal: Reason | None = None
    run: PlacedRun | None = None
    """Run of the placement; None if it is refused, and for devices side by side."""
    latency_s: float = 0.0
    """Latency of a batch in seconds; for devices side by side, that of the slowest device."""
    interval_s: float = 0.0
    """Interval in seconds between two batches of the whole box."""
    energy_j: float = 0.0
    """Energy of a batch in joules; for devices side by side, that of the mean batch."""
    limit: str = ""
    """Reason why the interval is no shorter: a device, link or memory, the power budget, or sequential execution."""
    shares: Mapping[int, float] = attrs.field(factory=dict)
    """Device -> its share of the batches, for devices side by side."""
    runs: Mapping[int, PlacedRun] = attrs.field(factory=dict)
    """Device -> its run, for devices side by side."""
    gap: float = 0.0
    """Upper bound on the share of the value that a placement not examined could save, at the costs of the search."""

    @property
    def label(self) -> str:
        """Names of the devices, joined by a plus."""
        return "+".join(self.problem.members[number].name for number in self.members)

    @property
    def name(self) -> tuple[str, str]:
        """Devices and form, which identify a placement of a question."""
        return self.label, self.form

    @property
    def parts(self) -> Mapping[int, tuple[RunColumns, float]]:
        """Device -> run of its part, and the share of the batches that pass through it."""
        if self.run is not None:
            return {number: (part, 1.0) for number, part in self.run.parts.items()}
        return {number: (next(iter(run.parts.values())), self.shares[number]) for number, run in self.runs.items()}

    @property
    def times_fs(self) -> tuple[int, int]:
        """Latency of a batch, and interval between batches that follow each other, in femtoseconds."""
        if self.run is None:
            return round(self.latency_s * FS_PER_S), round(self.interval_s * FS_PER_S)
        return max(self.run.latency_fs, self.run.period_fs), self.run.period_fs

    @cached_property
    def lines(self) -> tuple[PlacementLine, ...]:
        """Ledger lines of a batch; for devices side by side, those of the mean batch."""
        if self.run is not None:
            return self.run.lines
        worked = {number: part.interval_fs * share for number, (part, share) in self.parts.items()}
        return (
            *(
                attrs.evolve(line, action_count=line.action_count * share, energy_fj=round(line.energy_fj * share))
                for number, (part, share) in self.parts.items()
                for line in list_lines(self.problem.members[number].name, part)
            ),
            *list_waits(self.problem, worked, self.interval_s * FS_PER_S),
        )

    def value(self, goal: Goal) -> float:
        """Return the quantity that a goal minimizes; infinite if the candidate is refused."""
        if self.refusal:
            return float("inf")
        return {"latency": self.latency_s, "throughput": self.interval_s, "energy": self.energy_j}[goal]


def list_candidates(problem: Problem, goal: Goal) -> list[Candidate]:
    """Return the placements tried for a goal; the first ones use each device alone."""
    kinds = tuple(members[0] for members in problem.kinds.values())
    candidates = [_run_alone(problem, number, goal) for number in kinds]
    sets = [tuple(range(len(problem.members)))] if goal == "throughput" else [kinds]
    if goal == "energy":
        sets = _list_sets(kinds, 2)[:MOST_SETS]
    # identical devices gain most from whole batches side by side
    is_open = goal != "throughput" or len(kinds) > 1 or bool(candidates[0].refusal)
    for some in sets:
        candidates += _run_split(problem, goal, some, is_largest=is_open and some is sets[0])
    if goal != "throughput" and len(kinds) < len(problem.members) and all(one.refusal for one in candidates):
        candidates += _run_split(problem, goal, tuple(range(len(problem.members))), is_largest=True)
    if goal == "throughput":
        candidates += _run_side_by_side(problem)
    if not any(one.run is not None and len(one.run.parts) > 1 for one in candidates):
        candidates += _run_nearest(problem, goal, candidates)
    return list({(*one.name, one.value(goal)): one for one in candidates}.values())


def refuse_all(candidates: Sequence[Candidate], what: str) -> UnsupportedError:
    """Return the error that no candidate runs: `what` and the reason of each, in one line."""
    reasons = "; ".join(f"{one.label}: {one.refusal.text}" for one in candidates if one.refusal is not None)
    hardware, names = candidates[0].problem.box.id, tuple(one.label for one in candidates)
    return UnsupportedError(f"{what}: {reasons}", code="no_placement", hardware=hardware, placements=names)


def _list_sets(members: Sequence[Member], least: int) -> list[tuple[Member, ...]]:
    sizes = range(len(members), least - 1, -1)
    return [some for size in sizes for some in combinations(members, size)]


def _run_alone(problem: Problem, number: int, goal: Goal) -> Candidate:
    member = problem.members[number]
    refusal = problem.refusals[number]
    if refusal is None and not problem.can_run[:, number].all():
        names = problem.list_operations(~problem.can_run[:, number])
        compiler = member.hardware.compiler
        known = [one.rpartition(".")[2] for one in (compiler.operators if compiler else ())]
        lacking = [name for name in names if name not in known]
        name, operators = compiler.name if compiler else member.name, tuple(lacking or names)
        values = {"hardware": member.name, "compiler": name, "operators": operators}
        refusal = Reason(text=LACKING(**values), code="operators", values=values)
    if refusal is not None:
        return Candidate(problem=problem, form="alone", members=(number,), refusal=refusal)
    return _run(problem, np.full(problem.node_count, number), goal, 0.0)


def _run(problem: Problem, devices: Integers, goal: Goal, gap: float) -> Candidate:
    members = tuple(np.unique(devices).tolist())
    is_pipelined = goal == "throughput"
    form = "alone" if len(members) == 1 else "pipeline" if is_pipelined else "split"
    try:
        run = run_placement(problem, devices, is_pipelined=is_pipelined)
    except UnsupportedError as error:
        return Candidate(problem=problem, form=form, members=members, refusal=error.reason)
    return Candidate(
        problem=problem,
        form=form,
        members=members,
        run=run,
        latency_s=run.latency_fs / FS_PER_S,
        interval_s=run.period_fs / FS_PER_S,
        energy_j=run.energy_fj / FJ_PER_J,
        limit=run.limit,
        gap=gap,
    )


def _run_split(problem: Problem, goal: Goal, allowed: Sequence[int], *, is_largest: bool) -> list[Candidate]:
    """Return the best split found in several rounds of choosing and running; empty if no split beats a device alone.

    If the set of allowed devices is the largest, a solver searches further.
    """
    best: tuple[Candidate, Choice, Aim] | None = None
    aim, seen = Aim(problem=problem, goal=goal, allowed=allowed), set[bytes]()
    for _ in range(ROUNDS):
        choice = choose(aim)
        if choice is None or choice.devices.tobytes() in seen or len(np.unique(choice.devices)) == 1:
            break
        seen.add(choice.devices.tobytes())
        candidate = _run(problem, choice.devices, goal, choice.gap)
        if best is None or candidate.value(goal) < best[0].value(goal):
            best = candidate, choice, aim
        if candidate.run is None:
            break
        aim = attrs.evolve(aim, problem=_adjust(aim.problem, candidate.run))
    if best is None:
        return []
    return [_look_further(*best) if is_largest else best[0]]


def _look_further(best: Candidate, choice: Choice, aim: Aim) -> Candidate:
    """Return the best split after a solver's search, which may find a better split or a smaller gap."""
    if best.run is None or best.limit == BUDGET or choice.gap < SETTLED or not has_solver():
        return best
    further = improve(aim, choice)
    better = best
    if len(np.unique(further.devices)) > 1 and (further.devices != choice.devices).any():
        better = _run(best.problem, further.devices, aim.goal, further.gap)
    if better.value(aim.goal) < best.value(aim.goal):
        return better
    return attrs.evolve(best, gap=max(0.0, 1.0 - further.bound / choice.value))


def _adjust(adjusted: Problem, run: PlacedRun) -> Problem:
    """Return the problem with costs corrected by the ratio of each part's time to the sum of its subgraphs."""
    problem, seconds, paced_s = run.problem, adjusted.seconds.copy(), adjusted.paced_s.copy()
    for number, part in run.parts.items():
        mine = run.devices == number
        ends = _sum_ends(run, number)
        for column, plain, fs in (
            (seconds, problem.seconds[:, number], part.latency_fs),
            (paced_s, problem.paced_s[:, number], part.interval_fs),
        ):
            column[:, number] = plain * (fs / FS_PER_S / (float(plain[mine].sum()) + ends))
    return attrs.evolve(adjusted, seconds=seconds, paced_s=paced_s)


def _sum_ends(run: PlacedRun, number: int) -> float:
    """Return the extra seconds that the problem assumes for values that leave or enter a device in a run."""
    leave_s, enter_s = run.problem.leave_s[:, number], run.problem.enter_s[:, number]
    ends = (
        leave_s[copy.value] if copy.start == number else enter_s[copy.value]
        for copy in run.copies
        if number in (copy.start, copy.end)
    )
    return float(sum(ends))


def _run_nearest(problem: Problem, goal: Goal, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the mixture that differs least from the best device alone; empty if no mixture is possible.

    One subgraph moves to another device, or all subgraphs before or after a point.
    """
    alone = min(candidates, key=lambda one: one.value(goal))
    if alone.run is None:
        return []
    trials = np.array(list(list_neighbours(problem, alone.members[0])), dtype=np.int64)
    if not len(trials):
        return []
    value = Aim(problem=problem, goal=goal, allowed=range(len(problem.members))).price(trials)
    value = np.where(fit_weights(problem, trials), value, np.inf)
    index = int(np.argmin(value))
    return [_run(problem, trials[index], goal, 0.0)] if np.isfinite(value[index]) else []


def _run_side_by_side(problem: Problem) -> list[Candidate]:
    """Return a candidate with whole batches side by side for each set of devices that run the model.

    Identical devices are all in a set or all out of it.
    """
    alone, free = dict[str, PlacedRun](), _uncap(problem)
    for name, members in problem.kinds.items():
        if not problem.refusals[members[0]] and problem.can_run[:, members[0]].all():
            candidate = _run(free, np.full(problem.node_count, members[0]), "throughput", 0.0)
            if candidate.run is not None:
                alone[name] = candidate.run
    return [
        _add_rates(problem, {number: alone[name] for name in some for number in problem.kinds[name]})
        for some in _list_sets(list(alone), 1)[:MOST_SETS]
        if sum(len(problem.kinds[name]) for name in some) > 1
    ]


def _uncap(problem: Problem) -> Problem:
    """Return a problem without a power budget: each device has its own limit, and the box's applies to their sum."""
    return attrs.evolve(problem, box=attrs.evolve(problem.box, power=None))


def run_again(problem: Problem, placed: Candidate, parts: Mapping[int, RunColumns]) -> Candidate:
    """Return a known placement at changed costs; `parts` is device -> new run of its part.

    Raises UnsupportedError if the parts together exceed a memory.
    """
    if placed.run is not None:
        run = run_placement(problem, placed.run.devices, is_pipelined=True, known=parts)
        return attrs.evolve(placed, problem=problem, run=run)
    runs, free = dict[int, PlacedRun](), _uncap(problem)
    for number, part in parts.items():
        whole = np.full(problem.node_count, number)
        run = run_placement(free, whole, is_pipelined=True, known={number: part})
        runs |= dict.fromkeys(problem.kinds[problem.members[number].device.name], run)
    return _add_rates(problem, runs)


def _add_rates(problem: Problem, runs: dict[int, PlacedRun]) -> Candidate:
    """Return the candidate in which these devices each run whole batches side by side.

    All devices slow down alike where a shared memory or the power budget is exceeded.
    """
    box = problem.box
    rate = {number: FS_PER_S / run.interval_fs for number, run in runs.items()}
    parts = {number: next(iter(run.parts.values())) for number, run in runs.items()}
    own_j = {number: own_fj(part) / FJ_PER_J for number, part in parts.items()}
    slow, limit = 1.0, "devices"
    for memory in box.memories:
        mine = [number for number in runs if problem.members[number].device.memory == memory.name]
        used = sum(rate[number] * float(parts[number].subgraphs.dram_bytes.sum()) for number in mine)
        if used * slow > memory.bandwidth.value:
            slow, limit = memory.bandwidth.value / used, "shared memory"
    static_w = problem.draw_w(runs)
    drawn_w = sum(rate[number] * own_j[number] for number in runs)
    if box.power is not None and static_w + drawn_w * slow > box.power.value:
        slow, limit = max(box.power.value - static_w, 1e-9) / drawn_w, BUDGET
    total = sum(rate.values()) * slow
    return Candidate(
        problem=problem,
        form="side by side",
        members=tuple(runs),
        latency_s=max(run.latency_fs for run in runs.values()) / FS_PER_S / slow,
        interval_s=1.0 / total,
        shares={number: one * slow / total for number, one in rate.items()},
        runs=runs,
        energy_j=(static_w + drawn_w * slow) / total,
        limit=limit,
    )
