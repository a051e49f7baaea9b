"""Names of hardware taken apart and put together."""

from __future__ import annotations

import pytest

from conftest import Run
from joulemap.domain.hardware_ref import HardwareRef, MemoryConfiguration, name_configured, name_variant
from joulemap.system.errors import ExitCode, UsageError

REFERENCES = {
    "l4": ("l4", (), ""),
    "l4@40W": ("l4", (), "40W"),
    "l4[tdp=60W;clock=1GHz]@900MHz": ("l4", (("tdp", "60W"), ("clock", "1GHz")), "900MHz"),
    "l4[dram.bandwidth=200GB/s]": ("l4", (("dram.bandwidth", "200GB/s"),), ""),
    "./chips/mine.toml@15w": ("./chips/mine.toml", (), "15w"),
    "NVIDIA L4 (24 GB)": ("NVIDIA L4 (24 GB)", (), ""),
}


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_has_an_id_changes_and_a_mode_and_is_written_as_it_was_read(text: str) -> None:
    ref = HardwareRef.read(text)
    assert (ref.id, ref.changes, ref.mode) == REFERENCES[text]
    assert str(ref) == text
    assert ref.label == text.partition("@")[0]


@pytest.mark.parametrize("text", ["l4[tdp=60W", "l4[tdp]", "l4[=60W]", "l4[tdp=]", "l4[]", "l4[tdp=60W]x"])
def test_numbers_that_are_not_set_as_name_and_value_are_refused(text: str) -> None:
    ref = HardwareRef.read(text)
    assert ref.id == "l4"
    with pytest.raises(UsageError):
        _ = ref.changes


def test_the_default_mode_is_not_written() -> None:
    assert name_configured("l4", "default") == "l4"
    assert name_configured("l4", "900MHz") == "l4@900MHz"
    assert name_configured("./a@b.toml", "15w") == "./a@b.toml@15w"


def test_a_variant_is_read_back_as_it_is_named() -> None:
    changes = (("tdp", "60W"), ("clock", "1GHz"))
    assert HardwareRef.read(name_variant("l4", changes)).changes == changes


@pytest.mark.parametrize(
    ("text", "gb_per_s"),
    [
        ("ryzen_9_7950x+ddr5-5600x2", "89.6"),  # 5,600 million transfers of 16 bytes
        ("ryzen_9_7950x+DDR4-3200x1", "25.6"),
        ("core_ultra_7_155h+lpddr5x-7467x2", "119.472"),
    ],
)
def test_a_memory_configuration_sets_the_bandwidth(text: str, gb_per_s: str) -> None:
    assert HardwareRef.read(text) == HardwareRef(text.partition("+")[0], f"[memory_bandwidth={gb_per_s}GB/s]")
    both = HardwareRef.read(f"{text}[tdp=100W]@3GHz")
    assert both.changes == (("memory_bandwidth", f"{gb_per_s}GB/s"), ("tdp", "100W"))
    assert both.mode == "3GHz"


@pytest.mark.parametrize(
    "memory",
    ["ddr5", "ddr5-5600", "ddr5-x2", "ddr5-5600x0", "lpddr5x-8533x128", "ddr5-5600x2GB", "ddr9-5600x2", "ddr5-56000x2"],
)
def test_a_malformed_memory_configuration_is_refused(memory: str) -> None:
    with pytest.raises(UsageError):
        HardwareRef.read(f"n100+{memory}")


@pytest.mark.parametrize(
    ("memory", "memory_type", "bus_bits", "refusal"),
    [
        ("ddr4-3200x2", "DDR4", 128.0, ""),
        ("ddr4-3200x4", "DDR4", 128.0, "DDR4-3200x2"),  # four modules in two channels
        ("ddr5-4800x9", "DDR5-4800 8ch", None, "DDR5-4800x8"),
        ("lpddr4x-4267x1", "LPDDR4X-4267 32-bit", 32.0, r"memory_bandwidth=17\.068GB/s"),  # 4 bytes x 4,267 million
        ("ddr4-3200x2", "GDDR6X", 384.0, "GDDR6X"),
        ("ddr4-3200x2", "flash and SRAM on chip", None, "flash"),
    ],
)
def test_modules_fit_the_memory_bus_of_their_chip(
    memory: str, memory_type: str, bus_bits: float | None, refusal: str
) -> None:
    modules = MemoryConfiguration.read(memory)
    if not refusal:
        modules.check_fit("chip", memory_type, bus_bits)
        return
    with pytest.raises(UsageError, match=refusal):
        modules.check_fit("chip", memory_type, bus_bits)


def test_a_chip_is_refused_modules_for_which_it_has_no_channels(joulemap: Run) -> None:
    refused = joulemap("compare", "resnet18", "ryzen_9_5950x+ddr4-3200x4")
    assert refused.returncode == ExitCode.USAGE


def test_a_plus_of_a_printed_name_is_no_memory() -> None:
    assert HardwareRef.read("Apple M1 Max 8P+2E+32GPU").id == "Apple M1 Max 8P+2E+32GPU"
