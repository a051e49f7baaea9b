"""Outcomes of designs: totals of one model, or of several models that share a chip.

Weighted by shares s of the inferences:

    latency    = sum s latency                 energy = sum s energy / batch
    throughput = 1 / sum (s interval / batch)  power  = energy x throughput
    memory     = maximum over models
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import numpy as np

from joulemap.domain import METRIC
from joulemap.physics import (
    CLOCK,
    MODEL,
    UNCALIBRATED,
    Address,
    Booleans,
    Case,
    Configuration,
    Evaluator,
    Floats,
    Integers,
    PointColumns,
    PointErrors,
    Workload,
)
from joulemap.physics.change import follow
from joulemap.physics.pipeline import refuse_precision
from joulemap.physics.record.address import MEMORY_BANDWIDTH
from joulemap.physics.total import empty, evaluate_points
from joulemap.system import FJ_PER_J, FS_PER_S, define, frozen

if TYPE_CHECKING:
    from joulemap.physics.workload import Texts
    from joulemap.wing.explore.design.rule import Law
    from joulemap.wing.explore.design.space import Space


COVER: Final = 3.0
"""Maximum ratio of grid points to requested designs; with more points, designs are evaluated one by one."""


@frozen(kw_only=True)
class Objective:
    """Quantity that a design search optimizes."""

    name: str
    label: str
    unit: str
    column: str
    """Name of the column of `Outcomes` with the objective's values."""
    is_higher_better: bool = False
    latency_power: float = 0.0
    """Exponent of latency in the objective."""
    energy_power: float = 0.0

    @property
    def sign(self) -> float:
        """Factor of the objective's logarithm in a cost that is minimized: -1 where higher is better, else 1."""
        return -1.0 if self.is_higher_better else 1.0

    def half_width(self, latency_square: float, energy_square: float) -> float:
        """Return the half-width of the logarithm of the objective's ratio between two designs.

        The arguments are squared half-widths of latency and energy.
        """
        t, e = self.latency_power, self.energy_power
        return float(np.sqrt(max((t + 2.0 * e) * t * latency_square + e * e * energy_square, 0.0)))


def _of_metric(name: str, metric: str, column: str) -> Objective:
    one = METRIC[metric]
    return Objective(
        name=name,
        label=one.label,
        unit=one.unit,
        column=column,
        is_higher_better=one.is_higher_better,
        latency_power=one.latency_power,
        energy_power=one.energy_power,
    )


OBJECTIVES: Final[Mapping[str, Objective]] = {
    one.name: one
    for one in (
        _of_metric("latency", "latency", "latency_s"),
        _of_metric("energy", "energy_per_inference", "energy_per_inference_j"),
        _of_metric("edp", "edp_per_inference", "edp_per_inference_js"),
        _of_metric("throughput", "throughput", "throughput_per_s"),
        _of_metric("efficiency", "efficiency", "inferences_per_j"),
        _of_metric("power", "power", "average_power_w"),
        _of_metric("memory", "memory", "peak_memory_bytes"),
        Objective(name="area", label="area", unit="mm2", column="area_mm2"),
        Objective(name="cost", label="cost of the die", unit="USD", column="die_cost_usd"),
    )
}
"""Objective by name; energies are per inference."""


@frozen(kw_only=True)
class ModelShare:
    """Model that a design runs, with its share of the inferences."""

    evaluator: Evaluator
    configuration: Configuration
    share: float
    workload: Workload | None = None
    """Workload records; needed only for designs that are stored."""
    calibration: tuple[str, str] = (UNCALIBRATED, "")
    """Label and digest of the calibration that the hardware uses."""
    errors: PointErrors | None = None
    """Known errors of predictions; None if outcomes need no intervals."""
    work: str = MODEL
    """Kind of work, by which prediction errors are grouped."""


@define(kw_only=True, eq=False)
class DesignColumns(PointColumns):
    """Totals of designs with their uncertainty."""

    latency_half_width: Floats
    """Half-width of the 80 % interval of the logarithm of latency; 0 if refused, NaN if unknown."""
    energy_half_width: Floats


