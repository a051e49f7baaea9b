"""A mixture of experts in one call: what is routed where, and how long its products take, by hand on a toy GPU."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from compare import assert_close
from gpu_case import TOY, clocks, single, sort_name, timed
from joulemap.catalog.load import load_catalogue
from joulemap.domain.operator.name import find_operator
from joulemap.physics.architecture.gpu.expert import find_family
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.workload import STREAMED, columns_of
from joulemap.system.errors import UsageError
from joulemap.system.units import FS_PER_S
from joulemap.trace.formula.product import hit_count
from joulemap.trace.single import describe
from joulemap.trace.single.routing import route

CALL = "experts(rows=32,hidden=1024,inner=512,taken=4,experts=16,routing=balanced,kernel=trtllm{more})"
"""128 choices, 8 for each of 16 experts."""


@pytest.mark.parametrize(
    ("tokens", "taken", "experts", "held", "routing", "rows", "hit"),
    [
        (32, 4, 16, 16, "balanced", 128, 16),
        (2, 4, 16, 16, "balanced", 8, 8),
        # of four devices: a quarter of each
        (32, 4, 16, 4, "balanced", 32, 4),
        (1, 2, 16, 1, "balanced", 1, 1),
        # all four of a device are read, each for 64 rows, or for 128 if 65 or more choose it
        (1, 8, 16, 4, "all", 256, 4),
        (130, 8, 16, 4, "all", 512, 4),
        # as a trace has it: n (1 - (1 - k / n)^T)
        (8, 8, 128, 128, "", 64, hit_count(8, 8, 128)),
        (1, 8, 128, 128, "", 8, 8),
    ],
)
def test_choices_fall_on_a_device(
    tokens: int, taken: int, experts: int, held: int, routing: str, rows: int, hit: int
) -> None:
    assert route(tokens, taken, experts, held, routing) == (rows, hit)


def test_skewed_loads_hit_fewer_experts_and_load_the_busiest_device_more() -> None:
    even, mild, steep = (route(64, 8, 128, 16, name) for name in ("balanced", "power_law_1.01", "power_law_1.2"))
    assert even == (64, 16)
    assert even[0] < mild[0] < steep[0] <= 512
    assert steep[1] <= mild[1] <= even[1]
    # alone, a device has all choices, however skewed
    assert route(64, 8, 128, 128, "power_law_1.2")[0] == 512
    # loads between 1 and 51.2 with a density of x^-1: an expert is hit above half of n m_1 / (T k) of them
    mean = (51.2 - 1) / math.log(51.2)
    missed = math.log(0.5 * mean * 128 / 512) / math.log(51.2)
    assert route(64, 8, 128, 128, "power_law_1.0")[1] == math.ceil(128 * (1 - missed))


def test_a_call_reads_the_experts_that_are_hit_and_holds_all() -> None:
    found = find_operator(CALL.format(more="").replace("rows=32", "rows=2"))
    assert found is not None
    work = describe(found, 1, NO_KEY)
    expert = 3 * 1024 * 512
    assert work.weight_bytes == 4 * 16 * expert
    assert sum(one.byte_count for one in work.accesses if one.role == "weight") == 4 * 8 * expert
    assert work.mac_count == 8 * expert
    assert work.parameter_count == 16 * expert


def test_rows_are_padded_to_a_block_for_each_expert() -> None:
    work = single(CALL.format(more=""))
    assert sort_name(work, "fp16") == "experts"
    times, kernels = timed(work, "fp16")
    products = kernels.work.has_macs
    # 16 experts of 8 rows: blocks of 16 x 64, 16 and 16 columns of them; a step of one of K supplies 80 rows and
    # columns of two bytes at 50 a clock
    step = max(16 * 64 / (0.5 * 1024), 80 * 2 / 50)
    up, down = (math.ceil(16 * 16 / 128) * (k * step + 1000) for k in (1024, 512))
    for busy, expected in zip(times.busy_s[products].tolist(), (up, down), strict=True):
        assert_close(busy, clocks(expected))
    assert times.tiles[products].tolist() == [256.0, 256.0]
    # routing, sorting, a place for each of 128 choices on 128 units; 128 x (1024 + 1024 + 512) elements between
    # kernels, from the last cache at half of 8 TB/s
    passed = 128 * 2560 * 2
    assert_close(float(times.start_s[kernels.leader].sum()), clocks(30000 + 11000 + 64) + passed / (8e12 * 0.5))
    assert times.pass_bytes.sum() == passed


def test_kernels_that_unpack_weights_multiply_no_faster_than_a_single_product_does() -> None:
    limit = {"packed_macs": attrs.evolve(TOY.coefficients["packed_macs"], value=4.0)}
    slow = attrs.evolve(TOY, unit_name="SM", coefficients={**TOY.coefficients, **limit})
    times, kernels = timed(single(CALL.format(more="").replace("trtllm", "marlin")), "fp16", hardware=slow)
    # blocks of 16 x 64 at 4 MACs a clock; Marlin's other numbers are 1, so 80 rows and columns of two bytes take less
    up, down = (math.ceil(16 * 16 / 128) * (k * max(16 * 64 / 4, 80 * 2) + 1) for k in (1024, 512))
    for busy, expected in zip(times.busy_s[kernels.work.has_macs].tolist(), (up, down), strict=True):
        assert_close(busy, clocks(expected))


def test_kernels_that_stream_weights_do_not_pad_rows() -> None:
    padded = single(CALL.format(more=""))
    variant = np.where(padded.has_macs, np.char.add(padded.variant, f" {STREAMED}"), padded.variant)
    times, kernels = timed(attrs.evolve(padded, variant=variant), "fp16")
    # 8 rows of each expert in place of a block of 16, and 8 blocks of 128 columns: one round on 128 units
    step = max(8 * 128 / (0.5 * 1024), 136 * 2 / 50)
    up, down = (k * step + 1000 for k in (1024, 512))
    for busy, expected in zip(times.busy_s[kernels.work.has_macs].tolist(), (up, down), strict=True):
        assert_close(busy, clocks(expected))


def test_weights_of_four_bits_are_a_quarter_with_their_scales() -> None:
    wide, narrow = (timed(single(CALL.format(more=more)), "fp16")[1] for more in ("", ",stored=int4"))
    assert wide.weight_bytes.sum() == 16 * 3 * 1024 * 512 * 2
    assert narrow.weight_bytes.sum() == 16 * (1024 * (512 + 16) + 1024 * (256 + 8))


def test_an_engine_takes_its_own_kernel_for_wide_weights_and_names_count() -> None:
    """Mixtral's 8192 choices of 3 x 4096 x 14336: 2.9 TFLOP, which 989 TFLOPS take 2.9 ms for; an H200 took 4.9."""
    call = "experts(rows=4096,hidden=4096,inner=14336,taken=2,experts=8,routing=balanced{kernel})"
    hardware = load_catalogue().find("h100_sxm5")

    def seconds(kernel: str, runtime: str, weights: str = "bf16") -> float:
        configuration = Configuration(hardware=hardware.id, precision="bf16", weight_precision=weights, runtime=runtime)
        work = columns_of(describe_call(call.format(kernel=kernel)))
        return Evaluator(work).evaluate(hardware, configuration).latency_fs / FS_PER_S

    engine = seconds("", "engine")
    assert 2.9e-3 < engine < 6e-3
    assert_close(engine, seconds("", "engine", weights=""))
    assert_close(engine, seconds(",kernel=vllm_unquantizedfusedmoe_triton_tritonexperts", "engine"))
    assert seconds("", "graph") > engine


