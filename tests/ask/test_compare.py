"""Facts of a comparison: winner, rival, ratios and causes are those of the rows, and weights follow the rules."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from compare import assert_close
from joulemap.ask import compare as summary
from joulemap.ask.compare import CompareAnswer
from joulemap.ask.decision import decide
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Quantity, Refusal, Subject, Term
from joulemap.ask.finding import Finding
from joulemap.ask.rule import find_bias, weigh
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.compare import Comparison
from joulemap.physics.record.configuration import Precision
from joulemap.prediction import predict
from joulemap.show.caveat import describe_trust, list_notes, rank_caveats
from joulemap.show.choice import describe_answer
from joulemap.show.compare import EDP, lay_figures
from joulemap.store import query
from joulemap.store.connection import Connection
from joulemap.workspace import Workspace

CHIPS = ("l4", "t4", "h100_sxm5")

QUESTIONS: tuple[tuple[str, tuple[str, ...], tuple[int, ...], Precision], ...] = (
    ("resnet18", CHIPS, (1,), "fp16"),
    ("mobilenet_v2", ("h100_sxm5", "l4", "raspberry_pi_5"), (1,), "int8"),
    ("conv_block", ("stm32u575", "xuantie_c906", "raspberry_pi_5"), (1,), "int8"),
    ("resnet18", ("l4", "h100_sxm5"), (1, 8), "fp16"),
    ("resnet18", ("hailo_8", "jetson_orin_nano_8gb"), (1,), "int8"),
    ("resnet50", ("l4",), (1,), "bf16"),
    ("resnet18", ("l4", "kpu_t256", "tpu_v4"), (1,), "int8"),
)


def ask(question: tuple[str, tuple[str, ...], tuple[int, ...], Precision], workspace: Workspace) -> CompareAnswer:
    model, hardware, batch, precision = question
    return workspace.compare(model, hardware=hardware, batch=batch, precision=precision)


@pytest.mark.sample(2)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: "-".join((one[0], *one[1])))
def test_choices_are_the_order_of_the_rows(
    question: tuple[str, tuple[str, ...], tuple[int, ...], Precision], workspace: Workspace
) -> None:
    answer = ask(question, workspace)
    rows = {row.run_id: row for row in answer.answered}
    firsts = {one.runs[0] for one in answer.facts.of(Choice)}
    for one in answer.facts.of(Choice):
        if not answer.facts.runs[one.runs[0]].is_available or len(one.runs) < 2:
            continue
        columns = {"latency": "latency_s", "energy": "energy_j", "throughput": "throughput_per_s"}
        column = columns.get(one.metric, "energy_per_inference_j")
        among = [row for row in rows.values() if answer.facts.runs[row.run_id].is_available]
        ranked = sorted(among, key=lambda row: getattr(row, column), reverse=one.metric == "throughput")
        assert one.runs[0] == ranked[0].run_id
        assert_close(one.value.value, getattr(ranked[0], column))
        rival = next((row for row in ranked if row.hardware != ranked[0].hardware), ranked[1])
        assert one.runs[1] in {rival.run_id, *firsts}  # a trade-off faces the best by another metric
        ratio = getattr(rows[one.runs[1]], column) / getattr(ranked[0], column)
        assert_close(one.ratio, 1.0 / ratio if one.metric == "throughput" else ratio)
    entries = {one.runs[0]: one.values for one in answer.facts.of(Entry)}
    assert entries.keys() == rows.keys()
    for run_id, row in rows.items():
        assert_close(entries[run_id]["energy"].value, row.energy_j)


def test_a_chip_that_nobody_sells_never_wins_against_one_that_is_sold(workspace: Workspace) -> None:
    answer = workspace.compare("conv_block", hardware=["l4", "t4", "kpu_t256"])
    runs = answer.facts.runs
    own, *others = answer.facts.of(Choice)
    assert runs[own.runs[0]].is_available
    assert [one for one in others if not runs[one.runs[0]].is_available]
    assert "kpu" not in describe_answer(answer.facts)
    assert "kpu" not in describe_trust(answer.facts)


@pytest.mark.slow
def test_equal_chips_are_named_together(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=["l4", "l4@60W"], precision="fp16")  # draws less than either limit
    (first, *_) = answer.facts.of(Choice)
    assert set(first.equal) == {row.run_id for row in answer.answered}


@pytest.mark.parametrize(
    ("moves", "weight"),
    [
        ({1: (0.3, 0.0), 2: (0.3, 0.0)}, 0.0),  # both lack the same host
        ({1: (0.3, 0.0)}, 0.3),
        ({1: (0.5, 0.0), 2: (0.1, 0.0)}, 0.4),
        ({1: (0.0, 0.3), 2: (0.0, 0.4)}, 0.5),  # independent errors add as squares
        ({3: (0.9, 0.9)}, 0.0),  # neither winner nor rival
    ],
)
def test_a_weight_is_what_could_move_the_decision(moves: dict[int, tuple[float, float]], weight: float) -> None:
    choice = Choice(runs=(1, 2, 3), metric="energy", value=Quantity(1.0, "J"), ratio=1.5)
    findings: dict[int | None, Finding] = {
        one: Finding(kind="host", run_id=one, bias=bias, doubt=doubt) for one, (bias, doubt) in moves.items()
    }
    assert_close(weigh([choice], moves, findings), weight)
    backwards = attrs.evolve(choice, runs=(2, 1, 3))
    assert find_bias([choice], moves, findings) == -find_bias([backwards], moves, findings)


def make_answer(ratio: float, *caveats: Caveat, tied: tuple[int, ...] = ()) -> Facts:
    choice = Choice(runs=(1, 2), metric="energy", value=Quantity(1.0, "J"), ratio=ratio, tied=tied)
    runs = {1: Subject(hardware="a"), 2: Subject(hardware="b")}
    return Facts(asked=("energy",), runs=runs, facts=(choice, *caveats))


def test_trust_names_what_could_reverse_the_decision() -> None:
    heavy = Caveat(kind="unlisted", runs=(1,), values={}, weight=0.8)
    light = Caveat(kind="host", runs=(1,), values={"host_ratio": 0.1}, weight=0.1)
    answer = make_answer(2.0, light, heavy)  # ln 2 = 0.69, and a quarter of it 0.17
    assert rank_caveats(answer) == [(heavy, True)]
    assert rank_caveats(make_answer(1.3, light, heavy)) == [(heavy, True), (light, False)]  # ln 1.3 = 0.26
    assert rank_caveats(make_answer(2.0, light)) == [(light, False)]  # the heaviest, so that a reader sees how little
    assert rank_caveats(make_answer(2.0, heavy, tied=(2,))) == [(heavy, False)]  # what is tied has no order to reverse
    assert len(list_notes(answer)) == 2
    lacking = attrs.evolve(heavy, kind="host", bias=-0.8, values={"host_ratio": 1.2})  # what the runner-up lacks
    assert rank_caveats(make_answer(2.0, lacking)) == [(lacking, False)]
    assert rank_caveats(make_answer(2.0, attrs.evolve(lacking, bias=0.8)))[0][1]
    assert "(could decide it)" in describe_trust(make_answer(1.0, lacking, tied=(2,)))


@pytest.mark.slow
def test_two_boards_without_the_same_host_share_its_bias(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=["l4", "t4"], precision="fp16")
    (host,) = (one for one in answer.facts.of(Caveat) if one.kind == "host")
    assert (len(host.runs), host.weight) == (2, 0.0)
    assert_close(host.move, math.log(1.4))  # the assumed host takes 0.4 of the energy of a board


@pytest.mark.sample(1)
@pytest.mark.parametrize("chip", ["hailo_8", "l4", "coral_edge_tpu"])
def test_the_host_that_a_comparison_lacks_is_the_one_that_a_ranking_adds(chip: str, workspace: Workspace) -> None:
    asked = Settings(hardware=chip, precision="int8", batch=1, runtime="engine")
    (caveat,) = (one for one in workspace.compare("mobilenet_v2", asked).facts.of(Caveat) if one.kind == "host")
    (row,) = (row for row in workspace.recommend("mobilenet_v2", asked).rows if row.status == "feasible")
    assert row.host_energy_per_inference_j is not None and row.energy_per_inference_j is not None
    ratio = row.host_energy_per_inference_j / row.energy_per_inference_j
    assert_close(float(str(caveat.values["host_ratio"])), ratio, rel=0.01)


SHARES = {
    "assumed": ("energy_fraction", "assumed_energy_fraction", 0.1),
    "unattributed": ("energy_fraction", "unattributed_energy_fraction", 0.1),
    "recalled": ("energy_fraction", "recalled_energy_fraction", 0.1),
}
"""Rule -> its value, the column of a comparison with the same share, and the share from which the rule finds it."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: "-".join((one[0], *one[1])))
def test_rules_agree_with_the_columns_of_a_comparison(
    question: tuple[str, tuple[str, ...], tuple[int, ...], Precision], workspace: Workspace
) -> None:
    answer = ask(question, workspace)
    rows = {row.run_id: row for row in answer.answered}
    for kind, (name, column, least) in SHARES.items():
        shares = {run: one.values[name] for one in answer.facts.of(Caveat) if one.kind == kind for run in one.runs}
        assert shares.keys() == {run for run, row in rows.items() if (getattr(row, column) or 0.0) >= least}
        for run_id, share in shares.items():
            assert isinstance(share, float)
            assert_close(share, getattr(rows[run_id], column), rel=1e-3)
    slow = {run for one in answer.facts.of(Caveat) if one.kind == "slowed" for run in one.runs}
    assert slow == {run for run, row in rows.items() if (row.clock_fraction or 1.0) < 0.9995}
    overlapping = {run for one in answer.facts.of(Caveat) if one.kind == "overlapping" for run in one.runs}
    assert overlapping == {run for run, row in rows.items() if (row.interval_s or 0.0) < (row.latency_s or 0.0)}


