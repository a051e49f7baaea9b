"""Designs: what follows what is varied, which are best, which cannot be told apart, and a design that is saved."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Change, Choice
from joulemap.catalog.design import read_design, write_design
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.starter import copy_text
from joulemap.domain.metric import TIE_RATIO
from joulemap.domain.value import read_values
from joulemap.physics.architecture.gpu.area import DIES, UNIT_AREA
from joulemap.physics.area import DENSITY, Area, at_node, find_datapath
from joulemap.physics.change import change_hardware, follow, point_hardware
from joulemap.physics.law import VARIABLE
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.constant import list_constants
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.silicon import RETICLE, count_dies
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.explore.design.best import find_beyond, find_oversize
from joulemap.wing.explore.design.front import EQUAL, SIGNIFICANT, find_band, find_front, merge_equal
from joulemap.wing.explore.design.outcome import OBJECTIVES, Outcomes
from joulemap.wing.explore.design.question import read_shares
from joulemap.wing.explore.design.space import Space, vary_usual
from joulemap.wing.explore.design.survey import Survey
from joulemap.wing.explore.design.task import Group
from joulemap.workspace import Workspace

CATALOGUE = load_catalogue().hardware
KPU = CATALOGUE["kpu_t256"]
EACH_CLASS = {one.architecture: one for one in CATALOGUE.values()}


def read(name: str, written: str) -> tuple[float, ...]:
    return read_values(written, list_constants(KPU)[name])


def test_ranges_are_read_in_the_unit_of_their_constant() -> None:
    assert read("unit_count", "16:256:*2") == (16.0, 32.0, 64.0, 128.0, 256.0)
    assert read("unit_count", "1:4:3") == (1.0, 2.0, 4.0)  # 2.5 is rounded to even
    assert read("clock", "0.5GHz:2GHz:4") == (0.5e9, 1.0e9, 1.5e9, 2.0e9)
    assert read("memory_bandwidth", "1TB/s, 2TB/s,1TB/s") == (1e12, 2e12)
    assert read("memory_bandwidth", "x0.5,x2") == (128e9, 512e9)
    assert read("clock", "1GHz:1GHz:1") == (1e9,)


@pytest.mark.parametrize(
    ("name", "written", "told"),
    [
        ("clock", "2GHz:1GHz:3", "is empty: 2 GHz is above 1 GHz"),
        ("clock", "1GHz:2GHz:0", "has 2 to 1,000,000 values, found 0"),
        ("clock", "1GHz:2GHz", "is not a range"),
        ("unit_count", "1:64:*1", "a factor is above 1"),
        ("unit_count", "0:64:*2", "begins at 0"),
        ("unit_count", "1:64:*0", "a factor is above 1"),
        ("clock", "1W:2W:3", "in W, expected Hz"),
        ("clock", "1,2", "has no unit"),
        ("clock", "1GHz,,2GHz", "has an empty value"),
        ("unit_count", "1.5", "not a whole number"),
    ],
)
def test_a_range_that_cannot_be_is_refused(name: str, written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(name, written)


@pytest.mark.parametrize(
    ("vary", "told"),
    [
        ({"unit": "1,2"}, "did you mean unit"),
        ({"units": "1,2", "unit_count": "3"}, "varied twice"),
        ({"clock": "1GHz", "peak.int8": "x2"}, "peak.int8 follows clock"),
        ({"l9.capacity": "1MB"}, "has no constant"),
    ],
)
def test_what_cannot_be_varied_is_refused(vary: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Space.of(KPU, vary)


@pytest.mark.parametrize("architecture", EACH_CLASS)
def test_where_nothing_is_named_a_chip_of_any_class_is_varied_around_its_own(architecture: str) -> None:
    chip = EACH_CLASS[architecture]
    found = Space.of(chip, vary_usual(chip))
    values = {one.name: one.values for one in found.parameters}
    assert found.size >= 3 * 4 * 3
    assert chip.unit_count.value in values["unit_count"]
    assert all(one == int(one) >= 1 for one in values["unit_count"])
    assert chip.clock.value in values["clock"]
    assert values["memory_bandwidth"] == tuple(chip.memory_bandwidth.value * one for one in (0.5, 1.0, 2.0))


def test_designs_are_numbered_with_the_last_parameter_first() -> None:
    space = Space.of(KPU, {"units": "64,128", "clock": "1GHz,2GHz,3GHz"})
    assert space.size == 6
    values = space.values_at(np.arange(6))
    assert values["unit_count"].tolist() == [64.0, 64.0, 64.0, 128.0, 128.0, 128.0]
    assert values["clock"].tolist() == [1e9, 2e9, 3e9] * 2
    assert sorted(space.draw(4, 1).tolist()) == sorted(set(space.draw(4, 1).tolist()))
    assert space.draw(4, 1).tolist() == space.draw(4, 1).tolist()


def test_what_follows_is_as_worked_by_hand() -> None:
    space = Space.of(KPU, {"units": "64", "rows": "x2", "clock": "x0.5"})
    found = {name: float(column[0]) for name, column in space.law.follow(space.values_at(np.arange(1))).items()}
    peak = KPU.peaks["int8"].rate.value
    assert_close(found["peak.int8"], peak * 0.5 * (64 / 256) * 2.0)
    area = Area.of(KPU)
    varied = {"unit_count": np.array([64.0]), "geometry.array_rows": np.array([64.0])}
    ratio = float(area.find_mm2(varied)[0] / area.find_mm2({})[0])
    assert_close(found["static_power"], KPU.static_power.value * (0.8 * ratio + 0.2))
    hop = next(one for one in KPU.reference if ".".join(one.key) == "router.hop").energy_per_action_fj / 1e15
    assert_close(found["router.hop"], hop * math.sqrt(ratio))
    assert "pe.int8_mac" not in found  # at half the clock the power law sees to voltage


def test_the_area_of_a_gpu_is_fitted_to_dies_and_scored_leaving_one_out() -> None:
    """Each die is units x (beside + datapath / share) / density + memory: least squares of its ratio to the known."""
    rows = []
    for name, (die_mm2, count) in DIES.items():
        chip, density = CATALOGUE[name], at_node(DENSITY, CATALOGUE[name].process_node.value)
        area = Area.of(chip)
        memory = float(area.find_mm2({})[0]) - area.unit_count * area.unit_mm2
        each = count / density / (die_mm2 - memory)
        rows.append([each, each * find_datapath(chip)])
    law = np.array(rows)
    beside, slope = np.linalg.lstsq(law, np.ones(len(law)), rcond=None)[0]
    assert UNIT_AREA.beside is not None
    assert_close(UNIT_AREA.beside.value, beside, rel=0.01)
    assert_close(UNIT_AREA.datapath.value, 1.0 / slope, rel=0.01)
    others = [np.delete(law, place, axis=0) for place in range(len(law))]
    off = [
        row @ np.linalg.lstsq(left, np.ones(len(left)), rcond=None)[0] for row, left in zip(law, others, strict=True)
    ]
    assert np.exp(np.abs(np.log(off)).mean()) < 1.31
    assert np.exp(np.abs(np.log(off)).max()) < 1.63


def test_designs_beyond_what_is_built_are_found() -> None:
    """A clock above that of every KPU, and a die of so many units that it is larger than a mask prints."""
    space = Space.of(KPU, {"units": "1,4096", "clock": "1MHz,9GHz", "dram.bandwidth": "x1"})
    group = Group(hardware="kpu_t256", dimensions={}, batch=1, space=space, models=(), numbers=np.arange(4))
    done = Survey(groups=(group,), objectives=(OBJECTIVES["area"],), bounds=())
    area = np.broadcast_to(space.law.area.find_mm2(space.values_at(group.numbers)), (4,))
    columns: dict[str, Any] = {one.name: area for one in attrs.fields(Outcomes)}
    done.add(Outcomes(**columns | {"refusal": np.full(4, "")}))
    chips = [one for one in CATALOGUE.values() if one.architecture == "kpu"]
    found = {(one.name, one.value): (one.known, one.most) for one in find_beyond(done, range(4), chips)}
    assert found["clock", 9e9] == ("kpu", max(one.clock.value for one in chips))
    assert found["unit_count", 4096.0] == ("kpu", max(one.unit_count.value for one in chips))
    assert {name for name, _ in found} == {"clock", "unit_count"}
    assert RETICLE.value == 26.0 * 33.0
    assert find_oversize(done, range(4)) == (2, float(area.max()))
    assert find_oversize(done, [0])[0] == 0


def test_a_chip_beyond_the_reticle_is_several_dies_and_priced_as_such() -> None:
    area = Area.of(CATALOGUE["kpu_t256"])
    assert [count_dies(one) for one in (0.0, 857.0, 858.0, 858.1, 1947.0)] == [1, 1, 1, 2, 3]
    for each, count in ((400.0, 1), (600.0, 3)):
        whole = float(area.find_usd(np.array([each * count]))[0])
        assert_close(whole, count * float(area.find_usd(np.array([each]))[0]))


@pytest.mark.slow
def test_a_file_of_a_chip_beyond_the_reticle_is_warned_of(tmp_path: Path, joulemap: Run) -> None:
    large, small = tmp_path / "large.toml", tmp_path / "small.toml"
    large.write_text(copy_text("kpu_t256"))
    small.write_text(copy_text("l4"))
    said = " ".join(joulemap("hardware", "check", large).stdout.split())
    assert "warning: units and memories would take about" in said and "dies in a package" in said
    assert "reticle" not in joulemap("hardware", "check", small).stdout


def test_above_the_highest_clock_the_voltage_rises_on_the_same_line() -> None:
    chip = CATALOGUE["l4"]
    highest = 1.2
    space = Space.of(chip, {"clock": [chip.clock.value * highest / float(PowerLaw.of(chip).reach)]})
    floor, knee = chip.coefficient("voltage_floor"), chip.coefficient("voltage_knee")
    voltage = floor + (1.0 - floor) * (highest - knee) / (1.0 - knee)
    found = space.law.follow(space.values_at(np.arange(1)))
    design = change_hardware(chip, space.law.change_at(found, 0))
    at_full, at_die = PowerLaw.of(design).energy_factor(np.array([1.0, 1.0 / highest])).tolist()
    assert_close(at_full, voltage**2)
    assert_close(at_die, 1.0)  # a cap that leaves the highest clock of the die


@pytest.mark.parametrize("architecture", sorted(EACH_CLASS))
def test_a_row_of_arrays_is_the_hardware_that_changes_make(architecture: str) -> None:
    space = Space.of(EACH_CLASS[architecture], _vary_all(EACH_CLASS[architecture]))
    numbers = space.draw(3, seed=7)
    values = space.law.follow(space.values_at(numbers))
    asked = {Address.read(name): column for name, column in values.items()}
    varied = {address: np.broadcast_to(one, 3) for address, one in follow(space.hardware, asked).items()}
    for index in range(len(numbers)):
        made = change_hardware(space.hardware, space.law.change_at(values, index))
        found = point_hardware(space.hardware, varied, index)
        assert {name: one.value for name, one in made.quantities()} == {
            name: one.value for name, one in found.quantities()
        }
        assert made.reference.prices_fj == found.reference.prices_fj
        for precision, peak in made.peaks.items():
            other = found.peaks[precision]
            assert (peak.operations_per_clock, peak.unit_count, peak.clock_hz) == (
                other.operations_per_clock,
                other.unit_count,
                other.clock_hz,
            )


def _vary_all(hardware: Hardware) -> dict[str, list[float]]:
    """Return three values of each number of a datasheet that designs have, and of the sides of an array."""
    constants = list_constants(hardware)
    levels = [name for name in constants if name.startswith("memory.")]
    names = ["unit_count", "clock", "memory_bandwidth", "memory_capacity", "tdp", "geometry.array_rows", *levels]
    wanted = [name for name in (*names, "board.regulator_loss") if name in constants]
    whole = (1.0, 2.0, 3.0)
    factors = {"clock": (0.7, 1.0, 1.3), "unit_count": whole, "geometry.array_rows": whole, "tdp": (30.0,)}
    return {name: [constants[name].value * factor for factor in factors.get(name, (0.5, 1.0, 2.0))] for name in wanted}


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_front_is_what_no_other_beats(width: int) -> None:
    costs = np.random.default_rng(width).integers(0, 12, size=(60, width)).astype(float)
    front = find_front(costs)
    for row, mine in enumerate(costs):
        beaten = any((one <= mine).all() and (one < mine).any() for one in costs)
        assert not (front[row] and beaten)
        assert front[row] or beaten or any((costs[one] == mine).all() for one in np.flatnonzero(front))


def test_designs_within_a_thousandth_are_one() -> None:
    # four bandwidths that change the latency by 0.001 % and the energy by 5 to 20 %: the least energy is best in both
    energies, latencies = [17.2, 18.2, 19.5, 20.9], [475.777, 475.772, 475.772, 475.771]
    costs = np.log(np.column_stack([energies, latencies]))
    assert find_front(costs).tolist() == [True, True, False, True]
    assert merge_equal(costs, find_front(costs)).tolist() == [True, False, False, False]
    # 0.2 % less latency is a design of its own; 0.05 % less energy at 1.5 times the latency is none
    costs = np.log([[1.0, 1.0], [2.0, 0.998], [0.9995, 1.5]])
    assert find_front(costs).all()
    assert merge_equal(costs, find_front(costs)).tolist() == [True, True, False]


@pytest.mark.parametrize("width", [2, 3])
def test_every_design_of_the_front_is_within_a_thousandth_of_a_kept_one(width: int) -> None:
    costs = np.random.default_rng(width).uniform(0.0, 0.02, size=(300, width))
    front = find_front(costs)
    kept = merge_equal(costs, front)
    assert not (kept & ~front).any() and kept.sum() < front.sum()
    for row in np.flatnonzero(front):
        assert (costs[kept] <= costs[row] + EQUAL).all(axis=1).any()


def test_the_band_is_what_no_objective_tells_apart() -> None:
    assert_close(SIGNIFICANT, math.log(4.0) / math.log(9.0))
    costs = np.log([[1.0, 1.0], [1.09, 1.09], [1.09, 1.2], [0.5, 3.0]])
    front = find_front(costs)
    assert front.tolist() == [True, False, False, True]
    groups = np.zeros(4, dtype=np.int64)
    band, nearest = find_band(costs, front, groups, [[np.log([1.1, 1.1])]])
    assert band.tolist() == [True, True, False, True]
    assert nearest.tolist() == [0, 0, -1, 3]


def test_the_band_of_two_objectives_is_found_along_the_front_as_among_all_of_it() -> None:
    drawn = np.random.default_rng(3)
    costs, groups = drawn.integers(0, 40, size=(400, 2)) / 10.0, drawn.integers(0, 3, size=400)
    thresholds = [[drawn.uniform(0.0, 0.5, size=2) for _ in range(3)] for _ in range(3)]
    front = find_front(costs)
    told = [find_band(costs, front, groups, thresholds)[0].tolist()]
    wide = [[np.append(one, 0.0) for one in row] for row in thresholds]
    told += [find_band(np.column_stack([costs, np.zeros(400)]), front, groups, wide)[0].tolist()]
    assert told[0] == told[1]
    assert 0 < sum(told[0]) < 400


def test_shares_are_of_all_inferences() -> None:
    assert read_shares(["a", "b"], {"a": 0.75}) == {"a": 0.75, "b": 0.25}
    assert read_shares(["a"], {}) == {"a": 1.0}
    for wrong in ({"a": 1.0}, {"c": 0.5}, {"a": 0.5, "b": 0.6}, {"a": 0.0}):
        with pytest.raises(UsageError, match="--share"):
            read_shares(["a", "b"], wrong)


def test_a_design_is_written_and_read_to_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    values = {"clock": 1e9 / 3.0, "dram.read": 1.23456789012345e-11}
    path.write_text(write_design("one", "l4", values, ["a\nb"]))
    assert read_design(path).set == values


@pytest.mark.slow
@pytest.mark.parametrize("architecture", sorted(EACH_CLASS))
def test_random_designs_are_the_runs_of_their_files(architecture: str, tmp_path: Path) -> None:
    chip, workspace = EACH_CLASS[architecture], Workspace(tmp_path / "a.duckdb")
    precision: Any = next((one for one in ("int8", "fp16", "bf16") if one in chip.peaks), next(iter(chip.peaks)))
    vary = {"clock": "x0.4:x1:7", "dram.bandwidth": "x0.3:x3:*1.3", "tdp": "x0.5:x4:8"}
    vary["unit_count"] = ",".join(str(round(chip.unit_count.value) * factor) for factor in (1, 2, 3, 5))
    vary |= {f"memory.{chip.memory_levels[-1].name}.capacity": "x0.25:x4:*1.5"}
    answer = workspace.explore("resnet18", like=chip.id, vary=vary, precision=precision, count=60, seed=7)
    outcomes = answer.survey.outcomes_at(range(answer.point_count))
    rows = np.flatnonzero(outcomes.is_evaluated).tolist()
    files = [tmp_path / f"d{row}.toml" for row in rows]
    for row, path in zip(rows, files, strict=True):
        path.write_text(write_design(path.stem, chip.id, answer.survey.changes_at(row)))
    asked = workspace.compare("resnet18", hardware=[str(path) for path in files], precision=precision)
    found = {one.hardware: one for one in asked.rows}
    widths = {
        name: both
        for name, *both in workspace.sql("SELECT hardware, latency_half_width, energy_half_width FROM run_uncertainty")
    }
    for row, path in zip(rows, files, strict=True):
        one = found[path.stem]
        assert round((one.energy_j or 0.0) * 1e15) == outcomes.energy_fj[row]
        assert round((one.latency_s or 0.0) * 1e15) == outcomes.latency_fs[row]
        assert_close(float(outcomes.latency_half_width[row]), widths[path.stem][0])
        assert_close(float(outcomes.energy_half_width[row]), widths[path.stem][1])
    assert len(rows) >= 20


def test_limits_that_nothing_keeps_name_the_nearest(joulemap: Run) -> None:
    words = ["explore", "mobilenet_v2", "--like", "kpu_t256", "--precision", "int8", "--vary", "units=128,256"]
    done = joulemap(*words, "--max-power", "1W")
    assert done.returncode == 4
    assert "kpu_t256 with units 128" in done.stderr
    assert "--max-power 1 W" in done.stderr
    assert joulemap(*words[:2]).returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--lake", "designs"),
        ("--random", "3"),
        ("--max-area", "100mm2"),
        ("--for", "latency=1ms"),
        ("--save-as", "a.toml"),
    ],
)
def test_options_of_designs_are_refused_where_chips_are_taken_as_they_are(
    joulemap: Run, tmp_path: Path, words: tuple[str, str]
) -> None:
    done = joulemap("explore", "resnet18", "--all", "--like", "gpus", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().endswith(words[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_constant_is_solved_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)  # the search tries clocks that no chip has
    workspace = Workspace(tmp_path / "a.duckdb")
    told: dict[str, Any] = {"like": "kpu_t256", "precision": "int8"}
    answer = workspace.explore("mobilenet_v2", solve="clock", target="latency = 150us", **told)
    assert_close(answer.rows.records()[0]["latency_s"], 150e-6, rel=1e-5)
    two = workspace.explore("mobilenet_v2", solve=("units", "clock"), target=("latency=200us", "power=12W"), **told)
    (row,) = two.rows.records()
    assert_close(row["latency_s"], 200e-6, rel=0.01)  # a unit is not divided
    assert_close(row["average_power_w"], 12.0, rel=0.01)
    with pytest.raises(UnsupportedError, match="latency 1 µs"):
        workspace.explore("mobilenet_v2", solve="clock", target="latency=1us", **told)


@pytest.mark.slow
def test_a_search_finds_what_all_designs_hold(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    workspace = Workspace(tmp_path / "a.duckdb")
    vary = {"units": "16:256:*1.2", "clock": "0.3GHz:0.9GHz:20"}
    whole = workspace.explore("mobilenet_v2", like="kpu_t256", vary=vary, precision="int8")
    found = workspace.explore("mobilenet_v2", like="kpu_t256", vary=vary, precision="int8", search="optuna", count=200)
    assert found.point_count <= 200 < whole.point_count
    for one, other in zip(found.best, whole.best, strict=True):
        assert one.value <= 1.05 * other.value


@pytest.mark.slow
def test_designs_that_a_lake_keeps_are_the_same_and_not_evaluated_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    vary: dict[str, Any] = {"units": "32:128:*2", "tdp": "20W:40W:3"}
    models = ["mobilenet_v2", "resnet18"]
    plain = workspace.explore(models, like="kpu_t256", vary=vary, precision="int8", share={"resnet18": 0.3})
    kept_in: dict[str, Any] = {"share": {"resnet18": 0.3}, "lake": tmp_path / "lake", "jobs": 2}
    kept, again = (workspace.explore(models, like="kpu_t256", vary=vary, precision="int8", **kept_in) for _ in range(2))
    assert plain.to_arrow().equals(kept.to_arrow())
    assert plain.to_arrow().equals(again.to_arrow())
    assert len(list((tmp_path / "lake").rglob("*.parquet"))) == 2


@pytest.mark.slow
def test_the_one_chip_for_all_loses_nothing_where_it_is_the_best_of_each(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    answer = workspace.explore_all(["resnet18", "mobilenet_v2"], hardware="l4,t4,xeon_8490h", precision="int8")
    assert min(row.regret_ratio or 0.0 for row in answer.rows) >= 1.0
    for winner in answer.winners:
        assert 0.5 <= (winner.probability or 0.0) <= 1.0
        assert (winner.runner_up in winner.alike.split(", ")) == ((winner.probability or 0.0) < 0.8)
    for winner in answer.winners:
        asked: dict[str, Any] = {"hardware": winner.hardware, "precision": "int8", "runtime": winner.runtime}
        assert_close(winner.value, workspace.compare(winner.model, **asked).rows[0].energy_j)
    first = answer.rows[0]
    assert first.worst_ratio is not None
    assert (first.worst_ratio == 1.0) == ({row.hardware for row in answer.winners} == {first.hardware})


@pytest.mark.slow
def test_a_pass_is_explored_under_its_engine(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    step = "llama-3.2-1b(cached=512,engine=vllm)"
    found = workspace.explore(
        step, like="l4", vary={"dram.bandwidth": "x1,x2"}, precision="bf16", runtime="engine"
    ).to_arrow()
    (run,) = workspace.compare(step, hardware=["l4"], precision="bf16", runtime="engine").rows
    assert found["latency_s"][0].as_py() == run.latency_s
    assert found["energy_per_inference_j"][0].as_py() == run.energy_j


@pytest.mark.parametrize(("like", "precision"), [("tpu_v4", "fp32"), ("l4", "fp32"), ("kpu_t256", "int8")])
def test_the_design_to_take_is_on_the_front_and_its_unchanged_chip_does_not_beat_it(
    workspace: Workspace, like: str, precision: Precision
) -> None:
    answer = workspace.explore("resnet18", like=like, precision=precision)
    choice = next(one for one in answer.facts.of(Choice) if one.ratio is not None and one.ratio > TIE_RATIO)
    moved = {one.metric: one for one in answer.facts.of(Change) if one.runs[1] == choice.run}
    ends = [(moved[name].before.value, moved[name].after.value) for name in ("energy", "latency")]
    assert any(after < before for before, after in ends)
    rows = [dict(zip(answer.front.names, row, strict=True)) for row in answer.front]
    front = [(row["energy_per_inference_j"], row["latency_s"]) for row in rows]
    taken = tuple(after for _, after in ends)
    assert not any(one[0] < taken[0] * (1 - 1e-9) and one[1] < taken[1] * (1 - 1e-9) for one in front)


def test_a_precision_that_the_chip_lacks_is_refused_with_power_varied(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="has no fp32"):
        workspace.explore("mlp", like="axelera_metis_m2", vary={"tdp": "x1,x2"})
