"""Covariance, draws and closed forms of prediction errors, with numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from blank import open_blank
from compare import assert_close
from joulemap.domain.metric import METRIC, METRICS, MetricName
from joulemap.physics.interval.covariance import ErrorColumns, compare_pairs, split_errors
from joulemap.physics.interval.error_scale import (
    FULL_GROUPS,
    LOGISTIC,
    MOST_SURE,
    THIN_SEVERAL,
    THIN_SINGLE,
    THIN_SOURCE,
    find_thin_bounds,
)
from joulemap.physics.interval.half_width import Errors, Spent, combine_errors
from joulemap.physics.interval.probability import (
    Powers,
    is_told_apart,
    probability_above,
    probability_better,
)
from joulemap.physics.interval.standing import (
    SELLER_SHARE,
    Axis,
    Candidate,
    draw_errors,
    draw_prices,
    estimate_front,
    hash_text,
    mix,
    price_square,
    rank_candidates,
)
from joulemap.physics.record.quantity import Evidence
from joulemap.store.computed import COMPUTED, compute, insert_no_rows, insert_rows
from joulemap.store.engine import IN_MEMORY, connect
from joulemap.system.errors import SqlError
from joulemap.system.units import FS_PER_S

POWERS: Final = {one.name: Powers(one.latency_power, one.energy_power) for one in METRICS}
"""Metric -> its exponents of latency and energy."""

SHARES: Final[Mapping[tuple[str, str], float]] = {
    ("latency", "class"): 0.5,
    ("latency", "own"): 0.5,
    ("power", "class"): 0.2,
    ("power", "own"): 0.8,
}


def run(run_id: int, **changes: Any) -> dict[str, Any]:
    """Return a run of a GPU whose numbers are sure."""
    return {
        "run_id": run_id,
        "latency_half_width": 0.3,
        "energy_half_width": 0.5,
        "latency_own_half_width": 0.0,
        "energy_own_half_width": 0.0,
        "architecture": "gpu",
        "hardware": f"board {run_id}",
        "model": "resnet50",
        "configuration": "1 fp16",
        "own": str(run_id),
        **changes,
    }


def split(*runs: dict[str, Any]) -> ErrorColumns:
    return split_errors(runs, SHARES)


FIRST, SECOND = np.array([0]), np.array([1])


def test_a_logistic_error_has_80_percent_within_its_half_width() -> None:
    low, middle, high = probability_above([-0.3, 0.0, 0.3], 0.3).tolist()
    assert_close(high, 0.9)
    assert_close(low, 0.1)
    assert middle == 0.5
    assert_close(probability_better(2.0, 0.4), 1.0 / (1.0 + 9.0 ** (-math.log(2.0) / 0.4)))


def test_without_an_error_a_prediction_is_certain() -> None:
    found = probability_above([-1.0, 0.0, 1.0, np.nan], [0.0, 0.0, np.nan, 0.0])
    assert found[:3].tolist() == [0.0, 0.5, 1.0]
    assert np.isnan(found[3])
    assert probability_above(-1e4, 0.1) == 0.0


def test_two_are_told_apart_from_four_in_five() -> None:
    assert is_told_apart(np.array([0.2, 0.21, 0.79, 0.8])).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("latency", "latency_half_width"),
        ("throughput", "latency_half_width"),
        ("efficiency", "energy_half_width"),
        ("edp_per_inference", "edp_half_width"),
        ("power", "power_half_width"),
        ("memory", ""),
    ],
)
def test_a_metric_names_the_stored_half_width_that_its_powers_give(name: MetricName, column: str) -> None:
    assert METRIC[name].half_width_column == column


def test_runs_of_one_class_share_its_part() -> None:
    # latency 0.09 + 0.09 - 2 x 0.3^2 x 0.5; power, whose variance is 0.5^2 - 0.3^2, 2 x 0.16 x 0.8; energy is both
    found = compare_pairs(split(run(1), run(2)), FIRST, SECOND)
    assert_close(found.latency_square[0], 0.09)
    assert_close(found.energy_square[0], 0.09 + 0.256)
    assert_close(found.half_width([POWERS["edp"]])[0], math.sqrt(4.0 * 0.09 + 0.256))
    assert_close(found.half_width([POWERS["power"]])[0], math.sqrt(0.256))


def test_runs_of_two_classes_share_nothing() -> None:
    found = compare_pairs(split(run(1), run(2, architecture="tpu")), FIRST, SECOND)
    assert_close(found.latency_square[0], 0.18)
    assert_close(found.energy_square[0], 0.5)


def test_a_run_differs_from_itself_in_nothing_and_from_another_design_in_its_own_part() -> None:
    errors = split(run(1))
    same = compare_pairs(errors, FIRST, FIRST)
    assert_close(1.0 + same.latency_square[0], 1.0)
    assert_close(1.0 + same.energy_square[0], 1.0)
    other = compare_pairs(errors, FIRST, FIRST, is_other=True)
    assert_close(other.latency_square[0], 2.0 * 0.09 * 0.5)
    assert_close(other.energy_square[0], 2.0 * 0.09 * 0.5 + 2.0 * 0.16 * 0.8)


def test_own_numbers_are_common_to_the_runs_of_a_hardware() -> None:
    # of the variance 0.09 + 0.16, 0.16 is of the numbers: (0.16 + 0.09 x 0.5) / 0.25 of it is common on one board,
    # and of two boards of the class 0.09 x 0.5 / 0.25
    wide = {"latency_half_width": 0.5, "latency_own_half_width": 0.4}
    one_board = split(run(1, hardware="h", **wide), run(2, hardware="h", **wide))
    boards = split(run(1, **wide), run(2, **wide))
    assert_close(compare_pairs(one_board, FIRST, SECOND).latency_square[0], 0.5 * (1.0 - 0.82))
    assert_close(compare_pairs(boards, FIRST, SECOND).latency_square[0], 0.5 * (1.0 - 0.18))


def test_thin_numbers_are_common_to_the_runs_of_their_kernels() -> None:
    # of the variance 0.09 + 0.16, 0.16 is of numbers of one source: common to the same kernels, and else of each run
    wide = {"latency_half_width": 0.5, "energy_half_width": 0.6, "thin_half_width": 0.4}
    alike = compare_pairs(split(run(1, engine_numbers="e", **wide), run(2, engine_numbers="e", **wide)), FIRST, SECOND)
    unlike = compare_pairs(split(run(1, engine_numbers="e", **wide), run(2, engine_numbers="f", **wide)), FIRST, SECOND)
    assert_close(alike.latency_square[0], 0.5 * (1.0 - 0.82))
    assert_close(unlike.latency_square[0], 0.5 * (1.0 - 0.18))
    assert alike.thin_square[0] == 0.0
    assert_close(unlike.thin_square[0], 0.32)
    assert_close(unlike.thin_width([POWERS["edp"]])[0], 2.0 * math.sqrt(0.32))


def test_no_difference_that_hangs_on_one_source_is_surer_than_four_in_five() -> None:
    # ln(ratio) within the part of thin numbers is cut at MOST_SURE, beyond it nothing changes
    found = probability_above([-0.3, 0.3, 0.5], 0.2, 0.4)
    assert found[:2].tolist() == [1.0 - MOST_SURE, MOST_SURE]
    assert found[2] == probability_above(0.5, 0.2)
    assert not is_told_apart(np.array([MOST_SURE]))[0]


def test_the_thinnest_number_of_each_bound_counts() -> None:
    counts = (1, 1, 5), (1, 4, 1), (2, 3, 9)
    one, few, many = (Evidence(sources=sources, boards=boards, models=models) for sources, boards, models in counts)
    numbers = {
        "peak.fp8": many,
        "peak.bf16": one,
        "memory_bandwidth": few,
        "coefficient.unit_stream": many,
        "coefficient.overhead.layer": one,
    }
    assert find_thin_bounds(numbers, "fp8") == (THIN_SEVERAL, THIN_SOURCE, THIN_SINGLE)
    assert find_thin_bounds({"coefficient.device_time_scale": one}, None) == (THIN_SINGLE, THIN_SINGLE, 0.0)
    assert find_thin_bounds({}, "fp8") == (0.0, 0.0, 0.0)


def test_the_order_of_runs_changes_no_digit() -> None:
    runs = [run(number, latency_half_width=0.1 * number, architecture="gpu" if number % 2 else "tpu") for number in
            range(1, 8)]  # fmt: skip
    errors, turned = split(*runs), split(*reversed(runs))
    for one in range(1, 8):
        pairs = [(x.find([one]), x.find([8 - one])) for x in (errors, turned)]
        first, second = (compare_pairs(x, *pair) for x, pair in zip((errors, turned), pairs, strict=True))
        assert first.latency_square == second.latency_square
        assert first.energy_square == second.energy_square
    (drawn,), (again,) = draw_errors(errors, 50), draw_errors(turned, 50)
    assert np.array_equal(drawn.latency, again.latency[::-1])
    assert np.array_equal(drawn.energy, again.energy[::-1])


def test_the_hash_is_that_of_the_engine() -> None:
    engine = connect(IN_MEMORY)
    for text in ("", "scale", "eight of", "numbers of h100_sxm5", "naïve café, longer than twelve bytes"):
        ((expected,),) = engine.execute("SELECT hash($text)", {"text": text}).fetchall()
        assert hash_text(text) == expected
    ((expected,),) = engine.execute("SELECT hash(12345678901234567890::UBIGINT)").fetchall()
    assert int(mix(np.array([12345678901234567890], dtype=np.uint64))[0]) == expected


def test_draws_are_as_wide_and_as_correlated_as_the_closed_form() -> None:
    errors = split(run(1), run(2))
    blocks = list(draw_errors(errors, 20_000))
    latency, energy = (np.concatenate([getattr(one, name) for one in blocks], axis=1) for name in ("latency", "energy"))
    for drawn, width in (
        (latency[0], 0.3),
        (energy[0], 0.5),
        (latency[0] - latency[1], 0.3),
        (energy[0] - energy[1], math.sqrt(0.346)),
    ):
        assert abs(np.mean(np.abs(drawn) < width) - 0.8) < 0.012
        assert abs(np.mean(drawn < width / 2.0) - 1.0 / (1.0 + 9.0**-0.5)) < 0.012
        # the variance of a logistic distribution
        assert abs(np.var(drawn) / ((width / LOGISTIC) ** 2 * math.pi**2 / 3.0) - 1.0) < 0.06
    assert abs(np.corrcoef(latency[0], energy[0])[0, 1] - 0.3 / 0.5) < 0.03


def combine(
    *,
    level: float = 3.0,
    held_out: float = math.nan,
    prices: float = 0.0,
    host: float = 0.0,
    suppressed: float = 0.0,
) -> Any:
    """Return the half-widths of a run whose latency is known within 0.3 and whose class's power within 0.4."""

    def errors(half_width: float, held_out: float) -> Errors:
        width, place, count, left, least = (np.array([one]) for one in (half_width, level, 2.0, held_out, 0.08))
        return Errors(half_width=width, level=place, group_count=count, held_out=left, least=least)

    one, none = np.ones(1), np.zeros(1)
    spent = Spent(
        latency_fs=one, bound_fs=np.ones((1, 3)), own_number=np.zeros((1, 3)), basis_square=prices**2 * one,
        own_square=none, has_load=np.array([False]), host_share=host * one, growth_half_width=none,
        host_half_width=one, breaks_law=np.array([False]), suppressed_s=suppressed / FS_PER_S,
    )  # fmt: skip
    return combine_errors(errors(0.3, math.nan), errors(0.4, held_out), spent)


