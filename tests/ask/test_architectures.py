"""The classes side by side: sums are exact, a MAC's price is count x price, every class answers, sentences follow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.architecture import PARTS, ArchitecturesAnswer
from joulemap.ask.fact import Refusal
from joulemap.catalog.load import load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.physics.record.configuration import PRECISION_BYTES, Precision
from joulemap.show import architecture as text
from joulemap.show.architecture import describe_contrast
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from ledger import Book, Part

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
        "unattributed": 0.0,
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
        ("unattributed", 0.0),
        ("static", 2.0),
    ]
    assert [row["common_category"] for row in categories if row["is_overhead"]] == [
        "register", "unit_memory", "chip_memory", "interconnect", "control",
    ]  # fmt: skip
    actions = ask(book, "action")
    assert [(row["component"], row["rank"], row["energy_fraction"]) for row in actions] == [
        ("compute", 1, 0.4), ("memory", 2, 0.3), ("static", 3, 0.2), ("control", 4, 0.1),
    ]  # fmt: skip
    assert actions[0]["count_per_mac"] == 0.2


def test_a_mac_costs_what_its_actions_cost(answer: ArchitecturesAnswer) -> None:
    for row in answer.rows:
        assert row.mac_count == 1_814_073_344
        actions = [one for one in answer.actions if one.run_id == row.run_id]
        summed = sum((one.count_per_mac or 0.0) * one.energy_per_action_j for one in actions)
        assert_close(summed, row.energy_per_mac_j, rel=1e-6)
        assert_close(sum(getattr(row, f"{part}_per_mac_j") or 0.0 for part in PARTS), row.energy_per_mac_j)


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


def test_several_precisions_are_no_contrast(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="takes one precision"):
        workspace.architectures("resnet18", precision=["fp32", "int8"])


def test_classes_are_called_by_name_and_chips_of_one_class_by_theirs(workspace: Workspace) -> None:
    rows = workspace.architectures("resnet18", architecture=["cpu", "gpu"])
    assert [text.name_class(rows.facts, row.run_id) for row in rows.rows] == ["cpu", "gpu"]
    chips = workspace.architectures("resnet18", hardware=["h100_sxm5", "l4", "kpu_t64"])
    assert [text.name_class(chips.facts, row.run_id) for row in chips.rows] == ["h100_sxm5", "l4", "kpu"]


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
    assert "Energy per MAC" not in titles
    assert all(row.energy_fj == sum(getattr(row, f"{part}_fj") for part in PARTS) for row in bare.rows)
