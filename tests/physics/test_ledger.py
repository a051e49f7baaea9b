"""Counts times prices: exact, in order, and loud about what cannot be priced."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chip import FJ_PER_PJ, cpu
from compare import assert_close
from joulemap.physics.ledger import ActionCounts, Counts, order_counts, price, split_j, with_static
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.run import LedgerColumns
from joulemap.system.errors import ConservationError, UnpricedActionError, UnsupportedError

CHIP = cpu()
"""1 pJ for every action, 1 W of static power."""
READ, WRITE = ("dram", "read"), ("dram", "write")


def row(key: tuple[str, str]) -> int:
    found = CHIP.reference.position(key)
    assert found is not None
    return found


def ledger(counts: ActionCounts, operator_count: int) -> LedgerColumns:
    return lines(order_counts(counts, CHIP), operator_count)


def lines(counts: Counts, operator_count: int) -> LedgerColumns:
    return price(counts, CHIP, np.ones(1), np.arange(operator_count), 1)


def test_a_line_is_count_times_price() -> None:
    found = ledger({READ: np.array([0.0, 2.5])}, 2)
    assert found.operator_index.tolist() == [1]
    assert found.action_index.tolist() == [row(READ)]
    assert found.action_count.tolist() == [2.5]
    assert found.energy_fj.tolist() == [2500]
    assert found.total_fj == 2500


@given(st.floats(0.0, 1e12))
def test_energy_is_rounded_to_whole_femtojoules(count: float) -> None:
    assert ledger({READ: np.array([count])}, 1).total_fj == round(count * FJ_PER_PJ)


def test_lines_are_ordered_by_operator_then_action() -> None:
    counts = {WRITE: np.array([1.0, 1.0]), READ: np.array([1.0, 1.0]), ("l2", "read"): np.array([0.0, 1.0])}
    found = ledger(counts, 2)
    order = list(zip(found.operator_index.tolist(), found.action_index.tolist(), strict=True))
    assert order == sorted(order)
    assert len(order) == 5


def test_the_total_does_not_depend_on_the_order_of_counting() -> None:
    values = np.linspace(0.1, 1e9, 50)
    forward: ActionCounts = {READ: values, WRITE: values[::-1].copy()}
    assert ledger(forward, 50).total_fj == ledger(dict(reversed(forward.items())), 50).total_fj


def test_what_is_counted_zero_times_has_no_line() -> None:
    assert len(ledger({READ: np.zeros(3)}, 3).energy_fj) == 0


def test_an_action_without_a_price_is_named_with_its_count() -> None:
    with pytest.raises(UnpricedActionError) as caught:
        ledger({("tensor_core", "fp6_mac"): np.array([3.0, 4.0])}, 2)
    assert (caught.value.hardware, caught.value.action, caught.value.action_count) == (
        "toy_cpu",
        "tensor_core.fp6_mac",
        7.0,
    )
    assert "toy_cpu has no energy per action for tensor_core.fp6_mac (counted 7 times)" in str(caught.value)


def test_an_action_without_a_price_that_never_happens_is_no_error() -> None:
    assert ledger({("tensor_core", "fp6_mac"): np.zeros(2)}, 2).total_fj == 0


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), float("-inf")])
def test_a_count_that_is_negative_or_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ConservationError, match=r"toy_cpu: the count of dram\.read is negative or not finite"):
        ledger({READ: np.array([5.0, bad])}, 2)


def test_a_line_beyond_the_store_is_refused() -> None:
    # 9.3 kJ
    with pytest.raises(UnsupportedError, match="one ledger line exceeds 9223 J"):
        ledger({READ: np.array([9.3e18 / FJ_PER_PJ])}, 1)


def test_static_power_is_seconds_times_watts() -> None:
    found = lines(with_static({}, CHIP, np.array([1e-3, 2e-3])), 2)
    assert found.action_index.tolist() == [row(STATIC_ACTION)] * 2
    assert found.energy_fj.tolist() == [10**12, 2 * 10**12]


def test_dynamic_energy_is_the_ledger_in_joules() -> None:
    counts = {READ: np.array([1e6, 3e6]), ("l2", "read"): np.array([5e6, 0.0])}
    on_chip, off_chip = split_j(order_counts(counts, CHIP), CHIP)
    found = ledger(counts, 2)
    for operator in (0, 1):
        assert_close(
            on_chip[operator] + off_chip[operator], int(found.energy_fj[found.operator_index == operator].sum()) / 1e15
        )
