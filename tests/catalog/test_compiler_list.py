"""Operator lists of compilers against cases of their documentation."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
from torch import nn

from joulemap.catalog.hardware import read_compiler
from joulemap.catalog.load import load_catalogue
from joulemap.physics.fallback import find_fallen, name_fallen
from joulemap.physics.record.compiler import Compiler, is_single_output, read_window
from joulemap.workspace import Workspace
from models import columns

RUNS, HOST, REFUSED = "runs", "host", "refused"

with (Path(__file__).parents[1] / "data" / "compiler_case.csv").open(newline="", encoding="utf-8") as file:
    CASES = [tuple(row)[:4] for row in csv.reader(file)][1:]


class Weighing(nn.Module):
    """A product and the softmax of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.product = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.product(x), -1)


@pytest.mark.parametrize(("name", "kind", "asked", "expected"), CASES)
def test_documented_cases(name: str, kind: str, asked: str, expected: str) -> None:
    known = read_compiler(name)
    compiler = Compiler(
        name=known.name, cut=known.cut, operators=tuple(known.operators), basis=known.basis, source=known.source
    )
    operation, *given = asked.split()
    sizes = {"kernel": 1, "stride": 1, "rank": 4} | {one.split("=")[0]: int(one.split("=")[1]) for one in given}
    runs = compiler.is_run(kind, operation) and not compiler.describe_excess(kind, operation, sizes)
    assert (REFUSED if compiler.is_refused(kind, operation) else RUNS if runs else HOST) == expected


@pytest.mark.parametrize(
    ("scalars", "window"),
    [
        ("kernel=[3, 5] stride=[2, 2] padding=[1, 1] groups=24", (5, 2)),
        ("kernel=[1, 7, 7] stride=[1, 2, 2]", (7, 2)),
        ("kernel=[2, 2] stride=[]", (2, 2)),  # The step of a pool without a stride is its window.
        ("kernel=[16] stride=8", (16, 8)),
        ("steps=12", (1, 1)),
    ],
)
def test_windows_are_read(scalars: str, window: tuple[int, int]) -> None:
    assert read_window(scalars) == window


@pytest.mark.parametrize(
    ("shape", "is_single"),
    [((1, 64, 1, 1), True), ((1, 1, 1, 64), True), ((1, 25, 5, 64), False), ((1, 64, 1, 5), False), ((1, 64), True)],
)
def test_an_output_of_one_position_has_its_channels_first_or_last(shape: tuple[int, ...], *, is_single: bool) -> None:
    # Vela 3.10, constraint_stride_width_no_upper_limit: any stride where the output is one position high and wide
    assert is_single_output(shape) == is_single


@pytest.mark.parametrize("entry", ["relu kernel", "relu depth=1-3", "relu kernel=1-x", "conv.conv2d stride="])
def test_wrong_limits_are_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        Compiler(name="c", cut="each", operators=(entry,), basis="assumed", source="s")


def test_an_operator_beyond_a_limit_falls_back() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.Conv2d(8, 8, 3), nn.MaxPool2d(5)).to("meta")
    work = columns(net, torch.empty(1, 3, 64, 64, device="meta"))
    compiler = Compiler(
        name="c", cut="each", basis="assumed", source="s",
        operators=("any rank=0-4", "conv.conv2d stride=1-3", "pool kernel=1,3"),
    )  # fmt: skip
    fallen = find_fallen(work, compiler)
    assert work.operation[fallen].tolist() == ["conv2d", "max_pool"]
    assert name_fallen(work, compiler, fallen) == "conv2d of stride 4 (limit 1-3), max_pool of kernel 5 (limit 1 or 3)"


def test_a_window_that_is_placed_once_has_no_step() -> None:
    # Vela: the stride must be 1 to 3 only where the output is higher than 1; 5 x 5 gives 1 of 5 x 5, and 2 of 10 x 10
    compiler = Compiler(name="c", cut="each", operators=("pool stride=1-3",), basis="assumed", source="s")
    for size, fallen in ((5, []), (10, ["avg_pool"])):
        work = columns(nn.AvgPool2d(5), torch.empty(1, 3, size, size, device="meta"))
        assert work.operation[find_fallen(work, compiler)].tolist() == fallen


def test_a_refused_operator_of_an_open_list_does_not_run() -> None:
    work = columns(Weighing(), torch.empty(4, 8, device="meta"))
    open_list = Compiler(name="c", cut="each", operators=("*", "-softmax"), basis="assumed", source="s")
    fallen = find_fallen(work, open_list)
    assert work.operation[fallen].tolist() == ["softmax"] and open_list.is_refused("softmax", "softmax")


def test_every_accelerator_on_sale_has_a_list() -> None:
    unlisted = {name for name, one in load_catalogue().hardware.items() if one.compiler and one.compiler.is_unlisted}
    assert unlisted == {"groq_tsp_v1", "kpu_t256", "kpu_t64", "kpu_t768", "plasticine"}


def test_operators_are_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "none.duckdb")
    answer = workspace.describe_hardware("rk3588_npu")
    support = {row.operator: row.support for row in answer.list_operators()}
    assert support["conv.conv2d"] == RUNS and support["conv.conv3d"] == REFUSED
    assert {row.operator: row.limits for row in answer.list_operators()}["pool.max_pool"] == "kernel=1-7 stride=1-8"
    assert not workspace.describe_hardware("l4").list_operators()
