"""A chip of one's own: templates, minimal files, what is filled in, and what `check` says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import attrs
import pytest

from chips import EVERY
from compare import assert_close
from conftest import Run
from hardware_text import MINIMAL, coefficient, write
from joulemap.ask.hardware_file import check_files
from joulemap.catalog.chip import list_architectures, load_class, load_hardware
from joulemap.catalog.design import write_design
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.schema import HardwareFile, QuantityEntry
from joulemap.catalog.starter import copy_text, minimal_text
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.settings import Settings
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import MODES
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import CatalogueError, ExitCode, UnknownNameError
from sample import thin


def test_a_minimal_file_is_filled_in_by_the_rules_of_its_class(tmp_path: Path) -> None:
    hardware = load_hardware(write(tmp_path, MINIMAL))
    # 5.12e12 / (10 x 2e9) = 256 operations per clock and unit: 128 lanes of two
    assert_close(hardware.peaks["fp32"].operations_per_clock, 256.0)
    assert_close(hardware.geometry["fp32_lanes_per_unit"].value, 128.0)
    # 20 % of 50 W
    assert_close(hardware.static_power.value, 10.0)
    # 256 KiB for each of ten units
    assert_close(hardware.level("l2").capacity.value, 10 * 2**18)
    for quantity in (hardware.static_power, hardware.process_node, hardware.level("l2").capacity):
        assert quantity.basis == "assumed"
        assert quantity.source.startswith("class default")
    assert hardware.name == "tiny"
    assert hardware.unit_name == "SM"


def test_the_clocks_of_board_and_die_follow_from_each_other(tmp_path: Path) -> None:
    def clocks(**stated: float) -> list[float | None]:
        lines = "".join(
            f'{name} = {{ value = {ghz}, unit = "GHz", basis = "published", source = "mine" }}\n'
            for name, ghz in stated.items()
        )
        hardware = load_hardware(write(tmp_path, MINIMAL.replace("\n[peaks.fp32]", f"{lines}\n[peaks.fp32]")))
        return [one.value / 1e9 if one else None for one in (hardware.clock_boost, hardware.clock_die)]

    assert clocks() == [2.0, 2.0]
    assert clocks(clock_boost=2.2) == [2.2, 2.2]
    assert clocks(clock_boost=2.2, clock_die=2.5) == [2.2, 2.5]
    with pytest.raises(CatalogueError, match=r"clock_boost: 2\.2e\+09 Hz is above clock_die of 2\.1e\+09 Hz"):
        clocks(clock_boost=2.2, clock_die=2.1)


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


@pytest.mark.sample(1)
@pytest.mark.parametrize("architecture", thin(list_architectures(), 2))
def test_the_smallest_file_of_every_class_runs(architecture: str, tmp_path: Path) -> None:
    path = write(tmp_path, minimal_text(architecture), "mine.toml")
    (check,) = check_files([path]).checks
    assert check.architecture == architecture
    assert check.defaults
    answered = [trial for trial in check.trials if not trial.reason]
    assert {trial.runtime for trial in answered} == set(MODES)
    assert {trial.precision for trial in answered} == set(load_hardware(path).peaks)
    assert all(trial.latency_s and trial.energy_j for trial in answered)


def fill(architecture: str) -> str:
    """Return the template of a class with every key that it has a number for."""
    return re.sub(r"^# (?=\w+ = |\[)", "", minimal_text(architecture), flags=re.MULTILINE)


def list_keys(record: type, above: str = "") -> Iterator[tuple[str, str, bool]]:
    """Yield (table, key, whether a file must have it) of all that a hardware file may hold, numbers as one key."""
    for field in attrs.fields(record):
        inner = next((one for one in (*get_args(field.type), field.type) if attrs.has(one)), None)
        is_number = inner is QuantityEntry
        if inner is not None and not is_number and field.init:
            yield from list_keys(inner, field.name)
        elif field.name != "geometry" and field.init:
            yield above, field.name, field.default is attrs.NOTHING


@pytest.mark.parametrize("architecture", list_architectures())
def test_a_template_has_every_key_that_is_accepted_and_no_other(architecture: str, tmp_path: Path) -> None:
    hardware = load_hardware(write(tmp_path, fill(architecture)))
    example = load_catalogue().hardware[CLASS_HARDWARE[architecture]]
    assert (hardware.geometry.keys(), hardware.peaks.keys()) == (example.geometry.keys(), example.peaks.keys())
    assert [level.name for level in hardware.memory_levels] == [level.name for level in example.memory_levels]
    text = minimal_text(architecture)
    written = set(re.findall(r"^(?:# )?(\w+)(?= =|: in )", text, re.MULTILINE))
    accepted = {key for _, key, _ in list_keys(HardwareFile)}
    accepted -= {"works_at_limit"} if hardware.priced_at == "board" else set()
    assert written - {"mine"} == accepted | set(load_class(architecture, "").geometry)


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, key, needed in list_keys(HardwareFile) if needed])
def test_a_missing_key_says_what_it_may_be(table: str, key: str, tmp_path: Path) -> None:
    lines = fill("npu").splitlines()
    start = next(place for place, line in enumerate(lines) if not table or line.lstrip("[").startswith(table))
    del lines[next(place for place in range(start, len(lines)) if re.match(rf"{key} = |\[{key}\]", lines[place]))]
    with pytest.raises(CatalogueError, match=rf"{key}: missing, expected \S+"):
        load_hardware(write(tmp_path, "\n".join(lines)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("hardware", EVERY)
def test_a_template_is_its_hardware_under_another_name(hardware: Hardware, tmp_path: Path) -> None:
    mine = load_hardware(write(tmp_path, copy_text(hardware.id), "mine.toml"))
    assert mine.id == f"my_{hardware.id}"
    assert mine.aliases == ()
    assert mine.peaks == hardware.peaks
    assert mine.reference == hardware.reference
    assert mine.memory_levels == hardware.memory_levels


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

CACHES = """
[[memory_levels]]
name = "l1"
kind = "cache"
per = "unit"
capacity = {{ value = {l1}, basis = "published", source = "mine" }}

