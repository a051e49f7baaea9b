"""Which hardware a person means: by id, alias, power mode, class, deployment or file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from compare import assert_close
from conftest import Run
from joulemap.catalog.chip import list_architectures, load_hardware
from joulemap.catalog.digest import DATA, catalogue_digest, expand_paths
from joulemap.catalog.load import load_catalogue, load_files
from joulemap.catalog.sheet import load_models, load_scenarios
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.catalogue import (
    ANY_NUMBERS,
    DEFAULT_HARDWARE,
    HardwareEntry,
    describe_like,
    find_entry,
    find_model_name,
)
from joulemap.domain.settings import Settings
from joulemap.physics.record.calibration import Calibration
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.selection import select_chip, select_hardware
from joulemap.system.errors import (
    AmbiguousNameError,
    CatalogueError,
    ExitCode,
    UnknownNameError,
    UnsupportedError,
    UsageError,
)
from joulemap.workspace import Workspace
from sample import thin

CATALOGUE = load_catalogue()
ENTRIES = CATALOGUE.entries


def chosen(**settings: Any) -> list[str]:
    return [f"{entry.id}@{mode}" for entry, mode in select_hardware(Settings(**settings)).pairs]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100_sxm5", "h100_sxm5"),
        ("H100", "h100_sxm5"),
        ("h100-sxm5", "h100_sxm5"),
        ("Jetson-Orin-Nano", "jetson_orin_nano_8gb"),
        ("jetson orin nano", "jetson_orin_nano_8gb"),
        ("Xeon-8490H", "xeon_8490h"),
        ("KPU-T64", "kpu_t64"),
        ("A100", "a100_sxm4_80gb"),
        ("NVIDIA H100", "h100_sxm5"),
        ("NVIDIA A100-SXM4-80GB", "a100_sxm4_80gb"),
        ("A100 80GB PCIe", "a100_pcie_80gb"),
        ("NVIDIA Tesla T4", "t4"),
        ("Intel(R) Xeon(R) Platinum 8490H", "xeon_8490h"),
        ("~tpu_v5e", "tpu_v5e"),
        ("TPU v4", "tpu_v4"),
        ("Coral-TPU", "coral_edge_tpu"),
        ("CGRA-Plasticine", "plasticine"),
        ("Xilinx-DPU", "dpu_b4096_kv260"),
        ("jetson_orin_agx_cpu", "jetson_agx_orin_cpu"),
        ("epyc_turin", "epyc_9755"),
        ("AmpereOne-M192", "ampereone_m_a192_32m"),
        ("RTX 4090", "rtx_4090"),
        ("Raspberry Pi 5", "raspberry_pi_5"),
        ("MI300X", "mi300x"),
        ("Hailo 8", "hailo_8"),
        ("Amazon Graviton4", "graviton4"),
    ],
)
def test_a_name_or_alias_resolves_exactly(name: str, expected: str) -> None:
    assert find_entry(ENTRIES, name).id == expected


@pytest.mark.parametrize("start", thin(range(8), every=8))
def test_every_name_of_a_hardware_is_its_own_in_any_case_and_with_its_vendor(start: int) -> None:
    for entry in list(ENTRIES.values())[start::8]:
        check_names(entry)


def check_names(entry: HardwareEntry) -> None:
    vendor = entry.vendor.partition(" (")[0].partition(" /")[0]
    for name in entry.names:
        for written in (name, name.upper(), name.replace("_", " "), name.replace(" ", "-"), f"{vendor} {name}"):
            assert find_entry(ENTRIES, written) is entry, written


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("H200 NVL", "h200_sxm"),
        ("A900", "a100_sxm4_80gb"),
        ("AMD H100", "h100_sxm5"),
        ("MI250", "mi250x"),
        ("RTX 4080", "rtx_4090"),
        ("TPU v3", "tpu_v4"),
        ("L2", "l20"),
        ("Xeon", "xeon_8490h"),
        ("Jetson Nano", "jetson_orin_nano_8gb"),
        ("GH300", "gh200"),
        ("h100_sxm4", "h100_sxm5"),
    ],
)
def test_a_chip_that_is_not_there_becomes_no_other(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_entry(ENTRIES, name)
    assert near in caught.value.near


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("TPU v5", "tpu_v5e, tpu_v5p"),
        ("epyc", "epyc_9654, epyc_9754, epyc_9755, epyc_9965"),
        ("Wormhole", "wormhole_galaxy_chip, wormhole_n150, wormhole_n300_chip"),
    ],
)
def test_words_of_several_hardware_list_them(name: str, candidates: str) -> None:
    with pytest.raises(AmbiguousNameError, match=f"may be {candidates}: name one"):
        find_entry(ENTRIES, name)


@pytest.mark.parametrize(("name", "chip"), CLASS_HARDWARE.items())
def test_a_class_means_a_chip_of_it_that_runs_what_is_asked_by_default(name: str, chip: str) -> None:
    assert ENTRIES[chip].architecture == name
    assert "fp32" in ENTRIES[chip].precisions or name == "dpu"


def test_a_class_in_place_of_a_hardware_is_said() -> None:
    selection = select_hardware(Settings(hardware="H100, TPU Dsp"))
    assert [entry.id for entry, _ in selection.pairs] == ["h100_sxm5", "tpu_v4", "tda4vm_c7x_mma"]
    assert selection.meanings == {"TPU": "tpu_v4", "Dsp": "tda4vm_c7x_mma"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("H100 A100", ["h100_sxm5", "a100_sxm4_80gb"]),
        ("H100,A100", ["h100_sxm5", "a100_sxm4_80gb"]),
        ("RTX 4090 Jetson Orin Nano@15W, ~kpu_t64", ["rtx_4090", "jetson_orin_nano_8gb", "kpu_t64"]),
        (["Jetson", "Orin", "Nano", "TPU", "v4"], ["jetson_orin_nano_8gb", "tpu_v4"]),
        (["A100", "GPU"], ["a100_sxm4_80gb", "h100_sxm5"]),
        (["A40@200W", "l4@900MHz", "Jetson", "Orin", "Nano@15W", "T4"], ["a40", "l4", "jetson_orin_nano_8gb", "t4"]),
        ("A100 GPU", ["a100_sxm4_80gb"]),
    ],
)
def test_hardware_is_listed_with_commas_or_spaces(written: str | list[str], expected: list[str]) -> None:
    assert [entry.id for entry, _ in select_hardware(Settings(hardware=written)).pairs] == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "resnet18", "--hardware", "./mine,own.toml"),
        ("explain", "resnet18", "t4", "--hardware", "./mine,own.toml"),
        ("hardware", "sanity", "--hardware", "./mine,own.toml"),
    ],
    ids=" ".join,
)
def test_a_file_whose_name_has_a_comma(arguments: tuple[str, ...], joulemap: Run, tmp_path: Path) -> None:
    own_file(tmp_path).rename(tmp_path / "mine,own.toml")
    done = joulemap(*arguments, "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    assert '"mine"' in done.stdout


@pytest.mark.parametrize("text", [",", " ", " , "])
def test_hardware_of_commas_alone_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the names in"):
        select_hardware(Settings(hardware=text))


@pytest.mark.parametrize(("written", "named"), [("H100 RTX 4081", "H100 RTX 4081"), ("H100,nonsense", "nonsense")])
def test_what_is_no_hardware_in_a_list_is_named(written: str, named: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown hardware '{named}'"):
        select_hardware(Settings(hardware=written))


def test_a_measurement_is_of_a_chip_not_of_a_class() -> None:
    with pytest.raises(UsageError, match="GPU is a class of hardware: name a chip of it"):
        select_chip("GPU", Settings())


def test_settings_take_names_in_any_case() -> None:
    settings = Settings(
        architecture=("GPU", "Tpu"),
        deployment="Data Center",  # type: ignore[arg-type]
        precision=("FP16", "Int8", "float32", "bfloat16"),  # type: ignore[arg-type]
        runtime="Eager",  # type: ignore[arg-type]
    )
    assert settings == Settings(
        architecture=("gpu", "tpu"),
        deployment="datacenter",
        precision=("fp16", "int8", "fp32", "bf16"),
        runtime="eager",
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ResNet-50", "resnet50"),
        ("ViT-B/16", "vit_b_16"),
        ("MobileNet V2", "mobilenet_v2"),
        ("./ResNet50.py:net", "./ResNet50.py:net"),
        ("resnet19", "resnet19"),
    ],
)
def test_a_model_is_named_as_people_write_it(written: str, expected: str) -> None:
    assert find_model_name(written, load_models()) == expected


@pytest.mark.parametrize("name", ["h101", "H100-SX", "xeon", "jetson", "orin", "tpu", "", "h100_sxm5 ti"])
def test_a_part_of_a_name_is_no_name(name: str) -> None:
    with pytest.raises(UnknownNameError):
        find_entry(ENTRIES, name)


def test_every_class_has_a_hardware_that_stands_for_it_and_one_precision_runs_on_all() -> None:
    assert {architecture: ENTRIES[name].architecture for architecture, name in CLASS_HARDWARE.items()} == {
        architecture: architecture for architecture in list_architectures()
    }
    assert set.intersection(*(set(ENTRIES[name].precisions) for name in CLASS_HARDWARE.values())) == {"int8"}
    assert [name for name in DEFAULT_HARDWARE if ENTRIES[name].unavailable] == [CLASS_HARDWARE["kpu"]]


def test_a_name_after_one_with_a_mode_is_reported_as_unknown_hardware() -> None:
    with pytest.raises(UnknownNameError, match="unknown hardware 'v100_x'"):
        select_hardware(Settings(hardware="a40@200W v100_x l4@900MHz"))


def test_modes_filters_and_defaults() -> None:
    assert chosen() == [f"{name}@default" for name in DEFAULT_HARDWARE]
    assert chosen(hardware=("KPU-T64@6w", "kpu_t64@6W", "kpu_t64")) == ["kpu_t64@6W", "kpu_t64@default"]
    assert chosen(hardware=("kpu_t64", "jetson-orin-nano@7W"), power_mode="10w")[0] == "kpu_t64@10W"
    with pytest.raises(UnknownNameError, match=r"unknown power mode '99W'; .* its power modes are 3W, 6W, 10W"):
        chosen(hardware=("kpu_t64@99W",))
    with pytest.raises(UnknownNameError, match="xeon_8490h takes a power limit above its 120 W"):
        chosen(hardware=("xeon_8490h",), power_mode="15W")
    edge = {name.partition("@")[0] for name in chosen(deployment=("edge",), power_budget_w=1000.0)}
    assert edge == {entry.id for entry in ENTRIES.values() if "edge" in entry.deployment and not entry.sold_in}
    laptops = {name.partition("@")[0] for name in chosen(kind=("laptop",))}
    assert laptops and laptops == {entry.id for entry in ENTRIES.values() if entry.form == "laptop"}
    both = {name.partition("@")[0] for name in chosen(deployment=("edge",), architecture=("gpu",), power_budget_w=1e3)}
    assert both == {name for name in edge if ENTRIES[name].architecture == "gpu"}
    with_mode = chosen(deployment=("edge", "embedded"), power_mode="15W")
    assert with_mode
    assert all(name.endswith("@15W") for name in with_mode)
    with pytest.raises(UsageError, match="no hardware is of architecture cgra and for datacenter"):
        chosen(architecture=("cgra",), deployment=("datacenter",))


def test_a_mode_that_is_the_default_by_another_name_is_no_other_operating_point() -> None:
    twins = {name: entry.default_names for name, entry in ENTRIES.items() if entry.default_names}
    assert twins == {
        "jetson_agx_orin_64gb_gpu": ("MAXN",),
        "jetson_agx_orin_cpu": ("MAXN",),
        "jetson_orin_nano_8gb": ("MAXN_SUPER",),
        "jetson_orin_nx_16gb": ("40W",),
        "jetson_thor_t5000": ("130W",),
        "kpu_t256": ("30W",),
        "kpu_t64": ("6W",),
        "kpu_t768": ("60W",),
    }
    for name, entry in ENTRIES.items():
        every = select_hardware(Settings(hardware=(name,)), "every mode").pairs
        assert [mode for _, mode in every] == list(entry.distinct_modes)
        assert set(entry.distinct_modes) | set(entry.default_names) == {"default", *entry.power_modes}
    assert chosen(hardware=("kpu_t64@6W",)) == ["kpu_t64@6W"]


@pytest.mark.parametrize(
    ("name", "budget_w", "mode"),
    [
        ("jetson_orin_nano_8gb", 7.0, "7W"),
        ("jetson_orin_nano_8gb", 15.0, "15W"),
        ("jetson_orin_nano_8gb", 25.0, "default"),
        ("kpu_t256", 15.0, "15W"),
        ("kpu_t256", 40.0, "default"),
        ("kpu_t256", 60.0, "50W"),
        ("cloud_ai_100_pro", 15.0, None),
        ("cloud_ai_100_pro", 15.45, "SoC-12W"),
        ("raspberry_pi_5", 15.0, "default"),
        ("h100_sxm5", 15.0, None),
    ],
)
def test_within_a_budget_a_chip_runs_at_its_largest_mode(name: str, budget_w: float, mode: str | None) -> None:
    other = "coral_edge_tpu"
    selection = select_hardware(Settings(hardware=(name, other), power_budget_w=budget_w))
    found = [f"{entry.id}@{one}" for entry, one in selection.pairs]
    assert found == [*([f"{name}@{mode}"] if mode else []), f"{other}@default"]
    assert list(selection.left_out) == ([] if mode else [name])


def test_every_mode_within_a_budget_that_was_asked_for() -> None:
    settings = Settings(hardware=("kpu_t64",), power_budget_w=7.0)
    assert [mode for _, mode in select_hardware(settings, "every mode").pairs] == ["default", "3W"]
    deployed = Settings(deployment=("embedded",), hardware=("kpu_t64", "jetson-orin-nx@25W"))
    assert [mode for _, mode in select_hardware(deployed, "every mode").pairs] == ["default", "3W", "10W", "25W"]
    assert [mode for _, mode in select_hardware(deployed).pairs] == ["10W", "25W"]


def test_a_scenario_is_deployments_with_a_budget() -> None:
    for name, scenario in load_scenarios().items():
        selection = select_hardware(Settings(scenario=name))
        for entry, mode in selection.pairs:
            assert set(entry.deployment) & set(scenario.deployment)
            assert scenario.power_budget is None or entry.cap_w(mode) <= scenario.power_budget.value
    assert {"datacenter", "edge", "embedded"} <= set(load_scenarios())
    assert select_hardware(Settings(deployment=("datacenter", "edge"))).budget is None
    with pytest.raises(UnknownNameError, match="unknown scenario 'robt'; did you mean robot"):
        select_hardware(Settings(scenario="robt"))
    with pytest.raises(UsageError, match=r"no hardware stays within 1 W: coral_edge_tpu: at least 4\.5 W"):
        select_hardware(Settings(hardware=("coral_edge_tpu",), power_budget_w=1.0))
    # its driver takes 40 to 72 W
    assert select_hardware(Settings(hardware=("l4",), power_budget_w=60.0)).pairs[0][1] == "60W"
    assert select_hardware(Settings(hardware=("l4@60W",), power_budget_w=60.0)).pairs[0][1] == "60W"
    with pytest.raises(UsageError, match="power_budget_w is 0, expected above 0"):
        Settings(power_budget_w=0.0)


def test_the_template_knows_what_the_files_say() -> None:
    assert known_hardware() == ENTRIES


def test_a_power_mode_scales_what_runs_on_the_clock() -> None:
    nano = CATALOGUE.find("jetson_orin_nano_8gb")
    mode = next(mode for mode in nano.power_modes if mode.name == "15W")
    slow = nano.in_mode("15W")
    ratio = mode.clock.value / nano.clock.value
    units = (mode.unit_count or nano.unit_count).value / nano.unit_count.value
    assert_close(slow.peaks["fp16"].rate.value, nano.peaks["fp16"].rate.value * ratio * units)
    assert (slow.tdp.value, slow.clock.value) == (mode.tdp.value, mode.clock.value)
    assert slow.power_mode == "15W"
    assert slow.digest != nano.digest
    assert nano.in_mode("default") is nano
    with pytest.raises(KeyError, match="no power mode eco"):
        nano.in_mode("eco")


def modes() -> list[tuple[str, str]]:
    return [(one.id, mode.name) for one in CATALOGUE.hardware.values() for mode in one.power_modes]


@pytest.mark.parametrize(("hardware", "mode"), modes())
def test_every_mode_stays_within_the_chip(hardware: str, mode: str) -> None:
    chip = CATALOGUE.hardware[hardware]
    there = chip.in_mode(mode)
    assert there.static_power.value < there.tdp.value
    assert 1 <= there.units <= chip.units
    for peak in there.peaks.values():
        product = peak.unit_count * peak.operations_per_clock * peak.clock_hz
        if not peak.explanation:
            assert_close(product, peak.rate.value, rel=0.05 + 1.0 / peak.unit_count)


def own_file(folder: Path, name: str = "mine", like: str = "tpu_v4") -> Path:
    text = (DATA / "hardware" / f"{like}.toml").read_text()
    text = re.sub(r"^aliases = .*\n", "", text.replace(f'id = "{like}"', f'id = "{name}"'), flags=re.MULTILINE)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_file_is_hardware_wherever_a_name_is(tmp_path: Path) -> None:
    path = own_file(tmp_path)
    workspace = Workspace(tmp_path / "own.duckdb")
    answer = workspace.compare("resnet18", hardware=[str(path), "tpu_v4"], baseline=str(path))
    energies = {row.hardware: row.energy_j for row in answer.rows}
    assert energies["mine"] == energies["tpu_v4"]
    assert {row.baseline_hardware for row in answer.rows} == {"mine"}
    assert answer.scope.spelling == {"mine": str(path)}
    assert workspace.compare("resnet18", hardware=[str(path)]).scope.run_ids == answer.scope.run_ids[:1]
    terms = workspace.explain("resnet18", str(path), "tpu_v4")
    assert terms.total.difference_fj == 0
    assert workspace.describe_hardware(str(path)).summary.hardware == "mine"
    assert "mine" not in {row["hardware"] for row in workspace.describe("hardware.list").records()}


def test_a_question_returns_the_record_of_a_chip(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    for name in ("h100_sxm5", "tpu_v4", "kpu_t64"):
        assert workspace.hardware(name) == CATALOGUE.find(name)
    assert workspace.hardware("Jetson-Orin-Nano@15W") == CATALOGUE.find("jetson_orin_nano_8gb").in_mode("15W")
    assert workspace.hardware("Jetson Orin Nano").clock == CATALOGUE.find("jetson_orin_nano_8gb").in_mode("15W").clock
    assert workspace.hardware("gpu").id == CLASS_HARDWARE["gpu"]
    assert workspace.hardware(str(own_file(tmp_path))).id == "mine"
    with pytest.raises(UnknownNameError, match="did you mean h100_sxm5"):
        workspace.hardware("h1000")
    with pytest.raises(UnknownNameError, match="unknown power mode '3kW'"):
        workspace.hardware("l4@3kW")


@pytest.mark.slow
def test_a_folder_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "chips"
    folder.mkdir()
    own_file(folder, "one")
    own_file(folder, "two", like="t4")
    workspace = Workspace(tmp_path / "own.duckdb")
    rows = workspace.compare("resnet18", hardware=[str(folder)]).rows
    assert {row.hardware for row in rows} == {"one", "two"}
    before = catalogue_digest()
    monkeypatch.setenv("JOULEMAP_HARDWARE", str(folder))
    assert catalogue_digest() != before
    assert {row["hardware"] for row in workspace.describe("hardware.list").records()} == {*ENTRIES, "one", "two"}
    assert {row.hardware for row in workspace.compare("resnet18", hardware=["ONE", "two"]).rows} == {"one", "two"}
    monkeypatch.setenv("JOULEMAP_HARDWARE", str(tmp_path / "nowhere"))
    with pytest.raises(CatalogueError, match="there is no such file or folder"):
        workspace.compare("resnet18", hardware=["one"])


def test_names_may_not_clash(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    stolen = own_file(tmp_path, "h100")
    with pytest.raises(CatalogueError, match="the name 'h100' is already that of h100_sxm5 in the catalogue"):
        workspace.compare("resnet18", hardware=[str(stolen)])
    first, second = own_file(tmp_path, "first"), tmp_path / "second.toml"
    second.write_text(first.read_text())
    with pytest.raises(CatalogueError, match=r"second\.toml: the id 'first' is already that of .*first\.toml"):
        load_files([first, second])
    assert not (tmp_path / "own.duckdb").exists()


def test_paths_must_lead_somewhere(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="no such file or folder"):
        expand_paths([tmp_path / "nope.toml"])
    with pytest.raises(CatalogueError, match=r"has no \.toml file"):
        expand_paths([tmp_path])
    bad = own_file(tmp_path, "Bad-Name")
    with pytest.raises(CatalogueError, match="id: 'Bad-Name' is not lower case"):
        load_hardware(bad)


def test_an_entry_is_what_its_record_says() -> None:
    hardware: Hardware = CATALOGUE.find("kpu_t64")
    entry = HardwareEntry.of(hardware)
    assert entry.power_modes == ("3W", "6W", "10W")
    assert attrs.evolve(entry, digest="") != entry


PRINT_ANSWER = """
import sys
from joulemap.workspace import Workspace
workspace = Workspace(sys.argv[1])
(row,) = workspace.compare("resnet18", hardware=["h100_sxm5"], calibration="none").rows
summary = workspace.describe_hardware("h100_sxm5", calibration="none").summary
print(summary.hardware_digest, row.energy_j, row.run_id)
"""


@pytest.mark.slow
def test_a_number_changed_in_code_changes_the_digest_and_is_never_answered_from_store(tmp_path: Path) -> None:
    package = DATA.parents[1]
    copy = tmp_path / "src" / "joulemap"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("schemas", "queries"):
        (tmp_path / name).symlink_to(package.parents[1] / name)

    def answer() -> tuple[str, float, int]:
        command = [sys.executable, "-c", PRINT_ANSWER, str(tmp_path / "one.duckdb")]
        own = {
            "PYTHONPATH": str(copy.parent),
            "JOULEMAP_CACHE": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment = {**os.environ, **own}
        told = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr
        digest, energy_j, run_id = told.stdout.split()
        return digest, float(energy_j), int(run_id)

    before = answer()
    assert before[0] == CATALOGUE.find("h100_sxm5").digest
    scaling = copy / "catalog" / "reference.py"
    text = scaling.read_text(encoding="utf-8")
    assert text.count("4.0: 0.65") == 1
    scaling.write_text(text.replace("4.0: 0.65", "4.0: 0.68"), encoding="utf-8")
    digest, energy_j, run_id = answer()
    assert digest != before[0]
    assert energy_j > before[1]
    assert run_id != before[2]


def test_a_refusal_says_what_a_class_means(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="dpu_b4096_kv260 has no fp32; it has int8; dpu means dpu_b4096_kv260"):
        Workspace(tmp_path / "own.duckdb").compare("resnet18", hardware="dpu")


@pytest.mark.slow
def test_a_calibration_that_misfits_keeps_nothing_else_out(
    joulemap: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from joulemap.plan import anchor

    def refuse(hardware: Hardware, calibration: Calibration) -> Hardware:
        raise ValueError(f"{calibration.hardware} was fitted to another description than {hardware.id}")

    monkeypatch.setattr(anchor, "apply_calibration", refuse)
    done = joulemap("hardware", "list", "--format", "csv", variables={"JOULEMAP_CACHE": str(tmp_path / "cache")})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1 + len(CATALOGUE.hardware)


def test_an_unknown_chip_is_described_from_the_numbers_of_the_nearest() -> None:
    known = known_hardware()
    entry = known["apple_m4_cpu"]
    told = describe_like(known, "apple_m4_cpu")
    assert f"apple_m4_cpu[clock={entry.full_clock_hz / 1e9:.3g}GHz;tdp={entry.caps_w[0]:.3g}W]" in told
    assert f"none[{ANY_NUMBERS}]" in describe_like(known, "none")
