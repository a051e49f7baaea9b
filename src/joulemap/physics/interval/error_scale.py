"""Uncertainty of predictions: half-widths of 80 % intervals, and the shares of error that two runs have in common.

An error is ln(measured / predicted). h is the half-width of its 80 % interval: for a prediction v, 80 % of measurements
lie between v exp(-h) and v exp(h). docs/doubt.md gives the derivation of these intervals and their measured coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Literal, get_args

import attrs

from joulemap.physics.record.quantity import BASES, Evidence, Quantity
from joulemap.physics.record.reference import OVERHEAD
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.spread import BASIS_SPREAD
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

Standing = Literal["this hardware", "its class", "other classes"]
"""Hardware whose measurements give the error of a run."""

NORMAL: Final = 1.2815515655446004
"""Half-width of an 80 % interval of the standard normal distribution."""

LOGISTIC: Final = 2.1972245773362196
"""Half-width of an 80 % interval of the standard logistic distribution: ln(0.9 / 0.1)."""

SCORED: Final = "derived"
"""Least certain basis of the peaks, bandwidths and clocks of hardware whose predictions were compared with
measurements.
"""

COMPILER_LEVEL: Final = 6
"""Level of an error scale that was measured on boards with the same compiler."""

OWN_LEVEL: Final = 7
"""Level of an error scale that was measured on one chip; the highest level."""

UNMEASURED: Final = 0.8
"""Minimum half-width of a latency on an accelerator of a class other than CPU and GPU whose compiler was not measured.

Derived: 39 measured boards of 21 compilers (NPUs, DPUs, a DSP, an Edge TPU; 465 rows), each predicted with class
coefficients, without coefficients fitted to measurements. The half-width of a single compiler is 0.02 to 1.58, root
mean square 0.80; over all errors, weighted equally by compiler, it is 0.81. It covers differences between such chips
that data sheets omit. Decompositions get it on every class: none was measured, and times of different algorithms on
one chip differ by as much."""

MEASURED_CLASSES: Final = ("cpu", "gpu", "box")
"""Classes with held-out predictions of measured boards; unmeasured boards use the uncertainty of their class. A class
that is not listed has none.
"""

WITHOUT_PEAK: Final = ("cgra", "dpu")
"""Classes whose compute time depends only on units and clock; that of others follows a peak."""

OTHER_PEAKS: Final[Mapping[tuple[str, str], str]] = {("tpu", "fp32"): "bf16"}
"""(class, precision) -> precision of the peak used for compute time: an MXU computes fp32 in several bf16 passes."""

SAME_SIZE: Final = 10.0
"""Ratio of peaks within which boards count as one size class. Assumed: one order of magnitude."""

FULL_GROUPS: Final = 2.0
"""Weight of an assumed half-width against a measured one, as a number of groups of measurements."""

TOLD_APART: Final = 0.8
"""Minimum probability at which an answer calls one run better than another."""

MOST_SURE: Final = 0.79
"""Maximum probability that one run is better than another if numbers of one source decide it: below `TOLD_APART`."""

DoubtQuantity = Literal["latency", "power", "energy"]
"""Quantity of an error. Errors of latency and power are independent; the error of an energy is their sum."""

DOUBTED: Final[tuple[DoubtQuantity, ...]] = ("latency", "power")
"""Quantities with separate error scales; the error of energy is their sum."""

FEW_BOARDS: Final = 3
"""Boards from which a number of several sources counts as broad."""

THIN_SEVERAL: Final = 0.1
"""Half-width that a number of several sources and at least `FEW_BOARDS` boards adds to what it sets."""

THIN_SOURCE: Final = 0.25
"""Half-width that a number of one source, or of fewer boards, adds.

Source: judged. Numbers of one source were wrong by 0.39 (median, natural logarithm) on rows of other sources that were
kept aside, with earlier formulas; on 1,000 shipped rows whose source these numbers do not name, by 0.06 to 0.12.
"""

THIN_SINGLE: Final = 0.35
"""Half-width that a number of one board, or of one model on fewer than `FEW_BOARDS` boards, adds.

Source: as `THIN_SOURCE`.
"""

PowerOf = Literal["own", "class"]
"""Hardware on which power was measured: the predicted hardware itself, or other hardware of its class."""

OWN: Final = "own"
"""Name of the error factor that each run has for itself."""

MODEL: Final = "model"
"""Kind of work of most whole models. Single operators and some models, such as training steps, have other kinds."""

NEW_LIBRARY: Final[Mapping[str, float]] = {"cpu": 0.2, "gpu": 0.1}
"""Class -> additional half-width of the latency of a whole model by an engine, because engines are many and are called
in many ways: with or without a graph of launches, from C++ or Python, at locked or free clocks.

