"""Kernels of a GPU: what each costs before it runs, how long it is busy, and what must never get worse. On a toy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.nn import functional

from chip import CLOCK_HZ
from compare import assert_close
from convolution import count, run
from gpu_case import (
    GAP_S,
    GPU_BYTES_PER_S,
    GPU_HOST_S,
    ISSUE_HZ,
    MACS_PER_S,
    TOY,
    UNITS,
    kernel_seconds,
    norm,
    placed,
    timed,
)
from joulemap.catalog.load import load_catalogue
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture.gpu.issue import padded_rows
from joulemap.model.kernel import form_kernels
from joulemap.model.workload import WorkloadColumns
from models import Attention, Function, Gemm, Residual, SelfAttention, columns, image, shipped
from variants import with_bandwidth, with_caches, with_clock, with_more_units, with_units


def meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


def conv(
    channels: int, outputs: int, size: int, kernel: int = 3, *, bias: bool = False, stride: int = 1, groups: int = 1
) -> nn.Module:
    return nn.Conv2d(channels, outputs, kernel, stride, kernel // 2, groups=groups, bias=bias, device="meta")


@cache
def attention(tokens: int = 256, heads: int = 8, width: int = 64) -> WorkloadColumns:
    return columns(Attention(), *(meta(1, heads, tokens, width) for _ in range(3)))


# what an operator costs before it runs


@pytest.mark.parametrize(
    ("name", "fp32_us", "fp16_us"),
    [
        ("linear", 3.5, 3.0),
        # halfway between one tap and several where positions are left out
        ("pointwise", (4.0 + 5.0) / 2, (2.0 + 6.0) / 2),
        # an image on tensor cores is half of a convolution
        ("stem", 5.0, 6.0 / 2),
        ("native", 4.5, 5.5),
        ("depthwise", 1.2, 1.5),
        ("batched", 3.8, 2.2),
        ("attention", 15.0, 4.0),
        ("relu", 1.0, 1.4),
        ("scale", 1.8, 2.0),
        ("softmax", 1.3, 1.3),
        ("layer norm", 2.5, 3.0),
        ("largest", 2.6, 2.6),
        ("mean", 5.0, 6.0),
    ],
)
def test_each_kind_of_kernel_starts_at_a_cost_of_its_own(name: str, fp32_us: float, fp16_us: float) -> None:
    for precision, cost_us in (("fp32", fp32_us), ("fp16", fp16_us)):
        placement, _ = placed(works()[name], precision)
        assert_close(float(placement.launch_s.sum()), cost_us * 1e-6 + GAP_S, rel=1e-9)


def test_a_bias_is_a_pass_of_its_own_unless_it_is_merged() -> None:
    outputs = 64 * 28 * 28
    for bias in (False, True):
        work = columns(conv(64, 64, 28, bias=bias), image(1, 64, 28))
        times, _ = timed(work, "fp32")
        assert times.kernel_count.tolist() == [1.0 + bias]
        assert times.pass_bytes.tolist() == [2 * outputs * 4.0 * bias]
        placement, _ = placed(work, "fp32")
        # a kernel of its own starts as a broadcast does, and there is a gap after each
        assert_close(float(placement.launch_s[0]), 5e-6 + GAP_S + bias * (1.8e-6 + GAP_S), rel=1e-9)
        merged, _ = timed(work, "fp32", "fused")
        assert (merged.kernel_count.tolist(), merged.pass_bytes.tolist()) == ([1.0], [0.0])


def test_a_bias_for_one_position_starts_sooner() -> None:
    work = columns(conv(64, 64, 1, 1, bias=True), image(2, 64, 1))
    # two rows: 0.6 of a convolution of one tap; half of a broadcast
    placement, _ = placed(work, "fp32")
    assert_close(float(placement.launch_s[0]), 0.6 * 4e-6 + 0.5 * 1.8e-6 + 2 * GAP_S, rel=1e-9)


def test_half_precision_converts_the_parameters_of_a_batch_norm() -> None:
    # 512 channels: 1 + log2(512 / 128) / 4 times an elementwise kernel
    for channels, growth in ((64, 1.0), (128, 1.0), (512, 1.5), (8192, 2.0)):
        work = columns(nn.BatchNorm2d(channels, device="meta"), image(1, channels, 4))
        placement, _ = placed(work, "fp16")
        assert_close(float(placement.launch_s[0]), 4e-6 + growth * 1.4e-6 + 2 * GAP_S, rel=1e-9)
        assert_close(float(placed(work, "fp32")[0].launch_s[0]), 1.6e-6 + GAP_S, rel=1e-9)


def test_a_roll_moves_data_once_for_each_direction() -> None:
    elements = 56 * 56 * 96
    work = columns(Function(lambda x: torch.roll(x, (3, 3), (1, 2))), meta(1, 56, 56, 96))
    assert work.operation.tolist() == ["roll"]
    placement, _ = placed(work, "fp32")
    assert_close(float(placement.launch_s[0]), 2 * (1.8e-6 + GAP_S), rel=1e-9)
    times, _ = timed(work, "fp32")
    assert times.kernel_count.tolist() == [2.0]
    assert_close(float(times.busy_s[0]), 2 * 1.25 * elements / (2 * ISSUE_HZ), rel=1e-9)
    permuted, _ = timed(columns(Function(lambda x: x.transpose(1, 2).contiguous()), meta(1, 56, 56, 96)), "fp32")
    assert_close(float(times.busy_s[0]), 2 * float(permuted.busy_s[-1]), rel=1e-9)


def test_a_gap_follows_each_kernel() -> None:
    work = columns(Residual(64), image(1, 64, 8))
    placement, kernels = placed(work, "fp32")
    times, _ = timed(work, "fp32")
    assert kernels.kernel_count == 7
    assert_close(float(placement.launch_s.sum()), float(times.fixed_s.sum()) + 7 * GAP_S, rel=1e-9)


def test_eager_waits_for_the_host_once_for_each_call() -> None:
    work = columns(conv(64, 64, 4, groups=1), image(1, 64, 4))
    assert_close(sum(kernel_seconds(*placed(work, "fp16", "eager"))), GPU_HOST_S, rel=1e-9)
    # four groups of 64 channels are four launches more
    looped = columns(conv(256, 256, 4, groups=4), image(1, 256, 4))
    assert_close(sum(kernel_seconds(*placed(looped, "fp16", "eager"))), 5 * GPU_HOST_S, rel=1e-9)


# how long it is busy


@pytest.mark.parametrize(("window", "stride", "loads"), [(3, 2, 6), (2, 2, 4), (3, 1, 3)])
def test_pooling_loads_what_its_neighbour_has_not(window: int, stride: int, loads: int) -> None:
    module = nn.MaxPool2d(window, stride, padding=window // 2 if stride < window else 0)
    work = columns(module, image(8, 64, 112))
    outputs = 8 * 64 * (112 // stride) ** 2
    assert work.output_element_count.tolist() == [outputs]
    seconds = outputs * loads / (0.8 * ISSUE_HZ)
    times, _ = timed(work, "fp32")
    assert_close(float(times.busy_s[0]), norm(seconds, 20e-6, sharpness=4.0), rel=1e-9)
    # energy follows the instructions, not the wait
    assert_close(float(times.instruction_s[0]), seconds, rel=1e-9)


def test_an_average_costs_its_output_and_a_share_for_each_tap() -> None:
    # a twentieth for each of four
    for precision, per_clock in (("fp32", 0.2), ("fp16", 0.25)):
        times, _ = timed(works()["average"], precision)
        assert_close(float(times.busy_s[0]), 64 * 28 * 28 * (1 + 4 * 0.05) / (per_clock * ISSUE_HZ), rel=1e-9)


def test_a_batch_norm_strides_over_one_sample_and_streams_many() -> None:
    # 64 x 56 x 56 = 200,704 elements are rounded up to 2^18: two steps
    busy_s = 2 * 4e-6
    elements = 64 * 56 * 56
    for batch in (1, 64):
        work = columns(nn.BatchNorm2d(64, device="meta"), image(batch, 64, 56))
        times, _ = timed(work, "fp32")
        assert_close(float(times.busy_s[0]), busy_s, rel=1e-9)
        assert (times.memory_s[0] > times.busy_s[0]) == (batch == 64)
    # what does not fit L2 crosses DRAM both ways, with its four parameters of 64 channels
    moved = (2 * 64 * elements + 4 * 64) * 4
    memory_s = 2 * moved / GPU_BYTES_PER_S
    assert_close(float(times.memory_s[0]), memory_s, rel=1e-9)
    # near the larger: a norm of 8
    placement, kernels = placed(work, "fp32")
    (seconds,) = kernel_seconds(placement, kernels)
    assert_close(seconds, 1.6e-6 + GAP_S + norm(busy_s, memory_s, sharpness=8.0), rel=1e-9)


def test_a_half_precision_batch_norm_of_few_channels_streams_worse() -> None:
    streams = []
    for channels in (16, 64):
        work = columns(nn.BatchNorm2d(channels, device="meta"), image(1024 // channels, channels, 224))
        times, _ = timed(work, "fp16")
        assert times.busy_s.tolist() == [0.0]
        streams.append(float(times.memory_s[0]))
    # 64 channels at least: four times as long for 16, for the same elements
    assert_close(streams[0] / streams[1], 4.0, rel=1e-4)


def test_softmax_pads_its_rows_to_a_power_of_two() -> None:
    # 30 rows of 65 become 30 of 128
    work = columns(Function(lambda x: torch.softmax(x, -1)), meta(2, 3, 5, 65))
    times, kernels = timed(work, "fp32")
    assert padded_rows(kernels).tolist() == [30 * 128]
    assert_close(float(times.busy_s[0]), 30 * 128 * 0.75 / (2 * ISSUE_HZ), rel=1e-9)
    _, of_exact = timed(columns(Function(lambda x: torch.softmax(x, -1)), meta(2, 3, 5, 64)), "fp32")
    assert padded_rows(of_exact).tolist() == [30 * 64]
    # the lanes of 63 x 30 elements idle, 32 to a warp, at half an instruction
    found = run(TOY, "fp32", work, "graph")
    assert_close(count(found, "divergence", "replay"), 30 * 63 / 32 * 0.5, rel=1e-9)


def test_a_layer_norm_costs_its_rows() -> None:
    work = columns(nn.LayerNorm(768, device="meta"), meta(2, 197, 768))
    for precision, clocks in (("fp32", 400), ("fp16", 300)):
        assert_close(float(timed(work, precision)[0].busy_s[0]), 2 * 197 * clocks / ISSUE_HZ, rel=1e-9)


def test_elementwise_work_is_bound_by_bytes_unless_it_is_a_function_or_a_broadcast() -> None:
    elements = 4 * 64 * 28 * 28
    x, channel = meta(4, 64, 28, 28), meta(4, 64, 1, 1)
    for function, inputs, per_clock in (
        (torch.relu, (x,), 0.0),
        (torch.add, (x, x.clone()), 0.0),
        (torch.sigmoid, (x,), 8.0),
        (functional.hardswish, (x,), 8.0),
        (torch.mul, (x, channel), 2.0),
    ):
        busy = float(timed(columns(Function(function), *inputs), "fp32")[0].busy_s[0])
        assert_close(busy, elements / (per_clock * ISSUE_HZ) if per_clock else 0.0, rel=1e-9)


def test_a_depthwise_convolution_waits_for_its_taps() -> None:
    # 64 channels of 14 x 14, nine taps
    work = columns(conv(64, 64, 14, groups=64), image(1, 64, 14))
    strided = columns(conv(64, 64, 28, groups=64, stride=2), image(1, 64, 28))
    macs = 64 * 14 * 14 * 9
    for precision, rate, clocks, slowdown in (("fp32", 16, 100, 1.5), ("fp16", 20, 300, 2.0)):
        at_rate = macs / (rate * ISSUE_HZ)
        times, _ = timed(work, precision)
        assert_close(float(times.busy_s[0]), norm(at_rate, 9 * clocks / CLOCK_HZ, sharpness=2.0), rel=1e-9)
        assert_close(float(times.instruction_s[0]), at_rate, rel=1e-9)
        assert_close(float(timed(strided, precision)[0].instruction_s[0]), slowdown * at_rate, rel=1e-9)


def test_a_long_reduction_takes_a_second_step() -> None:
    for size, expected in ((16, 0.0), (32, 6e-6)):
        # 256 and 1024 elements to one
        work = columns(Function(lambda x: x.mean(dim=(2, 3))), image(2, 64, size))
        assert_close(float(timed(work, "fp32")[0].busy_s[0]), expected, rel=1e-9)


# attention


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_fused_attention_is_one_kernel_without_its_scores(runtime: str) -> None:
    tokens, heads, width = 256, 8, 64
    values = heads * tokens * width
    work = attention()
    placement, kernels = placed(work, "fp16", runtime)
    assert kernels.kernel_count == 1
    assert np.count_nonzero(placement.launch_s) == 1
    # query, key and value in, the result out; no score of 8 x 256 x 256
    assert kernels.moved_bytes.sum() == 4 * values * 2
    assert kernels.peak_activation_bytes == 4 * values * 2
    found = run(TOY, "fp16", work, runtime)
    assert found.subgraphs.kernel_count.tolist() == [1]
    assert count(found, "kernel", "launch") == 1
    assert count(found, "dram", "read") + count(found, "dram", "write") == 4 * values * 2


def test_fused_attention_passes_over_its_keys() -> None:
    tokens, heads, width = 1024, 12, 64
    macs = heads * tokens * tokens * width
    blocks = heads * tokens / 64
    for precision, efficiency, clocks in (("fp16", 0.25, 20), ("fp32", 0.4, 80)):
        times, kernels = timed(attention(tokens, heads, width), precision)
        rate = efficiency * MACS_PER_S[precision] / UNITS
        throughput = blocks / UNITS * macs / blocks / rate
        chain = tokens / 2 * clocks / CLOCK_HZ
        expected = norm(throughput, chain, sharpness=4.0)
        products = kernels.work.mac_count > 0
        for found in times.busy_s[products].tolist():
            assert_close(found, expected, rel=1e-9)


def test_attention_written_out_is_three_kernels_with_its_scores() -> None:
    tokens, heads, width = 256, 8, 64

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return torch.softmax(query @ key, -1) @ value

    work = columns(
        Function(attend), meta(1, heads, tokens, width), meta(1, heads, width, tokens), meta(1, heads, tokens, width)
    )
    kernels = form_kernels(work, "fp16", "graph")
    scores, values = heads * tokens * tokens, heads * tokens * width
    assert kernels.kernel_count == 3
    # scores are written, read, written again and read again
    assert kernels.moved_bytes.sum() == (4 * values + 4 * scores) * 2
    assert sum(kernel_seconds(*placed(work, "fp16"))) > sum(kernel_seconds(*placed(attention(), "fp16")))


# together


@cache
def works() -> dict[str, WorkloadColumns]:
    """One operator of each kind of kernel, and whole models."""
    return {
        "linear": columns(Gemm(768, 1000), meta(197, 768)),
        "vector": columns(Gemm(512, 1000), meta(1, 512)),
        "dense": columns(conv(64, 128, 28, bias=True), image(2, 64, 28)),
        "pointwise": columns(conv(256, 64, 28, 1, stride=2), image(1, 256, 28)),
        "stem": columns(conv(3, 64, 64, 7, stride=2), image(1, 3, 64)),
        "native": columns(conv(128, 128, 14, groups=32), image(1, 128, 14)),
        "fallback": columns(conv(96, 96, 14, groups=4), image(1, 96, 14)),
        "looped": columns(conv(256, 256, 14, groups=4), image(1, 256, 14)),
        "depthwise": columns(conv(64, 64, 28, 5, groups=64), image(1, 64, 28)),
        "batched": columns(Function(torch.matmul), meta(12, 49, 32), meta(12, 32, 49)),
        "attention": attention(),
        "relu": columns(Function(torch.relu), image(1, 64, 56)),
        "gelu": columns(Function(functional.gelu), meta(1, 197, 3072)),
        "scale": columns(Function(torch.mul), image(1, 64, 28), meta(1, 64, 1, 1)),
        "softmax": columns(Function(lambda x: torch.softmax(x, -1)), meta(12, 197, 197)),
        "layer norm": columns(nn.LayerNorm(768, device="meta"), meta(1, 197, 768)),
        "batch norm": columns(nn.BatchNorm2d(64, device="meta"), image(1, 64, 56)),
        "largest": columns(nn.MaxPool2d(3, 2, 1), image(1, 64, 56)),
        "average": columns(nn.AvgPool2d(2, 2), image(1, 64, 56)),
        "mean": columns(Function(lambda x: x.mean(dim=(2, 3))), image(1, 512, 28)),
        "copy": columns(Function(lambda x: x.transpose(1, 2).contiguous()), meta(1, 64, 512)),
        "roll": columns(Function(lambda x: torch.roll(x, (3, 3), (1, 2))), meta(1, 56, 56, 96)),
        "self attention": columns(SelfAttention(), meta(2, 49, 16)),
        "mobilenet_v3_small": shipped("mobilenet_v3_small"),
        "swin_t": shipped("swin_t"),
        "regnet_y_400mf": shipped("regnet_y_400mf"),
    }


SETTINGS = [(precision, runtime) for precision in ("fp32", "fp16") for runtime in RUNTIMES]


@pytest.mark.parametrize(("precision", "runtime"), SETTINGS)
def test_a_kernel_takes_at_least_each_of_its_parts(precision: str, runtime: str) -> None:
    for name, work in works().items():
        times, kernels = timed(work, precision, runtime)
        placement, _ = placed(work, precision, runtime)
        busy, memory = kernels.per_kernel(times.busy_s), kernels.per_kernel(times.memory_s)
        found = np.array(kernel_seconds(placement, kernels)) - placement.launch_s
        larger = np.maximum(busy, memory)
        assert (found >= larger * (1 - 1e-9)).all(), name
        # two equal parts under the softest norm
        assert (found <= 2**0.5 * larger + 1e-12).all(), name
        least = times.fixed_s[kernels.leader] + times.kernel_count[kernels.leader] * GAP_S
        assert (placement.launch_s >= least * (1 - 1e-9)).all(), name
        assert (times.instruction_s >= 0).all() and (placement.executed_macs >= 0).all(), name


BETTER: dict[str, Callable[[Hardware], Hardware]] = {
    "twice the bandwidth": lambda hardware: with_bandwidth(hardware, 2.0),
    "four times the caches": lambda hardware: with_caches(hardware, 4.0),
    "twice the units": lambda hardware: with_units(hardware, 2),
    "one unit more": lambda hardware: with_more_units(hardware, 1),
    "a clock half as fast again": lambda hardware: with_clock(hardware, 1.5),
}


CHIPS = [pytest.param(one, id=one.id) for one in (TOY, load_catalogue().find("h100_sxm5"))]
"""What must never get worse is tested on what ships as well."""


@pytest.mark.parametrize("plain", CHIPS)
@pytest.mark.parametrize("change", BETTER)
def test_no_kind_of_kernel_is_slower_on_better_hardware(change: str, plain: Hardware) -> None:
    better = BETTER[change](plain)
    for name, work in works().items():
        for precision, runtime in SETTINGS:
            before, after = (kernel_seconds(*placed(work, precision, runtime, one)) for one in (plain, better))
            for one, other in zip(before, after, strict=True):
                assert other <= one * (1 + 1e-9), (name, precision, runtime)


SIZES = st.integers(1, 300)


@pytest.mark.parametrize("plain", CHIPS)
@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from(["fp32", "fp16"]), st.sampled_from(sorted(BETTER)), st.integers(1, 40))
def test_no_product_is_slower_on_better_hardware(
    plain: Hardware, rows: int, inner: int, outputs: int, precision: str, change: str, extra: int
) -> None:
    work = columns(Gemm(8 * inner, 8 * outputs), meta(8 * rows, 8 * inner))
    (before,) = kernel_seconds(*placed(work, precision, "graph", plain))
    for better in (BETTER[change](plain), with_more_units(plain, extra)):
        (after,) = kernel_seconds(*placed(work, precision, "graph", better))
        assert after <= before * (1 + 1e-9)


@pytest.mark.parametrize("hardware", CHIPS)
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 16), st.integers(1, 64), st.sampled_from(["fp32", "fp16"]), st.integers(1, 3))
def test_a_larger_batch_is_never_faster(
    hardware: Hardware, batch: int, channels: int, precision: str, more: int
) -> None:
    module = nn.Sequential(conv(8 * channels, 64, 14), nn.BatchNorm2d(64, device="meta"), nn.ReLU())
    one, other = (
        sum(kernel_seconds(*placed(columns(module, image(size, 8 * channels, 14)), precision, hardware=hardware)))
        for size in (batch, batch + more)
    )
    assert other >= one * (1 - 1e-9)
