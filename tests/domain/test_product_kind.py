"""Kinds of product, and the scenarios that choose them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from conftest import Run
from joulemap.ask.candidate import plan_candidates
from joulemap.catalog.sheet import load_scenarios
from joulemap.domain.settings import Limits, Settings
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import UnknownNameError
from joulemap.workspace import Workspace

FORMS = {
    "rk3588_npu": "board",
    "raspberry_pi_5": "board",
    "hailo_8": "card",
    "coral_edge_tpu": "card",
    "alveo_v70_dpu_c20b14": "card",
    "vek280_dpu_c20b14": "computer",
    "imx93_npu": "board",
    "sony_imx500": "card",
    "alif_e8_u85": "microcontroller",
    "lunar_lake_npu": "laptop",
    "rtx_4090": "card",
    "h100_sxm5": "server",
    "epyc_9654": "server",
    "snapdragon_8_elite_npu": "phone",
    "sa8295p_npu": "car",
    "snapdragon_x_elite_npu": "laptop",
    "stm32u575": "microcontroller",
}


@pytest.mark.parametrize(("hardware", "form"), FORMS.items())
def test_each_chip_has_a_kind(hardware: str, form: str) -> None:
    assert known_hardware()[hardware].form == form


def test_a_kind_filters_and_a_scenario_brings_its_own() -> None:
    chosen = select_hardware(Settings(kind=("phone",)), "catalogue")
    assert {entry.form for entry, _ in chosen.pairs} == {"phone"}
    camera = select_hardware(Settings(scenario="camera"), "catalogue")
    assert {entry.form for entry, _ in camera.pairs} <= {"board", "card"}
    with pytest.raises(UnknownNameError, match="board"):
        Settings(kind=("bord",))  # type: ignore[arg-type]


def test_boards_with_one_line_are_candidates() -> None:
    camera = {entry.id for entry, _ in select_hardware(Settings(scenario="camera"), "catalogue").pairs}
    assert {"hailo_8l", "rk3566_npu", "rdk_x5", "ax650n_npu"} <= camera
    assert set(load_scenarios()["camera"].kinds) == {"board", "card"}


@pytest.mark.slow
def test_a_camera_takes_one_frame_at_a_time(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    for scenario in ("camera", "edge"):
        answer = workspace.recommend("mlp", hardware="hailo_8", precision="int8", scenario=scenario)
        assert {row.batch for row in answer.rows} == {1}
    assert {row.batch for row in workspace.recommend("mlp", hardware="t4", precision="int8").rows} == {1, 8, 32}


@pytest.mark.slow
def test_a_battery_lasts_its_energy_over_the_average_power(tmp_path: Path, joulemap: Run) -> None:
    """A CR2032 cell of 225 mAh at 3 V holds 0.675 Wh."""
    asked = Settings(hardware=("stm32u575",), precision=("int8",), scenario="coin_cell")
    limits = Limits(min_throughput_per_s=1.0)
    best = Workspace(tmp_path / "a.duckdb").recommend("mlperf_tiny_kws", asked, limits=limits).best
    assert best is not None
    assert best.total_power_w is not None
    life = f"{0.675 / best.total_power_w / 24.0:.2g} days"
    command = ("recommend", "mlperf_tiny_kws", "stm32u575", "--precision", "int8", "--where", "scenario=coin_cell")
    place = ("--db", str(tmp_path / "a.duckdb"))
    assert life in joulemap(*command, "--min-throughput", "1/s", *place).stdout
    without_rate = joulemap(*command, *place).stdout
    assert "days" not in without_rate and "--where scenario=coin_cell --min-throughput 10/s" in without_rate


def test_a_coin_cell_bounds_pulses_at_any_rate() -> None:
    """The Ethos-U55 of an Alif E7 draws more than 45 mW while it runs, and far less on average."""
    asked = Settings(scenario="coin_cell", precision=("int8",))
    assert [name for name, one in load_scenarios().items() if one.is_pulse] == ["coin_cell"]
    for rate_per_s in (0.0, 2.0):
        chosen = plan_candidates("mlperf_tiny_kws", asked, rate_per_s).selection
        assert chosen.budget is not None and not chosen.budget.is_mean
        assert max(entry.cap_w(mode) for entry, mode in chosen.pairs) <= 0.045
    own = plan_candidates("mlperf_tiny_kws", attrs.evolve(asked, power_budget_w=0.045), 2.0).selection
    assert own.budget is not None and own.budget.is_mean
