"""What fusing saves: parts are the run exactly, numbers by hand on toys, every sentence from a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import chip
from compare import assert_close
from joulemap.ask.fact import Change
from joulemap.ask.fusion import FusionAnswer
from joulemap.domain.settings import FusionDivision
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration, Precision
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.record.runtime import RuntimeName
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns
from joulemap.show import fusion as text
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ModelError, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from lazy import Lazy
from ledger import Book, Part
from models import BiasedConv, ConvBlock, Mlp, columns, image

PARTS: tuple[FusionDivision, ...] = ("pattern", "subgraph", "operator")

CASES: dict[str, tuple[str, str, Precision, RuntimeName]] = {
    "cpu": ("mobilenet_v3_small", "jetson_agx_orin_cpu", "fp32", "fused"),
    "gpu": ("swin_t", "h200_sxm", "fp32", "fused"),
    "tpu": ("mobilenet_v2", "coral", "int8", "eager"),
    "kpu": ("vit_b_16", "kpu_t256", "int8", "fused"),
    "dsp": ("squeezenet1_1", "tda4vm_c7x_mma", "int8", "graph"),
    "npu": ("resnet18", "gaudi2", "bf16", "fused"),
    "dpu": ("resnet18", "dpu_b4096_kv260", "int8", "fused"),
    "cgra": ("mlp", "plasticine", "fp32", "graph"),
}
"""Architecture class -> model, hardware, precision, runtime."""

EXACT = (
    "energy_fj", "separate_energy_fj", "saved_energy_fj", "latency_fs", "separate_latency_fs", "saved_latency_fs",
    "dram_bytes", "separate_dram_bytes", "saved_dram_bytes", "moved_bytes", "separate_moved_bytes",
    "saved_moved_bytes", "pass_bytes", "separate_pass_bytes", "kernel_count", "separate_kernel_count",
    "bias_addition_count", "bias_element_count",
)  # fmt: skip

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2, groups=2)
        self.plain = nn.Conv2d(8, 8, 1, bias=False)
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        mask = torch.ones(16, 1, 1) * 2
        y = torch.relu(self.up(torch.relu(self.conv(x)) * mask))
        return self.linear(self.plain(y).mean((2, 3)))


def net():
    return Net(), torch.zeros(2, 3, 32, 32)


def flat():
    return nn.Flatten(), torch.zeros(2, 3, 4)


def one():
    return nn.Linear(8, 4), torch.zeros(2, 8)
"""


@pytest.fixture(scope="module")
def answers(workspace: Workspace) -> Mapping[str, FusionAnswer]:
    def ask_fusion(name: str) -> FusionAnswer:
        model, hardware, precision, runtime = CASES[name]
        return workspace.fusion(model, hardware, precision=precision, runtime=runtime)

    return Lazy(ask_fusion)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "net.py"
    path.write_text(NET)
    return path


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", PARTS)
@pytest.mark.parametrize("name", CASES)
def test_parts_are_the_run_exactly(name: str, level: FusionDivision, answers: Mapping[str, FusionAnswer]) -> None:
    answer = answers[name]
    total, rows = answer.total, answer.own_tables[f"{level}s"]
    for field in EXACT:
        if hasattr(total, field):
            assert sum(getattr(row, field) for row in rows) == getattr(total, field), field
    for row in (total, *rows):
        assert row.saved_energy_fj == row.separate_energy_fj - row.energy_fj
        assert row.saved_latency_fs == row.separate_latency_fs - row.latency_fs
        assert row.saved_dram_bytes == row.separate_dram_bytes - row.dram_bytes
        assert row.saved_moved_bytes == row.separate_moved_bytes - row.moved_bytes
    mean_e, mean_t = (
        Fraction(fused + separate, 2)
        for fused, separate in (
            (total.energy_fj, total.separate_energy_fj),
            (total.latency_fs, total.separate_latency_fs),
        )
    )
    exact = [row.saved_energy_fj * mean_t + mean_e * row.saved_latency_fs for row in rows]
    assert sum(exact) == total.separate_energy_fj * total.separate_latency_fs - total.energy_fj * total.latency_fs
    for row, share in zip(rows, exact, strict=True):
        assert_close(row.saved_edp_share_js, float(share / 10**30))
        assert_close(row.saved_edp_fraction, row.saved_edp_share_js / total.separate_edp_js)
    assert_close(math.fsum(row.edp_share_js for row in rows), total.edp_js)
    assert_close(math.fsum(row.separate_edp_share_js for row in rows), total.separate_edp_js)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_run_is_that_of_other_answers(name: str, answers: Mapping[str, FusionAnswer], workspace: Workspace) -> None:
    total = answers[name].total
    model, hardware, precision, runtime = CASES[name]
    fused = workspace.analyze(model, hardware, precision=precision).total
    assert (total.energy_fj, total.latency_fs) == (fused.energy_fj, fused.latency_fs)
    assert (total.run_id, total.kernel_count, total.edp_js) == (fused.run_id, fused.kernel_count, fused.edp_js)
    assert total.dram_bytes == fused.dram_bytes
    # a fused run knows the run in graph to the last femtojoule, but for what a compiler folds away
    beside: RuntimeName = "eager" if runtime == "eager" else "graph"
    separate = workspace.analyze(model, hardware, precision=precision, runtime=beside).total
    whole = workspace.fusion(model, hardware, precision=precision, runtime=beside)
    folded = [row for row in whole.operators if row.is_folded] if runtime == "fused" else []
    assert bool(folded) == (name == "gpu")
    for field in ("energy_fj", "latency_fs", "dram_bytes", "kernel_count"):
        left_out = sum(getattr(row, f"separate_{field}") for row in folded)
        assert getattr(total, f"separate_{field}") + left_out == getattr(separate, field), field
    assert total.separate_runtime == separate.runtime


