"""Facts of fusion: patterns sum to what it saves, every group of subgraphs has its cause, the first line is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from compare import assert_close
from joulemap.ask.fact import Change, Entry, Facts, Quantity, Subject, Term
from joulemap.ask.fusion import FusionAnswer, find_costs, find_unfused
from joulemap.generated.fusion import FusionSubgraph
from joulemap.show.fusion import CAUSES, describe_saving, list_reasons
from joulemap.workspace import Workspace

RUNS = {7: Subject(hardware="a_chip_of_28_characters_here@60W", is_available=False)}


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> FusionAnswer:
    return workspace.fusion("mlperf_tiny_ic", "l4")


def make_facts(energy: float, latency: float, *, fused: int = 3, subgraphs: int = 1000) -> Facts:
    """Return facts of a run that needs these shares of the separate energy and latency."""
    amounts = {"energy": energy, "latency": latency, "edp": energy * latency, "dram_bytes": 1.0, "moved_bytes": 0.5}
    changes = [
        Change(runs=(7, 7), metric=name, before=Quantity(1.0), after=Quantity(after), cause="fusion")
        for name, after in amounts.items()
    ]
    counts = {"subgraphs": subgraphs, "fused_subgraphs": fused}
    kernels = Change(
        runs=(7, 7), metric="kernels", before=Quantity(1740.0), after=Quantity(560.0), cause="fusion", values=counts
    )
    terms = [
        Term(runs=(7, 7), level="pattern", quantity="energy", name=name, amounts=(Quantity(1.0), Quantity(0.5)),
             difference=Quantity(-0.5, "J"))
        for name in ("conv2d+relu", "linear")
    ]  # fmt: skip
    return Facts(asked=("energy", "latency"), runs=RUNS, facts=(*changes, kernels, *terms))


def test_gains_and_costs_are_told_apart() -> None:
    told = describe_saving(make_facts(0.75, 1.5))
    assert told.index("25.0 % of the energy") < told.index("costs 50.0 % of the time")
    assert list_reasons(make_facts(1.5, 1.5))[0].count("50.0 %") == 1  # no pattern leads where fusion loses


def test_patterns_sum_to_what_fusion_saves(answer: FusionAnswer) -> None:
    total = answer.total
    terms = [one for one in answer.facts.of(Term) if one.level == "pattern"]
    for quantity, saved in (("energy", total.saved_energy_fj), ("time", total.saved_latency_fs)):
        own = [one for one in terms if one.quantity == quantity]
        assert sum(one.exact or 0 for one in own) == -saved
        assert_close(sum(abs(one.share or 0.0) for one in own), 1.0)
    changes = {one.metric: one for one in answer.facts.of(Change) if one.cause == "fusion"}
    assert (changes["energy"].before.value, changes["energy"].after.value) == (total.separate_energy_j, total.energy_j)
    assert changes["kernels"].after.value == sum(row.kernel_count for row in answer.patterns)
    (entry,) = answer.facts.of(Entry)
    assert entry.runs == (total.run_id,) and entry.values["latency"].value == total.latency_s


def make_rows(answer: FusionAnswer, **values: Any) -> Sequence[FusionSubgraph]:
    return [answer.subgraphs[0].replace(**values)]


def find_saved(changes: Sequence[Change]) -> dict[str, float]:
    return {one.metric: one.before.value - one.after.value for one in changes}


@pytest.mark.parametrize(
    ("values", "whole", "cause"),
    [
        ({"pass_bytes": 1e9}, {}, "passed"),
        ({}, {"clock_fraction": 0.5}, "capped"),
        ({"saved_dram_bytes": -1.0}, {}, "streamed"),
        ({}, {}, "busier"),
    ],
)
def test_a_cost_has_its_cause(values: dict[str, Any], whole: dict[str, Any], cause: str, answer: FusionAnswer) -> None:
    total = answer.total.replace(**{"clock_fraction": 1.0, "separate_clock_fraction": 1.0, **whole})
    given = {"pass_bytes": 0.0, "separate_pass_bytes": 0.0, "saved_dram_bytes": 0.0, "saved_edp_share_js": -1.0}
    saved = {"saved_energy_fj": -1, "saved_energy_j": -1e-3, "saved_latency_fs": 2, "saved_latency_s": 2e-3}
    rows = make_rows(answer, kernel_count=1, separate_kernel_count=2, **{**given, **saved, **values})
    costs = find_costs(rows, total)
    assert {one.cause for one in costs} == {cause} and cause in CAUSES
    assert_close(find_saved(costs)["energy"], -1e-3)
    assert_close(find_saved(costs)["latency"], 2e-3)
    assert {one.values["worst"] for one in costs} == {rows[0].name}
    # of two with different losses, the larger one is named; of two equal ones, none is
    second = rows[0].replace(name="other", subgraph_index=99, saved_edp_share_js=-2.0)
    assert {one.values["worst"] for one in find_costs([rows[0], second], total)} == {"other"}
    alike = find_costs([rows[0], rows[0]], total)
    assert {one.values["worst"] for one in alike} == {None} and {one.values["subgraphs"] for one in alike} == {2}


@pytest.mark.parametrize(
    ("values", "whole", "cause"),
    [
        ({}, {"separate_runtime": "eager"}, "launched"),
        ({"separate_pass_bytes": 8.0}, {}, "merged"),
        ({"saved_dram_bytes": 8.0}, {}, "cached"),
        ({}, {"clock_fraction": 0.5}, "capped"),
        ({}, {}, "compiled"),
    ],
)
def test_a_change_without_fusing_has_its_cause(
    values: dict[str, Any], whole: dict[str, Any], cause: str, answer: FusionAnswer
) -> None:
    total = answer.total.replace(**{"clock_fraction": 1.0, "separate_clock_fraction": 1.0, **whole})
    given = {"pass_bytes": 0.0, "separate_pass_bytes": 0.0, "saved_dram_bytes": 0.0}
    saved = {"saved_energy_fj": total.energy_fj, "saved_energy_j": 2e-3, "saved_latency_fs": 1, "saved_latency_s": 1e-3}
    rows = make_rows(answer, kernel_count=1, separate_kernel_count=1, **{**given, **saved, **values})
    unfused = find_unfused(rows, total)
    assert {one.cause for one in unfused} == {cause} and cause in CAUSES
    assert {one.values["part"] for one in unfused} == {"unfused"}
    own = [one for one in answer.facts.facts if not (isinstance(one, Change) and "part" in one.values)]
    lines = list_reasons(Facts(asked=answer.facts.asked, runs=answer.facts.runs, facts=(*own, *unfused)))
    assert any("2 mJ and 1 ms less" in one for one in lines)
    small = make_rows(
        answer, kernel_count=1, separate_kernel_count=1, **{**given, **saved, "saved_energy_fj": 1, **values}
    )
    assert find_unfused(small, total) == []
