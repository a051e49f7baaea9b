"""Models that a person brings: files, exported programs, building blocks, packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from command import run_here
from joulemap.catalog.sheet import load_models
from joulemap.construct import model as build_model
from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_input, resolve_model
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ModelError, UnknownNameError, UsageError
from joulemap.trace.version import builder_version, tracer_version
from joulemap.workspace import Workspace

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.first = torch.nn.Linear(16, width)
        self.second = torch.nn.Linear(width, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

def net():
    return Net()

def with_inputs():
    return Net(32), (torch.zeros(2, 16),)

def not_a_module():
    return 3

def fails():
    raise RuntimeError("no weights here")

instance = Net()
instance.example_inputs = torch.zeros(1, 16)
"""

GRAPH = """
class Graph(torch.nn.Module):
    def forward(self, nodes, edges):
        return nodes[edges[0]] - nodes[edges[1]]

def graph():
    return Graph(), (torch.zeros(100, 16), torch.zeros(2, 500, dtype=torch.int64))
"""


def test_only_what_counts_and_fuses_is_in_the_key_of_what_ships(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\ndef net():\n    return torch.nn.ReLU()\n", encoding="utf-8")
    for name in ("resnet18", "attention_head"):
        assert resolve_model(name, load_models()).key.tracer_version == tracer_version()
    own = resolve_model(f"{tmp_path / 'net.py'}:net", load_models()).key
    assert own.tracer_version == builder_version() != tracer_version()


def test_a_file_of_no_known_format_and_a_folder_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ggml-base.bin").write_bytes(b"lmgg")
    (tmp_path / "net").mkdir()
    with pytest.raises(ModelError, match=r"\.gguf"):
        resolve_model("ggml-base.bin", load_models())
    with pytest.raises(UnknownNameError, match=r"\./net"):
        resolve_model("net", load_models())


def test_a_users_file_is_a_model_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NET)
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(f"{tmp_path}/mine.py:net", inputs=["4,16"], hardware="tpu_v4")
    assert answer.rows[0].batch == 4
    (macs,) = {row[0] for row in workspace.sql("SELECT mac_count FROM runs").rows}
    assert macs == 4 * (16 * 8 + 8 * 4)
    pair = workspace.compare(f"{tmp_path}/mine.py:with_inputs", batch=2, hardware="tpu_v4")
    assert pair.rows[0].peak_memory_bytes is not None
    assert pair.rows[0].peak_memory_bytes >= 4 * (16 * 32 + 32 + 32 * 4 + 4)
    assert workspace.compare(f"{tmp_path}/mine.py:instance", hardware="tpu_v4").rows[0].status == "ok"


@pytest.mark.slow
def test_sizes_that_are_given_replace_a_models_own_inputs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NET + GRAPH)
    workspace = Workspace(tmp_path / "x.duckdb")
    larger = workspace.profile(f"{tmp_path}/mine.py:with_inputs", inputs=["5,16"]).profile
    assert larger.mac_count == 5 * (16 * 32 + 32 * 4)
    assert workspace.profile(f"{tmp_path}/mine.py:instance", inputs=["x=3,16"]).profile.mac_count == 3 * (16 * 8 + 32)
    nodes, edges = "50,16", "2,70:int64"
    (row,) = workspace.compare(f"{tmp_path}/mine.py:graph", inputs=[nodes, edges], hardware="tpu_v4").rows
    assert row.batch == 1  # as with the inputs that the factory returns: neither nodes nor edges count inferences
    program = torch.export.export(
        torch.nn.Linear(16, 8), (torch.zeros(4, 16),), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},)
    )
    torch.export.save(program, tmp_path / "net.pt2")
    assert workspace.profile(str(tmp_path / "net.pt2"), inputs=["7,16"]).profile.mac_count == 7 * 16 * 8


@pytest.mark.slow
def test_a_changed_file_is_another_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.py"
    path.write_text(NET)
    workspace = Workspace(tmp_path / "x.duckdb")
    first = workspace.compare(f"{path}:net", inputs=["1,16"], hardware="tpu_v4")
    path.write_text(NET.replace("width: int = 8", "width: int = 9"))
    second = workspace.compare(f"{path}:net", inputs=["1,16"], hardware="tpu_v4")
    assert not set(first.scope.run_ids) & set(second.scope.run_ids)
    path.write_text(NET)
    monkeypatch.setattr(build_model, "trace_request", lambda request: pytest.fail("traced again"))
    again = workspace.compare(f"{path}:net", inputs=["1,16"], hardware="tpu_v4")
    assert again.scope.run_ids == first.scope.run_ids
    monkeypatch.undo()
    copy = shutil.copy(path, tmp_path / "copy.py")  # a model has the name that it is asked by
    answer = workspace.compare(f"{copy}:net", inputs=["1,16"], hardware="tpu_v4")
    assert {row.model for row in answer.rows} == {f"{copy}:net"}


