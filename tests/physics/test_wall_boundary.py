"""The boundary `system`: power at the wall plug, with host, chassis and power supply on lines of the ledger."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import attrs
import numpy as np
import pytest

import chip
from compare import assert_close
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.surrounding import FOLDER, explain_missing, find_surrounding, load_surroundings
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.operator.name import find_operator
from joulemap.domain.settings import Settings
from joulemap.physics.interval.point import Case, PointErrors
from joulemap.physics.pipeline import Evaluator, evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.constant import list_constants
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import CHASSIS_ACTION, HOST_ACTION, STATIC_ACTION, SUPPLY_ACTION, ActionKey
from joulemap.physics.record.surrounding import KEPT, Surrounding
from joulemap.physics.run import RunColumns
from joulemap.physics.total import evaluate_totals
from joulemap.physics.variation import Varied
from joulemap.physics.workload import columns_of
from joulemap.plan.anchor import anchor_hardware
from joulemap.plan.calibration import CalibrationUse
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import UsageError
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.trace.single import describe
from joulemap.workspace import Workspace
from models import KEY, shipped

CATALOGUE = load_catalogue().hardware
PLUGGED = [one for one in CATALOGUE.values() if not explain_missing(one)]
RELU = "elementwise(kind=relu,elements=1048576)"


def surround(*, growth: float, host_w: float, count: float, loss: float) -> Surrounding:
    return Surrounding(
        name="rack",
        label="a rack",
        board_count=chip.number(count),
        growth=chip.number(growth),
        host_power=chip.number(host_w, "W"),
        supply_loss=chip.number(loss),
        growth_half_width=chip.number(0.1),
        host_half_width=chip.number(0.5),
    )


def run_of(hardware: Hardware, operator: str = RELU) -> RunColumns:
    found = find_operator(operator)
    assert found is not None
    configuration = Configuration(hardware=hardware.id, precision="fp32", runtime="graph")
    return evaluate(columns_of(describe(found, 1, KEY)), hardware, configuration)


def joules(run: RunColumns, key: ActionKey | None = None) -> float:
    rows = slice(None) if key is None else run.ledger.action_index == run.hardware.reference.position(key)
    return int(run.ledger.energy_fj[rows].sum()) / FJ_PER_J


def test_lines_around_a_board_worked_by_hand() -> None:
    # 8 MiB at 50 GB/s and 1 us of launch; a host of 80 W for eight boards, 1.25 J for each of a board
    board = run_of(chip.cpu())
    outside = run_of(chip.cpu().at_boundary("system", "1", surround(growth=1.25, host_w=80.0, count=8.0, loss=0.04)))
    seconds = 8 * 2**20 / 50e9 + 1e-6
    assert_close(joules(outside, HOST_ACTION), 10.0 * seconds)
    assert_close(joules(outside, SUPPLY_ACTION), 0.05 * joules(board))
    assert_close(joules(outside, CHASSIS_ACTION), 0.20 * joules(board))
    assert_close(joules(outside), 1.25 * joules(board) + 10.0 * seconds)
    assert np.array_equal(board.operators.latency_fs, outside.operators.latency_fs)
    assert board.uncapped_power_w == outside.uncapped_power_w


def test_surroundings_that_add_nothing_add_no_lines() -> None:
    board = run_of(chip.cpu())
    inside = run_of(chip.cpu().at_boundary("system", "1", surround(growth=1.0, host_w=0.0, count=1.0, loss=0.0)))
    assert np.array_equal(board.ledger.energy_fj, inside.ledger.energy_fj)
    assert inside.hardware.reference.around == ()
    assert inside.hardware.digest != board.hardware.digest


def test_a_supply_loses_no_more_than_the_growth() -> None:
    with pytest.raises(ValueError, match="supply loss"):
        surround(growth=1.02, host_w=0.0, count=1.0, loss=0.03)
    with pytest.raises(ValueError, match="board_count"):
        surround(growth=1.25, host_w=0.0, count=0.5, loss=0.0)


def test_waiting_draws_static_power_and_the_host() -> None:
    # 1 W of static power at 1.25 W at the wall, and a share of 10 W
    hardware = chip.cpu().at_boundary("system", "1", surround(growth=1.25, host_w=80.0, count=8.0, loss=0.04))
    assert_close(hardware.waiting_w, 11.25)
    assert chip.cpu().waiting_w == 1.0


def test_between_requests_a_board_draws_what_was_measured_with_a_model_loaded() -> None:
    # 3 W loaded instead of 1 W of active idle, at 1.25 W at the wall, and a share of 10 W
    own = attrs.evolve(chip.cpu(), loaded_power=chip.number(3.0, "W"))
    hardware = own.at_boundary("system", "1", surround(growth=1.25, host_w=80.0, count=8.0, loss=0.04))
    assert_close(hardware.resting_w, 13.75)
    assert dict(own.unmeasured_states) == {}
    assert chip.cpu().resting_w == chip.cpu().waiting_w
    (name, assumed), *others = chip.cpu().unmeasured_states
    assert (name, assumed.value, assumed.basis, others) == ("loaded_power", 1.0, "assumed", [])


def test_a_static_power_that_was_not_measured_has_the_range_of_its_memory() -> None:
    # 19.6 W of 72 W; GDDR boards draw 0.13 to 0.30 of their limit
    row = CATALOGUE["l4"].reference.actions[CATALOGUE["l4"].reference.position(STATIC_ACTION) or 0]
    assert (row.low_fj, row.high_fj) == pytest.approx((9.36e15, 21.6e15), rel=1e-12)
    assert_close(row.range_half_width, math.log(19.6 / 9.36))
    for name in ("a40", "h100_sxm5"):
        reference = CATALOGUE[name].reference
        assert reference.actions[reference.position(STATIC_ACTION) or 0].range_half_width == 0.0


def test_slopes_of_prices_are_those_of_the_ledger() -> None:
    bound = chip.bound(anchor_hardware(CATALOGUE["xeon_8490h"]), "default", "system")
    varied = Varied.of(shipped("resnet18"), "int8", "engine")
    base = varied.evaluate(bound)
    run = evaluate(shipped("resnet18"), bound, Configuration(hardware="xeon_8490h", precision="int8", runtime="engine"))
    assert_close(base.energy_j, joules(run), rel=1e-6)
    for action in bound.reference:
        name = "static_power" if action.key == STATIC_ACTION else ".".join(action.key)
        if name not in base.action_j or action.key == STATIC_ACTION:
            continue
        more = attrs.evolve(action, energy_per_action_fj=1.01 * action.energy_per_action_fj)
        changed = varied.evaluate(attrs.evolve(bound, reference=bound.reference.with_actions([more])))
        if changed.interval_s == base.interval_s:
            assert_close(changed.energy_j - base.energy_j, 0.01 * base.action_j[name], rel=1e-4)


def test_every_hardware_has_surroundings_or_one_reason() -> None:
    forms = load_surroundings()
    with (FOLDER / "hardware.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["hardware"] for row in rows} <= CATALOGUE.keys()
    assert all(bool(row["form"]) != bool(row["reason"]) for row in rows)
    assert {row["form"] for row in rows} - {""} <= forms.keys()
    used = {find_surrounding(one).name for one in PLUGGED}
    assert used == forms.keys()
    refused = {name for name, one in CATALOGUE.items() if explain_missing(one)}
    assert {
        "stm32u575",
        "max78000",
        "samsung_galaxy_s24_npu",
        "snapdragon_x_elite_cpu",
        "kpu_t64",
        "plasticine",
        "apple_m4_cpu",
    } <= refused
    for name in refused:
        assert explain_missing(HardwareEntry.of(CATALOGUE[name])) == explain_missing(CATALOGUE[name])
        with pytest.raises(UsageError):
            find_surrounding(CATALOGUE[name])


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("h100_sxm5", "board_server"),
        ("a100_pcie_80gb", "card_server"),
        ("l4", "card_server"),
        ("cloud_ai_100_pro", "card_server"),
        ("rtx_4090", "card_computer"),
        ("epyc_9654", "cpu_server"),
        ("mi300x", "other_server"),
        ("hailo_8", "stick"),
        ("coral_edge_tpu", "stick"),
        ("jetson_orin_nx_16gb", "board_computer"),
        ("jetson_agx_orin_cpu", "inside"),
    ],
)
def test_each_slot_and_class_has_its_form(name: str, form: str) -> None:
    assert find_surrounding(CATALOGUE[name]).name == form


def test_energies_anchored_at_the_wall_are_counted_once() -> None:
    hardware = anchor_hardware(CATALOGUE["jetson_agx_orin_cpu"])
    configuration = Configuration(hardware=hardware.id, precision="fp32", runtime="engine")
    board, outside = (
        evaluate(shipped("resnet18"), chip.bound(hardware, "default", boundary), configuration)
        for boundary in ("board", "system")
    )
    assert joules(board) == joules(outside)


def bind(settings: Settings, name: str) -> Hardware:
    selection = select_hardware(settings)
    ((entry, mode),) = ((entry, mode) for entry, mode in selection.pairs if entry.id == name)
    return selection.target(entry, mode, CalibrationUse("none"), settings.boundary).bind(CATALOGUE[name])


def host_w(hardware: Hardware) -> float:
    place = hardware.reference.position(HOST_ACTION)
    assert place is not None
    return hardware.reference.prices_fj[place] / FJ_PER_J


def test_a_named_host_replaces_that_of_a_card_and_not_that_of_a_server() -> None:
    settings = Settings(hardware=("l4", "h100_sxm5", "hailo_8"), boundary="system", runtime=("eager",))
    named = attrs.evolve(settings, host="xeon_8490h")
    assert_close(host_w(bind(settings, "l4")), 180.0 / 4)
    assert_close(find_surrounding(CATALOGUE["rtx_3090"]).idle_w(115.0), 1.12 * 115.0 + 50.0)
    # a Xeon's static power, 1.2 times at the wall
    xeon_w = CATALOGUE["xeon_8490h"].static_power.value
    assert_close(host_w(bind(named, "l4")), 1.2 * xeon_w)
    assert_close(host_w(bind(named, "hailo_8")), 1.2 * xeon_w)
    assert host_w(bind(settings, "h100_sxm5")) == host_w(bind(named, "h100_sxm5")) == 700.0 / 8
    assert bind(named, "h100_sxm5").host == "xeon_8490h"  # it launches the kernels
    assert bind(attrs.evolve(named, boundary="board"), "l4").host_w == xeon_w
    with pytest.raises(UsageError, match="snapdragon_x_elite_cpu"):
        bind(attrs.evolve(settings, host="snapdragon_x_elite_cpu"), "hailo_8")


def test_wall_is_another_name_of_the_boundary() -> None:
    assert Settings(boundary="wall").boundary == "system"
    with pytest.raises(UsageError, match="unknown boundary 'plug'"):
        Settings(boundary="plug")


@pytest.mark.parametrize(
    "names",
    [
        ("h100_sxm5", "snapdragon_8_elite_npu"),
        ("apple_m2",),
        pytest.param(("server_4x_l4",), marks=pytest.mark.wings),
    ],
)
def test_named_hardware_without_the_boundary_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="has no energy at the wall"):
        select_hardware(Settings(hardware=names, boundary="system"))


def test_hardware_of_a_class_without_the_boundary_is_left_out() -> None:
    selection = select_hardware(Settings(architecture=("npu",), hardware=("npus",), boundary="system"))
    kept = {entry.id for entry, _ in selection.pairs}
    assert {"hailo_8", "gaudi3"} <= kept
    assert "snapdragon_8_elite_npu" in selection.unplugged
    assert kept.isdisjoint(selection.unplugged)
    assert not select_hardware(Settings(hardware=("npus",))).unplugged


def test_only_the_energies_around_a_board_are_constants_of_a_question() -> None:
    names = list_constants(chip.bound(anchor_hardware(CATALOGUE["l4"]), "default", "system")).keys()
    assert {"host.static_power", "chassis.fans_and_regulators", "psu.conversion_loss"} <= names
    assert names.isdisjoint(f"coefficient.{name}" for name in KEPT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l4", "h100_sxm5", "rk3588_npu", "xeon_8490h"])
def test_intervals_of_runs_and_of_points_are_one(name: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    workspace.evaluate(
        "resnet18", hardware=[name], precision="int8", runtime="engine", calibration="none", boundary="system"
    )
    ((latency, energy),) = workspace.sql("SELECT latency_half_width, energy_half_width FROM runs").rows
    bound = chip.bound(anchor_hardware(CATALOGUE[name]), "default", "system")
    configuration = Configuration(hardware=name, precision="int8", runtime="engine")
    points = evaluate_totals(Evaluator(shipped("resnet18")), [(bound, configuration)])
    case = Case(hardware=bound, configuration=configuration)
    found = PointErrors(load_doubt()).find_half_widths(points, [case], np.zeros(1, dtype=np.int64))
    assert_close(float(found.latency[0]), latency)
    assert_close(float(found.energy[0]), energy)
    around, seconds = find_surrounding(CATALOGUE[name]), int(points.interval_fs[0]) / FS_PER_S
    share = around.host_w * seconds * FJ_PER_J / int(points.energy_fj[0])
    more = (around.growth_half_width.value * (1.0 - share)) ** 2 + (around.host_half_width.value * share) ** 2
    assert energy**2 > more > 0.0


@pytest.mark.slow
def test_a_microcontroller_costs_at_its_board(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    settings = Settings(hardware=("stm32u575", "raspberry_pi_5"), precision=("int8",), batch=(1,), runtime=("engine",))
    at_wall = attrs.evolve(settings, boundary="system", fallback_boundary="board")
    found = workspace.cost("mlperf_tiny_kws", at_wall)
    energies = {row.hardware: row.energy_per_inference_j for row in found.rows}
    board = {row.hardware: row.energy_per_inference_j for row in workspace.cost("mlperf_tiny_kws", settings).rows}
    assert energies["stm32u575"] == board["stm32u575"]
    assert (energies["raspberry_pi_5"] or 0.0) > (board["raspberry_pi_5"] or 0.0)
    assert found.scope.selection.unplugged.keys() == {"stm32u575"}
    with pytest.raises(UsageError, match="stm32u575 has no energy at the wall"):
        workspace.compare("mlperf_tiny_kws", attrs.evolve(settings, boundary="system"))
