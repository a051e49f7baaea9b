"""Facts of runs divided into parts: shares that sum to the run, and what a first line says of them."""

from __future__ import annotations

import math

import pytest

from compare import assert_close
from joulemap.ask.fact import Caveat, Choice, Entry, Share
from joulemap.show.analyze import ANALYZE
from joulemap.show.part import describe_least, describe_parts, describe_ranges
from joulemap.workspace import Workspace


@pytest.mark.sample(1)
@pytest.mark.parametrize("hardware", ["l4", "kpu_t256"])
def test_shares_of_a_run_sum_to_it(hardware: str, workspace: Workspace) -> None:
    answer = workspace.analyze("resnet18", hardware, precision="bf16", batch=8)
    shares = answer.facts.of(Share)
    for metric, level in (("energy", "category"), ("time", "bottleneck")):
        fractions = [one.share for one in shares if (one.metric, one.level) == (metric, level)]
        assert fractions == sorted(fractions, reverse=True)
        assert_close(math.fsum(fractions), 1.0, rel=1e-9)
    largest = max(answer.subgraphs, key=lambda row: row.energy_fj)
    assert {one.name for one in shares if one.level == "subgraph"} == {largest.name}
    (entry,) = answer.facts.of(Entry)
    assert (entry.values["energy"].value, entry.values["latency"].value) == (
        answer.total.energy_j, answer.total.latency_s)  # fmt: skip
    first = ANALYZE.tell(answer.facts, per="batch")
    assert len(first.split()) <= 25 and " per batch" in first
    assert describe_ranges(answer.facts)
    assert not [one for one in answer.facts.of(Caveat) if one.kind == "uncalibrated"]  # nothing is compared


def test_parts_of_each_run_are_largest_first(workspace: Workspace) -> None:
    answer = workspace.compare_breakdowns(["resnet18"], hardware=["l4", "h100_sxm5", "tpu_v4"], precision="bf16")
    for run_id in answer.scope.evaluated_ids:
        mine = [one for one in answer.facts.of(Share) if one.runs == (run_id,)]
        assert_close(math.fsum(one.share for one in mine), 1.0, rel=1e-9)
        assert mine[0].share == max(one.share for one in mine)
    assert len(describe_parts(answer.facts, "category", "the subgraphs").split()) <= 25
    several = workspace.compare_breakdowns(["resnet18", "alexnet"], hardware="l4", precision="bf16")
    assert [one.settings for one in several.facts.runs.values()] == [("resnet18",), ("alexnet",)]


@pytest.mark.slow
def test_the_least_energy_of_whole_runs(workspace: Workspace) -> None:
    answer = workspace.compare_runs(["resnet18"], hardware=["l4", "tpu_v4", "kpu_t256"], precision="bf16")
    choice, beyond = answer.facts.of(Choice)
    energies = {row.run_id: row.energy_j or 0.0 for row in answer.rows}
    own = {run_id: one for run_id, one in energies.items() if answer.facts.runs[run_id].is_available}
    assert choice.runs[0] == min(own, key=lambda one: own[one])
    assert choice.probability is not None
    assert beyond.runs == (min(energies, key=lambda one: energies[one]), choice.runs[0])
    only = workspace.compare_runs(["resnet18"], hardware=["l4", "kpu_t256"], precision="bf16")
    assert only.facts.of(Choice)[0].runs[0] == only.rows.rows[1].run_id  # one available chip: all compete
    models = workspace.compare_runs(["resnet18", "alexnet"], hardware="l4", precision="bf16")
    assert not models.facts.of(Choice)
    assert len(describe_least(models.facts).split()) <= 25
