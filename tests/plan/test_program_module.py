"""A module of this program as a model: traced as it is, left as it was, stored once, never taken for another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import joulemap
from conftest import Run
from joulemap.ask.fact import Caveat
from joulemap.ask.rule import UNKNOWN
from joulemap.system.errors import ModelError, UnknownNameError, UsageError
from joulemap.workspace import Workspace

INPUT = torch.zeros(2, 3, 16, 16)
CHIP = "h100_sxm5"


class Net(nn.Module):
    def __init__(self, width: int = 8, *, has_gate: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 10)
        self.has_gate = has_gate

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        found = torch.relu(self.norm(self.convolution(x))).mean((2, 3))
        if self.has_gate:
            found = torch.sigmoid(found)
        result: torch.Tensor = self.head(found if scale is None else found * scale)
        return result


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "own.duckdb")


def test_a_module_is_left_as_it_was(workspace: Workspace) -> None:
    net = Net().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    workspace.compare(net, INPUT, hardware=CHIP)
    assert net.training and net.norm.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert {parameter.device.type for parameter in net.parameters()} == {"cpu"}


@pytest.mark.slow
def test_the_same_module_is_evaluated_once_and_others_are_told_apart(workspace: Workspace) -> None:
    def ask(net: nn.Module, inputs: Any = INPUT) -> tuple[str, int]:
        answer = workspace.analyze(net, inputs, CHIP)
        return answer.scope.model, answer.total.run_id

    first = ask(Net())
    assert first == ask(Net()) == ask(Net(), (INPUT,))
    assert ask(Net(), {"x": INPUT}) == ask(Net(), {"x": INPUT})
    with torch._subclasses.FakeTensorMode():
        assert ask(Net(), torch.zeros(2, 3, 16, 16)) == first
    assert ask(Net().to("meta"), INPUT.to("meta")) == first
    assert ask(torch.compile(Net())) == first  # type: ignore[arg-type]
    others = [
        ask(Net(width=9)),
        ask(Net(has_gate=True)),
        ask(Net(), torch.zeros(2, 3, 17, 17)),
        ask(Net(), {"x": INPUT, "scale": torch.ones(1)}),
    ]
    assert len({first, *others}) == 5
    assert len({name for name, _ in (first, *others)}) == 5
    assert all(name.startswith("Net#") for name, _ in others)


@pytest.mark.slow
def test_every_question_takes_a_module(workspace: Workspace) -> None:
    net, chips = Net(), [CHIP, "tpu_v4"]
    asked: tuple[Callable[[], Any], ...] = (
        lambda: workspace.compare(net, INPUT, hardware=chips),
        lambda: workspace.explain(net, INPUT, CHIP, "tpu_v4"),
        lambda: workspace.recommend(net, INPUT, hardware=chips, precision="fp32", batch=2),
        lambda: workspace.pareto(net, INPUT, hardware=chips, precision="fp32", batch=2),
        lambda: workspace.cost(net, INPUT, hardware=chips, precision="fp32", batch=2),
        lambda: workspace.edp(net, INPUT, CHIP),
        lambda: workspace.utilization(net, INPUT, hardware=chips),
        lambda: workspace.compare_models(net, INPUT, hardware=chips),
        lambda: workspace.compare_parts(net, INPUT, hardware=chips),
        lambda: workspace.sweep(net, INPUT, hardware=chips, batch=(1, 2)),
        lambda: workspace.profile(net, INPUT),
    )
    for ask in asked:
        answer = ask()
        assert "Net#" in repr(answer) or "Net#" in str(answer.data())
        assert "joulemap analyze" not in repr(answer) and "joulemap explain" not in repr(answer)
    assert len(workspace.operators(net, INPUT)) > 3
    assert workspace.evaluate(net, INPUT, hardware=chips, batch=(5, 6)).evaluated_count == 4


@pytest.mark.parametrize(
    ("module", "inputs", "reason"),
    [
        (Net, INPUT, "Net is a class: pass an instance of it"),
        (lambda: Net(), INPUT, "is a function: pass the module that it returns"),
        (3, INPUT, "of type int, expected a name or an nn.Module"),
        (Net(), None, "needs example inputs"),
        (Net(), "1,3,16,16", "example inputs are of type str"),
    ],
)
def test_what_is_no_module_is_refused(module: Any, inputs: Any, reason: str, workspace: Workspace) -> None:
    with pytest.raises(UsageError, match=reason):
        workspace.compare(module, inputs)
    assert not workspace.path.exists()


def test_a_module_that_fails_is_named_with_its_line(workspace: Workspace) -> None:
    with pytest.raises(ModelError, match=r"Net: the forward pass failed: .*test_program_module\.py, line"):
        workspace.compare(Net(), torch.zeros(2, 5, 16, 16), hardware=CHIP)
    with pytest.raises(UsageError, match="leave out inputs"):
        workspace.compare(Net(), INPUT, inputs="1,3,8,8")
    with pytest.raises(UnknownNameError, match="was a module in a program's memory"):
        workspace.compare("Net#0123abcd")
    with pytest.raises(UsageError, match="of type Net, expected a name"):
        workspace.measure(Net())  # type: ignore[arg-type]


def test_a_module_is_handed_over_by_place_or_by_name(workspace: Workspace) -> None:
    net = Net()
    ids = {
        workspace.analyze(net, INPUT, CHIP).total.run_id,
        workspace.analyze(net, CHIP, example_inputs=INPUT).total.run_id,  # type: ignore[call-overload]
        workspace.analyze(module=net, example_inputs=INPUT, hardware=CHIP).total.run_id,  # type: ignore[call-overload]
    }
    assert len(ids) == 1
    with pytest.raises(UsageError, match=r"no keyword 'db'.*Workspace\(PATH\) chooses the database"):
        workspace.compare(net, INPUT, db="other.duckdb")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="needs a model"):
        workspace.compare(hardware=CHIP)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("resnet18", "l4"), "name hardware by keyword: compare"),
        (("resnet18", ["l4", "t4"]), "name hardware by keyword: compare"),
        ((Net(), INPUT, INPUT), r"one tuple: compare\(module, \(a, b\)\)"),
        ((["resnet18", "resnet34"],), "compare takes one model; compare_models"),
    ],
)
def test_an_argument_in_the_place_of_settings_is_refused(
    asked: tuple[Any, ...], reason: str, workspace: Workspace
) -> None:
    with pytest.raises(UsageError, match=reason):
        workspace.compare(*asked)
    assert not workspace.path.exists()


class Loop(nn.Module):
    """Ends after its first layer, because a value that is read counts as 1."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.abs().max().item() > 0.5:
                break
        return x


