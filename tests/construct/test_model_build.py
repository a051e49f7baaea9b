"""Models that compute while they are built, within a limit of memory, and models that compute nothing."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from conftest import Run
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ExitCode, ModelError, UsageError
from joulemap.trace import memory
from joulemap.trace.memory import Meter, free_bytes
from joulemap.trace.quantized import NOTE
from joulemap.trace.way import NOTES
from joulemap.workspace import Workspace
from models import trace as trace_module

REAL = NOTES["real"]

HEAD = """
import numpy as np
import torch
from torch import nn

IMAGE = torch.zeros(1, 3, 32, 32)


def conv():
    return nn.Conv2d(3, 8, 3)

"""

CONV_MACS = 30 * 30 * 8 * 27


def build(folder: Path, body: str, *, limit_bytes: float | None = None) -> Workload:
    """Return the workload of the factory `net` that a file defines."""
    path = folder / "mine.py"
    path.write_text(HEAD + body)
    request = resolve_model(f"{path}:net", {})
    object.__setattr__(request, "build_memory_bytes", limit_bytes)
    return trace_request(request)


DUMMY = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv(), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(self.features(torch.randn(2, 3, 32, 32)).shape[1], 10)

    def forward(self, x):
        return self.head(self.features(x))

def net():
    return Net(), IMAGE
"""

LAZY = """
def net():
    module = nn.Sequential(nn.LazyConv2d(8, 3), nn.Flatten(), nn.LazyLinear(10))
    module(IMAGE)
    return module, IMAGE
"""

FUSED = """
def net():
    return torch.nn.utils.fusion.fuse_conv_bn_eval(conv().eval(), nn.BatchNorm2d(8).eval()), IMAGE
"""

NUMPY_DATA = """
def net():
    module = conv()
    module.weight.data = torch.from_numpy(np.ones((8, 3, 3, 3), dtype=np.float32))
    return module, IMAGE
"""

DEVICE = """
def net():
    return conv().to("cuda" if torch.cuda.is_available() else "cpu"), IMAGE
"""

CUDA = """
def net():
    module = nn.Sequential(nn.Conv2d(3, 8, 3, device="cuda")).to("cuda:0", torch.float32).cuda()
    module.scale = torch.ones(8, device="cuda").to(torch.device("cuda"))
    return module, IMAGE
"""

ITEM = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv()
        self.scale = self.conv.weight.abs().max().item()

    def forward(self, x):
        return self.conv(x) * self.scale

def net():
    return Net(), IMAGE
"""

NUMPY = """
def net():
    module = conv()
    module.weight = nn.Parameter(torch.from_numpy(2 * module.weight.detach().numpy()))
    return module, IMAGE
"""

TRACED = """
def net():
    return torch.jit.trace(conv().eval(), IMAGE), IMAGE
"""

INSIDE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act = torch.jit.trace(conv(), IMAGE), nn.ReLU()

    def forward(self, x):
        return self.act(self.first(x))

def net():
    return Net(), IMAGE
"""

COMPUTED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv()
        self.norm = self.conv.weight.norm()
        self.shifts = [torch.arange(8.0).view(8, 1, 1)]

    def forward(self, x):
        return self.conv(x) * self.norm + self.shifts[0]

def net():
    return Net(), IMAGE
"""

LINEAR_MACS = 10 * 8 * 30 * 30


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("body", "macs", "notes"),
    [
        (DUMMY, CONV_MACS + LINEAR_MACS, ()),
        (LAZY, CONV_MACS + LINEAR_MACS, ()),
        (FUSED, CONV_MACS, ()),
        (NUMPY_DATA, CONV_MACS, ()),
        (DEVICE, CONV_MACS, ()),
        (CUDA, CONV_MACS, ()),
        (COMPUTED, CONV_MACS, ()),
        (ITEM, CONV_MACS, (REAL,)),
        (NUMPY, CONV_MACS, (REAL,)),
        pytest.param(TRACED, CONV_MACS, (REAL,), marks=pytest.mark.filterwarnings("ignore::FutureWarning")),
        pytest.param(INSIDE, CONV_MACS, (REAL,), marks=pytest.mark.filterwarnings("ignore::FutureWarning")),
    ],
)
def test_a_model_may_compute_while_it_is_built(body: str, macs: int, notes: tuple[str, ...], tmp_path: Path) -> None:
    workload = build(tmp_path, body)
    # a traced program of an older torch, in which a convolution has no name of its own, says one thing more
    assert (workload.mac_count, workload.notes[: len(notes)]) == (macs, notes)
    assert len(workload.notes) <= 2 * len(notes)


QUANTIZED = """
def net():
    module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
    return torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8), torch.zeros(2, 64)
