"""One GEMM of 1024 x 1024 x 1024 by hand: on toys of a CPU, a GPU, a TPU and a KPU."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn

from chip import DRAM_BYTES_PER_S, HOST_S, LAUNCH_S, cpu, gpu, kpu, tpu
from chips import find
from compare import assert_close
from gpu_case import GPU_HOST_S, PRODUCT_BYTES_PER_S, clocks, norm
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.run import BOTTLENECKS, RunColumns
from joulemap.physics.workload import WorkloadColumns
from models import Gemm, columns

MACS = 2**30
MIB = 2**20


@cache
def gemm(rows: int) -> WorkloadColumns:
    return columns(Gemm(), torch.empty(rows, 1024, device="meta"))


def run(hardware: Hardware, precision: str, *, rows: int = 1024, runtime: str = "fused") -> RunColumns:
    return evaluate(gemm(rows), hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))


def check(
    found: RunColumns,
    *,
    tiles: int,
    waves: int,
    units: int,
    compute_s: float,
    memory_s: float,
    launch_s: float,
    dram_bytes: int,
    bottleneck: str,
) -> None:
    columns_ = found.subgraphs
    assert columns_.tile_count.tolist() == [tiles]
    assert columns_.wave_count.tolist() == [waves]
    assert columns_.units_used_count.tolist() == [units]
    assert columns_.dram_bytes.tolist() == [dram_bytes]
    assert_close(float(columns_.compute_s[0]), compute_s, rel=1e-6)
    assert_close(float(columns_.memory_s[0]), memory_s, rel=1e-6)
    assert_close(float(columns_.launch_s[0]), launch_s)
    assert_close(found.latency_fs / 1e15, launch_s + max(compute_s, memory_s), rel=1e-6)
    assert [BOTTLENECKS[code] for code in columns_.bottleneck] == [bottleneck]


def count(found: RunColumns, component: str, action: str) -> float:
    position = found.hardware.reference.position((component, action))
    return float(found.ledger.action_count[found.ledger.action_index == position].sum())


def test_gpu_fp16() -> None:
    # 1024 MACs a clock and unit. Tiles of 64 x 64 are 16 x 16 = 256 blocks, two waves of 1024 steps, in which 4096 MACs
    # and 16 for each row and column issue: 12.7 us. 128 x 128 has half the units (20.7 us), K in two parts all of them
    # (10.4 us), which take 5.2 us to add up.
    step = (4096 + 16 * 128) / 1024
    # 4 MiB of operands and 2 MiB of results, of which a byte costs 1.5
    memory_s = 7 * MIB / PRODUCT_BYTES_PER_S
    check(
        run(gpu(), "fp16"),
        tiles=256,
        waves=2,
        units=128,
        compute_s=norm(clocks(2 * (1024 * step + 200)), memory_s),
        memory_s=memory_s,
        # start of a product and the gap between kernels
        launch_s=clocks(4200 + 1000),
        # a layer amid others: six copies of 2 MiB of weights stay in L2, and so does what comes in and goes out
        dram_bytes=0,
        bottleneck="compute",
    )


def test_gpu_fp16_counts() -> None:
    found = run(gpu(), "fp16")
    assert count(found, "tensor_core", "fp16_mac") == MACS
    # 16 x 8 x 16 MACs an instruction; the tiles fit the problem, so nothing is padding
    assert count(found, "tensor_core", "instruction") == MACS / 2048
    # a block reads 1024 x (64 + 64) elements of two bytes
    assert count(found, "l2", "read") == 256 * 1024 * 128 * 2
    assert count(found, "thread_block", "launch") == 256
    # 8 warps a block at each of 1024 / 32 steps
    assert count(found, "barrier", "arrival") == 256 * 8 * 32
    assert count(found, "kernel", "launch") == 1


def test_turing_has_smaller_tensor_instructions_than_ampere() -> None:
    # 16 x 8 x 8 MACs at 16 bits, 8 x 8 x 16 at 8; of an Ampere 16 x 8 x 16 and 16 x 8 x 32. No tile is padded
    shapes = {"t4": {"fp16": 1024, "int8": 1024}, "a40": {"fp16": 2048, "int8": 4096}}
    for chip, each in shapes.items():
        for precision, macs in each.items():
            assert count(run(find(chip), precision), "tensor_core", "instruction") == MACS / macs


def test_gpu_fp32_splits_the_inner_dimension_of_large_tiles() -> None:
    # 128 MACs a clock and unit; 64 tiles of 128 x 128, K in two parts: 128 blocks, one wave of 512 steps, 89 us and 5
    # to add up. 64 x 64 needs two waves (112 us)
    step = (128 * 128 + 20 * 256) / 128
    memory_s = 14 * MIB / PRODUCT_BYTES_PER_S
    check(
        run(gpu(), "fp32"),
        tiles=128,
        waves=1,
        units=128,
        compute_s=norm(clocks(512 * step + 3000), memory_s),
        memory_s=memory_s,
        # two parts of a million outputs, added up
        launch_s=clocks(7500 + 1000 + 4000) + 8 / 7 * 2 * MIB / 2e12,
        # six copies of 4 MiB and 8 MiB in and out fill its 32 MiB
        dram_bytes=0,
        bottleneck="compute",
    )


def test_cpu_fp32() -> None:
    # blocks of 8 rows and 8 lanes: 128 x 128 = 16384 over four cores are 4096 waves; a core does 8 MACs a clock at 50 %
    check(
        run(cpu(), "fp32"),
        tiles=16384,
        waves=4096,
        units=4,
        compute_s=4096 * 8 * 8 * 1024 / (8 * 1e9 * 0.5),
        # the weights stay in L3; 4 MiB in, 4 MiB out
        memory_s=8 * MIB / DRAM_BYTES_PER_S,
        launch_s=LAUNCH_S,
        dram_bytes=8 * MIB,
        bottleneck="compute",
    )


def test_an_engine_on_a_cpu_computes_small_windows_by_winograd() -> None:
    """Of 3 x 3 convolutions in lanes 1 / 1.75 of the MACs are left, in time and in energy."""

    def convolve(kernel: int, precision: str, runtime: str, stride: int = 1) -> RunColumns:
        module = nn.Conv2d(64, 64, kernel, stride, padding=kernel // 2, bias=False, device="meta")
        work = columns(module, torch.empty(1, 64, 32, 32, device="meta"))
        return evaluate(work, cpu(), Configuration(hardware="cpu", precision=precision, runtime=runtime))

    def busy_s(found: RunColumns) -> float:
        return float(found.subgraphs.compute_s[0])

    plain, engine = (convolve(3, "fp32", runtime) for runtime in ("fused", "engine"))
    macs = 32 * 32 * 64 * 64 * 9
    assert count(plain, "vector_fma", "fp32_mac") == macs
    assert_close(count(engine, "vector_fma", "fp32_mac"), macs / 1.75)
    assert_close(busy_s(engine), busy_s(plain) / 1.75)
    # dot products of bytes, windows of one tap and such as leave out positions are as they were
    for precision, kernel, stride in (("int8", 3, 1), ("fp32", 1, 1), ("fp32", 3, 2)):
        alike = [busy_s(convolve(kernel, precision, runtime, stride)) for runtime in ("fused", "engine")]
        assert_close(alike[0], alike[1])


def test_cpu_fp32_counts() -> None:
    found = run(cpu(), "fp32")
    fmas = MACS / 8
    loads, stores = 0.5 * fmas, 4 * MIB / 32
    vector_instructions = fmas + loads + stores
    assert count(found, "vector_fma", "fp32_mac") == MACS
    assert_close(count(found, "decoder", "decode"), 1.25 * vector_instructions)
    assert_close(count(found, "branch_predictor", "lookup"), 0.125 * vector_instructions)
    assert_close(count(found, "l1", "read"), loads * 32)


def test_actions_at_a_picojoule_and_a_watt_of_leakage() -> None:
    found = run(cpu(), "fp32")
    dynamic = found.ledger.action_index != found.hardware.reference.position(STATIC_ACTION)
    # 1000 fJ for every count; 1 W is as many femtojoules as the run takes femtoseconds
    expected = 1000 * float(found.ledger.action_count[dynamic].sum()) + found.latency_fs
    assert_close(found.energy_fj, expected)


def test_tpu_bf16() -> None:
    # 16 x 16 weight tiles of 64 x 64, four blocks of 256 rows each: 1024 over 4 arrays are 256 waves of 256 cycles,
    # then 128 cycles to fill and drain
    check(
        run(tpu(), "bf16"),
        tiles=1024,
        waves=256,
        units=4,
        compute_s=(256 * 256 + 128) / 1e9,
        # the weights come anew: three operands of 2 MiB
        memory_s=6 * MIB / DRAM_BYTES_PER_S,
        launch_s=LAUNCH_S,
        dram_bytes=6 * MIB,
        bottleneck="memory",
    )


def test_tpu_bf16_counts() -> None:
    found = run(tpu(), "bf16")
    assert count(found, "mxu", "bf16_mac") == MACS
    # every weight tile is shifted in for each of four row blocks
    assert count(found, "weight", "shift_in") == 4 * 1024 * 1024
    # a partial sum for each output and each of 16 tiles along K
    assert count(found, "partial_sum", "drain") == 1024 * 1024 * 16
    # no padding; every array waits 2 x 64 cycles while the pipeline fills and drains
    assert count(found, "mxu", "idle_cycle") == 4 * 64 * 64 * 128


def test_tpu_int8_streams_two_rows_a_cycle() -> None:
    assert_close(float(run(tpu(), "int8").subgraphs.compute_s[0]), (256 * 128 + 128) / 1e9)


def test_tpu_fp32_takes_six_passes() -> None:
    found = run(tpu(), "fp32")  # the toy has six at every matmul precision
    assert_close(float(found.subgraphs.compute_s[0]), (6 * 256 * 256 + 128) / 1e9)
    assert count(found, "mxu", "bf16_mac") == 6 * MACS


def test_tpu_takes_a_single_row_to_its_vector_unit() -> None:
    # 1024 x 1024 MACs on 1024 lanes are 1024 cycles; 256 tiles over 4 arrays, 64 rows each to fill, would be 4224
    found = run(tpu(), "bf16", rows=1)
    assert_close(float(found.subgraphs.compute_s[0]), 1024 / 1e9)
    assert count(found, "vpu", "elementwise") == 1024 * 1024
    assert count(found, "mxu", "bf16_mac") == 0


def test_tpu_fills_its_array_for_a_few_rows() -> None:
    # 16 rows cost what 64 do: 64 waves of 64 cycles, then 128; the vector unit would need 16,384
    found = run(tpu(), "bf16", rows=16)
    assert found.subgraphs.wave_count.tolist() == [64]
    assert_close(float(found.subgraphs.compute_s[0]), (64 * 64 + 128) / 1e9)


def test_kpu_int8() -> None:
    # blocks of 16 x 16: 4096 over 16 tiles are 256 waves of 1024 steps (256 MACs a clock) and 32 to fill and drain
    check(
        run(kpu(), "int8"),
        tiles=4096,
        waves=256,
        units=16,
        compute_s=256 * (1024 + 32) / 1e9,
        # three operands of 1 MiB
        memory_s=3 * MIB / DRAM_BYTES_PER_S,
        launch_s=LAUNCH_S,
        dram_bytes=3 * MIB,
        bottleneck="compute",
    )


def test_kpu_int8_counts() -> None:
    found = run(kpu(), "int8")
    assert count(found, "pe", "int8_mac") == MACS
    assert count(found, "pe_neighbor", "forward") == 2 * MACS
    # each block streams in both operands along its edges: 1024 x (16 + 16) elements
    assert count(found, "token", "injection") == 4096 * 1024 * 32
    assert count(found, "tile", "barrier") == 4096
    # 32 of 1056 cycles of 16 tiles of 256 processing elements
    assert_close(count(found, "pe", "idle_cycle"), 256 * 32 * 16 * 256)


def test_kpu_fp32_has_fewer_tiles() -> None:
    # four tiles with 64 MACs a clock: 4096 blocks are 1024 waves of 4096 + 32 cycles
    found = run(kpu(), "fp32")
    assert found.units_total_count == 4
    assert found.subgraphs.wave_count.tolist() == [1024]
    assert_close(float(found.subgraphs.compute_s[0]), 1024 * (4096 + 32) / 1e9)


def test_the_host_adds_its_launch_in_eager() -> None:
    for hardware, precision in ((tpu(), "bf16"), (kpu(), "int8")):
        found = run(hardware, precision, runtime="eager")
        assert_close(float(found.subgraphs.launch_s[0]), LAUNCH_S + HOST_S)


def test_the_gpu_hides_its_work_behind_the_host_in_eager() -> None:
    # 50 us between launches, whatever the device does in less
    found = run(gpu(), "fp16", runtime="eager")
    assert_close(found.latency_fs / 1e15, GPU_HOST_S)
    assert count(found, "kernel", "launch") == 1
