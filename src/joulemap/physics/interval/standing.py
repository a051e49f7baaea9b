"""Standings: the probability that each candidate of a question is best, or on a Pareto front.

With two candidates, the probability has a closed form. With more, it is the fraction of 500 joint draws in which a
candidate wins, accurate to about two percentage points, kept between bounds that follow from pairs: it is at most the
probability of beating any one of the 16 best others, and for these 16 at least one minus the sum of the probabilities
of losing to each other candidate (Bonferroni 1936). An additional candidate never raises the probability of another.

The draws of a run do not depend on the other runs. Each key of a factor gives two normal numbers per draw (Box and
Muller 1958), from a hash of the key and the draw: one for latency, one for power. The error of an energy is the sum of
both. All errors of a draw are multiplied by one random scale, which makes normal errors logistic: half the square of
the scale is a sum of exponential numbers over 1, 4, 9, ... (Andrews and Mallows 1974). Thirty terms are drawn; the rest
is replaced by its mean, 1 / 31^2 + 1 / 32^2 + ... The difference of two runs is thus logistic too, and as wide as its
closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.interval.covariance import SHARE_UNIT, ErrorColumns, Integers, compare_pairs
from joulemap.physics.interval.error_scale import LOGISTIC, TOLD_APART
from joulemap.physics.interval.probability import Floats, Powers, probability_above
from joulemap.system.record import frozen

Hashes = NDArray[np.uint64]

SELLER_SHARE: Final = 0.37
"""Share of the variance of a price's error that all prices of one seller have in common.

