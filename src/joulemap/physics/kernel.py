"""Kernels: the operators that run together, the bytes that they move, and the split of kernel times over operators.

    kernel latency = launch + max(compute, memory)

A kernel is a subgraph under the runtimes `fused` and `engine`. Under `eager` and `graph` it is an ATen call: one
operator, or the three of a fused attention. Operators that only rename memory belong to no kernel and have no row here.
In merged kernels, neither do operators that do not depend on the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.merge import build
from joulemap.physics.record.configuration import PRECISION_BYTES, carried_precision
from joulemap.physics.record.runtime import RUNTIME, Runtime
from joulemap.physics.width import Widths
from joulemap.physics.workload import (
    ROLE_CODE,
    Booleans,
    Floats,
    Integers,
    Work,
    WorkloadColumns,
    join_works,
    pick,
    sum_by,
)
from joulemap.system.record import define

EPILOGUE_KINDS: Final = ("elementwise", "batch_norm", "softmax", "normalization")
"""Operator kinds that another operator's kernel can compute on data in its registers."""

NEAR: Final = 1e-6
"""Maximum distance from a whole number that counts as rounding error."""

FEW: Final = 32
"""Maximum workloads whose operators are added one workload after another, in the order in which each is added alone."""

LOOP_KINDS: Final = ("data_movement", "pool", "reduction")
"""Operator kinds that run in another operator's kernel only if it has no GEMMs or is a mixture of experts."""


