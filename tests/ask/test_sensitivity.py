"""Sensitivity: what moves energy and time, by how much, and between which ends."""

from __future__ import annotations

import itertools
import math
import shlex
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.constant import Sensitivity, SensitivityAnswer
from joulemap.catalog.load import load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.constant import name_constant
from joulemap.domain.operator.name import find_operator
from joulemap.domain.settings import Pay, Settings, Site
from joulemap.physics.change import change_hardware
from joulemap.physics.outcome import Timed
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.constant import Change, Constant, check_value, list_constants
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import EnergyReference
from joulemap.physics.record.runtime import MODES, RUNTIME, RuntimeName
from joulemap.physics.record.spread import BASIS_SPREAD, find_spread
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.timing import ENGINE_PART
from joulemap.physics.variation import FAILURES, Varied
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.plan.anchor import anchor_hardware
from joulemap.show.constant import OPERANDS, SUPPLY, show_field, show_span_of
from joulemap.show.present.cell import show_span
from joulemap.show.present.document import Grid
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.trace.single import describe
from joulemap.workspace import Workspace
from models import shipped
from sample import thin

PLAIN = ["l4", "tpu_v4", "epyc_9654"]
CATALOGUE = load_catalogue().hardware


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> SensitivityAnswer:
    return workspace.sensitivity("resnet18", hardware=PLAIN, precision="bf16")


def known(value: float | None) -> float:
    assert value is not None
    return value


def by_name(answer: SensitivityAnswer, hardware: str) -> dict[str, Sensitivity]:
    return {row.constant: row for row in answer.of(hardware)}


def is_price(row: Sensitivity) -> bool:
    return (row.kind == "price" and row.constant != "board.regulator_loss") or row.constant == "static_power"


def given(**values: object) -> Constant:
    usual = {"address": Address.read("x.y"), "value": 2.0, "unit": "J", "basis": "assumed", "source": "s"}
    return Constant(**{**usual, **values})  # type: ignore[arg-type]


@pytest.mark.sample(1)
@pytest.mark.parametrize("hardware", PLAIN)
def test_elasticities_of_energy_to_all_prices_add_up_to_one(answer: SensitivityAnswer, hardware: str) -> None:
    rows = [row for row in answer.of(hardware) if is_price(row)]
    assert {row.method for row in rows} == {"exact"}
    assert_close(math.fsum(row.energy_elasticity or 0.0 for row in rows), 1.0)
    assert all(row.latency_elasticity == 0.0 for row in rows)


def test_a_price_moves_energy_by_its_share_of_the_ledger(answer: SensitivityAnswer, workspace: Workspace) -> None:
    run_id = answer.scope.run_ids[0]
    ((share, loss, total),) = workspace.sql(
        "SELECT sum(line_energy_j) FILTER (WHERE component = 'dram' AND action = 'read'), "
        "sum(line_energy_j) FILTER (WHERE action = 'regulator_loss'), sum(line_energy_j) "
        "FROM energy_ledger WHERE run_id = $run",
        {"run": run_id},
    ).rows
    rows = by_name(answer, "l4")
    # what it takes, and the 12 % that regulators lose of it
    assert_close(known(rows["dram.read"].energy_elasticity), 1.12 * float(share) / float(total))
    assert_close(known(rows["board.regulator_loss"].energy_elasticity), float(loss) / float(total))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "constant", thin(["memory_bandwidth", "clock", "coefficient.epilogue_passes", "static_power"], 2)
)
def test_an_elasticity_is_what_setting_the_constant_does(
    answer: SensitivityAnswer, workspace: Workspace, constant: str
) -> None:
    (plain,) = workspace.compare("resnet18", hardware="l4", precision="bf16").rows
    step = 1.01
    changed = workspace.compare("resnet18", hardware="l4", precision="bf16", changes={constant: f"x{step}"}).rows[0]
    row = by_name(answer, "l4")[constant]
    for before, after, slope in (
        (plain.energy_j, changed.energy_j, row.energy_elasticity),
        (plain.latency_s, changed.latency_s, row.latency_elasticity),
    ):
        assert before is not None
        assert after is not None
        assert slope is not None
        # an exact elasticity is the slope of an energy that is linear in the constant
        slopes = {"exact": (after / before - 1.0) / (step - 1.0)}
        assert abs(slopes.get(row.method, math.log(after / before) / math.log(step)) - slope) < 1e-4


