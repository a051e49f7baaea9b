"""Uncertainty of placements, from the uncertainty of each device's part and the error sources that parts share.

    error of a placement = sum over parts of share x error of the part        shares of its time, or of its energy
    error of a part      = half-width x sum over factors of sqrt(the factor's share of the variance) x its draw

Factors are those of runs: class, board, model, board and model, case, and the part itself. Parts on one device share
all factors but the last, and the last as well if both are the whole model. So the comparison of a mixture with a
device alone depends only on the factors that differ. A copy is as certain as the numbers of its link.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from joulemap.physics import probability_better
from joulemap.physics.interval.error_scale import OWN, Doubt, DoubtQuantity
from joulemap.physics.interval.half_width import widen_by_prices
from joulemap.wing.place.box.candidate import Candidate
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.generated.row import DoubtedDevice
from joulemap.wing.place.record import BUDGET, Goal, PlacementLine

LEAST_WIDTH: Final = 1e-9
"""Half-width of a difference at or below which the better placement is certain to be better."""

Errors = Mapping[tuple[str, ...], float]
"""Random factor -> its contribution to the half-width of a logarithm; contributions add in quadrature."""


PlacedDoubt = Mapping[Goal, Errors]
"""Goal -> uncertainty of the quantity that it minimizes for a placement."""


def half_width(errors: Errors) -> float:
    """Return the half-width of the 80 % interval of a logarithm with these errors."""
    return math.hypot(*errors.values())


def compare(best: Candidate, other: Candidate, doubts: Sequence[PlacedDoubt], goal: Goal) -> float:
    """Return the probability that `best` beats `other`; `doubts` has their uncertainties in this order."""
    first, second = (one[goal] for one in doubts)
    apart = math.hypot(*(first.get(key, 0.0) - second.get(key, 0.0) for key in {*first, *second}))
    ratio = other.value(goal) / best.value(goal)
    return probability_better(ratio, apart) if apart > LEAST_WIDTH else 1.0


def doubt_placement(candidate: Candidate, known: Doubt, devices: Sequence[DoubtedDevice]) -> PlacedDoubt:
    """Return the uncertainty of a placement's predictions."""
    problem, run = candidate.problem, candidate.run
    whole = run is None or len(run.parts) == 1
    owner = "" if whole else f"{candidate.label} {candidate.form}"
    shares = {(one.quantity, one.factor): one.share.value for one in known.complete_shares()}
    widths = {one.number_basis: one.number_half_width for one in known.spreads}

    def join(quantity: DoubtQuantity, parts: Mapping[int, float]) -> Errors:
        """Return errors by factor, of parts: device -> share x half-width."""
        errors: dict[tuple[str, ...], float] = defaultdict(float)
        for number, width in parts.items():
            for factor, key in _name_factors(problem, number, owner).items():
                errors[quantity, *key] += width * math.sqrt(shares.get((quantity, factor), 0.0))
        return errors

    def join_times(parts: Mapping[int, float]) -> Errors:
        """Return errors of times by factor, of devices and their shares."""
        return join("latency", {number: share * devices[number].latency_half_width for number, share in parts.items()})

    drawn = _weigh_energy(candidate, known, devices)
    energy = {
        **join_times({number: share for number, (share, _) in drawn.items()}),
        **join("power", {number: share * power for number, (share, power) in drawn.items()}),
    }
    if run is None:
        slowest = max(candidate.members, key=lambda number: problem.paced_s[:, number].sum())
        return {"latency": join_times({slowest: 1.0}), "throughput": join_times(candidate.shares), "energy": energy}
    taken = {number: float(part.latency_fs) for number, part in run.parts.items()}
    total = sum(taken.values()) + run.copy_fs
    links: dict[tuple[str, ...], float] = defaultdict(float)
    for copy in run.copies:
        for hop in problem.ways[copy.start, copy.end][:1]:
            links["latency", "link", hop.name] += copy.latency_fs / total * widths[hop.basis]
    latency = {**join_times({number: fs / total for number, fs in taken.items()}), **links}
    names = {problem.members[number].name: number for number in run.parts}
    limited = names.get(run.limit)
    shared = energy if run.limit == BUDGET else latency
    interval = shared if limited is None else join_times({limited: 1.0})
    return {"latency": latency, "throughput": interval, "energy": energy}


def _doubt_power(device: DoubtedDevice, square: float) -> float:
    """Return the half-width of a device's power; `square` is the squared half-width due to uncertain energies per
    action.
    """
    if device.left_out_energy_half_width is not None:
        return math.sqrt(max(device.left_out_energy_half_width**2 - device.latency_half_width**2, 0.0))
    if device.power_group_count is None:
        return math.hypot(device.power_half_width, math.sqrt(square))
    evidence, prices, count = (
        np.array([one], dtype=float) for one in (device.power_half_width**2, square, device.power_group_count)
    )
    return math.sqrt(float(widen_by_prices(evidence, prices, count)[0]))


def _name_factors(problem: Problem, number: int, owner: str) -> dict[str, tuple[str, ...]]:
    """Return factor -> key of its random error; parts with equal keys share the error."""
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
    candidate: Candidate, known: Doubt, devices: Sequence[DoubtedDevice]
) -> dict[int, tuple[float, float]]:
    """Return device -> its share of the energy, and the half-width of its power."""
    lines: dict[str, list[PlacementLine]] = defaultdict(list)
    for line in candidate.lines:
        lines[line.device].append(line)
    total = sum(line.energy_fj for line in candidate.lines)
    spreads = {one.number_basis: one.half_width.value for one in known.spreads}
    shares = {}
    for number, member in enumerate(candidate.problem.members):
        mine = lines[member.name]
        own = sum(line.energy_fj for line in mine)
        if not own:
            continue
        by_basis: dict[str, float] = defaultdict(float)
        for line in mine:
            by_basis[line.basis] += line.energy_fj / own
        square = sum((share * spreads[basis]) ** 2 for basis, share in by_basis.items())
        shares[number] = own / total, _doubt_power(devices[number], square)
    return shares