"""

QUANTIZED_RECURRENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.lstm(x)[0])

def net():
    return torch.ao.quantization.quantize_dynamic(Net(), {nn.Linear, nn.LSTM}), torch.zeros(5, 2, 16)
"""


@pytest.mark.parametrize(
    ("body", "macs"),
    [
        (QUANTIZED, 2 * (64 * 32 + 32 * 8)),
        (QUANTIZED_RECURRENT, 5 * 2 * (4 * 32 * (16 + 32) + 32 * 4)),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_modules_of_packed_weights_are_counted_as_float_ones(body: str, macs: int, tmp_path: Path) -> None:
    workload = build(tmp_path, body)
    assert (workload.mac_count, workload.notes[:2]) == (macs, (REAL, NOTE))


class Stubbed(nn.Module):
    """A convolution with a relu, and a sum, between stubs."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.conv, self.relu, self.linear = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Linear(8, 4)
        self.sum = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.conv(self.quant(x)))
        out: torch.Tensor = self.dequant(self.linear(self.sum.add(hidden, hidden).mean((2, 3))))
        return out


@pytest.mark.filterwarnings("ignore")
def test_a_statically_quantized_module_of_a_program_is_traced_and_left_as_it_is() -> None:
    usual = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
    module: Any = torch.ao.quantization.fuse_modules(Stubbed().eval(), [["conv", "relu"]])
    module.qconfig = torch.ao.quantization.default_qconfig
    torch.ao.quantization.prepare(module, inplace=True)
    module(torch.rand(1, 3, 32, 32))
    torch.ao.quantization.convert(module, inplace=True)
    kinds = [type(part) for part in module.modules()]
    workload = trace_module(module, torch.zeros(1, 3, 32, 32))
    assert (workload.mac_count, workload.notes) == (CONV_MACS + 8 * 4, (NOTE,))
    assert [type(part) for part in module.modules()] == kinds
    torch.backends.quantized.engine = usual


LARGE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(30000, 30000))

    def forward(self, x):
        return x @ self.table

def net():
    return Net(), torch.zeros(1, 30000)
"""

LARGE_READ = LARGE.replace("30000))\n\n", "30000))\n        self.sum = self.table.sum().item()\n\n").replace(
    "zeros(30000", "randn(30000"
)


def test_a_large_parameter_is_not_allocated(tmp_path: Path) -> None:
    workload = build(tmp_path, LARGE, limit_bytes=1e6)
    assert (workload.mac_count, workload.notes) == (30000**2, ())


def test_what_needs_more_memory_than_the_limit_is_refused_before_it_is_taken(joulemap: Run, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"needs 3.6 GB or more .* above the limit of 2 GB \(build-memory\)"):
        build(tmp_path, LARGE_READ, limit_bytes=2e9)
    done = joulemap("model", "show", "mine.py:net", variables={"JOULEMAP_BUILD_MEMORY": "100MB"})
    assert done.returncode == ExitCode.MODEL
    assert done.stderr.splitlines()[-1] == (
        "joulemap: mine.py:net needs 3.6 GB or more to be built, above the limit of 100 MB (build-memory); without "
        "weights: RuntimeError: Tensor.item() cannot be called on meta tensors; JOULEMAP_BUILD_MEMORY=4.5GB "
        "would allow that"
    )


def test_the_limit_is_a_keyword_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + ITEM)
    workspace = Workspace(tmp_path / "x.duckdb")
    with pytest.raises(ModelError, match="above the limit of 100 B"):
        workspace.profile(f"{tmp_path}/mine.py:net", build_memory_bytes=100.0)
    with pytest.raises(UsageError, match="build_memory_bytes"):
        workspace.profile(f"{tmp_path}/mine.py:net", build_memory_bytes=0.0)


def test_the_way_is_told_as_an_assumption(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + ITEM)
    answer = Workspace(tmp_path / "x.duckdb").compare(f"{tmp_path}/mine.py:net", hardware=["tpu_v4"])
    assert any(REAL in row.text for row in answer.scope.remarks)


def test_a_meter_counts_what_is_held_and_forgets_what_is_not() -> None:
    with Meter(1000.0) as meter:
        for _ in range(10):
            kept = torch.zeros(100)  # noqa: F841
        with pytest.raises(ModelError, match="limit of 1 kB"):
            torch.zeros(200)
        with pytest.raises(ModelError, match="limit of 1 kB"):
            torch.outer(torch.ones(20), torch.ones(20))
    assert meter.needed_bytes > 1000


def test_a_group_may_leave_less_memory_than_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "inner"
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("2500000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 400000\n")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("0::/inner\n")
    assert free_bytes() == 900_000
    (tmp_path / "cgroup").unlink()
    assert free_bytes() > 900_000


def test_an_error_of_a_models_own_is_told_once_and_as_it_is(tmp_path: Path) -> None:
    body = "def net():\n    open('count', 'a').write('x')\n    raise ImportError('no such thing')\n"
    with pytest.raises(ModelError, match="ImportError: no such thing"):
        build(tmp_path, body.replace("'count'", repr(str(tmp_path / "count"))))
    assert (tmp_path / "count").read_text() == "x"
    (tmp_path / "count").unlink()
    unset = "def net(width=None):\n    open('count', 'a').write('x')\n    return torch.nn.Linear(width // 2, 4)\n"
    with pytest.raises(ModelError, match="TypeError: unsupported operand"):
        build(tmp_path, unset.replace("'count'", repr(str(tmp_path / "count"))))
    assert (tmp_path / "count").read_text() == "x"
    with pytest.raises(ModelError, match="line 15: RuntimeError: no weights here"):
        build(tmp_path, "\n\ndef net():\n    raise RuntimeError('no weights here')\n")


class Given(nn.Module):
    """Gives what a function makes of its input and a weight."""

    def __init__(self, give: Any) -> None:
        super().__init__()
        self.give = give
        self.weight = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: torch.Tensor) -> Any:
        return self.give(x, self.weight)