@define(kw_only=True, eq=False)
class Outcomes:
    """Outcomes of designs, one row each; numbers of a refused design are NaN."""

    latency_s: Floats
    slowest_s: Floats
    """Latency of the slowest model, in seconds."""
    energy_per_inference_j: Floats
    throughput_per_s: Floats
    peak_memory_bytes: Floats
    area_mm2: Floats
    die_cost_usd: Floats
    latency_fs: Integers
    """Exact latency summed over all models; 0 if refused."""
    energy_fj: Integers
    """Exact energy of one batch of each model, summed over all models."""
    clock_fraction: Floats
    """Lowest fraction of the full clock over the models; below 1 if the power limit throttles."""
    limit: Texts
    """Throughput limit of the first model."""
    refusal: Texts
    latency_half_width: Floats
    """Half-width of the logarithm of latency, averaged by the models' shares; NaN if unknown."""
    energy_half_width: Floats

    def __len__(self) -> int:
        return len(self.latency_s)

    def half_width(self, row: int, objective: Objective) -> float | None:
        """Return the half-width of the logarithm of a design's objective; None if undefined or unknown."""
        latency, energy = float(self.latency_half_width[row]), float(self.energy_half_width[row])
        if not (objective.latency_power or objective.energy_power) or np.isnan(latency + energy):
            return None
        return objective.half_width(latency**2, energy**2)

    @cached_property
    def average_power_w(self) -> Floats:
        """Average power when batches follow each other without a pause."""
        return self.energy_per_inference_j * self.throughput_per_s

    @cached_property
    def edp_per_inference_js(self) -> Floats:
        """Energy per inference times the latency of its batch, in joule-seconds."""
        return self.energy_per_inference_j * self.latency_s

    @cached_property
    def inferences_per_j(self) -> Floats:
        """Inferences per joule."""
        return 1.0 / self.energy_per_inference_j

    @property
    def is_evaluated(self) -> Booleans:
        """Mask of the designs that can run all models."""
        mask: Booleans = self.refusal == ""
        return mask

    def value(self, objective: Objective) -> Floats:
        """Return the value of an objective for each design."""
        values: Floats = getattr(self, objective.column)
        return values

    def take(self, rows: Integers) -> Self:
        """Return the outcomes of these rows."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in attrs.fields(type(self))})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return several outcomes as one, with their rows concatenated."""
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: np.concatenate([getattr(one, name) for one in parts]) for name in names})


def evaluate_designs(space: Space, numbers: Integers, models: Sequence[ModelShare]) -> Outcomes:
    """Return the outcomes of designs of a space, by their numbers."""
    return evaluate_values(space, space.values_at(numbers), models, len(numbers))


def evaluate_values(space: Space, values: Mapping[str, Floats], models: Sequence[ModelShare], count: int) -> Outcomes:
    """Return the outcomes of `count` designs, given the values of each parameter as arrays."""
    return combine(space, values, models, [evaluate_model(space, values, model, count) for model in models], count)


def evaluate_model(space: Space, values: Mapping[str, Floats], model: ModelShare, count: int) -> DesignColumns:
    """Return the totals of one model on designs with these parameter values.

    A varied design is another board than its base chip, so errors measured only on that board do not apply.
    """
    law = space.law
    if model.configuration.precision not in law.hardware.peaks and not model.evaluator.falls_back(law.hardware):
        return _refuse(refuse_precision(law.hardware, model.configuration.precision).text, count)
    grid, places = _find_grid(values, count)
    followed = law.follow(grid) if values else {}
    asked = {law.constants[name].address: column for name, column in followed.items()}
    varied = {address: np.atleast_1d(one) for address, one in follow(law.hardware, asked).items()}
    totals = evaluate_points(model.evaluator, law.hardware, model.configuration, varied)
    columns = {one.name: getattr(totals, one.name) for one in attrs.fields(PointColumns)}
    latency = energy = np.full(len(totals), np.nan)
    if model.errors is not None:
        hardware = attrs.evolve(law.hardware, id=f"{law.hardware.id} design") if followed else law.hardware
        shape = np.broadcast_shapes(*(column.shape for column in varied.values()))
        given = list(_list_given(law, followed, model.configuration.precision, shape))
        cases = [
            Case(
                hardware=hardware,
                configuration=model.configuration,
                work=model.work,
                calibration=model.calibration[1],
                varied=numbers,
            )
            for numbers, _ in given
        ]
        widths = model.errors.find_half_widths(totals, cases, np.argmax([mine for _, mine in given], axis=0))
        latency, energy = widths.latency, widths.energy
    columns |= {"latency_half_width": latency, "energy_half_width": energy}
    if places is not None:
        spent = {key: one[places] for key, one in totals.spent_fj.items()}
        columns = {name: one[places] for name, one in columns.items() if name != "spent_fj"} | {"spent_fj": spent}
    return DesignColumns(**columns)


def _refuse(reason: str, count: int) -> DesignColumns:
    """Return totals of `count` designs that cannot run."""
    none = {one.name: empty(one, count) for one in attrs.fields(PointColumns) if one.name != "spent_fj"}
    none["refusal"] = np.full(count, reason)
    return DesignColumns(**none, spent_fj={}, latency_half_width=np.zeros(count), energy_half_width=np.zeros(count))


