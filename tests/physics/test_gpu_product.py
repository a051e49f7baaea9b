"""Products on a GPU: tiles, waves, operands, parts of K and groups, worked out by hand on a toy.

Its tensor cores do 1024 MACs a clock and unit at 0.8 of their peak, its lanes 128 at 0.9, on 128 units at 1 GHz.
"""

from __future__ import annotations

import itertools

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st
from torch import nn

from chip import gpu
from compare import assert_close
from convolution import compute_s, count, run
from gpu_case import (
    GPU_BYTES_PER_S,
    ISSUE_HZ,
    PRODUCT_BYTES_PER_S,
    TOY,
    UNITS,
    clocks,
    kernel_seconds,
    norm,
    placed,
    single,
    sort_name,
    timed,
    with_fp8,
)
from joulemap.physics.architecture.gpu.product import smooth_max
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import WorkloadColumns
from models import columns, image


def product(rows: int, inner: int, outputs: int) -> WorkloadColumns:
    return single(f"gemm(m={rows},n={outputs},k={inner})")


def conv(
    channels: int, outputs: int, size: int, kernel: int = 3, *, stride: int = 1, groups: int = 1, batch: int = 1
) -> WorkloadColumns:
    padding = kernel // 2 if stride < kernel else 0
    return single(
        f"conv2d(batch={batch},channels_in={channels},channels_out={outputs},size={size},kernel={kernel},"
        f"stride={stride},padding={padding},groups={groups})"
    )


def busy_s(work: WorkloadColumns, precision: str, hardware: Hardware = TOY) -> float:
    return float(timed(work, precision, hardware=hardware)[0].busy_s[0])


SECONDS = st.floats(1e-9, 1.0)


@given(SECONDS, SECONDS)
def test_a_norm_is_between_the_larger_and_a_third_more(first: float, second: float) -> None:
    found = float(smooth_max(np.array([first]), np.array([second]))[0])
    assert max(first, second) * (1 - 1e-12) <= found <= 2**0.4 * max(first, second) * (1 + 1e-12)
    assert_close(found, norm(first, second))
    assert_close(float(smooth_max(np.array([first]), np.array([0.0]))[0]), first)


# tiles and waves


def test_a_wave_of_tiles_on_vector_lanes() -> None:
    # 128 tiles of 32 x 32, one for each unit. A step issues 1024 MACs and 20 for each of 64 rows and columns
    step = (1024 + 20 * 64) / 128
    assert step > 1024 / (0.9 * 128)
    assert_close(busy_s(product(128 * 32, 64, 32), "fp32"), clocks(64 * step + 3000))
    # one tile more is another wave
    work = single("bmm(b=129,m=32,n=32,k=64)")
    assert_close(busy_s(work, "fp32"), clocks(2 * (64 * step + 3000)))
    times, _ = timed(work, "fp32")
    assert (times.tiles.tolist(), times.waves.tolist()) == ([129.0], [2.0])
    assert (times.tile_rows.tolist(), times.tile_columns.tolist()) == ([32.0], [32.0])
    assert times.executed_macs.tolist() == [129 * 32 * 32 * 64]
    assert_close(float(times.occupancy[0]), 129 / 256)


def test_a_wave_of_tiles_on_tensor_cores() -> None:
    # 128 tiles of 64 x 64: 4096 MACs and 16 for each of 128 rows and columns, of 1024 a clock
    assert_close(busy_s(product(128 * 64, 128, 64), "fp16"), clocks(128 * 6 + 200))
    # tiles of 128 x 128 reach the share of the peak: 16384 / (0.8 x 1024) = 20, more than (16384 + 4096) / 1024 would
    # take if 0.8 of the peak were all of it
    step = max(16_384 / 819.2, (16_384 + 16 * 256) / 1024)
    times, _ = timed(product(128 * 128, 1024, 128 * 4), "fp16")
    assert times.tile_rows.tolist() == [128.0]
    assert_close(float(times.busy_s[0]), clocks(4 * (1024 * step + 200)))


def test_a_tile_supplies_no_rows_that_it_does_not_have() -> None:
    # 8 rows, and 64 columns of each of 128 tiles
    assert_close(busy_s(product(8, 128, 128 * 64), "fp16"), clocks(128 * (4096 + 16 * 72) / 1024 + 200))


