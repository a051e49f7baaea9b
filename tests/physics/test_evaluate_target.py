"""What differs between parts of one architecture class: engines, warps, last levels, devices, row rates, host links."""

from __future__ import annotations

from functools import cache

import attrs
import pytest
import torch

from chip import CLOCK_HZ, gpu, tpu
from compare import assert_close
from gpu_case import PRODUCT_BYTES_PER_S, clocks, norm, single
from joulemap.catalog.load import load_catalogue
from joulemap.physics.architecture.gpu.device import find_device, find_last_level, uses_tensor_cores
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns, columns_of
from models import Gemm, columns, trace_zoo
from sample import each
from variants import uncapped, with_bandwidth, with_caches

MACS = 2**30
MIB = 2**20

TARGETS = [one for one in load_catalogue().hardware.values() if one.architecture in ("gpu", "tpu", "kpu")]
GPUS = [one for one in TARGETS if one.architecture == "gpu"]


def names(hardware: Hardware) -> str:
    return hardware.id


@cache
def gemm() -> WorkloadColumns:
    return columns(Gemm(), torch.empty(1024, 1024, device="meta"))


@cache
def network(name: str) -> WorkloadColumns:
    return columns_of(trace_zoo(name))


def run(hardware: Hardware, precision: str, work: WorkloadColumns | None = None, runtime: str = "fused") -> RunColumns:
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    return evaluate(gemm() if work is None else work, hardware, configuration)


def find(name: str) -> Hardware:
    return uncapped(load_catalogue().find(name))


def count(found: RunColumns, component: str, action: str) -> float:
    position = found.hardware.reference.position((component, action))
    return float(found.ledger.action_count[found.ledger.action_index == position].sum())


def compute_s(found: RunColumns) -> float:
    return float(found.subgraphs.compute_s.sum())


@pytest.mark.parametrize(
    ("hardware", "on_tensor_cores"),
    [
        ("v100_sxm2", {"fp16"}),
        ("t4", {"fp16", "int8", "int4"}),
        ("a100_sxm4_80gb", {"tf32", "fp16", "bf16", "int8", "int4"}),
        ("h100_sxm5", {"tf32", "fp16", "bf16", "fp8", "int8"}),
        ("b200_sxm", {"tf32", "fp16", "bf16", "fp8", "fp4", "int8"}),
        ("rtx_4090", {"tf32", "fp16", "bf16", "fp8", "int8", "int4"}),
        ("mi250x", {"fp16", "bf16", "int8"}),
        ("mi300x", {"tf32", "fp16", "bf16", "fp8", "int8"}),
        ("apple_m2", set()),
    ],
)
def test_the_target_says_what_runs_on_tensor_cores(hardware: str, on_tensor_cores: set[str]) -> None:
    found = load_catalogue().find(hardware)
    assert {precision for precision in found.peaks if uses_tensor_cores(found, precision)} == on_tensor_cores


AS_FAST_AS_LANES = {
    "rtx_3090": {"tf32", "fp16", "bf16"},
    "rtx_4090": {"tf32", "fp16", "bf16", "fp8"},
    "rtx_5090": {"tf32", "fp16", "bf16", "fp8"},
    "l20": {"tf32", "fp16", "bf16", "fp8", "int8"},
    "l40": {"tf32", "fp16", "bf16", "fp8", "int8", "int4"},
    **{hardware: {"int8"} for hardware in ("b300_sxm", "gb300", "mi210", "mi250x")},
    "mi100": {"bf16", "int8"},
    "ryzen_ai_max_395": {"fp16", "bf16", "int8", "int4"},
}
"""Precisions whose tensor cores are as fast as packed lanes would be, because a vendor halved them, runs fp32 on
matrix cores or issues it twice a clock: only the file can tell."""


