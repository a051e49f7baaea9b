"""One GEMM of 1024 x 1024 x 1024 on each architecture, worked out by hand from the catalogue's numbers."""

from __future__ import annotations

from functools import cache

import torch

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.configuration import Configuration
from joulemap.model.pipeline import evaluate
from joulemap.model.run import BOTTLENECKS, RunColumns
from joulemap.model.workload import WorkloadColumns
from models import Gemm, columns
from variants import uncapped

MACS = 2**30
MIB = 2**20


@cache
def gemm(rows: int) -> WorkloadColumns:
    return columns(Gemm(), torch.empty(rows, 1024, device="meta"))


def run(hardware: str, precision: str, *, rows: int = 1024, runtime: str = "fused") -> RunColumns:
    target = uncapped(load_catalogue().find(hardware))
    return evaluate(gemm(rows), target, Configuration(hardware=hardware, precision=precision, runtime=runtime))


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
    assert_close(float(columns_.launch_s[0]), launch_s, rel=1e-9)
    assert_close(found.latency_fs / 1e15, launch_s + max(compute_s, memory_s), rel=1e-6)
    assert [BOTTLENECKS[code] for code in columns_.bottleneck] == [bottleneck]


def count(found: RunColumns, component: str, action: str) -> float:
    position = found.hardware.reference.position((component, action))
    return float(found.ledger.action_count[found.ledger.action_index == position].sum())


def together(first: float, second: float) -> float:
    """Return the cubic norm of two times: what a GPU's kernel takes that is busy and moves bytes at once."""
    return float((first**3 + second**3) ** (1 / 3))


def test_gpu_fp16() -> None:
    # 989.4 TFLOPS over 132 SMs: 3.7477e12 MAC/s each. Tiles of 128 x 64 are 8 x 16 = 128 blocks, one wave:
    # 8192 outputs x (1024 + 2 x 143 epilogue) steps at 1 / (1 + 12 (1/128 + 1/64)) of the peak, 3.7 us. 64 x 64 needs
    # two waves (3.9 us), 128 x 128 half the SMs, K in 1.55 parts three quarters of them (4.9 us).
    sm_macs_per_s = 989.4e12 / 2 / 132
    throughput_s = 8192 * (1024 + 2 * 143) / (sm_macs_per_s / (1 + 12 * 3 / 128))
    # 0.7 x 6.455 clocks a step, 2^0.02 times that in a tile of twice 64 x 64
    chain_s = 1024 * 0.7 * 6.455 / 1.98e9 * 2**0.02
    # the weights stay in 50 MiB of L2; 2 MiB in, 2 MiB out at 88 % of 3.35 TB/s
    memory_s = 4 * MIB / (3.35e12 * 0.88)
    check(
        run("h100_sxm5", "fp16"),
        tiles=128,
        waves=1,
        units=128,
        compute_s=together(together(throughput_s, chain_s), memory_s),
        memory_s=memory_s,
        # fixed cost of a linear kernel and the gap between kernels
        launch_s=2.72e-6 + 0.39e-6,
        dram_bytes=4 * MIB,
        bottleneck="compute",
    )


def test_gpu_fp16_counts() -> None:
    found = run("h100_sxm5", "fp16")
    assert count(found, "tensor_core", "fp16_mac") == MACS
    # 16 x 8 x 16 MACs an instruction; the tiles fit the problem, so nothing is padding
    assert count(found, "tensor_core", "instruction") == MACS
    # a block reads 1024 x (128 + 64) elements of two bytes
    assert count(found, "l2", "read") == 128 * 1024 * 192 * 2
    assert count(found, "thread_block", "launch") == 128
    # 8 warps a block at each of 1024 / 32 steps
    assert count(found, "barrier", "arrival") == 128 * 8 * 32
    assert count(found, "kernel", "launch") == 1


def test_gpu_fp32_splits_the_inner_dimension_of_large_tiles() -> None:
    # 66.9 TFLOPS over 132 SMs; 64 tiles of 128 x 128, K in two parts: 128 blocks, one wave of
    # 16,384 x (512 + 0.7 x 75) at 0.9818 / (1 + 22 x 2 / 128). 64 x 64 tiles need two waves (76 us).
    sm_macs_per_s = 66.9e12 / 2 / 132
    throughput_s = 16_384 * (512 + 0.7 * 75) / (sm_macs_per_s * 0.9818 / (1 + 22 * 2 / 128))
    # 0.85 x 138.6 clocks a step, twice that in a tile of four times 64 x 64
    chain_s = 512 * 0.85 * 138.6 / 1.98e9 * 2
    memory_s = 8 * MIB / (3.35e12 * 0.88)
    check(
        run("h100_sxm5", "fp32"),
        tiles=64,
        waves=1,
        units=64,
        # one doubling of the parts, to be added up
        compute_s=together(together(throughput_s, chain_s) + 3.7e-6, memory_s),
        memory_s=memory_s,
        launch_s=3.35e-6 + 0.39e-6,
        dram_bytes=8 * MIB,
        bottleneck="compute",
    )


def test_cpu_fp32() -> None:
    # blocks of 16 x 64: 64 x 16 = 1024 over 60 cores are 18 waves; a core does 32 MACs x 1.9 GHz at 90 %
    check(
        run("xeon_8490h", "fp32"),
        tiles=1024,
        waves=18,
        units=60,
        compute_s=18 * 16 * 64 * 1024 / (32 * 1.9e9 * 0.9),
        # the weights stay in L3; 4 MiB in, 4 MiB out at 80 % of 307.2 GB/s
        memory_s=8 * MIB / (307.2e9 * 0.8),
        launch_s=1e-5,
        dram_bytes=8 * MIB,
        bottleneck="compute",
    )