def _find_grid(values: Mapping[str, Floats], count: int) -> tuple[dict[str, Floats], Integers | None]:
    """Return the distinct values of each parameter as axes of a grid, and the index of each design in the grid.

    The index is None if the designs are all grid points in order, or if the grid would be too large. In the latter case
    the values are returned unchanged.
    """
    each = [np.unique(column, return_inverse=True) for column in values.values()]
    shape = tuple(len(one) for one, _ in each)
    if math.prod(shape) > COVER * count:
        return dict(values), None
    grid = {
        name: one.reshape(-1, *(1,) * (len(each) - index - 1))
        for index, (name, (one, _)) in enumerate(zip(values, each, strict=True))
    }
    if not each:
        return grid, np.zeros(count, dtype=np.int64)
    places = np.ravel_multi_index([one for _, one in each], shape)
    is_whole = len(places) == math.prod(shape) and bool((places == np.arange(count)).all())
    return grid, None if is_whole else places


def _list_given(
    law: Law, followed: Mapping[str, Floats], precision: str, shape: tuple[int, ...]
) -> Iterator[tuple[frozenset[Address], Booleans]]:
    """Yield sets of constants that a hardware file of a design would state, each with a mask of designs.

    A design equal to its base chip states none.
    """
    peak = Address("peak", precision)
    given = {one for one in (CLOCK, MEMORY_BANDWIDTH) if one.name in followed}
    moves = {name: column != law.constants[name].value for name, column in followed.items()}
    none = np.zeros(shape, dtype=bool)
    is_other = none
    for one in moves.values():
        is_other = is_other | one
    has_peak = none | moves.get("clock", none) | moves.get("unit_count", none) | (f"peak.{precision}" in followed)
    yield frozenset(), ~is_other.ravel()
    yield frozenset({*given, peak}), (is_other & has_peak).ravel()
    yield frozenset(given), (is_other & ~has_peak).ravel()


def combine(
    space: Space, values: Mapping[str, Floats], models: Sequence[ModelShare], whole: Sequence[Any], count: int
) -> Outcomes:
    """Return the outcomes of designs from the totals of each model; `whole` has one `DesignColumns` per model."""
    law = space.law
    refusal = np.asarray(whole[0].refusal)
    for one in whole[1:]:
        refusal = np.where(refusal == "", one.refusal, refusal)
    area = np.broadcast_to(law.area.find_mm2(values), (count,))
    nothing = np.where(refusal == "", 1.0, np.nan)
    batches = [float(model.configuration.batch) for model in models]
    each = list(zip(whole, models, batches, strict=True))
    latency = [one.latency_fs / FS_PER_S for one in whole]
    per_inference_s = sum(model.share * one.interval_fs / FS_PER_S / batch for one, model, batch in each)
    return Outcomes(
        latency_s=nothing * sum(model.share * one for one, model in zip(latency, models, strict=True)),
        slowest_s=nothing * np.max(latency, axis=0),
        energy_per_inference_j=nothing
        * sum(model.share * (one.energy_fj / FJ_PER_J) / batch for one, model, batch in each),
        throughput_per_s=nothing / np.where(refusal == "", per_inference_s, 1.0),
        peak_memory_bytes=nothing * np.max([one.weight_bytes + one.activation_bytes for one in whole], axis=0),
        area_mm2=area,
        die_cost_usd=law.area.find_usd(area),
        latency_fs=np.sum([one.latency_fs for one in whole], axis=0),
        energy_fj=np.sum([one.energy_fj for one in whole], axis=0),
        clock_fraction=nothing * np.min([one.clock_fraction for one in whole], axis=0),
        limit=np.asarray(whole[0].throughput_limit),
        refusal=refusal,
        latency_half_width=nothing * sum(model.share * one.latency_half_width for one, model, _ in each),
        energy_half_width=nothing * sum(model.share * one.energy_half_width for one, model, _ in each),
    )


@frozen(kw_only=True)
class Bound:
    """Limit of one objective of a design."""

    option: str
    """Option that sets the limit, as written on the command line."""
    objective: Objective
    value: float
    """Largest or smallest allowed value, in the objective's unit."""
    column: str
    """Column of `Outcomes` to which the limit applies; for latency, that of the slowest model."""

    @classmethod
    def of(cls, option: str, name: str, value: float) -> Bound:
        """Return the limit that an option sets on an objective."""
        objective = OBJECTIVES[name]
        column = "slowest_s" if name == "latency" else objective.column
        return cls(option=option, objective=objective, value=value, column=column)

    def excess(self, outcomes: Outcomes) -> Floats:
        """Return the ratio of each design's value to the limit; at most 1 if the limit is met."""
        value: Floats = getattr(outcomes, self.column)
        ratio: Floats = self.value / value if self.objective.is_higher_better else value / self.value
        return ratio


def find_excess(outcomes: Outcomes, bounds: tuple[Bound, ...]) -> tuple[Booleans, Floats]:
    """Return a mask of designs within every limit, and for each design the largest ratio of a value to its limit."""
    worst = np.ones(len(outcomes))
    for bound in bounds:
        worst = np.fmax(worst, bound.excess(outcomes))
    worst = np.where(outcomes.is_evaluated, worst, np.inf)
    keeps: Booleans = worst <= 1.0
    return keeps, worst
