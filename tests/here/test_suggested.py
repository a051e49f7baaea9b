"""Readers of system tools: recorded outputs become records, and chips of the catalogue."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from compare import assert_close
from fuzz_here import find_faults
from joulemap.device.energy import Rapl, Zone
from joulemap.physics.record.hardware import Hardware
from joulemap.system.errors import UsageError
from joulemap.wing.here import probe
from joulemap.wing.here.machine import Graphics, Machine, Memory
from joulemap.wing.here.match import match_machine
from joulemap.wing.here.reader import GIB, parse_memory, read_lspci, read_machine, read_nvidia, read_xpu
from joulemap.wing.here.recording import Recording, load_recording
from joulemap.wing.here.show.word import NO_DMIDECODE

MACHINES = Path(__file__).parent / "machine"

FOUND = {
    "gaming_pc": (["rtx_3090", "ryzen_9_5950x"], 57.6e9),
    "gaming_pc_windows": (["rtx_4090", "ryzen_7_7800x3d"], 96e9),
    "laptop_lunar_lake_windows": (["arc_140v", "core_ultra7_258v", "lunar_lake_npu"], 136.528e9),
    "laptop_snapdragon_windows": (["snapdragon_x_elite_cpu", "snapdragon_x_elite_npu"], 135.168e9),
    "macbook_m3_max": (["apple_m3_max", "apple_m3_max_cpu", "apple_m3_max_neural_engine"], None),
    "macbook_m4": (["apple_m4", "apple_m4_cpu", "apple_m4_neural_engine"], None),
    "mini_pc_strix_halo": (["ryzen_ai_max_395", "ryzen_ai_max_395_cpu", "ryzen_ai_max_395_npu"], 256e9),
    "laptop_lunar_lake": (["arc_140v", "core_ultra7_258v"], 136.528e9),
    "raspberry_pi_5": (["raspberry_pi_5"], None),
    "server_two_cards": (["l40s", "epyc_9654"], 460.8e9),
    "container": (["epyc_7763"], None),
    "nothing": ([], None),
    "old_laptop": (["core_i5_6200u"], 17.064e9),
    "laptop_rtx_no_driver": (["rtx_3060_laptop_gpu", "core_i7_12700h"], None),
    "laptop_ryzen": (["radeon_780m", "ryzen_7_7840u"], 102.4e9),
}
"""Recorded machine -> chips of the catalogue that must be among its own, and the peak bandwidth of its memory."""


def test_every_recorded_machine_is_listed() -> None:
    assert {path.stem for path in MACHINES.glob("*.json")} == FOUND.keys()


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FOUND)
def test_a_recorded_machine_is_found(name: str) -> None:
    labels, rate = FOUND[name]
    machine = read_machine(load_recording(MACHINES / f"{name}.json"))
    found = match_machine(machine)
    assert set(labels) <= {one.label for one in found.usable}
    assert machine.memory.bytes_per_s == (None if rate is None else pytest.approx(rate, rel=1e-9, abs=0))
    unknown = [one.printed for one in found.devices if one.hardware is None]
    assert all(any(name in note for note in found.notes) for name in unknown)


def test_an_apple_processor_is_the_one_with_its_number_of_cores() -> None:
    machine = read_machine(load_recording(MACHINES / "macbook_m3_max.json"))
    assert machine.cpu is not None
    for count, label in ((16, "apple_m3_max_cpu"), (14, "apple_m3_max_10p_cpu")):  # 12 or 10 fast cores and 4 slow ones
        own = attrs.evolve(machine, cpu=attrs.evolve(machine.cpu, core_count=count))
        assert [one.label for one in match_machine(own).usable if one.kind == "cpu"] == [label]


def test_two_cards_count_as_two_at_their_own_power_limit() -> None:
    (card, *_) = match_machine(read_machine(load_recording(MACHINES / "server_two_cards.json"))).usable
    assert (card.label, card.count) == ("l40s", 2)
    (card, *_) = match_machine(read_machine(load_recording(MACHINES / "gaming_pc.json"))).usable
    assert card.hardware == "rtx_3090@300W" and "power limit" in card.origin  # the catalogue has 350 W
    assert card.memory_bytes == 24576 * 2**20


@pytest.mark.parametrize(("line", "hardware", "power_w"), [
    ("NVIDIA GeForce RTX 4090, 24564 MiB, 450.00 W", "rtx_4090", 450.0),
    ("NVIDIA GeForce RTX 4060 Ti, 8188 MiB, 165.00 W", "rtx_4060_ti[tdp=165W]", 165.0),
    ("NVIDIA RTX A6000, 49140 MiB, 300.00 W", "rtx_a6000", 300.0),
    ("NVIDIA RTX A6000, 46068 MiB, 300.00 W", "rtx_a6000[memory_capacity=44.99GB]", 300.0),
])  # fmt: skip
def test_a_card_has_the_memory_and_the_limit_that_its_driver_reports(line: str, hardware: str, power_w: float) -> None:
    # the engine finds 1.0737 bytes per nominal byte: 46068 MiB, with error correction on, are 1.0737 x 44.99 GB
    machine = Machine(system="Linux", graphics=tuple(read_nvidia(f"name, memory.total [MiB], power.limit [W]\n{line}")))
    (card,) = match_machine(machine).usable
    assert (card.hardware, card.power_w) == (hardware, power_w)
    assert card.memory_bytes == float(line.split(", ")[1].split()[0]) * 2**20


@pytest.mark.parametrize(("name", "label"), [
    ("NVIDIA B300 SXM6 AC", "b300_sxm"), ("AMD Instinct MI300X OAM", "mi300x"),
])  # fmt: skip
def test_a_board_is_known_by_the_name_that_its_driver_prints(name: str, label: str) -> None:
    (board,) = match_machine(Machine(system="Linux", graphics=(Graphics(name=name, source="driver"),))).usable
    assert board.label == label


def test_a_chip_of_apple_is_one_processor() -> None:
    """The catalogue has the four fast cores of an M1; it has as many slow ones."""
    machine = read_machine(load_recording(MACHINES / "macbook_m4.json"))
    assert machine.cpu is not None
    found = match_machine(attrs.evolve(machine, cpu=attrs.evolve(machine.cpu, name="Apple M1", core_count=8)))
    assert any(one.label == "apple_m1_cpu" for one in found.usable)
    assert not found.notes


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "label"), [
    ("laptop_snapdragon_windows", "snapdragon_x_elite_npu"), ("macbook_m4", "apple_m4_neural_engine"),
])  # fmt: skip
@pytest.mark.slow
def test_a_neural_unit_has_the_memory_of_its_machine(name: str, label: str) -> None:
    machine = read_machine(load_recording(MACHINES / f"{name}.json"))
    unit = next(one for one in match_machine(machine).usable if one.label == label)
    assert unit.memory_bytes == machine.memory.capacity_bytes
    assert unit.shares_memory


def test_what_cannot_be_read_is_one_line_each() -> None:
    gaps = read_machine(load_recording(MACHINES / "nothing.json")).gaps
    others = read_machine(load_recording(MACHINES / "laptop_rtx_no_driver.json")).gaps
    assert (len(gaps), len(others)) == (2, 2)
    assert all("\n" not in gap for gap in (*gaps, *others))
    assert NO_DMIDECODE not in gaps and NO_DMIDECODE in others  # without chips, the memory does not matter


def test_memory_is_stated_where_it_cannot_be_read() -> None:
    told = parse_memory("ddr5-5600x2", Memory(capacity_bytes=32e9))
    assert_close(told.bytes_per_s, 2 * 8 * 5600e6)
    assert told.capacity_bytes == 32e9
    with pytest.raises(UsageError):
        parse_memory("fast", Memory())


def test_memory_with_more_channels_than_a_processor_has_is_refused() -> None:
    recording = load_recording(MACHINES / "old_laptop.json")  # DDR4 in two channels, 34.1 GB/s in the catalogue
    for configuration, is_doubted in (("DDR4-2400x2", False), ("DDR4-4800x2", True)):
        notes = match_machine(read_machine(recording, configuration)).notes
        assert any("76.8 GB/s" in note and "34.1 GB/s" in note for note in notes) == is_doubted
    with pytest.raises(UsageError):
        match_machine(read_machine(recording, "DDR4-3200x4"))


def test_chips_that_share_a_memory_of_unknown_speed_have_one_bandwidth() -> None:
    found = match_machine(read_machine(load_recording(MACHINES / "laptop_rtx_no_driver.json"))).usable
    shared = [one for one in found if one.shares_memory]
    (card,) = [one for one in found if not one.shares_memory]
    assert [one.memory_bytes_per_s for one in shared] == [76.8e9, 76.8e9]  # of the processor in the catalogue
    assert ["bandwidth" in one.origin for one in (*shared, card)] == [True, True, False]


def test_lspci_names_products_and_skips_what_computes_nothing() -> None:
    graphics, neural = read_lspci(
        "00:02.0 VGA compatible controller: Intel Corporation Lunar Lake [Intel Arc Graphics 130V / 140V] (rev 04)\n"
        "00:0b.0 Processing accelerators: Intel Corporation Lunar Lake NPU (rev 04)\n"
        "01:00.0 VGA compatible controller: NVIDIA Corporation AD103 [GeForce RTX 4080] (rev a1)\n"
        "03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 52)\n"
    )
    assert [one.name for one in graphics] == ["Intel Arc Graphics 130V / 140V", "NVIDIA GeForce RTX 4080"]
    assert neural == ["Intel Lunar Lake NPU"]


@pytest.mark.parametrize(
    ("accel", "names"),
    [
        ("intel_vpu 0x643e 0x04", ("Lunar Lake NPU",)),
        ("amdxdna 0x17f0 0x11", ("Strix Halo NPU",)),
        ("amdxdna 0x17f0 0x20", ("Krackan Point NPU",)),
        ("amdxdna", ("NPU",)),  # a recording without PCI numbers
        ("habanalabs 0x1020 0x01", ()),
    ],
)
def test_a_neural_unit_is_known_by_its_pci_device(accel: str, names: tuple[str, ...]) -> None:
    assert read_machine({"system": "Linux", "accel": accel}).neural == names


@pytest.mark.parametrize("content", ["{", "[]", '{"lscpu": 1}', '{"other": "text"}'])
def test_a_file_that_is_no_recording_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(content)
    with pytest.raises(UsageError):
        load_recording(path)


def test_a_folder_of_outputs_is_a_recording(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("Raspberry Pi 5 Model B Rev 1.0")
    assert load_recording(tmp_path) == {"model": "Raspberry Pi 5 Model B Rev 1.0"}


def test_a_card_that_the_catalogue_lacks_is_described_by_its_driver() -> None:
    smi = (
        "name, memory.total [MiB], power.limit [W], clocks.max.sm [MHz], clocks.max.memory [MHz], compute_cap\n"
        "NVIDIA GeForce RTX 9999, 8192 MiB, 220.00 W, 2100 MHz, 7001 MHz, 8.6\n"
    )
    machine = read_machine({"system": "Linux", "nvidia-smi": smi, "nvml": '[{"cores": 5888, "bus_bits": 256}]'})
    (card,) = match_machine(machine).usable
    assert card.label == "this_nvidia_geforce_rtx_9999"
    assert isinstance(card.hardware, Hardware)
    assert card.hardware.unit_count.value == 46
    assert_close(card.memory_bytes_per_s, 2 * 7001e6 * 256 / 8)
    (unknown,) = match_machine(read_machine({"system": "Linux", "nvidia-smi": smi})).devices
    assert unknown.hardware is None


def test_linux_inside_windows_takes_memory_and_display_from_it() -> None:
    inside = {**load_recording(MACHINES / "laptop_lunar_lake.json"), "system": "Linux"}
    machine = read_machine({**inside, "lscpu": "CPU(s): 8\nModel name: Intel(R) Core(TM) Ultra 7 258V\n"})
    assert_close(machine.memory.bytes_per_s, 136.528e9)
    assert [one.name for one in machine.graphics] == ["Intel(R) Arc(TM) 140V GPU (16GB)"]


def test_xpu_smi_lists_cards() -> None:
    (card,) = read_xpu('{"device_list": [{"device_name": "Intel(R) Arc(TM) A770 Graphics", "device_type": "GPU"}]}')
    assert card.name == "Intel(R) Arc(TM) A770 Graphics"
    assert read_xpu("Error") == []


def test_the_memory_of_a_card_tells_which_of_the_names_of_its_die_it_is() -> None:
    lspci = (
        "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 "
        "[Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M] (rev c8)\n"
    )
    told = read_machine({"system": "Linux", "lspci": lspci, "amdgpu": "25753026560"})
    assert [one.label for one in match_machine(told).usable] == ["rx_7900_xtx"]
    found = match_machine(read_machine({"system": "Linux", "lspci": lspci}))
    assert not found.usable
    assert "rx_7900_xtx" in found.notes[0]


def test_idle_power_of_a_counter_that_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 70 J over 100 J to 10 J in 2 s: 40 J, 20 W."""
    counter, times = tmp_path / "energy_uj", iter((5.0, 7.0))
    counter.write_text("70000000")
    clock = SimpleNamespace(perf_counter=lambda: next(times), sleep=lambda _: counter.write_text("10000000"))
    monkeypatch.setattr(probe, "time", clock)
    monkeypatch.setattr(probe, "run_tool", lambda *_: "")
    monkeypatch.setattr(Rapl, "find", lambda: Rapl([Zone(tmp_path, 100_000_000)]))
    assert_close(probe.measure_idle(), 20.0)


