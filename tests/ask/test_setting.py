"""Facts on the settings of a question: codes and values of refusals, and rules on budgets, the wall and engines."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.ask.fact import Caveat, Facts, Quantity, Refusal
from joulemap.show.page import to_plain
from joulemap.show.refusal import ENCLOSED, SHORT, describe_refusal
from joulemap.workspace import Workspace


def find(facts: Facts, kind: str) -> list[Caveat]:
    return [one for one in facts.of(Caveat) if one.kind == kind]


def name(facts: Facts, caveat: Caveat) -> set[str]:
    return {facts.runs[one].hardware for one in caveat.runs}


def test_a_refusal_has_its_code_and_values_from_where_it_was_found(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=["l4", "h100_sxm5", "t4"], precision="bf16")
    (lacking,) = answer.facts.of(Refusal)
    assert (lacking.code, lacking.hardware, lacking.is_available) == ("precision", ("t4",), True)
    assert lacking.values["precision"] == "bf16" and "bf16" not in lacking.values["supported"]
    assert [answer.facts.runs[one].hardware for one in lacking.runs] == ["t4"]
    supported = ", ".join(lacking.values["supported"])
    assert describe_refusal(lacking) == f"t4 has no bf16; it has {supported}"
    assert describe_refusal(lacking, SHORT) == "t4 has no bf16"
    assert describe_refusal(lacking, ENCLOSED) == f"t4 has no bf16 (it has {supported})"
    plain = to_plain(lacking)
    assert (plain["code"], plain["values"]["precision"]) == ("precision", "bf16")
    stored = workspace.sql("SELECT hardware, refusal_code, refusal_values FROM refused_runs").records()
    assert any(row["refusal_code"] == "precision" and '"bf16"' in row["refusal_values"] for row in stored)


def test_a_model_beyond_the_memory_states_both_sizes(workspace: Workspace) -> None:
    # 16 M fp32 weights of a product are 64 MiB; the input has 4096 numbers and so has the output
    answer = workspace.compare("gemm(m=1,n=4096,k=4096)", hardware=["l4", "sony_imx500"], precision="int8")
    (short,) = answer.facts.of(Refusal)
    assert (short.code, short.hardware) == ("memory", ("sony_imx500",))
    assert_close(short.values["required_bytes"], 4096.0 * 4096 + 2 * 4096, rel=1e-6)
    assert 8e6 < short.values["capacity_bytes"] < 9e6


def test_a_budget_is_a_fact_and_so_is_each_chip_beyond_it(workspace: Workspace) -> None:
    facts = workspace.compare("resnet18", hardware=["l4", "h100_sxm5"], precision="fp16", power_budget_w=80.0).facts
    (budget,) = find(facts, "power_budget")
    assert (budget.values["limit_w"], budget.weight, budget.runs) == (80.0, 0.0, ())
    (beyond,) = facts.of(Refusal)
    least = beyond.values["least"]
    assert (beyond.code, beyond.runs, beyond.hardware) == ("budget", (), ("h100_sxm5",))
    assert isinstance(least, Quantity) and (least.unit, least.value > 80.0) == ("W", True)


def test_the_wall_adds_its_growth_and_a_share_of_the_host(workspace: Workspace) -> None:
    # a server of eight boards draws 1.25 W per watt of its boards, and 700 W for its host
    facts = workspace.compare("resnet18", hardware=["h100_sxm5", "l4"], precision="fp16", boundary="system").facts
    by_chip = {chip: one for one in find(facts, "walled") for chip in name(facts, one)}
    h100, l4 = by_chip["h100_sxm5"].values, by_chip["l4"].values
    assert (h100["growth_ratio"], h100["board_count"], l4["board_count"]) == (1.25, 8, 4)
    assert isinstance(h100["host"], Quantity) and isinstance(l4["host"], Quantity)
    assert_close(h100["host"].value, 700.0 / 8.0)
    assert_close(l4["host"].value, 180.0 / 4.0)


@pytest.mark.slow
def test_engines_are_named_where_a_choice_exists(workspace: Workspace) -> None:
    facts = workspace.compare("resnet18", hardware=["l4", "hailo_8"], precision="int8", runtime="engine").facts
    assert {(str(one.values["engine"]), *name(facts, one)) for one in find(facts, "engine")} == {("TensorRT", "l4")}
    mixed = workspace.compare("resnet18", hardware=["l4", "hailo_8"], precision="int8").facts
    assert [name(mixed, one) for one in find(mixed, "compiler")] == [{"hailo_8"}]
    assert [name(mixed, one) for one in find(mixed, "deployed")] == [{"l4"}]
    alike = workspace.compare("resnet18", hardware=["l4", "t4"], precision="int8").facts
    assert not find(alike, "compiler") and not find(alike, "deployed")


@pytest.mark.slow
def test_stored_weights_are_a_fact_of_their_format(workspace: Workspace) -> None:
    pair = ["l4", "h100_sxm5"]
    facts = workspace.compare("resnet18", hardware=pair, precision="fp16", weight_precision="int4").facts
    (stored,) = find(facts, "stored")
    assert str(stored.values["format"]).split()[0] == "int4" and not stored.runs
    assert not find(workspace.compare("resnet18", hardware=pair, precision="fp16").facts, "stored")