@pytest.mark.parametrize(
    ("board", "precision", "weights", "kernel"),
    [
        ("a100_sxm4_80gb", "bf16", "", "vllm_fused_moe"),
        ("a100_sxm4_80gb", "bf16", "mxfp4", "marlin"),
        ("a100_sxm4_80gb", "bf16", "fp8_block", "marlin"),
        ("rtx_5090", "bf16", "nvfp4", "marlin"),
        ("h200_sxm", "bf16", "", "vllm_unquantizedfusedmoe_triton_tritonexperts"),
        ("h200_sxm", "bf16", "mxfp4", "vllm_gptossmxfp4moe_triton_oaitritonmxfp4expertsmonolithic"),
        ("h200_sxm", "fp8", "fp8_block", "vllm_fp8moe_triton_tritonexperts"),
        ("h200_sxm", "bf16", "int4", "sglang_marlin_moe"),
        ("b200_sxm", "bf16", "", "vllm_unquantizedfusedmoe_flashinfer_trtllm_trtllmbf16experts"),
        ("b200_sxm", "fp8", "fp8_block", "sglang_flashinfer_trtllm_moe"),
        ("gb200", "bf16", "mxfp4", "vllm_gptossmxfp4moe_flashinfer_trtllm_mxfp4_bf16_trtllmmxfp4expertsmonolithic"),
        ("gb200", "bf16", "int4", "marlin"),
        ("mi300x", "fp8", "fp8_block", "triton"),
        ("mi300x", "bf16", "int4", "triton"),
        ("mi355x", "fp4", "mxfp4", "triton"),
        ("mi355x", "bf16", "mxfp4", "triton"),
    ],
)
def test_an_engine_takes_the_kernel_that_was_written_for_its_tensor_cores(
    board: str, precision: str, weights: str, kernel: str
) -> None:
    call = "experts(rows=64,hidden=2048,inner=1024,taken=4,experts=32,routing=balanced{more})"
    hardware = load_catalogue().find(board)
    configuration = Configuration(
        hardware=board, precision=precision, weight_precision=weights or precision, runtime="engine"
    )
    unnamed, named = (
        Evaluator(columns_of(describe_call(call.format(more=more)))).evaluate(hardware, configuration)
        for more in ("", f",kernel={kernel}")
    )
    assert unnamed.latency_fs == named.latency_fs


