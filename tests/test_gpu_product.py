"""Products on a GPU: tiles, waves, chains and groups, worked out by hand on a toy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from chip import CLOCK_HZ, gpu
from compare import assert_close
from gpu_case import (
    ISSUE_HZ,
    MACS_PER_S,
    TENSOR_STEP_S,
    TOY,
    UNITS,
    VECTOR_STEP_S,
    norm,
    sorted_and_tiled,
    timed,
)
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture.gpu.product import native_seconds, smooth_max, stem_seconds
from joulemap.model.architecture.gpu.time import time_operators
from joulemap.model.workload import WorkloadColumns
from models import Function, Gemm, columns, image

VECTOR_RATE = MACS_PER_S["fp32"] / UNITS
TENSOR_RATE = MACS_PER_S["fp16"] / UNITS


def product(rows: int, inner: int, outputs: int) -> WorkloadColumns:
    return columns(Gemm(inner, outputs), torch.empty(rows, inner, device="meta"))


def conv(
    channels: int, outputs: int, size: int, kernel: int = 3, *, stride: int = 1, groups: int = 1, batch: int = 1
) -> WorkloadColumns:
    padding = kernel // 2 if stride < kernel else 0
    module = nn.Conv2d(channels, outputs, kernel, stride, padding, groups=groups, bias=False, device="meta")
    return columns(module, image(batch, channels, size))


def busy_s(work: WorkloadColumns, precision: str, hardware: Hardware = TOY) -> float:
    _, tiling, _, _ = sorted_and_tiled(work, precision, hardware=hardware)
    return float(tiling.busy_s[0])


def test_the_norm_of_equal_times_is_the_cube_root_of_two_above_them() -> None:
    assert_close(float(smooth_max(np.array([1.0]), np.array([1.0]))[0]), 2 ** (1 / 3), rel=1e-12)
    assert_close(float(smooth_max(np.array([3.0]), np.array([0.0]))[0]), 3.0, rel=1e-12)


SECONDS = st.floats(1e-9, 1.0)


@given(SECONDS, SECONDS)
def test_a_norm_is_between_the_larger_and_a_quarter_more(first: float, second: float) -> None:
    found = float(smooth_max(np.array([first]), np.array([second]))[0])
    assert max(first, second) * (1 - 1e-12) <= found <= 2 ** (1 / 3) * max(first, second) * (1 + 1e-12)
    assert_close(found, norm(first, second), rel=1e-9)


def test_a_column_of_tiles_on_vector_lanes() -> None:
    # 128 tiles of 32 x 32, one for each unit; K = 64 and an epilogue of 0.75 x 80 steps
    throughput = 1024 * (64 + 60) / (VECTOR_RATE * 0.8 / (1 + 32 * 2 / 32))
    # a quarter of the area of 64 x 64 takes half of its step
    chain = 64 * 0.9 * VECTOR_STEP_S / 2
    assert_close(busy_s(product(128 * 32, 64, 32), "fp32"), norm(throughput, chain), rel=1e-9)
    # one tile more begins a second wave, of which the first has filled a part of 1 / (1 + (1 / 6)^2)
    waves = 129 / 128 + (2 - 129 / 128) / (1 + 1 / 36)
    work = product(129 * 32, 64, 32)
    assert_close(busy_s(work, "fp32"), norm(waves * throughput, chain), rel=1e-9)
    _, tiling, _, _ = sorted_and_tiled(work, "fp32")
    assert (tiling.count.tolist(), tiling.waves.tolist()) == ([129.0], [2.0])
    assert (tiling.rows.tolist(), tiling.columns.tolist()) == ([32.0], [32.0])
    assert tiling.executed_macs.tolist() == [129 * 32 * 32 * 64]


def test_a_column_of_tiles_on_tensor_cores() -> None:
    # 128 tiles of 64 x 64; K = 128 is too short to split; an epilogue of 2 x 160 steps. 1024 MACs of two bytes a clock
    # ask for twice the bytes that the overhead of 8 holds for
    throughput = 4096 * (128 + 320) / (TENSOR_RATE * 0.9 / (1 + 2 * 8 * 2 / 64))
    chain = 128 * 0.75 * TENSOR_STEP_S
    work = product(128 * 64, 128, 64)
    assert_close(busy_s(work, "fp16"), norm(throughput, chain), rel=1e-9)
    _, tiling, _, _ = sorted_and_tiled(work, "fp16")
    assert (tiling.count.tolist(), tiling.waves.tolist()) == ([128.0], [1.0])


def test_padding_of_tiles_is_executed() -> None:
    # 65 x 65 outputs in 2 x 2 tiles of 64 x 64
    _, tiling, _, _ = sorted_and_tiled(product(65, 64, 65), "fp16")
    assert tiling.count.tolist() == [4.0]
    assert tiling.executed_macs.tolist() == [4 * 64 * 64 * 64]


def test_the_inner_dimension_is_split_only_where_there_are_units_for_it() -> None:
    # 64 tiles of 128 x 128 in two parts each need 128 units
    work = product(1024, 1024, 1024)
    parts = 16_384 * (512 + 60) / (VECTOR_RATE * 0.8 / (1 + 32 * 2 / 128))
    chain = 512 * 0.9 * VECTOR_STEP_S * 2
    assert_close(busy_s(work, "fp32"), norm(parts, chain) + 4e-6, rel=1e-9)
    # with one unit less nothing is split: 512 tiles of 64 x 32 in 4.03 waves
    waves = 512 / 127 + (5 - 512 / 127) / (1 + (4 / 6) ** 2)
    whole = waves * 2048 * (1024 + 60) / (VECTOR_RATE * 0.8 / (1 + 32 * 3 / 64))
    chain = 1024 * 0.9 * VECTOR_STEP_S * math.sqrt(0.5)
    assert_close(busy_s(work, "fp32", gpu(units=127)), norm(whole, chain), rel=1e-9)
    # on tensor cores at most 1.5 parts: one tile of 64 x 64, of whose 3072 steps each part has 2048
    parts = 4096 * (2048 + 320) / (TENSOR_RATE * 0.9 / (1 + 2 * 8 * 2 / 64))
    expected = norm(parts, 2048 * 0.75 * TENSOR_STEP_S) + 1e-7 * math.log2(1.5)
    assert_close(busy_s(product(64, 3072, 64), "fp16"), expected, rel=1e-9)


def test_a_short_inner_dimension_is_not_split() -> None:
    # at least 128 steps in each part
    throughput = 1024 * (128 + 60) / (VECTOR_RATE * 0.8 / (1 + 32 * 2 / 32))
    assert_close(busy_s(product(32, 128, 32), "fp32"), norm(throughput, 128 * 0.9 * VECTOR_STEP_S / 2), rel=1e-9)


def test_a_few_rows_are_not_padded() -> None:
    _, tiling, _, _ = sorted_and_tiled(product(4, 512, 1000), "fp16")
    assert tiling.executed_macs.tolist() == [4 * 512 * 1000]
    # 4 ns for each of up to 2048 steps on tensor cores; nothing but bytes on lanes
    for inner, expected in ((512, 512 * 4e-9), (2048, 2048 * 4e-9), (4096, 0.0)):
        times, _ = timed(product(1, inner, 1000), "fp16")
        assert_close(float(times.busy_s[0]), expected, rel=1e-9)
    assert timed(product(1, 512, 1000), "fp32")[0].busy_s.tolist() == [0.0]


def test_unaligned_channels_run_at_a_rate_of_their_own() -> None:
    # 60 channels of two bytes are no multiple of 16 bytes, 64 are; both take the steps of one block of 64 for each tap.
    # 46 x 46 positions are 34 tiles of 64 x 64, and there are units for 2.5 parts of each
    steps = 9 * 64 / 2.5
    for channels, efficiency in ((60, 0.1), (64, 0.6)):
        work = conv(channels, 64, 46)
        sorts, tiling, _, _ = sorted_and_tiled(work, "fp16")
        assert sorts.dense.tolist() == [True]
        assert tiling.count.tolist() == [34.0]
        throughput = 4096 * (steps + 0.25 * 160) / (TENSOR_RATE * efficiency / (1 + 2 * 8 * 2 / 64))
        expected = norm(throughput, steps * 0.5 * TENSOR_STEP_S) + 1e-7 * math.log2(2.5)
        assert_close(float(tiling.busy_s[0]), expected, rel=1e-9)
        assert tiling.executed_macs.tolist() == [34 * 4096 * 9 * 64]


def test_groups_wait_for_each_other_by_the_root_of_their_number() -> None:
    # 7 x 7 positions of 4 channels in 32 x 32: two tiles of each group. Next to no gain by Winograd's algorithm
    for groups in (16, 64):
        gain = 1 + 0.8 * 4 / 512 * 49 * 4 / 1e6
        throughput = 1024 * (36 + 0.5 * 80) / (VECTOR_RATE * 0.75 / (1 + 32 * 2 / 32) * gain)
        chain = 36 * VECTOR_STEP_S * math.sqrt(groups)
        work = conv(4 * groups, 4 * groups, 7, groups=groups)
        assert_close(busy_s(work, "fp32"), norm(throughput, chain), rel=1e-9)


@pytest.mark.parametrize(
    ("width", "groups", "way"),
    [
        (4, 16, "native"),
        (32, 2, "native"),
        (4, 5, "padded"),
        (24, 4, "fallback"),
        (48, 4, "fallback"),
        (56, 4, "looped"),
        (64, 4, "looped"),
    ],
)
def test_groups_run_by_their_width_on_tensor_cores(width: int, groups: int, way: str) -> None:
    work = conv(width * groups, width * groups, 14, groups=groups)
    macs = 196 * width * width * 9 * groups
    sorts, tiling, kernels, engine = sorted_and_tiled(work, "fp16")
    busy, rate, slots = native_seconds(kernels, engine, sorts)
    wait = 10e-6 * math.sqrt(groups)
    peak = MACS_PER_S["fp16"]
    expected, at_rate = {
        "native": (5e-6, 0.0),
        "padded": (macs * 32 / width / (0.05 * peak), macs * 32 / width / (0.05 * peak)),
        "fallback": (norm(macs / (0.01 * peak), wait), macs / (0.01 * peak)),
        "looped": (0.0, 0.0),
    }[way]
    # a kernel of small groups pads each to 32 channels
    padding = {"native": 32 / width, "padded": 32 / width, "fallback": 1.0, "looped": 0.0}[way]
    assert_close(float(slots[0]), macs * padding, rel=1e-12)
    assert_close(float(busy[0]), expected, rel=1e-9)
    assert_close(float(rate[0]), at_rate, rel=1e-9)
    times, _ = timed(work, "fp16")
    looped = way == "looped"
    assert_close(float(times.busy_s[0]), norm(float(tiling.busy_s[0]), wait) if looped else expected, rel=1e-9)
    # each group is a launch of the host where a library loops over them
    assert times.looped_count.tolist() == [groups if looped else 0.0]
    # on lanes there is one way for all
    assert not native_seconds(kernels, sorted_and_tiled(work, "fp32")[3], sorts)[2].any()


def test_wide_groups_run_at_a_rate_that_grows_with_their_width() -> None:
    for width, efficiency in ((64, 0.2), (128, 0.2 * 128 / 64)):
        steps = 9 * width
        throughput = 4096 * (steps + 0.25 * 160) / (TENSOR_RATE * efficiency / (1 + 2 * 8 * 2 / 64))
        work = conv(4 * width, 4 * width, 14, groups=4)
        assert_close(busy_s(work, "fp16"), norm(throughput, steps * TENSOR_STEP_S * math.sqrt(4)), rel=1e-9)


def test_a_stem_pays_for_addresses_and_for_its_rate() -> None:
    # 3 to 64 channels, 7 x 7 windows that overlap, K = 147
    work = conv(3, 64, 224, 7, stride=2)
    sorts, _, kernels, engine = sorted_and_tiled(work, "fp16")
    assert sorts.stem.tolist() == [True]
    outputs = 112 * 112 * 64
    throughput = outputs / (2.5 * ISSUE_HZ) + outputs * 147 / (0.3 * MACS_PER_S["fp16"])
    found = float(stem_seconds(kernels, engine, sorts)[0])
    assert_close(found, norm(throughput, 147 * 200 / CLOCK_HZ), rel=1e-9)
    # its blocks are not cut by shape: 64 x 64
    assert time_operators(kernels, engine, np.zeros(1)).block_count.tolist() == [112 * 112 / 64]
    # on lanes it is a convolution as any other
    assert sorted_and_tiled(work, "fp32")[0].dense.tolist() == [True]


def test_patches_that_do_not_overlap_have_a_rate_of_their_own() -> None:
    # 4 x 4 windows of stride 4, 3 to 96 channels, K = 48: every position of the input is read once
    work = conv(3, 96, 224, 4, stride=4)
    sorts, _, kernels, engine = sorted_and_tiled(work, "fp16")
    outputs = 56 * 56 * 96
    throughput = outputs / (2.5 * ISSUE_HZ) + outputs * 48 / (0.02 * MACS_PER_S["fp16"])
    found = float(stem_seconds(kernels, engine, sorts)[0])
    assert_close(found, norm(throughput, 48 * 200 / CLOCK_HZ), rel=1e-9)


def share(work: WorkloadColumns, precision: str = "fp32") -> float:
    return float(sorted_and_tiled(work, precision)[1].multiplication_share[0])


def test_winograd_gains_with_channels_and_outputs() -> None:
    # 512 channels are enough, 14 x 14 x 512 outputs of a million are not
    assert_close(share(conv(512, 512, 14)), 1 / (1 + 0.8 * 14 * 14 * 512 / 1e6), rel=1e-9)
    # both are: the whole gain
    assert_close(share(conv(512, 512, 14, batch=32)), 1 / 1.8, rel=1e-9)
    # half of 512 channels
    assert_close(share(conv(256, 512, 14, batch=32)), 1 / (1 + 0.8 / 2), rel=1e-9)


@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (1, 1), (1, 2), (5, 1), (7, 2)])
def test_winograd_is_for_windows_of_nine_taps_without_a_stride(kernel: int, stride: int) -> None:
    assert share(conv(512, 512, 28, kernel, stride=stride, batch=8)) == 1.0


def test_tensor_cores_multiply_all() -> None:
    assert share(conv(512, 512, 28, batch=8), "fp16") == 1.0


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(3, 40), st.sampled_from([1, 3, 5]), st.sampled_from([1, 2]),
    st.sampled_from(["fp32", "fp16"]),
)  # fmt: skip
def test_multiplications_are_a_part_of_the_slots(
    channels: int, outputs: int, size: int, kernel: int, stride: int, precision: str
) -> None:
    work = conv(16 * channels, 16 * outputs, size, kernel, stride=stride)
    _, tiling, _, _ = sorted_and_tiled(work, precision)
    assert 1 / 1.8 <= float(tiling.multiplication_share[0]) <= 1.0
    assert float(tiling.executed_macs[0]) >= float(work.mac_count[0])
    assert float(tiling.busy_s[0]) > 0.0


def test_each_product_is_of_one_sort() -> None:
    works = (
        conv(64, 64, 14),
        conv(64, 64, 14, 1),
        conv(3, 64, 32, 7, stride=2),
        conv(64, 64, 14, groups=4),
        product(8, 16, 32),
        columns(Function(torch.matmul), torch.empty(4, 5, 6, device="meta"), torch.empty(4, 6, 7, device="meta")),
    )
    for work in works:
        for precision in ("fp32", "fp16"):
            sorts, _, _, _ = sorted_and_tiled(work, precision)
            masks = (sorts.dense, sorts.pointwise, sorts.stem, sorts.linear, sorts.batched, sorts.grouped)
            count = np.sum([mask[work.mac_count > 0] for mask in masks], axis=0)
            assert (count == 1).all()


def test_convolutions_that_leave_out_positions_are_strided() -> None:
    assert sorted_and_tiled(conv(64, 64, 28, 1, stride=2), "fp16")[0].strided.tolist() == [True]
    assert sorted_and_tiled(conv(64, 64, 28, 1), "fp16")[0].strided.tolist() == [False]
    # 92 x 92 positions are 67 tiles of 128 x 64 in one tap: 1.5 times slower, with a chain that does not change
    throughput = 8192 * (64 + 160) / (TENSOR_RATE * 0.6 / (1 + 2 * 8 * 3 / 128))
    chain = 64 * TENSOR_STEP_S * 2**0.25
    for size, stride, slowdown in ((92, 1, 1.0), (184, 2, 1.5)):
        found = busy_s(conv(64, 64, size, 1, stride=stride), "fp16")
        assert_close(found, norm(slowdown * throughput, chain), rel=1e-9)


def test_two_activations_multiply_in_blocks() -> None:
    # 12 heads of 65 x 65 outputs: 4 blocks each, fewer than units; K = 20 is two blocks of 16
    work = columns(
        Function(torch.matmul), torch.empty(12, 65, 20, device="meta"), torch.empty(12, 20, 65, device="meta")
    )
    for precision, clocks, efficiency in (("fp32", 500, 0.7), ("fp16", 2000, 0.5)):
        times, _ = timed(work, precision)
        expected = UNITS * (clocks / ISSUE_HZ + 4096 * 32 / (efficiency * MACS_PER_S[precision]))
        assert_close(float(times.busy_s[0]), expected, rel=1e-9)
        assert times.block_count.tolist() == [48.0]
