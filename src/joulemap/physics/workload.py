"""A workload as numpy columns: one row per operator, access, buffer. Formulas are written over these.

Field names are those of the records in `domain.workload` (a test keeps them equal).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.record.compiler import is_single_output, read_window
from joulemap.physics.record.kind import KINDS, ROLES
from joulemap.physics.record.workload import (
    CAUSAL,
    DECOMPOSITION,
    DEQUANTIZE,
    KEPT,
    NARROW_CACHES,
    ROUTED,
    STORED_AS,
    WIDE_CACHE,
)
from joulemap.system.record import define

if TYPE_CHECKING:
    from joulemap.physics.record.workload import Operator, Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Texts = NDArray[np.str_]

KIND_CODE: Final[Mapping[str, int]] = {kind: code for code, kind in enumerate(KINDS)}
ROLE_CODE: Final[Mapping[str, int]] = {role: code for code, role in enumerate(ROLES)}

IN_PLACE: Final = "in_place"
"""Variant word of an append to a cache for which an engine writes only the new rows."""

STREAMED: Final = "streamed"
"""Variant word of a GEMM with few rows, whose kernel streams the matrix past them and cuts no tiles."""

UNPACKED: Final = "unpacked"
"""Variant word of a GEMM whose weights a separate kernel dequantizes to memory if the GEMM has several rows."""

MARLIN: Final = "packed_marlin"
"""Variant word of a GEMM whose kernel dequantizes packed weights in registers and multiplies as Ampere does."""

MACHETE: Final = "packed_machete"
"""Variant word of a GEMM whose kernel dequantizes packed weights in registers and multiplies as Hopper does."""

TRANSPOSED: Final = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
"""Operations whose taps are columns of their GEMM, not a window along K."""

OPERATOR_COUNTS: Final = (
    "mac_count",
    "elementwise_count",
    "special_count",
    "output_element_count",
    "gemm_m",
    "gemm_n",
    "gemm_k",
    "gemm_groups",
    "tap_count",
    "step_count",
    "run_count",
)


@define(kw_only=True, eq=False, slots=False)
class Work:
    """Operators of a workload and their counts, one row each. Arrays are read-only by convention."""

    kind: Integers
    """Index of each operator's kind in `KINDS`."""
    mac_count: Floats
    elementwise_count: Floats
    special_count: Floats
    output_element_count: Floats
    gemm_m: Floats
    gemm_n: Floats
    gemm_k: Floats
    gemm_groups: Floats
    tap_count: Floats
    step_count: Floats
    """Sequential steps of the operator's own call."""
    run_count: Floats
    """Sequential runs of the operator per inference."""
    kernel_step_count: Floats
    """Sequential steps of the operator's subgraph."""
    row_length: Floats
    """Elements along the last dimension of the output."""
    operation: Texts
    variant: Texts
    """Variant words, separated by spaces; empty for most operators.

    For attention: `causal`, `cache_fp8` or `cache_int8`, and the kernel family. For experts: the kernel family and the
    storage of weights. `dequantize` for dequantization. Constants of this module and of `domain.workload` are others.
    """
    subgraph_index: Integers
    origin: tuple[Work, Integers] | None = None
    """(operators from which these rows were taken, their indices there); masks are computed on the source once and
    shared.
    """

    @property
    def operator_count(self) -> int:
        """Number of operators."""
        return len(self.kind)

    @cached_property
    def subgraph_count(self) -> int:
        """Number of subgraphs up to the last one, including those without a row here."""
        return int(self.subgraph_index.max()) + 1 if self.operator_count else 0

    @cached_property
    def has_macs(self) -> Booleans:
        """Mask of operators that multiply and accumulate."""
        mask: Booleans = self.mac_count > 0
        return mask

    @cached_property
    def window(self) -> Floats:
        """Positions of a convolution's window along K, at least 1; 1 for a transposed convolution."""
        return np.where(self.of_operation(*TRANSPOSED), 1.0, np.maximum(self.tap_count, 1.0))

    @cached_property
    def channels(self) -> Floats:
        """Input channels per group of a convolution."""
        return self.gemm_k / self.window

    @cached_property
    def takes_turns(self) -> Booleans:
        """Mask of the exchanges of one of several parts of a batch, of which another part computes meanwhile."""
        mask: Booleans = self.of_kind("communication") & (self.tap_count > 1)
        return mask

    @cached_property
    def is_gemm(self) -> Booleans:
        """Mask of dense GEMMs: neither depthwise nor grouped."""
        return self.of_kind("conv", "linear", "matmul")

    def of_kind(self, *kinds: str) -> Booleans:
        """Return a mask of the operators of these kinds."""
        mask = self._masks.get(kinds)
        if mask is None:
            if self.origin is not None:
                mask = self.origin[0].of_kind(*kinds)[self.origin[1]]
            else:
                mask = np.isin(self.kind, [KIND_CODE[kind] for kind in kinds])
            self._masks[kinds] = mask
        return mask

    @cached_property
    def is_causal(self) -> Booleans:
        """Mask of operators of causal attention, in which tokens do not attend to later tokens."""
        return self.has_word(CAUSAL)

    @cached_property
    def decomposes(self) -> Booleans:
        """Mask of matrix factorizations and solvers."""
        return self.has_word(DECOMPOSITION)

    @cached_property
    def has_narrow_cache(self) -> Booleans:
        """Mask of attention operators whose keys and values are stored in one byte per element."""
        return self.has_word(*NARROW_CACHES.values())

    @cached_property
    def has_float_cache(self) -> Booleans:
        """Mask of attention operators whose keys and values are stored as fp8, which GEMMs can read directly."""
        return self.has_word(NARROW_CACHES["fp8"])

    @cached_property
    def has_wide_cache(self) -> Booleans:
        """Mask of attention operators whose keys and values take two bytes per element at any precision."""
        return self.has_word(WIDE_CACHE)

    @cached_property
    def is_streamed(self) -> Booleans:
        """Mask of GEMMs of a matrix with few vectors, whose kernel streams the matrix and cuts no tiles."""
        return self.has_word(STREAMED)

    @cached_property
    def is_unpacked(self) -> Booleans:
        """Mask of GEMMs of several rows whose weights a separate kernel dequantizes to memory first."""
        mask: Booleans = self.has_word(UNPACKED) & (self.gemm_m > 1.0)
        return mask

    def has_word(self, *words: str) -> Booleans:
        """Return a mask of the operators whose variant has one of these words."""
        if self.origin is not None:
            mask: Booleans = self.origin[0].has_word(*words)[self.origin[1]]
            return mask
        variants = self.variant.tolist()
        found_of = {one: not {*words}.isdisjoint(one.split()) for one in set(variants)}
        return np.array([found_of[one] for one in variants], dtype=bool)

    @cached_property
    def is_kept(self) -> Booleans:
        """Mask of GEMMs whose weights quantizers leave at 16 bits."""
        return self.has_word(KEPT)

    def stored_as(self, main: str) -> Texts:
        """Return the weight format of each GEMM in a run with this main format; empty for 16 bits.

        A checkpoint may store some GEMMs in another format, or keep them at 16 bits.
        """
        if self.origin is not None:
            return self.origin[0].stored_as(main)[self.origin[1]]
        begin = f"{main}{STORED_AS}"
        variants, places = self._variants
        formats = []
        for variant in variants.tolist():
            words = variant.split()
            own = next((word.removeprefix(begin) for word in words if word.startswith(begin)), main)
            formats.append("" if KEPT in words else own)
        return np.array(formats, dtype=np.str_)[places]

    def names_format(self, main: str) -> Booleans:
        """Return a mask of the operators that name the format of their weights in a run with this main format."""
        variants, places = self._variants
        begin = f"{main}{STORED_AS}"
        is_named = [any(word.startswith(begin) for word in variant.split()) for variant in variants.tolist()]
        return np.array(is_named, dtype=bool)[places]

    @cached_property
    def _variants(self) -> tuple[Texts, Integers]:
        """Distinct variants, and the index of each row's variant."""
        variants, places = np.unique(self.variant, return_inverse=True)
        return variants, places

    @cached_property
    def is_dequantizing(self) -> Booleans:
        """Mask of operators that dequantize stored weights for a GEMM."""
        if self.origin is not None:
            return self.origin[0].is_dequantizing[self.origin[1]]
        mask: Booleans = self.variant == DEQUANTIZE
        return mask

    @cached_property
    def kernel_family(self) -> Texts:
        """Kernel family that an attention or experts operator names; empty if it names none."""
        if self.origin is not None:
            return self.origin[0].kernel_family[self.origin[1]]
        others = (CAUSAL, *NARROW_CACHES.values(), WIDE_CACHE, STREAMED, UNPACKED, MARLIN, MACHETE, KEPT, IN_PLACE)
        variants = self.variant.tolist()
        left_of = {
            one: " ".join(word for word in one.split() if word not in others and STORED_AS not in word)
            for one in set(variants)
        }
        return np.array([left_of[one] for one in variants], dtype=np.str_)

    def of_operation(self, *operations: str) -> Booleans:
        """Return a mask of the operators of these operations."""
        key = ("", *operations)
        mask = self._masks.get(key)
        if mask is None:
            if self.origin is not None:
                mask = self.origin[0].of_operation(*operations)[self.origin[1]]
            else:
                mask = np.isin(self.operation, operations)
            self._masks[key] = mask
        return mask

    @cached_property
    def _masks(self) -> dict[tuple[str, ...], Booleans]:
        """Cache of masks, keyed by kinds, or by an empty string and operations; all hardware of a class shares it."""
        return {}

    def take(self, rows: Integers) -> Work:
        """Return the operators at these rows."""
        columns = {name: getattr(self, name)[rows] for name in WORK_COLUMNS}
        return Work(**columns, origin=(self, rows))


