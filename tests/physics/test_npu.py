"""NPUs: one layer by hand on toys: each way an engine holds its operands, and where weights live."""

from __future__ import annotations

import attrs
import pytest
import torch
from torch import nn

from chip import DRAM_BYTES_PER_S, npu, number
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, target, with_level
from joulemap.catalog.load import find_hardware
from joulemap.domain.operator.name import find_operator
from joulemap.physics.architecture.npu import Npu
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.stream import join_units
from joulemap.physics.workload import columns_of
from joulemap.system.errors import UnsupportedError
from joulemap.trace.single import describe
from models import KEY, columns, image, shipped
from npu_case import fabric

MOVED = INPUT + WEIGHT + OUTPUT
BUSY_HZ = 1e9 * 0.5
"""Clock of the tensor engines times their efficiency."""


class Square(nn.Module):
    """A product of a matrix with itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product with the transpose."""
        return x @ x.transpose(1, 2)


def holds_weights() -> Hardware:
    """Return two engines that hold 64 x 64 weights."""
    return npu(units=2, macs_per_clock={"bf16": 4096.0, "int8": 8192.0}, weight_rows=64.0, weight_columns=64.0)


def holds_outputs(*, edge: float = 128.0, units: int = 2, **geometry: float) -> Hardware:
    """Return engines of 16,384 MACs per clock, or four times a block, that hold square blocks of outputs."""
    macs = {"bf16": 128.0 * 128.0, "int8": 4.0 * edge * edge}
    return npu(units=units, macs_per_clock=macs, output_rows=edge, output_columns=edge, **geometry)


def test_weights_stay_while_rows_stream() -> None:
    # 9 x 2 weight tiles of 64 x 64, 784 rows in two blocks: 36 tiles over two engines, 18 waves of 392 rows; four rows
    # of weights load in a clock, as many fill and drain
    found = run(holds_weights(), "bf16", convolution())
    assert found.subgraphs.tile_count.tolist() == [36]
    assert found.subgraphs.wave_count.tolist() == [18]
    assert_close(compute_s(found), (18 * 392 + 128 / 4) / BUSY_HZ)
    # two bytes an element, weights anew
    assert_close(float(found.subgraphs.memory_s[0]), 2 * MOVED / DRAM_BYTES_PER_S)
    assert count(found, "tensor_engine", "bf16_mac") == MACS
    assert count(found, "weight_buffer", "read") == 36 * 64 * 64 * 2
    # a partial sum for each of nine weight tiles along K
    assert count(found, "accumulator", "access") == 8 * 784 * 128 * 9


def test_a_precision_at_twice_the_rate_streams_two_rows_per_clock() -> None:
    found = run(holds_weights(), "int8", convolution())
    assert_close(compute_s(found), (18 * 196 + 32) / BUSY_HZ)


def test_an_array_is_not_free_before_its_weights_are_loaded() -> None:
    # 2 x 1 tiles of 512 x 512 and two blocks of 392 rows on four engines that take 16 rows in a clock: 392 x 512 x 512
    # MACs are 25 clocks, 512 rows of weights at four a clock 128
    fast = npu(units=4, macs_per_clock={"int8": 16.0 * 512 * 512}, weight_rows=512.0, weight_columns=512.0)
    assert_close(compute_s(run(fast, "int8", convolution())), (128 + 1024 / 4) / BUSY_HZ)


def test_taps_of_few_channels_run_side_by_side() -> None:
    # 64 channels of nine taps: two side by side in 128 rows, five passes of 784 rows in two blocks over two engines; in
    # pieces of 128 rows a tap has them alone, nine passes
    for piece, depth in ((64.0, 5), (128.0, 9)):
        array = {"weight_rows": 128.0, "weight_columns": 128.0, "tap_rows": piece}
        found = run(npu(units=2, macs_per_clock={"bf16": 16384.0}, **array), "bf16", convolution())
        assert found.subgraphs.tile_count.tolist() == [depth * 2]
        assert_close(compute_s(found), (depth * 392 + 256 / 4) / BUSY_HZ)


