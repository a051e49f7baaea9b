"""Voltage falls with the clock, and a power cap leaves the highest clock that keeps within it."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest

from chip import cpu
from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.operator.name import find_operator
from joulemap.physics.pipeline import evaluate
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.operating_point import read_point
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import Floats, WorkloadColumns, columns_of
from joulemap.prediction import find_chip, predict
from joulemap.system.errors import UnknownNameError
from joulemap.trace.single import describe
from models import shipped, trace_zoo
from variants import uncapped, with_power

FJ_PER_PJ = 1e3

LAW = PowerLaw(floor=0.75, knee=0.5, reach=1.0, static_w=10.0, limit_w=100.0, delay_s=0.0)
FIXED = PowerLaw(floor=1.0, knee=1.0, reach=1.0, static_w=10.0, limit_w=100.0, delay_s=0.0)


def one(value: float) -> Floats:
    return np.array([value])


def seconds_of(law: PowerLaw, *, compute: Floats, memory: Floats) -> Callable[[Floats], Floats]:
    """Return the latency of kernels that each are a workload of their own."""

    def seconds_at(clock: Floats) -> Floats:
        found: Floats = np.maximum(compute / clock, memory * law.stretch(clock))
        return found

    return seconds_at


def clock_of(law: PowerLaw, limit_w: float, *, chip_j: float, memory_j: float = 0.0, memory_s: float = 0.0) -> float:
    """Return the clock of one second of computing beside so long a memory time."""
    capped = attrs.evolve(law, limit_w=limit_w)
    seconds_at = seconds_of(capped, compute=one(1.0), memory=one(memory_s))
    return float(capped.clock_under_cap(seconds_at, one(chip_j), one(memory_j))[0])


@pytest.mark.parametrize(
    ("clock", "factor"),
    [(1.0, 1.0), (0.75, 0.875**2), (0.5, 0.75**2), (0.1, 0.75**2)],
)
def test_energy_falls_with_the_square_of_the_voltage_down_to_the_knee(clock: float, factor: float) -> None:
    assert_close(float(LAW.energy_factor(one(clock))[0]), factor)
    assert float(FIXED.energy_factor(one(clock))[0]) == 1.0


def test_a_board_below_the_clock_of_its_die_has_a_lower_voltage_at_its_own() -> None:
    slow = attrs.evolve(LAW, reach=0.75)
    assert_close(float(slow.energy_factor(one(1.0))[0]), 0.875**2)
    assert_close(float(slow.turning), 2.0 / 3.0)


def test_the_clock_under_a_cap_by_hand() -> None:
    # 100 J and 1 s at the full clock: 10 + 100 phi v^2 W
    assert clock_of(LAW, 110.0, chip_j=100.0) == 1.0
    assert_close(clock_of(LAW, 10.0 + 75.0 * 0.875**2, chip_j=100.0), 0.75)
    # below the knee power is in proportion to the clock: 10 + 100 x 0.5625 x 0.25
    assert_close(clock_of(LAW, 24.0625, chip_j=100.0), 0.25)
    # energy off the chip stays: 10 + 0.75 (100 x 0.875^2 + 20)
    assert_close(clock_of(LAW, 10.0 + 0.75 * (76.5625 + 20.0), chip_j=100.0, memory_j=20.0), 0.75)
    # a fixed voltage: 10 + 100 phi
    assert_close(clock_of(FIXED, 60.0, chip_j=100.0), 0.5)
    # 60 J in 2 s of memory time, and 40 W of clocks that units count while they wait: 10 + v^2 (30 + 40 phi)
    waiting = attrs.evolve(LAW, spin_w=40.0)
    assert_close(clock_of(waiting, 10.0 + 0.875**2 * 60.0, chip_j=60.0, memory_s=2.0), 0.75)


def test_memory_keeps_its_own_clock_above_the_knee() -> None:
    # 2 s of memory beside 1 s of computing: to 0.75 of the clock the time stands, and energy alone falls
    assert_close(clock_of(LAW, 10.0 + 50.0 * 0.875**2, chip_j=100.0, memory_s=2.0), 0.75)
    assert_close(float(LAW.stretch(one(0.75))[0]), 1.0)
    assert_close(float(LAW.stretch(one(0.25))[0]), 2.0)


def gpu() -> Hardware:
    return load_catalogue().find("a100_sxm4_80gb")


def work() -> WorkloadColumns:
    return columns_of(trace_zoo("resnet18"))


def run(hardware: Hardware) -> RunColumns:
    return evaluate(work(), hardware, Configuration(hardware=hardware.id, precision="fp32", runtime="fused"))


def test_a_locked_clock_costs_less_energy_above_the_knee_and_time_alone_below() -> None:
    hardware = attrs.evolve(with_power(gpu(), 1e4))
    runs = [run(hardware.in_mode(f"{clock}MHz")) for clock in (1400, 1200, 1000, 800, 600)]
    factors = [found.voltage_factor for found in runs]
    assert factors[0] > factors[1] > factors[2] == factors[3] == factors[4]
    dynamic = [float(found.energy_fj - static_fj(found)) for found in runs]
    assert dynamic[0] > dynamic[1] > dynamic[2]
    assert_close(dynamic[3], dynamic[4], rel=1e-6)
    assert [found.latency_fs for found in runs] == sorted(found.latency_fs for found in runs)
    assert [found.clock_hz / 1e6 for found in runs] == pytest.approx([1400, 1200, 1000, 800, 600], rel=1e-12, abs=0)


def static_fj(found: RunColumns) -> int:
    position = len(found.hardware.reference) - 1
    return int(found.ledger.energy_fj[found.ledger.action_index == position].sum())


def test_the_ledger_is_count_times_price_times_the_factor_to_the_femtojoule() -> None:
    found = run(gpu().in_mode("900MHz"))
    prices = np.array([action.energy_per_action_fj for action in found.hardware.reference])
    factors = np.array([found.voltage_factor if one.follows_voltage else 1.0 for one in found.hardware.reference])
    ledger = found.ledger
    assert found.voltage_factor < 1.0
    assert (
        ledger.energy_fj == np.rint(ledger.action_count * prices[ledger.action_index] * factors[ledger.action_index])
    ).all()


@pytest.mark.parametrize(
    ("written", "name"),
    [("900MHz", "900MHz"), ("0.9 GHz", "900MHz"), ("1246.5mhz", "1246.5MHz"), ("300W", "300W"), ("300 w", "300W")],
)
def test_a_clock_or_cap_has_one_name(written: str, name: str) -> None:
    point = read_point(written)
    assert point is not None
    assert point.name == name
    assert HardwareEntry.of(gpu()).find_mode(written) == name


@pytest.mark.parametrize(("written", "name"), [("1 core", "1core"), ("1cores", "1core"), ("3 Threads", "3cores")])
def test_cores_of_a_cpu_have_one_name(written: str, name: str) -> None:
    assert HardwareEntry.of(cpu()).find_mode(written) == name


def test_a_part_of_the_cores_takes_their_part_of_the_peak_and_each_is_faster() -> None:
    whole, one = cpu(), cpu().in_mode("1core")
    assert (one.units, one.peaks["fp32"].unit_count) == (1, 1)
    assert_close(one.peaks["fp32"].rate.value, whole.peaks["fp32"].rate.value / 4)
    assert (one.memory_bandwidth, one.tdp) == (whole.memory_bandwidth, whole.tdp)

    def busy_s(hardware: Hardware) -> float:
        return float(run(hardware).subgraphs.compute_s.sum())

    # refills take 2 x the time of four cores and 0.5 x that of one: ((1 + 2^2.5) / (1 + 0.5^2.5))^0.4 = 2.0001 as fast;
    # blocks that did not fill four cores wait for none now
    assert whole.coefficient("refill_ratio") == 2.0
    assert busy_s(whole) < busy_s(one) <= busy_s(whole) * 4 / 2.0


@pytest.mark.parametrize("name", ["0cores", "5cores", "1.5cores"])
def test_cores_that_a_cpu_has_not_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="has 1 to 4 cores"):
        HardwareEntry.of(cpu()).find_mode(name)
    with pytest.raises(UnknownNameError, match="is no CPU"):
        HardwareEntry.of(gpu()).find_mode("4cores")


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("2000MHz", "unknown power mode '2000MHz'; the clock of a100_sxm4_80gb can be set from 141 to 1410 MHz"),
        ("90MHz", "141 to 1410 MHz"),
        ("401W", "a100_sxm4_80gb takes a power limit of 100 to 400 W"),
        ("99W", "unknown power mode '99W'"),
    ],
)
def test_what_a_board_cannot_be_set_to_is_refused(mode: str, told: str) -> None:
    entry = HardwareEntry.of(gpu())
    with pytest.raises(UnknownNameError, match=told):
        entry.find_mode(mode)
    with pytest.raises(UnknownNameError, match=told):
        gpu().in_mode(mode)


def test_any_limit_within_the_range_of_the_board_is_a_mode() -> None:
    catalogue = load_catalogue()
    board = catalogue.find("a40")  # set from 100 to 300 W by Zeus
    for name in ("100W", "173.5W", "300W"):
        assert HardwareEntry.of(board).find_mode(name) == name
        assert_close(board.in_mode(name).tdp.value, float(name[:-1]))
    above = catalogue.find("rtx_5090")  # 575 W as delivered, up to 600 W on request
    assert above.in_mode("600W").tdp.value == 600.0
    with pytest.raises(UnknownNameError, match=r"of static power, up to 300 W \(assumed: no source states its range\)"):
        HardwareEntry.of(catalogue.find("l40")).find_mode("20W")


def test_a_named_mode_comes_before_a_cap_of_the_same_name() -> None:
    orin = load_catalogue().find("jetson_agx_orin_64gb_gpu")
    assert orin.in_mode("15W").clock.value == 408e6
    assert orin.in_mode("20W").clock.value == orin.in_mode("30W").clock.value == 612e6
    assert orin.in_mode("20W").tdp.value == 20.0
    assert orin.in_mode("55W").clock.value == orin.clock.value
    with pytest.raises(UnknownNameError, match="has a clock"):
        HardwareEntry.of(gpu()).find_mode("eco")


def test_numbers_of_a_locked_clock_scale_and_those_of_a_cap_do_not() -> None:
    hardware = gpu()
    locked, capped = hardware.in_mode("705MHz"), hardware.in_mode("200W")
    assert_close(locked.peaks["fp16"].rate.value, hardware.peaks["fp16"].rate.value / 2)
    assert_close(locked.full_clock.value, 705e6)
    assert_close(float(PowerLaw.of(locked).reach), 0.5)
    assert locked.memory_bandwidth == hardware.memory_bandwidth
    assert (capped.tdp.value, capped.peaks["fp16"].rate.value) == (200.0, hardware.peaks["fp16"].rate.value)
    assert PowerLaw.of(capped).reach == 1.0


@pytest.mark.parametrize(
    ("hardware", "precision", "pj_per_flop"),
    [("h200_sxm", "fp32", 11.4), ("h200_sxm", "tf32", 2.4), ("h200_sxm", "bf16", 1.3), ("h200_sxm", "fp8", 0.8),
     ("a100_pcie_40gb", "fp32", 16.0), ("a100_pcie_40gb", "bf16", 1.77)],
)  # fmt: skip
def test_a_flop_of_a_large_product_costs_what_boards_drew(hardware: str, precision: str, pj_per_flop: float) -> None:
    chip = uncapped(load_catalogue().find(hardware))
    operator = find_operator("gemm(m=8192,n=8192,k=8192)")
    assert operator is not None
    work = columns_of(describe(operator, 1, NO_KEY))
    found = evaluate(work, chip, Configuration(hardware=chip.id, precision=precision, runtime="graph"))
    assert found.voltage_factor == 1.0
    # as measured under a cap, divided by the voltage factor there
    assert_close((found.energy_fj - static_fj(found)) / FJ_PER_PJ / (2 * 8192**3), pj_per_flop, rel=0.15)


@pytest.mark.parametrize(
    ("mode", "images_per_s", "core_w", "measured_w"),
    [("MAXN", 21.015, 1.27, 14.78), ("50W", 15.27, 0.5, 12.18), ("30W", 16.91, 0.7, 12.72), ("15W", 10.64, 0.4, 10.16)],
)
def test_a_module_that_waits_between_images_draws_what_its_sensors_read(
    mode: str, images_per_s: float, core_w: float, measured_w: float
) -> None:
    """ResNet-152 as a pipeline (BroncoSpace-Lab/scales-hardware): static power, work at its rate and one busy core."""
    module = load_catalogue().find("jetson_agx_orin_64gb_gpu").in_mode(mode)
    found = evaluate(shipped("resnet152"), module, Configuration(hardware=module.id, precision="fp32", runtime="eager"))
    dynamic_j = (found.energy_fj - static_fj(found)) / 1e15
    assert_close(module.static_power.value + dynamic_j * images_per_s + core_w, measured_w, rel=0.14)


@pytest.mark.parametrize(("hardware", "precision"), [("rx_6950_xt", "fp32"), ("rx_7600_xt", "bf16")])
def test_waiting_cycles_of_a_single_kernel_stay_within_the_cap(hardware: str, precision: str) -> None:
    asked = "scan(kind=mamba2,heads=128,head_dim=64,state=128,groups=8)"
    found = predict(asked, hardware, precision=precision, batch=8, runtime="fused")
    assert float(found.energy_j) / float(found.latency_s) <= find_chip(hardware)[0].tdp.value * (1.0 + 1e-6)