WORK_COLUMNS: Final = tuple(field.name for field in attrs.fields(Work) if field.name != "origin")
"""Names of the arrays of `Work`."""


def join_works(each: Sequence[Work]) -> Work:
    """Return the operators of workloads one after another; those of equal workloads share their masks."""
    first = each[0]
    if all(one is first for one in each):
        return first.take(np.tile(np.arange(first.operator_count), len(each)))
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in each]) for name in WORK_COLUMNS}
    starts = np.cumsum([0, *(one.subgraph_count for one in each)])[:-1].tolist()
    columns["subgraph_index"] = np.concatenate(
        [one.subgraph_index + start for one, start in zip(each, starts, strict=True)]
    )
    return Work(**columns)


@define(kw_only=True, eq=False, slots=False)
class WorkloadColumns(Work):
    """One workload at one batch size: all operators, accesses and buffers."""

    batch: int
    inner_batch: int = 1
    """Samples per batch element, if a workload is a single operator with a batch of its own."""
    weight_bytes: int
    """Weight bytes of the whole model, at the traced dtype."""
    call_index: Integers
    """Index of each operator's ATen call; operators split from one call share it."""
    is_foldable: Booleans
    kernel: Integers
    """Longest side of each operator's convolution or pooling window; 1 without a window."""
    stride: Integers
    """Longest step of each operator's window; 1 without one, and for a window that gives one output per channel."""
    rank: Integers
    """Dimensions of each operator's output."""
    access_operator: Integers
    access_tensor: Integers
    """Index of the workload tensor that each access reads or writes."""
    access_buffer: Integers
    """Index of the accessed activation storage; -1 for parameters and constants."""
    access_tensor_bytes: Floats
    """Bytes of memory that the accessed tensor owns; 0 if another tensor owns them."""
    access_is_matrix: Booleans
    """True if the accessed tensor has two dimensions or more."""
    access_role: Integers
    access_bytes: Floats
    access_fused_bytes: Floats
    access_item_bytes: Floats
    access_is_boundary: Booleans
    buffer_birth: Integers
    buffer_death: Integers
    buffer_release: Integers
    buffer_bytes: Floats
    buffer_item_bytes: Floats
    buffer_is_hidden: Booleans
    times: Floats | None = None
    """Number of equal operators that each operator represents, itself included; None if each represents itself."""
    buffer_times: Floats | None = None
    """Number of equal buffers, alive until the end, that each buffer represents; None if each represents itself."""
    kernel_group: Integers | None = None
    """Index of each operator's engine kernel, set by `model.merge`; None before that."""

    @cached_property
    def is_view(self) -> Booleans:
        """Mask of operators that only rename memory."""
        mask: Booleans = self.kind == KIND_CODE["view"]
        return mask

    def active(self, *, is_fused: bool) -> tuple[Integers, Work]:
        """Return the indices and the rows of operators that compute: no views, and if fused, no foldable operators."""
        computing = self._active.get(is_fused)
        if computing is None:
            rows = np.flatnonzero(~self.is_view & ~(self.is_foldable & is_fused))
            computing = self._active[is_fused] = rows, self.take(rows)
        return computing

    @cached_property
    def _active(self) -> dict[bool, tuple[Integers, Work]]:
        """Cache of the results of `active` and their masks, shared by all hardware."""
        return {}

    @property
    def access_times(self) -> Floats | float:
        """Number of equal accesses that each access represents."""
        return 1.0 if self.times is None else self.times[self.access_operator]

    @cached_property
    def first_reads(self) -> Integers:
        """Index of the first access that reads each weight."""
        reads = np.flatnonzero(self.access_role == ROLE_CODE["weight"])
        _, first = np.unique(self.access_tensor[reads], return_index=True)
        access: Integers = reads[first]
        return access

    @cached_property
    def is_quantized(self) -> Booleans:
        """Mask of accesses that read quantizable weights for GEMMs."""
        mask: Booleans = self.multiplies & ~self.is_kept[self.access_operator]
        return mask

    @cached_property
    def _takes_narrow(self) -> Booleans:
        """Mask of GEMMs with quantizable weights, and of their gradients."""
        mask: Booleans = self.has_word(OPERANDS) & ~self.is_kept
        mask[self.access_operator[self.is_quantized]] = True
        return mask

    @cached_property
    def is_narrowed(self) -> Booleans:
        """Mask of accesses that read activations for GEMMs with weights, or write storage that only such GEMMs read."""
        product = self._takes_narrow
        is_input, is_output = (self.access_role == ROLE_CODE[role] for role in ("input", "output"))
        is_operand = self.is_operand[self.access_buffer] & (self.access_buffer >= 0)
        mask: Booleans = (is_input & product[self.access_operator]) | (is_output & is_operand)
        return mask

    @cached_property
    def is_operand(self) -> Booleans:
        """Mask of buffers that only GEMMs with weights read."""
        product = self._takes_narrow
        reads = (self.access_role == ROLE_CODE["input"]) & (self.access_buffer >= 0)
        reads &= ~self.is_view[self.access_operator]
        taken, other = np.zeros((2, max(len(self.buffer_bytes), 1)), dtype=bool)
        taken[self.access_buffer[reads & product[self.access_operator]]] = True
        other[self.access_buffer[reads & ~product[self.access_operator]]] = True
        other[self.access_buffer[self.access_is_boundary & (self.access_buffer >= 0)]] = True
        mask: Booleans = taken & ~other
        return mask

    @cached_property
    def starts_storage(self) -> Booleans:
        """Mask of accesses to storage that starts with their operator."""
        if not len(self.buffer_birth):
            return np.zeros(len(self.access_buffer), dtype=bool)
        mask: Booleans = (self.access_buffer >= 0) & (self.buffer_birth[self.access_buffer] == self.access_operator)
        return mask

    @cached_property
    def multiplies(self) -> Booleans:
        """Mask of accesses that read weights of two dimensions or more for GEMMs."""
        is_weight = (self.access_role == ROLE_CODE["weight"]) & self.access_is_matrix
        owner = self.access_operator
        mask: Booleans = is_weight & self.has_macs[owner] & (self.gemm_k[owner] > 0.0)
        least = self.gemm_n[owner] * self.gemm_k[owner] * self.access_item_bytes
        is_bias = (self.access_tensor_bytes > 0.0) & (self.access_tensor_bytes < least)
        return mask & ~(is_bias & self.of_operation(ROUTED[0])[owner])  # Biases of experts are matrices too.


