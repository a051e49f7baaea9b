"""Operators that a compiler leaves out, as the kernels beside them do their work.

    copies       around attention, whose kernel takes any strides; in an engine also those that matrix products read
    zero pads    that only convolutions read, in an engine
    joins        concatenations of results that nothing else reads: each kernel writes its own slice
    fills        new tensors of one value, whatever tensor gives their shape

Operators that are left out become views. Who read their result reads what they read.

Source: PyTorch, torch/_inductor/fx_passes/fuse_attention.py: attention by hand becomes the fused kernel, permutations
included, but not with biases of positions (six Swin models on one RTX 4090 err by -2 to -13 % with copies,
-12 to -19 % without); torch/_inductor/ir.py, ConcatKernel. TensorRT's documentation,
layer fusion ("Padding and Convolution") and concatenation without copies; OpenVINO PadFusion; ONNX Runtime
pad_fusion.cc; XLA, algebraic_simplifier.cc, FoldConvInputPad; strides of matrices of cublasGemmStridedBatchedEx and of
oneDNN's matmul primitive. All but the Swin models are recalled. The operator of a pad has no mode in a trace, so that a
reflected one counts as zeros.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.record.kind import KINDS
from joulemap.physics.record.runtime import Runtime
from joulemap.physics.workload import KIND_CODE, ROLE_CODE, Booleans, Integers, WorkloadColumns

COPIES: Final = ("clone", "contiguous", "reshape")
"""Operations that copy a tensor in another order."""

SCALES: Final = ("div", "mul")
"""Operations that scale the scores of attention."""

PADS: Final = ("constant_pad_nd", "pad")

CONVOLUTIONS: Final = tuple(kind for kind in KINDS if kind.endswith("conv"))


def leave_out(work: WorkloadColumns, runtime: Runtime) -> WorkloadColumns:
    """Return the workload without the operators that a compiler leaves out."""
    work = _mark_fills(work)
    reads, writes = _find_folded(work, runtime)
    return _read_through(work, reads, writes) if len(writes) else work


def _mark_fills(work: WorkloadColumns) -> WorkloadColumns:
    """Return the workload with operators that fill a new tensor, and read none, marked as foldable."""
    is_new = (work.access_role == ROLE_CODE["output"]) & work.starts_storage & ~work.access_is_boundary
    made, used = np.zeros((2, work.operator_count), dtype=bool)
    made[work.access_operator[is_new]], used[work.access_operator[~is_new]] = True, True
    fills = work.of_kind("data_movement") & made & ~used & ~work.is_foldable
    return attrs.evolve(work, is_foldable=work.is_foldable | fills) if fills.any() else work


def _find_folded(work: WorkloadColumns, runtime: Runtime) -> tuple[Integers, Integers]:
    """Return the accesses by which operators, whose work their neighbours do, read and write."""
    owner = work.access_operator.astype(np.intp)
    tensor = work.access_tensor.astype(np.intp)
    is_output = work.access_role == ROLE_CODE["output"]
    moves = work.of_kind("data_movement") & work.of_operation(*COPIES, *(PADS if runtime.is_built else ()))
    writes = np.flatnonzero(is_output & (moves & ~work.is_foldable)[owner] & ~work.access_is_boundary)
    if not len(writes):
        return writes, writes
    attends = _find_attention(work, is_any=runtime.is_built)
    index = work.subgraph_index.astype(np.intp)
    products = attends | (work.of_kind("matmul") & work.has_macs & runtime.is_built)
    reading, each = np.flatnonzero(~is_output & (work.access_bytes > 0.0)), int(tensor.max()) + 1
    inputs = np.bincount(owner[reading], minlength=work.operator_count)
    others = np.bincount(index, weights=~moves & ~work.is_view)
    first = np.zeros(work.operator_count, dtype=np.int64)
    first[owner[reading]] = reading
    reads, mine = first[owner[writes]], owner[writes]

    def is_read_by(mask: Booleans) -> Booleans:
        """Return a mask of the writes whose result operators of a mask read, and no other."""
        read = tensor[reading].astype(np.intp)
        times, inside = (np.bincount(read, one, each) for one in (None, mask[owner[reading]]))
        whole: Booleans = ((times == inside) & (times > 0))[tensor[writes]]
        return whole

    is_made = np.isin(tensor[reads], tensor[is_output & attends[owner]])
    is_same = work.access_bytes[reads] == work.access_bytes[writes]
    fits = np.where(
        work.of_operation(*COPIES)[mine],
        is_same & (is_read_by(products) | is_made),
        is_read_by(work.of_kind(*CONVOLUTIONS)),
    )
    fits &= (inputs[mine] == 1) & (others[index[mine]] == 0.0)
    return reads[fits], writes[fits]


def write_apart(work: WorkloadColumns) -> WorkloadColumns:
    """Return the workload in which kernels write their results into the concatenation that alone reads them."""
    joins = work.of_kind("data_movement") & work.of_operation("cat") & ~work.is_foldable & (work.variant == "")
    if not joins.any():
        return work
    owner = work.access_operator.astype(np.intp)
    tensor = work.access_tensor.astype(np.intp)
    each = int(tensor.max()) + 1
    is_output, counted = work.access_role == ROLE_CODE["output"], ~work.is_view[work.access_operator]
    counted &= work.access_bytes > 0.0
    readers, writers = (np.bincount(tensor[counted & one], minlength=each) for one in (~is_output, is_output))
    is_own = ((readers == 1) & (writers == 1))[tensor] & (work.access_buffer >= 0) & ~work.access_is_boundary
    is_own &= work.access_bytes >= work.access_tensor_bytes
    joins[owner[~is_output & ~is_own]] = False
    joins &= np.bincount(work.subgraph_index.astype(np.intp), weights=~work.is_view)[work.subgraph_index] == 1.0
    names = ("access_tensor", "access_buffer", "access_is_boundary")
    made, into = np.zeros(work.operator_count, dtype=np.int64), np.full(each, -1)
    writes, reads = np.flatnonzero(is_output & joins[owner]), ~is_output & joins[owner]
    made[owner[writes]] = writes
    into[tensor[reads]] = made[owner[reads]]
    moves, goal = into[tensor] >= 0, np.maximum(into[tensor], 0)
    columns = {name: np.where(moves, getattr(work, name)[goal], getattr(work, name)) for name in names}
    birth = work.buffer_birth.copy()
    np.minimum.at(birth, columns["access_buffer"][moves], owner[moves])
    hidden = np.isin(np.arange(len(birth)), work.access_buffer[moves])
    return attrs.evolve(
        work,
        kind=np.where(joins, KIND_CODE["view"], work.kind),
        buffer_is_hidden=work.buffer_is_hidden | hidden,
        buffer_birth=birth,
        **columns,
    )


def _find_attention(work: WorkloadColumns, *, is_any: bool) -> Booleans:
    """Return a mask of the products in kernels of two products and a softmax; unless `is_any`, of those that only scale
    the scores, as the patterns of torch.compile do.
    """
    index = work.subgraph_index.astype(np.intp)
    products = work.of_kind("matmul") & work.has_macs
    others = ~work.is_view & ~products & ~work.of_kind("softmax") & ~work.of_operation(*SCALES)
    counts, softs, more = (np.bincount(index, weights=mask) for mask in (products, work.of_kind("softmax"), others))
    mask: Booleans = products & ((counts >= 2.0) & (softs > 0.0) & (is_any | (more == 0.0)))[index]
    return mask


def _read_through(work: WorkloadColumns, reads: Integers, writes: Integers) -> WorkloadColumns:
    """Return the workload in which who reads what `writes` wrote reads what `reads` read; their operators are views."""
    through, size = np.full((2, int(work.access_tensor.max()) + 1), -1.0)
    through[work.access_tensor[writes]], size[work.access_tensor[writes]] = reads, work.access_bytes[writes]
    amounts, names = ("access_bytes", "access_fused_bytes"), (
        "access_tensor", "access_buffer", "access_tensor_bytes", "access_is_boundary",
    )  # fmt: skip
    columns = {name: getattr(work, name).copy() for name in (*amounts, *names)}
    is_input = work.access_role != ROLE_CODE["output"]
    while len(later := np.flatnonzero(is_input & (through[columns["access_tensor"]] >= 0.0))):
        tensor = columns["access_tensor"][later]
        at = through[tensor].astype(np.int64)
        for name in amounts:
            columns[name][later] *= work.access_bytes[at] / size[tensor]
        for name in names:
            columns[name][later] = getattr(work, name)[at]
    death, buffer = work.buffer_death.copy(), columns["access_buffer"]
    np.maximum.at(death, buffer[buffer >= 0], work.access_operator[buffer >= 0])
    kind = work.kind.copy()
    kind[work.access_operator[writes]] = KIND_CODE["view"]
    hidden = np.isin(np.arange(len(death)), work.access_buffer[writes])
    return attrs.evolve(work, kind=kind, buffer_is_hidden=work.buffer_is_hidden | hidden, buffer_death=death, **columns)
