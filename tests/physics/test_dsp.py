"""DSPs: one layer by hand on a toy, on the matrix engine and on the vector unit."""

from __future__ import annotations

from chip import DRAM_BYTES_PER_S, LAUNCH_S, dsp
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run

MOVED = INPUT + WEIGHT + OUTPUT


def test_the_matrix_engine_takes_a_convolution_in_panels() -> None:
    # 25 x 4 tiles of 32 x 32 on one engine; each holds 18 panels of 32 rows, 576 cycles at half efficiency, and fills
    found = run(dsp(), "int8", convolution())
    assert found.subgraphs.tile_count.tolist() == [100]
    assert found.subgraphs.wave_count.tolist() == [100]
    assert_close(compute_s(found), 100 * (576 / 0.5 + 64) / 1e9)
    # everything fits 8 MiB of MSMC but enters, leaves or is a weight
    assert_close(float(found.subgraphs.memory_s[0]), MOVED / DRAM_BYTES_PER_S)
    assert found.subgraphs.launch_s.tolist() == [LAUNCH_S]


def test_the_matrix_engine_counts_macs_panels_and_idle_slots() -> None:
    found = run(dsp(), "int8", convolution())
    assert count(found, "matrix_unit", "int8_mac") == MACS
    assert count(found, "vector_fma", "int8_mac") == 0
    # 784 rows are padded to 25 x 32
    assert count(found, "matrix_unit", "idle_cycle") == (800 - 784) * 128 * 576
    # a partial sum of four bytes, read and written for each of 18 panels
    assert count(found, "accumulator", "access") == 8 * 784 * 128 * 18
    # one matrix instruction per cycle, each in a packet, and the stores of results
    packets = 100 * (576 / 0.5 + 64) + OUTPUT / 64 / 2
    assert_close(count(found, "vliw_packet", "fetch"), packets)
    assert_close(count(found, "scalar_alu", "operation"), packets)


def test_without_a_matrix_engine_contexts_take_tiles_of_vector_registers() -> None:
    # 98 x 8 tiles of 8 x 16 over four contexts; 64 MACs per clock at a quarter
    found = run(dsp(has_matrix=False), "int8", convolution())
    assert found.subgraphs.tile_count.tolist() == [784]
    assert found.subgraphs.wave_count.tolist() == [196]
    assert found.subgraphs.units_used_count.tolist() == [4]
    assert_close(compute_s(found), 196 * 8 * 16 * 576 / (64 * 0.25) / 1e9)
    assert count(found, "vector_fma", "int8_mac") == MACS
    # panels of 8 x 16: each operand is read from the scratch once per tile
    assert_close(count(found, "local_memory", "read"), MACS * (1 / 8 + 1 / 16))
    assert count(found, "local_memory", "drain") == OUTPUT


def test_a_depthwise_convolution_stays_on_the_vector_unit() -> None:
    # two pipes of 32 16-bit lanes at a half: 32 MACs per clock
    found = run(dsp(), "int8", convolution(64, 64, 64))
    assert_close(compute_s(found), 784 * 64 * 9 / 32 / 1e9)
    assert count(found, "vector_fma", "int8_mac") == 784 * 64 * 9
    assert count(found, "matrix_unit", "int8_mac") == 0


def test_floating_point_has_the_vector_unit_alone() -> None:
    found = run(dsp(), "fp32", convolution())
    # 98 x 8 tiles of 8 x 16; 32 MACs per clock at a quarter
    assert_close(compute_s(found), 98 * 8 * 8 * 16 * 576 / (32 * 0.25) / 1e9)
    assert count(found, "vector_fma", "fp32_mac") == MACS
