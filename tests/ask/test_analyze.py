"""One run taken apart: every level adds up to the run, on every class of hardware, in every format."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cell import assert_cells
from compare import assert_close
from conftest import Run
from joulemap.ask.analyze import AnalyzeAnswer
from joulemap.ask.fact import Caveat, Quantity, Share
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import RunDivision
from joulemap.generated.analyze import RunTotal
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.show.analyze import BOTTLENECK_TABLE, EVENT_TABLE, FACTS_TABLE, RUN_TABLE
from joulemap.show.present.format import write
from joulemap.system.errors import CatalogueError, ModelError, UnknownNameError, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from lazy import Lazy

LISTS: dict[RunDivision, str] = {
    "category": "categories",
    "action": "actions",
    "subgraph": "subgraphs",
    "operator": "operators",
    "event": "events",
}
"""RunDivision -> its key in json."""

CLASSES: dict[str, tuple[str, Precision, RuntimeName]] = {
    "cpu": ("jetson_agx_orin_cpu", "fp32", "fused"),
    "gpu": ("h100_sxm5", "fp16", "graph"),
    "tpu": ("coral", "int8", "fused"),
    "kpu": ("kpu_t256", "fp32", "eager"),
    "dsp": ("tda4vm_c7x_mma", "int8", "fused"),
    "npu": ("gaudi2", "bf16", "fused"),
    "dpu": ("dpu_b4096_kv260", "int8", "eager"),
    "cgra": ("plasticine", "fp32", "fused"),
}
"""Architecture class -> hardware, precision, runtime."""

OF_EACH = pytest.mark.parametrize(
    "architecture", [one if one in ("cpu", "kpu") else pytest.param(one, marks=pytest.mark.slow) for one in CLASSES]
)
"""Of each class; the two that other tests ask for are run each time."""


@pytest.fixture(scope="module")
def analyses(workspace: Workspace) -> Mapping[str, AnalyzeAnswer]:
    """mobilenet_v2 on one chip of each class."""

    def ask_analyze(architecture: str) -> AnalyzeAnswer:
        hardware, precision, runtime = CLASSES[architecture]
        return workspace.analyze("mobilenet_v2", hardware, precision=precision, runtime=runtime)

    return Lazy(ask_analyze)


def energy_of(rows: Any) -> int:
    return sum(row.energy_fj for row in rows)


def latency_of(rows: Any) -> int:
    return sum(row.latency_fs for row in rows)


@pytest.mark.sample(1)
@OF_EACH
def test_every_level_adds_up_to_the_run_exactly(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    total = answer.total
    assert total.architecture == architecture
    assert total.energy_fj > 0
    for rows in (answer.categories, answer.actions, answer.subgraphs, answer.operators, answer.bottlenecks):
        assert energy_of(rows) == total.energy_fj
    for timed in (answer.subgraphs, answer.operators, answer.bottlenecks):
        assert latency_of(timed) == total.latency_fs
    for category in answer.categories:
        actions = [row for row in answer.actions if row.category == category.category]
        assert energy_of(actions) == category.energy_fj
        assert len({(row.component, row.action) for row in actions}) == category.kind_count
    for subgraph in answer.subgraphs:
        members = [row for row in answer.operators if row.subgraph_index == subgraph.subgraph_index]
        assert energy_of(members) == subgraph.energy_fj
        assert latency_of(members) == subgraph.latency_fs
        assert len(members) == subgraph.operator_count


@OF_EACH
def test_an_action_is_its_count_times_its_price(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    for row in analyses[architecture].actions:
        # each operator's line is rounded to a femtojoule
        expected = row.action_count * row.energy_per_action_j * 1e15
        assert abs(row.energy_fj - expected) <= 151 * 0.5 + 1e-9 * expected
        assert row.basis
        assert row.source


@OF_EACH
def test_shares_and_parts_are_those_of_the_run(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    for rows in (answer.categories, answer.actions, answer.subgraphs, answer.operators):
        assert_close(sum(row.share_fraction or 0.0 for row in rows), 1.0, rel=1e-12)
    for shared in (answer.subgraphs, answer.operators):
        assert_close(sum(row.edp_share_fraction or 0.0 for row in shared), 1.0, rel=1e-12)
        assert_close(sum(row.edp_share_js for row in shared), answer.total.edp_js, rel=1e-12)
        for part in ("compute", "memory", "control", "static"):
            whole = getattr(answer.total, f"{part}_energy_j")
            assert_close(sum(getattr(row, f"{part}_energy_j") for row in shared), whole, rel=1e-12)


@OF_EACH
def test_the_total_is_the_run_of_the_promised_view(
    architecture: str, workspace: Workspace, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    answer = analyses[architecture]
    capacity: dict[str, float] = dict(workspace.sql("SELECT hardware, memory_capacity_bytes FROM hardware").rows)
    total = answer.total.record()
    (run,) = workspace.sql("SELECT * FROM runs WHERE run_id = $run_id", {"run_id": total["run_id"]}).records()
    same = total.keys() & run.keys()
    assert len(same) > 20
    assert {name: total[name] for name in same} == {name: run[name] for name in same}
    assert total["memory_capacity_bytes"] == capacity[total["hardware"]]
    assert_close(total["memory_fraction"], run["peak_memory_bytes"] / capacity[total["hardware"]], rel=1e-12)
    assert total["kernel_count"] == sum(row.kernel_count for row in answer.subgraphs)


@OF_EACH
def test_bottlenecks_are_those_of_the_subgraphs(architecture: str, analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses[architecture]
    assert [row.bottleneck for row in answer.bottlenecks] == ["compute", "memory", "launch"]
    for row in answer.bottlenecks:
        bound = [one for one in answer.subgraphs if one.bottleneck == row.bottleneck]
        assert row.subgraph_count == len(bound)
        assert row.latency_fs == latency_of(bound)
        assert_close(row.busy_s, sum(getattr(one, f"{row.bottleneck}_s") for one in answer.subgraphs), rel=1e-12)


def test_fusing_saves_what_the_operator_costs_alone(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    fused = [row for row in analyses["cpu"].operators if row.is_fused]
    assert len(fused) > 100
    for row in fused:
        assert row.saved_energy_j == row.separate_energy_j - row.energy_j
        assert row.saved_latency_s == row.separate_latency_s - row.latency_s
    alone = [row for row in analyses["cpu"].operators if not row.is_fused]
    assert alone
    for row in (*alone, *analyses["kpu"].operators):
        assert not row.is_fused
        assert (row.saved_energy_j, row.saved_latency_s) == (None, None)


@pytest.mark.sample(3)
@pytest.mark.parametrize("level", LISTS)
@OF_EACH
def test_json_and_csv_hold_the_same_cells(
    architecture: str, level: RunDivision, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    answer = analyses[architecture]
    document = json.loads(write(answer.document(by=level), "json"))
    rows = document[LISTS[level]]
    assert rows
    assert_cells(write(answer.document(by=level), "csv"), rows)
    assert {"total", "bottlenecks", "calibrations", "caveats", "notes", "next_steps", *LISTS.values()} <= set(document)
    assert set(document["total"]) == set(RunTotal.columns)


@pytest.mark.sample(8)
@pytest.mark.parametrize("form", ["table", "markdown"])
@pytest.mark.parametrize("level", LISTS)
@OF_EACH
def test_people_see_every_row_and_that_it_adds_up(
    architecture: str, level: RunDivision, form: str, analyses: Mapping[str, AnalyzeAnswer]
) -> None:
    answer = analyses[architecture]
    written = write(answer.document(by=level), form)
    table = EVENT_TABLE(subgraph="") if level == "event" else RUN_TABLE(by=level)
    for title in (FACTS_TABLE, BOTTLENECK_TABLE, table, "Next"):
        assert title in written
    names: list[str] = {
        "category": [row.category for row in answer.categories],
        "action": [f"{row.component}.{row.action}" for row in answer.actions],
        "subgraph": [row.fusion_pattern for row in answer.subgraphs],
        "operator": [row.name for row in answer.operators],
        "event": [row.event for row in answer.events],
    }[level]
    for name in names:
        assert name in written
    if level != "event":
        assert f"{LISTS[level]} sum exactly to the run: {answer.total.energy_fj:,} fJ" in written
    assert f"{answer.total.units_used_count}/{answer.total.units_total_count} {answer.total.unit_name}s" in written
    hardware = load_catalogue().find(answer.total.hardware.partition("@")[0])
    assert (f"~{answer.total.hardware}" in written) == (not hardware.is_available)


def test_the_tree_is_indented_by_common_category(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses["cpu"]
    (grid,) = answer.document(limit=len(answer.actions)).sections[0].grids
    groups: dict[str, list[int]] = {}
    for row in answer.actions:
        groups.setdefault(row.common_category, []).append(row.energy_fj)
    ordered = sorted(groups.values(), key=lambda amounts: -sum(amounts))
    indents = [len(cells[0]) - len(cells[0].lstrip()) for cells in grid.rows]
    assert indents == [0, *(one for rows in ordered for one in ([2] if len(rows) == 1 else [2, *[4] * len(rows)]))]
    (picture,) = grid.pictures
    shares = [share for (share,) in picture.rows]
    whole = sum(map(sum, groups.values()))
    places = [place for place, indent in enumerate(indents) if indent == 2]
    for place, rows in zip(places, ordered, strict=True):
        assert_close(shares[place], sum(rows) / whole, rel=1e-12)


def test_categories_without_a_large_action_share_a_row(analyses: Mapping[str, AnalyzeAnswer]) -> None:
    answer = analyses["cpu"]
    (grid,) = answer.document(limit=1).sections[0].grids
    first = max(answer.actions, key=lambda row: row.energy_fj)
    assert len(grid.rows) in (3, 4)  # the run, a category, its action unless it is the only one, and the others
    assert any(f"{first.component}.{first.action}" in cells[0] for cells in grid.rows)
    (picture,) = grid.pictures
    tops = [share for (share,), cells in zip(picture.rows, grid.rows, strict=True) if cells[0][:4].strip()]
    assert_close(sum(tops[1:]), 1.0, rel=1e-12)


def test_a_power_cap_that_lowers_the_clock_is_said_with_numbers(workspace: Workspace) -> None:
    capped = workspace.analyze("resnet34", "Jetson-Orin-Nano", power_mode="7W", batch=32)
    total = capped.total
    assert total.hardware == "jetson_orin_nano_8gb@7W"
    assert total.tdp_w == 7.0
    assert 0.0 < total.clock_fraction < 1.0
    # of what the cap leaves beside static power, 0.975
    assert_close(total.average_power_w, total.static_power_w + 0.975 * (7.0 - total.static_power_w), rel=1e-6)
    assert total.uncapped_power_w > total.tdp_w
    (slowed,) = (one for one in capped.facts.of(Caveat) if one.kind == "slowed")
    assert slowed.values["clock_fraction"] == total.clock_fraction
    free = workspace.analyze("mobilenet_v2", "jetson_agx_orin_cpu")
    assert free.total.clock_fraction == 1.0
    assert_close(free.total.uncapped_power_w, free.total.average_power_w, rel=1e-9)
    assert not [one for one in free.facts.of(Caveat) if one.kind == "slowed"]


@pytest.mark.slow
def test_a_small_feature_map_shows_on_a_kpu(workspace: Workspace) -> None:
    rows = {row.name: row for row in workspace.analyze("resnet18", "kpu_t256").subgraphs}
    # 7 x 7 positions by 512 channels: 2 x 16 blocks of 32 x 32 on 51 tiles; 112 x 112 by 64: 392 x 2 of them
    late, early = rows["layer4.1.conv2"], rows["conv1"]
    assert (late.tile_count, late.wave_count, late.units_used_count, late.units_total_count) == (32, 1, 32, 51)
    assert (late.wave_fill_fraction, late.padding_fraction) == (32 / 51, 1 - 49 / 64)
    assert (early.tile_count, early.wave_count, early.wave_fill_fraction) == (784, 16, 784 / (16 * 51))


def test_what_cannot_run_says_why(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32; it has int8"):
        workspace.analyze("resnet18", "coral")
    with pytest.raises(UnsupportedError, match=r"has 0.23 GB of memory; this configuration needs .* GB"):
        workspace.analyze("resnet18", "groq_tsp_v1", precision="int8", batch=1000)
    with pytest.raises(UnknownNameError, match="did you mean h100_sxm5"):
        workspace.analyze("resnet18", "h100_sxm4")
    with pytest.raises(UnknownNameError, match="kpu_t64 has 3W, 6W, 10W"):
        workspace.analyze("resnet18", "kpu_t64@eco")


def test_a_model_that_runs_nothing_is_told_so(workspace: Workspace, tmp_path: Path) -> None:
    program = tmp_path / "flat.py"
    program.write_text("import torch\ndef net():\n    return torch.nn.Flatten(), torch.zeros(1, 3, 4)\n")
    with pytest.raises(ModelError, match="it gives back its input, as another view of it"):
        workspace.analyze(f"{program}:net", "tpu_v4")


@pytest.mark.slow
def test_the_hardware_may_be_a_file_and_steps_name_it_again(
    workspace: Workspace, joulemap: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "chips"
    folder.mkdir()
    for name in ("one", "two"):
        made = joulemap("hardware", "template", "--like", "jetson_orin_nano_8gb").stdout
        made = re.sub(r'^id = ".*"$', f'id = "{name}"', made, flags=re.MULTILINE)
        made = re.sub(r"^aliases = .*$", "aliases = []", made, flags=re.MULTILINE)
        (folder / f"{name}.toml").write_text(made)
    answer = workspace.analyze("mobilenet_v2", f"{folder}/one.toml", power_mode="15W")
    assert answer.total.hardware == "one@15W"
    document = json.loads(write(answer.document(repeated=("--db", str(workspace.path))), "json"))
    step = shlex.split(document["next_steps"][0])
    assert step[1:4] == ["analyze", "mobilenet_v2", f"{folder}/one.toml@15W"]
    done = joulemap(*step[1:])
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^#\s+subgraph\b", done.stdout, re.MULTILINE)
    with pytest.raises(UsageError, match="is 2 chips, expected one"):
        workspace.analyze("mobilenet_v2", str(folder))
    with pytest.raises(CatalogueError, match="there is no such file or folder"):
        workspace.analyze("mobilenet_v2", f"{folder}/three.toml")


@pytest.mark.slow
def test_the_command_line_goes_from_level_to_level(joulemap: Run, tmp_path: Path) -> None:
    place = tmp_path / "my results.duckdb"
    arguments: list[object] = ["analyze", "mlp", "tpu_v4", "--model-arg", "tokens=7", "--precision", "bf16"]
    arguments += ["--runtime", "graph", "--db", place]
    seen = []
    for _ in LISTS:
        done = joulemap(*arguments, "--notes", "--details")
        assert (done.returncode, done.stderr) == (0, "")
        seen += re.findall(r"^Energy by (\w+)", done.stdout, re.MULTILINE)[:1]
        steps = [
            shlex.split(line) for line in re.findall(r"^(?:Next {3}| {7})joulemap (.*)$", done.stdout, re.MULTILINE)
        ]
        assert [step[0] for step in steps] == ["analyze", "compare", "query"]
        arguments = list(steps[0])
    assert seen == ["action", "subgraph", "operator", "category"]
    for step in steps[1:]:
        again = joulemap(*step)
        assert (again.returncode, again.stderr) == (0, ""), step
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


@pytest.mark.slow
def test_a_pipeline_states_when_batches_start(workspace: Workspace) -> None:
    """Power is energy over the interval between batches, not over the latency of one."""
    answer = workspace.analyze("resnet50", "hailo_8", precision="int8")
    total = answer.total
    assert total.interval_s < total.latency_s
    assert_close(total.average_power_w, total.energy_j / total.interval_s, rel=1e-9)
    (overlapping,) = (one for one in answer.facts.of(Caveat) if one.kind == "overlapping")
    assert overlapping.values["interval_s"] == Quantity(total.interval_s, "s")
    serial = workspace.analyze("resnet18", "l4")
    assert not [one for one in serial.facts.of(Caveat) if one.kind == "overlapping"]


@pytest.mark.wings
def test_exchange_between_devices_is_communication_as_in_train(workspace: Workspace) -> None:
    """The store calls the bottleneck of an exchange memory, although its bytes cross a link."""
    from joulemap.wing.train.setting import Training

    answer = workspace.analyze("train(resnet18,devices=8)", "rtx_4090", precision="bf16", batch=4)
    shares = {one.name: one.share for one in answer.facts.of(Share) if one.level == "bottleneck"}
    exchanges = [row for row in answer.subgraphs if row.name.startswith("exchange.")]
    assert exchanges
    assert_close(shares["communication"], sum(row.latency_fraction for row in exchanges), rel=1e-9)
    assert_close(sum(shares.values()), 1.0, rel=1e-9)
    training = Training(devices=(8,))
    (row,) = workspace.train("resnet18", hardware="rtx_4090", precision="bf16", batch=32, training=training).rows
    assert_close(shares["communication"], (row.exchange_s or 0.0) / (row.step_s or 0.0), rel=1e-6)
