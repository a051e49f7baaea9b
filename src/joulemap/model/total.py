"""Totals of many configurations of a workload: a row each, without ledger lines.

They are the sums of the ledger that an evaluation of each would write, to the femtojoule and the femtosecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from joulemap.domain.configuration import FLOPS_PER_MAC, Configuration
from joulemap.domain.hardware import Hardware
from joulemap.domain.point import Path, point_hardware
from joulemap.domain.reference import COMMON_CATEGORIES
from joulemap.model.pipeline import Asked, Evaluator
from joulemap.model.run import BOTTLENECKS, RunColumns
from joulemap.model.workload import Floats, Integers, Texts
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J, FS_PER_S


@define(kw_only=True, eq=False)
class PointColumns:
    """One row per point; numbers of a refused one are 0."""

    latency_fs: Integers
    interval_fs: Integers
    energy_fj: Integers
    category_fj: Mapping[str, Integers]
    """By common category, of those that occur."""
    clock_fraction: Floats
    voltage_factor: Floats
    uncapped_power_w: Floats
    dram_bytes: Floats
    moved_bytes: Floats
    """Crossing kernel boundaries at any level."""
    mac_count: Floats
    """Of the operators."""
    computed_mac_count: Floats
    """That the chip computes."""
    peak_ops_per_s: Floats
    memory_bandwidth_bytes_per_s: Floats
    weight_bytes: Integers
    activation_bytes: Integers
    bottleneck: Integers
    """Code in `run.BOTTLENECKS`: what bounds the subgraphs that take most of the latency together."""
    bound_fs: Integers
    """Point x code in `run.BOTTLENECKS`: the latency of the subgraphs that it bounds."""
    throughput_limit: Texts
    """In `run.THROUGHPUT_LIMITS`."""
    refusal: Texts
    """Why the hardware cannot run it, in the sentence that `evaluate` raises; empty where it can."""

    def __len__(self) -> int:
        return len(self.latency_fs)

    @property
    def peak_memory_bytes(self) -> Integers:
        """Of weights and live activations."""
        return self.weight_bytes + self.activation_bytes

    @property
    def latency_s(self) -> Floats:
        """Of a batch."""
        return self.latency_fs / FS_PER_S

    @property
    def energy_j(self) -> Floats:
        """Of a batch."""
        return self.energy_fj / FJ_PER_J

    @property
    def average_power_w(self) -> Floats:
        """Of a run that is repeated without a pause."""
        return _divide(self.energy_fj.astype(np.float64), self.interval_fs.astype(np.float64))

    @property
    def compute_utilization_fraction(self) -> Floats:
        """Of the peak, in steady state."""
        attained = _divide(FLOPS_PER_MAC * self.computed_mac_count, self.interval_fs / FS_PER_S)
        return _divide(attained, self.peak_ops_per_s)

    @property
    def bandwidth_utilization_fraction(self) -> Floats:
        """Of the memory's bandwidth, in steady state."""
        attained = _divide(self.dram_bytes, self.interval_fs / FS_PER_S)
        return _divide(attained, self.memory_bandwidth_bytes_per_s)

    def throughput_per_s(self, batch: int) -> Floats:
        """Return samples per second of batches one after the other without a pause."""
        return _divide(np.full(len(self), float(batch)), self.interval_fs / FS_PER_S)

    def energy_per_inference_j(self, batch: int) -> Floats:
        """Return the energy of a sample."""
        return self.energy_j / batch


def _divide(share: Floats, whole: Floats) -> Floats:
    found: Floats = np.divide(share, whole, out=np.zeros(len(share)), where=whole > 0.0)
    return found


def evaluate_points(
    evaluator: Evaluator, hardware: Hardware, configuration: Configuration, varied: Mapping[Path, Floats]
) -> PointColumns:
    """Return the totals of the versions of a hardware that differ in numbers: for each path an array of one length.

    Raises KeyError for a path that the hardware does not have, and as `evaluate` for what is wrong of all.
    """
    count = max(map(len, varied.values()), default=1)
    found: list[RunColumns | Exception] = []
    for index in range(count):
        try:
            found += evaluator.evaluate_all([(point_hardware(hardware, varied, index), configuration)])
        except ValueError as error:
            found.append(error)
    return _stack(found)


def evaluate_totals(evaluator: Evaluator, asked: Sequence[Asked]) -> PointColumns:
    """Return the totals of each configuration."""
    return _stack(evaluator.evaluate_all(asked))


def _stack(runs: Sequence[RunColumns | Exception]) -> PointColumns:
    rows = [_total(run) if isinstance(run, RunColumns) else {"refusal": str(run)} for run in runs]

    def column(name: str, kind: type) -> Any:
        return np.array([row.get(name, kind()) for row in rows])

    bound = [row.get("bound_fs", np.zeros(len(BOTTLENECKS), dtype=np.int64)) for row in rows]
    return PointColumns(
        category_fj={
            name: total
            for name in COMMON_CATEGORIES
            if (total := np.array([row.get("category_fj", {}).get(name, 0) for row in rows])).any()
        },
        bound_fs=np.array(bound).reshape(len(rows), len(BOTTLENECKS)),
        bottleneck=np.array([int(np.argmax(one)) for one in bound], dtype=np.int64),
        **{
            field.name: column(field.name, {"Integers": int, "Floats": float, "Texts": str}[str(field.type)])
            for field in attrs.fields(PointColumns)
            if field.name not in ("category_fj", "bound_fs", "bottleneck")
        },
    )


def _total(run: RunColumns) -> dict[str, Any]:
    names = [action.common_category for action in run.hardware.reference]
    by_action = np.zeros(len(names), dtype=np.int64)
    np.add.at(by_action, run.ledger.action_index, run.ledger.energy_fj)
    category: dict[str, int] = {}
    for name, energy in zip(names, by_action.tolist(), strict=True):
        category[name] = category.get(name, 0) + energy
    bound = np.zeros(len(BOTTLENECKS), dtype=np.int64)
    np.add.at(bound, run.subgraphs.bottleneck, run.subgraphs.latency_fs)
    same = ("latency_fs", "interval_fs", "energy_fj", "clock_fraction", "voltage_factor", "uncapped_power_w",
            "peak_ops_per_s", "memory_bandwidth_bytes_per_s", "weight_bytes", "activation_bytes", "throughput_limit")  # fmt: skip
    return {
        **{name: getattr(run, name) for name in same},
        "mac_count": float(run.mac_count),
        "computed_mac_count": float(run.subgraphs.computed_mac_count.sum()),
        "dram_bytes": float(run.subgraphs.dram_bytes.sum()),
        "moved_bytes": float(run.subgraphs.moved_bytes.sum()),
        "category_fj": category,
        "bound_fs": bound,
    }
