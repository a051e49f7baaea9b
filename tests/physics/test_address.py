"""Addresses of numbers: every constant has one, which reads back, and what is written at it is read at it."""

from __future__ import annotations

import attrs
import pytest

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.physics.change import change_hardware
from joulemap.physics.record.address import Address, find_quantity, read_number, set_numbers
from joulemap.physics.record.constant import Change, list_constants
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import FJ_PER_J
from joulemap.plan.anchor import anchor_hardware

CHIPS = [load_catalogue().hardware[name] for name in ("l4", "kpu_t256", "epyc_9654")]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("clock", Address("quantity", "clock")),
        ("dram.read", Address("price", "dram.read")),
        ("link.transfer", Address("price", "link.transfer")),
        ("link.pcie.latency", Address("link", "pcie", "latency")),
        ("memory.l2.capacity", Address("memory", "l2", "capacity")),
        ("peak.int8", Address("peak", "int8")),
        ("peak.int8.clock_hz", Address("peak", "int8", "clock_hz")),
        ("coefficient.peak_share.narrow.tensor", Address("coefficient", "peak_share.narrow.tensor")),
    ],
)
def test_a_name_is_one_address(text: str, address: Address) -> None:
    assert Address.read(text) == address
    assert str(address) == text
    assert str(address._replace(device="gpu")) == f"gpu.{text}"


@pytest.mark.parametrize("hardware", CHIPS, ids=lambda one: one.id)
def test_every_constant_is_read_at_its_address_and_written_there(hardware: Hardware) -> None:
    hardware = attrs.evolve(anchor_hardware(hardware), loads=())
    for name, one in list_constants(hardware).items():
        scale = FJ_PER_J if one.kind == "price" else 1.0
        assert Address.read(name) == one.address
        assert_close(read_number(hardware, one.address), one.value * scale)
        made = set_numbers(hardware, {one.address: 3.0})
        assert read_number(made, one.address) == 3.0
        others = [other.address for other in list_constants(hardware).values() if other.address != one.address]
        assert [a for a in others if read_number(made, a) != read_number(hardware, a)] in ([], [STATIC_PRICE])


STATIC_PRICE = Address.read("chip.static_power")


def test_numbers_follow_a_clock_and_units_unless_they_are_set_too() -> None:
    hardware = anchor_hardware(CHIPS[0])
    constants = list_constants(hardware)
    half = Change.of(constants["clock"], hardware.clock.value / 2.0)
    peak = Change.of(constants["peak.bf16"], 1e14)
    made = change_hardware(hardware, (half, peak))
    for precision, before in hardware.peaks.items():
        wanted = 1e14 if precision == "bf16" else before.rate.value / 2.0
        assert_close(made.peaks[precision].rate.value, wanted)
        assert_close(made.peaks[precision].clock_hz, before.clock_hz / 2.0)
    assert made.clock_die == (hardware.clock_die or hardware.full_clock)
    again = change_hardware(hardware, (Change.of(constants["clock"], hardware.clock.value),))
    assert again.peaks == hardware.peaks


def test_a_number_that_a_hardware_lacks_is_refused() -> None:
    for text in ("geometry.nothing", "memory.l9.capacity", "peak.int3", "no.action", "price_of_all", "peaks"):
        with pytest.raises(KeyError):
            read_number(CHIPS[0], Address.read(text))
        with pytest.raises(KeyError):
            set_numbers(CHIPS[0], {Address.read(text): 1.0})
    with pytest.raises(KeyError):
        find_quantity(CHIPS[0], Address.read("dram.read"))
