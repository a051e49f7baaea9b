"""NPUs: one layer by hand on toys: each way an engine holds its operands, and where weights live."""

from __future__ import annotations

import attrs
import pytest

from chip import DRAM_BYTES_PER_S, npu, number
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, with_level
from joulemap.domain.hardware import Hardware
from joulemap.system.errors import UnsupportedError

MOVED = INPUT + WEIGHT + OUTPUT
BUSY_HZ = 1e9 * 0.5
"""Clock of the tensor engines times their efficiency."""


def holds_weights() -> Hardware:
    """Return two engines that hold 64 x 64 weights."""
    return npu(units=2, macs_per_clock={"bf16": 4096.0, "int8": 8192.0}, weight_rows=64.0, weight_columns=64.0)


def holds_outputs(*, edge: float = 128.0, units: int = 2, **geometry: float) -> Hardware:
    """Return engines of 16,384 MACs per clock, or four times a block, that hold square blocks of outputs."""
    macs = {"bf16": 128.0 * 128.0, "int8": 4.0 * edge * edge}
    return npu(units=units, macs_per_clock=macs, output_rows=edge, output_columns=edge, **geometry)


def fabric() -> Hardware:
    """Return a dataflow fabric of 20,000 MACs per clock without DRAM, an image in four intervals."""
    geometry = {"dataflow_intervals": 4.0, "resident_programs": 1.0, "host_link_lanes": 4.0}
    return npu(units=1, macs_per_clock={"int8": 20_000.0}, **geometry)


def test_weights_stay_while_rows_stream() -> None:
    # 9 x 2 weight tiles of 64 x 64, 784 rows in two blocks: 36 tiles over two engines, 18 waves of 392 rows; four rows
    # of weights load in a clock, as many fill and drain
    found = run(holds_weights(), "bf16", convolution())
    assert found.subgraphs.tile_count.tolist() == [36]
    assert found.subgraphs.wave_count.tolist() == [18]
    assert_close(compute_s(found), (18 * 392 + 128 / 4) / BUSY_HZ, rel=1e-9)
    # two bytes an element, weights anew
    assert_close(float(found.subgraphs.memory_s[0]), 2 * MOVED / DRAM_BYTES_PER_S, rel=1e-9)
    assert count(found, "tensor_engine", "bf16_mac") == MACS
    assert count(found, "weight_buffer", "read") == 36 * 64 * 64 * 2
    # a partial sum for each of nine weight tiles along K
    assert count(found, "accumulator", "access") == 8 * 784 * 128 * 9


def test_a_precision_at_twice_the_rate_streams_two_rows_per_clock() -> None:
    found = run(holds_weights(), "int8", convolution())
    assert_close(compute_s(found), (18 * 196 + 32) / BUSY_HZ, rel=1e-9)


def test_an_array_is_not_free_before_its_weights_are_loaded() -> None:
    # 2 x 1 tiles of 512 x 512 and two blocks of 392 rows on four engines that take 16 rows in a clock: 392 x 512 x 512
    # MACs are 25 clocks, 512 rows of weights at four a clock 128
    fast = npu(units=4, macs_per_clock={"int8": 16.0 * 512 * 512}, weight_rows=512.0, weight_columns=512.0)
    assert_close(compute_s(run(fast, "int8", convolution())), (128 + 1024 / 4) / BUSY_HZ, rel=1e-9)


def test_outputs_stay_while_operands_stream() -> None:
    # 7 x 1 blocks of 128 x 128 over two engines: four waves of 576 steps and 16 between blocks
    found = run(holds_outputs(), "bf16", convolution())
    assert found.subgraphs.wave_count.tolist() == [4]
    assert_close(compute_s(found), 4 * (576 + 16) / BUSY_HZ, rel=1e-9)
    # 25 x 4 blocks of 32 x 32 over 16 engines, four steps of K per clock
    found = run(holds_outputs(edge=32.0, units=16), "int8", convolution())
    assert found.subgraphs.wave_count.tolist() == [7]
    assert_close(compute_s(found), 7 * (576 / 4 + 16) / BUSY_HZ, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 8])
def test_a_dataflow_fabric_is_paced_by_its_largest_layer(batch: int) -> None:
    # 57.8 M MACs at half of 20,000 are 5,780 clocks, 784 positions at 10 clocks are more; an image takes four intervals
    found = run(fabric(), "int8", convolution(batch=batch))
    assert_close(compute_s(found), (batch + 3) * 784 * 10 / 1e9, rel=1e-9)


def test_a_fabric_with_few_positions_is_paced_by_its_macs() -> None:
    found = run(fabric(), "int8", convolution(512, 512))
    assert_close(compute_s(found), 4 * 784 * 512 * 512 * 9 / (20_000 * BUSY_HZ), rel=1e-9)


def test_a_depthwise_convolution_takes_the_vector_engine() -> None:
    # 451,584 MACs on two engines of 64 lanes; on the tensor engines each of 64 channels would fill a column of 128
    found = run(holds_outputs(), "bf16", convolution(64, 64, 64))
    assert_close(compute_s(found), 784 * 64 * 9 / (2 * 64 * 1e9), rel=1e-9)
    assert count(found, "vector_engine", "bf16_mac") == 784 * 64 * 9
    assert count(found, "tensor_engine", "bf16_mac") == 0


def test_a_chip_without_dram_moves_over_the_host_link() -> None:
    found = run(fabric(), "int8", convolution())
    assert count(found, "host_link", "read") == INPUT
    assert count(found, "host_link", "write") == OUTPUT
    assert count(found, "dram", "read") == 0


@pytest.mark.parametrize("hardware", [fabric(), holds_outputs(resident_programs=1.0)], ids=["link", "dram"])
def test_weights_that_do_not_fit_stream_in_every_time(hardware: Hardware) -> None:
    held = run(hardware, "int8", convolution())
    streamed = run(with_level(hardware, "sram", WEIGHT), "int8", convolution())
    assert held.subgraphs.dram_bytes.tolist() == [INPUT + OUTPUT]
    assert streamed.subgraphs.dram_bytes.tolist() == [MOVED]


@pytest.mark.parametrize("hardware", [holds_weights(), holds_outputs()], ids=["weights", "outputs"])
def test_others_load_weights_for_every_run(hardware: Hardware) -> None:
    assert run(hardware, "bf16", convolution()).subgraphs.dram_bytes.tolist() == [2 * MOVED]


def test_images_follow_one_another_through_resident_weights() -> None:
    # eight images together would not fit beside the weights, one does
    hardware = with_level(holds_outputs(resident_programs=1.0), "sram", MOVED)
    found = run(hardware, "int8", convolution(batch=8))
    assert found.subgraphs.dram_bytes.tolist() == [8 * (INPUT + OUTPUT)]


def test_a_model_that_does_not_fit_a_chip_without_dram_or_host_memory_is_refused() -> None:
    small = attrs.evolve(fabric(), memory_capacity=number(1e5, "B"))
    with pytest.raises(UnsupportedError, match=r"toy_npu has 0\.0001 GB of memory"):
        run(small, "int8", convolution())