@pytest.mark.parametrize(("share", "factor"), [(0.0, 1.0), (0.125, 2.0), (0.25, 3.0), (1.0, 9.0)])
def test_suppression_widens_by_its_share_of_the_time(share: float, factor: float) -> None:
    # three times as many boxes are nine times as many pairs
    assert_close(combine(suppressed=share).latency[0], math.hypot(0.3, math.log(factor)))


def test_an_energy_is_as_wide_as_its_time_and_its_power() -> None:
    found = combine()
    assert_close(found.power[0], 0.4)
    assert_close(found.energy[0], 0.5)
    assert_close(found.edp[0], math.sqrt(0.36 + 0.16))


def test_prices_without_evidence_widen_a_power_and_never_narrow_it() -> None:
    # 0.16 + 2 / (2 + 2) (0.36 - 0.16), by two groups of evidence
    assert FULL_GROUPS == 2.0
    assert_close(combine(prices=0.6).power[0], math.sqrt(0.26))
    assert_close(combine(prices=0.1).power[0], 0.4)
    # another class's evidence says nothing of prices
    assert_close(combine(prices=0.3, level=1.0).power[0], 0.5)


def test_a_calibration_leaves_a_power_at_least_the_floor_and_a_host_is_added() -> None:
    # of 0.5 for the energy 0.4 are left beside 0.3 for the time; of 0.3 the floor
    assert_close(combine(held_out=0.5).power[0], 0.4)
    assert_close(combine(held_out=0.3).power[0], 0.08)
    # a host that takes half of the power and is known within 1 adds 0.5
    assert_close(combine(host=0.5).power[0], math.hypot(0.4, 0.5))


