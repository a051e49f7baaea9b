"""Joint draws of prediction errors; the draws of a run do not depend on the other runs.

Each key of a factor gives two normal numbers per draw (Box and Muller 1958), from a hash of the key and the draw: one
of the latency, one of the power. The error of an energy is the sum of both. All errors of a draw have one random
scale, with which a normal error is a logistic one: half the square of the scale is a sum of exponential numbers over
1, 4, 9, ... (Andrews and Mallows 1974). Thirty are drawn; the rest is replaced by its mean, 1 / 31^2 + 1 / 32^2 + ...
So the difference of two runs is logistic as well, and as wide as its closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.domain.doubt import LOGISTIC
from joulemap.system.record import frozen
from joulemap.uncertainty.covariance import SHARE_UNIT, ErrorColumns
from joulemap.uncertainty.probability import Floats

Hashes = NDArray[np.uint64]

SELLER_SHARE: Final = 0.37
"""Share of the variance of a price's error that the prices of one seller have in common.

Derived: 136 pairs of offers of the catalogue (`correlate_sellers` of domain/offer.py)."""

SCALE_TERMS: Final = 30
SCALE_REST: Final = 0.0328
"""Mean of the terms of the scale that are not drawn."""

BLOCK: Final = 2_000_000
"""Maximum count of random numbers drawn at once; more would not fit in small memories."""

_FACTOR: Final = 0xD6E8FEB86659FD93
_SEED: Final = 0xE17A1465
_LENGTH: Final = 0xC6A4A7935BD1E995
_STRIDE: Final = 2_654_435_761
_MASK: Final = 2**64 - 1


@frozen(kw_only=True)
class Draws:
    """Errors of some draws: logarithms of measured over predicted values, a row per run and a column per draw."""

    numbers: Hashes
    """Number of each draw."""
    scale: Floats
    """Scale of all errors of each draw."""
    latency: Floats
    energy: Floats


def mix(words: Hashes) -> Hashes:
    """Return words of 64 bits whose bits are mixed. Source: Murmur's finalizer with the constants of DuckDB's hash."""
    for _ in range(2):
        words = words ^ (words >> np.uint64(32))
        words = words * np.uint64(_FACTOR)
    return words ^ (words >> np.uint64(32))


@cache
def hash_text(text: str) -> int:
    """Return the hash of a text, as in DuckDB 1.5, which earlier versions used for the draws
    (`src/common/types/hash.cpp`).
    """
    data = text.encode()
    found = _SEED ^ (len(data) * _LENGTH & _MASK)
    for start in range(0, len(data), 8):
        found = (found ^ int.from_bytes(data[start : start + 8], "little")) * _FACTOR & _MASK
    return int(mix(np.array([found], dtype=np.uint64))[0])


def hash_texts(texts: Sequence[str]) -> Hashes:
    """Return the hash of each text."""
    return np.array([hash_text(text) for text in texts], dtype=np.uint64)


def draw_uniform(keys: Hashes, numbers: Hashes) -> Floats:
    """Return an even number between 0 and 1 for each key and draw."""
    words = mix(keys[..., None] ^ (numbers * np.uint64(_STRIDE)))
    return np.asarray((words.astype(np.float64) + 0.5) / 2.0**64)


def draw_normals(keys: Hashes, numbers: Hashes) -> tuple[Floats, Floats]:
    """Return two independent normal numbers for each key and draw."""
    size = np.sqrt(-2.0 * np.log(draw_uniform(keys, numbers)))
    angle = 2.0 * np.pi * draw_uniform(keys ^ np.uint64(1), numbers)
    return size * np.cos(angle), size * np.sin(angle)


def draw_scales(numbers: Hashes) -> Floats:
    """Return the scale of all errors of each draw."""
    terms = np.arange(1, SCALE_TERMS + 1, dtype=np.uint64)
    key = np.array([hash_text("scale")], dtype=np.uint64)
    even = draw_uniform(key, (np.uint64(32) * numbers[:, None] + terms).ravel()).reshape(len(numbers), SCALE_TERMS)
    total = (np.log(even) / np.square(terms.astype(float))).sum(axis=1)
    return np.asarray(np.sqrt(2.0 * (SCALE_REST - total)) / LOGISTIC)


def draw_errors(errors: ErrorColumns, count: int) -> Iterator[Draws]:
    """Yield `count` joint draws of the errors of runs, as many at once as memory allows."""
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
    """Return the error of each price in each draw, as a logarithm: prices of one seller have a part in common."""
    found = np.zeros((len(half_widths), len(draws.numbers)))
    doubted = np.flatnonzero(half_widths > 0.0).tolist()
    if doubted:
        of_seller, _ = draw_normals(hash_texts([f"seller {sellers[place]}" for place in doubted]), draws.numbers)
        of_price, _ = draw_normals(hash_texts([f"price {keys[place]}" for place in doubted]), draws.numbers)
        drawn = np.sqrt(SELLER_SHARE) * of_seller + np.sqrt(1.0 - SELLER_SHARE) * of_price
        found[doubted] = half_widths[doubted, None] * draws.scale * drawn
    return found


def price_square(half_width: Floats, other: Floats, is_one_price: Floats, is_one_seller: Floats) -> Floats:
    """Return the squared half-width of the difference of two prices, as logarithms; 0 for one and the same price."""
    shared = np.where(is_one_price, 1.0, np.where(is_one_seller, SELLER_SHARE, 0.0))
    return half_width**2 + other**2 - 2.0 * half_width * other * shared
