"""CPUs: what computes a precision, and which caches count, comes from the chip; numbers worked out by hand."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest
import torch

import chip
from chip import number
from compare import assert_close
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.physics.change import change_hardware
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import FLOPS_PER_MAC, PRECISION_BYTES, Configuration
from joulemap.physics.record.constant import Change, list_constants
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.stream import find_share, join_units
from joulemap.physics.workload import STREAMED, WorkloadColumns
from joulemap.prediction import predict
from joulemap.system.errors import UnsupportedError
from models import Depthwise, Gemm, Residual, columns, image
from sample import thin
from variants import uncapped

MACS = 2**30
MIB = 2**20
CPUS = [
    one
    for one in load_catalogue().hardware.values()
    if one.architecture == "cpu" and one.memory_levels[0].kind == "cache"
]
SETTINGS = [pytest.param(one, precision, id=f"{one.id}-{precision}") for one in CPUS for precision in one.peaks]


@cache
def gemm() -> WorkloadColumns:
    return columns(Gemm(), torch.empty(1024, 1024, device="meta"))


@cache
def small() -> tuple[WorkloadColumns, ...]:
    return columns(Residual(), image(1, 4, 8)), columns(Depthwise(), image(1, 8, 6))


def run(hardware: Hardware, precision: str, work: WorkloadColumns | None = None, runtime: str = "fused") -> RunColumns:
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    return evaluate(work or gemm(), hardware, configuration)


def cpu(name: str) -> Hardware:
    return uncapped(load_catalogue().find(name))


def count(found: RunColumns, component: str, action: str) -> float:
    position = found.hardware.reference.position((component, action))
    return float(found.ledger.action_count[found.ledger.action_index == position].sum())


def counted(found: RunColumns) -> set[str]:
    return {found.hardware.reference.actions[row].component for row in found.ledger.action_index.tolist()}


@pytest.mark.parametrize("hardware", CPUS, ids=lambda one: one.id)
def test_lanes_and_pipes_give_the_peaks_of_what_lanes_compute(hardware: Hardware) -> None:
    width = hardware.geometry["simd_width"].value / 8
    for precision in {"fp64", "fp32", "fp16"} & set(hardware.peaks):
        lanes = width / PRECISION_BYTES[precision]
        macs_per_clock = hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC
        assert_close(macs_per_clock, lanes * hardware.geometry["fma_pipe_count"].value)


@pytest.mark.parametrize(("hardware", "precision"), thin(SETTINGS, 3))
def test_a_gemm_takes_the_core_at_its_peak_times_an_efficiency(hardware: Hardware, precision: str) -> None:
    work = columns(Gemm(), torch.empty(1536, 1024, device="meta"))  # whole blocks of every chip
    found = run(uncapped(hardware), precision, work, "engine")
    peak = hardware.peaks[precision]
    core_macs_per_s = peak.rate.value / FLOPS_PER_MAC / peak.unit_count
    lanes = precision in {"fp64", "fp32", "fp16"}
    has_amx = hardware.id == "xeon_8490h" and not lanes
    mode = "matrix" if has_amx else "vector" if lanes else f"dot_{precision}"
    share = hardware.coefficient("fp32_share") if precision == "fp32" else 1.0
    efficiency = hardware.coefficient(f"gemm_efficiency.{mode}") * share
    if "stream_units" in hardware.geometry:
        waiting = 1.0 + hardware.coefficient("serial_share") * (hardware.unit_count.value - 1.0)
        efficiency = efficiency * hardware.coefficient("product_share", precision) / waiting
    rows, outputs = (int(hardware.coefficient(f"tile_{side}", mode)) for side in ("rows", "columns"))
    waves = -(-(1536 // rows * (1024 // outputs)) // peak.unit_count)
    assert found.subgraphs.wave_count.tolist() == [waves]
    block_macs = rows * outputs * 1024
    assert_close(float(found.subgraphs.compute_s[0]), waves * block_macs / (core_macs_per_s * efficiency))


def test_a_product_with_a_vector_pads_no_rows_and_unpacks_its_codes() -> None:
    """One row of 1024 x 1024: 128 blocks of 8 columns on 4 cores with 153.5 GFLOPS; codes in 8 lanes at 2.4 GHz."""
    board = cpu("raspberry_pi_5")
    work = columns(Gemm(), torch.empty(1, 1024, device="meta"))
    macs_per_s, lanes_per_s = 153.5e9 / 4 / 2, 8 * 2.4e9
    plain = run(board, "fp32", work, "engine")
    assert_close(float(plain.subgraphs.compute_s[0]), 32 * 8 * 1024 / (macs_per_s * 0.58 * 0.55))
    streamed = attrs.evolve(work, variant=np.full(work.operator_count, STREAMED))
    assert float(run(board, "fp32", streamed, "engine").subgraphs.compute_s[0]) == float(plain.subgraphs.compute_s[0])
    stored = Configuration(hardware=board.id, precision="fp32", runtime="engine", weight_precision="int4")
    packed = evaluate(streamed, board, stored)
    assert_close(float(packed.subgraphs.compute_s[0]), 32 * 8 * 1024 / (lanes_per_s * 0.25))


def test_a_named_engine_has_its_own_rate_at_a_precision() -> None:
    """TensorFlow Lite 2.5 multiplies bytes at 0.82 / 1.26 of the rate of 2.18 on a Raspberry Pi 4, and fp32 alike."""
    board = cpu("raspberry_pi_4b")

    def busy_s(precision: str, runtime: str) -> float:
        return float(run(board, precision, runtime=runtime).subgraphs.compute_s[0])

    assert_close(busy_s("int8", "tflite@2.5") / busy_s("int8", "tflite"), 1.26 / 0.82)
    assert_close(busy_s("int8", "engine") / busy_s("int8", "tflite"), 1.26)
    assert busy_s("fp32", "tflite@2.5") == busy_s("fp32", "tflite") == busy_s("fp32", "engine")


def test_an_engine_of_processors_is_refused_elsewhere() -> None:
    asked = predict("resnet18", ["l4", "raspberry_pi_4b"], precision="int8", runtime="tflite")
    assert asked.refusal.tolist() == ["l4 does not run tflite, an engine of CPUs", ""]
    assert asked.refusal_code.tolist() == ["runtime", ""]


def test_dot_products_of_bytes_in_instructions_wider_than_their_pipe() -> None:
    # 32 MACs a clock on one pipe of 256 bits: 64 for an instruction of 512 bits
    found = run(chip.cpu(vector_instruction_width=512.0), "int8")
    products, stores = MACS / 64, MIB / 64
    assert count(found, "vector_fma", "int8_mac") == MACS
    assert_close(count(found, "decoder", "decode"), 1.25 * (1.5 * products + stores))
    assert_close(count(found, "l1", "read"), 0.5 * products * 64)
    # 8192 blocks over four cores are 2048 waves; a core does 32 MACs at 50 %
    assert_close(float(found.subgraphs.compute_s[0]), 2048 * 2**17 / (32 * 1e9 * 0.5))


def test_products_in_a_matrix_unit() -> None:
    # 4096 MACs an instruction, and as many loads of a tile register of 1 KiB
    found = run(chip.cpu(), "bf16")
    assert count(found, "matrix_unit", "bf16_mac") == MACS
    assert_close(count(found, "l1", "read"), MACS / 4096 * 1024)
    assert_close(count(found, "decoder", "decode"), 1.25 * (2 * MACS / 4096 + 2 * MIB / 32))
    assert_close(float(found.subgraphs.compute_s[0]), 2048 * 2**17 / (64 * 1e9 * 0.5))


def test_half_precision_has_twice_the_lanes() -> None:
    # sixteen lanes of 16 bits, one pipe
    found = run(chip.cpu(), "fp16")
    products, stores = MACS / 16, 2 * MIB / 32
    assert count(found, "vector_fma", "fp16_mac") == MACS
    assert_close(count(found, "decoder", "decode"), 1.25 * (1.5 * products + stores))
    assert_close(float(found.subgraphs.compute_s[0]), 2048 * 2**17 / (16 * 1e9 * 0.5))
    # the weights stay in L3
    assert found.subgraphs.dram_bytes.tolist() == [4 * MIB]


def test_a_depthwise_convolution_of_bytes_is_done_in_lanes_of_32_bit() -> None:
    # 36 positions of 8 channels: nine taps each, then 16 outputs each
    for name, component in (
        ("xeon_8490h", "matrix_unit"),
        ("epyc_9654", "vector_fma"),
        ("raspberry_pi_5", "vector_fma"),
    ):
        found = run(cpu(name), "int8", small()[1])
        assert count(found, "vector_fma", "fp32_mac") == 36 * 8 * 9
        assert count(found, component, "int8_mac") == 36 * 8 * 16


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_the_chip_says_whether_it_has_a_matrix_unit(precision: str) -> None:
    xeon = cpu("xeon_8490h")
    name = f"matrix_macs_per_instruction_{precision}"
    plain = attrs.evolve(xeon, geometry={key: one for key, one in xeon.geometry.items() if key != name})
    on_matrix, on_vector = run(xeon, precision), run(plain, precision)
    multiplies = MACS / xeon.geometry[name].value
    # as many tile loads of 1 KiB as multiplies
    assert count(on_matrix, "matrix_unit", f"{precision}_mac") == MACS
    assert_close(count(on_matrix, "l1", "read"), multiplies * 1024)
    assert count(on_matrix, "tile_register", "access") == MACS
    assert count(on_vector, "vector_fma", f"{precision}_mac") == MACS
    assert not {"matrix_unit", "tile_register"} & counted(on_vector)


def test_a_chip_without_a_shared_cache_has_none_of_its_lines() -> None:
    shared = cpu("raspberry_pi_5")
    private = attrs.evolve(shared, memory_levels=shared.memory_levels[:2])
    with_l3, without = run(shared, "fp32"), run(private, "fp32")
    assert {"l3", "mesh", "coherence_directory"} <= counted(with_l3)
    assert counted(with_l3) - counted(without) == {"l3", "mesh", "coherence_directory"}
    # what the L2 misses comes from DRAM; 4 MiB of results are written through it
    assert count(without, "l2", "write") == 4 * MIB
    assert_close(count(without, "l2", "fill"), count(without, "dram", "read"))


def test_private_caches_hold_a_part_each() -> None:
    # 1024 x 1024 x 1024 in fp32 moves 12 MiB: four cores with 3 MiB each hold it, with half they do not
    shared = cpu("raspberry_pi_5")

    def with_l2(mib: float) -> Hardware:
        l1, l2, _ = shared.memory_levels
        return attrs.evolve(
            shared, memory_levels=(l1, attrs.evolve(l2, capacity=attrs.evolve(l2.capacity, value=mib * MIB)))
        )

    # weights stay; the input comes and the result goes
    assert run(with_l2(3.0), "fp32").subgraphs.dram_bytes.tolist() == [8 * MIB]
    assert run(with_l2(1.5), "fp32").subgraphs.dram_bytes.tolist() == [12 * MIB]


def test_tflite_stores_fp16_and_computes_in_fp32() -> None:
    pi, columns_of = cpu("raspberry_pi_4b"), columns(Gemm(), image(1, 8, 1024))
    assert "fp16" not in pi.peaks
    wide = Configuration(hardware=pi.id, precision="fp32", weight_precision="fp16", runtime="tflite")
    half = attrs.evolve(wide, precision="fp16", weight_precision="")
    one, other = (evaluate(columns_of, pi, asked) for asked in (wide, half))
    assert one.subgraphs.latency_fs.tolist() == other.subgraphs.latency_fs.tolist()
    assert one.energy_fj == other.energy_fj
    with pytest.raises(UnsupportedError):
        evaluate(columns_of, pi, attrs.evolve(half, runtime="engine"))


def test_a_wider_instruction_saves_instructions_and_no_time() -> None:
    zen4 = cpu("epyc_9654")
    narrow = attrs.evolve(
        zen4, geometry={key: one for key, one in zen4.geometry.items() if key != "vector_instruction_width"}
    )
    for precision in zen4.peaks:
        wide, twice = run(zen4, precision), run(narrow, precision)
        assert wide.latency_fs == twice.latency_fs
        assert_close(count(twice, "decoder", "decode"), 2 * count(wide, "decoder", "decode"))
        assert_close(count(twice, "l1", "read"), count(wide, "l1", "read"))


def test_the_power_modes_of_a_jetson_are_its_cores_and_clocks() -> None:
    jetson = load_catalogue().find("jetson_agx_orin_cpu")
    peaks = {mode.name: jetson.in_mode(mode.name).peaks["fp32"].rate.value for mode in jetson.power_modes}
    assert list(peaks) == ["15W", "30W", "50W", "MAXN"]
    for name, cores, hertz in (("15W", 4, 1.1136e9), ("30W", 8, 1.728e9), ("50W", 12, 1.4976e9)):
        assert_close(peaks[name], cores * 16 * hertz)
        assert run(jetson.in_mode(name), "fp16").units_total_count == cores


def test_a_cache_level_that_has_no_price_is_refused_by_name() -> None:
    graviton = cpu("graviton3")
    l1, l2, l3 = graviton.memory_levels
    renamed = attrs.evolve(graviton, memory_levels=(l1, l2, attrs.evolve(l3, name="slc")))
    with pytest.raises(UnsupportedError, match=r"graviton3: .*slc.* l1, l2, l3"):
        run(renamed, "fp32")


def test_a_frameworks_pooling_takes_its_taps_one_by_one() -> None:
    # 2 x 64 channels pooled 3 x 3 with stride 2 from 112 to 56: 401,408 outputs of nine taps in 220.5 tasks of 16,384
    # taps, 56 waves of four cores, ten clocks a tap
    work = columns(torch.nn.MaxPool2d(3, 2, padding=1), torch.empty(2, 64, 112, 112, device="meta"))
    expected = 56 * 16_384 * 10 / 1e9
    assert_close(float(run(chip.cpu(), "fp32", work, "eager").subgraphs.compute_s[0]), expected)
    for runtime in ("graph", "fused"):
        assert float(run(chip.cpu(), "fp32", work, runtime).subgraphs.compute_s[0]) < expected / 10.0


def test_a_hard_swish_without_a_kernel_takes_clocks_of_one_core() -> None:
    work = columns(torch.nn.Hardswish().to("meta"), torch.empty(1000, device="meta"))
    none, slow = (
        attrs.evolve(own, coefficients={**own.coefficients, "hardswish_clocks": chip.number(clocks, "cycle")})
        for own in (chip.cpu(),)
        for clocks in (0.0, 50.0)
    )
    more = run(slow, "int8", work).subgraphs.compute_s.sum() - run(none, "int8", work).subgraphs.compute_s.sum()
    assert_close(float(more), 1000 * 50 / chip.CLOCK_HZ, rel=1e-6)
    assert run(slow, "fp32", work).latency_fs == run(none, "fp32", work).latency_fs


def test_a_special_function_takes_its_clocks_whatever_the_lanes() -> None:
    # 1,000 SiLUs are one task of one core: 3.8 clocks each, and without that floor a product in 8 lanes
    own = chip.cpu()
    work = columns(torch.nn.SiLU().to("meta"), torch.empty(1000, device="meta"))
    more = [
        float(run(attrs.evolve(own, coefficients=found), "fp32", work, runtime).subgraphs.compute_s.sum())
        for runtime, name in (("engine", "special_function_clocks.engine"), ("fused", "special_function_clocks"))
        for found in ({**own.coefficients, name: chip.number(clocks, "cycle")} for clocks in (3.8, 0.0))
    ]
    assert_close(more[0] - more[1], 1000 * (3.8 - 1 / 8) / chip.CLOCK_HZ, rel=1e-6)
    assert more[2:] == more[:2]


SCAN = "scan(kind={},heads=128,head_dim=64,state=128,groups=8,tokens={})"


@pytest.mark.parametrize("kind", ["mamba", "mamba2", "delta"])
@pytest.mark.parametrize("name", ["raspberry_pi_5", "epyc_9654"])
def test_a_state_is_scanned_on_all_lanes(name: str, kind: str) -> None:
    """A token reads and writes the state, 2^20 elements of four bytes, which no loop of dependent steps slows down."""
    tokens = np.array([1, 2, 4, 5, 8, 64, 2048])
    found = predict([SCAN.format(kind, count) for count in tokens], name, precision="fp32")
    chip = load_catalogue().hardware[name]
    state_bytes = 2.0 * 4.0 * 128 * 64 * 128
    assert found.latency_s[0] < 1e-4 + 8.0 * state_bytes / chip.memory_bandwidth.value
    assert (np.diff(found.latency_s) > 0.0).all()
    assert found.latency_s[-1] < 2048 * found.latency_s[0]


@pytest.mark.parametrize("busy", [1, 2, 4])
def test_busy_cores_share_refills_and_one_core_has_the_highest_clock(busy: int) -> None:
    """Bytes fill half of the lanes: 32 MACs a clock of 2 pipes x 32 bytes; boost 1.2 x the clock of all cores."""
    board = chip.cpu(fma_pipe_count=2.0)
    board = attrs.evolve(board, clock_boost=attrs.evolve(board.clock, value=1.2 * board.clock.value))
    whole = float(run(board, "int8", runtime="engine").subgraphs.compute_s[0])
    part = board.in_mode(f"{busy}cores")
    found = run(part, "int8", runtime="engine")
    ratio = 2.0 * 32 / 64
    gain = ((1 + ratio**2.5) / (1 + (ratio * busy / 4) ** 2.5)) ** 0.4
    assert_close(float(found.subgraphs.compute_s[0]), whole * 4 / busy / gain / (1 + 0.2 * (4 - busy) / 3))
    changed = change_hardware(board, [Change.of(list_constants(board)["unit_count"], float(busy))])
    assert run(changed, "int8", runtime="engine").latency_fs == found.latency_fs


def test_a_request_of_an_engine_has_some_cores_and_waits_for_one() -> None:
    """0.8 of the rate of 4 cores, half of it for products, and a tenth of the time of one core on each of the others.

    A stream of 2 cores has all of their rate. Engines without streams have no such shares.
    """
    shares = {"request_share": 0.8, "product_share": 0.5, "serial_share": 0.1}
    plain = chip.cpu()
    geometry = {**plain.geometry, "stream_units": number(2.0)}
    own = {name: number(value) for name, value in shares.items()}
    board = attrs.evolve(plain, geometry=geometry, coefficients={**plain.coefficients, **own})

    def busy_s(hardware: Hardware, runtime: str = "engine") -> float:
        return float(run(hardware, "fp32", runtime=runtime).subgraphs.compute_s[0])

    assert_close(busy_s(board), busy_s(plain) * 1.3 / (0.8 * 0.5))
    assert_close(busy_s(find_share(board)), busy_s(plain) * 2 * 1.1 / 0.5)
    assert busy_s(join_units(board)) == busy_s(plain)
    assert busy_s(board, "fused") == busy_s(plain, "fused")


def test_a_hybrid_processor_leaves_its_efficiency_cores_to_other_requests() -> None:
    """6 performance cores and 8 others of 0.18 of their rate at int8, 0.36 at fp32; at fp32, 16 beside 8 take part."""
    board = find_hardware("core_i7_12700h")
    assert_close(board.coefficient("request_share", "int8"), 6 / (6 + 8 * 0.18), rel=0.01)
    assert_close(board.coefficient("request_share", "fp32"), 6 / (6 + 8 * 0.36), rel=0.01)
    assert find_hardware("core_i9_13900k").coefficient("request_share", "fp32") == 1.0


def test_a_core_alone_never_exceeds_its_peak() -> None:
    """At half of the peak beside three others, a gain above 2 is cut: refills of 3 own times give 3.14."""
    board = chip.cpu()
    ratio = {"refill_ratio": attrs.evolve(board.coefficients["refill_ratio"], value=3.0)}
    one = attrs.evolve(board, coefficients={**board.coefficients, **ratio}).in_mode("1core")
    peak = one.peaks["fp32"].rate.value / FLOPS_PER_MAC
    assert_close(float(run(one, "fp32", runtime="engine").subgraphs.compute_s[0]), MACS / peak)
