"""Kernels of a GPU: what each costs before it runs, how long it is busy, and what must never get worse. On a toy.

Its 128 units issue 128 instructions of single threads each in a clock of 1 ns.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from chip import CLOCK_HZ, number
from compare import assert_close
from convolution import count, run
from gpu_case import (
    GPU_BYTES_PER_S,
    GPU_HOST_S,
    ISSUE_HZ,
    TOY,
    clocks,
    kernel_seconds,
    norm,
    placed,
    single,
    sort_name,
    timed,
)
from joulemap.physics.architecture.gpu.device import find_clock_hz
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import WorkloadColumns
from models import ConvBlock, Function, Residual, SelfAttention, columns, image, meta, shipped

THREADS_PER_S = 128 * ISSUE_HZ
"""Instructions of single threads."""


def conv(
    channels: int, outputs: int, size: int, kernel: int = 3, *, bias: bool = False, stride: int = 1, groups: int = 1
) -> nn.Module:
    return nn.Conv2d(channels, outputs, kernel, stride, kernel // 2, groups=groups, bias=bias, device="meta")


def busy_s(work: WorkloadColumns, precision: str = "fp32", runtime: str = "graph") -> float:
    return float(timed(work, precision, runtime)[0].busy_s[0])


@cache
def works() -> dict[str, WorkloadColumns]:
    """One operator of each kind of kernel, and whole models."""
    return {
        "linear": single("gemm(m=1970,n=1000,k=768)"),
        "vector": single("gemm(m=1,n=1000,k=512)"),
        "batched": single("bmm(b=12,m=49,n=49,k=32)"),
        "winograd": single("conv2d(batch=2,channels_in=128,channels_out=128,size=28,kernel=3,padding=1)"),
        "pointwise": columns(conv(256, 64, 28, 1, stride=2), image(1, 256, 28)),
        "stem": columns(conv(3, 64, 64, 7, stride=2), image(1, 3, 64)),
        "native": columns(conv(128, 128, 14, groups=32), image(1, 128, 14)),
        "plain": columns(conv(96, 96, 14, groups=4), image(1, 96, 14)),
        "looped": columns(conv(256, 256, 14, groups=4), image(1, 256, 14)),
        "depthwise": columns(conv(64, 64, 28, 5, groups=64), image(1, 64, 28)),
        "attention": single("attention(queries=256,heads=8,head_dim=64)"),
        "relu": columns(Function(torch.relu), image(1, 64, 56)),
        "gelu": columns(Function(functional.gelu), meta(1, 197, 3072)),
        "scale": columns(Function(torch.mul), image(1, 64, 28), meta(1, 64, 1, 1)),
        "softmax": single("softmax(rows=2364,columns=197)"),
        "layer norm": columns(nn.LayerNorm(768, device="meta"), meta(1, 197, 768)),
        "batch norm": columns(nn.BatchNorm2d(64, device="meta"), image(1, 64, 56)),
        "largest": columns(nn.MaxPool2d(3, 2, 1), image(1, 64, 56)),
        "average": columns(nn.AvgPool2d(2, 2), image(1, 64, 56)),
        "mean": columns(Function(lambda x: x.mean(dim=(2, 3))), image(1, 512, 28)),
        "permutation": columns(Function(lambda x: x.transpose(1, 2).contiguous()), meta(1, 64, 512)),
        "embedding": columns(nn.Embedding(1000, 256, device="meta"), torch.zeros(1, 9, dtype=torch.int64).to("meta")),
        "roll": columns(Function(lambda x: torch.roll(x, (3, 3), (1, 2))), meta(1, 56, 56, 96)),
        "self attention": columns(SelfAttention(), meta(2, 49, 16)),
        "mobilenet_v3_small": shipped("mobilenet_v3_small"),
    }


# what an operator costs before it runs


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("name", "wide", "narrow"),
    [
        ("linear", 7500, 4200),
        ("vector", 7500, 4200),
        ("batched", 7500, 4200),
        ("pointwise", 7500, 4200),
        ("winograd", 7000, 7000),
        ("stem", 7000, 7000),
        ("native", 7000, 7000),
        ("plain", 7000, 7000),
        ("looped", 7000, 7000),
        ("depthwise", 2000, 2000),
        ("attention", 30_000, 6000),
        ("relu", 2000, 2000),
        ("gelu", 2000, 2000),
        ("scale", 3500, 3500),
        ("softmax", 2000, 2000),
        ("layer norm", 4500, 4500),
        # parameters are converted by a kernel of their own
        ("batch norm", 3500, 11_000 + 2000 + 1000),
        ("largest", 3500, 3500),
        ("average", 3500, 3500),
        # blocks of 32 x 16 threads, each with 25 of 784 elements in seven steps
        ("mean", 4500 + 7 * 400, 4500 + 7 * 400),
        ("permutation", 3500, 3500),
        ("embedding", 2000, 2000),
        # once for each direction
        ("roll", 2 * 3500 + 1000, 2 * 3500 + 1000),
    ],
)
def test_each_sort_of_kernel_starts_at_a_cost_of_its_own(name: str, wide: int, narrow: int) -> None:
    for precision, cost in (("fp32", wide), ("fp16", narrow)):
        placement, _ = placed(works()[name], precision)
        assert_close(float(placement.launch_s.sum()), clocks(cost + 1000))


def test_a_gap_follows_each_kernel() -> None:
    work = columns(Residual(64), image(1, 64, 8))
    placement, kernels = placed(work, "fp32")
    times, _ = timed(work, "fp32")
    assert kernels.kernel_count == 7
    assert_close(float(placement.launch_s.sum()), float(times.start_s.sum()) + clocks(7 * 1000))


def test_eager_waits_for_the_host_once_for_each_call() -> None:
    work = columns(conv(64, 64, 4, groups=1), image(1, 64, 4))
    assert_close(sum(kernel_seconds(*placed(work, "fp16", "eager"))), GPU_HOST_S)
    # four groups of 64 channels are four launches more
    looped = columns(conv(256, 256, 4, groups=4), image(1, 256, 4))
    assert_close(sum(kernel_seconds(*placed(looped, "fp16", "eager"))), 5 * GPU_HOST_S)


def test_clocks_are_of_the_highest_clock() -> None:
    boosted = attrs.evolve(TOY, clock_boost=number(1.25 * CLOCK_HZ, "Hz"))
    assert find_clock_hz(boosted) == 1.25 * CLOCK_HZ
    work = single("bmm(b=128,m=64,n=64,k=128)")
    for one, share in ((TOY, 1.0), (boosted, 1.25)):
        times, _ = timed(work, "fp16", hardware=one)
        assert_close(float(times.busy_s[0]), clocks(128 * 6 + 200) / share)
        assert_close(float(times.start_s[0]), clocks(4200) / share)


# passes: kernels of their own


def test_a_bias_is_a_pass_of_its_own_unless_it_is_merged() -> None:
    outputs = 64 * 28 * 28
    plain, biased = (columns(conv(64, 64, 28, bias=bias), image(1, 64, 28)) for bias in (False, True))
    times, _ = timed(biased, "fp32")
    moved = 2 * outputs * 4
    assert times.pass_bytes.tolist() == [moved]
    # it computes an address for each output, 110 instructions, while bytes go through the L2 at 4 TB/s
    issue = outputs * 110 / THREADS_PER_S
    assert_close(busy_s(biased) - busy_s(plain), norm(issue, moved / 4e12))
    assert_close(float(times.issue_s[0]), issue)
    starts = [float(placed(work, "fp32")[0].launch_s[0]) for work in (plain, biased)]
    assert_close(starts[1] - starts[0], clocks(3500 + 1000))
    merged, _ = timed(biased, "fp32", "fused")
    assert merged.pass_bytes.tolist() == [0.0]


def test_compiled_code_leaves_products_to_a_library_and_passes_their_result_once_more() -> None:
    work = columns(ConvBlock(), image(8, 3, 224))
    times, kernels = timed(work, "fp32", "fused")
    graph, _ = timed(work, "fp32")
    assert kernels.kernel_count == 1
    leader = int(kernels.leader[0])
    moved = 2 * 8 * 8 * 224 * 224 * 4
    assert float(times.pass_bytes.sum()) == moved
    # 25.7 MB go through the L2 at 4 TB/s; no address is computed
    assert_close(float(times.busy_s[leader]), float(graph.busy_s[leader]))
    passed_s = clocks(2000 + 1000) + moved / 4e12
    assert_close(float(times.start_s[leader] - graph.start_s[leader]), passed_s)
    assert float(times.issue_s.sum()) <= float(graph.issue_s.sum())
    # batch norm and relu cost arithmetic on what is in registers, or less
    riding = kernels.rides
    plain = kernels.work.elementwise_count / (128 * ISSUE_HZ)
    assert riding.sum() == 2
    assert (times.busy_s[riding] <= plain[riding] * (1 + 1e-12)).all()


def test_an_engine_computes_a_subgraph_in_one_kernel() -> None:
    work = columns(ConvBlock(), image(8, 3, 224))
    (engine, kernels), (graph, _) = (timed(work, "fp16", runtime) for runtime in ("engine", "graph"))
    assert (kernels.kernel_count, float(engine.pass_bytes.sum())) == (1, 0.0)
    # the image's channels are packed: the stem reaches 0.8 of the peak as any other convolution, not 0.05
    assert (sort_name(work, "fp16"), sort_name(work, "fp16", "engine")) == ("image", "conv")
    leader = int(kernels.leader[0])
    assert engine.busy_s[leader] < graph.busy_s[leader] / 4
    # each starts as a compiler's does
    many = columns(nn.Sequential(*(nn.Conv2d(8, 8, 3) for _ in range(5))), image(1, 8, 32))
    launches = [placed(many, "fp16", runtime)[0].launch_s for runtime in ("engine", "fused")]
    assert len(launches[0]) == 5
    assert launches[0].tolist() == launches[1].tolist()


def test_tensorrt_computes_silu_after_a_convolution_in_a_kernel_of_its_own() -> None:
    other = attrs.evolve(TOY, vendor="AMD")
    outputs = 128 * 64 * 56 * 56

    def extra(activation: nn.Module, precision: str, hardware: Hardware) -> tuple[float, float, float]:
        block = nn.Sequential(conv(64, 64, 56), nn.BatchNorm2d(64, device="meta"), activation)
        work = columns(block, image(128, 64, 56))
        (late, kernels), (plain, _) = (timed(work, precision, "engine", one) for one in (hardware, other))
        assert kernels.kernel_count == 1
        return float(late.pass_bytes.sum()), float(late.start_s.sum() - plain.start_s.sum()), float(late.pass_s.sum())

    # the result is written and read again, at 16 bits or more; the kernel starts and streams from DRAM
    for precision, item in (("int8", 2), ("fp16", 2), ("fp32", 4)):
        moved = 2 * outputs * item
        for activation in (nn.SiLU(), nn.Hardswish()):
            found = extra(activation, precision, TOY)
            assert found[0] == moved
            assert_close(found[1], clocks(2000 + 1000) + moved / GPU_BYTES_PER_S)
            assert_close(found[2], moved / GPU_BYTES_PER_S)
            # a compiler's kernel reads and writes as much
            block = columns(nn.Sequential(conv(64, 64, 56), activation), image(128, 64, 56))
            assert timed(block, precision, "fused")[0].pass_bytes.sum() == moved
    # its convolutions compute these, and other engines compute any
    for inside in (nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(), nn.GELU()):
        assert extra(inside, "fp16", TOY) == (0.0, 0.0, 0.0)
    assert extra(nn.SiLU(), "fp16", other) == (0.0, 0.0, 0.0)


def test_tensorrt_computes_silu_after_a_linear_layer_in_its_kernel() -> None:
    work = columns(nn.Sequential(nn.Linear(256, 1024, device="meta"), nn.SiLU()), meta(64, 256))
    assert timed(work, "fp16", "engine")[0].pass_bytes.sum() == 0.0


def test_a_gate_is_a_kernel_for_each_result_that_the_next_needs_all_of() -> None:
    work = shipped("mobilenet_v3_small")
    for runtime in ("engine", "fused"):
        times, kernels = timed(work, "fp16", runtime)
        pooled = kernels.per_kernel(np.where(kernels.work.of_kind("reduction") & ~kernels.leads, 1.0, 0.0)) > 0.0
        assert pooled.sum() == 9
        # its pooling, and two products: the leader is one of them
        assert kernels.per_kernel(times.starts.astype(float))[pooled].tolist() == [2.0] * 9
        assert not kernels.per_kernel(times.starts.astype(float))[~pooled].any()
        launches = placed(work, "fp16", runtime)[0].launch_s[pooled]
        starts = 4500 + 2 * 4200 + 3 * 1000
        assert (launches >= clocks(starts) * (1 - 1e-12)).all()
    assert not timed(work, "fp16")[0].starts.any()
    assert not timed(works()["self attention"], "fp16", "engine")[0].starts.any()


@pytest.mark.parametrize("name", ["largest", "average", "permutation", "scale"])
def test_an_engine_moves_vectors_where_a_library_computes_addresses(name: str) -> None:
    found = [timed(works()[name], "fp16", runtime)[0] for runtime in ("engine", "graph")]
    assert float(found[0].issue_s.sum()) == 0.0 < float(found[1].issue_s.sum())
    assert_close(float(found[0].memory_s.sum()), float(found[1].memory_s.sum()))


# how long it is busy


@pytest.mark.parametrize(
    ("name", "amount", "wide", "narrow"),
    [
        ("depthwise", 64 * 28 * 28 * 25, 11, 7),
        ("gelu", 197 * 3072, 45, 45),
        ("scale", 64 * 28 * 28, 110, 110),
        ("permutation", 64 * 512, 110, 110),
        ("roll", 2 * 56 * 56 * 96, 110, 110),
        ("average", 64 * 28 * 28, 770, 770),
        # rows of 197 take 256 lanes, those of 768 two blocks of 512 elements
        ("softmax", 2364 * (256 + 48), 45, 45),
        # bytes alone bound
        ("relu", 0, 1, 1),
        ("embedding", 9 * 256, 220, 220),
        ("mean", 0, 1, 1),
    ],
)
def test_what_is_no_product_issues_instructions_for_each_of_an_amount(
    name: str, amount: float, wide: int, narrow: int
) -> None:
    for precision, slots in (("fp32", wide), ("fp16", narrow)):
        times, _ = timed(works()[name], precision)
        assert_close(float(times.busy_s.sum()), amount * slots / THREADS_PER_S)
        assert_close(float(times.issue_s.sum()), amount * slots / THREADS_PER_S)


@pytest.mark.parametrize(
    ("what", "rows", "width", "slots"),
    [
        # 512 elements at a time
        ("rms_norm", 197, 768, 1024 * 80),
        ("rms_norm", 1, 4096, 4096 * 80),
        # what a row costs once is as much as 780 of its elements
        ("layer_norm", 197, 768, (768 + 780) * 50),
        ("layer_norm", 1, 4096, (4096 + 780) * 50),
    ],
)
def test_no_unit_splits_the_row_of_a_norm(what: str, rows: int, width: int, slots: int) -> None:
    work = single(f"{what}(rows={rows},columns={width})")
    # one thread block issues 128 of the instructions of its row in a clock
    assert_close(busy_s(work, "fp16"), norm(rows * slots / THREADS_PER_S, clocks(slots / 128)))


@pytest.mark.parametrize(
    ("groups", "channels", "size", "rows", "length"),
    [
        (4, 8, 32, 4, 2048),  # two channels of 1,024 positions
        (8, 8, 32, 8, 1024),
        (1, 64, 64, 8, 2**15),  # thread blocks share a group that is longer
    ],
)
def test_a_group_norm_normalizes_channels_and_positions_together(
    groups: int, channels: int, size: int, rows: int, length: int
) -> None:
    slots = length * 80
    expected = norm(rows * slots / THREADS_PER_S, clocks(slots / 128))
    for module in (nn.GroupNorm(groups, channels), nn.GroupNorm(groups, channels, affine=False)):
        assert_close(busy_s(columns(module, image(1, channels, size)), "fp16"), expected)


@pytest.mark.parametrize(
    ("channels", "size", "steps"),
    [
        # four warps of 32 threads, each thread with four outputs and all 49 positions
        (512, 7, 13),
        # 196 positions are divided among the warps: 49 each
        (1024, 14, 13),
        (512, 28, 49),
        # 72 channels fill 16 threads, so that eight rows of threads divide 784 positions
        (72, 28, 25),
        # 392 positions of a thread are divided among 25 blocks: 16 each; they meet, and four rows read 25 results
        (96, 56, 4 + 12 + 4),
    ],
)
def test_a_pooling_takes_the_steps_of_one_thread(channels: int, size: int, steps: int) -> None:
    work = columns(nn.AdaptiveAvgPool2d(1), image(1, channels, size))
    assert_close(float(timed(work, "fp32")[0].start_s.sum()), clocks(4500 + steps * 400))


@pytest.mark.parametrize(("rows", "steps"), [(1, 2), (8, 16), (64, 32)])
def test_a_mean_of_a_row_takes_more_steps_beside_other_rows(rows: int, steps: int) -> None:
    # one row has 512 threads with two vectors of four; of 16 rows and more, each has 32 threads
    work = columns(Function(lambda x: x.mean(-1)), meta(rows, 4096))
    assert_close(float(timed(work, "fp16")[0].start_s.sum()), clocks(4500 + steps * 400))


def test_compiled_code_reduces_a_row_in_a_thread_block_and_one_that_is_longer_in_phases() -> None:
    def start(length: int, runtime: str) -> float:
        work = columns(Function(lambda x: x.sum(-1)), meta(8, length))
        return float(timed(work, "fp16", runtime)[0].start_s.sum())

    for runtime in ("fused", "engine"):
        assert_close(start(4096, runtime), clocks(4500))
        # eight rows of 64 threads divide 2^16 elements: 128 each
        assert_close(start(2**16, runtime), clocks(4500 + 32 * 400))
    assert_close(start(4096, "graph"), clocks(4500 + 16 * 400))


def test_a_depthwise_convolution_that_leaves_out_positions_is_slower() -> None:
    work = columns(conv(64, 64, 28, groups=64, stride=2), image(1, 64, 28))
    # two of three loads of a row are new, twice the one of stride 1: 11 and 7 instructions
    for precision, slots in (("fp32", 2 * 11), ("fp16", 2 * 7)):
        assert_close(busy_s(work, precision), 64 * 14 * 14 * 9 * slots / THREADS_PER_S)


@pytest.mark.parametrize(("window", "stride", "loads"), [(3, 2, 6), (2, 2, 4), (3, 1, 3)])
def test_pooling_loads_what_its_neighbour_has_not(window: int, stride: int, loads: int) -> None:
    module = nn.MaxPool2d(window, stride, padding=window // 2 if stride < window else 0)
    work = columns(module, image(8, 64, 112))
    outputs = 8 * 64 * (112 // stride) ** 2
    assert work.output_element_count.tolist() == [outputs]
    issue = outputs * loads * 110 / THREADS_PER_S
    times, _ = timed(work, "fp32")
    assert_close(float(times.busy_s[0]), norm(issue, clocks(38_000)))
    # energy follows the instructions, not the wait
    assert_close(float(times.issue_s[0]), issue)


def test_a_batch_norm_strides_over_one_sample_and_issues_for_each_element() -> None:
    # 64 x 56 x 56 = 200,704 elements are rounded up to 2^18, two passes of 2^17; 60 instructions for each element,
    # whatever its size
    elements = 64 * 56 * 56
    for batch in (1, 64):
        work = columns(nn.BatchNorm2d(64, device="meta"), image(batch, 64, 56))
        issue = batch * elements * 60 / THREADS_PER_S
        assert_close(busy_s(work), norm(issue, clocks(2 * 40_000)))
        for precision in ("fp16", "fp32"):
            assert_close(float(timed(work, precision)[0].issue_s[0]), issue)
    assert_close(busy_s(work, "fp16"), issue)
    # what does not fit L2 crosses DRAM once each way, with its four parameters of 64 channels
    moved = (2 * 64 * elements + 4 * 64) * 4
    times, _ = timed(work, "fp32")
    assert_close(float(times.memory_s[0]), moved / GPU_BYTES_PER_S)
    found, _ = placed(work, "fp32")
    assert_close(float(found.dram_read_bytes.sum() + found.dram_write_bytes.sum()), moved)


def test_a_layer_norm_reads_rows_again_that_the_cache_does_not_hold() -> None:
    # 2048 rows of four bytes are at work, 128 threads each, and half of 32 MiB holds them up to 2048 elements each:
    # half of those of 2560 are read again, all of those of 4096 and more
    for rows, length, more in ((8192, 2048, 1.0), (8192, 2560, 1.25), (8192, 4096, 1.5), (8192, 8192, 1.5)):
        moved = (2 * rows * length + 2 * length) * 4
        times, _ = timed(single(f"layer_norm(rows={rows},columns={length})"), "fp32")
        assert_close(float(times.memory_s[0]), more * moved / GPU_BYTES_PER_S)
    # no more rows are at work than there are; these fit the L2 of 8 TB/s, used at half
    times, _ = timed(single("layer_norm(rows=500,columns=8192)"), "fp32")
    assert_close(float(times.memory_s[0]), (2 * 500 + 2) * 8192 * 4 / 4e12)


def test_kernels_of_inference_engines_take_elements_one_at_a_time() -> None:
    # 80 instructions for each element, those of a norm's row padded to a multiple of 512, of which a block issues 128 a
    # clock; two divisions, 110 each, for each element that is looked up
    slots = 128 * ISSUE_HZ
    for name, row, start in (
        ("rms_norm(rows=7,columns=2050)", 2560, 4500),
        ("gated(kind=silu,rows=7,columns=1024)", 1024, 2000),
    ):
        times, _ = timed(single(name), "fp16")
        assert_close(float(times.busy_s[0]), norm(80 * 7 * row / slots, clocks(row * 80 / 128)))
        assert_close(float(times.start_s[0]), clocks(start))
    times, _ = timed(single("rotary(rows=7,heads=4,kv_heads=2,head_dim=64)"), "fp16")
    assert_close(float(times.busy_s[0]), 80 * 7 * 6 * 64 / slots)
    times, _ = timed(single("embedding(rows=7,columns=64,table=99)"), "fp16")
    assert_close(float(times.busy_s[0]), 2 * 110 * 7 * 64 / slots)


def test_a_softmax_of_long_rows_is_bytes_and_reads_them_thrice() -> None:
    # 512 threads a row: 512 rows at work of 4096 elements fit, those of 10,240 are half read again, twice
    for length, more in ((4096, 1.0), (10_240, 1.5)):
        times, _ = timed(single(f"softmax(rows=4096,columns={length})"), "fp32")
        assert times.busy_s.tolist() == [0.0]
        assert_close(float(times.memory_s[0]), more * 2 * 4096 * length * 4 / GPU_BYTES_PER_S)


def test_softmax_pads_its_rows_to_a_power_of_two() -> None:
    # 30 rows of 65 take 30 of 128 and 48 more; the lanes of 63 x 30 elements idle, 32 to a warp, at half an instruction
    work = single("softmax(rows=30,columns=65)")
    assert_close(busy_s(work), 30 * (128 + 48) * 45 / THREADS_PER_S)
    assert_close(count(run(TOY, "fp32", work, "graph"), "divergence", "replay"), 30 * 63 / 32 * 0.5)


def test_elementwise_work_is_bound_by_bytes_unless_it_is_a_function_or_a_broadcast() -> None:
    elements = 4 * 64 * 28 * 28
    x, channel = meta(4, 64, 28, 28), meta(4, 64, 1, 1)
    for function, inputs, slots in (
        (torch.relu, (x,), 0),
        (torch.add, (x, x.clone()), 0),
        (torch.sigmoid, (x,), 45),
        (functional.hardswish, (x,), 45),
        (torch.mul, (x, channel), 110),
    ):
        assert_close(busy_s(columns(Function(function), *inputs)), elements * slots / THREADS_PER_S)


def test_copies_move_at_the_rate_of_their_memory() -> None:
    # 8 MiB through an L2 of 8 TB/s, 64 MiB through DRAM of 2 TB/s, planar at 0.5, stacked at 0.8, with ECC at 0.4
    stacked, protected = (attrs.evolve(TOY, memory_type=one) for one in ("HBM3", "GDDR6 with ECC"))
    for elements, hardware, rate in (
        (2**20, TOY, 8e12 * 0.5),
        (2**23, TOY, 2e12 * 0.5),
        (2**23, stacked, 2e12 * 0.8),
        (2**23, protected, 2e12 * 0.4),
    ):
        times, _ = timed(single(f"elementwise(kind=relu,elements={elements})"), "fp32", hardware=hardware)
        assert_close(float(times.memory_s[0]), 2 * elements * 4 / rate)


# together