def describe_call(name: str) -> Workload:
    found = find_operator(name)
    assert found is not None
    return describe(found, 1, NO_KEY)


def test_a_run_says_how_weights_are_stored_as_a_name_does() -> None:
    """Times are of the same family, bytes the same to a byte for each row."""
    plain = CALL.format(more="").replace(",kernel=trtllm", "")
    told = plain.replace(")", ",stored=int4)")
    hardware = load_catalogue().find("h100_sxm5")
    named, asked = (
        Evaluator(work).evaluate(
            hardware, Configuration(hardware=hardware.id, precision="bf16", runtime="graph", weight_precision=weights)
        )
        for work, weights in ((single(told), ""), (single(plain), "int4"))
    )
    assert named.weight_bytes == asked.weight_bytes
    assert named.operators.latency_fs.tolist() == asked.operators.latency_fs.tolist()


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("sglang_fused_moe_triton", "triton"),
        ("vllm_unquantizedfusedmoe_triton_tritonexperts", "triton_wide"),
        ("vllm_gptossmxfp4moe_triton_oaitritonmxfp4expertsmonolithic mxfp4", "triton_mxfp4"),
        ("oaitriton ", "triton_wide"),
        ("vllm_gptossmxfp4moe_flashinfer_trtllm_mxfp4_bf16_trtllmmxfp4expertsmonolithic mxfp4", "trtllm_wide"),
        ("vllm_mxfp4moe_flashinfer_trtllm_mxfp4_mxfp8_trtllmmxfp4expertsmodular mxfp4", "trtllm"),
        ("vllm_fp8moe_triton_tritonexperts", "triton"),
        ("", "triton"),
        ("vllm_compressedtensorswna16marlinmoe_marlin_marlinexperts int4", "marlin"),
        ("vllm_fp8moe_flashinfer_cutlass_flashinferexperts fp8_block", "cutlass_block"),
        ("moe_torch_flow", "trtllm_cutlass"),
        ("moe_torch_flow mxfp4", "trtllm"),
        ("sglang_flashinfer_trtllm_moe fp8_block", "trtllm_block"),
        (" int4", "marlin"),
        (" awq", "marlin"),
        ("sglang_fused_moe_triton int4", "triton"),
    ],
)
def test_a_kernel_is_of_the_family_that_its_name_tells(name: str, family: str) -> None:
    assert find_family(name) == family


@pytest.mark.parametrize("more", ["routing=even", "held=3", "taken=129"])
def test_what_cannot_be_routed_is_refused(more: str) -> None:
    name = f"experts(rows=1,hidden=8,inner=8,experts=128,{more}" + ("" if "taken" in more else ",taken=2") + ")"
    with pytest.raises(UsageError, match="experts: "):
        find_operator(name)