def test_the_line_that_reads_data_and_the_modules_that_never_ran_weigh_on_the_decision(workspace: Workspace) -> None:
    asked = workspace.compare(Loop(), torch.zeros(8, 8), hardware=CHIP)
    places = [(row.kind, row.text) for row in asked.scope.remarks if row.kind != "assumed"]
    line = inspect.getsourcelines(Loop.forward)[1] + 3
    assert places == [("idle", "layers.1"), ("idle", "layers.2"), ("read", f"test_program_module.py:{line}")]
    (branched,) = (one for one in asked.facts.of(Caveat) if one.kind == "branched")
    assert branched.values == {
        "places": (f"test_program_module.py:{line}",),
        "modules": 2,
        "idle": ("layers.1", "layers.2"),
    }
    assert branched.weight == UNKNOWN
    assert all(text in asked.document().sure for _, text in places)
    plain = workspace.compare(Net(), INPUT, hardware=CHIP)
    assert not any(row.kind in ("read", "idle") for row in plain.scope.remarks)


@pytest.fixture
def _forgotten() -> Iterator[None]:
    from joulemap import shortcut

    yield
    shortcut._chosen = None


@pytest.mark.slow
@pytest.mark.usefixtures("_forgotten")
def test_the_package_asks_the_database_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joulemap_process: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOULEMAP_DB", raising=False)
    name = joulemap.compare(Net(), INPUT, hardware=CHIP).scope.model
    done = joulemap_process("sql", "SELECT model FROM runs", "-f", "csv")
    assert done.stdout.splitlines() == ["model", name]
    other = joulemap.use(tmp_path / "other.duckdb")
    assert joulemap.analyze("resnet18", CHIP).total.run_id == 1
    assert other.path.exists()
    thrown = joulemap.use(None).path
    assert joulemap.explain(Net(), INPUT, CHIP, "tpu_v4").scope.model == name
    assert thrown.exists()
    assert joulemap.use(None).path != thrown
    assert thrown.exists(), "whoever holds its workspace goes on"
    joulemap.use("other.duckdb")
