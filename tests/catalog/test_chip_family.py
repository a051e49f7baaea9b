"""Families of chips: one line of a table is a chip with every number of a file of its own."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest

from compare import assert_close
from joulemap.catalog.family import FOLDER, find_members, list_families, list_members, load_family, load_member
from joulemap.catalog.load import load_catalogue
from joulemap.domain.catalogue import find_entry
from joulemap.domain.settings import Settings
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.selection import name_configuration, select_hardware
from joulemap.system.errors import CatalogueError, UnknownNameError
from joulemap.system.name import fold_name

FAMILY = """\
architecture = "cpu"
vendor = "Example"

[sources]
table = "a data sheet"

[quantities]
clock = { value = 2, unit = "GHz", basis = "published", source = "table" }
memory_capacity = { value = 8, unit = "GB", basis = "published", source = "table" }
memory_bandwidth = { value = 50, unit = "GB/s", basis = "published", source = "table" }
tdp = { value = 20, unit = "W", basis = "published", source = "table" }

[peaks.fp32]
operations_per_clock = 32

[columns]
cores = { to = ["quantities.unit_count"], unit = "1", basis = "published", source = "table" }

[variants.vector.wide.peaks.fp32]
operations_per_clock = 64

[variants.vector.narrow]
"""


def test_no_two_lines_have_one_id() -> None:
    paths = [FOLDER / f"{family}.csv" for family in list_families()]
    ids = [line.partition(",")[0] for path in paths for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    assert len(ids) == len(set(ids)) >= len(list_members())


def write(folder: Path, table: str) -> Path:
    path = folder / "example.toml"
    path.write_text(FAMILY)
    path.with_suffix(".csv").write_text(table)
    return path


@pytest.mark.slow
def test_every_member_is_whole() -> None:
    catalogue = load_catalogue().entries
    taken = {fold_name(name) for entry in catalogue.values() for name in (entry.id, *entry.aliases)}
    names: dict[str, str] = {}
    for member in list_members().values():
        hardware = load_member(member.id)
        for name in (hardware.id, *hardware.aliases):
            assert fold_name(name) not in taken, name
            assert names.setdefault(fold_name(name), member.id) == member.id, name


def test_a_cell_reaches_its_number() -> None:
    hardware = load_member("rtx_3070")
    assert_close(hardware.peaks["fp32"].rate.value, 46 * 256 * 1.725e9)
    assert_close(hardware.memory_bandwidth.value, 256 * 14e9 / 8)
    assert (hardware.tdp.value, hardware.tdp.basis) == (220.0, "recalled")
    assert hardware.peaks["fp32"].rate.basis == "derived"


def test_variants_of_a_users_family(tmp_path: Path) -> None:
    path = write(tmp_path, "id,vector,cores\nsmall,narrow,4\nlarge,wide,8\n")
    small, large = load_family(path)
    assert_close(small.peaks["fp32"].rate.value, 4 * 32 * 2e9)
    assert_close(large.peaks["fp32"].rate.value, 8 * 64 * 2e9)


def test_a_document_states_some_cells_of_some_members(tmp_path: Path) -> None:
    path = write(tmp_path, "id,name,vector,cores\nwide,Wide,wide,4\nnarrow,Narrow,narrow,2\n")
    path.write_text(
        FAMILY.replace("[columns]", '[[documents]]\nsource = "log"\nbasis = "measured"\n[columns]')
        .replace('"measured"\n', '"measured"\ncolumns = ["cores"]\nmembers = ["wide"]\n')
        .replace("[sources]", '[sources]\nlog = "printed by the device"')
    )
    wide, narrow = load_family(path)
    assert (wide.unit_count.basis, wide.unit_count.source) == ("measured", "printed by the device")
    assert (narrow.unit_count.basis, narrow.unit_count.source) == ("published", "a data sheet")


def test_a_document_names_columns_and_members_that_exist() -> None:
    for family in list_families():
        shared = tomllib.loads((FOLDER / f"{family}.toml").read_text(encoding="utf-8"))
        with (FOLDER / f"{family}.csv").open(newline="", encoding="utf-8") as file:
            cells = {row["id"]: row for row in csv.DictReader(file)}
        for document in shared.get("documents", ()):
            stated = [cells[member][column] for member in document["members"] for column in document["columns"]]
            assert all(stated), (family, document["source"])


@pytest.mark.parametrize(
    "table",
    [
        "id,vector,cores\nsmall,narrow\n",
        "id,vector,cores\nsmall,other,4\n",
        "id,vector,cores\nsmall,narrow,four\n",
        "id,vector,cores,colour\nsmall,narrow,4,red\n",
        "id,vector,cores\nsmall,narrow,\n",
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, table: str) -> None:
    with pytest.raises(CatalogueError, match="example\\.csv line 2"):
        load_family(write(tmp_path, table))


def test_members_are_found_by_the_names_that_machines_print() -> None:
    assert find_members(["NVIDIA GeForce RTX 3070 Laptop GPU"]) == ("rtx_3070_laptop_gpu",)
    assert find_members(["rtx 3070, 3080 ti"]) == ("rtx_3070", "rtx_3080_ti")
    assert set(find_members(["nvidia_ada"])) == {
        one.id for one in list_members().values() if one.family == "nvidia_ada"
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vek280_dpu_c20b14cu1", "vek280_dpu_c20b14"),
        ("Jetson Xavier", "jetson_agx_xavier"),
        ("raspberry_pi_4 + coral_edge_tpu (USB)", "coral_edge_tpu"),
        ("rockchip RK3566/RK3568", "rk3568_npu"),
        ("rockchip RK3588 (Radxa Rock 5B)", "rk3588_npu"),
        ("sony_imx500 (Raspberry Pi AI Camera)", "sony_imx500"),
        ("jetson_orin_nano_8gb_cpu (page: this format runs on the CPU)", "jetson_orin_nano_cpu"),
        ("jetson_agx_orin_64gb_cpu (page: this format runs on the CPU)", "jetson_agx_orin_cpu"),
        ("STM32MP157F-DK2", "stm32mp157"),
        ("Renesas RZ V2L", "rz_v2l"),
    ],
)
def test_boards_have_the_names_of_their_benchmarks(name: str, expected: str) -> None:
    assert find_entry(known_hardware((name,)), name).id == expected
    assert name_configuration(name) == expected


def test_members_join_only_questions_that_name_them() -> None:
    assert not known_hardware().keys() & list_members().keys()
    selection = select_hardware(Settings(hardware=("l4", "3070[tdp=150W]@1GHz")))
    assert [(entry.described, mode) for entry, mode in selection.pairs] == [("l4", "default"), ("rtx_3070", "1000MHz")]
    with pytest.raises(UnknownNameError, match="rtx_3070"):
        select_hardware(Settings(hardware=("rtx_3071",)))


def test_families_are_listed() -> None:
    assert {one.family for one in list_members().values()} < set(list_families())
    assert "hailo_8l" in known_hardware() and "hailo_8l" not in list_members()