Derived: with boards and sources held out, intervals contain 64 % of 59 latencies on CPUs without it and 80 % with it.
With sources held out, but not boards, they contain 78 and 80 % of 225 latencies on GPUs. On one chip, TensorFlow Lite
takes 1.3 times a prediction that is accurate for ncnn; with CUDA graphs, TensorRT takes 0.77 times one without.
"""

SINGLE: Final = 0.25
"""Additional half-width in place of `NEW_LIBRARY` for a batch of 1 on a GPU, where calls and modes weigh most.

Source: 113 latencies of TensorRT and OpenVINO at batch 1 that no coefficient saw, 46 of them of sources outside this
package. With `NEW_LIBRARY`, intervals contain 75 % of all and 61 % of the 46; with this, 86 and 70 %. Two sources of
one board, network and precision differ by 1.0 to 1.5 times.
"""


MOVING: Final = 0.1
"""Share of a time from which the number that sets it counts: what moves a result by a tenth."""


SCALED: Final = ("coefficient.device_time_scale", "coefficient.launch_time_scale")
"""Numbers of a hardware that scale the times of all kernels."""


def find_thinness(evidence: Evidence | None) -> float:
    """Return the half-width that the measurements behind a fitted number add to what it sets; 0 for other numbers."""
    if evidence is None:
        return 0.0
    is_few = evidence.boards < FEW_BOARDS
    if evidence.boards == 1 or (evidence.models == 1 and is_few):
        return THIN_SINGLE
    return THIN_SOURCE if evidence.sources == 1 or is_few else THIN_SEVERAL


def find_thinnest(evidence: Iterable[Evidence | None]) -> Evidence | None:
    """Return the evidence that adds the largest half-width; None if no number has any."""
    return max((one for one in evidence if one is not None), key=find_thinness, default=None)


def find_thin_bounds(evidence: Mapping[str, Evidence], peak: str | None) -> tuple[float, float, float]:
    """Return the half-widths that thin numbers add to times bound by compute, memory and launches.

    `evidence` is dotted name of a hardware's number -> measurements behind it, `peak` the precision of the peak that
    sets compute times.
    """
    names: tuple[Collection[str], ...] = (
        (f"peak.{peak}", *SCALED),
        ("memory_bandwidth", "coefficient.unit_stream", *SCALED),
        [name for name in evidence if name.startswith(f"coefficient.{OVERHEAD}.")],
    )
    compute, memory, launch = (max((find_thinness(evidence.get(name)) for name in some), default=0.0) for some in names)
    return compute, memory, launch


def find_new_source(architecture: str, work: str, runtime: str, *, is_single: bool = False) -> float:
    """Return the additional half-width of a latency for software that is new to the measurements; 0 for most runs.

    `is_single` is true for a batch of 1.
    """
    of_wing = next((one.new_source for one in list_error_groups() if work and one.work == work), None)
    if of_wing is not None:
        return of_wing
    is_built = runtime in RUNTIME and RUNTIME[runtime].is_built
    if not is_built or work != MODEL:
        return 0.0
    return SINGLE if is_single and architecture == "gpu" else NEW_LIBRARY.get(architecture, 0.0)


def find_peak(architecture: str, precision: str) -> str | None:
    """Return the precision of the peak that determines a class's compute time; None for a class without one."""
    return None if architecture in WITHOUT_PEAK else OTHER_PEAKS.get((architecture, precision), precision)


@frozen(kw_only=True)
class ErrorScale:
    """Error scale of one group of measurements. An empty text in a field means that the group has all its values."""

    quantity: DoubtQuantity
    level: int = attrs.field(validator=attrs.validators.ge(0))
    """Level of the group; of all groups that contain a run, the one with the highest level applies."""
    architecture: str
    work: str
    """Kind of work: `model`, another kind of whole model (`Workload.work`), or the kind of a single operator."""
    runtime: str
    precision: str
    hardware: str
    half_width: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Half-width of the 80 % interval of ln(measured / predicted)."""
    group_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Number of (model family, board) pairs. Errors of one family on one board are similar, so they count once."""
    row_count: int
    least_ops_per_s: float = 0.0
    """Smallest peak of the boards that were measured; 0 if the scale applies to every size."""
    most_ops_per_s: float = math.inf
    """Largest peak of the boards that were measured; infinite if the scale applies to every size."""

    def is_of_size(self, ops_per_s: float) -> bool:
        """Return True if this peak is within a factor of `SAME_SIZE` of the measured boards' peaks."""
        return self.least_ops_per_s / SAME_SIZE <= ops_per_s <= self.most_ops_per_s * SAME_SIZE


