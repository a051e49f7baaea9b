"""`joulemap measure --parts` on a stand-in for the driver: what is stored, and the parts that are fitted to it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
import pytest

from compare import assert_close
from conftest import Run
from joulemap.calibrate.part import SPREAD, fit_parts
from joulemap.catalog.load import find_hardware
from joulemap.device.board import COPIED_BYTES
from joulemap.domain.measurement import PowerState
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.plan.anchor import anchor_hardware
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace
from stand_in import CORES_MHZ, MEMORIES_MHZ, Driver, Law

UNITS = 128
STATIC_W = 31.0
PLANTED = {"clock_energy": 6.3e-11, "unit.active_cycle": 5.1e-11, "standby_energy": 2.2e-11}
UNIT = {"clock_energy": "J", "standby_energy": "J/B"}
WORK_J = {"idle": 0.0, "sleep": 0.0, "spin": 1e-10, "zeros": 4e-10, "random": 6e-10}
COPY_J_PER_BYTE = 5e-10


def price_parts(value: float) -> Hardware:
    """Return a board with a price for each part, anchored."""
    board = find_hardware("rtx_4090")
    own = {name: Quantity(value=value, unit=UNIT[name], basis="derived", source="a test") for name in UNIT}
    active = attrs.evolve(
        next(row for row in board.reference if row.part == "control"),
        component="unit",
        action="active_cycle",
        energy_per_action_fj=value * 1e15,
    )
    reference = board.reference.with_actions([active])
    return anchor_hardware(
        attrs.evolve(board, coefficients={**board.coefficients, **own}, reference=reference, digest=f"parts {value}")
    )


def plant(hardware: Hardware, parts: Mapping[str, float] = PLANTED) -> Law:
    """Return the power law of a board with these parts."""
    law, lost = PowerLaw.of(hardware), 1.0 + hardware.reference.loss_j
    full = hardware.full_clock.value

    def draw(load: str, core_hz: float, memory_hz: float, units: int, bytes_per_s: float) -> float:
        cycles = lost * core_hz * float(law.energy_factor(np.array([core_hz / full]))[0])
        awake = hardware.memory_bandwidth.value * memory_hz / (1e6 * MEMORIES_MHZ[0])
        return (
            STATIC_W
            + cycles * (parts["clock_energy"] * UNITS + parts["unit.active_cycle"] * units)
            + lost * parts["standby_energy"] * awake
            + (COPY_J_PER_BYTE * bytes_per_s if load == "copy" else cycles * WORK_J[load] * units)
        )

    return draw


def measure(driver: Driver) -> list[tuple[PowerState, float]]:
    board = driver.board()
    probed = board.probe(*board.meter.list_clocks(), seconds=1.0)
    return [(state, power_w) for state, power_w in probed if power_w is not None]


def test_a_name_holds_a_state() -> None:
    state = PowerState(load="copy", core_hz=2.52e9, memory_hz=1.0501e10, busy_units=128, bytes_per_s=9.2e11)
    assert PowerState.read(state.name) == state
    assert PowerState.read("resnet18") is None and PowerState.read("gemm(m=1,n=2,k=3)") is None
    with pytest.raises((ValueError, TypeError)):
        PowerState.read("power_state(copy)")


def test_states_cover_units_core_clocks_and_memory_clocks() -> None:
    driver = Driver(plant(find_hardware("rtx_4090"), PLANTED), UNITS)
    states = [state for state, _ in measure(driver)]
    assert {state.core_hz for state in states if state.load == "spin"} == {1e6 * clock for clock in CORES_MHZ}
    assert {state.busy_units for state in states if state.load == "sleep"} == {1.0, 32.0, 64.0, 128.0}
    assert {state.memory_hz for state in states if state.load == "copy"} == {1e6 * clock for clock in MEMORIES_MHZ}
    assert [state.load for state in states].count("idle") == 1
    assert {state.bytes_per_s > 0.0 for state in states if state.load == "copy"} == {True}
    assert (driver.core_mhz, driver.memory_mhz) == (None, None)  # unlocked again


def test_clocks_are_unlocked_if_a_load_fails() -> None:
    def fail(*_state: object) -> float:
        raise RuntimeError("out of memory")

    driver = Driver(fail, UNITS)
    with pytest.raises(RuntimeError):
        measure(driver)
    assert (driver.core_mhz, driver.memory_mhz) == (None, None)


def test_a_fit_returns_the_planted_parts() -> None:
    hardware = price_parts(1.2e-10)
    fitted = fit_parts(hardware, measure(Driver(plant(hardware), UNITS)), "v")
    assert fitted.static_power is not None
    assert_close(fitted.static_power.value, STATIC_W, rel=0.01)
    for name in UNIT:
        assert_close(fitted.coefficients[name].value, PLANTED[name], rel=0.01)
        assert fitted.coefficients[name].is_determined
    (active,) = fitted.energy_scales
    assert active.actions == (("unit", "active_cycle"),)
    assert_close(active.factor * 1.2e-10, PLANTED["unit.active_cycle"], rel=0.01)
    law, full_memory = plant(hardware), 1e6 * MEMORIES_MHZ[0]
    copy_w = law("copy", 1e6 * CORES_MHZ[0], full_memory, UNITS, COPIED_BYTES / 1e-3)
    idle_w = law("idle", 0.0, full_memory, 0, 0.0)  # static power, and memory awake
    assert_close(fitted.coefficients["busy_share"].value, (copy_w - idle_w) / hardware.tdp.value, rel=0.01)


def test_four_of_five_ranges_hold_the_truth_and_follow_the_residuals() -> None:
    hardware = price_parts(1.2e-10)
    exact, noise = measure(Driver(plant(hardware, PLANTED), UNITS)), np.random.default_rng(1)
    held, widths = [], []
    for error in (0.0, *[0.05] * 40):
        states = [(state, watts * float(np.exp(error * noise.standard_normal()))) for state, watts in exact]
        for name, one in fit_parts(hardware, states, "v").coefficients.items():
            half_width = 1.2816 * SPREAD * math.sqrt(1.0 - one.data_weight)
            widths += [half_width] if name == "clock_energy" else []
            held += [abs(math.log(one.value / PLANTED[name])) < half_width] if name in PLANTED and error else []
    assert len(held) == 80 and 0.7 < np.mean(held) < 0.9
    assert min(widths[1:]) > 2.0 * widths[0]


def test_a_part_without_a_price_is_static_power_at_full_clocks() -> None:
    """A board without prices of its clock and of awake memory counts both as static power."""
    hardware = price_parts(0.0)
    law = plant(hardware)
    fitted = fit_parts(hardware, measure(Driver(law, UNITS)), "v")
    assert set(fitted.coefficients) == {"busy_share"} and fitted.static_power is not None
    at_full_clocks_w = law("idle", 1e6 * CORES_MHZ[0], 1e6 * MEMORIES_MHZ[0], 0, 0.0)
    assert_close(fitted.static_power.value, at_full_clocks_w, rel=0.01)
    assert fitted.static_power.is_determined


def test_states_at_one_memory_clock_leave_its_part_in_static_power() -> None:
    hardware = price_parts(0.0)
    law = plant(hardware)
    states = [one for one in measure(Driver(law, UNITS)) if one[0].memory_hz == 1e6 * MEMORIES_MHZ[0]]
    fitted = fit_parts(hardware, states, "v").static_power
    assert fitted is not None and fitted.is_determined
    assert_close(fitted.value, law("idle", 1e6 * CORES_MHZ[0], 1e6 * MEMORIES_MHZ[0], 0, 0.0), rel=0.01)


ASKED = ("measure", "--parts", "--hardware", "rtx_4090", "--seconds", "1", "--format", "json")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver of this machine's board, which is not really there."""
    driver = Driver(plant(find_hardware("rtx_4090"), PLANTED), UNITS)
    monkeypatch.setattr("joulemap.device.board.open_board", driver.board)
    return driver