MULTIPLE = """
import torch

from command import run_here

class Sum(torch.nn.Module):
    def forward(self, x, scale):
        return x * scale

class Named(torch.nn.Module):
    def forward(self, inputs):
        return inputs["x"] @ inputs["y"]

def keywords():
    return Sum(), {"x": torch.zeros(4, 8), "scale": torch.zeros(4, 1)}

def nested():
    return Named(), ({"x": torch.zeros(3, 16), "y": torch.zeros(16, 8)},)

def sequence():
    return torch.nn.LSTM(16, 32), (torch.zeros(5, 2, 16),)

def wide(width=4):
    return torch.nn.Linear(width, 2), (torch.zeros(1, width),)
"""


def operators_of(workspace: Workspace, run_id: int) -> list[tuple[object, ...]]:
    statement = (
        "SELECT o.output_shape, o.mac_count FROM operators AS o JOIN runs AS r USING (workload_id) "
        f"WHERE r.run_id = {run_id} ORDER BY o.operator_index"
    )
    return list(workspace.sql(statement).rows)


def test_a_batch_is_set_on_every_input_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.py"
    path.write_text(MULTIPLE)
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(f"{path}:keywords", hardware=["tpu_v4"], batch=6)
    assert operators_of(workspace, answer.scope.run_ids[0]) == [("6x8", 0)]
    with pytest.raises(
        ModelError, match=r"inputs of \[0\]\['x'\] 3x16, \[0\]\['y'\] 16x8: the batch cannot be set to 6"
    ):
        workspace.compare(f"{path}:nested", hardware=["tpu_v4"], batch=6)


@pytest.mark.slow
def test_inputs_and_arguments_may_be_given_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "many.py"
    path.write_text(MULTIPLE)
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(f"{path}:wide", hardware=["tpu_v4"], arguments={"width": 64})
    assert operators_of(workspace, answer.scope.run_ids[0]) == [("1x2", 128)]
    named = workspace.compare(f"{path}:Sum", hardware=["tpu_v4"], inputs=["x=2,3:fp16", "scale=2,1:fp16"])
    assert operators_of(workspace, named.scope.run_ids[0]) == [("2x3", 0)]
    with pytest.raises(ModelError, match="unexpected keyword argument 'depth'"):
        workspace.compare(f"{path}:wide", arguments={"depth": 3})


def test_files_that_a_package_imports_relatively_count_for_the_key(tmp_path: Path) -> None:
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("from .sizes import WIDTH\n")
    (package / "sizes.py").write_text("WIDTH = 16\n")
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\nfrom parts import WIDTH\n"
        "def net():\n    return torch.nn.Linear(WIDTH, 1), torch.zeros(1, WIDTH)\n"
    )
    workspace = Workspace(tmp_path / "x.duckdb")
    first = workspace.profile(f"{path}:net").profile
    (package / "sizes.py").write_text("WIDTH = 512\n")
    assert (first.mac_count, workspace.profile(f"{path}:net").profile.mac_count) == (16, 512)


def test_weights_that_two_modules_share_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "tied.py"
    path.write_text(
        "import torch\n"
        "def net():\n"
        "    first, second = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False)\n"
        "    first.weight = second.weight = torch.nn.Parameter(torch.ones(8, 8))\n"
        "    return torch.nn.Sequential(first, second), torch.zeros(1, 8)\n"
    )
    profile = Workspace(tmp_path / "x.duckdb").profile(f"{path}:net").profile
    assert (profile.parameter_count, profile.weight_bytes, profile.mac_count) == (64, 256, 128)


