"""Calibrate a chip to observations: fit, score, and report contradictions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.calibrate.bench import make_bench
from joulemap.calibrate.fit import Fitter, Prediction, Solution, Target, changed
from joulemap.calibrate.free_parameter import FARTHEST, FreeParameter, free_coefficients, rounded
from joulemap.calibrate.observation import Observation
from joulemap.physics.record.calibration import MOST_FACTOR, Calibration, CalibrationError, EnergyScale, FittedValue
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

ERROR_DIGITS: Final = 4

FEWEST_TO_RANK: Final = 3


def score(
    observations: Sequence[Observation], measured: tuple[Floats, Floats], predictions: Sequence[tuple[str, Prediction]]
) -> tuple[CalibrationError, ...]:
    """Return the errors of whole runs: overall, by runtime and precision, by batch size within these, and by family.

    `measured` holds latencies (s) and energies (J), NaN where not measured; `predictions` has one entry per split.
    """
    scores = []
    for quantity, values in zip(("latency", "energy"), measured, strict=True):
        counted = np.isfinite(values) & np.array([one.is_run for one in observations])
        for group, rows in _groups(observations, counted):
            for split, prediction in predictions:
                predicted = prediction.latency_s if quantity == "latency" else prediction.energy_j
                scores.append(_score(quantity, split, group, predicted[rows], values[rows]))
    return tuple(scores)


def _groups(
    observations: Sequence[Observation], counted: Booleans
) -> Iterator[tuple[tuple[str, str, int, str], Booleans]]:
    """Yield each group, as (runtime, precision, batch, family), with a mask of its rows.

    An empty text or 0 means all values. Groups without rows are omitted.
    """
    places: dict[tuple[str, str, int, str], list[int]] = {}
    batches: dict[tuple[str, str], set[int]] = {}
    for row in np.flatnonzero(counted).tolist():
        one = observations[row]
        settings = one.configuration
        for group in (
            ("", "", 0, ""),
            (settings.runtime, settings.precision, 0, ""),
            (settings.runtime, settings.precision, settings.batch, ""),
            ("", "", 0, one.family),
        ):
            places.setdefault(group, []).append(row)
        batches.setdefault((settings.runtime, settings.precision), set()).add(settings.batch)
    for (runtime, precision), sizes in batches.items():
        if len(sizes) == 1:  # the group of the single batch is the same
            del places[runtime, precision, 0, ""]
    for group in sorted(places, key=lambda group: (group[3] != "", group)):
        rows = np.zeros(len(observations), dtype=bool)
        rows[places[group]] = True
        yield group, rows


def _score(
    quantity: str, split: str, group: tuple[str, str, int, str], predicted: Floats, measured: Floats
) -> CalibrationError:
    runtime, precision, batch, family = group
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
    """Return Spearman's rank correlation; None for fewer than three rows or if one side is constant."""
    if len(measured) < FEWEST_TO_RANK or np.ptp(measured) == 0.0 or np.ptp(predicted) == 0.0:
        return None
    return rounded(float(np.corrcoef(_ranks(predicted), _ranks(measured))[0, 1]), ERROR_DIGITS)


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal values share their mean rank."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2.0)[inverse]
    return ranks


CONTRADICTION: Final = 1.5
"""Ratio of two measurements of one configuration above which they contradict each other."""

WEIGHT_DIGITS: Final = 3
"""Significant digits of a weight or a credibility."""

CAP_TOLERANCE: Final = 1.05
"""Ratio of measured power to the power cap above which a warning is issued."""


PEAK_TOLERANCE: Final = 1.05
"""Ratio of measured operations per second to the peak above which a warning is issued."""


@frozen(kw_only=True)
class Freedom:
    """Coefficients and energy scales to fit, with the standard deviations of their natural logarithms."""

    coefficients: Mapping[str, float]
    scales: tuple[tuple[EnergyScale, float], ...]
    """Energy scales at factor 1, including static power, each with its standard deviation."""


@frozen(kw_only=True)
class Outcome:
    """Result of a fit: the calibration and its warnings."""

    calibration: Calibration
    """Fitted calibration; its name and digest are set when it is written to a file."""
    warnings: tuple[str, ...]


