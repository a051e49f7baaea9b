"""What if: numbers of a chip set for a question, in a version of it that stands by itself."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

import chip
from compare import assert_close
from conftest import Run
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.change import change_hardware
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.address import Address
from joulemap.physics.record.constant import Change, list_constants, match_names, word_changes
from joulemap.physics.record.hardware import Hardware, PowerMode
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.plan.anchor import anchor_hardware
from joulemap.plan.change import describe_change
from joulemap.system.errors import UsageError
from joulemap.workspace import Workspace
from sample import thin

CATALOGUE = load_catalogue().hardware


def change(hardware: Hardware, **values: float) -> Hardware:
    """Return a chip with constants set, named with `__` for a dot."""
    known = list_constants(hardware)
    named = {name.replace("__", "."): value for name, value in values.items()}
    return change_hardware(
        hardware,
        tuple(Change.of(known[name], value) for name, value in named.items()),
    )


@pytest.mark.slow
def test_a_price_that_is_set_is_the_price_of_every_line_to_the_femtojoule(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    plain = workspace.compare("resnet18", hardware="l4", precision="bf16")
    set_to = workspace.compare("resnet18", hardware="l4", precision="bf16", changes={"dram.read": "31pJ"})
    lines = workspace.sql(
        "SELECT run_id, action_count, line_energy_fj, line_voltage_factor, energy_per_action_j, basis, source "
        "FROM energy_ledger WHERE component = 'dram' AND action = 'read' ORDER BY run_id, operator_index"
    ).rows
    before = [row for row in lines if row[0] == plain.rows[0].run_id]
    after = [row for row in lines if row[0] == set_to.rows[0].run_id]
    assert [row[1] for row in before] == [row[1] for row in after]
    assert all(row[2] == round(row[1] * 31_000.0) and row[3] == 1.0 for row in after)
    assert {(row[5], row[6]) for row in after} == {("assumed", "--set")}
    assert {row[5] for row in before} != {"assumed"}


@pytest.mark.slow
def test_plain_answers_stay_as_they_were(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    settings = Settings(hardware=("l4", "h200_sxm"), precision="bf16")
    before = workspace.compare("resnet18", settings)
    changed = workspace.compare("resnet18", settings, changes=["tdp=x0.5", "h200_sxm:dram.read=20pJ"])
    after = workspace.compare("resnet18", settings)
    assert before.rows == after.rows
    assert not {row.run_id for row in before.rows} & {row.run_id for row in changed.rows}
    newest = workspace.sql("SELECT run_id FROM runs WHERE is_newest ORDER BY run_id").rows
    assert [run for (run,) in newest] == sorted(row.run_id for row in before.rows)
    told = workspace.sql("SELECT changes FROM runs WHERE len(changes) > 0 ORDER BY run_id").rows
    assert [len(changes) for (changes,) in told] == [1, 2]
    assert not workspace.check().findings.rows


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "command",
    thin(
        [
            ["analyze", "resnet18", "l4"],
            ["explain", "resnet18", "l4", "t4"],
            ["recommend", "resnet18", "l4", "--precision", "bf16", "--batch", "1"],
            ["pareto", "resnet18", "l4", "--precision", "bf16", "--batch", "1"],
            ["sweep", "resnet18", "l4", "--batch", "1,2"],
            ["cost", "resnet18", "l4", "--precision", "bf16", "--batch", "1"],
            ["edp", "resnet18", "l4"],
            ["fusion", "resnet18", "l4"],
            ["utilization", "resnet18", "l4"],
            ["architectures", "resnet18", "l4"],
            ["sensitivity", "resnet18", "l4"],
            ["flip", "resnet18", "l4", "t4"],
        ],
        3,
    ),
    ids=lambda words: words[0],
)
def test_every_command_that_evaluates_takes_it_and_says_so(joulemap: Run, command: list[str]) -> None:
    done = joulemap(*command, "--set", "l4:static_power=12W")
    assert done.returncode == 0, done.stderr
    assert "l4 with static_power 12 W (was 19.6 W)" in " ".join(done.stdout.split())


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ("dramm.read=31pJ", 2, "did you mean dram.read"),
        ("dram.read=31nW", 2, "dram.read is in J: write 53.6pJ"),
        ("dram.read=31", 2, "'31' has no unit; dram.read is in J"),
        ("dram.read=-1pJ", 2, "is not at least 0"),
        ("clock=1.2", 2, "clock is in Hz: write 2.04GHz"),
        ("clock=0Hz", 2, "is not above 0"),
        ("tdp=1W", 2, "static_power: 19.6 W is not below the tdp of 1 W"),
        ("unit_count=1.5", 2, "is not a whole number"),
        ("geometry.warp_size=31.5", 2, "31.5 is not a whole number"),
        ("unit_count=1e12", 2, "1e+12 is above 2,147,483,647"),
        ("clock=1.0001GHz,1.0002GHz", 2, "1 GHz"),
        ("coefficient.voltage_floor=1.5", 2, "is not above 0 and at most 1"),
        ("coefficient.cap_share=many", 2, "coefficient.cap_share is a number without a unit: write 0.975"),
        ("process_node=4", 2, "has no constant 'process_node'"),
        ("chip_energy=2", 2, "has no constant 'chip_energy'"),
        ("foo", 2, "write NAME=VALUE"),
        ("=3W", 2, "write NAME=VALUE"),
        ("l4:=3W", 2, "write NAME=VALUE"),
        ("t4:tdp=60W", 2, "t4 is not among the requested hardware"),
        ("nosuch:tdp=60W", 3, "unknown hardware 'nosuch'"),
    ],
)
def test_what_cannot_be_set_is_one_clear_line(joulemap: Run, written: str, code: int, message: str) -> None:
    done = joulemap("analyze", "resnet18", "l4", "--set", written)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_measurement_is_of_a_machine_as_it_is(joulemap: Run) -> None:
    done = joulemap("measure", "resnet18", "--set", "tdp=60W")
    assert (done.returncode, "leave out --set" in done.stderr) == (2, True)


def test_a_label_with_a_slash_in_its_unit_is_no_file() -> None:
    assert [is_hardware_path(name) for name in ("l4[memory_bandwidth=200GB/s]", "a[1]/b.toml", "a/b[1]")] == [
        False,
        True,
        True,
    ]


def test_a_name_set_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="tdp is set twice"):
        Settings(changes=["tdp=60W", "tdp=70W"])


def test_leakage_has_one_number_under_both_names() -> None:
    hardware = change(chip.cpu(), static_power=20.0)
    row = hardware.reference.position(STATIC_ACTION)
    assert row is not None
    assert hardware.static_power.value == 20.0
    assert hardware.reference.prices_fj[row] == 20.0e15
    assert match_names("chip.static_power", list_constants(hardware)) == ["static_power"]


def test_peaks_and_bandwidths_on_the_chip_follow_clock_and_units() -> None:
    plain = CATALOGUE["l4"]
    hardware = change(plain, clock=plain.clock.value / 2.0, unit_count=2.0 * plain.units)
    assert hardware.units == 2 * plain.units
    for precision, peak in plain.peaks.items():
        assert_close(hardware.peaks[precision].rate.value, peak.rate.value)
        assert_close(hardware.peaks[precision].clock_hz, peak.clock_hz / 2.0)
        assert hardware.peaks[precision].unit_count == 2 * peak.unit_count
    assert hardware.full_clock.value == plain.full_clock.value / 2.0
    assert hardware.clock_die == plain.clock_die  # a lower clock is a lower voltage of the same die
    assert hardware.memory_bandwidth == plain.memory_bandwidth


def test_voltage_follows_a_set_clock_up_and_down() -> None:
    """Floor 0.763 and knee 0.718: 20 % more or less clock is 0.2 x 0.237 / 0.282 more or less voltage."""
    plain = CATALOGUE["h100_sxm5"]
    die = plain.clock_die
    assert die is not None
    for ratio, voltage in ((1.2, 1.168085), (1.0, 1.0), (0.8, 0.831915), (0.5, 0.763)):
        clock = plain.clock.value * ratio * die.value / plain.full_clock.value
        hardware = change(plain, clock=clock)
        assert hardware.clock_die == die
        assert_close(float(PowerLaw.of(hardware).energy_factor(np.ones(1))[0]), voltage**2, rel=1e-6)
        made = Change.of(list_constants(plain)["clock"], clock)
        assert ("voltage assumed above 1.98 GHz" in describe_change(made, hardware)) == (ratio > 1.0)
    fixed = change(CATALOGUE["stm32u575"], clock=2.0 * CATALOGUE["stm32u575"].clock.value)
    assert float(PowerLaw.of(fixed).energy_factor(np.ones(1))[0]) == 1.0  # its core voltage is taken as fixed


@pytest.mark.parametrize(("name", "units", "cores"), [("cloud_ai_100_pro", 8, 32), ("rk3588_npu", 6, 6)])
def test_vector_cores_of_an_npu_follow_its_units(name: str, units: int, cores: int) -> None:
    """16 cores of four vector cores each, and three of one."""
    plain = CATALOGUE[name]
    changed = change_hardware(plain, [Change.of(list_constants(plain)["unit_count"], units)])
    assert changed.geometry["vector_core_count"].value == cores
    grown = 2.0 if name == "rk3588_npu" else 1.0  # its cores run copies of a model, each in an SRAM of its own
    assert changed.memory_levels[-1].capacity.value == grown * plain.memory_levels[-1].capacity.value
    count = attrs.evolve(plain.unit_count, value=float(units))
    mode = PowerMode(name="some", tdp=plain.tdp, clock=plain.clock, unit_count=count)
    assert attrs.evolve(plain, power_modes=(mode,)).in_mode("some").geometry["vector_core_count"].value == cores


def test_a_peak_moves_what_a_unit_does_in_a_clock() -> None:
    plain = CATALOGUE["tpu_v4"]
    before = plain.peaks["bf16"]
    after = change(plain, peak__bf16=before.rate.value * 2.0).peaks["bf16"]
    assert after.operations_per_clock == 2.0 * before.operations_per_clock
    assert after.rate.value == 2.0 * before.rate.value


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["epyc_9654", "l4", "tpu_v4", "kpu_t256", "hailo_8"])
def test_each_constant_can_be_set_and_is_there_again(name: str) -> None:
    hardware = anchor_hardware(CATALOGUE[name])
    for constant in list_constants(hardware).values():
        value = constant.value if constant.is_whole else constant.value * 0.9
        made = change(hardware, **{constant.name.replace(".", "__"): value})
        assert_close(list_constants(made)[constant.name].value, value)
        assert made.digest != hardware.digest
        assert made.described_digest == hardware.digest


def test_the_digest_tells_what_was_set() -> None:
    def one(value: float) -> Change:
        return Change(address=Address.read("tdp"), value=value, before=72.0, unit="W")

    assert word_changes(()) == ""
    assert word_changes((one(70.0),)) != word_changes((one(71.0),))
