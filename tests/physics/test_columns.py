"""Columns carry what the records say, under the records' names."""

from __future__ import annotations

import attrs
import numpy as np
import torch

from compare import assert_close
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.kind import KINDS, ROLES
from joulemap.physics.record.workload import Access, Buffer
from joulemap.physics.width import Widths, precision_scale
from joulemap.physics.workload import (
    OPERATOR_COUNTS,
    columns_of,
    number_calls,
    sum_by,
)
from models import Embedded, Mlp, Residual, columns, image, trace

NAMED = {
    "access_operator": "operator_index",
    "access_tensor": "tensor_index",
    "access_role": "role",
    "access_bytes": "byte_count",
    "access_fused_bytes": "fused_byte_count",
    "access_item_bytes": "item_bytes",
    "access_is_boundary": "is_boundary",
    "buffer_birth": "birth_index",
    "buffer_death": "death_index",
    "buffer_release": "release_index",
    "buffer_bytes": "byte_count",
    "buffer_item_bytes": "item_bytes",
    "buffer_is_hidden": "is_hidden",
}
"""Column of an access or a buffer -> field of its record."""


def test_columns_hold_the_values_of_the_records() -> None:
    workload = trace(Residual(), image(2, 4, 8))
    work = columns_of(workload)
    for name in (*OPERATOR_COUNTS, "is_foldable", "operation"):
        assert getattr(work, name).tolist() == [getattr(one, name) for one in workload.operators], name
    assert work.rank.tolist() == [len(one.output_shape) for one in workload.operators]
    assert [KINDS[code] for code in work.kind] == [one.kind for one in workload.operators]
    assert [ROLES[code] for code in work.access_role] == [one.role for one in workload.accesses]
    for column, field in NAMED.items():
        records: tuple[Access, ...] | tuple[Buffer, ...]
        records = workload.accesses if column.startswith("access") else workload.buffers
        if column != "access_role":
            assert getattr(work, column).tolist() == [getattr(one, field) for one in records], column
    read = [workload.tensors[one.tensor_index] for one in workload.accesses]
    assert work.access_tensor_bytes.tolist() == [tensor.byte_count for tensor in read]
    assert work.access_buffer.tolist() == [-1 if one.buffer_index is None else one.buffer_index for one in read]
    assert work.access_is_matrix.tolist() == [len(tensor.shape) > 1 for tensor in read]
    for index, subgraph in enumerate(workload.subgraphs):
        assert np.flatnonzero(work.subgraph_index == index).tolist() == list(subgraph.operator_indices)


def test_a_row_is_the_last_dimension_of_the_output() -> None:
    work = columns(Mlp(), torch.empty(2, 8, device="meta"))
    assert work.row_length.tolist() == [16.0, 16.0, 4.0]


def test_only_what_a_trace_splits_shares_a_call() -> None:
    attention, other = "aten.scaled_dot_product_attention.default", "aten.relu.default"
    assert number_calls([other, attention, attention, attention, other]).tolist() == [0, 1, 1, 1, 2]
    # two attentions one behind the other are two calls
    assert number_calls([attention] * 6).tolist() == [0, 0, 0, 1, 1, 1]
    assert number_calls([]).tolist() == []


def test_operators_of_an_operation_are_found_by_name() -> None:
    work = columns(Mlp(), torch.empty(2, 8, device="meta"))
    assert work.of_operation("relu").tolist() == [False, True, False]
    assert work.of_operation("relu", "linear").tolist() == [True, True, True]
    assert not work.of_operation("gelu").any()
    # an operation may have the name of a kind
    named = attrs.evolve(work, operation=np.array(["pool", "relu", "linear"]))
    assert not named.of_kind("pool").any()
    assert named.of_operation("pool").tolist() == [True, False, False]


def test_weights_shrink_with_the_precision() -> None:
    work = columns(Mlp(), torch.empty(2, 8, device="meta"))
    # 8 x 16 + 16 + 16 x 4 + 4 parameters
    assert Widths(work, "fp32").weight_bytes == 212 * 4
    assert Widths(work, "int4").weight_bytes == 212 * 0.5


def test_the_whole_table_of_an_embedding_is_weights() -> None:
    work = columns(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta"))
    assert_close(Widths(work, "fp16").weight_bytes, 1000 * 8 * 2, rel=1e-12)


def test_only_floating_point_scales() -> None:
    assert precision_scale(np.array([4.0, 2.0, 0.0]), "fp16").tolist() == [0.5, 1.0, 1.0]


def test_sums_by_group_keep_empty_groups() -> None:
    assert sum_by(np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), 4).tolist() == [2.0, 0.0, 5.0, 0.0]
    columns = np.array([[1.0, 2.0, 4.0, 8.0], [3.0, 5.0, 7.0, 9.0]])
    assert sum_by(np.array([0, 0, 1, 1]), columns, 2).tolist() == [[3.0, 12.0], [8.0, 16.0]]
    assert sum_by(np.array([0, 1, 1, 0]), columns, 2).tolist() == [[9.0, 6.0], [12.0, 12.0]]


def test_copies_of_kernels_are_workloads_of_their_own() -> None:
    kernels = form_kernels(columns(Residual(), image(2, 4, 8)), "fp32", "fused")
    copies = kernels.copies(3)
    assert copies.workload_count == 3 and copies.kernel_count == 3 * kernels.kernel_count
    for name in ("input_bytes", "weight_bytes", "output_bytes"):
        assert copies.sum_workload(getattr(copies, name)).tolist() == 3 * [float(getattr(kernels, name).sum())]
    assert copies.largest(copies.batch).tolist() == 3 * [2.0]