@each(GPUS, names)
def test_a_file_that_names_no_engine_is_read_by_its_rates(hardware: Hardware) -> None:
    silent = attrs.evolve(
        hardware, peaks={name: attrs.evolve(peak, engine="") for name, peak in hardware.peaks.items()}
    )
    differs = {name for name in hardware.peaks if uses_tensor_cores(hardware, name) != uses_tensor_cores(silent, name)}
    assert differs == AS_FAST_AS_LANES.get(hardware.id, set())


def test_a_dram_costs_the_same_on_every_gpu() -> None:
    prices: dict[str, set[float]] = {}
    for hardware in GPUS:
        for verb in ("read", "write"):
            position = hardware.reference.position(("dram", verb))
            assert position is not None
            price = hardware.reference.actions[position].energy_per_action_fj
            prices.setdefault(hardware.memory_type.split()[0].removesuffix("X"), set()).add(round(1.12 * price, 6))
    # femtojoules a byte: 8 x 3.9, 4.5, 3.9, 3.5, 14, 7.5 (GDDR6X 7.25), 7.5 x 4.5 / 6.5 and 6 pJ/bit, of which
    # regulators are 0.12 of 1.12
    assert prices == {
        "HBM2": {31_200.0},
        "HBM2e": {36_000.0},
        "HBM3": {31_200.0},
        "HBM3e": {28_000.0},
        "GDDR5": {112_000.0},
        "GDDR6": {60_000.0, 58_000.0},
        "GDDR7": {41_500.0},
        "LPDDR5": {48_000.0},
    }


def test_what_a_kernel_takes_above_the_longer_of_its_parts_belongs_to_that() -> None:
    # 128 tiles of 64 x 64 are one wave of 6 clocks for each of 1024 steps; the bytes take longer
    found = run(gpu(), "fp16", columns(Gemm(1024, 64), torch.empty(128 * 64, 1024, device="meta")))
    assert (found.subgraphs.tile_count.tolist(), found.subgraphs.wave_count.tolist()) == ([128], [1])
    busy_s = clocks(1024 * 6 + 200)
    memory_s = (8192 * 1024 + 1024 * 64 + 1.5 * 8192 * 64) * 2 / PRODUCT_BYTES_PER_S
    assert memory_s > busy_s
    assert_close(compute_s(found), busy_s, rel=1e-6)
    assert_close(float(found.subgraphs.memory_s[0]), norm(busy_s, memory_s), rel=1e-6)


def test_lanes_that_do_four_macs_of_bytes() -> None:
    # 512 a clock and unit. 32 x 32 tiles: 1024 blocks over 128 units are eight waves, 61 us; larger ones wait for
    # loads, 66 us
    found = run(gpu(), "int8")
    assert found.subgraphs.wave_count.tolist() == [8]
    busy_s = clocks(8 * (1024 * (1024 + 20 * 64) / 512 + 3000))
    assert_close(compute_s(found), norm(busy_s, 3.5 * MIB / PRODUCT_BYTES_PER_S), rel=1e-6)
    assert count(found, "cuda_core", "int8_mac") == MACS
    assert count(found, "tensor_core", "instruction") == 0
    # a warp does 32 x 4 of them; tiles read 2 x 32 bytes a step, warps (64 + 32) / (64 x 32) bytes a MAC
    warps = MACS / 128 + (MACS / 16 + MIB) / 128 + MACS * 96 / 2048 / 512
    assert_close(count(found, "decoder", "decode"), warps)
    # four operands share a register: three bytes read for each MAC
    assert_close(count(found, "operand_collector", "transfer"), 3 * MACS)


def test_double_precision_fills_wider_registers() -> None:
    found = run(find("a100_sxm4_80gb"), "fp64")
    assert count(found, "operand_collector", "transfer") == 3 * 8 * MACS


def test_apple_computes_fp16_on_its_lanes_behind_one_cache() -> None:
    found = run(find("apple_m4"), "fp16")
    assert count(found, "cuda_core", "fp16_mac") == MACS
    assert count(found, "l2", "read") == 0
    # without an L2 of its own, what the tiles read comes from the system-level cache
    assert count(found, "l3", "read") > 0
    assert_close(count(found, "l3", "read"), count(found, "crossbar", "load"))
    assert count(found, "crossbar", "store") == 2 * MIB


