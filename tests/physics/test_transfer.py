"""Inputs and outputs on the host link: lines of their own, and left out of a device alone."""

from __future__ import annotations

import attrs
import pytest

import chip
from chip import npu, number
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, convolution, count, run
from fallback_case import card, compiler, stages
from joulemap.catalog.load import load_catalogue
from joulemap.cli.option.run import RunOptions
from joulemap.domain.settings import Settings
from joulemap.physics.fallback import find_fallen
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import HOST_TRANSFER, NO_HOST, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.variation import Varied
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import UnsupportedError
from joulemap.system.units import FS_PER_S
from npu_case import fabric

CATALOGUE = load_catalogue().hardware

SECONDS_PER_BYTE = 1e-9


def stick(**geometry: float) -> Hardware:
    """Return cores with memory of their own behind a link of 1 GB/s, which requests cross."""
    found = npu(units=2, macs_per_clock={"int8": 4096.0}, **geometry)
    coefficients = {**found.coefficients, HOST_TRANSFER: number(SECONDS_PER_BYTE, "s")}
    return attrs.evolve(found, coefficients=coefficients, needs_host="USB port")


def test_a_chip_with_memory_waits_for_its_input_and_output() -> None:
    found, alone = run(stick(), "int8", convolution()), run(stick().without_host(), "int8", convolution())
    assert (count(found, "host_link", "input"), count(found, "host_link", "output")) == (INPUT, OUTPUT)
    assert count(found, "dram", "read") == count(alone, "dram", "read") > INPUT
    assert_close((found.latency_fs - alone.latency_fs) / FS_PER_S, (INPUT + OUTPUT) * SECONDS_PER_BYTE, rel=1e-6)
    assert (count(alone, "host_link", "input"), alone.hardware.host) == (0, NO_HOST)


def test_requests_of_other_cores_overlap_transfers_until_the_link_is_full() -> None:
    divided = stick(stream_units=1.0, divided_batches=1.0)
    found, alone = run(divided, "int8", convolution()), run(divided.without_host(), "int8", convolution())
    assert found.latency_fs > alone.latency_fs
    crossing_s = (INPUT + OUTPUT) * SECONDS_PER_BYTE
    assert_close(found.interval_fs / FS_PER_S, max(crossing_s, alone.interval_fs / FS_PER_S), rel=1e-6)


def test_a_chip_without_memory_counts_transfers_once() -> None:
    found, alone = run(fabric(), "int8", convolution()), run(fabric().without_host(), "int8", convolution())
    assert float(found.subgraphs.dram_bytes.sum()) == INPUT + OUTPUT
    assert float(alone.subgraphs.dram_bytes.sum()) == count(alone, "host_link", "output") == 0
    assert alone.mac_count == found.mac_count == MACS
    assert alone.latency_fs <= found.latency_fs


def test_a_device_alone_has_rows_of_its_own_operators_only() -> None:
    work, hardware = stages("relu", "gelu"), card("each")
    whole = evaluate(work, hardware, Configuration(hardware="toy", runtime="engine"))
    lone = attrs.evolve(chip.cpu(), compiler=compiler("each")).without_host()
    alone = evaluate(work, lone, Configuration(hardware="toy", runtime="engine"))
    fallen = find_fallen(work, compiler())
    assert set(whole.operators.operator_index) - set(alone.operators.operator_index) == set(fallen.nonzero()[0])
    assert alone.energy_fj < whole.energy_fj
    found = Varied.of(work, "fp32", "engine").evaluate(lone)
    assert_close(found.latency_s, alone.latency_fs / FS_PER_S)


def test_a_device_alone_refuses_what_its_compiler_leaves_nothing_of() -> None:
    lone = attrs.evolve(card("first"), helper=None, compiler=attrs.evolve(compiler("first"), operators=("relu",)))
    with pytest.raises(UnsupportedError):
        evaluate(stages("relu"), lone.without_host(), Configuration(hardware="toy", runtime="engine"))


def test_a_counted_host_moves_what_published_rates_exclude() -> None:
    link = next(one for one in CATALOGUE["coral_edge_tpu"].links if one.connects == "host")
    own = attrs.evolve(npu(units=1, macs_per_clock={"int8": 64.0}), needs_host="PCIe slot", links=(link,))
    hosted, beside = (own.with_host(chip.cpu(), is_counted=one) for one in (True, False))
    assert_close(hosted.coefficient(HOST_TRANSFER), 1 / (0.8 * link.bandwidth.value))
    assert beside.coefficient(HOST_TRANSFER) == 0.0
    assert fabric().with_host(chip.cpu(), is_counted=True).coefficient(HOST_TRANSFER) == 0.0


def test_the_port_of_a_host_bounds_a_stick_by_hand() -> None:
    """53.2 MB/s of USB 2.0, of which transfers reach 0.8: the link of a chip with memory, the memory of one without."""
    old, new = (load_catalogue().find(name) for name in ("raspberry_pi_3b", "raspberry_pi_4b"))
    slow, fast = (CATALOGUE["coral_edge_tpu"].with_host(one, is_counted=True) for one in (old, new))
    assert (slow.memory_bandwidth.value, fast.memory_bandwidth.value) == (53.2e6, 400e6)
    ncs2 = load_catalogue().find("intel_ncs2")
    assert_close(ncs2.with_host(old, is_counted=True).coefficient(HOST_TRANSFER), 1 / (0.8 * 53.2e6))
    assert ncs2.with_host(new, is_counted=True).coefficient(HOST_TRANSFER) == ncs2.coefficient(HOST_TRANSFER)


def test_device_only_is_for_what_has_a_host() -> None:
    assert RunOptions(site=["host=none"]).settings().host == NO_HOST
    selection = select_hardware(Settings(hardware=("coral_edge_tpu", "raspberry_pi_5"), host=NO_HOST))
    assert (selection.is_device_only, selection.hosts) == (True, {})
