"""One evaluated run as columns, ready for the store."""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Floats, Integers
from joulemap.system.record import define
from joulemap.system.units import FS_PER_S

BOTTLENECKS: Final = ("compute", "memory", "launch")
"""Bottlenecks of a subgraph; results store the index."""

BOUNDS: Final = ("compute", "operands", "memory", "launch", "communication")
"""Limits of a pass's latency: the bottlenecks, with waiting for operands and communication listed separately."""

BUSY: Final = 0.1
"""Fraction of the units' time spent on MACs, including padding, below which units count as waiting for operands."""

ONE_BY_ONE: Final = "latency"
"""Throughput limit: a batch starts only after the previous one has ended."""
CORES: Final = "cores"
"""Throughput limit: each core works on its own samples."""
DEVICES: Final = "devices"
"""Throughput limit: each device of the board works on its own batch."""
STAGE: Final = "pipeline stage"
"""Throughput limit: every layer has its own part of the chip, and all parts are busy."""
BANDWIDTH: Final = "memory bandwidth"
"""Throughput limit: overlapping batches share the memory bandwidth."""
POWER_CAP: Final = "power cap"
"""Throughput limit: the power cap lowers the clock."""
THROUGHPUT_LIMITS: Final = (ONE_BY_ONE, CORES, DEVICES, STAGE, BANDWIDTH, POWER_CAP)
"""All values that `throughput_limit` can have."""


@define(kw_only=True, eq=False)
class LedgerColumns:
    """Ledger lines of one run, by operator, with actions in the order of the reference table."""

    operator_index: Integers
    action_index: Integers
    """Row of each line's action in the hardware's reference table."""
    action_count: Floats
    energy_fj: Integers

    @property
    def total_fj(self) -> int:
        """Exact energy of the run in femtojoules."""
        return sum(self.energy_fj.tolist())


@define(kw_only=True, eq=False)
class SubgraphColumns:
    """Results of a run, one row per subgraph that runs."""

    subgraph_index: Integers
    latency_fs: Integers
    compute_s: Floats
    memory_s: Floats
    launch_s: Floats
    """Fixed cost of kernels, without extra passes."""
    pass_s: Floats
    """Memory time of passes that the runtime adds. The latency is launch_s + pass_s + the longer of compute_s and
    memory_s.
    """
    dram_bytes: Floats
    moved_bytes: Floats
    """Bytes that cross kernel boundaries at any memory level."""
    pass_bytes: Floats
    """Bytes that passes added by the runtime read and write again, at any level."""
    tile_count: Floats
    wave_count: Floats
    executed_mac_count: Floats
    """MAC slots of the subgraph's tiles, including padding."""
    computed_mac_count: Integers
    """MACs that the chip computes; fewer than the operators' MACs if an algorithm or a mask omits some."""
    units_used_count: Integers
    kernel_count: Integers
    bottleneck: Integers
    """Index of the bottleneck in `BOTTLENECKS`."""


@define(kw_only=True, eq=False)
class OperatorColumns:
    """Results of a run, one row per executed operator. In the `separate` columns, every ATen call is a kernel.

    Bytes are whole numbers (or halves at four bits), so that their sums do not depend on the order.
    """

    operator_index: Integers
    subgraph_index: Integers
    kernel_count: Integers
    """1 if the operator leads a kernel, else 0."""
    latency_fs: Integers
    interval_fs: Integers
    """Share of the interval between batches, during which static power is drawn; the latency if batches do not overlap.
    """
    dram_bytes: Floats
    moved_bytes: Floats
    pass_bytes: Floats
    separate_kernel_count: Integers
    separate_latency_fs: Integers
    separate_energy_fj: Integers
    separate_dram_bytes: Floats
    separate_moved_bytes: Floats
    separate_pass_bytes: Floats


@define(kw_only=True, eq=False)
class RunFacts:
    """Whole-run results of a workload evaluated on one configuration."""

    configuration: Configuration
    hardware: Hardware
    units_total_count: int
    peak_ops_per_s: float
    memory_bandwidth_bytes_per_s: float
    weight_bytes: int
    activation_bytes: int
    mac_count: int
    clock_fraction: float
    """Clock as a fraction of the full clock; below 1 if the power cap lowers it."""
    clock_hz: float
    """Clock of the chip under the power cap."""
    voltage_factor: float
    """Energy of an on-chip action at `clock_hz`, relative to its energy at the highest voltage of the die."""
    uncapped_power_w: float
    """Power without the cap, at the full clock of the power mode, if the run repeats without a pause."""
    throughput_limit: str
    """Throughput limit, one of `THROUGHPUT_LIMITS`."""
    broken_laws: str
    """Names of the laws that the run breaks, joined by commas; empty for a run that obeys all."""
    suppressed_s: float
    """Part of the latency in non-maximum suppressions, whose number of boxes depends on data."""