def test_biases_and_what_no_input_changes(workspace: Workspace, programs: Path) -> None:
    answer = workspace.fusion(f"{programs}:net", "kpu_t256", runtime="graph")
    rows = {row.name: row for row in answer.operators}
    biased = {name: (row.bias_element_count, row.bias_addition_count) for name, row in rows.items()}
    changed = {name: counts for name, counts in biased.items() if counts != (0, 0)}
    assert changed == {
        "conv": (16, 2 * 16 * 32 * 32),
        "up": (8, 2 * 8 * 64 * 64),
        "linear": (4, 2 * 4),
    }
    assert [rows[name].operation for name in ("conv", "up", "plain", "linear")] == [
        "conv2d with bias",
        "conv_transpose2d with bias",
        "conv2d",
        "linear with bias",
    ]
    assert answer.total.biased_count == len(changed)
    listed = {row["name"]: row for row in workspace.operators(f"{programs}:net").records()}
    assert {name: row["bias_element_count"] for name, row in listed.items() if row["bias_element_count"]} == {
        "conv": 16,
        "up": 8,
        "linear": 4,
    }
    folded = [row for row in answer.operators if row.is_folded]
    assert len(folded) == answer.total.folded_count == 2
    assert {(row.energy_fj, row.latency_fs, row.kernel_count) for row in folded} == {(0, 0, 0)}
    assert all(row.separate_energy_fj > 0 for row in folded)
    assert text.FOLDED(folded_count=2) in answer.document().notes
    alone = workspace.fusion(f"{programs}:net", "kpu_t256")
    assert alone.total.folded_count == 0
    assert alone.total.separate_energy_fj == answer.total.separate_energy_fj - sum(
        row.separate_energy_fj for row in folded
    )


def test_where_there_is_nothing_to_fuse_it_is_said(workspace: Workspace, programs: Path) -> None:
    answer = workspace.fusion(f"{programs}:one", "tpu_v4")
    total = answer.total
    assert (total.saved_energy_fj, total.saved_latency_fs, total.saved_dram_bytes, total.saved_edp_js) == (0, 0, 0, 0)
    assert answer.subgraphs[0].saved_edp_fraction == 0.0
    kernels = next(one for one in answer.facts.of(Change) if one.metric == "kernels")
    assert kernels.values == {"subgraphs": 1, "fused_subgraphs": 0}
    assert list(answer.document().insights) == []
    with pytest.raises(ModelError, match="it gives back its input, as another view of it"):
        workspace.fusion(f"{programs}:flat", "tpu_v4")