def test_a_kernel_runs_on_one_of_two_dies() -> None:
    board = gpu(units=256, device_count=2.0)
    found = run(board, "fp16")
    assert found.units_total_count == 256
    # 256 tiles of 64 x 64 are two waves on half of the units, as on a board of that many
    assert (found.subgraphs.tile_count.tolist(), found.subgraphs.wave_count.tolist()) == ([256], [2])
    alone = with_caches(with_bandwidth(gpu(), 0.5), 0.5)
    assert_close(compute_s(found), compute_s(run(alone, "fp16")))
    # 4 MiB of operands and 2 MiB of results, of which a byte costs 1.5, at half of the bandwidth
    memory_s = 7 * MIB / (PRODUCT_BYTES_PER_S / 2)
    assert_close(float(found.subgraphs.memory_s[0]), norm(clocks(2 * (1024 * 6 + 200)), memory_s), rel=1e-6)
    # 512 tiles of 128 x 128, the largest, are four waves
    tall = run(board, "fp16", columns(Gemm(1024, 128), torch.empty(256 * 256, 1024, device="meta")))
    assert (tall.subgraphs.units_used_count.tolist(), tall.subgraphs.wave_count.tolist()) == ([128], [4])
    assert find_device(gpu()) == gpu()


def test_a_wavefront_of_64_is_dispatched_as_two_warps() -> None:
    def dispatched(found: RunColumns) -> float:
        return count(found, "dispatcher", "dispatch") + count(found, "dispatcher", "memory_dispatch")

    wide, narrow = run(find("mi250x"), "fp16"), run(find("t4"), "fp16")
    assert_close(dispatched(wide), 2 * count(wide, "decoder", "decode"))
    assert_close(dispatched(narrow), count(narrow, "decoder", "decode"))


def test_a_block_has_256_threads_whatever_a_warp_is() -> None:
    for name in ("mi250x", "t4"):
        found = run(find(name), "fp16")
        assert count(found, "thread", "start") == 256 * count(found, "thread_block", "launch"), name


def test_an_infinity_cache_serves_what_misses_l2() -> None:
    # weights of 32 MiB, input and result of 2 exceed an L2 of 32 MiB by a sixteenth; six such layers are in the cache
    # behind it
    found = run(find("mi300x"), "fp16", single("gemm(m=256,n=4096,k=4096)"))
    assert count(found, "l2", "fill") >= 32 * MIB
    assert count(found, "l2", "fill") < count(found, "l3", "transfer") <= count(found, "l2", "fill") + 2 * MIB
    assert (count(found, "l3", "fill"), count(found, "dram", "write")) == (0, 0)


def test_an_unpublished_last_level_follows_units_and_clock() -> None:
    toy = gpu()
    levels = (toy.memory_levels[0], attrs.evolve(toy.memory_levels[1], bandwidth=None))
    bandwidth = find_last_level(attrs.evolve(toy, memory_levels=levels)).bandwidth
    assert bandwidth is not None
    assert_close(bandwidth.value, 64 * 128 * CLOCK_HZ)
    assert bandwidth.basis == "assumed"


def test_the_last_level_of_every_gpu_is_faster_than_its_dram() -> None:
    for hardware in GPUS:
        last = find_last_level(find_device(hardware)).bandwidth
        assert last is not None
        kind = "stacked" if hardware.memory_type.startswith("HBM") else "planar"
        level = last.value * hardware.coefficient(f"{hardware.memory_levels[-1].name}_efficiency")
        dram = find_device(hardware).memory_bandwidth.value * hardware.coefficient("dram_efficiency", kind)
        assert level > dram, hardware.id


