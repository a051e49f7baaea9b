"""NPUs: one layer by hand for each way an engine holds its operands, and where weights live."""

from __future__ import annotations

import attrs
import pytest

from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, target, with_level
from joulemap.catalog.load import load_catalogue
from joulemap.errors import UnsupportedError

MOVED = INPUT + WEIGHT + OUTPUT


def test_weights_stay_while_rows_stream() -> None:
    # 5 x 1 weight tiles of 128 x 128, 784 rows in two blocks: ten tiles over two cores, five waves of 392 rows
    found = run(target("inferentia2"), "bf16", convolution())
    assert found.subgraphs.tile_count.tolist() == [10]
    assert found.subgraphs.wave_count.tolist() == [5]
    assert_close(compute_s(found), (5 * 392 + 256) / (2.8e9 * 0.7), rel=1e-9)
    # two bytes an element, weights anew: HBM at 80 % of 820 GB/s
    assert_close(float(found.subgraphs.memory_s[0]), 2 * MOVED / (820e9 * 0.8), rel=1e-9)
    assert count(found, "tensor_engine", "bf16_mac") == MACS
    assert count(found, "weight_buffer", "read") == 10 * 128 * 128 * 2
    # a partial sum for each of five weight tiles along K
    assert count(found, "accumulator", "access") == 8 * 784 * 128 * 5


def test_a_precision_at_twice_the_rate_streams_two_rows_per_clock() -> None:
    found = run(target("inferentia2"), "int8", convolution())
    assert_close(compute_s(found), (5 * 196 + 256) / (2.8e9 * 0.7), rel=1e-9)


def test_an_array_that_loads_several_rows_per_clock_fills_sooner() -> None:
    # 2 x 1 tiles of 320 x 320, two blocks of 392 rows, four planes: one wave; (320 + 320) / 8 to fill and drain
    found = run(target("groq_tsp_v1"), "int8", convolution())
    assert_close(compute_s(found), (392 + 80) / (0.9e9 * 0.7), rel=1e-9)


def test_outputs_stay_while_operands_stream() -> None:
    # 4 x 1 blocks of 256 x 256 over two engines: two waves of 576 steps and 16 between blocks
    found = run(target("gaudi2"), "bf16", convolution())
    assert found.subgraphs.wave_count.tolist() == [2]
    assert_close(compute_s(found), 2 * (576 + 16) / (1.65e9 * 0.7), rel=1e-9)
    # 25 x 4 blocks of 32 x 32 over 16 cores, eight steps of K per clock
    found = run(target("cloud_ai_100_pro"), "int8", convolution())
    assert found.subgraphs.wave_count.tolist() == [7]
    assert_close(compute_s(found), 7 * (576 / 8 + 16) / (1.43e9 * 0.7), rel=1e-9)


@pytest.mark.parametrize("batch", [1, 8])
def test_a_dataflow_fabric_is_paced_by_its_largest_layer(batch: int) -> None:
    # 57.8 M MACs at 42 % of 32,500 are 4,235 clocks, 784 positions at 10 clocks are more; an image takes four intervals
    found = run(target("hailo_8"), "int8", convolution(batch=batch))
    assert_close(compute_s(found), (batch + 3) * 784 * 10 / 0.4e9, rel=1e-9)


def test_a_fabric_with_few_positions_is_paced_by_its_macs() -> None:
    wide = convolution(512, 512)
    found = run(target("hailo_8"), "int8", wide)
    assert_close(compute_s(found), 4 * 784 * 512 * 512 * 9 / (32_500 * 0.42 * 0.4e9), rel=1e-9)


def test_a_depthwise_convolution_takes_the_vector_engine() -> None:
    # 451,584 MACs on 24 cores of 128 lanes; on the engine each of 64 channels would fill a column of 256
    found = run(target("gaudi2"), "bf16", convolution(64, 64, 64))
    assert_close(compute_s(found), 784 * 64 * 9 / (24 * 128 * 1.65e9), rel=1e-9)
    assert count(found, "vector_engine", "bf16_mac") == 784 * 64 * 9
    assert count(found, "tensor_engine", "bf16_mac") == 0


@pytest.mark.parametrize("name", ["hailo_8", "groq_tsp_v1"])
def test_a_chip_without_dram_moves_over_the_host_link(name: str) -> None:
    found = run(target(name), "int8", convolution())
    assert count(found, "host_link", "read") == INPUT
    assert count(found, "host_link", "write") == OUTPUT
    assert count(found, "dram", "read") == 0


@pytest.mark.parametrize("name", ["hailo_8", "cloud_ai_100_pro"])
def test_weights_that_do_not_fit_stream_in_every_time(name: str) -> None:
    held = run(target(name), "int8", convolution())
    streamed = run(with_level(target(name), "sram", WEIGHT), "int8", convolution())
    assert held.subgraphs.dram_bytes.tolist() == [INPUT + OUTPUT]
    assert streamed.subgraphs.dram_bytes.tolist() == [MOVED]


@pytest.mark.parametrize("name", ["gaudi2", "inferentia2"])
def test_others_load_weights_for_every_run(name: str) -> None:
    assert run(target(name), "bf16", convolution()).subgraphs.dram_bytes.tolist() == [2 * MOVED]


def test_images_follow_one_another_through_resident_weights() -> None:
    # eight images together would not fit beside the weights, one does
    hardware = with_level(target("cloud_ai_100_pro"), "sram", MOVED)
    found = run(hardware, "int8", convolution(batch=8))
    assert found.subgraphs.dram_bytes.tolist() == [8 * (INPUT + OUTPUT)]


def test_a_model_that_does_not_fit_a_chip_without_dram_or_host_memory_is_refused() -> None:
    hardware = load_catalogue().find("groq_tsp_v1")
    small = attrs.evolve(hardware, memory_capacity=attrs.evolve(hardware.memory_capacity, value=1e5))
    with pytest.raises(UnsupportedError, match=r"groq_tsp_v1 has 0\.0001 GB of memory"):
        run(small, "int8", convolution())