Derived: 136 pairs of offers of the catalogue (`correlate_sellers` of tests/catalog/test_offer.py).
"""

SCALE_TERMS: Final = 30
SCALE_REST: Final = 0.0328
"""Mean of the terms of the random scale that are not drawn."""

BLOCK: Final = 2_000_000
"""Maximum number of random numbers drawn at once; more would not fit in small memories."""

_FACTOR: Final = 0xD6E8FEB86659FD93
_SEED: Final = 0xE17A1465
_LENGTH: Final = 0xC6A4A7935BD1E995
_STRIDE: Final = 2_654_435_761
_MASK: Final = 2**64 - 1


@frozen(kw_only=True)
class Draws:
    """Random errors of ln(latency) and ln(energy), with one row per run and one column per draw."""

    numbers: Hashes
    """Number of each draw, from which its random numbers follow."""
    scale: Floats
    """Random factor of each draw that multiplies all its errors."""
    latency: Floats
    energy: Floats


def mix(words: Hashes) -> Hashes:
    """Return 64-bit words with mixed bits, for use as hashes. Source: Murmur's finalizer with the constants of DuckDB's
    hash.
    """
    for _ in range(2):
        words = words ^ (words >> np.uint64(32))
        words = words * np.uint64(_FACTOR)
    return words ^ (words >> np.uint64(32))


@cache
def hash_text(text: str) -> int:
    """Return the 64-bit hash of a text, as DuckDB 1.5 computes it (`src/common/types/hash.cpp`)."""
    data = text.encode()
    mixed = _SEED ^ (len(data) * _LENGTH & _MASK)
    for start in range(0, len(data), 8):
        mixed = (mixed ^ int.from_bytes(data[start : start + 8], "little")) * _FACTOR & _MASK
    return int(mix(np.array([mixed], dtype=np.uint64))[0])


def hash_texts(texts: Sequence[str]) -> Hashes:
    """Return the 64-bit hash of each text."""
    return np.array([hash_text(text) for text in texts], dtype=np.uint64)


def draw_uniform(keys: Hashes, numbers: Hashes) -> Floats:
    """Return a uniform random number between 0 and 1 for each key and draw (keys x draws)."""
    words = mix(keys[..., None] ^ (numbers * np.uint64(_STRIDE)))
    return np.asarray((words.astype(np.float64) + 0.5) / 2.0**64)


def draw_normals(keys: Hashes, numbers: Hashes) -> tuple[Floats, Floats]:
    """Return two independent standard normal numbers for each key and draw, as two arrays (keys x draws)."""
    size = np.sqrt(-2.0 * np.log(draw_uniform(keys, numbers)))
    angle = 2.0 * np.pi * draw_uniform(keys ^ np.uint64(1), numbers)
    return size * np.cos(angle), size * np.sin(angle)


def draw_scales(numbers: Hashes) -> Floats:
    """Return the random factor of each draw that multiplies all its errors."""
    terms = np.arange(1, SCALE_TERMS + 1, dtype=np.uint64)
    key = np.array([hash_text("scale")], dtype=np.uint64)
    even = draw_uniform(key, (np.uint64(32) * numbers[:, None] + terms).ravel()).reshape(len(numbers), SCALE_TERMS)
    total = (np.log(even) / np.square(terms.astype(float))).sum(axis=1)
    return np.asarray(np.sqrt(2.0 * (SCALE_REST - total)) / LOGISTIC)


def draw_errors(errors: ErrorColumns, count: int) -> Iterator[Draws]:
    """Yield `count` joint draws of the errors of runs, in blocks that fit in memory."""
    hashes = hash_texts(errors.texts)
    step = max(BLOCK // max(len(errors.texts), errors.keys.size, 1), 1)
    for start in range(0, count, step):
        numbers = np.arange(start, min(start + step, count), dtype=np.uint64)
        scale = draw_scales(numbers)
        normals = draw_normals(hashes, numbers)
        latency, power = (np.zeros((len(errors.keys), len(numbers)), dtype=np.int64) for _ in range(2))
        for factor in range(len(errors.factors)):
            keys = errors.keys[:, factor]
            shares = (np.sqrt(part[:, factor, None]) for part in (errors.latency_share, errors.power_share))
            for total, share, drawn in zip((latency, power), shares, normals, strict=True):
                total += np.rint(SHARE_UNIT * share * drawn[keys]).astype(np.int64)
        drawn_latency = errors.latency_half_width[:, None] * scale / SHARE_UNIT * latency
        drawn_power = errors.power_half_width[:, None] * scale / SHARE_UNIT * power
        yield Draws(numbers=numbers, scale=scale, latency=drawn_latency, energy=drawn_latency + drawn_power)


def draw_prices(keys: Sequence[str], sellers: Sequence[str], half_widths: Floats, draws: Draws) -> Floats:
    """Return the error of ln(price) for each price and draw (prices x draws). Errors of one seller's prices are
    correlated.
    """
    errors = np.zeros((len(half_widths), len(draws.numbers)))
    doubted = np.flatnonzero(half_widths > 0.0).tolist()
    if doubted:
        of_seller, _ = draw_normals(hash_texts([f"seller {sellers[index]}" for index in doubted]), draws.numbers)
        of_price, _ = draw_normals(hash_texts([f"price {keys[index]}" for index in doubted]), draws.numbers)
        drawn = np.sqrt(SELLER_SHARE) * of_seller + np.sqrt(1.0 - SELLER_SHARE) * of_price
        errors[doubted] = half_widths[doubted, None] * draws.scale * drawn
    return errors


def price_square(half_width: Floats, other: Floats, is_one_price: Floats, is_one_seller: Floats) -> Floats:
    """Return the squared half-width of ln(price / other price) for pairs of prices. It is 0 if both are the same
    price.
    """
    shared = np.where(is_one_price, 1.0, np.where(is_one_seller, SELLER_SHARE, 0.0))
    return half_width**2 + other**2 - 2.0 * half_width * other * shared


RIVAL_COUNT: Final = 16
"""Number of best candidates with which every candidate is compared in pairs."""

DRAW_COUNT: Final = 500
FRONT_DRAW_COUNT: Final = 250


@frozen(kw_only=True)
class Candidate:
    """Candidate of a question; the candidate with the lowest cost is predicted to be best."""

    place: int
    """Number that identifies the candidate within its question."""
    run_id: int
    powers: Powers
    """Exponents of latency and energy in the cost."""
    cost: float
    """Logarithm of the metric's value if lower is better, else its negative."""
    price_half_width: float = 0.0
    """Half-width of ln(cost) that is due to the price; 0 without a price."""
    price_key: str = ""
    seller: str = ""


@frozen(kw_only=True)
class Standing:
    """Probability that a candidate is the best of its question."""

    place: int
    probability_best: float
    probability_ahead: float | None
    """Probability that the candidate is better than the predicted best; None for the predicted best itself."""
    is_likely_best: bool
    """True for the predicted best, and for candidates that may well be better than it."""


