"""Bytes of a workload in a run at one precision, from its traced bytes.

    moved bytes = traced bytes x bytes per element at the precision / bytes per traced element

Weights of GEMMs may be stored in a format of their own (`record/weight.py`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from joulemap.physics.record.configuration import CARRIED, OPERAND_ONLY, PRECISION_BYTES, carried_precision
from joulemap.physics.record.weight import WeightFormat, find_weight_format, read_weight_format
from joulemap.physics.record.workload import LOOKUP, ROUTED
from joulemap.physics.workload import ROLE_CODE, Floats, WorkloadColumns, sum_by
from joulemap.system.record import frozen

LEAST_SOLVER: Final = "fp32"
"""Narrowest precision of a decomposition. Source: cuSOLVER and LAPACK, `S` and `D`; `torch.linalg` refuses fp16."""


@frozen(eq=False, slots=False)
class Widths:
    """Bytes of a workload at a precision of activations and a storage format of GEMM weights."""

    work: WorkloadColumns
    precision: str
    weight_precision: str = ""
    """Storage format of GEMM weights; empty for the precision of activations."""

    @cached_property
    def weights(self) -> WeightFormat | None:
        """Format of GEMM weights; None if they are stored like activations. Raises like `find_weight_format`."""
        return find_weight_format(self.precision, self.weight_precision)

    @property
    def main(self) -> str:
        """Name of the format of GEMM weights for which a checkpoint states no other."""
        return self.weights.name if self.weights else self.weight_precision or self.precision

    @cached_property
    def scale(self) -> Floats:
        """Factor from traced bytes to bytes of a run, for each access, with weights at its precision too."""
        work = self.work
        scale = precision_scale(work.access_item_bytes, self.precision)
        if self.precision in OPERAND_ONLY:
            carried = precision_scale(work.access_item_bytes, carried_precision(self.precision))
            scale = np.where(work.is_narrowed | work.is_quantized, scale, carried)
        decomposes = work.decomposes[work.access_operator]
        return np.where(decomposes, np.maximum(scale, _solver_scale(work.access_item_bytes)), scale)

    @cached_property
    def stored_scale(self) -> Floats:
        """Factor from traced bytes to moved bytes, for each access.

        GEMM weights have their storage precision and include group scales; other accesses follow `scale`.
        """
        work, weights, scale = self.work, self.weights, self.scale
        if weights is not None:
            summed = np.zeros(int(work.access_tensor.max(initial=-1)) + 1)
            narrowed = work.multiplies if weights.is_whole else work.is_quantized
            multiplied = narrowed & (work.access_item_bytes > 0.0)
            summed[work.access_tensor[multiplied]] = work.gemm_k[work.access_operator[multiplied]]
            is_stored = (work.access_role == ROLE_CODE["weight"]) & (summed[work.access_tensor] > 0.0)
            length = np.maximum(summed[work.access_tensor], 1.0)
            width = _row_bytes(weights, length, self.precision)
            if weights.others:
                is_expert = work.of_operation(ROUTED[0])[work.access_operator]
                width = np.where(is_expert, width, _row_bytes(weights.others, length, self.precision))
            scale = np.where(is_stored, width / np.maximum(work.access_item_bytes, 1.0), scale)
        return self._scale_apart(scale)

    def _scale_apart(self, scale: Floats) -> Floats:
        """Return access factors, corrected for weights that a checkpoint stores in another format than the main one,
        and for tables of rows that it converts.
        """
        work = self.work
        owner = work.access_operator
        stored = np.where(work.names_format(self.main), work.stored_as(self.main), "")
        is_row = work.of_operation(LOOKUP)[owner]
        matrix = work.is_quantized | (work.access_is_matrix & (work.access_role == ROLE_CODE["weight"]) & is_row)
        for name in set(stored.tolist()) - {""}:
            own = matrix & (stored[owner] == name) & (work.access_item_bytes > 0.0)
            length = np.maximum(np.where(is_row, work.row_length[owner], work.gemm_k[owner]), 1.0)
            width = _row_bytes(read_weight_format(name), length, CARRIED)
            scale = np.where(own, width / np.maximum(work.access_item_bytes, 1.0), scale)
        return scale

    @cached_property
    def first_read_bytes(self) -> Floats:
        """Stored bytes of each weight, in the order of `WorkloadColumns.first_reads`."""
        work = self.work
        byte_count: Floats = (work.access_tensor_bytes * (self.stored_scale * work.access_times))[work.first_reads]
        return byte_count

    @property
    def weight_bytes(self) -> float:
        """Bytes of the model's weights; integer buffers keep their width."""
        return float(self.first_read_bytes.sum())

    @property
    def copy_bytes(self) -> float:
        """Bytes of quantized weight copies that a run keeps in addition to wide weights.

        It is 0 unless the precision is in `OPERAND_ONLY`.
        """
        if self.precision not in OPERAND_ONLY:
            return 0.0
        work = self.work
        each = np.intersect1d(work.first_reads, np.flatnonzero(work.is_quantized))
        return float((work.access_tensor_bytes[each] * (self.scale * work.access_times)[each]).sum())

    @property
    def dequantization_count(self) -> Floats:
        """Elementwise operations that each operator spends on dequantizing weights."""
        work, weights = self.work, self.weights
        stored = work.stored_as(self.main)
        apart = set(stored.tolist()) - {self.main, ""}
        if weights is None and not apart:
            return np.zeros(work.operator_count)
        narrowed = work.multiplies & (self.stored_scale < self.scale)
        operations = np.full(work.operator_count, weights.operations if weights else 0.0)
        for name in apart:
            operations = np.where(stored == name, read_weight_format(name).operations, operations)
        each = operations[work.access_operator[narrowed]]
        count = each * work.access_bytes[narrowed] / work.access_item_bytes[narrowed]
        return sum_by(work.access_operator[narrowed], count, work.operator_count)

    def peak_activation_bytes(self, *, is_fused: bool) -> float:
        """Return the peak of live activation bytes over the execution order.

        A buffer is alive from the operator that creates it, inclusive. A fusing compiler frees it after the last call
        that reads it. Data that a fused kernel keeps on chip takes no memory, nor do intermediates within one call. A
        program that runs call by call holds a buffer until it releases it.
        """
        return float(self.live_bytes(is_fused=is_fused).max(initial=0.0))

    def live_bytes(self, *, is_fused: bool) -> Floats:
        """Return the live activation bytes during each operator, by the rules of `peak_activation_bytes`."""
        work = self.work
        scale = precision_scale(work.buffer_item_bytes, self.precision)
        if self.precision in OPERAND_ONLY:
            carried = precision_scale(work.buffer_item_bytes, carried_precision(self.precision))
            scale = np.where(work.is_operand[: len(scale)], scale, carried)
        own = work.access_buffer[work.decomposes[work.access_operator] & (work.access_buffer >= 0)]
        scale[own] = np.maximum(scale, _solver_scale(work.buffer_item_bytes))[own]
        byte_count = work.buffer_bytes * scale
        if work.buffer_times is not None:
            byte_count = byte_count * work.buffer_times
        calls = work.call_index[work.buffer_birth], work.call_index[work.buffer_death]
        is_inner = (calls[0] == calls[1]) & (work.buffer_birth < work.buffer_death)
        byte_count = np.where(work.buffer_is_hidden & (is_inner | is_fused), 0.0, byte_count)
        last = work.buffer_death if is_fused else work.buffer_release
        last = np.searchsorted(work.call_index, work.call_index[last], side="right") - 1
        change = np.zeros(work.operator_count + 1)
        np.add.at(change, work.buffer_birth, byte_count)
        np.add.at(change, last + 1, -byte_count)
        live: Floats = np.cumsum(change)[:-1]
        return live


def _row_bytes(weights: WeightFormat, length: Floats, precision: str) -> Floats:
    """Return the bytes per weight, with group scales, for GEMMs that sum over `length` elements.

    They are at most the bytes of the run's precision, unless the format has that precision.
    """
    groups = np.ceil(length / (weights.group_size or np.inf)).clip(1.0) / length
    width: Floats = weights.item_bytes + weights.scale_bytes / weights.row_count * groups
    return width if weights.precision == precision else np.minimum(width, PRECISION_BYTES[precision])


def precision_scale(item_bytes: Floats, precision: str) -> Floats:
    """Return the factor from traced bytes to bytes at `precision`; 1 for elements that are not floating point."""
    return np.where(item_bytes > 0, PRECISION_BYTES[precision] / np.maximum(item_bytes, 1.0), 1.0)


def _solver_scale(item_bytes: Floats) -> Floats:
    """Return the minimum factor from traced bytes to bytes of a decomposition; libraries decompose at fp32 or wider."""
    return np.minimum(precision_scale(item_bytes, LEAST_SOLVER), 1.0)
