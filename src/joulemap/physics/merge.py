"""Subgraph merging by an inference engine: caches that grow in place, and kernels that siblings share.

    append      the existing cache does not move: new rows are written after it, and it is stored once
    GEMMs       adjacent GEMMs of one input with weights become one GEMM of all their columns: q, k and v, gate
                and up, regardless of their consumers
    experts     both GEMMs of all experts of a mixture become one kernel with the gate between them, the sorting of
                choices before them and the sum after them, if no other operator reads their rows
    light work  adjacent elementwise operators, movements and norms that wait for the same kernel become one kernel: the
                rotation of q, that of k, and both appends

Siblings keep their subgraphs: each operator has its counts, bytes and time. A kernel does not read again data that it
holds for another member, and does not write data that only its members read.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.fold import leave_out, write_apart
from joulemap.physics.record.runtime import Runtime
from joulemap.physics.record.workload import APPEND
from joulemap.physics.rewrite import join_formulas
from joulemap.physics.workload import IN_PLACE, ROLE_CODE, Booleans, Floats, Integers, WorkloadColumns, sum_by

LIGHT_KINDS: Final = ("elementwise", "batch_norm", "normalization", "reduction", "data_movement")
"""Operator kinds whose kernels can be merged as light work, because they contain no GEMMs."""


def build(work: WorkloadColumns, runtime: Runtime) -> WorkloadColumns:
    """Return the workload as the runtime executes it; only a compiler or an inference engine changes it."""
    if work.kernel_group is not None:
        return work
    if not runtime.merges:
        return work
    work = join_formulas(leave_out(work, runtime))
    return write_apart(join_siblings(append_in_place(work)) if runtime.is_built else work)


def append_in_place(work: WorkloadColumns) -> WorkloadColumns:
    """Return the workload with in-place caches: an append moves only new rows, and caches stay off chip."""
    appends = work.variant == APPEND
    if not appends.any():
        return work
    is_output = work.access_role == ROLE_CODE["output"]
    mine = appends[work.access_operator]
    reads = np.flatnonzero(mine & ~is_output & (work.access_bytes > 0.0))
    _, first = np.unique(work.access_operator[reads], return_index=True)
    past = reads[first]
    writes = np.flatnonzero(mine & is_output)
    past_bytes = sum_by(work.access_operator[past], work.access_bytes[past], work.operator_count)
    whole = sum_by(work.access_operator[writes], work.access_bytes[writes], work.operator_count)
    new = np.divide(whole - past_bytes, whole, out=np.ones(work.operator_count), where=whole > 0.0)
    moved, fused = work.access_bytes.copy(), work.access_fused_bytes.copy()
    moved[past] = fused[past] = 0.0
    moved[writes] -= past_bytes[work.access_operator[writes]]
    fused[writes] = np.minimum(moved[writes], fused[writes])
    grown = np.isin(work.access_tensor, work.access_tensor[writes])
    byte_count, birth, death = work.buffer_bytes.copy(), work.buffer_birth.copy(), work.buffer_death.copy()
    release, is_hidden = work.buffer_release.copy(), work.buffer_is_hidden.copy()
    cache, before = work.access_buffer[writes], work.access_buffer[past]
    birth[cache], is_hidden[cache] = 0, False
    death[cache] = release[cache] = work.operator_count - 1
    byte_count[before] = 0.0
    return attrs.evolve(
        work,
        variant=np.where(appends, IN_PLACE, work.variant),
        output_element_count=np.where(appends, np.rint(work.output_element_count * new), work.output_element_count),
        access_bytes=moved,
        access_fused_bytes=fused,
        access_is_boundary=work.access_is_boundary | grown,
        buffer_bytes=byte_count,
        buffer_birth=birth,
        buffer_death=death,
        buffer_release=release,
        buffer_is_hidden=is_hidden,
    )


def join_siblings(work: WorkloadColumns) -> WorkloadColumns:
    """Return the workload with the engine's merged kernels and the bytes that they move."""
    flow = _Flow.of(work)
    kernel = flow.join(flow.join_experts(work), _same_input(work, flow), flow.multiplying)
    kernel = flow.join(kernel, flow.last_needed(kernel), flow.computing)
    group = kernel[work.subgraph_index]
    is_joined = np.bincount(kernel[flow.computing].astype(np.intp), minlength=flow.count)[group] > 1
    if not is_joined.any():
        return attrs.evolve(work, kernel_group=group)
    fused = np.where(is_joined[work.access_operator], _shared_bytes(work, group), work.access_fused_bytes)
    seen = np.isin(np.arange(len(work.buffer_bytes)), work.access_buffer[fused > 0.0])
    return attrs.evolve(
        work, kernel_group=group, access_fused_bytes=fused, buffer_is_hidden=work.buffer_is_hidden | ~seen
    )