def rank_candidates(candidates: Sequence[Candidate], errors: ErrorColumns) -> list[Standing]:
    """Return the standing of each candidate of one question, the lowest cost first.

    A candidate whose run has no prediction is omitted, unless it is the only one.
    """
    ranked = sorted(candidates, key=lambda one: (np.isnan(one.cost), one.cost, one.place))
    if len(ranked) == 1:
        return [Standing(place=ranked[0].place, probability_best=1.0, probability_ahead=None, is_likely_best=True)]
    beaten = _beat_rivals(ranked, errors)
    with np.errstate(invalid="ignore"):
        least = np.fmin.reduce(beaten, axis=1)
    surely = np.zeros(len(ranked))
    surely[: beaten.shape[1]] = 1.0 - np.nansum(beaten, axis=0)
    won = _count_wins(ranked, errors) if len(ranked) > 2 else np.ones(len(ranked))
    standings = []
    for rank, one in enumerate(ranked):
        if np.isnan(least[rank]):
            continue
        ahead = None if rank == 0 or np.isnan(beaten[rank, 0]) else float(beaten[rank, 0])
        standings.append(
            Standing(
                place=one.place,
                probability_best=float(min(max(won[rank], surely[rank]), least[rank])),
                probability_ahead=ahead,
                is_likely_best=rank == 0 or (ahead is not None and ahead > 1.0 - TOLD_APART),
            )
        )
    return standings


def _beat_rivals(ranked: Sequence[Candidate], errors: ErrorColumns) -> Floats:
    """Return the probability that each candidate beats each of the `RIVAL_COUNT` best (candidates x rivals).

    It is NaN for a candidate against itself, and without a prediction.
    """
    rows = errors.find([one.run_id for one in ranked])
    rivals = np.arange(min(len(ranked), RIVAL_COUNT))
    first, second = (one.ravel() for one in np.meshgrid(np.arange(len(ranked)), rivals, indexing="ij"))
    is_pair = (first != second) & (rows[first] >= 0) & (rows[second] >= 0)
    first, second = first[is_pair], second[is_pair]
    costs = np.array([one.cost for one in ranked])
    powers = [ranked[index].powers for index in first.tolist()]
    pairs = compare_pairs(errors, rows[first], rows[second])
    apart = pairs.half_width(powers)
    prices = np.array([one.price_half_width for one in ranked], dtype=float)
    keys, sellers = (_number([getattr(one, name) for one in ranked]) for name in ("price_key", "seller"))
    square = price_square(prices[first], prices[second], keys[first] == keys[second], sellers[first] == sellers[second])
    beats = np.full((len(ranked), len(rivals)), np.nan)
    beats[first, second] = probability_above(
        costs[second] - costs[first], np.sqrt(apart**2 + square), pairs.thin_width(powers)
    )
    return beats


def _number(texts: Sequence[str]) -> Integers:
    """Return a number for each text; equal texts have equal numbers."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(one, len(places)) for one in texts], dtype=np.int64)


def _count_wins(ranked: Sequence[Candidate], errors: ErrorColumns) -> Floats:
    """Return the fraction of draws in which each candidate has the lowest cost."""
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
    """One cost of a Pareto front for all its candidates."""

    powers: Powers
    """Exponents of latency and energy in the cost."""
    costs: Floats
    """ln(value) of each candidate if lower is better, else its negative."""
    has_price: bool
    """True if the value contains the price of the candidate as a factor."""

    def draw(self, latency: Floats, energy: Floats, prices: Floats) -> Floats:
        """Return the cost of each candidate in each draw, given the drawn errors of all candidates (candidates x
        draws).
        """
        drawn = self.costs[:, None] + (self.powers.latency * latency + self.powers.energy * energy)
        return np.asarray(drawn + prices) if self.has_price else drawn


def estimate_front(
    run_ids: Sequence[int],
    axes: tuple[Axis, Axis],
    prices: tuple[Sequence[str], Sequence[str], Floats],
    errors: ErrorColumns,
) -> Floats:
    """Return, for each candidate, the probability that no other candidate beats it in both costs; NaN without a finite
    cost.

    `prices` are keys, sellers and half-widths. Every run must have a prediction.
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
