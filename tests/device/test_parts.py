"""`joulemap measure --parts` on a stand-in for the driver: what is stored, and the parts that are fitted to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
import pytest

from compare import assert_close
from conftest import Run
from joulemap.calibrate.part import find_range, fit_parts
from joulemap.catalog.load import find_hardware
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
UNIT = {"clock_energy": "J", "unit.active_cycle": "J", "standby_energy": "J/B"}
WORK_J = {"idle": 0.0, "sleep": 0.0, "spin": 1e-10, "zeros": 4e-10, "random": 6e-10}
COPY_J_PER_BYTE = 2e-10


def price_parts(values: Mapping[str, float]) -> Hardware:
    """Return a board with these parts as coefficients."""
    board = find_hardware("rtx_4090")
    own = {
        name: Quantity(value=value, unit=UNIT[name], basis="derived", source="a test") for name, value in values.items()
    }
    return attrs.evolve(board, coefficients={**board.coefficients, **own}, digest=f"{len(own)}{sum(values.values()):g}")


def plant(hardware: Hardware, parts: Mapping[str, float]) -> Law:
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
    return list(board.probe(*board.meter.list_clocks(), seconds=1.0))


def test_a_name_holds_a_state() -> None:
    state = PowerState(load="copy", core_hz=2.52e9, memory_hz=1.0501e10, busy_units=128, bytes_per_s=9.2e11)
    assert PowerState.read(state.name) == state
    assert PowerState.read("resnet18") is None and PowerState.read("gemm(m=1,n=2,k=3)") is None
    with pytest.raises(ValueError, match="core_hz"):
        PowerState.read("power_state(load=copy)")


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
    hardware = anchor_hardware(price_parts(dict.fromkeys(PLANTED, 1.2e-10)))
    fitted = fit_parts(hardware, measure(Driver(plant(hardware, PLANTED), UNITS)), "v")
    assert fitted.static_power is not None
    assert_close(fitted.static_power.value, STATIC_W, rel=0.01)
    for name, value in PLANTED.items():
        assert_close(fitted.coefficients[name].value, value, rel=0.01)
        assert fitted.coefficients[name].is_determined
    copy_w = plant(hardware, PLANTED)("copy", 2.52e9, 1.0501e10, UNITS, 2 * 4 * 2**26 / 1e-3)
    assert_close(fitted.coefficients["busy_share"].value, (copy_w - STATIC_W) / hardware.tdp.value, rel=0.01)


def test_four_of_five_ranges_hold_the_truth_and_follow_the_residuals() -> None:
    hardware = anchor_hardware(price_parts(dict.fromkeys(PLANTED, 1.2e-10)))
    exact, noise = measure(Driver(plant(hardware, PLANTED), UNITS)), np.random.default_rng(1)
    held, widths = [], []
    for error in (0.0, *[0.05] * 40):
        states = [(state, watts * float(np.exp(error * noise.standard_normal()))) for state, watts in exact]
        for name, one in fit_parts(hardware, states, "v").coefficients.items():
            low, high = find_range(one.value, one.data_weight)
            widths += [high / low - 1.0] if name == "clock_energy" else []
            held += [low < PLANTED[name] < high] if name in PLANTED and error else []
    assert len(held) == 120 and 0.7 < np.mean(held) < 0.9
    assert min(widths[1:]) > 2.0 * widths[0]


def test_a_part_that_the_chip_does_not_price_stays_in_static_power() -> None:
    """A board without coefficients for clocks and awake memory draws both as static power."""
    hardware = anchor_hardware(find_hardware("rtx_4090"))
    parts = {**dict.fromkeys(PLANTED, 0.0), "standby_energy": 2.2e-11}
    states = [one for one in measure(Driver(plant(hardware, parts), UNITS)) if one[0].memory_hz > 1e10]
    fitted = fit_parts(hardware, states, "v")
    assert set(fitted.coefficients) == {"busy_share"} and fitted.static_power is not None
    awake_w = (1.0 + hardware.reference.loss_j) * 2.2e-11 * hardware.memory_bandwidth.value
    assert_close(fitted.static_power.value, STATIC_W + awake_w, rel=0.01)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver of this machine's board, which is not really there."""
    driver = Driver(plant(find_hardware("rtx_4090"), PLANTED), UNITS)
    monkeypatch.setattr("joulemap.device.board.open_board", driver.board)
    return driver


def test_states_are_stored_and_calibrate_the_board(
    joulemap: Run, stand_in: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("measure", "--parts", "--hardware", "rtx_4090", "--seconds", "1", "--format", "json")
    done = joulemap(*asked)
    assert done.returncode == ExitCode.OK, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["hardware"], answer["is_locked"], len(answer["states"])) == ("rtx_4090", True, 33)
    stored = Workspace(tmp_path / "joulemap.duckdb").measurements("rtx_4090")
    states = [row for row in stored if PowerState.read(row.model)]
    assert len(states) == 33
    assert all(row.latency_s is None and row.energy_j is None and row.power_w for row in states)

    done = joulemap("calibrate", "rtx_4090", "--output", "my.toml", "--report", "fit.json", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    fitted = {row["name"]: row for row in json.loads((tmp_path / "fit.json").read_text())["coefficients"]}
    assert fitted["busy_share"]["is_determined"] and fitted["static_power"]["is_determined"]
    command = ("analyze", "elementwise(kind=relu,elements=67108864)", "rtx_4090", "--calibration", "./my.toml")
    done = joulemap(*command, "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    total = json.loads(done.stdout)["total"]
    copied = max(row.power_w or 0.0 for row in states if "load=copy" in row.model)
    assert_close(total["energy_j"] / total["latency_s"], copied, rel=0.02)


def test_without_rights_the_present_clock_is_measured(joulemap: Run, stand_in: Driver) -> None:
    stand_in.may_lock = False
    done = joulemap("measure", "--parts", "--hardware", "rtx_4090", "--seconds", "1", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    answer = json.loads(done.stdout)
    assert answer["is_locked"] is False
    assert {row["core_hz"] for row in answer["states"] if row["load"] != "idle"} == {1e6 * CORES_MHZ[0]}
    assert [row["load"] for row in answer["states"]].count("spin") == 4


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
