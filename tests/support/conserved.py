"""Sums that every run must keep."""

from __future__ import annotations

import attrs
import numpy as np

from compare import assert_close
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import Integers, WorkloadColumns
from joulemap.system.units import FJ_PER_J, FS_PER_S

MODEST = 2**62
"""Sums of integers below this cannot have overflowed."""


def summed(group: Integers, values: Integers, count: int) -> Integers:
    """Return the exact sums of integers by group."""
    is_modest = float(values.astype(np.float64).sum()) < MODEST
    sums = np.zeros(count, dtype=np.int64 if is_modest else object)  # a detector takes hours on a microcontroller
    np.add.at(sums, group, values)
    return sums


def assert_no_number_is_negative_or_lost(run: RunColumns) -> None:
    for columns in (run.subgraphs, run.operators, run.ledger):
        for field in attrs.fields(type(columns)):
            values = getattr(columns, field.name)
            assert np.isfinite(values).all(), field.name
            assert (values >= 0).all(), field.name


def assert_the_ledger_adds_up(work: WorkloadColumns, run: RunColumns) -> None:
    ledger, operators, subgraphs = run.ledger, run.operators, run.subgraphs
    lines = ledger.operator_index * len(run.hardware.reference) + ledger.action_index
    assert (np.diff(lines) > 0).all(), "an action stands once per operator"
    prices = np.array([action.energy_per_action_fj for action in run.hardware.reference])
    voltage = np.where(run.hardware.reference.on_chip, run.voltage_factor, 1.0)
    exact = ledger.action_count * prices[ledger.action_index] * voltage[ledger.action_index]
    assert (ledger.energy_fj == np.rint(exact)).all()
    by_operator = summed(ledger.operator_index, ledger.energy_fj, work.operator_count)
    assert int(by_operator[operators.operator_index].sum()) == int(by_operator.sum()), "only what runs costs"
    by_subgraph = summed(operators.subgraph_index, by_operator[operators.operator_index], work.subgraph_count)
    assert int(by_subgraph[subgraphs.subgraph_index].sum()) == int(by_operator.sum()) == run.energy_fj > 0


def assert_time_adds_up(work: WorkloadColumns, run: RunColumns) -> None:
    operators, subgraphs = run.operators, run.subgraphs
    by_subgraph = summed(operators.subgraph_index, operators.latency_fs, work.subgraph_count)
    expected = np.zeros(work.subgraph_count, dtype=np.int64)
    expected[subgraphs.subgraph_index] = subgraphs.latency_fs
    assert (by_subgraph == expected).all()
    assert int(by_subgraph.sum()) == run.latency_fs > 0


def assert_leakage_is_static_power_times_interval(run: RunColumns) -> None:
    position = run.hardware.reference.position(STATIC_ACTION)
    assert position is not None
    static_fj = run.hardware.static_power.value * FJ_PER_J
    assert_close(run.hardware.reference.actions[position].energy_per_action_fj, static_fj)
    takes_time = run.operators.interval_fs > 0
    lines = run.ledger.action_index == position
    assert (run.ledger.operator_index[lines] == run.operators.operator_index[takes_time]).all()
    assert (run.ledger.action_count[lines] == run.operators.interval_fs[takes_time] / FS_PER_S).all()


def assert_nothing_exceeds_the_hardware(run: RunColumns) -> None:
    hardware, latency_s = run.hardware, run.latency_fs / FS_PER_S
    rounding_fj = 0.5 * len(run.ledger.energy_fj) + hardware.tdp.value * len(run.operators.operator_index)
    assert run.energy_fj <= hardware.tdp.value * run.latency_fs * (1.0 + 1e-9) + rounding_fj
    assert run.subgraphs.units_used_count.max() <= run.units_total_count
    # Engines of CPUs and libraries of GPUs compute convolutions by Winograd's algorithm, with fewer multiplications.
    engine = "winograd_gain" if run.configuration.runtime == "engine" else ""
    gain = hardware.coefficients.get("peak_share.winograd.vector", hardware.coefficients.get(engine))
    most = run.peak_ops_per_s * latency_s * (1.0 if gain is None else gain.value)
    assert FLOPS_PER_MAC * run.mac_count <= most * (1.0 + 1e-9)
    dram_bytes = float(run.subgraphs.dram_bytes.sum())
    assert dram_bytes <= run.memory_bandwidth_bytes_per_s * latency_s * (1.0 + 1e-9)


def assert_work_is_conserved(work: WorkloadColumns, run: RunColumns) -> None:
    runs_here = ~work.is_view
    if RUNTIME[run.configuration.runtime].merges:
        runs_here &= ~work.is_foldable
    assert (run.operators.operator_index == np.flatnonzero(runs_here)).all()
    assert run.mac_count == int(work.mac_count[runs_here].sum())
    assert float(run.subgraphs.executed_mac_count.sum()) >= run.mac_count * (1.0 - 1e-12)
    assert_close(float(run.subgraphs.moved_bytes.sum()), float(run.operators.moved_bytes.sum()))


def assert_conserved(work: WorkloadColumns, run: RunColumns) -> None:
    assert_no_number_is_negative_or_lost(run)
    assert_the_ledger_adds_up(work, run)
    assert_time_adds_up(work, run)
    assert_leakage_is_static_power_times_interval(run)
    assert_nothing_exceeds_the_hardware(run)
    assert_work_is_conserved(work, run)