def test_inputs_that_a_model_does_not_take_are_refused(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "x.duckdb")
    with pytest.raises(UsageError, match="resnet18 takes 1 input, 2 given"):
        workspace.profile("resnet18", inputs=["1,3,224,224", "1,3,224,224"])
    with pytest.raises(UsageError, match="raft_large takes 2 inputs, 1 given"):
        workspace.profile("raft_large", inputs=["1,3,520,960"])
    (tmp_path / "mine.py").write_text(NET)
    with pytest.raises(ModelError, match="is not a factory"):
        workspace.profile(f"{tmp_path}/mine.py:instance", arguments={"width": 3})


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("mlp", 196 * 2 * 768 * 3072),
        ("conv_block", 56 * 56 * 64 * 64 * 9),
        ("resnet_block", 2 * 56 * 56 * 64 * 64 * 9),
        ("depthwise_separable_block", 56 * 56 * 128 * (9 + 128)),
        ("attention_head", 3 * 196 * 768 * 64 + 2 * 196 * 196 * 64),
        ("transformer_encoder_layer", 128 * 768 * (4 * 768 + 2 * 3072) + 2 * 128 * 128 * 768),
        ("transformer_decoder_layer", 768 * (4 * 768 + 2 * 3072) + 2 * 1025 * 768),
    ],
)
def test_a_building_block_is_a_model(name: str, macs: int, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(name, hardware=["h100_sxm5"])
    assert sum(int(str(row[1])) for row in operators_of(workspace, answer.scope.run_ids[0])) == macs


def test_a_building_block_takes_arguments_and_names_wrong_ones(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare("mlp", hardware=["tpu_v4"], batch=2, arguments={"width": 8, "hidden": 16, "tokens": 4})
    assert sum(int(str(row[1])) for row in operators_of(workspace, answer.scope.run_ids[0])) == 2 * 4 * 2 * 8 * 16
    with pytest.raises(UsageError, match="takes no argument depth; it takes: width, hidden, tokens"):
        workspace.compare("mlp", arguments={"depth": 2})
    with pytest.raises(UsageError, match="width is -1, expected a positive whole number"):
        workspace.compare("mlp", arguments={"width": -1})
    with pytest.raises(UsageError, match="resnet18 takes no --model-arg"):
        workspace.compare("resnet18", arguments={"width": 2})


def test_an_exported_program_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU()), (torch.zeros(4, 16),))
    torch.export.save(program, path)
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(str(path), hardware=["tpu_v4"])
    assert answer.rows[0].batch == 4
    assert sum(int(str(row[1])) for row in operators_of(workspace, answer.scope.run_ids[0])) == 4 * 16 * 8
    with pytest.raises(ModelError, match="the batch cannot be set to 8"):
        workspace.compare(str(path), hardware=["tpu_v4"], batch=8)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ModelError, match=r"net\.pt2 cannot be read as a torch\.export program"):
        workspace.compare(str(path), hardware=["tpu_v4"])


