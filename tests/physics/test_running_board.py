"""Laws of the parts of a running GPU board: clock, memory awake, units that work, and what no part explains."""

from __future__ import annotations

import pytest

import chip
from boundary_case import line_fj, power_w, run_of
from compare import assert_close
from joulemap.catalog.load import find_hardware
from joulemap.physics.anchor import COPY
from joulemap.physics.record.reference import (
    ACTIVE_ACTION,
    CLOCK_ACTION,
    CYCLE_ACTION,
    RUNNING,
    STANDBY_ACTION,
    STATIC_ACTION,
    ActionKey,
)
from joulemap.physics.run import RunColumns
from joulemap.plan.anchor import anchor_hardware

BOARDS = ("rtx_5090", "rtx_4090", "rx_7900_xtx", "l40s", "rtx_3090", "rtx_a6000", "b60")
ONE_BLOCK = "gemm(m=64,n=64,k=64)"


def run(name: str, operator: str, mode: str = "default") -> RunColumns:
    return run_of(chip.bound(anchor_hardware(find_hardware(name)), mode, "board"), operator, "fp16")


def counts(found: RunColumns, *keys: ActionKey) -> list[float]:
    rows = [found.hardware.reference.row(key) for key in keys]
    return [float(found.ledger.action_count[found.ledger.action_index == row].sum()) for row in rows]


def dynamic_w(found: RunColumns) -> float:
    """Return the power above that of the awake board."""
    static, standby = (line_fj(found, key) for key in (STATIC_ACTION, STANDBY_ACTION))
    return power_w(found) * (1.0 - (static + standby) / int(found.ledger.energy_fj.sum()))


@pytest.mark.parametrize("name", BOARDS)
def test_a_kernel_on_one_unit_draws_less_than_a_third_of_what_a_copy_draws(name: str) -> None:
    assert dynamic_w(run(name, ONE_BLOCK)) < 0.3 * dynamic_w(run(name, COPY))


@pytest.mark.parametrize("name", BOARDS)
def test_clock_and_memory_awake_follow_time_and_cycles_of_units_their_work(name: str) -> None:
    for operator in (ONE_BLOCK, COPY, "gemm(m=4096,n=4096,k=4096)"):
        found = run(name, operator)
        own = found.hardware
        (seconds,) = counts(found, STATIC_ACTION)
        clock, standby, active, cycle = counts(found, CLOCK_ACTION, STANDBY_ACTION, ACTIVE_ACTION, CYCLE_ACTION)
        running_s = standby / own.memory_bandwidth.value
        assert clock / own.clock.value / own.units <= running_s * (1.0 + 1e-9) <= seconds * (1.0 + 1e-6)
        assert 0.0 < active <= clock * (1.0 + 1e-9)
        assert active == cycle
    assert counts(run(name, ONE_BLOCK), ACTIVE_ACTION)[0] < 0.05 * counts(run(name, ONE_BLOCK), CLOCK_ACTION)[0]


@pytest.mark.parametrize("name", BOARDS)
def test_more_blocks_work_more_units(name: str) -> None:
    shares = []
    for rows in (64, 256, 4096):
        clock, active = counts(run(name, f"gemm(m={rows},n=1024,k=1024)"), CLOCK_ACTION, ACTIVE_ACTION)
        shares.append(active / clock)
    assert shares == sorted(shares)


@pytest.mark.parametrize("name", ["rtx_5090", "rtx_4090", "rtx_3090"])
def test_a_lower_clock_takes_energy_of_units_and_leaves_memory_its_power(name: str) -> None:
    full, half = run(name, COPY), run(name, COPY, "1200MHz")
    for key in (CLOCK_ACTION, ACTIVE_ACTION, CYCLE_ACTION):
        if line_fj(full, key):
            assert line_fj(half, key) < line_fj(full, key)
    awake = [line_fj(one, STANDBY_ACTION) / max(line_fj(one, STATIC_ACTION), 1) for one in (full, half)]
    assert_close(awake[1], awake[0], rel=0.02)
    assert dynamic_w(half) < dynamic_w(full)


@pytest.mark.parametrize(("name", "cap"), [("rtx_5090", "400W"), ("rtx_4090", "300W")])
def test_a_lower_cap_lowers_what_follows_the_clock(name: str, cap: str) -> None:
    product = "gemm(m=8192,n=8192,k=8192)"
    full, capped = run(name, product), run(name, product, cap)
    seconds = [counts(one, STATIC_ACTION)[0] for one in (full, capped)]
    assert seconds[1] > seconds[0]
    for key in RUNNING:
        if line_fj(full, key):
            assert line_fj(capped, key) / seconds[1] <= line_fj(full, key) / seconds[0] * (1.0 + 1e-9)