def test_a_batch_is_divided_among_copies() -> None:
    # one image has one of two engines, half of the SRAM's width and what its DMA engines reach of the memory; of two
    # images each has one, and reads weights of its own: as long
    chip = {"weight_rows": 64.0, "weight_columns": 64.0, "stream_units": 1.0, "unit_memory_share": 0.3}
    whole, copies = (
        npu(units=2, macs_per_clock={"bf16": 4096.0}, **chip, **more) for more in ({}, {"divided_batches": 1.0})
    )
    one, two = (run(copies, "bf16", convolution(batch=batch)) for batch in (1, 2))
    assert_close(compute_s(one), (36 * 392 + 128 / 4) / BUSY_HZ)
    assert_close(compute_s(two), compute_s(run(whole, "bf16", convolution(batch=2))))
    for found in (one, two):
        assert_close(float(found.subgraphs.memory_s[0]), 2 * MOVED / (0.3 * DRAM_BYTES_PER_S))
    # busy for a chip of which one image has a half of the units and 0.3 of the memory
    busy = [Npu().place(form_kernels(convolution(batch=batch), "bf16", "fused"), copies).busy_s for batch in (1, 2)]
    assert_close(float(busy[0][0].sum()), compute_s(one) / 2.0)
    assert_close(float(busy[0][1].sum()), 2 * MOVED / DRAM_BYTES_PER_S)
    assert_close(float(busy[1][1].sum()), 2 * 2 * MOVED / DRAM_BYTES_PER_S)
    joined = join_units(copies)
    assert compute_s(run(joined, "bf16", convolution())) == compute_s(run(whole, "bf16", convolution()))
    assert joined.coefficient("program_start") == 0.0


def test_a_copy_pads_its_own_tiles() -> None:
    # 24.5 rows of blocks are 25 for each copy; two images together would be 49
    divided = holds_outputs(edge=32.0, units=2, stream_units=1.0, divided_batches=1.0)
    one, two, three = (run(divided, "int8", convolution(batch=batch)) for batch in (1, 2, 3))
    assert [found.subgraphs.wave_count.tolist() for found in (one, two, three)] == [[100], [100], [196]]
    assert [found.subgraphs.tile_count.tolist() for found in (one, two, three)] == [[100], [200], [294]]
    assert compute_s(two) == compute_s(one)
    assert_close(compute_s(three), 196 * (576 / 4 + 16) / BUSY_HZ)


def test_a_batch_of_a_program_for_one_core_stays_there() -> None:
    # both images are 49 rows of blocks of one core: 49 x 4
    chip = {"stream_units": 1.0, "divided_batches": 1.0, "whole_batches": 1.0}
    two = run(holds_outputs(edge=32.0, units=2, **chip), "int8", convolution(batch=2))
    assert two.subgraphs.wave_count.tolist() == two.subgraphs.tile_count.tolist() == [196]
    assert_close(compute_s(two), 196 * (576 / 4 + 16) / BUSY_HZ)


def test_outputs_stay_while_operands_stream() -> None:
    # 7 x 1 blocks of 128 x 128 over two engines: four waves of 576 steps and 16 between blocks
    found = run(holds_outputs(), "bf16", convolution())
    assert found.subgraphs.wave_count.tolist() == [4]
    assert_close(compute_s(found), 4 * (576 + 16) / BUSY_HZ)
    # 25 x 4 blocks of 32 x 32 over 16 engines, four steps of K per clock
    found = run(holds_outputs(edge=32.0, units=16), "int8", convolution())
    assert found.subgraphs.wave_count.tolist() == [7]
    assert_close(compute_s(found), 7 * (576 / 4 + 16) / BUSY_HZ)


