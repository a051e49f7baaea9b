"""Many workloads on one configuration at once: totals of each, without its ledger.

    workloads ─► concatenate ─► form kernels ─► place ─► time ─► count ─► price ─► sums by workload

Each kernel carries its own columns and those of its workload, so thousands of small workloads cost little more than one
large one. The power cap applies to each workload separately. Totals equal those of the ledger of a separate evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from joulemap.physics.fallback import find_fallen, name_fallen
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.outcome import Timed
from joulemap.physics.pipeline import find_shortage, refuse_precision
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.sum import Sums
from joulemap.physics.timing import count_parts
from joulemap.physics.width import Widths
from joulemap.physics.workload import Floats, Integers, WorkloadColumns, columns_of, sum_by
from joulemap.system.errors import Reason, UnsupportedError
from joulemap.system.record import define, frozen

if TYPE_CHECKING:
    from joulemap.physics.record.workload import Workload

TOGETHER: Final = 4096
"""Maximum workloads evaluated at once; more gain no speed and cost memory."""


JOINED: Final = tuple(
    field.name
    for field in attrs.fields(WorkloadColumns)
    if field.name not in ("origin", "batch", "inner_batch", "weight_bytes", "kernel_group")
)
"""Names of workload arrays that are concatenated if several workloads are joined."""

TIMES: Final = {"times": "kind", "buffer_times": "buffer_bytes"}
"""Optional workload array of multiplicities -> array of the same length. Without the former, each row counts once."""


@frozen(kw_only=True)
class Total:
    """Totals of a workload on one configuration, or the reason why the hardware cannot run it."""

    refusal: Reason | None = None
    """Reason why the hardware cannot run the workload; None if it can, and then all other fields are set."""
    latency_fs: int | None = None
    interval_fs: int | None = None
    """Interval between batches in steady state."""
    energy_fj: int | None = None
    clock_fraction: float | None = None
    """Clock as a fraction of the full clock; below 1 if the power cap lowers it."""
    weight_bytes: int | None = None
    activation_bytes: int | None = None
    mac_count: int | None = None


@define(kw_only=True, eq=False, slots=False)
class JoinedColumns(WorkloadColumns):
    """Several workloads concatenated into one. `batch` and `weight_bytes` are placeholders; use the fields per
    workload.
    """

    workload_index: Integers
    """Index of each operator's workload."""
    batches: Floats
    """Number of samples in a batch of each workload."""

    @property
    def workload_count(self) -> int:
        """Number of workloads."""
        return len(self.batches)


def join(works: Sequence[WorkloadColumns]) -> JoinedColumns:
    """Return workloads concatenated into one. Each must have an operator that computes."""
    shifts = {
        "call_index": [int(one.call_index[-1]) + 1 for one in works],
        "subgraph_index": [one.subgraph_count for one in works],
        "access_operator": [one.operator_count for one in works],
        "access_tensor": [int(one.access_tensor.max(initial=-1)) + 1 for one in works],
        "access_buffer": [len(one.buffer_bytes) for one in works],
    }
    shifts |= dict.fromkeys(("buffer_birth", "buffer_death", "buffer_release"), shifts["access_operator"])
    columns: dict[str, Any] = {}
    for name in JOINED:
        each = [getattr(one, name) for one in works]
        if name in TIMES:
            if all(one is None for one in each):
                columns[name] = None
                continue
            rows = [len(getattr(work, TIMES[name])) for work in works]
            each = [np.ones(count) if one is None else one for one, count in zip(each, rows, strict=True)]
        if name in shifts:
            starts = np.cumsum([0, *shifts[name]])[:-1].tolist()
            each = [np.where(one < 0, one, one + start) for one, start in zip(each, starts, strict=True)]
        columns[name] = np.concatenate(each)
    return JoinedColumns(
        batch=1,
        weight_bytes=0,
        workload_index=np.repeat(np.arange(len(works)), [one.operator_count for one in works]),
        batches=np.array([one.batch * one.inner_batch for one in works], dtype=np.float64),
        **columns,
    )


def find_sizes(joined: JoinedColumns, precision: str, runtime: str, weight_precision: str) -> tuple[Floats, Floats]:
    """Return (weight bytes, peak of live activation bytes) of each of the workloads."""
    widths = Widths(joined, precision, weight_precision)
    reader = joined.workload_index[joined.access_operator[joined.first_reads]]
    starts = np.searchsorted(joined.workload_index, np.arange(joined.workload_count))
    live = widths.live_bytes(is_fused=RUNTIME[runtime].merges)
    return sum_by(reader, widths.first_read_bytes, joined.workload_count), np.maximum.reduceat(live, starts)


def form_joined(joined: JoinedColumns, precision: str, runtime: str, weight_precision: str = "") -> KernelColumns:
    """Return the kernels that the runtime launches for each of the workloads."""
    kernels = form_kernels(joined, precision, runtime, weight_precision)
    owner = joined.workload_index[kernels.operator_index]
    weights, peaks = find_sizes(joined, precision, runtime, weight_precision)
    launches = kernels.host_launch_count
    if not RUNTIME[runtime].launches_each:
        _, first = np.unique(owner[kernels.leader], return_index=True)
        launches = np.zeros_like(launches)
        launches[kernels.leader[first]] = 1.0
    return attrs.evolve(
        kernels,
        host_launch_count=launches,
        batch=joined.batches[owner],
        total_weight_bytes=weights[owner],
        peak_activation_bytes=peaks[owner],
        workload_index=owner,
        workload_count=joined.workload_count,
    )


