"""Facts of an energy-delay product: the sums, parts and savings of the rows."""

from __future__ import annotations

import attrs
import pytest

from compare import assert_close
from joulemap.ask.edp import EdpAnswer, find_facts
from joulemap.ask.fact import Change, Choice, Entry, Share
from joulemap.ask.scope import Scope
from joulemap.show.edp import EDP
from joulemap.store.connection import reading
from joulemap.workspace import Workspace


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> EdpAnswer:
    return workspace.edp("resnet18", "l4", precision="bf16", against=["h100_sxm5", "kpu_t256"])


def test_the_choice_is_the_least_sum_of_all_parts(answer: EdpAnswer) -> None:
    sums: dict[int, float] = {}
    for row in answer.comparison:
        sums[row.run_id] = sums.get(row.run_id, 0.0) + row.edp_share_js
    choice, beyond = answer.facts.of(Choice)
    own = {run_id: one for run_id, one in sums.items() if answer.facts.runs[run_id].is_available}
    assert choice.runs == tuple(sorted(own, key=lambda one: own[one]))
    first, second = sorted(own.values())
    assert_close(choice.ratio or 0.0, second / first, rel=1e-9)
    assert not answer.facts.runs[beyond.runs[0]].is_available and beyond.runs[1] == choice.runs[0]
    assert choice.probability is not None and 0.0 < choice.probability < 1.0


def test_wins_are_counted_once_per_subgraph(answer: EdpAnswer) -> None:
    wins = [one for one in answer.facts.of(Share) if one.metric == "wins"]
    assert sum(one.count for one in wins) == wins[0].total == len(answer.subgraphs)
    for one in wins:
        assert one.count == sum(row.is_best and row.run_id == one.runs[0] for row in answer.comparison)


def test_half_of_the_product_is_in_the_fewest_subgraphs(answer: EdpAnswer) -> None:
    (half,) = (one for one in answer.facts.of(Share) if (one.metric, one.level) == ("edp", "subgraph"))
    shares = sorted((row.share_fraction for row in answer.subgraphs), reverse=True)
    assert sum(shares[: half.count]) >= 0.5 > sum(shares[: half.count - 1])
    assert_close(half.share, sum(shares[: half.count]), rel=1e-9)


def test_changes_are_those_that_save_or_cost_enough(answer: EdpAnswer, workspace: Workspace) -> None:
    total, bound = answer.total, answer.bounds[0]
    changes = {one.cause: one for one in answer.facts.of(Change)}
    assert set(changes) == {bound.remedy, "fusion", "halving"}
    assert changes[bound.remedy].after.value == bound.edp_js
    assert (changes["fusion"].before.value, changes["fusion"].after.value) == (total.separate_edp_js, total.edp_js)
    saved = 1.0 - changes["halving"].after.value / total.edp_js
    assert_close(saved, answer.subgraphs[0].halving_fraction, rel=1e-9)

    def change(least: float, runtime: str, separate: float) -> set[str]:
        run = total.replace(runtime=runtime, separate_edp_js=separate * total.edp_js)
        bounds = [row.replace(saving_fraction=least) for row in answer.bounds]
        with reading(workspace.path) as connection:
            facts = find_facts(
                Scope.of_runs(connection, [total.run_id]),
                totals=[run],
                cuts=answer.cuts,
                subgraphs=answer.subgraphs.rows,
                patterns=answer.patterns.rows,
                bounds=bounds,
                comparison=(),
            )
        return {one.cause for one in facts.of(Change)}

    assert change(0.009, "fused", 1.0) == {"halving"}
    assert change(0.009, "fused", 0.5) == {"fusion", "halving"}
    assert change(0.009, "eager", 0.5) == {"launch", "halving"}
    assert change(0.009, "eager", 2.0) == {"halving"}
    assert change(0.011, "graph", 0.5) == {bound.remedy, "halving"}


def test_words_of_a_fusion_that_costs(answer: EdpAnswer) -> None:
    fusion = next(one for one in answer.facts.of(Change) if one.cause == "fusion")
    turned = attrs.evolve(fusion, before=fusion.after, after=fusion.before)
    for change, verb in ((fusion, "saves"), (turned, "costs")):
        facts = attrs.evolve(answer.facts, facts=(*answer.facts.of(Choice), *answer.facts.of(Entry), change))
        assert any(verb in one for one in EDP.explain(facts))


@pytest.mark.slow
def test_a_first_line_is_short(answer: EdpAnswer, workspace: Workspace) -> None:
    alone = workspace.edp("mlp", "l4", precision="bf16")
    for facts in (answer.facts, alone.facts):
        assert len(EDP.tell(facts).split()) <= 25