@pytest.mark.slow
def test_the_smallest_part_of_a_batch_counts_where_an_engine_cuts_batches(workspace: Workspace) -> None:
    """Other runtimes run a batch whole, so it is no constant of their runs."""
    for runtime in MODES:
        varied = workspace.sensitivity("resnet18", hardware="l4", precision="int8", batch=64, runtime=runtime)
        rows = [row for row in varied.rows if row.constant == f"coefficient.{ENGINE_PART}"]
        assert len(rows) == RUNTIME[runtime].is_built, runtime
        assert all((row.span_fraction or 0.0) > 0.01 for row in rows)


@pytest.mark.slow
def test_rounding_to_whole_cycles_does_not_decide_an_elasticity(workspace: Workspace) -> None:
    """A faster array takes no longer: the next 0.01 % of this peak saves no cycle, 1 % does.

    The next row of an array of 32 x 32 would leave most of a tile empty; twice the rows fill it.
    """

    def compare(constant: str, value: str) -> float:
        row = workspace.compare("resnet18", hardware=name, precision="int8", changes={constant: value}).rows[0]
        return known(row.latency_s)

    name = "cloud_ai_100_pro"
    rows = by_name(workspace.sensitivity("resnet18", hardware=name, precision="int8"), name)
    faster = math.log(compare("peak.int8", "x1.01") / compare("peak.int8", "x1")) / math.log(1.01)
    assert faster < -0.05
    assert_close(known(rows["peak.int8"].latency_elasticity), faster, rel=1e-6)
    taller = math.log(compare("geometry.output_rows", "64") / compare("geometry.output_rows", "16")) / math.log(4.0)
    assert_close(known(rows["geometry.output_rows"].latency_elasticity), taller, rel=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "constant", thin(["static_power", "clock", "board.unattributed_product_cycle", "board.regulator_loss"], 2)
)
def test_the_ends_are_what_setting_the_constant_there_gives(
    answer: SensitivityAnswer, workspace: Workspace, constant: str
) -> None:
    row = by_name(answer, "l4")[constant]
    for value, expected in ((row.low, row.metric_low), (row.high, row.metric_high)):
        assert value is not None
        changed = workspace.compare("resnet18", hardware="l4", precision="bf16", changes={constant: value}).rows[0]
        assert_close(known(changed.energy_j), known(expected), rel=1e-8)


def test_the_range_of_a_metric_holds_that_of_the_run(answer: SensitivityAnswer) -> None:
    row = answer.rows[0].replace(metric_low=3.0, metric_value=1.0, metric_high=2.0)
    assert show_span_of(row) == show_span("1 J", "3 J")
    assert show_span_of(row.replace(metric_low=None)) == show_span("1 J", "2 J")


@pytest.mark.parametrize("name", CLASS_HARDWARE.values())
def test_people_have_one_word_for_one_constant_of_a_hardware(name: str) -> None:
    words = {constant.name: name_constant(constant) for constant in list_constants(CATALOGUE[name]).values()}
    assert sorted(set(words.values())) == sorted(words.values())
    assert not [word for word in words.values() if "_" in word or "." in word or not word]


@pytest.mark.slow
def test_under_the_power_cap_prices_move_time(workspace: Workspace) -> None:
    varied = workspace.sensitivity("resnet18", hardware="t4", precision="int8", batch=64, metric="latency")
    rows = by_name(varied, "t4")
    assert (rows["dram.read"].latency_elasticity or 0.0) > 0.0
    assert rows["dram.read"].method == "evaluated"
    assert any("the power cap slows t4" in note for note in varied.document().notes)
    # at the limit a watt more of it is a watt more of power, so that all prices together slow it down
    assert (rows["tdp"].latency_elasticity or 0.0) < 0.0


@pytest.mark.slow
def test_what_is_asked_with_a_change_is_told_of_the_changed_hardware(workspace: Workspace) -> None:
    varied = workspace.sensitivity("resnet18", hardware="l4", precision="bf16", changes={"static_power": "10W"})
    row = by_name(varied, "l4")["static_power"]
    assert (row.value, row.basis, row.source) == (10.0, "assumed", "--set")


def test_the_command_that_tries_a_constant_sets_one_of_the_chip(workspace: Workspace) -> None:
    varied = workspace.sensitivity("gemm(m=1,n=1,k=1)", hardware="l4", metric="cost")
    assert varied.rows[0].kind == "use"
    (step,) = varied.document().steps
    name, factor = shlex.split(step)[shlex.split(step).index("--set") + 1].split("=")
    workspace.compare("gemm(m=1,n=1,k=1)", hardware="l4", changes={name: factor})