def test_what_cannot_run_says_why(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32"):
        workspace.fusion("resnet18", "coral")
    with pytest.raises(UsageError, match="fusion takes one runtime, found eager, graph"):
        workspace.fusion("resnet18", "tpu_v4", runtime=("eager", "graph"))


def run(hardware: Hardware, work: WorkloadColumns, runtime: str = "fused", precision: str = "int8") -> RunColumns:
    return evaluate(work, hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))


def with_l3(capacity_bytes: float) -> Hardware:
    """Return the toy KPU with another last level."""
    toy = chip.kpu()
    return attrs.evolve(toy, memory_levels=(*toy.memory_levels[:2], chip.level("l3", capacity_bytes)))


def test_a_block_worked_out_by_hand() -> None:
    # 16 x 16 pixels of 3 channels to 8, a byte each: 768 in, 216 weights, 2048 out, 4 x 8 parameters of the batch norm
    operators = run(with_l3(16 * chip.MIB), columns(ConvBlock(), image(1, 3, 16))).operators
    assert operators.moved_bytes.tolist() == [768 + 216, 32, 2048]
    assert operators.separate_moved_bytes.tolist() == [768 + 216 + 2048, 2048 + 32 + 2048, 2048 + 2048]
    # what is handed on stays in the last level either way: off chip go the image, the weights and the result
    assert operators.dram_bytes.tolist() == operators.separate_dram_bytes.tolist() == [768 + 216, 32, 2048]
    assert operators.kernel_count.tolist() == [1, 0, 0]
    assert operators.separate_kernel_count.tolist() == [1, 1, 1]
    # 16 blocks of 16 x 16 outputs at once: 27 steps, 32 to fill and drain. 8 blocks of 2 x 256 and 256 operations, 16 a
    # clock; the relu waits for its bytes at 50 GB/s. A program costs 1 us
    assert operators.separate_latency_fs.tolist() == [1_059_000_000, 1_032_000_000, 1_040_960_000]
    # fused, the three wait for their bytes together: 19.68 + 0.64 + 40.96 ns, longer than the 59 ns of the array
    assert operators.latency_fs.sum() == 1_061_280_000
    assert np.abs(operators.latency_fs - [1_019_680_000, 640_000, 40_960_000]).max() <= 1
    assert operators.pass_bytes.tolist() == operators.separate_pass_bytes.tolist() == [0, 0, 0]


def test_a_last_level_that_is_too_small_makes_fusing_save_bytes_off_chip() -> None:
    operators = run(with_l3(2 * chip.KIB), columns(ConvBlock(), image(1, 3, 16))).operators
    # alone none of the three fits 2048 bytes, fused each does; 3032 bytes are 0.48 too many, at which 2 x 0.02 stay
    assert operators.separate_moved_bytes.tolist() == [3032, 4128, 4096]
    stays = 1 - 2 * (3032 / 2048 - 1)
    assert operators.separate_dram_bytes.tolist() == [3032 - stays * 2048, 4128, 4096]
    assert operators.dram_bytes.tolist() == [984, 32, 2048]


@pytest.mark.parametrize("runtime", ["fused", "graph", "eager"])
def test_separate_is_the_run_of_separate_kernels_to_the_last_femtojoule(runtime: str) -> None:
    work = columns(ConvBlock(), image(1, 3, 16))
    toy = chip.kpu()
    whole, separate = run(toy, work, runtime), run(toy, work, "graph" if runtime == "fused" else runtime)
    assert int(whole.operators.separate_energy_fj.sum()) == separate.energy_fj
    assert whole.operators.separate_latency_fs.tolist() == separate.operators.latency_fs.tolist()
    # static power is 1 W, so that a femtosecond less is a femtojoule less
    static = toy.reference.position(STATIC_ACTION) if runtime == "fused" else None
    if static is not None:
        leaked = [int(one.ledger.energy_fj[one.ledger.action_index == static].sum()) for one in (separate, whole)]
        assert leaked[0] - leaked[1] == separate.latency_fs - whole.latency_fs == 2_070_680_000


