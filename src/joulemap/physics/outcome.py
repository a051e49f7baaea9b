"""Times as whole femtoseconds, and runs built from them.

Latencies are rounded to integer femtoseconds per kernel. They are split exactly over operators, in proportion to the
time on the resource that bounds the kernel. Operators therefore sum to subgraphs, and subgraphs to the run. The
interval is split over all operators in proportion to their latencies. The cost of an operator as a separate kernel is
rounded in the same way, so that savings are 0 without fusion. Static power is drawn for the interval, because
overlapping batches share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Self

import attrs
import numpy as np

from joulemap.physics.column import find_rows
from joulemap.physics.kernel import KernelColumns, share_exactly
from joulemap.physics.kind import Kinds
from joulemap.physics.law import name_broken
from joulemap.physics.ledger import MAX_LINE_FJ, Counts, close_counts, operator_fj, price
from joulemap.physics.pace import SAME
from joulemap.physics.placement import Placement
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import LedgerColumns, OperatorColumns, RunColumns, SubgraphColumns
from joulemap.physics.timing import Timing, find_activations, time_kernels
from joulemap.physics.workload import Floats, Integers, sum_by
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S

Asked = tuple[Hardware, Configuration]
"""Hardware and configuration on which a workload is evaluated."""

ROUNDING: Final = 2.0**-50
"""Relative reduction of shares before they are rounded, so that rounded shares never exceed the total."""


@frozen(kw_only=True, eq=False)
class Timed:
    """Kernels timed on one chip, or on several whose numbers are stacked as arrays; each kind is timed once."""

    timing: Timing
    hardware: Hardware
    kernels: KernelColumns
    """All kernels, before a batch is cut into parts."""

    @classmethod
    def of(cls, kernels: KernelColumns, hardware: Hardware, parts: Floats | None = None) -> Self:
        """Return kernels timed on one chip, or on several that are stacked; `parts` is passed to `time_kernels`."""
        return cls(timing=time_kernels(Kinds.of(kernels).kernels, hardware, parts), hardware=hardware, kernels=kernels)

    def expand(self, column: Floats | Integers | float, points: int) -> Any:
        """Return a column that has one value per operator of a kind, expanded to all operators and concatenated over
        points.
        """
        rows = Kinds.of(self.kernels).row
        each = self.timing.kernels.each(column)[..., rows]
        return each.ravel() if each.size == points * len(rows) else np.tile(each, points)

    @cached_property
    def operator_fs(self) -> Integers:
        """Each operator's exact share of its kernel's latency: its own time, and the launch for the leading operator.

        Raises UnsupportedError for a workload whose latency the store cannot hold.
        """
        kernels, placement = self.timing.kernels, self.timing.placement
        whole = kernels.sum_kernels(self.timing.kernel_s) * FS_PER_S
        if whole.size and not float(whole.max()) < float(MAX_LINE_FJ):
            raise UnsupportedError(
                f"{self.hardware.id}: one pass takes longer than {MAX_LINE_FJ / FS_PER_S / 3600.0:.1f} hours, "
                "more than the store can hold; use a smaller batch",
                code="range",
                hardware=self.hardware.id,
            )
        kernel_fs = np.rint(kernels.each_kernel(self.timing.kernel_s) * FS_PER_S).astype(np.int64)
        if kernels.is_plain:
            return kernel_fs
        weights = placement.own_s(kernels) + at_leaders(kernels, placement.launch_s)
        return share_exactly(kernel_fs, weights, kernels.kernel_index, kernels.starts)

    @cached_property
    def interval_fs(self) -> Integers:
        """Each operator's exact share of the interval between batches, in proportion to its latency.

        The share equals the latency if batches do not overlap. The leading operator of the workload's first kernel
        takes the rounding remainder, so that equal operators have equal shares.
        """
        timing, kernels = self.timing, self.timing.kernels
        latency_s = kernels.sum_kernels(timing.kernel_s)
        is_shorter = timing.interval_s < latency_s * (1.0 - SAME)
        if not is_shorter.any():
            return self.operator_fs
        latency_fs = self.sum_exactly(self.operator_fs)
        interval_fs = np.minimum(np.rint(timing.interval_s * FS_PER_S).astype(np.int64), latency_fs)
        ratio = np.where(is_shorter, interval_fs / np.maximum(latency_fs, 1) * (1.0 - ROUNDING), 1.0)
        shares = np.floor(self.operator_fs * kernels.of_workload(ratio)).astype(np.int64)
        left = interval_fs - self.sum_exactly(shares)
        first = kernels.leader[np.unique(kernels.workload_index[kernels.leader], return_index=True)[1]]
        shares[..., first] += left
        return np.where(kernels.of_workload(is_shorter), shares, self.operator_fs)

    @cached_property
    def closed_counts(self) -> Counts:
        """Action counts, including static power and regulator losses, which follow from time and energy."""
        timing = self.timing
        return close_counts(timing.counts, self.hardware, self.interval_fs / FS_PER_S, timing.row_factor)

    @cached_property
    def operator_fj(self) -> Integers:
        """Energy of each operator in femtojoules."""
        return operator_fj(self.closed_counts, self.hardware, self.timing.row_factor)

    def sum_exactly(self, values: Integers) -> Integers:
        """Return the exact sum of whole numbers per operator over each workload. A kind counts once per occurrence."""
        kernels = self.timing.kernels
        times = np.asarray(kernels.row_times, dtype=np.int64)
        starts = np.searchsorted(kernels.workload_index, np.arange(kernels.workload_count))
        total: Integers = np.add.reduceat(kernels.each(values) * times, starts, axis=-1)
        return total

    def list_columns(self, points: int, before: str = "") -> dict[str, Any]:
        """Return latency and bytes of operators by column name, concatenated by point. Names begin with `before`."""
        placement = self.timing.placement
        return {
            f"{before}latency_fs": self.expand(self.operator_fs, points),
            f"{before}dram_bytes": self.expand(placement.dram_bytes, points),
            f"{before}moved_bytes": self.expand(self.timing.kernels.moved_bytes, points),
            f"{before}pass_bytes": self.expand(placement.pass_bytes, points),
        }


def cut_runs(
    timed: tuple[Timed, int],
    places: Sequence[int],
    apart: tuple[Timed, int],
    beside: Sequence[int],
    asked: Sequence[Asked],
) -> list[RunColumns]:
    """Return the run of each configuration in `asked`, out of kernels timed on several chips together.

    `timed` and `apart` are (timed kernels, number of chips); in `apart`, every ATen call is a kernel. `places` has the
    index in `timed` of each configuration's chip, `beside` the index in `apart`.
    """
    own, points = timed
    alone, others = apart
    timing, kernels = own.timing, own.kernels
    count = kernels.work.operator_count
    row = np.searchsorted(alone.kernels.operator_index, kernels.operator_index)
    ledger = price(own.closed_counts, own.hardware, timing.row_factor, Kinds.of(kernels).row, points)
    lines = np.searchsorted(ledger.operator_index, np.arange(points + 1) * count)
    ledger = attrs.evolve(ledger, operator_index=np.tile(kernels.operator_index, points)[ledger.operator_index])
    subgraphs, shown = _subgraphs(own, points)
    leads, led_apart = kernels.leads.astype(np.int64), alone.kernels.leads.astype(np.int64)
    columns = own.list_columns(points) | {"interval_fs": own.expand(own.interval_fs, points)}
    separate = alone.list_columns(others, "separate_")
    separate["separate_energy_fj"] = alone.expand(alone.operator_fj, others)
    clocks_apart = alone.timing.clock_fraction.ravel()
    facts = list_facts(own, points, [(index, 0) for index in places], asked, [kernels])
    runs = []
    for index, other, (hardware, _), given in zip(places, beside, asked, facts, strict=True):
        mine, theirs = slice(index * count, (index + 1) * count), row + other * alone.kernels.work.operator_count
        some, rows = slice(*lines[index : index + 2]), slice(*shown[index : index + 2])
        runs.append(
            RunColumns(
                **given,
                separate_clock_fraction=float(clocks_apart[other % len(clocks_apart)]),
                subgraphs=SubgraphColumns(**{name: column[rows] for name, column in subgraphs.items()}),
                operators=OperatorColumns(
                    operator_index=kernels.operator_index,
                    subgraph_index=kernels.work.subgraph_index,
                    kernel_count=leads,
                    separate_kernel_count=led_apart[row],
                    **{name: column[mine] for name, column in columns.items()},
                    **{name: column[theirs] for name, column in separate.items()},
                ),
                ledger=LedgerColumns(
                    operator_index=ledger.operator_index[some],
                    action_index=find_rows(ledger.action_index[some], own.hardware.reference, hardware.reference),
                    action_count=ledger.action_count[some],
                    energy_fj=ledger.energy_fj[some],
                ),
            )
        )
    return runs


def list_facts(
    own: Timed, points: int, places: Sequence[tuple[int, int]], asked: Sequence[Asked], forms: Sequence[KernelColumns]
) -> list[dict[str, Any]]:
    """Return the fields of `RunFacts` by name, for each configuration in `asked`.

    `places` has (index of the chip among `points`, index of the workload) of each configuration in `own`, and `forms`
    the kernels of each workload.
    """
    timing, works = own.timing, len(forms)
    macs = [int(one.work.mac_count.sum()) for one in forms]
    columns: tuple[Any, ...] = (
        timing.placement.units_total,
        timing.clock_fraction,
        timing.voltage_factor,
        timing.uncapped_power_w,
        timing.throughput_limit,
        timing.broken_laws,
        timing.suppressed_s,
    )
    if works > 1:
        columns = tuple(np.broadcast_to(one, (points, works)) for one in columns)
    units, clocks, factors, watts, limits, broken, suppressed = [np.asarray(one).ravel() for one in columns]
    facts = []
    for (index, number), (hardware, configuration) in zip(places, asked, strict=True):
        kernels, row = forms[number], index * works + number
        clock = float(clocks[row % len(clocks)])
        peak_rate = hardware.product_rate(*configuration.arithmetic, configuration.runtime)
        facts.append(
            {
                "configuration": configuration,
                "hardware": hardware,
                "units_total_count": int(units[row % len(units)]) if kernels.work.operator_count else hardware.units,
                "peak_ops_per_s": peak_rate,
                "memory_bandwidth_bytes_per_s": hardware.memory_bandwidth.value,
                "weight_bytes": round(float(kernels.total_weight_bytes)),
                "activation_bytes": round(find_activations(kernels, hardware)),
                "mac_count": macs[number],
                "clock_fraction": clock,
                "clock_hz": clock * hardware.full_clock.value,
                "voltage_factor": float(factors[row % len(factors)]),
                "uncapped_power_w": float(watts[row % len(watts)]),
                "throughput_limit": str(limits[row % len(limits)]),
                "broken_laws": name_broken(int(broken[row % len(broken)])),
                "suppressed_s": float(suppressed[row % len(suppressed)]),
            }
        )
    return facts


def _subgraphs(own: Timed, points: int) -> tuple[dict[str, Any], list[int]]:
    """Return (column name -> values, first row of each chip) of the subgraphs that run.

    If an engine joins several subgraphs, the kernel's launch belongs to the subgraph of its leading operator.
    """
    timing, kernels, placement = own.timing, own.kernels, own.timing.placement
    kinds, work = timing.kernels, kernels.work
    row, owner, count = Kinds.of(kernels).row, work.subgraph_index, work.subgraph_count
    shown = np.unique(owner)

    def summed(per_operator: Floats) -> Floats:
        """Return the sums over subgraphs, concatenated over points."""
        sums = sum_by(owner, kinds.each(per_operator)[..., row], count)[..., shown]
        return sums.ravel() if sums.size == points * len(shown) else np.tile(sums, points)

    used = np.zeros((count, points))
    np.maximum.at(used, owner, own.expand(placement.units_used, points).reshape(points, -1).T)
    latency_fs = np.zeros((count, points), dtype=np.int64)
    np.add.at(latency_fs, owner, own.expand(own.operator_fs, points).reshape(points, -1).T)
    kernel_count = np.bincount(owner[kernels.leader].astype(np.intp), minlength=count)
    launch, passes = split_launch(placement, kinds)
    compute_s, memory_s, launch_s, pass_s = map(summed, (placement.compute_s, placement.memory_s, launch, passes))
    bounds = compute_s, memory_s + pass_s, launch_s
    return {
        "subgraph_index": np.tile(shown, points),
        "latency_fs": latency_fs[shown].T.ravel(),
        "compute_s": compute_s,
        "memory_s": memory_s,
        "launch_s": launch_s,
        "pass_s": pass_s,
        "dram_bytes": summed(placement.dram_bytes),
        "moved_bytes": summed(kinds.moved_bytes),
        "pass_bytes": summed(np.asarray(placement.pass_bytes, dtype=np.float64)),
        "tile_count": summed(placement.tile_count),
        "wave_count": summed(placement.wave_count),
        "executed_mac_count": summed(placement.executed_macs),
        "computed_mac_count": np.floor(summed(placement.real_macs(kinds))).astype(np.int64),
        "units_used_count": used[shown].T.ravel().astype(np.int64),
        "kernel_count": np.tile(kernel_count[shown], points),
        "bottleneck": np.argmax(np.stack(bounds), axis=0),
    }, (np.arange(points + 1) * len(shown)).tolist()


def at_leaders(kernels: KernelColumns, values: Floats) -> Floats:
    """Return a per-operator column with kernel values at leading operators; a single number applies to all kernels."""
    return kernels.at_leader(kernels.each_kernel(values))


def split_launch(placement: Placement, kernels: KernelColumns) -> tuple[Floats, Floats]:
    """Return (fixed cost without extra passes, memory time of these passes) of each kernel, at its leading operator."""
    passes = np.minimum(placement.pass_s, placement.launch_s)
    return at_leaders(kernels, placement.launch_s - passes), at_leaders(kernels, passes)
