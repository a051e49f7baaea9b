"""Microcontrollers: MLPerf Tiny's networks by name, clocks per MAC, power times time; numbers worked out by hand."""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path

import attrs
import pytest

from blank import open_blank
from compare import assert_close
from joulemap import predict
from joulemap.ask.hardware_file import SMALL_TRIAL_MODELS, check_files
from joulemap.catalog.digest import DATA, ZOO
from joulemap.catalog.load import load_catalogue
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.system.errors import UnsupportedError
from tiny import MACS

FEMTO = 1e-15


@cache
def work(name: str) -> WorkloadColumns:
    connection = open_blank()
    (workload_id,) = read_shipped(connection, ZOO, [Shipped(f"mlperf_tiny_{name}", 1, workload_key=name)])
    return read_columns(connection, workload_id)


def chip(name: str) -> Hardware:
    return load_catalogue().find(name)


def run(hardware: Hardware, name: str, precision: str = "int8", runtime: str = "engine") -> RunColumns:
    return evaluate(work(name), hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))


def seconds(found: RunColumns) -> float:
    return found.latency_fs * FEMTO


def joules(found: RunColumns) -> float:
    return found.energy_fj * FEMTO


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", sorted(MACS))
@pytest.mark.parametrize(("hardware", "core"), [("stm32u575", 1.0), ("stm32l4r5", 1.26), ("stm32h7a3", 0.73)])
def test_each_kind_of_kernel_takes_its_clocks_per_mac(name: str, hardware: str, core: float) -> None:
    dense, depthwise, linear = MACS[name]
    clock_hz = chip(hardware).clock.value
    for runtime, conv, of_depthwise, of_linear in (("engine", 1.3, 1.4, 1.46), ("fused", 2.7, 4.6, 1.25)):
        clocks = core * conv * (dense + of_depthwise * depthwise + of_linear * linear)
        found = run(chip(hardware), name, runtime=runtime)
        # the pool before the classifier is a kernel without MACs: at most 8,064 operations of eight clocks
        assert clocks * (1 - 1e-9) <= seconds(found) * clock_hz <= (clocks + core * 8 * 8064) * (1 + 1e-9)


def test_floats_take_the_clocks_of_floats() -> None:
    dense, depthwise, linear = MACS["ad"]
    found = run(chip("stm32u575"), "ad", "fp32")
    assert_close(seconds(found), 7.2 * (dense + 1.5 * depthwise + linear) / 160e6)


def test_energy_is_power_times_time() -> None:
    # 155 uW/MHz x 160 MHz = 24.8 mW, and 29.5 uW that it draws asleep too
    found = run(chip("stm32u575"), "vww")
    assert_close(joules(found) / seconds(found), 24.8e-3 + 29.5e-6, rel=1e-6)
    reference = found.hardware.reference
    named = {reference.actions[row].key for row in found.ledger.action_index.tolist()}
    assert named == {("core", "active_clock"), ("chip", "static_power")}
    assert found.ledger.total_fj == found.energy_fj


def test_a_lower_clock_saves_what_the_voltage_saves() -> None:
    # 70 of 120 MHz is at the floor of 0.9375 of the voltage, 40 of 280 MHz at 0.73
    for hardware, mode, saved in (("stm32l4r5", "70MHz", 1 - 0.9375**2), ("stm32h7a3", "40MHz", 1 - 0.73**2)):
        fast, slow = (joules(run(one, "vww")) for one in (chip(hardware), chip(hardware).in_mode(mode)))
        assert_close(1 - slow / fast, saved, rel=0.02)


def test_what_fits_is_decided_by_flash_and_sram() -> None:
    weights = sum(MACS["ad"])  # one weight for each MAC of a dense layer, and biases
    small = chip("stm32u575")
    sram, flash = small.memory_levels
    less_flash = attrs.evolve(flash, capacity=attrs.evolve(flash.capacity, value=weights - 1.0))
    tight = attrs.evolve(small, memory_levels=(sram, less_flash))
    with pytest.raises(UnsupportedError, match="stm32u575 has 264 kB of flash; the weights need 270 kB"):
        run(tight, "ad")
    # the input of visual wake words alone has 27,648 bytes
    less_sram = attrs.evolve(sram, capacity=attrs.evolve(sram.capacity, value=27_000.0))
    tight = attrs.evolve(small, memory_levels=(less_sram, flash))
    with pytest.raises(UnsupportedError, match="stm32u575 has 27 kB of sram; the activations need"):
        run(tight, "vww")


@pytest.mark.parametrize(("hardware", "power_w"), [("ndp120", 29.567e-3), ("ndp120_0v9", 7.221e-3)])
def test_a_neural_decision_processor_draws_its_measured_power(hardware: str, power_w: float) -> None:
    found = predict("mlperf_tiny_kws", hardware, precision="int8", runtime="engine")
    assert_close(float(found.energy_j / found.interval_s), power_w, rel=1e-6)


def test_a_file_of_a_microcontroller_is_tried_with_small_models(tmp_path: Path) -> None:
    text = (DATA / "hardware" / "stm32u575.toml").read_text(encoding="utf-8")
    path = tmp_path / "own_mcu.toml"
    path.write_text(re.sub(r"^aliases.*\n", "", text, flags=re.MULTILINE).replace('"stm32u575"', '"own_mcu"', 1))
    (checked,) = check_files([path]).checks
    assert {trial.model for trial in checked.trials} == set(SMALL_TRIAL_MODELS)
    assert {trial.reason for trial in checked.trials} == {""}


@cache
def rows() -> tuple[tuple[str, str, str, float, float | None], ...]:
    """(hardware, network, runtime, seconds, joules) of each measured row of a microcontroller."""
    with (DATA / "measurement" / "mlperf_tiny.csv").open(newline="", encoding="utf-8") as file:
        return tuple(
            (
                row["hardware"],
                row["model"].removeprefix("mlperf_tiny_"),
                row["runtime"],
                float(row["latency_s"]),
                float(row["energy_j"]) if row["energy_j"] else None,
            )
            for row in csv.DictReader(file)
            if not row["hardware"].startswith("ndp120")
        )


def test_measured_latencies_are_met_within_the_spread_of_libraries() -> None:
    errors = [
        abs(math.log(seconds(run(chip(name), network, runtime=runtime)) / latency))
        for name, network, runtime, latency, _ in rows()
    ]
    assert sorted(errors)[len(errors) // 2] < 0.17
    assert sorted(errors)[int(0.8 * len(errors))] < 0.4
