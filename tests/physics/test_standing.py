"""Probabilities of being the best: one number for a pair, and none that rises where another candidate joins."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from compare import assert_close
from conftest import Run
from joulemap.domain.metric import METRICS as ALL_METRICS, MetricName
from joulemap.generated.compare import Standing
from joulemap.physics.interval.probability import Powers
from joulemap.physics.interval.standing import Candidate, rank_candidates
from joulemap.store.computed import keep, load_facts
from joulemap.store.connection import reading
from joulemap.store.query import fetch
from joulemap.system.errors import SqlError
from joulemap.workspace import Workspace

POWERS: Final = {one.name: Powers(one.latency_power, one.energy_power) for one in ALL_METRICS}
"""Metric -> its exponents of latency and energy."""

HARDWARE: Final = ("h100_sxm5", "tpu_v4", "l4", "xeon_8490h", "raspberry_pi_5", "t4", "a100_sxm4_80gb")

METRICS: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "edp_per_inference", "power")

SLACK: Final = 1e-12
"""For the rounding of the closed form."""


@cache
def prepared(path: Path) -> Workspace:
    workspace = Workspace(path / "standing.duckdb")
    workspace.evaluate("resnet18", hardware=list(HARDWARE))
    return workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return prepared(tmp_path_factory.mktemp("standing"))


def standing(
    workspace: Workspace, costs: dict[int, float], metric: MetricName
) -> dict[int, tuple[float, float | None]]:
    """Return run -> how probable it is that it is the best, and that it beats the first; costs are logarithms."""
    candidates = [Candidate(place=run, run_id=run, powers=POWERS[metric], cost=cost) for run, cost in costs.items()]
    with reading(workspace.path) as connection:
        errors = load_facts(connection, [{"run_id": run} for run in costs], ["run_id"]).errors
    return {one.place: (one.probability_best, one.probability_ahead) for one in rank_candidates(candidates, errors)}


def runs_of(workspace: Workspace) -> list[int]:
    return [run for (run,) in workspace.sql("SELECT run_id FROM runs ORDER BY run_id")]


def check_one_more(workspace: Workspace, data: st.DataObject) -> None:
    runs = runs_of(workspace)
    metric = data.draw(st.sampled_from(METRICS))
    some = data.draw(st.lists(st.sampled_from(runs), min_size=2, max_size=len(runs), unique=True))
    spread = data.draw(st.sampled_from([0.01, 0.3, 3.0]))
    costs = {run: spread * data.draw(st.floats(-1.0, 1.0)) for run in some}
    joining = data.draw(st.sampled_from(some))
    fewer = standing(workspace, {run: cost for run, cost in costs.items() if run != joining}, metric)
    more = standing(workspace, costs, metric)
    for run, (best, _) in fewer.items():
        assert more[run][0] <= best + SLACK
    assert sum(best for best, _ in more.values()) <= 1.0 + SLACK
    if len(costs) == 2:
        assert_close(sum(best for best, _ in more.values()), 1.0)
    run, other = some[0], some[-1]  # nobody is surer to be the best than to beat one other
    pair = standing(workspace, {run: costs[run], other: costs[other]}, metric)
    assert more[run][0] <= pair[run][0] + SLACK


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_one_more_candidate_raises_none_at_length(workspace: Workspace, data: st.DataObject) -> None:
    check_one_more(workspace, data)


def test_a_leader_is_at_least_as_sure_as_its_pairs_leave(workspace: Workspace) -> None:
    costs = dict(zip(runs_of(workspace)[:3], (0.0, 0.9, 1.8), strict=True))
    leader, *others = costs
    pairs = [standing(workspace, {leader: 0.0, one: costs[one]}, "latency")[leader][0] for one in others]
    best = standing(workspace, costs, "latency")[leader][0]
    assert 1.0 - sum(1.0 - one for one in pairs) - SLACK <= best <= min(pairs) + SLACK


def test_a_single_candidate_is_sure(workspace: Workspace) -> None:
    run = runs_of(workspace)[0]
    assert standing(workspace, {run: 0.5}, "latency")[run] == (1.0, None)


def test_equal_candidates_share(workspace: Workspace) -> None:
    """Of equal runs each is the best as often as chance has it, and no two draws are worth a percent."""
    runs = runs_of(workspace)[:4]
    found = standing(workspace, dict.fromkeys(runs, 0.0), "latency")
    assert all(best <= 0.5 for best, _ in found.values())
    assert sum(best for best, _ in found.values()) > 0.9


def ask(joulemap: Run, path: Path, hardware: Sequence[str]) -> dict[str, Any]:
    done = joulemap("compare", "resnet18", *hardware, "--db", path, "--format", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def chances(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    names = {row["run_id"]: row["hardware"] for row in found["rows"]}
    return {
        row["goal"]: dict(zip(map(names.__getitem__, row["ranked_ids"]), row["probabilities"], strict=False))
        for row in found["recommendations"]
    }


@pytest.mark.slow
def test_commands_name_one_number_for_a_pair_and_none_rises(
    workspace: Workspace, joulemap: Run, tmp_path: Path
) -> None:
    path = workspace.path
    pair, third, more = ("h100_sxm5", "tpu_v4"), "xeon_8490h", ("raspberry_pi_5", "l4")
    compared, wide = ask(joulemap, path, pair), ask(joulemap, path, (*pair, third, *more))
    two, five = chances(compared), chances(wide)
    three = chances(ask(joulemap, path, (*pair, third)))
    for goal in two:
        for hardware in pair:
            if two[goal]:
                assert five[goal][hardware] <= three[goal][hardware] <= two[goal][hardware]
    explained = json.loads(joulemap("explain", "resnet18", *pair, "--db", path, "--format", "json").stdout)
    for row in compared["recommendations"]:
        if row["goal"] in ("energy", "latency"):
            assert_close(row["probability_best"], explained["total"][f"{row['goal']}_probability"])
            assert_close(row["probability_best"], *row["ahead_probabilities"])
    for row in wide["recommendations"]:
        for ahead in row["ahead_probabilities"]:
            assert row["probability_best"] <= ahead + SLACK
            assert not math.isnan(row["probability_best"])


STEPS: Final = """WITH number AS (
    SELECT unnest([3, 4]) AS run_id
),
unread AS (
    SELECT error('nobody asks') AS x
),
pair AS (
    SELECT run_id, run_id AS other_run_id, 'energy' AS metric FROM number
),
alone AS (SELECT 5 AS run_id),
difference AS (FROM numpy.differences_of(pair))
SELECT n.run_id FROM number AS n JOIN alone AS a ON a.run_id > n.run_id ORDER BY n.run_id"""


def test_what_both_steps_of_a_query_read_is_stored_until_the_second_ends() -> None:
    connection = duckdb.connect()
    with keep(connection, STEPS) as kept:
        assert "unnest" not in kept and "unread" not in kept  # stored, and read by neither step
        assert "alone AS (SELECT 5" in kept  # read by the second step only
        ((table,),) = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert connection.execute(f"FROM {table} ORDER BY ALL").fetchall() == [(3,), (4,)]
        _, second = kept.split("difference AS (FROM numpy.differences_of(pair))\n")
        assert connection.execute(f"WITH number AS (FROM {table}), alone AS (SELECT 5 AS run_id) {second}").fetchall()
    assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


def test_a_standing_has_the_value_and_the_interval_that_runs_have(workspace: Workspace) -> None:
    ids = runs_of(workspace)
    with reading(workspace.path) as connection:
        for one in (metric for metric in ALL_METRICS if metric.is_of_runs):
            rows = fetch(connection, Standing, run_ids=ids, metric=one.name)
            width = one.half_width_column or "NULL"
            found = connection.execute(
                f"SELECT run_id, r.{one.column}, {f't.{width}' if one.half_width_column else width} "
                "FROM runs AS r JOIN internal.run_total AS t USING (run_id) ORDER BY run_id"
            ).fetchall()
            assert sorted((row.run_id, row.value, row.half_width) for row in rows) == found
        for one in (metric for metric in ALL_METRICS if not metric.is_of_runs):
            with pytest.raises(SqlError, match="prices"):
                fetch(connection, Standing, run_ids=ids, metric=one.name)
