"""Readers of system tools: recorded outputs become records, and chips of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.system.errors import UsageError
from joulemap.wing.here import text
from joulemap.wing.here.machine import Memory
from joulemap.wing.here.match import match_machine
from joulemap.wing.here.reader import parse_memory, read_lspci, read_machine
from joulemap.wing.here.recording import load_recording

MACHINES = Path(__file__).parent / "machine"

FOUND = {
    "gaming_pc": (["rtx_3090"], 57.6e9),
    "gaming_pc_windows": (["rtx_4090"], 96e9),
    "macbook_m3_max": (["apple_m3_max"], None),
    "macbook_m4": (["apple_m4", "apple_m4_cpu", "apple_m4_neural_engine"], None),
    "mini_pc_strix_halo": (["ryzen_ai_max_395", "ryzen_ai_max_395_cpu", "ryzen_ai_max_395_npu"], 256e9),
    "laptop_lunar_lake": ([], 136.528e9),
    "raspberry_pi_5": (["raspberry_pi_5"], None),
    "server_two_cards": (["l40s", "epyc_9654"], 460.8e9),
    "container": ([], None),
    "nothing": ([], None),
    "old_laptop": ([], 17.064e9),
    "laptop_rtx_no_driver": ([], None),
    "laptop_ryzen": ([], 102.4e9),
}
"""Recorded machine -> chips of the catalogue that must be among its own, and the peak bandwidth of its memory."""


def test_every_recorded_machine_is_listed() -> None:
    assert {path.stem for path in MACHINES.glob("*.json")} == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_a_recorded_machine_is_found(name: str) -> None:
    labels, rate = FOUND[name]
    machine = read_machine(load_recording(MACHINES / f"{name}.json"))
    found = match_machine(machine)
    assert set(labels) <= {one.label for one in found.usable}
    assert machine.memory.bytes_per_s == (None if rate is None else pytest.approx(rate, rel=1e-9, abs=0))
    unknown = [one.printed for one in found.devices if one.hardware is None]
    assert all(any(name in note for note in found.notes) for name in unknown)


def test_two_cards_count_as_two_at_their_own_power_limit() -> None:
    (card, *_) = match_machine(read_machine(load_recording(MACHINES / "server_two_cards.json"))).usable
    assert (card.label, card.count) == ("l40s", 2)
    (card, *_) = match_machine(read_machine(load_recording(MACHINES / "gaming_pc.json"))).usable
    assert card.hardware == "rtx_3090@300W"


def test_what_cannot_be_read_is_one_line_each() -> None:
    gaps = read_machine(load_recording(MACHINES / "nothing.json")).gaps
    assert len(gaps) == 3
    assert all("\n" not in gap for gap in gaps)
    assert text.NO_DMIDECODE in gaps


def test_memory_is_stated_where_it_cannot_be_read() -> None:
    told = parse_memory("ddr5-5600x2", Memory(capacity_bytes=32e9))
    assert told.bytes_per_s == pytest.approx(2 * 8 * 5600e6, rel=1e-12, abs=0)
    assert told.capacity_bytes == 32e9
    with pytest.raises(UsageError):
        parse_memory("fast", Memory())


def test_lspci_names_products_and_skips_what_computes_nothing() -> None:
    graphics, neural = read_lspci(
        "00:02.0 VGA compatible controller: Intel Corporation Lunar Lake [Intel Arc Graphics 130V / 140V] (rev 04)\n"
        "00:0b.0 Processing accelerators: Intel Corporation Lunar Lake NPU (rev 04)\n"
        "01:00.0 VGA compatible controller: NVIDIA Corporation AD103 [GeForce RTX 4080] (rev a1)\n"
        "03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 52)\n"
    )
    assert [one.name for one in graphics] == ["Intel Arc Graphics 130V / 140V", "NVIDIA GeForce RTX 4080"]
    assert neural == ["Intel Lunar Lake NPU"]


@pytest.mark.parametrize("content", ["{", "[]", '{"lscpu": 1}', '{"other": "text"}'])
def test_a_file_that_is_no_recording_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(content)
    with pytest.raises(UsageError):
        load_recording(path)


def test_a_folder_of_outputs_is_a_recording(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("Raspberry Pi 5 Model B Rev 1.0")
    assert load_recording(tmp_path) == {"model": "Raspberry Pi 5 Model B Rev 1.0"}
