"""Kinds of kernels: kernels with equal inputs of all formulas are evaluated once.

    kernels ─► the first of each kind, with its number of occurrences ─► times, counts, energies ─► all kernels again

Two kernels are alike if their members are equal in every column, in the same order. Sums over a workload weight each
kind by its number of kernels, so that totals and ledgers do not change.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.physics.communication import AHEAD, BEHIND
from joulemap.physics.kernel import OPERATOR_COLUMNS, KernelColumns, join_kernels
from joulemap.physics.workload import WORK_COLUMNS, Integers, sum_by
from joulemap.system.record import define

TEXTS: Final = ("operation", "variant")
"""Text columns of `Work`."""


@define(kw_only=True, eq=False)
class Kinds:
    """Groups of equal kernels: the first kernel of each kind, and the kind of every kernel and operator.

    The first kernel of a workload is its own kind, because it takes the remainder of divisions over all kernels.
    """

    kernels: KernelColumns
    """First kernel of each kind, in order."""
    row: Integers
    """Row of `kernels` that represents each operator."""
    kernel: Integers
    """Index in `kernels` of the kernel that represents each kernel."""

    @classmethod
    def of(cls, kernels: KernelColumns) -> Kinds:
        """Return the kinds of kernels, cached. Every kernel is its own kind if a collective overlaps with the kernels
        around it.
        """
        kinds = kernels.memo.get(("kinds",))
        if not isinstance(kinds, cls):
            kinds = kernels.memo["kinds",] = cls._find(kernels)
        return kinds

    @classmethod
    def join(cls, each: Sequence[KernelColumns]) -> KernelColumns:
        """Return the kernels of workloads one after another (`join_kernels`), with their kinds, which are cached."""
        kernels, kinds = join_kernels(each), [cls.of(one) for one in each]
        rows, firsts = (
            np.cumsum([0, *counts])[:-1].tolist()
            for counts in zip(
                *((one.kernels.work.operator_count, one.kernels.kernel_count) for one in kinds), strict=True
            )
        )
        kernels.memo["kinds",] = cls(
            kernels=join_kernels([one.kernels for one in kinds]),
            row=np.concatenate([one.row + start for one, start in zip(kinds, rows, strict=True)]),
            kernel=np.concatenate([one.kernel + start for one, start in zip(kinds, firsts, strict=True)]),
        )
        return kernels

    @classmethod
    def _find(cls, kernels: KernelColumns) -> Kinds:
        work, leader = kernels.work, kernels.leader
        order = np.argsort(kernels.kernel_index, kind="stable")
        starts = np.searchsorted(kernels.kernel_index[order], np.arange(kernels.kernel_count + 1))
        # Overlap of an exchange depends on its position.
        if work.has_word(BEHIND, AHEAD).any() or work.takes_turns.any():
            first = np.arange(kernels.kernel_count)
            return cls(kernels=kernels.take(first, kernels.kernel_times), row=np.arange(len(order)), kernel=first)
        is_other = work.subgraph_index != work.subgraph_index[leader][kernels.kernel_index]
        numbers = [getattr(work, name) for name in WORK_COLUMNS if name not in ("subgraph_index", *TEXTS)]
        numbers += [getattr(kernels, name) for name in OPERATOR_COLUMNS if name != "operator_index"]
        numbers += [np.unique(getattr(work, name), return_inverse=True)[1] for name in TEXTS]
        numbers += [kernels.leads, is_other, kernels.workload_index]
        columns = np.ascontiguousarray(np.array(numbers, dtype=np.float64).T[order])
        lines = columns.view(np.dtype((np.void, columns.itemsize * columns.shape[1]))).ravel()
        code = np.unique(lines, return_inverse=True)[1].ravel().tolist()
        new = np.unique(kernels.workload_index[leader], return_index=True)[1].tolist()
        number: dict[object, int] = {}
        kind = np.zeros(kernels.kernel_count, dtype=np.int64)
        for kernel, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
            key = (-1, kernel) if kernel in new else tuple(code[start:end])
            kind[kernel] = number.setdefault(key, len(number))
        _, first = np.unique(kind, return_index=True)
        leaders = kernels.take(first, sum_by(kind, kernels.kernel_times, len(first)))
        own = np.argsort(leaders.kernel_index, kind="stable")
        own_starts = np.searchsorted(leaders.kernel_index[own], np.arange(len(first)))
        row = np.zeros(len(order), dtype=np.int64)
        rank = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
        row[order] = own[own_starts[kind[kernels.kernel_index[order]]] + rank]
        return cls(kernels=leaders, row=row, kernel=kind)
