"""One run taken apart: every level adds up to the run, on every class of hardware, in every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compare import assert_close
from joulemap.ask.analyze import AnalyzeAnswer
from joulemap.ask.fact import Caveat, Share
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.show.analyze import FEW_TILES, RAISE, list_reasons
from joulemap.system.errors import UnknownNameError, UnsupportedError
from joulemap.workspace import Workspace
from lazy import Lazy

CLASSES: dict[str, tuple[str, Precision, RuntimeName]] = {
    "cpu": ("jetson_agx_orin_cpu", "fp32", "fused"),
    "gpu": ("h100_sxm5", "fp16", "graph"),
    "tpu": ("coral", "int8", "fused"),
    "kpu": ("kpu_t256", "fp32", "eager"),
    "dsp": ("tda4vm_c7x_mma", "int8", "fused"),
    "npu": ("gaudi2", "bf16", "fused"),
    "dpu": ("dpu_b4096_kv260", "int8", "eager"),
    "cgra": ("plasticine", "fp32", "fused"),
}
"""Architecture class -> hardware, precision, runtime."""

OF_EACH = pytest.mark.parametrize(
    "architecture", [one if one in ("cpu", "kpu") else pytest.param(one, marks=pytest.mark.slow) for one in CLASSES]
)
"""Of each class; the two that other tests ask for are run each time."""


@pytest.fixture(scope="module")
def analyses(workspace: Workspace) -> Mapping[str, AnalyzeAnswer]:
    """mobilenet_v2 on one chip of each class."""

    def ask_analyze(architecture: str) -> AnalyzeAnswer:
        hardware, precision, runtime = CLASSES[architecture]
        return workspace.analyze("mobilenet_v2", hardware, precision=precision, runtime=runtime)

    return Lazy(ask_analyze)


def energy_of(rows: Any) -> int:
    return sum(row.energy_fj for row in rows)


def latency_of(rows: Any) -> int:
    return sum(row.latency_fs for row in rows)


@pytest.mark.sample(1)
@OF_EACH
def test_every_level_adds_up_to_the_run_exactly(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    total = answer.total
    assert total.architecture == architecture
    assert total.energy_fj > 0
    for rows in (answer.categories, answer.actions, answer.subgraphs, answer.operators, answer.bottlenecks):
        assert energy_of(rows) == total.energy_fj
    for timed in (answer.subgraphs, answer.operators, answer.bottlenecks):
        assert latency_of(timed) == total.latency_fs
    for category in answer.categories:
        actions = [row for row in answer.actions if row.category == category.category]
        assert energy_of(actions) == category.energy_fj
        assert len({(row.component, row.action) for row in actions}) == category.kind_count
    for subgraph in answer.subgraphs:
        members = [row for row in answer.operators if row.subgraph_index == subgraph.subgraph_index]
        assert energy_of(members) == subgraph.energy_fj
        assert latency_of(members) == subgraph.latency_fs
        assert len(members) == subgraph.operator_count


@OF_EACH
def test_an_action_is_its_count_times_its_price(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    for row in analyses[architecture].actions:
        # each operator's line is rounded to a femtojoule
        expected = row.action_count * row.energy_per_action_j * 1e15
        assert abs(row.energy_fj - expected) <= 151 * 0.5 + 1e-9 * expected
        assert row.basis
        assert row.source


@OF_EACH
def test_shares_and_parts_are_those_of_the_run(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    for rows in (answer.categories, answer.actions):
        assert_close(sum(row.energy_fraction or 0.0 for row in rows), 1.0)
    for shared in (answer.subgraphs, answer.operators):
        assert_close(sum(row.energy_fraction or 0.0 for row in shared), 1.0)
        assert_close(sum(row.edp_share_fraction or 0.0 for row in shared), 1.0)
        assert_close(sum(row.edp_share_js for row in shared), answer.total.edp_js)
        for part in ("compute", "memory", "control", "static"):
            whole = getattr(answer.total, f"{part}_energy_j")
            assert_close(sum(getattr(row, f"{part}_energy_j") for row in shared), whole)
    (static,) = (row for row in answer.actions if (row.component, row.action) == ("chip", "static_power"))
    assert_close(sum(row.power_w for row in answer.static_parts), static.energy_per_action_j)
    assert_close(sum(row.energy_j for row in answer.static_parts), static.energy_j)


@OF_EACH
def test_the_total_is_the_run_of_the_promised_view(
    architecture: str, workspace: Workspace, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    answer = analyses[architecture]
    capacity: dict[str, float] = dict(workspace.sql("SELECT hardware, memory_capacity_bytes FROM hardware").rows)
    total = answer.total.record()
    (run,) = workspace.sql("SELECT * FROM runs WHERE run_id = $run_id", {"run_id": total["run_id"]}).records()
    same = total.keys() & run.keys()
    assert len(same) > 20
    assert {name: total[name] for name in same} == {name: run[name] for name in same}
    assert total["memory_capacity_bytes"] == capacity[total["hardware"]]
    assert_close(total["memory_fraction"], run["peak_memory_bytes"] / capacity[total["hardware"]])
    assert total["kernel_count"] == sum(row.kernel_count for row in answer.subgraphs)


@OF_EACH
def test_bottlenecks_are_those_of_the_subgraphs(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    assert [row.bottleneck for row in answer.bottlenecks] == ["compute", "memory", "launch"]
    for row in answer.bottlenecks:
        bound = [one for one in answer.subgraphs if one.bottleneck == row.bottleneck]
        assert row.subgraph_count == len(bound)
        assert_close(row.busy_s, sum(getattr(one, f"{row.bottleneck}_s") for one in answer.subgraphs))
    assert sum(row.latency_fs for row in answer.bottlenecks) == latency_of(answer.subgraphs)
    launches = sum(min(one.latency_s, one.launch_s) for one in answer.subgraphs)
    assert_close(answer.bottlenecks[2].latency_s, launches, rel=1e-9)


def test_fusing_saves_what_the_operator_costs_alone(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    fused = [row for row in analyses["cpu"].operators if row.is_fused]
    assert len(fused) > 100
    for row in fused:
        assert row.saved_energy_j == row.separate_energy_j - row.energy_j
        assert row.saved_latency_s == row.separate_latency_s - row.latency_s
    alone = [row for row in analyses["cpu"].operators if not row.is_fused]
    assert alone
    for row in (*alone, *analyses["kpu"].operators):
        assert not row.is_fused
        assert (row.saved_energy_j, row.saved_latency_s) == (None, None)


def test_a_power_cap_that_lowers_the_clock_is_said_with_numbers(workspace: Workspace) -> None:
    capped = workspace.analyze("resnet34", "Jetson-Orin-Nano", power_mode="7W", batch=32)
    total = capped.total
    assert total.hardware == "jetson_orin_nano_8gb@7W"
    assert total.tdp_w == 7.0
    assert 0.0 < total.clock_fraction < 1.0
    # of what the cap leaves beside static power, 0.975
    assert_close(total.average_power_w, total.static_power_w + 0.975 * (7.0 - total.static_power_w), rel=1e-6)
    assert total.uncapped_power_w > total.tdp_w
    (slowed,) = (one for one in capped.facts.of(Caveat) if one.kind == "slowed")
    assert slowed.values["clock_fraction"] == total.clock_fraction
    free = workspace.analyze("mobilenet_v2", "jetson_agx_orin_cpu")
    assert free.total.clock_fraction == 1.0
    assert_close(free.total.uncapped_power_w, free.total.average_power_w)
    assert not [one for one in free.facts.of(Caveat) if one.kind == "slowed"]


def test_what_cannot_run_says_why(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32; it has int8"):
        workspace.analyze("resnet18", "coral")
    with pytest.raises(UnsupportedError, match=r"has 0.23 GB of memory; this configuration needs .* GB"):
        workspace.analyze("resnet18", "groq_tsp_v1", precision="int8", batch=1000)
    with pytest.raises(UnknownNameError, match="did you mean h100_sxm5"):
        workspace.analyze("resnet18", "h100_sxm4")
    with pytest.raises(UnknownNameError, match="kpu_t64 has 3W, 6W, 10W"):
        workspace.analyze("resnet18", "kpu_t64@eco")


@pytest.mark.wings
@pytest.mark.slow
def test_exchange_between_devices_is_communication_as_in_train(workspace: Workspace) -> None:
    """The store calls the bottleneck of an exchange memory, although its bytes cross a link."""
    from joulemap.wing.train.setting import Training

    answer = workspace.analyze("train(resnet18,devices=8)", "rtx_4090", precision="bf16", batch=4)
    shares = {one.name: one.share for one in answer.facts.of(Share) if one.level == "bottleneck"}
    exchanges = [row for row in answer.subgraphs if row.name.startswith("exchange.")]
    assert exchanges
    assert_close(shares["communication"], sum(row.latency_fraction for row in exchanges))
    assert_close(sum(shares.values()), 1.0)
    training = Training(devices=(8,))
    (row,) = workspace.train("resnet18", hardware="rtx_4090", precision="bf16", batch=32, training=training).rows
    assert_close(shares["communication"], (row.exchange_s or 0.0) / (row.step_s or 0.0), rel=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["mlp", "conv_block", "gemm(m=4096,n=4096,k=4096)"])
def test_a_larger_batch_is_advised_only_where_it_saves_energy(model: str, workspace: Workspace) -> None:
    answer = workspace.analyze(model, "l4", precision="fp16", batch=1)
    more = workspace.analyze(model, "l4", precision="fp16", batch=4).total
    is_advised = answer.document().answer.startswith(RAISE)
    assert is_advised == (model in ("mlp", "conv_block"))
    assert not is_advised or more.energy_j / more.batch < answer.total.energy_j


@pytest.mark.sample(1)
def test_idle_units_are_no_advice_where_a_larger_batch_leaves_them_idle(workspace: Workspace) -> None:
    one, more = (
        workspace.analyze("efficientnet_b0", "rtx_4090", precision="int8", runtime="engine", batch=batch)
        for batch in (64, 128)
    )
    assert_close(more.total.energy_j / 2.0, one.total.energy_j, rel=1e-3)
    assert one.total.units_used_count < one.total.units_total_count
    assert not one.document().answer.startswith(RAISE)
    assert not any(FEW_TILES in line for line in list_reasons(one))
