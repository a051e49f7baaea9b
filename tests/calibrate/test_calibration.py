"""Calibrations in use: files read strictly, hardware under them, runs that name them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from calibration_case import TARGET, hardware, made
from compare import assert_close
from conftest import Run
from joulemap.calibrate.calibration import Outcome
from joulemap.catalog.calibration import (
    calibration_text,
    read_calibration,
    shipped_generations,
    write_calibration,
)
from joulemap.catalog.chip import list_architectures
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.spread import load_spreads
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.settings import Settings
from joulemap.physics.record.calibration import Calibration, FittedValue, name_pace
from joulemap.physics.record.reference import LINK_ACTION, LOSS_ACTION, STATIC_ACTION
from joulemap.physics.record.target import extend_digest
from joulemap.plan.run import plan_runs
from joulemap.system.errors import CatalogueError, ExitCode, UnknownNameError, UsageError
from joulemap.workspace import Workspace


def test_a_file_holds_the_whole_record(tmp_path: Path) -> None:
    calibration = made(hardware())
    path = tmp_path / "mine.toml"
    write_calibration(calibration, path)
    again = read_calibration(path)
    assert again == calibration
    assert calibration_text(again) == path.read_text()
    assert again.label == f"mine {again.digest[:8]}"
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.toml"]


def test_hardware_under_a_calibration() -> None:
    plain = hardware()
    calibration = made(plain)
    under = plain.calibrated(calibration)
    assert under.coefficient("device_time_scale") == 2.0
    assert under.coefficients["device_time_scale"].basis == "measured"
    assert calibration.label in under.coefficients["device_time_scale"].source
    assert under.coefficients["device_time_scale"].note == plain.coefficients["device_time_scale"].note
    assert under.static_power.value == 50.0
    assert under.digest == extend_digest(plain.digest, f"+{calibration.digest}") != plain.digest
    for before, after in zip(plain.reference, under.reference, strict=True):
        factor = 3.0 if after.component == "dram" else 1.0
        if after.key == STATIC_ACTION:
            factor = 50.0 / plain.static_power.value
        assert_close(after.energy_per_action_fj, before.energy_per_action_fj * factor)
        static = after.key == STATIC_ACTION
        assert after.basis == ("measured" if static else "scaled" if factor != 1.0 else before.basis)


def test_a_power_mode_keeps_what_it_states() -> None:
    plain = hardware("jetson_orin_nano_8gb")
    calibration = made(
        plain,
        energy_scales=(),
        static_power=FittedValue(default=plain.static_power.value, value=1.25, unit="W", data_weight=0.9),
        coefficients={"launch_time_scale": FittedValue(default=1.0, value=1.5, unit="1", data_weight=0.9)},
    )
    mode = plain.power_modes[0]
    under = plain.calibrated(calibration).in_mode(mode.name)
    assert under.coefficient("launch_time_scale") == 1.5
    assert under.tdp.value == mode.tdp.value
    assert under.static_power.value == (mode.static_power.value if mode.static_power else 1.25)
    assert len({under.digest, plain.in_mode(mode.name).digest, plain.calibrated(calibration).digest}) == 3


@pytest.mark.slow
def test_stored_runs_keep_their_prices(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    first = made(hardware())
    second = made(hardware(), row_count=5)
    ids = [
        workspace.compare("resnet18", hardware=[TARGET], calibration=one).scope.run_ids
        for one in ("none", first, second, first, "none", "auto")
    ]
    assert len({ids[0], ids[1], ids[2]}) == 3
    assert ids[3:] == [ids[1], ids[0], ids[0]]
    labels = workspace.sql("SELECT DISTINCT calibration FROM runs ORDER BY calibration").rows
    assert {label for (label,) in labels} == {"none", first.label, second.label}
    difference = workspace.difference(ids[0][0], ids[1][0])
    assert ("calibration", "none", first.label) in [
        (row.setting, row.value_a, row.value_b) for row in difference.settings
    ]


# inheritance


def inherited(**changes: Any) -> Calibration:
    """Return a calibration of the H200 by hand."""
    source = hardware("h200_sxm")
    return made(
        source,
        coefficients={"launch_time_scale": FittedValue(default=1.0, value=1.5, unit="1", data_weight=0.9)},
        static_power=FittedValue(
            default=source.static_power.value, value=1.1 * source.static_power.value, unit="W", data_weight=0.9
        ),
        **changes,
    )


def test_generations_by_hand() -> None:
    assert hardware("h200_sxm").generation == hardware("h100_pcie").generation == "gpu Hopper 4 nm"
    assert hardware("l4").generation == hardware("rtx_4090").generation == "gpu Ada 4 nm"
    assert hardware("a100_sxm4_80gb").generation == "gpu Ampere 7 nm"
    assert hardware("jetson_orin_nano_8gb").generation == "gpu Ampere 8 nm"
    assert hardware("mi300x").generation == "gpu CDNA 3 5 nm"
    assert hardware("epyc_9654").generation == "cpu Zen 4 5 nm"


def test_a_hardware_inherits_ratios() -> None:
    calibration, plain, source = inherited(), hardware("h100_sxm5"), hardware("h200_sxm")
    under = plain.inheriting(calibration)
    assert_close(under.coefficient("launch_time_scale"), 1.5)
    assert_close(under.static_power.value, 1.1 * plain.static_power.value)
    assert under.digest == extend_digest(plain.digest, f"+{calibration.digest}")
    for before, after, there in zip(
        plain.reference, under.reference, source.calibrated(calibration).reference, strict=True
    ):
        factor = 1.1 if after.key == STATIC_ACTION else 3.0 if after.component == "dram" else 1.0
        assert_close(after.energy_per_action_fj, before.energy_per_action_fj * factor)
        if factor == 3.0:
            assert (after.basis, there.basis) == ("scaled", "scaled")
            assert "h200_sxm" in after.source
    launch = under.coefficients["launch_time_scale"]
    there_too = source.calibrated(calibration).coefficients["launch_time_scale"]
    assert (launch.basis, there_too.basis) == ("assumed", "measured")
    # a default that a file rounded to seven digits counts as equal
    rounded = attrs.evolve(calibration.coefficients["launch_time_scale"], default=1.0 + 5e-7)
    alike = attrs.evolve(calibration, coefficients={"launch_time_scale": rounded})
    assert_close(plain.inheriting(alike).coefficient("launch_time_scale"), 1.5)
    # what a chip states itself is not overruled
    stated = attrs.evolve(plain.coefficients["launch_time_scale"], value=1.2)
    alone = attrs.evolve(
        plain,
        coefficients={**plain.coefficients, "launch_time_scale": stated},
        static_power=attrs.evolve(plain.static_power, basis="measured"),
    ).inheriting(calibration)
    assert alone.coefficients["launch_time_scale"] == stated
    assert alone.static_power.value == plain.static_power.value
    # static power stays below the cap
    most = attrs.evolve(plain, tdp=attrs.evolve(plain.tdp, value=1.05 * plain.static_power.value))
    assert most.inheriting(calibration).static_power.value < most.tdp.value
    with pytest.raises(ValueError, match="a calibration of gpu Hopper 4 nm, but b200_sxm is gpu Blackwell 4 nm"):
        hardware("b200_sxm").inheriting(calibration)


@pytest.fixture
def ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder that holds all calibrations that ship."""
    folder = tmp_path / "ships"
    monkeypatch.setattr("joulemap.catalog.calibration.SHIPPED", folder)
    monkeypatch.setattr("joulemap.catalog.calibration.remember", lambda _name, make: make())
    shipped_generations.cache_clear()
    yield folder
    shipped_generations.cache_clear()