[[memory_levels]]
name = "l2"
kind = "cache"
per = "chip"
capacity = {{ value = {l2}, basis = "published", source = "mine" }}
"""

REFUSED: dict[str, tuple[str, ...]] = {
    "GB for GB/s": (BANDWIDTH, BANDWIDTH.replace("GB/s", "GB"), "memory_bandwidth: unit 'GB' measures B, expected B/s"),
    "GB written as bytes": (
        BANDWIDTH,
        'memory_bandwidth = { value = 400e9, unit = "GB/s"',
        "memory_bandwidth: 4e+20 B/s is outside 1e+07 to 1e+16 B/s: check its unit",
    ),
    "bytes for GB": (
        'memory_capacity = { value = 16, unit = "GB"',
        'memory_capacity = { value = 16, unit = "B"',
        "memory_capacity: 16 B is outside 100000 to 1e+15 B",
    ),
    "bus against bandwidth": ("tdp = {", f"{BUS}tdp = {{", "256 bit x 20 GT/s / 8 = 640 GB/s, but it is 400 GB/s"),
    "negative": ("tdp = { value = 50", "tdp = { value = -50", "tdp: -50 W is outside"),
    "zero": ("clock = { value = 2", "clock = { value = 0", "clock: 0 Hz is outside"),
    "not a number": ("tdp = { value = 50", "tdp = { value = nan", "tdp: value is nan, expected a finite number"),
    "endless": ("tdp = { value = 50", "tdp = { value = inf", "tdp: value is inf, expected a finite number"),
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
        "deployment: 'moon', known: datacenter, edge, embedded",
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
        "power_modes: 9W is listed twice",
    ),
    "a mode below its static power": (
        "[peaks.fp32]",
        '[[power_modes]]\nname = "9W"\ntdp = { value = 9, unit = "W", basis = "published", source = "mine" }\n'
        'clock = { value = 1, unit = "GHz", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_modes.9W: 10 W of static power is not below its tdp of 9 W",
    ),
    "a mode that draws more than its name says": (
        "[peaks.fp32]",
        '[[power_modes]]\nname = "12W"\ntdp = { value = 12.05, unit = "W", basis = "published", source = "mine" }\n'
        'clock = { value = 1, unit = "GHz", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_modes.12W.tdp: 12.05 W is above the 12 W of its name",
    ),
    "a lowest power limit above the usual one": (
        "[peaks.fp32]",
        'power_limit_lowest = { value = 60, unit = "W", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_limit_lowest: 60 W is above the tdp of 50 W",
    ),
    "a highest power limit below the usual one": (
        "[peaks.fp32]",
        'power_limit_lowest = { value = 20, unit = "W", basis = "published", source = "mine" }\n'
        'power_limit_highest = { value = 40, unit = "W", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_limit_highest: 40 W is below the tdp of 50 W",
    ),
    "a mode above the boost clock": (
        "[peaks.fp32]",
        'clock_boost = { value = 2.2, unit = "GHz", basis = "published", source = "mine" }\n\n[[power_modes]]\n'
        'name = "fast"\ntdp = { value = 50, unit = "W", basis = "published", source = "mine" }\n'
        'clock = { value = 2.3, unit = "GHz", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "power_modes.fast.clock: 2.3e+09 Hz is above clock_boost of 2.2e+09 Hz",
    ),
    "a clock that nobody reached": (
        'clock = { value = 2, unit = "GHz"',
        'clock = { value = 14, unit = "GHz"',
        "clock: ",
    ),
    "a rate that its watts cannot feed": (
        'tdp = { value = 50, unit = "W"',
        'tdp = { value = 1, unit = "mW"',
        "TOPS/W, above 200: check both units",
    ),
    "a sustained clock above the boost clock": (
        "[peaks.fp32]",
        'clock_sustained = { value = 9, unit = "GHz", basis = "assumed", source = "mine" }\n\n[peaks.fp32]',
        "clock_sustained: 9e+09 Hz is above clock of 2e+09 Hz",
    ),
    "a board that rests at more than its active idle": (
        "[peaks.fp32]",
        'static_power = { value = 5, unit = "W", basis = "published", source = "mine" }\n'
        'idle_power = { value = 15, unit = "W", basis = "published", source = "mine" }\n\n[peaks.fp32]',
        "idle_power: 15 W is above static_power of 5 W",
    ),
    "a memory smaller than the cache": (  # 10 units of 2 MiB
        'value = 16, unit = "GB"',
        'value = 16, unit = "MB"',
        "memory_levels.l1.capacity: 20.9715 MB in all is above the memory_capacity of 16 MB",
        CACHES.format(l1="2, unit = 'MiB'", l2="4, unit = 'MiB'"),
    ),
    "a cache of the chip below that of a unit": (
        'value = 16, unit = "GB"',
        'value = 16, unit = "GB"',
        "memory_levels.l2.capacity: 48 KiB of the chip is below the 128 KiB of one unit's l1",
        CACHES.format(l1="128, unit = 'KiB'", l2="48, unit = 'KiB'"),
    ),
    "a host that is no share": (
        "[peaks.fp32]",
        'host_share = { value = 400, unit = "1", basis = "assumed", source = "mine" }\n\n[peaks.fp32]',
        "host_share: 400 is outside 0 to 100",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_file_key_and_reason(case: str, tmp_path: Path) -> None:
    old, new, reason, *more = REFUSED[case]
    assert MINIMAL.count(old) == 1
    with pytest.raises(CatalogueError) as caught:
        check_files([write(tmp_path, MINIMAL.replace(old, new) + "".join(more))])
    assert "/tiny.toml: " in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dram_is_no_smaller_than_a_die(tmp_path: Path) -> None:
    text = MINIMAL.replace('architecture = "gpu"', 'architecture = "gpu"\nmemory_type = "LPDDR4"')
    load_hardware(write(tmp_path, text))
    with pytest.raises(CatalogueError, match="memory_capacity: 1 MB of LPDDR4 is below the 8 MB of a DRAM die"):
        load_hardware(write(tmp_path, text.replace('value = 16, unit = "GB"', 'value = 1, unit = "MB"')))


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
    with pytest.raises(
        CatalogueError,
        match=r"tiny\.toml: memory_levels: l2 and l3 missing among l9; chips of the class kpu need l2, l3",
    ):
        check_files([write(tmp_path, text)])


def test_a_coefficient_is_taken_in_any_unit_of_its_dimension(tmp_path: Path) -> None:
    hardware = load_hardware(write(tmp_path, coefficient("host_launch", "5", "us")))
    assert_close(hardware.coefficients["host_launch"].value, 5e-6)
    assert hardware.coefficients["host_launch"].source == "a data sheet"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (coefficient(value="1.5"), "coefficients.dram_efficiency.planar: 1.5 is not above 0 and at most 1"),
        (coefficient(value="0"), "coefficients.dram_efficiency.planar: 0 is not above 0 and at most 1"),
        (coefficient(value="nan"), "coefficients.dram_efficiency.planar: value is nan, expected a finite number"),
        (coefficient("host_launch", "-1", "s"), "coefficients.host_launch: -1 is not at least 0"),
        (coefficient("host_launch", "5", "W"), "coefficients.host_launch: unit 'W' measures W, expected s"),
        (coefficient("host_lunch"), "gpu has no coefficient host_lunch, did you mean host_launch?"),
        (coefficient(count=2), "coefficients.dram_efficiency.planar: is listed twice"),
        (coefficient("host_launch", "50", "s"), "would take"),
        (MINIMAL.replace("tdp = { value = 50", "tdp = { value = 0.1"), "breaks busy power"),
        (
            MINIMAL + '\n[geometry]\nwarp_sise = { value = 32, unit = "1", basis = "assumed", source = "mine" }\n',
            "geometry: unknown key warp_sise, did you mean warp_size?",
        ),
        (
            MINIMAL
            + '\n[[memory_levels]]\nname = "l2"\nkind = "cach"\nper = "chip"\n'
            + 'capacity = { value = 1, unit = "MiB", basis = "assumed", source = "mine" }\n',
            "memory_levels.l2.kind: 'cach', did you mean cache?",
        ),
        (
            MINIMAL
            + '\n[[energy_overrides]]\ncomponent = "dram"\naction = "read"\nenergy_pj = -3\nbasis = "assumed"\n'
            + 'source = "mine"\n',
            "energy_overrides.dram.read.energy_pj: -3 is not a number from 0",
        ),
        (MINIMAL.replace('id = "tiny"', 'id = "tiny"\naliases = "H1"'), "aliases: expected a list, found 'H1'"),
        (MINIMAL.replace('id = "tiny"', 'id = "tiny"\naliases = ["a@b"]'), "aliases: 'a@b', expected letters"),
        (
            MINIMAL.replace(
                "tdp = {", 'idle_power = { value = 60, unit = "W", basis = "assumed", source = "mine" }\ntdp = {'
            ),
            "idle_power: 60 W is above tdp of 50 W",
        ),
    ],
)
def test_what_a_stranger_tried_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError) as caught:
        check_files([write(tmp_path, text)])
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_peak_beyond_the_stated_array_is_refused(tmp_path: Path) -> None:
    text = copy_text("tpu_v4").replace(
        'rate = { value = 275, unit = "TFLOPS"', 'rate = { value = 4000, unit = "TFLOPS"'
    )
    text = text.replace("operations_per_clock = 32768\n", "")
    with pytest.raises(CatalogueError, match="more than 8 for each of the 128 x 128 elements of its array"):
        load_hardware(write(tmp_path, text, "mine.toml"))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("like", "dropped", "kept"),
    [
        ("hailo_8", "output_columns", "output_rows"),
        ("groq_tsp_v1", "weight_rows", "weight_columns"),
        ("tda4vm_c7x_mma", "matrix_columns", "matrix_rows"),
        ("xeon_8490h", "matrix_tile", "matrix_macs_per_instruction_bf16"),
    ],
)
def test_geometry_that_belongs_together_is_given_together(like: str, dropped: str, kept: str, tmp_path: Path) -> None:
    text = "\n".join(line for line in copy_text(like).splitlines() if not line.startswith(f"{dropped} ="))
    with pytest.raises(CatalogueError, match=rf"geometry: {dropped} is missing, as {kept} is given"):
        load_hardware(write(tmp_path, text))


def test_a_level_that_its_class_has_no_number_for_is_refused_alike(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(copy_text("t4").replace('name = "l2"', 'name = "l77"'))
    for command in (("hardware", "check", "mine.toml"), ("compare", "alexnet", "--hardware", "./mine.toml")):
        done = joulemap(*command)
        assert (done.returncode, done.stdout) == (ExitCode.CATALOGUE, "")
        assert "cannot be mapped: my_t4: no coefficient l77_efficiency" in done.stderr


@pytest.mark.parametrize("name", ["l4", "rtx_4090"])  # of a file and of a family
def test_a_chip_of_the_catalogue_is_no_file_to_check(name: str) -> None:
    with pytest.raises(CatalogueError, match=f"joulemap hardware show {name}"):
        check_files([Path(name)])


def test_a_pipe_is_there_and_no_file(joulemap: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    done = joulemap("hardware", "check", "pipe.toml")
    assert done.returncode == ExitCode.CATALOGUE
    assert "it is not a regular file" in done.stderr


@pytest.mark.parametrize("differs", [True, False])
def test_two_files_of_one_question_with_one_id_are_refused(differs: bool, tmp_path: Path) -> None:
    files = tmp_path / "a.toml", tmp_path / "b.toml"
    for number, file in enumerate(files):
        text = copy_text("l4").replace('id = "my_l4"', 'id = "mine"')
        file.write_text(text.replace('"NVIDIA L4"', f'"Mine {number if differs else 0}"'), encoding="utf-8")
    asked = Settings(hardware=tuple(map(str, files)))
    if not differs:
        assert {entry.id for entry, _ in select_hardware(asked).pairs} == {"mine"}
        return
    with pytest.raises(CatalogueError, match=r"b\.toml: the name 'mine' is already that of .*a\.toml"):
        select_hardware(asked)


def test_two_designs_of_one_question_with_one_id_are_refused(tmp_path: Path) -> None:
    for name, bandwidth in (("a", 4e11), ("b", 5e11)):
        text = write_design("mine", "l4", {"memory_bandwidth": bandwidth})
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    asked = Settings(hardware=(str(tmp_path / "a.toml"), str(tmp_path / "b.toml")))
    with pytest.raises(CatalogueError, match=r"b\.toml: the id 'mine' is already that of .*a\.toml"):
        select_hardware(asked)