def test_padding_of_tiles_is_executed() -> None:
    # 65 x 65 outputs in 2 x 2 tiles of 64 x 64
    times, _ = timed(product(65, 64, 65), "fp16")
    assert times.tiles.tolist() == [4.0]
    assert times.executed_macs.tolist() == times.multiplied_macs.tolist() == [4 * 64 * 64 * 64]
    # along K a block takes 32 elements at a time: 33 last as long as 64
    assert busy_s(product(64, 33, 64), "fp16") == busy_s(product(64, 64, 64), "fp16")


def test_a_block_alone_on_its_unit_waits_for_its_loads() -> None:
    # half a clock for each of 64 rows and columns, more than the 18 of a step; K = 2048 is too much for the epilogue
    # to hide. Bytes are few: 16 B a clock and unit
    work = single("bmm(b=128,m=32,n=32,k=2048)")
    assert_close(busy_s(work, "fp32"), clocks(2048 * 64 * 0.5))
    # two waves keep a unit busy: the norm of tiles and bytes chooses
    assert_close(busy_s(single("bmm(b=512,m=32,n=32,k=2048)"), "fp32"), clocks(4 * (2048 * 18 + 3000)))


# parts of K


def test_the_inner_dimension_is_split_over_units_that_would_idle() -> None:
    # one tile of 64 x 64; at most 32 parts, of at least 4 x 32 elements
    for inner, parts in ((128, 1), (224, 1), (4096, 32), (8192, 32)):
        times, _ = timed(product(64, inner, 64), "fp16")
        assert times.tiles.tolist() == [parts]
        assert_close(float(times.busy_s[0]), clocks((-(-inner // parts) + 31) // 32 * 32 * 6 + 200))
        # parts are added up: written and read at four bytes, a seventh of that in DRAM
        added = clocks(4000) + 8 / 7 * 64 * 64 * parts / 2e12
        assert_close(float(times.start_s[0]), clocks(4200) + (added if parts > 1 else 0.0))


def test_lanes_split_the_inner_dimension_only_where_there_are_units_for_all_parts() -> None:
    # 17 tiles of 32 x 32 in four parts need 68 units, in eight 136
    work = product(32, 1024, 17 * 32)
    for units, parts, busy in ((128, 4, 256 * 64 * 0.5), (136, 8, 128 * 18 + 3000)):
        times, _ = timed(work, "fp32", hardware=gpu(units=units))
        assert times.tiles.tolist() == [17 * parts]
        assert_close(float(times.busy_s[0]), clocks(busy))


@pytest.mark.parametrize("name", ["bmm(b=1,m=64,n=64,k=4096)", "gemm(m=64,n=64,k=4096)"])
def test_weights_and_activations_multiply_alike(name: str) -> None:
    assert timed(single(name), "fp16")[0].tiles.tolist() == [32.0]


def test_convolutions_are_not_split() -> None:
    times, _ = timed(conv(512, 64, 3), "fp16")
    assert (times.tiles.tolist(), times.waves.tolist()) == ([1.0], [1.0])


def test_a_few_rows_are_bytes_on_vector_lanes() -> None:
    for rows, is_few in ((4, True), (5, False)):
        times, _ = timed(product(rows, 512, 1000), "fp32")
        assert (times.busy_s.tolist() == [0.0]) == is_few
        assert (times.executed_macs.tolist() == [rows * 512 * 1000]) == is_few
    # an instruction of tensor cores takes eight
    for rows, padded in ((1, 8), (8, 8), (9, 16), (64, 64), (65, 128)):
        assert timed(product(rows, 512, 1000), "fp16")[0].executed_macs.tolist() == [padded * 512 * 1024]


def test_cut_tensor_cores_are_supplied_as_whole_ones_and_pad_few_rows_to_eight() -> None:
    # 256 tiles of 64 x 64 in two waves, K = 4096, at 256 MACs a clock: 8 rows of 64 columns at 0.8 of them, 2.5 clocks,
    # less than the (4096 + 16 (8 + 64)) / 256 = 20.5 that their supply takes, or a quarter of that, as of whole ones
    work = product(8, 4096, 256 * 64)
    slow = gpu(tensor_macs_per_clock=256.0)
    assert_close(busy_s(work, "fp16", slow), clocks(2 * (4096 * 20.5 + 200)))
    cut = with_value("supply_ratio", 4.0, slow)
    assert_close(busy_s(work, "fp16", cut), clocks(2 * (4096 * 5.125 + 200)))
    # 32 rows of 128 columns are 4096 MACs a step at 0.8 x 256, more than (16384 + 16 (32 + 128)) / 1024; in one wave
    assert_close(busy_s(product(32, 4096, 256 * 64), "fp16", cut), clocks(4096 * 20 + 200))


# bytes


def test_products_stream_operands_worse_than_copies_and_results_worse_than_operands() -> None:
    # 4 x 4096 x 4096 of fp32 do not fit 32 MiB: DRAM; a byte of the result costs as much as 1.5 read
    moved = 4 * (4096 * 4096 + 4 * 4096 + 1.5 * 4 * 4096)
    times, _ = timed(product(4, 4096, 4096), "fp32")
    assert_close(float(times.memory_s[0]), moved / PRODUCT_BYTES_PER_S)
    # nor do 4 x 1024 x 1024 come faster, though they would
    moved = 4 * (1024 * 1024 + 4 * 1024 + 1.5 * 4 * 1024)
    times, _ = timed(product(4, 1024, 1024), "fp32")
    assert_close(float(times.memory_s[0]), moved / PRODUCT_BYTES_PER_S)


def with_near_bytes(value: float) -> Hardware:
    name = "product_near_bytes"
    near = attrs.evolve(TOY.coefficients[name], value=value)
    return attrs.evolve(TOY, coefficients={**TOY.coefficients, name: near})


def test_what_the_last_cache_holds_comes_at_a_rate_of_units() -> None:
    # three layers: that in the middle finds its input on the chip and leaves its output there, 2 MiB each at 2 bytes
    layers = nn.Sequential(*(nn.Conv2d(64, 64, 1, bias=False, device="meta") for _ in range(3)))
    work = columns(layers, image(4, 64, 64))
    held = 4 * 64 * 64 * 64 * 2.0
    weights = 64 * 64 * 2.0

    def middle_s(near_bytes: float) -> float:
        return float(timed(work, "fp16", hardware=with_near_bytes(near_bytes))[0].memory_s[1])

    # no slower than DRAM, whose rate is that of 6.25 B a clock and unit
    assert_close(middle_s(1.0), (held + 1.5 * held + weights) / PRODUCT_BYTES_PER_S)
    assert_close(middle_s(12.5), (held + 1.5 * held + weights) / (2 * PRODUCT_BYTES_PER_S))
    # weights do too, since the cache holds those of all layers; what enters and leaves the model comes from DRAM
    first, _, last = timed(work, "fp16", hardware=with_near_bytes(1e9))[0].memory_s.tolist()
    assert_close(first, held / PRODUCT_BYTES_PER_S)
    assert_close(last, 1.5 * held / PRODUCT_BYTES_PER_S)


def with_value(name: str, value: float, hardware: Hardware = TOY) -> Hardware:
    own = hardware.coefficients
    return attrs.evolve(hardware, coefficients={**own, name: attrs.evolve(own[name], value=value)})


def test_a_wide_linear_layer_reaches_half_of_what_a_narrower_one_does() -> None:
    # 128 units hold 256 blocks of 128 columns: half a wave reaches 0.9, two waves 0.9 x 0.5, one between them
    for blocks, share in ((2, 0.9 * 0.5**0.5), (4, 0.45), (5, 0.45)):
        step = 128 * 128 / (share * 128)
        wide = product(128, 8000, blocks * UNITS * 128)
        assert_close(busy_s(wide, "fp32"), clocks(blocks * (8000 * step + 3000)))
    # narrower ones, and a product of two activations, issue 20 for each row and column
    step = (128 * 128 + 20 * 256) / 128
    assert_close(busy_s(product(128, 8000, UNITS * 128), "fp32"), clocks(8000 * step + 3000))
    batched = single(f"bmm(b=1,m=128,n={5 * UNITS * 128},k=8000)")
    assert_close(busy_s(batched, "fp32"), clocks(5 * (8000 * step + 3000)))


def test_lanes_split_a_long_inner_dimension_whatever_the_waves() -> None:
    # 144 tiles of 128 x 128 on 128 units: 5 waves of 64 x 64, or 9 of 128 x 128 in eight parts of 5,000 elements
    for inner, busy in ((4000, 5 * (4000 * 52 + 3000)), (40_000, 9 * (5000 * 168 + 3000))):
        times, _ = timed(product(128 * 9, inner, 128 * 16), "fp32")
        assert_close(float(times.busy_s[0]), clocks(busy))


def test_tensor_cores_that_take_128_rows_have_no_square_of_64() -> None:
    # 128 tiles of 64 x 64, one for each unit, where instructions take 64; of 64 x 128 there is one for half of them
    work = product(64, 1024, UNITS * 64)
    assert_close(busy_s(work, "fp16"), clocks(1024 * (64 * 64 + 16 * 128) / 1024 + 200))
    blackwell = with_value("instruction_edge", 128.0)
    assert_close(busy_s(work, "fp16", blackwell), clocks(1024 * (64 * 128 + 16 * 192) / 1024 + 200))
    assert timed(work, "fp16", hardware=blackwell)[0].tile_columns[0] == 128


def test_what_halves_the_peak_of_a_product_does_not_halve_its_supply() -> None:
    # int8 at 2048 MACs a clock shows that 1024 are supplied for at two bytes, where fp16 does 512 of them
    slow = gpu(tensor_macs_per_clock=512.0)
    rate = attrs.evolve(slow.peaks["int8"].rate, value=4.0 * slow.peaks["int8"].rate.value)
    int8 = attrs.evolve(slow.peaks["int8"], rate=rate, operations_per_clock=4096.0, engine="tensor_core")
    geforce = attrs.evolve(slow, peaks={**slow.peaks, "int8": int8})
    work = product(64, 1024, UNITS * 64)
    assert_close(busy_s(work, "fp16", slow), clocks(1024 * (64 * 64 + 16 * 128) / 512 + 200))
    assert_close(busy_s(work, "fp16", geforce), clocks(1024 * 64 * 64 / (0.8 * 512) + 200))


def test_convolutions_of_an_engine_add_in_fp16_where_that_is_faster() -> None:
    # half of the peak at fp32 sums, so that a convolution under an engine runs as on a board with the full peak
    full, slow = gpu(), gpu(tensor_macs_per_clock=512.0)
    geforce = with_value("narrow_sum_gain", 2.0, slow)
    geforce, full = (attrs.evolve(one, vendor="NVIDIA") for one in (geforce, full))
    for work, runtime, like in (
        (conv(1024, 64, 512, 1), "engine", full),
        (conv(1024, 64, 512, 1), "graph", slow),
        (product(8192, 1024, 1024), "engine", slow),
    ):
        mine, other = (run(one, "fp16", work, runtime) for one in (geforce, like))
        assert_close(compute_s(mine), compute_s(other))
        assert count(mine, "tensor_core", "fp16_mac") == count(other, "tensor_core", "fp16_mac")
    assert geforce.product_rate("fp16", "", "engine") == 2.0 * geforce.product_rate("fp16") == full.product_rate("fp16")
    assert geforce.product_rate("int8", "", "engine") == geforce.product_rate("int8")
    assert geforce.product_rate("fp16", "int4", "engine") == geforce.product_rate("fp16")


def test_the_replay_of_a_graph_shortens_the_gap_between_kernels() -> None:
    # a gap of 1000 cycles, 100 in a graph
    orin = with_value("graph_gap_share", 0.1)
    work = product(64, 64, 64)
    launch = {
        runtime: float(placed(work, "fp16", runtime, orin)[0].launch_s[0])
        for runtime in ("engine", "fused", "engine@graph", "graph")
    }
    assert launch["engine"] == launch["fused"]
    assert_close(launch["engine"] - launch["engine@graph"], clocks(900))
    assert_close(launch["fused"] - launch["graph"], clocks(900))


def test_kernels_fill_tiles_of_fp4_where_tensor_cores_have_no_memory_of_their_own() -> None:
    # two tiles of 128 x 128 on two units, whatever the rows: 4096 steps of 128 x 128 / (0.8 x 4096) clocks
    peak = TOY.peaks["fp16"]
    rate = attrs.evolve(peak.rate, value=4.0 * peak.rate.value)
    four = attrs.evolve(peak, rate=rate, operations_per_clock=4.0 * peak.operations_per_clock)
    toy = attrs.evolve(TOY, peaks={**TOY.peaks, "fp4": four})
    for rows, runtime in itertools.product((1, 128), ("engine", "graph")):
        times, _ = timed(product(rows, 4096, 256), "fp4", runtime, toy)
        assert_close(float(times.busy_s[0]), clocks(4096 * 5 + 200))
    own = attrs.evolve(toy, coefficients={**toy.coefficients, **with_value("instruction_edge", 128.0).coefficients})
    assert timed(product(1, 4096, 256), "fp4", "engine", own)[0].busy_s[0] < 0.5 * clocks(4096 * 5)


def test_a_layer_alone_is_one_of_six() -> None:
    def memory_s(rows: int, columns_out: int) -> float:
        work = single(f"gemm(m={rows},n={columns_out},k=1024)")
        return float(timed(work, "fp16", hardware=with_near_bytes(1e9))[0].memory_s[0])

    # an L2 of 32 MiB holds six times 5 MiB of weights beside few rows, and nothing of six times 12
    assert memory_s(8, 2560) < 1e-9
    assert_close(memory_s(8, 6144), 2 * 6144 * 1024 / PRODUCT_BYTES_PER_S)
    # where only the input of 2 MiB, the result of 12 and one layer's weights fit, these cross DRAM alone
    assert_close(memory_s(1024, 6144), 2 * 6144 * 1024 / PRODUCT_BYTES_PER_S)


def test_an_engine_builds_convolutions_of_more_tiles_and_its_blocks_take_a_turn() -> None:
    # 512 x 512 positions, one tap and 64 columns: 1024 tiles of 256 x 64 in eight waves, where a library takes 64 x 64
    alone = conv(1024, 64, 512, 1)
    module = nn.Sequential(nn.Conv2d(1024, 64, 1, bias=False), nn.ReLU())
    followed = columns(module.to("meta"), image(1, 1024, 512))
    step = (256 * 64 + 16 * (256 + 64)) / 1024
    waves = 512 * 512 / 256 / UNITS
    for work, turn in ((alone, 0), (followed, 2000)):
        library, engine = (timed(work, "fp16", runtime)[0] for runtime in ("graph", "engine"))
        assert (library.tile_rows[0], engine.tile_rows[0]) == (64.0, 256.0)
        assert_close(float(engine.busy_s[0]), clocks(waves * (1024 * step + 200) + waves**0.5 * turn))
    # a linear layer takes none
    linear = product(128 * 64, 128, 64)
    assert timed(linear, "fp16", "engine")[0].busy_s[0] == timed(linear, "fp16")[0].busy_s[0]


def test_a_linear_layer_at_fp8_quantizes_its_activations_first() -> None:
    # a block for each of 8192 rows of 4,000, which it takes as 4,096 and 904 more, at 64 instructions; all are read at
    # two bytes and written at one, through DRAM. A result has two bytes, each of which costs one and a half
    toy, rows, inner, outputs = with_fp8(), 8192, 4000, 4096
    times, _ = timed(product(rows, inner, outputs), "fp8", hardware=toy)
    merged, _ = timed(product(rows, inner, outputs), "fp8", "fused", toy)
    moved, block = 3 * rows * inner, 5000 * 64 / 128
    assert (times.pass_bytes.tolist(), merged.pass_bytes.tolist()) == ([moved], [0.0])
    issue = clocks(rows / UNITS * block)
    waited = norm(norm(issue, clocks(3 * block)), moved / GPU_BYTES_PER_S)
    assert_close(float(times.start_s[0] - merged.start_s[0]), clocks(2000 + 1000) + waited)
    assert_close(float(times.issue_s[0]), issue)
    assert times.busy_s.tolist() == merged.busy_s.tolist()
    operands, result = rows * inner + inner * outputs, rows * outputs
    for found in (times, merged):
        assert_close(float(found.memory_s[0]), (operands + 1.5 * 2 * result) / PRODUCT_BYTES_PER_S)
    # two activations are not quantized here
    assert timed(single("bmm(b=4,m=64,n=64,k=64)"), "fp8", hardware=toy)[0].pass_bytes.tolist() == [0.0]


# convolutions


def test_a_convolution_supplies_operands_at_a_higher_price_on_vector_lanes() -> None:
    # 28 x 28 positions of two samples, 32 channels to 64: 49 x 2 tiles of 32 x 32, K = 288
    step = (1024 + 20 * 2 * 64) / 128
    assert_close(busy_s(conv(32, 64, 28, batch=2), "fp32"), clocks(288 * step + 3000))
    # 25 tiles of 64 x 64, where a tensor core has the addresses computed for it
    step = (4096 + 16 * 128) / 1024
    assert_close(busy_s(conv(32, 64, 28, batch=2), "fp16"), clocks(288 * step + 200))


def test_operands_of_eight_bytes_take_twice_as_long_to_supply() -> None:
    double = attrs.evolve(TOY, peaks={**TOY.peaks, "fp64": TOY.peaks["fp32"]})
    # 49 x 2 tiles of 32 x 32, K = 576, at the rate of fp32
    step = (1024 + 2 * 20 * 2 * 64) / 128
    assert_close(busy_s(conv(64, 64, 28, batch=2), "fp64", double), clocks(576 * step + 3000))


def test_winograd_multiplies_less() -> None:
    # 8 samples of 28 x 28, 128 channels to 128: 98 x 2 tiles of 64 x 64 in two waves, at 1.5 of the peak
    times, _ = timed(conv(128, 128, 28, batch=8), "fp32")
    step = (4096 + 20 * 2 * 128) / (128 * 1.5)
    assert_close(float(times.busy_s[0]), clocks(2 * (1152 * step + 3000)))
    assert times.tiles.tolist() == [196.0]
    assert times.executed_macs.tolist() == [196 * 64 * 64 * 1152]
    assert_close(float(times.multiplied_macs[0]), 196 * 64 * 64 * 1152 / 1.5)


def test_winograd_may_take_less_time_than_its_macs_at_the_peak() -> None:
    # 64 samples of 28 x 28, 512 channels to 512: 392 x 4 tiles of 128 x 128 in 13 waves, at 1.5 of the peak
    twice = attrs.evolve(TOY.geometry["issue_slots_per_unit"], value=256.0)
    hardware = attrs.evolve(TOY, geometry={**TOY.geometry, "issue_slots_per_unit": twice})
    work = conv(512, 512, 28, batch=64)
    busy = clocks(13 * (4608 * 16384 / (128 * 1.5) + 3000))
    assert_close(busy_s(work, "fp32", hardware), busy)
    placement, kernels = placed(work, "fp32", hardware=hardware)
    at_peak = clocks(64 * 784 * 512 * 4608 / 128 / UNITS)
    (seconds,) = kernel_seconds(placement, kernels)
    assert busy < seconds < at_peak
    assert placement.computed_macs is not None
    assert_close(float(placement.computed_macs[0]), 392 * 4 * 128 * 128 * 4608 / 1.5)


@pytest.mark.parametrize(
    ("work", "wide", "narrow"),
    [
        (conv(64, 64, 28), "winograd", "conv"),
        (conv(63, 64, 28), "conv", "conv"),
        (conv(64, 63, 28), "conv", "conv"),
        (conv(128, 128, 28, stride=2), "conv", "conv"),
        (conv(128, 128, 28, 5), "conv", "conv"),
        (conv(128, 128, 28, 1), "pointwise", "pointwise"),
        (conv(3, 64, 64, 7, stride=2), "conv", "image"),
        (conv(8, 64, 64, 7, stride=2), "conv", "conv"),
        (conv(3, 96, 64, 4, stride=4), "conv", "patch"),
        # 64 channels together
        (conv(64, 64, 14, groups=16), "wide_groups", "native_groups"),
        (conv(64, 64, 14, groups=2), "wide_groups", "native_groups"),
        (conv(20, 20, 14, groups=5), "wide_groups", "native_groups"),
        (conv(96, 96, 14, groups=4), "wide_groups", "plain_groups"),
        (conv(192, 192, 14, groups=4), "wide_groups", "plain_groups"),
        (conv(224, 224, 14, groups=4), "wide_groups", "wide_groups"),
        (conv(64, 64, 14, groups=64), "depthwise", "depthwise"),
        (conv(64, 64, 14, groups=64, stride=2), "depthwise", "depthwise"),
        (product(5, 64, 64), "product", "product"),
        (product(4, 64, 64), "few_rows", "product"),
        (single("bmm(b=4,m=4,n=5,k=6)"), "few_rows", "product"),
    ],
)
def test_convolutions_and_products_are_sorted(work: WorkloadColumns, wide: str, narrow: str) -> None:
    assert (sort_name(work, "fp32"), sort_name(work, "fp16")) == (wide, narrow)


def test_images_run_at_shares_of_their_own_on_tensor_cores() -> None:
    # 128 lanes gather two elements each; 32 x 32 positions, 3 to 64 channels, K = 147 in five blocks of 32: 16 tiles of
    # 64 x 64
    assert_close(busy_s(conv(3, 64, 64, 7, stride=2), "fp16"), clocks(160 * 4096 / (0.05 * 256) + 200))
    # windows that do not overlap: 56 x 56 positions to 96 channels, K = 48 in two blocks
    assert_close(busy_s(conv(3, 96, 224, 4, stride=4), "fp16"), clocks(64 * 4096 / (0.02 * 256) + 200))


# groups


@pytest.mark.parametrize(
    ("width", "groups", "blocks", "reach"),
    # 64 channels fill a line; 20 do not, so that lanes compute addresses: 20 x 2 outputs for 4 bytes, 8 times the MACs
    [(4, 16, 2, 16), (32, 2, 2, 16), (4, 5, 1, 160)],
)
def test_small_groups_are_one_kernel_on_tensor_cores(width: int, groups: int, blocks: int, reach: int) -> None:
    times, _ = timed(conv(width * groups, width * groups, 14, groups=groups), "fp16")
    # blocks of 32 channels, K = 288: 196 positions in four tiles of 64 x 32 each
    step = (2048 + reach * 96) / 1024
    assert_close(float(times.busy_s[0]), clocks(288 * step + 200))
    assert (times.tiles.tolist(), times.waves.tolist()) == ([4.0 * blocks], [1.0])
    assert times.executed_macs.tolist() == [4 * blocks * 2048 * 288]
    assert times.looped_count.tolist() == [0.0]


def test_groups_that_no_tensor_core_takes_issue_each_mac() -> None:
    # 196 positions of four groups of 24: five instructions of a thread for a MAC; 216 steps of K wait group by group
    times, _ = timed(conv(96, 96, 14, groups=4), "fp16")
    issued = 196 * 4 * 24 * 24 * 9 * 5 / (128 * ISSUE_HZ)
    assert_close(float(times.busy_s[0]), norm(issued, clocks(20 * 4 * 216)))
    assert times.product_s.tolist() == [0.0]
    found = run(TOY, "fp16", conv(96, 96, 14, groups=4), "graph")
    assert (count(found, "tensor_core", "fp16_mac"), count(found, "cuda_core", "fp16_mac")) == (
        0,
        196 * 4 * 24 * 24 * 9,
    )


@pytest.mark.parametrize(("width", "steps", "reach"), [(64, 576, 16), (56, 512, 160)])
def test_wide_groups_run_three_at_once_on_tensor_cores(width: int, steps: int, reach: int) -> None:
    # each 4 tiles of 64 x 64; of 56 channels, which fill no line, lanes compute the addresses
    times, _ = timed(conv(4 * width, 4 * width, 14, groups=4), "fp16")
    step = (4096 + reach * (64 + width)) / 1024
    assert_close(float(times.busy_s[0]), clocks(2 * (steps * step + 200)))
    assert (times.tiles.tolist(), times.waves.tolist()) == ([16.0], [2.0])
    assert_close(float(times.occupancy[0]), 16 / UNITS / 2)
    # each is a launch of the host more
    assert times.looped_count.tolist() == [4.0]


def test_an_engine_builds_one_kernel_for_all_groups() -> None:
    # 16 tiles of 64 x 64 in one wave, of operands that it has packed
    times, _ = timed(conv(224, 224, 14, groups=4), "fp16", "engine")
    step = (4096 + 16 * (64 + 56)) / 1024
    assert_close(float(times.busy_s[0]), clocks(512 * step + 200))
    assert (times.tiles.tolist(), times.looped_count.tolist()) == ([16.0], [0.0])


def test_groups_on_vector_lanes_run_three_at_once() -> None:
    # 7 x 7 positions of 4 channels: two tiles of 32 x 32 for each group, K = 36 in five blocks of 8
    for groups, turns in ((16, 6), (64, 22)):
        step = (1024 + 20 * 2 * 36) / 128
        times, _ = timed(conv(4 * groups, 4 * groups, 7, groups=groups), "fp32")
        assert_close(float(times.busy_s[0]), clocks(turns * (40 * step + 3000)))
        assert (times.tiles.tolist(), times.waves.tolist()) == ([2 * groups], [turns])
        assert times.looped_count.tolist() == [0.0]