@pytest.mark.slow
def test_a_calibration_that_ships_is_inherited_and_told(tmp_path: Path, ships: Path) -> None:
    write_calibration(inherited(), ships / "h200_sxm.toml")
    workspace = Workspace(tmp_path / "own.duckdb")
    pair = ["h200_sxm", "h100_sxm5"]
    both = workspace.compare("resnet18", hardware=[*pair, "b200_sxm"])
    (used,) = both.scope.calibrations
    assert (used.hardware, used.inheritors, used.origin) == ("h200_sxm", ["h100_sxm5"], "shipped")
    assert both.scope.uncalibrated == ("b200_sxm",)
    alone = workspace.compare("resnet18", hardware=pair, calibration="own")
    assert alone.scope.uncalibrated == ("h100_sxm5",)
    assert alone.scope.calibrations[0].inheritors == []
    assert alone.scope.run_ids[0] == both.scope.run_ids[0]
    assert alone.scope.run_ids[1] != both.scope.run_ids[1]
    none = workspace.compare("resnet18", hardware=pair, calibration="none")
    assert none.scope.run_ids[1] == alone.scope.run_ids[1]
    # every DRAM byte of both costs the same three times: calibration does not set them apart
    rows = workspace.sql(
        "SELECT hardware, is_inherited, fitted_hardware FROM calibrated_hardware ORDER BY hardware"
    ).rows
    assert rows == (("h100_sxm5", True, "h200_sxm"), ("h200_sxm", False, "h200_sxm"))
    assert workspace.check().findings.rows == ()


