"""Power that was measured under a load: the prices that give it, by hand on toys and on what ships."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs
import pytest

import chip
from boundary_case import line_fj, power_w, run_of, toy
from compare import assert_close
from conftest import Run
from joulemap.catalog.hardware import LEAST_SHARE
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.catalog.measurement import load_measurements
from joulemap.domain.operator.name import find_operator
from joulemap.physics.anchor import COPY, PRODUCT, find_anchor
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import BUSY_SHARE, LIMIT_SHARE, STANDBY_ENERGY, Configuration
from joulemap.physics.record.hardware import Hardware, MeasuredLoad
from joulemap.physics.record.reference import (
    CLOCK_ACTION,
    CYCLE_ACTION,
    ISSUE_ACTION,
    MEMORY_ACTION,
    OTHER_ACTION,
    STANDBY_ACTION,
    STATIC_ACTION,
    cycle_action,
)
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.plan.anchor import anchor_hardware, describe_probes
from joulemap.system.errors import CatalogueError, ExitCode
from joulemap.trace.single import describe
from models import KEY, shipped
from tools.interval import LOAD

CATALOGUE: Final = load_catalogue().hardware

MEASURED: Final = [
    pytest.param(one, load, id=f"{one.id} {load.name}") for one in CATALOGUE.values() for load in one.loads
]


def load(watts: float, *, name: str = "copy", precision: str = "fp32", covers: str = "board") -> MeasuredLoad:
    """Return a load of an operator that is probed."""
    return MeasuredLoad(
        name=name,
        model=name,
        precision=precision,
        batch=1,
        runtime="graph",
        covers=covers,
        power=chip.number(watts, "W"),
        tracer_version="none",
    )


def workload(operator: str) -> WorkloadColumns:
    found = find_operator(operator)
    assert found is not None
    return columns_of(describe(found, 1, KEY))


def loaded(own: Hardware, *loads: tuple[MeasuredLoad, str]) -> Hardware:
    """Return a toy that draws what was measured of operators, with its anchor at the board."""
    measured = attrs.evolve(own, loads=tuple(one for one, _ in loads))
    return measured.anchored(
        find_anchor(measured, describe_probes(), [workload(operator) for _, operator in loads])
    ).at_boundary("board", "1")


@pytest.mark.parametrize("watts", [31.0, 45.0, 60.0, 80.0])
def test_a_toy_draws_what_was_measured(watts: float) -> None:
    # 50 GB/s at 0.4 nJ and 10 W of static power are 30 W of 100: the rest has a price, at 0.6 of the limit or not
    found = loaded(toy(nj_per_byte=0.4), (load(watts), COPY))
    assert_close(power_w(run_of(found)), watts, rel=1e-6)
    assert line_fj(run_of(found), MEMORY_ACTION) + line_fj(run_of(found), OTHER_ACTION) > 0


def test_the_share_of_a_load_holds_for_what_was_not_measured() -> None:
    # a copy at 45 of 100 W says 0.45 of the limit: the product that uses most of a core draws that, no other draws more
    found = loaded(toy(nj_per_byte=0.4), (load(45.0), COPY))
    assert_close(max(power_w(run_of(found, PRODUCT, precision)) for precision in found.peaks), 45.0, rel=1e-6)
    assert_close(power_w(run_of(found, PRODUCT, "bf16")), 45.0, rel=1e-6)  # a matrix unit has its own
    prices = {one.key: one.energy_per_action_fj for one in found.reference}
    assert len({prices[cycle_action(one)] for one in found.peaks if one != "bf16"}) == 1 < len(found.peaks) - 1


def test_two_loads_meet_in_the_geometric_mean() -> None:
    # products are compute alone, so that at a share s of 100 W each draws 100 s: s = sqrt(0.4 x 0.9)
    own = toy(nj_per_byte=0.4)
    found = loaded(
        own, (load(40.0, name="one", precision="bf16"), PRODUCT), (load(90.0, name="two", precision="fp32"), PRODUCT)
    )
    for precision in ("bf16", "fp32"):
        assert_close(power_w(run_of(found, PRODUCT, precision)), 60.0, rel=1e-6)


def test_what_a_system_draws_bounds_its_board_from_above_and_never_from_below() -> None:
    # 0.6 of the limit without a load; a wall plug at 50 W lowers it, one at 90 W says nothing
    own = toy(nj_per_byte=0.4)
    for watts, expected in ((50.0, 50.0), (90.0, 100.0 * LEAST_SHARE.value), (500.0, 100.0 * LEAST_SHARE.value)):
        found = loaded(own, (load(watts, covers="system"), COPY))
        assert_close(power_w(run_of(found)), expected, rel=1e-6)


@pytest.mark.parametrize("covers", ["board", "system"])
def test_prices_of_circuits_are_lowered_where_they_draw_more_than_was_measured(covers: str) -> None:
    # 50 GB/s at 1.2 nJ are 60 W and 10 W static; at 40 W measured each byte is paid 30 / 60 of its price
    own = toy(nj_per_byte=1.2, loss=0.0)
    found = loaded(own, (load(40.0, covers=covers), COPY))
    assert_close(power_w(run_of(found)), 40.0, rel=1e-3)
    before = {one.key: one for one in own.reference}
    for one in found.reference:
        assert one.component != "board" or one.key[1] == "regulator_loss"
        if one.key == STATIC_ACTION or one.component == "board":
            assert one == before[one.key]
        elif before[one.key].energy_per_action_fj:
            assert_close(one.energy_per_action_fj / before[one.key].energy_per_action_fj, 0.5, rel=1e-3)
            assert "x 0.5" in one.source
            assert "copy at fp32, batch 1, graph draws 40 W" in one.source


def test_a_chip_without_a_load_is_anchored_by_its_limit_where_it_is_sold() -> None:
    for hardware in CATALOGUE.values():
        if not hardware.loads:
            rows = find_anchor(hardware, describe_probes())
            if BUSY_SHARE in hardware.coefficients:
                assert [row.key for row in rows] == [CYCLE_ACTION, CLOCK_ACTION, STANDBY_ACTION]
                continue
            assert {row.component for row in rows} <= {"board"}
            assert not rows or LIMIT_SHARE in hardware.coefficients
            assert all(f"draws at least {LEAST_SHARE.value:g} of the power limit" in row.source for row in rows)


@pytest.mark.parametrize("name", ["rtx_5090", "rtx_3090", "rtx_a6000", "b60", "a10"])
def test_a_running_board_with_gddr_draws_its_share_above_what_it_draws_awake(name: str) -> None:
    own = anchor_hardware(CATALOGUE[name])
    share, limit_w = own.coefficients[BUSY_SHARE].value, own.tdp.value
    standby_w = own.coefficients[STANDBY_ENERGY].value * own.memory_bandwidth.value * (1.0 + own.reference.loss_j)
    expected_w = min(own.static_power.value + standby_w + share * limit_w, limit_w)
    assert_close(power_w(run_of(chip.bound(own, "default", "board"), precision="fp16")), expected_w, rel=1e-2)


@pytest.mark.parametrize("name", ["rtx_4060_ti", "rtx_4070_ti", "rtx_5090"])
def test_a_unit_that_works_costs_at_most_as_much_as_one_that_issues_instructions(name: str) -> None:
    reference = anchor_hardware(find_hardware(name)).reference
    waiting, working = (reference.prices_fj[reference.position(key) or 0] for key in (CYCLE_ACTION, ISSUE_ACTION))
    assert waiting < working if name == "rtx_5090" else waiting == working


@pytest.mark.parametrize("name", ["t4", "l4", "p4"])
def test_a_board_that_a_slot_feeds_has_no_share_of_its_limit(name: str) -> None:
    assert BUSY_SHARE not in CATALOGUE[name].coefficients


@pytest.mark.sample(1)
@pytest.mark.parametrize(("hardware", "measured"), MEASURED)
def test_a_load_draws_what_was_measured(hardware: Hardware, measured: MeasuredLoad) -> None:
    bounded = chip.bound(anchor_hardware(hardware), "default", "board")
    configuration = Configuration(
        hardware=hardware.id, precision=measured.precision, batch=measured.batch, runtime=measured.runtime
    )
    run = evaluate(shipped(measured.model, measured.batch), bounded, configuration)
    ratio = power_w(run) / measured.power.value
    assert ratio <= 1.0 + 1e-6 or measured.covers == "board"
    assert ratio >= 0.85 or measured.covers == "system"
    assert ratio <= 1.15


def test_rows_that_gave_a_load_test_nothing() -> None:
    rows = [(one.hardware.partition("@")[0], one.model, LOAD in (one.seen or "")) for one in load_measurements()]
    loads = {(one.id, own.model) for one in CATALOGUE.values() for own in one.loads}
    marked = {(hardware, model) for hardware, model, is_marked in rows if is_marked}
    assert marked == loads & {(hardware, model) for hardware, model, _ in rows}


def test_a_load_of_a_program_is_one_that_ships() -> None:
    lone = attrs.evolve(CATALOGUE["hailo_8"], loads=(load(3.0, precision="int8"),), digest="of a program")
    with pytest.raises(CatalogueError, match=r"hailo_8: loads\.copy\.model: copy "):
        anchor_hardware(lone)


FILE: Final = (
    (Path(__file__).parents[2] / "src/joulemap/catalog/data/hardware/hailo_8.toml")
    .read_text()
    .replace('id = "hailo_8"', 'id = "mine"')
)

WRONG: Final = {
    "a model that does not ship": (
        'model = "resnet50"', 'model = "resnet51"', "loads.resnet50_streaming.model: 'resnet51', did you mean resnet50?"
    ),
    "a precision that it lacks": (
        'precision = "int8"', 'precision = "fp32"', "loads.resnet50_streaming.precision: 'fp32', known: int8, int4"
    ),
    "no such runtime": ('runtime = "engine"', 'runtime = "engines"', "did you mean engine?"),
    "neither board nor system": ("batch = 1\n", 'batch = 1\ncovers = "rack"\n', "covers: 'rack', known: board, system"),
    "less than static power": (
        "value = 3.19395",
        "value = 1.1",
        "loads.resnet50_streaming.power: 1.1 W is not above the static power of 1.44 W",
    ),
    "more than the limit": ("value = 3.19395", "value = 9.1", "and within the tdp of 8.65 W"),
    "no image": ("batch = 1\n", "batch = 0\n", "loads.resnet50_streaming.batch: 0 is not a whole number from 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_load_is_refused(case: str, tmp_path: Path, joulemap: Run) -> None:
    old, new, reason = WRONG[case]
    path = tmp_path / "mine.toml"
    assert old in FILE
    path.write_text(FILE.replace(old, new, 1))
    done = joulemap("hardware", "check", str(path))
    assert done.returncode == ExitCode.CATALOGUE
    assert reason in " ".join((done.stdout + done.stderr).split())
