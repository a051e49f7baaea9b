"""Flips: the factor beyond which the other hardware wins, and whose doubt makes the doubt about the winner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Share, Turn
from joulemap.ask.flip import Flip, FlipAnswer
from joulemap.domain.metric import METRIC, VariedMetricName
from joulemap.domain.settings import Site
from joulemap.physics.interval.error_scale import LOGISTIC
from joulemap.physics.root import solve
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.workspace import Workspace

PAIRS: list[tuple[str, str, str, VariedMetricName]] = [
    ("h100_sxm5", "tpu_v4", "fp32", "energy"),
    ("l4", "h100_sxm5", "bf16", "energy"),
    ("l4", "t4", "fp16", "edp"),
    ("l4", "t4", "fp16", "latency"),
    ("kpu_t256", "hailo_8", "int8", "energy"),
    ("epyc_9654", "l4", "bf16", "efficiency"),
]


def known(value: float | None) -> float:
    assert value is not None
    return value


def winner(workspace: Workspace, answer: FlipAnswer, precision: str, changes: dict[str, str | float]) -> str:
    """Return who is better with some constants set."""
    rows = workspace.compare("resnet18", hardware=answer.names, precision=precision, changes=changes).rows  # type: ignore[arg-type]
    metric = METRIC[answer.metric]

    def value(row: object) -> float:
        if answer.metric == "efficiency":
            return 1.0 / float(row.energy_j)  # type: ignore[attr-defined]
        return float(getattr(row, metric.column))

    values = {row.hardware: value(row) for row in rows}
    a, b = (values[name] for name in answer.names)
    return "A" if (a < b) != metric.is_higher_better else "B"


def solve_alone(function: object) -> tuple[float, float] | None:
    """Return where a function of one constant changes its sign."""
    return solve(lambda asked: [function(factor) for _, factor in asked], ("",))[""]  # type: ignore[operator]


def set_at(row: Flip, factor: float) -> dict[str, str | float]:
    place = "" if row.hardware is None else f"{row.hardware}:"
    return {f"{place}{row.constant}": f"x{factor!r}"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "precision", "metric"),
    [PAIRS[0], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS[1:])],
)
def test_beyond_the_factor_the_winner_flips_and_just_below_it_does_not(
    workspace: Workspace, a: str, b: str, precision: str, metric: VariedMetricName
) -> None:
    answer = workspace.flip("resnet18", a, b, precision=precision, metric=metric)  # type: ignore[arg-type]
    flips = [row for row in answer.rows if row.flip_ratio is not None and row.kind != "geometry"]
    chosen = {row.kind: row for row in reversed(flips)}  # the first of each kind, and the last two of all
    for row in [*chosen.values(), *flips[-2:]]:
        assert row.flip_ratio is not None
        step = row.flip_ratio**0.001 if row.constant != "unit_count" else 1.0
        beyond, below = row.flip_ratio * step, row.flip_ratio / step
        if row.constant == "unit_count":
            below = (row.value * row.flip_ratio + (1 if row.flip_ratio < 1.0 else -1)) / row.value
        assert winner(workspace, answer, precision, set_at(row, beyond)) != answer.winner, row.constant
        assert winner(workspace, answer, precision, set_at(row, below)) == answer.winner, row.constant


@pytest.mark.slow
def test_a_price_flips_where_the_ledger_says(workspace: Workspace) -> None:
    # E_A + (k - 1) E_i = E_B, with what regulators lose of it; static power without
    answer = workspace.flip("resnet18", "l4", "h100_sxm5", precision="bf16")
    energy_a, energy_b = answer.values
    (row,) = (row for row in answer.rows if row.constant == "static_power" and row.hardware == "h100_sxm5")
    (run,) = workspace.compare("resnet18", hardware="h100_sxm5", precision="bf16").rows
    statement = "SELECT sum(line_energy_j) FROM energy_ledger WHERE run_id = $run AND action = 'static_power'"
    ((static_j,),) = workspace.sql(statement, {"run": run.run_id}).rows
    assert row.method == "exact"
    assert_close(known(row.flip_ratio), 1.0 + (energy_a - energy_b) / float(static_j), rel=1e-5)


@pytest.mark.slow
def test_what_takes_fewest_spreads_comes_first_and_what_flips_nothing_last(workspace: Workspace) -> None:
    answer = workspace.flip("resnet18", "l4", "h100_sxm5", precision="bf16")
    counts = [row.spread_count for row in answer.rows]
    known = [count for count in counts if count is not None]
    assert known == sorted(known)
    assert counts[: len(known)] == known
    assert all(row.flip_ratio is None or row.spread == "exact" for row in answer.rows.rows[len(known) :])
    assert any(row.flip_ratio is None for row in answer.rows)


@pytest.mark.slow
def test_shares_of_the_variance_add_up_and_name_what_to_measure(workspace: Workspace) -> None:
    answer = workspace.flip("resnet18", "l4", "h100_sxm5", precision="bf16")
    assert_close(math.fsum(row.variance_fraction for row in answer.rows), 1.0)
    largest = max(answer.rows, key=lambda row: row.variance_fraction)
    (first, *sides) = answer.facts.of(Share)
    assert (first.axis, first.share) == (largest.constant, largest.variance_fraction)
    assert_close(math.fsum(one.share for one in sides), 1.0)


@pytest.mark.slow
def test_one_constant_is_never_likelier_to_flip_it_than_all_of_them(workspace: Workspace) -> None:
    # P(n spreads) = 1 / (1 + exp(ln 9 x n x sqrt(sum of squares) / half-width)): so are all that are off together by
    # what takes away the lead, and a constant has its part of the same interval
    answer = workspace.flip("resnet18", "l4", "h100_sxm5", precision="bf16")
    all_of_them = 1.0 - known(answer.choice.probability)
    assert_close(
        all_of_them, 1.0 / (1.0 + math.exp(LOGISTIC * math.log(known(answer.choice.ratio)) / known(answer.half_width)))
    )
    one_spread = math.sqrt(math.fsum(row.ratio_spread**2 for row in answer.rows))
    for row in answer.rows:
        if row.spread_count is not None and row.likelihood is not None:
            exponent = LOGISTIC * row.spread_count * one_spread / known(answer.half_width)
            assert_close(row.likelihood, min(1.0 / (1.0 + math.exp(min(exponent, 700.0))), all_of_them), rel=1e-6)
    assert max(row.likelihood or 0.0 for row in answer.rows) > 0.0


@pytest.mark.slow
def test_a_constant_of_the_class_is_one_constant_of_both(workspace: Workspace) -> None:
    same = workspace.flip("resnet18", "l4", "t4", precision="fp16")
    shared = {row.constant: row for row in same.rows if row.side == "both"}
    assert "coefficient.epilogue_passes" in shared
    row = shared["coefficient.epilogue_passes"]
    a, b = (
        next(
            one
            for one in workspace.sensitivity("resnet18", hardware=name, precision="fp16").rows
            if one.constant == row.constant
        )
        for name in ("l4", "t4")
    )
    assert_close(row.ratio_elasticity, (a.energy_elasticity or 0.0) - (b.energy_elasticity or 0.0), rel=1e-6)
    other = workspace.flip("resnet18", "l4", "tpu_v4", precision="bf16")
    assert all(row.side != "both" for row in other.rows)


@pytest.mark.slow
def test_costs_rest_on_use_as_one_constant_of_both(workspace: Workspace) -> None:
    usage = Site(pay="rented")
    answer = workspace.flip("resnet18", "l4", "h100_sxm5", precision="bf16", metric="cost", site=usage)
    rows = {(row.side, row.constant): row for row in answer.rows}
    cost_a, cost_b = answer.values
    assert_close(known(rows["A", "price_cloud"].flip_ratio), cost_b / cost_a, rel=1e-5)
    assert ("both", "use.utilization") not in rows  # both are rented: it moves them alike
    powered = workspace.flip(
        "resnet18", "jetson_orin_nano", "l4", precision="fp16", metric="carbon", site=Site(utilization=0.9)
    )
    assert ("both", "use.grid") not in {(row.side, row.constant) for row in powered.rows}
    assert ("both", "use.utilization") in {(row.side, row.constant) for row in powered.rows}


@pytest.mark.slow
def test_batches_tell_who_is_better_at_each(workspace: Workspace) -> None:
    answer = workspace.flip("resnet50", "l4", "h100_sxm5", precision="bf16", metric="edp")
    for row in answer.batches:
        rows = workspace.compare("resnet50", hardware=["l4", "h100_sxm5"], precision="bf16", batch=row.batch).rows
        values = {one.hardware: one.edp_js or 0.0 for one in rows}
        assert row.winner == ("A" if values["l4"] < values["h100_sxm5"] else "B")
    assert {row.batch for row in answer.batches} >= {1, 2, 128}
    batches = {one.after for one in answer.facts.of(Turn) if one.axis == "batch"}
    assert batches == {row.batch for row in answer.batches if row.winner not in (None, answer.winner)}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda factor: factor - 3.0, 3.0),
        (lambda factor: 1.0 - 4.0 * factor, 0.25),
        (lambda factor: (factor - 2.0) * (factor - 0.9), 0.9),
        (lambda factor: math.log(factor / 50.0) ** 3, 50.0),
        (lambda factor: None if factor > 4.0 else factor - 2.5, 2.5),
    ],
)
def test_the_nearest_change_of_sign_is_found(function: object, expected: float) -> None:
    bracket = solve_alone(function)
    assert bracket is not None
    near, far = bracket
    assert_close(far, expected, rel=2e-6)
    assert function(near) * function(1.0) > 0.0  # type: ignore[operator]
    assert function(far) * function(1.0) <= 0.0  # type: ignore[operator]


@pytest.mark.parametrize(
    "function", [lambda _: 1.0, lambda factor: factor, lambda factor: factor - 200.0, lambda _: None]
)
def test_what_never_flips_has_no_factor(function: object) -> None:
    assert solve_alone(function) is None


def test_searches_side_by_side_ask_each_round_at_once() -> None:
    asked: list[int] = []

    def values(places: Sequence[tuple[float, float]]) -> list[float | None]:
        asked.append(len(places))
        return [factor - key for key, factor in places]

    solved = solve(values, (3.0, 0.5, 500.0, 7.0))
    alone = {key: solve(values, (key,))[key] for key in solved}
    assert solved == alone
    assert {key: None if one is None else round(one[1], 5) for key, one in solved.items()} == {
        3.0: 3.0, 0.5: 0.5, 500.0: None, 7.0: 7.0
    }  # fmt: skip
    assert asked[:3] == [4, 8, 3]  # as they are; both ends of each; those that change sign there


def test_bad_questions_are_one_clear_line(joulemap: Run, workspace: Workspace) -> None:
    for words, code, message in (
        (["flip", "resnet18", "l4"], 2, "name two chips"),
        (["flip", "resnet18", "l4", "l4"], 2, "two different chips"),
        (["flip", "resnet18", "l4", "nosuch"], 3, "unknown hardware"),
        (["flip", "resnet18", "l4", "t4", "--metric", "beauty"], 2, "beauty"),
        (["flip", "resnet18", "l4", "hailo_8"], 4, "hailo_8 has no fp32"),
    ):
        done = joulemap(*words)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    with pytest.raises(UnsupportedError, match=r"l20 is not known, because it has no price of this kind: rented"):
        workspace.flip("resnet18", "l20", "l4", precision="bf16", metric="cost")
    with pytest.raises(UsageError, match="takes one batch"):
        workspace.flip("resnet18", "l4", "t4", batch=[1, 2])
