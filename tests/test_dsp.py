"""DSPs: one layer by hand, on the matrix engine and on the vector unit."""

from __future__ import annotations

from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, target

MOVED = INPUT + WEIGHT + OUTPUT


def test_the_matrix_engine_takes_a_convolution_in_panels() -> None:
    # 13 x 2 tiles of 64 x 64 on one engine; each holds 9 panels of 64 rows, 576 cycles at half efficiency, and fills
    found = run(target("tda4vm_c7x_mma"), "int8", convolution())
    assert found.subgraphs.tile_count.tolist() == [26]
    assert found.subgraphs.wave_count.tolist() == [26]
    assert_close(compute_s(found), 26 * (576 / 0.5 + 128) / 1e9, rel=1e-9)
    # everything fits 8 MiB of MSMC but enters, leaves or is a weight: LPDDR at 70 % of 14.9 GB/s
    assert_close(float(found.subgraphs.memory_s[0]), MOVED / (14.9e9 * 0.7), rel=1e-9)
    assert found.subgraphs.launch_s.tolist() == [1e-5]


def test_the_matrix_engine_counts_macs_panels_and_idle_slots() -> None:
    found = run(target("tda4vm_c7x_mma"), "int8", convolution())
    assert count(found, "matrix_unit", "int8_mac") == MACS
    assert count(found, "vector_fma", "int8_mac") == 0
    # 784 rows are padded to 13 x 64
    assert count(found, "matrix_unit", "idle_cycle") == (832 - 784) * 128 * 576
    # a partial sum of four bytes, read and written for each of nine panels
    assert count(found, "accumulator", "access") == 8 * 784 * 128 * 9
    # one matrix instruction per cycle, each in a packet, and the stores of results
    packets = 26 * (576 / 0.5 + 128) + OUTPUT / 64 / 2
    assert_close(count(found, "vliw_packet", "fetch"), packets, rel=1e-12)
    assert_close(count(found, "scalar_alu", "operation"), packets, rel=1e-12)


def test_without_a_matrix_engine_contexts_take_tiles_of_vector_registers() -> None:
    # 98 x 4 tiles of 8 x 32 over four contexts; 512 MACs per clock at 16 %
    found = run(target("qrb5165_hexagon698"), "int8", convolution())
    assert found.subgraphs.tile_count.tolist() == [392]
    assert found.subgraphs.wave_count.tolist() == [98]
    assert found.subgraphs.units_used_count.tolist() == [4]
    assert_close(compute_s(found), 98 * 8 * 32 * 576 / (512 * 0.16) / 1.5e9, rel=1e-9)
    assert count(found, "vector_fma", "int8_mac") == MACS
    # panels of 8 x 32: each operand is read from the scratch once per tile
    assert_close(count(found, "local_memory", "read"), MACS * (1 / 8 + 1 / 32) + OUTPUT, rel=1e-12)


def test_a_depthwise_convolution_stays_on_the_vector_unit() -> None:
    # two pipes of 32 16-bit lanes at a quarter: 16 MACs per clock
    found = run(target("tda4vm_c7x_mma"), "int8", convolution(64, 64, 64))
    assert_close(compute_s(found), 784 * 64 * 9 / 16 / 1e9, rel=1e-9)
    assert count(found, "vector_fma", "int8_mac") == 784 * 64 * 9
    assert count(found, "matrix_unit", "int8_mac") == 0


def test_floating_point_has_the_vector_unit_alone() -> None:
    found = run(target("tda4vm_c7x_mma"), "fp32", convolution())
    # 98 x 8 tiles of 8 x 16; 40 MACs per clock at 16 %
    assert_close(compute_s(found), 98 * 8 * 8 * 16 * 576 / (40 * 0.16) / 1e9, rel=1e-9)
    assert count(found, "vector_fma", "fp32_mac") == MACS
