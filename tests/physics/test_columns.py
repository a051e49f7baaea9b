"""Columns carry what the records say, under the records' names."""

from __future__ import annotations

import numpy as np
import torch

from compare import assert_close
from joulemap.physics.kernel import form_kernels
from joulemap.physics.width import Widths, precision_scale
from joulemap.physics.workload import (
    number_calls,
    sum_by,
)
from models import Embedded, Mlp, Residual, columns, image


def test_only_what_a_trace_splits_shares_a_call() -> None:
    attention, other = "aten.scaled_dot_product_attention.default", "aten.relu.default"
    assert number_calls([other, attention, attention, attention, other]).tolist() == [0, 1, 1, 1, 2]
    # two attentions one behind the other are two calls
    assert number_calls([attention] * 6).tolist() == [0, 0, 0, 1, 1, 1]
    assert number_calls([]).tolist() == []


def test_weights_shrink_with_the_precision() -> None:
    work = columns(Mlp(), torch.empty(2, 8, device="meta"))
    # 8 x 16 + 16 + 16 x 4 + 4 parameters
    assert Widths(work, "fp32").weight_bytes == 212 * 4
    assert Widths(work, "int4").weight_bytes == 212 * 0.5


def test_the_whole_table_of_an_embedding_is_weights() -> None:
    work = columns(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta"))
    assert_close(Widths(work, "fp16").weight_bytes, 1000 * 8 * 2)


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