def test_cpu_fp32_counts() -> None:
    found = run("xeon_8490h", "fp32")
    fmas = MACS / 16
    loads, stores = 0.57 * fmas, 4 * MIB / 64
    vector_instructions = fmas + loads + stores
    assert count(found, "vector_fma", "fp32_mac") == MACS
    assert_close(count(found, "decoder", "decode"), 1.08 * vector_instructions, rel=1e-12)
    assert_close(count(found, "branch_predictor", "lookup"), 0.04 * vector_instructions, rel=1e-12)
    assert_close(count(found, "l1", "read"), loads * 64, rel=1e-12)


def test_tpu_bf16() -> None:
    # 8 x 8 weight tiles of 128 x 128, four blocks of 256 rows each: 256 over 8 arrays are 32 waves of 256 cycles,
    # then 256 cycles to fill and drain
    check(
        run("tpu_v4", "bf16"),
        tiles=256,
        waves=32,
        units=8,
        compute_s=(32 * 256 + 256) / 1.05e9,
        # the weights come anew: three operands of 2 MiB at 90 % of 1228 GB/s
        memory_s=6 * MIB / (1228e9 * 0.9),
        launch_s=1e-6,
        dram_bytes=6 * MIB,
        bottleneck="compute",
    )


def test_tpu_bf16_counts() -> None:
    found = run("tpu_v4", "bf16")
    assert count(found, "mxu", "bf16_mac") == MACS
    # every weight tile is shifted in for each of four row blocks
    assert count(found, "weight", "shift_in") == 4 * 1024 * 1024
    # a partial sum for each output and each of 8 tiles along K
    assert count(found, "partial_sum", "drain") == 1024 * 1024 * 8
    # no padding; every array waits 2 x 128 cycles while the pipeline fills and drains
    assert count(found, "mxu", "idle_cycle") == 8 * 128 * 128 * 256


def test_tpu_fp32_takes_six_passes() -> None:
    found = run("tpu_v4", "fp32")
    assert_close(float(found.subgraphs.compute_s[0]), (6 * 32 * 256 + 256) / 1.05e9, rel=1e-9)
    assert count(found, "mxu", "bf16_mac") == 6 * MACS


def test_tpu_takes_a_single_row_to_its_vector_unit() -> None:
    # 1024 x 1024 MACs on 2048 lanes are 512 cycles; 64 tiles over 8 arrays, 128 rows each to fill, would be 1280
    found = run("tpu_v4", "bf16", rows=1)
    assert_close(float(found.subgraphs.compute_s[0]), 512 / 1.05e9, rel=1e-9)
    assert count(found, "vpu", "elementwise") == 1024 * 1024
    assert count(found, "mxu", "bf16_mac") == 0


def test_tpu_fills_its_array_for_a_few_rows() -> None:
    # 16 rows cost what 128 do: 8 waves of 128 cycles, then 256; the vector unit would need 8192
    found = run("tpu_v4", "bf16", rows=16)
    assert found.subgraphs.wave_count.tolist() == [8]
    assert_close(float(found.subgraphs.compute_s[0]), (8 * 128 + 256) / 1.05e9, rel=1e-9)


def test_kpu_int8() -> None:
    # blocks of 32 x 32: 1024 over 256 tiles are four waves of 1024 steps (1024 MACs a clock) and 64 to fill and drain
    check(
        run("kpu_t256", "int8"),
        tiles=1024,
        waves=4,
        units=256,
        compute_s=4 * (1024 + 64) / 0.6e9,
        # three operands of 1 MiB at 85 % of 256 GB/s
        memory_s=3 * MIB / (256e9 * 0.85),
        launch_s=1e-6,
        dram_bytes=3 * MIB,
        bottleneck="memory",
    )


def test_kpu_int8_counts() -> None:
    found = run("kpu_t256", "int8")
    assert count(found, "pe", "int8_mac") == MACS
    assert count(found, "pe_neighbor", "forward") == 2 * MACS
    # each block streams in both operands along its edges: 1024 x (32 + 32) elements
    assert count(found, "token", "injection") == 1024 * 1024 * 64
    assert count(found, "tile", "barrier") == 1024
    # 64 of 1088 cycles of 256 tiles of 1024 processing elements
    assert_close(count(found, "pe", "idle_cycle"), 4 * 64 * 256 * 1024, rel=1e-9)


def test_kpu_fp32_has_fewer_tiles() -> None:
    # 51 tiles with 256 MACs a clock: 1024 blocks are 21 waves of 4096 + 64 cycles
    found = run("kpu_t256", "fp32")
    assert found.units_total_count == 51
    assert found.subgraphs.wave_count.tolist() == [21]
    assert_close(float(found.subgraphs.compute_s[0]), 21 * (4096 + 64) / 0.6e9, rel=1e-9)


def test_the_host_adds_its_launch_in_eager() -> None:
    for hardware, precision, region_s, host_s in (
        ("xeon_8490h", "fp32", 1e-5, 5e-6),
        ("tpu_v4", "bf16", 1e-6, 2e-5),
        ("kpu_t256", "int8", 1e-6, 2e-5),
    ):
        found = run(hardware, precision, runtime="eager")
        assert_close(float(found.subgraphs.launch_s[0]), region_s + host_s, rel=1e-9)


def test_the_gpu_hides_its_work_behind_the_host_in_eager() -> None:
    # 24.5 us between launches, whatever the device does in less
    assert_close(run("h100_sxm5", "fp16", runtime="eager").latency_fs / 1e15, 24.5e-6, rel=1e-9)
    assert count(run("h100_sxm5", "fp16", runtime="eager"), "kernel", "launch") == 1