@pytest.mark.parametrize("batch", [1, 8])
def test_a_layer_takes_all_units_that_a_compiler_gives(batch: int) -> None:
    # of an image 16 blocks of 50 rows x 3 tiles x (576 + 16) clocks over 6 of 8 units; an image takes four intervals
    found = run(fabric(), "int8", convolution(batch=batch))
    assert_close(compute_s(found), (batch + 3) * 16 * 3 * 592 / 6 / BUSY_HZ)


def test_images_follow_one_another_no_faster_than_over_the_host_link() -> None:
    # 150,528 bytes of an image at 1 GB/s take 151 us, its layer 9 us
    chip = fabric()
    slow = attrs.evolve(chip, coefficients={**chip.coefficients, "host_transfer": number(1e-9, "s")})
    two = run(slow, "int8", convolution(batch=2))
    assert_close(1e-15 * two.interval_fs, 2 * (INPUT + OUTPUT) * 1e-9)


def test_a_layer_passes_on_so_many_bytes_in_a_clock() -> None:
    # 9 steps of K: 16 x 3 x (9 + 16) / 6 are 400 clocks at half efficiency, 784 x 128 bytes at 16 a clock 6,272
    found = run(fabric(), "int8", columns(nn.Conv2d(1, 128, 3, padding=1, bias=False, device="meta"), image(1, 1, 28)))
    assert_close(compute_s(found), 4 * 784 * 128 / 16 / 1e9)


def test_a_product_of_two_activations_has_one_unit() -> None:
    # 2 x 2 tiles x (64 + 16) clocks; 64 x 64 bytes at 16 a clock are 256
    found = run(fabric(), "int8", columns(Square(), torch.zeros(1, 64, 64, device="meta")))
    assert_close(compute_s(found), 4 * 2 * 2 * 80 / BUSY_HZ)


@pytest.mark.parametrize(("layers", "contexts"), [(6, 1), (7, 2), (10, 3)])
def test_every_layer_has_a_unit_in_some_context(layers: int, contexts: int) -> None:
    # 6 of 8 units in one context, 4.8 in each of several: ten layers are three contexts
    chain = nn.Sequential(*(nn.Conv2d(8, 8, 1, bias=False, device="meta") for _ in range(layers)))
    found = run(fabric(), "int8", columns(chain, image(1, 8, 4)))
    loaded = 64 * layers if contexts > 1 else 0
    # each boundary of contexts is at any of the layers alike: 128 bytes out and in, of all but the first and last
    crossing = 2 * (layers - 1) * 128 * (contexts - 1) / layers
    assert abs(found.subgraphs.dram_bytes.sum() - (2 * 128 + loaded + crossing)) <= layers
    cost_s = layers * fabric().coefficient("layer_cost")
    start_s = 0.0 if contexts == 1 else layers * 0.1e-3 + loaded / 50e9
    assert_close(float(found.subgraphs.launch_s.sum()), cost_s + start_s)


def test_one_context_may_use_more_controllers_than_units_compute() -> None:
    # eight layers on all of 8 controllers: of each, a tile of 8 + 16 clocks takes half of a unit, over 6 units
    chain = nn.Sequential(*(nn.Conv2d(8, 8, 1, bias=False, device="meta") for _ in range(8)))
    chip = fabric(5_000.0, output_rows=50.0, output_columns=50.0)
    shares = {**chip.coefficients, "control_share": number(1.0, "1")}
    found = run(attrs.evolve(chip, coefficients=shares), "int8", columns(chain, image(1, 8, 4)))
    assert found.subgraphs.dram_bytes.sum() == 2 * 128
    assert_close(compute_s(found), 4 * 8 * 24 / 2 / 6 / BUSY_HZ)


def test_contexts_hold_the_weights_between_them() -> None:
    # four contexts hold 4 x 0.6 / 0.75 of the SRAM; over 19.2 units 48 x 592 clocks are less than the outputs'
    found = run(with_level(fabric(), "sram", WEIGHT), "int8", convolution(batch=2))
    assert_close(float(found.subgraphs.launch_s.sum()), fabric().coefficient("layer_cost") + 0.1e-3 + WEIGHT / 50e9)
    assert_close(compute_s(found), 2 * 4 * 784 * 128 / 16 / 1e9)
    assert found.throughput_limit == "latency"