def test_trust_names_suppression_by_its_share_of_the_time(workspace: Workspace) -> None:
    name, chip = "fasterrcnn_mobilenet_v3_large_320_fpn", "xeon_8490h"
    answer = workspace.compare(name, hardware=[chip], metric="latency")
    (caveat,) = (one for one in answer.facts.of(Caveat) if one.kind == "suppressed")
    ((share, width),) = workspace.sql(
        "SELECT sum(o.latency_fs) FILTER (q.operation = 'nms') / any_value(t.latency_fs), "
        "any_value(t.latency_half_width) FROM internal.run_operator AS o JOIN internal.run AS r USING (run_id) "
        "JOIN internal.run_total AS t USING (run_id) JOIN internal.workload_operator AS q "
        f"USING (workload_id, operator_index) WHERE o.run_id = {caveat.runs[0]}"
    ).rows
    assert_close(float(str(caveat.values["latency_fraction"])), float(str(share)), rel=1e-3)
    point = predict(name, chip, precision="fp32")  # totals alone have the same interval
    assert_close(math.log(float(point.latency_s / point.latency_low_s)), float(str(width)), rel=1e-6)


def test_refused_runs_are_facts_and_not_entries(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=["l4", "hailo_8"], precision="fp16")
    (refusal,) = answer.facts.of(Refusal)
    assert answer.facts.runs[refusal.runs[0]].hardware == "hailo_8"
    assert len(answer.facts.of(Entry)) == 1
    assert not answer.facts.of(Choice)