def test_passes_worked_out_by_hand() -> None:
    block = run(chip.gpu(), columns(ConvBlock(), image(1, 3, 16)), precision="fp32")
    # 2048 results of four bytes, written and read once more: the batch norm and relu run behind a library's convolution
    assert block.operators.pass_bytes.tolist() == [2 * 2048 * 4, 0, 0]
    # alone, each moves its operands once: a batch norm is bound by its instructions per element
    assert block.operators.separate_pass_bytes.tolist() == [0, 0, 0]
    parts = block.subgraphs
    assert parts.pass_bytes.tolist() == [2 * 2048 * 4]
    # the pass is part of the memory time, no part of the fixed cost, and the latency has all three
    rest_s = parts.latency_fs[0] / 1e15 - parts.launch_s[0] - parts.pass_s[0]
    assert parts.pass_s[0] > 0.0
    assert_close(rest_s, max(parts.compute_s[0], parts.memory_s[0]), rel=1e-6)
    assert block.share_fs[2] == round(parts.launch_s[0] * 1e15) and sum(block.share_fs) == block.latency_fs
    # a bias is merged by a compiler, and added in a kernel of its own without one
    conv = run(chip.gpu(), columns(BiasedConv(), image(1, 3, 16)), precision="fp32")
    assert conv.operators.pass_bytes.tolist() == [0]
    assert conv.operators.separate_pass_bytes.tolist() == [2 * 2048 * 4]
    assert run(chip.cpu(), columns(Mlp(), image(1, 1, 8)), precision="fp32").operators.pass_bytes.sum() == 0


@pytest.fixture(scope="module")
def book() -> Book:
    """A subgraph of 4 J and 1 s in place of 6 J and 2 s, and one of 6 J in place of 5 J, both in 3 s."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=4.0, separate_j=6.0, separate_s=2.0, pattern="conv2d+relu"),
            Part(time_s=3.0, memory_j=6.0, separate_j=5.0, separate_s=3.0, pattern="linear", dram_bytes=8.0),
        ]
    )
    return book


def ask(book: Book, name: str) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(f"fusion.{name}"), {"run_a": 1, "run_b": 1}).records()


def test_numbers_by_hand(book: Book) -> None:
    (total,) = ask(book, "total")
    assert (total["energy_j"], total["separate_energy_j"], total["saved_energy_j"]) == (10.0, 11.0, 1.0)
    assert (total["latency_s"], total["separate_latency_s"], total["saved_latency_s"]) == (4.0, 5.0, 1.0)
    assert (total["edp_js"], total["separate_edp_js"], total["saved_edp_js"]) == (40.0, 55.0, 15.0)
    assert (total["saved_energy_fraction"], total["saved_latency_fraction"]) == (1 / 11, 0.2)
    first, second = ask(book, "pattern")
    assert [first["fusion_pattern"], second["fusion_pattern"]] == ["conv2d+relu", "linear"]
    # (2 J x 9 s + 21 J x 1 s) / 2 and (-1 J x 9 s) / 2
    assert [first["saved_edp_share_js"], second["saved_edp_share_js"]] == [19.5, -4.5]
    assert [first["saved_edp_fraction"], second["saved_edp_fraction"]] == [19.5 / 55.0, -4.5 / 55.0]
    # (4 J x 4 s + 10 J x 1 s) / 2 of 40 Js, (6 J x 5 s + 11 J x 2 s) / 2 of 55 Js
    assert [first["edp_share_js"], first["separate_edp_share_js"]] == [13.0, 26.0]
    assert [second["saved_energy_fraction"], second["saved_latency_fraction"]] == [-0.2, 0.0]
    assert [first["saved_dram_fraction"], second["saved_dram_fraction"]] == [None, 0.0]
    assert ask(book, "subgraph")[1]["name"] == "part1"


def test_runs_of_different_workloads_have_no_difference(book: Book) -> None:
    other = Book()
    other.add_run([Part(time_s=1.0)])
    other.add_run([Part(time_s=1.0), Part(time_s=1.0)])
    for name in ("total", "pattern", "subgraph", "operator"):
        rows = run_query(other.connection, find_query(f"fusion.{name}"), {"run_a": 1, "run_b": 2}).rows
        assert rows == ()