class Gated(torch.nn.Module):
    """Takes a keyword argument, and holds nothing of its own."""

    def forward(self, *values: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return sum(values, gate) * gate


@pytest.mark.sample(1)
@pytest.mark.parametrize("positional", [(), (torch.zeros(3, 8),)])
def test_an_exported_program_keeps_its_named_inputs(positional: tuple[torch.Tensor, ...], tmp_path: Path) -> None:
    path = tmp_path / "gated.pt2"
    torch.export.save(torch.export.export(Gated(), positional, {"gate": torch.zeros(3, 8)}), path)
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.compare(str(path), hardware=["tpu_v4"])
    assert answer.rows[0].batch == 3
    elementwise = workspace.sql("SELECT sum(elementwise_count) FROM internal.workload_operator").rows
    assert elementwise == ((3 * 8 * (1 + len(positional)),),)


@pytest.mark.parametrize(
    ("content", "factory", "message"),
    [
        (NET, "net", "has no example inputs"),
        (NET, "zzz", "has no zzz"),
        (NET, "not_a_module", "returned a int, expected an nn.Module"),
        (NET, "fails", r"line 23: RuntimeError: no weights here"),
        (NET + "def leaves():\n    raise SystemExit(3)\n", "leaves", "SystemExit: 3"),
        (NET, "nett", "has no nett; did you mean net"),
        ("def net(:\n", "net", "line 1: invalid syntax"),
        ("import nonexistent_module\n", "net", "line 1: ModuleNotFoundError"),
    ],
)
def test_a_users_file_that_fails_gives_its_own_error(content: str, factory: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(ModelError, match=message):
        Workspace(tmp_path / "x.duckdb").compare(f"{path}:{factory}")
    assert not (tmp_path / "x.duckdb").exists()


def test_a_users_file_without_a_factory_or_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NET)
    workspace = Workspace(tmp_path / "x.duckdb")
    with pytest.raises(UsageError, match=r"mine\.py:factory"):
        workspace.compare(f"{tmp_path}/mine.py")
    with pytest.raises(ModelError, match="there is no file"):
        workspace.compare(f"{tmp_path}/other.py:net")
    (tmp_path / "large.py").touch()
    os.truncate(tmp_path / "large.py", 30 * 10**9)
    with pytest.raises(ModelError, match=r"large\.py is longer than 10,000,000 bytes: it is not code"):
        workspace.compare(f"{tmp_path}/large.py:net")


def test_what_depends_on_no_input_is_counted_where_it_is_run(tmp_path: Path) -> None:
    (tmp_path / "norm.py").write_text(
        "import torch\n"
        "from torch.nn.utils import parametrizations\n\n\n"
        "def net():\n"
        "    return parametrizations.weight_norm(torch.nn.Conv1d(4, 6, 3)), torch.zeros(1, 4, 12)\n"
    )
    workspace = Workspace(tmp_path / "x.duckdb")
    answer = workspace.profile(f"{tmp_path}/norm.py:net")
    macs, weights = 6 * 10 * 4 * 3, 6 * 4 * 3
    # The norm is multiplied and added up, and applied: three operations for each weight.
    assert (answer.profile.mac_count, answer.profile.foldable_mac_count) == (macs, 0)
    assert (answer.profile.elementwise_count, answer.profile.foldable_elementwise_count) == (6 * 10, 3 * weights)
    assert answer.profile.fused_moved_bytes == 4 * (4 * 12 + weights + 6 + 6 * 10)
    assert [row.operation for row in answer.mix] == ["conv1d"]
    assert [row.fusion_pattern for row in answer.patterns] == ["conv1d", "constant"]


def test_without_torch_own_models_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text("net = None\n")
    monkeypatch.setattr("joulemap.system.resource.package_version", lambda name: "absent")
    done = run_here(["compare", "net.py:net", "l4"], tmp_path, {})
    assert done.returncode == 7
    assert done.stderr.endswith(
        "joulemap: tracing net.py:net needs PyTorch: pip install 'joulemap[torch]'; built-in models work without it\n"
    )


OWN_INPUTS = """
import torch
from torch.nn import Linear, Module

class Sum(Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        self.image, self.meta = Linear(16, 8, bias=bias), Linear(4, 8, bias=bias)

    def forward(self, image, meta, step=1):
        return (self.image(image) + self.meta(meta)) * step

class Batch(Sum):
    def forward(self, batch):
        return super().forward(batch["image"], batch["meta"])

class Match(Module):
    def forward(self, query, bank):
        return query @ bank.mT

def inputs():
    return {"image": torch.zeros(2, 16), "meta": torch.zeros(2, 4)}

def keywords(bias: bool = True):
    return Sum(bias), inputs()

def positions():
    return Sum(), (*inputs().values(), torch.tensor(3))

def one():
    return Batch(), (inputs(),)

def match():
    return Match(), (torch.zeros(2, 4), torch.zeros(100, 4))
"""


def test_a_named_input_replaces_one_of_a_models_own(tmp_path: Path) -> None:
    """The others keep their sizes, and take the batch if all share one: 5 x (16 x 8 + 4 x 8) MACs."""
    (tmp_path / "own.py").write_text(OWN_INPUTS)

    def trace(factory: str, *inputs: str) -> Workload:
        found = resolve_model(
            f"{tmp_path}/own.py:{factory}", load_models(), inputs=[parse_input(one) for one in inputs]
        )
        return trace_request(found)

    for factory in ("keywords", "positions", "one"):
        for inputs in (("image=5,16",), ("meta=5,4", "image=5,16")):
            workload = trace(factory, *inputs)
            assert (workload.batch, sum(one.mac_count for one in workload.operators)) == (5, 5 * (16 + 4) * 8)
    workload = trace("match", "bank=50,4")
    assert (workload.batch, sum(one.mac_count for one in workload.operators)) == (1, 2 * 4 * 50)
    with pytest.raises(ModelError, match=r"2x16.*2x4"):
        trace("keywords", "5,16")
    with pytest.raises(UsageError, match="image"):
        trace("keywords", "image=5,16", "image=6,16")


@pytest.mark.parametrize(("value", "biases"), [("true", 16), ("False", 0), ("false", 0)])
def test_words_of_json_are_values_of_arguments(value: str, biases: int, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_INPUTS)
    name = f"{tmp_path}/own.py:keywords"
    assert (
        trace_request(resolve_model(name, load_models(), arguments=[("bias", value)])).parameter_count == 160 + biases
    )
    with pytest.raises(UsageError, match="true or false"):
        trace_request(resolve_model(name, load_models(), arguments=[("bias", "no")]))


def test_an_exported_program_takes_the_sizes_that_were_exported_as_dynamic(tmp_path: Path) -> None:
    shapes = {"": None, "open": ({0: torch.export.Dim("rows", max=64)},)}
    fixed, is_open = (str(tmp_path / f"{name}net.pt2") for name in shapes)
    for path, sizes in zip((fixed, is_open), shapes.values(), strict=True):
        program = torch.export.export(torch.nn.Linear(16, 8), (torch.zeros(4, 16),), dynamic_shapes=sizes)
        torch.export.save(program, path)
    (operator,) = trace_request(resolve_model(is_open, load_models(), batch=7)).operators
    assert operator.mac_count == 7 * 16 * 8
    with pytest.raises(ModelError, match="cannot be set to 7"):
        trace_request(resolve_model(fixed, load_models(), batch=7))
    for path, given in ((fixed, "7,16"), (is_open, "4,17")):
        with pytest.raises(UsageError, match="was exported as"):
            trace_request(resolve_model(path, load_models(), inputs=[parse_input(given)]))
