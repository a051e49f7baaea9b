"""The classes side by side: sums are exact, a MAC's price is count x price, every class answers, sentences follow."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.architecture import PARTS, ArchitecturesAnswer, find_largest, find_share
from joulemap.ask.fact import Choice, Entry, Refusal, Share
from joulemap.catalog.load import load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.physics.record.configuration import PRECISION_BYTES, Precision
from joulemap.show import architecture as text
from joulemap.show.architecture import SPREAD, describe_answer, describe_contrast
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from ledger import Book, Part
from sample import thin

ENTRIES = load_catalogue().entries


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> ArchitecturesAnswer:
    return workspace.architectures("resnet18")


@pytest.fixture(scope="module")
def book() -> Book:
    """A: 10 J in 4 s, of which arithmetic 4, memory of a unit 3, control 1, static 2; 20 MACs. B cannot run it."""
    book = Book()
    book.add_run(
        [
            Part(time_s=3.0, compute_j=4.0, memory_j=3.0, static_j=1.5, mac_count=20, dram_bytes=40.0),
            Part(time_s=1.0, control_j=1.0, static_j=0.5, launch_s=1.0),
        ],
        hardware="a",
    )
    book.add_run([], hardware="b", refusal="b has no fp32")
    return book


def ask(book: Book, name: str, run_ids: Sequence[int] = (1, 2)) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(f"architectures.{name}"), {"run_ids": list(run_ids)}).records()


def test_a_summary_worked_out_by_hand(book: Book) -> None:
    first, second = ask(book, "summary")
    assert {part: first[f"{part}_fraction"] for part in PARTS} == {
        "compute": 0.4,
        "register": 0.0,
        "on_chip_memory": 0.3,
        "interconnect": 0.0,
        "off_chip_memory": 0.0,
        "control": 0.1,
        "board": 0.0,
        "static": 0.2,
    }
    assert (first["energy_fj"], first["overhead_fj"], first["overhead_ratio"]) == (10**16, 4 * 10**15, 1.0)
    assert (first["energy_per_mac_j"], first["dynamic_per_mac_j"], first["compute_per_mac_j"]) == (0.5, 0.4, 0.2)
    assert (first["compute_time_fraction"], first["launch_time_fraction"]) == (0.75, 0.25)
    assert (first["off_chip_bytes_per_mac"], first["order_name"], first["macs_per_order"]) == (2.0, None, None)
    assert (second["status"], second["reason"], second["energy_fj"]) == ("unsupported", "b has no fp32", None)


def test_categories_and_actions_worked_out_by_hand(book: Book) -> None:
    categories = ask(book, "category")
    assert [(row["common_category"], row["energy_j"]) for row in categories] == [
        ("compute", 4.0),
        ("register", 0.0),
        ("unit_memory", 3.0),
        ("chip_memory", 0.0),
        ("interconnect", 0.0),
        ("off_chip_memory", 0.0),
        ("control", 1.0),
        ("board", 0.0),
        ("static", 2.0),
    ]
    assert [row["common_category"] for row in categories if row["is_overhead"]] == [
        "register", "unit_memory", "chip_memory", "interconnect", "control",
    ]  # fmt: skip
    actions = ask(book, "action")
    assert [(row["component"], row["rank"], row["share_fraction"]) for row in actions] == [
        ("compute", 1, 0.4), ("memory", 2, 0.3), ("static", 3, 0.2), ("control", 4, 0.1),
    ]  # fmt: skip
    assert actions[0]["count_per_mac"] == 0.2


@pytest.mark.sample(1)
@pytest.mark.parametrize("precision", thin(["int8", "fp32"], 2))
def test_every_class_answers_and_adds_up_exactly(workspace: Workspace, precision: Precision) -> None:
    answer = workspace.architectures("resnet18", precision=precision)
    assert {row.architecture: row.hardware for row in answer.rows} == dict(CLASS_HARDWARE)
    for row in answer.rows:
        assert row.energy_fj == sum(getattr(row, f"{part}_fj") for part in PARTS)
        categories = [one for one in answer.categories if one.run_id == row.run_id]
        actions = [one for one in answer.actions if one.run_id == row.run_id]
        assert row.energy_fj == sum(one.energy_fj for one in categories) == sum(one.energy_fj for one in actions)
        assert row.overhead_fj == sum(one.energy_fj for one in categories if one.is_overhead)
        assert len(categories) == 9
        assert [one.rank for one in actions] == list(range(1, len(actions) + 1))
    row = answer.rows[0]
    run = workspace.analyze("resnet18", row.hardware, precision=row.precision)  # type: ignore[arg-type]
    assert row.energy_fj == run.total.energy_fj


def test_a_mac_costs_what_its_actions_cost(answer: ArchitecturesAnswer) -> None:
    for row in answer.rows:
        assert row.mac_count == 1_814_073_344
        assert row.energy_per_mac_j is not None
        actions = [one for one in answer.actions if one.run_id == row.run_id]
        summed = sum((one.count_per_mac or 0.0) * one.energy_per_action_j for one in actions)
        assert_close(summed, row.energy_per_mac_j, rel=1e-6)
        assert_close(sum(getattr(row, f"{part}_per_mac_j") or 0.0 for part in PARTS), row.energy_per_mac_j, rel=1e-9)


def test_every_class_has_orders_that_start_its_macs(answer: ArchitecturesAnswer) -> None:
    orders = {row.architecture: row.macs_per_order or 0.0 for row in answer.rows}
    assert set(orders) == set(CLASS_HARDWARE)
    assert all(row.order_name and row.order_count for row in answer.rows)
    assert min(orders["tpu"], orders["npu"], orders["dpu"]) > max(orders["cpu"], orders["gpu"], orders["dsp"])
    for row in answer.rows:
        counts = {(one.component, one.action): one.action_count for one in answer.actions if one.run_id == row.run_id}
        tensor = counts.get(("tensor_core", "instruction"), 0.0)
        assert any(one + tensor == pytest.approx(row.order_count, rel=1e-6, abs=0) for one in counts.values())


@pytest.mark.slow
def test_vector_instructions_start_fewer_macs_than_matrix_instructions(workspace: Workspace) -> None:
    (vector,) = workspace.architectures("resnet18", hardware="xeon_8490h", precision="fp32").rows
    (matrix,) = workspace.architectures("resnet18", hardware="xeon_8490h").rows
    assert (vector.macs_per_order or 0.0) < 16.0 < (matrix.macs_per_order or 0.0)
    assert find_share(vector, "control") > find_share(vector, "compute")
    assert find_share(matrix, "control") < find_share(matrix, "compute") < find_share(matrix, "static")


@pytest.mark.slow
def test_what_the_tutorial_says_of_a_systolic_array_and_a_warp(workspace: Workspace) -> None:
    def ask(model: str) -> tuple[ArchitectureSummary, ArchitectureSummary]:
        gpu, tpu = workspace.architectures(model, architecture=["gpu", "tpu"], precision="bf16").rows
        return gpu, tpu

    gpu, tpu = ask("matrix_product")
    assert (tpu.compute_per_mac_j or 0.0) < (gpu.compute_per_mac_j or 0.0)
    assert (tpu.control_per_mac_j or 0.0) < (gpu.control_per_mac_j or 0.0) / 10.0
    assert (tpu.static_per_mac_j or 0.0) > (gpu.static_per_mac_j or 0.0)
    assert (tpu.unit_memory_bytes_per_mac or 0.0) < (gpu.unit_memory_bytes_per_mac or 0.0) / 2.0
    assert (tpu.energy_fj or 0) < (gpu.energy_fj or 0)
    assert (gpu.latency_s or 0.0) < (tpu.latency_s or 0.0)
    gpu, tpu = ask("gemm(m=1,n=4096,k=4096)")
    assert_close(float(gpu.energy_fj or 0), float(tpu.energy_fj or 0), rel=0.2)
    assert (gpu.latency_s or 0.0) < (tpu.latency_s or 0.0)
    assert (gpu.off_chip_bytes_per_mac or 0.0) < (tpu.off_chip_bytes_per_mac or 0.0)


@pytest.mark.parametrize(
    ("hardware", "asked", "expected"),
    [
        ("h100_sxm5", "bf16", "bf16"),
        ("coral_edge_tpu", "fp64", "int8"),
        ("gaudi2", "fp32", "fp16"),
        ("gaudi2", "int8", "fp8"),
        ("tda4vm_c7x_mma", "fp16", "fp32"),
        ("tda4vm_c7x_mma", "fp64", "fp32"),
        ("dpu_b4096_kv260", "int4", "int8"),
    ],
)
def test_what_a_hardware_lacks_is_replaced_by_the_nearest(hardware: str, asked: Precision, expected: Precision) -> None:
    assert ENTRIES[hardware].nearest_precision(asked) == expected


def test_a_nearest_precision_is_one_that_the_hardware_has() -> None:
    for entry in ENTRIES.values():
        for asked in PRECISION_BYTES:
            nearest = entry.nearest_precision(asked)  # type: ignore[arg-type]
            assert nearest in entry.precisions
            assert (nearest == asked) == (asked in entry.precisions)


@pytest.mark.slow
def test_a_replaced_precision_is_said(workspace: Workspace) -> None:
    answer = workspace.architectures("resnet18", precision="fp32")
    assert {row.architecture: row.precision for row in answer.rows if row.precision != "fp32"} == {"dpu": "int8"}
    assert text.REPLACED(name="dpu_b4096_kv260", asked="fp32", precision="int8") in text.list_notes(answer)
    assert [precision for precision, _ in answer.scope.precisions] == ["fp32", "int8"]
    places = [list(CLASS_HARDWARE).index(row.architecture) for row in answer.rows]
    assert places == sorted(places)


def test_what_one_hardware_cannot_run_is_a_row_with_its_reason(workspace: Workspace, joulemap: Run) -> None:
    answer = workspace.architectures("vgg16", hardware=["groq_tsp_v1", "h100_sxm5"], precision="fp32", batch=64)
    refused, answered = answer.rows
    assert (refused.status, refused.energy_fj, answered.status) == ("unsupported", None, "ok")
    (refusal,) = answer.facts.of(Refusal)
    assert (refusal.runs, refusal.reason) == ((refused.run_id,), refused.reason)
    assert describe_contrast(answer.facts) == []
    options = ("--hardware", "groq_tsp_v1", "--precision", "fp32", "--batch", "64")
    with pytest.raises(UnsupportedError):
        workspace.architectures("vgg16", hardware="groq_tsp_v1", precision="fp32", batch=64)
    done = joulemap("architectures", "vgg16", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (ExitCode.UNSUPPORTED, "", 1)


@pytest.mark.slow
def test_a_calibration_of_one_hardware_does_not_keep_the_others_out(workspace: Workspace) -> None:
    answer = workspace.architectures(
        "resnet18", hardware=["h200_sxm", "hailo_8"], precision="fp16", calibration="h200_sxm"
    )
    assert [row.precision for row in answer.rows] == ["fp16", "int8"]
    assert [row.hardware for row in answer.scope.calibrations] == ["h200_sxm"]
    with pytest.raises(UsageError, match="not among the requested hardware"):
        workspace.architectures("resnet18", hardware=["l4", "hailo_8"], precision="fp16", calibration="h200_sxm")


def last_step(answer: ArchitecturesAnswer) -> str:
    data = answer.document().data
    assert isinstance(data, Mapping)
    return str(data["next_steps"][-1])


@pytest.mark.slow
def test_a_next_step_asks_about_the_same_hardware(workspace: Workspace) -> None:
    chosen = workspace.architectures("resnet18", hardware=["l4", "hailo_8"])
    assert last_step(chosen) == "joulemap architectures resnet18 --hardware l4,hailo_8 --batch 64"
    assert last_step(workspace.architectures("resnet18")) == "joulemap architectures resnet18 --batch 64"


def test_several_precisions_are_no_contrast(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="takes one precision"):
        workspace.architectures("resnet18", precision=["fp32", "int8"])


@pytest.mark.slow
def test_a_step_into_a_chip_has_its_own_precision(workspace: Workspace) -> None:
    answer = workspace.architectures("mobilenet_v2", hardware=("hailo_8l", "l4"), precision="fp32")
    assert [row.precision for row in answer.ordered] == ["int8", "fp32"]
    assert "--precision int8" in str(answer.document().steps[0])


def test_classes_are_called_by_name_and_chips_of_one_class_by_theirs(workspace: Workspace) -> None:
    rows = workspace.architectures("resnet18", architecture=["cpu", "gpu"])
    assert [text.name_class(rows.facts, row.run_id) for row in rows.rows] == ["cpu", "gpu"]
    chips = workspace.architectures("resnet18", hardware=["h100_sxm5", "l4", "kpu_t64"])
    assert [text.name_class(chips.facts, row.run_id) for row in chips.rows] == ["h100_sxm5", "l4", "kpu"]
    assert [text.label_class(chips, row) for row in chips.rows] == ["gpu 1", "gpu 2", "kpu"]


def test_sentences_follow_from_the_numbers(answer: ArchitecturesAnswer) -> None:
    ordered = sorted(answer.rows, key=lambda row: row.energy_fj or 0)
    dynamic = sorted(answer.rows, key=lambda row: (row.energy_fj or 0) - (row.static_fj or 0))
    places = {row.hardware: dynamic.index(row) + 1 for row in ordered}
    least, second = ordered[:2]
    assert text.describe_rank(answer, least)[0] == text.BEST(total=8, dynamic=places[least.hardware])
    ratio = (second.energy_fj or 0) / (least.energy_fj or 1)
    ranked = text.RANK(rank=2, total=8, ratio=ratio, best=least.architecture, dynamic=places[second.hardware])
    assert text.describe_rank(answer, second)[0] == ranked
    for row in answer.rows:
        is_static = row.static_fj == max(getattr(row, f"{part}_fj") for part in PARTS)
        assert (find_largest(row) == "static") == is_static
        assert len(text.describe_rank(answer, row)) == 2 + is_static


def test_facts_are_those_of_the_rows(answer: ArchitecturesAnswer) -> None:
    rows = {row.run_id: row for row in answer.rows}
    choice = answer.facts.of(Choice)[0]
    had = [row for row in answer.ordered if answer.facts.runs[row.run_id].is_available]
    assert choice.runs == tuple(row.run_id for row in had)
    assert choice.ratio is not None
    assert_close(choice.ratio, (had[1].energy_fj or 0) / (had[0].energy_fj or 1), rel=1e-9)
    assert {run_id: one.architecture for run_id, one in answer.facts.runs.items()} == {
        run_id: row.architecture for run_id, row in rows.items()
    }
    for one in answer.facts.of(Entry):
        assert_close(one.values["compute_per_mac"].value, rows[one.runs[0]].compute_per_mac_j or 0.0, rel=1e-12)
        assert_close(one.values["overhead"].value, rows[one.runs[0]].overhead_ratio or 0.0, rel=1e-12)
    parts = {one.runs[0]: one for one in answer.facts.of(Share) if one.metric == "energy"}
    for run_id, share in parts.items():
        assert share.name == find_largest(rows[run_id])
        assert_close(share.share, find_share(rows[run_id], share.name), rel=1e-12)
    told = describe_answer(answer.facts)
    assert f"{had[0].architecture} ({had[0].hardware})" in told
    assert len(told.split()) <= 25


def test_the_last_line_spans_the_classes(answer: ArchitecturesAnswer) -> None:
    by_arithmetic = sorted(answer.rows, key=lambda row: row.compute_per_mac_j or 0.0)
    low, high = by_arithmetic[0], by_arithmetic[-1]
    assert low.compute_per_mac_j and high.compute_per_mac_j
    assert describe_contrast(answer.facts)[-1] == SPREAD(
        low=low.compute_per_mac_j,
        least=low.architecture,
        high=high.compute_per_mac_j,
        most=high.architecture,
    )


OWN = """
import torch