@define(kw_only=True, eq=False)
class RunTotals(RunFacts):
    """Totals of a run without its ledger; they equal the ledger's sums to the femtojoule."""

    latency_fs: int
    interval_fs: int
    """Time from one batch to the next in steady state."""
    compute_fs: int
    """Latency of compute-bound subgraphs, without their launches."""
    memory_fs: int
    launch_fs: int
    bottleneck_fs: tuple[int, ...]
    """Latency of the subgraphs that each of `BOTTLENECKS` bounds."""
    bound_fs: tuple[int, ...]
    """Latency of the subgraphs that each of `BOUNDS` bounds."""
    unit_fs: int
    """Sum over subgraphs of units used x latency."""
    dram_bytes: float
    moved_bytes: float
    """Bytes that cross kernel boundaries at any memory level."""
    computed_mac_count: int
    """MACs that the chip computes."""
    action_index: Integers
    """Row of the hardware's reference table for each action that occurs."""
    action_count: Floats
    action_fj: Integers

    @property
    def energy_fj(self) -> int:
        """Exact energy of the run in femtojoules."""
        return sum(self.action_fj.tolist())

    @property
    def share_fs(self) -> tuple[int, ...]:
        """Latency divided into compute, memory and launch time, in the order of `BOTTLENECKS`."""
        return self.compute_fs, self.memory_fs, self.launch_fs


@define(kw_only=True, eq=False)
class RunColumns(RunFacts):
    """Results of a run by subgraph and by operator, with its ledger."""

    separate_clock_fraction: float
    """Clock as a fraction of the full clock if every ATen call is a separate kernel."""
    subgraphs: SubgraphColumns
    operators: OperatorColumns
    ledger: LedgerColumns

    @property
    def latency_fs(self) -> int:
        """Exact latency of the run in femtoseconds."""
        return sum(int(value) for value in self.subgraphs.latency_fs)

    @property
    def interval_fs(self) -> int:
        """Exact time from one batch to the next in steady state, in femtoseconds."""
        return sum(int(value) for value in self.operators.interval_fs)

    @property
    def energy_fj(self) -> int:
        """Exact energy of the run in femtojoules."""
        return self.ledger.total_fj

    @property
    def bottleneck_fs(self) -> tuple[int, ...]:
        """Latency of the subgraphs that each of `BOTTLENECKS` bounds."""
        parts = self.subgraphs
        return tuple(int(parts.latency_fs[parts.bottleneck == code].sum()) for code in range(len(BOTTLENECKS)))

    @property
    def share_fs(self) -> tuple[int, ...]:
        """Latency divided into compute, memory and launch time, in the order of `BOTTLENECKS`."""
        parts = self.subgraphs
        launch_fs = np.minimum(np.rint(parts.launch_s * FS_PER_S).astype(np.int64), parts.latency_fs)
        pass_fs = np.minimum(np.rint(parts.pass_s * FS_PER_S).astype(np.int64), parts.latency_fs - launch_fs)
        busy_fs, computes = parts.latency_fs - launch_fs - pass_fs, parts.compute_s >= parts.memory_s
        return int(busy_fs[computes].sum()), int(busy_fs[~computes].sum() + pass_fs.sum()), int(launch_fs.sum())

    @property
    def dram_bytes(self) -> float:
        """Bytes read and written off chip."""
        return float(self.subgraphs.dram_bytes.sum())

    @property
    def moved_bytes(self) -> float:
        """Bytes that cross kernel boundaries at any level."""
        return float(self.subgraphs.moved_bytes.sum())

    @property
    def computed_mac_count(self) -> int:
        """MACs that the chip computes."""
        return int(self.subgraphs.computed_mac_count.sum())

    @property
    def action_index(self) -> Integers:
        """Row of the hardware's reference table for each action that occurs."""
        return np.unique(self.ledger.action_index)

    @property
    def action_fj(self) -> Integers:
        """Energy of each action in `action_index`, in femtojoules."""
        spent = np.zeros(len(self.hardware.reference), dtype=np.int64)
        np.add.at(spent, self.ledger.action_index, self.ledger.energy_fj)
        return spent[self.action_index]
