"""Facts of an energy-delay product: the sums, parts and savings of the rows."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.ask.edp import EdpAnswer
from joulemap.ask.fact import Choice
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
    assert_close(choice.ratio, second / first)
    assert not answer.facts.runs[beyond.runs[0]].is_available and beyond.runs[1] == choice.runs[0]
    assert choice.probability is not None and 0.0 < choice.probability < 1.0
