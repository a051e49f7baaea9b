"""Events: counted from the ledger, so that they add up to it, to each other and to the run."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from compare import assert_close
from joulemap.ask.analyze import AnalyzeAnswer
from joulemap.catalog.chip import load_class
from joulemap.catalog.event import load_events, resolve_events
from joulemap.catalog.schema import EventEntry
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.system.errors import CatalogueError
from joulemap.workspace import Workspace
from lazy import Lazy

CHIPS: dict[str, tuple[str, Precision, RuntimeName]] = {
    "cpu": ("jetson_agx_orin_cpu", "fp32", "eager"),
    "gpu": ("jetson_orin_nano_8gb", "fp16", "fused"),
    "amd": ("mi300x", "fp16", "fused"),
    "tpu": ("tpu_v4", "bf16", "fused"),
    "kpu": ("kpu_t64", "int8", "fused"),
    "dsp": ("tda4vm_c7x_mma", "int8", "fused"),
    "npu": ("cloud_ai_100_pro", "int8", "fused"),
    "dpu": ("dpu_b4096_kv260", "int8", "fused"),
    "cgra": ("plasticine", "fp16", "fused"),
}
MODEL = "mobilenet_v3_small"

Counts = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def analyses(workspace: Workspace) -> Mapping[str, AnalyzeAnswer]:
    def analyze(name: str) -> AnalyzeAnswer:
        hardware, precision, runtime = CHIPS[name]
        return workspace.analyze(MODEL, hardware, precision=precision, runtime=runtime)

    return Lazy(analyze)


def counts(answer: AnalyzeAnswer) -> Counts:
    return {(row.component, row.event): row.event_count for row in answer.events}


def actions(answer: AnalyzeAnswer) -> Counts:
    return {(row.component, row.action): row.action_count for row in answer.actions}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CHIPS)
def test_parts_of_an_event_sum_to_it_where_they_are_its_two_halves(
    name: str, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    counted = counts(analyses[name])
    halves = {
        "reads": ("read_hits", "read_misses"),
        "branches": ("branches_predicted", "branches_mispredicted"),
        "instructions": ("scalar_instructions", "vector_instructions"),
        "warp_instructions": ("lane_instructions", "tensor_core_instructions"),
        "tokens": ("tokens_injected", "tokens_extracted"),
        "accesses": ("loads", "stores"),
        "mac_slots": ("macs", "padding"),
    }
    met = 0
    for (component, whole), count in counted.items():
        one, other = ((component, half) for half in halves.get(whole, ("", "")))
        if one in counted:
            met += 1
            assert_close(counted[one] + counted[other], count)
            assert min(counted[one], counted[other]) >= 0.0
    assert met >= 1


@pytest.mark.slow
def test_lines_times_their_size_are_bytes(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    counted, acted = counts(analyses["cpu"]), actions(analyses["cpu"])
    for level in ("l1", "l2", "l3"):
        assert_close(counted[level, "reads"] * 64, acted[level, "read"])
        assert_close(counted[level, "read_misses"] * 64, acted[level, "fill"])
    counted, acted = counts(analyses["amd"]), actions(analyses["amd"])
    for level in ("l2", "l3"):
        assert_close(counted[level, "writes"] * 32, acted[level, "write"])
        assert_close(counted[level, "read_misses"] * 32, acted[level, "fill"])
    assert_close(counted["dram", "reads"] * 32, acted["dram", "read"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "warp"), [("gpu", 32), ("amd", 64)])
def test_warps_are_threads_in_step(name: str, warp: int, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    counted = counts(analyses[name])
    assert_close(counted["sm", "warps"] * warp, counted["sm", "threads"])
    assert counted["sm", "threads"] == 256 * counted["sm", "thread_blocks"]
    assert counted["sm", "thread_blocks"] == counted["chip", "tiles"]


def test_an_event_has_the_energy_of_the_actions_that_pay_for_it(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses["cpu"]
    (branch,) = (row for row in answer.events if row.event == "branches_mispredicted")
    paid = [row.energy_fj for row in answer.actions if row.component == "misprediction"]
    assert len(paid) == 2
    assert branch.energy_fj == sum(paid)
    assert branch.energy_j is not None
    assert branch.energy_per_event_j == branch.energy_j / branch.event_count
    assert [row.event for row in answer.events if "hit" in row.event and row.energy_fj is not None] == []
    for row in answer.events:
        assert row.energy_fj is None or row.energy_fj <= answer.total.energy_fj


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CHIPS)
def test_overhead_is_what_is_neither_arithmetic_nor_off_chip_memory_nor_board_nor_static(
    name: str, workspace: Workspace, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    answer = analyses[name]
    spared_categories = ("compute", "off_chip_memory", "board", "unattributed", "static")
    spared = sum(row.energy_fj for row in answer.actions if row.common_category in spared_categories)
    ((overhead_fj, overhead_j, fraction),) = workspace.sql(
        "SELECT overhead_fj, overhead_energy_j, overhead_fraction FROM run_overheads "
        f"WHERE run_id = {answer.total.run_id}"
    ).rows
    assert overhead_fj == answer.total.energy_fj - spared
    assert (overhead_j, fraction) == (answer.total.overhead_energy_j, answer.total.overhead_fraction)
    ((summed,),) = workspace.sql(
        f"SELECT sum(overhead_energy_j) FROM subgraph_results WHERE run_id = {answer.total.run_id}"
    ).rows
    assert_close(summed, overhead_j)


ENTRY = EventEntry(component="l2", event="reads", per="line", meaning="m", terms=["l2.read"])


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([ENTRY, ENTRY], "is listed twice"),
        ([attrs.evolve(ENTRY, terms=["l2.sing"])], "no such action l2.sing"),
        ([attrs.evolve(ENTRY, terms=["l2 read"])], "expected component.action"),
        ([attrs.evolve(ENTRY, costs=["l9.read"])], "no such action l9.read"),
        ([attrs.evolve(ENTRY, divisor="coefficient.beauty")], "neither a coefficient of the class"),
        ([attrs.evolve(ENTRY, divisor="geometry.matrix_tile")], "some chips lack it"),
        ([attrs.evolve(ENTRY, part_of="branches")], "expected an earlier event"),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused(entries: list[EventEntry], reason: str) -> None:
    shared = attrs.evolve(load_class("cpu", "the test"), events=entries)
    with pytest.raises(CatalogueError, match=f"cpu.toml: events.l2.reads.*{reason}"):
        list(resolve_events(shared))


def test_a_formula_tells_sum_floor_and_divisor() -> None:
    formulas = {(one.architecture, one.component, one.event): one.formula for one in load_events()}
    assert formulas["cpu", "l2", "read_hits"] == "(l2.read - l2.fill) / coefficient.cache_line"
    assert formulas["gpu", "l2", "reads"] == "max(l2.read, l2.fill) / coefficient.cache_sector"
    assert formulas["kpu", "fabric", "tokens"] == "token.injection + token.extraction"
