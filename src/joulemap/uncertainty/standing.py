"""Standings: the probability that each candidate of a question is best, or on a Pareto front.

For two candidates the closed form answers. For more, joint draws do, and no candidate is more likely to be the best
than to beat each of the 16 best others alone. Another candidate therefore never raises the probability of the others;
the number of draws is constant. 500 draws resolve one percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.domain.doubt import TOLD_APART
from joulemap.system.record import frozen
from joulemap.uncertainty.covariance import ErrorColumns, Integers, compare_pairs
from joulemap.uncertainty.draw import draw_errors, draw_prices, price_square
from joulemap.uncertainty.probability import Floats, Powers, probability_above

RIVAL_COUNT: Final = 16
"""Maximum best candidates with which each candidate is compared pairwise."""

DRAW_COUNT: Final = 500
FRONT_DRAW_COUNT: Final = 250


@frozen(kw_only=True)
class Candidate:
    """A candidate of a question; the lowest cost is the best."""

    place: int
    """Number of the candidate within its question."""
    run_id: int
    powers: Powers
    """Exponents of latency and energy in the cost."""
    cost: float
    """Logarithm of the metric's value if lower is better, else its negative."""
    price_half_width: float = 0.0
    """Half-width of the price within the cost, as a logarithm; 0 without a price."""
    price_key: str = ""
    seller: str = ""


@frozen(kw_only=True)
class Standing:
    """Standing of a candidate among those of its question."""

    place: int
    probability_best: float
    probability_ahead: float | None
    """Probability that it is better than the predicted best; None for the predicted best itself."""
    is_likely_best: bool


def rank_candidates(candidates: Sequence[Candidate], errors: ErrorColumns) -> list[Standing]:
    """Return the standing of each candidate of one question, the best cost first.

    A candidate whose run has no prediction is omitted, unless it is the only one.
    """
    ranked = sorted(candidates, key=lambda one: (np.isnan(one.cost), one.cost, one.place))
    if len(ranked) == 1:
        return [Standing(place=ranked[0].place, probability_best=1.0, probability_ahead=None, is_likely_best=True)]
    beaten = _beat_rivals(ranked, errors)
    with np.errstate(invalid="ignore"):
        least = np.fmin.reduce(beaten, axis=1)
    won = _count_wins(ranked, errors) if len(ranked) > 2 else np.ones(len(ranked))
    found = []
    for place, one in enumerate(ranked):
        if np.isnan(least[place]):
            continue
        ahead = None if place == 0 or np.isnan(beaten[place, 0]) else float(beaten[place, 0])
        found.append(
            Standing(
                place=one.place,
                probability_best=float(min(won[place], least[place])),
                probability_ahead=ahead,
                is_likely_best=place == 0 or (ahead is not None and ahead > 1.0 - TOLD_APART),
            )
        )
    return found


def _beat_rivals(ranked: Sequence[Candidate], errors: ErrorColumns) -> Floats:
    """Return the probability that each candidate beats each of the best ones; not a number for itself."""
    rows = errors.find([one.run_id for one in ranked])
    rivals = np.arange(min(len(ranked), RIVAL_COUNT))
    first, second = (one.ravel() for one in np.meshgrid(np.arange(len(ranked)), rivals, indexing="ij"))
    is_pair = (first != second) & (rows[first] >= 0) & (rows[second] >= 0)
    first, second = first[is_pair], second[is_pair]
    costs = np.array([one.cost for one in ranked])
    powers = [ranked[place].powers for place in first.tolist()]
    apart = compare_pairs(errors, rows[first], rows[second]).half_width(powers)
    prices = np.array([one.price_half_width for one in ranked], dtype=float)
    keys, sellers = (_number([getattr(one, name) for one in ranked]) for name in ("price_key", "seller"))
    square = price_square(prices[first], prices[second], keys[first] == keys[second], sellers[first] == sellers[second])
    found = np.full((len(ranked), len(rivals)), np.nan)
    found[first, second] = probability_above(costs[second] - costs[first], np.sqrt(apart**2 + square))
    return found


def _number(texts: Sequence[str]) -> Integers:
    """Return a number for each text, equal for equal texts."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(one, len(places)) for one in texts], dtype=np.int64)


def _count_wins(ranked: Sequence[Candidate], errors: ErrorColumns) -> Floats:
    """Return the fraction of draws in which each candidate is the best."""
    rows = errors.find([one.run_id for one in ranked])
    there = np.flatnonzero(rows >= 0)
    costs = np.array([one.cost for one in ranked])[there, None]
    prices = np.array([one.price_half_width for one in ranked], dtype=float)[there]
    known = [ranked[one] for one in there.tolist()]
    if not known:
        return np.zeros(len(ranked))
    latency_power, energy_power = np.array([(one.powers.latency, one.powers.energy) for one in known]).T[..., None]
    keys, sellers = [one.price_key for one in known], [one.seller for one in known]
    wins = np.zeros(len(ranked))
    for draws in draw_errors(errors, DRAW_COUNT):
        drawn = costs + latency_power * draws.latency[rows[there]] + energy_power * draws.energy[rows[there]]
        best = np.argmin(drawn + draw_prices(keys, sellers, prices, draws), axis=0)
        wins += np.bincount(there[best], minlength=len(ranked))
    return np.asarray(wins / DRAW_COUNT)


@frozen(kw_only=True)
class Axis:
    """One of the two costs of a Pareto front."""

    powers: Powers
    """Exponents of latency and energy in the cost."""
    costs: Floats
    """Logarithms of values if lower is better, else their negatives."""
    has_price: bool
    """True if the price of a candidate is a factor of the value."""

    def draw(self, latency: Floats, energy: Floats, prices: Floats) -> Floats:
        """Return the costs in each draw."""
        drawn = self.costs[:, None] + (self.powers.latency * latency + self.powers.energy * energy)
        return np.asarray(drawn + prices) if self.has_price else drawn


def estimate_front(
    run_ids: Sequence[int],
    axes: tuple[Axis, Axis],
    prices: tuple[Sequence[str], Sequence[str], Floats],
    errors: ErrorColumns,
) -> Floats:
    """Return, for each candidate, the probability that no other beats it in both costs; NaN without a finite cost.

    `prices` are keys, sellers and half-widths. Every run has a prediction.
    """
    rows, order = errors.find(run_ids), np.asarray(run_ids)
    there = np.zeros(len(rows))
    for draws in draw_errors(errors, FRONT_DRAW_COUNT) if len(rows) else ():
        priced = draw_prices(*prices, draws)
        x, y = (one.draw(draws.latency[rows], draws.energy[rows], priced) for one in axes)
        there[~np.isfinite(x + y).all(axis=1)] = np.nan
        x, y = (np.where(np.isfinite(one), one, np.inf) for one in (x, y))
        for draw in range(x.shape[1]):
            placed = np.lexsort((order, y[:, draw], x[:, draw]))
            sorted_x, sorted_y = x[placed, draw], y[placed, draw]
            is_front = np.concatenate([[True], sorted_y[1:] < np.minimum.accumulate(sorted_y)[:-1]])
            is_other = np.concatenate([[True], (sorted_x[1:] != sorted_x[:-1]) | (sorted_y[1:] != sorted_y[:-1])])
            first = np.maximum.accumulate(np.where(is_other, np.arange(len(placed)), 0))
            there[placed[is_front[first]]] += 1.0  # equal candidates do not beat each other
    return there / FRONT_DRAW_COUNT