@pytest.mark.parametrize(
    ("give", "reason"),
    [
        (lambda x, weight: x, "it gives back its input"),
        (lambda x, weight: x.view(-1), "it gives back its input, as another view of it"),
        (lambda x, weight: weight, "it gives back its weights or constants as they are"),
        (lambda x, weight: weight @ weight, "its 1 operator read weights and constants alone"),
        (lambda x, weight: torch.ones(x.shape) * weight, "its 2 operators read weights and constants alone"),
        (lambda x, weight: 3, "it gives back no tensor"),
    ],
)
def test_a_model_of_which_nothing_depends_on_an_input_is_refused(give: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=f"nothing that the forward pass computes depends on an input: {reason}$"):
        trace_module(Given(give), torch.zeros(4, 4))


def test_what_is_drawn_at_random_is_no_constant() -> None:
    workload = trace_module(Given(lambda x, weight: torch.randn(x.shape[0], 4) @ weight), torch.zeros(4, 4))
    assert workload.mac_count == 4 * 4 * 4
    assert not any(operator.is_foldable for operator in workload.operators)


def test_a_module_that_holds_what_was_computed_of_its_weights_can_be_copied() -> None:
    module = Given(lambda x, weight: x @ weight)
    module.__dict__["norm"] = module.weight.norm()
    assert trace_module(module, torch.zeros(4, 4)).mac_count == 64
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(module)
