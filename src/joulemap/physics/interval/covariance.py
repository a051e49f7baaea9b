"""Covariance of prediction errors: shared errors cancel when two runs are compared.

    error of a run = half-width x sum over factors of sqrt(share of the factor) x random number of its key
    error of an energy = error of the latency + error of the power

Errors of latency and power are independent. Factors are the class, the board, the model, the board with the model, the
case, the run itself, the numbers of the hardware, and thinly measured numbers of an engine. Runs with the same key of a
factor have the same random number for it. Shares are added as whole numbers, so that results do not depend on the order
of rows. docs/doubt.md states the source of the shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.interval.error_scale import OWN, THIN_SOURCE
from joulemap.physics.interval.probability import Floats, Powers
from joulemap.system.record import frozen

Integers = NDArray[np.int64]

SHARE_UNIT: Final = 1e15
"""Integer that represents a share of 1."""

NUMBERS: Final = "numbers"
"""Factor for errors that wrong numbers of a chip, such as its clock, cause in all its runs."""

THIN: Final = "thin"
"""Factor for errors of thinly measured numbers of an engine, which runs of the same kernels have in common."""

KEYS: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, ...]]]] = {
    "class": lambda run: ("class", run["architecture"]),
    "board": lambda run: ("board", run["hardware"]),
    NUMBERS: lambda run: ("numbers of", run["hardware"]),
    THIN: lambda run: ("engine", run.get("engine_numbers", "")),
    "model": lambda run: ("model", run["architecture"], run["model"]),
    "board_model": lambda run: ("board and model", run["hardware"], run["model"]),
    "case": lambda run: ("case", run["architecture"], run["model"], run["configuration"]),
    OWN: lambda run: ("own", run["own"]),
}
"""Factor -> function that returns the key of a run: the properties that runs with the same error have in common."""


@frozen(kw_only=True)
class ErrorColumns:
    """Errors of runs as arrays: one row per run, and one column per factor where the error is split into factors."""

    places: Mapping[int, int]
    """Run id -> row of the arrays."""
    factors: tuple[str, ...]
    latency_half_width: Floats
    power_half_width: Floats
    latency_share: Floats
    """Share of each factor in the variance of each run's latency (runs x factors); `power_share` has the same shape."""
    power_share: Floats
    keys: Integers
    """Index in `texts` of the key of each run for each factor (runs x factors)."""
    texts: tuple[str, ...]
    thin_half_width: Floats
    """Part of each run's half-width of latency that thinly measured numbers add."""

    def find(self, run_ids: Sequence[int]) -> Integers:
        """Return the row of each run id; -1 for a run without a prediction."""
        return np.array([self.places.get(one, -1) for one in run_ids], dtype=np.int64)


@frozen(kw_only=True)
class Differences:
    """Variances of the differences between two runs in ln(latency) and ln(energy), for many pairs, as squared
    half-widths.

    The covariance of latency and energy equals the variance of latency: an energy's error is the sum of the latency's
    error and an independent one of power.
    """

    latency_square: Floats
    energy_square: Floats
    thin_square: Floats
    """Part of both that numbers of one source add; 0 for pairs with the same numbers."""

    def thin_width(self, powers: Sequence[Powers]) -> Floats:
        """Return the part of `half_width` that numbers of one source add."""
        exponent = np.array([one.latency + one.energy for one in powers])
        return np.asarray(np.abs(exponent) * np.sqrt(self.thin_square))

    def half_width(self, powers: Sequence[Powers]) -> Floats:
        """Return the half-width of ln(ratio) of each pair. `powers` has the exponents of one metric for all pairs, or
        one per pair.
        """
        latency, energy = (np.array([getattr(one, name) for one in powers]) for name in ("latency", "energy"))
        square = (
            np.square(latency) * self.latency_square
            + np.square(energy) * self.energy_square
            + 2.0 * latency * energy * self.latency_square
        )
        return np.asarray(np.sqrt(np.fmax(square, 0.0)))


