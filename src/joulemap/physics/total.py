"""Totals of many configurations of a workload, one row each, without ledger lines.

    numbers of a chip, as arrays ─► kinds of kernels placed, timed and counted, times energies per action ─► sums

Totals equal the sums of the ledger that an evaluation of each point would write, to the femtojoule and the femtosecond.
A point does not depend on other points. In a grid each number has its own axis, and a derived value has the axes of its
inputs. Axes combine where a kernel takes the longer of two times, and in sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.change import point_hardware
from joulemap.physics.outcome import Asked
from joulemap.physics.pipeline import Evaluator, refuse_precision
from joulemap.physics.point import WIDE, Points, Spent, check_energy, name_spent, of_points
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import FLOPS_PER_MAC, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.physics.run import BOTTLENECKS, RunColumns, RunTotals
from joulemap.physics.workload import Booleans, Floats, Integers, Texts
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J, FS_PER_S

TYPES: Final[Mapping[str, type[np.generic]]] = {
    "Booleans": np.bool_,
    "Integers": np.int64,
    "Floats": np.float64,
    "Texts": np.str_,
}
"""Type of a column's field -> type of its values, on every platform."""


@define(kw_only=True, eq=False)
class PointColumns:
    """Totals with one row per point; numbers of a refused point are 0."""

    latency_fs: Integers
    interval_fs: Integers
    energy_fj: Integers
    spent_fj: Mapping[Spent, Integers]
    """Energy by `Spent` key: category, basis of the energies per action, and whether they are the hardware's own."""
    clock_fraction: Floats
    voltage_factor: Floats
    uncapped_power_w: Floats
    dram_bytes: Floats
    moved_bytes: Floats
    """Bytes that cross kernel boundaries at any level."""
    mac_count: Floats
    """MACs of the operators."""
    computed_mac_count: Floats
    """MACs that the chip computes."""
    peak_ops_per_s: Floats
    memory_bandwidth_bytes_per_s: Floats
    weight_bytes: Integers
    activation_bytes: Integers
    bottleneck: Integers
    """Index in `run.BOTTLENECKS` of the bottleneck with the largest total latency of its subgraphs."""
    bound_fs: Integers
    """Latency of the subgraphs that each bottleneck bounds; point x index in `run.BOTTLENECKS`."""
    share_fs: Integers
    """Latency divided into compute, memory and launch time; point x index in `run.BOTTLENECKS`."""
    throughput_limit: Texts
    """Throughput limit, one of `run.THROUGHPUT_LIMITS`."""
    breaks_law: Booleans
    """True for a point that breaks a law of `physics.law`."""
    suppressed_s: Floats
    """Part of the latency in non-maximum suppressions."""
    refusal: Texts
    """Reason why the hardware cannot run the point, as `evaluate` raises it; empty if it can."""

    def __len__(self) -> int:
        return len(self.latency_fs)

    @property
    def category_fj(self) -> dict[str, Integers]:
        """Energy by common category, for categories that occur, in the order of `COMMON_CATEGORIES`."""
        none = np.zeros(len(self), dtype=np.int64)
        energies = {
            name: sum((one for key, one in self.spent_fj.items() if key.common_category == name), none)
            for name in COMMON_CATEGORIES
        }
        return {name: one for name, one in energies.items() if one.any()}

    @property
    def peak_memory_bytes(self) -> Integers:
        """Peak memory of weights and live activations."""
        return self.weight_bytes + self.activation_bytes

    @property
    def latency_s(self) -> Floats:
        """Latency of a batch."""
        return self.latency_fs / FS_PER_S

    @property
    def energy_j(self) -> Floats:
        """Energy of a batch."""
        return self.energy_fj / FJ_PER_J

    @property
    def average_power_w(self) -> Floats:
        """Average power of a run that repeats without a pause."""
        return _divide(self.energy_fj.astype(np.float64), self.interval_fs.astype(np.float64))

    @property
    def compute_utilization_fraction(self) -> Floats:
        """Compute throughput as a fraction of the peak, in steady state."""
        attained = _divide(FLOPS_PER_MAC * self.computed_mac_count, self.interval_fs / FS_PER_S)
        return _divide(attained, self.peak_ops_per_s)

    @property
    def bandwidth_utilization_fraction(self) -> Floats:
        """Off-chip traffic as a fraction of the memory bandwidth, in steady state."""
        attained = _divide(self.dram_bytes, self.interval_fs / FS_PER_S)
        return _divide(attained, self.memory_bandwidth_bytes_per_s)

    def throughput_per_s(self, batch: int) -> Floats:
        """Return samples per second for batches that repeat without a pause."""
        return _divide(np.full(len(self), float(batch)), self.interval_fs / FS_PER_S)

    def energy_per_inference_j(self, batch: int) -> Floats:
        """Return the energy per sample."""
        return self.energy_j / batch


def _divide(share: Floats, whole: Floats) -> Floats:
    quotient: Floats = np.divide(share, whole, out=np.zeros(len(share)), where=whole > 0.0)
    return quotient