@define
class Together:
    """Workloads that are evaluated together, on any number of configurations.

    Workloads are joined once, and their kernels are formed once for all hardware.
    """

    works: tuple[WorkloadColumns, ...]
    _joined: dict[tuple[int, ...], JoinedColumns] = attrs.field(factory=dict, init=False)
    """Cache: indices of workloads -> these workloads joined."""
    _kernels: dict[tuple[tuple[int, ...], str, str, str], KernelColumns] = attrs.field(factory=dict, init=False)
    _sizes: dict[tuple[str, str, str], tuple[tuple[float, float], ...]] = attrs.field(factory=dict, init=False)

    def evaluate(
        self, hardware: Hardware, precision: str, runtime: str, *, weight_precision: str = ""
    ) -> tuple[Total, ...]:
        """Return the totals of each workload on a configuration, or the reason why its hardware cannot run it.

        GEMM weights are stored at `weight_precision`, if it differs. Raises UnpricedActionError for an action without
        an energy, KeyError for a number that the hardware lacks, UsageError if `weight_precision` is not narrower.
        """
        if precision not in hardware.peaks:
            return (Total(refusal=refuse_precision(hardware, precision)),) * len(self.works)
        totals: dict[int, Total] = {}
        for number, one in enumerate(self.works):
            if refusal := _find_fallen(one, hardware):
                totals[number] = Total(refusal=refusal)
        rest = tuple(number for number in range(len(self.works)) if number not in totals)
        totals |= zip(rest, self._evaluate(rest, hardware, (precision, runtime, weight_precision)), strict=True)
        return tuple(totals[number] for number in range(len(self.works)))

    def sizes(self, precision: str, runtime: str, *, weight_precision: str = "") -> tuple[tuple[float, float], ...]:
        """Return (weight bytes, peak activation bytes) of each workload, on hardware that splits no batch."""
        how = precision, runtime, weight_precision
        if how not in self._sizes:
            joined = self._join(tuple(range(len(self.works))))
            weights, peaks = find_sizes(joined, *how)
            self._sizes[how] = tuple(zip(weights.tolist(), peaks.tolist(), strict=True))
        return self._sizes[how]

    def _join(self, some: tuple[int, ...]) -> JoinedColumns:
        if some not in self._joined:
            self._joined[some] = join([self.works[number] for number in some])
        return self._joined[some]

    def _evaluate(self, some: tuple[int, ...], hardware: Hardware, how: tuple[str, str, str]) -> list[Total]:
        """Return the totals of the workloads at the indices `some`.

        If a total is beyond the store's range, the group is halved until the workloads at fault are alone.
        """
        if not some:
            return []
        try:
            return self._evaluate_fitting(some, hardware, how)
        except UnsupportedError as error:
            if len(some) == 1:
                return [Total(refusal=error.reason)]
            half = len(some) // 2
            return [*self._evaluate(some[:half], hardware, how), *self._evaluate(some[half:], hardware, how)]

    def _evaluate_fitting(self, some: tuple[int, ...], hardware: Hardware, how: tuple[str, str, str]) -> list[Total]:
        precision, runtime, weight_precision = how
        joined = self._join(some)
        weights, whole_peaks = find_sizes(joined, *how)
        peaks = whole_peaks / count_parts(joined.batches, hardware)
        shortages = [
            find_shortage(hardware.id, required, hardware.memory_capacity.value)
            for required in (weights + peaks).tolist()
        ]
        if any(shortages):
            fitting = tuple(number for number, shortage in zip(some, shortages, strict=True) if not shortage)
            totals = iter(self._evaluate(fitting, hardware, how))
            return [Total(refusal=shortage) if shortage else next(totals) for shortage in shortages]
        if (some, *how) not in self._kernels:
            self._kernels[some, *how] = form_joined(joined, precision, runtime, weight_precision)
        return _list_totals(self._kernels[some, *how], hardware, weights, peaks)


def evaluate_all(workloads: Sequence[Workload], hardware: Hardware, precision: str, runtime: str) -> tuple[Total, ...]:
    """Return the totals of each workload on a configuration, or the reason why its hardware cannot run it.

    Raises like `Together.evaluate`.
    """
    totals: list[Total] = []
    for start in range(0, len(workloads), TOGETHER):
        some = tuple(columns_of(one) for one in workloads[start : start + TOGETHER])
        totals += Together(some).evaluate(hardware, precision, runtime)
    return tuple(totals)


def _find_fallen(work: WorkloadColumns, hardware: Hardware) -> Reason | None:
    """Return the reason why a chip's compiler does not run the whole workload; None if it does."""
    if hardware.compiler is None:
        return None
    fallen = find_fallen(work, hardware.compiler)
    names = name_fallen(work, hardware.compiler, fallen)
    if not names:
        return None
    values = {"hardware": hardware.id, "compiler": hardware.compiler.name, "operations": names}
    return Reason(text=f"{hardware.id}: {hardware.compiler.name} does not run {names}", code="no_host", values=values)


def _list_totals(kernels: KernelColumns, hardware: Hardware, weights: Floats, peaks: Floats) -> list[Total]:
    timed = Timed.of(kernels, hardware)
    sums = Sums(timed=timed)
    macs = kernels.sum_workload(kernels.work.mac_count)
    return [
        Total(
            latency_fs=latency,
            interval_fs=interval,
            energy_fj=energy,
            clock_fraction=clock,
            weight_bytes=round(weight),
            activation_bytes=round(peak),
            mac_count=int(count),
        )
        for latency, interval, energy, clock, weight, peak, count in zip(
            sums.latency.tolist(),
            sums.interval.tolist(),
            sums.energy_fj,
            timed.timing.clock_fraction.tolist(),
            weights.tolist(),
            peaks.tolist(),
            macs.tolist(),
            strict=True,
        )
    ]
