"""Knees of fronts, worked out by hand."""

from __future__ import annotations

from joulemap.ask.knee import find_knee


def test_the_knee_is_farthest_from_the_line_between_the_ends() -> None:
    # in decades: (0, 2), (0.5, 0.5), (1, 0.25), (2, 0); below the line x + y = 2 by 1, 0.75 and 0
    assert find_knee([(1.0, 100.0), (10**0.5, 10**0.5), (10.0, 10**0.25), (100.0, 1.0)]) == 1
    assert find_knee([(1.0, 100.0), (10.0, 10.0), (100.0, 1.0)]) is None  # on the line
    assert find_knee([(1.0, 100.0), (50.0, 50.0), (100.0, 1.0)]) is None  # beyond the line


def test_units_do_not_move_the_knee_and_two_ends_have_none() -> None:
    costs = [(1.0, 100.0), (1.2, 20.0), (40.0, 10.0), (100.0, 1.0)]
    assert find_knee(costs) == find_knee([(x * 1e-3, y * 1e6) for x, y in costs]) == 1
    assert find_knee(costs[:2]) is None
    assert find_knee([(0.0, 1.0), (1.0, 0.5), (2.0, 0.1)]) is None