def calibrate(
    hardware: Hardware,
    observations: Sequence[Observation],
    freedom: Freedom,
    *,
    formula_version: str,
    start: Calibration | None,
    report: Callable[[str], None],
) -> Outcome:
    """Fit the coefficients and energy scales of a chip to observations, score the fit and check the measurements.

    `hardware` is uncalibrated and at its default power mode. The fit begins at `start`, or at the class defaults for
    None. `report` receives progress messages.
    """
    ordered = tuple(sorted(observations, key=_order))
    report(f"fitting {len(ordered)} measurements …")
    target = Target(
        bench=make_bench(hardware, ordered),
        coefficients=free_coefficients(hardware, freedom.coefficients),
        scales=tuple(scale for scale, _ in freedom.scales),
        factors=tuple(_free_factor(hardware, scale, spread) for scale, spread in freedom.scales),
    )
    fitter = Fitter(target)
    defaults, all_rows = fitter.start(), np.ones(len(ordered), dtype=bool)
    fitted = fitter.fit(all_rows, _start_from(target, start) or defaults)
    solution = fitter.round_values(fitter.shrink(fitted, all_rows))
    left_out = fitter.cross_validate(fitted, report)
    splits = [("uncalibrated", fitter.predict(defaults)), ("fitted", fitter.predict(solution))]
    if left_out is not None:
        splits.append(("cross_validated", left_out))
    return Outcome(
        calibration=_record(
            ordered,
            target,
            solution,
            weights=fitter.data_weights(fitted),
            credibility=fitter.credibility(all_rows),
            errors=score(ordered, (fitter.measured_s, fitter.measured_j), splits),
            formula_version=formula_version,
        ),
        warnings=(
            *_contradictions(ordered),
            *_beyond_cap(hardware, ordered),
            *_beyond_peak(hardware, ordered),
            *_at_bounds(target.coefficients, fitted.coefficients),
        ),
    )


def _free_factor(hardware: Hardware, scale: EnergyScale, spread: float) -> FreeParameter:
    """Return the factor of an energy scale as a free parameter with its allowed range.

    Static power stays below every power cap and every power measured under a load.
    """
    highest = MOST_FACTOR
    if STATIC_ACTION in scale.actions:
        highest = min(highest, hardware.most_static_w / hardware.static_power.value)
    return FreeParameter(name=scale.name, default=1.0, spread=spread, lowest=1.0 / MOST_FACTOR, highest=highest)