def test_prices_of_one_seller_go_together() -> None:
    (draws,) = draw_errors(split(run(1)), 20_000)
    widths = np.array([0.2, 0.2, 0.2, 0.0])
    drawn = draw_prices(["a", "b", "c", "d"], ["s", "s", "t", "s"], widths, draws)
    assert not drawn[3].any()
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1] - SELLER_SHARE) < 0.04
    assert abs(np.corrcoef(drawn[0], drawn[2])[0, 1]) < 0.04
    two = np.array([0.2])
    assert_close(price_square(two, two, np.array([False]), np.array([True]))[0], 0.08 * (1.0 - SELLER_SHARE))
    assert price_square(two, two, np.array([True]), np.array([True]))[0] == 0.0


def candidates(*costs: float, metric: MetricName = "latency") -> list[Candidate]:
    return [
        Candidate(
            place=place,
            run_id=place,
            powers=POWERS[metric],
            cost=cost,
        )
        for place, cost in enumerate(costs, 1)
    ]


def test_two_candidates_follow_the_closed_form() -> None:
    first, second = rank_candidates(candidates(0.2, 0.0), split(run(1), run(2)))
    assert (first.place, second.place) == (2, 1)
    assert_close(first.probability_best, 1.0 / (1.0 + 9.0 ** (-0.2 / 0.3)))
    assert first.probability_ahead is None
    assert_close(second.probability_best + first.probability_best, 1.0)
    assert_close(second.probability_ahead, second.probability_best)
    assert not second.is_likely_best