def net():
    return torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)), torch.randn(1, 256)

def elementwise():
    return torch.nn.ReLU(), torch.randn(1, 64, 64)
"""


@pytest.mark.slow
def test_an_own_model_and_one_without_macs(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    answer = workspace.architectures(f"{path}:net")
    assert [row.mac_count for row in answer.rows] == [256 * 64 + 64 * 10] * 8
    bare = workspace.architectures(f"{path}:elementwise")
    assert [(row.mac_count, row.energy_per_mac_j, row.macs_per_order) for row in bare.rows] == [(0, None, None)] * 8
    titles = [section.title for section in bare.document().shown]
    assert text.PRICE_TABLE not in titles
    assert all(row.energy_fj == sum(getattr(row, f"{part}_fj") for part in PARTS) for row in bare.rows)


@pytest.mark.slow
def test_the_page_fits_a_narrow_terminal_and_says_where_its_prices_come_from(
    joulemap: Run, answer: ArchitecturesAnswer
) -> None:
    page = joulemap("architectures", "--details", "--notes", variables={"COLUMNS": "80"}).stdout
    body, _, _ = page.partition("\nNext   ")
    assert [line for line in body.splitlines() if len(line) > 80 and "://" not in line] == []
    for row in answer.rows:
        first = next(one for one in answer.actions if one.run_id == row.run_id)
        source = first.source.removeprefix("assumption: ")
        marked = "" if source == first.source else r" \(assumed\)"
        assert re.search(rf"- {re.escape(text.ACTION(first))}[\w., ]*{marked}: {re.escape(source.split()[0])}", body)
    narrow = joulemap("architectures", "--limit", "1", variables={"COLUMNS": "80"}).stdout
    assert len(narrow.splitlines()) < len(page.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(("level", "table"), [("class", "rows"), ("category", "categories"), ("action", "actions")])
def test_csv_has_the_table_of_the_level_and_json_has_all(joulemap: Run, level: str, table: str) -> None:
    options = ("architectures", "resnet18", "--architecture", "tpu,kpu", "--level", level)
    whole = json.loads(joulemap(*options, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(joulemap(*options, "--format", "csv").stdout)))
    assert len(rows) == len(whole[table]) > 0
    assert list(rows[0]) == list(whole[table][0])
    assert [row["hardware"] for row in rows] == [row["hardware"] for row in whole[table]]
    assert set(whole["descriptions"]) == {"tpu_v4", "kpu_t256"}
    assert {note["topic"] for note in whole["architecture_notes"]} >= {"principle", "coherence"}
    assert whole["precision_asked"] == "int8"


def test_every_level_proves_its_sums(answer: ArchitecturesAnswer) -> None:
    written = [line for section in answer.document(by="category").shown for line in section.texts]
    assert sum(" sum exactly to " in line for line in written) == 8
    assert len(answer.document(by="action").shown) >= 8