def test_causes_are_those_of_the_explained_pair(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=CHIPS, precision="fp16")
    causes = [one for one in answer.facts.of(Term) if one.level == "role"]
    pair = decide(answer.facts.of(Choice)).runs
    assert {one.runs for one in causes} == {pair}
    one, other = (answer.facts.runs[run_id].hardware for run_id in pair)
    explained = workspace.explain("resnet18", one, other, precision="fp16").facts.of(Term)
    known = {one.name: one for one in explained if one.level == "role"}
    assert known.keys() == {one.name for one in causes}
    for cause in causes:
        assert_close(cause.share, known[cause.name].share)
        assert_close(cause.difference.value, known[cause.name].difference.value)


@pytest.mark.slow
def test_every_command_has_one_probability_and_one_share_of_a_pair(workspace: Workspace) -> None:
    """A third chip changes neither, and what a line says of two chips is about these two."""
    pair, asked = ("l4", "h100_sxm5"), Settings(precision="bf16", batch=1, runtime="fused")
    compared = workspace.compare("resnet50", asked, hardware=[*pair, "epyc_9654"])
    explained = workspace.explain("resnet50", *pair, asked)
    answers = (
        compared.facts,
        explained.facts,
        workspace.flip("resnet50", *pair, asked).facts,
        workspace.recommend("resnet50", asked, hardware=[*pair, "epyc_9654"]).facts,
        workspace.sweep("resnet50", asked, hardware=list(pair), batch=1).facts,
    )
    first = [facts.of(Choice)[0] for facts in answers]
    assert len({facts.runs[one.runs[0]].hardware for facts, one in zip(answers, first, strict=True)}) == 1
    for one in first:
        assert_close(one.against(one.runs[1])[1], first[0].ahead)