def test_a_metric_without_an_error_has_one_best() -> None:
    found = rank_candidates(candidates(0.1, 0.0, 0.2, metric="memory"), split(run(1), run(2), run(3)))
    assert [one.probability_best for one in found] == [1.0, 0.0, 0.0]


def test_a_candidate_without_a_prediction_is_left_out_unless_it_is_alone() -> None:
    errors = split(run(1), run(2))
    assert [one.place for one in rank_candidates(candidates(0.1, 0.0, 0.2), errors)] == [2, 1]
    (alone,) = rank_candidates(candidates(0.0), split())
    assert (alone.probability_best, alone.is_likely_best) == (1.0, True)


def test_a_front_holds_what_is_best_in_either_cost() -> None:
    errors = split(run(1), run(2), run(3))
    x = Axis(powers=Powers(1.0, 0.0), costs=np.array([0.0, 9.0, 30.0]), has_price=False)
    y = Axis(powers=Powers(0.0, 1.0), costs=np.array([9.0, 0.0, 30.0]), has_price=False)
    prices = ["", "", ""], ["", "", ""], np.zeros(3)
    front = estimate_front([1, 2, 3], (x, y), prices, errors)
    assert front.tolist() == [1.0, 1.0, 0.0]


CALLING: Final = """WITH case_of AS (
    SELECT unnest([1, 2]) AS row_id, unnest([0.0e0, $ahead]) AS ahead, 0.3e0 AS half_width
),
chance AS (FROM numpy.probabilities_of(case_of))
SELECT row_id, probability, is_told_apart FROM chance ORDER BY row_id"""


def test_a_query_gets_what_numpy_computes() -> None:
    connection = open_blank()
    computed = compute(connection, CALLING, {"ahead": 0.3, "unused": 1})
    rows = connection.execute(insert_rows(CALLING, computed), {"ahead": 0.3}).fetchall()
    assert [row[::2] for row in rows] == [(1, False), (2, True)]
    assert rows[0][1] == 0.5
    assert_close(rows[1][1], 0.9)
    assert connection.execute(insert_no_rows(CALLING), {"ahead": 0.3}).fetchall() == []


def test_a_query_without_calls_is_left_as_it_is() -> None:
    assert insert_rows("SELECT 1", compute(open_blank(), "SELECT 1", {})) == "SELECT 1"


def test_a_call_says_which_column_it_lacks() -> None:
    with pytest.raises(SqlError, match="half_width"):
        compute(open_blank(), CALLING.replace("AS half_width", "AS width"), {"ahead": 0.3})


@pytest.mark.parametrize("name", list(COMPUTED))
def test_no_rows_have_the_types_that_a_function_returns(name: str) -> None:
    rows = connect(IN_MEMORY).execute(f"DESCRIBE {insert_no_rows(f'SELECT * FROM numpy.{name}(nothing)')}").fetchall()
    assert {column: kind for column, kind, *_ in rows} == dict(COMPUTED[name].returns)