@frozen(kw_only=True)
class PowerFloor:
    """Lower bound of the half-width of a predicted power, for one class and one kind of evidence."""

    architecture: str
    """Class; empty for all classes without a separate floor."""
    evidence: PowerOf = attrs.field(validator=attrs.validators.in_(get_args(PowerOf)))
    most_ops_per_s: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Peak up to which the floor applies; of several floors, the one with the smallest peak applies."""
    half_width: Quantity
    """Half-width of the 80 % interval of ln(measured / predicted)."""


@frozen(kw_only=True)
class ErrorShare:
    """Share of an error's variance that two runs have in common if they agree in one factor, such as the board."""

    quantity: DoubtQuantity
    factor: str
    """Factor that two runs share: `class`, `board`, `model`, `board_model`, `case`; `own` for the unshared part."""
    share: Quantity


@frozen(kw_only=True)
class BasisSpread:
    """Uncertainty of energies per action of one basis; used where their sum was not measured."""

    number_basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    half_width: Quantity
    """Half-width of the 80 % interval of the natural logarithm of an energy per action."""

    @property
    def number_half_width(self) -> float:
        """Half-width of the logarithm of a peak, bandwidth or clock with this basis, from `BASIS_SPREAD`."""
        return NORMAL * math.log(BASIS_SPREAD[self.number_basis])


@frozen(kw_only=True)
class Doubt:
    """All error scales, shares and spreads from which intervals and probabilities are computed."""

    scales: tuple[ErrorScale, ...]
    shares: tuple[ErrorShare, ...]
    spreads: tuple[BasisSpread, ...]
    floors: tuple[PowerFloor, ...] = ()

    def own_half_widths(self) -> tuple[tuple[float, float], ...]:
        """Return two half-widths for each basis: of an energy per action, and of any other number of a hardware file.

        Errors of scored chips already include the uncertainty of numbers with the basis `SCORED` or better. The
        half-widths are what a number with a weaker basis adds.
        """
        known = next(one for one in self.spreads if one.number_basis == SCORED)

        def beyond(width: float, included: float) -> float:
            return math.sqrt(max(width**2 - included**2, 0.0))

        return tuple(
            (
                beyond(one.half_width.value, known.half_width.value),
                beyond(one.number_half_width, known.number_half_width),
            )
            for one in self.spreads
        )

    def complete_shares(self) -> tuple[ErrorShare, ...]:
        """Return all shares of the variance, including the remaining share that each run has for itself."""
        known = {(one.quantity, one.factor): one.share.value for one in self.shares}
        left = {
            name: 1.0 - sum(share for (quantity, _), share in known.items() if quantity == name) for name in DOUBTED
        }
        return (*self.shares, *(_derived(name, OWN, share) for name, share in left.items()))


@frozen(kw_only=True)
class ErrorGroup:
    """Errors of a wing's predictions, which it registers at the port `error_groups`."""

    work: str = ""
    """Kind of work (`Workload.work`) of the wing's runs; empty if they have none of their own."""
    new_source: float = attrs.field(default=0.0, validator=attrs.validators.ge(0.0))
    """Additional half-width of the latency of such a run, because its software is new to the measurements."""
    scales: tuple[ErrorScale, ...] = ()
    """Error scales of the wing's runs, in addition to the built-in ones."""
    tables: Mapping[str, Callable[[], Sequence[attrs.AttrsInstance]]] = {}
    """Table of the database with scales of other quantities -> function that returns its records."""
    residuals: str = ""
    """Function `package.module:NAME` (source) that returns errors of runs, to which the built-in scales are fitted
    too; empty without.
    """
    fit: str = ""
    """Function `package.module:NAME` (source) that fits the wing's tables, writes them and returns a text about it;
    empty without.
    """


@cache
def list_error_groups() -> tuple[ErrorGroup, ...]:
    """Return the groups of errors of all wings."""
    return tuple(find_parts("error_groups"))


def _derived(quantity: DoubtQuantity, factor: str, share: float) -> ErrorShare:
    value = Quantity(
        value=share, unit="1", basis="derived", source="what the other shares leave (docs/doubt.md)", note=""
    )
    return ErrorShare(quantity=quantity, factor=factor, share=value)
