"""Facts of contests: wins are those of the rows, the best in all is that of the runs; first lines are short."""

from __future__ import annotations

from collections import Counter

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Win
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision
from joulemap.show.win import (
    describe_parts,
    list_part_reasons,
)
from joulemap.workspace import Workspace

CHIPS = ("l4", "t4", "raspberry_pi_5")


def win(
    run_id: int, count: int, tied: int = 0, *, level: ModelDivision = "subgraph", metric: str = "edp", total: int = 9
) -> Win:
    kinds = (("conv2d", count, total),) if count else ()
    return Win(runs=(run_id,), metric=metric, level=level, count=count, total=total, tied=tied, kinds=kinds)


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["subgraph", "operator"])
@pytest.mark.parametrize("metric", PART_METRICS)
def test_wins_are_those_of_the_rows(level: ModelDivision, metric: PartMetricName, workspace: Workspace) -> None:
    answer = workspace.compare_parts("mlperf_tiny_ic", by=level, metric=metric, hardware=CHIPS, precision="int8")
    wins = {answer.facts.runs[one.runs[0]].hardware: one for one in answer.facts.of(Win)}
    first = [row for row in answer.rows if row.rank == 1]
    assert {row.hardware for row in first if row.tied_count == 1} <= {*wins}
    for name, one in wins.items():
        best = [row for row in answer.rows if row.hardware == name and row.rank <= row.tied_count]
        assert one.count == sum(row.tied_count == 1 for row in best)
        assert (one.tied, one.total) == (len(best) - one.count, len({row.part_index for row in answer.rows}))
        kinds = Counter(row.kind for row in best if row.tied_count == 1)
        assert {kind: won for kind, won, _ in one.kinds} == kinds
    for choice in answer.facts.of(Choice):
        own = sum(row.value for row in answer.rows if row.run_id == choice.runs[0])
        other = sum(row.value for row in answer.rows if row.run_id == choice.runs[1])
        assert_close(choice.value.value, own)
        assert_close(choice.ratio, other / own)
    assert bool(answer.facts.of(Choice)) == (metric != "memory")  # off-chip bytes are no metric of a run


def test_available_hardware_wins_among_itself_and_other_hardware_among_all(workspace: Workspace) -> None:
    chips = ["l4", "t4", "kpu_t256"]
    answer = workspace.compare_parts("conv_block", metric="edp", hardware=chips, precision="int8")
    wins = {answer.facts.runs[one.runs[0]].hardware: one for one in answer.facts.of(Win)}
    had = [one for name, one in wins.items() if name != "kpu_t256"]
    assert sum(one.count for one in had) == had[0].total
    assert "kpu" not in describe_parts(answer.facts)
    assert "~kpu_t256" in list_part_reasons(answer.facts)[-1]


@pytest.mark.slow
def test_one_available_chip_competes_with_what_cannot_be_bought(workspace: Workspace) -> None:
    models = ["mlperf_tiny_ic", "conv_block"]
    answer = workspace.compare_models(models, metric="edp", hardware=["l4", "kpu_t256"], precision="int8")
    assert {len(one.runs) for one in answer.facts.of(Choice)} <= {1, 2}  # one of these chips can be bought
    assert [one.count for one in answer.facts.of(Win)] == [2, 2]  # among what can be bought, and among all