def test_a_filter_of_the_rows_stands_in_one_place(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that drops rows of the table drops their runs from choices, causes, caveats and notes, too."""
    chips = ["l4", "t4", "h100_sxm5", "xeon_8490h"]
    whole = workspace.compare("resnet18", hardware=chips, precision="fp16")
    winner = whole.rows[0]
    begin = query.fetch

    def fetch(connection: Connection, record: type[Any], **given: Any) -> Table[Any]:
        rows = begin(connection, record, **given)
        return rows.with_rows(row for row in rows if record is not Comparison or row.hardware != winner.hardware)

    monkeypatch.setattr(summary, "fetch", fetch)
    answer = workspace.compare("resnet18", hardware=chips, precision="fp16")
    named = [one for one in chips if one != winner.hardware]
    monkeypatch.undo()
    alone = workspace.compare("resnet18", hardware=named, precision="fp16")
    assert {row.hardware for row in answer.rows} == {row.hardware for row in alone.rows}
    assert winner.run_id not in answer.scope.run_ids
    assert answer.facts.runs.keys() == alone.facts.runs.keys()
    assert answer.facts.facts == alone.facts.facts
    assert answer.document().answer == alone.document().answer


def test_causes_of_a_gap_in_energy_x_delay_are_those_that_explain_states(workspace: Workspace) -> None:
    pair = ("l4", "t4")
    compared = workspace.compare("resnet18", hardware=pair, metric="edp").facts.of(Term)
    explained = workspace.explain("resnet18", *pair, metric="edp").facts.of(Term)
    shares = {(one.quantity, one.name): one.share for one in explained if one.level in ("role", "category")}
    assert compared and {one.quantity for one in compared} == {"energy", "time"}
    for one in compared:
        assert_close(one.share or 0.0, shares[one.quantity, one.name] or 0.0)


def test_one_chip_on_sale_is_taken_beside_a_projection(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=("kpu_t64", "l4"), batch=(1, 8))
    choices = answer.facts.of(Choice)
    assert all(answer.facts.runs[one].hardware == "l4" for one in choices[0].runs)
    assert answer.facts.runs[decide(choices[:2]).run].hardware == "l4"


def test_the_next_command_is_about_the_run_to_take(workspace: Workspace) -> None:
    chips = ["jetson_orin_nano_8gb@15W", "jetson_orin_nx_16gb", "jetson_agx_orin_64gb_gpu"]
    answer = workspace.compare("resnet50", hardware=chips, precision="int8", runtime="engine", batch=(1, 16))
    decision = decide(answer.facts.of(Choice), answer.facts.runs)
    assert decision.leads[0].is_tied
    taken = answer.facts.runs[decision.run].hardware
    assert taken != answer.answered[0].hardware
    (step, *_) = answer.document().data["next_steps"]
    assert taken in step


def test_the_ratio_of_products_is_that_of_the_column_before_it(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=["l4", "t4"], batch=(1, 8), metric="edp", precision="fp16")
    grid = lay_figures(answer, 10)
    place = grid.headings.index(METRIC["edp_per_inference"].label)
    assert grid.headings[place + 1] == "ratio"
    shown = [row[place].rpartition("  ")[2] for row in grid.rows]
    best = min((row.edp_js or 0.0) / row.batch for row in answer.answered)
    assert shown == [EDP(edp=best * (row.ratio or 0.0)) for row in answer.answered]