def record_mac(chip: str, memory_gib: int, cores: str, gpu_cores: int) -> dict[str, str]:
    """Return a recording of a Mac."""
    hardware = {"chip_type": chip, "number_processors": f"proc {cores}", "physical_memory": f"{memory_gib} GB"}
    display = {"sppci_cores": str(gpu_cores), "sppci_model": chip}
    profile = {"SPDisplaysDataType": [display], "SPHardwareDataType": [hardware]}
    return {"system": "Darwin", "system_profiler": json.dumps(profile)}


@pytest.mark.sample(3)
@pytest.mark.parametrize(("recording", "usable"), [
    (record_mac("Apple M1", 8, "8:4:4", 7), {"gpu": 8 * GIB - 3e9, "cpu": 8 * GIB - 3e9}),  # below 2/3 of 8 GiB
    (record_mac("Apple M3 Pro", 18, "11:5:6", 14), {"gpu": 18 * GIB * 0.74, "cpu": 18 * GIB - 4e9}),
    (record_mac("Apple M3 Max", 64, "16:12:4", 40), {"gpu": 64 * GIB * 0.75, "cpu": 64 * GIB - 4e9}),
    (load_recording(MACHINES / "old_laptop.json"), {"cpu": 8048112 * 1024 - 2e9}),
    (load_recording(MACHINES / "raspberry_pi_5.json"), {"cpu": 8e9 - 1e9}),
    (load_recording(MACHINES / "gaming_pc.json"), {"gpu": 24576 * 2**20}),
])  # fmt: skip
def test_the_system_keeps_its_part_of_a_shared_memory(recording: Recording, usable: dict[str, float]) -> None:
    found = {one.kind: one for one in match_machine(read_machine(recording)).usable}
    for kind, expected in usable.items():
        assert_close(found[kind].usable_bytes, expected, rel=0.01)
        assert (found[kind].usable_bytes or 0.0) <= (found[kind].memory_bytes or 0.0)


def test_odd_outputs_of_tools_are_read_or_refused() -> None:
    assert find_faults(500, matches=False) == []


@pytest.mark.slow
def test_odd_outputs_of_tools_are_matched_or_refused() -> None:
    assert find_faults(200, 10_000) == []


@pytest.mark.parametrize("capacity", ['"N/A"', "[1]", "-1", "1e400"])
def test_a_number_that_is_none_is_refused_by_name(capacity: str) -> None:
    cim = f'{{"processor": [{{"Name": "A CPU", "NumberOfCores": 4}}], "memory": [{{"Capacity": {capacity}}}]}}'
    with pytest.raises(UsageError, match="Capacity"):
        read_machine({"system": "Windows", "cim": cim})


def test_what_never_ends_is_no_recording(tmp_path: Path) -> None:
    pipe, folder, deep = tmp_path / "pipe", tmp_path / "folder", tmp_path / "deep.json"
    os.mkfifo(pipe)
    folder.mkdir()
    os.mkfifo(folder / "lscpu.txt")
    deep.write_text("[" * 100_000)
    for path in (pipe, folder, deep, Path("/dev/zero")):
        with pytest.raises(UsageError):
            load_recording(path)
    assert "cpuinfo" in load_recording(Path("/proc"))