@define(kw_only=True, eq=False, slots=False)
class KernelColumns:
    """Operators as members of the runtime's kernels: one row per member, in workload order.

    Arrays are per row unless stated otherwise. If kernels of several workloads are joined, a number of one workload is
    an array, one value per row. If numbers of the chip are arrays, derived values have an axis of points before the
    axis of rows.
    """

    work: Work
    precision: str
    """Precision of GEMMs."""
    weight_precision: str
    """Precision at which GEMM weights are stored; empty if it equals `precision`."""
    runtime: Runtime
    operator_index: Integers
    """Index of each row's operator in the workload."""
    operator_count: int
    """Number of operators in the workload, including those without a row."""
    kernel_index: Integers
    kernel_count: int
    leader: Integers
    """Row of the operator that leads each kernel and carries the costs of the whole kernel, such as its launch."""
    input_bytes: Floats
    """Bytes read across the kernel's boundary, without weights."""
    weight_bytes: Floats
    output_bytes: Floats
    entering_bytes: Floats
    """Part of `input_bytes` that enters the model; always read from DRAM."""
    leaving_bytes: Floats
    """Part of `output_bytes` that leaves the model; always written to DRAM."""
    allocated_bytes: Floats
    """Part of `output_bytes` in storage that starts with the operator; an operator in place has none."""
    own_read_bytes: Floats
    """Bytes that the operator would read as a separate kernel, including weights."""
    own_weight_bytes: Floats
    """Weight part of `own_read_bytes`, at the width at which weights are multiplied."""
    weight_span_bytes: Floats
    """Weight bytes that the workload reads since the last read of the operator's weights; infinite at a first read."""
    dequantization_count: Floats
    """Elementwise operations, included in `work`, that convert stored weights to the operand of the GEMM."""
    host_launch_count: Floats
    """Host launches: one per kernel in `eager`, else one per run, at its first kernel."""
    batch: Floats | float
    """Number of samples in the workload, including the inner batch of a single operator."""
    total_weight_bytes: Floats | float
    """Weight bytes of the whole workload."""
    peak_activation_bytes: Floats | float
    """Peak of live activation bytes of the whole workload."""
    workload_index: Integers
    """Index of each row's workload if kernels of several are joined; 0 everywhere for one workload."""
    workload_count: int
    repeat_count: Floats | float = 1.0
    """Sequential repetitions of the whole row in its kernel; the row of a recurrence is one step."""
    times: Floats | None = None
    """Number of equal kernels in the workload, per kernel; None if each kernel represents only itself."""

    @property
    def item_bytes(self) -> float:
        """Bytes of one element at this precision."""
        return PRECISION_BYTES[self.precision]

    @property
    def carried_bytes(self) -> float:
        """Bytes of one element that is not an operand of a GEMM."""
        return PRECISION_BYTES[carried_precision(self.precision)]

    @cached_property
    def memo(self) -> dict[tuple[str, ...], object]:
        """Cache of facts about the kernels that apply to all hardware of a class, by names that the class chooses."""
        return {}

    @cached_property
    def step_count(self) -> Floats:
        """Number of sequentially dependent steps, per kernel."""
        counts = self.work.kernel_step_count if self.runtime.merges else self.work.step_count
        return counts[self.leader]

    @cached_property
    def loops(self) -> Booleans:
        """Mask of operators in loop kernels, whose members are the operators of all steps."""
        has_recurrence = self.per_kernel(np.where(self.work.step_count > 1.0, 1.0, 0.0)) > 0.0
        mask: Booleans = ((self.step_count > 1.0) & ~has_recurrence)[self.kernel_index]
        return mask

    @cached_property
    def start_count(self) -> Floats:
        """Kernel starts per row: 1 / `repeat_count` for a kernel's leading operator, 0 for its other operators."""
        return self.at_leader(np.ones(self.kernel_count)) / self.repeat_count

    @cached_property
    def working_bytes(self) -> Floats:
        """Capacity in bytes that a memory level needs to hold the data that an operator moves in all its steps.

        A kernel with a GEMM passes tiles from member to member, so that it never needs more room than its members
        would separately. Any other streams the data of all members together.
        """
        repeats = self.repeat_count
        needed = self.moved_bytes * repeats
        if np.ndim(repeats) or self.loops.any():
            once = np.minimum(self.weight_bytes * repeats, self.own_weight_bytes)
            weights = np.where(self.loops | np.greater(repeats, 1.0), once, self.weight_bytes)
            needed = (self.input_bytes + self.output_bytes) * repeats + weights
        return np.where(self.has_product, needed, self.of_kernel(needed))

    @cached_property
    def is_repeated(self) -> Booleans:
        """Mask of loop operators that repeat an operator of the first step."""
        if not self.loops.any():
            return self.loops
        order = np.argsort(self.kernel_index, kind="stable")
        members = np.bincount(self.kernel_index.astype(np.intp), minlength=self.kernel_count)
        first = np.cumsum(members) - members
        rank = np.zeros(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - first[self.kernel_index[order]]
        mask: Booleans = self.loops & (rank >= np.ceil(members / self.step_count)[self.kernel_index])
        return mask

    @cached_property
    def leads(self) -> Booleans:
        """Mask of operators that lead a kernel."""
        mask = np.zeros(self.work.operator_count, dtype=bool)
        mask[self.leader] = True
        return mask

    @cached_property
    def has_product(self) -> Booleans:
        """Mask of operators in a kernel with a GEMM."""
        mask: Booleans = self.of_kernel(self.work.mac_count) > 0.0
        return mask

    @cached_property
    def rides(self) -> Booleans:
        """Mask of elementwise or row-wise operators in a kernel that another operator leads.

        They run in the leading operator's epilogue, on its tiles, or convert its weights as it loads them.
        """
        in_loop = self.work.of_kind(*LOOP_KINDS) & (~self.has_product | self.mixes)
        mask: Booleans = ~self.leads & (self.work.of_kind(*EPILOGUE_KINDS) | in_loop | self.feeds)
        return mask

    @cached_property
    def mixes(self) -> Booleans:
        """Mask of operators in kernels that compute both GEMMs of a mixture of experts, with or without others."""
        grouped = np.where(self.work.of_operation("grouped_mm"), 1.0, 0.0)
        mask: Booleans = self.of_kernel(grouped) >= 2.0
        return mask

    @cached_property
    def is_sibling(self) -> Booleans:
        """Mask of GEMMs that share the input of their kernel's leading operator. An engine computes all of them as one
        GEMM.
        """
        work = self.work
        is_other = work.subgraph_index != work.subgraph_index[self.leader][self.kernel_index]
        mask: Booleans = is_other & work.has_macs & work.of_kind("linear", "matmul") & self.runtime.is_built
        return mask

    def over_siblings(self, values: Floats) -> Floats:
        """Return a column in which a leading operator and its siblings have the sum of their values; others keep their
        own.
        """
        if not self.is_sibling.any():
            return values
        mine = self.is_sibling | self.leads
        return np.where(mine, self.of_kernel(np.where(mine, values, 0.0)), values)

    @cached_property
    def feeds(self) -> Booleans:
        """Mask of operators that dequantize weights for the GEMM that leads their kernel."""
        leader = self.leader[self.kernel_index]
        mask: Booleans = self.work.is_dequantizing & self.work.has_macs[..., leader]
        return mask

    @cached_property
    def outside_read_share(self) -> Floats:
        """Fraction of an operator's operand bytes that comes from outside its kernel, 0 … 1.

        The rest is on chip, or is dequantized there from weights that are stored in fewer bits.
        """
        read = self.input_bytes + self.weight_bytes
        return np.divide(read, self.own_read_bytes, out=np.zeros_like(read), where=self.own_read_bytes > 0)

    @cached_property
    def stored_share(self) -> Floats:
        """Stored weight bytes per byte that an operator multiplies by; below 1 if its kernel dequantizes."""
        wide = np.where(self.dequantization_count > 0.0, self.own_weight_bytes, 0.0)
        stored = np.where(self.dequantization_count > 0.0, self.weight_bytes, 0.0)
        if self.feeds.any():
            fed = self.of_kernel(np.where(self.feeds, self.input_bytes + self.weight_bytes, 0.0))
            inner = self.own_read_bytes - self.input_bytes - self.weight_bytes
            is_fed = self.leads & (fed > 0.0)
            wide, stored = wide + np.where(is_fed, inner, 0.0), stored + np.where(is_fed, fed, 0.0)
        share = np.divide(stored, wide, out=np.ones(np.broadcast_shapes(stored.shape, wide.shape)), where=wide > 0.0)
        return np.minimum(share, 1.0)

    @cached_property
    def moved_bytes(self) -> Floats:
        """Total bytes that cross the kernel's boundary, per operator."""
        return self.input_bytes + self.weight_bytes + self.output_bytes

    @cached_property
    def is_plain(self) -> bool:
        """True if each operator is one kernel, in the same order."""
        rows = np.arange(self.work.operator_count)
        return self.kernel_count == len(rows) and bool((self.kernel_index == rows).all())

    def per_kernel(self, values: Floats) -> Floats:
        """Sum a per-operator column over each kernel."""
        return values if self.is_plain else sum_by(self.kernel_index, self.each(values), self.kernel_count)

    def per_operator(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a column that gives each operator its kernel's value."""
        return values if self.is_plain else pick(values, self.kernel_index)

    def of_kernel(self, values: Floats) -> NDArray[Any]:
        """Return a column that gives each operator the sum over its kernel."""
        return self.per_operator(self.per_kernel(values))

    def of_leader(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a column that gives each kernel the value of its leading operator."""
        return values if self.is_plain else pick(self.each(values), self.leader)

    def each(self, values: NDArray[Any] | float) -> NDArray[Any]:
        """Return a column with one value per operator. A single number applies to all operators."""
        rows = self.work.operator_count
        values = np.asarray(values)
        if values.ndim and values.shape[-1] == rows:
            return values
        return values.reshape((*values.shape[:-1], 1)).repeat(rows, axis=-1)

    def each_kernel(self, values: Floats | float) -> Floats:
        """Return a column with one value per kernel. A single number applies to all kernels."""
        values = np.asarray(values)
        return values if values.shape[-1:] == (self.kernel_count,) else values * np.ones(self.kernel_count)

    def growth(self, before: Floats, after: Floats) -> Floats:
        """Return after / before of each operator's kernel, given values per kernel; 1 if the value before was 0."""
        before, after = np.broadcast_arrays(before, after)
        return self.per_operator(np.divide(after, before, out=np.ones(before.shape), where=before > 0.0))

    @property
    def kernel_times(self) -> Floats:
        """Number of equal kernels that each kernel represents."""
        return np.ones(self.kernel_count) if self.times is None else self.times

    @cached_property
    def row_times(self) -> Floats | float:
        """Number of equal kernels that each operator's kernel represents."""
        return 1.0 if self.times is None else self.times[self.kernel_index]

    @cached_property
    def starts(self) -> list[int]:
        """First row of each workload if they are few; of all together if they are many."""
        if not 1 < self.workload_count <= FEW:
            return [0]
        starts: list[int] = np.searchsorted(self.workload_index, np.arange(self.workload_count)).tolist()
        return starts

    def sum_workload(self, values: Floats) -> Floats:
        """Sum a per-operator column over each workload."""
        return sum_by(self.workload_index, self.each(values) * self.row_times, self.workload_count)

    def sum_kernels(self, values: Floats) -> Floats:
        """Sum a per-kernel column over each workload."""
        times = 1.0 if self.times is None else self.times
        return sum_by(self.workload_index[self.leader], values * times, self.workload_count)

    def of_workload(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a column that gives each operator its workload's value."""
        return values if self.workload_count == 1 else np.asarray(values[..., self.workload_index])

    def kernel_workload(self, values: Floats) -> Floats:
        """Return a column that gives each kernel its workload's value."""
        return values if self.workload_count == 1 else np.asarray(values[..., self.workload_index[self.leader]])

    def largest(self, values: Floats | float) -> Floats:
        """Return the maximum of a per-operator column in each workload, at least 0."""
        columns = self.each(values)
        if self.workload_count == 1:
            return np.asarray(columns.max(axis=-1, keepdims=True, initial=0.0))
        starts = np.searchsorted(self.workload_index, np.arange(self.workload_count))
        return np.maximum(np.maximum.reduceat(columns, starts, axis=-1), 0.0)

    def take(self, kernels: Integers, times: Floats) -> KernelColumns:
        """Return only these kernels. Each of them represents `times` equal kernels; rows keep their order."""
        number = np.full(self.kernel_count, -1)
        number[kernels] = np.arange(len(kernels))
        rows = np.flatnonzero(number[self.kernel_index] >= 0)
        index = np.zeros(self.work.operator_count, dtype=np.int64)
        index[rows] = np.arange(len(rows))
        columns = {name: getattr(self, name)[rows] for name in OPERATOR_COLUMNS}
        columns |= {name: one[rows] for name in WORKLOAD_NUMBERS if isinstance(one := getattr(self, name), np.ndarray)}
        return attrs.evolve(
            self,
            work=self.work.take(rows),
            kernel_index=number[self.kernel_index[rows]],
            kernel_count=len(kernels),
            leader=index[self.leader[kernels]],
            workload_index=self.workload_index[rows],
            times=times,
            **columns,
        )

    def copies(self, count: int) -> KernelColumns:
        """Return the kernels of several equal workloads, one after another."""
        return join_kernels([self] * count)

    def part(self, part_count: Floats) -> KernelColumns:
        """Return the kernels of one of several equal parts of the batch; `part_count` is per operator.

        A GEMM keeps fewer rows and its whole right operand. A GEMM of two activations, which a batch repeats per
        sample, keeps fewer groups. A part count may be a fraction, such as 5 / 3. Counts that are whole except for
        rounding errors are then rounded.
        """
        work = self.work
        groups, rows = work.gemm_groups / part_count, work.gemm_m / part_count
        whole_groups, whole_rows = (
            np.where(np.abs(one - np.rint(one)) < NEAR, np.rint(one), one) for one in (groups, rows)
        )
        is_split = (whole_groups % 1.0 == 0.0) & (work.of_kind("matmul") | (whole_rows % 1.0 != 0.0))
        is_shared = work.of_kind("matmul") & ~is_split
        right = np.where(is_shared, work.gemm_n / np.maximum(work.gemm_m + work.gemm_n, 1.0), 0.0)
        kept_bytes = self.own_weight_bytes + right * (self.own_read_bytes - self.own_weight_bytes)
        names = ("mac_count", "special_count", "output_element_count")
        simple = work.elementwise_count - self.dequantization_count
        moved = (
            "output_bytes",
            "entering_bytes",
            "leaving_bytes",
            "allocated_bytes",
            "peak_activation_bytes",
            "batch",
        )
        return attrs.evolve(
            self,
            work=attrs.evolve(
                work,
                gemm_groups=np.where(is_split, whole_groups, work.gemm_groups),
                gemm_m=np.where(is_split, work.gemm_m, whole_rows),
                elementwise_count=simple / part_count + self.dequantization_count,
                **{name: getattr(work, name) / part_count for name in names},
            ),
            own_read_bytes=(self.own_read_bytes - kept_bytes) / part_count + kept_bytes,
            input_bytes=self.input_bytes * ((1.0 - right) / part_count + right),
            **{name: getattr(self, name) / part_count for name in moved},
        )

    @cached_property
    def one_run(self) -> KernelColumns:
        """Kernels of one run of each operator, for pipelines that run operators several times per inference.

        Batch and peak activations stay those of the whole workload. In `eager` the host launches each run, otherwise
        the whole workload once.
        """
        runs = self.work.run_count
        if not (runs > 1.0).any():
            return self
        return attrs.evolve(
            self.part(runs),
            batch=self.batch,
            peak_activation_bytes=self.peak_activation_bytes,
            host_launch_count=self.host_launch_count / (1.0 if self.runtime.launches_each else runs),
        )

    @cached_property
    def without_dequantization(self) -> KernelColumns:
        """Kernels without the dequantization operations of GEMMs."""
        if not self.dequantization_count.any():
            return self
        simple = self.work.elementwise_count - self.dequantization_count
        return attrs.evolve(self, work=attrs.evolve(self.work, elementwise_count=simple))

    def called_at(self, stretch: Integers) -> KernelColumns:
        """Return the kernels with one host launch per stretch of consecutive operators, at the first kernel of the
        stretch.

        `stretch` is the stretch number of each operator of the workload. In `eager` the host launches every kernel
        anyway.
        """
        if self.runtime.launches_each:
            return self
        first = np.unique(stretch[self.operator_index[self.leader]], return_index=True)[1]
        launches = np.zeros(self.work.operator_count)
        launches[self.leader[first]] = 1.0
        return attrs.evolve(self, host_launch_count=launches)

    def at_leader(self, values: Floats) -> Floats:
        """Return a per-operator column: each kernel's value at its leading operator, 0 at all other operators."""
        if self.is_plain:
            return values
        placed = np.zeros((*values.shape[:-1], self.work.operator_count))
        placed[..., self.leader] = values
        return placed


OPERATOR_COLUMNS: Final = (
    "operator_index", "input_bytes", "weight_bytes", "output_bytes", "entering_bytes", "leaving_bytes",
    "allocated_bytes", "own_read_bytes", "own_weight_bytes", "weight_span_bytes", "dequantization_count",
    "host_launch_count",
)  # fmt: skip
"""Names of arrays with one row per member of a kernel, except those that index other rows."""

WORKLOAD_NUMBERS: Final = ("batch", "total_weight_bytes", "peak_activation_bytes")
"""Names of numbers of a workload; each is an array if several workloads are joined."""


def join_kernels(each: Sequence[KernelColumns]) -> KernelColumns:
    """Return the kernels of workloads at one precision and runtime, one after another; each stays its own workload."""
    first = each[0]
    counts, sizes, workloads = zip(
        *((one.work.operator_count, one.kernel_count, one.workload_count) for one in each), strict=True
    )

    def joined(columns: Iterable[NDArray[Any]], starts: Iterable[int] = ()) -> NDArray[Any]:
        """Return columns one after another, each shifted by the number of rows before it if `starts` has these."""
        return np.concatenate(
            [one + start for one, start in zip(columns, starts, strict=True)] if starts else [*columns]
        )

    rows, kernels, works = (np.cumsum([0, *one])[:-1].tolist() for one in (counts, sizes, workloads))
    columns: dict[str, Any] = {name: joined(getattr(one, name) for one in each) for name in OPERATOR_COLUMNS}
    columns |= {name: joined(one.each(getattr(one, name)) for one in each) for name in WORKLOAD_NUMBERS}
    is_repeated = any(np.ndim(one.repeat_count) for one in each) or len({one.repeat_count for one in each}) > 1
    return attrs.evolve(
        first,
        work=join_works([one.work for one in each]),
        kernel_index=joined((one.kernel_index for one in each), kernels),
        kernel_count=sum(sizes),
        leader=joined((one.leader for one in each), rows),
        workload_index=joined((one.workload_index for one in each), works),
        workload_count=sum(workloads),
        repeat_count=joined(one.each(one.repeat_count) for one in each) if is_repeated else first.repeat_count,
        times=None if all(one.times is None for one in each) else joined(one.kernel_times for one in each),
        **columns,
    )


def form_kernels(workload: WorkloadColumns, precision: str, runtime: str, weight_precision: str = "") -> KernelColumns:
    """Return the kernels that the runtime launches for this workload at a precision.

    GEMM weights stored at another precision move at their stored width. The kernel that multiplies by them dequantizes
    them on chip. Raises UsageError if `weight_precision` is not narrower.
    """
    way = RUNTIME[runtime]
    is_fused = way.merges
    workload = build(workload, way)
    rows, work = workload.active(is_fused=is_fused)
    group = workload.kernel_group if workload.kernel_group is not None else workload.subgraph_index
    group = (group if is_fused else workload.call_index)[rows]
    distinct, kernel_index = np.unique(group, return_inverse=True)
    leader = _leaders(work, kernel_index, len(distinct))
    launches = np.zeros(len(rows))
    launches[leader[: None if way.launches_each else 1]] = 1.0

    widths = Widths(workload, precision, weight_precision)
    own = workload.access_bytes * widths.scale
    moved = np.where(is_fused | _is_inner(workload), workload.access_fused_bytes, workload.access_bytes)
    moved = moved * widths.stored_scale
    dequantization = widths.dequantization_count[rows]
    if dequantization.any():
        work = attrs.evolve(work, elementwise_count=work.elementwise_count + dequantization)
    is_output, is_weight = (workload.access_role == ROLE_CODE[role] for role in ("output", "weight"))
    is_input = ~is_output & ~is_weight

    def total(accesses: Booleans, byte_count: Floats) -> Floats:
        return sum_by(workload.access_operator[accesses], byte_count[accesses], workload.operator_count)[rows]

    return KernelColumns(
        work=work,
        precision=precision,
        weight_precision="" if weight_precision == precision else weight_precision,
        runtime=way,
        operator_index=rows,
        operator_count=workload.operator_count,
        kernel_index=kernel_index,
        kernel_count=len(distinct),
        leader=leader,
        input_bytes=total(is_input, moved),
        weight_bytes=total(is_weight, moved),
        output_bytes=total(is_output, moved),
        entering_bytes=total(is_input & workload.access_is_boundary, moved),
        leaving_bytes=total(is_output & workload.access_is_boundary, moved),
        allocated_bytes=total(is_output & workload.starts_storage, moved),
        own_read_bytes=total(~is_output, own),
        own_weight_bytes=total(is_weight, own),
        weight_span_bytes=_find_spans(workload, np.flatnonzero(is_weight), moved)[rows],
        dequantization_count=dequantization,
        host_launch_count=launches,
        batch=float(workload.batch * workload.inner_batch),
        total_weight_bytes=widths.weight_bytes,
        peak_activation_bytes=widths.peak_activation_bytes(is_fused=is_fused),
        workload_index=np.zeros(len(rows), dtype=np.int64),
        workload_count=1,
        times=None if workload.times is None else workload.times[rows[leader]],
    )


def _find_spans(workload: WorkloadColumns, reads: Integers, moved: Floats) -> Floats:
    """Return the weight bytes read since each operator's weights were read before; infinite where they were not.

    `reads` are the accesses of weights, and `moved` the bytes of all accesses.
    """
    spans = np.zeros(workload.operator_count)
    reads = reads[np.argsort(workload.access_operator[reads], kind="stable")]
    tensor, upto = workload.access_tensor[reads], np.cumsum(moved[reads])
    order = np.argsort(tensor, kind="stable")
    again = np.append(False, tensor[order[1:]] == tensor[order[:-1]])
    since = np.where(again, upto[order] - np.roll(upto[order], 1), np.inf)
    np.maximum.at(spans, workload.access_operator[reads[order]], since)
    return spans


def _is_inner(workload: WorkloadColumns) -> Booleans:
    """Return a mask of the accesses inside a call of several operators: all except the writes of its last operator."""
    is_last = np.append(workload.call_index[1:] != workload.call_index[:-1], True)
    is_shared = np.bincount(workload.call_index.astype(np.intp))[workload.call_index] > 1
    writes_out = (workload.access_role == ROLE_CODE["output"]) & is_last[workload.access_operator]
    mask: Booleans = is_shared[workload.access_operator] & ~writes_out
    return mask


def _leaders(work: Work, kernel_index: Integers, kernel_count: int) -> Integers:
    """Return the leading operator of each kernel: that with most MACs, then most elementwise work, then most results,
    then the first.
    """
    simple = work.elementwise_count + work.special_count
    order = np.lexsort((-np.arange(len(simple)), work.output_element_count, simple, work.mac_count))
    leader = np.zeros(kernel_count, dtype=np.int64)
    leader[kernel_index[order]] = order
    return leader


def share_exactly(total: Integers, weights: Floats, group: Integers, starts: Sequence[int] = (0,)) -> Integers:
    """Split each group's integer total over its members in proportion to weights, exactly.

    `group` gives each member's group, an index into the last axis of `total`. Shares are rounded cumulatively, so that
    the shares of a group sum exactly to its total. Shares are equal if all weights are zero. A group that begins at one
    of the members `starts`, in ascending order, is rounded as if there were none before it.
    """
    if not len(group):
        return np.zeros(weights.shape, dtype=np.int64)
    weights = np.broadcast_to(weights, (*np.broadcast_shapes(total.shape[:-1], weights.shape[:-1]), len(group)))
    count = total.shape[-1]
    order = np.argsort(group, kind="stable")
    owner = group[order].astype(np.intp, copy=False)
    ordered = weights.take(order, axis=-1)
    sums = sum_by(owner, ordered, count)
    members = np.bincount(owner, minlength=count)
    if not (sums > 0).all():
        ordered = np.where(sums.take(owner, axis=-1) > 0, ordered, 1.0)
        sums = np.where(sums > 0, sums, members)
    if len(starts) == 1:
        running = np.cumsum(ordered, axis=-1)
    else:
        running = np.concatenate([np.cumsum(one, axis=-1) for one in np.split(ordered, starts[1:], axis=-1)], axis=-1)
    first = members.cumsum() - members
    before = np.where(np.isin(first, starts), 0.0, running[..., np.maximum(first - 1, 0)])
    share = (running - before.take(owner, axis=-1)) / np.maximum(sums, 1e-300).take(owner, axis=-1)
    is_last = np.append(owner[1:] != owner[:-1], True)
    whole = np.broadcast_to(total, (*weights.shape[:-1], count)).take(owner, axis=-1)
    upto = np.floor(np.clip(share, 0.0, 1.0) * whole).astype(np.int64)
    upto = np.where(is_last, whole, np.minimum(upto, whole))
    shares = np.zeros_like(upto)
    upto[..., 1:] -= np.where(is_last, 0, upto)[..., :-1]
    shares[..., order] = upto
    return shares