def _beyond_cap(hardware: Hardware, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield a warning if runs drew clearly more power than the hardware description allows."""
    drawn = [
        one.energy_j / one.latency_s
        for one in observations
        if one.is_run and one.energy_j is not None and one.latency_s is not None
    ]
    beyond = [power for power in drawn if power > CAP_TOLERANCE * hardware.tdp.value]
    if beyond:
        yield (
            f"{len(beyond)} of {len(drawn)} measurements drew more than the power cap of {hardware.id}, "
            f"{hardware.tdp.value:g} W, up to {max(beyond):.3g} W: set its actual tdp"
        )


def _beyond_peak(hardware: Hardware, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield a warning if runs were clearly faster than the peak allows for their MACs, which no fit can reproduce."""
    timed = [(one, one.latency_s) for one in observations if one.is_run and one.latency_s is not None]
    shares = []
    for one, latency_s in timed:
        settings = one.configuration
        device = hardware.in_mode(settings.power_mode).at_matmul_precision(one.matmul_precision)
        peak = device.product_rate(settings.precision, runtime=settings.runtime)
        shares.append(FLOPS_PER_MAC * float(one.columns.mac_count.sum()) / peak / latency_s)
    beyond = [share for share in shares if share > PEAK_TOLERANCE]
    if beyond:
        yield (
            f"{len(beyond)} of {len(shares)} measurements are faster than the peak of {hardware.id} allows, up to "
            f"{max(beyond):.3g} times: set its actual peaks, or check the measurements"
        )


def _at_bounds(parameters: Sequence[FreeParameter], position: Floats) -> Iterator[str]:
    """Yield a warning for each coefficient that ended at a bound of its valid range."""
    for one, u in zip(parameters, position.tolist(), strict=True):
        for end, limit in zip(one.bounds, (one.lowest, one.highest), strict=True):
            if end and abs(end) < FARTHEST and math.isclose(u, end, rel_tol=1e-9):
                yield f"{one.name} is at the end of its valid range, {limit:g}: the measurements suggest one beyond"


def _order(one: Observation) -> tuple[object, ...]:
    settings = one.configuration
    return (
        settings.power_mode, settings.precision, settings.runtime, settings.batch, one.family, one.model,
        one.includes_gap, one.operator_index or (), one.latency_s or 0.0, one.energy_j or 0.0,
    )  # fmt: skip


def _start_from(target: Target, start: Calibration | None) -> Solution | None:
    """Return the values of a calibration as start positions of the fit; None without a calibration."""
    if start is None:
        return None
    factors = {scale.name: scale.factor for scale in start.energy_scales}
    if start.static_power is not None and target.static is not None:
        factors[target.scales[target.static].name] = start.static_power.value / target.bench.hardware.static_power.value

    def positions(parameters: Sequence[FreeParameter], values: Mapping[str, float]) -> Floats:
        return np.array([one.position(values.get(one.name, one.default)) for one in parameters])

    return Solution(
        coefficients=positions(target.coefficients, {name: one.value for name, one in start.coefficients.items()}),
        factors=positions(target.factors, factors),
    )


def _record(
    observations: Sequence[Observation],
    target: Target,
    solution: Solution,
    *,
    weights: tuple[Floats, Floats],
    credibility: tuple[float, float],
    errors: tuple[CalibrationError, ...],
    formula_version: str,
) -> Calibration:
    """Build the calibration from a solution, its weights and its errors; name and digest are added later."""
    hardware = target.bench.hardware
    coefficients = changed(target.coefficients, solution.coefficients)
    factors = changed(target.factors, solution.factors)
    weight_of = _by_name(target.coefficients, weights[0])
    weight_of_factor = _by_name(target.factors, weights[1])
    name = "" if target.static is None else target.scales[target.static].name
    static = None
    if name in factors:
        own = hardware.static_power
        static = FittedValue(
            default=own.value,
            value=rounded(own.value * factors.pop(name)),
            unit=own.unit,
            data_weight=weight_of_factor[name],
        )
    latency_credibility, energy_credibility = (rounded(value, WEIGHT_DIGITS) for value in credibility)
    return Calibration(
        name="",
        hardware=hardware.id,
        hardware_digest=hardware.digest,
        formula_version=formula_version,
        data_digest=_data_digest(observations),
        generation=hardware.generation,
        row_count=len(observations),
        latency_count=sum(one.latency_s is not None for one in observations),
        energy_count=sum(one.energy_j is not None for one in observations),
        latency_credibility=latency_credibility,
        energy_credibility=energy_credibility,
        runtimes=tuple(sorted({one.configuration.runtime for one in observations})),
        precisions=tuple(sorted({one.configuration.precision for one in observations})),
        families=tuple(sorted({one.family for one in observations})),
        coefficients={
            name: FittedValue(
                default=hardware.coefficients[name].value,
                value=value,
                unit=hardware.coefficients[name].unit,
                data_weight=weight_of[name],
            )
            for name, value in coefficients.items()
        },
        energy_scales=tuple(
            attrs.evolve(scale, factor=factors[scale.name], data_weight=weight_of_factor[scale.name])
            for scale in target.scales
            if scale.name in factors
        ),
        static_power=static,
        errors=errors,
        digest="",
    )


def _by_name(parameters: Sequence[FreeParameter], weights: Floats) -> dict[str, float]:
    pairs = zip(parameters, weights.tolist(), strict=True)
    return {one.name: rounded(weight, WEIGHT_DIGITS) for one, weight in pairs}


def _data_digest(observations: Sequence[Observation]) -> str:
    """Return a digest of all measurements as sixteen hexadecimal digits."""
    lines = [
        repr((*attrs.astuple(one.configuration), one.model, one.operator_index, one.includes_gap, one.weight,
              one.latency_s, one.energy_j))
        for one in observations
    ]  # fmt: skip
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _contradictions(observations: Sequence[Observation]) -> Iterator[str]:
    """Yield a warning for each configuration whose measurements contradict each other."""
    alike: dict[tuple[object, ...], list[Observation]] = {}
    for one in observations:
        alike.setdefault((one.configuration, one.model, one.operator_index, one.includes_gap), []).append(one)
    for those in alike.values():
        for name, unit, values in (
            ("latencies", "s", [one.latency_s for one in those if one.latency_s is not None]),
            ("energies", "J", [one.energy_j for one in those if one.energy_j is not None]),
        ):
            if len(values) > 1 and max(values) > CONTRADICTION * min(values):
                yield (
                    f"{those[0].label}: {len(values)} {name} from {min(values):.3g} to {max(values):.3g} {unit} "
                    "contradict each other"
                )