def test_states_are_stored_and_calibrate_the_board(
    joulemap: Run, stand_in: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = joulemap(*ASKED)
    assert done.returncode == ExitCode.OK, done.stderr
    assert [row["model"].partition("(")[0] for row in json.loads(done.stdout)] == 32 * ["power_state"]
    stored = Workspace(tmp_path / "joulemap.duckdb").measurements("rtx_4090")
    states = [row for row in stored if PowerState.read(row.model)]
    assert len(states) == 32
    assert all(row.latency_s is None and row.energy_j is None and row.power_w for row in states)

    done = joulemap("calibrate", "rtx_4090", "--output", "my.toml", "--report", "fit.json", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    fitted = {row["name"]: row for row in json.loads((tmp_path / "fit.json").read_text())["coefficients"]}
    assert fitted["busy_share"]["is_determined"] and fitted["static_power"]["is_determined"]
    command = ("analyze", "elementwise(kind=relu,elements=67108864)", "rtx_4090", "--calibration", "./my.toml")
    done = joulemap(*command, "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    total = json.loads(done.stdout)["total"]
    copied = max(row.power_w or 0.0 for row in states if "(copy," in row.model)
    assert_close(total["energy_j"] / total["latency_s"], copied, rel=0.02)


def test_without_rights_the_present_clock_is_measured(joulemap: Run, stand_in: Driver) -> None:
    stand_in.may_lock = False
    done = joulemap(*ASKED)
    assert done.returncode == ExitCode.OK, done.stderr
    states = [PowerState.read(row["model"]) for row in json.loads(done.stdout)]
    assert {one.core_hz for one in states if one and one.load != "idle"} == {1e6 * CORES_MHZ[0]}
    assert [one.load for one in states if one].count("spin") == 4
    assert {row["conditions"] for row in json.loads(done.stdout)} == {
        "1 s at the present clock: locking clocks needs root"
    }


def test_a_state_is_no_measurement_of_a_model(joulemap: Run, stand_in: Driver, tmp_path: Path) -> None:
    assert joulemap("measure", "--parts", "--hardware", "l40s", "--seconds", "1").returncode == ExitCode.OK
    done = joulemap("validate", "--source", "joulemap measure on NVIDIA stand-in")
    assert done.returncode == ExitCode.UNKNOWN_NAME, done.stdout
    rows = Workspace(tmp_path / "joulemap.duckdb").sql(
        "SELECT count(*) FROM scored_measurements WHERE model LIKE 'power_state%'"
    )
    assert rows.rows == ((0,),)


def test_a_table_of_states_is_imported_and_has_power_alone(joulemap: Run, tmp_path: Path) -> None:
    state = PowerState(load="spin", core_hz=2e9, memory_hz=1e10, busy_units=1, bytes_per_s=0)
    head = "hardware,model,precision,batch,runtime,scope,boundary,power_w,source"
    (tmp_path / "a.csv").write_text(f'{head}\nrtx_4090,"{state.name}",fp32,1,eager,board,board,60,me\n')
    assert joulemap("measurements", "import", "a.csv").returncode == ExitCode.OK
    (tmp_path / "b.csv").write_text(f'{head},latency_s\nrtx_4090,"{state.name}",fp32,1,eager,board,board,60,me,0.1\n')
    assert joulemap("measurements", "import", "b.csv").returncode == ExitCode.CATALOGUE


def test_a_machine_without_a_board_refuses_in_one_line(joulemap: Run) -> None:
    done = joulemap("measure", "--parts")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (ExitCode.USAGE, "", 1)
    assert joulemap("measure").returncode == ExitCode.USAGE
    done = joulemap("measure", "resnet18", "--parts", "--batch", "4")
    assert done.stderr.endswith("leave out resnet18, --batch\n")