@attrs.frozen(eq=False)
class _Flow:
    """Subgraphs of a workload in execution order, and the subgraphs that produce their inputs."""

    count: int
    computing: Integers
    """Indices of the subgraphs that have a kernel."""
    multiplying: Integers
    """Indices of the subgraphs whose kernel multiplies."""
    is_light: Booleans
    """Mask over all subgraphs: mergeable subgraphs of light kinds without GEMMs."""
    may_move: Booleans
    """Mask over all subgraphs: no other subgraph writes their results, and they are not loops."""
    maker: Integers
    """Subgraph that last wrote the tensor of each reading access; -1 for other accesses and for model inputs."""
    owner: Integers
    """Subgraph of each access."""

    @classmethod
    def of(cls, work: WorkloadColumns) -> _Flow:
        """Return the subgraphs of a workload."""
        rows, _ = work.active(is_fused=True)
        count, owner, tensor = work.subgraph_count, work.subgraph_index[work.access_operator], work.access_tensor
        is_output = work.access_role == ROLE_CODE["output"]
        written = np.unique(tensor[is_output] * count + owner[is_output])
        index = np.searchsorted(written, tensor * count + owner) - 1
        pair = written[np.maximum(index, 0)] if len(written) else np.zeros(len(tensor), dtype=np.int64)
        computing = np.unique(work.subgraph_index[rows])
        is_made = ~is_output & (index >= 0) & (pair // count == tensor) & np.isin(pair % count, computing)
        times = np.bincount((written // count).astype(np.intp), minlength=int(tensor.max(initial=-1)) + 1)
        may_move = np.ones(count, dtype=bool)
        may_move[owner[is_output & (times[tensor] > 1)]] = False
        may_move[work.subgraph_index[work.kernel_step_count > 1.0]] = False
        heavy, multiplies = (
            np.bincount(work.subgraph_index[rows].astype(np.intp), weights=mask[rows], minlength=count) > 0.0
            for mask in (~work.of_kind(*LIGHT_KINDS), work.has_macs)
        )
        return cls(
            count=count,
            computing=computing,
            multiplying=computing[multiplies[computing]],
            is_light=may_move & ~heavy & ~multiplies,
            may_move=may_move,
            maker=np.where(is_made, pair % count, -1),
            owner=owner,
        )

    def last_needed(self, kernel: Integers) -> Integers:
        """Return the last kernel that each light subgraph waits for; -1 for all other subgraphs."""
        reader, writer = self._pairs(kernel)
        last = np.full(self.count, -1)
        np.maximum.at(last, reader, writer)
        return np.where(self.is_light, last, -1)

    def join(self, kernel: Integers, key: Integers, some: Integers) -> Integers:
        """Return the kernel of each subgraph, after merging neighbours in `some` with equal keys other than -1.

        Kernels merge only if none of them depends on a kernel after the first.
        """
        some = some[kernel[some] == some]
        is_next = (key[some[1:]] == key[some[:-1]]) & (key[some[1:]] >= 0)
        run = np.cumsum(np.append(True, ~is_next)) - 1 if len(some) else some
        first = some[np.searchsorted(run, run)]
        joined = np.arange(self.count)
        joined[some] = first
        reader, writer = self._pairs(joined[kernel])
        late = np.zeros(self.count, dtype=bool)
        late[reader[writer > reader]] = True
        return np.where(late[joined], np.arange(self.count), joined)[kernel]

    def join_experts(self, work: WorkloadColumns) -> Integers:
        """Return the kernel of each subgraph, with the subgraphs of each mixture of experts merged.

        A mixture consists of its two GEMMs and of subgraphs between them: only the mixture reads these, and they
        follow a sort or the first GEMM. The only reader of the second GEMM also joins, unless it is a norm.
        """
        every = np.arange(self.count)
        reader, writer = self._pairs(every)
        up, down, reach = self._pair_experts(work, reader, writer)
        if not len(up):
            return every
        sorts, norms = (
            np.bincount(work.subgraph_index.astype(np.intp), weights=mask, minlength=self.count) > 0.0
            for mask in (work.of_operation("sort"), work.of_kind("normalization"))
        )
        pairs = np.unique(np.stack([reader, writer]), axis=1)
        often = np.bincount(pairs[1].astype(np.intp), minlength=self.count)
        owner = np.full(self.count, -1)
        owner[up] = owner[down] = up
        is_last = np.isin(pairs[1], down) & (often[pairs[1]] == 1) & (self.is_light & ~norms)[pairs[0]]
        owner[pairs[0][is_last]] = owner[pairs[1][is_last]]
        routed = self._spread(np.where(sorts, every, -1), *pairs) >= 0
        free = self.is_light & (owner < 0) & (often > 0)
        while True:
            low, high = np.full(self.count, self.count), np.full(self.count, -1)
            np.minimum.at(low, pairs[1], owner[pairs[0]])
            np.maximum.at(high, pairs[1], owner[pairs[0]])
            is_joined = free & (owner < 0) & (low == high) & (low >= 0) & (routed | (reach == low))
            if not is_joined.any():
                break
            owner[is_joined] = low[is_joined]
        leaks = up[np.isin(up, pairs[1][owner[pairs[0]] != pairs[1]])]
        return np.where((owner >= 0) & ~np.isin(owner, leaks), owner, every)

    def _pair_experts(
        self, work: WorkloadColumns, reader: Integers, writer: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Return subgraphs: (first GEMMs of mixtures of experts, their second GEMMs, last GEMM upstream of each
        subgraph).
        """
        rows = np.flatnonzero(work.of_operation("grouped_mm"))
        product = np.full(self.count, -1)
        product[work.subgraph_index[rows]] = rows
        lone = (np.bincount(work.subgraph_index[rows].astype(np.intp), minlength=self.count) == 1) & self.may_move
        reach = self._spread(np.where(lone, np.arange(self.count), -1), reader, writer)
        places = np.flatnonzero(lone)
        n, k, groups = (column[product[places]] for column in (work.gemm_n, work.gemm_k, work.gemm_groups))
        fits = (k[:-1] == n[1:]) & (n[:-1] % np.maximum(k[1:], 1.0) == 0.0) & (groups[:-1] == groups[1:])
        follows = np.append(False, fits & (reach[places[1:]] == places[:-1])) if len(places) else lone[:0]
        start = np.maximum.accumulate(np.where(~follows, np.arange(len(places)), 0))
        seconds = np.flatnonzero(follows & ((np.arange(len(places)) - start) % 2 == 1))
        return places[seconds - 1], places[seconds], reach

    def _spread(self, source: Integers, reader: Integers, writer: Integers) -> Integers:
        """Return the last source that each subgraph reads directly or through light subgraphs; -1 for none."""
        sources = np.full(self.count, -1)
        while True:
            through = np.where(source >= 0, source, np.where(self.is_light, sources, -1))
            last = sources.copy()
            np.maximum.at(sources, reader, through[writer])
            if np.array_equal(last, sources):
                return sources

    def _pairs(self, kernel: Integers) -> tuple[Integers, Integers]:
        """Return (reading kernels, writing kernels): one pair for each read of data that another kernel wrote."""
        reads = np.flatnonzero(self.maker >= 0)
        reader, writer = kernel[self.owner[reads]], kernel[self.maker[reads]]
        return reader[reader != writer], writer[reader != writer]


def _same_input(work: WorkloadColumns, flow: _Flow) -> Integers:
    """Return a key per subgraph, equal for GEMMs with the same input, rows and depth; -1 unless it has exactly one
    GEMM.
    """
    key = np.full(flow.count, -1)
    counted = np.bincount(work.subgraph_index.astype(np.intp), weights=work.has_macs, minlength=flow.count)
    is_one = (counted == 1.0) & flow.may_move
    is_lone = work.of_kind("linear", "matmul") & work.has_macs & (work.gemm_groups == 1.0) & ~work.is_foldable
    is_lone &= is_one[work.subgraph_index] & (
        np.bincount(work.access_operator.astype(np.intp), weights=work.multiplies, minlength=work.operator_count) > 0.0
    )
    is_whole = (work.access_bytes >= work.access_tensor_bytes) & (work.access_tensor_bytes > 0.0)
    reads = np.flatnonzero((work.access_role == ROLE_CODE["input"]) & is_whole & is_lone[work.access_operator])
    operator, first = np.unique(work.access_operator[reads], return_index=True)
    access = reads[first]
    same = np.stack([work.access_tensor[access], flow.maker[access], work.gemm_m[operator], work.gemm_k[operator]])
    key[work.subgraph_index[operator]] = np.unique(same, axis=1, return_inverse=True)[1].ravel()
    return key


def _shared_bytes(work: WorkloadColumns, group: Integers) -> Floats:
    """Return the bytes that each access moves if kernels are merged; a kernel moves each value at most once.

    `group` is the kernel of each operator.
    """
    owner, tensor = group[work.access_operator], work.access_tensor
    is_output = work.access_role == ROLE_CODE["output"]
    count = int(tensor.max(initial=-1)) + 1
    writer, other, readers = np.full(count, -1), np.full(count, np.iinfo(np.int64).max), np.zeros(count)
    np.maximum.at(writer, tensor[is_output], owner[is_output])
    np.minimum.at(other, tensor[is_output], owner[is_output])
    inside = (writer[tensor] == owner) & (other[tensor] == owner) & ~work.access_is_boundary
    np.add.at(readers, tensor[~is_output & ~inside], 1.0)
    is_read = np.bincount(tensor.astype(np.intp), weights=~is_output, minlength=count)[tensor] > 0.0
    stays = inside & (~is_output | (is_read & (readers[tensor] == 0.0)))
    moved = np.where(stays, 0.0, work.access_fused_bytes)
    order = np.lexsort((is_output, tensor, owner))
    sorted_owner, sorted_tensor, written, amount = owner[order], tensor[order], is_output[order], moved[order]
    change = (np.diff(sorted_owner) != 0) | (np.diff(sorted_tensor) != 0) | (np.diff(written.astype(np.int8)) != 0)
    upto = np.cumsum(amount)
    start = np.maximum.accumulate(np.where(np.append(True, change), upto - amount, 0.0))
    owned = np.maximum(work.access_tensor_bytes[order], amount)
    left = moved.copy()
    left[order] = np.where(written, amount, np.clip(owned - (upto - amount - start), 0.0, amount))
    return left