@pytest.mark.slow
def test_a_persons_own_is_not_inherited(tmp_path: Path, ships: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own(tmp_path, monkeypatch)
    ships.mkdir()
    write_calibration(inherited(), folder / "h200_sxm.toml")
    answer = Workspace(tmp_path / "own.duckdb").compare("resnet18", hardware=["h200_sxm", "h100_sxm5"])
    assert answer.scope.calibrations[0].inheritors == []
    assert answer.scope.uncalibrated == ("h100_sxm5",)


def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "calibrations"
    monkeypatch.setenv("JOULEMAP_CALIBRATION", str(folder))
    return folder


@pytest.mark.slow
def test_auto_takes_a_persons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own(tmp_path, monkeypatch)
    workspace = Workspace(tmp_path / "own.duckdb")
    calibration = attrs.evolve(made(hardware()), name=TARGET)
    plain = workspace.compare("resnet18", hardware=[TARGET, "xeon_8490h"])
    write_calibration(calibration, folder / f"{TARGET}.toml")
    write_calibration(calibration, folder / "other.toml")
    under = workspace.compare("resnet18", hardware=[TARGET, "xeon_8490h"])
    assert [row.calibration for row in under.scope.calibrations] == [f"{TARGET} {calibration.digest[:8]}"]
    assert under.scope.calibrations[0].origin == str(folder / f"{TARGET}.toml")
    assert under.scope.run_ids[0] != plain.scope.run_ids[0]
    assert under.scope.run_ids[1] == plain.scope.run_ids[1]
    assert workspace.compare("resnet18", hardware=[TARGET], calibration="none").scope.run_ids == plain.scope.run_ids[:1]
    # the same bytes under another name are the same calibration
    assert (
        workspace.compare("resnet18", hardware=[TARGET], calibration="other").scope.run_ids == under.scope.run_ids[:1]
    )
    with pytest.raises(UnknownNameError, match="unknown calibration 'othr'; did you mean other"):
        workspace.compare("resnet18", hardware=[TARGET], calibration="othr")
    with pytest.raises(
        UsageError, match=r"other is a calibration of tpu_v4, which is not among the requested hardware \(xeon_8490h\)"
    ):
        workspace.compare("resnet18", hardware=["xeon_8490h"], calibration="other")


@pytest.mark.parametrize("content", ["stale", "broken = ["])
def test_a_calibration_that_does_not_fit_concerns_its_chip_alone(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question without the chip is answered as before; one about it and two others leaves it out with the reason."""

    def plan(*chips: str) -> tuple[set[str], dict[str, str]]:
        planned = plan_runs(("mlp",), Settings(hardware=chips))
        return {run.run_key for run in planned.runs("")}, dict(planned.selection.miscalibrated)

    before = plan("l4", "t4")
    file = own(tmp_path, monkeypatch) / f"{TARGET}.toml"
    write_calibration(attrs.evolve(made(hardware()), formula_version="0" * 16), file)
    if content != "stale":
        file.write_text(content)
    assert plan("l4", "t4") == before
    runs, reasons = plan("l4", TARGET, "t4")
    assert (runs, set(reasons)) == (before[0], {TARGET})
    for chips in ((TARGET,), (TARGET, "l4")):
        with pytest.raises(CatalogueError, match=TARGET):
            plan(*chips)


STALE = {
    "another description": ("hardware_digest", "deadbeefdeadbeef", "fitted to another description of tpu_v4"),
    "other formulas": ("formula_version", "deadbeefdeadbeef", "fitted with other formulas (deadbeefdeadbeef, now "),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", STALE)
def test_a_stale_calibration_is_told_not_used(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joulemap: Run
) -> None:
    key, value, told = STALE[case]
    folder = own(tmp_path, monkeypatch)
    write_calibration(made(hardware(), **{key: value}), folder / f"{TARGET}.toml")
    done = joulemap("compare", "resnet18", "--hardware", TARGET)
    assert done.returncode == ExitCode.CATALOGUE
    assert told in done.stderr
    assert f"{TARGET}.toml: {key}: " in done.stderr
    assert "--calibration none" in done.stderr
    assert done.stderr.count("\n") == 1
    assert joulemap("compare", "resnet18", "--hardware", TARGET, "--calibration", "none").returncode == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("state", ["missing", "other formulas", "another description", "damaged"])
@pytest.mark.slow
def test_a_fit_replaces_a_calibration_that_no_question_takes(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, workspace = own(tmp_path, monkeypatch), Workspace(tmp_path / "own.duckdb")
    good, place = made(hardware()), folder / f"{TARGET}.toml"
    fitted = Outcome(calibration=good, warnings=())
    monkeypatch.setattr("joulemap.calibrate.calibration.calibrate", lambda *_arguments, **_options: fitted)
    rows = tmp_path / "rows.csv"
    rows.write_text(
        f"hardware,model,precision,batch,runtime,latency_s,source\n{TARGET},resnet18,bf16,1,graph,1e-3,made up\n"
    )
    workspace.import_measurements(rows)
    pace = {name_pace("vllm", is_prompt=False): FittedValue(default=1.0, value=1.5, unit="1", data_weight=0.5)}
    if state in STALE:
        key, value, _ = STALE[state]
        changes = {key: value, "coefficients": {**good.coefficients, **pace}}
        write_calibration(made(hardware(), **changes), place)
    elif state == "damaged":
        place.parent.mkdir(exist_ok=True)
        place.write_text("hardware = \n")
    if state != "missing":
        with pytest.raises(CatalogueError):
            workspace.compare("resnet18", hardware=TARGET)
    if state == "damaged":
        place.unlink()
    is_stale = state in STALE
    answer = workspace.calibrate(TARGET, start=str(place) if is_stale else "none")
    keeps_pace = state == "another description"
    expected = {**good.coefficients, **(pace if keeps_pace else {})}
    assert answer.calibration.coefficients == expected
    assert len(answer.warnings) == (state == "other formulas")
    assert workspace.compare("resnet18", hardware=TARGET).rows


WRONG = {
    "unknown key": ('hardware = "', 'colour = 1\nhardware = "', "unknown key colour"),
    "no such coefficient": ('name = "device_time_scale"', 'name = "device_time"', "tpu has no coefficient device_time"),
    "efficiency above 1": (
        'name = "device_time_scale"', 'name = "dram_efficiency"', "dram_efficiency: 2 is not above 0 and at most 1"
    ),
    "faster than the roofline": (
        "value = 2.0", "value = 0.5", "coefficients.device_time_scale: 0.5 is not at least 1"
    ),
    "weight above 1": ("data_weight = 0.9", "data_weight = 1.5", "data_weight is 1.5, expected a number from 0 to 1"),
    "price beyond bounds": ("factor = 3.0", "factor = 4.5", "factor is 4.5, expected a number from 0.25 to 4"),
    "negative": ("value = 2.0", "value = -2.0", "device_time_scale: value is -2.0, expected a number above 0"),
    "not finite": ("value = 2.0", "value = inf", "device_time_scale: value is inf, expected a number above 0"),
    "no factor": ("factor = 3.0", "factor = 0.0", "factor is 0.0, expected a number from 0.25 to 4"),
    "no such action": ('"dram.read"', '"dram.reads"', "energy_scales: no such action dram.reads"),
    "twice": ('"dram.read"', '"dram.write"', "energy_scales: dram.write is listed twice"),
    "unit": ('value = 2.0\nunit = "1"', 'value = 2.0\nunit = "s"', "device_time_scale: it is in s, expected 1"),
    "static power": ("value = 50.0", "value = 500.0", "static_power: 500 W is not below the tdp of"),
    "split": ('split = "fitted"', 'split = "best"', "'split' must be in ('uncalibrated', 'fitted', 'cross_validated')"),
    "no table": ("[data]", "[date]", "data: missing"),
    "no text": ('hardware = "tpu_v4"', "hardware = 4", "hardware: expected a text, found 4"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    before, after, told = WRONG[case]
    text = calibration_text(made(hardware()))
    assert before in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(CatalogueError) as caught:
        Workspace(tmp_path / "own.duckdb").compare("resnet18", hardware=[TARGET], calibration=str(path))
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path, joulemap: Run) -> None:
    done = joulemap("analyze", "resnet18", TARGET, "--calibration", "./none.toml")
    assert done.returncode == ExitCode.CATALOGUE
    assert "none.toml: cannot be read: No such file or directory" in done.stderr


@pytest.mark.slow
def test_validate_scores_the_predictions_that_were_asked_for(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    measured = tmp_path / "mine.csv"
    measured.write_text(
        "hardware,model,precision,batch,runtime,latency_s,source\n"
        + f"{TARGET},resnet18,bf16,1,fused,0.001,made up\n"
        + f"{TARGET},resnet34,bf16,1,fused,0.002,made up\n"
        + f"{TARGET},alexnet,bf16,1,fused,0.003,made up\n"
    )
    workspace.import_measurements(measured)
    calibration = made(hardware())
    under = workspace.validate(TARGET, calibration=calibration).records()[0]
    plain = workspace.validate(TARGET, calibration="none").records()[0]
    assert (under["calibration"], plain["calibration"]) == (calibration.label, "none")
    assert_close(under["bias_fraction"] + 1.0, 2.0 * (plain["bias_fraction"] + 1.0))
    # of two of the three rows the calibration has seen the family
    assert_close(under["seen_fraction"], 2.0 / 3.0)
    assert (under["seen"], plain["seen_fraction"]) == (f"calibration {calibration.label}", 0.0)
    assert workspace.validate(TARGET).records()[0] == plain
    assert workspace.validate(TARGET, calibration=calibration).records()[0] == under


@pytest.mark.parametrize("architecture", list_architectures())
def test_every_class_can_be_calibrated(architecture: str) -> None:
    target = load_catalogue().hardware[CLASS_HARDWARE[architecture]]
    spreads = load_spreads(architecture).within(target)
    names = [one.name for one in spreads.coefficients]
    assert {"device_time_scale", "launch_time_scale"} <= set(names)
    assert len(names) == len(set(names))
    assert all(target.coefficient(name) > 0.0 for name in names)
    assert target.coefficient("device_time_scale") == target.coefficient("launch_time_scale") == 1.0
    assert target.coefficients["device_time_scale"].basis == "assumed"
    actions = [action for one in spreads.energy_scales for action in one.scale.actions]
    assert len(actions) == len(set(actions))
    assert STATIC_ACTION in actions
    assert set(actions) == {action.key for action in target.reference} - {LINK_ACTION, LOSS_ACTION}


def test_a_class_file_without_a_fault_is_valid_toml() -> None:
    from joulemap.catalog.digest import DATA

    for path in (DATA / "architecture").glob("*.toml"):
        for entry in tomllib.loads(path.read_text())["coefficients"]:
            assert "spread" not in entry or "meaning" in entry, f"{path.name}: {entry['name']}"
