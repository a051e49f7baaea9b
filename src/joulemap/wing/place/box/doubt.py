"""How far placements may be off: the doubt of each device's part, put together by what their errors share.

    error of a placement = sum over parts of share x error of the part        shares of its time, or of its energy
    error of a part      = half-width x sum over factors of sqrt(what the factor has of the variance) x what it drew

Factors are those of runs: class, board, model, board and model, case, and what is a part's own. Placements with parts
of one device have all but the last in common, and that too where both parts are the whole model. So a mixture is told
apart from a device alone by what differs, and what it says of a copy is as sure as the numbers of its link.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.domain.box import BUDGET, Goal, PlacementLine
from joulemap.domain.doubt import FULL_GROUPS, OWN, Doubt, DoubtQuantity
from joulemap.domain.reference import STATIC_ACTION
from joulemap.system.record import frozen
from joulemap.uncertainty.probability import probability_better
from joulemap.wing.place.box.candidate import Candidate
from joulemap.wing.place.box.problem import Problem

LEAST_WIDTH: Final = 1e-9
"""Below which two placements differ in nothing that may be off."""

Errors = Mapping[tuple[str, ...], float]
"""What is drawn -> its part of the half-width of a logarithm; parts add up as squares."""


@frozen(kw_only=True)
class DeviceDoubt:
    """Half-widths of what is predicted of a device, of the natural logarithm."""

    latency: float
    left_out_energy: float | None
    """Of its calibration, where that has one."""
    energy: float
    """Of the finest group of measurements that it is in."""
    group_count: int | None
    """Of that group; None where it is of other classes, which know nothing of its prices."""

    def price(self, square: float) -> float:
        """Return that of an energy whose prices leave so much open, as a square."""
        if self.left_out_energy is not None:
            return self.left_out_energy
        if self.group_count is None:
            return math.sqrt(self.energy**2 + square)
        count = self.group_count
        return math.sqrt((count * self.energy**2 + FULL_GROUPS * square) / (count + FULL_GROUPS))


@frozen(kw_only=True)
class PlacedDoubt:
    """What may be off of a placement."""

    latency: Errors
    interval: Errors
    energy: Errors

    def errors(self, goal: Goal) -> Errors:
        """Return those of what is to be small for a goal."""
        return {"latency": self.latency, "throughput": self.interval, "energy": self.energy}[goal]


def half_width(errors: Errors) -> float:
    """Return the half-width of the 80 % interval of a logarithm."""
    return math.hypot(*errors.values())


def compare(best: Candidate, other: Candidate, doubts: Sequence[PlacedDoubt], goal: Goal) -> float:
    """Return the probability that the first, with the first of the doubts, is better than the other."""
    first, second = (one.errors(goal) for one in doubts)
    apart = math.hypot(*(first.get(key, 0.0) - second.get(key, 0.0) for key in {*first, *second}))
    ratio = other.value(goal) / best.value(goal)
    return probability_better(ratio, apart) if apart > LEAST_WIDTH else 1.0


def doubt_placement(
    problem: Problem, candidate: Candidate, known: Doubt, devices: Sequence[DeviceDoubt]
) -> PlacedDoubt:
    """Return what may be off of a placement that can be run."""
    run = candidate.run
    whole = run is None or len(run.parts) == 1
    owner = "" if whole else f"{candidate.label} {candidate.form}"
    shares = {(one.quantity, one.factor): one.share.value for one in known.complete_shares()}
    widths = {one.number_basis: one.number_half_width for one in known.spreads}

    def join(quantity: DoubtQuantity, parts: Mapping[int, float], copies: Mapping[str, float]) -> Errors:
        """Put together parts by device, each its share times its half-width, and copies by the name of their link."""
        found: dict[tuple[str, ...], float] = defaultdict(float)
        for number, width in parts.items():
            for factor, key in _name_factors(problem, number, owner).items():
                found[quantity, *key] += width * math.sqrt(shares.get((quantity, factor), 0.0))
        for name, width in copies.items():
            found[quantity, "link", name] += width
        return found

    energy = join("energy", _weigh_energy(problem, candidate, known, devices), {})
    if run is None:
        slowest = max(candidate.members, key=lambda number: problem.paced_s[:, number].sum())
        latency = join("latency", {slowest: devices[slowest].latency}, {})
        interval = join(
            "latency", {number: rate * devices[number].latency for number, rate in candidate.shares.items()}, {}
        )
        return PlacedDoubt(latency=latency, interval=interval, energy=energy)
    taken = {number: float(part.latency_fs) for number, part in run.parts.items()}
    total = sum(taken.values()) + run.copy_fs
    links: dict[str, float] = defaultdict(float)
    for copy in run.copies:
        for hop in problem.ways.hops[copy.start, copy.end][:1]:
            links[hop.name] += copy.latency_fs / total * widths[hop.basis]
    parts = {number: seconds / total * devices[number].latency for number, seconds in taken.items()}
    latency = join("latency", parts, links)
    names = {problem.members[number].name: number for number in run.parts}
    if run.limit in names:
        interval = join("latency", {names[run.limit]: devices[names[run.limit]].latency}, {})
    else:
        interval = energy if run.limit == BUDGET else latency
    return PlacedDoubt(latency=latency, interval=interval, energy=energy)


def _name_factors(problem: Problem, number: int, owner: str) -> dict[str, tuple[str, ...]]:
    """Return what the error of a device's part is drawn by, of each factor."""
    member = problem.members[number]
    board, architecture = member.configuration.hardware, member.hardware.architecture
    return {
        "class": ("class", architecture),
        "board": ("board", board),
        "model": ("model", architecture),
        "board_model": ("board and model", board),
        "case": ("case", architecture, member.configuration.precision),
        OWN: ("own", board, member.configuration.power_mode, owner),
    }


def _weigh_energy(
    problem: Problem, candidate: Candidate, known: Doubt, devices: Sequence[DeviceDoubt]
) -> dict[int, float]:
    """Return of each device its share of the energy times the half-width of what it spends."""
    lines: dict[str, list[PlacementLine]] = defaultdict(list)
    for line in candidate.lines:
        lines[line.device].append(line)
    total = sum(line.energy_fj for line in candidate.lines)
    spreads = {one.number_basis: one.half_width.value for one in known.spreads}
    found = {}
    for number, member in enumerate(problem.members):
        mine = lines[member.name]
        own = sum(line.energy_fj for line in mine)
        if not own:
            continue
        by_basis: dict[str, float] = defaultdict(float)
        static = 0.0
        for line in mine:
            by_basis[line.basis] += line.energy_fj / own
            static += line.energy_fj / own * (line.action in (STATIC_ACTION[1], "idle_power"))
        square = sum((share * spreads[basis]) ** 2 for basis, share in by_basis.items())
        square += (static * devices[number].latency) ** 2
        found[number] = own / total * devices[number].price(square)
    return found
