"""Score predictions by group, for the record of a calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from joulemap.calibrate.fit import Prediction
from joulemap.calibrate.observation import Observation
from joulemap.calibrate.parameter import rounded
from joulemap.domain.calibration import CalibrationError
from joulemap.model.workload import Booleans, Floats

ERROR_DIGITS: Final = 4

FEWEST_TO_RANK: Final = 3


def score(
    observations: Sequence[Observation], measured: tuple[Floats, Floats], predictions: Sequence[tuple[str, Prediction]]
) -> tuple[CalibrationError, ...]:
    """Return the errors of whole runs: overall, by runtime and precision, by batch size within these, and by family.

    `measured` holds latencies and energies, NaN if there are none; `predictions` has one entry per split.
    """
    found = []
    for quantity, values in zip(("latency", "energy"), measured, strict=True):
        counted = np.isfinite(values) & np.array([one.is_run for one in observations])
        for place, rows in _groups(observations, counted):
            for split, prediction in predictions:
                predicted = prediction.latency_s if quantity == "latency" else prediction.energy_j
                found.append(_score(quantity, split, place, predicted[rows], values[rows]))
    return tuple(found)


def _groups(
    observations: Sequence[Observation], counted: Booleans
) -> Iterator[tuple[tuple[str, str, int, str], Booleans]]:
    """Yield ((runtime, precision, batch, family), rows) for groups with rows; empty or 0 means all."""
    places: dict[tuple[str, str, int, str], list[int]] = {}
    batches: dict[tuple[str, str], set[int]] = {}
    for row in np.flatnonzero(counted).tolist():
        one = observations[row]
        settings = one.configuration
        for place in (
            ("", "", 0, ""),
            (settings.runtime, settings.precision, 0, ""),
            (settings.runtime, settings.precision, settings.batch, ""),
            ("", "", 0, one.family),
        ):
            places.setdefault(place, []).append(row)
        batches.setdefault((settings.runtime, settings.precision), set()).add(settings.batch)
    for (runtime, precision), sizes in batches.items():
        if len(sizes) == 1:  # the group of the single batch is the same
            del places[runtime, precision, 0, ""]
    for place in sorted(places, key=lambda place: (place[3] != "", place)):
        rows = np.zeros(len(observations), dtype=bool)
        rows[places[place]] = True
        yield place, rows


def _score(
    quantity: str, split: str, place: tuple[str, str, int, str], predicted: Floats, measured: Floats
) -> CalibrationError:
    runtime, precision, batch, family = place
    errors = predicted / measured - 1.0
    sizes = np.abs(errors)
    return CalibrationError(
        quantity=quantity,
        split=split,
        runtime=runtime,
        precision=precision,
        batch=batch,
        family=family,
        row_count=len(errors),
        mean_error_fraction=rounded(float(sizes.mean()), ERROR_DIGITS),
        median_error_fraction=rounded(float(np.median(sizes)), ERROR_DIGITS),
        worst_error_fraction=rounded(float(errors[np.argmax(sizes)]), ERROR_DIGITS),
        rank_correlation=_rank_correlation(predicted, measured),
    )


def _rank_correlation(predicted: Floats, measured: Floats) -> float | None:
    """Return Spearman's rank correlation; None below three rows or if one side is constant."""
    if len(measured) < FEWEST_TO_RANK or np.ptp(measured) == 0.0 or np.ptp(predicted) == 0.0:
        return None
    return rounded(float(np.corrcoef(_ranks(predicted), _ranks(measured))[0, 1]), ERROR_DIGITS)


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal values share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2.0)[place]
    return ranks