def sum_by(group: Integers, values: Floats, count: int) -> Floats:
    """Return the sum of `values` over each group 0 … count - 1 of the last axis, in the order of the members."""
    if values.ndim == 1:
        if not group.size:
            return np.zeros(count)
        total: NDArray[Any] = np.bincount(group.astype(np.intp, copy=False), weights=values, minlength=count)
        return total
    columns = np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T)
    length = len(group) // max(count, 1)
    if count == 1 or (length > 1 and np.array_equal(group, np.repeat(np.arange(count), length))):
        reduced: Floats = np.add.reduce(columns.reshape(count, length, -1), axis=1)
        return np.ascontiguousarray(reduced.T).reshape(*values.shape[:-1], count)
    order = np.argsort(group, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    sums = np.zeros((count, columns.shape[1]))
    for turn in range(int(rank.max(initial=-1)) + 1):
        mine = order[rank == turn]
        sums[group[mine]] += columns[mine]
    return np.ascontiguousarray(sums.T).reshape(*values.shape[:-1], count)


def pick(values: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """Return the values at indices of the last axis, which numpy takes at the platform's width alone."""
    return values.take(index.astype(np.intp, copy=False), axis=-1)


def put(column: Floats, places: Integers, values: Floats) -> Floats:
    """Return a column with values replaced at some indices of the last axis."""
    points = np.broadcast_shapes(column.shape[:-1], values.shape[:-1])
    whole = np.array(np.broadcast_to(column, (*points, column.shape[-1])))
    whole[..., places] = values
    return whole


OPERANDS: Final = "operands"
"""Variant word of the weight gradient: a GEMM of two activations, both read at the precision of GEMMs with weights.
Source: Transformer Engine, introduction.rst at 1498424b (linear layer data flow).
"""

SPLIT_CALLS: Final[Mapping[str, int]] = {
    "aten.scaled_dot_product_attention.default": 3,
    "aten.experts.default": 3,
    "aten.gru_cell.gates": 11,
    "aten.lstm_cell.gates": 11,
    "joulemap.packed_linear.default": 2,
    "joulemap.packed_bmm.default": 2,
    "joulemap.packed_grouped_mm.default": 2,
}
"""ATen call -> number of consecutive operators that a trace splits it into.

The gates of a cell are one kernel beside two GEMMs. Source: `_thnn_fused_lstm_cell` and `_thnn_fused_gru_cell` in
aten/src/ATen/native/RNN.cpp.
"""


def number_calls(aten: Sequence[str]) -> Integers:
    """Return the index of each operator's call, from 0, given the ATen names of operators in order."""
    calls = np.zeros(len(aten), dtype=np.int64)
    number, remaining = -1, 0
    for index, name in enumerate(aten):
        if remaining == 0:
            number, remaining = number + 1, SPLIT_CALLS.get(name, 1)
        calls[index] = number
        remaining -= 1
    return calls


def columns_of(workload: Workload) -> WorkloadColumns:
    """Return a fused workload as arrays."""
    return WorkloadColumns(
        batch=workload.batch,
        inner_batch=workload.inner_batch,
        weight_bytes=workload.weight_bytes,
        **arrays_of((workload,)),
    )


def _find_window(operator: Operator) -> tuple[int, int]:
    """Return the longest side and step of an operator's window."""
    return read_window(operator.scalars, is_single=is_single_output(operator.output_shape))


def arrays_of(workloads: Sequence[Workload]) -> dict[str, Any]:
    """Return the concatenated arrays of fused workloads, with consecutive operator, call and subgraph numbers."""
    operators = [operator for workload in workloads for operator in workload.operators]
    accesses = [access for workload in workloads for access in workload.accesses]
    read = [workload.tensors[access.tensor_index] for workload in workloads for access in workload.accesses]
    buffers = [buffer for workload in workloads for buffer in workload.buffers]
    first = _starts([len(workload.operators) for workload in workloads])
    tensor_first = _starts([len(workload.tensors) for workload in workloads])
    access_tensor_first = np.repeat(tensor_first, [len(workload.accesses) for workload in workloads])
    access_first = np.repeat(first, [len(workload.accesses) for workload in workloads])
    buffer_first = np.repeat(first, [len(workload.buffers) for workload in workloads])
    subgraph_index = np.zeros(len(operators), dtype=np.int64)
    kernel_step_count = np.ones(len(operators))
    subgraph = 0
    for start, workload in zip(first.tolist(), workloads, strict=True):
        for one in workload.subgraphs:
            for index in one.operator_indices:
                subgraph_index[start + index] = subgraph
                kernel_step_count[start + index] = one.step_count
            subgraph += 1
    windows = np.array([_find_window(operator) for operator in operators], dtype=np.int64).reshape(-1, 2)
    return {
        "kind": np.array([KIND_CODE[operator.kind] for operator in operators], dtype=np.int64),
        "kernel": windows[:, 0],
        "stride": windows[:, 1],
        "rank": np.array([len(operator.output_shape) for operator in operators], dtype=np.int64),
        "row_length": np.array([(1, *operator.output_shape)[-1] for operator in operators], dtype=np.float64),
        "operation": np.array([operator.operation for operator in operators], dtype=np.str_),
        "variant": np.array([operator.variant for operator in operators], dtype=np.str_),
        "call_index": number_calls([operator.aten for operator in operators]),
        "is_foldable": np.array([operator.is_foldable for operator in operators], dtype=bool),
        "subgraph_index": subgraph_index,
        "kernel_step_count": kernel_step_count,
        "access_operator": np.array([access.operator_index for access in accesses], dtype=np.int64) + access_first,
        "access_tensor": np.array([access.tensor_index for access in accesses], dtype=np.int64) + access_tensor_first,
        "access_buffer": _number_buffers(workloads),
        "access_tensor_bytes": np.array([tensor.byte_count for tensor in read], dtype=np.float64),
        "access_is_matrix": np.array([len(tensor.shape) > 1 for tensor in read], dtype=bool),
        "access_role": np.array([ROLE_CODE[access.role] for access in accesses], dtype=np.int64),
        "access_bytes": np.array([access.byte_count for access in accesses], dtype=np.float64),
        "access_fused_bytes": np.array([access.fused_byte_count for access in accesses], dtype=np.float64),
        "access_item_bytes": np.array([access.item_bytes for access in accesses], dtype=np.float64),
        "access_is_boundary": np.array([access.is_boundary for access in accesses], dtype=bool),
        "buffer_birth": np.array([buffer.birth_index for buffer in buffers], dtype=np.int64) + buffer_first,
        "buffer_death": np.array([buffer.death_index for buffer in buffers], dtype=np.int64) + buffer_first,
        "buffer_release": np.array([buffer.release_index for buffer in buffers], dtype=np.int64) + buffer_first,
        "buffer_bytes": np.array([buffer.byte_count for buffer in buffers], dtype=np.float64),
        "buffer_item_bytes": np.array([buffer.item_bytes for buffer in buffers], dtype=np.float64),
        "buffer_is_hidden": np.array([buffer.is_hidden for buffer in buffers], dtype=bool),
        **{
            name: np.array([getattr(operator, name) for operator in operators], dtype=np.float64)
            for name in OPERATOR_COUNTS
        },
    }


def _number_buffers(workloads: Sequence[Workload]) -> Integers:
    """Return the index of each access's activation storage, consecutive over workloads; -1 for none."""
    first = _starts([len(workload.buffers) for workload in workloads]).tolist()
    places = [
        -1 if (buffer := workload.tensors[access.tensor_index].buffer_index) is None else start + buffer
        for start, workload in zip(first, workloads, strict=True)
        for access in workload.accesses
    ]
    return np.array(places, dtype=np.int64)


def _starts(counts: Sequence[int]) -> Integers:
    """Return the start index of each of the consecutive groups of these sizes."""
    starts: Integers = np.cumsum([0, *counts])[:-1].astype(np.int64)
    return starts