def test_narrow_integers_stream_twice_the_rows() -> None:
    # 8 x 8 weight tiles, four blocks of 256 rows, over four arrays: 64 waves; int8 takes two rows a cycle, int4 four
    for precision, rows_per_cycle in (("bf16", 1), ("int8", 2), ("int4", 4)):
        found = run(find("tpu_v5e"), precision)
        assert_close(compute_s(found), (64 * 256 / rows_per_cycle + 256) / 1.5e9)
        assert count(found, "mxu", f"{precision}_mac") == MACS
        # all four arrays wait while the pipeline fills and drains
        assert_close(count(found, "mxu", "idle_cycle"), 4 * 128 * 128 * 256)
        assert count(found, "cmem", "read") == 0


def test_a_larger_array_has_fewer_tiles_to_fill() -> None:
    # 4 x 4 weight tiles of 256 x 256, four blocks, over four arrays: 16 waves of 256 rows, then 512 cycles
    found = run(find("tpu_v6e"), "fp8")
    assert_close(compute_s(found), (16 * 256 + 512) / 1.75e9)


def test_both_cores_share_one_working_set() -> None:
    # a vector memory of 4 MiB in each of two cores holds 6 MiB; 512 lanes x 1 B x 1 GHz in each
    toy = with_bandwidth(tpu(), 100.0)
    vmem = attrs.evolve(toy.memory_levels[0], bandwidth=None)
    found = run(with_caches(attrs.evolve(toy, memory_levels=(vmem,)), 4.0), "bf16")
    assert found.subgraphs.dram_bytes.tolist() == [6 * MIB]
    assert_close(float(found.subgraphs.memory_s[0]), 6 * MIB / (2 * 512 * CLOCK_HZ))


def test_the_edge_tpu_keeps_what_fits_and_streams_the_rest_from_its_host() -> None:
    # 1 MiB of weights and 2 MiB of activations in 8 MiB, all rows at once
    shipped_coral = find("coral_edge_tpu")
    geometry = {name: one for name, one in shipped_coral.geometry.items() if name != "samples_at_once"}
    coral = attrs.evolve(shipped_coral, geometry=geometry)
    found = run(coral, "int8")
    assert found.subgraphs.dram_bytes.tolist() == [2 * MIB]
    assert_close(float(found.subgraphs.memory_s[0]), 2 * MIB / (0.5e9 * coral.coefficient("dram_efficiency")))
    # 16 x 16 weight tiles of 64 x 64, four blocks of 256 rows, one array
    assert_close(compute_s(found), (1024 * 256 + 128) / 0.5e9)
    # of 2.4 MiB the activations leave 0.4 MiB for weights
    assert run(with_caches(coral, 0.3), "int8").subgraphs.dram_bytes.tolist() == [round(2.6 * MIB)]
    # published: 2.6 ms for mobilenet_v2, whose 3.5 MB fit
    assert 1.3e-3 < run(coral, "int8", network("mobilenet_v2")).latency_fs / 1e15 < 5.2e-3


def test_a_tile_may_do_several_macs_in_each_element() -> None:
    # 16 x 8 blocks: 64 x 128 of them over 768 tiles are 11 waves of 128 x 1024 / 641 and 24 cycles
    found = run(find("kpu_t768"), "int8")
    assert found.subgraphs.wave_count.tolist() == [11]
    assert_close(compute_s(found), 11 * (128 * 1024 / 641 + 24) / 1.375e9)


def test_a_jetson_in_a_lower_mode_has_fewer_units_and_less_memory() -> None:
    lowered = load_catalogue().find("jetson_orin_nx_16gb").in_mode("10W")
    assert lowered.peaks["fp16"].unit_count == 4
    # 4 SMs x 2048 operations x 0.612 GHz
    assert_close(lowered.peaks["fp16"].rate.value, 4 * 2048 * 0.612e9, rel=1e-3)
    assert_close(lowered.memory_bandwidth.value, 68.3e9)
    assert lowered.static_power.value < lowered.tdp.value == 10.0