def evaluate_points(
    evaluator: Evaluator, hardware: Hardware, configuration: Configuration, varied: Mapping[Address, Floats]
) -> PointColumns:
    """Return the totals of variants of a chip, one row each; `varied` maps each address to an array of numbers.

    Arrays of different shapes are broadcast by numpy and form a grid, whose points are returned in its order. Values
    that depend on one axis are then computed once for all others, also for arrays that repeat their numbers along an
    axis, as those of `meshgrid` do. Raises KeyError for a number that the hardware lacks, ValueError for shapes that do
    not broadcast, and as `evaluate` for faults common to all points.
    """
    numbers = {address: np.asarray(column, dtype=np.float64) for address, column in varied.items()}
    try:
        shape = np.broadcast_shapes(*(column.shape for column in numbers.values()))
    except ValueError:
        shapes = " and ".join(sorted({" x ".join(map(str, column.shape)) for column in numbers.values()}))
        raise ValueError(f"numbers of {shapes} points, which make no grid") from None
    count = math.prod(shape)
    if evaluator.falls_back(hardware) or count == 1:
        row = {address: np.broadcast_to(column, shape).ravel() for address, column in numbers.items()}
        return stack_totals([_evaluate_one(evaluator, hardware, configuration, row, index) for index in range(count)])
    if configuration.arithmetic[0] not in hardware.peaks:
        raise UnsupportedError.of(refuse_precision(hardware, configuration.precision))
    kernels = evaluator.form(configuration, configuration.runtime)
    points = Points.of(kernels, hardware, numbers, shape)
    points.evaluate()
    given: dict[str, Any] = {
        "peak_ops_per_s": of_points(points.whole.product_rate(*configuration.arithmetic, configuration.runtime), shape),
        "memory_bandwidth_bytes_per_s": of_points(points.whole.memory_bandwidth.value, shape),
        "weight_bytes": np.int64(round(float(kernels.total_weight_bytes))),
        "activation_bytes": points.activation_bytes,
        "mac_count": float(kernels.work.mac_count.sum()),
    }
    is_there = points.refusal == ""
    columns = {name: np.where(is_there, one, 0).ravel() for name, one in given.items()}
    for name, column in points.columns.items():
        columns[name] = column.reshape((count, -1) if name in WIDE else count)
    columns["refusal"] = points.refusal.ravel().astype(np.str_)
    for field in attrs.fields(PointColumns):
        if field.name not in columns and field.name != "spent_fj":
            columns[field.name] = empty(field, count)
    return PointColumns(**columns, spent_fj={key: one.ravel() for key, one in points.spent.items()})


def empty(field: attrs.Attribute[Any], count: int) -> NDArray[Any]:
    """Return a column of zeros or empty texts for `count` points."""
    return np.zeros((count, len(BOTTLENECKS)) if field.name in WIDE else count, dtype=TYPES[str(field.type)])


def evaluate_totals(evaluator: Evaluator, asked: Sequence[Asked]) -> PointColumns:
    """Return the totals of each configuration in `asked`, one row each."""
    return stack_totals(evaluator.evaluate_totals(asked))


def _evaluate_one(
    evaluator: Evaluator,
    hardware: Hardware,
    configuration: Configuration,
    numbers: Mapping[Address, Floats],
    index: int,
) -> RunColumns | RunTotals | Exception:
    try:
        (totals,) = evaluator.evaluate_totals([(point_hardware(hardware, numbers, index), configuration)])
    except ValueError as error:
        return error
    if isinstance(totals, KeyError):
        raise totals
    return totals


def stack_totals(runs: Sequence[RunColumns | RunTotals | Exception]) -> PointColumns:
    """Return the totals of runs, one row each; an exception is a refusal."""
    named: dict[int, list[Spent]] = {}
    rows = [_list_row(run, named) for run in runs]
    columns: dict[str, Any] = {}
    for field in attrs.fields(PointColumns):
        if field.name != "spent_fj":
            none = empty(field, 1)[0]
            columns[field.name] = np.array([row.get(field.name, none) for row, _ in rows], dtype=TYPES[str(field.type)])
    keys = dict.fromkeys(key for _, spent in rows for key in spent)
    spent_fj = {key: np.array([spent.get(key, 0) for _, spent in rows], dtype=np.int64) for key in keys}
    return PointColumns(**columns, spent_fj=spent_fj)


def _list_row(
    run: RunColumns | RunTotals | Exception, named: dict[int, list[Spent]]
) -> tuple[dict[str, Any], dict[Spent, int]]:
    """Return the columns of a run and its energy by `Spent` key; the reason alone if it is refused.

    `named` keeps the keys of each table of actions for other runs.
    """
    if isinstance(run, Exception):
        return {"refusal": str(run)}, {}
    try:
        check_energy(run.hardware.id, run.energy_fj)
    except UnsupportedError as error:
        return {"refusal": str(error)}, {}
    return _list_columns(run), _list_spent(run, named)


def _list_spent(run: RunColumns | RunTotals, named: dict[int, list[Spent]]) -> dict[Spent, int]:
    """Return the energy of a run by `Spent` key."""
    actions = run.hardware.reference.actions
    if id(actions) not in named:
        named[id(actions)] = [name_spent(one, frozenset()) for one in actions]
    keys, spent = named[id(actions)], dict[Spent, int]()
    for row, energy in zip(run.action_index.tolist(), run.action_fj.tolist(), strict=True):
        if energy:
            spent[keys[row]] = spent.get(keys[row], 0) + energy
    return spent


def _list_columns(run: RunColumns | RunTotals) -> dict[str, Any]:
    """Return the columns of a run, except its energy by `Spent` key."""
    same = (
        "latency_fs", "interval_fs", "energy_fj", "clock_fraction", "voltage_factor", "uncapped_power_w", "dram_bytes",
        "moved_bytes", "peak_ops_per_s", "memory_bandwidth_bytes_per_s", "weight_bytes", "activation_bytes",
        "throughput_limit", "suppressed_s",
    )  # fmt: skip
    return {
        **{name: getattr(run, name) for name in same},
        "mac_count": float(run.mac_count),
        "computed_mac_count": float(run.computed_mac_count),
        "bound_fs": np.array(run.bottleneck_fs),
        "share_fs": np.array(run.share_fs),
        "bottleneck": int(np.argmax(run.bottleneck_fs)),
        "breaks_law": bool(run.broken_laws),
    }
