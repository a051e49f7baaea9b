"""Facts of a recommendation: the choice is that of the rows, limits have their misses, and other orders their turns."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import get_args

import pytest

from compare import assert_close
from joulemap.ask.candidate import find_chip
from joulemap.ask.fact import Caveat, Choice, Facts, Limit, Quantity, Subject, Supply, Term, Turn
from joulemap.ask.recommend import RecommendAnswer
from joulemap.domain.metric import MetricName
from joulemap.domain.settings import Limits, Settings
from joulemap.show.caveat import describe_trust, rank_caveats
from joulemap.show.pareto import list_reasons as list_front_reasons
from joulemap.show.recommend import describe_recommendation, list_reasons
from joulemap.show.view import draw
from joulemap.workspace import Workspace

CHIPS = ("l4", "t4", "h100_sxm5", "kpu_t256")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")

Question = tuple[str, Settings, MetricName, Limits]

QUESTIONS: tuple[Question, ...] = (
    ("resnet18", Settings(hardware=CHIPS), "energy_per_inference", Limits(max_latency_s=2e-3)),
    ("resnet18", Settings(hardware=CHIPS), "throughput", Limits()),
    ("resnet18", Settings(hardware=CHIPS), "memory", Limits()),
    ("resnet18", Settings(hardware=CHIPS), "cost", Limits(max_price_usd_per_hour=1.0)),
    ("resnet18", Settings(hardware=CHIPS), "energy", Limits(max_latency_s=1e-9, max_power_w=1e-3)),
    ("resnet18", Settings(hardware=("kpu_t256", "l4")), "energy_per_inference", Limits(max_power_w=20.0)),
    ("resnet18", Settings(hardware=("l4",)), "edp_per_inference", Limits()),
    ("conv_block", Settings(hardware=("stm32u575", "raspberry_pi_5"), precision="int8"), "carbon", Limits()),
    ("mobilenet_v2", Settings(hardware=("rdk_x5", "hailo_8", "raspberry_pi_5"), scenario="camera", precision="int8"),
     "energy_per_inference", Limits(min_throughput_per_s=10.0)),
)  # fmt: skip


def ask(question: Question, workspace: Workspace) -> RecommendAnswer:
    model, settings, objective, limits = question
    return workspace.recommend(model, settings, objective=objective, limits=limits)


@pytest.mark.sample(2)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: f"{one[0]}-{one[2]}")
def test_the_choice_is_the_first_row_and_the_rival_the_next_chip(question: Question, workspace: Workspace) -> None:
    """The first line that says so is short."""
    answer = ask(question, workspace)
    told = draw(answer).answer
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(re.sub(r"[a-z]\w*@?\w*", "chip", told))) <= 5
    ranked = [row for row in answer.rows if row.rank is not None]
    choices = answer.facts.of(Choice)
    assert bool(choices) == bool(ranked)
    if not ranked:
        return
    choice, best = choices[0], ranked[0]
    others = [row for row in ranked if find_chip(row) != find_chip(best)]
    assert choice.runs[0] == best.run_id
    assert choice.runs[1:2] == tuple(row.run_id for row in others[:1])
    assert_close(choice.value.value, best.objective_value)
    if others and best.probability_best is not None:
        own = [row.probability_best or 0.0 for row in answer.rows if find_chip(row) == find_chip(best)]
        firsts = {find_chip(row): row for row in reversed(others)}.values()
        pairs = [1.0 - row.probability_better for row in firsts if row.probability_better is not None]
        assert_close(choice.probability, min(math.fsum(own), *pairs))  # no surer than any pair
        assert_close(choice.ratio, others[0].objective_ratio)
    likely = {find_chip(row) for row in answer.rows if row.likely_best}
    assert {answer.facts.runs[one].hardware.partition("@")[0] for one in choice.tied} <= likely


def test_the_nearest_miss_has_the_factor_of_each_limit(workspace: Workspace) -> None:
    answer = ask(QUESTIONS[4], workspace)
    nearest = answer.nearest_miss
    assert nearest is not None and not answer.facts.of(Choice)
    limits = answer.facts.of(Limit)
    assert {one.metric for one in limits} == {"latency", "power"}
    first = limits[0]
    assert first.value is not None and first.miss is not None and limits[1].miss is not None
    assert (first.runs, first.metric) == ((nearest.run_id,), nearest.worst_limit)
    assert_close(math.expm1(first.miss), nearest.violation_fraction)
    assert first.miss >= limits[1].miss > 0.0
    assert_close(first.value.value / first.bound.value, math.exp(first.miss))
    missed = {(row.hardware.partition("@")[0], row.limit_name) for row in answer.violations}
    for one in limits:
        assert one.missed_count == sum(name == one.metric and chip != find_chip(nearest) for chip, name in missed)


def test_an_unavailable_chip_within_the_limit_is_named_beside_the_limit_that_others_miss(workspace: Workspace) -> None:
    facts = ask(QUESTIONS[5], workspace).facts
    (choice, *_), (limit,) = facts.of(Choice), facts.of(Limit)
    assert not facts.runs[choice.runs[0]].is_available
    assert facts.runs[limit.runs[0]].hardware.startswith("l4")
    assert limit.miss is not None and limit.miss > 0.0


def test_a_looser_limit_turns_the_choice_where_a_better_chip_meets_it(workspace: Workspace) -> None:
    free = workspace.recommend("resnet18", hardware=CHIPS, precision="int8")
    assert free.best is not None and free.best.latency_s is not None
    bound = free.best.latency_s * 0.999
    answer = workspace.recommend("resnet18", hardware=CHIPS, precision="int8", limits=Limits(max_latency_s=bound))
    (turn,) = (one for one in answer.facts.of(Turn) if one.axis == "latency")
    assert isinstance(turn.after, Quantity) and isinstance(turn.before, Quantity) and turn.ratio is not None
    assert_close(turn.before.value, bound)
    row = next(row for row in answer.rows if row.run_id == turn.runs[0])
    assert_close(turn.after.value, row.latency_s)
    assert answer.best is not None and row.objective_value is not None
    assert_close(turn.ratio, (answer.best.objective_value or 0.0) / row.objective_value)


def test_without_hosts_another_chip_may_lead(workspace: Workspace) -> None:
    answer = workspace.recommend("mobilenet_v2", hardware=["hailo_8", "sony_imx500"], precision="int8", batch=1)
    other = answer.best_without_host
    assert answer.best is not None and other is not None and find_chip(other) != find_chip(answer.best)
    (turn,) = (one for one in answer.facts.of(Turn) if one.axis == "host")
    assert turn.runs == (other.run_id, answer.best.run_id)
    assert turn.value is not None
    assert_close(turn.value.value, other.hostless_value)
    hosts = [one for one in answer.facts.of(Caveat) if one.kind == "counted"]
    assert {run for one in hosts for run in one.runs} == {
        row.run_id for row in answer.rows if row.rank == 1 or row is other
    }


def test_chips_without_a_price_are_weighed_by_the_best_of_them(workspace: Workspace) -> None:
    answer = workspace.recommend("resnet18", hardware=["l4", "hailo_8"], limits=Limits(max_price_usd_per_hour=1.0))
    (caveat,) = (one for one in answer.facts.of(Caveat) if one.kind == "unpriced")
    rows = [row for row in answer.rows if row.run_id == caveat.runs[0]]
    assert [row.hardware for row in rows] == ["hailo_8"] and answer.best is not None
    lead = (answer.best.objective_value or 0.0) / (rows[0].objective_value or 1.0)
    assert_close(caveat.weight, max(0.0, math.log(lead)))


def test_causes_add_up_to_the_gap_with_its_hosts(workspace: Workspace) -> None:
    answer = workspace.recommend("resnet18", hardware=["l4", "t4", "h100_sxm5"], precision="int8")
    causes = answer.facts.of(Term)
    best, rival = (next(row for row in answer.rows if row.run_id == one) for one in causes[0].runs)
    assert_close(math.fsum(one.share or 0.0 for one in causes), 1.0)
    alone = (rival.hostless_value or 0.0) - (best.hostless_value or 0.0)
    assert_close(math.fsum(one.difference.value for one in causes), alone)  # hosts of an equal share are no cause


def test_what_else_is_stored_changes_no_reason(tmp_path: Path) -> None:
    own = Workspace(tmp_path / "own.duckdb")
    chips = Settings(hardware=("coral_edge_tpu", "hailo_8"), precision=("int8",), runtime=("engine",), batch=(1,))
    told = []
    for chip in ("", "coral_edge_tpu", "hailo_8"):
        if chip:
            own.analyze("resnet18", chip, precision="int8", runtime="engine", batch=1)
        answers = own.recommend("resnet18", chips, objective="latency"), own.pareto("resnet18", chips, y="edp")
        told.append([list_reasons(answers[0].facts), list_front_reasons(answers[1].facts)])
    assert told[0] == told[1] == told[2] and told[0][0]


def test_a_battery_lasts_its_energy_over_the_average_power(workspace: Workspace) -> None:
    asked = Settings(scenario="coin_cell", precision="int8")
    answer = workspace.recommend("mlperf_tiny_kws", asked, limits=Limits(min_throughput_per_s=1.0))
    (supply,) = answer.facts.of(Supply)
    assert answer.best is not None and answer.best.total_power_w
    assert_close(supply.life.value, 0.675 * 3600.0 / answer.best.total_power_w)  # 225 mAh at 3 V


def make_facts(*facts: Choice | Limit | Caveat, count: int = 7) -> Facts:
    runs = {one: Subject(hardware=f"chip_{one}", settings=("int8", f"batch {one}")) for one in range(1, count)}
    return Facts(asked=("energy_per_inference",), runs=runs, facts=facts)


def test_a_decision_within_uncertain_limits_says_so() -> None:
    choice = Choice(runs=(1, 2), metric="energy", value=Quantity(1.0, "J"), ratio=2.0)
    kept = Caveat(kind="kept", runs=(1,), values={"probability": 0.6}, weight=math.inf)
    sure = Caveat(kind="kept", runs=(1,), values={"probability": 0.99}, weight=0.0)
    assert rank_caveats(make_facts(choice, kept)) == [(kept, True)]
    assert rank_caveats(make_facts(choice, sure)) == []
    assert "60 %" in describe_trust(make_facts(choice, kept))


def test_other_missed_limits_are_named_after_the_largest() -> None:
    limits = [
        Limit(runs=(1,), metric="latency", bound=Quantity(1.0, "s"), value=Quantity(3.0, "s"), miss=math.log(3.0)),
        Limit(runs=(1,), metric="power", bound=Quantity(1.0, "W"), value=Quantity(2.0, "W"), miss=math.log(2.0)),
        Limit(runs=(1,), metric="memory", bound=Quantity(1.0, "B"), value=Quantity(1.0, "B"), miss=0.0),
    ]
    facts = make_facts(*limits)
    assert "3x the limit of 1 s" in describe_recommendation(facts)
    (line,) = list_reasons(facts)
    assert "power" in line and "memory" not in line


def test_every_metric_is_drawn_as_an_objective(workspace: Workspace) -> None:
    for objective in get_args(MetricName):
        answer = workspace.recommend("conv_block", Settings(hardware=("l4", "h100_sxm5")), objective=objective)
        assert draw(answer).tables[0].rows


@pytest.mark.parametrize(("objective", "told"), [("cost", "joulemap cost "), ("edp", "--metric edp"), ("energy", "")])
def test_the_next_command_compares_by_the_objective(objective: MetricName, told: str, workspace: Workspace) -> None:
    answer = workspace.recommend("resnet50", hardware=["rv1126b_npu", "hailo_8"], objective=objective)
    (step, *_) = answer.document().data["next_steps"]
    assert told in step or len(answer.tied_pair) < 2
