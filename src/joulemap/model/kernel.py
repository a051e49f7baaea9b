"""Kernels: which operators run together, what they move, and how kernel times become operator times.

    kernel latency = launch + max(compute, memory)

A kernel is a subgraph under the runtime `fused` and an ATen call under `eager` and `graph`: one operator, or the three
of a fused attention. Operators that only rename memory, and in `fused` those that do not depend on the input, belong
to no kernel.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.domain.precision import PRECISION_BYTES
from joulemap.model.workload import ROLE_CODE, Booleans, Floats, Integers, WorkloadColumns, precision_scale, sum_by

EPILOGUE_KINDS: Final = ("elementwise", "batch_norm", "softmax", "normalization")
"""Kinds that another operator's kernel can compute on what it already holds."""


@attrs.define(kw_only=True, eq=False, slots=False)
class KernelColumns:
    """Operators as the runtime's kernels see them. Per-operator arrays unless said otherwise.

    What is one number of a workload is an array, per operator, where kernels of several workloads stand together.
    """

    work: WorkloadColumns
    precision: str
    runtime: str
    kernel_index: Integers
    """-1 for an operator that belongs to no kernel."""
    kernel_count: int
    is_active: Booleans
    leader: Integers
    """Per kernel: the operator that carries what belongs to the kernel as a whole (its launch)."""
    input_bytes: Floats
    """Crossing the kernel's boundary, without weights."""
    weight_bytes: Floats
    output_bytes: Floats
    entering_bytes: Floats
    """The part of `input_bytes` that enters the model, so always from DRAM."""
    leaving_bytes: Floats
    """The part of `output_bytes` that leaves the model, so always to DRAM."""
    own_read_bytes: Floats
    """What the operator would read as a kernel of its own, weights included."""
    own_weight_bytes: Floats
    """The part of `own_read_bytes` that is weights."""
    host_launch_count: Floats
    """How often the host launches: once per kernel in `eager`, else once per run, at its first."""
    batch: Floats | float
    """Of the workload."""
    total_weight_bytes: Floats | float
    """Of the workload."""
    peak_activation_bytes: Floats | float
    """Of the workload."""

    @property
    def item_bytes(self) -> float:
        """Bytes of one element at this precision."""
        return PRECISION_BYTES[self.precision]

    @cached_property
    def leads(self) -> Booleans:
        """Operators that lead a kernel."""
        mask = np.zeros(self.work.operator_count, dtype=bool)
        mask[self.leader] = True
        return mask

    @cached_property
    def rides(self) -> Booleans:
        """Operators that need an element or a row and that another leads: they run in its epilogue, on its tiles."""
        mask: Booleans = self.is_active & ~self.leads & self.work.of_kind(*EPILOGUE_KINDS)
        return mask

    @cached_property
    def outside_read_share(self) -> Floats:
        """The part of an operator's operands that comes from outside its kernel, 0 … 1; the rest is on chip."""
        read = self.input_bytes + self.weight_bytes
        return np.divide(read, self.own_read_bytes, out=np.zeros_like(read), where=self.own_read_bytes > 0)

    @cached_property
    def moved_bytes(self) -> Floats:
        """All bytes that cross the kernel's boundary, per operator."""
        return self.input_bytes + self.weight_bytes + self.output_bytes

    def per_kernel(self, values: Floats) -> Floats:
        """Sum a per-operator column over each kernel."""
        active = self.is_active
        return sum_by(self.kernel_index[active], values[active], self.kernel_count)

    def per_operator(self, values: Floats) -> Floats:
        """Give each operator its kernel's value; 0 outside kernels."""
        spread = np.zeros(self.work.operator_count)
        spread[self.is_active] = values[self.kernel_index[self.is_active]]
        return spread

    def at_leader(self, values: Floats) -> Floats:
        """Give each kernel's value to its leader; 0 elsewhere."""
        placed = np.zeros(self.work.operator_count)
        placed[self.leader] = values
        return placed


def form_kernels(work: WorkloadColumns, precision: str, runtime: str) -> KernelColumns:
    """Return the kernels that the runtime launches for this workload at a precision."""
    is_fused = runtime == "fused"
    is_active = ~work.is_view
    if is_fused:
        is_active = is_active & ~work.is_foldable
    group = work.subgraph_index if is_fused else work.call_index
    kernel_index = np.full(work.operator_count, -1, dtype=np.int64)
    _, kernel_index[is_active] = np.unique(group[is_active], return_inverse=True)
    kernel_count = int(kernel_index.max()) + 1 if is_active.any() else 0
    leader = _leaders(work, kernel_index, kernel_count)
    scale = precision_scale(work.access_item_bytes, precision)
    moved = np.where(is_fused | _is_inner(work), work.access_fused_bytes, work.access_bytes) * scale
    moved = np.where(is_active[work.access_operator], moved, 0.0)
    is_read = work.access_role != ROLE_CODE["output"]
    is_weight = work.access_role == ROLE_CODE["weight"]
    own = work.access_bytes * scale
    own_read = sum_by(work.access_operator[is_read], own[is_read], work.operator_count)
    own_weight = sum_by(work.access_operator[is_weight], own[is_weight], work.operator_count)

    launches = np.zeros(work.operator_count)
    launches[leader[: None if runtime == "eager" else 1]] = 1.0

    def by_role(role: str, among: Booleans | None = None) -> Floats:
        mask = work.access_role == ROLE_CODE[role]
        if among is not None:
            mask = mask & among
        return sum_by(work.access_operator[mask], moved[mask], work.operator_count)

    return KernelColumns(
        work=work,
        precision=precision,
        runtime=runtime,
        kernel_index=kernel_index,
        kernel_count=kernel_count,
        is_active=is_active,
        leader=leader,
        input_bytes=by_role("input"),
        weight_bytes=by_role("weight"),
        output_bytes=by_role("output"),
        entering_bytes=by_role("input", work.access_is_boundary),
        leaving_bytes=by_role("output", work.access_is_boundary),
        own_read_bytes=own_read,
        own_weight_bytes=own_weight,
        host_launch_count=launches,
        batch=float(work.batch),
        total_weight_bytes=work.weight_bytes_at(precision),
        peak_activation_bytes=work.peak_activation_bytes(precision, is_fused=is_fused),
    )