def test_a_cost_without_a_price_is_refused(workspace: Workspace) -> None:
    module = Settings(hardware="jetson_orin_nano", precision="fp16")
    with pytest.raises(UnsupportedError):  # nobody rents out a module
        workspace.sensitivity("mlp", module, metric="cost", site=Site(pay="rented"))
    bought = workspace.sensitivity("mlp", module, metric="cost", site=Site(pay="bought"))
    assert known(bought.rows[0].metric_value) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("hardware", thin(["l4", "jetson_orin_nano", "h100_sxm5"], 3))
def test_costs_are_those_of_the_queries(workspace: Workspace, hardware: str) -> None:
    pay: Pay = "bought" if hardware == "jetson_orin_nano" else "rented"  # nobody rents out a module
    usage = Site(utilization=0.3, usd_per_kwh=0.2, region="de", pay=pay)
    settings = Settings(hardware=hardware, precision="fp16", batch=4)
    mode = "15W" if hardware == "jetson_orin_nano" else "default"  # what the plain names mean
    priced = workspace.cost("resnet18", settings, power_mode=mode, site=usage)
    cost = workspace.sensitivity("resnet18", settings, metric="cost", site=usage)
    carbon = workspace.sensitivity("resnet18", settings, metric="carbon", site=usage)
    best = priced.best
    assert best is not None
    assert_close(known(cost.rows[0].metric_value), known(best.usd_per_million))
    assert_close(known(carbon.rows[0].metric_value), known(best.gco2_per_million))
    rows = {row.constant: row for row in cost.rows}
    assert rows["use.utilization"].source == "the question"
    if best.way == "rented":  # rent over what it does in an hour
        assert_close(known(rows["price_cloud"].elasticity), 1.0)
        assert_close(known(rows["use.utilization"].elasticity), -1.0, rel=1e-3)


STREAMS: Final = ("cloud_ai_100_pro", "engine", 4)
PARTS: Final = ("coral_edge_tpu", "engine", 128)
"""Hardware that is placed more than once for an answer: at its share of several streams, and for part of a batch."""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "runtime", "batch"), [*((name, "fused", 1) for name in CLASS_HARDWARE.values()), STREAMS, PARTS]
)
def test_totals_are_those_of_the_run(name: str, runtime: RuntimeName, batch: int) -> None:
    hardware = anchor_hardware(CATALOGUE[name])
    precision = "int8" if "int8" in hardware.peaks else next(iter(hardware.peaks))
    work = shipped("resnet18", batch)
    run = evaluate(work, hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))
    totals = Varied.of(work, precision, runtime).evaluate(hardware)
    assert_close(totals.energy_j, run.energy_fj / 1e15)
    assert_close(totals.latency_s, run.latency_fs / 1e15)
    assert_close(totals.interval_s, run.interval_fs / 1e15)


def collective(name: str) -> WorkloadColumns:
    operator = find_operator(name)
    assert operator is not None
    return columns_of(describe(operator, 1, NO_KEY))