def test_a_depthwise_convolution_takes_the_vector_engine() -> None:
    # 451,584 MACs on two engines of 64 lanes; on the tensor engines each of 64 channels would fill a column of 128
    found = run(holds_outputs(), "bf16", convolution(64, 64, 64))
    assert_close(compute_s(found), 784 * 64 * 9 / (2 * 64 * 1e9))
    assert count(found, "vector_engine", "bf16_mac") == 784 * 64 * 9
    assert count(found, "tensor_engine", "bf16_mac") == 0
    # of 32 bits at 5 / 4 of the clock
    slow = holds_outputs(vector_element=32.0, vector_clock_ratio=1.25)
    assert_close(compute_s(run(slow, "bf16", convolution(64, 64, 64))), 1.6 * compute_s(found))


@pytest.mark.parametrize(("activation", "clocks", "folded"), [(nn.ReLU(), 1.0, 0.0), (nn.SiLU(), 4.0, 4.0)])
def test_slow_vector_engines_compute_what_no_tensor_engine_folds(
    activation: nn.Module, clocks: float, folded: float
) -> None:
    # an operation an element (SiLU: three, and a special function) on 128 lanes, one clock in a hundred
    work = columns(nn.Sequential(nn.Conv2d(64, 128, 3, padding=1, bias=False), activation).to("meta"), image(1, 64, 28))
    tensor_s, elements = 4 * (576 + 16) / BUSY_HZ, 784 * 128
    for hardware, operations in ((holds_outputs(), clocks), (holds_outputs(folded_activations=1.0), folded)):
        slow = {**hardware.coefficients, "vector_efficiency": number(0.01, "1")}
        found = run(attrs.evolve(hardware, coefficients=slow), "bf16", work)
        assert_close(compute_s(found), max(tensor_s, operations * elements / (2 * 64 * 1e9 * 0.01)))


def test_a_chip_without_dram_moves_over_the_host_link() -> None:
    found = run(fabric(), "int8", convolution())
    assert count(found, "host_link", "input") == INPUT
    assert count(found, "host_link", "output") == OUTPUT
    assert count(found, "host_link", "read") == count(found, "dram", "read") == 0


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
    with pytest.raises(UnsupportedError, match=r"toy_npu has 0\.1 MB of memory"):
        run(small, "int8", convolution())


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "rates"), [("hailo_8", (67.0, 141.0)), ("hailo_8l", (50.0, 87.0)), ("hailo_15h", (75.6, 146.0))]
)
def test_contexts_start_as_fast_as_the_model_zoo_measured(name: str, rates: tuple[float, float]) -> None:
    # Model Zoo, yolov8m at batch 1 and 8: a batch takes start + batch x image, so start = (8 / 67 - 8 / 141) / 7 =
    # 8.9 ms on Hailo-8, 9.7 ms on Hailo-8L: 25.9 MB of weights arrive at more than the 1.97 GB/s of two lanes. From
    # DRAM beside a Hailo-15H they arrive in 7.3 ms
    one_s, eight_s = (
        1e-15 * run(find_hardware(name), "int8", shipped("yolov8m", batch), "engine").latency_fs for batch in (1, 8)
    )
    measured_s = (8.0 / rates[0] - 8.0 / rates[1]) / 7.0
    assert_close((8.0 * one_s - eight_s) / 7.0, measured_s, rel=0.4)


def test_a_fabric_has_nothing_to_lay_out_where_a_host_computes_all() -> None:
    rotary = find_operator("rotary(rows=64,heads=32,head_dim=128)")
    assert rotary is not None
    hosted = target("hailo_8").with_host(target("raspberry_pi_5"), is_counted=False)
    found = run(hosted, "int8", columns_of(describe(rotary, 1, KEY)), "engine")
    assert found.latency_fs > 0