def split_errors(runs: Sequence[Mapping[str, Any]], shares: Mapping[tuple[str, str], float]) -> ErrorColumns:
    """Return the errors of runs, split into factors.

    Each run has `run_id`, `latency_half_width`, `energy_half_width`, and the properties that `KEYS` reads. It also has
    `latency_own_half_width` and `energy_own_half_width`, the parts that the numbers of its hardware cause, and may have
    `thin_half_width`, the part of thinly measured numbers, and their key `engine_numbers`. `shares`
    maps (quantity, factor) to a share; quantities are latency and power.
    """
    factors = (*dict.fromkeys(factor for _, factor in shares), NUMBERS, THIN)
    known = {**shares, ("latency", NUMBERS): 1.0, ("power", NUMBERS): 1.0, ("latency", THIN): 1.0}
    latency, power = (
        np.array([known.get((quantity, factor), 0.0) for factor in factors]) for quantity in ("latency", "power")
    )
    thin = np.array([run.get("thin_half_width") or 0.0 for run in runs], dtype=float)

    def column(name: str) -> Floats:
        return np.array([run[name] for run in runs], dtype=float)

    def subtract(name: str) -> Floats:
        """Return the half-width of the power from the half-widths of energy and latency."""
        square = np.square(column(name.format("energy"))) - np.square(column(name.format("latency")))
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def keep(whole: Floats, part: Floats, thin: Floats) -> Floats:
        """Return the shares of each run's variance: for `NUMBERS` and `THIN` the parts that the hardware's numbers and
        thinly measured ones explain, else the rest.
        """

        def square(part: Floats) -> Floats:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.square(part / np.where(whole == 0.0, np.nan, whole))
            return np.asarray(np.minimum(np.nan_to_num(ratio, nan=0.0), 1.0))

        own = square(part)
        few = np.minimum(square(thin), 1.0 - own)
        rest = 1.0 - own - few
        return np.stack([{NUMBERS: own, THIN: few}.get(factor, rest) for factor in factors], axis=1)

    widths, owned = "{}_half_width", "{}_own_half_width"
    latency_width, power_width = column(widths.format("latency")), subtract(widths)
    places: dict[str, int] = {}
    keys = [[places.setdefault(" ".join(KEYS[one](run)), len(places)) for one in factors] for run in runs]
    return ErrorColumns(
        places={int(run["run_id"]): index for index, run in enumerate(runs)},
        factors=factors,
        latency_half_width=latency_width,
        power_half_width=power_width,
        latency_share=latency * keep(latency_width, column(owned.format("latency")), thin),
        power_share=power * keep(power_width, subtract(owned), 0.0 * thin),
        keys=np.array(keys, dtype=np.int64).reshape(len(runs), len(factors)),
        texts=tuple(places),
        thin_half_width=thin,
    )


def compare_pairs(errors: ErrorColumns, first: Integers, second: Integers, *, is_other: Any = False) -> Differences:
    """Return the variances of the differences between the rows `first` and `second` of `errors`, pair by pair.

    `is_other` is True where the second run is another design that has no row and uses that of a stored run. Both runs
    then do not share the error of this one run.
    """
    is_alike = errors.keys[first] == errors.keys[second]
    is_alike &= ~(np.asarray(is_other, dtype=bool)[..., None] & np.array([one == OWN for one in errors.factors]))
    t, other_t = errors.latency_half_width[first], errors.latency_half_width[second]
    p, other_p = errors.power_half_width[first], errors.power_half_width[second]

    def share(parts: Floats) -> Integers:
        units = np.rint(SHARE_UNIT * np.sqrt(parts[first] * parts[second])).astype(np.int64)
        return np.asarray(np.where(is_alike, units, 0).sum(axis=-1))

    unit = 1.0 / SHARE_UNIT
    few, other_few = (
        np.where(one >= THIN_SOURCE, one, 0.0)
        for one in (errors.thin_half_width[first], errors.thin_half_width[second])
    )
    is_same = is_alike[..., errors.factors.index(THIN)]
    latency_square = t**2 + other_t**2 - 2.0 * unit * t * other_t * share(errors.latency_share)
    power_square = p**2 + other_p**2 - 2.0 * unit * p * other_p * share(errors.power_share)
    return Differences(
        latency_square=latency_square,
        energy_square=latency_square + power_square,
        thin_square=np.where(is_same, 0.0, few**2 + other_few**2),
    )