ALL_REDUCE: Final = "all_reduce(elements=1048576,devices=8)"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("target", "precision", "runtime", "model", "batch"),
    [
        ("h100_sxm5", "fp16", "eager", "resnet18", 1),
        ("h100_sxm5", "fp8", "engine", "resnet18", 128),
        ("h100_sxm5", "bf16", "graph", ALL_REDUCE, 1),
        ("l4@40W", "int8", "fused", "resnet18", 128),
        ("tpu_v4", "bf16", "fused", "resnet18", 1),
        ("kpu_t256", "int8", "graph", "mobilenet_v2", 1),
        ("xeon_8490h", "int8", "engine", "resnet18", 64),
        ("tda4vm_c7x_mma", "int8", "engine", "resnet18", 1),
        ("dpu_b4096_kv260", "int8", "engine", "resnet18", 1),
        ("plasticine", "fp32", "graph", "resnet18", 1),
        ("hailo_8 in raspberry_pi_5", "int8", "engine", "efficientnet_b0", 1),
        ("cloud_ai_100_pro", "int8", "engine", "resnet18", 4),
        ("coral_edge_tpu", "int8", "engine", "resnet18", 128),
    ],
)
def test_variations_together_take_what_each_takes_alone(
    target: str, precision: str, runtime: RuntimeName, model: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # every digit: all constants at a third and at three times as one; every seventeenth of them by itself
    name, _, host = target.partition(" in ")
    entry, _, mode = name.partition("@")
    hardware = anchor_hardware(CATALOGUE[entry]).in_mode(mode or "default")
    if host:
        hardware = hardware.with_host(anchor_hardware(CATALOGUE[host]), is_counted=True)
    varied = Varied.of(collective(model) if model == ALL_REDUCE else shipped(model, batch), precision, runtime)
    base, changed, timed = varied.evaluate(hardware), list[Hardware](), list[Any]()
    for one in list_constants(hardware).values():
        for factor in (1.0 / 3.0, 3.0) if one.value > 0.0 else ():
            value = max(1.0, round(one.value * factor)) if one.is_whole else one.value * factor
            with suppress(ValueError):
                check_value(one, value)
                change = Change.of(one, value)
                changed.append(change_hardware(hardware, (change,)))

    def time(*args: Any) -> Timed:
        timed.append(args)
        return Timed.of(*args)

    with monkeypatch.context() as watched:
        watched.setattr("joulemap.physics.variation.Timed", SimpleNamespace(of=time))
        together = varied.evaluate_all(changed)
    assert len(timed) < len(changed) / 8
    assert base.spare_w < 0.0 or not mode
    assert len({one.energy_j for one in together if one is not None}) > 8
    for chip, varied_run in itertools.islice(zip(changed, together, strict=True), 0, None, 17):
        try:
            alone = varied.evaluate(chip)
        except FAILURES:
            alone = None
        assert varied_run == alone


def test_what_has_no_answer_leaves_the_others_their_own() -> None:
    hardware = anchor_hardware(CATALOGUE["l4"])
    varied = Varied.of(shipped("resnet18"), "fp16", "graph")
    wrong = [hardware.reference.actions[0], *hardware.reference.actions[2:]]  # one action has no price
    unpriced = attrs.evolve(hardware, reference=EnergyReference(actions=tuple(wrong)))
    slower = attrs.evolve(hardware, memory_bandwidth=attrs.evolve(hardware.memory_bandwidth, value=1e10))
    stuck = attrs.evolve(hardware, memory_bandwidth=attrs.evolve(hardware.memory_bandwidth, value=1e-320))
    evaluated = varied.evaluate_all([hardware, unpriced, stuck, slower])
    assert evaluated == [varied.evaluate(hardware), None, None, varied.evaluate(slower)]


def test_a_spread_is_the_range_of_the_constant_then_that_of_its_class_then_its_basis() -> None:
    # 2 within 1 .. 8: halved is one spread down, four times is one spread up
    own = find_spread(given(low=1.0, high=8.0), {})
    assert (own.down, own.up, own.origin) == (2.0, 4.0, "range")
    assert_close(own.count(0.25), 2.0)
    assert_close(own.count(16.0), 2.0)
    assert_close(own.log, 1.5 * math.log(2.0))
    fitted = find_spread(given(address=Address.read("coefficient.x")), {"x": 0.1})
    assert_close(fitted.up, math.exp(0.1))
    assert fitted.origin == "class"
    assert find_spread(given(address=Address.read("coefficient.x"), basis="measured"), {"x": 0.1}).origin == "measured"
    assert find_spread(given(low=0.0, high=3.0), {}).down == BASIS_SPREAD["assumed"]
    exact = find_spread(given(address=Address.read("unit_count"), basis="published"), {})
    assert (exact.down, exact.up, exact.origin, exact.count(2.0)) == (1.0, 1.0, "exact", math.inf)


def test_it_needs_a_hardware_and_one_precision(joulemap: Run, workspace: Workspace) -> None:
    done = joulemap("sensitivity", "resnet18")
    assert (done.returncode, "name a chip" in done.stderr) == (2, True)
    with pytest.raises(UsageError, match="takes one precision"):
        workspace.sensitivity("resnet18", hardware="l4", precision=["fp32", "bf16"])
    with pytest.raises(UsageError, match="unknown metric"):
        workspace.sensitivity("resnet18", hardware="l4", metric="beauty")  # type: ignore[call-overload]


def test_the_int8_peak_is_the_operand_supply_of_other_precisions(workspace: Workspace) -> None:
    """Operand bytes per clock follow from the int8 peak, times `supply_ratio`: both have the same effect."""
    answer = workspace.sensitivity("resnet18", hardware="l4", metric="latency")
    rows = {row.constant: row for row in answer.rows}
    peak, ratio = rows[SUPPLY], rows["coefficient.supply_ratio"]
    assert peak.elasticity is not None and peak.elasticity < -0.1 and ratio.elasticity is not None
    assert_close(peak.elasticity, ratio.elasticity, rel=1e-3)
    scaled = (one.replace(value=2.0) for one in (rows["coefficient.device_time_scale"], ratio))
    assert list(map(show_field("value"), scaled)) == ["2x", "2"]
    shown = answer.document(limit=10)
    (grid, *_) = shown.sections[0].blocks
    assert isinstance(grid, Grid)
    assert OPERANDS(row=peak) in {row[0] for row in grid.rows}
    assert ratio.meaning in {text for section in shown.details for text in section.texts} - {""}