def _is_inner(work: WorkloadColumns) -> Booleans:
    """Return the accesses by which operators of one call hand on to each other: all but what the last one writes."""
    is_last = np.append(work.call_index[1:] != work.call_index[:-1], True)
    is_shared = np.bincount(work.call_index)[work.call_index] > 1
    writes_out = (work.access_role == ROLE_CODE["output"]) & is_last[work.access_operator]
    mask: Booleans = is_shared[work.access_operator] & ~writes_out
    return mask


def _leaders(work: WorkloadColumns, kernel_index: Integers, kernel_count: int) -> Integers:
    """Return per kernel the member with the most MACs, then the most elementwise work, then the first."""
    simple = work.elementwise_count + work.special_count
    order = np.lexsort((-np.arange(len(simple)), simple, work.mac_count))
    order = order[kernel_index[order] >= 0]
    leader = np.zeros(kernel_count, dtype=np.int64)
    leader[kernel_index[order]] = order
    return leader


@attrs.define(kw_only=True, eq=False)
class Placement:
    """A workload placed on a hardware. Per-operator arrays unless said otherwise."""

    compute_s: Floats
    """Time of the units, padded tiles and partial waves included."""
    memory_s: Floats
    """Time of the slowest memory level for the operator's share of its kernel's traffic."""
    launch_s: Floats
    """Per kernel: fixed cost."""
    dram_read_bytes: Floats
    dram_write_bytes: Floats
    tile_count: Floats
    wave_count: Floats
    units_used: Floats
    """Units that have work in the fullest wave."""
    units_total: int
    """Units that have this precision."""
    executed_macs: Floats
    """MAC slots of the tiles, padding to their shape included: never fewer than the MACs, and the MACs themselves where
    no tile has a shape. Units without a tile, fill and drain are not in it."""
    detail: dict[str, Floats]
    """What else the architecture's counts need, by name."""


def overlap_engines(kernels: KernelColumns, first_s: Floats, second_s: Floats) -> Floats:
    """Return compute time per operator where two engines work side by side within a kernel.

    A kernel takes as long as its busier engine; its operators share that time in proportion to what they ask of both.
    """
    together = kernels.per_kernel(first_s + second_s)
    busier = np.maximum(kernels.per_kernel(first_s), kernels.per_kernel(second_s))
    share = np.divide(busier, together, out=np.zeros_like(together), where=together > 0)
    return (first_s + second_s) * kernels.per_operator(share)


def share_exactly(total: Integers, weights: Floats, group: Integers) -> Integers:
    """Split each group's integer total over its members in proportion to weights, exactly.

    `group` gives each member's group (an index into `total`); members of one group share by cumulative rounding,
    so that the shares of a group sum to its total to the last unit. Equal shares where all weights are zero.
    """
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(group, kind="stable")
    ordered_group = group[order]
    ordered_weights = weights[order]
    sums = sum_by(ordered_group, ordered_weights, len(total))
    members = np.bincount(ordered_group, minlength=len(total))
    ordered_weights = np.where(sums[ordered_group] > 0, ordered_weights, 1.0)
    sums = np.where(sums > 0, sums, members)
    running = np.cumsum(ordered_weights)
    first = np.searchsorted(ordered_group, np.arange(len(total)))
    before = np.where(first > 0, running[np.maximum(first - 1, 0)], 0.0)
    fraction = np.clip((running - before[ordered_group]) / np.maximum(sums[ordered_group], 1e-300), 0.0, 1.0)
    is_last = np.append(ordered_group[1:] != ordered_group[:-1], True)
    fraction[is_last] = 1.0
    upto = np.where(
        is_last,
        total[ordered_group],
        np.floor(fraction * total[ordered_group].astype(np.float64)).astype(np.int64),
    )
    upto = np.minimum(upto, total[ordered_group])
    previous = np.concatenate(([0], upto[:-1]))
    is_first = np.concatenate(([True], is_last[:-1]))
    shares = np.zeros(len(group), dtype=np.int64)
    shares[order] = upto - np.where(is_first, 0, previous)
    return shares
