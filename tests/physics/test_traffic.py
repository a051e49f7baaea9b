"""Bytes by memory level, from the sizes of a GEMM and of the level."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from compare import assert_close
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.traffic import (
    block_edges,
    ceil_divide,
    dram_bytes,
    far_bytes,
    held_data,
    held_share,
    held_weights,
    level_bytes,
    tiled_bytes,
)
from joulemap.physics.workload import columns_of
from models import Gemm, Mlp, Residual, columns, image, trace_zoo

MIB = 2**20
OPERAND = 4 * MIB
"""1024 x 1024 fp32 elements."""


@cache
def gemm() -> KernelColumns:
    return form_kernels(columns(Gemm(), torch.empty(1024, 1024, device="meta")), "fp32", "fused")


@cache
def resnet18(runtime: str) -> KernelColumns:
    return form_kernels(columns_of(trace_zoo("resnet18")), "fp32", runtime)


def total(values: NDArray[np.float64]) -> float:
    return float(values.sum())


@pytest.mark.parametrize(("value", "pieces"), [(0.0, 0.0), (1.0, 1.0), (63.0, 1.0), (64.0, 1.0), (65.0, 2.0)])
def test_a_partial_piece_is_a_whole_one(value: float, pieces: float) -> None:
    assert ceil_divide(np.array([value]), 64.0).tolist() == [pieces]


@pytest.mark.parametrize(
    ("tile_m", "tile_n", "expected"),
    [
        # 2^30 MACs x (1/128 + 1/128) x 4 bytes
        (128, 128, 64 * MIB),
        # 2^30 x (1/64 + 1/256) x 4
        (64, 256, 80 * MIB),
        # one tile reads each operand once
        (1024, 1024, 2 * OPERAND),
        # a tile larger than the problem reads no less
        (4096, 4096, 2 * OPERAND),
    ],
)
def test_tiles_read_both_operands_again(tile_m: int, tile_n: int, expected: int) -> None:
    assert tiled_bytes(gemm(), float(tile_m), float(tile_n), 4.0).tolist() == [expected]


@pytest.mark.parametrize(
    ("capacity", "keeps_weights", "read", "written"),
    [
        # the whole model fits and stays: only the input comes in
        (64 * MIB, True, OPERAND, OPERAND),
        # a scratchpad holds the kernel, but the weights come anew
        (64 * MIB, False, 2 * OPERAND, OPERAND),
        # 8 MiB hold half of the operator's data, and nothing of the weights beside the activations
        (8 * MIB, True, 2 * OPERAND, OPERAND),
        # 6 MiB hold none of them; the smaller operand fits beside pieces of the other
        (6 * MIB, True, 2 * OPERAND, OPERAND),
        # a quarter of one operand fits: the other is read four times
        (1 * MIB, True, OPERAND + 4 * OPERAND, OPERAND),
    ],
)
def test_dram_bytes_of_one_gemm(capacity: int, keeps_weights: bool, read: int, written: int) -> None:
    found_read, found_written = dram_bytes(gemm(), float(capacity), keeps_weights=keeps_weights)
    assert (found_read.tolist(), found_written.tolist()) == ([read], [written])


def test_it_is_the_larger_operand_that_is_read_again() -> None:
    tall = form_kernels(columns(Gemm(), torch.empty(4096, 1024, device="meta")), "fp32", "fused")
    read, _ = dram_bytes(tall, 1.0 * MIB, keeps_weights=True)
    # 16 MiB of rows pass by four quarters of 4 MiB of weights
    assert read.tolist() == [4 * 4 * OPERAND + OPERAND]


@pytest.mark.parametrize(
    ("capacity", "units", "expected"),
    [
        # either operand fits: both are read once
        (4 * MIB, 1, 2 * OPERAND),
        # a quarter of one is held at a time: the other passes by four times
        (1 * MIB, 1, OPERAND + 4 * OPERAND),
        # three blocks of 64 x 64 fit: 2^30 MACs x (1/64 + 1/64) x 4 bytes
        (48 * 1024, 1, 128 * MIB),
        # 16 parts of 256 x 256: four of them side by side read the same rows, four the same columns
        (4 * MIB, 16, 4 * OPERAND + 4 * OPERAND),
        # a unit's blocks are those that fit, however many units there are
        (48 * 1024, 16, 128 * MIB),
    ],
)
def test_bytes_read_from_beyond_a_level(capacity: int, units: int, expected: int) -> None:
    assert level_bytes(gemm(), float(capacity), 4.0, float(units)).tolist() == [expected]


def test_one_row_is_not_cut_between_units_into_parts_that_read_the_weights_again() -> None:
    row = form_kernels(columns(Gemm(), torch.empty(1, 1024, device="meta")), "fp32", "fused")
    # 16 units take 64 columns each, and every one the whole row
    assert level_bytes(row, 1.0 * MIB, 4.0, 16.0).tolist() == [OPERAND + 16 * 4096]


@pytest.mark.parametrize(
    ("rows", "columns", "area", "edges"),
    [(100, 100, 25, (5, 5)), (2, 100, 50, (2, 25)), (100, 2, 50, (25, 2)), (3, 4, 50, (3, 4)), (8, 8, 0.5, (1, 1))],
)
def test_blocks_are_as_square_as_the_product_allows(
    rows: int, columns: int, area: float, edges: tuple[int, int]
) -> None:
    found = block_edges(np.array([float(rows)]), np.array([float(columns)]), area)
    assert tuple(edge.item() for edge in found) == edges


def test_each_operator_is_resident_for_itself() -> None:
    kernels = form_kernels(columns(Residual(), image(1, 4, 8)), "fp32", "fused")
    # the sum and its kernel's convolution do not fit together, but pass their tiles on
    most = float(kernels.moved_bytes.max())
    assert kernels.per_kernel(kernels.moved_bytes).max() > most
    read, _ = dram_bytes(kernels, most, keeps_weights=False)
    assert read.tolist() == (kernels.entering_bytes + kernels.weight_bytes).tolist()


def test_a_level_serves_less_the_more_data_exceed_it() -> None:
    held = held_share(np.array([0.0, 1.0, 1.25, 1.5, 2.0, 9.0]), 1.0)
    assert held.tolist() == [1.0, 1.0, 0.5, 0.0, 0.0, 0.0]


@given(capacity=st.floats(1e5, 1e9))
def test_one_per_cent_of_a_level_moves_few_bytes(capacity: float) -> None:
    kernels = resnet18("fused")

    def moved(size: float) -> float:
        return sum(map(total, far_bytes(kernels, held_data(kernels, size))))

    below, above = moved(capacity), moved(1.01 * capacity)
    assert above <= below <= above + 0.02 * total(kernels.input_bytes + kernels.output_bytes)


def test_values_between_resident_kernels_stay_on_chip() -> None:
    kernels = form_kernels(columns(Mlp(), torch.empty(2, 8, device="meta")), "fp32", "graph")
    read, written = dram_bytes(kernels, 1e6, keeps_weights=True)
    assert read.tolist() == [64.0, 0.0, 0.0]
    assert written.tolist() == [0.0, 0.0, 32.0]


def test_weights_stay_only_beside_the_live_activations() -> None:
    kernels = resnet18("fused")
    enough = float(kernels.total_weight_bytes + kernels.peak_activation_bytes)
    kept, _ = dram_bytes(kernels, enough, keeps_weights=True)
    half, _ = dram_bytes(kernels, enough / 1.125, keeps_weights=True)
    evicted, _ = dram_bytes(kernels, enough / 1.25, keeps_weights=True)
    assert total(kept) == total(kernels.entering_bytes)
    assert_close(total(half) - total(kept), total(kernels.weight_bytes) / 2.0)
    assert_close(total(evicted) - total(kept), total(kernels.weight_bytes))


def test_a_compiler_pins_the_part_of_the_weights_that_fits() -> None:
    kernels = resnet18("fused")
    half = float(kernels.total_weight_bytes / 2.0 + kernels.peak_activation_bytes)
    pinned, _ = dram_bytes(kernels, half, keeps_weights=True, pins_weights=True)
    evicted, _ = dram_bytes(kernels, half, keeps_weights=True)
    scratch, _ = dram_bytes(kernels, half, keeps_weights=False, pins_weights=True)
    kept = float(held_weights(kernels, half) - 0.5) * total(kernels.weight_bytes)
    assert_close(total(pinned) - total(evicted), kept)
    assert total(scratch) > total(pinned)


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
@given(capacity=st.floats(1e3, 1e12))
def test_what_enters_and_leaves_the_model_always_moves(runtime: str, capacity: float) -> None:
    kernels = resnet18(runtime)
    read, written = dram_bytes(kernels, capacity, keeps_weights=False)
    assert (read >= kernels.entering_bytes + kernels.weight_bytes).all()
    assert (written >= kernels.leaving_bytes).all()
    # one image of 3 x 224 x 224, and every weight
    assert total(read) >= 3 * 224 * 224 * 4 + kernels.total_weight_bytes
    assert total(written) >= 1000 * 4
