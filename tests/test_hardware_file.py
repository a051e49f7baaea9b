"""A chip of one's own: templates, minimal files, what is filled in, and what `check` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.catalog.load import list_architectures, load_catalogue, load_hardware
from joulemap.catalog.template import copy_text, minimal_text
from joulemap.errors import CatalogueError, UnknownNameError
from joulemap.workspace.hardware import check_files

MINIMAL = """
id = "tiny"
architecture = "gpu"

[sources]
mine = "a data sheet"

[quantities]
unit_count = { value = 10, unit = "1", basis = "published", source = "mine" }
clock = { value = 2, unit = "GHz", basis = "published", source = "mine" }
memory_capacity = { value = 16, unit = "GB", basis = "published", source = "mine" }
memory_bandwidth = { value = 400, unit = "GB/s", basis = "published", source = "mine" }
tdp = { value = 50, unit = "W", basis = "published", source = "mine" }

[peaks.fp32]
rate = { value = 5.12, unit = "TFLOPS", basis = "published", source = "mine" }
"""


def write(folder: Path, text: str, name: str = "tiny.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_minimal_file_is_filled_in_by_the_rules_of_its_class(tmp_path: Path) -> None:
    hardware = load_hardware(write(tmp_path, MINIMAL))
    # 5.12e12 / (10 x 2e9) = 256 operations per clock and unit: 128 lanes of two
    assert_close(hardware.peaks["fp32"].operations_per_clock, 256.0, rel=1e-12)
    assert_close(hardware.geometry["fp32_lanes_per_unit"].value, 128.0, rel=1e-12)
    # 20 % of 50 W
    assert_close(hardware.static_power.value, 10.0, rel=1e-12)
    # 256 KiB for each of ten units
    assert_close(hardware.level("l2").capacity.value, 10 * 2**18, rel=1e-12)
    for quantity in (hardware.static_power, hardware.process_node, hardware.level("l2").capacity):
        assert quantity.basis == "assumed"
        assert quantity.source.startswith("class default")
    assert hardware.name == "tiny"
    assert hardware.unit_name == "SM"


def test_what_a_file_states_is_not_filled_in(tmp_path: Path) -> None:
    stated = MINIMAL.replace(
        "[peaks.fp32]",
        'static_power = { value = 7, unit = "W", basis = "measured", source = "mine" }\n\n[geometry]\n'
        'warp_size = { value = 64, unit = "1", basis = "published", source = "mine" }\n\n[peaks.fp32]',
    )
    hardware = load_hardware(write(tmp_path, stated))
    assert hardware.static_power.value == 7.0
    assert hardware.geometry["warp_size"].value == 64.0
    assert hardware.geometry["special_function_lanes_per_unit"].basis == "assumed"


@pytest.mark.parametrize("architecture", list_architectures())
def test_the_smallest_file_of_every_class_runs(architecture: str, tmp_path: Path) -> None:
    path = write(tmp_path, minimal_text(architecture), "mine.toml")
    (check,) = check_files([path])
    assert check.architecture == architecture
    assert check.defaults
    answered = [trial for trial in check.trials if not trial.reason]
    assert {trial.runtime for trial in answered} == {"eager", "graph", "fused"}
    assert {trial.precision for trial in answered} == set(load_hardware(path).peaks)
    assert all(trial.latency_s and trial.energy_j for trial in answered)


@pytest.mark.parametrize("name", list(load_catalogue().hardware))
def test_a_template_is_its_hardware_under_another_name(name: str, tmp_path: Path) -> None:
    known = load_catalogue().hardware[name]
    mine = load_hardware(write(tmp_path, copy_text(name), "mine.toml"))
    assert mine.id == f"my_{name}"
    assert mine.aliases == ()
    assert mine.peaks == known.peaks
    assert mine.reference == known.reference
    assert mine.memory_levels == known.memory_levels


def test_a_template_is_found_by_alias() -> None:
    assert 'id = "my_h100_sxm5"' in copy_text("H100")
    with pytest.raises(UnknownNameError):
        copy_text("h1000")
    with pytest.raises(CatalogueError, match="architecture: 'abacus' is none of"):
        minimal_text("abacus")


BANDWIDTH = 'memory_bandwidth = { value = 400, unit = "GB/s"'
BUS = """memory_bus_width = { value = 256, unit = "bit", basis = "published", source = "mine" }
memory_data_rate = { value = 20, unit = "GT/s", basis = "published", source = "mine" }
"""

REFUSED = {
    "GB for GB/s": (BANDWIDTH, BANDWIDTH.replace("GB/s", "GB"), "memory_bandwidth: unit 'GB' measures B, expected B/s"),
    "GB written as bytes": (
        BANDWIDTH,
        'memory_bandwidth = { value = 400e9, unit = "GB/s"',
        "memory_bandwidth: 4e+20 B/s is outside 1e+07 to 1e+16 B/s: check its unit",
    ),
    "bytes for GB": (
        'memory_capacity = { value = 16, unit = "GB"',
        'memory_capacity = { value = 16, unit = "B"',
        "memory_capacity: 16 B is outside 64 to 1e+15 B",
    ),
    "bus against bandwidth": ("tdp = {", f"{BUS}tdp = {{", "256 bit x 20 GT/s / 8 = 640 GB/s, but it is 400 GB/s"),
    "negative": ("tdp = { value = 50", "tdp = { value = -50", "tdp: -50 W is outside"),
    "zero": ("clock = { value = 2", "clock = { value = 0", "clock: 0 Hz is outside"),
    "not a number": ("tdp = { value = 50", "tdp = { value = nan", "tdp: nan W is outside"),
    "endless": ("tdp = { value = 50", "tdp = { value = inf", "tdp: inf W is outside"),
    "half a unit": ("unit_count = { value = 10", "unit_count = { value = 10.5", "unit_count: 10.5 is not a whole"),
    "no peak": ("[peaks.fp32]\nrate = ", "[peaks]\n#", "peaks: there is none"),
    "peak out of reach": (
        'rate = { value = 5.12, unit = "TFLOPS", basis = "published", source = "mine" }',
        'rate = { value = 5.12, unit = "TFLOPS", basis = "published", source = "mine" }\noperations_per_clock = 128',
        "10 units x 128 operations x 2 GHz = 2.56e+12 ops/s, but the rate is 5.12e+12",
    ),
    "static above TDP": (
        "[peaks.fp32]",
        'static_power = { value = 60, unit = "W", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "static_power: 60 W is not below the tdp of 50 W",
    ),
    "no deployment": (
        'architecture = "gpu"',
        'architecture = "gpu"\ndeployment = ["moon"]',
        "deployment: 'moon' is none of datacenter, edge, embedded",
    ),
    "no class": ('architecture = "gpu"', 'architecture = "abacus"', "architecture: 'abacus' is none of cgra, cpu"),
    "no source": (', source = "mine" }\n\n[peaks', " }\n\n[peaks", "quantities.tdp.source: missing"),
    "mistyped key": ("clock = {", "clok = {", "quantities: unknown key clok, did you mean clock?"),
    "duplicate key": (
        "[peaks.fp32]",
        "[peaks.fp32]\n[peaks.fp32]",
        "not valid TOML: duplicate key [peaks.fp32] at line",
    ),
    "two modes of a name": (
        "[peaks.fp32]",
        2 * '[[power_modes]]\nname = "9W"\ntdp = { value = 20, unit = "W", basis = "published", source = "mine" }\n'
        'clock = { value = 1, unit = "GHz", basis = "published", source = "mine" }\n\n' + "[peaks.fp32]",
        "power_modes: 9W stands twice",
    ),
    "a mode below its static power": (
        "[peaks.fp32]",
        '[[power_modes]]\nname = "9W"\ntdp = { value = 9, unit = "W", basis = "published", source = "mine" }\n'
        'clock = { value = 1, unit = "GHz", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_modes.9W: 10 W of static power is not below its tdp of 9 W",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_file_key_and_reason(case: str, tmp_path: Path) -> None:
    old, new, reason = REFUSED[case]
    assert MINIMAL.count(old) == 1
    with pytest.raises(CatalogueError) as caught:
        check_files([write(tmp_path, MINIMAL.replace(old, new))])
    assert str(caught.value).startswith("tiny.toml: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_explanation_lets_a_contradiction_stand(tmp_path: Path) -> None:
    explained = MINIMAL.replace("tdp = {", f"{BUS}tdp = {{").replace(
        BANDWIDTH, f'{BANDWIDTH}, explanation = "a third of the bus is off"'
    )
    hardware = load_hardware(write(tmp_path, explained))
    assert hardware.memory_bandwidth.value == 400e9
    assert "a third of the bus is off" in hardware.memory_bandwidth.note


def test_a_chip_without_what_its_class_needs_is_told_so(tmp_path: Path) -> None:
    text = MINIMAL.replace('architecture = "gpu"', 'architecture = "kpu"') + (
        '\n[[memory_levels]]\nname = "l9"\nkind = "scratchpad"\nper = "chip"\n'
        'capacity = { value = 1, unit = "MiB", basis = "published", source = "mine" }\n'
    )
    with pytest.raises(CatalogueError, match=r"tiny\.toml: .* cannot be mapped: .*no memory level l3"):
        check_files([write(tmp_path, text)])
